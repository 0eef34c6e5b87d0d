//! Libraries that a module comes out as, read by the tools that will read them.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::package::{CPU, Package, text};

const TARGETS: &str = "targets = [\"x86_64-pc-linux-gnu\", \"gfx90a:xnack-\", \"gfx1100\", \"sm_90\"]\nmissing = \"skip\"\n";
const SOURCES: &str = "sources = [\"kernels/*.c\"]\n";
const BOTH: &str = "artifact = [\"hda\", \"device-archive\"]\n";
/// Library, what its entries are called, and where they begin.
const LIBRARIES: [(&str, &str, &[u8]); 4] = [
    (
        "libbc-pack-amdgcn-gfx1100.a",
        "openmp-amdgcn-amd-amdhsa--gfx1100",
        b"BC\xc0\xde",
    ),
    (
        "libbc-pack-amdgcn-gfx90a-xnack-.a",
        "openmp-amdgcn-amd-amdhsa--gfx90a:xnack-",
        b"BC\xc0\xde",
    ),
    (
        "libbc-pack-nvptx64-sm_90.a",
        "openmp-nvptx64-nvidia-cuda--sm_90",
        b"BC\xc0\xde",
    ),
    (
        "libbc-pack-x86_64-pc-linux-gnu.a",
        "openmp-x86_64-pc-linux-gnu-",
        b"\x7fELF",
    ),
];

fn folder(package: &Package) -> PathBuf {
    package.at("target/build/pack-0123/out/offload/artifacts")
}

fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).into_iter().flatten();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// The members of an archive, as `ar` takes it apart, by name.
fn members(archive: &Path, package: &Package) -> BTreeMap<String, Vec<u8>> {
    let folder = package.at("members");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    support::run(
        Command::new("ar")
            .current_dir(&folder)
            .arg("x")
            .arg(archive),
    );
    names(&folder)
        .into_iter()
        .map(|name| {
            let bytes = fs::read(folder.join(&name)).unwrap();
            (name, bytes)
        })
        .collect()
}

/// A function for the device, in a file of its own.
const HELPER: &str = "#pragma omp declare target\nint helper(int x) { return x + 1; }\n#pragma omp end declare target\n";

#[test]
fn comes_out_as_libraries_that_llvm_and_binutils_read() {
    let Some(package) = Package::new(&format!("{SOURCES}{TARGETS}{BOTH}")) else {
        return;
    };
    let (Some(lld), Some(nm)) = (
        support::tool("llvm22", &["ld.lld"]),
        support::tool("llvm22", &["llvm-nm"]),
    ) else {
        return;
    };
    let bundlers = ["llvm16", "llvm19", "llvm22"];
    let bundlers = bundlers.map(|release| {
        let bundler = support::tool(release, &["clang-offload-bundler"]);
        (release, bundler)
    });
    package.put("kernels/helper.c", HELPER);
    package.builds();
    let folder = folder(&package);
    let mut expected: Vec<&str> = LIBRARIES.iter().map(|(name, ..)| *name).collect();
    expected.push("libpack.a");
    assert_eq!(names(&folder), expected);

    let hda = folder.join("libpack.a");
    let unbundled = package.at("unbundled.a");
    for (library, id, magic) in LIBRARIES {
        let ours = members(&folder.join(library), &package);
        let extension = if magic == b"\x7fELF" { "o" } else { "bc" };
        let stems: Vec<String> = ["helper", "k"]
            .map(|name| format!("kernels-{name}.c.{extension}"))
            .into();
        assert_eq!(ours.keys().cloned().collect::<Vec<_>>(), stems, "{library}");
        assert!(
            ours.values().all(|bytes| bytes.starts_with(magic)),
            "{library}"
        );
        let ours: Vec<Vec<u8>> = ours.into_values().collect();
        for (release, bundler) in &bundlers {
            let Some(bundler) = bundler else { continue };
            let id = match *release {
                // It writes no archive with bitcode that it cannot read, of a newer release.
                "llvm16" if extension == "bc" => continue,
                // It finds what ends with a dash by the ID without the dash (`docs/spec/bundler.md` §6.2).
                "llvm19" if id.ends_with("gnu-") => &id[..id.len() - 1],
                _ => id,
            };
            let mut command = Command::new(bundler);
            command.args(["-type=a", "-unbundle", &format!("-targets={id}")]);
            command.arg(format!("-input={}", hda.display()));
            support::run(command.arg(format!("-output={}", unbundled.display())));
            let theirs: Vec<Vec<u8>> = members(&unbundled, &package).into_values().collect();
            assert!(ours == theirs, "{library} {bundler:?}");
        }

        let index = text(
            &Command::new(&nm)
                .arg("--print-armap")
                .arg(folder.join(library))
                .output()
                .unwrap(),
        );
        assert!(
            index.contains(&format!("\nhelper in kernels-helper.c.{extension}\n")),
            "{index}"
        );
    }
    // A linker for devices takes the member that it needs.
    let image = package.at("image");
    let mut link = Command::new(&lld);
    link.args([
        "-m",
        "elf64_amdgpu",
        "-shared",
        "--no-undefined",
        "-u",
        "helper",
    ]);
    link.args(["-plugin-opt=mcpu=gfx1100", "-o"]).arg(&image);
    support::run(link.arg(folder.join("libbc-pack-amdgcn-gfx1100.a")));
    let symbols = support::run(Command::new(&nm).arg("-j").arg(&image));
    assert!(symbols.lines().any(|name| name == "helper"), "{symbols}");

    // What the host links are the host's objects, with the sections that only `offload-link` reads.
    let host = members(&hda, &package);
    assert_eq!(
        host.keys().collect::<Vec<_>>(),
        ["kernels-helper.c.o", "kernels-k.c.o"]
    );
    let mut link = Command::new("cc");
    link.current_dir(package.folder.root());
    package.put(
        "main.c",
        "int run(int x);\nint main(void) { return run(0); }\n",
    );
    link.args([
        "-fuse-ld=bfd",
        "main.c",
        "-o",
        "main",
        "-Wl,--unresolved-symbols=ignore-all",
    ]);
    support::run(link.arg(&hda));
    let sections = text(
        &Command::new("readelf")
            .args(["-SW"])
            .arg(package.at("main"))
            .output()
            .unwrap(),
    );
    assert!(!sections.contains("__CLANG_OFFLOAD_BUNDLE__"), "{sections}");
    assert!(sections.contains("offloading_entries"), "{sections}");
}

/// The symbols that each object of an archive needs or defines, as `nm` lists them.
fn symbols(archive: &Path, option: &str) -> String {
    text(
        &Command::new("nm")
            .arg(option)
            .arg(archive)
            .output()
            .unwrap(),
    )
}

/// Its kernels would run unregistered: a crash.
#[test]
fn demands_offload_link_for_members_with_kernels() {
    let Some(package) = Package::new(&format!("{SOURCES}{TARGETS}{BOTH}")) else {
        return;
    };
    package.put("kernels/helper.c", HELPER);
    package.builds();
    let hda = folder(&package).join("libpack.a");
    let needed = symbols(&hda, "-u");
    let (helper, kernels) = needed.split_once("kernels-k.c.o:").unwrap();
    assert!(helper.contains("kernels-helper.c.o:"), "{needed}");
    assert!(!helper.contains(DEMAND), "{needed}");
    assert_eq!(kernels.matches(DEMAND).count(), 1, "{needed}");
    // The module's own library registers them.
    let own = package.files();
    let own = own.iter().find(|name| name.ends_with("_offload.a"));
    assert!(!symbols(Path::new(own.unwrap()), "-u").contains(DEMAND));

    let link = |call: &str, options: &[&str]| {
        let source = format!("int {call}(int x);\nint main(void) {{ return {call}(40) - 41; }}\n");
        package.put("main.c", &source);
        let mut link = Command::new("cc");
        link.current_dir(package.folder.root());
        link.args(["-B/usr/lib/llvm-19/bin", "-Wl,--gc-sections"]);
        link.args(["main.c", "-o", "main"]).args(options).arg(&hda);
        let runtime = "/usr/lib/llvm-19/lib";
        link.arg(format!("-L{runtime}"));
        link.args(["-lomptarget", "-lomp", &format!("-Wl,-rpath,{runtime}")]);
        link.arg(support::WITHOUT_LIBLLVM);
        link.output().unwrap()
    };
    let lld = support::tool("llvm19", &["ld.lld"]).map(|_| "-fuse-ld=lld");
    for linker in ["-fuse-ld=bfd"].into_iter().chain(lld) {
        let refused = link("run", &[linker]);
        assert!(!refused.status.success(), "{linker}");
        let told = String::from_utf8_lossy(&refused.stderr);
        assert!(told.contains(DEMAND), "{told}");
        // Device functions have a host side that needs no registration.
        text(&link("helper", &[linker]));
        support::run(&mut Command::new(package.at("main")));
        // Who wants the host alone says so.
        text(&link("run", &[linker, &format!("-Wl,--defsym={DEMAND}=0")]));
        let mut run = Command::new(package.at("main"));
        support::run(run.env("OMP_TARGET_OFFLOAD", "DISABLED"));
    }
}

const DEMAND: &str = "__offload_needs_offload_link";

#[test]
fn keeps_only_the_libraries_that_are_asked_for() {
    let Some(package) = Package::new(&format!("{CPU}{BOTH}name = \"vectors\"\n")) else {
        return;
    };
    package.builds();
    let folder = folder(&package);
    let archive = "libbc-vectors-x86_64-pc-linux-gnu.a";
    assert_eq!(names(&folder), [archive, "libvectors.a"]);
    let before = fs::read(folder.join(archive)).unwrap();
    text(
        &package
            .script()
            .env("OFFLOAD_ARTIFACT", "device-archive")
            .output()
            .unwrap(),
    );
    assert_eq!(names(&folder), [archive]);
    assert_eq!(fs::read(folder.join(archive)).unwrap(), before);
    package.put(
        "Cargo.toml",
        &format!(
            "{}{CPU}name = \"vectors\"
",
            support::package::MANIFEST
        ),
    );
    package.builds();
    assert_eq!(names(&folder), [""; 0]);
}

#[test]
fn makes_archives_for_targets_whose_images_cannot_be_linked() {
    let keys = "targets = [\"x86_64-pc-linux-gnu\", \"sm_90\"]\nmissing = \"skip\"\n";
    let Some(package) = Package::new(&format!("{SOURCES}{keys}{BOTH}")) else {
        return;
    };
    // No ptxas here, whatever the machine has.
    let told = package.builds();
    assert!(
        told.contains("no image for `sm_90`: `ptxas` not found"),
        "{told}"
    );
    let archive = folder(&package).join("libbc-pack-nvptx64-sm_90.a");
    assert_eq!(members(&archive, &package).len(), 1);
    // This one is too old.
    let help = "#!/bin/sh\nprintf \"Usage\\n\\n--gpu-name <name>\\n    'sm_80'.\\n\"\n";
    package.put("cuda/bin/ptxas", help);
    fs::remove_file(&archive).unwrap();
    let mut script = package.script();
    script.env("CUDA_PATH", package.at("cuda"));
    let told = text(&script.output().unwrap());
    assert!(
        told.contains("no image for `sm_90`: unknown to `"),
        "{told}"
    );
    assert_eq!(members(&archive, &package).len(), 1);
}

#[test]
fn says_which_artifacts_there_are_and_which_cannot_be() {
    let Some(package) = Package::new(&format!("{CPU}artifact = [\"device-archives\"]\n")) else {
        return;
    };
    assert_eq!(
        package.fails(&mut package.script()),
        "Cargo.toml:8:1: `device-archives` is not one of `hda`, `device-archive`; did you mean `device-archive`?"
    );
    let both = "targets = [\"gfx90a\", \"gfx90a:xnack+\"]\n";
    package.put(
        "Cargo.toml",
        &format!("{}{SOURCES}{both}{BOTH}", support::package::MANIFEST),
    );
    assert_eq!(
        package.fails(&mut package.script()),
        "module `kernels`: `gfx90a` and `gfx90a:xnack+` cannot be in one archive of bundles: \
         they do not set the same features"
    );
    // Each has an archive of its own.
    text(
        &package
            .script()
            .env("OFFLOAD_ARTIFACT", "device-archive")
            .output()
            .unwrap(),
    );
    assert_eq!(
        names(&folder(&package)),
        [
            "libbc-pack-amdgcn-gfx90a-xnack+.a",
            "libbc-pack-amdgcn-gfx90a.a"
        ]
    );
}

#[test]
fn shows_the_libraries_in_the_plan() {
    let Some(package) = Package::new(&format!("{CPU}{BOTH}")) else {
        return;
    };
    let output = package
        .script()
        .env("OFFLOAD_DRY_RUN", "1")
        .output()
        .unwrap();
    let plan = String::from_utf8(output.stderr).unwrap();
    let plan = plan.replace(
        &package
            .at("target/build/pack-0123/out/offload")
            .display()
            .to_string(),
        "OUT",
    );
    let bundles = "# library `OUT/artifacts/libpack.a`, in this process\n\
                   #   kernels-k.c.o: OUT/kernels/host/kernels-k.c.o with openmp-x86_64-pc-linux-gnu-\n";
    assert!(plan.contains(bundles), "{plan}");
    let archive = "ar rcsD OUT/artifacts/libbc-pack-x86_64-pc-linux-gnu.a OUT/kernels/x86_64-pc-linux-gnu/kernels-k.c.o\n";
    assert!(plan.contains(archive), "{plan}");
    assert_eq!(names(&folder(&package)), [""; 0]);
    // Others call the functions of an archive, so without `rdc` it is `true`, also with host code.
    package.put("kernels/k.hip", "#include <offload/gpu.h>\n");
    let keys =
        "language = \"hip\"\nhost = true\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\"]\n";
    let manifest = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\n";
    package.put("Cargo.toml", &format!("{manifest}{keys}{BOTH}"));
    let mut script = package.script();
    script.env("OFFLOAD_ARTIFACT", "device-archive");
    let output = script.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
    let plan = String::from_utf8(output.stderr).unwrap();
    let mut lines = plan.lines();
    let compile = lines.find(|line| line.contains("--offload-device-only"));
    let option = " --offload-arch=gfx90a -fgpu-rdc ";
    assert!(compile.unwrap().contains(option), "{plan}");
}
