//! A crate with one large image, linked and included: what rustc takes each time the crate is compiled.
//!
//! `OFFLOAD_BENCH_MIB` sets the size of the image (150). The build script runs first and is a row of its own; then rustc
//! compiles a library and a program that use the image, as Cargo does after an edit of Rust code.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};

use crate::clock::{Clock, number};
use crate::folder::{Folder, run};
use crate::{LLVM, build_script};

pub(crate) fn measure() {
    let mib = number("OFFLOAD_BENCH_MIB", 150);
    let bench = LargeImage {
        folder: Folder::new(),
    };
    bench.create(mib);
    println!("\none image of {mib} MiB, HIP for gfx90a");
    for embed in ["include", "link"] {
        bench.script(embed);
        let images = bench
            .folder
            .path(format!("build/{embed}/out/offload/kernels/images"));
        let size = fs::metadata(images).expect("the container").len();
        assert!(size >= (mib << 20) as u64, "the image has the data: {size}");
        for (kind, what) in [("lib", "library"), ("bin", "program")] {
            bench.rustc(embed, kind, what);
        }
    }
}

struct LargeImage {
    folder: Folder,
}

impl LargeImage {
    /// Writes a kernel with a section of numbers that do not compress.
    fn create(&self, mib: usize) {
        let data = self.folder.path("data");
        let mut file = File::create(&data).expect("a file");
        let mut state = 1_u64;
        for _ in 0..mib {
            let numbers = (0..(1 << 17)).flat_map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()
            });
            let block: Vec<u8> = numbers.collect();
            file.write_all(&block).expect("a written file");
        }
        // clang ignores assembler outside of functions for devices.
        let source = format!(
            "extern \"C\" __attribute__((global)) void scale(int *x) {{\n#ifdef __HIP_DEVICE_COMPILE__\n  \
             asm volatile(\".pushsection .rodata.data,\\\"a\\\"\\n.incbin \\\"{}\\\"\\n.popsection\");\n#endif\n  *x *= 2;\n}}\n",
            data.display()
        );
        self.folder.write("kernels/k.hip", source);
        let main = "mod kernels { include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\")); }\n\
                    pub fn main() { println!(\"{}\", kernels::image().unwrap().len()); }\n";
        self.folder.write("main.rs", main);
    }

    fn script(&self, embed: &str) {
        let manifest = format!(
            "[package]\nname = \"bench\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"hip\"\n\
             sources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n\
             rdc = false\nembed = \"{embed}\"\n"
        );
        self.folder.write("Cargo.toml", manifest);
        let out = self.folder.path(format!("build/{embed}/out"));
        let mut command = build_script(self.folder.root(), &out);
        command
            .env("OPT_LEVEL", "0")
            .env("PROFILE", "debug")
            .env("OFFLOAD_COMPILER", format!("{LLVM}/clang"));
        let clock = Clock::start();
        run(command.stdout(Stdio::null()));
        clock.print(&format!("embed = {embed:?}, build script"), "");
    }

    fn rustc(&self, embed: &str, kind: &str, what: &str) {
        let out = self.folder.path(format!("build/{embed}/out"));
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc
            .args(["--edition=2024", "--crate-type", kind, "-Adead_code"])
            .arg(self.folder.path("main.rs"))
            .arg("-o")
            .arg(self.folder.path(format!("{embed}.{kind}")))
            .arg("-L")
            .arg(&out)
            .env("OUT_DIR", &out);
        for file in fs::read_dir(&out).expect("the build script's folder") {
            let name = file.expect("an entry").file_name();
            let name = name.to_string_lossy().into_owned();
            let name = name
                .strip_prefix("lib")
                .and_then(|name| name.strip_suffix(".a"));
            if let Some(name) = name {
                rustc.args(["-l", &format!("static={name}")]);
            }
        }
        let clock = Clock::start();
        run(&mut rustc);
        clock.print(&format!("embed = {embed:?}, rustc, a {what}"), "");
    }
}
