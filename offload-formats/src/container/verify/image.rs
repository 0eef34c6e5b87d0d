//! Checks of images: ELF headers, target, kernels.

use std::collections::BTreeSet;
use std::ops::Range;

use super::checked::HIP_SECTION;
use super::codes::FindingCode;
use super::finding::{FindingPlace, Findings};
use super::openmp::OpenMpKernels;
use crate::container::Standing;
use crate::container::cubin::is_ignored_by_libomptarget;
use crate::container::elf::{Elf, SymbolPlace, SymbolTable};
use crate::container::inventory::{ContainerFormat, ImageContainer, ImageForm, InventoryImage};
use crate::container::kernels::{KernelError, kernels_within, ptx_kernels, symbol_in_file};
use crate::container::large;
use crate::escape::terminal;
use crate::format::bytes::{Cursor, ReadAt};
use crate::format::magic::Magic;
use crate::names::elf_flags::processor_of;
use crate::names::{OffloadKind, TargetId};

/// Section of NVIDIA's relocatable device code, which linkers keep.
const RELOCATABLE_SECTION: &[u8] = b"__nv_relfatbin";

/// Names of the kernels of all images of a file.
#[derive(Debug)]
pub(super) struct ImageKernels {
    /// Names of kernels, and of the symbols of images for CPUs.
    pub(super) names: BTreeSet<String>,
    /// Number of images that were read.
    pub(super) images: usize,
    /// False if an image cannot tell its kernels, such as bitcode, or was not read.
    pub(super) is_complete: bool,
    /// Those of OpenMP, by target.
    pub(super) openmp: OpenMpKernels,
    /// Containers and targets of images with kernels.
    with_kernels: (BTreeSet<FindingPlace>, BTreeSet<String>),
    /// Container, target and place of each image without kernels.
    without_kernels: Vec<(FindingPlace, String, FindingPlace)>,
}

impl Default for ImageKernels {
    fn default() -> Self {
        Self {
            names: BTreeSet::new(),
            images: 0,
            is_complete: true,
            openmp: OpenMpKernels::default(),
            with_kernels: Default::default(),
            without_kernels: Vec::new(),
        }
    }
}

impl ImageKernels {
    /// Reports images without kernels. If other images of the file have the kernels of this target, an image is
    /// reported only if its own container has kernels for another target: nvcc adds an empty image to each program.
    pub(super) fn report_images_without(&self, findings: &mut Findings) {
        let (containers, targets) = &self.with_kernels;
        for (container, target, place) in &self.without_kernels {
            if containers.contains(container) || !targets.contains(target) {
                let text = "the image defines no kernel";
                findings.add(FindingCode::NoKernels, place.clone(), &text);
            }
        }
    }
}

/// An image that is checked.
pub(super) struct CheckedImage<'a, R> {
    /// Data that contains the image's bytes, uncompressed.
    pub(super) data: R,
    /// Range of the image in `data`.
    pub(super) range: Range<u64>,
    pub(super) container: &'a ImageContainer,
    pub(super) image: &'a InventoryImage,
    /// LLVM release of the OpenMP runtime that the file needs.
    pub(super) libomptarget: Option<u32>,
}

impl<'d, R: ReadAt<'d>> CheckedImage<'_, R> {
    /// Checks the image and adds its kernels to `kernels`. `is_linked` tells whether the file is a linked host file.
    pub(super) fn check(
        &self,
        is_linked: bool,
        kernels: &mut ImageKernels,
        findings: &mut Findings,
    ) {
        kernels.images += 1;
        if is_linked && self.container.standing == Some(Standing::Excluded) {
            // A link that was not made would make the kernels.
            kernels.images -= 1;
            let text = "the image waits for a device link";
            findings.add(FindingCode::Unread, self.place(), &text);
            return;
        }
        self.form(is_linked, findings);
        self.target(findings);
        self.openmp(findings);
        self.kernels(kernels, findings);
    }

    fn place(&self) -> FindingPlace {
        FindingPlace::of(self.container).entry(self.image)
    }

    fn is_amd(&self) -> bool {
        self.image.target.triple.starts_with("amdgcn")
    }

    /// Checks that the bytes are an image, whole, and linked where a runtime loads them.
    fn form(&self, is_linked: bool, findings: &mut Findings) {
        let image = self.image;
        let mut add = |code, text: &str| findings.add(code, self.place(), &text);
        match image.form {
            Some(ImageForm::Empty) => add(FindingCode::NotAnImage, "the image is empty"),
            Some(ImageForm::Unknown) if Magic::at(self.data, self.range.clone()) == Magic::Elf => {
                if let Some(text) = truncation(self.data, self.range.clone()) {
                    add(FindingCode::Truncated, &text);
                }
            }
            Some(ImageForm::Unknown) if self.is_amd() => {
                add(
                    FindingCode::NotAnImage,
                    "the bytes are neither ELF, bitcode nor SPIR-V",
                );
            }
            Some(ImageForm::CodeObject | ImageForm::Cubin | ImageForm::DeviceObject) => {
                if let Some(text) = truncation(self.data, self.range.clone()) {
                    add(FindingCode::Truncated, &text);
                }
            }
            _ => {}
        }
        let is_unlinked = matches!(
            image.form,
            Some(ImageForm::DeviceObject | ImageForm::Bitcode)
        );
        let section = self.container.section.as_deref();
        let is_loaded = section.is_some_and(|name| large::is_called(name, HIP_SECTION));
        if is_unlinked && is_loaded && is_linked && self.is_amd() {
            let form = image.form.map_or("", ImageForm::name);
            add(
                FindingCode::Unlinked,
                &format!("expected a code object, found a {form}"),
            );
        }
    }

    /// Checks that the program's OpenMP runtime loads the image.
    fn openmp(&self, findings: &mut Findings) {
        // Of LLVM 21 the first versions do not load the image. Its library's name does not tell the version.
        let Some(release) = self.libomptarget.filter(|release| *release < 21) else {
            return;
        };
        let is_openmp = self.image.target.kind == OffloadKind::OPENMP;
        if is_openmp && is_ignored_by_libomptarget(self.data, self.range.start, &[release]) {
            let text = format!("the program needs libomptarget of LLVM {release}");
            findings.add(FindingCode::Ignored, self.place(), &text);
        }
    }

    /// Compares the target of the container with that of the image.
    fn target(&self, findings: &mut Findings) {
        // The inventory does not read images of CUDA fat binaries.
        let cubin = || {
            let elf = Elf::parse(self.data, self.range.clone()).ok()?;
            processor_of(elf.machine, elf.flags, elf.abi_version)
        };
        let own = self.image.own_target_id.clone();
        let is_cubin = self.image.form == Some(ImageForm::Cubin);
        let Some(own) = own.or_else(|| is_cubin.then(cubin).flatten()) else {
            return;
        };
        let stated = &self.image.target.processor;
        let add = |findings: &mut Findings| {
            let text = format!("the image is for `{}`", terminal(&own));
            findings.add(FindingCode::WrongTarget, self.place(), &text);
        };
        if !self.is_amd() {
            // Letters of NVIDIA's processors, as in `sm_90a`, are not in the header.
            let number = |name: &str| {
                let digits = name
                    .trim_start_matches("sm_")
                    .trim_start_matches("compute_");
                let end = |char: char| char.is_ascii_lowercase();
                digits.trim_end_matches(end).parse::<u32>().ok()
            };
            // PTX has the target of the processor whose driver compiles it, or of an older one.
            let differs = match self.image.form {
                Some(ImageForm::Ptx) => number(&own) > number(stated),
                _ => number(stated) != number(&own),
            };
            if stated.starts_with("sm_") && differs {
                add(findings);
            }
            return;
        }
        let (Ok(stated), Ok(own)) = (TargetId::parse(stated), TargetId::parse(&own)) else {
            return;
        };
        // What the container leaves open, the runtime reads from the image.
        let differs = own
            .features()
            .any(|(name, on)| stated.feature(name) == Some(!on));
        if !stated.processor().is_empty() && stated.processor() != own.processor() || differs {
            add(findings);
        }
    }

    fn kernels(&self, kernels: &mut ImageKernels, findings: &mut Findings) {
        let listed = match self.image.form {
            Some(ImageForm::CodeObject | ImageForm::Cubin | ImageForm::Ptx) => self.listed(),
            // OpenMP calls functions in images for CPUs by their names.
            Some(ImageForm::HostElf) => {
                match symbol_names(self.data, self.range.clone()) {
                    Some(names) => {
                        kernels.openmp.add(self.image, &names);
                        kernels.names.extend(names);
                    }
                    None => kernels.is_complete = false,
                }
                return;
            }
            Some(ImageForm::Empty) => return,
            _ => {
                kernels.is_complete = false;
                return;
            }
        };
        let names = match listed {
            Ok(names) => names,
            Err(text) => {
                kernels.is_complete = false;
                return findings.add(FindingCode::Damaged, self.place(), &text);
            }
        };
        let container = FindingPlace::of(self.container);
        let target = self.image.target.processor.clone();
        if !names.is_empty() {
            kernels.with_kernels.0.insert(container);
            kernels.with_kernels.1.insert(target);
        } else if self.container.format != ContainerFormat::Image && !self.is_relocatable() {
            // A file or section that is an image itself belongs to no list of targets.
            let image = (container, target, self.place());
            kernels.without_kernels.push(image);
        }
        kernels.openmp.add(self.image, &names);
        kernels.names.extend(names);
    }

    /// Tells whether the image is NVIDIA's relocatable device code: device functions for kernels in other objects.
    fn is_relocatable(&self) -> bool {
        let is_object = || {
            let elf = Elf::parse(self.data, self.range.clone());
            elf.is_ok_and(|elf| elf.file_type == object::elf::ET_REL.0)
        };
        let section = self.container.section.as_deref();
        section == Some(RELOCATABLE_SECTION)
            || self.image.form == Some(ImageForm::Cubin) && is_object()
    }

    /// Lists the names of the image's kernels.
    fn listed(&self) -> Result<Vec<String>, String> {
        let wrong = |problem: KernelError| problem.to_string();
        let range = self.range.clone();
        let found = match self.image.form {
            Some(ImageForm::Ptx) => {
                let size = range.end.saturating_sub(range.start);
                let bytes = Cursor::new(self.data, range).read(size, "PTX");
                ptx_kernels(text(bytes.map_err(|problem| problem.to_string())?))
            }
            _ => kernels_within(self.data, range),
        };
        let found = found.map_err(wrong)?;
        let names = found.iter().flat_map(|kernel| {
            let (unique, name) = (kernel.name.as_str(), symbol_in_file(&kernel.name));
            // Host code names the kernel either way.
            std::iter::once(unique).chain(Some(name).filter(|name| *name != unique))
        });
        Ok(names.map(str::to_owned).collect())
    }
}

/// Returns PTX without the NULs at its end.
fn text(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0);
    end.and_then(|last| bytes.get(..=last)).unwrap_or_default()
}

/// Describes the first section that exceeds an ELF image.
fn truncation<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<String> {
    let elf = match Elf::parse(data, range) {
        Ok(elf) => elf,
        Err(problem) => return Some(problem.to_string()),
    };
    // Sections of a vendor's types may have no bytes, whatever their sizes: NVIDIA's shared and local memory.
    let sections = elf
        .sections()
        .filter(|section| section.section_type < object::elf::SHT_LOOS);
    let problems = sections.filter_map(|section| elf.check(&section).err());
    problems.map(|problem| problem.to_string()).next()
}

/// Returns the names of symbols in an ELF image for a CPU.
fn symbol_names<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<Vec<String>> {
    let elf = Elf::parse(data, range).ok()?;
    let mut names = Vec::new();
    for table in [SymbolTable::All, SymbolTable::Dynamic] {
        let symbols = elf.symbols(table).ok()?;
        let defined = symbols
            .iter()
            .filter(|symbol| symbol.place != SymbolPlace::Undefined);
        names.extend(defined.map(|symbol| String::from_utf8_lossy(symbol.name).into_owned()));
    }
    Some(names)
}
