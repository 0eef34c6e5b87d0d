//! Images in bundles at link time: HIP objects of clang's older driver, bundle files, archives of
//! both; linked by ours, run with a runtime that records what is registered.

use crate::linker_hip_support as support;
use crate::linker_support as linkers;
use crate::support::folder::Folder;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

use offload_formats::container::archive::{self, NewMember};
use support::{ENTRIES, Place, one_kernel, run};

#[test]
fn links_objects_and_archives_of_the_older_driver() {
    for release in ["llvm16", "llvm19", "llvm22"] {
        let Some(place) = Place::new(release) else {
            continue;
        };
        place.kernel("one", "--no-offload-new-driver");
        place.helper("helper", &["--no-offload-new-driver", "-c"]);
        assert_eq!(place.registered(&["one.o", "helper.o"]), one_kernel("one"));
        assert_eq!(place.entries(), ENTRIES, "{release}");
        // So does what a relocatable link makes of them. A device stays where it is.
        for output in ["r.o", "/dev/null"] {
            let mut link = place.command(env!("CARGO_BIN_EXE_offload-link"));
            link.env_remove("OFFLOAD_LINK_ACTIVE").env_remove("CC");
            run(link.args(["-r", "-nostdlib", "one.o", "helper.o", "-o", output]));
        }
        assert_eq!(place.registered(&["r.o"]), one_kernel("one"), "{release}");
        assert!(fs::symlink_metadata("/dev/null").is_ok());

        // On the host nobody wants anything of the member; the device code does.
        place.archive("libhelper.a", &["helper.o"]);
        let inputs = ["one.o", "libhelper.a"];
        assert_eq!(place.registered(&inputs), one_kernel("one"), "{release}");
        let report = place.report();
        let images = || report.lines().filter(|line| !line.starts_with("note: "));
        assert_eq!(images().count(), 4, "{report}");
        assert!(
            images().all(|line| line.contains(": linked for ")),
            "{report}"
        );

        // With another object of the program that has the fat binary, its driver has linked.
        let listed = run(place
            .command(place.tool("llvm-nm"))
            .args(["-u", "-j", "one.o"]));
        let wanted = listed.lines().filter(|name| name.starts_with("__hip_"));
        let defined: String = wanted
            .map(|name| format!(".globl {name}\n{name}: .quad 0\n"))
            .collect();
        place.write("defined.s", format!(".data\n{defined}"));
        place.cc(&["-c", "defined.s"]);
        let link = place.link(&["one.o", "defined.o"]);
        assert!(link.status.success(), "{link:?}");
        let report = place.report();
        let line = "not linked: its object finds a linked fat binary in another object";
        assert_eq!(report.lines().count(), 2, "{report}");
        assert!(
            report.lines().all(|found| found.ends_with(line)),
            "{report}"
        );
    }
}

/// Sources of an archive of the older driver's objects. `one`'s kernel calls `helper`.
const PARTS: [(&str, &str); 4] = [
    (
        "helper",
        "extern __device__ int next(int); __device__ int helper(int x) { return next(x); }",
    ),
    ("next", "__device__ int next(int x) { return x + 1; }"),
    ("other", "__device__ int other(int x) { return x + 2; }"),
    (
        "launched",
        "__global__ void launched(int *p) { *p = 1; } \
         extern \"C\" void launch(int *p) { launched<<<dim3{}, dim3{}, 0, 0>>>(p); }",
    ),
];

/// The members of `libparts.a` that are linked for `gfx906`, by the report of a link.
fn linked_parts(report: &str) -> BTreeSet<String> {
    let linked = report.lines().filter_map(|line| {
        let (member, rest) = line.strip_prefix("libparts.a(")?.split_once(".o)")?;
        (rest.contains("gfx906") && rest.contains(": linked")).then(|| member.to_owned())
    });
    linked.collect()
}

/// The members of the device archive that LLVM's tools make of `libparts.a` and that `ld.lld` loads for `inputs`.
fn parts_of_lld(place: &Place, inputs: &[&str], whole: &[&str]) -> BTreeSet<String> {
    let bundler = || place.command(place.tool("clang-offload-bundler"));
    let target = "-targets=hip-amdgcn-amd-amdhsa--gfx906";
    let mut split = bundler();
    split.args(["-type=a", "-unbundle", "-hip-openmp-compatible", target]);
    run(split.args(["-input=libparts.a", "-output=theirs.a"]));
    for input in inputs {
        let mut unbundle = bundler();
        unbundle.args(["-type=o", "-unbundle", target, &format!("-input={input}.o")]);
        run(unbundle.arg(format!("-output={input}.gfx906.o")));
    }
    let mut lld = place.command(place.tool("ld.lld"));
    lld.args([
        "-m",
        "elf64_amdgpu",
        "-shared",
        "-plugin-opt=mcpu=gfx906",
        "-t",
    ]);
    lld.args(inputs.iter().map(|input| format!("{input}.gfx906.o")));
    let loaded = run(lld.args(whole).args(["theirs.a", "-o", "theirs.img"]));
    let members = loaded.lines().filter_map(|line| {
        let (member, _) = line.strip_prefix("theirs.a(")?.split_once("-hip-")?;
        Some(member.to_owned())
    });
    members.collect()
}

#[test]
fn links_the_members_that_lld_loads_from_an_archive_of_bundles() {
    for release in ["llvm19", "llvm22"] {
        let Some(place) = Place::new(release) else {
            continue;
        };
        place.kernel("one", "--no-offload-new-driver");
        for (name, source) in PARTS {
            let source = format!("{}{source}", support::DECLARED);
            place.compile(name, &source, &["--no-offload-new-driver", "-c"]);
        }
        let objects = PARTS.map(|(name, _)| format!("{name}.o"));
        let objects = objects.each_ref().map(String::as_str);
        place.archive("libparts.a", &objects);
        let ours = |more: &[&str]| {
            let inputs = [&["one.o"], more].concat();
            let link = place.link(&inputs);
            assert!(link.status.success(), "{release}: {more:?}: {link:?}");
            linked_parts(&place.report())
        };
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let needed: BTreeSet<String> = set(&["helper", "next"]);
        let all: BTreeSet<String> = set(&PARTS.map(|(name, _)| name));

        // As a linker of device code takes them from an archive of this target.
        let theirs = parts_of_lld(&place, &["one"], &[]);
        assert_eq!(theirs, needed, "{release}");
        assert_eq!(ours(&["libparts.a"]), theirs, "{release}");
        // The host link loads a member: its kernels can be launched.
        let more = [&needed, &set(&["launched"])];
        let more: BTreeSet<String> = more.into_iter().flatten().cloned().collect();
        assert_eq!(ours(&["-Wl,-u,launch", "libparts.a"]), more, "{release}");

        // The older driver takes all; under the name of LLVM's wrapper, which reads no bundles, ours does, too.
        let theirs = parts_of_lld(&place, &["one"], &["--whole-archive"]);
        assert_eq!(theirs, all, "{release}");
        let mut under_its_name = place.command(env!("CARGO_BIN_EXE_offload-link"));
        under_its_name.arg0("clang-linker-wrapper").args([
            "--host-triple=x86_64-pc-linux-gnu",
            "--linker-path=/usr/bin/ld",
            "--dry-run",
            "--report=text:report",
        ]);
        run(under_its_name.args(["-o", "x", "one.o", "libparts.a"]));
        assert_eq!(linked_parts(&place.report()), all, "{release}");
        let whole = "-Wl,--whole-archive,libparts.a,--no-whole-archive";
        assert_eq!(ours(&[whole]), all, "{release}");

        // Without an index nothing is known of its members, and the host linker may refuse it.
        fs::remove_file(place.path("libparts.a")).unwrap();
        run(place
            .command("ar")
            .args(["rcDS", "libparts.a"])
            .args(objects));
        assert_eq!(ours(&["--dry-run", "libparts.a"]), all, "{release}");
    }
}

/// GNU's linker knows members by the index alone; lld and mold read every member.
#[test]
fn believes_the_index_and_reads_members_without_symbols_in_it() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    for (name, source) in [PARTS[2], PARTS[3]] {
        let source = format!("{}{source}", support::DECLARED);
        place.compile(name, &source, &["--offload-new-driver", "-c"]);
    }
    let [other, launched] = ["other.o", "launched.o"].map(|name| place.read(name));
    let member = |name, bytes, symbols| NewMember {
        name,
        bytes,
        symbols,
    };
    for (symbols, expected) in [
        ([&[][..], &["launch"][..]], &["launched"][..]),
        ([&["anything"], &[]], &["launched"]),
        ([&["launch"], &["anything"]], &["other"]),
    ] {
        let [of_other, of_launched] = symbols;
        let members = [
            member("other.o", &other[..], of_other),
            member("launched.o", &launched[..], of_launched),
        ];
        place.write("libparts.a", archive::write(&members));
        let link = place.link(&["--dry-run", "-Wl,-u,launch", "libparts.a"]);
        assert!(link.status.success(), "{link:?}");
        let expected = expected.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(linked_parts(&place.report()), expected, "{symbols:?}");
    }
}

const MEMBERS: usize = 2000;

/// Copies of one object, each with a number in its names, and their index.
fn write_many(place: &Place, path: &str) -> u64 {
    let number = "00000";
    let text = format!(
        "{}__device__ int helper{number}(int x) {{ return x + 1; }}
        __global__ void kernel{number}(int *p) {{ *p = helper{number}(*p); }}
        extern \"C\" void launch{number}(int *p) {{ kernel{number}<<<dim3{{}}, dim3{{}}, 0, 0>>>(p); }}",
        support::DECLARED
    );
    place.compile("many", &text, &["--no-offload-new-driver", "-c"]);
    let template = fs::read(place.path("many.o")).unwrap();
    let members: Vec<(String, String, Vec<u8>)> = (0..MEMBERS)
        .map(|index| {
            let index = format!("{index:05}");
            let mut object = template.clone();
            for name in ["helper", "kernel", "launch"] {
                let (old, new) = (format!("{name}{number}"), format!("{name}{index}"));
                let mut at = 0;
                while let Some(end) = object.get(at..at + old.len()) {
                    if end == old.as_bytes() {
                        object[at..at + old.len()].copy_from_slice(new.as_bytes());
                    }
                    at += 1;
                }
            }
            (format!("m{index}.o"), format!("launch{index}"), object)
        })
        .collect();
    let symbols: Vec<[&str; 1]> = members.iter().map(|(_, symbol, _)| [&**symbol]).collect();
    let members = members.iter().zip(&symbols);
    let members: Vec<NewMember<'_>> = members
        .map(|((name, _, bytes), symbols)| NewMember {
            name,
            bytes,
            symbols,
        })
        .collect();
    let bytes = archive::write(&members);
    place.write(path, &bytes);
    bytes.len() as u64
}

#[test]
fn reads_the_headers_and_the_index_of_an_archive_of_bundles() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    let size = write_many(&place, "libmany.a");
    // More than is kept in memory.
    assert!(size > 16 << 20, "{size}");
    place.script("linker", "cat /proc/$PPID/io > io; exec ld \"$@\"");
    let main = |name: &str, needs: &str| {
        let source = format!(
            "{}extern __device__ int {needs}(int);
            __global__ void {name}(int *p) {{ *p = {needs}(*p); }}",
            support::DECLARED
        );
        place.compile(name, &source, &["--offload-new-driver", "-c"]);
    };
    main("needy", "helper01234");
    let source = format!(
        "{}__global__ void content(int *p) {{ *p = 1; }}",
        support::DECLARED
    );
    place.compile("content", &source, &["--offload-new-driver", "-c"]);
    for (object, linked, reads, bytes) in [
        // Of each member: its headers, once to find its bundle and once to find its images.
        ("content.o", 0, 5, 40 << 10),
        // And the symbols of its images for two processors.
        ("needy.o", 2, 10, 80 << 10),
    ] {
        let mut command = place.command(env!("CARGO_BIN_EXE_offload-link"));
        command.args([
            "--linker-path=./linker",
            "-shared",
            "-o",
            "x",
            "--report=text:report",
        ]);
        run(command.args([object, "libmany.a", "-L.", "-lamdhip64"]));
        let report = place.report();
        let of_archive = report
            .lines()
            .filter(|line| line.starts_with("libmany.a(m"));
        let of_archive: Vec<&str> = of_archive
            .filter(|line| line.contains(": linked"))
            .collect();
        assert_eq!(of_archive.len(), linked, "{object}: {of_archive:?}");
        assert!(
            of_archive.iter().all(|line| line.contains("(m01234.o)")),
            "{of_archive:?}"
        );
        let io = fs::read_to_string(place.path("io")).unwrap();
        let counted = |name: &str| {
            let line = io.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().parse::<usize>().unwrap()
        };
        let (calls, read) = (counted("syscr: "), counted("rchar: "));
        // A few more for other files.
        assert!(calls < MEMBERS * reads + 500, "{object}: {calls} reads");
        assert!(read < MEMBERS * bytes + (4 << 20), "{object}: {read} bytes");
        println!("{object}: {calls} reads, {read} bytes of {size}");
    }
}

#[test]
fn links_objects_of_both_drivers_with_one_copy_of_the_images() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    place.kernel("older", "--no-offload-new-driver");
    place.kernel("newer", "--offload-new-driver");
    place.helper("helper", &["--no-offload-new-driver", "-c"]);
    place.archive("libhelper.a", &["helper.o"]);
    let mut expected = [one_kernel("older"), one_kernel("newer")].concat();
    expected.sort();
    assert_eq!(
        place.registered(&["older.o", "newer.o", "libhelper.a"]),
        expected
    );
    assert_eq!(place.entries(), ENTRIES);
}

#[test]
fn links_bundle_files_and_archives_of_them() {
    for release in ["llvm16", "llvm19", "llvm22"] {
        if let Some(place) = Place::new(release) {
            links_bundle_files(&place);
        }
    }
}

/// Made by hand with the release's own tools.
fn links_bundle_files(place: &Place) {
    place.kernel("one", "--offload-new-driver");
    let bundler = place.tool("clang-offload-bundler");
    for processor in ["gfx906", "gfx90a"] {
        let arch = format!("--offload-arch={processor}");
        let device = [
            "--offload-device-only",
            "-emit-llvm",
            "-c",
            "--no-offload-arch=gfx906,gfx90a",
        ];
        let one = [&device[..], &[arch.as_str()]].concat();
        place.helper(processor, &one);
    }
    place.write("empty", "");
    let make = |kind: &str, compress: &[&str]| {
        let targets = format!(
            "-targets=host-x86_64-unknown-linux-gnu-,hip-amdgcn-amd-amdhsa--gfx906,\
             {kind}-amdgcn-amd-amdhsa--gfx90a"
        );
        let inputs = ["-input=empty", "-input=gfx906.o", "-input=gfx90a.o"];
        let mut bundle = place.command(&bundler);
        bundle.args(["-type=bc", &targets, "-output=helper.bc"]);
        run(bundle.args(inputs).args(compress));
    };
    let compress = match place.release {
        "llvm16" => &[&[][..]][..],
        _ => &[&[][..], &["-compress"]],
    };
    for compress in compress {
        make("hip", compress);
        assert_eq!(place.registered(&["one.o", "helper.bc"]), one_kernel("one"));
        // In an archive kinds are as good as each other: what is linked is a library.
        make("openmp", compress);
        place.archive("libhelper.a", &["helper.bc"]);
        assert_eq!(
            place.registered(&["one.o", "libhelper.a"]),
            one_kernel("one")
        );
        assert_eq!(place.entries(), ENTRIES);
    }
    make("hip", &[]);
    // What fits no target of the link is told.
    let targets = "-targets=hip-amdgcn-amd-amdhsa--gfx1100";
    let mut bundle = place.command(&bundler);
    bundle.args(["-type=bc", targets, "-output=other.bc", "-input=gfx906.o"]);
    run(&mut bundle);
    place.archive("libother.a", &["other.bc"]);
    place.registered(&["one.o", "helper.bc", "libother.a"]);
    let report = place.report();
    let line = report
        .lines()
        .find(|line| line.starts_with("libother.a(other.bc)"));
    let line = line.unwrap();
    assert!(
        line.contains("gfx1100") && line.contains(": not linked"),
        "{line}"
    );
}

#[test]
fn gives_the_host_linker_the_hosts_part_of_a_bundle() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    place.kernel("one", "--offload-new-driver");
    place.helper(
        "gfx906",
        &[
            "--offload-device-only",
            "-emit-llvm",
            "-c",
            "--no-offload-arch=gfx90a",
        ],
    );
    place.helper(
        "gfx90a",
        &[
            "--offload-device-only",
            "-emit-llvm",
            "-c",
            "--no-offload-arch=gfx906",
        ],
    );
    place.write("host.c", "#include <stdio.h>\n__attribute__((constructor)) static void said(void) { puts(\"host part\"); }");
    place.cc(&["-c", "host.c"]);
    let bundler = place.tool("clang-offload-bundler");
    let targets = "-targets=host-x86_64-unknown-linux-gnu-,hip-amdgcn-amd-amdhsa--gfx906,\
                   hip-amdgcn-amd-amdhsa--gfx90a";
    let inputs = ["-input=host.o", "-input=gfx906.o", "-input=gfx90a.o"];
    let mut bundle = place.command(&bundler);
    run(bundle
        .args(["-type=bc", targets, "-output=all.bc"])
        .args(inputs));
    let mut expected = one_kernel("one");
    expected.insert(2, "host part".to_owned());
    assert_eq!(place.registered(&["one.o", "all.bc"]), expected);
    // Of an archive the host linker gets only what it can read.
    let mut pack = place.command(env!("CARGO_BIN_EXE_offload-packager"));
    let image = "--image=file=gfx906.o,kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx906";
    run(pack.args(["-o", "device.bin", image]));
    place.archive("liball.a", &["all.bc", "device.bin"]);
    let whole = "-Wl,--whole-archive,liball.a,--no-whole-archive";
    assert_eq!(place.registered(&["one.o", whole]), expected);
}

#[test]
fn tells_make_of_the_inputs_and_of_no_temporary_file() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    place.kernel("one", "--offload-new-driver");
    place.helper(
        "device",
        &[
            "--offload-device-only",
            "-emit-llvm",
            "-c",
            "--no-offload-arch=gfx90a",
        ],
    );
    place.write("host.c", "int unused;");
    place.cc(&["-c", "host.c"]);
    let device = ("hip-amdgcn-amd-amdhsa--gfx906", "device.o");
    let host = ("host-x86_64-unknown-linux-gnu-", "host.o");
    place.bundle("bc", &[host, device], "both.bc", &[]);
    let mut pack = place.command(place.tool("clang-offload-packager"));
    let image = "--image=file=device.o,kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx90a";
    run(pack.args(["-o", "device.pack", image]));
    fs::create_dir_all(place.path("tmp")).unwrap();
    place.write("Makefile", "x:\n\tlinked again\ninclude x.d\n");

    let memory = Folder::in_memory();
    let of_mold = linkers::other("mold", &["mold"]).map(|path| ("mold", path));
    for (name, linker) in linkers::linkers().into_iter().chain(of_mold) {
        let mut link = place.command(env!("CARGO_BIN_EXE_offload-link"));
        link.env_remove("OFFLOAD_LINK_ACTIVE")
            .env("TMPDIR", "./tmp/../tmp");
        link.arg(format!("--linker-path={}", place.tool("clang").display()));
        link.arg(format!("--ld-path={}", linker.display()));
        link.args(["main.o", "one.o", "both.bc", "device.pack", "-o", "x"]);
        // In memory on Linux: a folder among devices is like any other.
        let rules = memory.path("x.d");
        link.arg(format!("-Wl,--dependency-file={}", rules.display()));
        run(link.args(["-L.", "-lamdhip64"]));
        fs::copy(rules, place.path("x.d")).unwrap();
        let rules = fs::read_to_string(place.path("x.d")).unwrap();
        assert!(!rules.contains("offload-link-"), "{name}: {rules}");

        // Without a rule, a missing dependency would be an error.
        let ask = || place.command("make").args(["-q", "x"]).status().unwrap();
        assert_eq!(ask().code(), Some(0), "{name}: {rules}");
        for input in ["one.o", "both.bc", "device.pack", "libamdhip64.so"] {
            let file = fs::File::open(place.path(input)).unwrap();
            let before = file.metadata().unwrap().modified().unwrap();
            file.set_modified(before + Duration::from_secs(1000))
                .unwrap();
            assert_eq!(ask().code(), Some(1), "{name}: {input}: {rules}");
            file.set_modified(before).unwrap();
        }
    }
}

#[test]
fn names_what_is_wrong_with_a_bundle() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    fs::write(
        place.path("cut.bc"),
        b"__CLANG_OFFLOAD_BUNDLE__\x05\0\0\0\0\0\0\0",
    )
    .unwrap();
    let link = place.link(&["cut.bc"]);
    let said = String::from_utf8_lossy(&link.stderr);
    assert_eq!(link.status.code(), Some(1), "{said}");
    assert!(
        said.contains("error: cut.bc: ") && said.contains("0x20"),
        "{said}"
    );
    assert!(!place.path("x").exists());
}

#[test]
fn finds_libraries_for_devices_by_their_names() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    place.kernel("one", "--offload-new-driver");
    for (processor, other) in [("gfx906", "gfx90a"), ("gfx90a", "gfx906")] {
        let other = format!("--no-offload-arch={other}");
        place.helper(
            processor,
            &["--offload-device-only", "-emit-llvm", "-c", &other],
        );
    }
    fs::create_dir_all(place.path("lib/libdevice")).unwrap();
    // A host library has that name as well, without device code.
    place.write("host.c", "int host;");
    place.cc(&["-c", "host.c"]);
    place.archive("lib/libhelper.a", &["host.o"]);
    // The names of `docs/spec/linker-wrapper.md` §7.4: an archive for one processor, bitcode for another.
    place.archive("lib/libdevice/libbc-helper-amdgcn-gfx906.a", &["gfx906.o"]);
    fs::copy(
        place.path("gfx90a.o"),
        place.path("lib/libhelper-amdgcn-gfx90a.bc"),
    )
    .unwrap();
    assert_eq!(
        place.registered(&["one.o", "-Llib", "-lhelper"]),
        one_kernel("one")
    );
    let report = place.report();
    for line in [
        "lib/libdevice/libbc-helper-amdgcn-gfx906.a(gfx906.o): none amdgcn-amd-amdhsa gfx906",
        "lib/libhelper-amdgcn-gfx90a.bc: none amdgcn-amd-amdhsa gfx90a",
    ] {
        let found = report.lines().find(|found| found.starts_with(line));
        assert!(
            found.is_some_and(|line| line.contains(": linked for ")),
            "{report}"
        );
    }
}

#[test]
fn splits_archives_as_llvm_does_and_makes_them_of_the_parts() {
    for release in ["llvm16", "llvm19", "llvm22"] {
        let Some(place) = Place::new(release) else {
            continue;
        };
        place.kernel("one", "--no-offload-new-driver");
        place.helper("helper", &["--no-offload-new-driver", "-c"]);
        place.archive("libone.a", &["one.o", "helper.o"]);
        let archive = |args: &[&str]| {
            let mut command = place.command(env!("CARGO_BIN_EXE_cargo-offload"));
            command.args(["offload", "archive"]).args(args);
            command.output().unwrap()
        };
        let printed = |args: &[&str]| {
            let output = archive(args);
            assert!(output.status.success(), "{args:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let listed = printed(&["list", "libone.a"]);
        assert_eq!(listed.lines().count(), 2 + 2 * 3, "{listed}");
        printed(&["check", "libone.a"]);

        // The names of `docs/spec/linker-wrapper.md` §7.4, the bytes of LLVM's tool.
        let parts = ["libbc-one-amdgcn-gfx906.a", "libbc-one-amdgcn-gfx90a.a"];
        let written = printed(&["split", "--out", "parts", "libone.a"]);
        let paths = parts.map(|name| format!("parts/{name}"));
        assert_eq!(written.lines().collect::<Vec<_>>(), paths);
        for (path, processor) in paths.iter().zip(["gfx906", "gfx90a"]) {
            let target = format!("-targets=hip-amdgcn-amd-amdhsa--{processor}");
            let mut theirs = place.command(place.tool("clang-offload-bundler"));
            theirs.args(["-type=a", "-unbundle", &target]);
            run(theirs.args(["-input=libone.a", "-output=theirs.a"]));
            let [ours, theirs] = [path.as_str(), "theirs.a"].map(|name| place.path(name));
            assert!(
                fs::read(ours).unwrap() == fs::read(theirs).unwrap(),
                "{path}"
            );
        }
        assert_eq!(
            printed(&["split", "--out", "parts", "--target=host", "libone.a"]),
            "parts/libone-host.a\n"
        );
        let twice = [
            "split",
            "--out=parts",
            "--target=gfx906",
            "--target=gfx906",
            "libone.a",
        ];
        assert_eq!(printed(&twice), format!("{}\n", paths[0]));

        // Together again they link as before; without the host's part they are a device library.
        let [gfx906, gfx90a] = ["gfx906", "gfx90a"].map(|processor| {
            format!("hip-amdgcn-amd-amdhsa--{processor}=parts/libbc-one-amdgcn-{processor}.a")
        });
        printed(&[
            "merge",
            "--out=merged.a",
            "--host=parts/libone-host.a",
            &gfx906,
            &gfx90a,
        ]);
        let stub = "-Wl,-u,_Z18__device_stub__onePi";
        assert_eq!(place.registered(&["merged.a", stub]), one_kernel("one"));
        printed(&["merge", "--out=device.a", &gfx906, &gfx90a]);
        place.kernel("two", "--offload-new-driver");
        assert_eq!(place.registered(&["two.o", "device.a"]), one_kernel("two"));

        // What is asked for and not there, and what does not fit together.
        let missing = archive(&["split", "--target=gfx1100", "libone.a"]);
        let said = String::from_utf8_lossy(&missing.stderr).into_owned();
        assert!(
            said.contains("libone.a: no images for `gfx1100`; it has amdgcn"),
            "{said}"
        );
        let twice = archive(&["merge", "--out=twice.a", &gfx906, &gfx906]);
        let said = String::from_utf8_lossy(&twice.stderr).into_owned();
        assert!(
            said.contains("a second image of `one` for hip-amdgcn"),
            "{said}"
        );
        assert!(!place.path("twice.a").exists());
    }
}

/// LLVM's wrapper starts the bundler, which reads variables.
#[test]
fn obeys_the_variables_of_the_bundler_under_the_name_of_llvms_wrapper() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    place.kernel("k", "--offload-new-driver");
    place.helper("h", &["--offload-new-driver", "-c"]);
    let link = Path::new(env!("CARGO_BIN_EXE_offload-link"));
    let ours = place.path("ours/clang-linker-wrapper");
    fs::create_dir(place.path("ours")).unwrap();
    std::os::unix::fs::symlink(link, &ours).unwrap();
    let bundle = |tool: &Path, variable: Option<(&str, &str)>, options: &[&str]| {
        let mut command = place.llvm(tool);
        command.args([
            "--linker-path=/usr/bin/ld",
            "--host-triple=x86_64-pc-linux-gnu",
        ]);
        command
            .args(["-r", "k.o", "h.o", "-o", "linked.o"])
            .args(options);
        let output = command.envs(variable).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let objcopy = ["--dump-section", ".hip_fatbin=dumped", "linked.o"];
        run(place.llvm(place.tool("llvm-objcopy")).args(objcopy));
        let said = String::from_utf8(output.stderr).unwrap();
        (fs::read(place.path("dumped")).unwrap(), said)
    };
    let theirs = place.tool("clang-linker-wrapper");
    let version = "COMPRESSED_BUNDLE_FORMAT_VERSION";
    for (variable, options, start) in [
        ((version, "2"), &["--compress"][..], &b"CCOB\x02\x00"[..]),
        ((version, "3"), &["--compress"], b"CCOB\x03\x00"),
        ((version, "x"), &["--compress"], b"CCOB\x03\x00"),
        (("OFFLOAD_BUNDLER_COMPRESS", "1"), &[], b"CCOB\x03\x00"),
        (
            ("OFFLOAD_BUNDLER_COMPRESS", "0"),
            &[],
            b"__CLANG_OFFLOAD_BUNDLE__",
        ),
    ] {
        let (expected, _) = bundle(&theirs, Some(variable), options);
        assert!(expected.starts_with(start), "{variable:?}");
        let (found, said) = bundle(&ours, Some(variable), options);
        assert!(found.starts_with(start), "{variable:?}");
        let is_invalid = said.contains("Invalid value for COMPRESSED_BUNDLE_FORMAT_VERSION: x.");
        assert_eq!(is_invalid, variable.1 == "x", "{said}");
    }
    let level = ("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", "-7");
    let usual = bundle(&ours, None, &["--compress"]).0;
    let by_variable = bundle(&ours, Some(level), &["--compress"]).0;
    let by_option = bundle(&ours, None, &["--compress", "--compression-level=-7"]).0;
    assert!(by_variable == by_option && by_variable != usual);
    // The option wins.
    let both = bundle(&ours, Some(level), &["--compress", "--compression-level=3"]).0;
    assert!(both == usual);
    // Under its own name, `offload-link` has options for this.
    let own = bundle(link, Some(("OFFLOAD_BUNDLER_COMPRESS", "1")), &[]).0;
    assert!(own.starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
}
