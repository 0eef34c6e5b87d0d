//! `cargo offload inspect`: prints the images in any file as a table.

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::limit_option::LimitOption;
use crate::cargo_offload::table;
use crate::decompressed;
use crate::files::{Here, Nesting, Opened, Reading};
use offload_formats::container::{self, FoundImage, FoundItem, Standing};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::ReadCache;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const HEADER: [&str; 5] = ["target", "kind", "for", "size", "where"];

/// Lists the device images of files.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload inspect target/release/app
  cargo offload inspect libkernels.a kernels.o")]
pub(super) struct InspectLine {
    #[command(flatten)]
    limit: LimitOption,
    /// Objects, archives, programs, libraries and containers of device code.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Prints the images of each file and of the files that a thin archive names. Reads only headers, whatever the size
/// of the images, and inflates compressed offload binaries in memory.
pub(super) fn run(line: &InspectLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let mut memory = line.limit.value()?.memory();
    for path in &line.files {
        let shown = terminal(path.as_os_str()).to_string();
        let mut table = ImageTable {
            rows: Vec::new(),
            unread: Vec::new(),
            memory: &mut memory,
        };
        let wrong = |problem: &dyn std::fmt::Display| {
            CargoOffloadError::new(format_args!("{shown}: {problem}"))
        };
        table.file(Path::new(path)).map_err(|error| wrong(&error))?;
        table.print(&shown, out).map_err(|error| wrong(&error))?;
    }
    Ok(())
}

/// Printed facts about a file.
struct ImageTable<'a> {
    rows: Vec<[String; 5]>,
    /// Objects that could not be read, with the reason.
    unread: Vec<String>,
    /// Bytes of memory left for compressed offload binaries.
    memory: &'a mut u64,
}

type InspectProblem = Box<dyn std::error::Error>;

impl ImageTable<'_> {
    /// Adds the images of a file on the command line.
    fn file(&mut self, path: &Path) -> Result<(), InspectProblem> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            // This read returns the system's error.
            file.read_exact_at(&mut [0], 0)?;
        }
        if !metadata.is_file() {
            return Err("not a regular file".into());
        }
        let file = Reading::new(Opened::new(path, file, None));
        let cache = ReadCache::new(file.part(0..metadata.len()));
        self.add(path, &cache, &[], &Nesting::default())
    }

    /// Adds the images of a file that is a member of the archives `members`.
    fn add(
        &mut self,
        path: &Path,
        cache: &ReadCache<Here>,
        archives: &[String],
        around: &Nesting,
    ) -> Result<(), InspectProblem> {
        let texts = |members: &[Vec<u8>]| -> Vec<String> {
            let members = members.iter().map(|member| terminal(&**member).to_string());
            archives.iter().cloned().chain(members).collect()
        };
        let found = container::find_within(cache, self.memory);
        let found = found.map_err(|problem| match decompressed::hint_for(&problem) {
            Some(hint) => format!("{problem}\nhint: {hint}").into(),
            None => InspectProblem::from(problem),
        });
        for item in found? {
            match item {
                FoundItem::Image(image) => self.rows.push(row(&image, texts(&image.members))),
                FoundItem::Unread { members, format } => {
                    let mut place = texts(&members);
                    place.push(format!(
                        "images in {format:?} files are not found by any tool"
                    ));
                    self.unread.push(place.join(", "));
                }
                FoundItem::Outside { members, size } => {
                    let member = members.last().map_or(&[][..], Vec::as_slice);
                    let opened = around.open_member(path, member, size);
                    let (opened, inner) = opened.map_err(|problem| match problem.unopened() {
                        Some((path, error)) => format!("member `{}`: {error}", terminal(path)),
                        None => format!("member `{}`: {problem}", terminal(member)),
                    })?;
                    let (file, size) = (opened.path, opened.metadata.len());
                    let reading = Reading::new(Opened::new(&file, opened.file, None));
                    let cache = ReadCache::new(reading.part(0..size));
                    let wrong = |problem| format!("member `{}`: {problem}", terminal(&*file));
                    let added = self.add(&file, &cache, &texts(&members), &inner);
                    added.map_err(wrong)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn print(&self, file: &str, out: &mut impl Write) -> std::io::Result<()> {
        print(file, &self.rows, out)?;
        for unread in &self.unread {
            writeln!(out, "  {unread}")?;
        }
        Ok(())
    }
}

fn row(image: &FoundImage, mut place: Vec<String>) -> [String; 5] {
    let entry = &image.entry;
    let target = match (entry.triple(), entry.arch()) {
        (triple, "" | "generic") => terminal(triple).to_string(),
        (triple, arch) => format!("{} {}", terminal(triple), terminal(arch)),
    };
    let place_of = match image.bytes {
        Some(_) => "unpacked offset",
        None => "offset",
    };
    place.push(format!("{place_of} {:#x}", entry.image.start));
    let standing = match image.standing {
        Standing::Excluded => "to be linked",
        Standing::Raw => "offload binary",
        Standing::Allocated | Standing::Finished => "linked",
    };
    place.push(standing.to_owned());
    let size = entry.image.end - entry.image.start;
    [
        target,
        entry.image_kind.name().to_owned(),
        entry.offload_kind.name().to_owned(),
        size.to_string(),
        place.join(", "),
    ]
}

fn print(file: &str, rows: &[[String; 5]], out: &mut impl Write) -> std::io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "{file}: no device images");
    }
    writeln!(
        out,
        "{file}: {} device image{}",
        rows.len(),
        if rows.len() == 1 { "" } else { "s" }
    )?;
    table::print_columns(&HEADER.map(str::to_owned), rows, 3, out)
}
