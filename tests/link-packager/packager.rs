//! What LLVM's own tests ask of the packager: the numbers of `docs/spec/offload-binary.md` §8 that are about
//! the tool, each with its number in a comment. Then what ours does beyond LLVM's.

use crate::support;

use std::fs;
use std::ops::Deref;
use std::process::Command;

use support::tool_folder::ToolFolder;
use support::{program, run, tool};

/// A folder in which the packager runs.
struct Packager(ToolFolder);

impl Deref for Packager {
    type Target = ToolFolder;

    fn deref(&self) -> &ToolFolder {
        &self.0
    }
}

impl Packager {
    fn new() -> Self {
        Self::named("llvm-offload-binary")
    }

    fn named(name: &str) -> Self {
        Self(ToolFolder::with_tool(
            env!("CARGO_BIN_EXE_offload-packager"),
            name,
        ))
    }

    /// The files whose names start so.
    fn files(&self, start: &str) -> Vec<String> {
        let names = fs::read_dir(self.root()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(start)).collect();
        names.sort();
        names
    }

    /// The five images of LLVM's test, packed into `packed.bin`.
    fn five(&self) {
        let images = [
            ("1.o", "nvptx64-nvidia-cuda", "sm_70", "openmp"),
            ("2.o", "nvptx64-nvidia-cuda", "sm_80", "openmp"),
            ("3.o", "amdgcn-amd-amdhsa", "gfx908", "openmp"),
            ("4.o", "amdgcn-amd-amdhsa", "gfx90a", "openmp"),
            ("5.o", "amdgcn-amd-amdhsa", "gfx90c", "hip"),
        ];
        let mut args = vec!["-o".to_owned(), "packed.bin".to_owned()];
        for (file, triple, arch, kind) in images {
            self.write(file, format!("image of {arch}").as_bytes());
            args.push(format!(
                "--image=file={file},triple={triple},arch={arch},kind={kind}"
            ));
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        self.done(&args);
    }
}

/// 7.
#[test]
fn extracts_what_is_asked_for() {
    let folder = Packager::new();
    folder.five();
    folder.done(&[
        "packed.bin",
        "--image=file=x.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=openmp",
        "--image=file=y.o,triple=amdgcn-amd-amdhsa,arch=gfx90c,kind=hip",
    ]);
    assert_eq!(folder.read("x.o"), folder.read("1.o"));
    assert_eq!(folder.read("y.o"), folder.read("5.o"));
}

/// 8.
#[test]
fn names_files_that_nobody_named() {
    let folder = Packager::new();
    folder.five();
    folder.done(&["packed.bin", "--image=kind=openmp"]);
    assert_eq!(
        folder.files("packed-"),
        [
            "packed-amdgcn-amd-amdhsa-gfx908.2.o",
            "packed-amdgcn-amd-amdhsa-gfx90a.3.o",
            "packed-nvptx64-nvidia-cuda-sm_70.0.o",
            "packed-nvptx64-nvidia-cuda-sm_80.1.o",
        ]
    );
    assert_eq!(
        folder.read("packed-amdgcn-amd-amdhsa-gfx908.2.o"),
        folder.read("3.o")
    );
}

/// 9: through an object, and through bitcode.
#[test]
fn extracts_from_what_clang_embeds() {
    let folder = Packager::new();
    folder.five();
    for word in ["llvm19", "llvm22"] {
        let Some(clang) = tool(word, &["clang"]) else {
            continue;
        };
        folder.write("host.c", b"int main(void) { return 0; }\n");
        for (output, more) in [("host.o", &[][..]), ("host.bc", &["-emit-llvm"][..])] {
            run(Command::new(&clang)
                .current_dir(folder.root())
                .args([
                    "-c",
                    "-o",
                    output,
                    "host.c",
                    "-Xclang",
                    "-fembed-offload-object=packed.bin",
                ])
                .args(more));
            folder.done(&[
                output,
                "--image=file=x.o,arch=gfx90a",
                "--image=file=y.o,arch=sm_80",
            ]);
            assert_eq!(folder.read("x.o"), folder.read("4.o"), "{word} {output}");
            assert_eq!(folder.read("y.o"), folder.read("2.o"));
        }
    }
}

/// 10, 19; and that members of an archive have names of their own.
#[test]
fn extracts_from_and_to_archives() {
    let folder = Packager::new();
    if program("ar").is_none() {
        return;
    }
    for (file, content) in [("a.o", "one"), ("b.o", "two")] {
        folder.write("in", content.as_bytes());
        folder.done(&[
            "-o",
            file,
            "--image=file=in,triple=amdgcn-amd-amdhsa,arch=gfx908,kind=openmp",
        ]);
    }
    let ar = |args: &[&str]| run(Command::new("ar").current_dir(folder.root()).args(args));
    ar(&["rcsD", "in.a", "a.o", "b.o"]);
    folder.done(&["in.a", "--archive", "--image=file=out.a,arch=gfx908"]);
    assert_eq!(ar(&["t", "out.a"]), "a.o\nb.o\n");
    // 19.
    folder.done(&[
        "in.a",
        "--image=file=x,member=a.o",
        "--image=file=y,member=b.o",
    ]);
    assert_eq!(
        (folder.read("x"), folder.read("y")),
        (b"one".to_vec(), b"two".to_vec())
    );
    let done = folder.done(&["in.a", "--image=file=x,arch=gfx908"]);
    assert_eq!(
        done.err,
        format!(
            "{}: warning: Multiple inputs match to a single file, 'x'\n",
            folder.tool.display()
        )
    );
    assert_eq!(folder.read("x"), b"two");
    folder.five();
    folder.done(&["packed.bin", "--archive", "--image=file=five.a,kind=openmp"]);
    assert_eq!(
        ar(&["t", "five.a"]),
        "packed.bin\npacked.1.bin\npacked.2.bin\npacked.3.bin\n"
    );
    let error = folder.error(&["packed.bin", "--archive", "--image=arch=sm_70"]);
    assert_eq!(error, "Image must have a 'file' argument.");
}

#[test]
fn warns_of_images_that_overwrite_each_other_and_of_missing_symbols() {
    let folder = Packager::new();
    for (name, content) in [
        ("one", &b"first"[..]),
        ("two", b"second"),
        ("bad", b"\x7fELF"),
    ] {
        folder.write(name, content);
    }
    folder.done(&[
        "-o",
        "packed",
        "--image=file=one,triple=t,arch=a",
        "--image=file=two,triple=t,arch=b",
        "--image=file=bad,triple=t,arch=d",
    ]);
    let extract = |first: &str, second: &str| {
        let images = [first, second].map(|image| format!("--image=file={image}"));
        folder.done(&["packed", &images[0], &images[1]]).err
    };
    let clash = "'out' is the output for several images; the last one stays";
    let said = extract("out,arch=a", "out,arch=b");
    assert_eq!(said.matches(clash).count(), 1, "{said}");
    assert_eq!(folder.read("out"), b"second");
    for (first, second) in [
        // One image twice.
        ("out,arch=a", "out,arch=a"),
        ("/dev/null,arch=a", "/dev/null,arch=b"),
        ("-,arch=a", "-,arch=b"),
    ] {
        let said = extract(first, second);
        assert!(!said.contains("several images"), "{first}: {said}");
    }
    let said = folder
        .done(&["packed", "--archive", "--image=file=x.a,arch=d"])
        .err;
    assert!(
        said.contains("warning: member `")
            && said.contains("` is not in the archive's symbol index: "),
        "{said}"
    );
}

/// Members of a thin archive are files beside it; LLVM's names for them are the members'.
#[test]
fn extracts_from_thin_archives() {
    let folder = Packager::new();
    if program("ar").is_none() {
        return;
    }
    fs::create_dir(folder.path("sub")).unwrap();
    folder.write("in", b"content");
    folder.done(&["-o", "sub/m.o", "--image=file=in,triple=t,arch=gfx908"]);
    let here = folder.root();
    run(Command::new("ar")
        .current_dir(here)
        .args(["rcsTD", "sub/thin.a", "sub/m.o"]));
    folder.done(&["sub/thin.a", "--image=file=x,member=m.o"]);
    assert_eq!(folder.read("x"), b"content");
    fs::remove_file(folder.path("sub/m.o")).unwrap();
    let error = folder.error(&["sub/thin.a", "--image=file=y"]);
    assert_eq!(error, "'sub/m.o': No such file or directory");
}

/// 11 to 13.
#[test]
fn packs_what_has_no_extension_and_no_triple() {
    let folder = Packager::new();
    folder.write("in", b"content");
    let keys = "triple=x-y-z,arch=abc";
    folder.done(&["-o", "a.bin", &format!("--image=file=in,{keys}")]);
    let list = folder.done(&["--list", "a.bin"]).out;
    assert!(
        list.lines()
            .nth(1)
            .unwrap()
            .contains("0  none  none  x-y-z   abc"),
        "{list}"
    );
    folder.done(&["a.bin", &format!("--image=file=out,{keys}")]);
    assert_eq!(folder.read("out"), b"content");
    // 12.
    folder.write(
        "args",
        format!("-o b.bin --image=file=in,{keys}").as_bytes(),
    );
    folder.done(&["@args"]);
    assert!(folder.read("a.bin") == folder.read("b.bin"));
    // 13.
    folder.done(&["-o", "c.bin", "--image=file=in"]);
    folder.done(&["c.bin", "--image=file=out2"]);
    assert_eq!(folder.read("out2"), b"content");
}

/// LLVM 19 has no kind of this name: it writes and finds images without a kind.
#[test]
fn finds_images_of_sycl_that_older_releases_packed() {
    let Some(llvm) = tool("llvm19", &["clang-offload-packager"]) else {
        return;
    };
    let folder = Packager::named("clang-offload-packager");
    folder.write("in", b"content");
    let pack = ["-o", "old.bin", "--image=file=in,kind=sycl,triple=t"];
    run(Command::new(llvm).current_dir(folder.root()).args(pack));
    for (release, expected) in [("19", true), ("20", true), ("21", false), ("22", false)] {
        let release = format!("--llvm={release}");
        let extract = |input: &str, output: &str, kind: &str| {
            let image = format!("--image=file={output},kind={kind}");
            folder.done(&[input, &image, &release]);
            let found = folder.path(output).exists();
            let _ = fs::remove_file(folder.path(output));
            found
        };
        assert_eq!(extract("old.bin", "out", "sycl"), expected, "{release}");
        assert!(!extract("old.bin", "out", "hip"), "{release}");
        // Ours keeps the kind for each release, and finds it.
        folder.done(&[&["-o", "new.bin"], &pack[2..], &[&*release]].concat());
        assert!(extract("new.bin", "out", "sycl"), "{release}");
    }
}

/// 14 to 17.
#[test]
fn extracts_everything_as_newer_releases_do() {
    let folder = Packager::new();
    folder.write("in", b"content");
    folder.done(&["-o", "a.bin", "--image=file=in,triple=x-y-z,arch=abc"]);
    let done = folder.done(&["--llvm=23", "a.bin"]);
    assert_eq!(done.out, "Extracted: a-x-y-z-abc.0.\n");
    assert_eq!(folder.read("a-x-y-z-abc.0."), b"content");
    // As 22, with a word about it.
    let done = folder.done(&["a.bin"]);
    assert_eq!(done.out, "");
    assert!(
        done.err
            .contains("note: nothing is extracted: the input has 1 images"),
        "{}",
        done.err
    );
    // 15 to 17: binaries in binaries.
    folder.write("second.o", b"second");
    folder.done(&[
        "-o",
        "inner",
        "--image=file=in,triple=t,arch=a1",
        "--image=file=second.o,triple=t,arch=a2",
    ]);
    folder.done(&[
        "-o",
        "outer",
        "--image=file=inner,triple=n",
        "--image=file=in,triple=t,arch=a3",
    ]);
    let done = folder.done(&["--llvm=23", "outer"]);
    assert_eq!(
        done.out,
        "Extracted: outer-t-a1.0.\nExtracted: outer-t-a2.1.o\nExtracted: outer-t-a3.2.\n"
    );
    assert_eq!(folder.read("outer-t-a2.1.o"), b"second");
    let list = folder.done(&["--list", "outer"]).out;
    let indices: Vec<&str> = list
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(indices, ["0", "0.0", "0.1", "1"], "{list}");
    folder.done(&["--llvm=23", "outer", "--image=file=same,triple=n"]);
    assert!(folder.read("same") == folder.read("inner"));
}

/// 18.
#[test]
fn refuses_damaged_binaries() {
    let folder = Packager::new();
    folder.write("bad", b"\x10\xff\x10\xad\n");
    let error = folder.error(&["bad"]);
    assert_eq!(error, "Invalid data was encountered while parsing the file");
    let hint = folder.run(&["bad"]).err;
    assert!(hint.contains("\nhint: bad: offload binary 0: "), "{hint}");
    folder.done(&["-o", "outer", "--image=file=bad,triple=n"]);
    folder.error(&["--llvm=23", "outer"]);
    assert!(folder.files("outer-").is_empty());
}

/// 20.
#[test]
fn compresses_for_those_who_read_it() {
    let folder = Packager::new();
    folder.write("in.o", b"an image ".repeat(1000));
    let image = "--image=file=in.o,triple=t,arch=a";
    folder.done(&["--llvm=main", "-o", "plain", image]);
    for more in [
        &["--compress"][..],
        &[
            "--compress",
            "--compression-format=zstd",
            "--compression-level=-5",
        ],
        &[
            "--compress",
            "--compression-format=zlib",
            "--compression-level=9",
        ],
    ] {
        folder.done(&[&["--llvm=main", "-o", "small", image][..], more].concat());
        assert!(folder.read("small").len() < folder.read("plain").len() / 2);
        folder.write(
            "both",
            [folder.read("small"), folder.read("plain")].concat(),
        );
        let json = folder.done(&["--list=json", "both"]).out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let unpacked = [0, 1].map(|index| json["images"][index]["unpacked"].clone());
        assert_eq!(unpacked, [true, false]);
        folder.done(&["both", "--image=arch=a"]);
        for file in ["both-t-a.0.o", "both-t-a.1.o"] {
            assert!(folder.read(file) == folder.read("in.o"));
        }
    }
    let error = folder.error(&[
        "--llvm=main",
        "-o",
        "x",
        image,
        "--compress",
        "--compression-format=zlib",
        "--compression-level=12",
    ]);
    assert_eq!(
        error,
        "invalid zlib compression level 12; expected a value in [0, 9]"
    );
    let error = folder.error(&[
        "--llvm=main",
        "-o",
        "x",
        image,
        "--compress",
        "--compression-level=2",
    ]);
    assert_eq!(error, "--compression-level requires --compression-format");
    let error = folder.error(&["-o", "x", image, "--compress"]);
    assert!(error.contains("--llvm=main"), "{error}");
}

#[test]
fn says_what_matches_nothing() {
    let folder = Packager::new();
    folder.five();
    let args = [
        "packed.bin",
        "--image=file=x,arch=sm_35",
        "--image=file=y,arch=sm_70",
    ];
    let done = folder.done(&args);
    assert!(
        done.err.contains(
            "note: `--image=file=x,arch=sm_35` matches none of the 5 images in packed.bin"
        ),
        "{}",
        done.err
    );
    assert!(folder.files("x").is_empty() && folder.files("y") == ["y"]);
    fs::remove_file(folder.path("y")).unwrap();
    folder.error(&[&args[..], &["--require-match"]].concat());
    assert!(folder.files("y").is_empty());
}

#[test]
fn warns_of_the_old_name() {
    for (name, expected) in [
        (
            "clang-offload-packager",
            "warning: 'clang-offload-packager' is deprecated. Use 'llvm-offload-binary' instead.\n",
        ),
        ("clang-offload-packager-22", ""),
        ("offload-packager", ""),
    ] {
        let folder = Packager::named(name);
        folder.write("in", b"content");
        let done = folder.done(&["-o", "out", "--image=file=in,triple=t"]);
        assert_eq!(done.err, expected);
    }
}

#[test]
fn lists_images_for_people_and_for_programs() {
    let folder = Packager::new();
    folder.write("a.o", b"1234");
    folder.write("b.bc", b"BC\xc0\xde....");
    folder.done(&[
        "-o",
        "in.bin",
        "--image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda",
        "--image=file=b.bc,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=hip,feature=+x",
    ]);
    assert_eq!(
        folder.done(&["--list", "in.bin"]).out,
        "index  form     kind  triple               arch    offset  size  where\n    \
         0  object   cuda  nvptx64-nvidia-cuda  sm_70     0x90     4  file\n    \
         1  bitcode  hip   amdgcn-amd-amdhsa    gfx90a   0x148     8  file feature=+x\n"
    );
    let json = folder.done(&["--list=json", "in.bin"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], 1);
    let second = &json["images"][1];
    assert_eq!(
        (&second["offset"], &second["size"]),
        (&0x148.into(), &8.into())
    );
    assert_eq!(second["offload_kind"], "hip");
    assert_eq!(folder.done(&["--list", "a.o"]).out, "no images\n");
}

#[test]
fn prints_and_packs_yaml() {
    let folder = Packager::new();
    folder.five();
    let yaml = folder.done(&["--yaml", "packed.bin"]).out;
    folder.write("packed.yaml", yaml.as_bytes());
    if let Some(theirs) = tool("llvm22", &["obj2yaml"]) {
        let expected = run(Command::new(theirs).arg(folder.path("packed.bin")));
        assert_eq!(yaml, expected);
    }
    folder.done(&["-o", "again.bin", "--from-yaml=packed.yaml"]);
    assert!(folder.read("again.bin") == folder.read("packed.bin"));
    // The mark with which some editors begin files, as yaml2obj reads it.
    let marked = [&b"\xef\xbb\xbf"[..], &folder.read("packed.yaml")].concat();
    folder.write("marked.yaml", marked);
    folder.done(&["-o", "marked.bin", "--from-yaml=marked.yaml"]);
    assert!(folder.read("marked.bin") == folder.read("packed.bin"));
}
