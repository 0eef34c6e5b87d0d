//! What LLVM's own tests ask of the bundler: the numbers of `docs/spec/bundler.md` §9, in their order, each
//! with its number in a comment. Then what ours does beyond LLVM's.

use crate::support;

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use support::tool_folder::ToolFolder;
use support::{program, run, tool};

const NAME: &str = "clang-offload-bundler";
const HOST: &str = "host-x86_64-unknown-linux-gnu";
const PPC: &str = "openmp-powerpc64le-ibm-linux-gnu";
const X86: &str = "openmp-x86_64-pc-linux-gnu";
const GFX906: &str = "hip-amdgcn-amd-amdhsa--gfx906";
const GFX908: &str = "hip-amdgcn-amd-amdhsa--gfx908";

/// The targets "3T" of the list, and the files that go with them.
fn three() -> String {
    format!("{HOST},{PPC},{X86}")
}

/// A folder with inputs for the bundler.
struct Bundler(ToolFolder);

impl Deref for Bundler {
    type Target = ToolFolder;

    fn deref(&self) -> &ToolFolder {
        &self.0
    }
}

impl Bundler {
    fn new() -> Self {
        let folder = ToolFolder::with_tool(env!("CARGO_BIN_EXE_offload-bundler"), NAME);
        folder.write("host", b"int x;\nhost\n");
        folder.write("d1", b"Content of device file 1\n");
        folder.write("d2", b"Content of device file 2\n");
        Self(folder)
    }

    /// Makes `out` of the three inputs.
    fn bundle(&self, file_type: &str, targets: &str, inputs: &[&str], output: &str) {
        let mut args = vec!["-type", file_type, "-targets", targets, "-output", output];
        inputs
            .iter()
            .for_each(|input| args.extend(["-input", input]));
        self.done(&args);
    }

    fn unbundle<'a>(
        &self,
        file_type: &'a str,
        targets: &'a str,
        input: &'a str,
        outputs: &[&'a str],
    ) -> Vec<&'a str> {
        let mut args = vec![
            "-unbundle",
            "-type",
            file_type,
            "-targets",
            targets,
            "-input",
            input,
        ];
        outputs
            .iter()
            .for_each(|output| args.extend(["-output", output]));
        args
    }

    fn ids(&self, file_type: &str, input: &str) -> Vec<String> {
        let done = self.done(&["-list", "-type", file_type, "-input", input]);
        done.out.lines().map(str::to_owned).collect()
    }

    /// Unbundles what [`three`] is, in another order, and compares.
    fn check_three(&self, file_type: &str, input: &str) {
        let permuted = format!("{X86},{HOST},{PPC}");
        let outputs = ["x2", "xh", "x1"];
        self.done(&self.unbundle(file_type, &permuted, input, &outputs));
        for (output, source) in outputs.iter().zip(["d2", "host", "d1"]) {
            assert_eq!(self.read(output), self.read(source), "{file_type} {output}");
        }
        // A device alone, without the host's name.
        self.done(&self.unbundle(file_type, PPC, input, &["alone"]));
        assert_eq!(self.read("alone"), self.read("d1"));
    }
}

const TEXT_TYPES: [(&str, &str); 7] = [
    ("i", "//"),
    ("ii", "//"),
    ("cui", "//"),
    ("hipi", "//"),
    ("d", "#"),
    ("ll", ";"),
    ("s", "#"),
];
const BINARY_TYPES: [&str; 3] = ["bc", "gch", "ast"];

/// The fragments of 1 and 2, in order; blanks are not counted.
const HELP: [&str; 40] = [
    "OVERVIEW: A tool to bundle several input files of the specified type <type>",
    "referring to the same source file but different targets into a single",
    "one. The resulting file can also be unbundled into different files by",
    "this tool if -unbundle is provided.",
    "USAGE: clang-offload-bundler [options]",
    "--### - Print any external commands that are to be executed instead of actually executing them - for testing purposes.",
    "--allow-missing-bundles - Create empty files if bundles are missing when unbundling.",
    "--bundle-align=<uint> - Alignment of bundle for binary files",
    "--check-input-archive - Check if input heterogeneous archive is valid in terms of TargetID rules.",
    "--compress - Compress output file when bundling.",
    "--compression-level=<n> - Specify the compression level (integer)",
    "--hip-openmp-compatible - Treat hip and hipv4 offload kinds as compatible with openmp kind, and vice versa.",
    "--input=<string> - Input file. Can be specified multiple times for multiple input files.",
    "--inputs=<string> - [<input file>,...] (deprecated)",
    "--list - List bundle IDs in the bundled file.",
    "--output=<string> - Output file. Can be specified multiple times for multiple output files.",
    "--outputs=<string> - [<output file>,...] (deprecated)",
    "--targets=<string> - [<offload kind>-<target triple>,...]",
    "--type=<string> - Type of the files to be bundled/unbundled.",
    "Current supported types are:",
    "i - cpp-output",
    "ii - c++-cpp-output",
    "cui - cuda-cpp-output",
    "hipi - hip-cpp-output",
    "d - dependency",
    "ll - llvm",
    "bc - llvm-bc",
    "s - assembler",
    "o - object",
    "a - archive of objects",
    "gch - precompiled-header",
    "ast - clang AST file",
    "--unbundle - Unbundle bundled file into several output files.",
    "--verbose - Print debug information.",
    "--bundle=<n>",
    "--extract-all=<dir>",
    "--filter=<string>",
    "--list=long|json - List with sizes and offsets, as a table or as JSON",
    "--llvm=<release>",
    "--threads=<n>",
];

/// 1, 2.
#[test]
fn prints_the_help_that_llvms_tests_look_for() {
    let folder = Bundler::new();
    for option in ["--help", "-help", "--help-hidden"] {
        let help = folder.done(&[option]).out;
        let words: Vec<&str> = help.split_whitespace().collect();
        let help = words.join(" ");
        let mut rest = help.as_str();
        for fragment in HELP {
            let place = rest.find(fragment);
            let place = place.unwrap_or_else(|| panic!("{option}: no {fragment:?} in {rest}"));
            rest = &rest[place + fragment.len()..];
        }
    }
    // `-h` is an option like others: it is answered when the rest is right.
    assert!(
        folder
            .done(&["-h", "-type=o"])
            .out
            .contains("--allow-missing-bundles")
    );
    assert_eq!(folder.run(&["-h"]).status, Some(1));
}

#[test]
fn prints_the_version_that_it_stands_for() {
    let version = Bundler::new().done(&["--version"]).out;
    assert!(
        version.starts_with("clang-offload-bundler version 22.1"),
        "{version}"
    );
    assert_eq!(version.lines().count(), 1);
}

/// 3 to 9, 11 to 20.
#[test]
fn refuses_command_lines_in_the_words_of_llvm() {
    let folder = Bundler::new();
    let three = three();
    let two = format!("{HOST},{PPC}");
    let bundle = |targets: &str, inputs: &[&str], outputs: &[&str]| -> String {
        let mut args = vec!["-type=i", "-targets", targets];
        inputs
            .iter()
            .for_each(|input| args.extend(["-input", input]));
        outputs
            .iter()
            .for_each(|output| args.extend(["-output", output]));
        folder.error(&args)
    };
    let unbundle = |targets: &str, inputs: &[&str], outputs: &[&str]| -> String {
        let mut args = vec!["-unbundle", "-type=i", "-targets", targets];
        inputs
            .iter()
            .for_each(|input| args.extend(["-input", input]));
        outputs
            .iter()
            .for_each(|output| args.extend(["-output", output]));
        folder.error(&args)
    };
    let all = ["host", "d1", "d2"];
    // 3.
    assert_eq!(
        unbundle(&three, &all, &["a", "b", "c"]),
        "only one input file supported in unbundling mode"
    );
    // 4, 7.
    let counts = "number of output files and targets should match in unbundling mode";
    assert_eq!(unbundle(&three, &["host"], &["a"]), counts);
    assert_eq!(unbundle(&two, &["host"], &["a", "b", "c"]), counts);
    assert_eq!(unbundle(&three, &["host"], &["a", "b"]), counts);
    // 5.
    let counts = "number of input files and targets should match in bundling mode";
    assert_eq!(bundle(&two, &all, &["out"]), counts);
    assert_eq!(bundle(&three, &["host", "d1"], &["out"]), counts);
    // 6.
    assert_eq!(
        bundle(&three, &all, &["a", "b", "c"]),
        "only one output file supported in bundling mode"
    );
    // 8.
    let missing = "'missing': No such file or directory";
    assert_eq!(
        bundle(&three, &["host", "d1", "missing"], &["out"]),
        missing
    );
    assert_eq!(unbundle(&three, &["missing"], &["a", "b", "c"]), missing);
    // 9, 11, 12.
    let invalid = [
        "-type=invalid",
        "-targets",
        &three,
        "-input=host",
        "-input=d1",
        "-input=d2",
        "-output=out",
    ];
    assert_eq!(
        folder.error(&invalid),
        "'invalid': invalid file type specified"
    );
    assert_eq!(bundle(&three, &all, &[]), "no output file specified!");
    let targets = folder.error(&["-type=i", "-input=host", "-output=out"]);
    assert_eq!(
        targets,
        "for the --targets option: must be specified at least once!"
    );
    // 13 to 15.
    let bad = "hxst-powerpcxxle-ibm-linux-gnu";
    for targets in [
        format!("{bad},{PPC},{X86}"),
        format!("{PPC},{bad},{X86}"),
        format!("{PPC},{X86},{bad}"),
    ] {
        assert_eq!(
            bundle(&targets, &all, &["out"]),
            "invalid target 'hxst-powerpcxxle-ibm-linux-gnu', unknown offloading kind 'hxst', \
             unknown target triple 'powerpcxxle-ibm-linux-gnu'"
        );
    }
    // 16, 17.
    assert_eq!(
        bundle(&format!("{PPC},{X86}"), &["d1", "d2"], &["out"]),
        "expecting exactly one host target but got 0"
    );
    let twice = "Duplicate targets are not allowed";
    assert_eq!(
        bundle(&format!("{HOST},{HOST},{X86}"), &all, &["out"]),
        twice
    );
    // 18: before the targets are looked at.
    let archive = [
        "-type=a",
        "-targets=hxst-powerpcxxle-ibm-linux-gnu",
        "-input=host",
        "-output=out",
    ];
    assert_eq!(
        folder.error(&archive),
        "Archive files are only supported for unbundling"
    );
    // 19, 20.
    assert_eq!(
        folder.error(&["-type=i", "-inputs=host,d1", "-input=d2"]),
        "-inputs and -input cannot be used together, use only -input instead"
    );
    assert_eq!(
        folder.error(&["-type=i", "-input=d2", "-outputs=a", "-output=b"]),
        "-outputs and -output cannot be used together, use only -output instead"
    );
    // 44.
    let duplicates = format!("{HOST},{X86},{X86}");
    assert_eq!(bundle(&duplicates, &all, &["out"]), twice);
    assert_eq!(unbundle(&duplicates, &["host"], &["a", "b", "c"]), twice);
    assert!(!folder.exists("out") && !folder.exists("a"));
}

/// 10.
#[test]
fn asks_for_a_type() {
    let folder = Bundler::new();
    let done = folder.run(&[]);
    assert_eq!(done.status, Some(1));
    assert_eq!(
        done.err,
        "clang-offload-bundler: for the --type option: must be specified at least once!\n"
    );
}

#[test]
fn warns_of_old_forms_and_takes_them() {
    let folder = Bundler::new();
    let targets = three();
    let done = folder.done(&[
        "-type=bc",
        "-targets",
        &targets,
        "-inputs=host,d1,d2",
        "-outputs=out",
    ]);
    let name = folder.tool.display();
    assert_eq!(
        done.err,
        format!(
            "{name}: warning: -inputs is deprecated, use -input instead\n\
             {name}: warning: -outputs is deprecated, use -output instead\n"
        )
    );
    folder.check_three("bc", "out");
}

/// 21 to 24: the markers, in the order of the command line.
#[test]
fn bundles_text_between_markers() {
    let folder = Bundler::new();
    for (file_type, comment) in TEXT_TYPES {
        let expected = |pairs: [(&str, &str); 3]| -> String {
            let entry = |(id, text): (&str, &str)| {
                let marker =
                    |word| format!("\n{comment} __CLANG_OFFLOAD_BUNDLE____{word}__ {id}-\n");
                marker("START") + text + &marker("END")
            };
            pairs.map(entry).concat()
        };
        let host = (HOST, "int x;\nhost\n");
        let first = (PPC, "Content of device file 1\n");
        let second = (X86, "Content of device file 2\n");
        folder.bundle(file_type, &three(), &["host", "d1", "d2"], "out");
        let text = String::from_utf8(folder.read("out")).unwrap();
        assert_eq!(text, expected([host, first, second]));
        let targets = format!("{PPC},{HOST},{X86}");
        folder.bundle(file_type, &targets, &["d1", "host", "d2"], "out");
        let text = String::from_utf8(folder.read("out")).unwrap();
        assert_eq!(text, expected([first, host, second]));
    }
}

/// `git` with `core.autocrlf` makes such files.
#[test]
fn unbundles_text_with_the_line_ends_of_windows() {
    let Some(llvm) = tool("llvm22", &[NAME]) else {
        return;
    };
    let folder = Bundler::new();
    for (file_type, _) in TEXT_TYPES {
        folder.bundle(
            file_type,
            &format!("{HOST},{GFX906}"),
            &["host", "d1"],
            "lines",
        );
        let text = String::from_utf8(folder.read("lines")).unwrap();
        folder.write("lines", text.replace('\n', "\r\n").as_bytes());
        // LLVM 22 finds the host's entry alone.
        let args = folder.unbundle(file_type, HOST, "lines", &["theirs"]);
        run(Command::new(&llvm).current_dir(folder.root()).args(args));
        folder.done(&folder.unbundle(
            file_type,
            &format!("{HOST},{GFX906}"),
            "lines",
            &["ours", "device"],
        ));
        assert_eq!(folder.read("ours"), folder.read("theirs"), "{file_type}");
        // The line feed before the marker was not a part of the text, so the carriage return is one now.
        let device = b"Content of device file 1\r\n\r";
        assert_eq!(folder.read("device"), device, "{file_type}");
        // Under its own name the tool detects the type.
        let target = format!("-targets={GFX906}");
        let own = env!("CARGO_BIN_EXE_offload-bundler");
        run(Command::new(own).current_dir(folder.root()).args([
            "-unbundle",
            &target,
            "-input=lines",
            "-output=found",
        ]));
        assert_eq!(folder.read("found"), device, "{file_type}");
    }
}

/// 25 to 28, 31, 32.
#[test]
fn lists_and_unbundles_every_type() {
    let folder = Bundler::new();
    let types = TEXT_TYPES
        .iter()
        .map(|(name, _)| *name)
        .chain(BINARY_TYPES)
        .chain(["o"]);
    for file_type in types {
        folder.bundle(file_type, &three(), &["host", "d1", "d2"], "out");
        let expected = [HOST, PPC, X86].map(|id| format!("{id}-"));
        assert_eq!(folder.ids(file_type, "out"), expected);
        folder.check_three(file_type, "out");
        let permuted = format!("{X86},{HOST},{PPC}");
        folder.bundle(file_type, &permuted, &["d2", "host", "d1"], "out");
        folder.check_three(file_type, "out");
    }
}

/// 29, 33, 40: what was never bundled is the host's, when that is allowed.
#[test]
fn takes_a_plain_file_for_the_host() {
    let folder = Bundler::new();
    let types = TEXT_TYPES
        .iter()
        .map(|(name, _)| *name)
        .chain(BINARY_TYPES)
        .chain(["o"]);
    for file_type in types {
        assert_eq!(folder.ids(file_type, "host"), [""; 0]);
        for (targets, outputs) in [
            (three(), ["h", "x", "y"]),
            (format!("{PPC},{HOST},{X86}"), ["x", "h", "y"]),
        ] {
            let mut args = folder.unbundle(file_type, &targets, "host", &outputs);
            assert!(folder.error(&args).starts_with("Can't find bundles for "));
            args.push("-allow-missing-bundles");
            folder.done(&args);
            assert_eq!(folder.read("h"), folder.read("host"));
            assert_eq!(
                (folder.read("x"), folder.read("y")),
                (Vec::new(), Vec::new())
            );
            for output in outputs {
                fs::remove_file(folder.path(output)).unwrap();
            }
        }
    }
}

/// 30, 41 to 43.
#[test]
fn names_what_is_missing() {
    let folder = Bundler::new();
    folder.bundle("bc", &format!("{HOST},{PPC}"), &["host", "d1"], "out");
    for (targets, count, expected) in [
        (X86.to_owned(), 1, "openmp-x86_64-pc-linux-gnu-"),
        (format!("{PPC},{X86}"), 2, "openmp-x86_64-pc-linux-gnu-"),
        (
            format!("{X86},{GFX906}"),
            2,
            "hip-amdgcn-amd-amdhsa--gfx906 and openmp-x86_64-pc-linux-gnu-",
        ),
        (
            format!("{X86},{GFX908},{HOST},{GFX906}"),
            4,
            "hip-amdgcn-amd-amdhsa--gfx906, hip-amdgcn-amd-amdhsa--gfx908, and openmp-x86_64-pc-linux-gnu-",
        ),
        (
            "host-aarch64-unknown-linux-gnu".to_owned(),
            1,
            "host-aarch64-unknown-linux-gnu-",
        ),
    ] {
        let outputs = &["a", "b", "c", "d"][..count];
        let mut args = folder.unbundle("bc", &targets, "out", outputs);
        assert_eq!(
            folder.error(&args),
            format!("Can't find bundles for {expected}")
        );
        assert!(outputs.iter().all(|output| !folder.exists(output)));
        args.push("-allow-missing-bundles");
        folder.done(&args);
        for output in outputs {
            fs::remove_file(folder.path(output)).unwrap();
        }
    }
}

/// 34, 35, 71.
#[test]
fn unbundles_some_of_what_is_there() {
    let folder = Bundler::new();
    let targets = format!("{HOST},{PPC},{X86},{GFX906}");
    for align in ["1", "4096"] {
        for compress in ["-compress", "-compress=0"] {
            let mut args = vec![
                "-type=bc",
                "-targets",
                &targets,
                "-output=out",
                "-bundle-align",
                align,
                compress,
            ];
            for input in ["host", "d1", "d2", "d1"] {
                args.extend(["-input", input]);
            }
            folder.done(&args);
            let wanted = format!("{HOST},{GFX906}");
            folder.done(&folder.unbundle("bc", &wanted, "out", &["h", "x"]));
            assert_eq!(folder.read("h"), folder.read("host"));
            assert_eq!(folder.read("x"), folder.read("d1"));
            if compress == "-compress=0" {
                let size = folder.read("out").len();
                // `docs/spec/bundler.md` §2.2: the file ends with the last image, which starts at a multiple.
                assert_eq!((size - 25) % align.parse::<usize>().unwrap(), 0);
            }
        }
    }
}

/// 45.
#[test]
fn refuses_what_makes_no_sense_with_a_list() {
    let folder = Bundler::new();
    let list = |more: &[&str]| folder.error(&[&["-list", "-type=bc"][..], more].concat());
    assert_eq!(
        list(&["-unbundle", "-input=host"]),
        "-unbundle and -list cannot be used together"
    );
    assert_eq!(
        list(&["-targets", HOST, "-input=host"]),
        "-targets option is invalid for -list"
    );
    assert_eq!(
        list(&["-output=a", "-input=host"]),
        "-outputs option is invalid for -list"
    );
    let one = "only one input file supported for -list";
    assert_eq!(list(&["-input=host", "-input=d1"]), one);
    assert_eq!(list(&[]), one);
}

/// 56, 57, 60, 61, 62.
#[test]
fn needs_no_host_for_hip() {
    let folder = Bundler::new();
    let (minus, plus) = (format!("{GFX906}:xnack-"), format!("{GFX906}:xnack+"));
    // 56, 57.
    folder.bundle("bc", &format!("{minus},{plus}"), &["d1", "d2"], "out");
    assert_eq!(folder.ids("bc", "out"), [minus.as_str(), plus.as_str()]);
    folder.done(&folder.unbundle("bc", &format!("{plus},{minus}"), "out", &["p", "m"]));
    assert_eq!(
        (folder.read("m"), folder.read("p")),
        (folder.read("d1"), folder.read("d2"))
    );
    // 60.
    folder.bundle("bc", GFX906, &["d1"], "out");
    for target in [&minus, &plus] {
        folder.done(&folder.unbundle("bc", target, "out", &["x"]));
        assert_eq!(folder.read("x"), folder.read("d1"));
    }
    // 61.
    folder.bundle("bc", &plus, &["d1"], "out");
    for target in [minus.as_str(), GFX906] {
        let error = folder.error(&folder.unbundle("bc", target, "out", &["y"]));
        assert_eq!(error, format!("Can't find bundles for {target}"));
    }
    // 62.
    for (entry, target) in [
        (GFX906, "hipv4-amdgcn-amd-amdhsa--gfx906:xnack+"),
        ("hipv4-amdgcn-amd-amdhsa--gfx906", plus.as_str()),
    ] {
        folder.bundle("o", entry, &["d2"], "out");
        folder.done(&folder.unbundle("o", target, "out", &["x"]));
        assert_eq!(folder.read("x"), folder.read("d2"));
    }
}

/// 58, 59.
#[test]
fn finds_conflicting_targets() {
    let folder = Bundler::new();
    for (kind, file_type) in [("hip", "bc"), ("openmp", "o")] {
        let one = format!("{kind}-amdgcn-amd-amdhsa--gfx906");
        let two = format!("{one}:sramecc+");
        let targets = format!("{HOST},{two},{one}");
        let error = folder.error(&[
            "-type",
            file_type,
            "-targets",
            &targets,
            "-input=host",
            "-input=d1",
            "-input=d2",
            "-output=out",
        ]);
        assert_eq!(
            error,
            format!("Cannot bundle inputs with conflicting targets: '{one}' and '{two}'")
        );
    }
}

/// 63, 64, 65.
#[test]
fn says_which_dash_is_missing() {
    let folder = Bundler::new();
    // 63.
    let done = folder.run(&[
        "-type=bc",
        "-targets=hip-amdgcn-amd-amdhsa",
        "-input=d1",
        "-output=out",
    ]);
    let name = folder.tool.display();
    assert_eq!(
        done.err,
        format!(
            "{name}: error: Targets need to follow the format '<offload kind>-<target triple>', where \
             '<target triple>' follows the format '<kind>-<arch>-<vendor>-<os>-<env>[-<target id>[:target features]]'.\n\
             hint: the environment is missing; write `hip-amdgcn-amd-amdhsa--`, with two dashes where it is empty\n"
        )
    );
    // 64: taken for the environment.
    let archive = offload_formats::container::archive::write(&[]);
    folder.write("lib.a", &archive);
    let args = folder.unbundle("a", "openmp-amdgcn-amd-amdhsa-gfx906", "lib.a", &["x.a"]);
    assert_eq!(
        folder.error(&args),
        "no compatible code object found for the target 'openmp-amdgcn-amd-amdhsa--' in \
         heterogeneous archive library: lib.a"
    );
    let warning = folder.run(&args).err;
    assert!(
        warning
            .contains("for a processor write `openmp-amdgcn-amd-amdhsa--gfx906`, with two dashes"),
        "{warning}"
    );
    // 65: for a release that read both the same.
    for target in ["hip-amdgcn-amd-amdhsa-gfx906", GFX906] {
        folder.done(&[
            "--llvm=19",
            "-type=bc",
            "-targets",
            target,
            "-input=d1",
            "-output=out",
        ]);
        assert_eq!(folder.ids("bc", "out"), [GFX906]);
    }
}

/// 66 to 68 are about builds with assertions; LLVM's release builds refuse the option too.
#[test]
fn knows_no_option_of_assertion_builds() {
    let done = Bundler::new().run(&["-type=o", "-debug-only=CodeObjectCompatibility"]);
    assert_eq!(done.status, Some(1));
    assert!(
        done.err
            .contains("Unknown command line argument '-debug-only=CodeObjectCompatibility'")
    );
}

/// 69, 70.
#[test]
fn says_how_it_compresses() {
    let folder = Bundler::new();
    let targets = three();
    let bundle = [
        "-type=bc",
        "-targets",
        &targets,
        "-input=host",
        "-input=d1",
        "-input=d2",
        "-output=out",
        "-verbose",
    ];
    for (release, version) in [("--llvm=19", "2"), ("--llvm=22", "3")] {
        let done = folder.done(&[&bundle[..], &["-compress", release]].concat());
        let size = folder.read("out").len();
        for line in [
            format!("Compressed bundle format version: {version}"),
            format!("Total file size (including headers): {size} bytes"),
            "Compression method used: zstd".to_owned(),
            "Compression level: 3".to_owned(),
        ] {
            assert!(
                done.err.lines().any(|found| found == line),
                "{line}\n{}",
                done.err
            );
        }
        let list = folder.done(&["-list", "-type=bc", "-input=out", "-verbose"]);
        for line in [
            format!("Total file size (from header): {size} bytes"),
            "Decompression method: zstd".to_owned(),
            "Hashes match: Yes".to_owned(),
        ] {
            assert!(
                list.err.lines().any(|found| found == line),
                "{line}\n{}",
                list.err
            );
        }
        assert_eq!(list.out.lines().count(), 3);
        folder.check_three("bc", "out");
    }
    let done = folder.done(&[&bundle[..], &["-compress", "-compression-level=9"]].concat());
    assert!(
        done.err.contains("\nCompression level: 9\n"),
        "{}",
        done.err
    );
}

/// 73.
#[test]
fn compresses_when_a_variable_says_so() {
    let mut folder = Bundler::new();
    folder.0.variables = vec![
        ("OFFLOAD_BUNDLER_COMPRESS", "1"),
        ("OFFLOAD_BUNDLER_VERBOSE", "1"),
    ];
    let targets = three();
    let bundle = [
        "-type=bc",
        "-targets",
        &targets,
        "-input=host",
        "-input=d1",
        "-input=d2",
        "-output=out",
    ];
    let zlib = [&bundle[..], &["--compression-method=zlib"]].concat();
    let done = folder.done(&zlib);
    assert!(
        done.err
            .contains("Compression method used: zlib\nCompression level: 6\n"),
        "{}",
        done.err
    );
    folder.check_three("bc", "out");
    let done = folder.done(&[&zlib[..], &["-compression-level", "9"]].concat());
    assert!(
        done.err.contains("\nCompression level: 9\n"),
        "{}",
        done.err
    );
    folder.check_three("bc", "out");
    folder
        .0
        .variables
        .push(("OFFLOAD_BUNDLER_IGNORE_ENV_VAR", "1"));
    assert_eq!(folder.done(&bundle).err, "");
    assert!(folder.read("out").starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
}

/// 74: the concatenation shows what each shows; also plain, mixed, and with zeros between.
#[test]
fn walks_bundles_that_follow_each_other() {
    let folder = Bundler::new();
    let sets = [format!("{HOST},{GFX906}"), format!("{HOST},{GFX908}")];
    for (first, second) in [("1", "1"), ("0", "0"), ("0", "1"), ("1", "0")] {
        let mut all = Vec::new();
        let mut ids = Vec::new();
        for (targets, (input, compress)) in sets.iter().zip([("d1", first), ("d2", second)]) {
            let compress = format!("-compress={compress}");
            folder.done(&[
                "-type=o",
                "-targets",
                targets,
                "-input=host",
                "-input",
                input,
                "-output=one",
                &compress,
            ]);
            let bytes = folder.read("one");
            ids.extend(folder.ids("o", "one"));
            all.extend(&bytes);
            all.resize(all.len().next_multiple_of(4096), 0);
        }
        folder.write("all", &all);
        assert_eq!(folder.ids("o", "all"), ids);
        assert_eq!(ids.len(), 4);
        folder.done(&folder.unbundle("o", &format!("{GFX908},{GFX906}"), "all", &["x", "y"]));
        assert_eq!(
            (folder.read("x"), folder.read("y")),
            (folder.read("d2"), folder.read("d1"))
        );
        let second = folder
            .done(&["-list", "-type=o", "-input=all", "--bundle=1"])
            .out;
        assert_eq!(second, format!("{}-\n{GFX908}\n", HOST));
        let none = folder.error(&["-list", "-type=o", "-input=all", "--bundle=2"]);
        assert_eq!(
            none,
            "all: the input has no bundle 2; it has 2 bundles, counted from 0"
        );
    }
}

/// For targets that the input does not have, the host gets the input.
#[test]
fn gives_the_host_two_compressed_bundles_as_they_are() {
    let folder = Bundler::new();
    let one = [
        "-type=bc",
        "-targets",
        GFX906,
        "-input=d1",
        "-output=one",
        "-compress",
    ];
    folder.done(&one);
    let both = [folder.read("one"), folder.read("one")].concat();
    folder.write("both", &both);
    let mut unbundle = folder
        .unbundle("bc", &three(), "both", &["h", "x", "y"])
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    unbundle.push("-allow-missing-bundles".to_owned());
    let unbundle: Vec<&str> = unbundle.iter().map(String::as_str).collect();
    folder.done(&unbundle);
    assert!(folder.read("h") == both);
}

/// 75: `docs/spec/bundler.md` §7.5, the vector whose data contains the magic.
#[test]
fn is_not_misled_by_a_magic_in_compressed_data() {
    let hex = "43434f4203000100c100000000000000ac00000000000000f42b60c99d30fa7a502a4d180400000043434f4228b52ffd20ac650400a2071d21508d1e50c4442b\
        fa0611e52c29b2ff524284c9881f66021caa1835a518cb2beb29820393939d4c46962225362fab5e567f19f7b8f73ca2a31914d7a4dd10553fa29204ea89ad4c\
        e0015fda7ada97f576eaafdc8fbcd588e62d717545ddca050eb08501ee0cf81cc8c29f8bb069a2371c0719f70900bb002a018181c1c000e38181c1c06060073006";
    let bytes: Vec<u8> = (0..hex.len() / 2)
        .map(|index| u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap())
        .collect();
    let folder = Bundler::new();
    folder.write("out", &bytes);
    assert_eq!(folder.ids("o", "out"), [&format!("{HOST}-"), GFX906]);
    folder.done(&folder.unbundle("o", &format!("{GFX906},{HOST}"), "out", &["x", "h"]));
    assert_eq!(folder.read("x"), b"Content of device file 1\n");
    assert_eq!(folder.read("h"), b"HOSTDATA");
}

/// An object of the machine's compiler, whose assembler lays it out in its own way, and one of
/// clang, which comes back to the byte.
fn host_object(folder: &Bundler) -> bool {
    folder.write(
        "host.c",
        b"int answer(void) { return 42; }\nint main(void) { return answer() - 42; }\n",
    );
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return false;
    };
    run(Command::new(clang)
        .current_dir(folder.root())
        .args(["-c", "-o", "host.o", "host.c"]));
    true
}

/// 36: nothing is run, and nothing written.
#[test]
fn prints_what_llvm_would_run_for_an_object() {
    let folder = Bundler::new();
    if !host_object(&folder) {
        return;
    }
    let targets = three();
    let args = [
        "-type=o",
        "-targets",
        &targets,
        "-input=host.o",
        "-input=d1",
        "-input=d2",
        "-output=fat.o",
        "-###",
    ];
    let line = folder.done(&args).err;
    let section = |id: &str, file: &str| {
        format!(
            "\"--add-section=__CLANG_OFFLOAD_BUNDLE__{id}-={file}\" \
             \"--set-section-flags=__CLANG_OFFLOAD_BUNDLE__{id}-=readonly,exclude\" "
        )
    };
    let (program, rest) = line.split_once("\" \"").unwrap();
    assert!(
        program.starts_with('"') && program.ends_with("llvm-objcopy"),
        "{line}"
    );
    let (placeholder, rest) = rest.split_once("\" ").unwrap();
    assert!(
        placeholder.contains(&format!("{HOST}-=")) && placeholder.ends_with(".tmp"),
        "{line}"
    );
    let (_, rest) = rest.split_once("readonly,exclude\" ").unwrap();
    let expected = section(PPC, "d1") + &section(X86, "d2") + "\"--\" \"host.o\" \"fat.o\"\n";
    assert_eq!(rest, expected);
    assert!(!folder.exists("fat.o"));
}

/// 37 to 40, and that the fat object is linked as it is.
#[test]
fn bundles_into_the_hosts_object() {
    let folder = Bundler::new();
    if !host_object(&folder) {
        return;
    }
    let three_ids = [HOST, PPC, X86].map(|id| format!("{id}-"));
    folder.bundle("o", &three(), &["host.o", "d1", "d2"], "fat.o");
    assert_eq!(folder.ids("o", "fat.o"), three_ids);
    let permuted = format!("{X86},{HOST},{PPC}");
    folder.done(&folder.unbundle("o", &permuted, "fat.o", &["x2", "xh", "x1"]));
    for (output, source) in [("x2", "d2"), ("xh", "host.o"), ("x1", "d1")] {
        assert!(folder.read(output) == folder.read(source), "{output}");
    }
    folder.done(&folder.unbundle("o", PPC, "fat.o", &["alone"]));
    assert_eq!(folder.read("alone"), folder.read("d1"));
    // 40.
    assert_eq!(folder.ids("o", "host.o"), [""; 0]);
    let mut args = folder.unbundle("o", &permuted, "host.o", &["y2", "yh", "y1"]);
    args.push("-allow-missing-bundles");
    folder.done(&args);
    assert!(folder.read("yh") == folder.read("host.o"));
    assert_eq!(
        (folder.read("y1"), folder.read("y2")),
        (Vec::new(), Vec::new())
    );
    // In place, which destroys the object with LLVM's tool.
    folder.bundle("o", &three(), &["fat.o", "d2", "d1"], "fat.o");
    assert_eq!(
        folder.ids("o", "fat.o"),
        [three_ids.clone(), three_ids].concat()
    );
    if program("cc").is_some() {
        let here = folder.root();
        run(Command::new("cc")
            .current_dir(here)
            .args(["-o", "program", "fat.o"]));
        run(Command::new("./program").current_dir(here));
        let sections = run(Command::new("readelf")
            .current_dir(here)
            .args(["-SW", "program"]));
        assert!(!sections.contains("OFFLOAD_BUNDLE"), "{sections}");
    }
}

/// ROCm's users bundle code objects alone, and LLVM's tool crashes.
#[test]
fn makes_a_binary_bundle_of_objects_without_a_host() {
    let folder = Bundler::new();
    if !host_object(&folder) {
        return;
    }
    folder.bundle(
        "o",
        &format!("{GFX906},{GFX908}"),
        &["host.o", "host.o"],
        "out",
    );
    assert!(folder.read("out").starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
    assert_eq!(folder.ids("o", "out"), [GFX906, GFX908]);
}

/// The names of an archive's members.
fn members(folder: &Bundler, archive: &str) -> Vec<String> {
    let list = run(Command::new("ar").arg("t").arg(folder.path(archive)));
    list.lines().map(str::to_owned).collect()
}

fn archive(folder: &Bundler, name: &str, files: &[&str]) {
    run(Command::new("ar")
        .current_dir(folder.root())
        .arg("rcsD")
        .arg(name)
        .args(files));
}

/// 46, 49 to 53, 55, 72.
#[test]
fn unbundles_archives() {
    if program("ar").is_none() {
        return;
    }
    let folder = Bundler::new();
    // 46, 72.
    for compress in ["-compress=0", "-compress=1"] {
        for (name, first, second) in [("one.bc", "d1", "d2"), ("two.bc", "d2", "d1")] {
            let targets = format!("{HOST},{GFX906},{GFX908}");
            folder.done(&[
                "-type=bc",
                "-targets",
                &targets,
                "-input=host",
                "-input",
                first,
                "-input",
                second,
                "-output",
                name,
                compress,
            ]);
        }
        let _ = fs::remove_file(folder.path("lib.a"));
        archive(&folder, "lib.a", &["one.bc", "two.bc"]);
        let before = folder.read("lib.a");
        let targets = format!("{GFX906},{GFX908}");
        folder.done(&folder.unbundle("a", &targets, "lib.a", &["gfx906.a", "gfx908.a"]));
        assert_eq!(
            members(&folder, "gfx906.a"),
            ["one", "two"].map(|name| format!("{name}-{GFX906}{name}.bc"))
        );
        assert_eq!(
            members(&folder, "gfx908.a"),
            ["one", "two"].map(|name| format!("{name}-{GFX908}{name}.bc"))
        );
        let print = Command::new("ar")
            .arg("p")
            .arg(folder.path("gfx908.a"))
            .output()
            .unwrap();
        assert_eq!(
            print.stdout,
            [folder.read("d2"), folder.read("d1")].concat()
        );
        assert!(folder.read("lib.a") == before);
        // Beyond LLVM: what is in it.
        let host = format!("{HOST}-");
        assert_eq!(
            folder.ids("a", "lib.a"),
            [&host, GFX906, GFX908, &host, GFX906, GFX908]
        );
    }
    // 49 to 53.
    let targets =
        format!("{HOST},openmp-amdgcn-amd-amdhsa--gfx906,openmp-amdgcn-amd-amdhsa--gfx908");
    folder.bundle("bc", &targets, &["host", "d1", "d2"], "simple.bc");
    archive(&folder, "mixed.a", &["simple.bc"]);
    let openmp = "openmp-amdgcn-amd-amdhsa--gfx906";
    let expected = [format!("simple-{openmp}simple.bc")];
    for target in [openmp.to_owned(), format!("{openmp}:xnack+")] {
        folder.done(&folder.unbundle("a", &target, "mixed.a", &["x.a"]));
        assert_eq!(members(&folder, "x.a"), expected);
    }
    for kind in ["hip", "hipv4"] {
        let target = format!("{kind}-amdgcn-amd-amdhsa--gfx906");
        let mut args = folder.unbundle("a", &target, "mixed.a", &["y.a"]);
        assert_eq!(
            folder.error(&args),
            format!(
                "no compatible code object found for the target '{target}' in heterogeneous archive library: mixed.a"
            )
        );
        args.push("-allow-missing-bundles");
        folder.done(&args);
        assert_eq!(folder.read("y.a"), b"!<arch>\n");
        args.push("-hip-openmp-compatible");
        folder.done(&args);
        assert_eq!(members(&folder, "y.a"), expected);
    }
    let hip = folder.unbundle("a", openmp, "lib.a", &["z.a"]);
    folder.error(&hip);
    folder.done(&[&hip[..], &["-hip-openmp-compatible"]].concat());
    assert_eq!(members(&folder, "z.a").len(), 2);
    // 55: across kinds.
    let conflicting = format!("{GFX906},hipv4-amdgcn-amd-amdhsa--gfx906:xnack+");
    folder.bundle("bc", &conflicting, &["d1", "d2"], "conflict.bundle");
    archive(&folder, "conflict.a", &["conflict.bundle"]);
    let mut args = folder.unbundle("a", GFX906, "conflict.a", &["c.a"]);
    args.push("-check-input-archive");
    assert_eq!(
        folder.error(&args),
        format!(
            "conflicting TargetIDs [{GFX906}, hipv4-amdgcn-amd-amdhsa--gfx906:xnack+] found in conflict.bundle of conflict.a"
        )
    );
    assert!(!folder.exists("c.a"));
}

/// 47, 54: objects with bundles; what is no GPU's keeps its extension.
#[test]
fn unbundles_archives_of_objects() {
    let folder = Bundler::new();
    if !host_object(&folder) || program("ar").is_none() {
        return;
    }
    let targets = format!("{HOST},{X86}");
    folder.bundle("o", &targets, &["host.o", "d1"], "one.obj");
    folder.bundle("o", &targets, &["host.o", "d2"], "two.obj");
    archive(&folder, "lib.a", &["one.obj", "host.c", "two.obj"]);
    let before = folder.read("lib.a");
    let done = folder.done(&folder.unbundle("a", &targets, "lib.a", &["h.a", "x.a"]));
    assert_eq!(done.err, "");
    assert_eq!(
        members(&folder, "x.a"),
        ["one", "two"].map(|name| format!("{name}-{X86}-{name}.obj"))
    );
    let print = Command::new("ar")
        .arg("p")
        .arg(folder.path("h.a"))
        .output()
        .unwrap();
    assert!(print.stdout == [folder.read("host.o"), folder.read("host.o")].concat());
    assert!(folder.read("lib.a") == before);
    // The index lists what the host's objects define, without a call of ranlib.
    let index = run(Command::new("nm")
        .arg("--print-armap")
        .arg(folder.path("h.a")));
    assert!(index.contains("answer in one-host-"), "{index}");
}

/// The members of a thin archive are files beside it; one that is missing is named.
#[test]
fn unbundles_thin_archives() {
    if program("ar").is_none() {
        return;
    }
    let folder = Bundler::new();
    fs::create_dir(folder.path("sub")).unwrap();
    folder.bundle(
        "bc",
        &format!("{HOST},{GFX906}"),
        &["host", "d1"],
        "sub/one.bc",
    );
    let here = folder.root();
    run(Command::new("ar")
        .current_dir(here)
        .args(["rcsTD", "sub/thin.a", "sub/one.bc"]));
    folder.done(&folder.unbundle("a", GFX906, "sub/thin.a", &["x.a"]));
    assert_eq!(members(&folder, "x.a"), [format!("one-{GFX906}one.bc")]);
    fs::remove_file(folder.path("sub/one.bc")).unwrap();
    let error = folder.error(&folder.unbundle("a", GFX906, "sub/thin.a", &["y.a"]));
    assert_eq!(error, "'sub/one.bc': No such file or directory");
}

/// Hosts that cannot be written are refused by name, and nothing is left.
#[test]
fn refuses_hosts_of_other_formats() {
    let folder = Bundler::new();
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return;
    };
    folder.write("host.c", b"int answer(void) { return 42; }\n");
    for (target, format) in [
        ("x86_64-apple-macosx11.0.0", "Mach-O"),
        ("wasm32-unknown-unknown", "WebAssembly"),
    ] {
        run(Command::new(&clang)
            .current_dir(folder.root())
            .arg(format!("--target={target}"))
            .args(["-c", "-o", "host.o", "host.c"]));
        let targets = format!("{HOST},{GFX906}");
        let error = folder.error(&[
            "-type=o",
            "-targets",
            &targets,
            "-input=host.o",
            "-input=d1",
            "-output=out",
        ]);
        assert!(
            error.starts_with("host.o: ") && error.contains(format),
            "{error}"
        );
        assert!(!folder.exists("out"));
    }
}

/// 48.
#[test]
fn refuses_what_is_no_archive() {
    let folder = Bundler::new();
    let mut args = folder.unbundle("a", GFX906, "host", &["x.a"]);
    assert_eq!(folder.error(&args), "file too small to be an archive");
    args.push("-allow-missing-bundles");
    assert_eq!(folder.error(&args), "file too small to be an archive");
    assert!(!folder.exists("x.a"));
}

/// `docs/spec/bundler.md` §2.4: damage is an error that names the file, the entry and the offset, and leaves nothing.
#[test]
fn refuses_damaged_bundles() {
    let folder = Bundler::new();
    folder.bundle("bc", &format!("{GFX906},{GFX908}"), &["d1", "d2"], "out");
    let bytes = folder.read("out");
    let with = |place: usize, number: u64| {
        let mut bytes = bytes.clone();
        bytes[place..place + 8].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    // Number of entries, then offset, size and length of the ID of the first.
    for (bytes, part) in [
        (bytes[..24].to_vec(), "header"),
        (bytes[..31].to_vec(), "header"),
        (bytes[..60].to_vec(), "entry 0"),
        (bytes[..bytes.len() - 1].to_vec(), "entry 1"),
        (with(24, 3), "entry 2"),
        (with(24, 1 << 63), "entry 2"),
        (with(32, 0), "entry 0"),
        (with(32, u64::MAX - 10), "entry 0"),
        (with(40, u64::MAX), "entry 0"),
        (with(48, u64::MAX - 20), "entry 0"),
    ] {
        folder.write("bad", &bytes);
        for args in [
            &["-list", "-type=bc", "-input=bad"][..],
            &folder.unbundle("bc", GFX906, "bad", &["x"]),
        ] {
            let error = folder.error(args);
            assert!(
                error.starts_with("bad: ") && error.contains(part),
                "{error}"
            );
        }
        assert!(!folder.exists("x"));
    }
    // Not a bundle at all, as for LLVM.
    for bytes in [&bytes[..23], &[b"x", &bytes[..]].concat(), b""] {
        folder.write("bad", bytes);
        assert_eq!(folder.ids("bc", "bad"), [""; 0]);
    }
}

/// A program with three bundles in `.hip_fatbin`, as a linker makes it of two objects: two plain
/// ones behind each other in the first, a compressed one in the second.
fn program_with_bundles(folder: &Bundler) -> Option<PathBuf> {
    program("cc")?;
    for (name, target, input, compress) in [
        ("b0", GFX906, "d1", "-compress=0"),
        ("b1", GFX908, "d2", "-compress=0"),
        (
            "b2",
            "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+",
            "host",
            "-compress",
        ),
    ] {
        let targets = format!("{HOST},{target}");
        folder.write("empty", b"");
        folder.done(&[
            "-type=o",
            "-bundle-align=4096",
            "-targets",
            &targets,
            "-input=empty",
            "-input",
            input,
            "-output",
            name,
            compress,
        ]);
    }
    let embed = |name: &str, bundles: &[&str]| {
        let lines: String = bundles
            .iter()
            .map(|bundle| format!(".incbin \"{bundle}\"\n.balign 4096\n"))
            .collect();
        format!(
            ".section .hip_fatbin,\"a\",@progbits\n.balign 4096\n{lines}.globl {name}\n{name}:\n"
        )
    };
    folder.write("one.s", embed("one", &["b0", "b1"]).as_bytes());
    folder.write("two.s", embed("two", &["b2"]).as_bytes());
    folder.write(
        "main.c",
        b"extern char one, two; int main(void) { return &one == &two; }\n",
    );
    run(Command::new("cc")
        .current_dir(folder.root())
        .args(["-o", "program", "main.c", "one.s", "two.s"]));
    Some(folder.path("program"))
}

#[test]
fn finds_the_bundles_of_a_program() {
    let folder = Bundler::new();
    if program_with_bundles(&folder).is_none() {
        return;
    }
    let gfx90a = "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+";
    let host = format!("{HOST}-");
    for file_type in ["o", "bc"] {
        assert_eq!(
            folder.ids(file_type, "program"),
            [&host, GFX906, &host, GFX908, &host, gfx90a]
        );
        let targets = format!("{gfx90a},{GFX908}");
        folder.done(&folder.unbundle(file_type, &targets, "program", &["x", "y"]));
        assert_eq!(
            (folder.read("x"), folder.read("y")),
            (folder.read("host"), folder.read("d2"))
        );
    }
    // By index, and by processor.
    let list = |more: &[&str]| {
        folder
            .done(&[&["-list", "-type=o", "-input=program"][..], more].concat())
            .out
    };
    assert_eq!(list(&["--bundle=1"]), format!("{host}\n{GFX908}\n"));
    assert_eq!(list(&["--filter=gfx90a"]), format!("{gfx90a}\n"));
    assert_eq!(list(&["--filter=gfx90a:xnack-"]), "");
    assert_eq!(
        list(&["--filter=gfx908,gfx906"]),
        format!("{GFX906}\n{GFX908}\n")
    );
    // All of it, each in a file.
    let done = folder.done(&[
        "--extract-all=all",
        "-type=o",
        "-input=program",
        "--filter=gfx906,gfx90a",
    ]);
    let expected = [
        ("all/program.0.hip-amdgcn-amd-amdhsa--gfx906", "d1"),
        (
            "all/program.2.hipv4-amdgcn-amd-amdhsa--gfx90a_xnack+",
            "host",
        ),
    ];
    assert_eq!(
        done.out,
        expected.map(|(name, _)| format!("{name}\n")).concat()
    );
    for (name, source) in expected {
        assert_eq!(folder.read(name), folder.read(source));
    }
}

#[test]
fn lists_sizes_and_offsets() {
    let folder = Bundler::new();
    let targets = format!("{HOST},{GFX906}");
    let bundle = [
        "-type=bc",
        "-targets",
        &targets,
        "-input=host",
        "-input=d1",
        "-output",
    ];
    folder.done(&[&bundle[..], &["plain", "-bundle-align=64"]].concat());
    folder.done(&[&bundle[..], &["packed", "-compress", "-bundle-align=64"]].concat());
    let mut all = folder.read("plain");
    let (plain, packed) = (all.len(), folder.read("packed").len());
    all.extend(folder.read("packed"));
    all.extend(b"rest");
    folder.write("all", &all);
    let long = folder.done(&["--list=long", "-type=bc", "-input=all"]).out;
    assert_eq!(
        long,
        format!(
            "bundle 0: binary, offset 0x0, size {plain}\n  \
             0xc0  12  host-x86_64-unknown-linux-gnu-\n  \
             0x100  25  hip-amdgcn-amd-amdhsa--gfx906\n\
             bundle 1: binary, offset {plain:#x}, size {packed}, compressed (version 3, zstd) from {plain}; \
             offsets below are in the uncompressed bundle\n  \
             0xc0  12  host-x86_64-unknown-linux-gnu-\n  \
             0x100  25  hip-amdgcn-amd-amdhsa--gfx906\n\
             4 bytes after the bundles are not a bundle\n"
        )
        .replace("  0xc0", "   0xc0")
    );
    let warning = "all: 4 bytes after the bundles are not a bundle";
    let target = "-targets=hip-amdgcn-amd-amdhsa--gfx906";
    let unbundle = ["-unbundle", "-type=bc", "-input=all", target, "-output=one"];
    let extract = ["--extract-all=images", "-type=bc", "-input=all"];
    for arguments in [
        &["-list", "-type=bc", "-input=all"][..],
        &unbundle,
        &extract,
    ] {
        let done = folder.done(arguments);
        assert!(done.err.contains(warning), "{arguments:?}: {}", done.err);
    }
    let json = folder.done(&["--list=json", "-type=bc", "-input=all"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["left"]), (&1.into(), &4.into()));
    assert_eq!(json["bundles"][0]["compression"], serde_json::Value::Null);
    let second = &json["bundles"][1];
    assert_eq!(second["compression"]["version"], 3);
    assert_eq!(second["compression"]["uncompressed_size"], plain);
    let entry = &second["entries"][1];
    assert_eq!(
        (&entry["offset"], &entry["size"]),
        (&0x100.into(), &25.into())
    );
    assert_eq!(
        (&entry["kind"], &entry["target_id"]),
        (&"hip".into(), &"gfx906".into())
    );
    assert_eq!(
        folder.done(&["--list=long", "-type=bc", "-input=d1"]).out,
        "no bundles\n"
    );
}

#[test]
fn keeps_processors_that_nobody_knows_apart() {
    let folder = Bundler::new();
    let ids = [
        "hip-amdgcn-amd-amdhsa--gfx1999",
        "hip-amdgcn-amd-amdhsa--gfx1998",
    ];
    let done = folder.done(&[
        "-type=bc",
        "-targets",
        &ids.join(","),
        "-input=d1",
        "-input=d2",
        "-output=out",
    ]);
    assert_eq!(
        done.err
            .matches("is unknown; it is kept as written")
            .count(),
        2,
        "{}",
        done.err
    );
    assert_eq!(folder.ids("bc", "out"), ids);
    folder.done(&folder.unbundle("bc", ids[1], "out", &["x"]));
    assert_eq!(folder.read("x"), folder.read("d2"));
    let error =
        folder.error(&folder.unbundle("bc", "hip-amdgcn-amd-amdhsa--gfx1997", "out", &["y"]));
    assert_eq!(
        error,
        "Can't find bundles for hip-amdgcn-amd-amdhsa--gfx1997"
    );
    // What is written the same cannot be told apart.
    let same = format!("{GFX906},hip-amdgcn-amd-amdhsa-unknown-gfx906");
    let error = folder.error(&[
        "-type=bc",
        "-targets",
        &same,
        "-input=d1",
        "-input=d2",
        "-output=out2",
    ]);
    assert_eq!(error, "Duplicate targets are not allowed");
}

#[test]
fn writes_an_output_that_is_also_an_input() {
    let folder = Bundler::new();
    let targets = format!("{HOST},{GFX906}");
    let expected = folder.read("d1");
    folder.done(&[
        "-type=o",
        "-targets",
        &targets,
        "-input=/dev/null",
        "-input=d1",
        "-output=d1",
        "-compress",
    ]);
    folder.done(&folder.unbundle("o", GFX906, "d1", &["d1"]));
    assert_eq!(folder.read("d1"), expected);
}

#[test]
fn touches_nothing_when_it_fails() {
    let folder = Bundler::new();
    folder.bundle("bc", &format!("{HOST},{GFX906}"), &["host", "d1"], "out");
    folder.write("x", b"old");
    let targets = format!("{GFX906},{GFX908}");
    folder.error(&folder.unbundle("bc", &targets, "out", &["x", "y"]));
    assert_eq!(folder.read("x"), b"old");
    // A damaged bundle: found when it is decompressed, after the first bytes of an output.
    folder.done(&[
        "-type=bc",
        "-compress",
        "-targets",
        GFX906,
        "-input=d1",
        "-output=out",
    ]);
    let mut bytes = folder.read("out");
    bytes[24] ^= 1;
    folder.write("out", &bytes);
    let error = folder.error(&folder.unbundle("bc", GFX906, "out", &["x"]));
    assert!(
        error.starts_with("Failed to decompress input: out: "),
        "{error}"
    );
    assert_eq!(folder.read("x"), b"old");
    let names = fs::read_dir(folder.root()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [NAME, "d1", "d2", "host", "out", "x"]);
}

#[test]
fn keeps_modes_links_and_devices() {
    let folder = Bundler::new();
    let mode = |name: &str| {
        fs::metadata(folder.path(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    folder.write("out", b"");
    fs::set_permissions(folder.path("out"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("out", folder.path("link")).unwrap();
    folder.bundle("bc", GFX906, &["d1"], "link");
    assert!(
        fs::symlink_metadata(folder.path("link"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(mode("out"), 0o640);
    assert_eq!(folder.ids("bc", "out"), [GFX906]);
    // A new file has what the system gives new files.
    folder.bundle("bc", GFX906, &["d1"], "new");
    folder.write("other", b"");
    assert_eq!(mode("new"), mode("other"));
    folder.bundle("bc", GFX906, &["d1"], "/dev/null");
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    // A pipe is opened once: a second time its reader would be gone.
    if program("mkfifo").is_some() {
        run(Command::new("mkfifo").arg(folder.path("pipe")));
        let pipe = folder.path("pipe");
        let reader = std::thread::spawn(move || fs::read(pipe).unwrap());
        folder.bundle("bc", GFX906, &["d1"], "pipe");
        assert!(reader.join().unwrap() == folder.read("new"));
    }
    fs::create_dir(folder.path("folder")).unwrap();
    for (output, message) in [
        ("folder", "'folder': Is a directory"),
        ("none/out", "'none/out': No such file or directory"),
    ] {
        let args = [
            "-type=bc",
            "-targets",
            GFX906,
            "-input=d1",
            "-output",
            output,
        ];
        assert_eq!(folder.error(&args), message);
    }
}

#[test]
fn reads_and_writes_standard_streams() {
    let folder = Bundler::new();
    let feed = |args: &[&str], input: &str| -> Vec<u8> {
        let output = Command::new(&folder.tool)
            .args(args)
            .current_dir(folder.root())
            .stdin(fs::File::open(folder.path(input)).unwrap())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    };
    for compress in ["-compress=0", "-compress=1"] {
        let bundled = feed(
            &[
                "-type=bc",
                "-targets",
                GFX906,
                "-input=-",
                "-output=-",
                compress,
            ],
            "d1",
        );
        folder.write("out", &bundled);
        assert_eq!(
            feed(&["-type=bc", "-list", "-input=-"], "out"),
            format!("{GFX906}\n").into_bytes()
        );
        let args = [
            "-type=bc",
            "-unbundle",
            "-targets",
            GFX906,
            "-input=-",
            "-output=-",
        ];
        assert_eq!(feed(&args, "out"), folder.read("d1"));
    }
}

#[test]
fn refuses_a_bundle_that_claims_more_than_the_limit() {
    let folder = Bundler::new();
    folder.done(&[
        "-type=bc",
        "-compress",
        "-targets",
        GFX906,
        "-input=d1",
        "-output=out",
    ]);
    let list = |limit: &str| {
        [
            "-list",
            "-type=bc",
            "-input=out",
            "--max-decompressed-size",
            limit,
        ]
        .map(str::to_owned)
    };
    let args = list("10");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    assert!(folder.error(&args).contains("more than the allowed 0xa"));
    let args = list("4k");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    folder.done(&args);
}

/// LLVM gives it to whichever comes first in the order of its hash table, and calls the other
/// one missing.
#[test]
fn gives_an_image_to_every_target_that_it_serves() {
    let folder = Bundler::new();
    folder.bundle("bc", GFX906, &["d1"], "out");
    let targets = format!("{GFX906}:xnack-,{GFX906}:xnack+");
    folder.done(&folder.unbundle("bc", &targets, "out", &["m", "p"]));
    assert_eq!(
        (folder.read("m"), folder.read("p")),
        (folder.read("d1"), folder.read("d1"))
    );
    if let Some(theirs) = tool("llvm22", &[NAME]) {
        let args = folder.unbundle("bc", &targets, "out", &["m2", "p2"]);
        let status = Command::new(theirs)
            .args(args)
            .current_dir(folder.root())
            .status();
        assert!(!status.unwrap().success());
    }
    // What is written for the target itself comes before what serves it.
    let both = format!("hipv4-amdgcn-amd-amdhsa--gfx906,{GFX906}");
    folder.bundle("bc", &both, &["d2", "d1"], "out");
    folder.done(&folder.unbundle("bc", GFX906, "out", &["x"]));
    assert_eq!(folder.read("x"), folder.read("d1"));
}

/// Two bundles, one after the other, in `in`; they are of `d1` and `d2`.
fn two_bundles(folder: &ToolFolder) {
    folder.write("d1", b"first");
    folder.write("d2", b"second");
    for name in ["d1", "d2"] {
        let (input, output) = (format!("-input={name}"), format!("-output={name}.bc"));
        folder.done(&["-type=bc", "-targets", GFX906, &input, &output]);
    }
    let both = [folder.read("d1.bc"), folder.read("d2.bc")].concat();
    folder.write("in", &both);
}

#[test]
fn keeps_the_number_of_a_bundle_that_is_chosen() {
    let folder = Bundler::new();
    two_bundles(&folder);
    for (bundle, content) in [("0", "d1"), ("1", "d2")] {
        let args = ["-type=bc", "-input=in", "--bundle", bundle];
        folder.done(&[&args[..], &["--extract-all=all"]].concat());
        let json = folder.done(&[&args[..], &["--list=json"]].concat()).out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["bundles"][0]["index"].to_string(), bundle);
        let long = folder.done(&[&args[..], &["--list=long"]].concat()).out;
        assert!(long.starts_with(&format!("bundle {bundle}: ")), "{long}");
        let file = format!("all/in.{bundle}.{GFX906}");
        assert_eq!(folder.read(&file), folder.read(content));
    }
    assert_eq!(folder.read(format!("all/in.0.{GFX906}")), b"first");
}

#[test]
fn takes_files_and_finds_their_type_under_its_own_name() {
    let own = ToolFolder::with_tool(env!("CARGO_BIN_EXE_offload-bundler"), "offload-bundler");
    two_bundles(&own);
    // What each file has is listed as with its type.
    own.write("text", b"nop\n");
    let make = |file_type: &str, output: &str, input: &str| {
        let (file_type, input) = (format!("-type={file_type}"), format!("-input={input}"));
        let output = format!("-output={output}");
        own.done(&[&file_type, "-targets", GFX906, &input, &output]);
    };
    make("ll", "k.ll", "text");
    make("s", "k.asm", "text");
    own.done(&[
        "-type=ll",
        "-compress",
        "-targets",
        GFX906,
        "-input=text",
        "-output=packed",
    ]);
    let mut archive = b"!<arch>\n".to_vec();
    let member = own.read("d1.bc");
    archive.extend(format!("{:<48}{:<10}`\n", "d1.bc/", member.len()).bytes());
    archive.extend(member);
    own.write("lib.a", &archive);
    let object = include_bytes!("../golden/22.1.8/elf64le.o");
    own.write("host.o", object);
    for (file, file_type) in [
        ("in", "bc"),
        ("k.ll", "ll"),
        ("k.asm", "s"),
        ("packed", "ll"),
        ("lib.a", "a"),
        ("host.o", "o"),
    ] {
        let (given, input) = (format!("-type={file_type}"), format!("-input={file}"));
        for listing in ["--list", "--list=long", "--list=json"] {
            let expected = own.done(&[&given, &input, listing]).out;
            assert_eq!(own.done(&[listing, file]).out, expected, "{file}");
            assert_eq!(own.done(&[file, listing]).out, expected, "{file}");
        }
        let long = own.done(&[&given, &input, "--list=long"]).out;
        assert_eq!(own.done(&[file]).out, long, "{file}");
    }
    // Also to unbundle and to bundle.
    own.done(&["-unbundle", "-targets", GFX906, "k.ll", "-output=out"]);
    assert_eq!(own.read("out"), own.read("text"));
    own.done(&["-targets", GFX906, "text", "-output=again.ll"]);
    assert_eq!(own.read("again.ll"), own.read("k.ll"));
    let said = own.error(&["-targets", GFX906, "text", "-output=again"]);
    assert_eq!(said, "the type of the files cannot be detected");
    let help = own.done(&["--help"]).out;
    for text in [
        "USAGE: offload-bundler [options] [<input file>...]",
        "--type is optional",
        "sizes in decimal",
    ] {
        assert!(help.contains(text), "{help}");
    }
    // LLVM's name has LLVM's rules.
    let llvm = Bundler::new();
    two_bundles(&llvm);
    let done = llvm.run(&["--list", "in"]);
    assert_eq!(done.status, Some(1));
    assert!(
        done.err.contains("Unknown command line argument 'in'"),
        "{}",
        done.err
    );
    assert!(
        done.err
            .contains("for the --type option: must be specified")
    );
}
