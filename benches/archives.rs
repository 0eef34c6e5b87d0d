//! Archives of bundles: split, listed, linked; beside LLVM's tools and a copy of the same bytes.
//!
//! | rows           | what is measured                                                                     |
//! |----------------|--------------------------------------------------------------------------------------|
//! | splitting      | an archive for each of four targets; `cp` copies as many bytes                       |
//! | listing        | beside `llvm-ar t`, which gives names of members alone                               |
//! | with stand-ins | the linker wrapper's own part: device and host linker only copy a file               |
//! | linking        | the whole, beside clang's older driver, which unbundles; LLVM's wrapper takes nothing |
//! | host objects   | the same archive without its bundles, one member wanted: our link beside `ld` alone  |
//!
//! Everything is in memory where `/dev/shm` is: else what the file system does about the gigabytes of the round
//! before would be most of the times.

#[path = "../tests/support/folder.rs"]
mod folder;
#[path = "hda.rs"]
mod hda;
#[path = "measure.rs"]
mod measure;
#[path = "stand_ins.rs"]
mod stand_ins;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use folder::{Folder, run};
use hda::{HIP, OLDER_DRIVER, PROCESSORS};
use measure::{Row, measure, print, print_memory};
use stand_ins::CLANG;

const LINK: &str = env!("CARGO_BIN_EXE_offload-link");
const BUNDLER: &str = env!("CARGO_BIN_EXE_offload-bundler");
const CARGO: &str = env!("CARGO_BIN_EXE_cargo-offload");
const LLVM: &str = "/usr/lib/llvm-22/bin/clang-offload-bundler";
const MEMBERS: usize = 5000;

fn main() {
    // `cargo test --benches` asks for nothing that takes as long.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = Folder::in_memory();
    let folder = folder.root();
    let archive = folder.join("libhda.a");
    hda::write(&archive, MEMBERS);
    let size = fs::metadata(&archive).map_or(0, |file| file.len());
    println!(
        "\narchive of {MEMBERS} members for {} targets: {:.1} MiB",
        PROCESSORS.len(),
        size as f64 / f64::from(1 << 20)
    );
    let bench = Bench { folder, archive };
    bench.split();
    bench.list();
    bench.link();
    bench.host_objects();
}

struct Bench<'a> {
    folder: &'a Path,
    archive: PathBuf,
}

impl Bench<'_> {
    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn archive(&self) -> String {
        self.archive.display().to_string()
    }

    fn split(&self) {
        let targets = PROCESSORS.map(|name| format!("hip-amdgcn-amd-amdhsa--{name}"));
        let unbundle = |tool: &str| {
            let mut line = vec![tool.to_owned(), "-type=a".into(), "-unbundle".into()];
            line.push("-hip-openmp-compatible".into());
            line.push(format!("-targets={}", targets.join(",")));
            line.push(format!("-input={}", self.archive()));
            let outputs = PROCESSORS.map(|name| format!("-output={}", self.path(name)));
            line.extend(outputs);
            line
        };
        let ours = unbundle(BUNDLER);
        run(Command::new(&ours[0]).args(&ours[1..]));
        let mut copy = vec!["cp".to_owned(), "--reflink=never".into()];
        copy.extend(PROCESSORS.map(|name| self.path(name)));
        fs::create_dir(self.folder.join("parts")).expect("a folder");
        copy.push(self.path("parts"));
        let parts = self.path("parts");
        let archive = self.archive();
        let split = [
            CARGO, "offload", "archive", "split", "--out", &parts, &archive,
        ];
        let rows = [
            Row::new("cp", &copy),
            Row::new("clang-offload-bundler 22", &unbundle(LLVM)),
            Row::new("offload-bundler", &ours),
            Row::new("cargo offload archive", &split.map(str::to_owned)),
        ];
        print("splitting it for four targets", measure(&rows, 5));
        print_memory(&rows);
        fs::remove_dir_all(parts).expect("the parts");
        for name in PROCESSORS {
            fs::remove_file(self.path(name)).expect("an archive");
        }
    }

    fn list(&self) {
        let archive = self.archive();
        let names = ["/usr/bin/llvm-ar-22", "t", &archive];
        let list = [CARGO, "offload", "archive", "list", &archive];
        let rows = [
            Row::new("llvm-ar 22 t", &names.map(str::to_owned)),
            Row::new("cargo offload archive", &list.map(str::to_owned)),
        ];
        print("listing it", measure(&rows, 9));
        print_memory(&rows);
    }

    /// A program whose kernel calls one function of the archive; for one target.
    fn link(&self) {
        let stand_ins = self.folder.join("stand-ins");
        stand_ins::make(&stand_ins);
        let image = stand_ins::image(self.folder, stand_ins::GFX90A);
        let source = self.folder.join("main.hip");
        let text = format!(
            "{HIP}extern __device__ int helper01234(int);
__global__ void kernel(int *p) {{ *p = helper01234(*p); }}
int main(void) {{ kernel<<<dim3{{}}, dim3{{}}, 0, 0>>>(0); }}
"
        );
        fs::write(&source, text).expect("a source");
        let object = self.path("main.o");
        let mut clang = Command::new(CLANG);
        clang
            .args(OLDER_DRIVER)
            .args(["--offload-arch=gfx90a", "-c"]);
        run(clang.arg(&source).arg("-o").arg(&object));

        // No runtime is linked: it may not be installed.
        let (output, folder) = (self.path("program"), self.folder.display());
        let folder = format!("-L{folder}");
        let own = ["-o", &output, &object, &folder, "-lhda"].map(str::to_owned);
        let ignored = "--unresolved-symbols=ignore-all".to_owned();
        let wrapped = |tool: &str, linker: &str| {
            let linker = format!("--linker-path={linker}");
            let start = [
                tool.to_owned(),
                "--host-triple=x86_64-pc-linux-gnu".into(),
                linker,
            ];
            [&start[..], &own, std::slice::from_ref(&ignored)].concat()
        };
        let stand_in = self.path("stand-ins/ld");
        let llvm = self.path("stand-ins/clang-linker-wrapper");
        let among = |row: Row| row.with("PATH", &stand_ins).with("STAND_IN_IMAGE", &image);
        let alone = [&[stand_in.clone()][..], &own].concat();
        let rows = [
            Row::new("one stand-in", &alone),
            Row::new("clang-linker-wrapper 22", &wrapped(&llvm, &stand_in)),
            Row::new("offload-link", &wrapped(LINK, &stand_in)),
        ]
        .map(|row| among(row).with("TMPDIR", self.folder));
        print(
            "linking a program that needs one member for one target, with stand-ins",
            measure(&rows, 9),
        );
        print_memory(&rows[1..]);

        let mut older = vec![CLANG.to_owned(), "--hip-link".into()];
        older.extend(["-nogpulib", "-fgpu-rdc", "--no-offload-new-driver"].map(str::to_owned));
        older.extend(["--offload-arch=gfx90a", "-nostdlib"].map(str::to_owned));
        older.push(format!("-Wl,{ignored}"));
        older.extend(own.clone());
        let rows = [
            Row::new("clang 22, older driver", &older),
            Row::new("offload-link", &wrapped(LINK, "/usr/bin/ld")),
        ]
        .map(|row| row.with("TMPDIR", self.folder));
        print("linking it", measure(&rows, 3));
        print_memory(&rows);
    }

    fn host_objects(&self) {
        let (parts, archive) = (self.path("host"), self.archive());
        let split = ["archive", "split", "--target=host", "--out", &parts];
        run(Command::new(CARGO).arg("offload").args(split).arg(&archive));
        let output = self.path("program");
        // A program would need the symbols of the registration, which are hidden.
        let line = [
            "-r",
            "-o",
            &output,
            "-ulaunch01234",
            &format!("-L{parts}"),
            "-lhda-host",
        ]
        .map(str::to_owned);
        let ld = "/usr/bin/ld".to_owned();
        let wrapper = [LINK.to_owned(), format!("--linker-path={ld}")];
        let rows = [
            Row::new("ld", &[&[ld][..], &line].concat()),
            Row::new("offload-link", &[&wrapper[..], &line].concat()),
        ];
        print(
            "linking the host objects of it, one wanted, without device code",
            measure(&rows, 9),
        );
        print_memory(&rows);
    }
}
