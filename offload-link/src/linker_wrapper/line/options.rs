//! Options of the wrapper, and the options of linkers and compiler drivers that it must recognize.
//!
//! There are three tables. Options in [`OWN`] are consumed at any position. Options in [`LD`] and [`CC`] are
//! forwarded as spelled; they have rows because they name inputs, control how inputs are linked, or have a value that
//! is not an input.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use offload_formats::container::large;
use offload_formats::names::LlvmRelease;

use crate::decompressed::{self, DecompressionLimit};
use crate::linker_wrapper::error::LinkError;
use crate::llvm_tool::installation;
use crate::options::linker::{Opt, Spelling};

/// Meaning of an option of this tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
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
    ClangBackend,
    BuiltinBitcode,
    BitcodeLibrary,
    EmbedBitcode,
    NoLto,
    NoCanonicalPrefixes,
    Compress,
    CompressionLevel,
    TimeTrace,
    TimeTraceGranularity,
    PrintRegistration,
    EmitWrapper,
    /// LLVM's option with this name, for the device link.
    PassRemarks(&'static str),
    Report,
    MaxDecompressedSize,
    LargeImages,
    DroppedIsError,
    DroppedIsWarning,
    PrintAbi,
    Version,
    Help,
    HelpHidden,
}

const fn own(
    id: Own,
    names: &'static [&'static str],
    form: Spelling,
    help: &'static str,
) -> Opt<Own> {
    Opt {
        id,
        names,
        form,
        help,
    }
}

/// Options for images that cannot be linked: an error, or a warning. They look like a compiler's options, and have one dash.
pub(crate) const DROPPED_OPTIONS: [&str; 2] = ["Werror=dropped-image", "Wno-error=dropped-image"];

/// Options that are consumed and never forwarded: those of `clang-linker-wrapper` from 16 to the main branch, and
/// ours (`docs/spec/linker-wrapper.md` §1.2; `LinkerWrapperOpts.td` of LLVM 16, 19 and 22).
#[rustfmt::skip]
pub(crate) const OWN: &[Opt<Own>] = &[
    own(Own::LinkerPath, &["linker-path"], Spelling::Value, "Host linker (or compiler driver) to run"),
    own(Own::HostTriple, &["host-triple"], Spelling::Value, "Triple of the host"),
    own(Own::CudaPath, &["cuda-path"], Spelling::Value, "Root of the CUDA toolkit"),
    own(Own::DeviceLinker, &["device-linker"], Spelling::Value, "[<triple>=]<arg>: argument of the device linker"),
    own(Own::DeviceCompiler, &["device-compiler"], Spelling::Value, "[<triple>=]<arg>: argument of the compiler that runs it"),
    own(Own::ShouldExtract, &["should-extract"], Spelling::Value, "Link archive members for these processors even if the host link does not load them"),
    own(Own::EmitFatbinOnly, &["emit-fatbin-only"], Spelling::Flag, "Write the linked image to the output; no registration, no host link"),
    own(Own::EmbedBitcode, &["embed-bitcode"], Spelling::Flag, "Keep linked bitcode as the image, for runtimes that compile it"),
    own(Own::OverrideImage, &["override-image"], Spelling::Value, "<kind>=<file>: use this linked image instead of a device link"),
    own(Own::Compress, &["compress"], Spelling::Flag, "Compress images of HIP and CUDA"),
    own(Own::CompressionLevel, &["compression-level"], Spelling::Value, "Level for --compress, of HIP's bundles"),
    own(Own::DryRun, &["dry-run"], Spelling::Flag, "Print the commands without running them"),
    own(Own::Verbose, &["wrapper-verbose"], Spelling::Flag, "Print each command before running it"),
    own(Own::PrintRegistration, &["print-wrapped-module"], Spelling::Flag, "Print the source of the registration"),
    own(Own::EmitWrapper, &["emit-wrapper"], Spelling::Equal, "c: compile the registration from C with the host compiler"),
    own(Own::SaveTemps, &["save-temps"], Spelling::Flag, "Keep intermediate files beside the output"),
    own(Own::Jobs, &["wrapper-jobs"], Spelling::Value, "Number of parallel device links, or `jobserver`"),
    own(Own::TimeTrace, &["wrapper-time-trace"], Spelling::Value, "Write the time of each phase to this file, as JSON for trace viewers"),
    own(Own::TimeTraceGranularity, &["wrapper-time-trace-granularity"], Spelling::Value, "Omit phases shorter than this many microseconds; default 500"),
    own(Own::Mllvm, &["mllvm"], Spelling::Separate, "Option for LLVM in device links; `-mllvm --help` lists the options"),
    own(Own::OffloadOpt, &["offload-opt"], Spelling::Value, "Option for LLVM in device links, not in the compiler that runs them"),
    own(Own::NoCanonicalPrefixes, &["no-canonical-prefixes"], Spelling::Flag, "Find programs beside the path that started this tool, without following links"),
    own(Own::NoLto, &["no-lto"], Spelling::Flag, "Link bitcode for devices without LTO"),
    own(Own::OptLevel, &["opt-level"], Spelling::Value, "O<n>: optimization of device links"),
    own(Own::DeviceDebug, &["device-debug"], Spelling::Flag, "Keep debug information in device links"),
    own(Own::PtxasArg, &["ptxas-arg"], Spelling::Value, "Argument of ptxas"),
    own(Own::ClangBackend, &["clang-backend"], Spelling::Flag, "Accepted; clang always generates device code"),
    own(Own::BuiltinBitcode, &["builtin-bitcode"], Spelling::Value, "<triple>=<file>: bitcode library for device links"),
    own(Own::BitcodeLibrary, &["bitcode-library"], Spelling::Value, "<kind>-<triple>-<processor>=<file>: additional input of a device link"),
    own(Own::PassRemarks("pass-remarks"), &["pass-remarks"], Spelling::Equal, "Print the optimizer's remarks in device links"),
    own(Own::PassRemarks("pass-remarks-missed"), &["pass-remarks-missed"], Spelling::Equal, "Print the optimizer's missed optimizations"),
    own(Own::PassRemarks("pass-remarks-analysis"), &["pass-remarks-analysis"], Spelling::Equal, "Print the optimizer's analyses"),
    own(Own::Llvm, &["llvm"], Spelling::Equal, "Release whose entry table the host objects use (19 to 23, main); default: detected from the objects"),
    own(Own::Report, &["report"], Spelling::Equal, "text|json[:<file>]: report which images were found, linked and left out"),
    own(Own::MaxDecompressedSize, &[decompressed::OPTION], Spelling::Equal, decompressed::HELP),
    own(Own::LargeImages, &[large::LARGE_OPTION], Spelling::Equal, "Largest total of images in usual sections of x86-64 ELF hosts: bytes, or a number with K, M, G or T; default 1G"),
    own(Own::DroppedIsError, &[DROPPED_OPTIONS[0]], Spelling::Flag, "Fail if an image that belongs in the output cannot be linked; default in links by rustc"),
    own(Own::DroppedIsWarning, &[DROPPED_OPTIONS[1]], Spelling::Flag, "Link without an image that cannot be linked, with a warning; default in other links"),
    own(Own::PrintAbi, &["print-offload-abi"], Spelling::Flag, "Print this tool's name and version"),
];

/// Questions that are answered under LLVM's name if no linker is named that could get them.
#[rustfmt::skip]
pub(crate) const ANSWERED: &[Opt<Own>] = &[
    own(Own::Version, &["version", "v"], Spelling::Flag, "Print the version"),
    own(Own::Help, &["help"], Spelling::Flag, "Print this help"),
    own(Own::HelpHidden, &["help-hidden"], Spelling::Flag, "Print this help with internal options"),
];

/// Options that LLVM's tool adds to its own copy of the arguments. On a command line, they are forwarded like unknown
/// options. `--help-hidden` lists them (`docs/spec/linker-wrapper.md` §1.2).
#[rustfmt::skip]
pub(crate) const INTERNAL: &[Opt<()>] = &[
    Opt { id: (), names: &["arch", "triple", "linker-arg", "compiler-arg"], form: Spelling::Equal, help: "Internal to LLVM's tool; forwarded" },
    Opt { id: (), names: &["whole-program"], form: Spelling::Flag, help: "Internal to LLVM's tool; forwarded" },
];

/// Prefixes that no option of a host linker or compiler driver has: an unknown option with one is a mistake and must
/// not be lost.
pub(crate) const PREFIXES: [&str; 2] = ["device-", "wrapper-"];

/// Meaning of an option of the host's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Output,
    Library,
    /// A library named by a long option, which LLVM's tool ignores.
    NamedLibrary,
    /// A library that is searched after all others.
    DefaultLibrary,
    LibraryDir,
    Sysroot,
    Rpath,
    WholeArchive,
    NoWholeArchive,
    /// A library of which every member is linked.
    WholeLibrary,
    Static,
    Dynamic,
    /// Static libraries only, for the whole command line.
    AllStatic,
    StartLib,
    EndLib,
    AsNeeded,
    NoAsNeeded,
    /// Common storage gets its value from an archive, or not.
    FortranCommon,
    NoFortranCommon,
    DependencyFile,
    PushState,
    PopState,
    Relocatable,
    /// A symbol that must be defined, which loads archive members.
    Root,
    /// A symbol, and an expression whose symbols must be defined.
    DefSym,
    /// Symbols that must be defined, by a pattern.
    RootPattern,
    /// A symbol whose references lead to `__wrap_` and its name.
    Wrap,
    /// Language of a driver's inputs that follow, of which `none` is that of their extension.
    InputLanguage,
    /// Format of the inputs that follow, of which `binary` is data.
    Format,
    /// Archives that are searched until nothing else is found.
    StartGroup,
    EndGroup,
    /// Only the libraries on the command line.
    NoLibraries,
    FuseLd,
    LdPath,
    Target,
    /// A folder of a driver's programs and libraries.
    Prefix,
    /// One argument for the linker.
    Xlinker,
    /// The command links nothing: `-c`, `-E`, `-S`, `-###`, and questions such as `--version`.
    NoLink,
    /// A file that names inputs, which this tool does not read.
    UnreadInputs,
    /// The next argument is a value, not an input.
    Value,
}

const fn host(id: Host, names: &'static [&'static str], form: Spelling) -> Opt<Host> {
    Opt {
        id,
        names,
        form,
        help: "",
    }
}

/// Options of GNU ld, gold, lld and mold.
#[rustfmt::skip]
pub(crate) const LD: &[Opt<Host>] = &[
    host(Host::Output, &["o"], Spelling::Letter),
    host(Host::Output, &["output"], Spelling::Value),
    host(Host::Library, &["l"], Spelling::Letter),
    host(Host::NamedLibrary, &["library"], Spelling::Value),
    host(Host::LibraryDir, &["L"], Spelling::Letter),
    host(Host::LibraryDir, &["library-path"], Spelling::Value),
    host(Host::Sysroot, &["sysroot"], Spelling::Value),
    host(Host::Rpath, &["rpath"], Spelling::Value),
    host(Host::WholeArchive, &["whole-archive"], Spelling::Flag),
    host(Host::NoWholeArchive, &["no-whole-archive"], Spelling::Flag),
    host(Host::Static, &["Bstatic", "dn", "non_shared", "static"], Spelling::Flag),
    host(Host::Dynamic, &["Bdynamic", "dy", "call_shared"], Spelling::Flag),
    host(Host::StartLib, &["start-lib"], Spelling::Flag),
    host(Host::EndLib, &["end-lib"], Spelling::Flag),
    host(Host::AsNeeded, &["as-needed"], Spelling::Flag),
    host(Host::NoAsNeeded, &["no-as-needed"], Spelling::Flag),
    host(Host::FortranCommon, &["fortran-common"], Spelling::Flag),
    host(Host::NoFortranCommon, &["no-fortran-common"], Spelling::Flag),
    host(Host::DependencyFile, &["dependency-file"], Spelling::Value),
    host(Host::PushState, &["push-state"], Spelling::Flag),
    host(Host::PopState, &["pop-state"], Spelling::Flag),
    host(Host::Relocatable, &["r", "relocatable", "i", "Ur"], Spelling::Flag),
    host(Host::Root, &["u", "e"], Spelling::Letter),
    host(Host::Root, &["undefined", "require-defined", "entry"], Spelling::Value),
    host(Host::Format, &["b"], Spelling::Letter),
    host(Host::Format, &["format"], Spelling::Value),
    host(Host::DefSym, &["defsym"], Spelling::Value),
    host(Host::RootPattern, &["undefined-glob"], Spelling::Value),
    host(Host::Wrap, &["wrap"], Spelling::Value),
    host(Host::StartGroup, &["start-group", "("], Spelling::Flag),
    host(Host::EndGroup, &["end-group", ")"], Spelling::Flag),
    host(Host::NoLink, &["version", "help"], Spelling::Flag),
    host(Host::UnreadInputs, &["T", "c", "Y"], Spelling::Letter),
    host(Host::UnreadInputs, &["script", "default-script", "dT", "mri-script", "remap-inputs", "remap-inputs-file", "just-symbols"], Spelling::Value),
    host(Host::Value, &["m", "z", "h", "y", "A", "F", "f", "I", "P", "R", "a", "O", "C"], Spelling::Letter),
    host(Host::Value, &[
        "soname", "init", "fini", "dynamic-linker", "plugin", "plugin-opt", "rpath-link", "Map", "version-script",
        "dynamic-list", "oformat", "auxiliary", "filter",
        "assert", "trace-symbol", "retain-symbols-file", "section-start", "Tbss", "Tdata", "Ttext", "Ttext-segment",
        "Trodata-segment", "Tldata-segment", "hash-style", "hash-size", "image-base", "sort-section",
        "exclude-libs", "export-dynamic-symbol", "export-dynamic-symbol-list", "audit", "depaudit", "architecture",
        "print-map-file", "spare-dynamic-tags", "task-link", "symbol-ordering-file",
        "call-graph-ordering-file", "thread-count", "mllvm", "flavor", "out-implib", "ignore-unresolved-symbol",
        "unresolved-symbols", "error-handling-script", "orphan-handling", "compress-debug-sections", "max-cache-size",
        "version-exports-section", "gpsize", "ctf-share-types", "keep-unique", "section-ordering-file", "icf-iterations",
        "hash-bucket-empty-fraction", "incremental-base", "rosegment-gap", "split-stack-adjust-size", "stub-group-size", "target2",
        "thread-count-initial", "thread-count-middle", "thread-count-final", "build-id-chunk-size-for-treehash",
        "build-id-min-file-size-for-treehash", "error-limit", "opt-remarks-filename", "opt-remarks-format", "opt-remarks-passes",
        "opt-remarks-hotness-threshold", "pack-dyn-relocs", "print-symbol-order", "reproduce", "rsp-quoting",
        "thinlto-cache-policy", "why-live", "warn-backrefs-exclude", "irpgo-profile", "load-pass-plugin", "chroot", "directory", "compress-sections",
    ], Spelling::Value),
    // Of linkers for Windows.
    host(Host::Value, &[
        "base-file", "exclude-symbols", "exclude-modules-for-implib", "file-alignment", "heap", "stack", "subsystem", "output-def",
        "section-alignment", "major-image-version", "minor-image-version", "major-os-version", "minor-os-version",
        "major-subsystem-version", "minor-subsystem-version",
    ], Spelling::Value),
    // Long names that are not the letter option with which they begin.
    host(Host::Value, &["omagic"], Spelling::Flag),
];

/// Options of `lld-link` and `link.exe`: after a slash or a dash, in any case, with the value after a colon.
#[rustfmt::skip]
pub(crate) const COFF: &[Opt<Host>] = &[
    host(Host::Output, &["out"], Spelling::Equal),
    host(Host::LibraryDir, &["libpath"], Spelling::Equal),
    host(Host::DefaultLibrary, &["defaultlib"], Spelling::Equal),
    host(Host::WholeArchive, &["wholearchive"], Spelling::Flag),
    host(Host::WholeLibrary, &["wholearchive"], Spelling::Equal),
    host(Host::Root, &["include", "includeoptional", "entry"], Spelling::Equal),
    host(Host::NoLink, &["?", "help"], Spelling::Flag),
];

/// Options of Apple's linkers. They precede those of [`LD`], where some would be read as `-o` or `-l`.
#[rustfmt::skip]
pub(crate) const DARWIN: &[Opt<Host>] = &[
    host(Host::Value, &["object_path_lto", "lto_library", "order_file", "syslibroot", "install_name", "framework"], Spelling::Separate),
    host(Host::WholeArchive, &["all_load"], Spelling::Flag),
];

/// Options of gcc and clang when they link. Options without a row have a joined value or none.
#[rustfmt::skip]
pub(crate) const CC: &[Opt<Host>] = &[
    host(Host::Output, &["o"], Spelling::Letter),
    host(Host::Output, &["-output"], Spelling::Value),
    host(Host::Library, &["l"], Spelling::Letter),
    host(Host::NamedLibrary, &["-library"], Spelling::Value),
    host(Host::LibraryDir, &["L"], Spelling::Letter),
    host(Host::LibraryDir, &["-library-directory"], Spelling::Value),
    host(Host::Sysroot, &["-sysroot"], Spelling::Value),
    host(Host::AllStatic, &["static", "static-pie", "-static", "-static-pie"], Spelling::Flag),
    host(Host::Relocatable, &["r"], Spelling::Flag),
    host(Host::Root, &["u", "e"], Spelling::Letter),
    host(Host::Root, &["-force-link", "-entry"], Spelling::Value),
    host(Host::FuseLd, &["fuse-ld"], Spelling::Equal),
    host(Host::LdPath, &["-ld-path"], Spelling::Equal),
    host(Host::Target, &["target"], Spelling::Separate),
    host(Host::Target, &["-target"], Spelling::Equal),
    host(Host::NoLibraries, &["nostdlib", "-no-standard-libraries"], Spelling::Flag),
    // `--for-linker=…` is read like `-Wl,…`.
    host(Host::Xlinker, &["Xlinker", "-for-linker"], Spelling::Separate),
    host(Host::NoLink, &["c", "S", "E", "M", "MM", "fsyntax-only", "###", "-compile", "-assemble", "-preprocess", "-dependencies", "-user-dependencies", "-version", "-help", "dumpversion", "dumpmachine", "dumpfullversion", "print-search-dirs", "print-multi-os-directory", "print-sysroot", "print-libgcc-file-name"], Spelling::Flag),
    host(Host::NoLink, &["print-prog-name", "print-file-name"], Spelling::Equal),
    host(Host::Prefix, &["B"], Spelling::Letter),
    host(Host::Prefix, &["-prefix"], Spelling::Value),
    host(Host::InputLanguage, &["x"], Spelling::Letter),
    host(Host::InputLanguage, &["-language"], Spelling::Value),
    host(Host::UnreadInputs, &["T"], Spelling::Letter),
    host(Host::UnreadInputs, &["specs"], Spelling::Equal),
    host(Host::UnreadInputs, &["-specs", "-config"], Spelling::Value),
    host(Host::Value, &["z", "A", "F", "I", "J", "D", "U", "MF", "MT", "MQ", "G"], Spelling::Letter),
    host(Host::Value, &[
        "Xclang", "Xpreprocessor", "Xassembler", "Xarch_host", "Xarch_device", "Xcuda-ptxas", "Xoffload-linker", "mllvm",
        "include", "imacros", "isystem", "idirafter", "iquote", "iprefix", "iwithprefix", "isysroot", "-param", "aux-info",
        "dumpbase", "dumpdir", "arch", "framework", "rpath", "install_name", "bundle_loader", "wrapper", "gcc-toolchain",
        "MJ", "mthread-model", "include-pch", "serialize-diagnostics", "-serialize-diagnostics",
    ], Spelling::Separate),
    // Options of compiles, which builds pass to links, too: what clang 19, clang 22 and gcc 12 call incomplete without a next word.
    // Not clang's `-meabi`: for PowerPC, GCC has it without a value.
    host(Host::Value, &[
        "Xanalyzer", "Xclangas", "Xcuda-fatbinary", "Xflang", "Xopenmp-target", "mmlir", "resource-dir", "working-directory",
        "ivfsoverlay", "vfsoverlay", "iframework", "iframeworkwithsysroot", "iapinotes-modules", "isystem-after", "iwithprefixbefore",
        "iwithsysroot", "imultilib", "imultiarch", "cxx-isystem", "stdlib++-isystem", "module-dir", "fintrinsic-modules-path",
        "dependency-file", "dependency-dot", "module-dependency-dir", "dumpbase-ext", "dsym-dir", "object-file-name", "ccc-gcc-name",
        "ccc-install-dir", "fdebug-compilation-dir", "ftrapv-handler", "fmodules-user-build-path", "fexperimental-openacc-macro-override",
        "gen-cdb-fragment-path", "hlsl-entry", "b", "ccc-arcmt-migrate", "ccc-objcmt-migrate", "arcmt-migrate-report-output", "darwin-target-variant", "darwin-target-variant-triple", "Hd", "Hf", "gnatO",
        "-analyzer-output", "-assert", "-define-macro", "-undefine-macro", "-dump", "-dumpbase", "-dumpbase-ext", "-dumpdir", "-imacros",
        "-include", "-include-directory", "-include-directory-after", "-include-prefix", "-include-with-prefix",
        "-include-with-prefix-after", "-include-with-prefix-before", "-dyld-prefix", "-std", "-stdlib", "-rtlib", "-resource", "-mhwdiv",
        "-system-header-prefix", "-no-system-header-prefix", "-encoding",
    ], Spelling::Separate),
    // Long names that are not the letter option with which they begin.
    host(Host::Value, &["export-dynamic", "emit-llvm", "undef"], Spelling::Flag),
];

/// Values of the wrapper's options.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkerOptions {
    pub linker: Option<PathBuf>,
    pub host_triple: Option<OsString>,
    pub cuda: Option<PathBuf>,
    /// Values as given: `[<triple>=]<arg>`.
    pub device_linker: Vec<OsString>,
    pub device_compiler: Vec<OsString>,
    /// Processors whose archive members are always linked.
    pub should_extract: Vec<String>,
    pub emit_fatbin_only: bool,
    pub override_images: Vec<OsString>,
    pub dry_run: bool,
    pub verbose: bool,
    pub save_temps: bool,
    /// Default: one in linker position, and as many as make or Cargo allow in driver position.
    pub jobs: Option<Jobs>,
    /// `-mllvm` alone: the compiler that runs device links gets these, too.
    pub mllvm: Vec<OsString>,
    /// `-mllvm` and `--offload-opt`, in the order of the line: options for LLVM in device links.
    pub plugin_options: Vec<OsString>,
    /// Values as given: `<triple>=<file>`.
    pub builtin_bitcode: Vec<OsString>,
    /// Values as given: `<kind>-<triple>-<processor>=<file>`.
    pub bitcode_libraries: Vec<OsString>,
    /// Set if the linked image is bitcode.
    pub embed_bitcode: bool,
    pub no_lto: bool,
    /// Set if programs are searched beside this tool without following links.
    pub no_canonical_prefixes: bool,
    /// Set if images of HIP and CUDA are compressed.
    pub compress: bool,
    pub compression_level: Option<i32>,
    pub time_trace: Option<PathBuf>,
    /// Shortest phase in the trace, in microseconds; default 500.
    pub time_trace_granularity: Option<u64>,
    /// Print the source of the registration.
    pub print_registration: bool,
    /// Compile the registration from C with the host compiler.
    pub wrapper_from_c: bool,
    /// `--llvm`: the release whose rules apply; only its entry tables are registered.
    pub llvm: Option<LlvmRelease>,
    /// `OFFLOAD_LLVM`: the release of what objects do not show. It leaves out no entries of theirs.
    pub llvm_variable: Option<LlvmRelease>,
    pub report: Option<OsString>,
    /// Limit on decompressed data, as given.
    pub max_decompressed_size: Option<String>,
    /// Largest total of images in usual sections, as given.
    pub large_images: Option<String>,
    /// Set if an option says whether a dropped image is an error.
    pub dropped_image_is_error: Option<bool>,
    pub answer: Option<Question>,
    /// The clang that wrote the command line, if an option shows it.
    pub driver: Option<Driver>,
}

/// Releases of clang's driver, by the options that they pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// Passes `--opt-level` and similar options, which LLVM 20 replaced.
    Until19,
    /// Passes `--device-compiler` or `--should-extract`.
    Since20,
}

/// Number of parallel device links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jobs {
    Count(usize),
    /// The number of tokens that make or Cargo provides.
    Jobserver,
}

/// Question that the tool answers instead of linking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Abi,
    Version,
    Help,
    HelpHidden,
    /// Text that `-mllvm` requests from LLVM.
    Llvm,
}

impl LinkerOptions {
    /// Applies one option; `value` is empty for flags.
    pub(crate) fn apply(&mut self, id: Own, value: OsString) -> Result<(), LinkError> {
        self.note_driver(id);
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
            Own::Mllvm => {
                self.plugin_options.push(value.clone());
                self.mllvm.push(value);
            }
            Own::OffloadOpt => self.plugin_options.push(dashed(value)),
            Own::OptLevel => self.device_compiler.push(level(&value)?.into()),
            Own::DeviceDebug => self.device_compiler.push("-g".into()),
            Own::PtxasArg => {
                self.device_compiler.push("-Xcuda-ptxas".into());
                self.device_compiler.push(value);
            }
            // No effect: device links always run clang, which generates code.
            Own::ClangBackend => {}
            Own::BuiltinBitcode => self.builtin_bitcode.push(value),
            Own::BitcodeLibrary => self.bitcode_libraries.push(value),
            Own::EmbedBitcode => self.embed_bitcode = true,
            Own::NoLto => self.no_lto = true,
            Own::NoCanonicalPrefixes => self.no_canonical_prefixes = true,
            Own::Compress => self.compress = true,
            Own::CompressionLevel => {
                self.compression_level = Some(number("compression-level", "an integer", &value)?);
            }
            Own::TimeTrace => self.time_trace = Some(value.into()),
            Own::TimeTraceGranularity => {
                let name = "wrapper-time-trace-granularity";
                self.time_trace_granularity = Some(number(name, "microseconds", &value)?);
            }
            Own::PrintRegistration => self.print_registration = true,
            Own::EmitWrapper if value == "c" => self.wrapper_from_c = true,
            Own::EmitWrapper => {
                let form = value.to_string_lossy();
                return Err(LinkError::Option(format!(
                    "--emit-wrapper={form}: expected `c`"
                )));
            }
            Own::PassRemarks(name) => {
                self.plugin_options
                    .push(joined(&format!("-{name}="), &value));
            }
            Own::Llvm => {
                let release = value.to_string_lossy().parse();
                let wrong = |error| LinkError::Option(format!("--llvm: {error}"));
                self.llvm = Some(release.map_err(wrong)?);
            }
            Own::Report => self.report = Some(value),
            Own::MaxDecompressedSize => {
                self.max_decompressed_size = Some(value.to_string_lossy().into_owned());
            }
            Own::LargeImages => self.large_images = Some(value.to_string_lossy().into_owned()),
            Own::DroppedIsError => self.dropped_image_is_error = Some(true),
            Own::DroppedIsWarning => self.dropped_image_is_error = Some(false),
            Own::PrintAbi => self.answer = Some(Question::Abi),
            Own::Version => self.answer = Some(Question::Version),
            Own::Help => self.answer = Some(Question::Help),
            Own::HelpHidden => self.answer = Some(Question::HelpHidden),
        }
        Ok(())
    }

    /// Records the releases of clang that pass an option.
    fn note_driver(&mut self, id: Own) {
        match id {
            Own::OptLevel | Own::DeviceDebug | Own::PtxasArg | Own::ClangBackend => {
                self.driver = Some(Driver::Until19);
            }
            Own::DeviceCompiler | Own::ShouldExtract => {
                self.driver.get_or_insert(Driver::Since20);
            }
            _ => {}
        }
    }

    /// Turns LLVM's questions into a question for this tool, once all options are known.
    pub(crate) fn ask(&mut self) {
        if self.answer.is_none() && self.llvm_questions().next().is_some() {
            self.answer = Some(Question::Llvm);
        }
    }

    /// Returns the options for LLVM that print something instead of linking, such as `--help` and `--version` after
    /// `-mllvm` or `--offload-opt` (`docs/spec/linker-wrapper.md` §10.1 number 26).
    pub(crate) fn llvm_questions(&self) -> impl Iterator<Item = &OsString> {
        const QUESTIONS: [&str; 5] = [
            "help",
            "help-hidden",
            "help-list",
            "help-list-hidden",
            "version",
        ];
        self.plugin_options.iter().filter(|option| {
            let option = option.to_str().unwrap_or_default();
            let name = option
                .strip_prefix("--")
                .or_else(|| option.strip_prefix('-'));
            name.is_some_and(|name| QUESTIONS.contains(&name))
        })
    }

    /// Returns the limit on decompressed inputs.
    ///
    /// # Errors
    ///
    /// Fails if the option or its variable is not a size.
    pub(crate) fn max_decompressed_size(&self) -> Result<DecompressionLimit, LinkError> {
        let option = self.max_decompressed_size.as_deref();
        decompressed::limit(option).map_err(LinkError::Option)
    }

    /// Returns the largest total of images in usual sections in bytes.
    ///
    /// # Errors
    ///
    /// Fails if the option or its variable is not a size.
    pub(crate) fn largest_usual(&self) -> Result<u64, LinkError> {
        let option = self.large_images.as_deref();
        let variable = std::env::var(large::LARGE_VARIABLE).ok();
        large::largest_usual(option, variable.as_deref()).map_err(LinkError::Option)
    }

    /// Takes the release from `OFFLOAD_LLVM` if no `--llvm` names one.
    ///
    /// # Errors
    ///
    /// Fails if the variable is not a release.
    pub(crate) fn take_llvm_variable(&mut self) -> Result<(), LinkError> {
        if self.llvm.is_none() {
            let variable = std::env::var_os(installation::VARIABLE);
            let release = installation::of_variable(variable.as_deref());
            self.llvm_variable = release.map_err(LinkError::Option)?;
        }
        Ok(())
    }

    /// Returns the release of `--llvm`, or of `OFFLOAD_LLVM`.
    pub(crate) fn named_llvm(&self) -> Option<LlvmRelease> {
        self.llvm.or(self.llvm_variable)
    }

    /// Returns the release whose rules apply if the inputs do not show one: the named one, or that of the name or place
    /// of `tool`; else 22.
    ///
    /// # Errors
    ///
    /// Fails if the inputs cannot be read.
    pub(crate) fn release(
        &self,
        tool: &OsStr,
        of_inputs: impl FnOnce() -> Result<Option<LlvmRelease>, LinkError>,
    ) -> Result<LlvmRelease, LinkError> {
        if let Some(release) = self.named_llvm() {
            return Ok(release);
        }
        if let Some(release) = installation::known(tool) {
            return Ok(release);
        }
        match self.driver {
            Some(Driver::Until19) => Ok(LlvmRelease::V19),
            Some(Driver::Since20) => {
                let newer = of_inputs()?.filter(|release| *release > LlvmRelease::V19);
                Ok(newer.unwrap_or_default())
            }
            None => match installation::of_caller() {
                Some(release) => Ok(release),
                None => Ok(of_inputs()?.unwrap_or_default()),
            },
        }
    }
}

/// Returns an option of LLVM with its dash, which `--offload-opt` may omit.
fn dashed(value: OsString) -> OsString {
    match value.as_encoded_bytes().starts_with(b"-") {
        true => value,
        false => joined("-", &value),
    }
}

fn joined(start: &str, value: &OsStr) -> OsString {
    let mut option = OsString::from(start);
    option.push(value);
    option
}

/// Returns the option of clang for a level such as `O2`.
fn level(value: &OsStr) -> Result<String, LinkError> {
    let level = value.to_string_lossy();
    match level.as_bytes() {
        [b'O', b'0'..=b'9'] => Ok(format!("-{level}")),
        _ => Err(LinkError::Option(format!(
            "--opt-level: `{level}` is not a level; expected `O0` to `O3`"
        ))),
    }
}

fn number<N: std::str::FromStr>(name: &str, expected: &str, value: &OsStr) -> Result<N, LinkError> {
    let text = value.to_string_lossy();
    text.parse().map_err(|_| {
        LinkError::Option(format!(
            "--{name}={text}: expected {expected}, got '{text}'"
        ))
    })
}

fn parse_jobs(value: &OsString) -> Result<Jobs, LinkError> {
    let text = value.to_string_lossy();
    if text.eq_ignore_ascii_case("jobserver") {
        return Ok(Jobs::Jobserver);
    }
    match text.parse() {
        Ok(count) if count > 0 => Ok(Jobs::Count(count)),
        _ => Err(LinkError::Option(format!(
            "--wrapper-jobs={text}: expected a positive integer or 'jobserver', got '{text}'"
        ))),
    }
}

#[cfg(test)]
mod tests;
