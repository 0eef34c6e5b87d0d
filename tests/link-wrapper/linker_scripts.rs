//! Linker scripts as inputs: device code of the files that they name is linked, as the host linker links their host code.

use crate::linker_support::{self as support, Project};
use support::{program, region};

/// Regions in an object, in an archive with a member that nobody wants, and in an archive below another script.
fn project() -> Option<Project> {
    let project = Project::new()?;
    project.compile("one.c", &region("one"), &[]);
    project.compile("two.c", &region("two"), &[]);
    project.compile("three.c", &region("three"), &[]);
    project.compile("unwanted.c", &region("unwanted"), &[]);
    project.compile("main.c", &program(&["one", "two", "three"]), &[]);
    for folder in ["lib", "below"] {
        std::fs::create_dir(project.path(folder)).unwrap();
    }
    project.archive("lib/libtwo.a", &["two.o", "unwanted.o"]);
    project.archive("below/libthree.a", &["three.o"]);
    let script = "/* GNU ld script */\nGROUP ( one.o AS_NEEDED ( -ltwo ) inner.ld )\n";
    project.write("lib/libregions.so", script);
    let inner = project.path("below/libthree.a");
    project.write("lib/inner.ld", format!("INPUT({})\n", inner.display()));
    Some(project)
}

#[test]
fn links_the_device_code_of_files_that_scripts_name() {
    let Some(mut project) = project() else { return };
    for wrapper in ["llvm", "ours"] {
        project.wrapper = wrapper;
        for linker in ["bfd", "lld"] {
            let linker = format!("-fuse-ld={linker}");
            for script in [&["-lregions"][..], &["lib/libregions.so"]] {
                let line = [&["main.o", "-Llib", &linker][..], script].concat();
                project.link_and_run(&line);
            }
        }
    }
}

#[test]
fn names_the_file_of_each_image_and_leaves_out_what_nobody_wants() {
    let Some(mut project) = project() else { return };
    project.wrapper = "ours";
    let link = project
        .clang(&["main.o", "-Llib", "-lregions"])
        .env("OFFLOAD_LINK_REPORT", "report.txt")
        .output()
        .unwrap();
    assert!(link.status.success(), "{link:?}");
    let report = project.read("report.txt");
    for file in ["one.o", "lib/libtwo.a(two.o)", "below/libthree.a(three.o)"] {
        let line = report.lines().find(|line| line.contains(file));
        let line = line.unwrap_or_else(|| panic!("{file} in {report}"));
        assert!(line.contains(": linked for "), "{line}");
    }
    let unwanted = report.lines().find(|line| line.contains("unwanted.o"));
    assert!(unwanted.unwrap().contains("not linked"), "{report}");
}

#[test]
fn leaves_missing_files_to_the_host_linker() {
    let Some(project) = project() else { return };
    project.write("lib/libbroken.a", "INPUT(lib/absent.o)\n");
    let line = ["main.o", "-Llib", "-lregions", "-lbroken"];
    let link = project.clang(&line).output().unwrap();
    let text = String::from_utf8_lossy(&link.stderr);
    assert!(!link.status.success(), "{text}");
    assert!(text.contains("lib/absent.o"), "{text}");
}

#[test]
fn refuses_bundles_with_host_code_in_scripts() {
    let Some(project) = project() else { return };
    let bundle = project
        .command(env!("CARGO_BIN_EXE_offload-bundler"))
        .args([
            "-type=bc",
            "-input=one.o",
            "-input=two.o",
            "-output=k.bundle",
        ])
        .arg("-targets=host-x86_64-unknown-linux-gnu,openmp-x86_64-pc-linux-gnu")
        .output()
        .unwrap();
    assert!(bundle.status.success(), "{bundle:?}");
    project.write("lib/libbundle.a", "INPUT(k.bundle)\n");
    let line = ["main.o", "-Llib", "-lregions", "-lbundle"];
    let link = project.clang(&line).output().unwrap();
    let text = String::from_utf8_lossy(&link.stderr);
    let error = "error: k.bundle: cannot replace it in a linker script\nhint: name the file in an argument of its own\n";
    assert!(text.contains(error), "{text}");
    assert!(!project.path("a.out").exists());
}
