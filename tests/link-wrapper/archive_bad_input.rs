//! Archives of bundles that are cut, or lie, or have odd names: linked, and given to `cargo offload archive`.
//!
//! Whatever they are: the message names archive, member and place, no file outside of the output is written, and none
//! is left of an output that is not whole.

use crate::linker_hip_support as support;
use crate::support::bad_archives;
use crate::support::folder::Folder;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bad_archives::{Bad, GFX906, HOST, archive, bad_archives, bundle, tree, with_index};
use offload_formats::container::archive::Archive;
use support::{Place, one_kernel, run};

/// A folder in a folder, so that what is written above it is seen.
struct Bench {
    dir: Folder,
}

impl Bench {
    fn new() -> Self {
        let dir = Folder::new();
        for folder in ["work", "tmp"] {
            fs::create_dir(dir.path(folder)).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path("work").join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path(""))
            .env("TMPDIR", self.dir.path("tmp"))
            .env_remove("OFFLOAD_LINK_ACTIVE")
            .env_remove("OFFLOAD_LINK_REPORT")
            .env_remove("CC");
        command
    }

    fn archives(&self, args: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_cargo-offload"));
        command.args(["offload", "archive"]).args(args);
        command.output().unwrap()
    }

    /// What it says after `error: `, and that it changes nothing.
    #[track_caller]
    fn fails(&self, args: &[&str]) -> String {
        self.refused(args, || self.archives(args), "error: ")
    }

    /// The same for a link, beside an object of the host.
    #[track_caller]
    fn link_fails(&self, args: &[&str]) -> String {
        let tool = env!("CARGO_BIN_EXE_offload-link");
        let mut command = self.command(tool);
        command.args(["main.o", "-o", "x"]).args(args);
        self.refused(
            args,
            || command.output().unwrap(),
            &format!("{tool}: error: "),
        )
    }

    #[track_caller]
    fn refused(&self, args: &[&str], mut run: impl FnMut() -> Output, start: &str) -> String {
        let before = tree(self.dir.root());
        let output = run();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        let after = tree(self.dir.root());
        assert!(before == after, "{args:?}: {:?}", after.keys());
        let text = said.strip_prefix(start);
        text.unwrap_or_else(|| panic!("{args:?}: {said}"))
            .to_owned()
    }
}

fn host_object(bench: &Bench) {
    bench.write("main.c", "int main(void) { return 0; }");
    run(bench.command("cc").args(["-c", "main.c"]));
}

/// That a message names the archive, the member and the problem.
#[track_caller]
fn says(bad: &Bad, said: &str, of_member: impl Fn(&str) -> String) {
    let place = match bad.member {
        Some(member) => of_member(member),
        None => "bad.a".to_owned(),
    };
    let expected = format!("{place}: {}", bad.problem);
    assert!(said.contains(&expected), "{}: {expected}\n{said}", bad.name);
}

#[test]
fn names_archive_member_and_place_of_what_is_damaged() {
    let bench = Bench::new();
    host_object(&bench);
    bench.write("whole.bc", bundle(&[(HOST, b""), (GFX906, b"image")]));
    for bad in bad_archives() {
        bench.write("bad.a", &bad.bytes);
        for args in [&["list"][..], &["check"], &["split", "--out=parts"]] {
            let said = bench.fails(&[args, &["bad.a"]].concat());
            says(&bad, &said, |member| format!("bad.a: member `{member}`"));
        }
        let part = format!("{GFX906}=bad.a");
        let said = bench.fails(&["merge", "--out=merged.a", &part]);
        match bad.member {
            None => says(&bad, &said, str::to_owned),
            Some(_) => assert!(
                said.starts_with(
                    "bad.a: member `a.bc`: expected an object or bitcode, found a bundle\nhint: "
                ),
                "{said}"
            ),
        }
        let said = bench.link_fails(&["whole.bc", "bad.a"]);
        says(&bad, &said, |member| format!("bad.a({member})"));
        let said = bench.link_fails(&["whole.bc", "-Wl,--whole-archive,bad.a,--no-whole-archive"]);
        says(&bad, &said, |member| format!("bad.a({member})"));
    }
}

/// The names of the members, as LLVM's reader and ours agree on them (`tests/formats-container/archives.rs`).
fn names(path: &Path) -> Vec<String> {
    let bytes = fs::read(path).unwrap();
    let archive = Archive::parse(bytes.as_slice(), 0..bytes.len() as u64).unwrap();
    let names = archive.members.iter().map(|member| member.name.to_vec());
    names.map(|name| String::from_utf8(name).unwrap()).collect()
}

const ODD: [&str; 5] = ["../x.bc", "a.bc", "a.bc", "/tmp/../y.bc", "..bc"];

#[test]
fn writes_nothing_outside_whatever_members_are_called() {
    let bench = Bench::new();
    let good = bundle(&[(HOST, b""), (GFX906, b"image")]);
    bench.write("odd.a", archive(&ODD.map(|name| (name, &good[..]))));
    bench.write(
        "parts.a",
        archive(&[("../x.bc", b"one"), ("/tmp/../y.bc", b"two")]),
    );
    host_object(&bench);
    let object = fs::read(bench.path("main.o")).unwrap();
    bench.write("host.a", archive(&[("../z.o", &object)]));
    let outputs: [(&[&str], &str, &[&str]); 3] = [
        (
            &["split", "--out=new", "odd.a"],
            "new/libbc-odd-amdgcn-gfx906.a",
            &[
                "x-hip-amdgcn-amd-amdhsa--gfx906x.bc",
                "a-hip-amdgcn-amd-amdhsa--gfx906a.bc",
                "a-hip-amdgcn-amd-amdhsa--gfx906a.bc",
                "y-hip-amdgcn-amd-amdhsa--gfx906y.bc",
                ".-hip-amdgcn-amd-amdhsa--gfx906..bc",
            ],
        ),
        (
            &[
                "merge",
                "--out=new.a",
                "hip-amdgcn-amd-amdhsa--gfx906=parts.a",
            ],
            "new.a",
            &["x.bc", "y.bc"],
        ),
        (
            &["merge", "--out=new.o.a", "--host=host.a"],
            "new.o.a",
            &["z.o"],
        ),
    ];
    for (args, output, expected) in outputs {
        let before = tree(bench.dir.root());
        let done = bench.archives(args);
        assert!(done.status.success(), "{done:?}");
        assert_eq!(names(&bench.path(output)), expected);
        let mut after = tree(bench.dir.root());
        let new = bench.path(output).display().to_string();
        assert!(after.remove(&new).is_some(), "{new}");
        assert!(before == after, "{args:?}: {:?}", after.keys());
    }
    // For `list` and `check` they are names like others.
    let listed = String::from_utf8(bench.archives(&["list", "odd.a"]).stdout).unwrap();
    assert_eq!(listed.lines().count(), 2 + 2 * ODD.len(), "{listed}");
    assert!(bench.archives(&["check", "odd.a"]).status.success());
    // Where members belong together by their names, equal ones are an error.
    bench.write(
        "equal.a",
        archive(&[("a.o", b"one"), ("b.o", b"two"), ("a.o", b"three")]),
    );
    let part = format!("{GFX906}=equal.a");
    assert_eq!(
        bench.fails(&["merge", "--out=merged.a", &part]),
        format!("equal.a: member `a.o`: a second image of `a` for {GFX906}\n")
    );
    assert_eq!(
        bench.fails(&["merge", "--out=merged.a", "--host=equal.a"]),
        "equal.a: member `a.o`: a second host object for `a`\n"
    );
}

#[test]
fn says_which_entries_are_no_good_together_or_none() {
    let bench = Bench::new();
    host_object(&bench);
    let [plain, sign] =
        ["gfx90a", "gfx90a:xnack+"].map(|id| format!("hip-amdgcn-amd-amdhsa--{id}"));
    let put = |name: &str, entries: &[(&str, &[u8])]| {
        bench.write(name, archive(&[("a.bc", &bundle(entries))]));
    };
    put(
        "conflict.a",
        &[(HOST, b""), (&plain, b"one"), (&sign, b"two")],
    );
    // LLVM's words (`docs/spec/bundler.md` §5.4).
    let conflict = format!("conflicting TargetIDs [{plain}, {sign}] found in a.bc of conflict.a\n");
    assert_eq!(bench.fails(&["check", "conflict.a"]), conflict);
    assert_eq!(
        bench.fails(&["split", "--out=parts", "conflict.a"]),
        conflict
    );
    bench.write("whole.bc", bundle(&[(HOST, b""), (&sign, b"image")]));
    assert_eq!(
        bench.link_fails(&["whole.bc", "conflict.a"]),
        "conflict.a(a.bc): its entries for `gfx90a` and `gfx90a:xnack+` exclude each other, \
         and the link for amdgcn-amd-amdhsa gfx90a:xnack+ takes both [OFF809]\n"
    );
    bench.write("plain.a", archive(&[("a.bc", b"one")]));
    bench.write("sign.a", archive(&[("a.bc", b"two")]));
    let [first, second] = [format!("{plain}=plain.a"), format!("{sign}=sign.a")];
    assert_eq!(
        bench.fails(&["merge", "--out=merged.a", &first, &second]),
        format!(
            "sign.a: member `a.bc`: {plain} and {sign} cannot be in one bundle, that of `a`: \
             they do not set the same features\n"
        )
    );
    // In different members they may be: each target has what serves it.
    let [plains, signs] = [&plain, &sign].map(|id| bundle(&[(HOST, b""), (id, b"image")]));
    bench.write("apart.a", archive(&[("a.bc", &plains), ("b.bc", &signs)]));
    assert!(
        bench
            .archives(&["split", "--out=parts", "apart.a"])
            .status
            .success()
    );
    assert_eq!(
        names(&bench.path("parts/libbc-apart-amdgcn-gfx90a.a")).len(),
        1
    );
    assert_eq!(
        names(&bench.path("parts/libbc-apart-amdgcn-gfx90a-xnack+.a")).len(),
        2
    );

    put(
        "twice.a",
        &[(HOST, b""), (GFX906, b"one"), (GFX906, b"two")],
    );
    assert_eq!(
        bench.fails(&["check", "twice.a"]),
        format!("twice.a: member `a.bc`: entry `{GFX906}`: duplicate in the bundle\n")
    );
    put(
        "none.a",
        &[(HOST, b""), ("nonsense", b"one"), (GFX906, b"two")],
    );
    let said = bench.fails(&["check", "none.a"]);
    assert!(
        said.starts_with("none.a: member `a.bc`: entry `nonsense`: "),
        "{said}"
    );
    let said = bench.fails(&["split", "--out=parts", "none.a"]);
    assert!(
        said.ends_with("hint: the entry ID is `nonsense`, in member `a.bc` of none.a\n"),
        "{said}"
    );
    let other = "newer-amdgcn-amd-amdhsa--gfx906";
    put("other.a", &[(HOST, b""), (other, b"one"), (GFX906, b"two")]);
    let done = bench.archives(&["split", "--out=parts", "other.a"]);
    let said = String::from_utf8(done.stderr).unwrap();
    let expected = format!("warning: other.a: member `a.bc`: entry `{other}` has an unknown kind");
    assert!(done.status.success() && said.contains(&expected), "{said}");
    // No target leads to another folder, or to the file of another one.
    put(
        "out.a",
        &[
            (HOST, b""),
            ("hip-amdgcn-amd-amdhsa--/../../out", b"one"),
            (GFX906, b"two"),
        ],
    );
    let said = bench.fails(&["check", "out.a"]);
    assert!(
        said.starts_with("out.a: member `a.bc`: entry `hip-amdgcn-amd-amdhsa--/../../out`: '/' "),
        "{said}"
    );
    put(
        "same.a",
        &[
            (HOST, b""),
            (&sign, b"one"),
            ("hip-amdgcn-amd-amdhsa--gfx90a-xnack+", b"two"),
        ],
    );
    assert_eq!(
        bench.fails(&["split", "--out=parts", "same.a"]),
        "same.a: two targets have the same file name, parts/libbc-same-amdgcn-gfx90a-xnack+.a\n"
    );
    bench.write("text.a", archive(&[("a.s", TEXT.as_bytes())]));
    assert_eq!(
        bench.fails(&["split", "--out=parts", "text.a"]),
        "text.a: member `a.s`: entry `hip-amdgcn-amd-amdhsa--gfx906` is text, which no linker finds in an archive\n\
         hint: compile it with -c and without -S\n"
    );
}

/// As `clang-offload-bundler -type=s` writes it.
const TEXT: &str = "\n# __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx906\ns_nop 0\n\n\
                    # __CLANG_OFFLOAD_BUNDLE____END__ hip-amdgcn-amd-amdhsa--gfx906\n";

/// What an archive's index can say that is not so: no member starts there; another one defines it; there is less of it.
fn lies(bytes: &[u8]) -> [(Vec<u8>, &'static str); 3] {
    let index = with_index(bytes, &[("foo", 0)]).len() - bytes.len();
    let first = 8 + index as u32;
    let mut cut = with_index(bytes, &[("foo", first)]);
    cut[8 + 60 + 3] = 200;
    [
        (
            with_index(bytes, &[("foo", 9998)]),
            "`foo` has offset 0x270e, where no member starts\n",
        ),
        (
            with_index(bytes, &[("foo", first)]),
            "`foo` is not in member `a.bc` at offset 0x",
        ),
        (cut, ""),
    ]
}

#[test]
fn needs_no_index_and_says_when_it_lies() {
    let bench = Bench::new();
    let good = bundle(&[(HOST, b""), (GFX906, b"image")]);
    let good = archive(&[("a.bc", &good), ("b.bc", &good)]);
    bench.write("libk.a", &good);
    assert!(bench.archives(&["check", "libk.a"]).status.success());
    let output = bench.path("libbc-k-amdgcn-gfx906.a");
    let done = |args: &[&str]| {
        let done = bench.archives(args);
        assert!(done.status.success(), "{done:?}");
        done.stdout
    };
    let mut seen = Vec::new();
    let variants = [(good.clone(), "")].into_iter().chain(lies(&good));
    for (index, (bytes, said)) in variants.enumerate() {
        bench.write("libk.a", &bytes);
        let listed = done(&["list", "libk.a"]);
        done(&["split", "libk.a"]);
        seen.push((listed, fs::read(&output).unwrap()));
        assert!(seen[index] == seen[0], "{said}");
        if index > 0 {
            let expected = format!("libk.a: symbol index: {said}");
            let said = bench.fails(&["check", "libk.a"]);
            assert!(said.starts_with(&expected), "{expected}{said}");
        }
    }

    // Of real objects: right when `ar` makes it, wrong when a name is another.
    bench.write("f.c", "int first; int function(void) { return first; }");
    run(bench.command("cc").args(["-fcommon", "-c", "f.c"]));
    run(bench.command("ar").args(["rcD", "f.a", "f.o"]));
    assert!(bench.archives(&["check", "f.a"]).status.success());
    let bytes = fs::read(bench.path("f.a")).unwrap();
    let place = bytes.windows(9).position(|at| at == b"function\0").unwrap();
    let mut other = bytes.clone();
    other[place] = b'F';
    bench.write("f.a", &other);
    let said = bench.fails(&["check", "f.a"]);
    assert!(
        said.starts_with("f.a: symbol index: `Function` is not in member `f.o` at offset 0x"),
        "{said}"
    );
}

/// A kernel of the newer driver and `helper-<processor>.bc`, which it needs.
fn helped(processors: [&str; 2]) -> Option<Place> {
    let place = Place::new("llvm22")?;
    place.kernel("one", "--offload-new-driver");
    for processor in processors {
        let arch = format!("--offload-arch={processor}");
        let args = [
            "--offload-device-only",
            "-emit-llvm",
            "-c",
            "--no-offload-arch=gfx906,gfx90a",
            &arch,
        ];
        place.helper("helper", &args);
        let to = place.path(format!("helper-{processor}.bc"));
        fs::rename(place.path("helper.o"), to).unwrap();
    }
    Some(place)
}

#[test]
fn links_archives_whose_names_and_index_are_odd() {
    let Some(place) = helped(["gfx906", "gfx90a"]) else {
        return;
    };
    let read = |name: &str| fs::read(place.path(name)).unwrap();
    let (gfx906, gfx90a) = (read("helper-gfx906.bc"), read("helper-gfx90a.bc"));
    let other = "hip-amdgcn-amd-amdhsa--gfx90a";
    let [first, second] = [(GFX906, &gfx906), (other, &gfx90a)]
        .map(|(id, image)| bundle(&[(HOST, b""), (id, image)]));
    let odd = archive(&[("../a.bc", &first), ("../a.bc", &second)]);
    let plain = archive(&[("a.bc", &first), ("a.bc", &second)]);
    let mut variants = vec![odd, plain.clone()];
    variants.extend(lies(&plain).map(|(bytes, _)| bytes));
    for bytes in variants {
        fs::write(place.path("libhelper.a"), bytes).unwrap();
        let _ = fs::remove_file(place.path("x"));
        let before = tree(place.root());
        assert_eq!(
            place.registered(&["one.o", "libhelper.a"]),
            one_kernel("one")
        );
        let report = place.report();
        assert_eq!(report.matches("a.bc): ").count(), 2, "{report}");
        // The note names the folder of the runtime's stand-in.
        let mut images = report.lines().filter(|line| !line.starts_with("note: "));
        assert!(
            images.all(|line| line.contains(": linked for ")),
            "{report}"
        );
        let mut after = tree(place.root());
        for new in ["x", "report"] {
            let name = place.path(new).display().to_string();
            assert!(after.remove(&name).is_some());
        }
        let mut before = before;
        before.remove(&place.path("report").display().to_string());
        assert!(before == after, "{:?}", after.keys());
        assert!(!place.root().with_file_name("a.bc").exists());
    }
}

/// Of the code for a family of processors and for one of it, in one bundle.
#[test]
fn links_the_targets_own_image_of_a_bundle() {
    let Some(place) = helped(["gfx906", "gfx9-generic"]) else {
        return;
    };
    place.kernel_with(
        "one",
        &["--offload-new-driver", "--no-offload-arch=gfx90a", "-c"],
    );
    let family = "hip-amdgcn-amd-amdhsa--gfx9-generic";
    let entries = [
        (GFX906, "helper-gfx906.bc"),
        (family, "helper-gfx9-generic.bc"),
    ];
    for (entries, fates) in [
        (
            &entries[..],
            &[
                "linked for amdgcn-amd-amdhsa gfx906",
                "not linked: its bundle has an image for the target itself",
            ][..],
        ),
        (&entries[1..], &["linked for amdgcn-amd-amdhsa gfx906"]),
    ] {
        place.bundle("bc", entries, "helper.bc", &[]);
        place.archive("libhelper.a", &["helper.bc"]);
        assert_eq!(
            place.registered(&["one.o", "libhelper.a"]),
            one_kernel("one")
        );
        let report = place.report();
        let lines = report
            .lines()
            .filter(|line| line.starts_with("libhelper.a(helper.bc): "));
        let found: Vec<&str> = lines
            .filter_map(|line| line.rsplit_once("bytes: "))
            .map(|(_, fate)| fate)
            .collect();
        assert_eq!(found, fates, "{report}");
    }
    // For another target that image is the nearest, and it is linked for that one.
    place.bundle("bc", &entries, "helper.bc", &[]);
    place.archive("libhelper.a", &["helper.bc"]);
    let both = [
        "--offload-new-driver",
        "--no-offload-arch=gfx90a",
        "--offload-arch=gfx90c",
        "-c",
    ];
    place.kernel_with("one", &both);
    assert_eq!(
        place.registered(&["one.o", "libhelper.a"]),
        one_kernel("one")
    );
    let report = place.report();
    for (size, fate) in [
        ("gfx906, ", ": linked for amdgcn-amd-amdhsa gfx906"),
        ("gfx9-generic, ", ": linked for amdgcn-amd-amdhsa gfx90c"),
    ] {
        let mut lines = report.lines().filter(|line| line.contains(size));
        assert!(
            lines.any(|line| line.starts_with("libhelper.a(") && line.ends_with(fate)),
            "{report}"
        );
    }
}

/// An image for any processor joins the targets for which its bundle has no other.
#[test]
fn links_the_general_image_of_a_bundle_for_the_other_targets() {
    let Some(place) = helped(["gfx906", "gfx90a"]) else {
        return;
    };
    let entries = [
        (GFX906, "helper-gfx906.bc"),
        ("hip-amdgcn-amd-amdhsa--generic", "helper-gfx90a.bc"),
    ];
    place.bundle("bc", &entries, "helper.bc", &[]);
    place.archive("libhelper.a", &["helper.bc"]);
    assert_eq!(
        place.registered(&["one.o", "libhelper.a"]),
        one_kernel("one")
    );
    let report = place.report();
    for (processor, fate) in [
        ("gfx906, ", ": linked for amdgcn-amd-amdhsa gfx906"),
        ("generic, ", ": linked for amdgcn-amd-amdhsa gfx90a"),
    ] {
        let mut lines = report.lines().filter(|line| line.contains(processor));
        assert!(
            lines.any(|line| line.starts_with("libhelper.a(") && line.ends_with(fate)),
            "{report}"
        );
    }
}
