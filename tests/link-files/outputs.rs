//! Outputs of the tools: what a signal, a full disk, links, modes and equal names make of them.

use crate::support;

use std::fs::{self, File, Permissions};
use std::num::NonZeroU64;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use offload_formats::format::bundle::{self, BundleImage};
use offload_formats::format::compressed_bundle::{Compression, compress};
use offload_formats::format::offload_binary::BinaryImage;
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};
use support::tool_folder::ToolFolder;

const BUNDLER: &str = env!("CARGO_BIN_EXE_offload-bundler");
const PACKAGER: &str = env!("CARGO_BIN_EXE_offload-packager");
const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const GFX906: &str = "hip-amdgcn-amd-amdhsa--gfx906";
const TARGETS: &str = "-targets=host-x86_64-unknown-linux-gnu-,hip-amdgcn-amd-amdhsa--gfx906";

/// A folder with the bundler, and a bundle `in.bc` of two images.
fn bundler() -> ToolFolder {
    let folder = ToolFolder::with_tool(BUNDLER, "offload-bundler");
    folder.write("host", b"host");
    folder.write("device", b"device");
    folder.done(&[
        "-type=bc",
        TARGETS,
        "-input=host",
        "-input=device",
        "-output=in.bc",
    ]);
    folder
}

fn unbundle<'a>(outputs: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["-type=bc", "-unbundle", TARGETS, "-input=in.bc"];
    args.extend(outputs);
    args
}

/// The names in the folder, without the tool.
fn names(folder: &ToolFolder) -> Vec<String> {
    let names = fs::read_dir(folder.root()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with("offload-")).collect();
    names.sort();
    names
}

/// A file of that many images.
fn many(count: usize) -> Vec<u8> {
    let image = BinaryImage {
        image_kind: ImageKind::OBJECT,
        offload_kind: OffloadKind::OPENMP,
        flags: 0,
        strings: &[("triple", "amdgcn-amd-amdhsa"), ("arch", "gfx90a")],
        image: b"image",
    };
    let mut bytes = image.to_bytes(LlvmRelease::default()).unwrap();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.repeat(count)
}

/// A bundle with that image.
fn plain(image: &[u8]) -> Vec<u8> {
    let images = [BundleImage { id: GFX906, image }];
    bundle::to_bytes(&images, NonZeroU64::MIN).unwrap()
}

/// A compressed bundle with that image.
fn packed(image: &[u8]) -> Vec<u8> {
    compress(&plain(image), Compression::default()).unwrap()
}

/// An archive of that many equal members.
fn archive(member: &[u8], count: usize) -> Vec<u8> {
    let header = format!("{:<48}{:<10}`\n", "m.bc/", member.len());
    let mut one = [header.as_bytes(), member].concat();
    one.resize(one.len().next_multiple_of(2), b'\n');
    [b"!<arch>\n".to_vec(), one.repeat(count)].concat()
}

#[test]
fn leaves_no_temporary_file_when_a_signal_ends_it() {
    let bundler = bundler();
    // Takes minutes to compress.
    let large = File::create(bundler.path("large")).unwrap();
    large.set_len(16 << 30).unwrap();
    let packager = ToolFolder::with_tool(PACKAGER, "offload-packager");
    packager.write("many", many(20_000));
    let compress = [
        "-type=bc",
        TARGETS,
        "-input=large",
        "-input=large",
        "-output=out",
        "-compress",
        "-compression-level=22",
        "-threads=1",
    ];
    let wrapper = ToolFolder::with_tool(env!("CARGO_BIN_EXE_offload-link"), "llvm-offload-wrapper");
    wrapper.write("image", [1; 100_000]);
    // What it writes is small.
    let slow = wrapper.path("offload-slow.so");
    let mut cc = Command::new("cc");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/support/slow_write.c");
    support::run(cc.args(["-shared", "-fPIC", "-o"]).arg(&slow).arg(source));
    let host = "--triple=x86_64-pc-linux-gnu";
    let archives = ToolFolder::with_tool(env!("CARGO_BIN_EXE_cargo-offload"), "offload-cargo");
    archives.write("hda.a", archive(&packed(&[1; 1000]), 2));
    let split = ["offload", "archive", "split", "--out", ".", "hda.a"];
    // It has a folder for temporary files, too.
    let linker = ToolFolder::with_tool(env!("CARGO_BIN_EXE_offload-link"), "offload-link");
    linker.write("image.c", "int x;");
    let compile = ["-c", "image.c", "-o", "image.o"];
    support::run(linker.command("cc").args(compile));
    let fatbin = [
        "--override-image=openmp=image.o",
        "--emit-fatbin-only",
        "--linker-path=/bin/false",
        "-o",
        "out.bin",
    ];
    let signals = [
        ("-HUP", 1),
        ("-INT", 2),
        ("-QUIT", 3),
        ("-TERM", 15),
        ("-XCPU", 24),
    ];
    let runs = [
        (&bundler, &compress[..]),
        (&packager, &["many", "--llvm=23"][..]),
        (&wrapper, &["--kind=openmp", host, "-o", "out.o", "image"]),
        (&archives, &split),
        (&linker, &fatbin),
    ];
    for (index, (folder, args)) in runs.into_iter().enumerate() {
        // All signals are watched in the same way: one tool gets each, the others one.
        let count = if index == 0 { 1 } else { signals.len() };
        for (name, number) in support::share(signals, index, count) {
            let before = names(folder);
            let mut tool = Command::new("env");
            if [&wrapper.tool, &archives.tool, &linker.tool].contains(&&folder.tool) {
                tool.env("LD_PRELOAD", &slow);
            }
            let tool = tool.arg(support::DEFAULT_SIGNALS).arg(&folder.tool);
            let tool = tool.args(args).current_dir(folder.root());
            let tool = tool.env_remove("OFFLOAD_LLVM");
            let mut tool = tool.stderr(Stdio::null()).spawn().unwrap();
            let since = Instant::now();
            while names(folder) == before {
                assert!(tool.try_wait().unwrap().is_none(), "it ended");
                assert!(since.elapsed() < Duration::from_secs(20), "no output");
            }
            let mut kill = Command::new("kill");
            let kill = kill.args([name, &tool.id().to_string()]).status();
            assert!(kill.unwrap().success());
            let status = tool.wait().unwrap();
            assert_eq!(status.signal(), Some(number), "{name}: {status}");
            assert_eq!(names(folder), before, "{name}");
        }
    }
}

/// A shell that limits the tool, in its folder.
fn limited(folder: &ToolFolder, limit: &str, args: &[&str]) -> (Option<i32>, String) {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limit}; exec \"$@\""), "sh"]);
    shell.arg(&folder.tool).args(args);
    let shell = shell.current_dir(folder.root()).stdin(Stdio::null());
    let shell = shell.env_remove("OFFLOAD_LLVM");
    let done = shell.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said)
}

#[test]
fn extracts_more_images_than_it_may_have_files_open() {
    let folder = ToolFolder::with_tool(PACKAGER, "offload-packager");
    folder.write("many", many(2_000));
    let (status, said) = limited(&folder, "ulimit -n 200", &["many", "--llvm=23"]);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(names(&folder).len(), 2_001);
    assert_eq!(
        folder.read("many-amdgcn-amd-amdhsa-gfx90a.1999.o"),
        b"image"
    );
    // As many inputs, under a limit that a process may raise.
    let image = "--image=file=many,triple=amdgcn-amd-amdhsa,arch=gfx";
    let images: Vec<String> = (0..300).map(|index| format!("{image}{index}")).collect();
    let mut args = vec!["-o", "packed"];
    args.extend(images.iter().map(String::as_str));
    let (status, said) = limited(&folder, "ulimit -S -n 200", &args);
    assert_eq!(status, Some(0), "{said}");
    // The same out of a compressed bundle, in several passes.
    let folder = ToolFolder::with_tool(BUNDLER, "offload-bundler");
    let ids: Vec<String> = (0..600).map(|index| format!("{GFX906}.{index}")).collect();
    let images: Vec<BundleImage<'_>> = ids
        .iter()
        .map(|id| BundleImage {
            id,
            image: id.as_bytes(),
        })
        .collect();
    let bytes = bundle::to_bytes(&images, NonZeroU64::MIN).unwrap();
    folder.write("in", compress(&bytes, Compression::default()).unwrap());
    let args = ["-type=bc", "--extract-all=all", "-input=in"];
    let (status, said) = limited(&folder, "ulimit -n 200", &args);
    assert_eq!(status, Some(0), "{said}");
    for id in &ids {
        let name = format!("all/in.0.{id}");
        assert_eq!(folder.read(&name), id.as_bytes());
    }
}

/// A write past the limit on file sizes fails as one on a full disk does.
#[test]
fn blames_the_output_when_it_cannot_be_written() {
    let folder = bundler();
    folder.write("host", [1; 100_000]);
    folder.write("device", [2; 100_000]);
    // So that nothing is small when it is compressed.
    let mut random = support::Random::new();
    let noise: Vec<u8> = (0..100_000).map(|_| random.below(256) as u8).collect();
    folder.write("noise", &noise);
    let make = ["-type=bc", TARGETS, "-input=noise", "-input=noise"];
    let plain = [&make[..], &["-output=plain"]].concat();
    let packed = [&make[..], &["-output=packed", "-compress"]].concat();
    folder.done(&plain);
    folder.done(&packed);
    let from = |input| ["-type=bc", "-unbundle", TARGETS, input];
    let outputs = ["-output=out", "-output=out2"];
    let full = "ulimit -f 16";
    for args in [
        [&make[..], &["-output=out"]].concat(),
        [&make[..], &["-output=out", "-compress"]].concat(),
        [&from("-input=plain")[..], &outputs].concat(),
        [&from("-input=packed")[..], &outputs].concat(),
    ] {
        let (status, said) = limited(&folder, full, &args);
        assert_eq!(status, Some(1), "{args:?}: {said}");
        assert!(said.contains("File too large"), "{args:?}: {said}");
        let names_output = said.contains("out'") || said.contains("out: ");
        assert!(names_output, "{args:?}: {said}");
        assert!(!said.contains("noise") && !said.contains("pla"), "{said}");
        assert!(!said.contains("packed"), "{args:?}: {said}");
        let all = ["device", "host", "in.bc", "noise", "packed", "plain"];
        assert_eq!(names(&folder), all, "{args:?}");
    }
}

/// A file in the folder for temporary files can be as large as the limit and no larger.
#[test]
fn blames_the_folder_for_temporary_files_when_it_is_full() {
    let bundler = bundler();
    let archives = ToolFolder::with_tool(env!("CARGO_BIN_EXE_cargo-offload"), "offload-cargo");
    for folder in [&bundler, &archives] {
        let image = vec![1; 1 << 20];
        folder.write("packed.bc", packed(&image));
        folder.write("hda.a", archive(&packed(&image), 2));
    }
    let targets = format!("-targets={GFX906}");
    let unbundle = [
        "-unbundle",
        "-type=a",
        "-input=hda.a",
        "-output=o",
        &targets,
    ];
    let split = ["offload", "archive", "split", "--out", ".", "hda.a"];
    for (folder, args) in [(&bundler, &unbundle[..]), (&archives, &split)] {
        let (status, said) = limited(folder, "ulimit -f 16", args);
        assert_eq!(status, Some(1), "{args:?}: {said}");
        assert!(said.contains("file too large"), "{args:?}: {said}");
        assert!(said.contains("set TMPDIR to a folder"), "{args:?}: {said}");
        for word in ["damaged", "invalid", "Invalid", "corrupt"] {
            assert!(!said.contains(word), "{args:?}: {said}");
        }
        assert!(!folder.exists("o"));
    }
}

/// What cannot be unpacked on this machine says nothing about the file.
#[test]
fn calls_no_file_damaged_that_it_could_not_unpack() {
    let folder = ToolFolder::with_tool(env!("CARGO_BIN_EXE_cargo-offload"), "offload-cargo");
    let image = vec![1; 1 << 20];
    folder.write("packed.bc", packed(&image));
    folder.write("plain.bc", plain(&image));
    for limit in ["ulimit -f 16", "TMPDIR=/nonexistent; export TMPDIR"] {
        for command in [
            &["inspect"][..],
            &["verify"],
            &["extract", "--out=made"],
            &["size", "--kernels"],
            &["inspect", "--kernels"],
        ] {
            let args = [&["offload"], command, &["packed.bc"]].concat();
            let (status, said) = limited(&folder, limit, &args);
            assert_eq!(status, Some(1), "{limit}: {args:?}: {said}");
            let start = "error: packed.bc: cannot write a temporary file in /";
            assert!(said.starts_with(start), "{limit}: {args:?}: {said}");
            let hint = "\nhint: set TMPDIR to a folder with enough space\n";
            assert!(said.ends_with(hint), "{limit}: {args:?}: {said}");
            assert_eq!(said.lines().count(), 2, "{limit}: {args:?}: {said}");
        }
        assert!(!folder.exists("made"));
    }
    let limit = "exec < plain.bc; ulimit -f 16";
    let (status, said) = limited(&folder, limit, &["offload", "inspect", "-"]);
    assert_eq!(status, Some(1), "{said}");
    let expected = "error: -: cannot copy it to a temporary file: File too large (os error 27)\n\
        hint: set TMPDIR to a folder with enough space\n";
    assert_eq!(said, expected);
    // The new file is small; what it contains is not.
    let args = ["offload", "compress", "plain.bc", "-o", "small.bc"];
    let (status, said) = limited(&folder, "ulimit -f 16", &args);
    assert_eq!(status, Some(1), "{said}");
    let expected = format!(
        "error: small.bc: the new file was not written, because it could not be read again: cannot write a temporary file in {}: \
         File too large (os error 27)\nhint: set TMPDIR to a folder with enough space\n",
        std::env::temp_dir().display()
    );
    assert_eq!(said, expected);
    assert!(!folder.exists("small.bc"));
}

#[test]
fn keeps_no_bit_that_gives_a_program_other_rights() {
    let folder = bundler();
    for (mode, expected) in [(0o6755, 0o755), (0o1600, 0o600), (0o444, 0o444)] {
        folder.write("out", b"before");
        fs::set_permissions(folder.path("out"), Permissions::from_mode(mode)).unwrap();
        let before = fs::metadata(folder.path("out")).unwrap().mode();
        assert_eq!(before & 0o7777, mode);
        let done = folder.run(&unbundle(&["-output=out", "-output=other"]));
        // Only root may write what is read-only.
        if done.status == Some(0) {
            let after = fs::metadata(folder.path("out")).unwrap().mode();
            assert_eq!(after & 0o7777, expected);
            assert_eq!(folder.read("out"), b"host");
        } else {
            assert_eq!(mode, 0o444, "{}", done.err);
        }
        let _ = fs::remove_file(folder.path("out"));
    }
}

#[test]
fn refuses_two_names_of_one_file_for_two_images() {
    let folder = bundler();
    folder.write("old", b"before");
    fs::hard_link(folder.path("old"), folder.path("hard")).unwrap();
    fs::create_dir(folder.path("dir")).unwrap();
    symlink("dir", folder.path("link")).unwrap();
    symlink("new", folder.path("dangling")).unwrap();
    for (one, two) in [
        ("same", "./same"),
        ("dir/same", "link/same"),
        ("new", "dangling"),
        ("old", "dir/../old"),
        ("old", "hard"),
    ] {
        let [first, second] = [one, two].map(|name| format!("-output={name}"));
        let before = names(&folder);
        let said = folder.error(&unbundle(&[&first, &second]));
        assert_eq!(
            said,
            format!("the outputs '{one}' and '{two}' are the same file")
        );
        assert_eq!(names(&folder), before);
        assert_eq!(folder.read("old"), b"before");
    }
    // Nothing is lost: the same image twice, and files that keep nothing.
    folder.done(&unbundle(&[
        "-output=/dev/null",
        "-output=/dev/../dev/null",
    ]));
    let target = format!("-targets={HOST}");
    folder.done(&[
        "-type=bc",
        "-unbundle",
        &target,
        "-input=in.bc",
        "-output=same",
    ]);
    assert_eq!(folder.read("same"), b"host");
}

#[test]
fn follows_links_to_files_that_do_not_exist() {
    let folder = bundler();
    fs::create_dir(folder.path("dir")).unwrap();
    symlink("dir/second", folder.path("first")).unwrap();
    symlink("third", folder.path("dir/second")).unwrap();
    folder.done(&unbundle(&["-output=first", "-output=other"]));
    assert_eq!(folder.read("dir/third"), b"host");
    for link in ["first", "dir/second"] {
        let found = fs::symlink_metadata(folder.path(link)).unwrap();
        assert!(found.is_symlink(), "{link}");
    }
    symlink("loop", folder.path("loop")).unwrap();
    let said = folder.error(&unbundle(&["-output=loop", "-output=other"]));
    assert_eq!(said, "'loop': Too many levels of symbolic links");
    let said = folder.error(&unbundle(&["-output=none/", "-output=other"]));
    assert_eq!(said, "'none/': Is a directory");
}

#[test]
fn refuses_a_document_that_is_too_large_to_be_read() {
    let folder = ToolFolder::with_tool(PACKAGER, "offload-packager");
    let document = File::create(folder.path("large.yaml")).unwrap();
    document.set_len(1 << 40).unwrap();
    let args = ["--from-yaml=large.yaml", "-o", "out"];
    let (status, said) = limited(&folder, "ulimit -v 500000", &args);
    assert_eq!(status, Some(1), "{said}");
    let expected = "large.yaml: expected at most 1073741824 bytes";
    assert!(said.trim_end().ends_with(expected), "{said}");
}
