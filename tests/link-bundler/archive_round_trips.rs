//! Archives of device code that ours makes, read by the tools of others; archives that they make, linked by ours.
//! (`linker_bundles.rs` has those of clang's older driver for HIP.)

use crate::linker_hip_support as support;

use crate::support::WITHOUT_LIBLLVM;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use support::{Place, run, tool};

const RELEASES: [&str; 3] = ["llvm16", "llvm19", "llvm22"];
const PROCESSORS: [&str; 2] = ["gfx906", "gfx90a"];

fn target(processor: &str) -> String {
    format!("hip-amdgcn-amd-amdhsa--{processor}")
}

impl Place {
    /// `cargo offload archive`, which must succeed, and what it prints.
    fn archives(&self, args: &[&str]) -> String {
        let mut command = self.command(env!("CARGO_BIN_EXE_cargo-offload"));
        run(command.args(["offload", "archive"]).args(args))
    }

    /// The members of an archive, as GNU's `ar` takes it apart, by name.
    fn members(&self, archive: &str) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let mut ar = self.command("ar");
        run(ar
            .arg("x")
            .arg(self.path(archive))
            .current_dir(folder.path()));
        let files = fs::read_dir(folder.path()).unwrap();
        files
            .map(|file| {
                let file = file.unwrap();
                let name = file.file_name().into_string().unwrap();
                (name, fs::read(file.path()).unwrap())
            })
            .collect()
    }

    /// Device code of `one` and of its helper for each processor, made by the release's clang: `one-gfx906.bc`.
    fn device_code(&self) {
        for processor in PROCESSORS {
            let other = PROCESSORS
                .iter()
                .find(|other| **other != processor)
                .unwrap();
            let other = format!("--no-offload-arch={other}");
            let args = ["--offload-device-only", "-emit-llvm", "-c", &other];
            self.kernel_with("one", &args);
            fs::rename(self.path("one.o"), self.path(format!("one-{processor}.bc"))).unwrap();
            self.helper("helper", &args);
            let to = self.path(format!("helper-{processor}.bc"));
            fs::rename(self.path("helper.o"), to).unwrap();
        }
    }

    /// Archives of bundles that ours makes of these, with objects of the host and without, by hand-bundled
    /// files too.
    fn made_by_ours(&self) -> [&'static str; 3] {
        self.device_code();
        for processor in PROCESSORS {
            let members = ["one", "helper"].map(|name| format!("{name}.bc"));
            for name in &members {
                let of = name.replace(".bc", &format!("-{processor}.bc"));
                fs::copy(self.path(&of), self.path(name)).unwrap();
            }
            self.archive(
                &format!("{processor}.a"),
                &members.each_ref().map(|name| &**name),
            );
        }
        let parts = PROCESSORS.map(|processor| format!("{}={processor}.a", target(processor)));
        self.archives(&["merge", "--out=device.a", &parts[0], &parts[1]]);

        for name in ["one", "helper"] {
            self.write(format!("{name}.c"), format!("int {name}_of_host;"));
            self.cc(&["-c", &format!("{name}.c")]);
        }
        self.archive("host.a", &["one.o", "helper.o"]);
        self.archives(&[
            "merge",
            "--out=merged.a",
            "--host=host.a",
            &parts[0],
            &parts[1],
        ]);

        std::os::unix::fs::symlink(
            env!("CARGO_BIN_EXE_offload-bundler"),
            self.path("clang-offload-bundler"),
        )
        .unwrap();
        self.write("empty", "");
        for name in ["one", "helper"] {
            let mut bundler = self.command(self.path("clang-offload-bundler"));
            let ids = format!(
                "host-x86_64-unknown-linux-gnu-,{},{}",
                target("gfx906"),
                target("gfx90a")
            );
            bundler.args(["-type=bc", &format!("-targets={ids}"), "-input=empty"]);
            bundler.args(PROCESSORS.map(|processor| format!("-input={name}-{processor}.bc")));
            run(bundler.arg(format!("-output={name}.bc")));
        }
        self.archive("bundled.a", &["one.bc", "helper.bc"]);
        ["device.a", "merged.a", "bundled.a"]
    }
}

#[test]
fn every_bundler_takes_ours_apart() {
    for compiler in RELEASES {
        let Some(place) = Place::new(compiler) else {
            continue;
        };
        for archive in place.made_by_ours() {
            for (release, processor) in RELEASES
                .iter()
                .flat_map(|release| PROCESSORS.map(|processor| (*release, processor)))
            {
                let Some(bundler) = tool(release, &["clang-offload-bundler"]) else {
                    continue;
                };
                let mut unbundle = place.command(bundler);
                unbundle.args([
                    "-type=a",
                    "-unbundle",
                    &format!("-targets={}", target(processor)),
                ]);
                run(unbundle.args([&format!("-input={archive}"), "-output=theirs.a"]));
                let found: Vec<Vec<u8>> = place.members("theirs.a").into_values().collect();
                let whole =
                    |name: &str| fs::read(place.path(format!("{name}-{processor}.bc"))).unwrap();
                let what = format!("{archive} of {compiler}, by {release} for {processor}");
                assert!(found == [whole("helper"), whole("one")], "{what}");
            }
        }
    }
}

#[test]
fn ar_and_ranlib_read_ours_and_change_nothing() {
    // Of the older release, whose bitcode both read.
    let Some(place) = Place::new("llvm19") else {
        return;
    };
    place.made_by_ours();
    let archives = |release| {
        ["llvm-ar", "llvm-ranlib", "llvm-nm"]
            .map(|name| tool(release, &[name]).map(|path| path.into_os_string()))
    };
    place.archives(&["split", "--out=parts", "merged.a"]);
    place.archives(&["split", "--out=parts", "--target=host", "merged.a"]);
    for (archive, expected, symbols) in [
        ("device.a", ["one.bc", "helper.bc"], &[][..]),
        (
            "merged.a",
            ["one.o", "helper.o"],
            &["helper_of_host in helper.o", "one_of_host in one.o"],
        ),
        (
            "parts/libmerged-host.a",
            [
                "one-host-x86_64-unknown-linux-gnu-one.o",
                "helper-host-x86_64-unknown-linux-gnu-helper.o",
            ],
            &[
                "helper_of_host in helper-host-x86_64-unknown-linux-gnu-helper.o",
                "one_of_host in one-host-x86_64-unknown-linux-gnu-one.o",
            ],
        ),
        (
            "parts/libbc-merged-amdgcn-gfx906.a",
            [
                "one-hip-amdgcn-amd-amdhsa--gfx906one.bc",
                "helper-hip-amdgcn-amd-amdhsa--gfx906helper.bc",
            ],
            &[
                "_Z3onePi in one-hip-amdgcn-amd-amdhsa--gfx906one.bc",
                "_Z6helperi in helper-hip-amdgcn-amd-amdhsa--gfx906helper.bc",
            ],
        ),
    ] {
        let whole = fs::read(place.path(archive)).unwrap();
        let gnus = ["ar", "ranlib", "nm"].map(|name| Some(name.into()));
        for tools in [gnus, archives("llvm19"), archives("llvm22")] {
            let [Some(ar), Some(ranlib), Some(nm)] = tools else {
                continue;
            };
            let printed = run(place.command(Path::new(&ar)).args(["t", archive]));
            assert_eq!(
                printed.lines().collect::<Vec<_>>(),
                expected,
                "{ar:?} {archive}"
            );
            let mut nm = place.command(Path::new(&nm));
            let printed = run(nm.args(["--print-armap", archive]));
            // Beside what the host's runtime and the device's libraries need.
            let ours = |line: &&str| line.starts_with("_Z") || line.contains("_of_host in ");
            let mut lines: Vec<&str> = printed.lines().filter(ours).collect();
            lines.sort_unstable();
            lines.dedup();
            assert_eq!(lines, symbols, "{ar:?} {archive}");
            fs::write(place.path("copy.a"), &whole).unwrap();
            run(place.command(Path::new(&ranlib)).args(["-D", "copy.a"]));
            let expected = place.members(archive);
            assert!(place.members("copy.a") == expected, "{ranlib:?} {archive}");
            if ranlib != "ranlib" {
                assert!(
                    fs::read(place.path("copy.a")).unwrap() == whole,
                    "{ranlib:?} {archive}"
                );
            }
        }
    }
}

#[test]
fn amds_linker_takes_ours_whole_and_members_that_it_wants() {
    for release in ["llvm19", "llvm22"] {
        let Some(place) = Place::new(release) else {
            continue;
        };
        place.made_by_ours();
        place.archives(&["split", "--out=parts", "device.a"]);
        for processor in PROCESSORS {
            let library = format!("parts/libbc-device-amdgcn-{processor}.a");
            for how in [&["--whole-archive"][..], &["-u", "_Z3onePi"]] {
                let mut lld = place.command(place.tool("ld.lld"));
                lld.args(["-m", "elf64_amdgpu", "-shared", "--no-undefined"]);
                lld.arg(format!("-plugin-opt=mcpu={processor}"));
                run(lld.args(["-o", "image"]).args(how).arg(&library));
                let mut nm = place.command(place.tool("llvm-nm"));
                let symbols = run(nm.args(["-D", "-j", "--defined-only", "image"]));
                assert!(
                    symbols.lines().any(|name| name == "_Z3onePi.kd"),
                    "{symbols}"
                );
            }
        }
    }
}

#[test]
fn nvidias_linkers_take_what_ours_makes() {
    let (Some(clang), Some(_), Some(nvlink)) = (
        tool("llvm22", &["clang"]),
        tool("cuda", &["ptxas"]),
        tool("cuda", &["nvlink"]),
    ) else {
        return;
    };
    let place = Place::new("llvm22").unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = nvlink.parent().map(Into::into).into_iter();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path))).unwrap();
    place.write("helper.c", "int helper(int x) { return x + 1; }");
    place.write(
        "one.c",
        "int helper(int); __attribute__((nvptx_kernel)) void one(int *p) { *p = helper(*p); }",
    );
    for (name, output) in [("helper", "helper.cubin"), ("one", "one.cubin")] {
        let mut compile = place.command(&clang);
        compile
            .env("PATH", &path)
            .arg("--target=nvptx64-nvidia-cuda");
        compile.args(["-march=sm_90", "-nogpulib", "-O1", "-c", "-o", output]);
        run(compile.arg(format!("{name}.c")));
    }
    place.archive("cubins.a", &["helper.cubin"]);
    let part = "openmp-nvptx64-nvidia-cuda--sm_90=cubins.a";
    place.archives(&["merge", "--out=libhelper.a", part]);
    place.archives(&["split", "--out=parts", "libhelper.a"]);
    let is_linked = |image: &str| {
        let listed = run(place.command("readelf").args(["-sW", image]));
        let defined = |line: &&str| line.contains("FUNC") && line.ends_with(" helper");
        assert!(
            listed.lines().any(|line| defined(&line)),
            "{image}: {listed}"
        );
        fs::remove_file(place.path(image)).unwrap();
    };
    for release in ["llvm19", "llvm22"] {
        let Some(wrapper) = tool(release, &["clang-nvlink-wrapper"]) else {
            continue;
        };
        for library in [
            &["parts/libbc-helper-nvptx64-sm_90.a"][..],
            &["-Lparts", "-lbc-helper-nvptx64-sm_90"],
        ] {
            let mut link = place.command(&wrapper);
            link.env("PATH", &path)
                .args(["-arch", "sm_90", "one.cubin"]);
            run(link.args(library).args(["-o", "image"]));
            is_linked("image");
        }
    }
    // In archives NVIDIA's own reads objects of the host only, whoever made them; cubins alone.
    let link = |input: &str| {
        let mut link = place.command(&nvlink);
        link.args(["-arch", "sm_90", "one.cubin", input, "-o", "image"]);
        link.output().unwrap().status.success()
    };
    assert!(!link("cubins.a") && !link("parts/libbc-helper-nvptx64-sm_90.a"));
    let members = place.members("parts/libbc-helper-nvptx64-sm_90.a");
    assert_eq!(members.len(), 1);
    for (name, bytes) in members {
        fs::write(place.path(&name), bytes).unwrap();
        assert!(link(&name), "{name}");
        is_linked("image");
    }
}

/// As clang's older driver for OpenMP made them, before LLVM 15: by hand, with the release's own tools.
#[test]
fn links_archives_of_openmp_objects_with_bundles() {
    let Some(runtime) = tool("omptarget19", &["libomptarget.so"]) else {
        return;
    };
    let runtime = runtime.parent().unwrap().to_str().unwrap().to_owned();
    for release in RELEASES {
        let Some(place) = Place::new(release) else {
            continue;
        };
        place.write(
            "region.c",
            "int region(void) {\n int on_host = 1;\n#pragma omp target map(tofrom : on_host)\n on_host = 0;\n\
             return on_host;\n}\n",
        );
        place.write(
            "main.c",
            "int region(void); int main(void) { return region(); }",
        );
        place.cc(&["-c", "main.c"]);
        for (side, output) in [
            (&["--offload-host-only"][..], "host.o"),
            (&["--offload-device-only", "-emit-llvm"], "device.bc"),
        ] {
            let mut compile = place.llvm(place.tool("clang"));
            compile.args([
                "-fopenmp",
                "-fopenmp-targets=x86_64-pc-linux-gnu",
                "-O1",
                "-fPIC",
            ]);
            run(compile.args(side).args(["-c", "region.c", "-o", output]));
        }
        let host = "host-x86_64-unknown-linux-gnu-";
        let device = "openmp-x86_64-pc-linux-gnu-";
        // As `offload-build` names the member of `c/region.c`: it begins and ends with `c`.
        let member = "c-region.c.o";
        let parts = [(host, "host.o"), (device, "device.bc")];
        place.bundle("o", &parts, member, &[]);
        place.archive("libregion.a", &[member]);
        // And as ours makes it of its parts.
        place.archives(&["split", "--out=.", "libregion.a"]);
        place.archives(&["split", "--out=.", "--target=host", "libregion.a"]);
        let part = format!("{device}=libbc-region-x86_64-pc-linux-gnu.a");
        place.archives(&["merge", "--out=merged.a", "--host=libregion-host.a", &part]);
        for archive in ["libregion.a", "merged.a"] {
            let folder = format!("-L{runtime}");
            let link = place.link(&[archive, &folder, WITHOUT_LIBLLVM, "-lomp", "-lomptarget"]);
            assert!(link.status.success(), "{release} {archive}: {link:?}");
            let report = place.report();
            let images = report.lines().filter(|line| !line.starts_with("note: "));
            assert_eq!(images.count(), 1, "{report}");
            assert!(
                report.contains("(c-region.c.o): openmp x86_64-pc-linux-gnu, "),
                "{report}"
            );
            assert!(
                report.contains(": linked for x86_64-pc-linux-gnu\n"),
                "{report}"
            );
            // The entries of LLVM 22 are for its own runtime.
            let libraries = match release {
                "llvm22" => tool("omptarget22", &["libomptarget.so"])
                    .map(|library| library.parent().unwrap().display().to_string()),
                _ => Some(runtime.clone()),
            };
            let Some(libraries) = libraries else {
                continue;
            };
            let libraries = format!("{libraries}:{}", place.root().display());
            let mut program = place.command(place.path("x"));
            program.env("OMP_TARGET_OFFLOAD", "MANDATORY");
            let done = program.env("LD_LIBRARY_PATH", libraries).output().unwrap();
            assert!(done.status.success(), "{release} {archive}: {done:?}");
        }
    }
}
