//! Text bundles at link time, which clang's older driver makes with `-S`: alone, in archives, compressed.
//!
//! What LLVM does with them: clang's older driver (16, 19, 22) takes such files apart, assembles `.s` and
//! compiles `.ll`, for the host and for each device; of its own `-S -fgpu-rdc` it cannot read the device's
//! part, LLVM IR in a file of assembly. Archives of them go to the host's linker as they are.

use crate::linker_hip_support as support;

use std::fs;

use support::{DECLARED, ENTRIES, Place, one_kernel};

const GFX906: &str = "hip-amdgcn-amd-amdhsa--gfx906";
const GFX90A: &str = "hip-amdgcn-amd-amdhsa--gfx90a";

/// `<name>-<processor>.<extension>`: device code for each processor, as text.
fn device_texts(place: &Place, name: &str, source: &str, args: &[&str], extension: &str) {
    place.write(format!("{name}.hip"), source);
    for processor in ["gfx906", "gfx90a"] {
        let mut compile = place.command(&place.clang);
        compile.args(["-x", "hip", "-nogpulib", "-nogpuinc", "-O2", "-S"]);
        compile.args(["--offload-device-only", "--no-gpu-bundle-output"]);
        compile
            .arg(format!("--offload-arch={processor}"))
            .args(args);
        compile.args([
            &format!("{name}.hip"),
            "-o",
            &format!("{name}-{processor}.{extension}"),
        ]);
        support::run(&mut compile);
    }
}

#[test]
fn links_llvm_ir_and_assembly_for_devices() {
    for release in crate::support::share(["llvm19", "llvm22"], 1, 2) {
        let Some(place) = Place::new(release) else {
            continue;
        };
        place.kernel("one", "--offload-new-driver");
        let helper = format!("{DECLARED}__device__ int helper(int x) {{ return x + 1; }}");
        device_texts(
            &place,
            "helper",
            &helper,
            &["-fgpu-rdc", "-emit-llvm"],
            "ll",
        );
        let other = format!("{DECLARED}__global__ void other(int *p) {{ *p = 7; }}");
        device_texts(&place, "other", &other, &[], "s");
        assert!(
            fs::read_to_string(place.path("other-gfx906.s"))
                .unwrap()
                .contains(".amdgcn_target")
        );
        for compress in [&[][..], &["-compress"]] {
            let [ir, assembly] = [("helper", "ll"), ("other", "s")].map(|(name, kind)| {
                let files =
                    ["gfx906", "gfx90a"].map(|processor| format!("{name}-{processor}.{kind}"));
                let entries = [(GFX906, files[0].as_str()), (GFX90A, files[1].as_str())];
                let output = format!("{name}.{kind}");
                place.bundle(kind, &entries, &output, compress);
                output
            });
            place.archive("libtexts.a", &[&ir, &assembly]);
            for inputs in [&["one.o", &ir, &assembly][..], &["one.o", "libtexts.a"]] {
                assert_eq!(place.registered(inputs), one_kernel("one"), "{release}");
                assert_eq!(place.entries(), ENTRIES, "{release}");
                for processor in ["gfx906", "gfx90a"] {
                    let symbols = place.symbols(processor);
                    for kernel in ["_Z3onePi.kd", "_Z5otherPi.kd"] {
                        assert!(symbols.iter().any(|name| name == kernel), "{symbols:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn says_that_source_is_not_compiled() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    place.kernel("one", "--offload-new-driver");
    place.write("source.hipi", "int x;\n");
    place.bundle("hipi", &[(GFX906, "source.hipi")], "all.hipi", &[]);
    place.archive("liball.a", &["all.hipi"]);
    for (input, from) in [("all.hipi", "all.hipi"), ("liball.a", "liball.a(all.hipi)")] {
        let link = place.link(&["one.o", input]);
        let said = String::from_utf8_lossy(&link.stderr);
        let expected = format!(
            "error: {from}: entry `{GFX906}`: the code for amdgcn-amd-amdhsa gfx906 is source, which linkers do not compile [OFF809]\n"
        );
        assert!(said.contains(&expected), "{said}");
        assert_eq!(link.status.code(), Some(1), "{said}");
        assert!(!place.path("x").exists());
    }
}

const HOST: &str = "host-x86_64-unknown-linux-gnu-";

/// What clang's older driver makes of a source besides an object, and how its file is called.
const FORMS: [(&[&str], &str); 3] = [
    (&["-S"], "s"),
    (&["-S", "-emit-llvm"], "ll"),
    (&["-c", "-emit-llvm"], "bc"),
];

/// Compiles a kernel that calls `helper`, and the helper, to bundles of a form.
fn bundles(place: &Place, args: &[&str], extension: &str) -> [String; 2] {
    let older = [&["--no-offload-new-driver"], args].concat();
    let kernel = format!(
        "{DECLARED}
        extern __device__ int helper(int);
        __device__ int one_data = 3;
        __global__ void one(int *p) {{ *p = helper(one_data); }}"
    );
    let helper = format!("{DECLARED}__device__ int helper(int x) {{ return x + 1; }}");
    [("one", kernel), ("helper", helper)].map(|(name, source)| {
        place.compile(name, &source, &older);
        let file = format!("{name}.{extension}");
        fs::rename(place.path(format!("{name}.o")), place.path(&file)).unwrap();
        file
    })
}

/// What makes the host's linker take a kernel's object: its host function.
const STUB: &str = "-Wl,-u,_Z18__device_stub__onePi";

#[test]
fn links_every_form_that_the_older_driver_makes_of_a_source() {
    for (number, release) in ["llvm19", "llvm22"].into_iter().enumerate() {
        let Some(place) = Place::new(release) else {
            continue;
        };
        for (form, (args, extension)) in FORMS.into_iter().enumerate() {
            let [one, helper] = &bundles(&place, args, extension);
            place.archive("libone.a", &[one, helper]);
            let _ = fs::remove_file(place.path("thin.a"));
            support::run(
                place
                    .command(place.tool("llvm-ar"))
                    .args(["rcT", "thin.a", one, helper]),
            );
            let lines = [
                &[one.as_str(), helper][..],
                &[STUB, "libone.a"],
                &[STUB, "-L.", "-lone"],
                &[STUB, "-L.", "-Wl,-lone"],
                &["-Wl,--whole-archive,libone.a,--no-whole-archive"],
                &[STUB, "thin.a"],
            ];
            for (line, inputs) in lines.into_iter().enumerate() {
                // Each line with one form of one release.
                if !crate::support::tests_all() && (3 * number + form + line) % 6 != 0 {
                    continue;
                }
                let what = format!("{release} {extension} {inputs:?}");
                assert_eq!(place.registered(inputs), one_kernel("one"), "{what}");
                assert_eq!(place.entries(), ENTRIES, "{what}");
                for processor in ["gfx906", "gfx90a"] {
                    let symbols = place.symbols(processor);
                    assert!(symbols.iter().any(|name| name == "_Z3onePi.kd"), "{what}");
                }
            }
        }
    }
}

#[test]
fn takes_the_hosts_parts_of_an_archive_when_they_are_wanted() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    let [one, helper] = &bundles(&place, &["-S"], "s");
    let other = format!("{DECLARED}__global__ void other(int *p) {{ *p = 7; }}");
    place.compile(
        "other",
        &other,
        &["--no-offload-new-driver", "-c", "-emit-llvm"],
    );
    fs::rename(place.path("other.o"), place.path("other.bc")).unwrap();
    place.write(
        "said.c",
        "#include <stdio.h>\n__attribute__((constructor)) void said(void) { puts(\"host part\"); }",
    );
    place.cc(&["-c", "said.c"]);
    place.archive("libmixed.a", &["other.bc", one, "said.o", helper]);
    // As of objects: what nobody wants is not there.
    assert_eq!(place.registered(&[STUB, "libmixed.a"]), one_kernel("one"));
    let mut expected = one_kernel("one");
    expected.insert(2, "host part".to_owned());
    place.link(&[STUB, "-Wl,-u,said", "libmixed.a", "--dry-run"]);
    let report = place.report();
    let warning =
        "libmixed.a: the symbols that its host part needs are unknown before it is linked\n";
    assert!(report.contains(warning), "{report}");
    assert_eq!(
        place.registered(&[STUB, "-Wl,-u,said", "libmixed.a"]),
        expected
    );
    let report = place.report();
    let images = || report.lines().filter(|line| !line.starts_with("note: "));
    assert_eq!(images().count(), 6, "{report}");
    let linked = images().all(|line| line.contains(": linked for "));
    assert!(
        linked,
        "of such archives all members are linked for devices: {report}"
    );
    // What was made of them is kept on request, and of no name that is in use.
    assert!(!place.path("x.one-1.host.o").exists());
    place.registered(&[STUB, "libmixed.a", "--save-temps"]);
    for name in [
        "x.other-0.host.o",
        "x.one-1.host.s",
        "x.one-1.host.o",
        "x.helper-2.host.o",
    ] {
        assert!(place.path(name).exists(), "{name}");
    }
}

#[test]
fn says_what_of_a_bundle_no_host_linker_takes() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    place.write("text", "no object\n");
    place.write("source.hipi", "int x;\n");
    place.cc(&["-c", "main.c", "-o", "host.o"]);
    let bundle = |name: &str, kind: &str, host: &str| {
        place.bundle(kind, &[(HOST, host), (GFX906, "text")], name, &[]);
    };
    bundle("text.bc", "bc", "text");
    bundle("source.ii", "ii", "source.hipi");
    place.write("broken.host", "no_such_instruction\n");
    place.bundle("s", &[(HOST, "broken.host")], "broken.s", &[]);
    bundle("first.bc", "bc", "host.o");
    let first = fs::read(place.path("first.bc")).unwrap();
    fs::write(place.path("twice.bc"), [&first[..], &first].concat()).unwrap();
    for (name, problem) in [
        (
            "text.bc",
            "the host part is neither an object nor bitcode nor assembly",
        ),
        (
            "source.ii",
            "the host part is source, which linkers do not compile",
        ),
        ("twice.bc", "second host part; a bundle can have only one"),
    ] {
        place.archive("lib.a", &[name]);
        for (input, from) in [(name, name.to_owned()), ("lib.a", format!("lib.a({name})"))] {
            let link = place.link(&[input]);
            let said = String::from_utf8_lossy(&link.stderr);
            let expected = format!("error: {from}: entry `{HOST}`: {problem}");
            assert!(said.contains(&expected), "{said}");
            assert_eq!(link.status.code(), Some(1), "{said}");
        }
    }
    let link = place.link(&["broken.s"]);
    let said = String::from_utf8_lossy(&link.stderr);
    assert!(
        said.contains("error: broken.s: its host part does not compile: "),
        "{said}"
    );
    assert!(said.contains("invalid instruction"), "{said}");
    assert_eq!(link.status.code(), Some(1), "{said}");
    assert!(!place.path("x").exists());
}

#[test]
fn names_the_text_that_a_compiler_does_not_take() {
    let Some(place) = Place::new("llvm22") else {
        return;
    };
    place.kernel("one", "--offload-new-driver");
    for (kind, text) in [
        ("s", "no_such_instruction v0\n"),
        ("ll", "define no_such_type @f()\n"),
    ] {
        place.write("text", text);
        let bundle = format!("broken.{kind}");
        place.bundle(kind, &[(GFX906, "text")], &bundle, &[]);
        place.archive("libbroken.a", &[&bundle]);
        for (input, from) in [
            (&*bundle, bundle.clone()),
            ("libbroken.a", format!("libbroken.a({bundle})")),
        ] {
            let link = place.link(&["one.o", input]);
            let said = String::from_utf8_lossy(&link.stderr);
            let expected = format!("error: device link for amdgcn-amd-amdhsa gfx906: {from}: ");
            assert!(
                said.contains(&expected) && said.contains("no_such_"),
                "{said}"
            );
            assert_eq!(link.status.code(), Some(1), "{said}");
            assert!(!place.path("x").exists());
        }
    }
}
