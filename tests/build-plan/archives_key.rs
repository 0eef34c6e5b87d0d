//! The manifest key `archives` and libraries that are cut, or lie, or have odd names: the build script as Cargo runs it.

use crate::support;
use crate::support::bad_archives;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use bad_archives::{GFX906, HOST, archive, bad_archives, bundle, tree, with_index};
use support::package::{Package, text};
use support::{run, tool};

const KEYS: &str = "sources = [\"kernels/*.c\"]\narchives = [\"lib/bad.a\"]\n";

fn package(targets: &str) -> Option<Package> {
    let package = Package::new(&format!("{KEYS}targets = [{targets}]\n"))?;
    fs::create_dir(package.at("lib")).unwrap();
    Some(package)
}

/// What is outside of the build folder, but for what the counting clang notes.
fn outside(package: &Package) -> BTreeMap<String, Vec<u8>> {
    let mut files = tree(package.folder.root());
    let built = package.at("target").display().to_string();
    let counted = package.at("starts").display().to_string();
    files.retain(|name, _| !name.starts_with(&built) && *name != counted);
    files
}

/// What is said of a library; nothing is made.
#[track_caller]
fn fails(package: &Package, bytes: &[u8]) -> String {
    fs::write(package.at("lib/bad.a"), bytes).unwrap();
    let before = outside(package);
    let said = package.fails(&mut package.script());
    assert!(before == outside(package));
    // What is known of the compiler, and no more.
    let made = package.files();
    assert!(
        made.iter().all(|name| name.contains("/offload/answers/")),
        "{made:?}"
    );
    said
}

#[test]
fn names_library_member_and_place_of_what_is_damaged() {
    let Some(package) = package("\"gfx906\"") else {
        return;
    };
    for bad in bad_archives() {
        let said = fails(&package, &bad.bytes);
        let member = bad
            .member
            .map_or(String::new(), |member| format!("member `{member}`: "));
        let expected = format!("lib/bad.a: {member}{}", bad.problem);
        assert!(
            said.starts_with(&expected),
            "{}: {expected}\n{said}",
            bad.name
        );
    }
}

#[test]
fn says_which_entries_are_no_good_together_or_none() {
    let Some(package) = package("\"gfx90a:xnack+\"") else {
        return;
    };
    let [plain, sign] =
        ["gfx90a", "gfx90a:xnack+"].map(|id| format!("hip-amdgcn-amd-amdhsa--{id}"));
    let of = |entries: &[(&str, &[u8])]| archive(&[("a.bc", &bundle(entries))]);
    assert_eq!(
        fails(
            &package,
            &of(&[(HOST, b""), (&plain, b"one"), (&sign, b"two")])
        ),
        "lib/bad.a: member `a.bc`: its entries for amdgcn-amd-amdhsa gfx90a and amdgcn-amd-amdhsa gfx90a:xnack+ \
         conflict: a link for `gfx90a:xnack+` would use both"
    );
    for id in [
        "nonsense",
        "newer-amdgcn-amd-amdhsa--gfx906",
        "hip-amdgcn-amd-amdhsa--/../../out",
    ] {
        let said = fails(&package, &of(&[(HOST, b""), (id, b"one"), (&sign, b"two")]));
        let expected = format!("lib/bad.a: member `a.bc`: entry `{id}`: ");
        assert!(said.starts_with(&expected), "{expected}\n{said}");
    }
    let said = fails(&package, b"!<thin>\n");
    let expected =
        "lib/bad.a: expected an archive that contains its members, found a thin archive\n";
    assert!(said.starts_with(expected), "{said}");
}

/// Members called so, with an index that lies, are linked as others are; the target's own image of a bundle is. A name may be as long as
/// that of a file.
#[test]
fn links_archives_whose_names_and_index_are_odd() {
    let (Some(package), Some(clang)) = (package("\"gfx906\""), tool("llvm19", &["clang"])) else {
        return;
    };
    package.put(
        "kernels/k.c",
        "#pragma omp declare target\nint one(void); int two(void);\n#pragma omp end declare target\n\
         int run(void) {\n  int x = 0;\n#pragma omp target map(tofrom : x)\n  x = one() + two();\n  return x;\n}\n",
    );
    let image = |name: &str, processor: &str| {
        package.put("f.c", &format!("int {name}(void) {{ return 1; }}\n"));
        let output = package.at("f.bc");
        let mut compile = Command::new(&clang);
        compile.args([
            "--target=amdgcn-amd-amdhsa",
            &format!("-mcpu={processor}"),
            "-nogpulib",
        ]);
        compile.args(["-O1", "-c", "-emit-llvm", "-o"]).arg(&output);
        run(compile.arg(package.at("f.c")));
        fs::read(output).unwrap()
    };
    let family = "hip-amdgcn-amd-amdhsa--gfx9-generic";
    let (one, far, two, three) = (
        image("one", "gfx906"),
        image("one", "gfx9-generic"),
        image("two", "gfx906"),
        image("three", "gfx906"),
    );
    let [first, second, third] = [
        bundle(&[(HOST, b""), (family, &far), (GFX906, &one)]),
        bundle(&[(HOST, b""), (GFX906, &two)]),
        bundle(&[(HOST, b""), (GFX906, &three)]),
    ];
    let long = format!("{}.bc", "n".repeat(252));
    let odd = archive(&[("../a.bc", &first), ("../a.bc", &second), (&long, &third)]);
    for bytes in [with_index(&odd, &[("one", 9998)]), odd] {
        fs::write(package.at("lib/bad.a"), bytes).unwrap();
        let before = outside(&package);
        text(&package.script().output().unwrap());
        let after = outside(&package);
        assert!(before == after, "{:?}", after.keys());
        let taken: Vec<String> = package
            .files()
            .into_iter()
            .filter(|name| name.contains("/library-") && name.ends_with(".bc"))
            .map(|name| name.rsplit('/').next().unwrap().to_owned())
            .collect();
        let [first, second, third] = taken.as_slice() else {
            panic!("{taken:?}");
        };
        assert_eq!([first, second], ["library-0-1-a.bc", "library-0-2-a.bc"]);
        assert!(
            third.starts_with("library-0-3-") && third.ends_with("nnn.bc"),
            "{third}"
        );
        assert!(package.has_library());
    }
}
