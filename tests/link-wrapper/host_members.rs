//! Device code of archive members: it is linked if the host linker loads the member, for whatever reason it does.

use crate::linker_support::{self as support, Project};
use crate::support::tool;
use std::fs;
use std::process::Command;
use support::{linkers, program, region};

/// A member `cb` with a target region in `libcb.a`, and programs that need it in different ways.
fn project() -> Option<Project> {
    let project = Project::new()?;
    project.compile("cb.c", &region("cb"), &[]);
    project.archive("libcb.a", &["cb.o"]);
    for name in ["cb", "foo", "shared"] {
        plain(&project, &format!("calls-{name}"), &program(&[name]), &[]);
    }
    Some(project)
}

/// Compiles host code only.
fn plain(project: &Project, stem: &str, content: &str, args: &[&str]) {
    let (source, object) = (format!("{stem}.c"), format!("{stem}.o"));
    project.write(&source, content);
    run(project
        .command(&project.clang)
        .args(["-O1", "-fPIC", "-c", &source, "-o", &object])
        .args(args));
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    support::text(&output.stdout)
}

/// Links with our tool in a compiler driver's place.
fn link(project: &Project, args: &[&str]) {
    let library = format!("-L{}", project.runtime.display());
    let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
    link.args(["-o", "program", "--report=text:report.txt"])
        .args(args)
        .args([&*library, "-lomptarget", "-lomp"]);
    run(&mut link);
}

/// Expects that `member`'s image is linked, and that the host linker loads its `symbol`.
fn expect(project: &Project, args: &[&str], member: &str, symbol: &str) {
    link(project, args);
    let symbols = run(project.command("nm").arg("program"));
    let has_symbol = symbols.lines().any(|line| {
        let mut words = line.rsplit(' ');
        words.next() == Some(symbol) && matches!(words.next(), Some("T" | "D" | "B"))
    });
    assert!(
        has_symbol,
        "{args:?}: the host linker does not load {symbol}"
    );
    let report = project.read("report.txt");
    let line = report.lines().find(|line| line.contains(member));
    assert!(
        line.is_some_and(|line| line.contains(": linked for ")),
        "{args:?}: {report}"
    );
}

/// The same, and expects that the program's region runs on the device.
fn expect_run(project: &Project, args: &[&str], member: &str, symbol: &str) {
    expect(project, args, member, symbol);
    let ran = project.run("program");
    assert!(ran.status.success(), "{args:?}: {ran:?}");
}

/// Options for each linker that is here.
fn each_linker() -> Vec<(&'static str, String)> {
    let all = linkers().into_iter();
    all.filter(|(name, _)| *name != "lld 22")
        .map(|(name, path)| match name {
            "bfd" | "gold" => (name, format!("-fuse-ld={name}")),
            // gcc knows no path of a linker.
            _ => ("lld", format!("-B{}", lld_folder(&path))),
        })
        .collect()
}

fn lld_folder(path: &std::path::Path) -> String {
    let real = path.canonicalize().unwrap();
    real.parent().unwrap().display().to_string()
}

#[test]
fn links_what_shared_libraries_need() {
    let Some(project) = project() else { return };
    plain(
        &project,
        "shared",
        "int cb(void);\nint shared(void) { return cb(); }\n",
        &["-g0"],
    );
    run(project
        .command("cc")
        .args(["-shared", "shared.o", "-o", "libshared.so"]));
    for (_, linker) in each_linker() {
        let mut line = vec![
            &*linker,
            "calls-shared.o",
            "libshared.so",
            "libcb.a",
            "-Wl,-rpath,.",
        ];
        line.extend(fuse(&linker));
        expect_run(&project, &line, "libcb.a(cb.o)", "cb");
    }
}

/// gcc finds lld in the folder after `-B`.
fn fuse(linker: &str) -> Option<&'static str> {
    linker.starts_with("-B").then_some("-fuse-ld=lld")
}

#[test]
fn links_what_response_files_of_the_linker_name() {
    let Some(project) = project() else { return };
    project.write("rsp", "libcb.a -z now");
    for line in [
        &["calls-cb.o", "-Wl,@rsp"][..],
        &["calls-cb.o", "-Wl,-z,now,@rsp,--build-id"],
        &["calls-cb.o", "-Xlinker", "@rsp"],
    ] {
        expect_run(&project, line, "libcb.a(cb.o)", "cb");
    }
    // Options of ours are taken out of it.
    project.write("words", "libcb.a --report=text:other.txt -z now");
    link(&project, &["calls-cb.o", "-Wl,@words"]);
    assert!(project.read("other.txt").contains(": linked for "));
    // A driver would split this word.
    project.write("comma", "--report=text -rpath a,b");
    let mut refused = project.command(env!("CARGO_BIN_EXE_offload-link"));
    let refused = refused
        .args(["calls-cb.o", "libcb.a", "-Wl,@comma"])
        .output()
        .unwrap();
    let text = support::text(&refused.stderr);
    assert!(
        text.contains(
            "-Wl,@comma: has options of this tool among others for the linker [OFF808]\nhint: "
        ),
        "{text}"
    );
}

#[test]
fn links_what_options_rename() {
    let Some(project) = project() else { return };
    project.compile("wrap.c", &region("__wrap_foo"), &[]);
    project.archive("libwrap.a", &["wrap.o"]);
    plain(&project, "foo", "int foo(void) { return 1; }\n", &[]);
    let real = "int __real_cb(void);\nint __wrap_cb(void) { return __real_cb(); }\n";
    plain(&project, "real", real, &[]);
    plain(&project, "nothing", "int main(void) { return 0; }\n", &[]);
    for (name, linker) in each_linker() {
        let start: Vec<&str> = [&*linker].into_iter().chain(fuse(&linker)).collect();
        let line = |rest: &[&'static str]| [&start[..], rest].concat();
        let wrap = line(&["-Wl,--wrap=foo", "calls-foo.o", "libwrap.a", "foo.o"]);
        expect_run(&project, &wrap, "libwrap.a(wrap.o)", "__wrap_foo");
        let real = line(&["-Wl,--wrap=cb", "calls-cb.o", "real.o", "libcb.a"]);
        expect_run(&project, &real, "libcb.a(cb.o)", "cb");
        if name == "lld" {
            let defsym = line(&["-Wl,--defsym=foo=cb", "calls-foo.o", "libcb.a"]);
            expect_run(&project, &defsym, "libcb.a(cb.o)", "cb");
            let glob = line(&["-Wl,--undefined-glob=c*", "nothing.o", "libcb.a"]);
            expect(&project, &glob, "libcb.a(cb.o)", "cb");
        }
    }
}

#[test]
fn links_what_gives_common_storage_a_value() {
    let Some(project) = project() else { return };
    let value = format!("int state = 4;\n{}", region("unused"));
    project.compile("value.c", &value, &[]);
    project.archive("libvalue.a", &["value.o"]);
    let main = "int state;\nint main(void) { return state - 4; }\n";
    plain(&project, "common", main, &["-fcommon"]);
    expect_run(
        &project,
        &["common.o", "libvalue.a"],
        "libvalue.a(value.o)",
        "state",
    );
}

#[test]
fn links_what_objects_of_gccs_lto_need() {
    let Some(project) = project() else { return };
    let Some(gcc) = support::found("gcc") else {
        return;
    };
    project.write("lto.c", program(&["cb"]));
    for kind in ["-fno-fat-lto-objects", "-ffat-lto-objects"] {
        run(project
            .command(&gcc)
            .args(["-O2", "-flto", kind, "-c", "lto.c"]));
        expect_run(
            &project,
            &["-flto", "lto.o", "libcb.a"],
            "libcb.a(cb.o)",
            "cb",
        );
    }
    // GNU ld goes through archives again after LTO. With two definitions of `cb`, order counts.
    project.write("lto.c", program(&["middle"]));
    project.write(
        "middle.c",
        "int cb(void);\nint middle(void) { return cb(); }\n",
    );
    let compile = ["-O2", "-flto", "-c", "lto.c", "middle.c"];
    run(project.command(&gcc).args(compile));
    run(project
        .command("gcc-ar")
        .args(["rc", "libmiddle.a", "middle.o"]));
    plain(&project, "second", "int cb(void) { return 1; }\n", &[]);
    project.archive("libsecond.a", &["second.o"]);
    let line = [
        "-flto",
        "-fuse-ld=bfd",
        "lto.o",
        "libcb.a",
        "libsecond.a",
        "libmiddle.a",
    ];
    expect_run(&project, &line, "libcb.a(cb.o)", "cb");
}

#[test]
fn finds_libraries_where_gcc_finds_them() {
    let Some(project) = project() else { return };
    for folder in ["other", "own"] {
        std::fs::create_dir(project.path(folder)).unwrap();
    }
    let foreign = "int cb(void) { return 1; }\n";
    plain(
        &project,
        "foreign",
        foreign,
        &["--target=i386-linux-gnu", "-ffreestanding"],
    );
    project.archive("other/libcbx.a", &["foreign.o"]);
    project.archive("own/libcbx.a", &["cb.o"]);
    // Of another machine, which GNU ld passes over.
    let line = ["calls-cb.o", "-Lother", "-Lown", "-lcbx"];
    expect_run(&project, &line, "own/libcbx.a(cb.o)", "cb");
    for option in [&["-Bown"][..], &["-B", "own"]] {
        let line = [&["calls-cb.o", "-lcbx"], option].concat();
        expect_run(&project, &line, "own/libcbx.a(cb.o)", "cb");
    }
}

#[test]
fn reads_scripts_as_gnu_ld_does() {
    let Some(project) = project() else { return };
    std::fs::create_dir(project.path("own")).unwrap();
    project.archive("own/libcbx.a", &["cb.o"]);
    // The first folder that a script names is searched first.
    std::fs::create_dir(project.path("later")).unwrap();
    project.compile("same.c", &region("cb"), &[]);
    project.archive("later/libcbx.a", &["same.o"]);
    let (own, later) = (project.path("own"), project.path("later"));
    project.write("inner.ld", "INPUT(libcb.a)\n");
    for (script, member) in [
        (
            format!("SEARCH_DIR({}) INPUT(-lcbx)", own.display()),
            "libcbx.a(cb.o)",
        ),
        (
            format!(
                "SEARCH_DIR({}) SEARCH_DIR({}) INPUT(-lcbx)",
                own.display(),
                later.display()
            ),
            "libcbx.a(cb.o)",
        ),
        ("INCLUDE inner.ld".to_owned(), "libcb.a(cb.o)"),
        ("value = 1; INPUT(libcb.a)".to_owned(), "libcb.a(cb.o)"),
    ] {
        project.write("script.ld", &script);
        expect_run(&project, &["calls-cb.o", "script.ld"], member, "cb");
    }
}

/// Of two archives with the same function GNU ld takes the one that follows the call, lld the first.
#[test]
fn links_the_member_that_this_linker_chooses() {
    let Some(project) = project() else { return };
    project.compile("second.c", &region("cb"), &[]);
    project.archive("libsecond.a", &["second.o"]);
    plain(
        &project,
        "middle",
        "int cb(void);\nint middle(void) { return cb(); }\n",
        &[],
    );
    plain(&project, "calls-middle", &program(&["middle"]), &[]);
    project.archive("libmiddle.a", &["middle.o"]);
    for (name, linker) in each_linker() {
        let start: Vec<&str> = [&*linker].into_iter().chain(fuse(&linker)).collect();
        let chosen = |rest: &[&'static str]| {
            let line = [&start[..], rest].concat();
            link(&project, &line);
            let ran = project.run("program");
            assert!(ran.status.success(), "{line:?}: {ran:?}");
            let report = project.read("report.txt");
            let is_linked = |member: &str| {
                let mut lines = report.lines().filter(|line| line.contains(member));
                lines.any(|line| line.contains(": linked for "))
            };
            [is_linked("libcb.a"), is_linked("libsecond.a")]
        };
        let (first, second) = ([true, false], [false, true]);
        let following = if name == "lld" { first } else { second };
        let line = ["libcb.a", "calls-cb.o", "libsecond.a"];
        assert_eq!(chosen(&line), following, "{name}");
        let line = ["calls-cb.o", "libcb.a", "libsecond.a"];
        assert_eq!(chosen(&line), first, "{name}");
        let line = ["calls-middle.o", "libcb.a", "libmiddle.a", "libsecond.a"];
        assert_eq!(chosen(&line), following, "{name}");
        // A group is searched again before what follows it.
        let line = [
            "calls-middle.o",
            "-Wl,--start-group",
            "libcb.a",
            "libmiddle.a",
            "-Wl,--end-group",
            "libsecond.a",
        ];
        assert_eq!(chosen(&line), first, "{name}");
        let line = [
            "calls-middle.o",
            "-Wl,-(",
            "libcb.a",
            "libmiddle.a",
            "-Wl,-)",
            "libsecond.a",
        ];
        assert_eq!(chosen(&line), first, "{name}");
        // An archive that is named again is searched there.
        let line = ["libcb.a", "calls-cb.o", "libcb.a", "libsecond.a"];
        assert_eq!(chosen(&line), first, "{name}");
    }
}

/// The registration must be loaded, too.
#[test]
fn registers_images_whatever_the_first_input_is() {
    let Some(project) = project() else { return };
    project.write("blob", "data");
    let lld = each_linker().into_iter().find(|(name, _)| *name == "lld");
    if let Some((_, folder)) = lld {
        let start = [&*folder, "-fuse-ld=lld"];
        let lazy = ["-Wl,--start-lib", "cb.o", "-Wl,--end-lib", "calls-cb.o"];
        expect_run(&project, &[&start[..], &lazy].concat(), "cb.o", "cb");
        let all = ["-Wl,--start-lib", "cb.o", "calls-cb.o", "-Wl,--end-lib"];
        expect_run(&project, &[&start[..], &all].concat(), "cb.o", "cb");
        let data = [
            "-Wl,--format=binary",
            "blob",
            "-Wl,--format=default",
            "calls-cb.o",
            "cb.o",
        ];
        expect_run(&project, &[&start[..], &data].concat(), "cb.o", "cb");
    }
    let data = [
        "-Wl,-b,binary",
        "blob",
        "-Wl,-b,elf64-x86-64",
        "calls-cb.o",
        "cb.o",
    ];
    expect_run(&project, &data, "cb.o", "cb");
    // Data is not searched for device code.
    let data = ["calls-cb.o", "cb.o", "-Wl,-b,binary,cb.o,-b,elf64-x86-64"];
    expect_run(&project, &data, "cb.o", "cb");
    assert_eq!(project.read("report.txt").matches("cb.o").count(), 1);
}

#[test]
fn registers_images_between_options_and_their_values() {
    let Some(project) = project() else { return };
    let main = program(&["cb"]);
    project.write("main.c", &main);
    for line in [
        &[
            "-Xlinker",
            "--ignore-unresolved-symbol",
            "-Xlinker",
            "zz",
            "calls-cb.o",
            "cb.o",
        ][..],
        &["-Wl,--orphan-handling,place", "calls-cb.o", "cb.o"],
        &["-x", "c", "main.c", "-x", "none", "cb.o"],
        &["-xc", "main.c", "-xnone", "cb.o"],
    ] {
        expect_run(&project, line, "cb.o", "cb");
    }
}

/// GNU ld and lld read the file beside the script, not that of the working folder.
#[test]
fn takes_what_scripts_name_where_linkers_do() {
    let Some(project) = project() else { return };
    std::fs::create_dir(project.path("beside")).unwrap();
    project.compile("other.c", &region("cb"), &[]);
    project.archive("beside/libcb.a", &["other.o"]);
    project.write("beside/script.ld", "INPUT(libcb.a)");
    for (name, linker) in each_linker() {
        if name == "gold" {
            continue;
        }
        let mut line = vec![&*linker, "calls-cb.o", "beside/script.ld"];
        line.extend(fuse(&linker));
        expect_run(&project, &line, "beside/libcb.a(other.o)", "cb");
    }
}

#[test]
fn knows_a_driver_of_any_name_by_its_options() {
    let Some(project) = project() else { return };
    std::os::unix::fs::symlink(support::found("cc").unwrap(), project.path("mpi")).unwrap();
    let driver = format!("--linker-path={}", project.path("mpi").display());
    plain(&project, "nothing", "int main(void) { return 0; }\n", &[]);
    let whole = ["-Wl,--whole-archive", "libcb.a", "-Wl,--no-whole-archive"];
    let line = [&[&*driver, "nothing.o"], &whole[..]].concat();
    expect(&project, &line, "libcb.a(cb.o)", "cb");
}

#[test]
fn leaves_no_relocatable_output_that_registers_nothing() {
    let Some(project) = project() else { return };
    let host = ["--target=i386-linux-gnu", "-ffreestanding"];
    project.write("small.c", "int small(void) { return 1; }\n");
    let embed = [
        "-Xclang",
        "-fembed-offload-object=images.bin",
        "-c",
        "small.c",
    ];
    run(project
        .command(env!("CARGO_BIN_EXE_offload-packager"))
        .args(["-o", "images.bin"])
        .arg("--image=file=cb.o,triple=x86_64-pc-linux-gnu,kind=openmp"));
    run(project.command(&project.clang).args(embed).args(host));
    let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
    let linked = link.args([
        "--linker-path=ld",
        "-melf_i386",
        "-r",
        "-o",
        "program",
        "small.o",
    ]);
    let linked = linked.output().unwrap();
    assert_eq!(linked.status.code(), Some(1), "{linked:?}");
    assert!(!project.path("program").exists(), "{linked:?}");
    // A host linker whose output cannot be finished.
    project.script("odd-ld", "echo no object > program");
    let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
    let line = ["--linker-path=./odd-ld", "-r", "-o", "program", "cb.o"];
    let linked = link.args(line).output().unwrap();
    assert_eq!(linked.status.code(), Some(1), "{linked:?}");
    assert!(!project.path("program").exists(), "{linked:?}");
}

/// What a linker script makes undefined.
#[test]
fn links_what_scripts_need() {
    let Some(project) = project() else { return };
    plain(&project, "nothing", "int main(void) { return 0; }\n", &[]);
    for (name, linker) in each_linker() {
        // GNU ld and gold take neither as an input.
        if name == "lld" {
            for script in ["EXTERN(cb)", "needs = cb;"] {
                project.write("script.ld", script);
                let line = [
                    &*linker,
                    "-fuse-ld=lld",
                    "nothing.o",
                    "script.ld",
                    "libcb.a",
                ];
                expect(&project, &line, "libcb.a(cb.o)", "cb");
            }
        }
    }
    // It ends, also if it includes itself.
    let itself = "INCLUDE self.ld\n".repeat(8) + "EXTERN(cb)";
    project.write("self.ld", itself);
    let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
    let line = [
        "--linker-path=ld",
        "--dry-run",
        "calls-cb.o",
        "self.ld",
        "libcb.a",
    ];
    run(link.args(line));
    // A compiler reads LLVM IR, whose first line looks like an assignment of a linker script.
    project.write("main.ll", "; ModuleID = 'main'\ndeclare i32 @cb()\ndefine i32 @main() {\n  %a = call i32 @cb()\n  ret i32 %a\n}\n");
    let driver = format!("--linker-path={}", project.clang.display());
    expect_run(
        &project,
        &[&driver, "main.ll", "libcb.a", "-fuse-ld=bfd"],
        "libcb.a(cb.o)",
        "cb",
    );
}

#[test]
fn links_what_versions_define() {
    let Some(project) = project() else { return };
    let versioned = format!("{}__asm__(\".symver cb_v1, cb@@V1\");\n", region("cb_v1"));
    project.compile("version.c", &versioned, &[]);
    project.archive("libversion.a", &["version.o"]);
    project.write("map", "V1 { cb; };");
    let line = ["calls-cb.o", "libversion.a", "-Wl,--version-script=map"];
    link(&project, &line);
    let report = project.read("report.txt");
    assert!(
        report.contains("libversion.a(version.o)") && report.contains(": linked for "),
        "{report}"
    );
}

/// Arguments by which the host linker alone gets `cb.o`.
const UNSEEN: [&[&str]; 3] = [
    &["-specs=hidden.specs"],
    &["-Wl,-T,hidden.ld"],
    &["-Wl,--undef=cb", "libcb.a"],
];

#[test]
fn reports_device_code_of_files_that_only_the_host_linker_sees() {
    let Some(project) = project() else { return };
    project.write("hidden.specs", "*lib:\n+ cb.o\n\n");
    plain(&project, "main", "int main(void) { return 0; }\n", &[]);
    project.write(
        "hidden.ld",
        "SECTIONS { } INSERT AFTER .text\nINPUT(cb.o)\n",
    );
    project.compile("other.c", &region("other"), &[]);
    let library = format!("-L{}", project.runtime.display());
    let message = "program: has kernels without their device code";
    // With device code of another file, and with none.
    for seen in [&["other.o"][..], &[]] {
        for unseen in UNSEEN {
            for (option, is_program) in [
                ("-Werror=dropped-image", false),
                ("-Wno-error=dropped-image", true),
            ] {
                _ = fs::remove_file(project.path("program"));
                let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
                link.args(["-o", "program", option, "main.o", &library])
                    .args(unseen)
                    .args(seen)
                    .args(["-Wl,--no-as-needed", "-lomptarget", "-lomp"]);
                let output = link.output().unwrap();
                let text = support::text(&output.stderr);
                assert!(text.contains(message), "{link:?}: {text}");
                assert_eq!(output.status.success(), is_program, "{link:?}: {text}");
                assert_eq!(project.path("program").exists(), is_program, "{link:?}");
            }
        }
    }
    // Entries of an object without images: nobody asked for device code.
    run(project
        .command("objcopy")
        .args(["--remove-section", ".llvm.offloading", "cb.o"]));
    project.archive("libcb.a", &["cb.o"]);
    let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
    link.args([
        "-o",
        "program",
        "-Werror=dropped-image",
        "main.o",
        "other.o",
    ])
    .args([UNSEEN[2], &[&library]].concat())
    .args(["-Wl,--no-as-needed", "-lomptarget", "-lomp"]);
    run(&mut link);
    let symbols = run(project.command("nm").arg("program"));
    assert!(symbols.contains(" T cb\n"), "{symbols}");
}

#[test]
fn leaves_no_report_of_an_earlier_link() {
    let Some(project) = project() else { return };
    plain(&project, "main", "int main(void) { return 0; }\n", &[]);
    for (format, expected) in [("json", "\"images\": []"), ("text", "")] {
        project.write("report", "of an earlier link");
        let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
        run(link.args(["main.o", &format!("--report={format}:report")]));
        let report = project.read("report");
        assert!(
            report.contains(expected) && !report.contains("earlier"),
            "{report}"
        );
    }
    // A place that does not exist.
    let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
    let output = link.args(["main.o", "--report=json:missing/r.json"]);
    let output = output.output().unwrap();
    let text = support::text(&output.stderr);
    let warning = "warning: the link has no device code, and its report is not written: cannot write `missing/r.json`: ";
    assert!(output.status.success() && text.contains(warning), "{text}");
}

/// clang's `ld` keeps all shared libraries, and takes `s` from the first. This tool cannot know, because other drivers begin with
/// `--as-needed`; then `libka.a` is searched for `s`.
#[test]
fn reports_a_member_that_the_linker_loads_in_the_place_of_another() {
    let (Some(project), Some(clang)) = (project(), tool("llvm22", &["clang"])) else {
        return;
    };
    let other = "int f(void);\nint other(void) { return f(); }\n";
    let main = "int s(void), other(void);\nint main(void) { return s() + other(); }\n";
    let own = "int s(void) { return 0; }\n";
    for (name, text) in [("m", main), ("other", other), ("api", own)] {
        plain(&project, name, text, &[]);
    }
    run(project
        .command(&project.clang)
        .args(["-shared", "api.o", "-o", "libapi.so"]));
    for (name, text) in [("ka", region("f") + own), ("kb", region("f"))] {
        project.write(format!("{name}.c"), text);
        let source = format!("{name}.c");
        let line = [
            "-O1",
            "-fPIC",
            "-fopenmp",
            "-fopenmp-targets=x86_64-pc-linux-gnu",
            "-c",
            &source,
        ];
        run(project.command(&clang).args(line));
        project.archive(&format!("lib{name}.a"), &[&format!("{name}.o")]);
    }
    let library = format!("-L{}", project.runtime.display());
    let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
    link.env("OFFLOAD_CC", &clang)
        .args([
            "-o",
            "program",
            "--report=text:report.txt",
            "-fuse-ld=bfd",
            "-L.",
            "-lapi",
            "m.o",
        ])
        .args([
            "libka.a",
            "other.o",
            "libkb.a",
            &library,
            "-lomptarget",
            "-lomp",
        ]);
    let output = link.output().unwrap();
    let text = support::text(&output.stderr);
    let message = "warning: program: has kernels without their device code (`__omp_offloading_";
    assert!(output.status.success() && text.contains(message), "{text}");
    assert!(text.contains("_f_l"), "{text}");
}

#[test]
fn finds_the_libraries_that_static_links_and_sysroots_have() {
    let Some(project) = project() else { return };
    plain(&project, "other", "int cb(void) { return 0; }\n", &["-g0"]);
    plain(&project, "main", "int main(void) { return 0; }\n", &[]);
    let shared = ["-shared", "-nostdlib", "other.o", "-o", "libcb.so"];
    run(project.command("cc").args(shared));
    for folder in ["other", "root/usr/lib"] {
        fs::create_dir_all(project.path(folder)).unwrap();
    }
    project.archive("other/libcb.a", &["other.o"]);
    project.archive("root/usr/lib/libcb.a", &["cb.o"]);
    project.write("root/usr/lib/libscript.so", "GROUP(/usr/lib/libcb.a)");
    project.write("static.ld", "INPUT(-lcb)");
    project.write("folder.ld", "SEARCH_DIR(\"=/usr/lib\")");
    let root = format!("--sysroot={}", project.path("root").display());
    let (root, root_of_linker) = (&*root, &*format!("-Wl,{root}"));
    let expect = |args: &[&str], is_loaded: bool| {
        let undefined = ["-nostdlib", "-Wl,--unresolved-symbols=ignore-all"];
        let mut host = project.command("cc");
        run(host
            .args(args)
            .args(undefined)
            .args(["-Wl,-Map=map", "-o", "host"]));
        let map = project.read("map");
        assert_eq!(map.contains("libcb.a(cb.o)"), is_loaded, "{args:?}: {map}");
        _ = fs::remove_file(project.path("report.txt"));
        let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
        run(link
            .args(args)
            .args(undefined)
            .args(["--dry-run", "--report=text:report.txt"]));
        // Without device code, the tool writes no report.
        let report = fs::read_to_string(project.path("report.txt")).unwrap_or_default();
        let mut lines = report.lines();
        let is_linked =
            lines.any(|line| line.contains("libcb.a(cb.o)") && line.contains(": linked for "));
        assert_eq!(is_linked, is_loaded, "{args:?}: {report}");
    };
    expect(&["calls-cb.o", "-L.", "-lcb"], false);
    expect(&["calls-cb.o", "-L.", "-lcb", "-static"], true);
    expect(&["calls-cb.o", "-L.", "-lcb", "-r"], true);
    expect(&["-Wl,-Bstatic", "calls-cb.o", "-L.", "static.ld"], true);
    // The driver's own folders come first.
    expect(&["calls-cb.o", "-Wl,-Lother", "-L.", "-l:libcb.a"], true);
    expect(&["calls-cb.o", "-Lother", "-L.", "-l:libcb.a"], false);
    expect(&[root, "calls-cb.o", "-lscript"], true);
    expect(&[root_of_linker, "calls-cb.o", "folder.ld", "-lcb"], true);
    expect(
        &[
            root_of_linker,
            "calls-cb.o",
            "-Wl,-L$SYSROOT/usr/lib",
            "-lcb",
        ],
        true,
    );
    expect(&["main.o", "-Wl,-u,cb,--wrap=cb", "libcb.a"], true);
    // A shared library has the symbol already, or later.
    expect(&["calls-cb.o", "libcb.so", "libcb.a"], false);
    expect(&["calls-cb.o", "libcb.a", "libcb.so"], true);
    // But not for hidden references, and not with a version that is not the default.
    let hidden =
        "__attribute__((visibility(\"hidden\"))) int cb(void);\nint main(void) { return cb(); }\n";
    plain(&project, "hidden", hidden, &[]);
    expect(&["hidden.o", "libcb.so", "libcb.a"], true);
    let old = "int old(void) { return 0; }\n__asm__(\".symver old,cb@V1\");\n";
    plain(&project, "old", old, &["-g0"]);
    project.write("versions", "V1 { global: cb; local: *; };");
    let shared = ["-shared", "-nostdlib", "old.o", "-o", "libold.so"];
    run(project
        .command("cc")
        .args(shared)
        .arg("-Wl,--version-script=versions"));
    expect(&["calls-cb.o", "libold.so", "libcb.a"], true);
    let as_needed = ["-Wl,--as-needed", "libcb.so", "libcb.a"];
    expect(&[&["main.o", "-Wl,-u,cb"][..], &as_needed].concat(), true);
}
