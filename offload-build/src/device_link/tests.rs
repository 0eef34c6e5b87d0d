use super::*;
use offload_build_core::installed::device_tools::DeviceTools;
use offload_build_core::installed::llvm::Llvm;
use offload_build_core::process::search::Search;
use offload_formats::names::{OffloadKind, Triple};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;

/// A folder that looks like an LLVM installation and a CUDA tree, as far as looking goes.
struct Tree(PathBuf);

const FILES: [&str; 8] = [
    "bin/clang",
    "bin/llvm-link",
    "bin/ld.lld",
    "bin/clang-sycl-linker",
    "bin/ptxas",
    "bin/nvlink",
    "lib/libomptarget-amdgpu-gfx90a.bc",
    "lib/libomptarget-nvptx-sm_80.bc",
];

impl Tree {
    fn new(name: &str, more: &[&str]) -> Self {
        let folder = format!("offload-link-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        for file in FILES.iter().chain(more) {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        Self(folder)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A job and how it is linked.
struct Case<'a> {
    name: &'a str,
    way: Way,
    /// True if there is a clang.
    llvm: bool,
    /// The folder of headers of clang's release.
    release: &'a str,
    helper: bool,
    /// A file of the installation that is not there.
    without: &'a str,
    /// More files of the installation.
    more: &'a [&'a str],
    triple: &'a str,
    processor: &'a str,
    kind: OffloadKind,
    inputs: &'a [&'a str],
    compiler_args: &'a [&'a str],
    linker_args: &'a [&'a str],
    options: LinkOptions<'a>,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            name: "",
            way: Way::Own,
            llvm: true,
            release: "22",
            helper: false,
            without: "",
            more: &[],
            triple: "",
            processor: "",
            kind: OffloadKind::OPENMP,
            inputs: &[],
            compiler_args: &["-g"],
            linker_args: &["-x"],
            options: LinkOptions::default(),
        }
    }
}

impl Case<'_> {
    fn plan(&self) -> Result<PlannedLink, String> {
        let headers = format!("lib/clang/{}/include/x.h", self.release);
        let mut more = vec![headers.as_str()];
        let helper = self.helper || self.way == Way::Llvm;
        more.extend(helper.then_some("bin/clang-nvlink-wrapper"));
        more.extend(self.more);
        let tree = Tree::new(self.name, &more);
        let folder = &tree.0;
        if !self.without.is_empty() {
            fs::remove_file(folder.join(self.without)).unwrap();
        }
        let llvm = Llvm::within(folder.clone(), folder.join("bin/clang"));
        let search = Search {
            path: OsString::new(),
            cuda: vec![folder.clone()],
        };
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let input = |name: &&str| match name.rsplit('.').next() {
            Some("bc") => DeviceInput::Bitcode(name.into()),
            Some("s") => DeviceInput::Ptx(name.into()),
            Some("img") => DeviceInput::Linked(name.into()),
            _ => DeviceInput::Object(name.into()),
        };
        let job = LinkJob {
            triple: Triple::parse(self.triple).unwrap(),
            processor: self.processor.to_owned(),
            kinds: vec![self.kind],
            uses_openmp_runtime: self.kind == OffloadKind::OPENMP,
            inputs: self.inputs.iter().map(input).collect(),
        };
        let linker = DeviceLinker {
            tools: &DeviceTools::find(self.llvm.then_some(&llvm), &search, &job.target(), None),
            cc: Path::new("cc"),
            way: self.way,
            opt_level: "3",
            host_libraries: &["-lomp".into()],
            compiler_args: &words(self.compiler_args),
            linker_args: &words(self.linker_args),
            options: self.options,
        };
        let shown = |text: String| {
            text.replace(&format!("{}/", folder.display()), "")
                .replace(&folder.display().to_string(), ".")
        };
        linker
            .plan(&job, Path::new("k.img"))
            .map(|mut plan| {
                for command in &mut plan.commands {
                    let args = command.arguments().iter();
                    let args: Vec<String> = args
                        .map(|arg| shown(arg.to_str().unwrap().to_owned()))
                        .collect();
                    let program = shown(command.program().display().to_string());
                    *command = Command::new(program).args(args);
                }
                plan
            })
            .map_err(|error| shown(error.to_string()))
    }

    /// The commands, with the folder's name left out.
    fn lines(&self) -> Vec<String> {
        let plan = self.plan().unwrap();
        plan.commands.iter().map(ToString::to_string).collect()
    }
}

const AMD: &str = "amdgcn-amd-amdhsa";
const NVIDIA: &str = "nvptx64-nvidia-cuda";
const X86: &str = "x86_64-pc-linux-gnu";
const RUNTIME: &str = "-Xclang -mllvm -Xclang -openmp-opt-disable-spmdization \
     -Xclang -mllvm -Xclang -openmp-opt-disable-state-machine-rewrite \
     -Xclang -mlink-builtin-bitcode -Xclang lib/libomptarget";

#[test]
fn plans_a_shared_object_for_a_cpu() {
    let cpu =
        "--target=x86_64-pc-linux-gnu -shared -fPIC -Wl,-Bsymbolic -Wl,--no-undefined -o k.img";
    let case = |name, llvm, inputs: &[&str]| {
        let lines = Case {
            name,
            llvm,
            inputs,
            triple: X86,
            ..Case::default()
        };
        lines.lines()
    };
    assert_eq!(
        case("cpu", true, &["a.o", "b.o"]),
        [format!(
            "bin/clang --no-default-config {cpu} a.o b.o -g -Xlinker -x -lomp"
        )]
    );
    assert_eq!(
        case("mixed", true, &["a.o", "b.bc"]),
        [format!(
            "bin/clang --no-default-config {cpu} a.o -O3 -x ir b.bc -g -Xlinker -x -x none -lomp"
        )]
    );
    assert_eq!(
        case("cpu-no-clang", false, &["a.o"]),
        ["cc -shared -fPIC -Wl,-Bsymbolic -Wl,--no-undefined -o k.img a.o -g -Xlinker -x -lomp"]
    );
}

#[test]
fn plans_lld_for_a_cpu_that_has_no_linker_here() {
    let case = Case {
        name: "foreign",
        triple: "riscv64-unknown-linux-gnu",
        inputs: &["a.o"],
        compiler_args: &["--sysroot=/riscv"],
        linker_args: &[],
        ..Case::default()
    };
    assert_eq!(
        case.lines(),
        [
            "bin/clang --no-default-config --target=riscv64-unknown-linux-gnu -fuse-ld=lld -shared -fPIC \
             -Wl,-Bsymbolic -Wl,--no-undefined -o k.img a.o --sysroot=/riscv -lomp"
        ]
    );
    let start = "bin/clang --no-default-config -o k.img --target=riscv64-unknown-linux-gnu";
    let rest = "-Wl,-Bsymbolic -shared -lomp --sysroot=/riscv";
    let llvm = Case {
        name: "foreign-22",
        way: Way::Llvm,
        ..case
    };
    assert_eq!(
        llvm.lines(),
        [format!(
            "{start} -fuse-ld=lld -Wl,--no-undefined a.o {rest}"
        )]
    );
    let bitcode = Case {
        name: "foreign-bitcode",
        inputs: &["a.bc"],
        ..llvm
    };
    assert_eq!(
        bitcode.lines(),
        [format!(
            "{start} -flto -fuse-ld=lld -Wl,--no-undefined a.bc {rest}"
        )]
    );
}

#[test]
fn plans_one_module_with_the_device_runtime_for_openmp_on_amd() {
    let case = Case {
        name: "amd",
        triple: AMD,
        processor: "gfx90a:xnack-",
        inputs: &["a.bc", "b.bc"],
        ..Case::default()
    };
    let link = "bin/clang --no-default-config --target=amdgcn-amd-amdhsa -mcpu=gfx90a:xnack- -nogpulib -o k.img";
    assert_eq!(
        case.lines(),
        [
            "bin/llvm-link -o k.merged.bc a.bc b.bc".to_owned(),
            format!(
                "{link} -Wl,--no-undefined -ffunction-sections -Wl,--gc-sections {RUNTIME}-amdgpu-gfx90a.bc -O3 -x ir k.merged.bc -g -Xlinker -x"
            ),
        ]
    );
    // One file for all processors, from LLVM 21 on in a folder of its own.
    let of_vendor = Case {
        name: "amd-vendor",
        without: "lib/libomptarget-amdgpu-gfx90a.bc",
        more: &["lib/amdgcn-amd-amdhsa/libomptarget-amdgpu.bc"],
        ..case
    };
    let runtime = RUNTIME.replace("lib/", "lib/amdgcn-amd-amdhsa/");
    let lines = of_vendor.lines();
    assert!(
        lines[1].contains(&format!("{runtime}-amdgpu.bc ")),
        "{lines:?}"
    );
    // Named already: the driver of LLVM 22 does.
    let given = Case {
        name: "amd-given",
        linker_args: &["-lompdevice"],
        inputs: &["a.bc"],
        ..case
    };
    assert_eq!(
        given.lines(),
        [format!(
            "{link} -Wl,--no-undefined -ffunction-sections -Wl,--gc-sections -O3 -x ir a.bc -g -Xlinker -lompdevice"
        )]
    );
}

#[test]
fn plans_no_openmp_for_hip() {
    let case = Case {
        name: "hip",
        triple: AMD,
        processor: "gfx942",
        kind: OffloadKind::HIP,
        inputs: &["a.o", "b.o"],
        linker_args: &[],
        ..Case::default()
    };
    // As `clang-linker-wrapper-22 --dry-run --device-compiler=-g` prints it, less `-flto`.
    let line = "bin/clang --no-default-config -o k.img --target=amdgcn-amd-amdhsa -mcpu=gfx942 \
                -Wl,--no-undefined a.o b.o -g";
    assert_eq!(case.lines(), [line]);
    let bitcode = Case {
        name: "hip-bitcode",
        inputs: &["a.bc", "b.o"],
        ..case
    };
    assert_eq!(
        bitcode.lines(),
        [line
            .replace("gfx942 ", "gfx942 -O3 -flto ")
            .replace("a.o", "a.bc")]
    );
}

/// LLVM's libraries for GPUs join OpenMP's images alone, and those of the target's triple.
#[test]
fn links_the_c_library_for_gpus() {
    let case = Case {
        name: "libc",
        triple: NVIDIA,
        processor: "sm_80",
        inputs: &["a.bc", "b.bc"],
        more: &[
            "lib/nvptx64-nvidia-cuda/libc.a",
            "lib/nvptx64-nvidia-cuda/libm.a",
            "lib/amdgcn-amd-amdhsa/libc.a",
        ],
        ..Case::default()
    };
    let lines = case.lines();
    let folder = "lib/nvptx64-nvidia-cuda";
    let expected = [
        "bin/llvm-link -o k.merged.bc a.bc b.bc".to_owned(),
        format!(
            "bin/llvm-link -o k.libc.bc --only-needed k.merged.bc {folder}/libm.a {folder}/libc.a"
        ),
    ];
    assert_eq!(lines[..2], expected);
    assert!(lines[2].contains(" -x ir k.libc.bc "), "{}", lines[2]);
    let amd = Case {
        name: "libc-amd",
        triple: "amdgcn-amd-amdhsa",
        processor: "gfx90a",
        inputs: &["a.bc"],
        ..case
    };
    assert_eq!(
        amd.lines()[0],
        "bin/llvm-link -o k.libc.bc --only-needed a.bc lib/amdgcn-amd-amdhsa/libc.a"
    );
    let cuda = Case {
        name: "libc-cuda",
        kind: OffloadKind::CUDA,
        triple: NVIDIA,
        processor: "sm_80",
        inputs: &["a.bc"],
        ..amd
    };
    assert!(cuda.lines().iter().all(|line| !line.contains("libc")));
}

#[test]
fn plans_an_assembly_for_nvidia() {
    let target = "--target=nvptx64-nvidia-cuda -march=sm_80 -nogpulib";
    let compile = format!(
        "bin/clang --no-default-config {target} -S --cuda-path=/nonexistent -Xclang -target-feature -Xclang +ptx78"
    );
    let case = Case {
        name: "nvidia",
        helper: true,
        triple: NVIDIA,
        processor: "sm_80",
        inputs: &["a.bc"],
        ..Case::default()
    };
    assert_eq!(
        case.lines(),
        [
            format!("{compile} {RUNTIME}-nvptx-sm_80.bc -o k.s -O3 -x ir a.bc -g"),
            "bin/ptxas -m64 -O3 -arch sm_80 k.s -o k.img".to_owned(),
        ]
    );
    let cuda = Case {
        name: "cuda",
        helper: false,
        kind: OffloadKind::CUDA,
        inputs: &["a.bc", "b.s", "c.cubin"],
        compiler_args: &["-Xcuda-ptxas", "-v", "--cuda-path=/c", "-DX"],
        ..case
    };
    assert_eq!(
        cuda.lines(),
        [
            format!("{compile} -o k.s -O3 -x ir a.bc -DX"),
            "bin/ptxas -m64 -O3 -arch sm_80 k.s -o k.0.cubin -c -v".to_owned(),
            "bin/ptxas -m64 -O3 -arch sm_80 b.s -o k.1.cubin -c -v".to_owned(),
            "bin/nvlink -arch sm_80 -o k.img c.cubin k.0.cubin k.1.cubin -x".to_owned(),
        ]
    );
    let helped = Case {
        name: "cuda-helped",
        helper: true,
        inputs: &["a.bc", "c.cubin"],
        compiler_args: &[],
        ..cuda
    };
    // As `clang-linker-wrapper-22 --dry-run --device-linker=-x` prints it, and the level.
    assert_eq!(
        helped.lines(),
        [
            "bin/clang --no-default-config -o k.img --target=nvptx64-nvidia-cuda -march=sm_80 -O3 a.bc c.cubin \
             -Xlinker -x"
        ]
    );
    let ptx = Case {
        name: "ptx",
        inputs: &["b.s"],
        ..helped
    };
    assert_eq!(ptx.lines(), ["bin/ptxas -m64 -O3 -arch sm_80 b.s -o k.img"]);
    let complete = Case {
        name: "complete",
        inputs: &["c.img"],
        ..ptx
    };
    let plan = complete.plan().unwrap();
    assert_eq!((plan.commands.len(), plan.output), (0, "c.img".into()));
    assert_eq!(plan.kind, ImageKind::CUBIN);
}

/// Every option, as the wrapper hands them on.
fn all_options<'a>(words: &'a [OsString], files: &'a [PathBuf]) -> LinkOptions<'a> {
    LinkOptions {
        has_device_libraries: false,
        has_optimized_bitcode: false,
        plugin_options: words,
        mllvm: words.get(..1).unwrap(),
        save_temps: true,
        embed_bitcode: false,
        no_lto: false,
        verbose: true,
        builtin_bitcode: files,
        cuda: Some(Path::new("/cuda")),
        executable: OsStr::new("out/a.out"),
        host_is_lld: true,
        dry_run: false,
    }
}

#[test]
fn plans_the_lines_of_llvm_22() {
    let words = ["-amdgpu-dump-hsa-metadata", "-amdgpu-enable-delay-alu"].map(OsString::from);
    let options = LinkOptions {
        embed_bitcode: true,
        ..all_options(&words, &[])
    };
    let case = Case {
        name: "all-22",
        way: Way::Llvm,
        triple: AMD,
        processor: "gfx90a",
        inputs: &["a.o"],
        compiler_args: &["-O3"],
        linker_args: &["foo=bar", "baz"],
        options,
        ..Case::default()
    };
    // Printed by clang-linker-wrapper 22.1.8 with `-mllvm -amdgpu-dump-hsa-metadata --save-temps --embed-bitcode
    // --device-linker=foo=bar --device-linker=baz --device-compiler=-O3 --offload-opt=-amdgpu-enable-delay-alu
    // --dry-run -o out/a.out --linker-path=ld.lld`.
    let plugin = "-Xlinker --plugin-opt=-amdgpu-dump-hsa-metadata -Xlinker --plugin-opt=-amdgpu-enable-delay-alu";
    let mllvm = "-Xlinker -mllvm=-amdgpu-dump-hsa-metadata";
    let rest = "-Wl,--lto-emit-llvm";
    let start = "bin/clang --no-default-config -o k.img -dumpdir out/a.out";
    let args = "-Xlinker foo=bar -Xlinker baz -O3";
    assert_eq!(
        case.lines(),
        [format!(
            "{start}.amdgcn.gfx90a.img. --target=amdgcn-amd-amdhsa -mcpu=gfx90a -flto {plugin} \
             -Wl,--no-undefined a.o {mllvm} -Wl,--save-temps {rest} {args}"
        )]
    );
    assert_eq!(case.plan().unwrap().kind, ImageKind::BITCODE);
    let nvidia = Case {
        name: "nvidia-22",
        triple: NVIDIA,
        processor: "sm_80",
        ..case
    };
    // And with the CUDA tree, which LLVM's leaves to the driver.
    assert_eq!(
        nvidia.lines(),
        [format!(
            "{start}.nvptx64.sm_80.img. --target=nvptx64-nvidia-cuda -march=sm_80 {plugin} a.o {mllvm} \
             -Wl,--save-temps {rest} --cuda-path=/cuda {args}"
        )]
    );
    let cpu = Case {
        name: "cpu-22",
        triple: X86,
        processor: "",
        ..nvidia
    };
    assert_eq!(
        cpu.lines(),
        [format!(
            "{start}.x86_64..img. --target=x86_64-pc-linux-gnu {plugin} -Wl,--no-undefined a.o -Wl,-Bsymbolic \
             -shared -lomp {mllvm} -Wl,--save-temps {rest} {args}"
        )]
    );
    // And with the folder of the linker that clang 22 finds in PATH only.
    let sycl = Case {
        name: "sycl-22",
        triple: "spirv64-unknown-unknown",
        kind: OffloadKind::SYCL,
        ..cpu
    };
    assert_eq!(
        sycl.lines(),
        [format!(
            "{start}.spirv64..img. --target=spirv64-unknown-unknown {plugin} a.o {mllvm} {rest} --sycl-link \
             -Xlinker -triple=spirv64-unknown-unknown -Xlinker -arch= -Bbin {args}"
        )]
    );
}

#[test]
fn plans_the_lines_of_llvm_19() {
    let words = ["-amdgpu-dump-hsa-metadata"].map(OsString::from);
    let files = [PathBuf::from("d.bc")];
    let case = Case {
        name: "all-19",
        way: Way::Llvm,
        release: "19",
        triple: AMD,
        processor: "gfx90a",
        inputs: &["a.o"],
        compiler_args: &["-O3", "-g", "-Xcuda-ptxas", "-w"],
        linker_args: &["baz"],
        options: all_options(&words, &files),
        ..Case::default()
    };
    // Printed by clang-linker-wrapper 19.1.7 with `-mllvm -amdgpu-dump-hsa-metadata --save-temps --opt-level=O3
    // --device-linker=amdgcn-amd-amdhsa=baz --device-debug --ptxas-arg=-w --cuda-path=/cuda --wrapper-verbose
    // --builtin-bitcode=amdgcn-amd-amdhsa=d.bc --dry-run`, where its own process made `a.o`.
    let common =
        "-mllvm -amdgpu-dump-hsa-metadata -g -save-temps -v --cuda-path=/cuda -Xcuda-ptxas -w baz";
    let builtin = "-Xclang -mlink-builtin-bitcode -Xclang d.bc -mllvm -openmp-opt-disable";
    assert_eq!(
        case.lines(),
        [format!(
            "bin/clang --no-default-config -o k.img --target=amdgcn-amd-amdhsa -mcpu=gfx90a -O3 \
             -Wl,--no-undefined a.o {common} {builtin}"
        )]
    );
    let cpu = Case {
        name: "cpu-19",
        triple: X86,
        processor: "",
        options: all_options(&words, &[]),
        ..case
    };
    assert_eq!(
        cpu.lines(),
        [format!(
            "bin/clang --no-default-config -o k.img --target=x86_64-pc-linux-gnu -march=native -O3 \
             -Wl,--no-undefined a.o -Wl,-Bsymbolic -shared -lomp {common}"
        )]
    );
    // Bitcode goes to the linker, which for NVIDIA needs no flag.
    let nvidia = Case {
        name: "nvidia-19",
        triple: NVIDIA,
        processor: "sm_70",
        inputs: &["a.bc"],
        compiler_args: &[],
        linker_args: &[],
        options: LinkOptions::default(),
        ..cpu
    };
    let line = "bin/clang --no-default-config -o k.img --target=";
    assert_eq!(
        nvidia.lines(),
        [format!("{line}nvptx64-nvidia-cuda -march=sm_70 -O3 a.bc")]
    );
    let amd = Case {
        name: "amd-19",
        triple: AMD,
        processor: "gfx90a",
        ..nvidia
    };
    assert_eq!(
        amd.lines(),
        [format!(
            "{line}amdgcn-amd-amdhsa -mcpu=gfx90a -O3 -flto -Wl,--no-undefined a.bc"
        )]
    );
}

/// clang compiles a file that is named `.bc`, and asks for device libraries then.
#[test]
fn gives_optimized_bitcode_to_amds_linker() {
    let case = Case {
        name: "optimized",
        triple: AMD,
        processor: "gfx90a",
        kind: OffloadKind::HIP,
        inputs: &["a.bc", "b.o", "c.bc"],
        compiler_args: &[],
        linker_args: &[],
        options: LinkOptions {
            has_device_libraries: true,
            has_optimized_bitcode: true,
            ..LinkOptions::default()
        },
        ..Case::default()
    };
    let start =
        "bin/clang --no-default-config -o k.img --target=amdgcn-amd-amdhsa -mcpu=gfx90a -O3 -flto";
    assert_eq!(
        case.lines(),
        [format!(
            "{start} -Wl,--no-undefined -Xlinker a.bc b.o -Xlinker c.bc"
        )]
    );
    let not_optimized = Case {
        options: LinkOptions {
            has_device_libraries: true,
            ..LinkOptions::default()
        },
        ..case
    };
    assert_eq!(
        not_optimized.lines(),
        [format!(
            "{start} -nogpulib -Wl,--no-undefined a.bc b.o c.bc"
        )]
    );
}

#[test]
fn plans_bitcode_for_a_runtime_that_compiles_it() {
    let case = Case {
        name: "embed",
        triple: AMD,
        processor: "gfx90a",
        inputs: &["a.bc", "b.bc"],
        options: LinkOptions {
            embed_bitcode: true,
            ..LinkOptions::default()
        },
        ..Case::default()
    };
    assert_eq!(case.lines(), ["bin/llvm-link -o k.img a.bc b.bc"]);
    assert_eq!(case.plan().unwrap().kind, ImageKind::BITCODE);
}

#[test]
fn plans_bitcode_compiled_by_itself() {
    let case = Case {
        name: "no-lto",
        way: Way::Llvm,
        triple: AMD,
        processor: "gfx90a",
        inputs: &["a.o", "b.bc", "c.bc"],
        compiler_args: &[],
        linker_args: &[],
        options: LinkOptions {
            no_lto: true,
            ..LinkOptions::default()
        },
        ..Case::default()
    };
    assert_eq!(
        case.lines(),
        [
            "bin/clang --no-default-config -o k.img --target=amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -Wl,--no-undefined \
             a.o -x ir b.bc c.bc -x none -fno-lto"
        ]
    );
}

#[test]
fn says_what_is_missing_where_it_was_searched_and_how_to_get_it() {
    let case = Case {
        name: "missing",
        triple: AMD,
        processor: "gfx906",
        inputs: &["a.bc"],
        ..Case::default()
    };
    assert_eq!(
        case.plan().unwrap_err(),
        "`libomptarget-amdgpu-gfx906.bc` not found (searched: lib, lib64, \
         lib/x86_64-unknown-linux-gnu, lib/x86_64-linux-gnu, lib/amdgcn-amd-amdhsa) [OFF606]\n\
         hint: this LLVM has OpenMP's device runtime for gfx90a; name one of these, or use another release"
    );
    let no_clang = Case {
        name: "no-clang",
        llvm: false,
        ..case
    };
    let error = no_clang.plan().unwrap_err();
    assert!(
        error.starts_with("`clang` not found (searched: PATH) [OFF605]\nhint: "),
        "{error}"
    );
    let intel = Case {
        name: "intel",
        llvm: true,
        triple: "spirv64-intel",
        ..no_clang
    };
    assert_eq!(
        intel.plan().unwrap_err(),
        "`spirv-link` not found (searched: PATH) [OFF605]\n\
         hint: install the tools of SPIR-V (Debian, Ubuntu: `apt install spirv-tools`; Fedora: `dnf install spirv-tools`; \
         Arch: `pacman -S spirv-tools`; conda-forge: `conda install spirv-tools`)"
    );
    // clang translates for AMD, and runs no linker of SPIR-V.
    let amd = Case {
        name: "amd-spirv",
        triple: "spirv64-amd-amdhsa",
        processor: "amdgcnspirv",
        kind: OffloadKind::HIP,
        ..intel
    };
    let error = amd.plan().unwrap_err();
    let start = "`llvm-spirv` not found (searched: clang's folder, PATH) [OFF605]\nhint: install ";
    assert!(
        error.starts_with(start) && error.contains("`apt install llvm-spirv-22`"),
        "{error}"
    );
    for name in ["bin/llvm-spirv", "bin/llvm-spirv-22", "bin/amd-llvm-spirv"] {
        let found = Case {
            more: &[name],
            ..amd
        };
        assert!(found.plan().is_ok(), "{name}");
    }
    // Without the translator, clang's own back end.
    for (args, links) in [
        (&["-use-spirv-backend"][..], true),
        (&["-use-spirv-backend", "-no-use-spirv-backend"], false),
        (&["-no-use-spirv-backend", "-use-spirv-backend", "-g"], true),
    ] {
        let backend = Case {
            compiler_args: args,
            ..amd
        };
        assert_eq!(backend.plan().is_ok(), links, "{args:?}");
    }
}

#[test]
fn says_that_lld_is_missing_before_anything_runs() {
    let amd = Case {
        name: "no-lld",
        triple: AMD,
        processor: "gfx90a",
        inputs: &["a.bc"],
        without: "bin/ld.lld",
        ..Case::default()
    };
    let foreign = Case {
        name: "no-lld-foreign",
        triple: "riscv64-unknown-linux-gnu",
        processor: "",
        inputs: &["a.o"],
        compiler_args: &["--sysroot=/riscv"],
        ..amd
    };
    let hip = Case {
        name: "no-lld-hip",
        kind: OffloadKind::HIP,
        ..amd
    };
    for case in [&amd, &foreign, &hip] {
        assert_eq!(
            case.plan().unwrap_err(),
            "`ld.lld` not found (searched: bin) [OFF605]\n\
             hint: install lld of clang's release (Debian, Ubuntu: `apt install lld-22`; Fedora: `dnf install lld`; \
             Arch: `pacman -S lld`; conda-forge: `conda install lld`)",
            "{}",
            case.name
        );
    }
    let printed = Case {
        name: "no-lld-printed",
        options: LinkOptions {
            dry_run: true,
            ..LinkOptions::default()
        },
        ..amd
    };
    printed.plan().unwrap();
}
