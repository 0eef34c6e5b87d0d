//! `cargo offload inspect`: prints the images in any file as a table.

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::table;
use crate::cargo_offload::usage::USAGE;
use crate::decompressed::{self, DecompressionLimit, OPTION};
use crate::files::{Here, Nesting, Opened, Reading};
use offload_formats::container::{self, FoundImage, FoundItem, Standing};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::ReadCache;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const HEADER: [&str; 5] = ["target", "kind", "for", "size", "where"];

/// Prints the images of each file and of the files that a thin archive names. Reads only headers, whatever the size
/// of the images, and inflates compressed offload binaries in memory.
pub(super) fn run(args: &[OsString], out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let (files, limit) = line(args)?;
    let mut memory = limit.memory();
    for path in &files {
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

/// Parses the command line: files, and the limit on decompressed data.
fn line(args: &[OsString]) -> Result<(Vec<PathBuf>, DecompressionLimit), CargoOffloadError> {
    let (mut files, mut limit) = (Vec::new(), None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy();
        let (name, joined) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (&*text, None),
        };
        let shown = terminal(&*text);
        match name.strip_prefix("--") {
            Some("") => files.extend(args.by_ref().map(PathBuf::from)),
            Some(OPTION) => {
                let value = joined.or_else(|| Some(args.next()?.to_string_lossy().into_owned()));
                let missing = || {
                    CargoOffloadError::new(format_args!(
                        "inspect: `{shown}` needs a value\n{USAGE}"
                    ))
                };
                limit = Some(value.ok_or_else(missing)?);
            }
            None if name == "-" || !name.starts_with('-') => files.push(arg.into()),
            _ => {
                return Err(CargoOffloadError::new(format_args!(
                    "inspect: `{shown}` is not an option\n{USAGE}"
                )));
            }
        }
    }
    if files.is_empty() {
        return Err(CargoOffloadError::new(format_args!(
            "inspect: expected a file\n{USAGE}"
        )));
    }
    let limit = decompressed::limit(limit.as_deref()).map_err(CargoOffloadError::new)?;
    Ok((files, limit))
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
