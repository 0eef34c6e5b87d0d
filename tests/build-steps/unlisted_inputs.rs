//! Rebuilds after a change of files and programs that no dependency file lists.

use crate::rebuilds::{HIP, MANIFEST, image, made, nothing, script};
use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use support::package::{Package, text};

/// Asserts that Cargo watches a file of the package.
#[track_caller]
fn assert_watched(told: &str, package: &Package, name: &str) {
    let line = format!("cargo::rerun-if-changed={}\n", package.at(name).display());
    assert!(told.contains(&line), "{line}{told}");
}

/// Makes a folder of links in the place of a link to a folder.
fn open_link(package: &Package, name: &str) {
    let folder = package.at(name);
    let original = fs::read_link(&folder).unwrap();
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(original).unwrap() {
        let entry = entry.unwrap();
        symlink(entry.path(), folder.join(entry.file_name())).unwrap();
    }
}

#[test]
fn links_again_with_another_device_runtime() {
    let Some(package) = Package::new("") else {
        return;
    };
    let keys = "language = \"openmp\"\nsources = [\"kernels/k.c\"]\ntargets = [\"gfx90a\"]\n";
    package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    package.put(
        "kernels/k.c",
        "#include <omp.h>\nint run(int x) {\n#pragma omp target map(tofrom : x)\n  x += omp_get_team_num();\n  return x;\n}\n",
    );
    open_link(&package, "llvm/lib");
    let runtime = "llvm/lib/libomptarget-amdgpu-gfx90a.bc";
    let told = package.builds();
    assert_watched(&told, &package, runtime);
    assert_eq!(made(&package, &mut script(&package)), nothing());
    let before = image(&package, "gfx90a");
    // Another release of the runtime.
    package.put("team.c", "int omp_get_team_num(void) { return 7; }\n");
    let mut clang = Command::new("/usr/bin/clang-19");
    clang.args(["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib"]);
    clang.args(["-O1", "-emit-llvm", "-c", "team.c", "-o", "team.bc"]);
    support::run(clang.current_dir(package.folder.root()));
    let mut link = Command::new("/usr/lib/llvm-19/bin/llvm-link");
    link.args([runtime, "--override=team.bc", "-o", "new.bc"]);
    support::run(link.current_dir(package.folder.root()));
    fs::remove_file(package.at(runtime)).unwrap();
    fs::rename(package.at("new.bc"), package.at(runtime)).unwrap();
    let (starts, targets) = made(&package, &mut script(&package));
    assert_eq!(targets, BTreeSet::from(["gfx90a".to_owned()]));
    // The device link, and the link that joins the registration with the host code.
    assert_eq!(starts, 2);
    assert!(image(&package, "gfx90a") != before);
}

#[test]
fn links_again_with_another_file_that_flags_name() {
    let (Some(ptxas), Some(package)) = (support::tool("cuda", &["ptxas"]), Package::new("")) else {
        return;
    };
    let keys = "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"sm_80\"]\n\
        flags = [\"-nogpulib\", \"-nogpuinc\", \"-Xcuda-ptxas\", \"--options-file=ptxas.opts\"]\n";
    package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    package.put(
        "kernels/k.cu",
        "extern \"C\" __attribute__((global)) void k(float *x) {\n  float s = 0;\n  for (int i = 0; i < 100; i++) s += x[i] * x[i + 1];\n  x[0] = s;\n}\n",
    );
    package.put("ptxas.opts", "--maxrregcount=255");
    let mut script = package.script();
    script.env("CUDA_PATH", ptxas.ancestors().nth(2).unwrap());
    let told = text(&script.output().unwrap());
    assert_watched(&told, &package, "ptxas.opts");
    assert!(!told.contains("argument unused"), "{told}");
    let before = image(&package, "sm_80");
    package.put("ptxas.opts", "--maxrregcount=16");
    assert!(made(&package, &mut script).0 > 0);
    assert!(image(&package, "sm_80") != before);
    assert_eq!(made(&package, &mut script), nothing());
    // Variables with flags name files, too.
    script.env("CCC_OVERRIDE_OPTIONS", "# +--config=./more.cfg");
    for definition in ["-DMORE=1", "-DMORE=2"] {
        package.put("more.cfg", definition);
        assert!(made(&package, &mut script).0 > 0, "{definition}");
        assert_eq!(made(&package, &mut script), nothing());
    }
}

#[test]
fn compiles_bitcode_again_with_another_library_that_flags_name() {
    let Some(package) = Package::new("") else {
        return;
    };
    let keys = "language = \"bitcode\"\nsources = [\"kernels/k.ll\"]\ntargets = [\"gfx90a\"]\n\
        flags = [\"-Xclang\", \"-mlink-builtin-bitcode\", \"-Xclang\", \"library.bc\"]\n";
    package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    package.put(
        "kernels/k.ll",
        "target triple = \"amdgcn-amd-amdhsa\"\n\
         declare i32 @value()\n\
         define amdgpu_kernel void @k(ptr addrspace(1) %x) {\n  %v = call i32 @value()\n\
         \x20 store i32 %v, ptr addrspace(1) %x\n  ret void\n}\n",
    );
    let library = |value: &str| {
        let triple = "target triple = \"amdgcn-amd-amdhsa\"\n";
        let text = format!("{triple}define i32 @value() {{ ret i32 {value} }}\n");
        package.put("library.ll", &text);
        let mut clang = Command::new("/usr/bin/clang-19");
        clang.args([
            "-w",
            "--target=amdgcn-amd-amdhsa",
            "-nogpulib",
            "-emit-llvm",
        ]);
        clang.args(["-c", "library.ll", "-o", "library.bc"]);
        support::run(clang.current_dir(package.folder.root()));
    };
    library("1111");
    let told = package.builds();
    assert_watched(&told, &package, "library.bc");
    let before = image(&package, "gfx90a");
    library("2222");
    assert!(made(&package, &mut script(&package)).0 > 0);
    assert!(image(&package, "gfx90a") != before);
    assert_eq!(made(&package, &mut script(&package)), nothing());
}

#[test]
fn links_again_with_another_lld() {
    let Some(package) = HIP.package() else {
        return;
    };
    let told = text(&script(&package).output().unwrap());
    assert_watched(&told, &package, "llvm/bin/ld.lld");
    assert_eq!(made(&package, &mut script(&package)), nothing());
    fs::remove_file(package.at("llvm/bin/ld.lld")).unwrap();
    package.put(
        "llvm/bin/ld.lld",
        "#!/bin/sh\nexec /usr/lib/llvm-19/bin/ld.lld \"$@\"\n",
    );
    // Only the link for each target.
    let targets = HIP.targets.map(str::to_owned);
    let links = (targets.len(), BTreeSet::from(targets));
    assert_eq!(made(&package, &mut script(&package)), links);
    assert_eq!(made(&package, &mut script(&package)), nothing());
}

#[test]
fn compiles_again_what_was_replaced_by_an_older_file_meanwhile() {
    let Some(package) = HIP.package() else {
        return;
    };
    let mut script = script(&package);
    script.env("OFFLOAD_TARGETS", "gfx1100");
    // One source, so that no other one reads the header before.
    let source = "#include \"k.h\"\nextern \"C\" __global__ void scale(int *x) { *x = ONE; }\n";
    package.put("kernels/k.hip", source);
    package.put("kernels/helper.hip", "");
    let hour = std::time::Duration::from_secs(3600);
    package.put("new.h", "#define ONE 3\n");
    let new = fs::File::options().append(true).open(package.at("new.h"));
    let past = std::time::SystemTime::now() - hour;
    new.unwrap().set_modified(past).unwrap();
    // Stands for a program that copies files with their times, as rsync does, while the build runs.
    let shim = fs::read_to_string(package.at("llvm/bin/clang")).unwrap();
    let (new, old) = (package.at("new.h"), package.at("kernels/one.h"));
    let moves = format!(
        "{}; status=$?\ncase \"$*\" in *k.hip*) mv '{}' '{}' 2>/dev/null;; esac\nexit $status\n",
        shim.trim_end().replace("exec ", ""),
        new.display(),
        old.display()
    );
    package.put("llvm/bin/clang", &moves);
    made(&package, &mut script);
    assert!(!Path::new(&new).exists());
    let during = image(&package, "gfx1100");
    assert!(made(&package, &mut script).0 > 0);
    assert!(image(&package, "gfx1100") != during);
    assert_eq!(made(&package, &mut script), nothing());
}

/// A header is saved between the compiles of two sources that include it, and the save is undone before the next build.
#[test]
fn compiles_again_what_was_undone_after_it_changed_during_a_build() {
    let Some(package) = HIP.package() else {
        return;
    };
    let mut script = script(&package);
    script
        .env("OFFLOAD_TARGETS", "gfx1100")
        .env("NUM_JOBS", "1");
    let source = |name: &str, includes: &str| {
        let text = format!(
            "#include \"k.h\"\n{includes}extern \"C\" __global__ void {name}(int *x) {{ *x = VALUE; }}\n"
        );
        package.put(&format!("kernels/{name}.hip"), &text);
    };
    for name in ["k.hip", "helper.hip"] {
        fs::remove_file(package.at("kernels").join(name)).unwrap();
    }
    source("first", "#include \"value.h\"\n");
    source("middle", "#define VALUE 0\n");
    source("second", "#include \"value.h\"\n");
    let value = |value: &str| package.put("kernels/value.h", &format!("#define VALUE {value}\n"));
    let (edit, header) = (package.at("edit"), package.at("kernels/value.h"));
    let saves = format!(
        "case \"$*\" in *middle.hip*) mv '{}' '{}' 2>/dev/null && touch '{1}' && sleep 0.1;; esac\nexec ",
        edit.display(),
        header.display()
    );
    let shim = fs::read_to_string(package.at("llvm/bin/clang")).unwrap();
    package.put("llvm/bin/clang", &shim.replace("exec ", &saves));
    value("1");
    made(&package, &mut script);
    let right = image(&package, "gfx1100");

    // Each source is compiled again, the second one after the save.
    package.put("edit", "#define VALUE 2\n");
    let common = fs::read_to_string(package.at("kernels/k.h")).unwrap();
    package.put("kernels/k.h", &(common + "\n"));
    made(&package, &mut script);
    assert!(!edit.exists() && image(&package, "gfx1100") != right);
    value("1");
    made(&package, &mut script);
    assert!(image(&package, "gfx1100") == right);
    assert_eq!(made(&package, &mut script), nothing());
}
