//! The device links of `offload-link`: its command lines beside those of `clang-linker-wrapper`, and real links.

use crate::support as tools;

use super::release_folder::ReleaseFolder;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::read::elf::{ElfFile64, FileHeader};
use object::{Object, ObjectSymbol};
use offload_build::tools::cuda_fatbinary;
use offload_formats::container::fatbin::{FatbinImage, cuda_fatbin};
use offload_formats::format::pieces;
use offload_formats::names::LlvmRelease;
use tools::{run, tool};

const AMD: &str = "amdgcn-amd-amdhsa";
const NVIDIA: &str = "nvptx64-nvidia-cuda";
const X86: &str = "x86_64-unknown-linux-gnu";

/// A kernel that calls a function of the other file, and that file, which has a kernel too.
const SOURCES: [(&str, &str); 2] = [
    (
        "a",
        "__attribute__((device)) int twice(int);
         extern \"C\" __attribute__((global)) void first(int *p) { *p = twice(*p); }",
    ),
    (
        "b",
        "__attribute__((device)) int twice(int x) { return x + x; }
         extern \"C\" __attribute__((global)) void second(int *p) { *p = twice(*p) + 1; }",
    ),
];

/// A folder with the tools of a release, and ours.
struct Project(ReleaseFolder);

impl Deref for Project {
    type Target = ReleaseFolder;

    fn deref(&self) -> &ReleaseFolder {
        &self.0
    }
}

impl Project {
    fn new(release: u32) -> Option<Self> {
        let folder = ReleaseFolder::new(release)?;
        symlink(&folder.bin, folder.path("llvm")).unwrap();
        Some(Self(folder))
    }

    /// Makes a host object of images, each given as for `--image=` of the packager.
    fn embed(&self, name: &str, images: &[&str]) {
        self.0.embed(name, images, &[]);
    }

    /// Compiles the device code of a source of `SOURCES`.
    fn device(&self, language: &str, processor: &str, output: &str) {
        let (_, source) = SOURCES
            .iter()
            .find(|(name, _)| output.starts_with(name))
            .unwrap();
        self.write("device.cu", source);
        let processor = format!("--offload-arch={processor}");
        let libraries: &[&str] = match language {
            "hip" => &["-nogpuinc", "-nogpulib"],
            _ => &[
                "-nocudainc",
                "-nocudalib",
                "--cuda-path=/nonexistent",
                "--cuda-feature=+ptx78",
            ],
        };
        let shape = [
            "-O2",
            "-fgpu-rdc",
            "--offload-device-only",
            "-emit-llvm",
            "-c",
        ];
        run(self
            .llvm("clang++")
            .args(["-x", language, &processor])
            .args(shape)
            .args(libraries)
            .args(["device.cu", "-o", output]));
    }

    /// An ELF object for a device, which is never looked at: the lines are printed and not run.
    fn code(&self, name: &str) {
        self.write("code.c", "int code(void) { return 0; }\n");
        run(self.llvm("clang").args(["-c", "code.c", "-o", name]));
    }

    /// The device links that a tool prints, with the names of files that it chooses itself replaced.
    fn device_links(&self, tool: &Path, objects: &[&str], args: &[&str]) -> Vec<String> {
        let output = self
            .command(tool)
            .args([&format!("--host-triple={X86}"), "--dry-run"])
            .args(args)
            .args(objects)
            .args(["-o", "out/prog"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut lines: Vec<String> = said
            .lines()
            .filter(|line| line.contains(" --no-default-config "))
            .map(|line| self.normalized(line))
            .collect();
        assert!(!lines.is_empty(), "{}: {said}", tool.display());
        lines.sort();
        lines
    }

    fn normalized(&self, line: &str) -> String {
        let words = line.split_whitespace().map(|word| {
            let word = word.trim_matches('"');
            let name = word.rsplit('/').next().unwrap_or(word);
            let devices = [AMD, NVIDIA, X86, "spirv64-"];
            let is_temporary = devices.iter().any(|device| name.contains(device));
            match name {
                "clang" => "clang".to_owned(),
                _ if word.starts_with('-') => word.to_owned(),
                _ if name.ends_with(".img") => "IMAGE".to_owned(),
                _ if name.ends_with(".o") && is_temporary => "INPUT".to_owned(),
                _ => word.to_owned(),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Links with our tool under a name, with a host linker that does nothing; the linked images.
    fn link(&self, name: &str, objects: &[&str], change: impl Fn(&mut Command)) -> Vec<Vec<u8>> {
        self.link_by(&self.path("bin").join(name), objects, change)
    }

    /// The same with any tool.
    fn link_by(
        &self,
        tool: &Path,
        objects: &[&str],
        change: impl Fn(&mut Command),
    ) -> Vec<Vec<u8>> {
        let name = tool.display();
        let mut command = self.command(tool);
        command
            .args(["--linker-path=/bin/true", "--save-temps", "-o", "prog"])
            .args(objects);
        change(&mut command);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
        let files = fs::read_dir(self.root()).unwrap();
        let mut images: Vec<PathBuf> = files
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension() == Some(OsStr::new("img")))
            .collect();
        images.sort();
        let bytes = images.iter().map(|path| fs::read(path).unwrap()).collect();
        images
            .iter()
            .for_each(|path| fs::remove_file(path).unwrap());
        bytes
    }
}

/// `e_machine` and the names of the symbols that an image defines for its runtime.
fn machine_and_symbols(image: &[u8]) -> (u16, Vec<String>) {
    let file = ElfFile64::<object::LittleEndian>::parse(image).unwrap();
    let machine = file.elf_header().e_machine(object::LittleEndian).0;
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let global = symbols.filter(|symbol| symbol.is_global() && symbol.is_definition());
    let mut names: Vec<String> = global
        .map(|symbol| symbol.name().unwrap().to_owned())
        .collect();
    // One for each source.
    names.retain(|name| !name.starts_with("__hip_cuid_"));
    names.sort();
    names.dedup();
    (machine, names)
}

/// What we add to LLVM's lines, left out.
fn as_llvm(lines: Vec<String>) -> Vec<String> {
    // LLVM 20 to 22 leave the tree to clang's driver (llvm/llvm-project issue 190979), and the linker of SYCL to PATH.
    let ours = |word: &&str| word.starts_with("--cuda-path=") || word.starts_with("-B/");
    let without = |line: String| {
        let words = line.split(' ').filter(|word| !ours(word));
        words.collect::<Vec<_>>().join(" ")
    };
    lines.into_iter().map(without).collect()
}

/// The image of a CPU, for `project.embed`.
fn cpu(arch: &str) -> String {
    format!("file=cpu.o,kind=openmp,triple={X86},arch={arch}")
}

/// A project with objects that have images of several kinds, and the option that names its CUDA tree.
fn with_images(release: u32) -> Option<(Project, String)> {
    let project = Project::new(release)?;
    for name in ["amd.o", "nvidia.o", "cpu.o"] {
        project.code(name);
    }
    let amd = |kind: &str, arch: &str| format!("file=amd.o,kind={kind},triple={AMD},arch={arch}");
    let nvidia =
        |kind: &str, arch: &str| format!("file=nvidia.o,kind={kind},triple={NVIDIA},arch={arch}");
    project.embed(
        "a.o",
        &[&amd("hip", "gfx90a:xnack+"), &amd("openmp", "gfx1100")],
    );
    project.embed(
        "b.o",
        &[&amd("hip", "gfx90a:xnack+"), &nvidia("cuda", "sm_70")],
    );
    project.embed(
        "c.o",
        &[&nvidia("openmp", "sm_70"), &nvidia("cuda", "sm_52")],
    );
    project.embed("e.o", &[&cpu("")]);
    run(project.command("ar").args(["rc", "libplain.a", "amd.o"]));
    let cuda = format!("--cuda-path={}", project.path("cuda").display());
    Some((project, cuda))
}

#[test]
fn prints_the_device_links_that_llvm_22_prints() {
    let Some((project, cuda)) = with_images(22) else {
        return;
    };
    project.embed("d.o", &[&cpu("generic")]);
    project.embed(
        "g.o",
        &["file=amd.o,kind=sycl,triple=spirv64-unknown-unknown,arch="],
    );
    run(project
        .llvm("clang")
        .args(["-shared", "amd.o", "-o", "libshared.so"]));

    let linkers = ["--linker-path=/usr/bin/ld", "--linker-path=/usr/bin/ld.lld"];
    let plain: &[&str] = &[];
    let options: &[&[&str]] = &[
        plain,
        &["--save-temps"],
        &["--embed-bitcode"],
        &[
            "--device-compiler=-g",
            "--device-compiler=amdgcn-amd-amdhsa=-O3",
        ],
        &[
            "--device-compiler=a=b=c",
            "--device-linker=amdgcn-amd-amdhsa",
        ],
        &[
            "--device-linker=foo=bar",
            "--device-linker=nvptx64-nvidia-cuda=b",
            "--device-linker=a",
        ],
        &[
            "--device-linker=amdgcn=q",
            "--device-linker=hexagon-foo=t",
            "--device-linker=riscv64=s",
        ],
        &[
            "--device-linker=x86_64-unknown-linux-gnu=r",
            "--device-linker=spirv64-unknown-unknown=s",
        ],
        &["-mllvm", "-amdgpu-dump-hsa-metadata"],
        &["--offload-opt=-amdgpu-dump-hsa-metadata"],
        &["-L.", "-L", "tmp", "-lplain", "libplain.a", "libshared.so"],
        &[
            "--whole-archive",
            "libplain.a",
            "--no-whole-archive",
            "--as-needed",
            "-lshared",
            "-L.",
        ],
        &["--device-compiler=-v"],
    ];
    let objects: &[&[&str]] = &[
        &["a.o", "b.o", "c.o"],
        &["d.o"],
        &["e.o"],
        &["g.o"],
        &["a.o", "a.o", "e.o"],
    ];
    let theirs = project.bin.join("clang-linker-wrapper");
    let ours = project.path("bin/clang-linker-wrapper");
    let mut compared = 0;
    for (first, objects) in objects.iter().enumerate() {
        for (number, options) in options.iter().enumerate() {
            // Each combination with one of the linkers, or with both.
            for linker in crate::support::share(linkers, (first + number) % 2, 2) {
                let args = [&[linker, &cuda][..], options].concat();
                let expected = project.device_links(&theirs, objects, &args);
                let found = project.device_links(&ours, objects, &args);
                assert_eq!(as_llvm(found), expected, "{objects:?} {args:?}");
                compared += expected.len();
            }
        }
    }
    assert!(compared > crate::support::cases(100, 200), "{compared}");
}

#[test]
fn prints_the_device_links_that_llvm_19_prints() {
    let Some((project, cuda)) = with_images(19) else {
        return;
    };
    let plain: &[&str] = &[];
    let options: &[&[&str]] = &[
        plain,
        &["--opt-level=O3", "--device-debug"],
        &["--opt-level=O0", "--ptxas-arg=-w", "--ptxas-arg=-x"],
        &[
            "--device-linker=foo=bar",
            "--device-linker=amdgcn-amd-amdhsa=baz",
            "--device-linker=a",
        ],
        &["-mllvm", "-amdgpu-dump-hsa-metadata"],
        &[
            "-L.",
            "-lplain",
            "libplain.a",
            "--whole-archive",
            "libplain.a",
            "--no-whole-archive",
        ],
        &["--wrapper-verbose"],
    ];
    let theirs = project.bin.join("clang-linker-wrapper");
    let ours = project.path("bin/clang-linker-wrapper");
    let objects: &[&[&str]] = &[&["a.o", "b.o", "c.o"], &["e.o"]];
    for objects in objects {
        for options in options {
            for cuda in [&[][..], &[cuda.as_str()]] {
                // Without a tree ours says that NVIDIA's tools are missing.
                if cuda.is_empty() && objects.len() > 1 {
                    continue;
                }
                let args = [&["--linker-path=/usr/bin/ld"], cuda, options].concat();
                let expected = project.device_links(&theirs, objects, &args);
                let found = project.device_links(&ours, objects, &args);
                assert_eq!(found, expected, "{objects:?} {args:?}");
            }
        }
    }
}

#[test]
fn links_hip_code_of_several_files_by_either_way() {
    for release in crate::support::share([19, 22], 1, 2) {
        let Some(project) = Project::new(release) else {
            return;
        };
        let kind = "hip";
        for object in ["a", "b"] {
            let mut images = Vec::new();
            for processor in ["gfx90a", "gfx942"] {
                let file = format!("{object}-{processor}.bc");
                project.device("hip", processor, &file);
                images.push(format!(
                    "file={file},kind={kind},triple={AMD},arch={processor}"
                ));
            }
            let images: Vec<&str> = images.iter().map(String::as_str).collect();
            project.embed(&format!("{object}.o"), &images);
        }
        for name in ["clang-linker-wrapper", "offload-ld"] {
            let images = project.link(name, &["a.o", "b.o"], |_| {});
            assert_eq!(images.len(), 2, "{release} {name}");
            for image in images {
                let (machine, symbols) = machine_and_symbols(&image);
                assert_eq!(machine, object::elf::EM_AMDGPU.0);
                assert_eq!(
                    symbols,
                    ["first", "first.kd", "second", "second.kd"],
                    "{release} {name}"
                );
            }
        }
    }
}

#[test]
fn makes_the_images_that_llvm_22_makes() {
    let Some(project) = Project::new(22) else {
        return;
    };
    for object in ["a", "b"] {
        let mut images = Vec::new();
        for processor in ["gfx90a", "gfx942"] {
            let file = format!("{object}-{processor}.bc");
            project.device("hip", processor, &file);
            images.push(format!(
                "file={file},kind=hip,triple={AMD},arch={processor}"
            ));
        }
        let images: Vec<&str> = images.iter().map(String::as_str).collect();
        project.embed(&format!("{object}.o"), &images);
    }
    let theirs = project.bin.join("clang-linker-wrapper");
    let ours = project.path("bin/clang-linker-wrapper");
    for options in [
        &[][..],
        &["--device-compiler=-O3"],
        &["--device-compiler=-O0"],
    ] {
        let images = [&theirs, &ours].map(|tool| {
            project.link_by(tool, &["a.o", "b.o"], |command| {
                command.args(options);
            })
        });
        assert_eq!(images[0].len(), 2);
        assert!(images[0] == images[1], "{options:?}");
    }
}

/// The first offload binary in a linked file.
fn offload_binary(file: &[u8]) -> &[u8] {
    let magic = [0x10, 0xff, 0x10, 0xad];
    let start = file.windows(4).position(|bytes| bytes == magic).unwrap();
    let size = file[start + 8..start + 16].try_into().unwrap();
    &file[start..start + u64::from_le_bytes(size) as usize]
}

#[test]
fn packs_the_images_of_cpus_as_llvm_does() {
    for release in crate::support::share([19, 22], 0, 2) {
        let Some(project) = Project::new(release) else {
            return;
        };
        project.write("device.c", "int device(void) { return 1; }\n");
        let compile = ["-fPIC", "-c", "device.c", "-o", "device.o"];
        run(project.llvm("clang").args(compile));
        for processor in ["", "generic"] {
            let image = format!("file=device.o,kind=openmp,triple={X86},arch={processor}");
            project.embed("a.o", &[&image]);
            let theirs = project.bin.join("clang-linker-wrapper");
            let ours = project.path("bin/clang-linker-wrapper");
            let programs = [theirs, ours].map(|tool| {
                let line = ["--linker-path=/usr/bin/ld", "-shared", "a.o", "-o", "out"];
                run(project.command(tool).args(line));
                fs::read(project.path("out")).unwrap()
            });
            let [theirs, ours] = programs.each_ref().map(|program| offload_binary(program));
            assert!(theirs == ours, "{release} {processor:?}");
        }
    }
}

#[test]
fn packs_the_images_of_override_image_as_llvm_does() {
    let targets = [
        &["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib"][..],
        &["--target=x86_64-linux-gnu"],
        &["--target=aarch64-linux-gnu"],
        &["--target=riscv64-linux-gnu"],
        &["--target=s390x-linux-gnu"],
        &["--target=i386-linux-gnu"],
    ];
    for release in crate::support::share([19, 22], 1, 2) {
        let Some(project) = Project::new(release) else {
            return;
        };
        project.write("device.c", "int device(void) { return 1; }\n");
        run(project
            .llvm("clang")
            .args(["-c", "device.c", "-o", "host.o"]));
        let theirs = project.bin.join("clang-linker-wrapper");
        let ours = project.path("bin/clang-linker-wrapper");
        for target in targets {
            let compile = ["-c", "device.c", "-o", "device.o"];
            run(project.llvm("clang").args(target).args(compile));
            let programs = [&theirs, &ours].map(|tool| {
                let image = "--override-image=openmp=device.o";
                let line = [
                    "--linker-path=/usr/bin/ld",
                    "-shared",
                    image,
                    "host.o",
                    "-o",
                    "out",
                ];
                run(project.command(tool).args(line));
                fs::read(project.path("out")).unwrap()
            });
            let [theirs, ours] = programs.each_ref().map(|program| offload_binary(program));
            assert!(theirs == ours, "{release} {target:?}");
        }
    }
}

/// A CUDA tree that is not Debian's nor the tests': by CUDA_PATH, else that of `nvlink`.
fn cuda() -> Option<PathBuf> {
    let given = std::env::var_os("CUDA_PATH").map(PathBuf::from);
    let given = given.filter(|root| root.join("bin/nvlink").is_file());
    given.or_else(|| Some(tool("cuda", &["nvlink"])?.parent()?.parent()?.to_owned()))
}

#[test]
fn links_cuda_code_of_several_files_by_either_way() {
    let Some(cuda) = cuda() else { return };
    let kernels = ["first", "second"];
    for release in crate::support::share([19, 22], 1, 2) {
        let Some(project) = Project::new(release) else {
            return;
        };
        for object in ["a", "b"] {
            let file = format!("{object}.bc");
            project.device("cuda", "sm_80", &file);
            let image = format!("file={file},kind=cuda,triple={NVIDIA},arch=sm_80");
            project.embed(&format!("{object}.o"), &[&image]);
        }
        // By clang and its helper, told by the option and by the variable.
        let option = format!("--cuda-path={}", cuda.display());
        let by_option = |command: &mut Command| {
            command.arg(&option);
        };
        let by_variable = |command: &mut Command| {
            command.env("CUDA_PATH", &cuda);
        };
        // By ptxas alone: a folder with what our own way needs of LLVM.
        for name in ["clang", "llvm-link"] {
            let body = format!("exec {}/{name} \"$@\"", project.bin.display());
            project.script(format!("small/bin/{name}"), &body);
        }
        let small = project.path("small/bin");
        symlink(small.join("clang"), small.join(format!("clang-{release}"))).unwrap();
        let alone = |command: &mut Command| {
            let path = [small.clone(), "/usr/bin".into(), "/bin".into()];
            let path = std::env::join_paths(path).unwrap();
            command.env("CUDA_PATH", &cuda).env("PATH", path);
        };
        let images = [
            project.link("clang-linker-wrapper", &["a.o", "b.o"], by_option),
            project.link("clang-linker-wrapper", &["a.o", "b.o"], by_variable),
            project.link("offload-ld", &["a.o", "b.o"], by_variable),
            project.link("offload-ld", &["a.o", "b.o"], alone),
        ];
        for image in images.iter().flatten() {
            let (machine, symbols) = machine_and_symbols(image);
            assert_eq!(machine, object::elf::EM_CUDA.0);
            for kernel in kernels {
                assert!(
                    symbols.iter().any(|symbol| symbol == kernel),
                    "{release}: {symbols:?}"
                );
            }
        }
        assert_eq!(images.map(|images| images.len()), [1; 4]);
    }
}

#[test]
fn writes_the_fat_binaries_that_nvidias_tool_writes() {
    let (Some(cuda), Some(project)) = (cuda(), Project::new(22)) else {
        return;
    };
    let tool = |name: &str| project.command(cuda.join("bin").join(name));
    let mut written = Vec::new();
    for processor in [
        "sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_100f", "sm_103a", "sm_120", "sm_121",
    ] {
        let ptx = format!(
            ".version 8.8\n.target {processor}\n.address_size 64\n.global .b32 data[7];\n\
             .visible .entry k() {{ st.global.b32 [data], 1; ret; }}\n"
        );
        project.write("k.ptx", &ptx);
        for (index, mode) in [&["-O3"][..], &["-c"], &["-g", "-O0"], &["-lineinfo"]]
            .iter()
            .enumerate()
        {
            let name = format!("{processor}-{index}.cubin");
            let assemble = tool("ptxas")
                .args(["-m64", "-arch", processor, "k.ptx", "-o", &name])
                .args(*mode)
                .output();
            // An older or newer CUDA has other processors.
            if assemble.unwrap().status.success() {
                written.push((processor, name));
            }
        }
    }
    assert!(written.len() >= 12, "{written:?}");
    let cubins: Vec<Vec<u8>> = written
        .iter()
        .map(|(_, name)| fs::read(project.path(name)).unwrap())
        .collect();
    let images: Vec<FatbinImage<'_>> = written
        .iter()
        .zip(&cubins)
        .map(|((processor, _), image)| FatbinImage {
            processor,
            image: &**image,
        })
        .collect();
    // Each alone, and all.
    let all = 0..images.len();
    for range in all.clone().map(|index| index..index + 1).chain([all]) {
        let files: Vec<(&str, PathBuf)> = written[range.clone()]
            .iter()
            .map(|(processor, name)| (*processor, project.path(name)))
            .collect();
        let files: Vec<(&str, &Path)> = files
            .iter()
            .map(|(processor, path)| (*processor, &**path))
            .collect();
        let output = project.path("theirs.fatbin");
        let program = cuda.join("bin/fatbinary");
        let command = cuda_fatbinary(&program, &files, &output, LlvmRelease::V22, 64);
        command.run().unwrap();
        let ours = cuda_fatbin(&images[range.clone()]).unwrap();
        let contents: Vec<&[u8]> = images[range].iter().map(|image| image.image).collect();
        let ours = pieces::to_bytes(&ours.pieces, &contents).unwrap();
        assert!(ours == fs::read(&output).unwrap(), "{files:?}");
        fs::write(project.path("ours.fatbin"), ours).unwrap();
    }
    let listed = run(tool("cuobjdump").args(["--list-elf", "ours.fatbin"]));
    assert_eq!(
        listed
            .lines()
            .filter(|line| line.starts_with("ELF file"))
            .count(),
        written.len()
    );
}

#[test]
fn links_ptx_and_cubins_together() {
    let (Some(cuda), Some(project)) = (cuda(), Project::new(22)) else {
        return;
    };
    let compile = |object: &str| {
        project.device("cuda", "sm_80", &format!("{object}.bc"));
        let target = ["--target=nvptx64-nvidia-cuda", "-march=sm_80", "-S"];
        run(project.llvm("clang").args(target).args([
            "--cuda-path=/nonexistent",
            "-nogpulib",
            "-Xclang",
            "-target-feature",
            "-Xclang",
            "+ptx78",
            "-O2",
            "-x",
            "ir",
            &format!("{object}.bc"),
            "-o",
            &format!("{object}.s"),
        ]));
    };
    compile("a");
    compile("b");
    let ptxas = cuda.join("bin/ptxas");
    run(project
        .command(&ptxas)
        .args(["-m64", "-arch", "sm_80", "-c", "b.s", "-o", "b.cubin"]));
    run(project
        .command(&ptxas)
        .args(["-m64", "-arch", "sm_80", "b.s", "-o", "whole.cubin"]));
    project.embed(
        "a.o",
        &[&format!("file=a.s,kind=cuda,triple={NVIDIA},arch=sm_80")],
    );
    project.embed(
        "b.o",
        &[&format!(
            "file=b.cubin,kind=cuda,triple={NVIDIA},arch=sm_80"
        )],
    );
    project.embed(
        "c.o",
        &[&format!(
            "file=whole.cubin,kind=cuda,triple={NVIDIA},arch=sm_80"
        )],
    );
    let with_cuda = |command: &mut Command| {
        command.env("CUDA_PATH", &cuda);
    };
    for name in ["clang-linker-wrapper", "offload-ld"] {
        let images = project.link(name, &["a.o", "b.o"], with_cuda);
        let (machine, symbols) = machine_and_symbols(&images[0]);
        assert_eq!(machine, object::elf::EM_CUDA.0, "{name}");
        for kernel in ["first", "second"] {
            assert!(
                symbols.iter().any(|symbol| symbol == kernel),
                "{name}: {symbols:?}"
            );
        }
    }
    // Complete already: no tool is run, and none is needed.
    let nothing = |command: &mut Command| {
        command.env("PATH", "/nonexistent");
        command.args(["--linker-path=/bin/true", "--report=text:report"]);
    };
    project.link("offload-ld", &["c.o"], nothing);
    let report = fs::read_to_string(project.path("report")).unwrap();
    assert!(
        report.contains(": linked for nvptx64-nvidia-cuda sm_80"),
        "{report}"
    );
}

#[test]
fn links_more_cubins_than_a_command_line_holds() {
    let (Some(cuda), Some(project)) = (cuda(), Project::new(22)) else {
        return;
    };
    let head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    let kernel = |name: &str| format!("{head}.visible .entry {name}() {{ ret; }}\n");
    let image = |file: &str| format!("file={file},kind=cuda,triple={NVIDIA},arch=sm_80");
    let names: Vec<String> = (0..40).map(|index| format!("k{index}")).collect();
    let mut images = Vec::new();
    for name in &names {
        project.write("k.ptx", kernel(name));
        let cubin = format!("{name}.cubin");
        let assemble = ["-c", "-arch", "sm_80", "k.ptx", "-o", &cubin];
        run(project.command(cuda.join("bin/ptxas")).args(assemble));
        images.push(image(&cubin));
    }
    let embed = |name: &str, images: &[String]| {
        let images: Vec<&str> = images.iter().map(String::as_str).collect();
        project.embed(name, &images);
    };
    embed("a.o", &images);
    project.write("ptx.ptx", kernel("ptx"));
    embed("b.o", &[image("ptx.ptx")]);
    // Names so long that the arguments are in a file.
    let deep = project.path(["d"; 12].map(|letter| letter.repeat(240)).join("/"));
    fs::create_dir_all(&deep).unwrap();
    for objects in [&["a.o"][..], &["a.o", "b.o"]] {
        let mut link = project.command(project.path("bin/offload-ld"));
        link.args(["--linker-path=/bin/true", "--save-temps"]);
        link.args(["--wrapper-verbose", "-o"])
            .arg(deep.join("prog"));
        let done = link.args(objects).env("CUDA_PATH", &cuda).output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.success(), "{objects:?}: {said}");
        let linked = || {
            let files = fs::read_dir(&deep).unwrap();
            let mut files = files.map(|file| file.unwrap().path());
            let image = files.find(|path| path.extension() == Some(OsStr::new("img")));
            let image = fs::read(image.unwrap()).unwrap();
            let (_, symbols) = machine_and_symbols(&image);
            names.iter().all(|name| symbols.contains(name))
        };
        assert!(linked(), "{objects:?}");
        // What is printed is the whole command, which can be repeated.
        let mut lines = said.lines();
        let line = lines.find(|line| line.contains("/nvlink ")).unwrap();
        assert!(line.len() > 100_000, "{line}");
        project.write("again.sh", line);
        run(project.command("sh").arg("again.sh"));
        assert!(linked(), "{objects:?}");
    }
}

#[test]
fn makes_bitcode_or_links_without_lto_where_that_is_asked_for() {
    for release in crate::support::share([19, 22], 0, 2) {
        let Some(project) = Project::new(release) else {
            return;
        };
        for object in ["a", "b"] {
            let file = format!("{object}.bc");
            project.device("hip", "gfx90a", &file);
            let image = format!("file={file},kind=hip,triple={AMD},arch=gfx90a");
            project.embed(&format!("{object}.o"), &[&image]);
        }
        for name in ["clang-linker-wrapper", "offload-ld"] {
            let [bitcode] = &project.link(name, &["a.o", "b.o"], |command| {
                command.arg("--embed-bitcode");
            })[..] else {
                panic!("{release} {name}");
            };
            assert_eq!(&bitcode[..4], b"BC\xc0\xde", "{release} {name}");
            fs::write(project.path("embedded"), bitcode).unwrap();
            let names = run(project
                .llvm("llvm-nm")
                .args(["--defined-only", "-j", "embedded"]));
            for kernel in ["first", "second"] {
                assert!(
                    names.lines().any(|line| line == kernel),
                    "{release} {name}: {names}"
                );
            }
            let images = project.link(name, &["a.o", "b.o"], |command| {
                command.arg("--no-lto");
            });
            let (_, symbols) = machine_and_symbols(&images[0]);
            for kernel in ["first.kd", "second.kd"] {
                assert!(
                    symbols.iter().any(|symbol| symbol == kernel),
                    "{release} {name}"
                );
            }
        }
    }
}

#[test]
fn takes_bitcode_that_the_command_line_names() {
    let target = format!("{AMD}=b.bc");
    for release in crate::support::share([19, 22], 1, 2) {
        let Some(project) = Project::new(release) else {
            return;
        };
        project.device("hip", "gfx90a", "a.bc");
        project.device("hip", "gfx90a", "b.bc");
        project.embed(
            "a.o",
            &[&format!("file=a.bc,kind=hip,triple={AMD},arch=gfx90a")],
        );
        let library = format!("--bitcode-library=hip-{AMD}-gfx90a=b.bc");
        let other = format!("--bitcode-library=hip-{AMD}-gfx942=absent.bc");
        let builtin = format!("--builtin-bitcode={target}");
        for name in ["clang-linker-wrapper", "offload-ld"] {
            // One more input: everything in it is there.
            let images = project.link(name, &["a.o"], |command| {
                command.args([&library, &other]);
            });
            let (_, symbols) = machine_and_symbols(&images[0]);
            assert_eq!(symbols, ["first", "first.kd", "second", "second.kd"]);
            // Of which is taken what is used, and hidden.
            let images = project.link(name, &["a.o"], |command| {
                command.arg(&builtin);
            });
            let (_, symbols) = machine_and_symbols(&images[0]);
            assert_eq!(symbols, ["first", "first.kd"], "{release} {name}");
        }
    }
}

#[test]
fn links_images_for_cpus_of_other_machines() {
    let Some(project) = Project::new(22) else {
        return;
    };
    project.write("code.c", "int code(void) { return 0; }\n");
    let machines = [
        ("aarch64-unknown-linux-gnu", object::elf::EM_AARCH64),
        ("riscv64-unknown-linux-gnu", object::elf::EM_RISCV),
        ("powerpc64le-unknown-linux-gnu", object::elf::EM_PPC64),
    ];
    for (triple, machine) in machines {
        for kind in [&["-O1"][..], &["-emit-llvm"]] {
            let target = format!("--target={triple}");
            let compile = project
                .llvm("clang")
                .args([&target, "-fPIC", "-c", "code.c"])
                .args(kind)
                .status();
            assert!(compile.unwrap().success());
            let output = match kind {
                ["-emit-llvm"] => "code.bc",
                _ => "code.o",
            };
            project.embed(
                "main.o",
                &[&format!("file={output},kind=openmp,triple={triple},arch=")],
            );
            for name in ["clang-linker-wrapper", "offload-ld"] {
                let images = project.link(name, &["main.o"], |_| {});
                let (found, symbols) = machine_and_symbols(&images[0]);
                assert_eq!(found, machine.0, "{name} {triple}");
                assert_eq!(symbols, ["code"], "{name} {triple}");
            }
        }
    }
}

#[test]
fn links_spirv_for_sycl_and_wraps_it_for_openmp() {
    let Some(project) = Project::new(22) else {
        return;
    };
    project.write(
        "k.ll",
        "target triple = \"spirv64-unknown-unknown\"\n\
         define spir_kernel void @first() #0 { ret void }\n\
         attributes #0 = { \"sycl-module-id\"=\"m\" }\n",
    );
    run(project.llvm("llvm-as").args(["k.ll", "-o", "k.bc"]));
    project.embed(
        "k.o",
        &["file=k.bc,kind=sycl,triple=spirv64-unknown-unknown,arch="],
    );
    // `spirv-link` in few words: the module is copied.
    let module = b"\x03\x02\x23\x07abcdefghijklm";
    fs::write(project.path("module"), module).unwrap();
    let copy = "while [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done";
    let module = project.path("module");
    let body = format!("{copy}\ncp {} \"$out\"", module.display());
    project.script("small/spirv-link", &body);
    project.embed("i.o", &["file=k.bc,kind=openmp,triple=spirv64-intel,arch="]);
    for name in ["clang-linker-wrapper", "offload-ld"] {
        // What clang's linker for SYCL makes is offload binaries.
        let images = project.link(name, &["k.o"], |_| {});
        assert_eq!(&images[0][..4], b"\x10\xff\x10\xad", "{name}");
        project.link(name, &["i.o"], |command| {
            let path = std::env::var_os("PATH").unwrap();
            let folders = [project.path("small")].into_iter();
            let folders = folders.chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(folders).unwrap());
        });
        // The bytes that LLVM's tool registers.
        let object = fs::read(project.path("prog.openmp.image.wrapper.o")).unwrap();
        let expected = include_bytes!("../golden/22.1.8/intel-openmp.elf");
        assert!(
            object
                .windows(expected.len())
                .any(|bytes| bytes == expected),
            "{name}"
        );
    }
}

/// A kernel of OpenMP as clang compiles it, with `-nogpulib`: the device runtime is missing.
#[test]
fn adds_the_device_runtime_of_openmp_only_where_it_is_called() {
    let Some(project) = Project::new(19) else {
        return;
    };
    let Some(runtime) = tool("omptarget19", &["libomptarget-amdgpu-gfx90a.bc"]) else {
        return;
    };
    project.write(
        "k.c",
        "int f(int *p) {\n#pragma omp target map(p[0:9])\nfor (int i = 0; i < 9; i++) p[i] += i;\nreturn 0; }\n",
    );
    let openmp = [
        "-fopenmp",
        "-fopenmp-targets=amdgcn-amd-amdhsa",
        "-Xopenmp-target=amdgcn-amd-amdhsa",
    ];
    let device = [
        "-march=gfx90a",
        "-O2",
        "-nogpulib",
        "-foffload-lto",
        "--offload-device-only",
        "-c",
        "k.c",
    ];
    run(project
        .llvm("clang")
        .args(openmp)
        .args(device)
        .args(["-o", "k.bc"]));
    project.embed(
        "k.o",
        &[&format!("file=k.bc,kind=openmp,triple={AMD},arch=gfx90a")],
    );
    let images = project.link("offload-ld", &["k.o"], |_| {});
    let (_, symbols) = machine_and_symbols(&images[0]);
    let kernel =
        |symbol: &String| symbol.starts_with("__omp_offloading_") && symbol.ends_with(".kd");
    assert!(symbols.iter().any(kernel), "{symbols:?}");

    let links = |args: &[&str]| {
        let args = [&["--linker-path=true"], args].concat();
        project
            .device_links(&project.path("bin/offload-ld"), &["k.o"], &args)
            .concat()
    };
    let builtin = runtime.display().to_string();
    assert!(links(&[]).contains(&builtin));
    // Named by the driver, as its own or as LLVM 19's wrapper is told.
    assert!(!links(&["--device-linker=amdgcn-amd-amdhsa=-lompdevice"]).contains(&builtin));
    let named = links(&["--builtin-bitcode=amdgcn-amd-amdhsa=/x.bc"]);
    assert!(named.contains("-mlink-builtin-bitcode -Xclang /x.bc") && !named.contains(&builtin));
    // The same code as text.
    run(project.llvm("llvm-dis").args(["k.bc", "-o", "k.ll"]));
    project.embed(
        "k.o",
        &[&format!("file=k.ll,kind=openmp,triple={AMD},arch=gfx90a")],
    );
    assert!(links(&[]).contains(&builtin));
    // The runtime is one of the inputs.
    let image = format!(
        "file={},kind=openmp,triple={AMD},arch=gfx90a",
        runtime.display()
    );
    project.embed(
        "k.o",
        &[
            &format!("file=k.bc,kind=openmp,triple={AMD},arch=gfx90a"),
            &image,
        ],
    );
    assert!(!links(&[]).contains(&builtin));
    // HIP never gets it.
    project.embed(
        "k.o",
        &[&format!("file=k.bc,kind=hip,triple={AMD},arch=gfx90a")],
    );
    assert!(!links(&[]).contains(&builtin));
}

/// Nobody knows the symbols that a text needs before it is compiled, or those of other formats.
#[test]
fn links_what_images_with_unknown_symbols_may_need() {
    let Some(project) = Project::new(22) else {
        return;
    };
    for name in ["a", "b"] {
        project.device("hip", "gfx90a", &format!("{name}.bc"));
    }
    run(project.llvm("llvm-dis").args(["a.bc", "-o", "a.ll"]));
    project.write("unknown", [0, 1, 2, 3]);
    project.write("empty", "");
    let targets = "-targets=host-x86_64-unknown-linux-gnu-,hip-amdgcn-amd-amdhsa--gfx90a";
    let bundle = ["-type=bc", targets, "-input=empty", "-input=b.bc"];
    run(project
        .llvm("clang-offload-bundler")
        .args(bundle)
        .arg("-output=bundle.bc"));
    let image = |file: &str, arch: &str| format!("file={file},kind=hip,triple={AMD},arch={arch}");
    project.embed("member.o", &[&image("b.bc", "gfx90a")]);
    project.write("index.c", "int other;\n");
    run(project.llvm("clang").args(["-c", "index.c"]));
    for (archive, members) in [
        ("libmember.a", &["member.o"][..]),
        // With a symbol index, which says that the host needs nothing.
        ("libbundle.a", &["index.o", "bundle.bc"]),
    ] {
        run(project.llvm("llvm-ar").args(["rcs", archive]).args(members));
    }
    for (file, archive) in [("a.ll", "libmember.a"), ("unknown", "libbundle.a")] {
        project.embed("first.o", &[&image(file, "gfx90a")]);
        let mut link = project.command(project.path("bin/offload-ld"));
        link.args(["--linker-path=true", "--dry-run", "--report=text:report"]);
        run(link.args(["first.o", archive, "-o", "prog"]));
        let report = fs::read_to_string(project.path("report")).unwrap();
        let line = report.lines().find(|line| line.starts_with(archive));
        assert!(
            line.is_some_and(|line| line.ends_with(": linked for amdgcn-amd-amdhsa gfx90a")),
            "{file}: {report}"
        );
    }
    // Assembly for any processor is assembled for that of the link.
    project.write(
        "a.s",
        ".amdgcn_target \"amdgcn-amd-amdhsa--gfx90a\"\n.text\n",
    );
    project.embed(
        "first.o",
        &[&image("b.bc", "gfx90a"), &image("a.s", "generic")],
    );
    let mut link = project.command(project.path("bin/offload-ld"));
    let plan = link.args(["--linker-path=true", "--dry-run", "first.o", "-o", "prog"]);
    let plan = plan.output().unwrap();
    let plan = String::from_utf8_lossy(&plan.stderr);
    let assembles = plan.lines().filter(|line| line.contains(".s "));
    let processors: Vec<&str> = assembles
        .flat_map(|line| line.split(' '))
        .filter(|word| word.starts_with("-mcpu="))
        .collect();
    assert_eq!(processors, ["-mcpu=gfx90a"], "{plan}");
}

/// LLVM's name for a linked image has the architecture only, which two triples may share.
#[test]
fn copies_the_libraries_of_two_triples_to_two_files() {
    let Some(project) = Project::new(22) else {
        return;
    };
    project.device("hip", "gfx90a", "b.bc");
    let pal = "amdgcn-amd-amdpal";
    let image = |triple: &str| format!("file=b.bc,kind=openmp,triple={triple},arch=gfx90a");
    project.embed("first.o", &[&image(AMD), &image(pal)]);
    let library = |triple: &str| format!("--bitcode-library=openmp-{triple}-gfx90a=b.bc");
    let mut link = project.command(project.path("bin/clang-linker-wrapper"));
    link.args([
        "--linker-path=true",
        "--dry-run",
        &format!("--host-triple={X86}"),
    ]);
    link.args([library(AMD), library(pal)]);
    let plan = link.args(["first.o", "-o", "prog"]).output().unwrap();
    assert!(plan.status.success(), "{plan:?}");
    let plan = String::from_utf8_lossy(&plan.stderr);
    let copies = plan.lines().filter(|line| line.contains("library-"));
    let files = copies.flat_map(|line| line.split_whitespace());
    let files = files.filter(|word| word.contains("library-"));
    let files: BTreeSet<&str> = files.map(|word| word.trim_matches('"')).collect();
    assert_eq!(files.len(), 2, "{plan}");
}

#[test]
fn takes_a_clang_that_reads_the_device_code() {
    let (Some(project), Some(old)) = (Project::new(22), tool("llvm19", &["clang"])) else {
        return;
    };
    project.device("hip", "gfx90a", "b.bc");
    project.embed(
        "b.o",
        &[&format!("file=b.bc,kind=hip,triple={AMD},arch=gfx90a")],
    );
    // The older one comes first in PATH, and stands beside the tool.
    let path = [old.parent().unwrap(), &project.bin, Path::new("/bin")];
    let path = std::env::join_paths(path).unwrap();
    fs::remove_file(project.path("bin/clang")).unwrap();
    symlink(&old, project.path("bin/clang")).unwrap();
    for name in ["clang-linker-wrapper", "offload-ld"] {
        let images = project.link(name, &["b.o"], |command| {
            command.env("PATH", &path);
        });
        let (machine, _) = machine_and_symbols(&images[0]);
        assert_eq!(machine, object::elf::EM_AMDGPU.0);
    }
}

/// A project whose tool has a program of ours beside it in the place of clang.
fn with_clang(body: &str) -> Option<Project> {
    let project = Project::new(22)?;
    for processor in ["gfx90a", "gfx942"] {
        project.device("hip", processor, &format!("b-{processor}.bc"));
    }
    let image =
        |processor: &str| format!("file=b-{processor}.bc,kind=hip,triple={AMD},arch={processor}");
    project.embed("b.o", &[&image("gfx90a"), &image("gfx942")]);
    let clang = project.path("bin/clang");
    let real = project.bin.join("clang").display().to_string();
    fs::remove_file(&clang).unwrap();
    project.script(&clang, &body.replace("REAL", &real));
    Some(project)
}

#[test]
fn gives_device_compilers_no_variables_of_host_compilers() {
    let Some(project) = with_clang("env > variables; exec REAL \"$@\"") else {
        return;
    };
    let hidden = [
        "COMPILER_PATH",
        "LIBRARY_PATH",
        "GCC_EXEC_PREFIX",
        "COLLECT_GCC",
        "COLLECT_GCC_OPTIONS",
        "COLLECT_LTO_WRAPPER",
    ];
    // `env` of the host linker, which is given them all.
    project.script("linker", "env > host");
    let libraries = "/opt/lib:/rust/lib/rustlib/x86_64-unknown-linux-gnu/lib";
    let status = project
        .command(project.path("bin/clang-linker-wrapper"))
        .args(["--linker-path=./linker", "b.o", "-o", "prog"])
        .envs(hidden.map(|name| (name, "/x")))
        .env("LD_LIBRARY_PATH", libraries)
        .status();
    assert!(status.unwrap().success());
    let lines = |name: &str| fs::read_to_string(project.path(name)).unwrap();
    let (device, host) = (lines("variables"), lines("host"));
    for name in hidden {
        let line = format!("{name}=/x");
        assert!(!device.lines().any(|found| found == line), "{name}");
        assert!(host.lines().any(|found| found == line), "{name}");
    }
    assert!(
        device
            .lines()
            .any(|line| line == "LD_LIBRARY_PATH=/opt/lib"),
        "{device}"
    );
    assert!(host.contains(libraries));
    assert!(
        device.lines().any(|line| line == "OFFLOAD_LINK_ACTIVE=1"),
        "{device}"
    );
}

#[test]
fn says_by_which_signal_a_device_compiler_ended() {
    let Some(project) = with_clang("kill -KILL $$") else {
        return;
    };
    let output = project
        .command(project.path("bin/clang-linker-wrapper"))
        .args(["--linker-path=true", "b.o", "-o", "prog"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    for processor in ["gfx90a", "gfx942"] {
        assert!(
            said.contains(&format!("device link for {AMD} {processor}: `")),
            "{said}"
        );
    }
    assert_eq!(
        said.matches("failed (signal: 9 (SIGKILL))\ncommand: ")
            .count(),
        2,
        "{said}"
    );
    let leftovers = fs::read_dir(project.path("tmp")).unwrap().count();
    assert_eq!(leftovers, 0);
}

#[test]
fn makes_the_same_images_with_any_number_of_jobs() {
    let Some(project) = with_clang("exec REAL \"$@\"") else {
        return;
    };
    let images = ["1", "2", "9", "jobserver", "JobServer"].map(|jobs| {
        project.link("clang-linker-wrapper", &["b.o"], |command| {
            command.arg(format!("--wrapper-jobs={jobs}"));
        })
    });
    assert_eq!(images[0].len(), 2);
    assert!(images.iter().all(|found| *found == images[0]));
}

#[test]
fn tells_of_every_link_that_failed() {
    let Some(project) = Project::new(22) else {
        return;
    };
    project.device("hip", "gfx90a", "a.bc");
    project.device("hip", "gfx942", "a2.bc");
    // Both call what nobody defines.
    let images = [
        &*format!("file=a.bc,kind=hip,triple={AMD},arch=gfx90a"),
        &*format!("file=a2.bc,kind=hip,triple={AMD},arch=gfx942"),
    ];
    project.embed("a.o", &images);
    for jobs in ["--wrapper-jobs=1", "--wrapper-jobs=2"] {
        let output = project
            .command(project.path("bin/offload-ld"))
            .args(["--linker-path=true", jobs, "a.o", "-o", "prog"])
            .output()
            .unwrap();
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        for processor in ["gfx90a", "gfx942"] {
            let link = format!("device link for {AMD} {processor}: `");
            assert_eq!(said.matches(&link).count(), 1, "{said}");
        }
        let failed = said
            .lines()
            .filter(|line| line.contains("` failed (exit status: 1)"));
        assert_eq!(failed.count(), 2, "{said}");
        assert!(
            said.contains("` failed (exit status: 1) [OFF810]\nld.lld: error: "),
            "{said}"
        );
        assert!(
            said.lines().last().unwrap().starts_with("command: "),
            "{said}"
        );
        assert_eq!(
            said.matches("error: undefined hidden symbol: twice(int)")
                .count(),
            2,
            "{said}"
        );
    }
}

#[test]
fn refuses_sycl_beside_other_kinds() {
    let Some(project) = Project::new(22) else {
        return;
    };
    fs::write(project.path("a.bc"), b"BC\xc0\xde").unwrap();
    let images = [
        &*format!("file=a.bc,kind=hip,triple={AMD},arch=gfx90a"),
        "file=a.bc,kind=sycl,triple=spirv64-unknown-unknown",
    ];
    project.embed("a.o", &images);
    let output = project
        .command(project.path("bin/offload-ld"))
        .args(["--linker-path=true", "--dry-run", "a.o", "-o", "prog"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.ends_with(" is not supported [OFF812]\n"), "{said}");
}
