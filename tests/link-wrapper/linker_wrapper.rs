//! The linker wrapper as a program: what it forwards, says, leaves behind and returns.

use crate::linker_support as support;
use crate::support::folder::Folder;

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::program as program_of_path;
use support::{Project, program, region, text, tool, without_ptxas};

const TOOL: &str = env!("CARGO_BIN_EXE_offload-link");

/// A folder with a linker that prints its arguments, one on a line.
struct Shim {
    dir: Folder,
}

impl Deref for Shim {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.dir
    }
}

impl Shim {
    fn new(body: &str) -> Self {
        use std::os::unix::fs::symlink;
        let dir = Folder::new();
        dir.script("real", body);
        symlink(TOOL, dir.path("clang-linker-wrapper")).unwrap();
        symlink(TOOL, dir.path("offload-ld")).unwrap();
        Self { dir }
    }

    fn printing() -> Self {
        Self::new("printf '%s\\n' \"$@\"")
    }

    /// Under `name`, with the shim as what really links. No temporary file can be made.
    fn run(&self, name: &str, args: &[&str]) -> Output {
        let program = match name {
            "offload-link" => Path::new(TOOL).to_owned(),
            other => self.path(other),
        };
        let real = self.path("real");
        let mut command = Command::new(program);
        command
            .current_dir(self.root())
            .env("TMPDIR", "/nonexistent");
        command.env_remove("OFFLOAD_LINK_ACTIVE").env_remove("CC");
        match name {
            "offload-link" => command.env("OFFLOAD_CC", real),
            _ => command.arg(format!("--linker-path={}", real.display())),
        };
        command.args(args).output().unwrap()
    }

    fn lines(&self, name: &str, args: &[&str]) -> Vec<String> {
        let output = self.run(name, args);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(text(&output.stderr), "");
        text(&output.stdout).lines().map(str::to_owned).collect()
    }
}

#[test]
fn forwards_a_linkers_arguments_as_they_are_spelled() {
    let shim = Shim::printing();
    let args = [
        "-o",
        "out",
        "-lfoo",
        "-l",
        "bar",
        "-r",
        "-omagic",
        "-oformat=x",
        "-lto_library",
        "x",
        "--",
        "-z",
        "relro",
        "-plugin",
        "liblto.so",
        "-plugin-opt=a",
        "-Ldir",
        "-L",
        "dir",
        "-rpath=x",
        "--unknown",
        "a b",
        "",
        "-help",
        "missing.o",
        "@missing",
        "-dynamic-linker",
        "/lib64/ld.so",
        "-v",
        "--version",
    ];
    for name in ["clang-linker-wrapper", "offload-ld"] {
        assert_eq!(shim.lines(name, &args), args);
    }
}

#[test]
fn forwards_a_drivers_arguments_as_they_are_spelled() {
    let shim = Shim::printing();
    let args = [
        "-m64",
        "a.o",
        "-Wl,--as-needed",
        "-Wl,-Bstatic",
        "x.rlib",
        "-lc",
        "-L",
        "dir",
        "-fuse-ld=lld",
        "-o",
        "out",
        "-Wl,-rpath,x,-z,relro",
        "-Xlinker",
        "--mllvm",
        "-Xlinker",
        "-x",
        "-mllvm",
        "-y",
        "--version",
        "-Bdir",
        "-static-pie",
        "-include",
        "--dry-run",
        "-Wl,-mllvm,-z",
    ];
    assert_eq!(shim.lines("offload-link", &args), args);
}

#[test]
fn consumes_its_own_options_wherever_they_stand() {
    let shim = Shim::printing();
    let ld = [
        "--host-triple=x86_64-pc-linux-gnu",
        "-o",
        "x",
        "--device-linker=a",
        "--device-compiler",
        "b",
        "-mllvm",
        "-c",
        "--opt-level=O3",
        "-device-debug",
        "--should-extract=gfx90a",
        "f.o",
        "-compress",
        "-verbose",
        "-compression-level=9",
        "--wrapper-jobs=4",
        "--pass-remarks=x",
        "--llvm=22",
        "--verbose",
    ];
    assert_eq!(
        shim.lines("clang-linker-wrapper", &ld),
        ["-o", "x", "f.o", "--verbose"]
    );
    let cc = [
        "--device-linker=a",
        "f.o",
        "-Wl,--wrapper-jobs=2,-z,now",
        "-Wl,--llvm=19",
        "-Xlinker",
        "--device-debug",
        "-Wl,--device-linker,x",
        "--report",
        "-o",
        "x",
        "--Werror=dropped-image",
    ];
    assert_eq!(
        shim.lines("offload-link", &cc),
        ["f.o", "-Wl,-z,now", "--report", "-o", "x"]
    );
}

#[test]
fn passes_on_a_response_file_that_does_not_change() {
    let shim = Shim::printing();
    shim.write("args", "a.o \"b c.o\" -Lx");
    assert_eq!(
        shim.lines("offload-link", &["-o", "x", "@args"]),
        ["-o", "x", "@args"]
    );
    assert_eq!(
        shim.lines("clang-linker-wrapper", &["@args", "-z", "now"]),
        ["@args", "-z", "now"]
    );
}

#[test]
fn packs_a_response_file_again_when_something_in_it_is_ours() {
    let shim =
        Shim::new("for arg; do case $arg in @*) cat \"${arg#@}\";; *) echo \"$arg\";; esac; done");
    shim.write("args", "a.o --device-debug 'b \"c.o' -Lx");
    let program = shim.path("clang-linker-wrapper");
    let real = format!("--linker-path={}", shim.path("real").display());
    let output = Command::new(program)
        .args([&real, "-o", "x", "@args", "y"])
        .current_dir(shim.root())
        .env("TMPDIR", shim.root())
        .output()
        .unwrap();
    assert_eq!(
        text(&output.stdout),
        "-o\nx\n\"a.o\"\n\"b \\\"c.o\"\n\"-Lx\"\ny\n"
    );
    let left = fs::read_dir(shim.root()).unwrap().count();
    assert_eq!(left, 4, "real, two links and args");
}

#[test]
fn answers_for_itself_and_leaves_other_questions_to_the_linker() {
    let shim = Shim::printing();
    let version = env!("CARGO_PKG_VERSION");
    let expected = [format!("offload-link {version}")];
    for name in ["offload-link", "clang-linker-wrapper"] {
        assert_eq!(shim.lines(name, &["--print-offload-abi"]), expected);
    }
    let alone = |arg| {
        let output = Command::new(shim.path("clang-linker-wrapper"))
            .arg(arg)
            .output();
        text(&output.unwrap().stdout)
    };
    assert!(alone("--version").starts_with("clang-linker-wrapper of offload-link"));
    assert!(alone("--help").contains("--should-extract=<value>"));
    let help = shim.lines("offload-link", &["--help"]).join("\n");
    assert!(help.contains("--should-extract=<value>"), "{help}");
    let said = shim.lines("offload-link", &["--version"]);
    let name = format!("offload-link {version} (writes what LLVM 22 writes)");
    assert!(said[0].starts_with(&name), "{said:?}");
    assert_eq!(said[1..], ["--version"]);
    assert_eq!(
        shim.lines("offload-link", &["--version", "a.o"]),
        ["--version", "a.o"]
    );
}

#[test]
fn says_how_it_is_used_instead_of_running_a_linker_without_arguments() {
    let shim = Shim::printing();
    for name in ["offload-link", "offload-ld", "ld.offload"] {
        let program = match name {
            "offload-link" => PathBuf::from(TOOL),
            other => shim.path(other),
        };
        if name == "ld.offload" {
            let _ = symlink(TOOL, &program);
        }
        let real = shim.path("real");
        let mut command = Command::new(program);
        let output = command.env("OFFLOAD_CC", real).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.starts_with("usage: offload-link "), "{name}: {said}");
        assert_eq!(text(&output.stdout), "", "{name}: the linker ran");
    }
}

#[test]
fn passes_on_how_the_linker_ended() {
    for (body, code) in [("exit 3", 3), ("kill -9 $$", 137)] {
        let shim = Shim::new(body);
        // Without device code this process becomes the linker, so a signal is one.
        let status = shim.run("offload-link", &["a.o"]).status;
        assert_eq!(
            status.code().or(status.signal().map(|signal| 128 + signal)),
            Some(code)
        );
    }
}

#[test]
fn explains_what_is_wrong_with_the_command_line() {
    let shim = Shim::printing();
    let error = |args: &[&str]| {
        let output = shim.run("offload-link", args);
        assert_eq!(output.status.code(), Some(1));
        let text = text(&output.stderr);
        text.strip_prefix(&format!("{TOOL}: error: "))
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        error(&["--wrapper-jobs=abc"]),
        "--wrapper-jobs=abc: expected a positive integer or 'jobserver', got 'abc' [OFF808]\n"
    );
    assert_eq!(
        error(&["--device-linker"]),
        "--device-linker: missing argument [OFF808]\n"
    );
    // The tool appends options.
    for option in ["-o", "-L", "-l"] {
        assert_eq!(
            error(&["a.o", option]),
            format!("{option}: missing argument [OFF808]\n")
        );
    }
    // A driver passes the value on behind its option.
    let output = shim.run("offload-link", &["a.o", "-Wl,-rpath", "folder"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        error(&["--device-linkr=x"]),
        "unknown option `--device-linkr=x` [OFF808]\nhint: did you mean `--device-linker`?\n"
    );
    assert_eq!(
        error(&["--opt-level=3"]),
        "--opt-level: `3` is not a level; expected `O0` to `O3` [OFF808]\n"
    );
    let alone = |name: &str, variables: &[(&str, &str)]| {
        let mut command = Command::new(shim.path(name));
        command
            .arg("a.o")
            .env_remove("CC")
            .env_remove("OFFLOAD_LINK_ACTIVE");
        text(
            &command
                .envs(variables.iter().copied())
                .output()
                .unwrap()
                .stderr,
        )
    };
    assert!(
        alone("clang-linker-wrapper", &[]).ends_with(
            "clang-linker-wrapper: error: linker path missing, must pass 'linker-path'\n"
        )
    );
    // A link without device code does not read `OFFLOAD_LLVM`: it starts the host linker.
    let output = Command::new(TOOL)
        .arg("a.o")
        .env("OFFLOAD_CC", "no-such-cc")
        .env("OFFLOAD_LLVM", "18")
        .output();
    assert_eq!(
        text(&output.unwrap().stderr),
        format!(
            "{TOOL}: error: cannot start the host linker `no-such-cc`: not found [OFF803]\n\
             hint: install it, or name another with OFFLOAD_CC or --linker-path\n"
        )
    );
}

#[test]
fn notices_that_the_linker_it_found_is_itself() {
    let shim = Shim::printing();
    let other = shim.path("another-name");
    std::os::unix::fs::symlink(TOOL, &other).unwrap();
    let output = Command::new(TOOL)
        .arg("a.o")
        .env("OFFLOAD_CC", other)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(
        "error: the program found as the real linker is `offload-link` itself [OFF804]\n\
         hint: `--linker-path`, OFFLOAD_CC or CC leads to `offload-link`: set it to the compiler driver or linker that should link\n"
    ));
    // The next `ld` links, also in a child of this tool.
    let bin = Shim::printing();
    std::os::unix::fs::symlink(TOOL, bin.path("ld")).unwrap();
    fs::rename(shim.path("real"), shim.path("ld")).unwrap();
    let path = [bin.root(), shim.root()];
    for guard in ["OFFLOAD_LINK_ACTIVE", "OTHER"] {
        let output = Command::new(bin.path("ld"))
            .args(["--no-such-option", "a.o"])
            .env("PATH", std::env::join_paths(path).unwrap())
            .env(guard, "1")
            .output()
            .unwrap();
        assert_eq!(
            text(&output.stdout),
            "--no-such-option\na.o\n",
            "{output:?}"
        );
    }
    // By one of our own names it is passed over.
    let output = Command::new(TOOL)
        .arg("--version")
        .env("OFFLOAD_CC", TOOL)
        .env("CC", TOOL)
        .output();
    assert!(output.unwrap().status.success());
}

#[test]
fn takes_the_driver_that_is_declared_for_the_target() {
    let shim = Shim::printing();
    let real = shim.path("real");
    let run = |variable: &str| {
        let output = Command::new(TOOL)
            .args([
                "-L",
                "/x/lib/rustlib/riscv64gc-unknown-linux-gnu/lib",
                "a.o",
            ])
            .env_remove("OFFLOAD_CC")
            .env("CC", "false")
            .env(variable, format!("{} -extra", real.display()))
            .output()
            .unwrap();
        text(&output.stdout).starts_with("-extra\n-L\n")
    };
    assert!(run("OFFLOAD_CC_riscv64gc_unknown_linux_gnu"));
    assert!(run("OFFLOAD_CC"));
    assert!(run("CC"));
    assert!(!run("OFFLOAD_CC_x86_64_unknown_linux_gnu"));
}

/// An object with an image that needs a program which is not there.
fn with_missing_tool(project: &Project) -> Option<()> {
    let packager = tool("llvm19", "clang-offload-packager")?;
    project.write("empty.ll", "target triple = \"nvptx64-nvidia-cuda\"\n");
    let clang = &project.clang;
    let bitcode = project
        .command(clang)
        .args(["-c", "-emit-llvm", "empty.ll", "-o", "empty.bc"])
        .status();
    assert!(bitcode.unwrap().success());
    let image = "--image=file=empty.bc,triple=nvptx64-nvidia-cuda,arch=sm_80,kind=openmp";
    let pack = project
        .command(packager)
        .args(["-o", "sm_80.bin", image])
        .status();
    assert!(pack.unwrap().success());
    Some(())
}

#[test]
fn leaves_out_what_cannot_be_linked_here_and_says_so_where_asked() {
    let Some(mut project) = Project::new() else {
        return;
    };
    if with_missing_tool(&project).is_none() {
        return;
    }
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    // LLVM's wrapper fails where a tool is missing.
    let link = project.clang(&["main.o", "-Xlinker", "sm_80.bin"]);
    let link = without_ptxas(link).output().unwrap();
    assert!(!link.status.success() && !project.path("a.out").exists());
    let said = text(&link.stderr);
    assert!(
        said.contains("error: not all of the device code that was found can be linked [OFF806]\nnvptx64-nvidia-cuda sm_80: left out: "),
        "{said}"
    );
    project.wrapper = "ours";
    let link = project.clang(&[
        "main.o",
        "-Xlinker",
        "sm_80.bin",
        "-Wl,--report=text:report",
    ]);
    let link = without_ptxas(link).output().unwrap();
    assert!(link.status.success(), "{link:?}");
    let said = text(&link.stderr);
    let warning = "warning: nvptx64-nvidia-cuda sm_80: left out: `ptxas` not found (searched: /usr/local/cuda/bin, PATH) [OFF605]\nhint: ";
    assert!(said.contains(warning), "{said}");
    assert!(project.run("a.out").status.success());
    let report = project.read("report");
    assert!(
        report.contains("sm_80.bin: openmp nvptx64-nvidia-cuda sm_80, "),
        "{report}"
    );
    assert!(
        report.contains(
            "left out: `ptxas` not found (searched: /usr/local/cuda/bin, PATH) [OFF605]; hint: "
        ),
        "{report}"
    );

    let strict = project.clang(&[
        "main.o",
        "-Xlinker",
        "sm_80.bin",
        "-Wl,-Werror=dropped-image",
    ]);
    let strict = without_ptxas(strict).output().unwrap();
    assert!(!strict.status.success());
    assert!(text(&strict.stderr).contains(
        "error: some images were not linked (-Werror=dropped-image) [OFF805]\nsm_80.bin: "
    ));

    project.write("plain.c", "int main(void) { return 0; }");
    let compile = project.command("cc").args(["-c", "plain.c"]).status();
    assert!(compile.unwrap().success());
    let mut only = project.command(TOOL);
    only.args(["plain.o", "sm_80.bin", "-o", "none"]);
    let only = without_ptxas(only).output().unwrap();
    assert!(!only.status.success());
    assert!(
        text(&only.stderr)
            .contains("error: none of the device code that was found can be linked [OFF806]\n")
    );
    assert!(!project.path("none").exists());
    assert!(
        project
            .leftovers()
            .iter()
            .all(|path| path.extension().is_some()),
        "{:?}",
        project.leftovers()
    );
}

/// rustc shows nothing of a link that succeeds.
#[test]
fn fails_in_links_by_rustc_if_an_image_cannot_be_linked() {
    let (Some(project), Some(rustc)) = (Project::new(), program_of_path("rustc")) else {
        return;
    };
    if with_missing_tool(&project).is_none() {
        return;
    }
    project.compile("mine.c", &region("mine"), &[]);
    project.write(
        "main.rs",
        "extern \"C\" { fn mine() -> i32; }\nfn main() { std::process::exit(unsafe { mine() }) }\n",
    );
    let link = |more: &[&str]| {
        let mut rustc = project.command(&rustc);
        rustc
            .args([
                "--edition=2021",
                "main.rs",
                "-Clink-arg=mine.o",
                "-Clink-arg=sm_80.bin",
            ])
            .arg(format!("-Clinker={TOOL}"))
            .arg(format!("-Lnative={}", project.runtime.display()))
            .args(["-lomptarget", "-lomp"])
            .args(more);
        without_ptxas(rustc).output().unwrap()
    };
    let failed = link(&[]);
    let said = text(&failed.stderr);
    assert!(
        !failed.status.success() && !project.path("main").exists(),
        "{said}"
    );
    for part in [
        "error: some images were not linked, and rustc would hide a warning (-Clink-arg=-Wno-error=dropped-image links the program without them) [OFF805]",
        "sm_80.bin: nvptx64-nvidia-cuda sm_80: `ptxas` not found (searched: /usr/local/cuda/bin, PATH) [OFF605]",
    ] {
        assert!(said.contains(part), "{said}");
    }
    // An error, and not a warning besides.
    assert!(!said.contains("left out: "), "{said}");
    // As the message says.
    let linked = link(&["-Clink-arg=-Wno-error=dropped-image"]);
    assert!(linked.status.success(), "{linked:?}");
    assert!(project.run("main").status.success());
}

#[test]
fn shows_the_command_of_a_device_link_that_failed() {
    let Some(project) = Project::new() else {
        return;
    };
    let code = "int nowhere(void);\n#pragma omp declare target to(nowhere) device_type(nohost)\n";
    let calls = region("mine").replace("host = on_host();", "host = on_host() + nowhere();");
    project.compile("main.c", &(program(&["mine"]) + code + &calls), &[]);
    let link = project.clang(&["main.o", "-o", "none"]).output().unwrap();
    let first = text(&link.stderr);
    assert!(!link.status.success());
    assert!(
        first.contains("error: device link for x86_64-pc-linux-gnu: `"),
        "{first}"
    );
    let (reason, command) = first.split_once("\ncommand: ").unwrap();
    assert!(reason.contains("failed (exit status: 1)\n"), "{first}");
    assert!(
        reason.contains("undefined reference to `nowhere'"),
        "{first}"
    );
    assert!(command.starts_with("/usr/bin/clang-19 "), "{first}");
    assert!(!project.path("none").exists());
    assert_eq!(project.leftovers().len(), 0);
    let said = |mut link: Command| text(&link.output().unwrap().stderr);
    // What is undefined may be in an input that is not there.
    let mut link = project.command(TOOL);
    link.args(["main.o", "libgone.a", "-L/nowhere", "-lgone", "-o", "none"]);
    let shown = said(link);
    let note = "\nnote: inputs of the link that were not found: `libgone.a`, `-lgone`\n";
    assert!(shown.contains(note), "{shown}");
    let calls = region("mine").replace("omp target", "omp target teams");
    project.compile("runs.c", &calls, &[]);
    let mut relocatable = project.command(TOOL);
    relocatable.args(["-r", "runs.o", "-o", "all.o"]);
    let shown = said(relocatable);
    let hint = "\nhint: the image calls OpenMP's runtime: `--device-linker=x86_64-pc-linux-gnu=-lomp` links it, also with -r\n";
    assert!(shown.contains(hint), "{shown}");
    // A function that OpenMP's runtime for CPUs lacks.
    let only_gpus = code.replace("int nowhere(void)", "void __kmpc_target_deinit(void)");
    let only_gpus = only_gpus.replace("nowhere", "__kmpc_target_deinit");
    let calls = region("mine").replace("host = on_host();", "__kmpc_target_deinit();");
    let source = program(&["mine"]) + &only_gpus + &calls;
    project.compile("gpus.c", &source, &[]);
    let shown = said(project.clang(&["gpus.o", "-o", "none"]));
    assert!(
        shown.contains("undefined reference to `__kmpc_target_deinit'"),
        "{shown}"
    );
    assert!(!shown.contains("hint:"), "{shown}");
}

/// Build systems pass options of compiles to links, too.
#[test]
fn takes_no_value_of_a_compilers_option_for_an_input() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    let help = project.command("clang-19").arg("--help-hidden").output();
    let help = text(&help.unwrap().stdout);
    let options = help.lines().filter_map(|line| {
        let (name, value) = line.trim_start().split_once(' ')?;
        (name.starts_with('-') && value.starts_with('<')).then_some(name)
    });
    // Not those that say what the link writes or reads, and names with a triple: what follows these is an option.
    // `-meabi` has a value in clang only, and none in GCC.
    let others = ["-o", "-x", "-T", "-Xlinker", "-meabi"];
    let options = options.filter(|name| !others.contains(name) && !name.contains('<'));
    let options: Vec<&str> = options.collect();
    assert!(options.len() > 50, "{options:?}");
    let mut link = project.command(TOOL);
    link.args(options.iter().flat_map(|name| [*name, "value"]));
    let long = ["--define-macro", "--include-directory", "-dumpbase-ext"];
    link.args(long.iter().flat_map(|name| [*name, "value"]));
    let output = link.args(["-meabi", "main.o", "-o", "p", "--dry-run"]);
    let output = output.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let plan = text(&output.stderr);
    let host = plan.lines().last().unwrap();
    let objects = host.split(" value ").last().unwrap();
    assert!(
        objects.contains(".image.wrapper.o main.o "),
        "{objects}\n{plan}"
    );
}

#[test]
fn leaves_nothing_behind_when_the_disk_is_full_or_the_temporary_folder_missing() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    let wrapper = project.path("bin/clang-linker-wrapper");
    let link =
        "--linker-path=/usr/bin/ld -shared -o none main.o -L. --unresolved-symbols=ignore-all";
    let runtime = format!("-L{} -lomp", project.runtime.display());
    // No file may grow past this many blocks of 512 bytes: what a full disk is to every writer.
    let mut reached = Vec::new();
    for blocks in [0, 1, 2, 4, 8, 16, 32, 64] {
        let script = format!(
            "trap '' XFSZ; ulimit -f {blocks}; exec '{}' {link} {runtime}",
            wrapper.display()
        );
        let output = project
            .command("sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        let said = text(&output.stderr);
        if output.status.success() {
            reached.push("linked");
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{blocks} blocks: {said}");
        let reasons = ["File too large", "File size limit exceeded"];
        let reason = reasons.iter().any(|reason| said.contains(reason));
        assert!(reason, "{blocks} blocks: {said}");
        assert!(!project.path("none").exists(), "{blocks} blocks: {said}");
        let child = said.contains("device link for x86_64-pc-linux-gnu");
        reached.push(if child {
            "device link"
        } else {
            "own file or host link"
        });
    }
    assert_eq!(project.leftovers(), Vec::<std::path::PathBuf>::new());
    assert!(reached.contains(&"device link"), "{reached:?}");
    assert!(reached.contains(&"own file or host link"), "{reached:?}");
    assert_eq!(
        reached.last(),
        Some(&"linked"),
        "the limits are wide enough in the end"
    );

    let mut link = project.clang(&["main.o", "-o", "lost"]);
    let output = link
        .env("TMPDIR", project.path("nowhere"))
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("nowhere"), "{said}");
    assert!(!project.path("lost").exists());
    let output = project
        .command(project.path("bin/offload-ld"))
        .args(["--linker-path=true", "main.o", "-o", "lost"])
        .env("TMPDIR", project.path("nowhere"))
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(
        said.contains("(os error 2) at path ") && said.ends_with(" [OFF811]\n"),
        "{said}"
    );
}

#[test]
fn compiles_a_registration_in_c_by_a_driver_for_cpp() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    let driver = project.clang.with_file_name("clang++");
    let output = project
        .command(TOOL)
        .env("OFFLOAD_CC", driver)
        .args(["--emit-wrapper=c", "main.o", "-o", "a.out"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(project.run("a.out").status.success());
}

#[test]
fn keeps_every_step_beside_the_output() {
    let Some(project) = Project::new() else {
        return;
    };
    fs::create_dir(project.path("out")).unwrap();
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    let link = project
        .clang(&["main.o", "-o", "out/p", "-Wl,--save-temps"])
        .output()
        .unwrap();
    assert!(link.status.success(), "{link:?}");
    let mut names: Vec<String> = fs::read_dir(project.path("out"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "p",
            "p.main-x86_64-pc-linux-gnu-.o",
            "p.openmp.image.wrapper.o",
            "p.x86_64..img"
        ]
    );
}

#[test]
fn prints_a_plan_that_a_shell_can_run() {
    let Some(mut project) = Project::new() else {
        return;
    };
    project.wrapper = "ours";
    project.compile("my main.c", &(program(&["mine"]) + &region("mine")), &[]);
    let plan = project
        .clang(&["my main.o", "-o", "p", "-Wl,--dry-run"])
        .output()
        .unwrap();
    assert!(plan.status.success() && !project.path("p").exists());
    assert_eq!(project.leftovers().len(), 0);
    let plan = text(&plan.stderr);
    let steps: Vec<&str> = plan.lines().collect();
    assert_eq!(steps.len(), 4, "{plan}");
    assert!(
        steps[0].starts_with("offload-packager 'my main.o' --image=file="),
        "{plan}"
    );
    assert!(
        steps[1].contains(" -shared ") && steps[1].contains("my_main-x86_64"),
        "{plan}"
    );
    assert!(steps[2].starts_with("# registration object "), "{plan}");
    assert!(
        steps[3].contains("openmp.image.wrapper.o") && steps[3].contains("'my main.o'"),
        "{plan}"
    );
    let check = Command::new("sh")
        .args(["-n", "-c", &plan])
        .status()
        .unwrap();
    assert!(check.success());
    // Files of options that would change are not written: their arguments are shown.
    project.write("options", "'my main.o'\n--wrapper-jobs=1\n");
    let mut link = project.command(TOOL);
    let plan = link
        .args(["@options", "-o", "p", "--dry-run"])
        .output()
        .unwrap();
    let plan = text(&plan.stderr);
    let link = plan.lines().last().unwrap();
    assert!(
        link.contains(" 'my main.o' -o p") && !link.contains('@'),
        "{plan}"
    );

    // Under LLVM's name as LLVM shows it: programs in quotes, and what has a command in LLVM 22.
    project.wrapper = "llvm";
    let plan = project
        .clang(&["my main.o", "-o", "p", "-Wl,--dry-run"])
        .output()
        .unwrap();
    let plan = text(&plan.stderr);
    let steps: Vec<&str> = plan.lines().collect();
    assert_eq!(steps.len(), 2, "{plan}");
    let starts = [" \"/", " \""].map(|start| steps.iter().all(|step| step.starts_with(start)));
    assert_eq!(starts, [true; 2], "{plan}");
    assert!(steps[0].contains("\" --no-default-config -o "), "{plan}");
}

#[test]
fn looks_for_libraries_only_where_it_is_told_under_llvms_name() {
    let shim = Shim::printing();
    assert_eq!(shim.lines("offload-link", &["-lnowhere"]), ["-lnowhere"]);
    let output = Command::new(shim.path("clang-linker-wrapper"))
        .args(["--linker-path=true", "-ldummy", "a.o", "-o", "a.out"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    // `docs/spec/linker-wrapper.md` §1.8, §10.1 number 13.
    let said = text(&output.stderr);
    assert!(
        said.ends_with("error: unable to find library -ldummy\n"),
        "{said}"
    );
}

#[test]
fn extracts_what_the_host_link_leaves_when_asked_or_needed() {
    let Some(project) = Project::new() else {
        return;
    };
    let Some(packager) = tool("llvm19", "clang-offload-packager") else {
        return;
    };
    // On the host nobody calls `helper`; the region's image does.
    let device = "int helper(void) { return 0; }";
    project.write("helper.c", device);
    let clang = &project.clang;
    let compile = project
        .command(clang)
        .args(["-c", "-fPIC", "helper.c", "-o", "helper.img"])
        .status();
    assert!(compile.unwrap().success());
    for processor in ["", ",arch=other"] {
        let image =
            format!("--image=file=helper.img,triple=x86_64-pc-linux-gnu{processor},kind=openmp");
        let pack = project
            .command(&packager)
            .args(["-o", "helper.bin", &image])
            .status();
        assert!(pack.unwrap().success());
        project.write("host.c", "int unused_on_the_host;");
        let embed = project
            .command(clang)
            .args([
                "-c",
                "host.c",
                "-Xclang",
                "-fembed-offload-object=helper.bin",
                "-o",
                "helper.o",
            ])
            .status();
        assert!(embed.unwrap().success());
        let _ = fs::remove_file(project.path("libhelper.a"));
        project.archive("libhelper.a", &["helper.o"]);
        let calls = region("mine").replace(
            "int on_host(void) { return 0; }",
            "int on_host(void) { int helper(void); return helper(); }",
        );
        let report = "-Wl,--report=text:report";
        if processor.is_empty() {
            project.compile("main.c", &(program(&["mine"]) + &calls), &[]);
            project.link_and_run(&["main.o", "libhelper.a", report]);
            assert!(
                project
                    .read("report")
                    .contains("libhelper.a(helper.o): openmp x86_64-pc-linux-gnu, ")
            );
        } else {
            project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
            project.link_and_run(&["main.o", "libhelper.a", report]);
            let left = "libhelper.a(helper.o): openmp x86_64-pc-linux-gnu other";
            let line = |report: String| {
                report
                    .lines()
                    .find(|line| line.starts_with(left))
                    .unwrap()
                    .to_owned()
            };
            assert!(line(project.read("report")).contains(": not linked: "));
            let extract = "-Wl,--should-extract=other,--dry-run";
            let link = project
                .clang(&["main.o", "libhelper.a", report, extract])
                .output()
                .unwrap();
            assert!(link.status.success(), "{link:?}");
            let report = line(project.read("report"));
            assert!(
                report.ends_with(": linked for x86_64-pc-linux-gnu other"),
                "{report}"
            );
        }
    }
}

#[test]
fn names_the_file_and_the_offset_of_device_code_that_is_no_such_thing() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    project.write("bad.bin", [&b"\x10\xff\x10\xad"[..], &[9; 100]].concat());
    let link = project
        .clang(&["main.o", "-Xlinker", "bad.bin"])
        .output()
        .unwrap();
    assert!(!link.status.success());
    let text = text(&link.stderr);
    assert!(text.contains("error: bad.bin: "), "{text}");
}

#[test]
fn leaves_a_command_line_that_only_compiles_alone() {
    let shim = Shim::printing();
    let args = ["-c", "a.c", "--save-temps", "--dry-run", "-o", "a.o"];
    assert_eq!(shim.lines("offload-link", &args), args);
}

#[test]
fn does_nothing_below_another_of_itself() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    // As rustc's linker, with a clang behind it that runs us again for its own link.
    let clang = format!(
        "{} -B{} -fopenmp",
        project.clang.display(),
        project.path("bin").display()
    );
    let link = project
        .command(TOOL)
        .env("OFFLOAD_CC", &clang)
        .args([
            "main.o",
            "-fopenmp-targets=x86_64-pc-linux-gnu",
            "--report=text:report",
        ])
        .arg(format!("-L{}", project.runtime.display()))
        .arg("-lomptarget")
        .output()
        .unwrap();
    assert!(link.status.success(), "{link:?}");
    let registered = project.command("nm").arg("a.out").output().unwrap();
    let registered = text(&registered.stdout);
    assert_eq!(
        registered.matches(".omp_offloading.descriptor_reg").count(),
        1,
        "{registered}"
    );
    assert!(project.run("a.out").status.success());
}

#[test]
fn answers_to_its_names_with_a_release_behind_them() {
    let shim = Shim::printing();
    for name in [
        "clang-linker-wrapper-22",
        "clang-linker-wrapper-22.1",
        "offload-ld-1.2",
        "ld.offload",
    ] {
        std::os::unix::fs::symlink(TOOL, shim.path(name)).unwrap();
        // Only a linker's `-z` and `-rpath` are followed by a value.
        let args = ["-z", "a.o", "--device-linker", "x"];
        assert_eq!(shim.lines(name, &args), ["-z", "a.o"]);
        let verbose = shim.run(name, &["-z", "a o", "--wrapper-verbose"]);
        let real = shim.path("real").display().to_string();
        // LLVM's form under LLVM's name.
        let said = match name.starts_with("clang") {
            true => format!(" \"{real}\" -z 'a o'\n"),
            false => format!("{real} -z 'a o'\n"),
        };
        assert_eq!(text(&verbose.stderr), said);
    }
}

#[test]
fn returns_the_status_of_a_linker_that_failed_after_device_links() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &(program(&["mine"]) + &region("mine")), &[]);
    for (body, driver, llvm) in [("exit 3", 3, 1), ("kill -9 $$", 137, 1), ("exit 0", 0, 0)] {
        let real = project.script("real", body);
        let output = project
            .command(TOOL)
            .env("OFFLOAD_CC", &real)
            .arg("main.o")
            .output();
        assert_eq!(output.unwrap().status.code(), Some(driver), "{body}");
        let wrapper = project.path("bin/clang-linker-wrapper");
        let mut under_llvms_name = project.command(wrapper);
        under_llvms_name.arg(format!("--linker-path={}", real.display()));
        let output = under_llvms_name.arg("main.o").output().unwrap();
        assert_eq!(output.status.code(), Some(llvm), "{body}");
        // As clang-linker-wrapper 19 and 22 say it.
        let said = text(&output.stderr).contains("error: 'real' failed\n");
        assert_eq!(said, llvm != 0, "{body}");
        assert_eq!(project.leftovers().len(), 0);
    }
}
