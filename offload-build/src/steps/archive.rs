//! Writes the static library of a module with host code.

use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::host_objects::own::Own;
use crate::steps::step::{Done, Made, Step};
use offload_build_core::error;
use offload_build_core::error::Error;
use offload_build_core::files;
use offload_build_core::process::command::Command;
use offload_build_core::readable::Readable;
use offload_formats::container::archive::{self, Index, MemberPlan};
use offload_formats::container::definitions;
use offload_formats::format::magic::Magic;
use offload_formats::format::pieces::Piece;
use std::fmt;
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
        let objects = self.objects.iter().map(|path| Readable::open(path));
        let objects: Vec<Readable> = objects.collect::<Result<_, _>>()?;
        let contents = match &self.own {
            Some(own) => own.apply(&objects)?,
            None => objects.iter().map(Readable::all).collect(),
        };
        objects.iter().try_for_each(Readable::check)?;
        let members = self.objects.iter().zip(contents).enumerate();
        let members = members.map(|(number, (path, content))| {
            let name = match number {
                0 => format!("{}.o", self.name),
                _ => format!("{}.{number}.o", self.name),
            };
            (name, path.as_path(), content)
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

    fn made(&self) -> Made {
        Made::in_process(
            self.title(),
            vec![self.library.clone()],
            self.objects.clone(),
        )
    }
}

/// Writes a static library of `objects`. Each has the member's name, the path of an object, and the member's pieces, which
/// copy the object as input 0.
pub(crate) fn write_library(
    library: &Path,
    objects: &[(String, &Path, Vec<Piece>)],
) -> Result<(), Error> {
    let mut members = Vec::new();
    for (input, (name, path, pieces)) in objects.iter().enumerate() {
        let object = Readable::edited(path, pieces.clone())?;
        let mut content = pieces.clone();
        for piece in &mut content {
            if let Piece::Copy { input: of, .. } = piece {
                *of = input;
            }
        }
        members.push((name, object, content));
    }
    let mut plans = Vec::new();
    let magic = |object: &Readable| Magic::at(object.data(), 0..object.size());
    let index = Index::of(members.iter().map(|(_, object, _)| magic(object)));
    for (name, object, content) in &members {
        let range = 0..object.size();
        let symbols = definitions(object.data(), range);
        object.check()?;
        let symbols = symbols.map_err(|error| Error::because(object.path().display(), error))?;
        plans.push((name, content, symbols));
    }
    let plans = plans.iter().map(|(name, content, symbols)| MemberPlan {
        name,
        content,
        symbols,
    });
    let wrong = |problem| Error::because(library.display(), problem);
    let layout = archive::layout(&plans.collect::<Vec<_>>(), index).map_err(wrong)?;
    let inputs: Vec<&Path> = objects.iter().map(|(_, path, _)| *path).collect();
    files::write_pieces(library, &layout, &inputs).map_err(error::io(library))
}
