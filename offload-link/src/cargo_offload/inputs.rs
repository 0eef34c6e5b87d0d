//! Input files of commands: named ones, those of folders, standard input.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offload_formats::escape::terminal;

use super::error::CargoOffloadError;
use crate::files::{self, Opened, Reading};
use crate::{decompressed, say};

/// Arguments that name input files.
#[derive(Debug, clap::Args)]
pub(super) struct InputLine {
    /// Search folders and their subfolders.
    #[arg(long, short)]
    pub(super) recursive: bool,
    /// Programs, libraries, objects, archives, containers and images of device code; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
}

/// An open input file.
pub(super) struct OpenInput {
    /// Path, or `-`.
    pub(super) name: PathBuf,
    pub(super) origin: Origin,
    pub(super) reading: Arc<Reading>,
    /// Size in bytes.
    pub(super) size: u64,
}

/// Way that led to an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The user named it.
    Named,
    /// A folder has it.
    Searched,
}

impl InputLine {
    /// Calls `work` for each file, in order; the files of a folder come in the order of their names. Reports the error
    /// of a file and continues with the next one.
    ///
    /// # Errors
    ///
    /// Fails after the last file if there was an error; it was reported.
    pub(super) fn each(
        &self,
        mut work: impl FnMut(&OpenInput) -> Result<(), CargoOffloadError>,
    ) -> Result<(), CargoOffloadError> {
        let mut failed = false;
        let mut done = |result: Result<(), CargoOffloadError>| match result {
            Err(error) if error.is_closed_output() => Err(error),
            Err(error) => {
                if !error.is_reported() {
                    say::error("", &error);
                }
                failed = true;
                Ok(())
            }
            Ok(()) => Ok(()),
        };
        for path in &self.files {
            let is_folder = !is_standard_input(path) && path.is_dir();
            if !is_folder {
                done(open(path).and_then(|file| work(&file)))?;
            } else if self.recursive {
                let mut files = Vec::new();
                done(search(path, &mut files))?;
                for path in &files {
                    done(open_file(path, Origin::Searched).and_then(|file| work(&file)))?;
                }
            } else {
                done(Err(CargoOffloadError::new(format_args!(
                    "{}: is a folder\nhint: pass -r to search it",
                    terminal(path.as_path())
                ))))?;
            }
        }
        match failed {
            true => Err(CargoOffloadError::reported()),
            false => Ok(()),
        }
    }
}

/// Lists the regular files of a folder and its subfolders. Does not follow links, so that it ends.
fn search(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), CargoOffloadError> {
    let failed = |problem: io::Error| CargoOffloadError::of(folder, &problem);
    let mut entries = fs::read_dir(folder)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let file_type = entry.file_type().map_err(failed)?;
        if file_type.is_dir() {
            search(&entry.path(), files)?;
        } else if file_type.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Opens an input that the user named.
pub(super) fn open(path: &Path) -> Result<OpenInput, CargoOffloadError> {
    match is_standard_input(path) {
        true => standard_input(),
        false => open_file(path, Origin::Named),
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn open_file(path: &Path, origin: Origin) -> Result<OpenInput, CargoOffloadError> {
    let opened = Opened::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) = opened.map_err(|problem| CargoOffloadError::of(path, &problem))?;
    if !metadata.is_file() {
        return Err(CargoOffloadError::of(path, "not a regular file"));
    }
    Ok(OpenInput {
        name: path.to_owned(),
        origin,
        reading: Reading::new(Opened::new(path, file, None)),
        size: metadata.len(),
    })
}

/// Copies standard input to a temporary file, because images are read in any order.
fn standard_input() -> Result<OpenInput, CargoOffloadError> {
    let name = Path::new("-");
    let failed = |problem: io::Error| {
        let hint = decompressed::FULL;
        let text = format!("cannot copy it to a temporary file: {problem}\nhint: {hint}");
        CargoOffloadError::of(name, text)
    };
    let mut file: File = files::temporary().map_err(failed)?;
    let size = io::copy(&mut io::stdin().lock(), &mut file).map_err(failed)?;
    Ok(OpenInput {
        name: name.to_owned(),
        origin: Origin::Named,
        reading: Reading::new(Opened::new(name, file, None)),
        size,
    })
}
