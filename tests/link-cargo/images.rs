//! The images in a finished program, looked at with the tools of others: LLVM's packager takes them out, readelf
//! says what they are, nm names the kernels that the host registers.

use crate::support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Target, machine and flags as readelf prints them. Flags: the processor (gfx90a is 0x3f in bits 0-7, sm_80 is 80 in
/// bits 0-7, or in 8-15), the rest as clang 19 and as ptxas 12.4 or 13.5 set it.
const EXPECTED: [(&str, &str, &[&str]); 3] = [
    (
        "x86_64-pc-linux-gnu",
        "Advanced Micro Devices X86-64",
        &["0x0"],
    ),
    (
        "amdgcn-amd-amdhsa gfx90a",
        "AMD GPU",
        &["0x53f, gfx90a, xnack any, sramecc any"],
    ),
    (
        "nvptx64-nvidia-cuda sm_80",
        "NVIDIA CUDA architecture",
        &["0x500550", "0x6005004"],
    ),
];

#[test]
fn holds_an_image_for_each_target_with_every_kernel() {
    let tools = ["clang-offload-packager"].map(|name| support::tool("llvm19", &[name]));
    let [Some(packager)] = tools else { return };
    if support::tool("omptarget19", &["libomptarget.so.19.1"]).is_none() {
        return;
    }
    let has_ptxas = support::tool("cuda", &["ptxas"]).is_some();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("images");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/openmp-saxpy");
    let mut cargo = Command::new(env!("CARGO"));
    support::dependencies::copy_into(&target, &mut cargo, None, &[]);
    cargo
        .args(["build", "--target", "x86_64-unknown-linux-gnu"])
        .current_dir(example);
    support::run(&mut cargo);
    let program = target.join("x86_64-unknown-linux-gnu/debug/openmp-saxpy");

    let symbols = support::run(Command::new("nm").arg(&program));
    let entry = |line: &str| Some(line.split_once(" .offloading.entry.")?.1.to_owned());
    let kernels: BTreeSet<String> = symbols.lines().filter_map(entry).collect();
    // Two kernels of saxpy, one each of the sum and the struct, and the global.
    assert_eq!(kernels.len(), 5, "{kernels:?}");

    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let mut objcopy = Command::new("objcopy");
    objcopy
        .args(["-O", "binary", "--only-section=.offloading.images"])
        .arg(&program);
    support::run(objcopy.arg(file("images")));
    for (target, machine, flags) in EXPECTED {
        if target.ends_with("sm_80") && !has_ptxas {
            continue;
        }
        let image = file(target);
        let (triple, arch) = target.split_once(' ').unwrap_or((target, ""));
        let filter = format!(
            "--image=file={},triple={triple},arch={arch},kind=openmp",
            image.display()
        );
        support::run(Command::new(&packager).arg(file("images")).arg(filter));
        let header = support::run(Command::new("readelf").args(["-hW"]).arg(&image));
        let field = |name: &str| {
            let line = header
                .lines()
                .find_map(|line| line.trim().strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        assert_eq!(field("Machine:"), machine, "{target}");
        let found = field("Flags:");
        assert!(flags.contains(&found.as_str()), "{target}: {found}");
        let table = support::run(Command::new("readelf").args(["-sW"]).arg(&image));
        let defined = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words.len() >= 8 && words[6] != "UND").then(|| words[words.len() - 1].to_owned())
        };
        let defined: BTreeSet<String> = table.lines().filter_map(defined).collect();
        let lost: Vec<_> = kernels.difference(&defined).collect();
        assert!(lost.is_empty(), "{target} does not define {lost:?}");
    }
}
