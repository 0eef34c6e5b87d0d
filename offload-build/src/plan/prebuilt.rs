//! The plan of a module whose images were made elsewhere: taken out of its sources, and packed.

use crate::device_link::DeviceInput;
use crate::inputs::prebuilt::Chosen;
use crate::out_dir::module_folder;
use crate::plan::stages::{Plan, keyed, step};
use crate::steps::image_library::ImageLibrary;
use crate::steps::images::PartImages;
use crate::steps::images::planned::PlannedImage;
use crate::steps::pack::Packing;
use crate::steps::take::Take;
use crate::steps::task::SymbolHints;
use offload_build_core::declare::module::{Module, Target};
use std::path::Path;

/// The compiler that the generated file names.
const MADE_BY: &str = "none here: the image was there";

/// Plans a module: each of its targets has an image in one of the sources.
///
/// `place` is `OUT_DIR`, and the library that the images are linked from, if there is one.
pub(crate) fn plan(
    module: &Module,
    images: Vec<Chosen>,
    place: (&Path, Option<&ImageLibrary>),
) -> (Plan, Vec<Target>) {
    let (out, _) = place;
    let folder = module_folder(out, &module.name);
    let mut takes = Vec::new();
    let mut planned = Vec::new();
    for Chosen {
        target,
        source,
        image,
    } in images
    {
        let output = folder.join(target.folder()).join("image");
        takes.push(step(Take {
            source,
            image,
            target: target.written.clone(),
            output: output.clone(),
        }));
        let image = match target.is_ptx {
            true => DeviceInput::Ptx(output),
            false => DeviceInput::Object(output),
        };
        planned.push(PlannedImage::new(&target, image, SymbolHints::default()));
    }
    let part = PartImages {
        source: None,
        planned,
    };
    let packing = Packing::new(module, vec![part], Vec::new(), MADE_BY, place);
    let plan = Plan {
        stages: vec![takes, vec![keyed(packing)]],
        skipped: Vec::new(),
    };
    (plan, module.targets.clone())
}
