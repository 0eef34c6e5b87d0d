//! A Cargo workspace whose build scripts know a C compiler and nothing of us: device code in three
//! crates, one below the other, linked by `offload-link` as rustc's linker.

use crate::linker_support as support;

use crate::runtimes;

use std::fs;
use std::process::Output;

use runtimes::{HIP, RUNTIME};
use support::{ON_HOST, Project, found, text, tool};

/// Compiles `kernel.c` into a static library, as people do by hand.
const BUILD_SCRIPT: &str = r#"
use std::{env, process::Command};
fn main() {
    let out = env::var("OUT_DIR").unwrap();
    let name = env::var("CARGO_PKG_NAME").unwrap();
    let run = |command: &mut Command| assert!(command.status().unwrap().success());
    run(Command::new(env::var("DEVICE_CLANG").unwrap())
        .args(env::var("DEVICE_FLAGS").unwrap().split(' '))
        .args(["-O1", "-fPIC", "-c", "kernel.c", "-o"])
        .arg(format!("{out}/kernel.o")));
    run(Command::new("ar").arg("rcs").args([format!("{out}/lib{name}_kernel.a"), format!("{out}/kernel.o")]));
    println!("cargo::rustc-link-search=native={out}");
    println!("cargo::rustc-link-lib=static={name}_kernel");
    println!("cargo::rerun-if-changed=kernel.c");
}
"#;

/// Each region is on the host or adds a number; those of the upper crates call device code of the
/// lowest.
fn kernel(name: &str, calls: &str) -> String {
    format!(
        "{ON_HOST}
#pragma omp declare target
{calls}
#pragma omp end declare target
int {name}_region(int);
int {name}_region(int x) {{
  int result = -1;
#pragma omp target map(to : x) map(from : result)
  result = on_host() ? -1 : helper(x);
  return result;
}}
"
    )
}

/// Crates, what each depends on, and its kernels.
const CRATES: [(&str, &str); 3] = [("deep", ""), ("middle", "deep"), ("app", "middle")];

fn write_workspace(project: &Project) {
    project.write(
        "Cargo.toml",
        "[workspace]\nresolver = \"2\"\nmembers = [\"app\", \"middle\", \"deep\"]\n\
         [profile.release]\nlto = \"fat\"\n",
    );
    for (name, below) in CRATES {
        fs::create_dir_all(project.path(format!("{name}/src"))).unwrap();
        let dependency = match below {
            "" => String::new(),
            below => format!("{below} = {{ path = \"../{below}\" }}\n"),
        };
        project.write(
            format!("{name}/Cargo.toml"),
            format!(
                "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n{dependency}"
            ),
        );
        project.write(format!("{name}/build.rs"), BUILD_SCRIPT);
        let helper = match below {
            "" => "int helper(int x) { return x + 1; }",
            _ => "int helper(int x);",
        };
        project.write(format!("{name}/kernel.c"), kernel(name, helper));
        let declared = format!("extern \"C\" {{ fn {name}_region(x: i32) -> i32; }}\n");
        let deeper = match below {
            "" => "0".to_owned(),
            below => format!("{below}::sum(x)"),
        };
        let source = match name {
            "app" => format!(
                "{declared}fn main() {{ let x = 40;\n\
                 let sum = unsafe {{ app_region(x) }} + {deeper}; println!(\"sum={{sum}}\"); }}"
            ),
            _ => format!(
                "{declared}pub fn sum(x: i32) -> i32 {{ unsafe {{ {name}_region(x) + {deeper} }} }}\n\
                 #[test] fn runs_on_the_device() {{ assert_eq!(sum(1) % 2, 0); assert!(sum(1) > 0); }}"
            ),
        };
        let file = if name == "app" { "main.rs" } else { "lib.rs" };
        project.write(format!("{name}/src/{file}"), source);
    }
}

#[test]
fn runs_the_regions_of_three_crates_one_below_the_other() {
    let (Some(project), Some(cargo)) = (Project::new(), found("cargo")) else {
        return;
    };
    write_workspace(&project);
    let cargo = |args: &[&str], flags: &str| -> Output {
        let _ = fs::remove_file(project.path("report"));
        let output = project
            .command(&cargo)
            .args(args)
            .args(["--offline", "--quiet"])
            .env("DEVICE_CLANG", &project.clang)
            .env("DEVICE_FLAGS", support::OPENMP.join(" "))
            .env("CARGO_TARGET_DIR", project.path("target"))
            .env(
                "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
                env!("CARGO_BIN_EXE_offload-link"),
            )
            .env("RUSTFLAGS", flags)
            .env("OFFLOAD_LINK_REPORT", project.path("report"))
            .env("OMP_TARGET_OFFLOAD", "MANDATORY")
            .env("LD_LIBRARY_PATH", &project.runtime)
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?} {flags}: {output:?}");
        output
    };
    let linkers = [
        "",
        "-Clinker-features=-lld -Clink-arg=-fuse-ld=bfd -Clink-arg=-Wl,--allow-shlib-undefined",
    ];
    for (number, flags) in linkers.into_iter().enumerate() {
        // Each linker with one of the profiles, or with both.
        for profile in crate::support::share(["dev", "release"], number, 2) {
            let built = cargo(&["build", "--profile", profile], flags);
            // rustc makes a warning of anything that a linker says.
            assert_eq!(text(&built.stderr), "", "{flags} {profile}");
            let report = project.read("report");
            let images: Vec<&str> = report
                .lines()
                .filter(|line| line.contains(": openmp "))
                .collect();
            let linked = |line: &&&str| line.ends_with(": linked for x86_64-pc-linux-gnu");
            assert_eq!(
                images.iter().filter(linked).count(),
                3,
                "{flags} {profile}: {report}"
            );
            assert_eq!(images.len(), 3, "{flags} {profile}: {report}");
            assert!(!report.contains("left out"), "{report}");
            let folder = if profile == "dev" { "debug" } else { profile };
            let run = project.run(&format!("target/{folder}/app"));
            // Three times 41: each region was on a device, which had `helper`.
            assert_eq!(text(&run.stdout), "sum=123\n", "{flags} {profile}: {run:?}");
        }
    }
    // The tests of each crate are programs of their own; what `app` has is none of theirs.
    cargo(&["test", "--workspace"], "");
}

/// A kernel that launches, and calls device code of the lowest crate.
fn hip_kernel(name: &str, helper: &str) -> String {
    format!(
        "{HIP}
__device__ {helper}
__global__ void {name}_kernel(int *p) {{ *p = helper(*p); }}
extern \"C\" int {name}_region(int) {{ {name}_kernel<<<1, 1>>>(nullptr); return 0; }}
"
    )
}

#[test]
#[ignore = "`make test-all`: `runs_the_regions_of_three_crates_one_below_the_other` links the same crates"]
fn registers_the_kernels_of_three_crates_as_one_fat_binary() {
    let (Some(project), Some(cargo)) = (Project::new(), found("cargo")) else {
        return;
    };
    let Some(clang) = tool("llvm22", "clang++") else {
        return;
    };
    write_workspace(&project);
    for (name, below) in CRATES {
        let helper = match below {
            "" => "int helper(int x) { return x + 1; }",
            _ => "int helper(int x);",
        };
        project.write(format!("{name}/kernel.c"), hip_kernel(name, helper));
    }
    project.write("runtime.c", RUNTIME);
    let shared = [
        "-shared",
        "-fPIC",
        "-w",
        "-DPREFIX=hip",
        "runtime.c",
        "-o",
        "libamdhip64.so",
    ];
    assert!(
        project
            .command("cc")
            .args(shared)
            .status()
            .unwrap()
            .success()
    );
    let folder = project.root().display().to_string();
    let linkers = ["", "-Clinker-features=-lld -Clink-arg=-fuse-ld=bfd"];
    for (number, linker) in linkers.into_iter().enumerate() {
        // The runtime is named by nobody: that there is code for HIP says it.
        let flags = format!("{linker} -Lnative={folder}");
        for profile in crate::support::share(["release", "dev"], number, 2) {
            let _ = fs::remove_file(project.path("report"));
            let built = project
                .command(&cargo)
                .args(["build", "--offline", "--quiet", "--profile", profile])
                .env("DEVICE_CLANG", &clang)
                .env(
                    "DEVICE_FLAGS",
                    "-x hip -nogpulib -nogpuinc --offload-arch=gfx90a,gfx1100 -fgpu-rdc --offload-new-driver",
                )
                .env("CARGO_TARGET_DIR", project.path("target"))
                .env(
                    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
                    env!("CARGO_BIN_EXE_offload-link"),
                )
                .env("RUSTFLAGS", &flags)
                .env("OFFLOAD_LINK_REPORT", project.path("report"))
                .output()
                .unwrap();
            assert!(built.status.success(), "{flags} {profile}: {built:?}");
            let report = project.read("report");
            let images: Vec<&str> = report
                .lines()
                .filter(|line| line.contains(": hip "))
                .collect();
            assert_eq!(images.len(), 6, "{flags} {profile}: {report}");
            assert!(
                images
                    .iter()
                    .all(|line| line.contains(": linked for amdgcn-amd-amdhsa gfx")),
                "{report}"
            );
            let target = if profile == "dev" { "debug" } else { profile };
            let run = project
                .command(project.path(format!("target/{target}/app")))
                .env("LD_LIBRARY_PATH", &folder)
                .output()
                .unwrap();
            let said = text(&run.stdout);
            let mut lines: Vec<&str> = said.lines().collect();
            lines.sort_unstable();
            let expected = [
                "FatBinary 48495046 1 5f5f434c",
                "Function _Z10app_kernelPi _Z10app_kernelPi -1",
                "Function _Z11deep_kernelPi _Z11deep_kernelPi -1",
                "Function _Z13middle_kernelPi _Z13middle_kernelPi -1",
                "Unregister",
                "launch _Z10app_kernelPi",
                "launch _Z11deep_kernelPi",
                "launch _Z13middle_kernelPi",
                "sum=0",
            ];
            assert_eq!(lines, expected, "{flags} {profile}: {run:?}");
        }
    }
}
