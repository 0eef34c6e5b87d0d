//! Archive members that host linkers load, and those that our tool foresees. Each object has a mark that the linked file shows, and
//! device code that the report shows.

use crate::linker_support::{self as support, Project};
use crate::support::{Random, run, tool};
use std::fs;
use std::path::PathBuf;
use support::linkers;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Elf,
    Coff,
}

/// A host linker, with the options that make it take what these tests link.
struct HostLinker {
    name: &'static str,
    path: PathBuf,
    options: &'static [&'static str],
}

/// Undefined symbols and second definitions are no errors.
const OF_ELF: &[&str] = &[
    "-z",
    "muldefs",
    "--unresolved-symbols=ignore-all",
    "-o",
    "linked",
];
const OF_COFF: &[&str] = &[
    "/force",
    "/entry:_start",
    "/subsystem:console",
    "/out:linked",
];
const OF_MINGW: &[&str] = &["-m", "i386pep", "-e", "_start", "-o", "linked"];

fn of_elf() -> Vec<HostLinker> {
    let linker = |(name, path)| HostLinker {
        name,
        path,
        options: OF_ELF,
    };
    let mold = tool("mold", &["mold"]).map(|path| ("mold", path));
    linkers().into_iter().chain(mold).map(linker).collect()
}

fn of_coff() -> Option<HostLinker> {
    Some(HostLinker {
        name: "lld-link",
        path: tool("llvm22", &["lld-link"])?,
        options: OF_COFF,
    })
}

/// Objects and what links them.
struct Objects {
    project: Project,
    format: Format,
    names: Vec<String>,
}

impl Objects {
    fn new(format: Format) -> Option<Self> {
        let project = Project::new()?;
        project.write("device.s", "");
        let amd = [
            "--target=amdgcn-amd-amdhsa",
            "-mcpu=gfx90a",
            "-c",
            "device.s",
        ];
        run(project.command(&project.clang).args(amd));
        run(project
            .command(env!("CARGO_BIN_EXE_offload-packager"))
            .args(["-o", "images.bin"])
            .arg("--image=file=device.o,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=hip"));
        Some(Self {
            project,
            format,
            names: Vec::new(),
        })
    }

    /// Assembles `<name>.o` with device code.
    fn object(&mut self, name: &str, text: &str) {
        let [mark, images, end] = match self.format {
            Format::Elf => [
                "\"aR\",@progbits",
                "\"e\",@0x6fff4c0b",
                ".section .note.GNU-stack,\"\",@progbits\n",
            ],
            Format::Coff => ["\"dr\"", "\"n\"", ""],
        };
        let (source, object) = (format!("{name}.s"), format!("{name}.o"));
        self.project.write(
            &source,
            format!(
                ".text\n{text}\n.section .mark,{mark}\n.asciz \"mark_{name}.\"\n\
                 .section .llvm.offloading,{images}\n.p2align 3\n.incbin \"images.bin\"\n{end}"
            ),
        );
        // GNU's assembler starts faster than clang.
        let mut assemble = match self.format {
            Format::Elf => self.project.command("as"),
            Format::Coff => self.project.command(&self.project.clang),
        };
        if self.format == Format::Coff {
            assemble.args(["--target=x86_64-w64-windows-gnu", "-c"]);
        }
        run(assemble.args([&*source, "-o", &*object]));
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }

    fn archive(&self, name: &str, members: &[&str]) {
        _ = fs::remove_file(self.project.path(name));
        let members: Vec<String> = members.iter().map(|member| format!("{member}.o")).collect();
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        self.project.archive(name, &members);
    }

    /// Returns the objects that a linker loads.
    fn loaded(&self, linker: &HostLinker, line: &[&str]) -> Vec<&str> {
        let mut link = self.project.command(&linker.path);
        run(link.args(linker.options).args(line));
        let program = fs::read(self.project.path("linked")).unwrap();
        let has = |name: &&str| {
            let mark = format!("mark_{name}.");
            program.windows(mark.len()).any(|at| at == mark.as_bytes())
        };
        self.names.iter().map(String::as_str).filter(has).collect()
    }

    /// Returns the objects whose images our tool links.
    fn foreseen(&self, linker: &HostLinker, line: &[&str]) -> Vec<&str> {
        let mut link = self.project.command(env!("CARGO_BIN_EXE_offload-link"));
        link.arg(format!("--linker-path={}", linker.path.display()))
            .args(["--dry-run", "--report=text:report.txt"])
            .args(linker.options)
            .args(line);
        run(&mut link);
        let report = self.project.read("report.txt");
        let is_linked =
            |line: &&str| line.contains(": linked for ") || line.contains(": same as in ");
        let linked: Vec<&str> = report.lines().filter(is_linked).collect();
        let has = |name: &&str| {
            let object = format!("{name}.o");
            linked.iter().any(|line| {
                let (unit, _) = line.split_once(": ").unwrap();
                let unit = unit.replace(".obj", ".o");
                unit == object
                    || unit.ends_with(&format!("({object})"))
                    || unit.ends_with(&format!("/{object}"))
            })
        };
        self.names.iter().map(String::as_str).filter(has).collect()
    }

    fn expect_same(&self, linker: &HostLinker, line: &[&str], loaded: &[&str]) {
        let shown = format!("{} {line:?}", linker.name);
        assert_eq!(self.loaded(linker, line), loaded, "{shown}");
        assert_eq!(self.foreseen(linker, line), loaded, "{shown}");
    }
}

/// A random link of objects that define and need a few symbols.
struct RandomLink {
    /// Text of each object.
    texts: Vec<String>,
    line: Vec<String>,
}

impl RandomLink {
    const SYMBOLS: [&'static str; 6] = ["a", "b", "c", "d", "e", "f"];

    fn new(objects: &mut Objects, random: &mut Random) -> Self {
        objects.names.clear();
        let mut link = Self {
            texts: Vec::new(),
            line: Vec::new(),
        };
        let first = link.object(objects, random, true);
        let is_late = random.below(3) == 0;
        if !is_late {
            link.line.push(first.clone());
        }
        for number in 0..2 + random.below(4) {
            let members = 1 + random.below(3);
            let members = (0..members).map(|_| link.object(objects, random, false));
            let mut members: Vec<String> = members.collect();
            if random.below(6) == 0 {
                link.line.append(&mut members);
                continue;
            }
            let archive = format!("lib{number}.a");
            let stems = members.iter().map(|member| member.trim_end_matches(".o"));
            objects.archive(&archive, &stems.collect::<Vec<_>>());
            link.line.push(archive);
        }
        if is_late {
            link.line.insert(1, first);
        }
        if objects.format == Format::Elf {
            link.repeat(random);
        }
        link
    }

    /// Groups archives, or names one again.
    fn repeat(&mut self, random: &mut Random) {
        let end = self.line.len();
        if random.below(3) == 0 {
            self.line.push("--end-group".to_owned());
            let start = random.below(end as u64) as usize;
            self.line.insert(start, "--start-group".to_owned());
        } else if random.below(3) == 0 {
            let again = self.line.iter().find(|word| word.ends_with(".a")).cloned();
            self.line.extend(again);
        }
    }

    fn some(random: &mut Random, most: usize) -> Vec<&'static str> {
        let count = random.below(most as u64 + 1);
        let mut names: Vec<&str> = (0..count)
            .map(|_| Self::SYMBOLS[random.below(6) as usize])
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Makes an object, and returns its file name.
    fn object(&mut self, objects: &mut Objects, random: &mut Random, is_main: bool) -> String {
        let name = format!("o{}", self.texts.len());
        let mut text = String::new();
        let defined = Self::some(random, if is_main { 0 } else { 2 });
        if is_main {
            text += ".globl _start\n_start: nop\n";
        }
        for symbol in &defined {
            let binding = ["globl", "globl", "globl", "weak", "comm"][random.below(5) as usize];
            text += &match (binding, objects.format) {
                ("comm", Format::Elf) => format!(".comm {symbol},8,8\n"),
                ("comm", Format::Coff) => format!(".comm {symbol},8,3\n"),
                _ => format!(".{binding} {symbol}\n{symbol}: .quad 1\n"),
            };
        }
        text += ".data\n";
        for symbol in Self::some(random, if is_main { 3 } else { 2 }) {
            if !defined.contains(&symbol) {
                text += &format!(".quad {symbol}\n");
            }
        }
        objects.object(&name, &text);
        self.texts.push(text);
        format!("{name}.o")
    }
}

#[test]
fn foresees_what_linkers_load_of_random_archives() {
    for format in [Format::Elf, Format::Coff] {
        let Some(mut objects) = Objects::new(format) else {
            return;
        };
        let linkers = match format {
            Format::Elf => of_elf(),
            Format::Coff => of_coff().into_iter().collect(),
        };
        let mut random = Random::new();
        for _ in 0..25 {
            let link = RandomLink::new(&mut objects, &mut random);
            let line: Vec<&str> = link.line.iter().map(String::as_str).collect();
            for linker in &linkers {
                let (loaded, foreseen) = (
                    objects.loaded(linker, &line),
                    objects.foreseen(linker, &line),
                );
                let shown = format!("{} {line:?}\n{}", linker.name, link.texts.join("\n"));
                let is_foreseen = |object: &&str| foreseen.contains(object);
                assert!(
                    loaded.iter().all(is_foreseen),
                    "{loaded:?} {foreseen:?} {shown}"
                );
                // Other linkers leave undefined what only earlier archives have, and fail without the option that these links have.
                if linker.name.starts_with("lld") {
                    assert_eq!(foreseen, loaded, "{shown}");
                }
            }
        }
    }
}

#[test]
fn foresees_what_options_and_scripts_load() {
    let Some(mut objects) = Objects::new(Format::Elf) else {
        return;
    };
    objects.object("m", ".globl _start\n_start: call g");
    objects.object("g", ".globl g\ng: call f");
    objects.object("h", ".globl g\ng: nop");
    objects.object("r", ".globl f\nf: ret");
    objects.object("k", ".globl __wrap_f\n__wrap_f: ret");
    objects.object("own", ".globl __wrap_f\n__wrap_f: ret");
    objects.object("u", ".weak f\nf: ret");
    objects.object("s", ".comm f,8,8");
    objects.object("common", ".globl g\n.comm x,8,8\ng: nop");
    objects.object("value", ".data\n.globl x\nx: .quad 1");
    objects.archive("libcommon.a", &["common", "value"]);
    objects.archive("libf.a", &["r"]);
    objects.archive("liball.a", &["s", "u", "g", "r"]);
    objects.archive("libg.a", &["g"]);
    objects.archive("lib.a", &["h", "r", "k"]);
    objects.archive("libk.a", &["h", "k"]);
    for (name, script) in [
        ("libouter.so", "INPUT(libinner.so)"),
        ("libinner.so", "INPUT(libg.a libf.a)"),
    ] {
        objects.project.write(name, script);
    }
    for linker in of_elf() {
        objects.expect_same(&linker, &["m.o", "libouter.so"], &["m", "g", "r"]);
        objects.expect_same(&linker, &["m.o", "-L.", "-louter"], &["m", "g", "r"]);
        if linker.name == "bfd" {
            // A group without an end.
            let line = ["m.o", "--start-group", "libf.a", "libg.a"];
            objects.expect_same(&linker, &line, &["m", "g", "r"]);
        }
        if linker.name == "mold" {
            // Among archives the strong definition counts.
            objects.expect_same(&linker, &["m.o", "liball.a"], &["m", "g", "r"]);
            // Common storage of a member gets a value.
            objects.expect_same(&linker, &["m.o", "libcommon.a"], &["m", "common", "value"]);
        }
        if linker.name.starts_with("lld") {
            // References change after all files, whoever knows the symbol.
            objects.expect_same(&linker, &["--wrap=f", "m.o", "lib.a"], &["m", "h", "k"]);
            let line = ["--wrap=f", "m.o", "lib.a", "own.o"];
            objects.expect_same(&linker, &line, &["m", "h", "own"]);
            objects.expect_same(&linker, &["--wrap=f", "m.o", "libk.a"], &["m", "h"]);
            // A shared library comes before an archive whose members nobody needs yet.
            let shared = ["-shared", "h.o", "-o", "libshared.so"];
            run(objects.project.command(&linker.path).args(shared));
            let line = ["libg.a", "libshared.so", "m.o"];
            objects.expect_same(&linker, &line, &["m"]);
        }
    }
}

/// Definitions that decide whether a member of `libka.a` is loaded, which has `s` and `f`, or one of `libkb.a`, which has `f`.
#[test]
fn foresees_what_definitions_outside_of_archives_leave_unloaded() {
    let Some(mut objects) = Objects::new(Format::Elf) else {
        return;
    };
    objects.object("m", ".globl _start\n_start: call s@PLT\ncall other@PLT");
    objects.object("other", ".globl other\nother: call f@PLT");
    objects.object("ka", ".globl s,f\ns: nop\nf: ret");
    objects.object("kb", ".globl f\nf: ret");
    let symver = ".globl s_1\ns_1: ret\n.symver s_1, s@@V1\n.globl api\napi: call s@PLT";
    objects.object("api", symver);
    objects.archive("libka.a", &["ka"]);
    objects.archive("libkb.a", &["kb"]);
    objects.object("c", ".globl _start\n_start: nop\n.comm x,8,8");
    objects.object("weak", ".data\n.weak x\nx: .quad 1");
    objects.object("value", ".data\n.globl x\nx: .quad 1");
    objects.archive("libx.a", &["weak", "value"]);
    objects
        .project
        .write("v.map", "V1 { global: s; api; other; };");
    for name in ["strong", "inline"] {
        let binding = if name == "strong" { "globl" } else { "weak" };
        let source = format!(".text\n.{binding} s\ns: ret\n");
        objects.project.write(format!("{name}.s"), source);
        run(objects
            .project
            .command("as")
            .args([&format!("{name}.s"), "-o", "shared.o"]));
        let library = format!("lib{name}.so");
        run(objects
            .project
            .command("ld")
            .args(["-shared", "shared.o", "-o", &library]));
    }
    let script = "INPUT(AS_NEEDED(libstrong.so))";
    objects.project.write("libscript.so", script);
    let archives = ["libka.a", "other.o", "libkb.a"];
    for linker in of_elf() {
        let is_in_order = ["bfd", "gold"].contains(&linker.name);
        for library in ["libstrong.so", "libinline.so"] {
            for line in [
                &["m.o", library][..],
                &[library, "m.o"],
                &["--as-needed", library, "m.o"],
                &[
                    "--as-needed",
                    "--push-state",
                    "--no-as-needed",
                    library,
                    "--pop-state",
                    "m.o",
                ],
                &["--push-state", "--as-needed", "--pop-state", library, "m.o"],
            ] {
                let line = [line, &archives].concat();
                let loaded = objects.loaded(&linker, &line);
                assert_eq!(
                    objects.foreseen(&linker, &line),
                    loaded,
                    "{} {line:?}",
                    linker.name
                );
                let is_kept = line[..2] != ["--as-needed", library];
                if is_in_order && is_kept {
                    assert_eq!(loaded, ["m", "other", "kb"], "{} {line:?}", linker.name);
                }
            }
        }
        let line = ["--no-as-needed", "libscript.so", "m.o"];
        let line = [&line, &archives[..]].concat();
        let loaded = objects.loaded(&linker, &line);
        assert_eq!(objects.foreseen(&linker, &line), loaded, "{}", linker.name);
        let line = ["-shared", "--version-script=v.map", "api.o"];
        let line = [&line, &archives[..]].concat();
        let loaded = objects.loaded(&linker, &line);
        assert_eq!(objects.foreseen(&linker, &line), loaded, "{}", linker.name);
        let has_ka = loaded.contains(&"ka");
        assert_eq!(has_ka, !is_in_order, "{} {loaded:?}", linker.name);
        let value = match linker.name {
            "bfd" => &["c", "value"][..],
            "mold" => &["c", "value"],
            _ => &["c"],
        };
        objects.expect_same(&linker, &["c.o", "libx.a"], value);
        if linker.name.starts_with("lld") {
            let line = ["--fortran-common", "c.o", "libx.a"];
            objects.expect_same(&linker, &line, &["c", "value"]);
        }
    }
}

#[test]
fn foresees_what_linkers_for_windows_load() {
    let (Some(mut objects), Some(linker)) = (Objects::new(Format::Coff), of_coff()) else {
        return;
    };
    let Some(ar) = tool("mingw", &["x86_64-w64-mingw32-ar"]) else {
        return;
    };
    let inline = ".section .text$inl,\"xr\",discard,inl\n.globl inl\ninl: ret";
    objects.object("m", ".globl _start\n_start: call f\ncall hook");
    objects.object("w", ".globl f\nf: ret\n.weak hook\nhook: ret");
    objects.object("k", ".globl hook\nhook: ret");
    objects.object("n", ".globl _start\n_start: call f\ncall inl");
    objects.object("p", &format!(".globl f\nf: ret\n{inline}"));
    objects.object("q", inline);
    let mut archive = objects.project.command(ar);
    run(archive.args(["rc", "libk.a", "w.o", "k.o"]));
    objects.archive("a.lib", &["p"]);
    objects.archive("b.lib", &["q"]);
    fs::create_dir(objects.project.path("lib")).unwrap();
    objects.archive("lib/libp.a", &["p"]);
    for name in ["lib/pp.lib", "lib/libpm.a"] {
        fs::copy(
            objects.project.path("lib/libp.a"),
            objects.project.path(name),
        )
        .unwrap();
    }
    for name in ["lib/q.o", "lib/q.obj"] {
        fs::copy(objects.project.path("q.o"), objects.project.path(name)).unwrap();
    }
    fs::remove_file(objects.project.path("q.o")).unwrap();
    let mingw = HostLinker {
        name: "ld.lld",
        path: tool("llvm22", &["ld.lld"]).unwrap(),
        options: OF_MINGW,
    };
    // lld for Windows refuses `-z`, which lld for ELF gets.
    let mut link = objects.project.command(env!("CARGO_BIN_EXE_offload-link"));
    link.arg(format!("--linker-path={}", mingw.path.display()));
    let other = ["-mllvm", "-x", "m.o"];
    let line = run(link.arg("--dry-run").args(OF_MINGW).args(other));
    assert!(!line.contains("nostart-stop-gc"), "{line}");
    for linker in [&linker, &mingw] {
        // The index has no weak definition, and the archive is searched before the member with it is read.
        objects.expect_same(linker, &["m.o", "libk.a"], &["m", "w", "k"]);
    }
    // Members are read after all files. Default libraries come last.
    let compiler = tool("mingw", &["x86_64-w64-mingw32-gcc"]).unwrap();
    let mut link = objects.project.command(env!("CARGO_BIN_EXE_offload-link"));
    link.args([
        "--dry-run",
        "--report=text:report.txt",
        "n.o",
        "-Llib",
        "-lpp",
    ]);
    run(link.env("OFFLOAD_CC", compiler));
    let report = objects.project.read("report.txt");
    assert!(report.contains("same as in n.o"), "{report}");
    // It may not count beside the compiler of one host.
    run(link.env("OFFLOAD_CC_x86_64_unknown_linux_gnu", "gcc"));
    let report = objects.project.read("report.txt");
    assert!(!report.contains("pp.lib"), "{report}");
    for (line, loaded) in [
        (&["n.o", "a.lib", "b.lib"][..], &["n", "p"][..]),
        (&["n.o", "/defaultlib:lib/libp.a"], &["n", "p"]),
        (&["n.o", "/defaultlib:lib/pp"], &["n", "p"]),
        (&["/libpath:lib", "n.o", "/defaultlib:pp"], &["n", "p"]),
        (&["/libpath:lib", "n.o", "/defaultlib:libp.a"], &["n", "p"]),
        (&["/libpath:lib", "n.o", "libp.a"], &["n", "p"]),
        (&["/libpath:lib", "n.o", "q", "a.lib"], &["n", "p", "q"]),
        (
            &["/libpath:lib", "n.o", "q.o", "/defaultlib:a.lib"],
            &["n", "p", "q"],
        ),
    ] {
        objects.expect_same(&linker, line, loaded);
    }
}
