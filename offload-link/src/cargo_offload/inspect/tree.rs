//! The tree of a file's images, and totals.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use anstyle::Style;
use offload_formats::container::Standing;
use offload_formats::container::inventory::{
    ContainerFormat, ImageContainer, ImageForm, PlacedImage,
};
use offload_formats::escape::terminal;
use offload_formats::names::OffloadKind;

use crate::cargo_offload::image_text;
use crate::cargo_offload::images::{FileImages, FilePart};
use crate::cargo_offload::inspect::kernel_text;
use crate::cargo_offload::kernels::{FileKernels, shown_name};
use crate::cargo_offload::text::{self, Align, FAINT, NAME, TARGET, TextTable};

const PLAIN: Style = Style::new();

/// Columns of an image: its number in the file, target, kind, form, size, place.
const COLUMNS: [(Align, Style); 6] = [
    (Align::Right, FAINT),
    (Align::Left, TARGET),
    (Align::Left, PLAIN),
    (Align::Left, PLAIN),
    (Align::Right, PLAIN),
    (Align::Left, FAINT),
];

/// Prints the images of a file, with their kernels if these were read.
pub(super) fn print(
    name: &str,
    found: &FileImages,
    kernels: Option<&FileKernels>,
    out: &mut impl Write,
) -> io::Result<()> {
    let count = found.count();
    if count == 0 {
        writeln!(out, "{NAME}{name}{NAME:#}: no device images")?;
        return print_notes(found, out);
    }
    let images = text::count(count, "device image");
    let size = found.parts.first().map_or(0, |part| part.size);
    let size = text::size(size);
    writeln!(out, "{NAME}{name}{NAME:#}: {images}, file size {size}")?;
    // Images are numbered through all parts of the file.
    let mut number = 0;
    for part in &found.parts {
        print_part(part, kernels, &mut number, out)?;
    }
    print_notes(found, out)
}

fn print_notes(found: &FileImages, out: &mut impl Write) -> io::Result<()> {
    let mut notes = found.notes.iter();
    notes.try_for_each(|note| writeln!(out, "  {note}"))
}

fn print_part(
    part: &FilePart,
    kernels: Option<&FileKernels>,
    number: &mut usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut place: Option<Vec<String>> = None;
    for (container, inside) in part.containers() {
        let here = place_of(part, container);
        if place.as_ref() != Some(&here) && !here.is_empty() {
            writeln!(out, "  {}", here.join(", "))?;
        }
        place = Some(here);
        if container.format != ContainerFormat::Image {
            writeln!(out, "    {}", container_text(container))?;
        }
        let mut table = TextTable::new(COLUMNS);
        for (index, placed) in inside.iter().enumerate() {
            table.push(row(*number + index, placed));
        }
        for (placed, line) in inside.iter().zip(table.lines("      ")) {
            writeln!(out, "{line}")?;
            let kernels = kernels.and_then(|kernels| kernels.of(*number));
            for kernel in kernels.unwrap_or_default() {
                let name = shown_name(&kernel.name);
                writeln!(out, "            {}", terminal(&name))?;
                let facts = kernel_text::facts(kernel, &placed.image.target.triple);
                writeln!(out, "              {FAINT}{facts}{FAINT:#}")?;
            }
            *number += 1;
        }
    }
    Ok(())
}

/// Returns the members and the section around a container.
fn place_of(part: &FilePart, container: &ImageContainer) -> Vec<String> {
    let members = part.members.iter().chain(&container.members);
    let members = members.map(|member| terminal(&**member).to_string());
    let packed = part.packed_size.iter().map(|packed| {
        let (packed, size) = (text::size(*packed), text::size(part.size));
        format!("compressed, {packed} of {size}")
    });
    let section = container.section.iter();
    let section = section.map(|name| format!("section {}", terminal(&**name)));
    members.chain(packed).chain(section).collect()
}

fn container_text(container: &ImageContainer) -> String {
    let range = &container.range;
    let size = text::size(range.end.saturating_sub(range.start));
    let mut text = format!(
        "{}, {size}, offset {:#x}",
        container.format.name(),
        range.start
    );
    if let Some(compression) = &container.compression {
        let method = compression.method;
        let version = compression.version;
        let version = version.map_or(String::new(), |version| format!(" (CCOB {version})"));
        let unpacked = text::size(compression.uncompressed_size);
        text += &format!(", {method}{version}, {unpacked} unpacked");
    }
    match container.standing {
        Some(Standing::Excluded) => text += ", to be linked",
        Some(Standing::Allocated | Standing::Finished) => text += ", linked",
        _ => {}
    }
    text
}

fn row(number: usize, placed: &PlacedImage<'_>) -> [String; 6] {
    let kind = match placed.image.target.kind {
        OffloadKind::NONE => String::new(),
        kind => kind.to_string(),
    };
    let compressed = match placed.image.compression() {
        Some(compression) => format!(
            ", {}, {} stored",
            image_text::compression(compression),
            text::size(placed.image.stored_size)
        ),
        None => String::new(),
    };
    [
        number.to_string(),
        image_text::target(placed),
        kind,
        image_text::form(placed).to_owned(),
        text::size(placed.image.size),
        image_text::place(placed) + &compressed,
    ]
}

/// Numbers and sizes of images by target.
#[derive(Default)]
pub(super) struct Totals {
    /// Count and bytes, unpacked.
    targets: BTreeMap<String, (usize, u64)>,
    /// Number of kernels, if they were read.
    kernels: Option<usize>,
    /// Number of images whose kernels are not listed, and the forms of these.
    unlisted: (usize, BTreeSet<&'static str>),
}

impl Totals {
    pub(super) fn add(&mut self, found: &FileImages, kernels: Option<&FileKernels>) {
        if let Some(kernels) = kernels {
            *self.kernels.get_or_insert(0) += kernels.all().count();
            let images = found.parts.iter().flat_map(|part| part.inventory.images());
            for (number, placed) in images.enumerate() {
                if kernels.of(number).is_none() && placed.image.form != Some(ImageForm::Empty) {
                    let (count, forms) = &mut self.unlisted;
                    *count += 1;
                    forms.insert(image_text::form(&placed));
                }
            }
        }
        for part in &found.parts {
            for placed in part.inventory.images() {
                let (count, size) = self.targets.entry(image_text::target(&placed)).or_default();
                *count += 1;
                *size += placed.image.size;
            }
        }
    }

    /// Prints a line for each target if there are several images, and the number of searched files without images.
    pub(super) fn print(&self, without: usize, out: &mut impl Write) -> io::Result<()> {
        let count: usize = self.targets.values().map(|(count, _)| count).sum();
        let all: u64 = self.targets.values().map(|(_, size)| size).sum();
        if count > 1 {
            writeln!(out, "{NAME}total{NAME:#}")?;
            let columns = [
                (Align::Left, TARGET),
                (Align::Right, PLAIN),
                (Align::Right, PLAIN),
                (Align::Right, FAINT),
            ];
            let mut table = TextTable::new(columns);
            for (target, (count, size)) in &self.targets {
                table.push([
                    target.clone(),
                    text::count(*count, "image"),
                    text::size(*size),
                    text::share(*size, all),
                ]);
            }
            table.print("  ", out)?;
        }
        if let Some(kernels) = self.kernels {
            write!(out, "{}", text::count(kernels, "kernel"))?;
            let (count, forms) = &self.unlisted;
            if *count > 0 {
                let forms: Vec<&str> = forms.iter().copied().collect();
                let images = text::count(*count, "image");
                write!(out, ", without those of {images} ({})", forms.join(", "))?;
            }
            writeln!(out)?;
        }
        if without > 0 {
            let files = text::count(without, "file");
            writeln!(out, "{files} without device images")?;
        }
        Ok(())
    }
}
