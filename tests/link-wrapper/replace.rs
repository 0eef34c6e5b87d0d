//! The recipes of docs/replace-clang-linker-wrapper.md, each run.

use crate::support;
use crate::support::folder::Folder;

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{WITHOUT_LIBLLVM, tool};

const TOOL: &str = env!("CARGO_BIN_EXE_offload-link");
const BUNDLER: &str = env!("CARGO_BIN_EXE_offload-bundler");
const PACKAGER: &str = env!("CARGO_BIN_EXE_offload-packager");
const OPENMP: [&str; 2] = ["-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"];

/// Fails unless its region ran on a device.
const SAXPY: &str = "
static int on_host(void) { return 1; }
#pragma omp begin declare variant match(device = {kind(nohost)})
static int on_host(void) { return 0; }
#pragma omp end declare variant
int main(void) {
  float x[64], y[64];
  int host = 1;
  for (int i = 0; i < 64; i++) { x[i] = i; y[i] = 1; }
#pragma omp target map(to : x) map(tofrom : y) map(from : host)
  {
    host = on_host();
    for (int i = 0; i < 64; i++) y[i] += 2 * x[i];
  }
  for (int i = 0; i < 64; i++) if (y[i] != 1 + 2 * i) return 2;
  return host;
}
";

/// A release of clang, and a folder with the link of the recipes.
struct Place {
    dir: Folder,
    release: &'static str,
    clang: PathBuf,
    /// Where its libomptarget is, which runs the programs; without one they are only linked, with
    /// the libraries of another release.
    runtime: Option<PathBuf>,
    libraries: PathBuf,
}

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.dir
    }
}

impl Place {
    fn all() -> Vec<Self> {
        let place = |(release, clang_word, runtime_word): (&'static str, &str, &str)| {
            let clang = tool(clang_word, &["clang"])?;
            let folder = |word: &str| {
                let library = tool(word, &["libomptarget.so"])?;
                library.parent().map(Path::to_owned)
            };
            let runtime = folder(runtime_word);
            let libraries = runtime.clone().or_else(|| folder("omptarget19"))?;
            let dir = Folder::new();
            fs::create_dir(dir.path("offload")).unwrap();
            symlink(TOOL, dir.path("offload/clang-linker-wrapper")).unwrap();
            dir.write("saxpy.c", SAXPY);
            dir.write("saxpy.cpp", SAXPY);
            Some(Self {
                dir,
                release,
                clang,
                runtime,
                libraries,
            })
        };
        let releases = [
            ("19", "llvm19", "omptarget19"),
            ("22", "llvm22", "omptarget22"),
        ];
        releases.into_iter().filter_map(place).collect()
    }

    fn folder(&self) -> String {
        self.path("offload").display().to_string()
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(self.root())
            .env(
                "OFFLOAD_LINK_REPORT",
                format!("text:{}", self.path("report").display()),
            )
            .env_remove("OFFLOAD_LINK_ACTIVE")
            .env_remove("COMPILER_PATH");
        command
    }

    /// Compiles and links; for C++ with its driver, which lies beside.
    fn clang(&self, args: &[&str]) -> Command {
        let is_cxx = args.iter().any(|arg| arg.ends_with(".cpp"));
        let clang = match is_cxx {
            true => self.clang.with_file_name("clang++"),
            false => self.clang.clone(),
        };
        let mut command = self.command(clang);
        command
            .args(args)
            .arg(format!("-L{}", self.libraries.display()))
            .arg(WITHOUT_LIBLLVM);
        command
    }

    /// The command succeeds in silence, it was our tool that linked, and the program runs.
    #[track_caller]
    fn links(&self, program: &str, command: &mut Command) {
        let output = command.output().unwrap();
        succeeded(&output);
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "",
            "{}",
            self.release
        );
        let report = fs::read_to_string(self.path("report")).unwrap_or_default();
        assert!(
            report.contains(": linked for x86_64-pc-linux-gnu"),
            "{}: {report}",
            self.release
        );
        fs::remove_file(self.path("report")).unwrap();
        if let Some(runtime) = &self.runtime {
            let mut run = self.command(self.path(program));
            run.env("LD_LIBRARY_PATH", runtime)
                .env("OMP_TARGET_OFFLOAD", "MANDATORY");
            succeeded(&run.output().unwrap());
        }
        fs::remove_file(self.path(program)).unwrap();
    }
}

#[track_caller]
fn succeeded(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
}

#[test]
fn replaces_it_by_an_option_a_variable_or_a_configuration_file() {
    for place in Place::all() {
        let folder = place.folder();
        for source in ["saxpy.c", "saxpy.cpp"] {
            let line = [OPENMP[0], OPENMP[1], source, "-o", "saxpy"];
            let option = [&["-B", &folder], &line[..]].concat();
            place.links("saxpy", &mut place.clang(&option));
            place.links("saxpy", place.clang(&line).env("COMPILER_PATH", &folder));
            fs::write(place.path("offload.cfg"), format!("-B {folder}\n")).unwrap();
            let file = [&["--config=./offload.cfg"], &line[..]].concat();
            place.links("saxpy", &mut place.clang(&file));
        }
    }
}

#[test]
fn is_not_found_in_path_by_a_clang_that_has_a_wrapper_of_its_own() {
    for place in Place::all() {
        let path = std::env::var_os("PATH").unwrap();
        let folders = std::iter::once(place.path("offload")).chain(std::env::split_paths(&path));
        let mut command = place.clang(&[OPENMP[0], OPENMP[1], "saxpy.c", "-###"]);
        let output = command
            .env("PATH", std::env::join_paths(folders).unwrap())
            .output()
            .unwrap();
        succeeded(&output);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("clang-linker-wrapper\""), "{said}");
        assert!(!said.contains(&place.folder()), "{said}");
    }
}

#[test]
fn replaces_it_in_cmake() {
    let Some(cmake) = tool("cmake", &["cmake"]) else {
        return;
    };
    for place in Place::all() {
        let guide = include_str!("../../docs/replace-clang-linker-wrapper.md");
        let lists = guide.split("```cmake\n").nth(1).unwrap();
        let lists = lists.split("```").next().unwrap();
        fs::write(place.path("CMakeLists.txt"), lists).unwrap();
        // CMake compiles a program with `omp.h`; that of the runtime which is linked will do.
        for release in ["19", place.release] {
            let header = format!("clang/{release}/include/omp.h");
            let _ = fs::copy(place.libraries.join(header), place.path("omp.h"));
        }
        let flags = format!("-B{} -I{}", place.folder(), place.dir.root().display());
        let libraries = place.libraries.display();
        let configure = place
            .command(&cmake)
            .args(["-S", ".", "-B", "build"])
            .arg(format!("-DCMAKE_C_COMPILER={}", place.clang.display()))
            .arg(format!(
                "-DCMAKE_CXX_COMPILER={}",
                place.clang.with_file_name("clang++").display()
            ))
            .arg(format!("-DCMAKE_C_FLAGS={flags}"))
            .arg(format!("-DCMAKE_CXX_FLAGS={flags}"))
            // Where the runtime is no part of the compiler's own installation.
            .arg(format!(
                "-DCMAKE_EXE_LINKER_FLAGS=-L{libraries} {WITHOUT_LIBLLVM}"
            ))
            .arg(format!("-DOpenMP_omp_LIBRARY={libraries}/libomp.so"))
            .output()
            .unwrap();
        succeeded(&configure);
        place.links(
            "build/saxpy",
            place.command(&cmake).args(["--build", "build"]),
        );
        fs::remove_dir_all(place.path("build")).unwrap();
    }
}

#[test]
fn is_what_clang_starts_for_hip_and_cuda() {
    for place in Place::all() {
        fs::write(place.path("kernels.hip"), "").unwrap();
        let folder = place.folder();
        let wrapper = format!("\"{folder}/clang-linker-wrapper\"");
        for (language, processor) in [("hip", "gfx90a"), ("cuda", "sm_70")] {
            let processor = format!("--offload-arch={processor}");
            let line = [
                "-###",
                "-B",
                &folder,
                "--offload-new-driver",
                &processor,
                "-fgpu-rdc",
                "-nogpulib",
                "-nogpuinc",
                "-x",
                language,
                "kernels.hip",
            ];
            let output = place.command(&place.clang).args(line).output().unwrap();
            let last = String::from_utf8_lossy(&output.stderr)
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned();
            assert!(
                last.trim().starts_with(&wrapper),
                "{} {language}: {last}",
                place.release
            );
        }
        fs::write(place.path("kernels.o"), "").unwrap();
        let line = ["-###", "-B", &folder, "--offload-link", "kernels.o"];
        let output = place.command(&place.clang).args(line).output().unwrap();
        let last = String::from_utf8_lossy(&output.stderr)
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        assert!(
            last.trim().starts_with(&wrapper),
            "{}: {last}",
            place.release
        );
    }
}

/// A kernel of HIP that needs no header.
const KERNEL: &str = "
struct dim3 { unsigned x, y, z; };
extern \"C\" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
extern \"C\" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void *);
__attribute__((global)) void k(int *p) { *p = *p + 1; }
";

/// Links for the bundler and the packager show no release; the clang that starts them does.
#[test]
fn writes_what_the_tools_of_that_clang_write() {
    for place in Place::all() {
        for (name, tool) in [
            ("clang-offload-bundler", BUNDLER),
            ("clang-offload-packager", PACKAGER),
            ("llvm-offload-binary", PACKAGER),
        ] {
            symlink(tool, place.path("offload").join(name)).unwrap();
        }
        fs::write(place.path("k.hip"), KERNEL).unwrap();
        let folder = place.folder();
        let compile = |options: &[&str], own: &[&str]| {
            let line = "-x hip --offload-arch=gfx90a --offload-arch=gfx906 -nogpuinc -nogpulib -fuse-cuid=none -c k.hip -o k.o";
            let mut command = place.command(&place.clang);
            command.args(line.split(' ')).args(options).args(own);
            let output = command.output().unwrap();
            succeeded(&output);
            let messages = String::from_utf8_lossy(&output.stderr).into_owned();
            (fs::read(place.path("k.o")).unwrap(), messages)
        };
        for options in [
            &["--no-offload-new-driver"][..],
            &["--no-offload-new-driver", "-fgpu-rdc"],
            &["--offload-new-driver", "-fgpu-rdc"],
        ] {
            let (theirs, silence) = compile(options, &[]);
            let (ours, messages) = compile(options, &["-B", &folder]);
            assert_eq!(messages, silence, "{} {options:?}", place.release);
            assert!(ours == theirs, "{} {options:?}", place.release);
        }
    }
}

#[test]
fn says_what_it_did_where_asked() {
    for place in Place::all() {
        let folder = place.folder();
        let line = [
            "-B", &folder, OPENMP[0], OPENMP[1], "saxpy.c", "-o", "saxpy",
        ];
        let report = place
            .clang(&line)
            .arg("-Wl,--report=text")
            .output()
            .unwrap();
        succeeded(&report);
        let said = String::from_utf8_lossy(&report.stderr).into_owned();
        assert!(said.contains(": linked for x86_64-pc-linux-gnu"), "{said}");
        let verbose = place
            .clang(&line)
            .arg("-Wl,--wrapper-verbose")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&verbose.stderr).into_owned();
        assert!(
            said.contains("--target=x86_64-pc-linux-gnu") && said.contains(" -o saxpy "),
            "{said}"
        );
        let temporaries = place.clang(&line).arg("-Wl,--save-temps").output().unwrap();
        succeeded(&temporaries);
        assert!(fs::read_dir(place.dir.root()).unwrap().any(|file| {
            let name = file.unwrap().file_name();
            name.to_string_lossy()
                .starts_with("saxpy.openmp.image.wrapper")
        }));
    }
}

#[test]
fn is_the_linker_that_clang_looks_for_as_offload() {
    for place in Place::all() {
        symlink(TOOL, place.path("offload/ld.offload")).unwrap();
        fs::write(place.path("plain.c"), "int main(void) { return 0; }").unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let folders = std::iter::once(place.path("offload")).chain(std::env::split_paths(&path));
        let output = place
            .clang(&["-fuse-ld=offload", "plain.c", "-o", "plain"])
            .env("PATH", std::env::join_paths(folders).unwrap())
            .output()
            .unwrap();
        succeeded(&output);
        succeeded(&place.command(place.path("plain")).output().unwrap());
    }
}
