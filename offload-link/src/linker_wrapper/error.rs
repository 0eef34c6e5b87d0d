//! Errors of the linker wrapper.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use offload_build::tools::CommandError;
use offload_formats::escape::terminal;
use offload_formats::names::OffloadKind;
use offload_formats::registration;

use crate::files::ReadFailure;

/// Titles of errors about images that are not linked.
pub(crate) const NONE_LINKED: &str =
    "none of the device code that was found can be linked [OFF806]";
pub(crate) const NOT_ALL_LINKED: &str =
    "not all of the device code that was found can be linked [OFF806]";
pub(crate) const DROPPED: &str = "some images were not linked (-Werror=dropped-image) [OFF805]";
pub(crate) const DROPPED_UNDER_RUSTC: &str = "some images were not linked, and rustc would hide a warning \
    (-Clink-arg=-Wno-error=dropped-image links the program without them) [OFF805]";

/// Problem with an input or an image, of any format.
pub(crate) type Problem = Box<dyn std::error::Error + Send + Sync>;

/// An error, printed as one message with its cause.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// Invalid command line; the text is complete.
    Option(String),
    /// A failed operation on a file of this tool.
    Io {
        what: String,
        source: io::Error,
    },
    /// An input whose device code cannot be read. `from` names file and member.
    Input {
        from: String,
        source: Problem,
    },
    /// An input that the system refuses to read.
    Read(ReadFailure),
    /// Under LLVM's name, no option names the host linker.
    NoLinkerPath,
    /// The program found as the host linker is this tool.
    Recursion,
    /// The host linker could not be started.
    Start {
        program: PathBuf,
        source: io::Error,
    },
    /// The host linker failed; reported only under LLVM's name, in LLVM's words.
    HostLinker {
        program: PathBuf,
    },
    /// A device link failed.
    DeviceLink {
        target: String,
        source: CommandError,
    },
    /// A device link succeeded, but its image is not valid for the target.
    Image {
        target: String,
        problem: Problem,
        /// The command that should have made the image.
        command: Option<String>,
    },
    /// Failed device links, in their order.
    Several(Vec<LinkError>),
    /// Failed device links, where inputs of the link are missing: they may define what is undefined.
    MissingInputs {
        error: Box<LinkError>,
        names: Vec<String>,
    },
    /// The linked images of a kind cannot be packed.
    Container {
        kind: OffloadKind,
        problem: String,
    },
    /// Images that are not linked, where that is an error: its title, and a reason for each.
    NotLinked {
        title: &'static str,
        reasons: Vec<String>,
    },
    /// Offload entries of two objects in one section have different layouts.
    MixedEntries {
        section: String,
        first: (String, u64),
        second: (String, u64),
    },
    /// A program cannot have images of this size, or its linker does not place them safely.
    LargeImages {
        problem: String,
        hint: &'static str,
    },
    Registration(registration::RegistrationError),
    /// The compiler fails for the host part of a bundle. `from` names file and member.
    HostPart {
        from: String,
        source: CommandError,
    },
    /// The host compiler fails for a registration in C.
    RegistrationFromC(CommandError),
}

impl LinkError {
    /// This error of device links, with the missing inputs of the link.
    pub(crate) fn with_missing(self, names: &[String]) -> Self {
        match names {
            [] => self,
            names => Self::MissingInputs {
                error: Box::new(self),
                names: names.to_vec(),
            },
        }
    }

    /// Returns the error for an input; `from` names file and member.
    pub(crate) fn input(from: impl ToString, problem: impl Into<Problem>) -> Self {
        Self::Input {
            from: from.to_string(),
            source: problem.into(),
        }
    }

    /// Returns the error for an input that cannot be opened.
    pub(crate) fn unopened(path: &Path, source: &io::Error) -> Self {
        Self::input(terminal(path), format!("cannot open: {source}"))
    }

    /// Returns the error for a file that cannot be written.
    pub(crate) fn unwritten(path: &Path, source: io::Error) -> Self {
        Self::io(format!("cannot write `{}`", path.display()), source)
    }

    /// Returns the code of this kind of error, for those whose text has none. `docs/troubleshooting.md` has a section for each.
    pub(crate) fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::Start { .. } => "[OFF803]",
            Self::Option(_) => "[OFF808]",
            Self::Input { .. } | Self::Read(_) => "[OFF809]",
            Self::DeviceLink { .. }
            | Self::Image { .. }
            | Self::HostPart { .. }
            | Self::RegistrationFromC(_) => "[OFF810]",
            Self::Io { .. } => "[OFF811]",
            Self::Container { .. } | Self::Registration(_) => "[OFF812]",
            Self::Several(errors) => return errors.first()?.code(),
            Self::MissingInputs { error, .. } => return error.code(),
            Self::Recursion
            | Self::NotLinked { .. }
            | Self::MixedEntries { .. }
            | Self::LargeImages { .. } => return None,
            // Messages of LLVM's tool.
            Self::NoLinkerPath | Self::HostLinker { .. } => return None,
        })
    }

    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            what: what.into(),
            source,
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(text) => f.write_str(text),
            Self::Io { what, source } => write!(f, "{what}: {source}"),
            Self::Input { from, source } => write!(f, "{from}: {source}"),
            Self::Read(failure) => write!(f, "{failure}"),
            Self::NoLinkerPath => f.write_str("linker path missing, must pass 'linker-path'"),
            Self::Recursion => f.write_str(
                "the program found as the real linker is `offload-link` itself [OFF804]\n\
                 hint: `--linker-path`, OFFLOAD_CC or CC leads to `offload-link`: set it to the compiler driver or linker that should link",
            ),
            Self::Start { program, source } => {
                let program = terminal(&**program);
                write!(f, "cannot start the host linker `{program}`: ")?;
                match source.kind() {
                    io::ErrorKind::NotFound => f.write_str(
                        "not found [OFF803]\nhint: install it, or name another with OFFLOAD_CC or --linker-path",
                    ),
                    _ => write!(f, "{source}"),
                }
            }
            Self::HostLinker { program } => {
                let name = program.file_name().unwrap_or_default();
                write!(f, "'{}' failed", terminal(name))
            }
            Self::DeviceLink { target, source } => {
                let hint = device_link_hint(target, source);
                write!(f, "device link for {target}: {source}{hint}")
            }
            Self::Image {
                target,
                problem,
                command,
            } => {
                let command = command
                    .iter()
                    .map(|command| format!("\ncommand: {command}"));
                let command: String = command.collect();
                write!(
                    f,
                    "device link for {target}: it made no valid image: {problem}{command}"
                )
            }
            Self::Several(errors) => {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                f.write_str(&errors.join("\n"))
            }
            Self::MissingInputs { error, names } => {
                let names = names.join("`, `");
                write!(
                    f,
                    "{error}\nnote: inputs of the link that were not found: `{names}`"
                )
            }
            Self::Container { kind, problem } => write!(f, "{kind} images: {problem}"),
            Self::NotLinked { title, reasons } => write!(f, "{title}\n{}", reasons.join("\n")),
            Self::MixedEntries {
                section,
                first,
                second,
            } => write!(
                f,
                "{section}: offload entries of {:#x} bytes in {}, of {:#x} bytes in {} [OFF807]\n\
                 hint: compile both with the same release of LLVM",
                first.1, first.0, second.1, second.0
            ),
            Self::LargeImages { problem, hint } => {
                write!(f, "{problem} [OFF813]\nhint: {hint}")
            }
            Self::HostPart { from, source } => {
                write!(f, "{from}: its host part does not compile: {source}")
            }
            Self::RegistrationFromC(source) => {
                let problem = "the registration of the images does not compile";
                write!(f, "{problem}: {source}")
            }
            Self::Registration(source) => with_cause(f, source),
        }
    }
}

/// Returns what to do about a device link that fails; empty if nothing is known.
fn device_link_hint(target: &str, problem: &CommandError) -> String {
    let text = problem.to_string();
    if text.contains("Undefined reference to '__kmpc_") {
        return "\nhint: OpenMP's device runtime is missing: add `-lomptarget.devicertl` to the link, as clang does with `-fopenmp`"
            .to_owned();
    }
    // GNU's linkers, and lld. A link with -r has no libraries.
    let of_cpu = [
        "undefined reference to `__kmpc_",
        "undefined symbol: __kmpc_",
    ];
    let triple = target.split(' ').next().unwrap_or(target);
    let of_sanitizers = ["__asan_", "__ubsan_", "__tsan_", "__msan_"];
    if of_sanitizers.iter().any(|start| text.contains(start)) {
        return "\nhint: device code has no runtime of sanitizers: `-Xarch_host -fsanitize=…` instruments the host code alone"
            .to_owned();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_linked = words.contains(&"-lomp") || words.windows(2).any(|pair| pair == ["-l", "omp"]);
    match of_cpu.iter().any(|words| text.contains(words)) {
        // The runtime for GPUs has functions that the one for CPUs lacks.
        true if is_linked => String::new(),
        true if !triple.starts_with("nvptx") && !triple.starts_with("amdgcn") => {
            format!(
                "\nhint: the image calls OpenMP's runtime: `--device-linker={triple}=-lomp` links it, also with -r"
            )
        }
        _ => String::new(),
    }
}

/// Writes an error and its cause.
fn with_cause(f: &mut fmt::Formatter<'_>, error: &dyn std::error::Error) -> fmt::Result {
    write!(f, "{error}")?;
    match error.source() {
        Some(cause) => write!(f, ": {cause}"),
        None => Ok(()),
    }
}

impl std::error::Error for LinkError {}

impl From<ReadFailure> for LinkError {
    fn from(failure: ReadFailure) -> Self {
        Self::Read(failure)
    }
}

impl From<registration::RegistrationError> for LinkError {
    fn from(error: registration::RegistrationError) -> Self {
        Self::Registration(error)
    }
}
