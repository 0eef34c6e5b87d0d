//! Reads the images that a compiler put into host code and registered, and writes the file that Rust includes.

use crate::generate::{Content, Described, HostFile, Image, PartFile, Place, Ptx, Stub};
use crate::messages::Failure;
use crate::out_dir::host_file;
use crate::steps::digests::Digests;
use crate::steps::host_objects::own::{Own, stub_of};
use crate::steps::images::lacking::warnings_of_lacking_kernels;
use crate::steps::images::planned::PlannedImage;
use crate::steps::images::{Images, no_kernel};
use crate::steps::step::{Done, Made, Step};
use crate::unpacking::unpacked_image;
use offload_build_core::declare::language::Language;
use offload_build_core::declare::skipped::Skipped;
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_build_core::readable::Readable;
use offload_formats::by_name::ByName;
use offload_formats::container::decompression_limit::DecompressionLimit;
use offload_formats::container::elf::Elf;
use offload_formats::container::kernels::source_name;
use offload_formats::container::{definitions, symbols};
use offload_formats::format::fatbin::{self, FatbinKind, FatbinUnpacker};
use offload_formats::format::pieces::Piece;
use offload_formats::names::ImageKind;
use offload_formats::registration::HostFormat;
use offload_formats::registration::anchor;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// Section in which nvcc puts the images.
const SECTION: &str = ".nv_fatbin";

/// Function of CUDA's runtime that nvcc's objects call for each of their kernels.
const REGISTERS: &[u8] = b"__cudaRegisterFunction";

/// Reads what compilers made, and writes the file that Rust includes, and an object for it to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) module: String,
    pub(crate) parts: Vec<DescribedPart>,
    pub(crate) skipped: Vec<Skipped>,
    /// The limit on what a compressed image becomes.
    pub(crate) decompressed: DecompressionLimit,
    pub(crate) host: HostFormat,
    pub(crate) anchor: String,
    pub(crate) own: Own,
    /// The object.
    pub(crate) output: PathBuf,
    /// `OUT_DIR`.
    pub(crate) out: PathBuf,
}

/// Images, and the host objects whose functions launch their kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedPart {
    pub(crate) images: Images,
    /// The object whose fat binary has the images; nothing if each image is a file.
    pub(crate) linked: Option<PathBuf>,
    pub(crate) objects: Vec<PathBuf>,
}

impl Description {
    fn run(&self) -> Result<Done, Error> {
        let part = |part: &DescribedPart| {
            Ok(PartFile {
                source: part.images.source.clone(),
                described: part.described(&self.own, self.decompressed)?,
                content: Content::Kept {
                    anchor: self.anchor.clone(),
                    images: part.shown(),
                },
                ptx: part.ptx(&self.out),
            })
        };
        let parts: Vec<PartFile> = self.parts.iter().map(part).collect::<Result<_, Error>>()?;
        let described = self.parts.iter().zip(&parts);
        let messages = warnings_of_lacking_kernels(
            described
                .map(|(part, file)| (part.images.planned.as_slice(), file.described.as_slice())),
            &[],
            &self.skipped,
        );
        let file = HostFile::of_parts(self.module.clone(), parts, self.skipped.clone());
        if file.kernels.is_empty() && !self.has_own_kernels()? {
            return Err(no_kernel(Language::Cuda));
        }
        let object = match self.host {
            HostFormat::Elf(machine) => anchor::to_object(machine, &self.anchor),
            HostFormat::Coff(_) => anchor::to_coff(&self.anchor),
        };
        let object = object.map_err(Error::new)?;
        files::write(&self.output, &object).map_err(error::io(&self.output))?;
        let (text, path) = (file.to_string(), host_file(&self.out, &self.module));
        files::write(&path, text.as_bytes()).map_err(error::io(&path))?;
        Ok(Done {
            messages,
            ..Done::default()
        })
    }

    /// Returns whether a host object registers kernels. nvcc's images do not show those that are `static`, or instances of
    /// `static` templates: only the object's own functions launch them.
    fn has_own_kernels(&self) -> Result<bool, Error> {
        let linked = self.parts.iter().filter(|part| part.linked.is_some());
        for path in linked.flat_map(|part| &part.objects) {
            let object = Readable::open(path)?;
            let symbols = object.parse(symbols)?;
            if symbols.iter().any(|symbol| symbol.name == REGISTERS) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl DescribedPart {
    /// Returns the kernels of the images, with what stands for them on the host.
    fn described(
        &self,
        own: &Own,
        decompressed: DecompressionLimit,
    ) -> Result<Vec<Described>, Error> {
        let images = match &self.linked {
            Some(linked) => self.unpacked(linked, decompressed)?,
            None => self.images.open()?,
        };
        let mut described = self.images.described(&images)?;
        let stubs = stubs(&self.objects)?;
        let plain: Vec<String> = described
            .iter()
            .map(|kernel| plain_name(&kernel.name))
            .collect();
        let counted = ByName::counted(&plain);
        for (kernel, name) in described.iter_mut().zip(&plain) {
            let is_only = counted.get(name) == Some(&1);
            let of_microsoft = || stubs.get(&format!("{MICROSOFT}{name}")).filter(|_| is_only);
            let stub = stubs.get(&kernel.name).or_else(of_microsoft);
            kernel.stub = stub.map(|symbol| Stub::Function {
                symbol: own.name(symbol),
            });
        }
        Ok(described)
    }

    fn shown(&self) -> Vec<Image> {
        let images = self.images.planned.iter();
        images
            .map(|image| self.images.shown(image, Place::Nowhere))
            .collect()
    }

    fn ptx(&self, out: &Path) -> Vec<Ptx> {
        match self.linked {
            Some(_) => Vec::new(),
            None => self.images.ptx(out),
        }
    }

    /// Returns the image of each target in the fat binary of `linked`.
    fn unpacked(
        &self,
        linked: &Path,
        decompressed: DecompressionLimit,
    ) -> Result<Vec<Readable>, Error> {
        let file = Readable::open(linked)?;
        let images = self.pieces(&file, decompressed);
        file.check()?;
        let image = |piece| Readable::edited(linked, vec![piece]);
        images?.into_iter().map(image).collect()
    }

    /// Returns what each target's image in the fat binary of `linked` consists of.
    fn pieces(
        &self,
        linked: &Readable,
        decompressed: DecompressionLimit,
    ) -> Result<Vec<Piece>, Error> {
        let wrong = |problem: &dyn fmt::Display| {
            Error::new(format_args!("{}: {problem}", linked.path().display()))
        };
        let data = linked.data();
        let file = Elf::parse(data, 0..linked.size()).map_err(|error| wrong(&error))?;
        let section = file.find(SECTION).map_err(|error| wrong(&error))?;
        let section = section.ok_or_else(|| wrong(&format_args!("has no section `{SECTION}`")))?;
        let section = file.check(&section).map_err(|error| wrong(&error))?;
        let entries = fatbin::parse(data, section).map_err(|error| wrong(&error))?;
        let mut unpacker = FatbinUnpacker::new(data, decompressed.memory());
        let image = |image: &PlannedImage| {
            let processor = image.target.id.to_string();
            let kind = match image.kind() {
                ImageKind::PTX => FatbinKind::Ptx,
                _ => FatbinKind::Cubin,
            };
            let mut found = entries
                .iter()
                .filter(|entry| entry.kind == kind && entry.processor == processor);
            let entry = found.next().ok_or_else(|| {
                wrong(&format_args!("has no image for `{}`", image.target.written))
            })?;
            if kind == FatbinKind::Cubin && !entry.is_compressed() {
                let range = entry.image.clone();
                return Ok(Piece::Copy { input: 0, range });
            }
            let bytes = unpacked_image(&mut unpacker, entry, linked.path())?;
            let end = match kind {
                FatbinKind::Ptx => bytes.iter().position(|byte| *byte == 0),
                _ => None,
            };
            let bytes = bytes.get(..end.unwrap_or(bytes.len()));
            Ok(Piece::Bytes(bytes.unwrap_or_default().to_vec()))
        };
        self.images.planned.iter().map(image).collect()
    }

    fn inputs(&self) -> impl Iterator<Item = PathBuf> {
        let images = match &self.linked {
            Some(linked) => vec![linked.clone()],
            None => self.images.paths().collect(),
        };
        images.into_iter().chain(self.objects.iter().cloned())
    }
}

impl Step for Description {
    fn title(&self) -> String {
        format!("kernels of `{}`", self.module)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host_file = host_file(&self.out, &self.module);
        writeln!(
            f,
            "# kernels of `{}`, in this process: {}",
            self.module,
            host_file.display()
        )
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        Ok(self.run()?)
    }

    fn made(&self) -> Made {
        let mut inputs: Vec<PathBuf> = self.parts.iter().flat_map(DescribedPart::inputs).collect();
        inputs.dedup();
        Made::in_process(
            self.title(),
            vec![self.output.clone(), host_file(&self.out, &self.module)],
            inputs,
        )
    }
}

/// Returns the symbols that stand for kernels on the host and that other objects see, by the names of the kernels.
fn stubs(objects: &[PathBuf]) -> Result<ByName<String>, Error> {
    let mut names = BTreeSet::new();
    for path in objects {
        let object = Readable::open(path)?;
        for name in object.parse(definitions)? {
            names.insert(String::from_utf8_lossy(name).into_owned());
        }
    }
    let mut stubs = ByName::default();
    for name in &names {
        let Some(kernel) = stub_of(name) else {
            continue;
        };
        // HIP's runtime knows a kernel by a variable of its name, clang's CUDA by the function that launches it.
        let symbol = names.get(&kernel).unwrap_or(name).clone();
        // Images have names of the Itanium ABI for any host.
        if let Some(plain) = microsoft_name(&kernel) {
            stubs.insert(format!("{MICROSOFT}{plain}"), symbol.clone());
        }
        stubs.insert(kernel, symbol);
    }
    // nvcc's kernels are functions of their own names.
    for name in names {
        stubs.insert(name.clone(), name);
    }
    Ok(stubs)
}

/// Begins the keys of stubs that are found by names without arguments; no symbol begins so.
const MICROSOFT: &str = "?:";

/// Returns the name of a kernel without template arguments: `ns::scale`.
fn plain_name(symbol: &str) -> String {
    let name = source_name(symbol);
    let end = name.find(['<', '(']).unwrap_or(name.len());
    name[..end].to_owned()
}

/// Returns the name that Microsoft's C++ ABI mangles as `symbol`, without template arguments: `ns::scale` of
/// `??$scale@H@ns@@YAXPEAH@Z`. Nothing if its template arguments are not simple.
fn microsoft_name(symbol: &str) -> Option<String> {
    let (rest, is_template) = match symbol.strip_prefix("??$") {
        Some(rest) => (rest, true),
        None => (symbol.strip_prefix('?')?, false),
    };
    let (scope, _) = rest.split_once("@@")?;
    let mut parts = scope.split('@');
    let name = parts.next()?;
    if is_template {
        parts.next()?;
    }
    let mut names: Vec<&str> = parts.collect();
    names.reverse();
    names.push(name);
    Some(names.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_microsofts_names() {
        for (symbol, name) in [
            ("?plain@@YAXPEAH@Z", Some("plain")),
            ("?scale@inner@outer@@YAXPEAM@Z", Some("outer::inner::scale")),
            ("??$scale@H@@YAXPEAH@Z", Some("scale")),
            ("??$scale@H@ns@@YAXPEAH@Z", Some("ns::scale")),
            ("_Z5scalePf", None),
            ("?", None),
        ] {
            assert_eq!(microsoft_name(symbol).as_deref(), name, "{symbol}");
        }
        assert_eq!(plain_name("_ZN2ns5scaleIiEEvPT_"), "ns::scale");
    }
}
