//! `cargo offload verify` and `explain`, on what compilers and bundlers write.

use std::path::Path;
use std::process::{Command, Output};

use offload_formats::container::verify::FindingCode;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{program, run, tool};

const KERNEL: &str = "
#include <offload/gpu.h>
template <typename T> __global__ void scale(T *x) { x[threadIdx.x] *= 2; }
extern \"C\" __global__ void plain(float *x) { x[threadIdx.x] += 1; }
void start(float *x) { scale<<<1, 64>>>(x); plain<<<1, 64>>>(x); }
";
/// Stands for HIP's runtime: programs are linked, not run.
const RUNTIME: &str = "
int __hipPushCallConfiguration() { return 0; } int __hipPopCallConfiguration() { return 0; }
int hipLaunchKernel() { return 0; } void __hipRegisterFunction() {} void __hipUnregisterFatBinary() {}
void *__hipRegisterFatBinary() { return 0; }
";

fn cargo_offload(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    command.arg("offload").args(arguments);
    command.current_dir(folder.path()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the codes of all findings of a file.
fn codes(folder: &TempDir, file: &str) -> Vec<String> {
    let output = cargo_offload(folder, &["verify", "--json", file]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["schema"], 1);
    let findings = found["files"][0]["findings"].as_array().unwrap();
    let codes: Vec<String> = findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap().to_owned())
        .collect();
    let has_error = findings
        .iter()
        .any(|finding| finding["severity"] == "error");
    assert_eq!(
        output.status.code(),
        Some(i32::from(has_error)),
        "{file}: {codes:?}"
    );
    codes
}

fn put(folder: &TempDir, name: &str, content: &str) {
    std::fs::write(folder.path().join(name), content).unwrap();
}

/// Makes a library of HIP code with a registration, from `KERNEL`.
fn library(folder: &TempDir, clang: &Path, flags: &[&str]) {
    put(folder, "k.hip", KERNEL);
    put(folder, "runtime.c", RUNTIME);
    let include = concat!(
        "-I",
        env!("CARGO_MANIFEST_DIR"),
        "/../offload-build/include"
    );
    run(Command::new(clang)
        .args([
            "-x",
            "hip",
            "-nogpuinc",
            "-nogpulib",
            "-fPIC",
            "-c",
            "k.hip",
            "-o",
            "k.o",
            include,
        ])
        .args([
            "--no-offload-new-driver",
            "--offload-arch=gfx90a:xnack+",
            "--offload-arch=gfx1100",
        ])
        .args(flags)
        .current_dir(folder.path()));
    run(Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "runtime.c", "k.o", "-o", "lib.so"])
        .current_dir(folder.path()));
}

#[test]
fn finds_nothing_in_libraries_of_clang() {
    let folder = tempfile::tempdir().unwrap();
    for (word, name) in [("llvm19", "clang-19"), ("llvm22", "clang-22")] {
        let Some(clang) = tool(word, &[name]) else {
            continue;
        };
        for flags in [&[][..], &["--offload-compress"]] {
            library(&folder, &clang, flags);
            assert_eq!(codes(&folder, "lib.so"), [""; 0], "{name} {flags:?}");
        }
    }
}

#[test]
fn finds_what_is_broken_in_a_library() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(clang), Some(objcopy)) = (tool("llvm22", &["clang-22"]), program("objcopy")) else {
        return;
    };
    library(&folder, &clang, &[]);
    let changed = |arguments: &[&str]| {
        run(Command::new(&objcopy)
            .args(arguments)
            .args(["lib.so", "bad.so"])
            .current_dir(folder.path()));
        codes(&folder, "bad.so")
    };
    // Another file's bytes in place of the bundle; the host still registers its kernels.
    let zeros = vec![0; 64];
    std::fs::write(folder.path().join("zeros"), zeros).unwrap();
    assert_eq!(
        changed(&["--update-section", ".hip_fatbin=zeros"]),
        ["OFF401", "OFF405"]
    );
    // The images of a library with other kernels.
    put(&folder, "k.hip", KERNEL);
    run(Command::new(&objcopy)
        .args(["--dump-section", ".hip_fatbin=bundle", "lib.so", "copy.so"])
        .current_dir(folder.path()));
    let mut bundle = std::fs::read(folder.path().join("bundle")).unwrap();
    let names: Vec<usize> = bundle
        .windows(9)
        .enumerate()
        .filter(|(_, at)| *at == b"plain.kd\0")
        .map(|(place, _)| place)
        .collect();
    assert!(!names.is_empty());
    for place in names {
        bundle[place] = b'q';
    }
    std::fs::write(folder.path().join("other"), &bundle).unwrap();
    let found = changed(&["--update-section", ".hip_fatbin=other"]);
    assert!(found.contains(&"OFF404".to_owned()), "{found:?}");
    // An image for another processor: the ELF flags of gfx1100 (0x41) become those of gfx1101 (0x46).
    let mut bundle = std::fs::read(folder.path().join("bundle")).unwrap();
    let at = bundle.windows(4).rposition(|at| at == b"\x7fELF").unwrap();
    bundle[at + 48] = 0x46;
    std::fs::write(folder.path().join("other"), &bundle).unwrap();
    assert_eq!(
        changed(&["--update-section", ".hip_fatbin=other"]),
        ["OFF113"]
    );
}

#[test]
fn follows_deny_allow_and_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    // An empty image.
    let id = "hipv4-amdgcn-amd-amdhsa--gfx906";
    let mut file = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    for field in [1, 4096, 0, id.len() as u64] {
        file.extend(field.to_le_bytes());
    }
    file.extend(id.as_bytes());
    file.resize(4096, 0);
    std::fs::write(folder.path().join("k.hipfb"), file).unwrap();
    let status = |arguments: &[&str]| cargo_offload(&folder, arguments).status.code();
    let output = cargo_offload(&folder, &["verify", "k.hipfb"]);
    assert_eq!(
        text(&output.stdout),
        "k.hipfb: 1 device image\n  warning OFF104: Entry without a device image\n    \
         offset 0x0, entry 0 `hipv4-amdgcn-amd-amdhsa--gfx906`: the image is empty\n    \
         next: Remove the entry, or bundle an image for its target.\n0 errors, 1 warning, 0 notes\n"
    );
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(status(&["verify", "--deny=warnings", "k.hipfb"]), Some(1));
    assert_eq!(status(&["verify", "--deny=off104", "k.hipfb"]), Some(1));
    assert_eq!(
        status(&["verify", "--deny=warnings", "--allow=OFF104", "k.hipfb"]),
        Some(0)
    );
    assert_eq!(status(&["verify", "--runtime=rocm", "k.hipfb"]), Some(2));
    assert_eq!(status(&["verify", "missing"]), Some(1));
    let output = cargo_offload(&folder, &["verify", "--deny=OFF999", "k.hipfb"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`cargo offload explain` lists all codes"));
}

#[test]
fn explains_each_code_like_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/verify.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, page) = page.split_once("## Codes\n\n").unwrap();
    let sections = FindingCode::ALL.iter().map(|code| {
        let (name, title) = (code.code(), code.title());
        let (severity, meaning, action) = (code.severity().name(), code.meaning(), code.action());
        format!("### {name}: {title}\n\n{severity}. {meaning}\n\nNext: {action}\n")
    });
    let expected: Vec<String> = sections.collect();
    assert_eq!(page, expected.join("\n"));

    let list = text(&cargo_offload(&folder, &["explain"]).stdout);
    let findings = list.lines().filter(|line| line < &"OFF5").count();
    assert_eq!(findings, FindingCode::ALL.len());
    let one = text(&cargo_offload(&folder, &["explain", "off112"]).stdout);
    assert!(
        one.starts_with("OFF112 (error): Target IDs that exclude each other\n\n"),
        "{one}"
    );
    assert!(
        one.ends_with(
            "\nNext: Build for gfx90a alone, or for both gfx90a:xnack+ and gfx90a:xnack-.\n"
        ),
        "{one}"
    );
    assert_eq!(
        cargo_offload(&folder, &["explain", "x"]).status.code(),
        Some(2)
    );
}

#[test]
fn explains_each_error_by_its_section() {
    let folder = tempfile::tempdir().unwrap();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/troubleshooting.md");
    let page = std::fs::read_to_string(page).unwrap();
    let list = text(&cargo_offload(&folder, &["explain"]).stdout);
    let mut count = 0;
    for section in page.split("\n### OFF").skip(1) {
        let (heading, body) = section.split_once("\n\n").unwrap();
        let (number, title) = heading.split_once(": ").unwrap();
        let body = body.split("\n\n#").next().unwrap().trim_end();
        let code = format!("OFF{number}");
        let output = cargo_offload(&folder, &["explain", &code]);
        let expected = format!("{code} (error): {title}\n\n{body}\n");
        assert_eq!(text(&output.stdout), expected);
        let row = list.lines().find(|line| line.starts_with(&code)).unwrap();
        assert!(row.contains(" error ") && row.ends_with(title), "{row}");
        count += 1;
    }
    assert_eq!(list.lines().filter(|line| line > &"OFF5").count(), count);
    let json = text(&cargo_offload(&folder, &["explain", "--json", "off601"]).stdout);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["codes"][0]["code"], "OFF601");
    assert!(json["codes"][0]["action"].is_null(), "{json}");
}
