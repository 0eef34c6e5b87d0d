//! Writes the static library of a module with host code.

use crate::error;
use crate::error::Error;
use crate::files;
use crate::messages::Failure;
use crate::process::command::Command;
use crate::steps::digests::Digests;
use crate::steps::host_objects::own::Own;
use crate::steps::step::{Done, Made, Step};
use offload_formats::container::archive::{self, NewMember};
use offload_formats::container::definitions;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Puts the objects of a module into its static library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Archive {
    /// The library's name after `-l`.
    pub(crate) name: String,
    pub(crate) library: PathBuf,
    /// The joined one, or what registers the images and then the host objects.
    pub(crate) objects: Vec<PathBuf>,
    /// The module's own names, if its registration is complete: nothing else may find its entries, or mix them with
    /// others'.
    pub(crate) own: Option<Own>,
}

impl Archive {
    fn run(&self) -> Result<Done, Error> {
        let read = |path: &PathBuf| {
            let bytes = fs::read(path).map_err(error::io(path))?;
            Ok((path.clone(), bytes))
        };
        let objects: Vec<(PathBuf, Vec<u8>)> = self
            .objects
            .iter()
            .map(read)
            .collect::<Result<_, Error>>()?;
        let objects = match &self.own {
            Some(own) => own.apply(objects)?,
            None => objects.into_iter().map(|(_, bytes)| bytes).collect(),
        };
        let members = self.objects.iter().zip(&objects).enumerate();
        let members = members.map(|(number, (path, bytes))| {
            let name = match number {
                0 => format!("{}.o", self.name),
                _ => format!("{}.{number}.o", self.name),
            };
            (name, path.as_path(), bytes.as_slice())
        });
        write_library(&self.library, &members.collect::<Vec<_>>())?;
        Ok(Done::default())
    }
}

impl Step for Archive {
    fn title(&self) -> String {
        format!("library `{}`", self.name)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}, in this process", self.title())?;
        let command = Command::new("ar").arg("rcsD").arg(&self.library);
        writeln!(f, "{}", command.args(&self.objects))
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        Ok(self.run()?)
    }

    fn made(&self, _reads: Vec<PathBuf>) -> Made {
        Made::in_process(
            self.title(),
            vec![self.library.clone()],
            self.objects.clone(),
        )
    }
}

/// Writes a static library; a member is its name, the path of the object for messages, and its bytes.
pub(crate) fn write_library(
    library: &Path,
    objects: &[(String, &Path, &[u8])],
) -> Result<(), Error> {
    let mut members = Vec::new();
    for (name, path, bytes) in objects {
        let symbols = definitions(*bytes, 0..bytes.len() as u64);
        let symbols = symbols.map_err(|error| Error::because(path.display(), error))?;
        let symbols = symbols.into_iter().map(std::str::from_utf8);
        let symbols: Vec<&str> = symbols
            .collect::<Result<_, _>>()
            .map_err(|error| Error::because(path.display(), error))?;
        members.push((name, bytes, symbols));
    }
    let members = members.iter().map(|(name, bytes, symbols)| NewMember {
        name,
        bytes,
        symbols,
    });
    let members: Vec<NewMember<'_>> = members.collect();
    files::write(library, &archive::write(&members)).map_err(error::io(library))
}
