//! The linker wrapper beside LLVM's, in one run.
//!
//! | rows                | what is measured                                                             |
//! |---------------------|------------------------------------------------------------------------------|
//! | with real tools     | a whole link; without device code, also the linker alone, and a program in C |
//! |                     | that reads the start of each object and then becomes the linker              |
//! | with stand-ins      | the wrapper's own part: its compiler, bundler and linker only copy a file    |
//! | `--dry-run`         | of that, the part before any of them runs                                    |
//! | memory              | the wrapper's own: stand-ins take next to none                               |
//!
//! Temporary files are in memory where `/dev/shm` is: else what the file system does about the files of
//! the round before would be a large part of the times, LLVM's more than ours.

#[path = "../tests/support/folder.rs"]
mod folder;
#[path = "measure.rs"]
mod measure;
#[path = "stand_ins.rs"]
mod stand_ins;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use folder::{Folder, run};
use measure::{Row, measure, print, print_memory};
use stand_ins::{CLANG, LLVM};

const OURS: &str = env!("CARGO_BIN_EXE_offload-link");
const AR: &str = "/usr/bin/llvm-ar-22";

fn main() {
    // `cargo test --benches` asks for nothing that takes as long.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = Folder::new();
    let memory = Folder::in_memory();
    let bench = Bench {
        folder: folder.root(),
        memory: memory.root(),
        stand_ins: folder.path("stand-ins"),
        reader: folder.path("reader"),
    };
    bench.make_reader();
    stand_ins::make(&bench.stand_ins);
    symlink(OURS, bench.folder.join("clang-linker-wrapper")).expect("a link");
    let plain = bench.objects(Code::Host, 400);
    // `-- --bench device` leaves these out.
    if !std::env::args().any(|argument| argument == "device") {
        bench.plain("400 objects without device code", &plain, 25);
        bench.plain(
            "1 object, the rlibs of std and a static library of 300 MB, without device code",
            &[plain[..1].to_vec(), rlibs(), vec![bench.large_library()]].concat(),
            15,
        );
    }
    for code in [Code::Hip, Code::OpenMp] {
        let objects = bench.objects(code, 400);
        for count in [40, 400] {
            let title = format!("{count} objects with device code, {}", code.title());
            bench.device(&title, &objects[..count], &[], 9);
        }
        let archive = bench.archive(code, &plain, &objects);
        let title = format!(
            "1 object, an archive of 2,000 members of which 50 have device code and are wanted, {}",
            code.title()
        );
        let wanted: Vec<String> = (1..=50).map(|index| format!("-Wl,-u,f{index}")).collect();
        bench.device(&title, &[objects[0].clone(), archive], &wanted, 9);
    }
}

/// Opens each object of a linker's command line, reads its start, closes it, and becomes the linker. A wrapper that looks at
/// its inputs cannot do less.
const READER: &str = r#"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  static char start[4096];
  for (int i = 2; i < argc; i++) {
    const char *extension = strrchr(argv[i], '.');
    if (!extension || strcmp(extension, ".o")) continue;
    int in = open(argv[i], O_RDONLY | O_CLOEXEC);
    if (in < 0 || pread(in, start, sizeof start, 0) < 0) return 1;
    close(in);
  }
  execv(argv[1], argv + 1);
  return 1;
}
"#;

struct Bench<'a> {
    folder: &'a Path,
    /// For what the tools write.
    memory: &'a Path,
    stand_ins: PathBuf,
    /// [`READER`].
    reader: PathBuf,
}

/// What a source is written in.
#[derive(Clone, Copy)]
enum Code {
    Host,
    Hip,
    OpenMp,
}

impl Code {
    fn title(self) -> &'static str {
        match self {
            Self::Host => "none",
            Self::Hip => "HIP for gfx90a",
            Self::OpenMp => "OpenMP for x86_64",
        }
    }

    fn source(self, index: usize) -> String {
        let mut text = match self {
            Self::Host => format!("int f{index}(int x) {{ return x + {index}; }}\n"),
            Self::OpenMp => format!(
                "int f{index}(int x) {{\n#pragma omp target map(tofrom : x)\n  x += {index};\n  return x;\n}}\n"
            ),
            Self::Hip => format!(
                "{HIP}__attribute__((global)) void k{index}(int *x) {{ *x += {index}; }}\n\
                 extern \"C\" void f{index}(int *x) {{ k{index}<<<dim3{{1, 1, 1}}, dim3{{1, 1, 1}}>>>(x); }}\n"
            ),
        };
        if index == 0 {
            text += "int main(void) { return 0; }\n";
        }
        text
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Host => &[],
            Self::OpenMp => &["-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"],
            Self::Hip => &[
                "-x",
                "hip",
                "-nogpulib",
                "-nogpuinc",
                "--offload-arch=gfx90a",
                "-fgpu-rdc",
                "--offload-new-driver",
            ],
        }
    }
}

/// What clang needs of HIP's headers.
const HIP: &str = "struct dim3 { unsigned x, y, z; };
typedef struct stream *hipStream_t;
extern \"C\" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
extern \"C\" unsigned __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, hipStream_t = 0);
extern \"C\" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, hipStream_t *);
";

impl Bench<'_> {
    /// A link without device code: the wrapper becomes the linker.
    fn plain(&self, title: &str, inputs: &[PathBuf], rounds: usize) {
        for (name, flags) in [("ld.bfd", &[][..]), ("ld.lld 22", &["-fuse-ld=lld"])] {
            let link = self.link_line(inputs, flags);
            let mut rows = vec![self.row(name, &link)];
            if inputs
                .iter()
                .all(|input| input.extension() == Some("o".as_ref()))
            {
                let reader = self.reader.display().to_string();
                let read = [&[reader], &link[..]].concat();
                rows.push(self.row("link after reading in C", &read));
            }
            rows.extend(self.wrapped(LLVM, &link));
            print(&format!("{title}, {name}"), measure(&rows, rounds));
        }
        self.own_part(title, inputs, &[], rounds);
    }

    fn make_reader(&self) {
        let source = self.reader.with_extension("c");
        fs::write(&source, READER).expect("a source");
        let mut clang = Command::new(CLANG);
        let paths = [&self.reader, &source];
        run(clang.args(["-O2", "-static", "-o"]).args(paths));
    }

    fn device(&self, title: &str, inputs: &[PathBuf], wanted: &[String], rounds: usize) {
        // No runtime is linked: it may not be installed.
        let mut flags = vec!["-Wl,--unresolved-symbols=ignore-all"];
        flags.extend(wanted.iter().map(String::as_str));
        let link = self.link_line(inputs, &flags);
        print(title, measure(&self.wrapped(LLVM, &link), rounds));
        self.own_part(title, inputs, &flags, rounds);
    }

    /// What a device linker makes.
    fn image(&self, title: &str) -> PathBuf {
        let target = match title.contains(Code::Hip.title()) {
            true => stand_ins::GFX90A,
            false => &["-shared", "-fPIC"],
        };
        stand_ins::image(self.folder, target)
    }

    fn own_part(&self, title: &str, inputs: &[PathBuf], flags: &[&str], rounds: usize) {
        let mut link = self.link_line(inputs, flags);
        link[0] = self.stand_ins.join("ld").display().to_string();
        let llvm = self.stand_ins.join("clang-linker-wrapper");
        let image = self.image(title);
        let among = |row: Row| {
            let row = row.with("PATH", &self.stand_ins);
            row.with("STAND_IN_IMAGE", &image)
        };
        let mut rows = vec![among(self.row("one stand-in", &link))];
        let wrapped = self.wrapped(&llvm.display().to_string(), &link);
        rows.extend(wrapped.into_iter().map(among));
        print(&format!("{title}, with stand-ins"), measure(&rows, rounds));
        print_memory(&rows[1..]);
        link.insert(1, "--dry-run".into());
        let wrapped = self.wrapped(&llvm.display().to_string(), &link);
        let rows: Vec<Row> = wrapped.into_iter().map(among).collect();
        print(&format!("{title}, --dry-run"), measure(&rows, rounds));
    }

    fn row(&self, name: &str, command: &[String]) -> Row {
        Row::new(name, command).with("TMPDIR", self.memory)
    }

    /// That link behind each wrapper, as clang calls one.
    fn wrapped(&self, llvm: &str, link: &[String]) -> Vec<Row> {
        let ours = self.folder.join("clang-linker-wrapper");
        let tools = [
            ("clang-linker-wrapper 22", llvm.to_owned()),
            ("ours under LLVM's name", ours.display().to_string()),
            ("offload-link", OURS.to_owned()),
        ];
        let row = |(name, tool): (&str, String)| {
            let own = [
                tool,
                "--host-triple=x86_64-pc-linux-gnu".into(),
                format!("--linker-path={}", link[0]),
            ];
            self.row(name, &[&own[..], &link[1..]].concat())
        };
        tools.map(row).into()
    }

    /// The linker's command line, as clang would run it.
    fn link_line(&self, inputs: &[PathBuf], flags: &[&str]) -> Vec<String> {
        let plan = Command::new(CLANG)
            .args(flags)
            .arg("-###")
            .args(inputs)
            .arg("-o")
            .arg(self.memory.join("program"))
            .output()
            .expect("clang -###");
        let text = String::from_utf8_lossy(&plan.stderr).into_owned();
        let line = text.lines().last().expect("a link line");
        let words = line.trim().trim_matches('"').split("\" \"");
        words.map(str::to_owned).collect()
    }

    /// Objects of one function each, the first with `main`.
    fn objects(&self, code: Code, count: usize) -> Vec<PathBuf> {
        let folder = self.folder.join(code.title());
        fs::create_dir(&folder).expect("a folder for objects");
        let object = |index: usize| folder.join(format!("{index}.o"));
        let next = AtomicUsize::new(0);
        let work = || loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            let source = folder.join(format!("{index}.c"));
            fs::write(&source, code.source(index)).expect("a source");
            let mut clang = Command::new(CLANG);
            clang.args(code.flags()).args(["-O1", "-c", "-o"]);
            run(clang.arg(object(index)).arg(source));
        };
        std::thread::scope(|scope| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            (0..threads).for_each(|_| drop(scope.spawn(work)));
        });
        (0..count).map(object).collect()
    }

    /// 300 members of 1 MiB, of which none is wanted.
    fn large_library(&self) -> PathBuf {
        let folder = self.folder.join("large");
        fs::create_dir(&folder).expect("a folder");
        let mut all = String::new();
        for index in 0..300 {
            let source = folder.join("source.s");
            let text =
                format!(".data\n.globl large{index}\nlarge{index}: .fill 131072, 8, {index}\n");
            fs::write(&source, text).expect("a source");
            let object = folder.join(format!("{index}.o"));
            run(Command::new(CLANG)
                .arg("-c")
                .arg(source)
                .arg("-o")
                .arg(&object));
            writeln!(all, "{}", object.display()).expect("a line");
        }
        let library = self.folder.join("liblarge.a");
        archive(&library, &all);
        fs::remove_dir_all(folder).expect("the objects");
        library
    }

    fn archive(&self, code: Code, plain: &[PathBuf], device: &[PathBuf]) -> PathBuf {
        let members = device[1..=50].iter();
        let others = plain[1..].iter().cycle().take(1950);
        let mut all = String::new();
        for member in members.chain(others) {
            writeln!(all, "\"{}\"", member.display()).expect("a line");
        }
        let library = self
            .folder
            .join(format!("lib{}.a", code.title().replace(' ', "-")));
        archive(&library, &all);
        library
    }
}

/// With `q`, so that a file may be several members.
fn archive(library: &Path, members: &str) {
    let list = library.with_extension("rsp");
    fs::write(&list, members).expect("a response file");
    run(Command::new(AR)
        .arg("qcs")
        .arg(library)
        .arg(format!("@{}", list.display())));
}

/// The standard library's.
fn rlibs() -> Vec<PathBuf> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir"])
        .output()
        .expect("rustc");
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let entries = fs::read_dir(folder).expect("std's folder").flatten();
    let files = entries.map(|entry| entry.path());
    let mut rlibs: Vec<PathBuf> = files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "rlib")
        })
        .collect();
    rlibs.sort();
    rlibs
}
