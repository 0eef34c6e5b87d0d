//! `cargo offload inspect`: the images in any file, as a table.

use crate::cargo_offload::error::Error;
use crate::cargo_offload::table;
use crate::files::{Here, Nesting, Opened, Reading};
use object::ReadCache;
use offload_formats::container::{self, FoundImage, Item, Standing};
use offload_formats::escape::terminal;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

const HEADER: [&str; 5] = ["target", "kind", "for", "size", "where"];

/// Prints the images of each file, and of the files that a thin archive names; only headers are
/// read, whatever the size of the images.
pub(super) fn run(files: &[OsString], out: &mut impl Write) -> Result<(), Error> {
    for path in files {
        let shown = terminal(path.as_os_str()).to_string();
        let mut table = Table::default();
        let wrong =
            |problem: &dyn std::fmt::Display| Error::new(format_args!("{shown}: {problem}"));
        table.file(Path::new(path)).map_err(|error| wrong(&error))?;
        table.print(&shown, out).map_err(|error| wrong(&error))?;
    }
    Ok(())
}

/// What is told of a file.
#[derive(Default)]
struct Table {
    rows: Vec<[String; 5]>,
    /// Objects that are not read, and why.
    unread: Vec<String>,
}

type Problem = Box<dyn std::error::Error>;

impl Table {
    /// Adds the images of a file that the command line names.
    fn file(&mut self, path: &Path) -> Result<(), Problem> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            // The system says it best.
            file.read_exact_at(&mut [0], 0)?;
        }
        if !metadata.is_file() {
            return Err("not a regular file".into());
        }
        let file = Reading::new(Opened::new(path, file, None));
        let cache = ReadCache::new(file.part(0..metadata.len()));
        self.add(path, &cache, &[], &Nesting::default())
    }

    /// Adds what is in a file, which is a member of those archives.
    fn add(
        &mut self,
        path: &Path,
        cache: &ReadCache<Here>,
        archives: &[String],
        around: &Nesting,
    ) -> Result<(), Problem> {
        let texts = |members: &[Vec<u8>]| -> Vec<String> {
            let members = members.iter().map(|member| terminal(&**member).to_string());
            archives.iter().cloned().chain(members).collect()
        };
        for item in container::find(cache)? {
            match item {
                Item::Image(image) => self.rows.push(row(&image, texts(&image.members))),
                Item::Unread { members, format } => {
                    let mut place = texts(&members);
                    place.push(format!(
                        "images in {format:?} files are not found by any tool"
                    ));
                    self.unread.push(place.join(", "));
                }
                Item::Outside { members, size } => {
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
