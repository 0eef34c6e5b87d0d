//! `cargo offload inspect`: the images in any file, as a table.

use super::Error;
use object::ReadCache;
use offload_build::container::{self, FoundImage, Standing};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;

const HEADER: [&str; 5] = ["target", "kind", "for", "size", "where"];

/// Prints the images of each file; only headers are read, whatever the size of the images.
pub(super) fn run(files: &[OsString], out: &mut impl Write) -> Result<(), Error> {
    for path in files {
        let shown = path.to_string_lossy();
        let wrong =
            |problem: &dyn std::fmt::Display| Error::new(format_args!("{shown}: {problem}"));
        let file = File::open(path).map_err(|error| wrong(&error))?;
        let images = container::images(&ReadCache::new(file)).map_err(|error| wrong(&error))?;
        let rows: Vec<[String; 5]> = images.iter().map(row).collect();
        print(&shown, &rows, out).map_err(|error| wrong(&error))?;
    }
    Ok(())
}

fn row(image: &FoundImage) -> [String; 5] {
    let entry = &image.entry;
    let target = match (entry.triple(), entry.arch()) {
        (triple, "" | "generic") => triple.to_owned(),
        (triple, arch) => format!("{triple} {arch}"),
    };
    let members = image
        .members
        .iter()
        .map(|member| String::from_utf8_lossy(member));
    let mut place: Vec<String> = members.map(|member| member.into_owned()).collect();
    place.push(format!("offset {:#x}", entry.image.start));
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
    let header = HEADER.map(str::to_owned);
    let width = |column: usize| {
        rows.iter()
            .chain([&header])
            .map(|row| row[column].len())
            .max()
            .unwrap_or(0)
    };
    let [target, kind, producer, size] = [0, 1, 2, 3].map(width);
    for [a, b, c, d, e] in [&header].into_iter().chain(rows) {
        writeln!(
            out,
            "  {a:<target$}  {b:<kind$}  {c:<producer$}  {d:>size$}  {e}"
        )?;
    }
    Ok(())
}
