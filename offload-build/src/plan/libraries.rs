//! Extractions of the images that a device link takes out of libraries.

use crate::device_link::DeviceInput;
use crate::inputs::libraries::{Library, name_of};
use crate::steps::extract::Extraction;
use offload_build_core::compile::nvcc;
use offload_build_core::declare::module::{Module, Target};
use offload_build_core::error::Error;
use offload_build_core::files;
use offload_formats::by_name::ByName;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

/// Plans what the device link of `target` takes from `libraries`: extractions, and the files that they write, below
/// `folder`.
pub(crate) fn inputs(
    module: &Module,
    target: &Target,
    folder: &Path,
    libraries: &[Rc<Library>],
) -> Result<(Vec<Extraction>, Vec<DeviceInput>), Error> {
    let (mut extractions, mut inputs) = (Vec::new(), Vec::new());
    let mut lacking: ByName<Vec<&Library>> = ByName::default();
    let mut served = BTreeSet::new();
    for (number, library) in libraries.iter().enumerate() {
        let name = name_of(&library.path).name.to_owned();
        let mut written = Vec::new();
        for (index, image) in library.of_target(target)? {
            let stem = Path::new(&image.member).file_stem().unwrap_or_default();
            let stem = stem
                .to_string_lossy()
                .replace(|c: char| c.is_control(), "_");
            let stem = files::short_name(&stem);
            let extension = if library.bitcode.binary_search(&index).is_ok() {
                "bc"
            } else if target.triple.is_nvptx() {
                nvcc::EXTENSION
            } else {
                "o"
            };
            let file = folder.join(format!("library-{number}-{index}-{stem}.{extension}"));
            inputs.push(match extension {
                "bc" => DeviceInput::Bitcode(file.clone()),
                _ => DeviceInput::Object(file.clone()),
            });
            written.push((index, file));
        }
        if written.is_empty() {
            lacking.or_insert(&name, Vec::new()).push(library);
            continue;
        }
        served.insert(name);
        extractions.push(Extraction {
            library: library.path.clone(),
            target: target.written.clone(),
            files: written,
            decompressed: module.decompressed,
        });
    }
    let mut lacking = lacking.iter();
    match lacking.find(|(name, _)| !served.contains(*name)) {
        None => Ok((extractions, inputs)),
        Some((_, libraries)) => {
            let libraries: Vec<String> = libraries.iter().map(ToString::to_string).collect();
            Err(Error::new(format_args!(
                "module `{}`: no library code for `{}`: {} [OFF511]",
                module.name,
                target.written,
                libraries.join("; ")
            )))
        }
    }
}
