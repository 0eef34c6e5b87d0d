//! `cargo offload doctor`, `config`, `targets`, `schema`, `plan`, and Cargo with our linker.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support;
use crate::support::dependencies;

/// A folder with files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn cargo_offload(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    command.arg("offload").args(arguments).current_dir(folder);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("OFFLOAD_") || text.starts_with("CARGO_TARGET_") {
            command.env_remove(name);
        }
    }
    command
        .env("CARGO", env!("CARGO"))
        .env("CARGO_TERM_COLOR", "never");
    command
}

#[track_caller]
fn said(output: &Output, status: i32) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    stdout
}

#[track_caller]
fn json(command: &mut Command) -> Value {
    let value: Value = serde_json::from_str(&said(&command.output().unwrap(), 0)).unwrap();
    assert_eq!(value["schema"], 1);
    value
}

const MANIFEST: &str = "[package]\nname = \"pack\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
    [features]\nfast = []\n\
    [package.metadata.offload]\nlanguage = \"hip\"\ntargets = [\"gfx90a\", \"gfx1100\"]\n\
    [package.metadata.offload.profile.release]\nopt-level = 2\n\
    [[package.metadata.offload.module]]\nname = \"one\"\nsources = [\"k.hip\"]\ndefine = { A = 1 }\n\
    [package.metadata.offload.module.target.\"gfx90a\"]\nflags = [\"-g\"]\n\
    [[package.metadata.offload.module]]\nname = \"two\"\nsources = [\"k.hip\"]\nfeature = \"fast\"\n";

/// A workspace whose member has two modules; one belongs to a feature that is off.
fn workspace() -> TempDir {
    folder(&[
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"pack\", \"plain\"]\nresolver = \"3\"\n\
             [workspace.metadata.offload]\nstd = \"c++17\"\nmissing = \"skip\"\n",
        ),
        ("pack/Cargo.toml", MANIFEST),
        ("pack/src/lib.rs", ""),
        (
            "pack/k.hip",
            "#include <offload/gpu.h>\n__global__ void k(float *x) { *x = 1; }\n",
        ),
        ("plain/Cargo.toml", "[package]\nname = \"plain\"\n"),
        ("plain/src/lib.rs", ""),
    ])
}

#[test]
fn shows_each_key_with_the_place_where_it_was_written() {
    let folder = workspace();
    let mut command = cargo_offload(folder.path(), &["config", "--json", "--release"]);
    let document = json(command.env("OFFLOAD_STD", "c++20"));
    assert_eq!(document["profile"], "release");
    assert_eq!(document["packages"].as_array().unwrap().len(), 1);
    let modules = &document["packages"][0]["modules"];
    assert_eq!(
        (&modules[0]["on"], &modules[1]["on"]),
        (&true.into(), &false.into())
    );
    let keys = modules[0]["keys"].as_array().unwrap();
    let found: Vec<[&str; 3]> = keys
        .iter()
        .map(|key| ["key", "value", "origin"].map(|name| key[name].as_str().unwrap()))
        .collect();
    let workspace = |place: &str| {
        let path = folder.path().canonicalize().unwrap().join("Cargo.toml");
        format!("{}:{place}", path.display())
    };
    let missing = workspace("6:1");
    assert_eq!(
        found,
        [
            ["language", "\"hip\"", "Cargo.toml:8:1"],
            ["sources", "[\"k.hip\"]", "Cargo.toml:14:1"],
            ["targets", "[\"gfx90a\", \"gfx1100\"]", "Cargo.toml:9:1"],
            ["define", "{ \"A\" = \"1\" }", "Cargo.toml:15:1"],
            ["opt-level", "\"2\"", "Cargo.toml:11:1"],
            ["std", "\"c++20\"", "OFFLOAD_STD"],
            ["missing", "\"skip\"", &missing],
            ["name", "\"one\"", "Cargo.toml:13:1"],
            ["flags", "[\"-g\"]", "Cargo.toml:17:1"],
        ]
    );
    assert_eq!(keys[8]["target"], "gfx90a");
    // For people, with defaults; and a feature turns the second module on.
    let text = said(
        &cargo_offload(
            folder.path(),
            &["config", "--all", "-p", "pack", "-F", "fast"],
        )
        .output()
        .unwrap(),
        0,
    );
    assert!(text.starts_with("pack 0.1.0\n  module one\n"), "{text}");
    assert!(text.contains("\n  module two\n"), "{text}");
    assert!(
        text.contains("    target.gfx90a.flags  = [\"-g\"]"),
        "{text}"
    );
    assert!(
        text.contains("    rdc                  (`true`; "),
        "{text}"
    );
}

#[test]
fn says_which_manifest_is_invalid_and_when_there_is_none() {
    let folder = workspace();
    let fails = |arguments: &[&str], message: &str| {
        let output = cargo_offload(folder.path(), arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(message), "{error}");
    };
    fails(
        &["config", "-p", "plain"],
        "no package here has a table [package.metadata.offload]",
    );
    fails(
        &["config", "-p", "gone"],
        "`gone` is no package of this workspace",
    );
    let manifest = MANIFEST.replace("language", "langage");
    fs::write(folder.path().join("pack/Cargo.toml"), manifest).unwrap();
    fails(
        &["config"],
        "pack: Cargo.toml:8:1: unknown key `langage`; did you mean `language`? [OFF501]",
    );
    // Whatever doctor finds is no failure of doctor.
    let document = json(&mut cargo_offload(folder.path(), &["doctor", "--json"]));
    let problem = document["packages"][0]["problem"].as_str().unwrap();
    assert!(
        problem.starts_with("Cargo.toml:8:1: unknown key"),
        "{problem}"
    );
    fs::write(folder.path().join("Cargo.toml"), "[workspace\n").unwrap();
    let document = json(&mut cargo_offload(folder.path(), &["doctor", "--json"]));
    let problem = document["problem"].as_str().unwrap();
    assert!(
        problem.contains("cargo metadata") || problem.contains("\"metadata\""),
        "{problem}"
    );
}

#[test]
fn tells_for_each_target_whether_it_builds_and_what_is_missing() {
    let folder = workspace();
    // Nothing but rustc.
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    // Not rustup's link, which needs its other files.
    let sysroot = support::run(Command::new("rustc").args(["--print", "sysroot"]));
    let rustc = Path::new(sysroot.trim()).join("bin/rustc");
    std::os::unix::fs::symlink(&rustc, bin.join("rustc")).unwrap();
    let ours = env!("CARGO_BIN_EXE_offload-link");
    std::os::unix::fs::symlink(ours, bin.join("offload-link")).unwrap();
    let mut bare = cargo_offload(folder.path(), &["doctor", "--json"]);
    for name in ["CUDA_PATH", "CUDA_HOME", "ROCM_PATH", "HIP_PATH", "RUSTC"] {
        bare.env_remove(name);
    }
    let document = json(bare.env("PATH", &bin));
    let tools = document["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name);
    let clang = tool("clang").unwrap();
    assert_eq!(clang["path"], Value::Null);
    assert!(
        clang["hint"].as_str().unwrap().contains("install clang"),
        "{clang}"
    );
    let version = concat!("offload-link ", env!("CARGO_PKG_VERSION"));
    assert_eq!(tool("offload-link").unwrap()["detail"], version);
    let modules = &document["packages"][0]["modules"];
    for (index, target) in ["gfx90a", "gfx1100"].into_iter().enumerate() {
        let found = &modules[0]["targets"][index];
        assert_eq!(found["target"], target);
        assert_eq!(found["builds"], false);
        let problem = found["problem"].as_str().unwrap();
        assert!(problem.contains("install clang"), "{problem}");
        assert!(!problem.contains("OFFLOAD_MISSING=skip"), "{problem}");
    }
    assert_eq!(modules[1]["on"], false);
    assert_eq!(modules[1]["targets"].as_array().unwrap().len(), 0);
    if support::tool("llvm22", &["clang"]).is_none() {
        return;
    }
    // The machine as it is; one processor that no compiler knows.
    let manifest = MANIFEST.replace("gfx1100", "gfx9999");
    fs::write(folder.path().join("pack/Cargo.toml"), manifest).unwrap();
    let output = cargo_offload(folder.path(), &["doctor"]).output().unwrap();
    let text = said(&output, 0);
    assert!(text.contains("\n  clang 22  "), "{text}");
    assert!(text.contains("\n    builds  gfx90a   by /"), "{text}");
    assert!(text.contains("\n    fails   gfx9999\n"), "{text}");
    assert!(text.contains("does not know `gfx9999`"), "{text}");
    assert!(!folder.path().join("pack/target").exists());
}

#[test]
fn says_which_images_libomptarget_does_not_load() {
    let tools = [
        support::tool("omptarget19", &["libomptarget.so"]),
        support::tool("cuda", &["ptxas"]),
        support::tool("cuda12", &["cuda-12/bin/ptxas"]),
    ];
    let [Some(_), Some(new), Some(old)] = tools else {
        return;
    };
    let folder = folder(&[
        (
            "Cargo.toml",
            "[package]\nname = \"pack\"\nversion = \"0.1.0\"\n[package.metadata.offload]\n\
             language = \"openmp\"\nsources = [\"k.c\"]\ntargets = [\"sm_80\"]\n",
        ),
        ("src/lib.rs", ""),
        ("k.c", ""),
    ]);
    for (ptxas, expected) in [(new, true), (old, false)] {
        let mut doctor = cargo_offload(folder.path(), &["doctor"]);
        doctor
            .env("OFFLOAD_COMPILER", "/usr/lib/llvm-19/bin/clang")
            .env("CUDA_PATH", ptxas.ancestors().nth(2).unwrap());
        let text = said(&doctor.output().unwrap(), 0);
        let (_, target) = text
            .split_once("\n    builds  sm_80  by ")
            .expect("it builds");
        let note = "\n            libomptarget of LLVM 19 does not load the image for sm_80, which has the ELF format of CUDA 13\n";
        assert_eq!(target.contains(note), expected, "{text}");
    }
}

/// CUDA 13 begins with `sm_75`.
#[test]
fn says_which_processors_cuda_does_not_know() {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    let folder = folder(&[
        (
            "Cargo.toml",
            "[package]\nname = \"pack\"\nversion = \"0.1.0\"\n[package.metadata.offload]\n\
             language = \"cuda\"\nsources = [\"k.cu\"]\ntargets = [\"sm_70\", \"sm_80\"]\nmissing = \"skip\"\n",
        ),
        ("src/lib.rs", ""),
        ("k.cu", ""),
    ]);
    let clang = support::tool("llvm22", &["clang"]);
    for compiler in [Some(nvcc.clone()), clang].into_iter().flatten() {
        let mut doctor = cargo_offload(folder.path(), &["doctor"]);
        doctor
            .env("OFFLOAD_COMPILER", &compiler)
            .env("CUDA_PATH", nvcc.ancestors().nth(2).unwrap());
        let text = said(&doctor.output().unwrap(), 0);
        let unknown = format!(
            "\n    fails   sm_70\n            unknown to `{}` [OFF602]\n            hint: each release of CUDA has its processors: ",
            nvcc.with_file_name("ptxas").display()
        );
        assert!(text.contains(&unknown), "{text}");
        assert!(text.contains("\n    builds  sm_80  by "), "{text}");
    }
}

#[test]
fn says_which_kernels_need_device_libraries_that_are_missing() {
    let tools = [
        support::tool("llvm19", &["clang-19"]),
        support::tool("omptarget19", &["libomptarget.so"]),
    ];
    if tools.contains(&None) {
        return;
    }
    let manifest = "[package]\nname = \"pack\"\nedition = \"2024\"\n[package.metadata.offload]\n\
        targets = [\"gfx90a\"]\ncompiler = \"clang-19\"\n\
        [[package.metadata.offload.module]]\nname = \"rocm\"\nlanguage = \"hip\"\nsources = [\"rocm.hip\"]\n\
        [[package.metadata.offload.module]]\nname = \"own\"\nlanguage = \"hip\"\nsources = [\"own.hip\"]\n\
        [[package.metadata.offload.module]]\nname = \"openmp\"\nlanguage = \"openmp\"\nsources = [\"k.c\"]\n";
    let folder = folder(&[
        ("Cargo.toml", manifest),
        ("src/lib.rs", ""),
        ("rocm.hip", "#include <hip/hip_runtime.h>\n"),
        ("own.hip", "#include <offload/gpu.h>\n"),
        ("k.c", ""),
        ("rocm/include/hip/hip_runtime.h", ""),
        ("libraries/README", ""),
    ]);
    let libraries = folder.path().join("libraries");
    let doctor = |arguments: &[&str]| {
        let mut command = cargo_offload(folder.path(), arguments);
        command
            .env("ROCM_PATH", folder.path().join("rocm"))
            .env("HIP_DEVICE_LIB_PATH", &libraries);
        command
    };
    // Without the variable, which names a folder of libraries.
    let unnamed = json(doctor(&["doctor", "--json"]).env_remove("HIP_DEVICE_LIB_PATH"));
    let mut tools = unnamed["tools"].as_array().unwrap().iter();
    let rocm = tools.find(|tool| tool["name"] == "ROCm").unwrap();
    assert_eq!(rocm["detail"], "no device libraries");
    let hint = rocm["hint"].as_str().unwrap();
    assert!(
        hint.starts_with("install ROCm's device libraries"),
        "{hint}"
    );
    let without = "\nsources that include `<offload/gpu.h>` and none of the SDK's headers build without the SDK, ";
    assert!(hint.contains(without), "{hint}");
    let document = json(&mut doctor(&["doctor", "--json"]));
    let target = |module: usize, key: &str| {
        let target = &document["packages"][0]["modules"][module]["targets"][0];
        target[key].clone()
    };
    assert_eq!(target(0, "builds"), false);
    let problem = target(0, "problem").as_str().unwrap().to_owned();
    let start = "clang-19`: cannot find ROCm device library; ";
    assert!(problem.contains(start), "{problem}");
    let hint = "\nhint: install ROCm's device libraries";
    assert!(problem.contains(hint), "{problem}");
    assert!(problem.contains("`<offload/gpu.h>`"), "{problem}");
    assert_eq!(target(1, "builds"), true);
    assert_eq!(target(1, "note"), Value::Null);
    assert_eq!(target(2, "builds"), true);
    let note = target(2, "note").as_str().unwrap().to_owned();
    let start = "only kernels that call no function of the math library: `";
    assert!(note.starts_with(start), "{note}");
    assert!(note.contains("cannot find ROCm device library"), "{note}");
    let text = said(&doctor(&["doctor"]).output().unwrap(), 0);
    let printed = format!("/clang-19\n            {note}\n");
    assert!(text.contains(&printed), "{text}");
    support::device_libraries::put(&libraries, "");
    let text = said(&doctor(&["doctor"]).output().unwrap(), 0);
    assert_eq!(text.matches("    builds  gfx90a  by ").count(), 3, "{text}");
    assert!(!text.contains("math library"), "{text}");
}

#[test]
fn lists_targets_by_processor_and_by_product() {
    let here = tempfile::tempdir().unwrap();
    let arguments = [
        "targets",
        "--json",
        "MI250",
        "gfx942:xnack+",
        "rtx 4090",
        "sm_90a",
    ];
    let document = json(&mut cargo_offload(here.path(), &arguments));
    let targets = document["targets"].as_array().unwrap();
    let names: Vec<&str> = targets
        .iter()
        .map(|target| target["target"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["gfx90a", "gfx942", "sm_89", "sm_90a"]);
    assert_eq!(targets[1]["architecture"], "CDNA 3");
    assert_eq!(targets[1]["generic"], "gfx9-4-generic");
    assert_eq!(targets[3]["products"][0], "H100");
    if support::tool("llvm22", &["clang"]).is_some() {
        let compilers = targets[0]["compilers"].as_array().unwrap();
        assert!(compilers.contains(&"clang 22".into()), "{compilers:?}");
    }
    if support::tool("cuda", &["ptxas", "nvcc"]).is_some() {
        // nvcc's own list has no suffixes.
        for target in &targets[2..] {
            let compilers = target["compilers"].as_array().unwrap();
            assert!(compilers.contains(&"nvcc".into()), "{compilers:?}");
        }
        // CUDA 13 begins with `sm_75`.
        let text = said(
            &cargo_offload(here.path(), &["targets", "sm_70"])
                .output()
                .unwrap(),
            0,
        );
        if support::tool("llvm22", &["clang"]).is_some() {
            assert!(text.starts_with("sm_70  Volta  clang 22 (PTX)"), "{text}");
        }
        assert!(!text.contains("nvcc"), "{text}");
    }
    let output = cargo_offload(here.path(), &["targets", "gfx90b"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("`gfx90b` is not a known processor or product; did you mean `gfx90a`?"),
        "{error}"
    );
    // Neither Cargo nor rustc is needed.
    let mut alone = cargo_offload(here.path(), &["targets", "MI250"]);
    let alone = alone.env_remove("RUSTC").env("PATH", "/nonexistent");
    assert!(said(&alone.output().unwrap(), 0).starts_with("gfx90a  CDNA 2 "));
    let all = said(
        &cargo_offload(here.path(), &["targets"]).output().unwrap(),
        0,
    );
    assert!(
        all.contains("gfx1201") && all.contains("GeForce RTX 5090"),
        "{all}"
    );
}

#[cfg(unix)]
#[test]
fn lists_targets_of_an_nvcc_whose_ptxas_lists_none() {
    use std::os::unix::fs::PermissionsExt;
    let here = folder(&[
        ("bin/nvcc", "#!/bin/sh\necho sm_80\n"),
        ("bin/ptxas", "#!/bin/sh\n"),
    ]);
    let bin = here.path().join("bin");
    for name in ["nvcc", "ptxas"] {
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut targets = cargo_offload(here.path(), &["targets", "sm_80"]);
    targets.env_remove("CUDA_PATH").env("PATH", &bin);
    let text = said(&targets.output().unwrap(), 0);
    assert!(text.starts_with("sm_80  Ampere  nvcc"), "{text}");
}

#[test]
fn keeps_the_schema_in_the_documentation() {
    let here = tempfile::tempdir().unwrap();
    let schema = said(
        &cargo_offload(here.path(), &["schema"]).output().unwrap(),
        0,
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/offload.schema.json");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, &schema).unwrap();
    }
    assert_eq!(
        schema,
        fs::read_to_string(&path).unwrap(),
        "UPDATE_GOLDENS=1 writes it"
    );
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let properties = &schema["properties"];
    assert_eq!(properties["opt-level"]["enum"][0], "0");
    assert_eq!(properties["opt-level"]["enum"][6], 0);
    let per_target = &schema["definitions"]["targets"]["additionalProperties"]["properties"];
    let mut names: Vec<&String> = per_target.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(
        names,
        [
            "archives",
            "define",
            "exclude",
            "flags",
            "link",
            "optional-kernels"
        ]
    );
    assert_eq!(schema["definitions"]["module"]["required"][0], "name");
}

#[test]
fn prints_what_build_scripts_would_run() {
    if support::tool("llvm22", &["clang"]).is_none() {
        return;
    }
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples/plan");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = cargo_offload(&root.join("examples/hip-module"), &["plan"]);
    dependencies::copy_into(&target_dir, &mut command, None, &[]);
    command
        .env("CARGO_BUILD_TARGET", "x86_64-unknown-linux-gnu")
        .env("OFFLOAD_TARGETS", "gfx90a;gfx1100");
    let text = said(&command.output().unwrap(), 0);
    assert!(text.starts_with("# hip-module 0.1.0\n"), "{text}");
    for processor in ["gfx90a", "gfx1100"] {
        let compiles = text
            .lines()
            .filter(|line| line.contains("clang") && line.contains(processor));
        assert!(compiles.count() > 0, "{text}");
    }
    // Another reason to fail is reported.
    let output = command
        .env("OFFLOAD_TARGETS", "gfx90a,nonsense")
        .output()
        .unwrap();
    assert_eq!(said(&output, 1), "");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("OFFLOAD_TARGETS: `nonsense` is not a valid target"),
        "{error}"
    );
}

/// A package that prints the linker of its build script and reports a step, as `offload-build` does.
fn package() -> TempDir {
    folder(&[
        (
            "Cargo.toml",
            "[package]\nname = \"pack\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n",
        ),
        (
            "build.rs",
            "use std::io::Write;\nfn main() {\n\
             let var = |name: &str| std::env::var(name).unwrap_or_default();\n\
             println!(\"cargo::rerun-if-changed=build.rs\");\n\
             println!(\"cargo::rustc-env=LINKER={}\", var(\"RUSTC_LINKER\"));\n\
             let driver = format!(\"OFFLOAD_CC_{}\", var(\"TARGET\").replace('-', \"_\"));\n\
             println!(\"cargo::rustc-env=DRIVER={}\", var(&driver));\n\
             let file = std::fs::OpenOptions::new().append(true).open(var(\"OFFLOAD_PROGRESS\"));\n\
             let Ok(mut file) = file else { return };\n\
             file.write_all(b\"pack\\tkernels\\t1\\t2\\t340\\tk.hip for gfx90a\\n\").unwrap();\n}\n",
        ),
        (
            "src/main.rs",
            "fn main() {\n    println!(\"{} {}\", env!(\"LINKER\"), env!(\"DRIVER\"));\n\
             std::process::exit(std::env::args().nth(1).map_or(0, |code| code.parse().unwrap()));\n}\n",
        ),
    ])
}

#[test]
fn runs_cargo_with_our_linker_and_shows_progress() {
    let package = package();
    let host = "x86_64-unknown-linux-gnu";
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = cargo_offload(package.path(), arguments);
        command.envs(variables.iter().copied());
        command.env("CARGO_TARGET_DIR", package.path().join("target"));
        command.output().unwrap()
    };
    let ours = env!("CARGO_BIN_EXE_offload-link");
    let output = run(&["run", "--", "7"], &[]);
    assert_eq!(said(&output, 7), format!("{ours} \n"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("Device code k.hip for gfx90a (pack 1/2, 0.3 s)\n"),
        "{error}"
    );
    // A linker in Cargo's configuration is the one that ours drives.
    fs::create_dir(package.path().join(".cargo")).unwrap();
    let config = format!("[target.{host}]\nlinker = \"gcc\"\n");
    fs::write(package.path().join(".cargo/config.toml"), config).unwrap();
    fs::write(
        package.path().join("build.rs"),
        fs::read_to_string(package.path().join("build.rs")).unwrap() + "\n",
    )
    .unwrap();
    let output = run(&["run", "-q", "--target", host], &[]);
    assert_eq!(said(&output, 0), format!("{ours} gcc\n"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!error.contains("Device code"), "{error}");
    // So are those for a kind of platforms, and on the command line, where the last one wins.
    let config =
        "[target.'cfg(windows)']\nlinker = \"none\"\n[target.'cfg(unix)']\nlinker = \"cc\"\n";
    fs::write(package.path().join(".cargo/config.toml"), config).unwrap();
    assert_eq!(said(&run(&["run", "-q"], &[]), 0), format!("{ours} cc\n"));
    let change_the_script = || {
        let script = package.path().join("build.rs");
        let text = fs::read_to_string(&script).unwrap() + "\n";
        fs::write(script, text).unwrap();
    };
    change_the_script();
    let named = |linker: &str| format!("target.{host}.linker = \"{linker}\"");
    let line = [
        "run",
        "-q",
        "--config",
        &named("none"),
        "--config",
        &named("gcc"),
        "--",
    ];
    assert_eq!(said(&run(&line, &[]), 0), format!("{ours} gcc\n"));
    change_the_script();
    // An installed offload-link there stays: Cargo compiles everything again if the linker has another path.
    let own = package.path().join("offload-link");
    for is_there in [false, true] {
        if is_there {
            std::os::unix::fs::symlink(ours, &own).unwrap();
        }
        let config = format!("[target.{host}]\nlinker = {own:?}\n");
        fs::write(package.path().join(".cargo/config.toml"), config).unwrap();
        let output = run(&["run", "-q"], &[]);
        let linker = if is_there {
            own.to_str().unwrap()
        } else {
            ours
        };
        assert_eq!(said(&output, 0), format!("{linker} \n"));
    }
    // The user's variable wins.
    let variable = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER";
    let output = run(
        &["run", "-q", &format!("--target={host}")],
        &[(variable, "cc")],
    );
    assert_eq!(said(&output, 0), "cc \n");
    // Cargo's messages and statuses are its own.
    let output = run(&["build", "--message-format=json"], &[]);
    let messages = said(&output, 0);
    let last = messages.lines().last().unwrap();
    assert_eq!(last, "{\"reason\":\"build-finished\",\"success\":true}");
    fs::write(package.path().join("src/main.rs"), "fn main() { x }\n").unwrap();
    for (format, shown) in [
        ("short", "src/main.rs:1:13: error[E0425]: "),
        ("human", " --> src/main.rs:1:13\n"),
    ] {
        let output = run(&["build", "--message-format", format], &[]);
        assert_eq!(said(&output, 101), "");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(shown), "{error}");
    }
    said(&run(&["test"], &[]), 101);
    said(
        &run(&["install", "--path", ".", "--root", "installed"], &[]),
        101,
    );
}

/// The tables of `docs/targets.md` are those of `cargo offload targets`.
#[test]
fn lists_processors_in_the_documentation() {
    let here = tempfile::tempdir().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/targets.md");
    let page = fs::read_to_string(&path).unwrap();
    let document = json(&mut cargo_offload(here.path(), &["targets", "--json"]));
    let mut rows = BTreeMap::from([("amd", String::new()), ("nvidia", String::new())]);
    for target in document["targets"].as_array().unwrap() {
        let text = |key: &str| target[key].as_str().unwrap_or_default();
        let products: Vec<&str> = target["products"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        // Others are listed if a compiler of this machine knows them.
        if products.is_empty() {
            continue;
        }
        let row = format!(
            "| `{}` | {} | {} | {} |\n",
            text("target"),
            text("architecture"),
            text("generic"),
            products.join(", ")
        );
        rows.get_mut(text("vendor")).unwrap().push_str(&row);
    }
    let mut expected = String::new();
    let mut rest = page.as_str();
    for (vendor, rows) in ["amd", "nvidia"].map(|vendor| (vendor, &rows[vendor])) {
        let mark = format!("<!-- {vendor} -->\n");
        let (before, after) = rest.split_once(&mark).unwrap();
        expected += &format!(
            "{before}{mark}\n| target | architecture | generic target | products |\n|---|---|---|---|\n{rows}"
        );
        let old = after
            .lines()
            .take_while(|line| line.is_empty() || line.starts_with('|'));
        let old: usize = old.map(|line| line.len() + 1).sum();
        rest = &after[old.min(after.len())..];
        if !rest.is_empty() {
            expected.push('\n');
        }
    }
    expected += rest;
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        expected,
        "UPDATE_GOLDENS=1 writes it"
    );
}
