//! Finds the images of the inputs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use offload_build::tools::Command;
use offload_formats::container::archive::Archive;
use offload_formats::container::bundled::{self, BundledEntry, DeviceTarget, Unpacking};
use offload_formats::container::elf::OFFLOADING_SECTION;
use offload_formats::container::{self, Standing};
use offload_formats::escape::terminal;
use offload_formats::format::bitcode;
use offload_formats::format::bundle_text::Comment;
use offload_formats::format::bytes::{ReadAt, Window};
use offload_formats::format::device_text::DeviceText;
use offload_formats::format::magic::Magic;
use offload_formats::names::{EntryIdError, ImageTarget, OffloadKind};

use crate::decompressed::{self, DecompressionLimit};
use crate::files;
use crate::linker_wrapper::error::{LinkError, Problem};
use crate::linker_wrapper::inputs::blocks::Blocks;
use crate::linker_wrapper::inputs::file::{
    DeviceCode, FileKind, InputFile, Inputs, Place, Unit, UnitKind,
};
use crate::linker_wrapper::inputs::host_objects;
use crate::linker_wrapper::inputs::image_bytes::{Disk, ImageBytes, ImageData};
use crate::linker_wrapper::inputs::symbols::Names;
use crate::linker_wrapper::line::arguments::Load;
use crate::linker_wrapper::report::fates::{Fate, Report, ReportLine, target};

/// An image that a compiler put into a host object.
#[derive(Debug)]
pub(crate) struct Image {
    /// Name for messages, `libk.a(k.o)`.
    pub from: String,
    /// Index among the units of the inputs.
    pub unit: usize,
    /// Set if the host link loads it only on demand, usually because it is in an archive member.
    pub in_archive: bool,
    /// Set for an entry of a bundle.
    pub bundled: bool,
    /// Offset of its bundle, which distinguishes several bundles of a unit.
    pub bundle: u64,
    /// Set for an image of a device library: other images use it, but it is not registered.
    pub library: bool,
    pub offload_kind: OffloadKind,
    pub triple: String,
    pub processor: String,
    bytes: ImageBytes,
}

/// Formats whose symbols can be read.
const HAVE_SYMBOLS: [Magic; 3] = [Magic::Elf, Magic::Coff, Magic::Bitcode];

/// Limit on bytes of compressed bundles that are unpacked whole, for the whole link. Of others, the link unpacks the images
/// that it needs.
const MAX_UNPACKED: u64 = 64 << 20;

/// Returns the problem with a bundle, with a hint if one is known.
pub(crate) fn with_hint(problem: bundled::BundledEntryError) -> Problem {
    decompressed::with_hint(&problem, problem.remedy()).into()
}

impl Image {
    /// Returns every image of the inputs that must be linked, in input order. `limit` applies to decompressed data.
    pub(crate) fn all(
        inputs: &Inputs,
        limit: DecompressionLimit,
        report: &mut Report,
    ) -> Result<Vec<Self>, LinkError> {
        let mut images = Vec::new();
        let scratch = files::scratch();
        let mut unpacking = Unpacking::within(limit.files(), scratch.clone());
        let mut bundles = BundleReader {
            unpacking: Unpacking::within(limit.files(), scratch).at_once(MAX_UNPACKED),
            disk: Disk::new(limit.files()),
            targets: HashMap::new(),
        };
        for (index, (file, unit)) in inputs.units().enumerate() {
            if unit.device_code != DeviceCode::None {
                Self::of_unit(file, (unit, index), &mut unpacking, &mut images, report)?;
            }
            if let Some(place) = &unit.bundle {
                bundles.read(file, (unit, index), place, &mut images, report)?;
            }
        }
        Ok(images)
    }

    fn of_unit(
        file: &InputFile,
        (unit, index): (&Unit, usize),
        unpacking: &mut Unpacking,
        images: &mut Vec<Self>,
        report: &mut Report,
    ) -> Result<(), LinkError> {
        let from = file.unit_name(unit);
        let path = unit.path(&file.path);
        let invalid = |problem: Problem| LinkError::input(&from, problem);
        let blocks = file.blocks(unit).map_err(|source| invalid(source.into()))?;
        let data = blocks.apart();
        let found = container::link_inputs(Window::new(&data, unit.data.clone()), unpacking);
        let found = found.map_err(|problem| {
            invalid(decompressed::with_hint(&problem, problem.remedy()).into())
        })?;
        if found.is_empty() && unit.kind == UnitKind::Bitcode {
            let names = bitcode::section_names(&data, unit.data.clone());
            let is_lost = |name: &Vec<u8>| name == OFFLOADING_SECTION.as_bytes();
            if names.is_ok_and(|names| names.iter().any(is_lost)) {
                let problem =
                    "it has a section `.llvm.offloading` but no metadata that names its content";
                return Err(invalid(problem.into()));
            }
        }
        // Images in memory have been linked and registered by the author of the object, except those in statics of
        // Rust.
        let allocated = |standing| standing == Standing::Allocated;
        let any_allocated = found.iter().any(|found| allocated(found.standing));
        let finished = any_allocated && host_objects::registers(&blocks, unit);
        if any_allocated && !finished {
            report.warnings.push(format!(
                "{from}: its images are in a section that is loaded into memory, and also stay in the output"
            ));
        }
        let start = unit.data.start;
        let in_archive = is_in_archive(file);
        for found in found {
            if finished && allocated(found.standing) {
                continue;
            }
            let range = found.entry.image.clone();
            images.push(Self {
                from: from.clone(),
                unit: index,
                in_archive,
                bundled: false,
                bundle: 0,
                library: false,
                offload_kind: found.entry.offload_kind,
                triple: found.entry.triple().to_owned(),
                processor: found.entry.arch().to_owned(),
                bytes: match found.bytes {
                    Some(bytes) => ImageBytes::unpacked(path, &blocks, bytes, range),
                    None => {
                        let range = start + range.start..start + range.end;
                        ImageBytes::in_file(path, &blocks, range)
                    }
                },
            });
        }
        Ok(())
    }

    /// Returns the images of a device library for one target, or the library itself if it is bitcode.
    pub(crate) fn of_library(
        path: &Path,
        triple: &str,
        processor: &str,
    ) -> Result<Vec<Self>, LinkError> {
        let from = terminal(path).to_string();
        let invalid = |problem: Problem| LinkError::input(&from, problem);
        let blocks = Blocks::open(path).map_err(|source| invalid(source.into()))?;
        let data = &blocks.apart();
        let size = data
            .size()
            .ok_or_else(|| invalid("its size cannot be read".into()))?;
        let image = |from: String, range: Range<u64>| Self {
            from,
            unit: usize::MAX, // in no input
            in_archive: true,
            bundled: false,
            bundle: 0,
            library: true,
            offload_kind: OffloadKind::NONE,
            triple: triple.to_owned(),
            processor: processor.to_owned(),
            bytes: ImageBytes::in_file(path, &blocks, range),
        };
        if Magic::at(data, 0..size) == Magic::Bitcode {
            return Ok(vec![image(from.clone(), 0..size)]);
        }
        let archive = Archive::parse(data, 0..size).map_err(|source| invalid(source.into()))?;
        let members = archive.members.into_iter().filter_map(|member| {
            let content = member.content?;
            let code = [Magic::Elf, Magic::Bitcode].contains(&Magic::at(data, content.clone()));
            let name = terminal(member.name);
            code.then(|| image(format!("{from}({name})"), content))
        });
        Ok(members.collect())
    }

    /// Returns the target.
    #[must_use]
    pub(crate) fn target(&self) -> ImageTarget<'_> {
        ImageTarget {
            triple: &self.triple,
            arch: &self.processor,
        }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub(crate) fn size(&self) -> u64 {
        self.bytes.size()
    }

    /// Returns the image's line of the report.
    pub(crate) fn line(&self, fate: Fate) -> ReportLine {
        ReportLine {
            from: self.from.clone(),
            kind: self.offload_kind.name().to_owned(),
            triple: self.triple.clone(),
            processor: self.processor.clone(),
            size: self.size(),
            fate,
        }
    }

    /// Returns the command that writes the image to a file, which this tool does without a command.
    pub(crate) fn extraction(&self, path: &Path) -> Command {
        let mut image = format!("--image=file={},triple={}", path.display(), self.triple);
        if !self.processor.is_empty() {
            image += &format!(",arch={}", self.processor);
        }
        image += &format!(",kind={}", self.offload_kind);
        Command::new("offload-packager")
            .arg(self.bytes.path())
            .arg(image)
    }

    /// Returns all bytes.
    pub(crate) fn bytes(&self) -> Result<Cow<'_, [u8]>, LinkError> {
        let all = self.bytes.all();
        all.map_err(|problem| self.lost("read", &problem))
    }

    /// Passes the bytes to `read`, which reads some of them. Offsets start at 0.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&ImageData<'_>) -> T) -> Result<T, LinkError> {
        let read = self.bytes.read(read);
        read.map_err(|problem| self.lost("read", &problem))
    }

    /// Writes the image to a new file.
    pub(crate) fn copy_to(&self, path: &Path) -> Result<(), LinkError> {
        let to = format!("copied to `{}`", path.display());
        let copied = self.bytes.copy_to(path);
        copied.map_err(|problem| self.lost(&to, &problem))
    }

    /// Returns the error for a failed operation on the image.
    fn lost(&self, done: &str, problem: &io::Error) -> LinkError {
        let (kind, target) = (self.offload_kind, target(&self.triple, &self.processor));
        let text = format!("the {kind} image for {target} cannot be {done}: {problem}");
        LinkError::input(&self.from, text)
    }

    /// Returns its symbols; `None` for formats without any, such as PTX.
    pub(crate) fn names(&self) -> Result<Option<Names>, LinkError> {
        let names = self.read(|data| {
            let whole = 0..self.size();
            if !HAVE_SYMBOLS.contains(&Magic::at(data, whole.clone())) {
                return Ok(None);
            }
            let symbols = container::symbols(data, whole);
            symbols.map(|symbols| Some(Names::of(&symbols)))
        })?;
        names.map_err(|problem| {
            let (kind, target) = (self.offload_kind, target(&self.triple, &self.processor));
            let text = format!("symbols of the {kind} image for {target}: {problem}");
            LinkError::input(&self.from, text)
        })
    }

    /// Returns the language if it is text.
    pub(crate) fn text(&self) -> Result<Option<DeviceText>, LinkError> {
        match self.read(|data| Magic::at(data, 0..self.size()))? {
            Magic::Elf | Magic::Bitcode => Ok(None),
            _ => Ok(DeviceText::of(&self.bytes()?)),
        }
    }

    /// Tells whether the images are equal, without reading those at the same place.
    pub(crate) fn is_same(&self, other: &Self) -> Result<bool, LinkError> {
        Ok(self.is_same_place(other) || self.bytes()? == other.bytes()?)
    }

    /// Tells whether both are the same range of the same file.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        self.bytes.is_same_place(&other.bytes)
    }

    #[cfg(test)]
    pub(crate) fn for_test(triple: &str, processor: &str, in_archive: bool) -> Self {
        let bytes = tempfile::NamedTempFile::new().unwrap();
        let blocks = Blocks::open(bytes.path()).unwrap();
        Self {
            from: String::new(),
            unit: 0,
            in_archive,
            bundled: false,
            bundle: 0,
            library: false,
            offload_kind: OffloadKind::OPENMP,
            triple: triple.to_owned(),
            processor: processor.to_owned(),
            bytes: ImageBytes::in_file(bytes.path(), &blocks, 0..0),
        }
    }
}

/// Reads the images of bundles.
struct BundleReader {
    unpacking: Unpacking,
    disk: Arc<Disk>,
    /// Targets by entry ID: an archive has thousands of entries with few IDs.
    targets: HashMap<String, Result<Option<DeviceTarget>, EntryIdError>>,
}

impl BundleReader {
    fn target(&mut self, entry: &BundledEntry) -> Result<Option<DeviceTarget>, EntryIdError> {
        if let Some(known) = self.targets.get(&entry.id) {
            return known.clone();
        }
        let target = entry.target();
        self.targets.insert(entry.id.clone(), target.clone());
        target
    }

    /// Adds the images of the bundle of a unit.
    fn read(
        &mut self,
        file: &InputFile,
        (unit, index): (&Unit, usize),
        bundle: &Place,
        images: &mut Vec<Image>,
        report: &mut Report,
    ) -> Result<(), LinkError> {
        let from = file.unit_name(unit);
        let outside = bundle.outside.as_deref();
        let path = outside.unwrap_or(&file.path);
        let invalid = |problem: Problem| LinkError::input(&from, problem);
        let blocks = file.blocks_of(outside);
        let blocks = blocks.map_err(|source| invalid(source.into()))?;
        let entries = match &bundle.entries {
            Some(known) => Cow::Borrowed(&known[..]),
            None => {
                let data = blocks.apart();
                let entries = bundled::entries(&data, bundle.range.clone(), &mut self.unpacking);
                Cow::Owned(entries.map_err(|problem| invalid(with_hint(problem)))?)
            }
        };
        for entry in entries.iter() {
            if entry.range.is_empty() {
                continue;
            }
            let target = match self.target(entry) {
                Ok(Some(target)) if entry.comment == Some(Comment::Slashes) => {
                    let id = terminal(&entry.id);
                    let problem = format!(
                        "entry `{id}`: the code for {target} is source, which linkers do not compile\n\
                         hint: compile the file with -c"
                    );
                    return Err(invalid(problem.into()));
                }
                Ok(Some(target)) => target,
                Ok(None) => continue,
                Err(problem) => {
                    let id = terminal(&entry.id);
                    report
                        .warnings
                        .push(format!("{from}: the entry `{id}` is not linked: {problem}"));
                    continue;
                }
            };
            images.push(Image {
                from: from.clone(),
                unit: index,
                in_archive: is_in_archive(file),
                bundled: true,
                bundle: entry.bundle,
                library: false,
                offload_kind: target.kind,
                triple: target.triple,
                processor: target.processor,
                bytes: match (&entry.unpacked, &entry.packed) {
                    (Some(bytes), _) => {
                        ImageBytes::unpacked(path, &blocks, bytes.clone(), entry.range.clone())
                    }
                    (_, Some(bundle)) => {
                        let bundle = Arc::clone(bundle);
                        ImageBytes::packed(path, &blocks, bundle, entry.range.clone(), &self.disk)
                    }
                    _ => ImageBytes::in_file(path, &blocks, entry.range.clone()),
                },
            });
        }
        Ok(())
    }
}

/// Tells whether the host link loads parts of a file on demand.
fn is_in_archive(file: &InputFile) -> bool {
    match file.load {
        Load::Whole => false,
        Load::Usual => file.kind == FileKind::Archive,
        Load::Wanted => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linker_wrapper::line::arguments::Arguments;

    macro_rules! golden {
        ($name:literal) => {
            include_bytes!(concat!("../../../../tests/golden/22.1.8/", $name))
        };
    }

    #[test]
    fn rejects_an_image_whose_symbols_are_damaged() {
        use offload_formats::format::offload_binary::BinaryImage;
        let damaged = BinaryImage {
            offload_kind: OffloadKind::HIP,
            strings: &[("triple", "amdgcn-amd-amdhsa"), ("arch", "gfx90a")],
            image: b"\x7fELF\x09\x01",
            ..BinaryImage::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("input.bin");
        std::fs::write(&path, damaged.to_bytes(Default::default()).unwrap()).unwrap();
        let arguments = Arguments::parse(vec![path.clone().into()], "offload-ld").unwrap();
        let inputs = Inputs::scan(&arguments).unwrap();
        let limit = DecompressionLimit::default();
        let images = Image::all(&inputs, limit, &mut Report::default()).unwrap();
        let error = images[0].names().unwrap_err().to_string();
        let expected = format!("{}: symbols of the hip image for ", path.display());
        assert!(error.starts_with(&expected), "{error}");
        let end = "ELF class 9 with byte order 1 is not supported (1 and 2 are)";
        assert!(error.ends_with(end), "{error}");
    }

    #[test]
    fn survives_a_file_that_changes_after_it_was_looked_at() {
        let goldens: [(&[u8], usize); 6] = [
            (golden!("elf64le.o"), 2),
            (golden!("gnu.a"), 2),
            (golden!("bundle-in-object.o"), 1),
            (golden!("two-images.offload-binary"), 2),
            (golden!("three-images.bundle"), 2),
            (golden!("embedded.bc"), 4),
        ];
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("input");
        for (whole, count) in goldens {
            std::fs::write(&path, whole).unwrap();
            let argv = vec!["--whole-archive".into(), path.clone().into_os_string()];
            let arguments = Arguments::parse(argv, "offload-ld").unwrap();
            let inputs = Inputs::scan(&arguments).unwrap();
            let images = Image::all(
                &inputs,
                DecompressionLimit::default(),
                &mut Report::default(),
            )
            .unwrap();
            assert_eq!(images.len(), count);
            // Of a look of its own: those of `images` are not read before the file changes.
            let other = Inputs::scan(&arguments).unwrap();
            let limit = DecompressionLimit::default();
            let other = Image::all(&other, limit, &mut Report::default()).unwrap();
            let before = other
                .iter()
                .map(|image| image.bytes().unwrap().into_owned());
            let before: Vec<Vec<u8>> = before.collect();
            for size in (0..whole.len()).step_by(13) {
                std::fs::write(&path, &whole[..size]).unwrap();
                let cut = Image::all(
                    &inputs,
                    DecompressionLimit::default(),
                    &mut Report::default(),
                );
                cut.unwrap_or_default().iter().for_each(|image| {
                    let _ = image.bytes();
                });
            }
            std::fs::write(&path, []).unwrap();
            for (image, before) in images.iter().zip(&before) {
                // All bytes if they were read before, or an error.
                if let Ok(read) = image.bytes() {
                    assert_eq!(&read[..], before);
                }
            }
        }
    }
}
