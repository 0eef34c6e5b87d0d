//! Images in bundles at link time: HIP objects of clang's older driver, bundle files, archives of
//! both; linked by ours, run with a runtime that records what is registered.

use crate::linker_hip_support as support;

use std::fs;

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
        assert!(
            report.lines().all(|found| found.ends_with(line)),
            "{report}"
        );
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
