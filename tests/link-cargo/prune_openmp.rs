//! `cargo offload prune` of linked OpenMP programs: each prints the images that it registers, before and after.

use crate::support::folder::Folder;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::prune::{cc, printed, prune, pruned};
use crate::support::{WITHOUT_LIBLLVM, program, run, tool};

/// Stands for OpenMP's runtimes: prints what the descriptor lists, and runs no region on a device.
const RUNTIME: &str = r#"
#include <stdio.h>
#include <string.h>
static unsigned long word(unsigned char *at) { unsigned long value; memcpy(&value, at, 8); return value; }
struct image { unsigned char *start, *end; void *entries, *entries_end; };
struct descriptor { int count; struct image *images; void *entries, *entries_end; };
void __tgt_register_lib(struct descriptor *all) {
  printf("%d bytes of entries\n", (int)((char *)all->entries_end - (char *)all->entries));
  for (int i = 0; i < all->count; i++) {
    struct image *one = &all->images[i];
    unsigned char *elf = one->start;
    // LLVM 16 passes the offload binary: offset of the entry at 16, of the image at 24 from there.
    if (*elf == 0x10) elf += word(elf + word(elf + 16) + 24);
    unsigned sum = 5381, machine = elf[18] + 256 * elf[19];
    for (unsigned char *at = one->start; at < one->end; at++) sum = sum * 33 + *at;
    printf("machine %u: %d bytes, sum %u, at %u, %s\n", machine, (int)(one->end - one->start), sum,
           (unsigned)((unsigned long)one->start % 8),
           one->entries == all->entries && one->entries_end == all->entries_end ? "its entries" : "others");
  }
}
void __tgt_unregister_lib(void *all) {}
void __tgt_register_requires(long flags) {}
void __tgt_init_all_rtls(void) {}
int __tgt_target_kernel() { return 1; }
int __kmpc_global_thread_num() { return 0; }
"#;
/// Prints `x=1` if the region runs on the device, `x=2` on the host.
const MAIN: &str = "
int printf(const char *, ...);
static int place(void) { return 2; }
#pragma omp begin declare variant match(device = {kind(nohost)})
static int place(void) { return 1; }
#pragma omp end declare variant
int main(void) { int x = 0;
#pragma omp target map(from : x)
  x = place();
  printf(\"x=%d\\n\", x); return 0; }
";
const TARGETS: [&str; 2] = ["-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"];
/// Machines in ELF headers: x86-64, AMD's GPUs.
const X86: &str = "machine 62";
const AMD: &str = "machine 224";

/// A folder with objects that have images for x86-64 and for gfx90a.
struct Project {
    folder: Folder,
    clang: PathBuf,
    /// `PATH` with the release's linkers.
    path: std::ffi::OsString,
}

impl Project {
    fn new(word: &str, folder: Folder) -> Option<Self> {
        let clang = tool(word, &["clang"])?;
        let bin = clang.parent().unwrap().to_owned();
        let others = std::env::var_os("PATH").unwrap();
        // Debian's LLVM 16 has no lld here.
        let lld = tool("llvm19", &["ld.lld"])?.parent()?.to_owned();
        let path = [bin, lld].into_iter().chain(std::env::split_paths(&others));
        let path = std::env::join_paths(path).unwrap();
        let project = Self {
            folder,
            clang,
            path,
        };
        let put = |name: &str, text: &str| {
            project.folder.write(name, text);
        };
        put("main.c", MAIN);
        put("extra.c", "int extra;");
        put(
            "k.c",
            "__attribute__((visibility(\"default\"))) int image[6000] = {1, 2, 3};",
        );
        put("runtime.c", RUNTIME);
        let amd = ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib"];
        project.clang(&[&amd[..], &["-c", "k.c"]].concat());
        let image = "--image=file=k.o,kind=openmp,triple=amdgcn-amd-amdhsa,arch=gfx90a";
        let mut packager = Command::new(env!("CARGO_BIN_EXE_offload-packager"));
        let release = word.trim_start_matches("llvm");
        let release = if release == "16" { "19" } else { release };
        packager
            .arg(format!("--llvm={release}"))
            .args(["-o", "images", image]);
        run(packager.current_dir(project.folder.root()));
        let embed = ["-Xclang", "-fembed-offload-object=images"];
        project.clang(&[&["-fPIC", "-c", "extra.c"][..], &embed].concat());
        project.clang(&[&TARGETS[..], &["-O1", "-fPIC", "-c", "main.c"]].concat());
        let cc = |arguments: &[&str]| cc(&project.folder, Path::new("cc"), arguments);
        cc(&[
            "-w",
            "-shared",
            "-fPIC",
            "runtime.c",
            "-o",
            "libomptarget.so",
        ]);
        cc(&["-w", "-shared", "-fPIC", "runtime.c", "-o", "libomp.so"]);
        // LLVM 16 asks for it.
        run(Command::new("ar")
            .args(["rc", "libomptarget.devicertl.a"])
            .current_dir(project.folder.root()));
        Some(project)
    }

    fn clang(&self, arguments: &[&str]) {
        run(Command::new(&self.clang)
            .args(arguments)
            .env("PATH", &self.path)
            .current_dir(self.folder.root()));
    }

    /// Links the program, by `clang` with its linker wrapper, or `-B` and ours.
    fn link(&self, libraries: &str, arguments: &[&str]) {
        let link = ["main.o", "extra.o", libraries, "-o", "program"];
        self.clang(&[&TARGETS[..], &link, arguments].concat());
    }

    fn run(&self, file: &str) -> String {
        printed(&self.folder, &["env", "LD_LIBRARY_PATH=.", file])
    }
}

/// Returns the lines without those that start with `removed`.
fn without(lines: &str, removed: &str) -> String {
    let kept = lines.lines().filter(|line| !line.starts_with(removed));
    kept.map(|line| format!("{line}\n")).collect()
}

/// Removes the image of either target from a program that prints its images.
fn check(project: &Project, what: &str) {
    let folder = &project.folder;
    let before = project.run("./program");
    let images = before.lines().filter(|line| line.contains("its entries"));
    assert_eq!(images.count(), 2, "{what}: {before}");
    let strip = program("strip").unwrap();
    for is_stripped in [false, true] {
        if is_stripped {
            cc(folder, &strip, &["program"]);
        }
        for (drop, removed) in [("gfx90a", AMD), ("x86_64-pc-linux-gnu", X86)] {
            pruned(folder, &["--drop", drop, "-o", "small", "program"]);
            let after = project.run("./small");
            let expected = without(&before, removed);
            assert_eq!(after, expected, "{what}, without {drop}");
        }
        let kept = ["--keep=x86_64-pc-linux-gnu", "-o", "kept", "program"];
        pruned(folder, &kept);
        pruned(folder, &["--drop=gfx90a", "-o", "small", "program"]);
        let [kept, small] = ["kept", "small"].map(|name| folder.path(name));
        let [kept, small] = [kept, small].map(|path| std::fs::read(path).unwrap());
        assert_eq!(kept, small, "{what}");
        let old = folder.path("program").metadata().unwrap().len();
        // The image for gfx90a has more than 24 KB of variables.
        assert!(old - small.len() as u64 > 16 * 1024, "{what}");
        // Nothing is left to do.
        pruned(folder, &["--drop=gfx90a", "-o", "again", "small"]);
        let again = std::fs::read(folder.path("again")).unwrap();
        assert_eq!(again, small, "{what}");
        let all = prune(folder, &["--drop=gfx90a,x86_64*", "-o", "none", "program"]);
        let error = String::from_utf8(all.stderr).unwrap();
        assert!(error.contains("no image would remain"), "{what}: {error}");
        let all = ["--drop=gfx90a,x86_64*", "--allow-empty", "program"];
        pruned(folder, &[&all[..], &["-o", "none"]].concat());
        let expected = without(&without(&before, AMD), X86);
        assert_eq!(project.run("./none"), expected, "{what}, without images");
    }
}

#[test]
fn prunes_the_tables_of_openmp_programs() {
    let packed = "-Wl,-z,pack-relative-relocs";
    let ways = [
        &["-pie"][..],
        &["-no-pie", "-fuse-ld=lld"],
        &["-pie", "-Bours"],
        &["-no-pie"],
        &["-pie", packed],
        &["-no-pie", "-Bours"],
        &["-pie", "-fuse-ld=lld", packed],
    ];
    for (number, word) in ["llvm16", "llvm19", "llvm22"].into_iter().enumerate() {
        let Some(project) = Project::new(word, Folder::new()) else {
            continue;
        };
        let ours = project.folder.path("ours");
        std::fs::create_dir(&ours).unwrap();
        std::os::unix::fs::symlink(
            env!("CARGO_BIN_EXE_offload-link"),
            ours.join("clang-linker-wrapper"),
        )
        .unwrap();
        // The releases have each way between them.
        for how in crate::support::share(ways, number, 3) {
            project.link("-L.", how);
            check(&project, &format!("{word} {how:?}"));
        }
    }
}

#[test]
fn runs_pruned_programs_with_the_runtime_of_llvm() {
    let Some(runtime) = tool("omptarget19", &["libomptarget.so"]) else {
        return;
    };
    let Some(project) = Project::new("llvm19", Folder::new()) else {
        return;
    };
    let folder = &project.folder;
    let runtime = runtime.parent().unwrap().display().to_string();
    let start = |file: &str, offload: &str| {
        let libraries = format!("LD_LIBRARY_PATH={runtime}");
        let offload = format!("OMP_TARGET_OFFLOAD={offload}");
        printed(folder, &["env", &libraries, &offload, file])
    };
    let libraries = format!("-L{runtime}");
    // These stand for another test's runtime.
    for library in ["libomp.so", "libomptarget.so"] {
        std::fs::remove_file(folder.path(library)).unwrap();
    }
    for how in ["-pie", "-no-pie"] {
        project.link(&libraries, &[how, WITHOUT_LIBLLVM]);
        assert_eq!(start("./program", "MANDATORY"), "x=1\n", "{how}");
        let keep = ["--keep=x86_64-pc-linux-gnu", "-o", "cpu", "program"];
        pruned(folder, &keep);
        assert_eq!(start("./cpu", "MANDATORY"), "x=1\n", "{how}");
        let drop = ["--drop=x86_64-pc-linux-gnu", "-o", "gpu", "program"];
        pruned(folder, &drop);
        assert_eq!(start("./gpu", "DEFAULT"), "x=2\n", "{how}");
    }
}

/// A record with another value, in a copy of the program, is not a record: nothing lists the image then.
#[test]
fn refuses_programs_whose_images_no_descriptor_lists() {
    let Some(project) = Project::new("llvm22", Folder::new()) else {
        return;
    };
    let Some(objcopy) = program("objcopy") else {
        return;
    };
    let folder = &project.folder;
    project.link("-L.", &["-no-pie"]);
    let dump = "--dump-section=.data.rel.ro=data";
    cc(folder, &objcopy, &[dump, "program", "copy"]);
    let data = std::fs::read(folder.path("data")).unwrap();
    // Number of images in the descriptor, behind two records of 32 bytes: start and end of each image differ.
    let count = data.windows(8).position(|word| word == 2_u64.to_le_bytes());
    let count = count.unwrap();
    for (place, what) in [
        (count, "number"),
        (count - 64, "start"),
        (count + 16, "entries"),
    ] {
        let mut data = data.clone();
        data[place] ^= 0x40;
        folder.write("data", data);
        let update = ["--update-section=.data.rel.ro=data", "program", "bad"];
        cc(folder, &objcopy, &update);
        let output = prune(folder, &["--drop=gfx90a", "-o", "small", "bad"]);
        let error = String::from_utf8(output.stderr).unwrap();
        let expected = "the offload binary at offset 0x";
        assert!(error.contains(expected), "{what}: {error}");
        let reason = " is not OpenMP's; in a linked file, other offload binaries are not pruned\nhint: programs that call `image()` ";
        assert!(error.contains(reason), "{what}: {error}");
        assert!(!folder.path("small").exists(), "{what}");
    }
}
