//! The plan of a module whose images were made elsewhere: found in its sources, checked against its targets, packed.
//!
//! | source                                          | its images                      |
//! |-------------------------------------------------|---------------------------------|
//! | AMD's code object, NVIDIA's cubin               | itself, for what its header says |
//! | bundles, plain, compressed or text; archives of them, and of images for one target | their entries |
//! | offload binaries, and what holds them           | their entries                   |

use crate::container;
use crate::container::bundled::DeviceTarget;
use crate::container::device_library;
use crate::container::elf::Elf;
use crate::device_only::Packing;
use crate::error::{self, Error};
use crate::format::magic::Magic;
use crate::link::{self, DeviceInput, processor_of};
use crate::module::{Module, Target};
use crate::plan::{Plan, Step};
use crate::planned_image::PlannedImage;
use crate::target::ImageTarget;
use crate::toolchain::task::{self, Done};
use object::ReadCache;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What the file that Rust includes says of the compiler.
const MADE_BY: &str = "none here: the image was there";

/// Plans a module: each of its targets has an image in one of the sources.
pub(crate) fn plan(module: &Module, out: &Path) -> Result<(Plan, Vec<Target>), Error> {
    let mut found = Vec::new();
    for source in &module.sources {
        for (number, image) in images(source)?.into_iter().enumerate() {
            found.push((source.as_path(), number, image));
        }
    }
    let folder = out.join("offload").join(&module.name);
    let mut takes = Vec::new();
    let mut planned = Vec::new();
    for target in &module.targets {
        let (source, number, _) = chosen(module, target, &found)?;
        let output = folder.join(target.folder()).join("image");
        takes.push(Step::Take(Take {
            source: source.to_path_buf(),
            number: *number,
            target: target.written.clone(),
            output: output.clone(),
        }));
        planned.push(PlannedImage::new(target, DeviceInput::Object(output)));
    }
    let packing = Packing::new(module, planned, MADE_BY, out);
    let plan = Plan {
        stages: vec![takes, vec![Step::Pack(packing)]],
        notes: Vec::new(),
    };
    Ok((plan, module.targets.clone()))
}

/// An image in a source.
struct Found {
    /// What its container says that it is for.
    declared: Option<DeviceTarget>,
    bytes: Vec<u8>,
}

type Row<'a> = (&'a Path, usize, Found);

/// The one image for a target: its own before one that serves it as well.
fn chosen<'a, 'b>(
    module: &Module,
    target: &Target,
    found: &'b [Row<'a>],
) -> Result<&'b Row<'a>, Error> {
    let id = target.id.to_string();
    let wanted = ImageTarget {
        triple: target.triple.as_str(),
        arch: &id,
    };
    let is_own = |(_, _, image): &&Row<'_>| {
        let declared = image.declared.as_ref();
        declared.is_none_or(|declared| declared.image_target().is_same(&wanted))
    };
    let serving: Vec<&Row<'_>> = found
        .iter()
        .filter(|(_, _, image)| image.serves(target, &wanted))
        .collect();
    let own: Vec<&Row<'_>> = serving.iter().copied().filter(is_own).collect();
    let candidates = if own.is_empty() { serving } else { own };
    let name = &module.name;
    match candidates.as_slice() {
        [one, others @ ..] if others.iter().all(|other| other.2.bytes == one.2.bytes) => Ok(*one),
        [] => {
            let mut sources: Vec<String> = Vec::new();
            for source in &module.sources {
                let images = found.iter().filter(|(of, ..)| *of == source);
                let has: BTreeSet<String> = images.map(|(_, _, image)| image.to_string()).collect();
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
                .map(|(source, _, image)| format!("`{}` ({image})", source.display()))
                .collect();
            Err(Error::new(format_args!(
                "module `{name}`: several images for `{}`: {}",
                target.written,
                sources.join(", ")
            )))
        }
    }
}

impl Found {
    /// Whether it is a linked image for `target`.
    fn serves(&self, target: &Target, wanted: &ImageTarget<'_>) -> bool {
        let declared = self.declared.as_ref();
        declared.is_none_or(|declared| declared.image_target().serves(wanted))
            && link::check(&self.bytes, &target.triple, &target.id, &BTreeSet::new()).is_ok()
            && is_linked(&self.bytes)
    }
}

/// What it is for, and what it is when it is no image.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes.as_slice();
        let elf = Elf::parse(bytes, 0..bytes.len() as u64).ok();
        let processor = elf.and_then(|elf| processor_of(elf.machine, elf.flags));
        match (&self.declared, processor) {
            (Some(declared), _) => declared.fmt(f)?,
            (None, Some(processor)) => f.write_str(&processor)?,
            (None, None) => f.write_str("something for no known processor")?,
        }
        match Magic::of(bytes) {
            Magic::Elf if is_linked(bytes) => Ok(()),
            Magic::Elf => f.write_str(" (not linked)"),
            Magic::Bitcode => f.write_str(" (bitcode)"),
            _ => f.write_str(" (no code object)"),
        }
    }
}

/// Whether an ELF file is an executable or a shared object.
fn is_linked(bytes: &[u8]) -> bool {
    // e_type, of files of either byte order.
    matches!(bytes.get(16..18), Some([2 | 3, 0] | [0, 2 | 3]))
}

/// The images of a source, in its order.
fn images(path: &Path) -> Result<Vec<Found>, Error> {
    let wrong =
        |problem: Box<dyn std::error::Error + Send + Sync>| Error::because(path.display(), problem);
    let cache = ReadCache::new(File::open(path).map_err(error::io(path))?);
    let size = fs::metadata(path).map_err(error::io(path))?.len();
    let magic = Magic::at(&cache, 0..size);
    let is_image = magic == Magic::Elf
        && Elf::parse(&cache, 0..size).is_ok_and(|elf| {
            let machines = [object::elf::EM_AMDGPU.0, object::elf::EM_CUDA.0];
            machines.contains(&elf.machine)
        });
    if is_image {
        let bytes = fs::read(path).map_err(error::io(path))?;
        let declared = None;
        return Ok(vec![Found { declared, bytes }]);
    }
    let mut found = Vec::new();
    let is_library = matches!(
        magic,
        Magic::Bundle
            | Magic::CompressedBundle
            | Magic::TextBundle
            | Magic::Archive
            | Magic::Bitcode
    );
    if is_library {
        let images =
            device_library::images(&cache, false).map_err(|problem| wrong(problem.into()))?;
        for image in images {
            let bytes = image.content(&cache).unwrap_or_default().to_vec();
            let declared = image.target;
            found.push(Found { declared, bytes });
        }
    }
    if !is_library || found.is_empty() {
        let images = container::images(&cache).map_err(|problem| wrong(problem.into()))?;
        for image in images {
            let string = |key: &str| {
                let value = image.entry.strings.value(key).unwrap_or_default();
                String::from_utf8_lossy(value).into_owned()
            };
            let declared = Some(DeviceTarget {
                kind: image.entry.offload_kind,
                triple: string("triple"),
                processor: string("arch"),
            });
            let bytes = image.content(&cache).unwrap_or_default().to_vec();
            found.push(Found { declared, bytes });
        }
    }
    Ok(found)
}

/// Writes an image of a source to a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Take {
    pub(crate) source: PathBuf,
    /// Which of its images.
    number: usize,
    /// As the manifest spells it.
    pub(crate) target: String,
    pub(crate) output: PathBuf,
}

impl Take {
    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let image = images(&self.source)?.into_iter().nth(self.number);
        let image = image.ok_or_else(|| {
            Error::new(format_args!(
                "`{}` changed while it was read",
                self.source.display()
            ))
        })?;
        task::write(&self.output, &image.bytes).map_err(error::io(&self.output))?;
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
