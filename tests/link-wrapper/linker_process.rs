//! The linker wrapper as a process: how it ends, what it starts, and what is left of it.

use crate::linker_support as support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::{DEFAULT_SIGNALS, Project, linkers, program, region, text};

const TOOL: &str = env!("CARGO_BIN_EXE_offload-link");

/// Waits until `ready`, which must come.
fn wait_for(what: &str, mut ready: impl FnMut() -> bool) {
    let since = Instant::now();
    while !ready() {
        assert!(
            since.elapsed() < Duration::from_secs(20),
            "{what} did not come"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Tells whether the linker has written its process ID.
fn is_started(project: &Project) -> bool {
    fs::read_to_string(project.path("child")).is_ok_and(|id| id.ends_with('\n'))
}

fn kill(signal: &str, process: u32) {
    let kill = Command::new("kill")
        .args([signal, &process.to_string()])
        .status();
    assert!(kill.unwrap().success());
}

fn is_running(process: &str) -> bool {
    // A zombie has ended.
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

#[test]
fn removes_everything_when_a_signal_ends_it() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    // A driver and the linker below it, neither of which passes a signal on.
    let real = project.script(
        "real",
        "case $* in *--version*) exit;; esac; sh -c 'echo half > a.out; echo > \"$TMPDIR/left\"; echo $$ > child; exec sleep 60'; exit",
    );
    for (name, number) in [("-HUP", 1), ("-INT", 2), ("-QUIT", 3), ("-TERM", 15)] {
        let _ = fs::remove_file(project.path("child"));
        let mut link = project
            .command("env")
            .args([DEFAULT_SIGNALS, TOOL])
            .env("OFFLOAD_CC", &real)
            .arg("main.o")
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        wait_for("the linker", || is_started(&project));
        assert_eq!(project.leftovers().len(), 1, "a link has temporary files");
        kill(name, link.id());
        let status = link.wait().unwrap();
        assert_eq!(status.signal(), Some(number), "{name}: {status}");
        assert_eq!(project.leftovers(), Vec::<PathBuf>::new(), "{name}");
        let output = project.path("a.out");
        assert!(!output.exists(), "{name}: half of a program");
        let child = project.read("child");
        assert!(!is_running(child.trim()), "{name}: the linker goes on");
        let mut said = String::new();
        std::io::Read::read_to_string(&mut link.stderr.take().unwrap(), &mut said).unwrap();
        assert!(!said.contains("error"), "{name}: {said}");
    }
}

#[test]
fn keeps_an_output_that_the_linker_has_not_begun_to_write() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    let real = project.script("real", "echo $$ > child; exec sleep 60");
    project.write("a.out", "before");
    let mut link = project
        .command(TOOL)
        .env("OFFLOAD_CC", &real)
        .args(["main.o", "-fuse-ld=bfd"])
        .spawn()
        .unwrap();
    wait_for("the linker", || is_started(&project));
    let folder = &project.leftovers()[0];
    let mode = fs::metadata(folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    kill("-TERM", link.id());
    assert_eq!(link.wait().unwrap().signal(), Some(15));
    assert_eq!(project.read("a.out"), "before");
}

#[test]
fn goes_on_through_a_signal_that_is_ignored() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    let real = project.script(
        "real",
        "case $* in *--version*) exit;; esac; echo > child; sleep 1; echo > done",
    );
    let script = format!("trap '' HUP; exec '{TOOL}' main.o");
    let mut link = project
        .command("sh")
        .args(["-c", &script])
        .env("OFFLOAD_CC", &real)
        .spawn()
        .unwrap();
    wait_for("the linker", || project.path("child").exists());
    kill("-HUP", link.id());
    assert!(link.wait().unwrap().success());
    assert!(project.path("done").exists());
    assert_eq!(project.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn links_lines_that_the_kernel_does_not_take() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    project.write("plain.c", "int main(void) { return 0; }");
    let compile = project.command("cc").args(["-c", "plain.c"]).status();
    assert!(compile.unwrap().success());
    // More than a line of arguments may have on Linux: a quarter of the stack. GCC passes files on
    // in a file.
    let small = format!("ulimit -S -s 2048; exec '{TOOL}' \"$@\"");
    let small = project.script("small", &small);
    project.archive("empty.a", &[]);
    let file = format!("{}empty.a", "./".repeat(500));
    let many = vec![file.as_str(); 700];
    let response: String = many.iter().map(|arg| format!("\"{arg}\"\n")).collect();
    project.write("args", response);
    let runtime = format!("-L{}", project.runtime.display());
    // With an option of ours in the file it is packed again.
    let ours = format!("--report=text\n{}", project.read("args"));
    project.write("more", ours);
    for (object, file) in [
        ("plain.o", "@args"),
        ("plain.o", "@more"),
        ("main.o", "@args"),
    ] {
        let link = project
            .command(&small)
            .env("OFFLOAD_CC", "cc")
            .args([file, object, "-o", "long", &runtime])
            .output()
            .unwrap();
        assert!(
            link.status.success(),
            "{object} {file}: {}",
            text(&link.stderr)
        );
        assert!(project.run("long").status.success(), "{object} {file}");
        assert_eq!(project.leftovers(), Vec::<PathBuf>::new());
        fs::remove_file(project.path("long")).unwrap();
    }
    // The arguments of a nested file that the tool reads for itself, and too many for one line.
    project.write("outer", "@args -Wl,--wrapper-verbose");
    let real = project.script(
        "real",
        "for arg; do case $arg in @*) wc -l < \"${arg#@}\";; esac; done",
    );
    let link = project
        .command(&small)
        .env("OFFLOAD_CC", &real)
        .args(["@outer", "plain.o"])
        .output()
        .unwrap();
    assert_eq!(text(&link.stdout).trim(), "700", "{}", link.status);
    assert_eq!(project.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn writes_a_response_file_when_none_came_and_one_argument_is_too_long() {
    let Some(project) = Project::new() else {
        return;
    };
    // The longest argument on Linux has 128 KiB; ours takes it from a file that changes.
    let long = format!("-DX={}", "x".repeat(200_000));
    project.write("args", format!("--device-debug {long} 'a b'"));
    let body = "for arg; do case $arg in @*) wc -c < \"${arg#@}\";; *) echo \"$arg\";; esac; done";
    let real = project.script("real", body);
    let link = project
        .command(TOOL)
        .env("OFFLOAD_CC", &real)
        .args(["@args", "x y"])
        .output()
        .unwrap();
    let expected = format!("{}\nx y\n", long.len() + "\"\"\n\"a b\"\n".len());
    assert_eq!(text(&link.stdout), expected);
}

#[test]
fn writes_what_took_how_long() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    project.write("plain.c", "int main(void) { return 0; }");
    let compile = project.command("cc").args(["-c", "plain.c"]).status();
    assert!(compile.unwrap().success());
    for (object, phases) in [
        (
            "main.o",
            &["Device links", "Device link", "Host link", "Total"][..],
        ),
        ("plain.o", &["Host link", "Total"]),
    ] {
        let trace = "-Wl,--wrapper-time-trace=trace.json";
        let link = project
            .clang(&[object, trace, "-Wl,--wrapper-time-trace-granularity=0"])
            .output();
        assert!(link.as_ref().unwrap().status.success(), "{link:?}");
        let json: serde_json::Value = serde_json::from_str(&project.read("trace.json")).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        for phase in phases {
            let event = events.iter().find(|event| event["name"] == *phase);
            let event = event.unwrap_or_else(|| panic!("{object}: no {phase}: {json}"));
            assert!(event["dur"].as_u64().unwrap() > 0, "{object}: {event}");
        }
        let host = events
            .iter()
            .find(|event| event["name"] == "Host link")
            .unwrap();
        assert!(
            host["args"]["detail"].as_str().unwrap().contains(object),
            "{host}"
        );
    }
    // A link without device code, which the host linker does alone.
    let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
    link.args(["plain.o", "-o", "plain", "--wrapper-time-trace=plain.json"]);
    assert!(link.status().unwrap().success());
    let json: serde_json::Value = serde_json::from_str(&project.read("plain.json")).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    assert!(
        events.iter().any(|event| event["name"] == "Host link"),
        "{json}"
    );
    // As LLVM's: on standard output, and beside the output.
    let traced = |value: &str| {
        let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
        link.args(["plain.o", "-o", "plain"]);
        let link = link.arg(format!("--wrapper-time-trace={value}")).output();
        let link = link.unwrap();
        assert!(link.status.success(), "{link:?}");
        text(&link.stdout)
    };
    let printed = traced("-");
    assert_eq!(traced(""), "");
    for json in [printed, project.read("plain.time-trace")] {
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(json["traceEvents"].is_array(), "{json}");
    }
    let nowhere = project
        .clang(&["plain.o", "-Wl,--wrapper-time-trace=no/trace"])
        .output()
        .unwrap();
    assert!(!nowhere.status.success());
    assert!(
        text(&nowhere.stderr).contains("cannot write `no/trace`"),
        "{nowhere:?}"
    );
}

#[test]
fn links_twice_at_once_in_one_folder() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    for _ in 0..3 {
        let links: Vec<_> = ["one", "two", "one"]
            .iter()
            .map(|name| project.clang(&["main.o", "-o", name]).spawn().unwrap())
            .collect();
        for mut link in links {
            assert!(link.wait().unwrap().success());
        }
        for name in ["one", "two"] {
            assert!(project.run(name).status.success(), "{name}");
        }
        assert_eq!(project.leftovers(), Vec::<PathBuf>::new());
    }
}

#[test]
fn leaves_outputs_that_cannot_be_written_to_the_linker() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    fs::create_dir(project.path("folder")).unwrap();
    for output in ["folder", "missing/out", "/proc/none/out"] {
        for extra in [&[][..], &["-Wl,--save-temps"]] {
            let args = [&["main.o", "-o", output], extra].concat();
            let link = project.clang(&args).output().unwrap();
            let said = text(&link.stderr);
            assert!(!link.status.success(), "{output}");
            assert!(said.contains(output), "{output}: {said}");
            assert_eq!(project.leftovers(), Vec::<PathBuf>::new());
            // With --save-temps the files beside `folder` are kept.
            for file in fs::read_dir(project.root()).unwrap() {
                let file = file.unwrap();
                let name = file.file_name().into_string().unwrap();
                if name.starts_with("folder.") {
                    fs::remove_file(file.path()).unwrap();
                }
            }
        }
    }
}

#[test]
fn does_not_destroy_an_input_that_is_the_output() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    let before = fs::read(project.path("main.o")).unwrap();
    for (name, linker) in linkers() {
        let linker = format!("--ld-path={}", linker.display());
        fs::write(project.path("main.o"), &before).unwrap();
        let link = project
            .clang(&["main.o", "-o", "main.o", &linker])
            .output()
            .unwrap();
        match link.status.success() {
            // As lld: the whole output takes the place of the input at the end.
            true => assert!(project.run("main.o").status.success(), "{name}"),
            false => {
                let after = fs::read(project.path("main.o")).unwrap_or_default();
                let kept = after == before || !project.path("main.o").exists();
                assert!(
                    kept || name.contains("gold"),
                    "{name}: {}",
                    text(&link.stderr)
                );
            }
        }
        assert_eq!(project.leftovers(), Vec::<PathBuf>::new());
    }
}

#[test]
fn names_the_runtime_where_nobody_did() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    let folder = format!("-L{}", project.runtime.display());
    for linker in ["-fuse-ld=bfd", "-fuse-ld=gold", "-B/usr/lib/llvm-19/bin"] {
        let link = project
            .command(TOOL)
            .args(["main.o", "-o", "p", "--report=text:report", linker])
            .output()
            .unwrap();
        assert!(link.status.success(), "{linker}: {link:?}");
        assert_eq!(text(&link.stderr), "", "{linker}");
        // Where the loader's folders do not have the runtime, the program finds it all the same.
        let alone = Command::new(project.path("p"))
            .env_remove("LD_LIBRARY_PATH")
            .output()
            .unwrap();
        assert!(alone.status.success(), "{linker}: {alone:?}");
        let real = project.runtime.canonicalize().unwrap();
        let said = format!("the program gets an rpath to {}, where", real.display());
        assert!(
            project.read("report").contains(&said),
            "{}",
            project.read("report")
        );
    }
    // Without device code for this link, as with a package that has registered its own.
    project.write("plain.c", "int main(void) { return 0; }");
    let compile = project.command("cc").args(["-c", "plain.c"]).status();
    assert!(compile.unwrap().success());
    for (libraries, expected) in [(&["-lomptarget"][..], 1), (&[], 0)] {
        let plan = project
            .command(TOOL)
            .args(["plain.o", &folder, "--dry-run"])
            .args(libraries)
            .output()
            .unwrap();
        let plan = text(&plan.stderr);
        let real = project.runtime.canonicalize().unwrap();
        let rpath = format!("-Xlinker -rpath -Xlinker {}", real.display());
        assert_eq!(plan.matches(&rpath).count(), expected, "{plan}");
    }
    // Once is enough.
    let plan = project
        .command(TOOL)
        .args(["main.o", "-lomptarget", &folder, "--dry-run"])
        .output()
        .unwrap();
    let plan = text(&plan.stderr);
    let host = plan.lines().last().unwrap();
    assert_eq!(host.matches("-lomptarget").count(), 1, "{plan}");
    let nothing = project
        .command(TOOL)
        .args(["main.o", "-nostdlib", "--dry-run"])
        .output()
        .unwrap();
    assert!(!text(&nothing.stderr).contains("omptarget"), "{nothing:?}");
}

#[test]
fn asks_the_device_compiler_about_llvms_options() {
    let Some(project) = Project::new() else {
        return;
    };
    for args in [&["-mllvm", "--help"][..], &["--offload-opt=--help"]] {
        let output = project
            .command(project.path("bin/clang-linker-wrapper"))
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        // clang-linker-wrapper 22 and 19: `USAGE: clang-linker-wrapper [options]`.
        let said = text(&output.stdout);
        assert!(said.starts_with("USAGE: "), "{said:.100}");
        assert!(said.contains("--aarch64-use-aa"), "{said:.100}");
    }
    let output = project
        .command(project.path("bin/clang-linker-wrapper"))
        .args(["-mllvm", "--help"])
        .env("PATH", "/nonexistent")
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(
        said.contains("clang is needed to answer `--help`, but there is none"),
        "{said}"
    );
}

#[test]
fn counts_empty_variables_as_unset() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    let real = project.script("real", "echo linked > a.out");
    let mut link = project.command(TOOL);
    link.args(["main.o", "-fuse-ld=bfd"]).env("CC", &real);
    for variable in [
        "CARGO_MAKEFLAGS",
        "CUDA_PATH",
        "LIBRARY_PATH",
        "OFFLOAD_CC",
        "OFFLOAD_CC_x86_64_unknown_linux_gnu",
        "OFFLOAD_LARGE_IMAGES",
        "OFFLOAD_LINK_ACTIVE",
        "OFFLOAD_LINK_REPORT",
        "OFFLOAD_LLVM",
        "OFFLOAD_MAX_DECOMPRESSED_SIZE",
    ] {
        link.env(variable, "");
    }
    let output = link.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    assert_eq!(project.read("a.out"), "linked\n");
}

#[test]
fn starts_the_linker_with_the_environment_as_it_is() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    let real = project.script("real", "env > environment");
    // The device link's compiler says what it was given, then does its work.
    let fake = format!(
        "env > device-environment; exec '{}' \"$@\"",
        project.clang.display()
    );
    project.script("bin/clang", &fake);
    let wrapper = project.path("bin/clang-linker-wrapper");
    let variables = [
        "COMPILER_PATH",
        "LIBRARY_PATH",
        "GCC_EXEC_PREFIX",
        "COLLECT_GCC",
    ];
    for name in ["main.o", "none.o"] {
        let mut link = project.command(&wrapper);
        link.args([&format!("--linker-path={}", real.display()), name]);
        for variable in variables {
            link.env(variable, "/nonexistent");
        }
        assert!(link.status().unwrap().success());
        let environment = project.read("environment");
        for variable in variables {
            assert!(
                environment.contains(&format!("{variable}=/nonexistent\n")),
                "{name} {variable}"
            );
        }
        assert!(
            environment.contains("OFFLOAD_LINK_ACTIVE=1\n"),
            "{environment}"
        );
    }
    let device = project.read("device-environment");
    assert!(device.contains("PATH="), "the device compiler was not run");
    for variable in variables {
        assert!(!device.contains(&format!("\n{variable}=")), "{variable}");
    }
}
