//! `cargo offload inspect`: the images in any file, as a table.

use super::Error;
use object::ReadCache;
use offload_build::container::{self, FoundImage, Item, Standing};
use offload_build::escape::terminal;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
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
        table
            .add(Path::new(path), &[])
            .map_err(|error| wrong(&error))?;
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

/// Thin archives of thin archives: no more than other archives in each other.
const MAX_DEPTH: usize = 16;

impl Table {
    /// Adds what is in a file, which is a member of those archives.
    fn add(&mut self, path: &Path, archives: &[String]) -> Result<(), Box<dyn std::error::Error>> {
        if archives.len() > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} archives in each other").into());
        }
        let cache = ReadCache::new(File::open(path)?);
        let texts = |members: &[Vec<u8>]| -> Vec<String> {
            let members = members.iter();
            let members = members.map(|member| terminal(&member[..]).to_string());
            archives.iter().cloned().chain(members).collect()
        };
        for item in container::find(&cache)? {
            match item {
                Item::Image(image) => self.rows.push(row(&image, texts(&image.members))),
                Item::Unread { members, format } => {
                    let mut place = texts(&members);
                    place.push(format!(
                        "images in {format:?} files are not found by any tool"
                    ));
                    self.unread.push(place.join(", "));
                }
                Item::Outside { members } => {
                    let member = members.last().map_or(&[][..], Vec::as_slice);
                    let folder = path.parent().unwrap_or(Path::new(""));
                    let file = folder.join(OsStr::from_bytes(member));
                    let inside = texts(&members);
                    let wrong = |error| format!("member `{}`: {error}", terminal(file.as_path()));
                    self.add(&file, &inside).map_err(wrong)?;
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
    super::print_columns(&HEADER.map(str::to_owned), rows, 3, out)
}
