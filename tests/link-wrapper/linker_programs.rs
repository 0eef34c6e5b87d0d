//! Real programs: compiled by clang, linked through `offload-link`, run on the CPU device.

use crate::linker_support as support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use object::{Object, ObjectSection};
use support::{Project, found, linkers, other, program, region, text, tool, without_ptxas};

#[test]
fn runs_c_and_cxx_of_several_files_with_every_linker() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile("main.c", &program(&["in_c", "in_cxx"]), &[]);
    project.compile("c.c", &region("in_c"), &["-ffunction-sections"]);
    let cxx = region("in_cxx").replace("(void)", "(void) noexcept");
    project.compile("cxx.cpp", &cxx, &[]);
    for (name, linker) in linkers() {
        eprintln!("{name}");
        let linker = format!("--ld-path={}", linker.display());
        project.link_and_run(&["main.o", "c.o", "cxx.o", "-Wl,--gc-sections", &linker]);
    }
}

#[test]
fn links_the_members_that_the_program_uses_and_reports_the_others() {
    let Some(mut project) = Project::new() else {
        return;
    };
    project.wrapper = "ours";
    project.compile("main.c", &program(&["used"]), &[]);
    project.compile("used.c", &region("used"), &[]);
    project.compile("unused.c", &region("unused"), &[]);
    project.archive("libregions.a", &["unused.o", "used.o"]);
    let report = "-Wl,--report=text:report";
    project.link_and_run(&["main.o", "-L.", "-lregions", report]);
    let ours = |report: String| -> Vec<String> {
        let lines = report.lines().filter(|line| line.contains("regions"));
        lines.map(str::to_owned).collect()
    };
    let lines = ours(project.read("report"));
    assert_eq!(lines.len(), 2, "{lines:?}");
    let start = "./libregions.a(unused.o): openmp x86_64-pc-linux-gnu, ";
    let rest = lines[0].strip_prefix(start).unwrap();
    let (size, _) = rest.split_once(" bytes: ").unwrap();
    assert!(size.parse::<u64>().is_ok(), "{lines:?}");
    assert!(
        lines[0].ends_with(": not linked: the host link takes nothing from this archive member")
    );
    assert!(
        lines[1].ends_with("linked for x86_64-pc-linux-gnu"),
        "{lines:?}"
    );

    // The same archive twice, by path and by name, is linked once.
    project.link_and_run(&["main.o", "libregions.a", "-L.", "-lregions", report]);
    let lines = ours(project.read("report"));
    assert!(
        lines[3].ends_with("same as in libregions.a(used.o)") || lines[3].contains("not linked"),
        "{lines:?}"
    );

    // A thin archive names its members, which are files of their own.
    let thin = project
        .command("ar")
        .args(["rcT", "libthin.a", "unused.o", "used.o"])
        .status();
    assert!(thin.unwrap().success());
    project.link_and_run(&["main.o", "libthin.a", report]);
    let linked = project.read("report");
    let linked = linked
        .lines()
        .find(|line| line.starts_with("libthin.a(used.o)"));
    assert!(linked.unwrap().contains(": linked for"), "{linked:?}");

    // So do the objects between `--start-lib` and `--end-lib`, where the linker knows these.
    let lld = linkers()
        .into_iter()
        .find(|(name, _)| name.starts_with("lld"));
    if let Some((_, lld)) = lld {
        let lld = format!("--ld-path={}", lld.display());
        let lazy = ["-Wl,--start-lib", "unused.o", "used.o", "-Wl,--end-lib"];
        project.link_and_run(&[&["main.o", &lld, report][..], &lazy].concat());
        let linked = project.read("report");
        let fate = |name: &str| {
            linked
                .lines()
                .find(|line| line.starts_with(name))
                .map(str::to_owned)
        };
        assert!(fate("used.o").unwrap().contains(": linked for"), "{linked}");
        assert!(
            fate("unused.o").unwrap().contains(": not linked: "),
            "{linked}"
        );
    }

    let whole = ["-Wl,--whole-archive", "-lregions", "-Wl,--no-whole-archive"];
    fs::remove_file(project.path("report")).unwrap();
    project.link_and_run(&[&["main.o", "-L.", report][..], &whole].concat());
    let lines = ours(project.read("report"));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines.iter().all(|line| line.contains(": linked for")),
        "{lines:?}"
    );
}

#[test]
fn registers_a_shared_library_and_its_program_apart() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile(
        "main.c",
        &(program(&["mine", "theirs"]) + &region("mine")),
        &[],
    );
    project.compile("theirs.c", &region("theirs"), &[]);
    let shared = project
        .clang(&["-shared", "theirs.o", "-o", "libtheirs.so"])
        .output()
        .unwrap();
    assert!(shared.status.success(), "{shared:?}");
    let rpath = format!("-Wl,-rpath,{}", project.root().display());
    project.link_and_run(&["main.o", "-L.", "-ltheirs", &rpath]);
}

/// Says each call of the registration, then passes it on.
const WITNESS: &str = "
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
void __tgt_register_lib(void *descriptor) {
  fprintf(stderr, \"registered\\n\");
  ((void (*)(void *))dlsym(RTLD_NEXT, \"__tgt_register_lib\"))(descriptor);
}
";

#[test]
fn registers_the_images_of_a_relocatable_link_once() {
    let Some(project) = Project::new() else {
        return;
    };
    project.compile(
        "main.c",
        &(program(&["mine", "inner"]) + &region("mine")),
        &[],
    );
    project.compile("inner.c", &region("inner"), &[]);
    project.write("witness.c", WITNESS);
    let witness = Command::new("cc")
        .current_dir(project.root())
        .args(["-shared", "-fPIC", "witness.c", "-o", "witness.so"])
        .status();
    assert!(witness.unwrap().success());
    for (name, linker) in linkers() {
        let linker = format!("--ld-path={}", linker.display());
        let first = project
            .clang(&["-r", "inner.o", "-o", "r.o", &linker])
            .output()
            .unwrap();
        assert!(first.status.success(), "{name}: {first:?}");
        let data = fs::read(project.path("r.o")).unwrap();
        let object = object::File::parse(&*data).unwrap();
        assert!(object.section_by_name("omp_offloading_entries").is_none());
        assert!(object.section_by_name(".offloading.images").unwrap().size() > 0x1000);

        // Its images are not linked again, and it keeps its entries to itself.
        project.link_and_run(&[
            "main.o",
            "r.o",
            &linker,
            "-Wl,--gc-sections",
            "-Wl,--report=text:report",
        ]);
        let report = project.read("report");
        assert!(!report.contains("r.o"), "{report}");
        let run = project
            .command(project.path("a.out"))
            .env("LD_LIBRARY_PATH", &project.runtime)
            .env("LD_PRELOAD", project.path("witness.so"))
            .output()
            .unwrap();
        assert_eq!(text(&run.stderr), "registered\nregistered\n", "{name}");
    }
}

#[test]
fn links_device_code_of_a_crate_into_a_rust_program() {
    let (Some(project), Some(cargo)) = (Project::new(), found("cargo")) else {
        return;
    };
    project.compile("kernel.c", &region("region"), &[]);
    project.archive("libkernel.a", &["kernel.o"]);
    let folder = project.root().display().to_string();
    let runtime = project.runtime.display().to_string();
    for crate_dir in ["dep/src", "app/src"] {
        fs::create_dir_all(project.path(crate_dir)).unwrap();
    }
    let manifest = |name: &str| {
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n"
        )
    };
    project.write("dep/Cargo.toml", manifest("dep"));
    project.write(
        "dep/build.rs",
        format!(
            "fn main() {{ for line in [\"rustc-link-search=native={folder}\", \
             \"rustc-link-search=native={runtime}\", \"rustc-link-lib=static=kernel\", \
             \"rustc-link-lib=dylib=omptarget\", \"rustc-link-lib=dylib=omp\"] \
             {{ println!(\"cargo:{{line}}\"); }} }}"
        ),
    );
    project.write(
        "dep/src/lib.rs",
        "extern \"C\" { fn region() -> i32; }\npub fn on_host() -> i32 { unsafe { region() } }",
    );
    let dependency = "[dependencies]\ndep = { path = \"../dep\" }\n";
    project.write("app/Cargo.toml", manifest("app") + dependency);
    project.write(
        "app/src/main.rs",
        "fn main() { std::process::exit(dep::on_host()) }",
    );
    let flags = ["", "-Clinker-features=-lld", "-Clink-arg=-fuse-ld=bfd"];
    for (flags, profile) in flags
        .iter()
        .flat_map(|flags| [(flags, "dev"), (flags, "release")])
    {
        let build = project
            .command(&cargo)
            .current_dir(project.path("app"))
            .args(["build", "--offline", "--quiet", "--profile", profile])
            .env("CARGO_TARGET_DIR", project.path("target"))
            .env(
                "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
                env!("CARGO_BIN_EXE_offload-link"),
            )
            .env("RUSTFLAGS", flags)
            .env("OFFLOAD_LINK_REPORT", project.path("report"))
            .output()
            .unwrap();
        assert!(build.status.success(), "{flags} {profile}: {build:?}");
        // rustc makes a warning of anything that a linker says.
        assert_eq!(text(&build.stderr), "", "{flags} {profile}");
        let report = project.read("report");
        assert!(report.contains(".rlib(kernel.o): openmp"), "{report}");
        let folder = if profile == "dev" { "debug" } else { profile };
        let run = project.run(&format!("target/{folder}/app"));
        assert!(run.status.success(), "{flags} {profile}: {run:?}");
    }
}

#[test]
fn registers_each_generation_of_entries_and_rejects_a_mixture() {
    let Some(project) = Project::new() else {
        return;
    };
    let Some(newer) = tool("llvm22", "clang") else {
        return;
    };
    project.compile("main.c", &(program(&["old"]) + &region("old")), &[]);
    project.write("new.c", region("new_region"));
    let compile = project
        .command(newer)
        .args(support::OPENMP)
        .args(["-c", "-fPIC", "new.c"])
        .output()
        .unwrap();
    assert!(compile.status.success(), "{compile:?}");
    // The variable leaves out no entries.
    for variable in ["", "19"] {
        let args = ["main.o", "new.o", "-Wl,--dry-run"];
        let mut link = project.clang(&args);
        let link = link.env("OFFLOAD_LLVM", variable).output().unwrap();
        let lines = text(&link.stderr);
        for section in ["omp_offloading_entries", "llvm_offload_entries"] {
            assert!(
                lines.contains(&format!("openmp.{section}.image.wrapper.o")),
                "{variable}: {lines}"
            );
        }
    }
    // The option does, and overrides the variable.
    for (option, variable) in [
        (",--llvm=19", ""),
        (",--llvm=19", "22"),
        (",--llvm=19", "none"),
    ] {
        let option = format!("-Wl,--dry-run{option}");
        let only = project
            .clang(&["main.o", "new.o", &option])
            .env("OFFLOAD_LLVM", variable)
            .output()
            .unwrap();
        let lines = text(&only.stderr);
        assert!(
            lines.contains("a.out.openmp.image.wrapper.o"),
            "{option} {variable}: {lines}"
        );
    }

    let mut link = project.clang(&["main.o", "new.o"]);
    let link = link.env("OFFLOAD_LLVM", "18").output().unwrap();
    let expected = "OFFLOAD_LLVM: `18` is not a release of LLVM; expected `19`, `20`, `21`, `22`, `23` or `main`\n";
    assert!(text(&link.stderr).contains(expected), "{link:?}");

    let rename = "--rename-section=llvm_offload_entries=omp_offloading_entries";
    let mix = project.command("objcopy").args([rename, "new.o"]).status();
    assert!(mix.unwrap().success());
    let link = project.clang(&["main.o", "new.o"]).output().unwrap();
    assert!(!link.status.success());
    assert!(
        text(&link.stderr).contains(
            "error: omp_offloading_entries: offload entries of 0x20 bytes in main.o, \
             of 0x38 bytes in new.o [OFF807]\nhint: compile both with the same release of LLVM\n"
        ),
        "{link:?}"
    );
    // In one object, as after `ld -r`, which sorts symbols.
    let join = ["-r", "main.o", "new.o", "-o", "joined.o"];
    assert!(project.command("ld").args(join).status().unwrap().success());
    let link = project.clang(&["joined.o"]).output().unwrap();
    let said = text(&link.stderr);
    let message = |one, two| {
        format!(
            "error: omp_offloading_entries: offload entries of {one} bytes in joined.o, of {two} bytes in joined.o "
        )
    };
    let messages = [message("0x20", "0x38"), message("0x38", "0x20")];
    assert!(!link.status.success(), "{said}");
    assert!(
        messages.iter().any(|message| said.contains(message)),
        "{said}"
    );
}

#[test]
fn links_device_code_of_host_bitcode() {
    let Some(mut project) = Project::new() else {
        return;
    };
    let lld = tool("llvm19", "ld.lld").unwrap();
    let lld = format!("--ld-path={}", lld.display());
    project.compile("a.c", &region("a"), &["-flto"]);
    project.compile("b.c", &region("b"), &["-flto=thin"]);
    project.compile("main.c", &program(&["a", "b"]), &["-flto"]);
    project.archive("libb.a", &["b.o"]);
    for wrapper in ["llvm", "ours"] {
        project.wrapper = wrapper;
        project.link_and_run(&["-flto", "main.o", "a.o", "libb.a", &lld]);
    }
    // The clang that made the host's bitcode links the images.
    project.wrapper = "llvm";
    project.compile("c.c", &region("c"), &["-flto", "-fno-offload-lto"]);
    let mut plan = project.clang(&["-flto", "c.o", &lld, "-Wl,--dry-run"]);
    let plan = text(&plan.output().unwrap().stderr);
    let clang = tool("llvm19", "clang").unwrap().canonicalize().unwrap();
    let program = plan.split('"').nth(1).unwrap();
    assert_eq!(fs::canonicalize(program).unwrap(), clang, "{plan}");
    project.wrapper = "ours";
    // Without the metadata that names the images, the section is an error.
    let program = |name| tool("llvm19", name).unwrap();
    let run = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
    run(project
        .command(program("llvm-dis"))
        .args(["a.o", "-o", "a.ll"]));
    let module = project.read("a.ll");
    let named = |line: &&str| line.starts_with("!llvm.embedded.objects");
    assert_eq!(module.lines().filter(named).count(), 1);
    let lines: Vec<&str> = module.lines().filter(|line| !named(line)).collect();
    project.write("a.ll", lines.join("\n"));
    run(project
        .command(program("llvm-as"))
        .args(["a.ll", "-o", "lost.o"]));
    let link = project.clang(&["-flto", "main.o", "lost.o", "libb.a", &lld]);
    let link = { link }.output().unwrap();
    let said = text(&link.stderr);
    let message =
        "error: lost.o: it has a section `.llvm.offloading` but no metadata that names its content";
    assert!(!link.status.success() && said.contains(message), "{said}");
    // Nothing but bitcode says here what the program consists of.
    let report = "-Wl,--report=text:report";
    project.link_and_run(&["-flto", "main.o", "a.o", "libb.a", &lld, report]);
    let report = project.read("report");
    let linked = ["a.o: openmp", "libb.a(b.o): openmp"];
    for image in linked {
        let mut lines = report.lines();
        let line = lines.find(|line| line.contains(image)).unwrap();
        assert!(line.ends_with("linked for x86_64-pc-linux-gnu"), "{line}");
    }
}

/// What `docs/spec/linker-wrapper.md` §2.3 measured: the device link's files, by the stem of each.
#[test]
fn takes_the_archive_members_that_llvm_19_and_22_take() {
    let Some(project) = Project::new() else {
        return;
    };
    let (Some(clang), Some(packager)) = (
        tool("llvm22", "clang"),
        tool("llvm22", "llvm-offload-binary"),
    ) else {
        return;
    };
    let step = |program: &Path, args: &[&str]| {
        let output = project.command(program).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    };
    let member = |name: &str, device: &str, kind: &str, arch: &str| {
        project.write(format!("{name}.dev.c"), device);
        let target = [
            "--target=amdgcn-amd-amdhsa",
            "-nogpulib",
            "-c",
            "-emit-llvm",
        ];
        let (source, bitcode) = (format!("{name}.dev.c"), format!("{name}.bc"));
        step(
            &clang,
            &[&target[..], &["-mcpu=gfx90a", &source, "-o", &bitcode]].concat(),
        );
        let image =
            format!("--image=file={bitcode},triple=amdgcn-amd-amdhsa,arch={arch},kind={kind}");
        step(&packager, &["-o", &format!("{name}.bin"), &image]);
        project.write("host.c", "");
        let embed = format!("-fembed-offload-object={name}.bin");
        step(
            &clang,
            &[
                "-c",
                "host.c",
                "-Xclang",
                &embed,
                "-o",
                &format!("{name}.o"),
            ],
        );
    };
    let defines = |name: &str, visibility: &str| {
        format!("__attribute__((visibility(\"{visibility}\"))) int {name}(void) {{ return 1; }}")
    };
    let main = "extern int need(void); extern int wk(void) __attribute__((weak));
        int main_code(void) { return need() + (wk ? wk() : 0); }";
    member("main", main, "openmp", "gfx90a");
    member("need", &defines("need", "hidden"), "openmp", "gfx90a");
    member("wk", &defines("wk", "hidden"), "openmp", "gfx90a");
    member("unrel", &defines("unrel", "hidden"), "openmp", "gfx90a");
    member("glob", &defines("glob", "protected"), "openmp", "gfx90a");
    member("nokind", &defines("nokind", "protected"), "none", "gfx90a");
    member("other", &defines("other", "protected"), "openmp", "gfx906");
    let members = ["need.o", "wk.o", "unrel.o", "glob.o", "nokind.o", "other.o"];
    project.archive("libm.a", &members);

    let linked = |release: &str, inputs: &[&str]| -> Vec<String> {
        let wrapper = project.path("llvm/clang-linker-wrapper");
        let report = project.path("report");
        let _ = project
            .command(wrapper)
            .args(["--dry-run", "--linker-path=ld", release, "-o", "x"])
            .arg(format!("--report=text:{}", report.display()))
            .args(inputs)
            .output()
            .unwrap();
        // Whether the tools for the target are here does not matter.
        let report = project.read("report");
        let lines = report.lines().filter(|line| !line.starts_with("warning"));
        let taken = lines.filter(|line| !line.contains(": not linked") && !line.contains(": same"));
        taken
            .filter_map(|line| line.split_once(".o"))
            .map(|(name, _)| name.rsplit(['(', '/']).next().unwrap_or(name).to_owned())
            .collect()
    };
    let of_19 = ["main", "need", "glob"];
    let of_22 = ["main", "need", "wk", "unrel", "glob", "nokind"];
    assert_eq!(linked("--llvm=19", &["main.o", "libm.a"]), of_19);
    assert_eq!(linked("--llvm=22", &["main.o", "libm.a"]), of_22);
    // LLVM takes everything twice here, and the device link fails.
    assert_eq!(linked("--llvm=19", &["main.o", "libm.a", "libm.a"]), of_19);
    assert_eq!(linked("--llvm=22", &["main.o", "libm.a", "libm.a"]), of_22);
}

#[test]
fn links_what_the_host_takes_though_no_object_has_device_code() {
    let Some(mut project) = Project::new() else {
        return;
    };
    project.write("main.c", program(&["used"]));
    let compile = project
        .command(&project.clang)
        .args(["-c", "main.c"])
        .status();
    assert!(compile.unwrap().success());
    project.compile("used.c", &region("used"), &[]);
    project.archive("libused.a", &["used.o"]);
    for wrapper in ["llvm", "ours"] {
        project.wrapper = wrapper;
        project.link_and_run(&["main.o", "libused.a"]);
    }
}

/// An offload binary in a section that programs have in memory, as `#[link_section]` of Rust and as
/// finished relocatable objects have it (`docs/spec/linker-wrapper.md` §8.4, §8.6).
#[test]
fn links_allocated_images_unless_their_object_registers_them() {
    let Some(mut project) = Project::new() else {
        return;
    };
    project.wrapper = "ours";
    let Some(packager) = tool("llvm19", "clang-offload-packager") else {
        return;
    };
    project.write("device.c", "int helper(void) { return 0; }");
    project.write("plain.c", program(&[]));
    let compile = project
        .command(&project.clang)
        .args(["-c", "-fPIC", "device.c", "plain.c"])
        .status();
    assert!(compile.unwrap().success());
    let image = "--image=file=device.o,triple=x86_64-pc-linux-gnu,kind=openmp";
    let pack = project
        .command(packager)
        .args(["-o", "device.bin", image])
        .status();
    assert!(pack.unwrap().success());
    let section =
        ".section .llvm.offloading,\"a\",@0x6fff4c0b\n.p2align 3\n.incbin \"device.bin\"\n";
    let calls = ".text\ncall __tgt_register_lib@PLT\n";
    let waiting = section.replace("\"a\",@0x6fff4c0b", "\"e\",@0x6fff4c0b,unique,1");
    // As GNU's linker leaves them after a relocatable link by LLVM's wrapper.
    let untyped = section.replace("\"a\",@0x6fff4c0b", "\"e\",@progbits");
    for (name, text) in [
        ("static", section.to_owned()),
        ("finished", format!("{section}{calls}")),
        ("both", format!("{section}{waiting}{calls}")),
        ("untyped", format!("{untyped}{calls}")),
    ] {
        let note = "\n.section .note.GNU-stack,\"\",@progbits\n";
        project.write(format!("{name}.s"), text + note);
        let assemble = project
            .command(&project.clang)
            .args(["-c", &format!("{name}.s")])
            .status();
        assert!(assemble.unwrap().success());
    }
    let report = "-Wl,--report=text:report";
    project.link_and_run(&["plain.o", "static.o", report]);
    let text = project.read("report");
    assert!(
        text.contains("static.o: openmp x86_64-pc-linux-gnu, "),
        "{text}"
    );
    assert!(
        text.contains(": linked for x86_64-pc-linux-gnu\n"),
        "{text}"
    );
    let warning = "warning: static.o: its images are in a section that is loaded into memory";
    assert!(text.contains(warning), "{text}");
    for name in ["finished.o", "untyped.o"] {
        project.link_and_run(&["plain.o", name, report]);
        // The device runtime of LLVM 19 is in the report, and nothing else.
        let report = project.read("report");
        let others: Vec<&str> = report
            .lines()
            .filter(|line| !line.contains("libomptarget.devicertl.a: runtime library, "))
            .filter(|line| !line.starts_with("note: "))
            .collect();
        assert_eq!(others, Vec::<&str>::new(), "{name}");
        assert!(report.lines().count() <= 2, "{name}: {report}");
    }
    // An object that registers its own images may have others that wait, as after `ld -r` of both.
    project.link_and_run(&["plain.o", "both.o", report]);
    let text = project.read("report");
    let linked = text.lines().filter(|line| {
        line.starts_with("both.o: openmp x86_64-pc-linux-gnu, ") && line.contains(": linked for ")
    });
    assert_eq!(linked.count(), 1, "{text}");
}

#[test]
fn writes_one_container_instead_of_a_program_or_says_why_not() {
    let Some(project) = Project::new() else {
        return;
    };
    let Some(packager) = tool("llvm22", "llvm-offload-binary") else {
        return;
    };
    project.write("device.c", "int helper(void) { return 0; }");
    let compile = project
        .command(&project.clang)
        .args(["-c", "-fPIC", "device.c"])
        .status();
    assert!(compile.unwrap().success());
    let emit = |images: &[&str]| {
        let mut pack = project.command(&packager);
        pack.args(["-o", "in.bin"]);
        for image in images {
            pack.arg(format!("--image=file=device.o,triple={image}"));
        }
        assert!(pack.status().unwrap().success());
        let _ = fs::remove_file(project.path("out"));
        project
            .command(project.path("llvm/clang-linker-wrapper"))
            .args(["--emit-fatbin-only", "-o", "out", "in.bin"])
            .output()
            .unwrap()
    };
    let cpu = "x86_64-pc-linux-gnu";
    let one = emit(&[&format!("{cpu},kind=openmp")]);
    assert!(one.status.success(), "{one:?}");
    assert_eq!(
        fs::read(project.path("out")).unwrap()[..4],
        *b"\x10\xff\x10\xad"
    );
    // `docs/spec/linker-wrapper.md` §4.6 and §1.8.
    let two = emit(&[
        &format!("{cpu},kind=openmp"),
        "x86_64-unknown-linux-gnu,kind=openmp",
    ]);
    let said = text(&two.stderr);
    let expected = "error: Expected a single bundled image for direct fat binary output\n";
    assert!(said.ends_with(expected), "{said}");
    let other = "x86_64-unknown-linux-gnu,kind=hip";
    let kinds = emit(&[&format!("{cpu},kind=openmp"), other]);
    let said = text(&kinds.stderr);
    assert!(
        said.contains("images of several kinds (openmp, hip)"),
        "{said}"
    );
    assert_eq!(kinds.status.code(), Some(1));
    assert!(!project.path("out").exists());
}

/// libomptarget 19 does not load the ELF format of CUDA 13: it does not even load the driver for it.
#[test]
fn warns_of_images_that_libomptarget_does_not_load() {
    let (Some(project), Some(new), Some(old)) = (
        Project::new(),
        other("cuda", &["ptxas"]),
        other("cuda12", &["cuda-12/bin/ptxas"]),
    ) else {
        return;
    };
    let said = |command: &mut Command, status: i32| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        text(&output.stderr)
    };
    project.write("k.c", program(&["run"]) + &region("run"));
    let compile = ["-fopenmp", "-foffload-lto", "-nogpulib", "-O1", "-c", "k.c"];
    let mut clang = project.command(&project.clang);
    said(clang.args(compile).arg("--offload-arch=sm_80"), 0);
    project.write(
        "driver.c",
        "#include <stdio.h>\n\
         __attribute__((constructor)) static void loaded(void) { fputs(\"driver loaded\\n\", stderr); }\n",
    );
    let driver = ["-shared", "-fPIC", "driver.c", "-o", "libcuda.so"];
    said(project.command("cc").args(driver), 0);
    for (release, ptxas) in [(13, new), (12, old)] {
        let cuda = format!("cuda-{release}");
        fs::create_dir_all(project.path(&cuda).join("bin")).unwrap();
        symlink(ptxas, project.path(&cuda).join("bin/ptxas")).unwrap();
        let mut link = without_ptxas(project.command(env!("CARGO_BIN_EXE_offload-link")));
        link.args(["k.o", "-o", "a.out", "--report=text:report"]);
        let warning = said(link.env("CUDA_PATH", cuda), 0);
        let mut program = project.command(project.path("a.out"));
        let folders = [&*project.runtime, project.root()];
        program
            .env("LD_LIBRARY_PATH", std::env::join_paths(folders).unwrap())
            .env_remove("OMP_TARGET_OFFLOAD");
        // Both run the region on the host.
        let loaded = said(&mut program, 1).contains("driver loaded");
        let expected = "warning: libomptarget of LLVM 19 does not load the image for sm_80, which has the ELF format of CUDA 13\n\
                        hint: build with CUDA 12 in `CUDA_PATH` and `PATH`";
        assert_eq!(warning.contains(expected), release == 13, "{warning}");
        let report = project.read("report");
        let expected = expected.replace('\n', "; ");
        assert_eq!(report.contains(&expected), release == 13, "{report}");
        assert_eq!(loaded, release == 12, "CUDA {release}");
    }
}

/// clang names it when it links; those who start `offload-link` in place of `cc` must.
/// A driver for C++ adds its library to the program, which the image for the CPU needs as well.
#[test]
fn links_cpp_code_of_an_image_with_the_library_of_the_driver() {
    let Some(project) = Project::new() else {
        return;
    };
    let source = "#include <cstdio>\nint main() {\n  int found = 0;\n#pragma omp target map(from : found)\n  \
        { try { throw 7; } catch (int e) { found = e; } }\n  std::printf(\"%d\\n\", found);\n}\n";
    project.compile("k.cpp", source, &["-O0"]);
    let link = |driver: &str, args: &[&str]| {
        let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
        link.env("OFFLOAD_CC", driver)
            .args(["k.o", "-o", "k"])
            .args(args)
            .args(["-L/usr/lib/llvm-19/lib", "-lomptarget", "-lomp"])
            .arg("-Wl,-rpath,/usr/lib/llvm-19/lib");
        link.output().unwrap()
    };
    for driver in ["g++", "clang++-19"] {
        let output = link(driver, &[]);
        assert!(output.status.success(), "{driver}: {output:?}");
        assert_eq!(text(&project.run("k").stdout), "7\n", "{driver}");
    }
    // C's drivers add none, nor do those of C++ that are told so.
    for (driver, args) in [("gcc", &[][..]), ("g++", &["-nostdlib++"])] {
        let output = link(driver, args);
        assert!(!output.status.success(), "{driver}");
    }
}

/// A shared library that the loader does not find ends the program at its first target region.
#[test]
fn gives_images_no_library_that_the_program_does_not_load() {
    let Some(project) = Project::new() else {
        return;
    };
    let run = |program: &str, args: &[&str]| {
        let output = project.command(program).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    project.write("helper.c", "int helper(void) { return 0; }\n");
    run("cc", &["-c", "-fPIC", "helper.c"]);
    run("ar", &["rcs", "libhelper.a", "helper.o"]);
    let shared = [
        "-shared",
        "helper.o",
        "-Wl,-soname,libhelper.so.gone",
        "-o",
        "libhelper.so",
    ];
    run("cc", &shared);
    let runtime = format!("-L{}", project.runtime.display());
    let rpath = format!("-Wl,-rpath,{}", project.runtime.display());
    let static_library = ["-Wl,-Bstatic", "-lhelper", "-Wl,-Bdynamic"];
    // Something that only an archive after it needs.
    project.write("far.c", "int far(void) { return 0; }\n");
    run("cc", &["-shared", "-fPIC", "far.c", "-o", "libfar.so"]);
    project.write(
        "caller.c",
        "int far(void);\nint helper(void) { return far(); }\n",
    );
    run("cc", &["-c", "-fPIC", "caller.c"]);
    run("ar", &["rcs", "libcaller.a", "caller.o"]);
    let own_rpath = format!("-Wl,-rpath,{}", project.root().display());
    // The program takes it statically, and not at all. In the first case, so does the image.
    for (names, libraries) in [
        (&["mine", "helper"][..], &static_library[..]),
        (&["mine"], &["-Wl,--as-needed", "-lhelper"]),
        (&["mine"], &["-Wl,--as-needed", "libhelper.so"]),
        (&["mine", "helper"], &[&*own_rpath, "-lfar", "-lcaller"]),
    ] {
        let calls = match names.len() {
            1 => region("mine"),
            _ => {
                "int helper(void);\n".to_owned()
                    + &region("mine").replace("= on_host()", "= on_host() + helper()")
            }
        };
        project.compile("main.c", &(program(names) + &calls), &[]);
        let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
        link.env("OFFLOAD_CC", &project.clang)
            .args(["main.o", "-L.", "-o", "a.out"]);
        let link = link
            .args(libraries)
            .args([&*runtime, &rpath, "-lomptarget", "-lomp"])
            .output()
            .unwrap();
        assert!(link.status.success(), "{link:?}");
        let ran = project.run("a.out");
        assert_eq!(text(&ran.stdout), "sum=0\n", "{libraries:?} {ran:?}");
    }
}

#[test]
fn names_the_device_runtime_that_a_link_lacks() {
    let (Some(project), Some(_)) = (Project::new(), other("cuda", &["nvlink"])) else {
        return;
    };
    project.write("k.c", program(&["run"]) + &region("run"));
    let compile = ["-fopenmp", "--offload-arch=sm_80", "-O1", "-c", "k.c"];
    let mut clang = project.command(&project.clang);
    let compiled = clang.args(compile).env("LIBRARY_PATH", &project.runtime);
    let compiled = compiled.output().unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
    let output = link.args(["k.o", "-o", "a.out"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = text(&output.stderr);
    assert!(error.contains("'__kmpc_"), "{error}");
    let hint = "\nhint: OpenMP's device runtime is missing: add `-lomptarget.devicertl` to the link, as clang does with `-fopenmp`\n";
    assert!(error.ends_with(hint), "{error}");
}

/// The texts under "Running" in `docs/troubleshooting.md`, from the program's image as that of another machine.
#[test]
fn fails_as_the_page_says_if_no_image_fits() {
    let Some(project) = Project::new() else {
        return;
    };
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/troubleshooting.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, page) = page.split_once("\n## Running\n").unwrap();
    let says = |output: &Output, start: &str| {
        let printed = text(&output.stderr);
        let quoted = page.split('`').find(|quoted| quoted.starts_with(start));
        let quoted = quoted.unwrap_or_else(|| panic!("the page has no `{start}`"));
        assert!(printed.contains(quoted), "{quoted}\n{printed}");
    };
    project.compile("main.c", &program(&["in_c"]), &[]);
    project.compile("c.c", &region("in_c"), &[]);
    let link = project.clang(&["main.o", "c.o"]).output().unwrap();
    assert!(link.status.success(), "{link:?}");
    assert!(project.run("a.out").status.success());

    let mut bytes = fs::read(project.path("a.out")).unwrap();
    let image = bytes.windows(4).rposition(|at| at == b"\x7fELF").unwrap();
    assert!(image > 0, "the image is in the program");
    // Its machine is AMD's GPU.
    bytes[image + 18] = 224;
    project.write("a.out", &bytes);
    let mandatory = project.run("a.out");
    assert!(!mandatory.status.success(), "{mandatory:?}");
    says(&mandatory, "omptarget fatal error 1: ");
    says(&mandatory, "omptarget error: No images found");
    let mut default = project.command(project.path("a.out"));
    let default = default
        .env("LD_LIBRARY_PATH", &project.runtime)
        .env_remove("OMP_TARGET_OFFLOAD")
        .output()
        .unwrap();
    assert_eq!(text(&default.stderr), "", "no message");
    // The loader searches the runtime's folder on some systems.
    let mut unset = project.command(project.path("a.out"));
    let unset = unset.env_remove("LD_LIBRARY_PATH").output().unwrap();
    if unset.status.code() == Some(127) {
        says(&unset, "error while loading shared libraries: ");
    }
}
