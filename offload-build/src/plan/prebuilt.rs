//! The plan of a module whose images were made elsewhere: found in its sources, checked against its targets, packed.
//!
//! | source                                          | its images                      |
//! |-------------------------------------------------|---------------------------------|
//! | AMD's code object, NVIDIA's cubin, PTX          | itself, for what its header says |
//! | bundles, plain, compressed or text; archives of them, and of images for one target | their entries |
//! | offload binaries, and what holds them           | their entries                   |
//! | CUDA fat binaries                               | their cubins and PTX, but what is compressed |

use crate::declare::module::{Module, Target, excluded};
use crate::device_link::DeviceInput;
use crate::error;
use crate::error::Error;
use crate::files;
use crate::inputs::prebuilt::{Found, images};
use crate::plan::device_only::Packing;
use crate::plan::stages::{Plan, Step};
use crate::steps::images::planned::PlannedImage;
use crate::steps::task::Done;
use offload_formats::container::bundled::Unpacking;
use offload_formats::names::ImageTarget;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// What the file that Rust includes says of the compiler.
const MADE_BY: &str = "none here: the image was there";

/// Plans a module: each of its targets has an image in one of the sources.
pub(crate) fn plan(module: &Module, root: &Path, out: &Path) -> Result<(Plan, Vec<Target>), Error> {
    let mut found = Vec::new();
    let mut unpacking = Unpacking::in_memory(module.decompressed.memory());
    for source in &module.sources {
        let images = images(source, &mut unpacking)?.into_iter();
        found.extend(images.map(|image| (source.as_path(), image)));
    }
    let folder = out.join("offload").join(&module.name);
    let mut takes = Vec::new();
    let mut planned = Vec::new();
    for target in &module.targets {
        let (source, image) = chosen(module, target, root, &found)?;
        let output = folder.join(target.folder()).join("image");
        takes.push(Step::Take(Take {
            source: source.to_path_buf(),
            image: image.clone(),
            target: target.written.clone(),
            output: output.clone(),
        }));
        let image = match target.is_ptx {
            true => DeviceInput::Ptx(output),
            false => DeviceInput::Object(output),
        };
        planned.push(PlannedImage::new(target, image));
    }
    let packing = Packing::new(module, planned, Vec::new(), MADE_BY, out);
    let plan = Plan {
        stages: vec![takes, vec![Step::Pack(packing)]],
        skipped: Vec::new(),
    };
    Ok((plan, module.targets.clone()))
}

type Row<'a> = (&'a Path, Found);

/// The one image for a target: its own before one that serves it as well.
fn chosen<'a, 'b>(
    module: &Module,
    target: &Target,
    root: &Path,
    found: &'b [Row<'a>],
) -> Result<&'b Row<'a>, Error> {
    let id = target.id.to_string();
    let wanted = ImageTarget {
        triple: target.triple.as_str(),
        arch: &id,
    };
    let is_own = |(_, image): &&Row<'_>| image.is_own(&wanted);
    let serving: Vec<&Row<'_>> = found
        .iter()
        .filter(|(source, image)| {
            !excluded(&target.own.exclude, root, source) && image.serves(target, &wanted)
        })
        .collect();
    let own: Vec<&Row<'_>> = serving.iter().copied().filter(is_own).collect();
    let candidates = if own.is_empty() { serving } else { own };
    let name = &module.name;
    match candidates.as_slice() {
        [one, others @ ..] if are_same(one, others)? => Ok(*one),
        [] => {
            let compressed = found
                .iter()
                .find_map(|(source, image)| Some((source, image.compressed_for(target, &wanted)?)));
            if let Some((source, which)) = compressed {
                let (written, source) = (&target.written, source.display());
                return Err(Error::new(format_args!(
                    "module `{name}`: no image for `{written}`: {which} of `{source}` is compressed\n\
                     hint: `nvcc --no-compress` or `fatbinary --compress=false` writes it as it is; \
                     `cuobjdump -xelf all -xptx all` takes images out of what is there"
                )));
            }
            let mut sources: Vec<String> = Vec::new();
            for source in &module.sources {
                let images = found.iter().filter(|(of, _)| *of == source);
                let has: BTreeSet<String> = images.map(|(_, image)| image.to_string()).collect();
                let has: Vec<String> = has.into_iter().collect();
                let has = match has.as_slice() {
                    [] => "none".to_owned(),
                    has => has.join(", "),
                };
                sources.push(format!("`{}` has {has}", source.display()));
            }
            Err(Error::new(format_args!(
                "module `{name}`: no image for `{}`: {}\n\
                 hint: bitcode is linked by a module whose `language` is `bitcode`, archives of it by `archives`",
                target.written,
                sources.join("; ")
            )))
        }
        several => {
            let sources: Vec<String> = several
                .iter()
                .map(|(source, image)| format!("`{}` ({image})", source.display()))
                .collect();
            Err(Error::new(format_args!(
                "module `{name}`: several images for `{}`: {}",
                target.written,
                sources.join(", ")
            )))
        }
    }
}

/// Whether all of several images have the same bytes; of one none are read.
fn are_same(one: &Row<'_>, others: &[&Row<'_>]) -> Result<bool, Error> {
    if others.is_empty() {
        return Ok(true);
    }
    let bytes = one.1.read(one.0)?;
    for (source, image) in others {
        if image.read(source)? != bytes {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes an image of a source to a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Take {
    pub(crate) source: PathBuf,
    /// With what had to be unpacked to find it.
    image: Found,
    /// As the manifest spells it.
    pub(crate) target: String,
    pub(crate) output: PathBuf,
}

impl Take {
    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let bytes = self.image.read(&self.source)?;
        files::write(&self.output, &bytes).map_err(error::io(&self.output))?;
        Ok(Done::default())
    }
}

impl fmt::Display for Take {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, output) = (self.source.display(), self.output.display());
        writeln!(
            f,
            "# image for {} of {source}, in this process: {output}",
            self.target
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use offload_formats::format::bundle::{self, BundleImage};
    use offload_formats::format::compressed_bundle;
    use std::fs;
    use std::num::NonZeroU64;

    #[test]
    fn takes_an_image_out_of_what_was_unpacked_to_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let (source, output) = (folder.path().join("k.hipfb"), folder.path().join("image"));
        let image = b"BC\xc0\xde of an image";
        let id = "hipv4-amdgcn-amd-amdhsa--gfx90a";
        let plain = bundle::to_bytes(&[BundleImage { id, image }], NonZeroU64::MIN).unwrap();
        let packed = compressed_bundle::compress(&plain, Default::default()).unwrap();
        fs::write(&source, packed).unwrap();
        let found = images(&source, &mut Unpacking::in_memory(1 << 30))
            .unwrap()
            .remove(0);
        // Whoever unpacks it again needs it again.
        fs::remove_file(&source).unwrap();
        let take = Take {
            source,
            image: found,
            target: "gfx90a".to_owned(),
            output: output.clone(),
        };
        take.execute().unwrap();
        assert_eq!(fs::read(output).unwrap(), image);
    }
}
