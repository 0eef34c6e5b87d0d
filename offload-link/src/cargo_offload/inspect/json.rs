//! The JSON of `cargo offload inspect`; `docs/json.md` describes it.

use std::collections::BTreeMap;

use offload_formats::container::Standing;
use offload_formats::container::inventory::{
    ContainerData, ImageContainer, ImageForm, InventoryImage,
};
use offload_formats::container::kernels::{ArgumentKind, Kernel};
use offload_formats::names::OffloadKind;
use serde::{Serialize, Serializer};

use crate::cargo_offload::image_text;
use crate::cargo_offload::images::FileImages;
use crate::cargo_offload::inputs::OpenInput;
use crate::cargo_offload::kernels::{FileKernels, shown_name};

#[derive(Serialize)]
pub(super) struct InspectDocument<'a> {
    schema: u32,
    files: &'a [InspectedFile],
    totals: Vec<TargetTotal>,
}

#[derive(Serialize)]
struct TargetTotal {
    triple: String,
    processor: String,
    images: usize,
    size: u64,
}

#[derive(Serialize)]
pub(super) struct InspectedFile {
    file: String,
    size: u64,
    containers: Vec<InspectedContainer>,
    problems: Vec<String>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct InspectedContainer {
    members: Vec<String>,
    /// Size in the file of the compressed member of a zip file that contains it.
    packed_size: Option<u64>,
    section: Option<String>,
    format: &'static str,
    offset: u64,
    size: u64,
    compression: Option<InspectedCompression>,
    standing: Option<&'static str>,
    unpacked: bool,
    images: Vec<InspectedImage>,
}

#[derive(Serialize)]
struct InspectedCompression {
    method: &'static str,
    version: Option<u16>,
    uncompressed_size: u64,
    hash: Option<String>,
}

#[derive(Serialize)]
struct InspectedImage {
    /// Number in the file; `null` for hosts' entries and for images that consist of containers.
    number: Option<usize>,
    index: usize,
    entry_id: Option<String>,
    host: bool,
    kind: Option<String>,
    triple: String,
    processor: String,
    own_target_id: Option<String>,
    form: Option<&'static str>,
    offset: u64,
    size: u64,
    stored_size: u64,
    compression: Option<&'static str>,
    containers: Vec<InspectedContainer>,
    /// Left out unless kernels were asked for; `null` if an image of this form lists none.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernels: Option<Option<InspectedKernels>>,
}

/// The kernels of an image, which become JSON one by one.
struct InspectedKernels(Vec<Kernel>);

impl Serialize for InspectedKernels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(InspectedKernel::of))
    }
}

#[derive(Serialize)]
struct InspectedKernel {
    symbol: String,
    name: String,
    local: bool,
    arguments: Vec<InspectedArgument>,
    arguments_size: u32,
    max_threads: Option<u32>,
    required_threads: Option<[u32; 3]>,
    shared_size: u32,
    private_size: u32,
    dynamic_stack: Option<bool>,
    registers: Option<u32>,
    scalar_registers: Option<u32>,
    accumulation_registers: Option<u32>,
    spilled_registers: Option<u32>,
    spilled_scalar_registers: Option<u32>,
    barriers: Option<u32>,
    constant_size: Option<u32>,
    wavefront: Option<u32>,
    code_size: Option<u64>,
}

#[derive(Serialize)]
struct InspectedArgument {
    offset: u32,
    size: u32,
    kind: Option<&'static str>,
}

impl<'a> InspectDocument<'a> {
    pub(super) fn of(files: &'a [InspectedFile]) -> Self {
        let mut totals: BTreeMap<(&str, &str), (usize, u64)> = BTreeMap::new();
        for file in files {
            for container in &file.containers {
                container.add_to(&mut totals);
            }
        }
        let totals = totals.into_iter();
        let totals = totals.map(|((triple, processor), (images, size))| TargetTotal {
            triple: triple.to_owned(),
            processor: processor.to_owned(),
            images,
            size,
        });
        Self {
            schema: 1,
            files,
            totals: totals.collect(),
        }
    }
}

impl InspectedFile {
    pub(super) fn of(input: &OpenInput, found: &FileImages, kernels: Option<FileKernels>) -> Self {
        let mut numbering = Numbering { next: 0, kernels };
        let mut containers = Vec::new();
        for part in &found.parts {
            for container in &part.inventory.containers {
                let mut container = InspectedContainer::of(container, &mut numbering);
                let members = part.members.iter().map(|member| lossy(member));
                container.members.splice(0..0, members);
                container.packed_size = part.packed_size;
                containers.push(container);
            }
        }
        Self {
            file: input.name.to_string_lossy().into_owned(),
            size: input.size,
            containers,
            problems: found.problems.clone(),
            notes: found.notes.clone(),
        }
    }
}

impl InspectedContainer {
    fn of(container: &ImageContainer, numbering: &mut Numbering) -> Self {
        let compression = container.compression.as_ref();
        Self {
            members: container.members.iter().map(|name| lossy(name)).collect(),
            packed_size: None,
            section: container.section.as_ref().map(|name| lossy(name)),
            format: container.format.name(),
            offset: container.range.start,
            size: container.range.end.saturating_sub(container.range.start),
            compression: compression.map(|compression| InspectedCompression {
                method: compression.method.name(),
                version: compression.version,
                uncompressed_size: compression.uncompressed_size,
                hash: compression.hash.map(|hash| {
                    let bytes = hash.iter();
                    bytes.map(|byte| format!("{byte:02x}")).collect()
                }),
            }),
            standing: container.standing.map(|standing| match standing {
                Standing::Raw => "file",
                Standing::Excluded => "to be linked",
                _ => "linked",
            }),
            unpacked: !matches!(container.data, ContainerData::File),
            images: container
                .images
                .iter()
                .map(|image| InspectedImage::of(image, numbering))
                .collect(),
        }
    }

    fn add_to<'a>(&'a self, totals: &mut BTreeMap<(&'a str, &'a str), (usize, u64)>) {
        for image in &self.images {
            if image.number.is_some() {
                let target = (image.triple.as_str(), image.processor.as_str());
                let (images, size) = totals.entry(target).or_default();
                *images += 1;
                *size += image.size;
            }
            for container in &image.containers {
                container.add_to(totals);
            }
        }
    }
}

impl InspectedImage {
    fn of(image: &InventoryImage, numbering: &mut Numbering) -> Self {
        let is_numbered = !image.is_host && image.inner.is_empty();
        let number = is_numbered.then_some(numbering.next);
        numbering.next += usize::from(is_numbered);
        let kernels = numbering.kernels.as_mut();
        let kernels = kernels.map(|kernels| kernels.take(number?).map(InspectedKernels));
        Self {
            kernels,
            number,
            index: image.index,
            entry_id: image.entry_id.clone(),
            host: image.is_host,
            kind: match image.target.kind {
                OffloadKind::NONE => None,
                kind => Some(kind.to_string()),
            },
            triple: image.target.triple.clone(),
            processor: image.target.processor.clone(),
            own_target_id: image.own_target_id.clone(),
            form: image.form.map(ImageForm::name),
            offset: image.stored_range().start,
            size: image.size,
            stored_size: image.stored_size,
            compression: image.compression().map(image_text::compression),
            containers: image
                .inner
                .iter()
                .map(|container| InspectedContainer::of(container, numbering))
                .collect(),
        }
    }
}

/// Numbers the images of a file, and has their kernels by these numbers.
struct Numbering {
    next: usize,
    kernels: Option<FileKernels>,
}

impl InspectedKernel {
    fn of(kernel: &Kernel) -> Self {
        let arguments = kernel.arguments.iter().map(|argument| InspectedArgument {
            offset: argument.offset,
            size: argument.size,
            kind: argument.kind.map(|kind| match kind {
                ArgumentKind::Pointer => "pointer",
                _ => "value",
            }),
        });
        Self {
            symbol: kernel.name.clone(),
            name: shown_name(&kernel.name),
            local: kernel.is_local,
            arguments: arguments.collect(),
            arguments_size: kernel.arguments_size,
            max_threads: kernel.max_threads,
            required_threads: kernel.required_threads,
            shared_size: kernel.shared_size,
            private_size: kernel.private_size,
            dynamic_stack: kernel.has_dynamic_stack,
            registers: kernel.registers,
            scalar_registers: kernel.scalar_registers,
            accumulation_registers: kernel.accumulation_registers,
            spilled_registers: kernel.spilled_registers,
            spilled_scalar_registers: kernel.spilled_scalar_registers,
            barriers: kernel.barriers,
            constant_size: kernel.constant_size,
            wavefront: kernel.wavefront,
            code_size: kernel.code_size,
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
