use std::path::PathBuf;

use super::super::arguments::{Arguments, Item, Load, Position};
use super::super::family::Family;
use super::*;

fn parse(tool: &str, args: &[&str]) -> Result<Arguments, LinkError> {
    let args = args.iter().map(OsString::from).collect();
    Arguments::parse(args, tool)
}

fn render(arguments: &Arguments) -> Vec<String> {
    let no_file = |_: &[u8]| -> Result<Option<PathBuf>, LinkError> { unreachable!() };
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

/// Spellings of an option in LLVM's tool and in ours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// No value.
    Flag,
    /// `--name=value`; ours also `--name value`.
    Value,
    /// `--name=value` only, because a compiler or linker may have `--name`.
    Equal,
    /// `-name value`, one dash.
    Separate,
    /// `-nvalue` or `-n value`, one dash.
    Letter,
    /// Like [`Shape::Value`], with one or two dashes; an option of the linker.
    Either,
}

/// Receiver of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Wrapper,
    Forwarded,
}

use Class::{Forwarded, Wrapper};

/// The table of `docs/spec/linker-wrapper.md` §1.2: every option of clang-linker-wrapper from 16 to main, with a
/// valid value.
#[rustfmt::skip]
const TABLE: &[(&str, Shape, Class, &str)] = &[
    ("linker-path", Shape::Value, Wrapper, "ld"),
    ("host-triple", Shape::Value, Wrapper, "x86_64-pc-linux-gnu"),
    ("cuda-path", Shape::Value, Wrapper, "/cuda"),
    ("device-linker", Shape::Value, Wrapper, "amdgcn-amd-amdhsa=-x"),
    ("device-compiler", Shape::Value, Wrapper, "-O3"),
    ("should-extract", Shape::Value, Wrapper, "gfx90a,sm_70"),
    ("emit-fatbin-only", Shape::Flag, Wrapper, ""),
    ("embed-bitcode", Shape::Flag, Wrapper, ""),
    ("override-image", Shape::Value, Wrapper, "openmp=x.out"),
    ("compress", Shape::Flag, Wrapper, ""),
    ("compression-level", Shape::Value, Wrapper, "9"),
    ("dry-run", Shape::Flag, Wrapper, ""),
    ("wrapper-verbose", Shape::Flag, Wrapper, ""),
    ("print-wrapped-module", Shape::Flag, Wrapper, ""),
    ("save-temps", Shape::Flag, Wrapper, ""),
    ("wrapper-jobs", Shape::Value, Wrapper, "4"),
    ("wrapper-jobs", Shape::Value, Wrapper, "JobServer"),
    ("wrapper-time-trace", Shape::Value, Wrapper, "t.json"),
    ("wrapper-time-trace-granularity", Shape::Value, Wrapper, "10"),
    ("mllvm", Shape::Separate, Wrapper, "-x"),
    ("offload-opt", Shape::Value, Wrapper, "-x"),
    ("offload-opt", Shape::Value, Wrapper, "x"),
    ("opt-level", Shape::Value, Wrapper, "O3"),
    ("device-debug", Shape::Flag, Wrapper, ""),
    ("ptxas-arg", Shape::Value, Wrapper, "-v"),
    ("clang-backend", Shape::Flag, Wrapper, ""),
    ("builtin-bitcode", Shape::Value, Wrapper, "nvptx64-nvidia-cuda=d.bc"),
    ("bitcode-library", Shape::Value, Wrapper, "openmp-nvptx64-nvidia-cuda-sm_70=d.bc"),
    ("pass-remarks", Shape::Equal, Wrapper, "inline"),
    ("pass-remarks-missed", Shape::Equal, Wrapper, "inline"),
    ("pass-remarks-analysis", Shape::Equal, Wrapper, "inline"),
    ("no-canonical-prefixes", Shape::Flag, Wrapper, ""),
    ("no-lto", Shape::Flag, Wrapper, ""),
    ("arch", Shape::Equal, Forwarded, "sm_70"),
    ("triple", Shape::Equal, Forwarded, "x"),
    ("whole-program", Shape::Flag, Forwarded, ""),
    ("linker-arg", Shape::Equal, Forwarded, "x"),
    ("compiler-arg", Shape::Equal, Forwarded, "x"),
    ("o", Shape::Letter, Forwarded, "f"),
    ("output", Shape::Value, Forwarded, "f"),
    ("L", Shape::Letter, Forwarded, "d"),
    ("library-path", Shape::Either, Forwarded, "d"),
    ("l", Shape::Letter, Forwarded, "n"),
    ("library", Shape::Either, Forwarded, "n"),
    ("sysroot", Shape::Equal, Forwarded, "/"),
    ("rpath", Shape::Either, Forwarded, "d"),
    ("whole-archive", Shape::Flag, Forwarded, ""),
    ("no-whole-archive", Shape::Flag, Forwarded, ""),
    ("r", Shape::Flag, Forwarded, ""),
    ("relocatable", Shape::Flag, Forwarded, ""),
    ("as-needed", Shape::Flag, Forwarded, ""),
    ("no-as-needed", Shape::Flag, Forwarded, ""),
    ("dynamic-linker", Shape::Either, Forwarded, "/lib64/ld.so"),
];

/// Returns every spelling of a row, with one and two dashes if the option accepts both.
fn spellings(name: &str, shape: Shape, value: &str) -> Vec<Vec<String>> {
    let one = |text: String| vec![text];
    let two = |option: String| vec![option, value.to_owned()];
    match shape {
        Shape::Letter => vec![one(format!("-{name}{value}")), two(format!("-{name}"))],
        Shape::Separate => vec![two(format!("-{name}"))],
        _ => ["-", "--"]
            .into_iter()
            // The linker's options that begin with `o` have two.
            .filter(|dashes| name != "output" || dashes.len() == 2)
            .flat_map(|dashes| match shape {
                Shape::Flag => vec![one(format!("{dashes}{name}"))],
                Shape::Equal => vec![one(format!("{dashes}{name}={value}"))],
                _ => vec![
                    one(format!("{dashes}{name}={value}")),
                    two(format!("{dashes}{name}")),
                ],
            })
            .collect(),
    }
}

fn all_spellings() -> impl Iterator<Item = (Vec<String>, Class)> {
    TABLE.iter().flat_map(|(name, shape, class, value)| {
        spellings(name, *shape, value)
            .into_iter()
            .map(|spelled| (spelled, *class))
    })
}

#[test]
fn knows_every_option_of_every_release_in_every_spelling_as_a_linker() {
    let mut count = 0;
    for (spelled, class) in all_spellings() {
        let spelled: Vec<&str> = spelled.iter().map(String::as_str).collect();
        for (tool, first) in [
            ("clang-linker-wrapper", "--linker-path=ld"),
            ("offload-ld", ""),
        ] {
            // Before and after inputs, and at the end of the line.
            let lines: [Vec<&str>; 2] = [
                [&spelled[..], &["a.o", "--b"]].concat(),
                [&["a.o", "--b"], &spelled[..]].concat(),
            ];
            for line in lines {
                let whole: Vec<&str> = std::iter::once(first)
                    .filter(|first| !first.is_empty())
                    .chain(line.iter().copied())
                    .collect();
                let arguments = parse(tool, &whole).unwrap();
                let expected = match class {
                    Wrapper => vec!["a.o", "--b"],
                    Forwarded => line,
                };
                assert_eq!(render(&arguments), expected, "{tool} {whole:?}");
                assert_eq!(
                    files(&arguments),
                    [PathBuf::from("a.o")],
                    "{tool} {whole:?}"
                );
                assert_eq!(arguments.options.answer, None);
                count += 1;
            }
        }
    }
    assert!(count > 300, "{count}");
}

#[test]
fn knows_every_option_of_every_release_among_a_drivers_arguments() {
    for (spelled, class) in all_spellings().filter(|(_, class)| *class == Wrapper) {
        if spelled[0]
            .trim_start_matches('-')
            .starts_with("linker-path")
        {
            continue; // says whose arguments these are
        }
        let words: Vec<&str> = spelled.iter().map(String::as_str).collect();
        // By itself, with two dashes, because with one it may be the driver's.
        if spelled[0].starts_with("--") {
            let line = [&words[..], &["a.o"]].concat();
            let arguments = parse("offload-link", &line).unwrap();
            assert_eq!(arguments.position, Position::Driver);
            assert_eq!(render(&arguments), ["a.o"], "{spelled:?}");
        }
        if spelled[0] == "-mllvm" {
            continue; // for the linker's own LTO: rustc and clang pass it so
        }
        let joined = format!("-Wl,{}", words.join(","));
        if words.iter().all(|word| !word.contains(',')) {
            let arguments = parse("offload-link", &[&joined, "a.o"]).unwrap();
            assert_eq!(render(&arguments), ["a.o"], "{joined}");
            let around = format!("-Wl,-z,now,{},--as-needed", words.join(","));
            let arguments = parse("offload-link", &[&around, "a.o"]).unwrap();
            assert_eq!(
                render(&arguments),
                ["-Wl,-z,now,--as-needed", "a.o"],
                "{around}"
            );
        }
        let xlinker = words.iter().flat_map(|word| ["-Xlinker", word]);
        let line: Vec<&str> = xlinker.chain(["a.o"]).collect();
        let arguments = parse("offload-link", &line).unwrap();
        assert_eq!(render(&arguments), ["a.o"], "{line:?}");
        let joined = words.iter().map(|word| format!("--for-linker={word}"));
        let joined: Vec<String> = joined.chain(["a.o".to_owned()]).collect();
        let line: Vec<&str> = joined.iter().map(String::as_str).collect();
        let arguments = parse("offload-link", &line).unwrap();
        assert_eq!(render(&arguments), ["a.o"], "{line:?}");
        assert!(class == Wrapper);
    }
}

#[test]
fn follows_options_that_a_driver_passes_on() {
    for line in [
        ["-Xlinker", "-r", "a.o"],
        ["--for-linker", "-r", "a.o"],
        ["--for-linker=-r", "-g", "a.o"],
        ["-Wl,-r", "-g", "a.o"],
    ] {
        assert!(
            parse("offload-link", &line).unwrap().relocatable,
            "{line:?}"
        );
    }
}

#[test]
fn has_a_row_for_each_of_its_options_in_the_table_of_the_specification() {
    // Options that LLVM's tool does not have.
    let own = [
        "llvm",
        "report",
        "max-decompressed-size",
        "Werror=dropped-image",
        "Wno-error=dropped-image",
        "print-offload-abi",
        "emit-wrapper",
        "large-images",
    ];
    for name in OWN.iter().flat_map(|row| row.names) {
        let listed = TABLE.iter().any(|(known, ..)| known == name);
        assert!(listed || own.contains(name), "{name}");
    }
}

#[test]
fn takes_each_option_for_what_it_says() {
    let options = |args: &[&str]| {
        let args = [&["--linker-path=/bin/ld"], args].concat();
        parse("clang-linker-wrapper", &args).unwrap().options
    };
    assert_eq!(options(&[]).linker, Some("/bin/ld".into()));
    assert_eq!(options(&["--host-triple=h"]).host_triple, Some("h".into()));
    assert_eq!(options(&["--cuda-path", "/c"]).cuda, Some("/c".into()));
    assert_eq!(
        options(&["--device-linker=t=a", "--device-linker=b"]).device_linker,
        ["t=a", "b"]
    );
    let compiler = options(&[
        "--device-compiler=a",
        "--opt-level=O3",
        "--device-debug",
        "--ptxas-arg=-v",
    ]);
    assert_eq!(
        compiler.device_compiler,
        ["a", "-O3", "-g", "-Xcuda-ptxas", "-v"]
    );
    assert_eq!(
        options(&["--should-extract=a,b", "--should-extract=c"]).should_extract,
        ["a", "b", "c"]
    );
    assert!(options(&["--emit-fatbin-only"]).emit_fatbin_only);
    assert!(options(&["--embed-bitcode"]).embed_bitcode);
    assert_eq!(
        options(&["--override-image=hip=f"]).override_images,
        ["hip=f"]
    );
    let level = options(&["--compress", "--compression-level=-3"]);
    assert_eq!((level.compress, level.compression_level), (true, Some(-3)));
    assert!(options(&["--dry-run"]).dry_run && options(&["--wrapper-verbose"]).verbose);
    assert!(options(&["--print-wrapped-module"]).print_registration);
    assert!(options(&["--emit-wrapper=c"]).wrapper_from_c);
    assert!(options(&["--save-temps"]).save_temps);
    assert_eq!(options(&["--wrapper-jobs=4"]).jobs, Some(Jobs::Count(4)));
    assert_eq!(
        options(&["--wrapper-jobs=JOBSERVER"]).jobs,
        Some(Jobs::Jobserver)
    );
    let trace = options(&[
        "--wrapper-time-trace=t",
        "--wrapper-time-trace-granularity=7",
    ]);
    assert_eq!(
        (trace.time_trace, trace.time_trace_granularity),
        (Some("t".into()), Some(7))
    );
    let llvm = options(&[
        "-mllvm",
        "-a",
        "--offload-opt=-b",
        "-offload-opt=c",
        "--pass-remarks-missed=d",
    ]);
    assert_eq!(llvm.mllvm, ["-a"]);
    let all = ["-a", "-b", "-c", "-pass-remarks-missed=d"];
    assert_eq!(llvm.plugin_options, all);
    assert_eq!(options(&["--builtin-bitcode=t=f"]).builtin_bitcode, ["t=f"]);
    assert_eq!(
        options(&["--bitcode-library=k-t-a=f"]).bitcode_libraries,
        ["k-t-a=f"]
    );
    assert!(
        options(&["--no-lto"]).no_lto
            && options(&["--no-canonical-prefixes"]).no_canonical_prefixes
    );
    assert_eq!(options(&["--llvm=19"]).llvm, Some(LlvmRelease::V19));
    assert_eq!(options(&["--report=json:r"]).report, Some("json:r".into()));
    for (option, is_error) in [
        ("-Werror=dropped-image", true),
        ("-Wno-error=dropped-image", false),
    ] {
        assert_eq!(options(&[option]).dropped_image_is_error, Some(is_error));
        let driver = parse("offload-link", &[option]).unwrap();
        assert_eq!(driver.options.dropped_image_is_error, Some(is_error));
    }
}

#[test]
fn refuses_values_that_mean_nothing() {
    for (args, expected) in [
        // LLVM 22's words.
        (
            &["--wrapper-jobs=0"][..],
            "--wrapper-jobs=0: expected a positive integer or 'jobserver', got '0'",
        ),
        (
            &["--wrapper-jobs=abc"],
            "--wrapper-jobs=abc: expected a positive integer or 'jobserver', got 'abc'",
        ),
        // LLVM 19's words for its separate options.
        (&["-mllvm"], "-mllvm: missing argument"),
        (&["--cuda-path"], "--cuda-path: missing argument"),
        (&["-o"], "-o: missing argument"),
        (&["-L"], "-L: missing argument"),
        (&["-rpath"], "-rpath: missing argument"),
        (
            &["--compression-level=high"],
            "--compression-level=high: expected an integer, got 'high'",
        ),
        (
            &["--wrapper-time-trace-granularity=x"],
            "--wrapper-time-trace-granularity=x: expected microseconds, got 'x'",
        ),
        (
            &["--opt-level=3"],
            "--opt-level: `3` is not a level; expected `O0` to `O3`",
        ),
        (&["--emit-wrapper=ir"], "--emit-wrapper=ir: expected `c`"),
        (
            &["--llvm=18"],
            "--llvm: `18` is not a release of LLVM; expected `19`, `20`, `21`, `22`, `23` or `main`",
        ),
        (
            &["--device-linkr=x"],
            "unknown option `--device-linkr=x`\nhint: did you mean `--device-linker`?",
        ),
        (
            &["-device-debg"],
            "unknown option `-device-debg`\nhint: did you mean `--device-debug`?",
        ),
        (
            &["--wrapper-job", "2"],
            "unknown option `--wrapper-job`\nhint: did you mean `--wrapper-jobs`?",
        ),
        (
            &["--device-qqqqqqqqqqqqq"],
            "unknown option `--device-qqqqqqqqqqqqq`",
        ),
    ] {
        for tool in ["clang-linker-wrapper", "offload-ld"] {
            let args = [&["--linker-path=ld"], args].concat();
            let error = parse(tool, &args).unwrap_err();
            assert_eq!(error.to_string(), expected, "{tool}");
        }
    }
    let error = parse("offload-link", &["-Wl,--device-linkr=x"]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("unknown option `--device-linkr=x`")
    );
    let error = parse("offload-link", &["a.o", "-Wl,--linker-path=/usr/bin/ld"]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("--linker-path=/usr/bin/ld: among arguments of a compiler driver")
    );
}

#[test]
fn forwards_every_option_of_the_hosts_and_takes_no_value_for_an_input() {
    for (tool, table, dashes) in [("offload-ld", LD, "--"), ("offload-link", CC, "-")] {
        for row in table {
            let shape = match row.form {
                Spelling::Flag => Shape::Flag,
                Spelling::Value => Shape::Value,
                Spelling::Equal => Shape::Equal,
                Spelling::Letter => Shape::Letter,
                Spelling::Separate => Shape::Separate,
            };
            for spelled in row
                .names
                .iter()
                .flat_map(|name| spellings(name, shape, "4"))
            {
                // Of the linker's options `-mllvm` alone is LLVM's in this position.
                if spelled[0].trim_start_matches('-').starts_with("mllvm") && tool == "offload-ld" {
                    continue;
                }
                // What follows these is the linker's, where `4` is a file.
                if ["-Xlinker", "--for-linker"].contains(&&*spelled[0]) {
                    continue;
                }
                let one_dash = !spelled[0].starts_with("--");
                let long = matches!(row.form, Spelling::Flag | Spelling::Value | Spelling::Equal);
                // A driver's names say how many dashes; a linker's with `o` have two.
                if long && one_dash != (dashes == "-") {
                    continue;
                }
                let words: Vec<&str> = spelled.iter().map(String::as_str).chain(["a.o"]).collect();
                let arguments = parse(tool, &words).unwrap();
                assert_eq!(render(&arguments), words);
                assert_eq!(
                    files(&arguments),
                    [PathBuf::from("a.o")],
                    "{tool} {spelled:?}"
                );
            }
        }
    }
}

#[test]
fn has_each_name_once_in_a_table() {
    // `/wholearchive` is two: alone, and with a value.
    fn names<Id>(table: &[Opt<Id>]) -> Vec<(&'static str, bool)> {
        let mut names = Vec::new();
        for row in table {
            names.extend(
                row.names
                    .iter()
                    .map(|name| (*name, row.form == Spelling::Flag)),
            );
        }
        names
    }
    for mut names in [names(OWN), names(LD), names(CC), names(COFF), names(DARWIN)] {
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
}

#[test]
fn ends_its_own_options_at_two_dashes_as_llvm_16_did() {
    let line = [
        "--linker-path=ld",
        "--host-triple",
        "h",
        "--",
        "-o",
        "x",
        "a.o",
        "--",
    ];
    let arguments = parse("clang-linker-wrapper", &line).unwrap();
    assert_eq!(render(&arguments), ["-o", "x", "a.o", "--"]);
    // After an argument of the linker they are the linker's.
    let line = ["--linker-path=ld", "a.o", "--", "b.o"];
    let arguments = parse("clang-linker-wrapper", &line).unwrap();
    assert_eq!(render(&arguments), ["a.o", "--", "b.o"]);
}

#[test]
fn answers_questions_to_llvm() {
    for args in [
        &["-mllvm", "--help"][..],
        &["--offload-opt=--help"],
        &["-mllvm", "-help-list-hidden"],
    ] {
        let arguments = parse(
            "clang-linker-wrapper",
            &[&["--linker-path=ld", "a.o"], args].concat(),
        );
        assert_eq!(
            arguments.unwrap().options.answer,
            Some(Question::Llvm),
            "{args:?}"
        );
    }
    let arguments = parse("offload-ld", &["-mllvm", "-helper"]).unwrap();
    assert_eq!(arguments.options.answer, None);
}

#[test]
fn reads_the_command_lines_of_microsofts_linkers() {
    let coff = "--host-triple=x86_64-pc-windows-msvc";
    let path = "--linker-path=lld-link";
    for out in ["/out:x.exe", "-out:x.exe", "/OUT:x.exe"] {
        let line = [
            coff,
            path,
            "a.obj",
            out,
            "/libpath:lib",
            "-LIBPATH:more",
            "/wholearchive:w.lib",
            "foo.lib",
            "/home/x/b.obj",
            "-defaultlib:libcmt",
            "/nologo",
            "-opt:ref",
            "-ltcg",
            "/?",
        ];
        let arguments = parse("clang-linker-wrapper", &line).unwrap();
        assert_eq!(arguments.family, Family::Coff);
        assert_eq!(render(&arguments), line[2..]);
        assert_eq!(arguments.output_path(), PathBuf::from("x.exe"));
        assert_eq!(arguments.library_dirs, ["lib", "more"]);
        let named = |name: &str| {
            arguments.items.iter().find_map(|item| match item {
                Item::Library {
                    name: known, load, ..
                } if known == name => Some(*load),
                _ => None,
            })
        };
        assert_eq!(named("w.lib"), Some(Load::Whole));
        assert_eq!(named("foo.lib"), Some(Load::Usual));
        assert_eq!(named("libcmt"), Some(Load::Usual));
        assert!(files(&arguments).contains(&PathBuf::from("/home/x/b.obj")));
    }
    let all = parse("offload-ld", &[coff, "a.lib", "b.obj", "/WHOLEARCHIVE"]).unwrap();
    let whole = |item: &Item| {
        matches!(
            item,
            Item::Library {
                load: Load::Whole,
                ..
            } | Item::File {
                load: Load::Whole,
                ..
            } | Item::WholeArchive(_)
        )
    };
    assert!(all.items.iter().all(whole), "{:?}", all.items);
    // Elsewhere a slash begins a path.
    let elf = parse("offload-ld", &["/out:x"]).unwrap();
    assert_eq!(
        (elf.output.clone(), files(&elf)),
        (None, vec![PathBuf::from("/out:x")])
    );
}

#[test]
fn inserts_objects_before_what_ends_a_program() {
    // rustc for MinGW, and clang's driver for Linux.
    for (line, expected) in [
        (
            "rsbegin.o main.o lib.rlib -lhip -o x /lib/rsend.o",
            "rsbegin.o new.o main.o lib.rlib -lhip -o x /lib/rsend.o",
        ),
        (
            "-o x /usr/lib/Scrt1.o /usr/lib/crti.o crtbeginS.o a.o -lc crtendS.o crtn.o",
            "-o x new.o /usr/lib/Scrt1.o /usr/lib/crti.o crtbeginS.o a.o -lc crtendS.o crtn.o",
        ),
        // rustc for musl.
        (
            "rcrt1.o main.o libc.rlib -o x crtendS.o crtn.o",
            "new.o rcrt1.o main.o libc.rlib -o x crtendS.o crtn.o",
        ),
    ] {
        let line = line.split(' ').map(OsString::from).collect();
        let arguments = Arguments::parse(line, "offload-link").unwrap();
        let line = arguments
            .render(&["new.o".into()], &[], |_| unreachable!())
            .unwrap();
        let line: Vec<_> = line.iter().map(|arg| arg.to_string_lossy()).collect();
        assert_eq!(line.join(" "), expected);
    }
}

#[test]
fn inserts_objects_among_the_inputs_of_microsofts_linkers() {
    let line = [
        "--host-triple=x86_64-pc-windows-msvc",
        "-out:x.exe",
        "-nologo",
        "a.obj",
        "b.lib",
    ];
    let arguments = parse("offload-ld", &line).unwrap();
    let no_file = |_: &[u8]| -> Result<Option<PathBuf>, LinkError> { unreachable!() };
    let line = arguments.render(&["new.o".into()], &[], no_file).unwrap();
    // `docs/spec/linker-wrapper.md` §10.1 number 15.
    assert_eq!(line, ["-out:x.exe", "new.o", "-nologo", "a.obj", "b.lib"]);
}

#[test]
fn takes_no_option_of_apples_linkers_for_an_output_or_a_library() {
    let line = [
        "--host-triple=arm64-apple-macosx14",
        "-lto_library",
        "libLTO.dylib",
        "-object_path_lto",
        "lto.o",
        "-o",
        "x",
        "a.o",
        "-lm",
    ];
    let arguments = parse("clang-linker-wrapper", &line).unwrap();
    assert_eq!(render(&arguments), line[1..]);
    assert_eq!(arguments.output_path(), PathBuf::from("x"));
    assert_eq!(files(&arguments), [PathBuf::from("a.o")]);
    let libraries = arguments
        .items
        .iter()
        .filter(|item| matches!(item, Item::Library { .. }));
    assert_eq!(libraries.count(), 1);
}

#[test]
fn names_the_output_as_linkers_do() {
    // GNU ld 2.40, gold and lld 22: `-omagic` makes a file `magic`, `-oformat=x` one `format=x`.
    for (args, expected) in [
        (&["-omagic"][..], "magic"),
        (&["-oformat=x"], "format=x"),
        (&["--omagic"], "a.out"),
        (&["--oformat=binary"], "a.out"),
        (&["--output=x"], "x"),
        (&["-output=x"], "utput=x"),
        (&["-o", "x", "-o", "y"], "y"),
    ] {
        let arguments = parse("offload-ld", args).unwrap();
        assert_eq!(arguments.output_path(), PathBuf::from(expected), "{args:?}");
    }
}

#[test]
fn survives_any_arguments_and_loses_none_of_the_hosts() {
    use std::os::unix::ffi::OsStringExt;
    // splitmix64, the same in every run.
    let mut state = 1u64;
    let mut below = |end: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 31)) as usize % end
    };
    let known: Vec<Vec<String>> = all_spellings().map(|(spelled, _)| spelled).collect();
    let odd = [
        "",
        "-",
        "--",
        "---",
        "-=",
        "--=",
        "-Wl,",
        "-Wl,,",
        "-Xlinker",
        "@",
        "@/",
        "-o",
        "-l",
        "--device-",
        "/",
        "/out:",
        "-\u{e4}",
    ];
    let mut parsed = 0;
    for round in 0..20_000 {
        let mut line = Vec::new();
        for _ in 0..below(8) {
            match below(4) {
                0 => line.extend(known[below(known.len())].iter().map(OsString::from)),
                1 => line.push(odd[below(odd.len())].into()),
                2 => {
                    let bytes = (0..below(6)).map(|_| b"-=,:/@\"\\ol\xff\xc3a"[below(13)]);
                    line.push(OsString::from_vec(bytes.collect()));
                }
                _ => line.push(format!("keep{}.o", line.len()).into()),
            }
        }
        let triple = [
            "x86_64-pc-linux-gnu",
            "x86_64-pc-windows-msvc",
            "arm64-apple-macosx",
        ][round % 3];
        let tool = ["clang-linker-wrapper", "offload-ld", "offload-link"][round / 3 % 3];
        line.insert(0, format!("--host-triple={triple}").into());
        let Ok(arguments) = Arguments::parse(line.clone(), tool) else {
            continue;
        };
        parsed += 1;
        let rendered = arguments
            .render(&[], &[], |_| Ok(Some("file".into())))
            .unwrap();
        // Before these objects there is no option that could take them as its value.
        let objects = line.iter().skip(1);
        for object in objects.take_while(|word| word.to_string_lossy().starts_with("keep")) {
            assert!(rendered.contains(object), "{line:?} became {rendered:?}");
        }
        let mut left = line.iter();
        // What is there came from the line, in its order; `-Wl,` may have lost a part.
        for word in &rendered {
            let is_part = word.to_string_lossy().starts_with("-Wl,");
            assert!(
                is_part || left.any(|given| given == word),
                "{line:?} became {rendered:?}"
            );
        }
    }
    assert!(parsed > 1_000, "{parsed} lines were taken");
}

#[test]
fn knows_the_host_of_a_compiler_driver() {
    let windows = "/x/lib/rustlib/x86_64-pc-windows-gnu/lib";
    for (line, expected) in [
        (&["a.o"][..], Family::Gnu),
        (&["-L", windows, "a.o"], Family::MinGw),
        (&[&format!("{windows}/libstd.rlib")], Family::MinGw),
        (
            &["--target=x86_64-apple-macosx", "-L", windows],
            Family::Darwin,
        ),
        (&["-target", "x86_64-pc-windows-gnu"], Family::MinGw),
        (
            &["--host-triple=x86_64-pc-linux-gnu", "-L", windows],
            Family::Gnu,
        ),
    ] {
        assert_eq!(
            parse("offload-link", line).unwrap().family,
            expected,
            "{line:?}"
        );
    }
}

#[test]
fn helps_whoever_asks_for_nothing_else() {
    let answer = |tool, line: &[&str]| parse(tool, line).unwrap().options.answer;
    assert_eq!(answer("offload-link", &["--help"]), Some(Question::Help));
    assert_eq!(answer("offload-link", &["--help", "a.o"]), None);
    assert_eq!(answer("offload-link", &["--version"]), None);
    // As a linker that configure scripts ask.
    assert_eq!(answer("offload-ld", &["--help"]), None);
    assert_eq!(
        answer("clang-linker-wrapper", &["--help-hidden"]),
        Some(Question::HelpHidden)
    );
    assert_eq!(
        answer("clang-linker-wrapper", &["-v"]),
        Some(Question::Version)
    );
    assert_eq!(
        answer("clang-linker-wrapper", &["-v", "--linker-path=ld"]),
        None
    );
}
