//! What LLVM's own tests of its linker wrapper show (`docs/spec/linker-wrapper.md` §10.1), number by number.
//!
//! [`SHOWN`] names for each number the tests that show it here: those of other files, and the ones
//! below for what no other test has. Lines are compared with those of clang-linker-wrapper 22.1.8
//! and 19.1.7, on objects that these releases made.

use crate::support;

use super::release_folder::ReleaseFolder;

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use support::{program, run, tool};

/// The numbers of `docs/spec/linker-wrapper.md` §10.1, and the functions that show each.
#[rustfmt::skip]
const SHOWN: [(u32, &[&str]); 30] = [
    (1, &["tests/link-wrapper/linker_behaviours.rs::links_two_images_of_one_target_together_in_bitcode_too"]),
    (2, &["tests/link-wrapper/device_links.rs::prints_the_device_links_that_llvm_22_prints", "tests/link-wrapper/device_links.rs::prints_the_device_links_that_llvm_19_prints"]),
    (3, &["tests/link-wrapper/device_links.rs::prints_the_device_links_that_llvm_22_prints", "tests/link-wrapper/device_links.rs::prints_the_device_links_that_llvm_19_prints"]),
    (4, &["tests/link-wrapper/device_links.rs::prints_the_device_links_that_llvm_22_prints", "tests/link-wrapper/device_links.rs::links_spirv_for_sycl_and_wraps_it_for_openmp"]),
    (5, &["tests/link-wrapper/device_links.rs::prints_the_device_links_that_llvm_22_prints"]),
    (6, &["tests/link-wrapper/linker_differential.rs::passes_on_what_llvm_22_passes_on", "tests/link-wrapper/linker_behaviours.rs::passes_letters_on_and_keeps_options_of_llvm"]),
    (7, &["tests/link-wrapper/linker_wrapper.rs::forwards_a_linkers_arguments_as_they_are_spelled"]),
    (8, &["tests/link-wrapper/linker_behaviours.rs::takes_of_an_archive_what_an_object_has"]),
    (9, &["tests/link-wrapper/linker_behaviours.rs::links_a_target_once_for_all_kinds_and_registers_them_in_order"]),
    (10, &["tests/link-wrapper/linker_behaviours.rs::bundles_once_with_any_number_of_jobs", "tests/link-wrapper/device_links.rs::makes_the_same_images_with_any_number_of_jobs"]),
    (11, &["tests/link-wrapper/linker_behaviours.rs::bundles_hip_beside_openmp_of_the_same_processor"]),
    (12, &["tests/link-wrapper/device_links.rs::prints_the_device_links_that_llvm_22_prints"]),
    (13, &["tests/link-wrapper/linker_wrapper.rs::looks_for_libraries_only_where_it_is_told_under_llvms_name"]),
    (14, &["tests/link-wrapper/linker_behaviours.rs::goes_on_with_an_option_that_was_removed"]),
    (15, &["tests/link-wrapper/linker_behaviours.rs::follows_the_command_lines_of_windows", "offload-link/src/linker_wrapper/inputs/libraries.rs::finds_what_the_linker_of_that_host_would", "offload-link/src/linker_wrapper/line/options/tests.rs::inserts_objects_among_the_inputs_of_microsofts_linkers"]),
    (16, &["tests/link-wrapper/linker_behaviours.rs::gives_a_member_to_every_target_that_it_serves"]),
    (17, &["tests/link-wrapper/linker_behaviours.rs::keeps_targets_apart_as_the_main_branch_does", "offload-link/src/linker_wrapper/choose/groups.rs::keeps_targets_apart_as_the_main_branch_does"]),
    (18, &["tests/link-wrapper/linker_behaviours.rs::gives_a_member_to_every_target_that_it_serves"]),
    (19, &["tests/link-wrapper/linker_behaviours.rs::plans_relocatable_links_of_every_kind", "tests/link-wrapper/linker_programs.rs::registers_the_images_of_a_relocatable_link_once", "tests/link-registration/registration_runtimes.rs::keeps_its_own_tables_through_a_relocatable_link"]),
    (20, &["tests/link-wrapper/linker_behaviours.rs::links_nothing_when_the_image_is_given"]),
    (21, &["tests/link-wrapper/linker_behaviours.rs::takes_the_members_that_llvm_19_takes", "tests/link-wrapper/linker_programs.rs::takes_the_archive_members_that_llvm_19_and_22_take"]),
    (22, &["tests/link-wrapper/linker_registration.rs::writes_the_object_that_llvm_writes", "tests/link-registration/registration_runtimes.rs::makes_the_calls_that_llvm_makes", "tests/link-registration/registration_runtimes.rs::tells_the_runtime_what_an_entry_says", "tests/link-registration/registration_hosts.rs::has_the_sections_of_llvms_object_for_windows", "tests/link-registration/registration_sycl.rs::tells_the_runtime_what_llvm_tells_it"]),
    (23, &["tests/link-registration/registration_hosts.rs::compiles_for_every_host_that_clang_knows"]),
    (24, &["tests/link-wrapper/linker_behaviours.rs::writes_the_bundle_alone"]),
    (25, &["tests/link-wrapper/linker_behaviours.rs::reads_compressed_offload_binaries"]),
    (26, &["tests/link-wrapper/linker_process.rs::asks_the_device_compiler_about_llvms_options"]),
    (27, &["tests/link-wrapper/linker_wrapper.rs::explains_what_is_wrong_with_the_command_line"]),
    (28, &["tests/link-wrapper/linker_behaviours.rs::finds_tools_beside_the_link_when_told"]),
    (29, &["tests/link-wrapper/linker_behaviours.rs::shows_commands_that_make_the_same_program_again", "tests/link-wrapper/linker_wrapper.rs::prints_a_plan_that_a_shell_can_run"]),
    // Clang's helper for NVIDIA is no tool of ours; what it does, our own way does.
    (30, &["tests/link-wrapper/device_links.rs::links_cuda_code_of_several_files_by_either_way", "tests/link-wrapper/device_links.rs::links_ptx_and_cubins_together"]),
];

#[test]
fn has_a_test_for_every_behaviour() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let numbers = SHOWN.map(|(number, _)| number);
    assert!(numbers.into_iter().eq(1..=30), "{numbers:?}");
    for (number, tests) in SHOWN {
        assert!(!tests.is_empty(), "{number}");
        for test in tests {
            let (file, function) = test.split_once("::").unwrap();
            let source = fs::read_to_string(root.join(file)).unwrap();
            let line = format!("fn {function}()");
            let before = source.split_once(&line).map(|(before, _)| before);
            let before = before
                .unwrap_or_else(|| panic!("{number}: no {test}"))
                .trim_end();
            assert!(before.ends_with("#[test]"), "{number}: {test} is no test");
        }
    }
}

const AMD: &str = "amdgcn-amd-amdhsa";
const NVIDIA: &str = "nvptx64-nvidia-cuda";
const HOST: &str = "x86_64-unknown-linux-gnu";

/// A folder with the tools of a release, and ours.
struct Place(ReleaseFolder);

impl Deref for Place {
    type Target = ReleaseFolder;

    fn deref(&self) -> &ReleaseFolder {
        &self.0
    }
}

impl Place {
    fn new(release: u32) -> Option<Self> {
        let place = Self(ReleaseFolder::new(release)?);
        place.write("code.c", "int code(void) { return 0; }\n");
        run(place.llvm("clang").args(["-c", "code.c"]));
        Some(place)
    }

    fn theirs(&self) -> Command {
        self.llvm("clang-linker-wrapper")
    }

    fn ours(&self) -> Command {
        self.command(self.path("bin/clang-linker-wrapper"))
    }

    /// A file with images, each given as for `--image=` of the packager; `file=code.o` where none is.
    fn pack(&self, name: &str, images: &[String]) {
        self.0.pack(name, &with_files(images));
    }

    /// A host object with images.
    fn embed_as(&self, name: &str, images: &[String], how: &[&str]) {
        self.0.embed(name, &with_files(images), how);
    }

    fn embed(&self, name: &str, images: &[String]) {
        self.embed_as(name, images, &[]);
    }

    fn archive(&self, name: &str, members: &[&str]) {
        run(self.llvm("llvm-ar").args(["rcs", name]).args(members));
    }

    /// What a dry run prints.
    fn dry_run(&self, mut tool: Command, args: &[&str]) -> Output {
        let has_host = args.iter().any(|arg| arg.starts_with("--host-triple"));
        if !has_host {
            tool.arg(format!("--host-triple={HOST}"));
        }
        let cuda = format!("--cuda-path={}", self.path("cuda").display());
        tool.args(["--dry-run", &cuda]).args(args).output().unwrap()
    }

    /// The same of ours in comparable words, after a comparison with the release's.
    fn compared(&self, args: &[&str]) -> Vec<String> {
        let expected = self.dry_run(self.theirs(), args);
        let found = self.dry_run(self.ours(), args);
        assert_eq!(
            found.status.code(),
            expected.status.code(),
            "{args:?} {found:?}"
        );
        let expected = plan(&expected.stderr);
        let found = plan(&found.stderr);
        assert_eq!(found, expected, "{args:?}");
        found
    }
}

fn with_files(images: &[String]) -> Vec<String> {
    let with_file = |image: &String| match image.contains("file=") {
        true => image.clone(),
        false => format!("file=code.o,{image}"),
    };
    images.iter().map(with_file).collect()
}

fn image(kind: &str, triple: &str, arch: &str) -> String {
    format!("kind={kind},triple={triple},arch={arch}")
}

/// The lines of a plan: device links sorted, then the others in their order; names of files without
/// what makes them unique, and the host's objects that register behind its other words.
fn plan(said: &[u8]) -> Vec<String> {
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().filter(|line| line.starts_with(" \""));
    let (mut device, mut others) = (Vec::new(), Vec::new());
    for line in lines {
        let mut words = line.split_whitespace().map(|word| word.trim_matches('"'));
        let program = words.next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        let is_clang = program.starts_with("clang") && !program.contains("bundler");
        let mut own = vec![if is_clang { "clang" } else { program }.to_owned()];
        let mut registrations = Vec::new();
        for word in words {
            // LLVM 20 to 22 leave this to clang's driver (issue 190979 of llvm/llvm-project).
            if is_clang && word.starts_with("--cuda-path=") {
                continue;
            }
            let word: Vec<String> = word.split(',').map(plain).collect();
            match word.join(",") {
                word if word.ends_with(".image.wrapper.o") => registrations.push(word),
                // Written anew by LLVM's tool.
                word if word == "-r" => own.push("--relocatable".to_owned()),
                word => own.push(word),
            }
        }
        own.append(&mut registrations);
        match is_clang {
            true => device.push(own.join(" ")),
            false => others.push(own.join(" ")),
        }
    }
    device.sort();
    device.append(&mut others);
    device
}

/// A word without the folder of temporary files and without the part that makes a name unique.
fn plain(word: &str) -> String {
    let (option, path) = match word.find('/') {
        Some(at) => word.split_at(at),
        None => ("", word),
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    if name == path {
        return word.to_owned();
    }
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return word.to_owned();
    };
    let unique = |text: &str| text.len() == 6 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let stem = match stem.rsplit_once('-') {
        Some((stem, hash)) if unique(hash) => stem,
        _ => stem,
    };
    // What a device link reads: of which file.
    let device = [AMD, NVIDIA, HOST, "amdgpu-amd-amdhsa", "spirv64-amd-amdhsa"];
    let from = device
        .iter()
        .find_map(|triple| stem.split_once(&format!("-{triple}")));
    let stem = match from {
        Some((from, _)) => {
            let ours = ["out.x.", "a.exe."].iter();
            let mut ours = ours.filter_map(|output| from.strip_prefix(output));
            ours.next().unwrap_or(from)
        }
        None => stem,
    };
    format!("{option}{stem}.{extension}")
}

fn starting<'a>(plan: &'a [String], program: &str) -> Vec<&'a str> {
    let lines = plan
        .iter()
        .filter(|line| line.starts_with(&format!("{program} ")));
    lines.map(String::as_str).collect()
}

#[test]
fn links_two_images_of_one_target_together_in_bitcode_too() {
    for release in crate::support::share([22, 19], 1, 2) {
        let Some(place) = Place::new(release) else {
            return;
        };
        let twice = [
            image("openmp", NVIDIA, "sm_70"),
            image("openmp", NVIDIA, "sm_70"),
        ];
        place.embed("two.o", &twice);
        let from_object = place.compared(&["--linker-path=/bin/ld", "two.o", "-o", "out.x"]);
        let [link] = starting(&from_object, "clang")[..] else {
            panic!("{from_object:?}");
        };
        assert!(link.contains(" -march=sm_70 "), "{link}");
        assert_eq!(link.matches(" two.o").count(), 2, "{link}");
        // A host file of bitcode is an input as any other.
        place.embed_as("two.o", &twice, &["-emit-llvm"]);
        assert_eq!(fs::read(place.path("two.o")).unwrap()[..2], *b"BC");
        let from_bitcode = place.compared(&["--linker-path=/bin/ld", "two.o", "-o", "out.x"]);
        assert_eq!(from_bitcode, from_object);
    }
}

#[test]
fn passes_letters_on_and_keeps_options_of_llvm() {
    let Some(place) = Place::new(22) else {
        return;
    };
    let line = [
        "-mllvm",
        "-openmp-opt-disable",
        "--linker-path=/bin/ld",
        "-a",
        "-b",
        "-c",
        "host.o",
        "-o",
        "out.x",
    ];
    let plan = place.compared(&line);
    assert_eq!(plan, ["ld -a -b -c host.o -o out.x"]);
}

#[test]
fn gives_llvms_options_to_device_links_in_the_order_of_the_line() {
    let Some(place) = Place::new(22) else {
        return;
    };
    place.embed("a.o", &[image("openmp", AMD, "gfx90a")]);
    let plan = place.compared(&[
        "--offload-opt=-inline-threshold=1",
        "-mllvm",
        "-unroll-threshold=2",
        "--offload-opt=-unroll-count=3",
        "-mllvm",
        "-inlinehint-threshold=4",
        "--linker-path=/bin/ld",
        "a.o",
        "-o",
        "out.x",
    ]);
    let [link] = starting(&plan, "clang")[..] else {
        panic!("{plan:?}");
    };
    assert_eq!(link.matches("--plugin-opt=").count(), 4, "{link}");
}

#[test]
fn takes_of_an_archive_what_an_object_has() {
    let Some(place) = Place::new(22) else {
        return;
    };
    place.embed("a.o", &[image("openmp", NVIDIA, "sm_70")]);
    place.embed(
        "m.o",
        &[
            image("openmp", NVIDIA, "sm_70"),
            image("cuda", NVIDIA, "sm_52"),
        ],
    );
    place.archive("libm.a", &["m.o"]);
    for line in [["libm.a", "a.o"], ["a.o", "libm.a"]] {
        let line = [&["--linker-path=/bin/ld"], &line[..], &["-o", "out.x"]].concat();
        let plan = place.compared(&line);
        let [link] = starting(&plan, "clang")[..] else {
            panic!("{plan:?}");
        };
        assert!(link.ends_with(" -march=sm_70 a.o m.o"), "{link}");
        assert!(starting(&plan, "fatbinary").is_empty(), "{plan:?}");
    }
    // The big archives of AIX, which lld reads on every host.
    run(place
        .llvm("llvm-ar")
        .args(["--format=bigarchive", "rcs", "libbig.a", "m.o"]));
    let line = ["--linker-path=/bin/ld.lld", "a.o", "libbig.a"];
    let plan = place.compared(&[&line[..], &["-o", "out.x"]].concat());
    let [link] = starting(&plan, "clang")[..] else {
        panic!("{plan:?}");
    };
    assert!(link.ends_with(" -march=sm_70 a.o m.o"), "{link}");
}

#[test]
fn links_a_target_once_for_all_kinds_and_registers_them_in_order() {
    for (release, with_arch) in [
        (22, "--image3=kind=elf,sm=70,file="),
        (19, "--image=profile=sm_70,file="),
    ] {
        let Some(place) = Place::new(release) else {
            return;
        };
        place.embed(
            "a.o",
            &[
                image("cuda", NVIDIA, "sm_70"),
                image("openmp", NVIDIA, "sm_70"),
                image("cuda", NVIDIA, "sm_52"),
            ],
        );
        let plan = place.compared(&["--linker-path=/bin/ld", "a.o", "-o", "out.x"]);
        assert_eq!(starting(&plan, "clang").len(), 2);
        let [fatbinary] = starting(&plan, "fatbinary")[..] else {
            panic!("{plan:?}");
        };
        assert!(fatbinary.contains(with_arch), "{fatbinary}");
        assert_eq!(fatbinary.matches(",file=").count(), 2, "{fatbinary}");
        let registered = "out.x.openmp.image.wrapper.o out.x.cuda.image.wrapper.o";
        assert!(plan.last().unwrap().ends_with(registered), "{plan:?}");
    }
}

#[test]
fn bundles_once_with_any_number_of_jobs() {
    let Some(place) = Place::new(22) else {
        return;
    };
    let archs = ["sm_80", "sm_75", "sm_70", "sm_52"];
    place.embed("a.o", &archs.map(|arch| image("cuda", NVIDIA, arch)));
    let line = ["--linker-path=/bin/ld", "a.o", "-o", "out.x"];
    let expected = place.compared(&line);
    assert_eq!(starting(&expected, "fatbinary").len(), 1);
    // LLVM's tool prints several lines at once, so that they cannot be told apart.
    for jobs in ["--wrapper-jobs=4", "--wrapper-jobs=jobserver"] {
        let output = place.dry_run(place.ours(), &[&[jobs], &line[..]].concat());
        assert_eq!(plan(&output.stderr), expected, "{jobs}");
    }
}

#[test]
fn bundles_hip_beside_openmp_of_the_same_processor() {
    for (release, host) in [
        (22, "host-x86_64-unknown-linux-gnu"),
        (19, "host-x86_64-unknown-linux"),
    ] {
        let Some(place) = Place::new(release) else {
            return;
        };
        place.embed(
            "a.o",
            &[
                image("hip", AMD, "gfx90a"),
                image("openmp", AMD, "gfx90a"),
                image("hip", AMD, "gfx908"),
            ],
        );
        let plan = place.compared(&[
            "--compress",
            "--compression-level=6",
            "--linker-path=/bin/ld",
            "a.o",
            "-o",
            "out.x",
        ]);
        assert_eq!(starting(&plan, "clang").len(), 2);
        let bundle = starting(&plan, "clang-offload-bundler");
        let expected = format!(
            "clang-offload-bundler -type=o -bundle-align=4096 -compress -compression-level=6 \
             -targets={host},hip-{AMD}--gfx90a,hip-{AMD}--gfx908 -input=/dev/null \
             -input=out.x.amdgcn.gfx90a.img -input=out.x.amdgcn.gfx908.img -output=out.x.hipfb"
        );
        assert_eq!(bundle, [expected]);
    }
}

#[test]
fn goes_on_with_an_option_that_was_removed() {
    let Some(place) = Place::new(22) else {
        return;
    };
    place.embed("a.o", &[image("openmp", AMD, "gfx908")]);
    let line = [
        "--clang-backend",
        "--linker-path=/bin/ld",
        "a.o",
        "-o",
        "out.x",
    ];
    let expected = plan(&place.dry_run(place.theirs(), &line).stderr);
    let found = plan(&place.dry_run(place.ours(), &line).stderr);
    // LLVM's tool takes it for the host linker's.
    let expected = expected
        .iter()
        .map(|line| line.replace(" --clang-backend", ""));
    assert_eq!(found, expected.collect::<Vec<_>>());
    assert_eq!(found.len(), 2);
}

#[test]
fn follows_the_command_lines_of_windows() {
    let Some(place) = Place::new(22) else {
        return;
    };
    let windows = ["--target=x86_64-pc-windows-msvc"];
    place.embed_as("a.obj", &[image("openmp", AMD, "gfx90a")], &windows);
    let line = [
        "--host-triple=x86_64-unknown-windows-msvc",
        "--linker-path=/bin/lld-link",
    ];
    let plain_line = [&line[..], &["a.obj", "-libpath:./", "-out:a.exe"]].concat();
    let found = place.compared(&plain_line);
    assert_eq!(
        found.last().unwrap(),
        "lld-link a.obj -libpath:./ -out:a.exe a.exe.openmp.image.wrapper.o"
    );

    // What LLVM's main branch looks for in addition.
    place.embed_as("m.obj", &[image("openmp", AMD, "gfx90a")], &windows);
    fs::create_dir(place.path("d")).unwrap();
    place.archive("d/foo.lib", &["m.obj"]);
    place.archive("d/libbar.dll.a", &["m.obj"]);
    for (host, arguments) in [
        ("msvc", &["-libpath:d", "foo.lib"][..]),
        ("msvc", &["-libpath:d", "-wholearchive:foo.lib"]),
        ("msvc", &["-wholearchive:d/foo.lib"]),
        ("gnu", &["-Ld", "-lbar"]),
    ] {
        let host = format!("--host-triple=x86_64-unknown-windows-{host}");
        let output: &[&str] = match arguments[0] {
            "-Ld" => &["-o", "out.x"],
            _ => &["-out:out.x"],
        };
        let line = [
            &["--llvm=main", &host, "--linker-path=/bin/lld-link", "a.obj"],
            arguments,
            output,
        ]
        .concat();
        let found = plan(&place.dry_run(place.ours(), &line).stderr);
        let link = starting(&found, "clang").concat();
        assert!(link.ends_with(" a.o m.o"), "{arguments:?}: {found:?}");
    }
}

#[test]
fn gives_a_member_to_every_target_that_it_serves() {
    let Some(place) = Place::new(22) else {
        return;
    };
    place.embed("on.o", &[image("openmp", AMD, "gfx90a:xnack+")]);
    place.embed("off.o", &[image("openmp", AMD, "gfx90a:xnack-")]);
    place.embed("gfx90a.o", &[image("openmp", AMD, "gfx90a")]);
    place.embed("gfx908.o", &[image("openmp", AMD, "gfx908")]);
    place.embed("any.o", &[image("openmp", AMD, "generic")]);
    place.archive("libgfx90a.a", &["gfx90a.o"]);
    place.archive("libany.a", &["any.o"]);
    for (objects, library, member) in [
        (["on.o", "off.o"], "libgfx90a.a", "gfx90a.o"),
        (["on.o", "off.o"], "libany.a", "any.o"),
        (["gfx90a.o", "gfx908.o"], "libany.a", "any.o"),
    ] {
        let line = [
            &["--linker-path=/bin/ld"],
            &objects[..],
            &[library, "-o", "out.x"],
        ]
        .concat();
        let plan = place.compared(&line);
        let links = starting(&plan, "clang");
        assert_eq!(links.len(), 2, "{plan:?}");
        for object in objects {
            let inputs = format!(" {object} {member}");
            assert!(
                links.iter().any(|link| link.ends_with(&inputs)),
                "{object}: {links:?}"
            );
        }
    }
}

#[test]
fn keeps_targets_apart_as_the_main_branch_does() {
    let Some(place) = Place::new(22) else {
        return;
    };
    let archs = [
        "gfx90a",
        "gfx90a:xnack+",
        "gfx90a:xnack-",
        "gfx90a:sramecc+",
        "gfx90a:sramecc-",
        "gfx900",
        "gfx9-generic",
        "gfx906",
    ];
    let mut line = vec!["--llvm=main".to_owned(), "--linker-path=/bin/ld".to_owned()];
    for (index, arch) in archs.iter().enumerate() {
        place.embed(&format!("o{index}.o"), &[image("openmp", AMD, arch)]);
        line.push(format!("o{index}.o"));
    }
    // The same as the first, in the other spelling of its triple; and as a member, twice.
    place.embed("again.o", &[image("openmp", "amdgpu-amd-amdhsa", "gfx90a")]);
    place.embed("member.o", &[image("openmp", AMD, "gfx906")]);
    place.archive("libmember.a", &["member.o"]);
    line.extend(["again.o", "libmember.a", "libmember.a", "-o", "out.x"].map(str::to_owned));
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let found = plan(&place.dry_run(place.ours(), &line).stderr);
    let mut inputs: Vec<String> = starting(&found, "clang")
        .iter()
        .map(|link| link.split_once("--no-undefined ").unwrap().1.to_owned())
        .collect();
    inputs.sort();
    assert_eq!(
        inputs,
        [
            "o0.o again.o",
            "o1.o",
            "o2.o",
            "o3.o",
            "o4.o",
            "o5.o",
            "o6.o",
            "o7.o member.o"
        ]
    );
}

#[test]
fn plans_relocatable_links_of_every_kind() {
    for release in crate::support::share([22, 19], 0, 2) {
        let Some(place) = Place::new(release) else {
            return;
        };
        for (kind, triple, arch) in [
            ("openmp", AMD, "gfx908"),
            ("hip", AMD, "gfx90a"),
            ("cuda", NVIDIA, "sm_89"),
        ] {
            place.embed(
                "a.o",
                &[image(kind, triple, arch), image(kind, triple, arch)],
            );
            for option in ["-r", "--relocatable"] {
                let plan =
                    place.compared(&[option, "--linker-path=/bin/ld.lld", "a.o", "-o", "out.x"]);
                let programs: Vec<_> = plan
                    .iter()
                    .map(|line| line.split(' ').next().unwrap())
                    .collect();
                assert_eq!(programs[0], "clang");
                assert_eq!(programs[programs.len() - 2..], ["ld.lld", "llvm-objcopy"]);
                let rename = plan.last().unwrap();
                assert!(
                    rename.contains("--remove-section .llvm.offloading --rename-section "),
                    "{rename}"
                );
            }
        }
    }
}

#[test]
fn links_nothing_when_the_image_is_given() {
    let Some(place) = Place::new(22) else {
        return;
    };
    place.embed("a.o", &[image("openmp", AMD, "gfx90a")]);
    let plan = place.compared(&[
        "--override-image=openmp=code.o",
        "--linker-path=/bin/ld",
        "a.o",
        "-o",
        "out.x",
    ]);
    assert_eq!(plan, ["ld a.o -o out.x out.x.openmp.image.wrapper.o"]);
    let plan = place.compared(&[
        "--override-image=hip=code.o",
        "--linker-path=/bin/ld",
        "a.o",
        "-o",
        "out.x",
    ]);
    assert_eq!(plan.len(), 2);
    assert!(
        plan[0].starts_with("clang-offload-bundler ") && plan[0].contains(" -input=code.o "),
        "{plan:?}"
    );
    // The host linker has folders of its own.
    let plan = place.compared(&[
        "--override-image=openmp=code.o",
        "--linker-path=/bin/ld",
        "a.o",
        "-l",
        "nowhere",
        "-o",
        "out.x",
    ]);
    assert_eq!(
        plan,
        ["ld a.o -l nowhere -o out.x out.x.openmp.image.wrapper.o"]
    );
    // With the spelling of LLVM's test, which is none, and an object without device code.
    place.compared(&[
        "--override=image=openmp=code.o",
        "--linker-path=/bin/ld",
        "code.o",
        "-o",
        "out.x",
    ]);
}

/// The stems of what each device link of a plan reads.
fn inputs(plan: &[String]) -> Vec<Vec<String>> {
    let links = plan.iter().filter(|line| line.starts_with("clang "));
    let files = |line: &String| {
        let words = line.split(' ').filter(|word| !word.starts_with('-'));
        let names = words.filter_map(|word| Some(word.strip_suffix(".o")?.to_owned()));
        names.collect()
    };
    links.map(files).collect()
}

#[test]
fn takes_the_members_that_llvm_19_takes() {
    let Some(place) = Place::new(19) else {
        return;
    };
    let sources = [
        ("undefined", "extern int sym; int *use = &sym;"),
        (
            "weak",
            "extern int __attribute__((weak)) sym; int *use = &sym;",
        ),
        (
            "defined",
            "int __attribute__((visibility(\"protected\"))) sym;",
        ),
        (
            "visible",
            "int __attribute__((visibility(\"protected\"))) other;",
        ),
        ("hidden", "int __attribute__((visibility(\"hidden\"))) sym;"),
    ];
    for (name, source) in sources {
        place.write("d.c", source);
        for (target, form) in [
            (HOST, &["-c"][..]),
            (AMD, &["-c", "-emit-llvm", "-nogpulib"]),
        ] {
            let target_option = format!("--target={target}");
            let output = format!("{name}-{target}.o");
            run(place
                .llvm("clang")
                .args([&target_option, "d.c", "-o", &output])
                .args(form));
        }
    }
    let case = |object: &str, member: &str, kind: &str, bitcode: bool, options: &[&str]| {
        let target = if bitcode { AMD } else { HOST };
        // The bytes of a member decide, whatever the target says.
        let of = |name: &str, kind: &str, arch: &str| {
            format!("file={name}-{target}.o,{}", image(kind, AMD, arch))
        };
        place.embed("main.o", &[of(object, "openmp", "gfx1030")]);
        place.embed(
            "member.o",
            &[of(member, kind, "gfx1030"), of(member, kind, "gfx908")],
        );
        let _ = fs::remove_file(place.path("libm.a"));
        place.archive("libm.a", &["member.o"]);
        let line = [
            &["--linker-path=/bin/ld", "main.o"],
            options,
            &["libm.a", "-o", "out.x"],
        ]
        .concat();
        let found = plan(&place.dry_run(place.ours(), &line).stderr);
        if !bitcode {
            // Bitcode LLVM 19 links in its own process, so that no line has it.
            let expected = inputs(&plan(&place.dry_run(place.theirs(), &line).stderr));
            if (object, member) == ("defined", "defined") {
                // It takes the definition a second time, and the device link fails.
                assert_eq!(expected, [["main", "member"]]);
            } else {
                assert_eq!(
                    inputs(&found),
                    expected,
                    "{object} {member} {kind} {options:?}"
                );
            }
        }
        inputs(&found)
    };
    let (alone, both) = (vec![vec!["main"]], vec![vec!["main", "member"]]);
    for bitcode in [false, true] {
        assert_eq!(
            case("undefined", "hidden", "openmp", bitcode, &[]),
            both,
            "resolves"
        );
        assert_eq!(
            case("undefined", "visible", "openmp", bitcode, &[]),
            both,
            "shows a new one"
        );
        assert_eq!(
            case("undefined", "visible", "none", bitcode, &[]),
            alone,
            "of no kind"
        );
        assert_eq!(
            case("weak", "hidden", "openmp", bitcode, &[]),
            alone,
            "weak and hidden"
        );
        assert_eq!(
            case("visible", "hidden", "openmp", bitcode, &[]),
            alone,
            "hidden"
        );
        assert_eq!(
            case("defined", "defined", "openmp", bitcode, &[]),
            alone,
            "defined already"
        );
        let other = vec![vec!["main", "member"], vec!["member"]];
        let found = case(
            "undefined",
            "visible",
            "openmp",
            bitcode,
            &["--whole-archive"],
        );
        assert_eq!(found, other, "whole");
    }
}

/// Of an archive that is named twice, with a member that uses a symbol which the object defines.
#[test]
fn reports_the_members_that_llvm_19_leaves_out() {
    let Some(place) = Place::new(19) else {
        return;
    };
    let protected = "__attribute__((visibility(\"protected\")))";
    for (name, source) in [
        ("defined", format!("int {protected} sym;")),
        (
            "uses",
            format!("extern int sym; int *{protected} use = &sym;"),
        ),
        (
            "hidden",
            "int __attribute__((visibility(\"hidden\"))) sym;".to_owned(),
        ),
    ] {
        place.write("d.c", source);
        let output = format!("{name}-code.o");
        run(place.llvm("clang").args(["-c", "d.c", "-o", &output]));
        let image = image("openmp", AMD, "gfx1030");
        place.embed(&format!("{name}.o"), &[format!("file={output},{image}")]);
    }
    place.archive("libm.a", &["uses.o", "hidden.o"]);
    let line = [
        "--linker-path=/bin/ld",
        "defined.o",
        "libm.a",
        "libm.a",
        "-o",
        "out.x",
    ];
    let report = [&line[..], &["--report=text:report"]].concat();
    let found = inputs(&plan(&place.dry_run(place.ours(), &report).stderr));
    // LLVM's tool takes all members twice, and with each definition there twice its device link fails.
    assert_eq!(found, [["defined", "uses"]]);
    let fates = |archive: &str| -> Vec<String> {
        let report = fs::read_to_string(place.path("report")).unwrap();
        let lines = report.lines().filter(|line| line.starts_with(archive));
        let fates = lines.filter_map(|line| line.split_once(" bytes: "));
        fates.map(|(_, fate)| fate.to_owned()).collect()
    };
    let linked = "linked for amdgcn-amd-amdhsa gfx1030";
    let unwanted = "not linked: no object has device code for this target that needs a symbol of it, and it defines no visible one";
    assert_eq!(
        fates("libm.a"),
        [
            linked,
            unwanted,
            "same as in libm.a(uses.o)",
            "same as in libm.a(hidden.o)"
        ]
    );
    // Bundles of archives LLVM 19 does not read; its clang links all of them before the wrapper starts.
    place.write("empty", "");
    let targets = format!("-targets=host-{HOST}-,openmp-{AMD}--gfx1030");
    let bundle = [
        "-type=bc",
        &*targets,
        "-input=empty",
        "-input=hidden-code.o",
    ];
    run(place
        .llvm("clang-offload-bundler")
        .args(bundle)
        .arg("-output=k.bc"));
    place.archive("libb.a", &["k.bc"]);
    let line = [
        "--linker-path=/bin/ld",
        "defined.o",
        "libb.a",
        "-o",
        "out.x",
    ];
    let report = [&line[..], &["--report=text:report"]].concat();
    place.dry_run(place.ours(), &report);
    assert_eq!(fates("libb.a"), [linked]);
}

#[test]
fn writes_the_bundle_alone() {
    let Some(place) = Place::new(22) else {
        return;
    };
    place.write(
        "k.c",
        "__attribute__((amdgpu_kernel)) void k(int *p) { *p = 1; }",
    );
    let compile = |triple: &str, arch: &str, output: &str| {
        let target = format!("--target={triple}");
        let processor = format!("-mcpu={arch}");
        let kernel = format!("-Dk=k{}", &output[..1]);
        let mut clang = place.llvm("clang");
        clang.args([
            &target,
            "-c",
            "-emit-llvm",
            "-nogpulib",
            "-nogpuinc",
            "k.c",
            &kernel,
            "-o",
            output,
        ]);
        if triple == AMD {
            clang.arg(processor);
        }
        run(&mut clang);
    };
    let archs = ["gfx90a:xnack+", "gfx1200", "gfx90a"];
    for (index, arch) in archs.iter().enumerate() {
        compile(AMD, arch, &format!("{index}.bc"));
    }
    let images =
        [0, 1, 2].map(|index| format!("file={index}.bc,{}", image("hip", AMD, archs[index])));
    // The runtime could not choose between the first and the last.
    place.pack("in.bin", &images);
    for mut tool in [place.theirs(), place.ours()] {
        let refused = tool.args(["--emit-fatbin-only", "in.bin", "-o", "out.hipfb"]);
        let refused = refused.output().unwrap();
        let text = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{text}");
        assert!(text.contains("conflicting targets"), "{text}");
        assert!(!place.path("out.hipfb").exists());
    }
    for count in [1, 2] {
        place.pack("in.bin", &images[..count]);
        let mut lists = Vec::new();
        for tool in [place.theirs(), place.ours()] {
            let mut tool = tool;
            let _ = fs::remove_file(place.path("out.hipfb"));
            // No host linker is there or is named.
            run(tool.args(["--emit-fatbin-only", "in.bin", "-o", "out.hipfb"]));
            let list = ["-list", "-type=o", "-input=out.hipfb"];
            let listed = run(place.llvm("clang-offload-bundler").args(list));
            let mut listed: Vec<String> = listed.lines().map(str::to_owned).collect();
            listed.sort();
            lists.push((listed, fs::read(place.path("out.hipfb")).unwrap()));
        }
        // As LLVM's tools write it.
        for mut tool in [place.theirs(), place.ours()] {
            let printed = tool
                .args(["--emit-fatbin-only", "in.bin", "-o", "-"])
                .output()
                .unwrap();
            assert!(
                printed.status.success() && printed.stdout == lists[0].1,
                "{printed:?}"
            );
            assert!(!place.path("-").exists());
        }
        let mut expected = vec!["host-x86_64-unknown-linux-gnu-".to_owned()];
        expected.extend(
            archs[..count]
                .iter()
                .map(|arch| format!("hip-{AMD}--{arch}")),
        );
        expected.sort();
        assert_eq!(lists[1].0, expected);
        assert!(lists[0] == lists[1], "not the bytes of LLVM's tool");
    }

    // The name of SPIR-V for AMD, of an image that only a translator links.
    place.embed(
        "spirv.o",
        &[image("hip", "spirv64-amd-amdhsa", "amdgcnspirv")],
    );
    let plan = place.compared(&["--emit-fatbin-only", "spirv.o", "-o", "out.x"]);
    let bundle = starting(&plan, "clang-offload-bundler").concat();
    assert!(
        bundle.contains(",hip-spirv64-amd-amdhsa--amdgcnspirv "),
        "{bundle}"
    );

    // Nothing to bundle: no file, and no error.
    run(place
        .ours()
        .args(["--emit-fatbin-only", "code.o", "-o", "none.hipfb"]));
    run(place
        .theirs()
        .args(["--emit-fatbin-only", "code.o", "-o", "none.hipfb"]));
    assert!(!place.path("none.hipfb").exists());
}

#[test]
fn reads_compressed_offload_binaries() {
    let Some(place) = Place::new(22) else {
        return;
    };
    let images = [image("openmp", AMD, "gfx90a"), image("hip", AMD, "gfx90a")];
    place.embed("plain.o", &images);
    let expected = place.compared(&["--linker-path=/bin/ld", "plain.o", "-o", "out.x"]);
    assert_eq!(expected.len(), 3);
    // No release writes them; the layout is that of `docs/spec/offload-binary.md` §1.4.
    let packager = env!("CARGO_BIN_EXE_offload-packager");
    for method in ["zlib", "zstd"] {
        let method = format!("--compression-format={method}");
        let images = images
            .clone()
            .map(|image| format!("--image=file=code.o,{image}"));
        let compressed = ["--llvm=main", "--compress", &method, "-o", "images.bin"];
        run(place.command(packager).args(compressed).args(images));
        let bytes = fs::read(place.path("images.bin")).unwrap();
        assert_eq!(bytes[4], 3, "the version that may be compressed");
        let embed = [
            "-Xclang",
            "-fembed-offload-object=images.bin",
            "-c",
            "host.c",
            "-o",
            "plain.o",
        ];
        run(place.llvm("clang").args(embed));
        let line = ["--linker-path=/bin/ld", "plain.o", "-o", "out.x"];
        assert_eq!(
            plan(&place.dry_run(place.ours(), &line).stderr),
            expected,
            "{method}"
        );
    }
}

#[test]
fn finds_tools_beside_the_link_when_told() {
    let Some(place) = Place::new(22) else {
        return;
    };
    // Copies, as the real file may not have a clang beside it.
    for folder in ["real", "links"] {
        fs::create_dir(place.path(folder)).unwrap();
        place.script(format!("{folder}/clang"), "exit 0");
    }
    fs::copy(
        env!("CARGO_BIN_EXE_offload-link"),
        place.path("real/clang-linker-wrapper"),
    )
    .unwrap();
    symlink(
        place.path("real/clang-linker-wrapper"),
        place.path("links/clang-linker-wrapper"),
    )
    .unwrap();
    place.embed("a.o", &[image("openmp", AMD, "gfx90a")]);
    let line = ["--linker-path=/bin/ld", "a.o", "-o", "out.x"];
    for (option, folder) in [(&[][..], "real"), (&["--no-canonical-prefixes"], "links")] {
        let tool = place.command(place.path("links/clang-linker-wrapper"));
        let output = place.dry_run(tool, &[option, &line].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let clang = format!(" \"{}\" ", place.path(format!("{folder}/clang")).display());
        assert!(
            said.lines().any(|line| line.starts_with(&clang)),
            "{option:?}: {said}"
        );
    }
}

/// With the files that `--save-temps` keeps; what registers is one of them.
#[test]
fn shows_commands_that_make_the_same_program_again() {
    let Some(place) = Place::new(22) else {
        return;
    };
    place.write(
        "k.c",
        "__attribute__((amdgpu_kernel)) void k(int *p) { *p = 1; }",
    );
    let device = [
        "--target=amdgcn-amd-amdhsa",
        "-mcpu=gfx90a",
        "-nogpulib",
        "-nogpuinc",
    ];
    run(place
        .llvm("clang")
        .args(device)
        .args(["-c", "-emit-llvm", "k.c", "-o", "k.o"]));
    let images = [
        image("openmp", HOST, ""),
        format!("file=k.o,{}", image("hip", AMD, "gfx90a")),
    ];
    place.embed_as("with space.o", &images, &["-fPIC"]);
    let path = std::env::var_os("PATH").unwrap();
    let ours = Path::new(env!("CARGO_BIN_EXE_offload-bundler"))
        .parent()
        .unwrap();
    let folders = [place.bin.clone(), ours.to_owned()]
        .into_iter()
        .chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).unwrap();
    let (Some(bfd), Some(lld)) = (program("ld.bfd"), tool("llvm22", &["ld.lld"])) else {
        return;
    };
    for name in ["clang-linker-wrapper", "offload-ld"] {
        let linked = place
            .command(place.path("bin").join(name))
            .env("PATH", &path)
            .arg(format!("--linker-path={}", bfd.display()))
            .args(["--wrapper-verbose", "--save-temps", "--gc-sections"])
            .args(["-shared", "with space.o", "-o", "out.so"])
            .output()
            .unwrap();
        assert!(linked.status.success(), "{linked:?}");
        let lines = String::from_utf8_lossy(&linked.stderr).into_owned();
        let image = match name {
            "offload-ld" => "out.so.amdgcn-amd-amdhsa.gfx90a.img",
            _ => "out.so.amdgcn.gfx90a.img",
        };
        let made = [image, "out.so.hipfb", "out.so"];
        let read = |name: &str| {
            fs::read(place.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let before = made.map(read);
        for name in made {
            fs::remove_file(place.path(name)).unwrap();
        }
        let again = place
            .command("sh")
            .env("PATH", &path)
            .args(["-e", "-c", &lines])
            .output()
            .unwrap();
        assert!(again.status.success(), "{lines}\n{again:?}");
        assert!(made.map(read) == before, "{name}: {lines}");

        // A plan has all that is done.
        let dry = place
            .command(place.path("bin").join(name))
            .arg(format!("--linker-path={}", lld.display()))
            .args(["--dry-run", "-shared", "with space.o", "-o", "out.so"])
            .output()
            .unwrap();
        let dry = String::from_utf8_lossy(&dry.stderr).into_owned();
        let keeps = dry.lines().last().unwrap().contains("nostart-stop-gc");
        assert_eq!(keeps, name == "offload-ld", "LLVM's line has none: {dry}");
    }
}
