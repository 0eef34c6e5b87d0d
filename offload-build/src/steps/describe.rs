//! Reads what nvcc linked and registered, and writes the file that Rust includes.

use crate::error::{self, Error};
use crate::files;
use crate::generate::{Content, Described, HostFile, Place, Stub};
use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::host_objects::own::Own;
use crate::steps::images::Images;
use crate::steps::images::planned::PlannedImage;
use crate::steps::step::{Done, Made, Step};
use object::{Object, ObjectSection, ObjectSymbol};
use offload_formats::container::elf::Machine;
use offload_formats::format::fatbin;
use offload_formats::registration::anchor;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Section in which the device link puts the images.
const SECTION: &str = ".nv_fatbin";

/// Reads what the device link made, and writes the file that Rust includes, and an object for it to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) module: String,
    pub(crate) images: Images,
    pub(crate) linked: PathBuf,
    pub(crate) objects: Vec<PathBuf>,
    pub(crate) host: Machine,
    pub(crate) anchor: String,
    pub(crate) own: Own,
    pub(crate) output: PathBuf,
    pub(crate) host_file: PathBuf,
}

impl Description {
    fn run(&self) -> Result<Done, Error> {
        let images = self.read()?;
        let mut described = self.images.kernels(&images)?;
        self.images.check(&images, &BTreeSet::new())?;
        let functions = functions(&self.objects)?;
        let stub = |kernel: &mut Described| {
            let is_seen = functions.contains(&kernel.name);
            let symbol = self.own.name(&kernel.name);
            kernel.stub = is_seen.then_some(Stub::Function { symbol });
        };
        described.iter_mut().for_each(stub);
        let object = anchor::to_object(self.host, &self.anchor).map_err(Error::new)?;
        files::write(&self.output, &object).map_err(error::io(&self.output))?;
        let images = self.images.planned.iter();
        let images = images.map(|image| self.images.shown(image, Place::Nowhere));
        let file = HostFile {
            module: self.module.clone(),
            kernels: described.iter().map(|kernel| kernel.name.clone()).collect(),
            described,
            skipped: self.images.skipped.clone(),
            content: Content::Kept {
                anchor: self.anchor.clone(),
                images: images.collect(),
            },
        };
        let text = file.to_string();
        files::write(&self.host_file, text.as_bytes()).map_err(error::io(&self.host_file))?;
        Ok(Done::default())
    }

    /// The image of each target.
    fn read(&self) -> Result<Vec<Vec<u8>>, Error> {
        let bytes = fs::read(&self.linked).map_err(error::io(&self.linked))?;
        let wrong = |problem: &dyn fmt::Display| {
            Error::new(format_args!("{}: {problem}", self.linked.display()))
        };
        let file = object::File::parse(bytes.as_slice()).map_err(|error| wrong(&error))?;
        let section = file.section_by_name(SECTION);
        let section = section.ok_or_else(|| wrong(&format_args!("has no section `{SECTION}`")))?;
        let data = section.data().map_err(|error| wrong(&error))?;
        let entries = fatbin::parse(data, 0..data.len() as u64).map_err(|error| wrong(&error))?;
        let image = |image: &PlannedImage| {
            let processor = image.target.id.to_string();
            let mut found = entries.iter().filter(|entry| {
                entry.kind == fatbin::FatbinKind::Cubin
                    && entry.processor == processor
                    && !entry.is_compressed
            });
            let range = found.next().map(|entry| entry.image.clone());
            let bytes = range.and_then(|range| {
                let start = usize::try_from(range.start).ok()?;
                data.get(start..usize::try_from(range.end).ok()?)
            });
            bytes
                .map(<[u8]>::to_vec)
                .ok_or_else(|| wrong(&format_args!("has no image for `{processor}`")))
        };
        self.images.planned.iter().map(image).collect()
    }
}

impl Step for Description {
    fn title(&self) -> String {
        format!("kernels of `{}`", self.module)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host_file = self.host_file.display();
        writeln!(
            f,
            "# kernels of `{}`, in this process: {host_file}",
            self.module
        )
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        Ok(self.run()?)
    }

    fn made(&self, _reads: Vec<PathBuf>) -> Made {
        Made::in_process(
            self.title(),
            vec![self.output.clone(), self.host_file.clone()],
            [&self.linked]
                .into_iter()
                .chain(&self.objects)
                .cloned()
                .collect(),
        )
    }
}

/// Returns the functions that the objects define for each other.
fn functions(objects: &[PathBuf]) -> Result<BTreeSet<String>, Error> {
    let mut functions = BTreeSet::new();
    for path in objects {
        let bytes = fs::read(path).map_err(error::io(path))?;
        let wrong = |error| Error::because(Path::display(path), error);
        let file = object::File::parse(bytes.as_slice()).map_err(wrong)?;
        for symbol in file.symbols() {
            if symbol.is_global() && symbol.is_definition() {
                functions.insert(symbol.name().map_err(wrong)?.to_owned());
            }
        }
    }
    Ok(functions)
}
