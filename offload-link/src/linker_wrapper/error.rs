//! Why a link did not happen.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use offload_build::tools::CommandError;
use offload_formats::escape::terminal;
use offload_formats::names::OffloadKind;
use offload_formats::registration;

use crate::files::ReadFailure;

/// Each printed as one message, with what caused it.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line, said in full.
    Option(String),
    /// A file of ours.
    Io {
        what: String,
        source: io::Error,
    },
    /// An input whose device code cannot be read; `from` names file and member.
    Input {
        from: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An input that the system does not let us read.
    Read(ReadFailure),
    /// Under LLVM's name nothing says which linker to run.
    NoLinkerPath,
    /// The program found as the real linker started us again.
    Recursion,
    /// The host linker.
    Start {
        program: PathBuf,
        source: io::Error,
    },
    /// The host linker ended in failure; said under LLVM's name, in its words.
    HostLinker {
        program: PathBuf,
    },
    /// A device link failed.
    DeviceLink {
        target: String,
        source: CommandError,
    },
    /// A device link that ended well and made nothing that its target takes.
    Image {
        target: String,
        problem: Box<dyn std::error::Error + Send + Sync>,
        /// That should have made it.
        command: Option<String>,
    },
    /// Device links that failed, in their order.
    Several(Vec<Error>),
    /// The linked images of a kind cannot be packed.
    Container {
        kind: OffloadKind,
        problem: String,
    },
    /// None of the images that were found can be linked.
    NothingLinked {
        reasons: Vec<String>,
    },
    /// Images were left out, and the user said that this is an error.
    Dropped {
        images: Vec<String>,
    },
    /// The offload entries of two objects have different layouts, in one section.
    MixedEntries {
        section: String,
        first: (String, u64),
        second: (String, u64),
    },
    Registration(registration::Error),
    /// A compiler does not take what a bundle has for the host; `from` names file and member.
    HostPart {
        from: String,
        source: CommandError,
    },
    /// The host's compiler does not take what registers the images.
    RegistrationFromC(CommandError),
}

impl Error {
    /// About an input that cannot be opened.
    pub(crate) fn unopened(path: &Path, source: &io::Error) -> Self {
        Self::Input {
            from: terminal(path).to_string(),
            source: format!("cannot open: {source}").into(),
        }
    }

    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            what: what.into(),
            source,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(text) => f.write_str(text),
            Self::Io { what, source } => write!(f, "{what}: {source}"),
            Self::Input { from, source } => write!(f, "{from}: {source}"),
            Self::Read(failure) => write!(f, "{failure}"),
            Self::NoLinkerPath => f.write_str("linker path missing, must pass 'linker-path'"),
            Self::Recursion => f.write_str(
                "the program found as the real linker is `offload-link` itself\n\
                 hint: set OFFLOAD_CC to the compiler driver that should link",
            ),
            Self::Start { program, source } if source.kind() == io::ErrorKind::NotFound => {
                write!(
                    f,
                    "cannot start the host linker `{}`: not found\n\
                     hint: install it, or name another with OFFLOAD_CC or --linker-path",
                    terminal(&**program)
                )
            }
            Self::Start { program, source } => write!(
                f,
                "cannot start the host linker `{}`: {source}",
                terminal(&**program)
            ),
            Self::HostLinker { program } => {
                let name = program.file_name().unwrap_or_default();
                write!(f, "'{}' failed", terminal(name))
            }
            Self::DeviceLink { target, source } => {
                write!(f, "device link for {target}: {source}")
            }
            Self::Image {
                target,
                problem,
                command,
            } => {
                write!(f, "device link for {target}: it made no image: {problem}")?;
                match command {
                    Some(command) => write!(f, "\ncommand: {command}"),
                    None => Ok(()),
                }
            }
            Self::Several(errors) => errors.iter().enumerate().try_for_each(|(index, error)| {
                let newline = if index > 0 { "\n" } else { "" };
                write!(f, "{newline}{error}")
            }),
            Self::Container { kind, problem } => write!(f, "{kind} images: {problem}"),
            Self::NothingLinked { reasons } => {
                f.write_str("device code was found, and none of it can be linked")?;
                reasons
                    .iter()
                    .try_for_each(|reason| write!(f, "\n{reason}"))
            }
            Self::Dropped { images } => {
                f.write_str("images were found and not linked (-Werror=dropped-image)")?;
                images.iter().try_for_each(|image| write!(f, "\n{image}"))
            }
            Self::MixedEntries {
                section,
                first,
                second,
            } => write!(
                f,
                "{section}: offload entries of {:#x} bytes in {}, of {:#x} bytes in {}\n\
                 hint: compile both with the same release of LLVM",
                first.1, first.0, second.1, second.0
            ),
            Self::HostPart { from, source } => {
                write!(
                    f,
                    "{from}: what it has for the host does not compile: {source}"
                )
            }
            Self::RegistrationFromC(source) => {
                write!(f, "what registers the images does not compile: {source}")
            }
            Self::Registration(source) => {
                write!(f, "{source}")?;
                match std::error::Error::source(source) {
                    Some(inner) => write!(f, ": {inner}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<ReadFailure> for Error {
    fn from(failure: ReadFailure) -> Self {
        Self::Read(failure)
    }
}

impl From<registration::Error> for Error {
    fn from(error: registration::Error) -> Self {
        Self::Registration(error)
    }
}
