//! Images that were made elsewhere: found in the sources of a module, one for each of its targets.
//!
//! | source                                          | its images                      |
//! |-------------------------------------------------|---------------------------------|
//! | AMD's code object, NVIDIA's cubin, PTX          | itself, for what its header says |
//! | bundles, plain, compressed or text; archives of them, and of images for one target | their entries |
//! | offload binaries, and what holds them           | their entries                   |
//! | CUDA fat binaries                               | their cubins and PTX            |

mod fatbin;
mod image;
mod source;

pub(crate) use crate::inputs::prebuilt::image::PrebuiltImage;
pub(crate) use crate::inputs::prebuilt::source::images;

use offload_build_core::declare::module::{Module, Target, excluded};
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_formats::container::bundled::Unpacking;
use offload_formats::names::ImageTarget;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The image for a target, and the source that contains it.
pub(crate) struct Chosen {
    pub(crate) target: Target,
    pub(crate) source: PathBuf,
    pub(crate) image: PrebuiltImage,
}

/// Finds the images of `module`, whose package is in `root`: one for each of its targets.
pub(crate) fn find(module: &Module, root: &Path) -> Result<Vec<Chosen>, Error> {
    let mut found = Vec::new();
    let mut unpacking = Unpacking::within(module.decompressed.files(), files::scratch());
    for source in &module.sources {
        let images = images(source, module.decompressed.memory(), &mut unpacking)?.into_iter();
        found.extend(images.map(|image| (source.as_path(), image)));
    }
    let choose = |target: &Target| {
        let (source, image) = chosen(module, target, root, &found)?;
        Ok(Chosen {
            target: target.clone(),
            source: source.to_path_buf(),
            image: image.clone(),
        })
    };
    module.targets.iter().map(choose).collect()
}

type Candidate<'a> = (&'a Path, PrebuiltImage);

/// The one image for a target: its own before one that serves it as well.
fn chosen<'a, 'b>(
    module: &Module,
    target: &Target,
    root: &Path,
    found: &'b [Candidate<'a>],
) -> Result<&'b Candidate<'a>, Error> {
    let id = target.id.to_string();
    let wanted = ImageTarget {
        triple: target.triple.as_str(),
        arch: &id,
    };
    let is_own = |(_, image): &&Candidate<'_>| image.is_own(target, &wanted);
    let serving: Vec<&Candidate<'_>> = found
        .iter()
        .filter(|(source, image)| {
            !excluded(&target.own.exclude, root, source) && image.serves(target, &wanted)
        })
        .collect();
    let own: Vec<&Candidate<'_>> = serving.iter().copied().filter(is_own).collect();
    let candidates = if own.is_empty() { serving } else { own };
    let name = &module.name;
    match candidates.as_slice() {
        [one, others @ ..] if are_same(one, others)? => Ok(*one),
        [] => {
            let mut problems = found.iter();
            if let Some(problem) =
                problems.find_map(|(_, image)| image.problem_for(target, &wanted))
            {
                let written = &target.written;
                return Err(Error::new(format_args!(
                    "module `{name}`: no image for `{written}` [OFF510]: {problem}"
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
            let hint = match found.iter().any(|(_, image)| image.is_bitcode()) {
                true => {
                    "list bitcode in the `sources` of a module of `bitcode`, and archives of it in `archives`"
                }
                false => {
                    "add a source with such an image to `sources`, or remove the target from `targets`"
                }
            };
            Err(Error::new(format_args!(
                "module `{name}`: no image for `{}`: {} [OFF510]\nhint: {hint}",
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
                "module `{name}`: several images for `{}`: {} [OFF510]",
                target.written,
                sources.join(", ")
            )))
        }
    }
}

/// Tells whether several images have the same bytes; a single one is not read.
fn are_same(one: &Candidate<'_>, others: &[&Candidate<'_>]) -> Result<bool, Error> {
    if others.is_empty() {
        return Ok(true);
    }
    let read = |(source, image): &Candidate<'_>| image.reader(source);
    for other in others {
        let is_same = files::have_same_bytes(read(one)?, read(other)?);
        if !is_same.map_err(error::io(other.0))? {
            return Ok(false);
        }
    }
    Ok(true)
}
