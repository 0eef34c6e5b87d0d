//! Ordinary Rust, linked by the installed rustc and cargo through `offload-link`: nothing may change.

use crate::support;

use crate::support::folder::Folder;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{program, tool};

const TOOL: &str = env!("CARGO_BIN_EXE_offload-link");

struct Place {
    folder: Folder,
    rustc: PathBuf,
}

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Place {
    fn new() -> Option<Self> {
        let rustc = program("rustc")?;
        let folder = Folder::new();
        symlink(TOOL, folder.path("offload-ld")).unwrap();
        Some(Self { folder, rustc })
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.folder.command(program.as_ref());
        // What this test's own cargo says is not for others.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let cargos = text.starts_with("CARGO") || text.starts_with("OFFLOAD_");
            if (cargos && text != "CARGO_HOME") || text.starts_with("RUSTFLAGS") || text == "CC" {
                command.env_remove(&name);
            }
        }
        command
    }

    fn rustc(&self, linker: impl AsRef<Path>, args: &[&str]) -> Output {
        let linker = format!("-Clinker={}", linker.as_ref().display());
        let mut command = self.command(&self.rustc);
        command
            .arg(linker)
            .args(["--edition=2021", "-Dwarnings"])
            .args(args);
        command.output().unwrap()
    }
}

#[track_caller]
fn silent(output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.is_empty(),
        "{}\n{text}",
        output.status
    );
}

const MAIN: &str = "fn main() { println!(\"{}\", std::env::args().count()); }\n\
                    #[test]\nfn works() { assert_eq!(1 + 1, 2); }\n";
const LIBRARY: &str = "#[no_mangle]\npub extern \"C\" fn answer() -> i32 { 42 }\n";

#[test]
fn links_every_type_of_crate_with_each_linker() {
    let Some(place) = Place::new() else {
        return;
    };
    place.write("main.rs", MAIN);
    place.write("library.rs", LIBRARY);
    place.write("macros.rs", "use proc_macro::TokenStream;\n#[proc_macro]\npub fn answer(_: TokenStream) -> TokenStream { \"42\".parse().unwrap() }\n");
    place.write(
        "uses.rs",
        "fn main() { assert_eq!(macros::answer!(), 42); }\n",
    );
    place.write(
        "call.c",
        "int answer(void);\nint main(void) { return answer() - 42; }\n",
    );
    let lld = tool("llvm22", &["ld.lld"]);
    let lld = lld.map(|lld| format!("-Clink-arg=-B{}", lld.parent().unwrap().display()));
    let mut linkers: Vec<Vec<&str>> = vec![
        vec![],
        vec!["-Clinker-features=-lld"],
        vec!["-Clinker-features=-lld", "-Clink-arg=-fuse-ld=bfd"],
    ];
    linkers.extend(lld.as_deref().map(|lld| {
        vec![
            "-Clink-self-contained=-linker",
            "-Zunstable-options",
            lld,
            "-Clink-arg=-fuse-ld=lld",
        ]
    }));
    const PROFILES: [&[&str]; 6] = [
        &[],
        &["-Cstrip=symbols"],
        &["-Clto=thin", "-O"],
        &["-Clto=fat", "-O"],
        &["-Cstrip=debuginfo", "-g"],
        &["-Cpanic=abort"],
    ];
    let count = if crate::support::tests_all() {
        1
    } else {
        linkers.len()
    };
    for (index, linker) in linkers.into_iter().enumerate() {
        // Without `OFFLOAD_TEST_ALL=1` each linker has its share of the types of crates and of the profiles.
        let takes = |number: usize| number % count == index % count;
        let unstable = linker.contains(&"-Zunstable-options");
        let build = |args: &[&str]| {
            let args = [&linker[..], args].concat();
            let flag = format!("-Clinker={TOOL}");
            let mut command = place.command(&place.rustc);
            command
                .arg(flag)
                .args(["--edition=2021", "-Dwarnings"])
                .args(args);
            if unstable {
                command.env("RUSTC_BOOTSTRAP", "1");
            }
            silent(&command.output().unwrap());
        };
        let run = |program: &str| {
            let run = place
                .command(place.path(program))
                .env("LD_LIBRARY_PATH", place.root())
                .output()
                .unwrap();
            assert!(run.status.success(), "{linker:?} {program}: {run:?}");
        };
        for (_, profile) in PROFILES.iter().enumerate().filter(|row| takes(row.0)) {
            build(&[&["main.rs", "-o", "main"][..], profile].concat());
            run("main");
        }
        if takes(0) {
            build(&["--test", "main.rs", "-o", "main-test"]);
            run("main-test");
        }
        if takes(1) {
            build(&[
                "--crate-type=proc-macro",
                "--extern=proc_macro",
                "macros.rs",
            ]);
            build(&["uses.rs", "--extern=macros=libmacros.so", "-o", "uses"]);
            run("uses");
        }
        let libraries = [
            (2, "cdylib", "library.so", &[][..]),
            (3, "staticlib", "library.a", &["-lpthread", "-ldl", "-lm"]),
        ];
        for (_, kind, file, with) in libraries.into_iter().filter(|row| takes(row.0)) {
            build(&[&format!("--crate-type={kind}"), "library.rs", "-o", file]);
            let c = place
                .command(TOOL)
                .args(["call.c", file, "-o", "call"])
                .args(with)
                .output()
                .unwrap();
            silent(&c);
            run("call");
        }
        if takes(4) {
            build(&[
                "--crate-type=dylib",
                "library.rs",
                "-Cprefer-dynamic",
                "-o",
                "liblibrary.so",
            ]);
        }
    }
}

#[test]
fn links_as_a_linker_in_each_way_that_puts_it_there() {
    let Some(place) = Place::new() else {
        return;
    };
    place.write("main.rs", MAIN);
    place.write(
        "bare.rs",
        "#![no_std]\n#[panic_handler]\nfn panic(_: &core::panic::PanicInfo) -> ! { loop {} }\n\
         #[no_mangle]\npub extern \"C\" fn answer() -> i32 { 42 }\n",
    );
    // By its name a linker for rustc; nothing but the object comes from a compiler driver.
    let linked = place.rustc(
        place.path("offload-ld"),
        &[
            "--crate-type=cdylib",
            "-Cpanic=abort",
            "bare.rs",
            "-o",
            "bare.so",
        ],
    );
    silent(&linked);
    place.write(
        "call.c",
        "int answer(void);\nint main(void) { return answer() - 42; }\n",
    );
    let call = place
        .command("cc")
        .args(["call.c", "./bare.so", "-o", "call"])
        .status();
    assert!(
        call.unwrap().success()
            && place
                .command(place.path("call"))
                .status()
                .unwrap()
                .success()
    );

    // Below a compiler driver, which is told where to look for its linker.
    let said = place.path("said");
    let ld = format!(
        "echo \"$@\" >> '{}'; exec '{}' --linker-path=ld \"$@\"",
        said.display(),
        place.path("offload-ld").display()
    );
    place.script("shim/ld", &ld);
    let shim = format!("-Clink-arg=-B{}/", place.path("shim").display());
    for driver in ["gcc", "clang-22", "clang-19"] {
        let word = driver.replace("clang-", "llvm");
        if driver != "gcc" && tool(&word, &["clang"]).is_none() {
            continue;
        }
        let _ = fs::remove_file(&said);
        silent(&place.rustc(driver, &["main.rs", "-o", "main", &shim]));
        assert!(
            place
                .command(place.path("main"))
                .status()
                .unwrap()
                .success(),
            "{driver}"
        );
        assert_eq!(
            fs::read_to_string(&said).unwrap().lines().count(),
            1,
            "{driver}"
        );
    }
}

/// A workspace as there are many: a build script that compiles C, a macro, libraries, tests.
fn workspace(place: &Place) {
    place.write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"app\", \"sys\", \"macros\"]\nresolver = \"2\"\n\
        [profile.release]\nlto = \"thin\"\nstrip = true\n",
    );
    let manifest = |name: &str, rest: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{rest}")
    };
    place.write(
        "macros/Cargo.toml",
        manifest("macros", "[lib]\nproc-macro = true\n"),
    );
    place.write("macros/src/lib.rs", "use proc_macro::TokenStream;\n#[proc_macro]\npub fn answer(_: TokenStream) -> TokenStream { \"42\".parse().unwrap() }\n");
    place.write("sys/Cargo.toml", manifest("sys", "links = \"answer\"\n"));
    place.write("sys/answer.c", "int answer(void) { return 42; }\n");
    place.write(
        "sys/build.rs",
        "use std::process::Command;\nfn main() {\n    let out = std::env::var(\"OUT_DIR\").unwrap();\n\
         \x20   let run = |program: &str, args: &[&str]| assert!(Command::new(program).args(args).status().unwrap().success());\n\
         \x20   let (object, library) = (format!(\"{out}/answer.o\"), format!(\"{out}/libanswer.a\"));\n\
         \x20   run(\"cc\", &[\"-fPIC\", \"-c\", \"answer.c\", \"-o\", &object]);\n\
         \x20   run(\"ar\", &[\"rcs\", &library, &object]);\n\
         \x20   println!(\"cargo:rustc-link-search=native={out}\");\n\
         \x20   println!(\"cargo:rustc-link-lib=static=answer\");\n}\n",
    );
    place.write(
        "sys/src/lib.rs",
        "extern \"C\" { fn answer() -> i32; }\npub fn safe() -> i32 { unsafe { answer() } }\n\
        #[test]\nfn answers() { assert_eq!(safe(), 42); }\n",
    );
    place.write(
        "app/Cargo.toml",
        manifest(
            "app",
            "[lib]\ncrate-type = [\"rlib\", \"cdylib\"]\n\
        [dependencies]\nsys = { path = \"../sys\" }\nmacros = { path = \"../macros\" }\n",
        ),
    );
    place.write(
        "app/src/lib.rs",
        "#[no_mangle]\npub extern \"C\" fn from_c() -> i32 { sys::safe() }\n",
    );
    place.write(
        "app/src/main.rs",
        "fn main() { assert_eq!(app::from_c(), macros::answer!()); println!(\"right\"); }\n",
    );
    place.write(
        "app/tests/all.rs",
        "#[test]\nfn all() { assert_eq!(app::from_c(), 42); }\n",
    );
}

#[test]
#[ignore = "`make test-all`: `links_every_type_of_crate_with_each_linker` links such crates"]
fn builds_a_workspace_that_knows_nothing_of_devices() {
    let (Some(place), Some(cargo)) = (Place::new(), program("cargo")) else {
        return;
    };
    workspace(&place);
    place.write(
        ".cargo/config.toml",
        "[target.x86_64-unknown-linux-gnu]\nlinker = \"offload-link\"\n",
    );
    let folder = Path::new(TOOL).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(
        std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path)),
    );
    let path = path.unwrap();
    for args in [
        &["build"][..],
        &["build", "--release"],
        &["test"],
        &["run", "--release"],
    ] {
        let output = place
            .command(&cargo)
            .args(args)
            .args(["--offline", "--quiet"])
            .env("PATH", &path)
            .output()
            .unwrap();
        silent(&output);
        if args.contains(&"run") {
            assert_eq!(output.stdout, b"right\n");
        }
    }
}

/// Arguments and environment that a script wrote down.
fn recorded(path: &Path) -> (Vec<String>, BTreeMap<String, String>) {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let (args, variables) = text.split_once("\0--\0").unwrap();
    let variables = variables
        .split('\0')
        .filter_map(|line| line.split_once('='));
    // The scripts' shells set these.
    let variables = variables.filter(|(name, _)| !["_", "PWD", "OLDPWD", "SHLVL"].contains(name));
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    (
        args.split('\0').map(str::to_owned).collect(),
        variables.collect(),
    )
}

#[test]
fn starts_the_linker_once_and_with_what_rustc_gave() {
    let (Some(place), Some(cargo)) = (Place::new(), program("cargo")) else {
        return;
    };
    workspace(&place);
    // What rustc starts, which starts ours, which starts what links.
    let log = place.path("log");
    fs::create_dir(&log).unwrap();
    let write = "{ printf '%s\\0' \"$@\"; printf -- '--\\0'; env -0; }";
    let before = format!(
        "export RECORD=$(mktemp '{}/XXXXXX'); {write} > $RECORD; exec '{TOOL}' \"$@\"",
        log.display()
    );
    let after = format!("{write} >> $RECORD.linker; exec cc \"$@\"");
    let output = place
        .command(&cargo)
        .args(["build", "--offline", "--quiet"])
        .env(
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
            place.script("before", &before),
        )
        .env("OFFLOAD_CC", place.script("after", &after))
        .output()
        .unwrap();
    silent(&output);
    let files = fs::read_dir(&log)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let links: Vec<PathBuf> = files.filter(|path| path.extension().is_none()).collect();
    // A build script, the macro, the library and the program.
    assert_eq!(links.len(), 4);
    for link in links {
        let (args, mut variables) = recorded(&link);
        // A second start would follow in the same file.
        let (linker_args, linker_variables) = recorded(&link.with_extension("linker"));
        assert_eq!(linker_args, args);
        variables.insert("OFFLOAD_LINK_ACTIVE".to_owned(), "1".to_owned());
        assert_eq!(linker_variables, variables, "{args:?}");
        let text = fs::read_to_string(link.with_extension("linker")).unwrap();
        assert_eq!(text.matches("\0--\0").count(), 1, "{args:?}");
    }
}

#[test]
fn lets_questions_reach_the_linker() {
    let Some(place) = Place::new() else {
        return;
    };
    let ask = |program: &Path, args: &[&str]| {
        let output = place.command(program).args(args).output().unwrap();
        let both = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&both).into_owned()
    };
    for question in ["-Wl,--version", "-Wl,-v", "-Wl,-V"] {
        let direct = ask(Path::new("cc"), &[question]);
        assert!(direct.contains("GNU ld"), "{direct}");
        let ours = ask(Path::new(TOOL), &[question]);
        assert!(ours.contains("GNU ld"), "{question}: {ours}");
    }
    // Who we are comes first, then what every probe looks for.
    let version = ask(Path::new(TOOL), &["--version"]);
    let (first, rest) = version.split_once('\n').unwrap();
    let name = concat!(
        "offload-link ",
        env!("CARGO_PKG_VERSION"),
        " (writes what LLVM 22 writes)"
    );
    assert!(first.starts_with(name), "{version}");
    assert_eq!(rest, ask(Path::new("cc"), &["--version"]));
    for question in ["-v", "-dumpmachine", "-print-search-dirs"] {
        assert_eq!(
            ask(Path::new(TOOL), &[question]),
            ask(Path::new("cc"), &[question]),
            "{question}"
        );
    }
    // As CMake and Meson ask, with clang in front (LLVM issues 191041 and 224179).
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return;
    };
    let folder = place.path("bin");
    fs::create_dir(&folder).unwrap();
    symlink(TOOL, folder.join("clang-linker-wrapper")).unwrap();
    let folder = format!("-B{}", folder.display());
    for question in ["-Wl,--version", "-Wl,-v"] {
        let said = ask(&clang, &[&folder, "--offload-link", question]);
        assert!(said.contains("GNU ld"), "{question}: {said}");
    }
}
