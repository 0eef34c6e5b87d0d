//! The wrapper's options, and those of linkers and compiler drivers that it must understand.
//!
//! Three tables of rows. [`OWN`] is consumed, wherever it stands. [`LD`] and [`CC`] are forwarded
//! as spelled; their rows are there because they name inputs, say how these are linked, or are
//! followed by a value that is no input.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Error;
use crate::options::{Form, Opt};

/// What an option of ours means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    LinkerPath,
    HostTriple,
    CudaPath,
    DeviceLinker,
    DeviceCompiler,
    ShouldExtract,
    EmitFatbinOnly,
    OverrideImage,
    DryRun,
    Verbose,
    SaveTemps,
    Jobs,
    Mllvm,
    OffloadOpt,
    OptLevel,
    DeviceDebug,
    PtxasArg,
    Llvm,
    Report,
    DroppedImage,
    PrintAbi,
    Version,
    Help,
    /// Has no effect here, and needs none.
    Nothing,
    /// Would change the result, and is not done yet.
    Unsupported,
}

const fn own(id: Own, names: &'static [&'static str], form: Form, help: &'static str) -> Opt<Own> {
    Opt {
        id,
        names,
        form,
        help,
    }
}

/// Consumed, never forwarded: every option that `clang-linker-wrapper` of 19 to 22 has, and ours.
#[rustfmt::skip]
pub(super) const OWN: &[Opt<Own>] = &[
    own(Own::LinkerPath, &["linker-path"], Form::Value, "Host linker (or compiler driver) to run"),
    own(Own::HostTriple, &["host-triple"], Form::Value, "Triple of the host"),
    own(Own::CudaPath, &["cuda-path"], Form::Value, "Root of the CUDA toolkit"),
    own(Own::DeviceLinker, &["device-linker"], Form::Value, "[<triple>=]<arg>: argument of the device linker"),
    own(Own::DeviceCompiler, &["device-compiler"], Form::Value, "[<triple>=]<arg>: argument of the compiler that runs it"),
    own(Own::ShouldExtract, &["should-extract"], Form::Value, "Link archive members for these processors even if the host link leaves them out"),
    own(Own::EmitFatbinOnly, &["emit-fatbin-only"], Form::Flag, "Write the linked image to the output; no registration, no host link"),
    own(Own::OverrideImage, &["override-image"], Form::Value, "<kind>=<file>: use this linked image instead of linking any"),
    own(Own::DryRun, &["dry-run"], Form::Flag, "Print the commands and run none"),
    own(Own::Verbose, &["wrapper-verbose"], Form::Flag, "Print each command as it is run"),
    own(Own::SaveTemps, &["save-temps"], Form::Flag, "Keep intermediate files beside the output"),
    own(Own::Jobs, &["wrapper-jobs"], Form::Value, "Device links at a time: a number, or `jobserver`"),
    own(Own::Mllvm, &["mllvm"], Form::Separate, "Option for LLVM in device links"),
    own(Own::OffloadOpt, &["offload-opt"], Form::Value, "Option for LLVM in device links"),
    own(Own::OptLevel, &["opt-level"], Form::Value, "O<n>: optimization of device links"),
    own(Own::DeviceDebug, &["device-debug"], Form::Flag, "Debug information in device links"),
    own(Own::PtxasArg, &["ptxas-arg"], Form::Value, "Argument of ptxas"),
    own(Own::Llvm, &["llvm"], Form::Equal, "Release whose entry table the host objects use (19 to 23, main); default: found out"),
    own(Own::Report, &["report"], Form::Equal, "text|json[:<file>]: what was found, linked and left out"),
    own(Own::DroppedImage, &["Werror=dropped-image"], Form::Flag, "Fail when an image was found and not linked"),
    own(Own::PrintAbi, &["print-offload-abi"], Form::Flag, "Print this tool's name and version"),
    own(Own::Nothing, &["clang-backend", "no-canonical-prefixes", "no-lto", "compress", "print-wrapped-module"], Form::Flag, "Accepted; has no effect"),
    own(Own::Nothing, &["compression-level", "wrapper-time-trace", "wrapper-time-trace-granularity"], Form::Value, "Accepted; has no effect"),
    own(Own::Nothing, &["pass-remarks", "pass-remarks-missed", "pass-remarks-analysis"], Form::Equal, "Accepted; has no effect"),
    own(Own::Unsupported, &["embed-bitcode"], Form::Flag, "Not supported yet"),
    own(Own::Unsupported, &["builtin-bitcode", "bitcode-library"], Form::Value, "Not supported yet"),
];

/// Answered when the tool was started under LLVM's name, without a linker to forward them to.
pub(super) const ANSWERED: &[Opt<Own>] = &[
    own(Own::Version, &["version"], Form::Flag, "Print the version"),
    own(
        Own::Help,
        &["help", "help-hidden"],
        Form::Flag,
        "Print this",
    ),
];

/// What an option of the host's tools means to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Output,
    Library,
    LibraryDir,
    Sysroot,
    Rpath,
    WholeArchive,
    NoWholeArchive,
    Static,
    Dynamic,
    /// All libraries static, for the whole line.
    AllStatic,
    StartLib,
    EndLib,
    PushState,
    PopState,
    Relocatable,
    /// A name that must be defined: pulls in archive members.
    Root,
    FuseLd,
    LdPath,
    Target,
    /// The value is for the linker, one argument of it.
    Xlinker,
    /// Nothing is linked: `-c`, `-E`, `-S`, `-###`, and questions such as `--version`.
    NoLink,
    /// The value that follows is no input.
    Value,
}

const fn host(id: Host, names: &'static [&'static str], form: Form) -> Opt<Host> {
    Opt {
        id,
        names,
        form,
        help: "",
    }
}

/// Of GNU ld, gold, lld and mold.
#[rustfmt::skip]
pub(super) const LD: &[Opt<Host>] = &[
    host(Host::Output, &["o"], Form::Letter),
    host(Host::Output, &["output"], Form::Value),
    host(Host::Library, &["l"], Form::Letter),
    host(Host::Library, &["library"], Form::Value),
    host(Host::LibraryDir, &["L"], Form::Letter),
    host(Host::LibraryDir, &["library-path"], Form::Value),
    host(Host::Sysroot, &["sysroot"], Form::Equal),
    host(Host::Rpath, &["rpath"], Form::Value),
    host(Host::WholeArchive, &["whole-archive"], Form::Flag),
    host(Host::NoWholeArchive, &["no-whole-archive"], Form::Flag),
    host(Host::Static, &["Bstatic", "dn", "non_shared", "static"], Form::Flag),
    host(Host::Dynamic, &["Bdynamic", "dy", "call_shared"], Form::Flag),
    host(Host::StartLib, &["start-lib"], Form::Flag),
    host(Host::EndLib, &["end-lib"], Form::Flag),
    host(Host::PushState, &["push-state"], Form::Flag),
    host(Host::PopState, &["pop-state"], Form::Flag),
    host(Host::Relocatable, &["r", "relocatable", "i"], Form::Flag),
    host(Host::Root, &["u", "e"], Form::Letter),
    host(Host::Root, &["undefined", "require-defined", "entry", "init", "fini"], Form::Value),
    host(Host::NoLink, &["version", "help"], Form::Flag),
    host(Host::Value, &["T", "m", "z", "h", "y", "A", "b", "c", "F", "f", "G", "I", "P", "R", "Y", "a"], Form::Letter),
    host(Host::Value, &[
        "soname", "dynamic-linker", "plugin", "plugin-opt", "rpath-link", "Map", "defsym", "wrap", "version-script",
        "dynamic-list", "script", "default-script", "dT", "format", "oformat", "just-symbols", "auxiliary", "filter",
        "assert", "trace-symbol", "retain-symbols-file", "section-start", "Tbss", "Tdata", "Ttext", "Ttext-segment",
        "Trodata-segment", "Tldata-segment", "hash-style", "hash-size", "dependency-file", "image-base", "sort-section",
        "exclude-libs", "export-dynamic-symbol", "export-dynamic-symbol-list", "audit", "depaudit", "architecture",
        "mri-script", "print-map-file", "spare-dynamic-tags", "task-link", "undefined-glob", "symbol-ordering-file",
        "call-graph-ordering-file", "thread-count", "mllvm", "flavor", "out-implib",
    ], Form::Value),
    // Long names that begin like a letter option, and are no such thing.
    host(Host::Value, &["omagic", "object_path_lto", "lto_library"], Form::Flag),
];

/// Of gcc and clang, where they link. What is not listed is joined or has no value.
#[rustfmt::skip]
pub(super) const CC: &[Opt<Host>] = &[
    host(Host::Output, &["o"], Form::Letter),
    host(Host::Library, &["l"], Form::Letter),
    host(Host::LibraryDir, &["L"], Form::Letter),
    host(Host::Sysroot, &["-sysroot"], Form::Value),
    host(Host::AllStatic, &["static", "static-pie"], Form::Flag),
    host(Host::Relocatable, &["r"], Form::Flag),
    host(Host::Root, &["u", "e"], Form::Letter),
    host(Host::FuseLd, &["fuse-ld"], Form::Equal),
    host(Host::LdPath, &["-ld-path"], Form::Equal),
    host(Host::Target, &["target"], Form::Separate),
    host(Host::Target, &["-target"], Form::Equal),
    host(Host::Xlinker, &["Xlinker", "-for-linker"], Form::Separate),
    host(Host::NoLink, &["c", "S", "E", "M", "MM", "fsyntax-only", "###", "-version", "-help", "dumpversion", "dumpmachine", "dumpfullversion", "print-search-dirs", "print-multi-os-directory", "print-sysroot", "print-libgcc-file-name"], Form::Flag),
    host(Host::NoLink, &["print-prog-name", "print-file-name"], Form::Equal),
    host(Host::Value, &["T", "z", "x", "I", "D", "U", "B", "MF", "MT", "MQ", "G"], Form::Letter),
    host(Host::Value, &[
        "Xclang", "Xpreprocessor", "Xassembler", "Xarch_host", "Xarch_device", "Xcuda-ptxas", "Xoffload-linker", "mllvm",
        "include", "imacros", "isystem", "idirafter", "iquote", "iprefix", "iwithprefix", "isysroot", "-param", "aux-info",
        "dumpbase", "dumpdir", "arch", "framework", "rpath", "install_name", "bundle_loader", "wrapper", "gcc-toolchain",
    ], Form::Separate),
    // Begin like a letter option, and are no such thing.
    host(Host::Value, &["export-dynamic", "emit-llvm", "undef"], Form::Flag),
];

/// What the wrapper was asked to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub linker: Option<PathBuf>,
    pub host_triple: Option<OsString>,
    pub cuda: Option<PathBuf>,
    /// As given: `[<triple>=]<arg>`.
    pub device_linker: Vec<OsString>,
    pub device_compiler: Vec<OsString>,
    /// Processors whose archive members are linked in any case.
    pub should_extract: Vec<String>,
    pub emit_fatbin_only: bool,
    pub override_images: Vec<OsString>,
    pub dry_run: bool,
    pub verbose: bool,
    pub save_temps: bool,
    /// Default: one under LLVM's name, else what make or cargo allow.
    pub jobs: Option<Jobs>,
    pub mllvm: Vec<OsString>,
    pub llvm: Option<String>,
    pub report: Option<OsString>,
    pub dropped_image_is_error: bool,
    pub answer: Option<Answer>,
}

/// How many device links run at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jobs {
    Count(usize),
    /// As many as make or cargo give tokens for.
    Jobserver,
}

/// What is answered instead of linking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Abi,
    Version,
    Help,
}

impl Options {
    /// Takes in one option; `value` is empty for flags, `spelled` is for messages.
    pub(super) fn apply(&mut self, id: Own, value: OsString, spelled: &str) -> Result<(), Error> {
        match id {
            Own::LinkerPath => self.linker = Some(value.into()),
            Own::HostTriple => self.host_triple = Some(value),
            Own::CudaPath => self.cuda = Some(value.into()),
            Own::DeviceLinker => self.device_linker.push(value),
            Own::DeviceCompiler => self.device_compiler.push(value),
            Own::ShouldExtract => {
                let list = value.to_string_lossy();
                self.should_extract
                    .extend(list.split(',').map(str::to_owned));
            }
            Own::EmitFatbinOnly => self.emit_fatbin_only = true,
            Own::OverrideImage => self.override_images.push(value),
            Own::DryRun => self.dry_run = true,
            Own::Verbose => self.verbose = true,
            Own::SaveTemps => self.save_temps = true,
            Own::Jobs => self.jobs = Some(parse_jobs(&value)?),
            Own::Mllvm => self.mllvm.push(value),
            Own::OffloadOpt => {
                let dash = if value.as_encoded_bytes().starts_with(b"-") {
                    ""
                } else {
                    "-"
                };
                let mut option = OsString::from(dash);
                option.push(value);
                self.mllvm.push(option);
            }
            Own::OptLevel => {
                let level = value.to_string_lossy().into_owned();
                if !matches!(level.as_bytes(), [b'O', b'0'..=b'9']) {
                    return Err(Error::Option(format!(
                        "--opt-level: `{level}` is not a level; expected `O0` to `O3`"
                    )));
                }
                self.device_compiler.push(format!("-{level}").into());
            }
            Own::DeviceDebug => self.device_compiler.push("-g".into()),
            Own::PtxasArg => {
                self.device_compiler.push("-Xcuda-ptxas".into());
                self.device_compiler.push(value);
            }
            Own::Llvm => self.llvm = Some(value.to_string_lossy().into_owned()),
            Own::Report => self.report = Some(value),
            Own::DroppedImage => self.dropped_image_is_error = true,
            Own::PrintAbi => self.answer = Some(Answer::Abi),
            Own::Version => self.answer = Some(Answer::Version),
            Own::Help => self.answer = Some(Answer::Help),
            Own::Nothing => {}
            Own::Unsupported => {
                return Err(Error::Option(format!("`{spelled}` is not supported yet")));
            }
        }
        Ok(())
    }
}

fn parse_jobs(value: &OsString) -> Result<Jobs, Error> {
    let text = value.to_string_lossy();
    if text.eq_ignore_ascii_case("jobserver") {
        return Ok(Jobs::Jobserver);
    }
    match text.parse() {
        Ok(count) if count > 0 => Ok(Jobs::Count(count)),
        _ => Err(Error::Option(format!(
            "--wrapper-jobs={text}: expected a positive integer or 'jobserver', got '{text}'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::arguments::{Arguments, Item};
    use super::*;

    /// Every way to write an option, with `4` as its value, which all of them accept.
    fn spellings<Id>(table: &[Opt<Id>], dashes: &str) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        for row in table {
            for name in row.names {
                match row.form {
                    Form::Flag => all.push(vec![format!("{dashes}{name}")]),
                    Form::Equal => all.push(vec![format!("{dashes}{name}=4")]),
                    Form::Value => {
                        all.push(vec![format!("{dashes}{name}=4")]);
                        all.push(vec![format!("{dashes}{name}"), "4".into()]);
                    }
                    Form::Letter => {
                        all.push(vec![format!("-{name}4")]);
                        all.push(vec![format!("-{name}"), "4".into()]);
                    }
                    Form::Separate => all.push(vec![format!("-{name}"), "4".into()]),
                }
            }
        }
        all
    }

    fn parse(tool: &str, args: &[&[String]]) -> Result<Arguments, Error> {
        let args = args.concat().into_iter().map(OsString::from).collect();
        Arguments::parse(args, tool)
    }

    fn render(arguments: &Arguments) -> Vec<String> {
        let no_file = |_: &[u8]| -> Result<PathBuf, Error> { unreachable!() };
        let line = arguments.render(&[], &[], no_file).unwrap();
        line.into_iter()
            .map(|arg| arg.into_string().unwrap())
            .collect()
    }

    fn files(arguments: &Arguments) -> Vec<PathBuf> {
        let files = arguments.items.iter().filter_map(|item| match item {
            Item::File { path, .. } => Some(path.clone()),
            _ => None,
        });
        files.collect()
    }

    #[test]
    fn consumes_every_option_of_ours_in_both_positions() {
        let file = ["a.o".to_owned()];
        for spelled in spellings(OWN, "--") {
            for tool in ["offload-ld", "offload-link"] {
                // For the driver it is an option of clang's.
                if spelled[0] == "-mllvm" && tool == "offload-link" {
                    continue;
                }
                match parse(tool, &[&spelled, &file]) {
                    Ok(arguments) => assert_eq!(render(&arguments), file, "{tool} {spelled:?}"),
                    Err(Error::Option(text)) => {
                        assert!(
                            text.ends_with("is not supported yet") || text.contains("O3"),
                            "{text}"
                        );
                    }
                    Err(other) => panic!("{spelled:?}: {other}"),
                }
            }
        }
    }

    #[test]
    fn forwards_every_option_of_the_hosts_and_takes_no_value_for_an_input() {
        let file = ["a.o".to_owned()];
        for (tool, table, dashes) in [("offload-ld", LD, "--"), ("offload-link", CC, "-")] {
            for spelled in spellings(table, dashes) {
                // Of the linker's options `-mllvm` alone is LLVM's in this position.
                if spelled[0].trim_start_matches('-').starts_with("mllvm") && tool == "offload-ld" {
                    continue;
                }
                // What follows these is the linker's, where `4` is a file.
                if ["-Xlinker", "--for-linker"].contains(&&*spelled[0]) {
                    continue;
                }
                let arguments = parse(tool, &[&spelled, &file]).unwrap();
                let expected = [&spelled[..], &file].concat();
                assert_eq!(render(&arguments), expected);
                assert_eq!(
                    files(&arguments),
                    [PathBuf::from("a.o")],
                    "{tool} {spelled:?}"
                );
            }
        }
    }

    #[test]
    fn has_each_name_once_in_a_table() {
        fn names<Id>(table: &[Opt<Id>]) -> Vec<&'static str> {
            table.iter().flat_map(|row| row.names).copied().collect()
        }
        for mut names in [names(OWN), names(LD), names(CC)] {
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{names:?}");
        }
    }
}
