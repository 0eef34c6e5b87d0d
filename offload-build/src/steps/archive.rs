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
use offload_formats::format::pieces::{self, Piece};
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
        let index = index_of(&objects);
        objects.iter().try_for_each(Readable::check)?;
        let members = self.objects.iter().zip(contents).enumerate();
        let members = members.map(|(number, (path, pieces))| NewMember {
            name: match number {
                0 => format!("{}.o", self.name),
                _ => format!("{}.{number}.o", self.name),
            },
            files: vec![path.clone()],
            pieces,
        });
        write_library(&self.library, &members.collect::<Vec<_>>(), index)?;
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

/// A member of a new static library.
pub(crate) struct NewMember {
    pub(crate) name: String,
    /// Files that the pieces copy. Errors name the first.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) pieces: Vec<Piece>,
}

/// Writes a static library.
pub(crate) fn write_library(
    library: &Path,
    members: &[NewMember],
    index: Index,
) -> Result<(), Error> {
    let open = |member: &NewMember| Readable::edited_of(&member.files, member.pieces.clone());
    let contents: Vec<Readable> = members.iter().map(open).collect::<Result<_, _>>()?;
    let mut inputs: Vec<&PathBuf> = Vec::new();
    let mut plans = Vec::new();
    for (member, content) in members.iter().zip(&contents) {
        let pieces = pieces::renumbered(member.pieces.clone(), |input| inputs.len() + input);
        plans.push((&member.name, pieces, content.parse(definitions)?));
        inputs.extend(&member.files);
    }
    let plans = plans.iter().map(|(name, content, symbols)| MemberPlan {
        name,
        content,
        symbols,
    });
    let wrong = |problem| Error::because(library.display(), problem);
    let layout = archive::layout(&plans.collect::<Vec<_>>(), index).map_err(wrong)?;
    files::write_pieces(library, &layout, &inputs).map_err(error::io(library))
}

/// Returns the condition for a symbol index in a library of these objects.
pub(crate) fn index_of(objects: &[Readable]) -> Index {
    let magic = |object: &Readable| Magic::at(object.data(), 0..object.size());
    Index::of(objects.iter().map(magic))
}
