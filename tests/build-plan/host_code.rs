//! Host code in modules of HIP and CUDA: what both sides call the same, whose names are whose, what Cargo is told, and
//! programs that start with the vendors' own runtimes. What a runtime is told by every kind of program is in
//! `registration_matrix.rs`.

use crate::support;

use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::launches::HEADER;
use support::package::{OUT, Package, link_options, text};

const HIP: &str = "language = \"hip\"\nhost = true\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\", \"gfx1100\"]\n";
const CUDA: &str = "language = \"cuda\"\nhost = true\nsources = [\"kernels/*.cu\"]\ntargets = [\"sm_80\", \"sm_90\"]\n";
pub(crate) const ALONE: &str = "flags = [\"-nogpulib\", \"-nogpuinc\"]\n";

const KERNELS: &str = r#"
#include "k.h"
__device__ int factor = 3;
static __device__ int hidden = 4;
/* Before the kernel: clang 19 and 22 give the variable one name there and another one here otherwise. */
static const int *peek() { return &hidden; }
template <class T> __global__ void scale(T *x) { *x *= factor; }
static __global__ void inner(int *x) { *x = hidden; }
__global__ void plain(int *x, float y) { *x = y; }
extern "C" int launch(int *x) {
  scale<<<1, 1>>>(x);
  inner<<<1, 1>>>(x);
  plain<<<1, 1>>>(x, 1);
  return peek() == 0;
}
"#;

pub(crate) fn package(extension: &str, keys: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.h", HEADER);
    package.put(&format!("kernels/k.{extension}"), KERNELS);
    package.declare(keys);
    Some(package)
}

/// The object in the library of the module.
fn module(package: &Package) -> Vec<u8> {
    fs::read(package.at(OUT).join("offload/kernels/module.o")).unwrap()
}

/// What others see of the library, without what is `unique` in its names.
fn defined(package: &Package) -> BTreeSet<String> {
    let files = package.files();
    let library = files.iter().find(|file| file.ends_with("_offload.a"));
    let library = fs::read(library.unwrap()).unwrap();
    let archive = object::read::archive::ArchiveFile::parse(&*library).unwrap();
    let members = archive.members();
    let member = members.into_iter().next().unwrap().unwrap();
    let object = object::File::parse(member.data(&*library).unwrap()).unwrap();
    let symbols = object.symbols();
    let seen = symbols.filter(|symbol| symbol.is_global() && !symbol.is_undefined());
    let names = seen.map(|symbol| symbol.name().unwrap().to_owned());
    let end = |name: &str| {
        name.find(".pack_kernels_")
            .map(|end| name[..end].to_owned() + "!")
    };
    names.map(|name| end(&name).unwrap_or(name)).collect()
}

/// A program of the generated file, linked as Cargo is told; nothing else knows the library's name.
pub(crate) fn program(package: &Package, told: &str, main: &str, libraries: &Path) -> PathBuf {
    let source = format!(
        "mod kernels {{ include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\")); }}\n\
         unsafe extern \"C\" {{ fn launch(x: *mut i32) -> i32; }}\n{main}\n"
    );
    package.put("main.rs", &source);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["-Dwarnings", "--edition=2024", "main.rs", "-o", "main"]);
    command
        .args(link_options(told))
        .env("OUT_DIR", package.at(OUT))
        .env("LIBRARY_PATH", libraries)
        .current_dir(package.folder.root());
    support::run(&mut command);
    package.at("main")
}

#[test]
fn calls_what_is_a_sources_own_the_same_on_both_sides() {
    let apart = format!("{HIP}rdc = false\n");
    let joined = format!("{HIP}rdc = true\n");
    let cuda = format!("{CUDA}rdc = true\n");
    for (number, release) in ["llvm16", "llvm19", "llvm22"].into_iter().enumerate() {
        let Some(clang) = support::tool(release, &["clang"]) else {
            return;
        };
        let modules = [(&joined, "hip"), (&apart, "hip"), (&cuda, "cu")];
        // Each release with one of them, or with all.
        for (keys, extension) in support::share(modules, number, 3) {
            let lacks_ptxas = || support::tool("cuda", &["ptxas"]).is_none();
            if extension == "cu" && lacks_ptxas() {
                continue;
            }
            let keys = keys.replace("\"sm_90\"", "\"sm_90\", \"compute_90\"");
            let Some(package) = package(extension, &format!("{keys}{ALONE}opt-level = 2\n")) else {
                return;
            };
            if *keys == apart {
                // Of its own as well, and of that name.
                package.put(
                    "kernels/other.hip",
                    &KERNELS
                        .replace("launch(", "start(")
                        .replace("factor", "other_factor")
                        .replace("plain", "other"),
                );
            }
            let mut script = package.script();
            // Debian's clang 16 may come without a linker of its release.
            let path =
                std::env::var("PATH").unwrap() + ":" + package.at("llvm/bin").to_str().unwrap();
            script.env("OFFLOAD_COMPILER", &clang).env("PATH", path);
            text(&script.output().unwrap());
            let file = fs::read_to_string(package.at(OUT).join("kernels.rs")).unwrap();
            let line = file
                .lines()
                .find(|line| line.starts_with("pub const KERNELS"));
            let own = match extension {
                "hip" => [".intern.", ".static."],
                _ => ["__intern__", "__static__"],
            };
            // The build checks that each image has each of them.
            for own in own {
                assert!(line.unwrap().contains(own), "{line:?}");
            }
            // `find_kernel` takes names as the source spells them.
            let spelled = |line: &&str| line.trim_start().starts_with("source_name: ");
            let spelled: Vec<_> = file.lines().filter(spelled).collect();
            let is_hashed = |line: &&str| line.contains("intern") || line.contains("\"_Z");
            assert!(
                !spelled.is_empty() && !spelled.iter().any(is_hashed),
                "{spelled:?}"
            );
        }
    }
}

#[test]
fn keeps_kernels_and_what_stands_for_them_to_itself() {
    let Some(package) = package("hip", &format!("{HIP}{ALONE}")) else {
        return;
    };
    package.builds();
    let names = defined(&package);
    let theirs = ["launch"].map(str::to_owned).into();
    let ours =
        |name: &&String| name.starts_with("pack_kernels_") || name.starts_with("__hip_cuid_");
    let others: BTreeSet<String> = names.iter().filter(|name| !ours(name)).cloned().collect();
    let own = others.iter().filter(|name| name.ends_with('!')).cloned();
    let own: BTreeSet<String> = own.collect();
    assert_eq!(&others - &own, theirs);
    // What clang 19 gives to others: a handle and a stub of each kernel, the variable, and the entries.
    for name in [
        "_Z5plainPif!",
        "_Z20__device_stub__plainPif!",
        "_Z5scaleIiEvPT_!",
        "_Z20__device_stub__scaleIiEvPT_!",
        "factor!",
        ".offloading.entry._Z5plainPif!",
        ".offloading.entry.factor!",
    ] {
        assert!(own.contains(name), "{name}: {own:?}");
    }
}

#[test]
fn describes_kernels_and_their_stubs() {
    let Some(package) = package("hip", &format!("{HIP}{ALONE}")) else {
        return;
    };
    let runtime = "int __hipPushCallConfiguration(void) { return 0; }\n\
        int __hipPopCallConfiguration(void) { return 0; }\n\
        static const void *address;\n\
        int hipLaunchKernel(const void *stub) { return stub == address; }\n\
        void **__hipRegisterFatBinary(void *w) { static void *h; return &h; }\n\
        int __hipRegisterFunction(void **h, const void *a, const char *n) {\n\
          if (!__builtin_strcmp(n, \"_Z5plainPif\")) address = a;\n\
          return 0;\n\
        }\n\
        void __hipRegisterVar(void) {}\nvoid __hipRegisterManagedVar(void) {}\n\
        void __hipRegisterSurface(void) {}\nvoid __hipRegisterTexture(void) {}\n\
        void __hipUnregisterFatBinary(void) {}\n";
    package.put("runtime/runtime.c", runtime);
    let mut cc = Command::new("cc");
    cc.args([
        "-shared",
        "-fPIC",
        "-w",
        "runtime.c",
        "-o",
        "libamdhip64.so.6",
        "-Wl,-soname,libamdhip64.so.6",
    ]);
    support::run(cc.current_dir(package.at("runtime")));
    let mut script = package.script();
    let told = text(
        &script
            .env("LIBRARY_PATH", package.at("runtime"))
            .output()
            .unwrap(),
    );
    // The linker knows the library by a name that this folder lacks.
    let links = package.at(OUT).join("offload/runtime");
    let search = format!("cargo::rustc-link-search=native={}\n", links.display());
    assert!(told.contains(&search), "{told}");
    let library = package.at("runtime/libamdhip64.so.6");
    for name in ["libamdhip64.so", "libamdhip64.so.6"] {
        let copy = links.join(name);
        // Nothing leads out of the target folder.
        let real = copy.canonicalize().unwrap();
        assert!(real.starts_with(links.canonicalize().unwrap()), "{real:?}");
        assert!(fs::read(real).unwrap() == fs::read(&library).unwrap());
    }
    let main = "use std::ffi::c_void;\n\
        unsafe extern \"C\" { fn hipLaunchKernel(stub: *const c_void) -> i32; }\n\
        fn main() {\n\
          let plain = kernels::kernel::plain;\n\
          println!(\"{} {:?} {}\", plain.name, plain.arguments, plain.images.len());\n\
          println!(\"{}\", unsafe { hipLaunchKernel(plain.stub().unwrap()) });\n\
          println!(\"{}\", unsafe { hipLaunchKernel(kernels::find_kernel(\"scale<int>\").unwrap().stub().unwrap()) });\n\
          println!(\"{}\", unsafe { launch(std::ptr::null_mut()) });\n\
          println!(\"{}\", kernels::image().unwrap().starts_with(b\"__CLANG_OFFLOAD_BUNDLE__\"));\n\
          for image in kernels::images() { println!(\"{} {:?}\", image.target, &image.bytes[..4]); }\n\
        }";
    let program = program(&package, &told, main, &package.at("runtime"));
    let seen = support::run(&mut Command::new(program));
    assert_eq!(
        seen,
        "_Z5plainPif [Argument { offset: 0, size: 8, kind: Some(Pointer) }, Argument { offset: 8, size: 4, kind: Some(Value) }] 2\n1\n0\n0\ntrue\n\
         gfx90a [127, 69, 76, 70]\ngfx1100 [127, 69, 76, 70]\n"
    );
}

#[test]
fn starts_with_nvidias_headers_and_runtime() {
    let (Some(ptxas), Some(clang)) = (
        support::tool("cuda", &["ptxas"]),
        support::tool("llvm22", &["clang"]),
    ) else {
        return;
    };
    // A folder with ptxas alone is no toolkit.
    if support::tool("cuda", &["../include/cuda_runtime.h"]).is_none() {
        return;
    }
    let root = ptxas.ancestors().nth(2).unwrap();
    let Some(package) = package("cu", CUDA) else {
        return;
    };
    package.put("kernels/k.h", "#include <cuda_runtime.h>\n");
    let mut script = package.script();
    script
        .env("OFFLOAD_COMPILER", clang)
        .env("CUDA_PATH", root)
        .env("PATH", std::env::var_os("PATH").unwrap());
    let told = text(&script.output().unwrap());
    let main = "unsafe extern \"C\" { fn cudaGetDeviceCount(count: *mut i32) -> i32; fn cudaPeekAtLastError() -> i32; }\n\
        fn main() {\n\
          let mut count = 0;\n\
          let status = unsafe { cudaGetDeviceCount(&mut count) };\n\
          let launched = unsafe { launch(std::ptr::null_mut()); cudaPeekAtLastError() };\n\
          println!(\"{}\", if count > 0 { \"runs\" } else { \"no GPU\" });\n\
          assert!(count > 0 || status != 0 && launched != 0, \"{status} {launched}\");\n\
          assert!(kernels::kernel::_Z5plainPif.stub().is_some());\n\
        }";
    let program = program(&package, &told, main, Path::new(""));
    let seen = support::run(&mut Command::new(program));
    assert!(["runs\n", "no GPU\n"].contains(&&*seen), "{seen}");
}

/// Launchers use them for grids; clang's own header has them for device code alone.
#[test]
fn has_min_and_max_in_host_code_as_nvcc_does() {
    let (Some(cuda), Some(clang)) = (
        support::cuda_package::cuda(),
        support::tool("llvm22", &["clang"]),
    ) else {
        return;
    };
    let Some(package) = package("cu", CUDA) else {
        return;
    };
    let source = r#"
        #include <algorithm>
        #include <type_traits>
        static_assert(std::is_same<decltype(max(1, 2u)), unsigned>::value, "as nvcc's");
        static_assert(std::is_same<decltype(min(1.f, 2.)), double>::value, "as nvcc's");
        template <class T> __host__ __device__ T both(T a, T b) { return min(max(a, b), T(7)); }
        __host__ __device__ int promoted(short a) { return max(a, 3) + min(a, a); }
        __global__ void k(int *x, short s, long l) { *x = both(*x, 2) + promoted(s) + max(s, 3) + max(l, l); }
        /* A source's own are preferred. */
        template <class T> __host__ __device__ T max(T a, T b) { return a < b ? b : 1000; }
        static int preferred() { return max(3, 2); }
        extern "C" int launch(int *x) {
          using namespace std;
          unsigned n = 300;
          if (x) k<<<max(n, 1), min(n, 256u)>>>(x, 1, 2);
          return preferred() + min(n, 20) + min<int>(-1, n) + both(8, 9);
        }
    "#;
    package.put("kernels/k.cu", source);
    let mut script = package.script();
    script.env("OFFLOAD_COMPILER", clang).env("CUDA_PATH", cuda);
    let told = text(&script.output().unwrap());
    let main = "fn main() { println!(\"{}\", unsafe { launch(std::ptr::null_mut()) }); }";
    let program = program(&package, &told, main, Path::new(""));
    let seen = support::run(&mut Command::new(program));
    assert_eq!(seen, "1026\n");
}

#[test]
fn compiles_with_nvcc_what_registers_itself() {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    let Some(package) = package("cu", &format!("{CUDA}rdc = true\n")) else {
        return;
    };
    package.put("kernels/k.h", "__device__ int twice(int x);\n");
    let kernels = KERNELS.replace("*x *= factor", "*x = twice(*x) * factor");
    package.put("kernels/k.cu", &kernels);
    let helper = "#include \"k.h\"\n__device__ int twice(int x) { return 2 * x; }\n";
    package.put("kernels/helper.cu", helper);
    let build = || {
        let mut script = package.script();
        script
            .env("OFFLOAD_COMPILER", &nvcc)
            .env("PATH", std::env::var_os("PATH").unwrap());
        text(&script.output().unwrap())
    };
    let told = build();
    let main = "unsafe extern \"C\" { fn cudaGetDeviceCount(count: *mut i32) -> i32; fn cudaPeekAtLastError() -> i32; }\n\
        fn main() {\n\
          let mut count = 0;\n\
          let status = unsafe { cudaGetDeviceCount(&mut count) };\n\
          let launched = unsafe { launch(std::ptr::null_mut()); cudaPeekAtLastError() };\n\
          assert!(count > 0 || status != 0 && launched != 0, \"{status} {launched}\");\n\
          let plain = kernels::kernel::plain;\n\
          println!(\"{:?} {} {}\", plain.arguments, plain.images.len(), plain.stub().is_some());\n\
          println!(\"{:?}\", kernels::image());\n\
        }";
    let program = program(&package, &told, main, Path::new(""));
    let seen = support::run(&mut Command::new(program));
    assert_eq!(
        seen,
        "[Argument { offset: 0, size: 8, kind: Some(Pointer) }, Argument { offset: 8, size: 4, kind: Some(Value) }] 2 true\n\
         Err(NotBuilt { reason: \"the compiler has put the images into the host code\" })\n"
    );
    // Of what nvcc gives to others, the user's functions keep their names, and what C++ shares.
    let names = defined(&package);
    let ours = |name: &&String| {
        let shared = ["_ZN4dim3C", "DW.ref.__gxx_personality_v0"];
        !name.ends_with('!')
            && !name.starts_with("pack_kernels_")
            && !shared.iter().any(|shared| name.starts_with(shared))
    };
    let others: Vec<&String> = names.iter().filter(ours).collect();
    // Device functions are among them.
    assert_eq!(others, ["_Z5twicei", "launch"]);
    for name in ["_Z5plainPif!", "_Z5scaleIiEvPT_!", "factor!"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    assert!(
        names
            .iter()
            .any(|name| name.starts_with("__cudaRegisterLinkedBinary_"))
    );
    // The same again starts nothing.
    let object = package.at(OUT).join("offload/kernels/images.o");
    let time = || fs::metadata(&object).unwrap().modified().unwrap();
    let before = time();
    build();
    assert_eq!(time(), before);
}

/// ggml's kernels are all `static`, and most are templates.
#[test]
fn builds_with_nvcc_what_has_only_static_kernels() {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    let Some(package) = package("cu", CUDA) else {
        return;
    };
    let kernels = r#"
        template <int N> static __global__ void scale(int *x) { *x *= N; }
        namespace { __global__ void inner(int *x) { *x += 1; } }
        extern "C" int launch(int *x) { scale<2><<<1, 1>>>(x); inner<<<1, 1>>>(x); return 0; }
    "#;
    for rdc in support::share(["true", "false"], 0, 2) {
        package.declare(&format!("{CUDA}rdc = {rdc}\n"));
        package.put("kernels/k.cu", kernels);
        let script = || {
            let mut script = package.script();
            script
                .env("OFFLOAD_COMPILER", &nvcc)
                .env("PATH", std::env::var_os("PATH").unwrap());
            script
        };
        let told = text(&script().output().unwrap());
        let main = "fn main() {\n\
            unsafe { launch(std::ptr::null_mut()) };\n\
            println!(\"{} {:?}\", kernels::images().len(), kernels::KERNELS);\n\
            }";
        let program = program(&package, &told, main, Path::new(""));
        assert_eq!(support::run(&mut Command::new(program)), "2 []\n");
        package.put(
            "kernels/k.cu",
            "extern \"C\" int launch(int *x) { return x != 0; }\n",
        );
        let error = package.fails(&mut script());
        assert!(
            error.ends_with("sources without kernels are for the crate `cc`"),
            "{error}"
        );
    }
}

/// As the programs of benchmark suites with dynamic parallelism.
#[test]
fn builds_with_nvcc_kernels_that_launch_kernels() {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    let Some(package) = package("cu", CUDA) else {
        return;
    };
    package.put(
        "kernels/k.cu",
        "__global__ void child(int *x) { *x = 1; }\n\
         __global__ void parent(int *x) { child<<<1, 1>>>(x); }\n\
         extern \"C\" int launch(int *x) { parent<<<1, 1>>>(x); return 0; }\n",
    );
    let script = |rdc| {
        package.declare(&format!("{CUDA}rdc = {rdc}\n"));
        let mut script = package.script();
        script.env("PATH", std::env::var_os("PATH").unwrap());
        script.env("OFFLOAD_COMPILER", &nvcc);
        script
    };
    let told = text(&script(true).output().unwrap());
    // The device link is made again with another runtime.
    let record = fs::read_to_string(package.at(OUT).join("offload/manifest.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let mut files = record["modules"][0]["files"].as_array().unwrap().iter();
    let link = files.find(|file| file["what"] == "device link for all targets");
    let mut inputs = link.unwrap()["inputs"].as_array().unwrap().iter();
    let is_runtime = |path: &str| path.ends_with("/libcudadevrt.a");
    assert!(inputs.any(|input| input.as_str().is_some_and(is_runtime)));
    let main = "fn main() {\n\
        unsafe { launch(std::ptr::null_mut()) };\n\
        println!(\"{}\", kernels::find_kernel(\"parent\").is_some());\n\
        }";
    let program = program(&package, &told, main, Path::new(""));
    assert_eq!(support::run(&mut Command::new(program)), "true\n");
    // The device's runtime is the module's own, too: its names end as those of the module.
    let names = defined(&package);
    let runtime = |name: &&String| name.contains("cuda_device_runtime");
    assert!(names.iter().any(|name| runtime(&name)), "{names:?}");
    for name in names.iter().filter(runtime) {
        assert!(name.ends_with('!'), "{name}");
    }
    let hint = "hint: kernels that launch kernels need NVIDIA's compiler and linker: set `compiler = \"nvcc\"` and `rdc = true`";
    let error = package.fails(&mut script(false));
    assert!(error.contains(hint), "{error}");
}

/// As a toolkit of single wheels of PyPI may lack it.
#[test]
fn says_where_to_get_the_library_for_kernels_that_launch_kernels() {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    let Some(package) = package("cu", CUDA) else {
        return;
    };
    let real = nvcc.ancestors().nth(2).unwrap();
    for folder in ["bin", "lib64"] {
        fs::create_dir_all(package.at("cuda").join(folder)).unwrap();
        for file in fs::read_dir(real.join(folder)).unwrap() {
            let file = file.unwrap();
            let place = package.at("cuda").join(folder).join(file.file_name());
            match file.file_name().to_str() {
                Some("libcudadevrt.a") => {}
                // It searches beside its own file.
                Some("nvcc") => drop(fs::copy(file.path(), place).unwrap()),
                _ => std::os::unix::fs::symlink(file.path(), place).unwrap(),
            }
        }
    }
    for folder in ["include", "nvvm"] {
        std::os::unix::fs::symlink(real.join(folder), package.at("cuda").join(folder)).unwrap();
    }
    package.put(
        "kernels/k.cu",
        "__global__ void child(int *x) { *x = 1; }\n\
         __global__ void parent(int *x) { child<<<1, 1>>>(x); }\n",
    );
    let nvcc = package.at("cuda/bin/nvcc");
    let script = |host| {
        package.declare(&format!("{CUDA}rdc = true\n").replace("host = true", host));
        let mut script = package.script();
        script.env("PATH", std::env::var_os("PATH").unwrap());
        script.env("OFFLOAD_COMPILER", &nvcc);
        script
    };
    let hint = "hint: kernels that launch kernels need CUDA's device runtime: install it with the toolkit's installer, or copy \
                `libcudadevrt.a` of PyPI's `nvidia-cuda-runtime` (CUDA 12: `nvidia-cuda-runtime-cu12`) to the toolkit's `lib64`";
    for host in ["host = true", "host = false"] {
        let error = package.fails(&mut script(host));
        let undefined = "Undefined reference to '__cudaCDP2";
        assert!(error.contains(undefined) && error.contains(hint), "{error}");
    }
    let library = "lib64/libcudadevrt.a";
    fs::copy(real.join(library), package.at("cuda").join(library)).unwrap();
    text(&script("host = true").output().unwrap());
}

/// As CUDA's sources have kernels from a compute capability on.
#[test]
fn tells_which_kernels_one_target_lacks() {
    let more = "#ifndef LACKS\n__global__ void more(int *x) { *x += 1; }\n\
                extern \"C\" void launch_more(int *x) { more<<<1, 1>>>(x); }\n#endif\n";
    let lacks = "#if defined(__gfx1100__) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900)\n#define LACKS\n#endif\n";
    let check = |package: &Package, mut script: Command, target: &str| {
        let told = text(&script.output().unwrap());
        let warnings = told
            .lines()
            .filter_map(|line| line.strip_prefix("cargo::warning="));
        let warnings: Vec<&str> = warnings.filter(|line| line.contains("no kernel")).collect();
        let expected = format!("warning: {target} has no kernel `more`, which other targets have");
        assert_eq!(warnings, [expected]);
        let main = "fn main() { unsafe { launch(std::ptr::null_mut()) };\n\
                    println!(\"{}\", kernels::find_kernel(\"more\").unwrap().images.len()); }";
        let program = program(package, &told, main, Path::new(""));
        assert_eq!(support::run(&mut Command::new(program)), "1\n");
    };
    if let Some(package) = package("hip", &format!("{HIP}{ALONE}")) {
        package.put(
            "kernels/more.hip",
            &format!("#include \"k.h\"\n{lacks}{more}"),
        );
        check(&package, package.script(), "gfx1100");
    }
    let nvcc = support::tool("cuda", &["nvcc"]);
    if let (Some(nvcc), Some(package)) = (nvcc, package("cu", CUDA)) {
        package.put(
            "kernels/k.cu",
            "extern \"C\" int launch(int *x) { return x != 0; }\n",
        );
        package.put("kernels/more.cu", &format!("{lacks}{more}"));
        let script = || {
            let mut script = package.script();
            script
                .env("OFFLOAD_COMPILER", &nvcc)
                .env("PATH", std::env::var_os("PATH").unwrap());
            script
        };
        check(&package, script(), "sm_80");
        // One process of nvcc compiles for all targets, and such a table does not change what it makes.
        let table = "[package.metadata.offload.target.sm_80]\noptional-kernels = [\"more\"]\n";
        package.declare(&format!("{CUDA}{table}"));
        let told = text(&script().output().unwrap());
        assert!(!told.contains("no kernel"), "{told}");
    }
}

#[test]
fn compresses_what_is_registered() {
    let Some(package) = package("hip", &format!("{HIP}{ALONE}compress = \"zstd\"\n")) else {
        return;
    };
    package.builds();
    let object = module(&package);
    let file = object::File::parse(&*object).unwrap();
    let section = file.section_by_name(".hip_fatbin").unwrap();
    let content = object::ObjectSection::data(&section).unwrap();
    assert!(content.starts_with(b"CCOB"), "{:?}", &content[..8]);
}

/// Kernels of other packages call them, in the device link of `offload-link`.
#[test]
fn takes_modules_of_functions_for_kernels_elsewhere() {
    let deferred = format!("{HIP}{ALONE}rdc = true\nregister = \"deferred\"\n");
    let Some(package) = package("hip", &deferred) else {
        return;
    };
    let openmp = "language = \"openmp\"\nsources = [\"kernels/*.c\"]\ntargets = [\"x86_64-pc-linux-gnu\"]\nregister = \"deferred\"\n";
    let function = "int helper(int x) { return x + 1; }\n";
    let of_devices =
        format!("#pragma omp declare target\n{function}#pragma omp end declare target\n");
    for (keys, file, source, nothing) in [
        (
            deferred.as_str(),
            "kernels/k.hip",
            format!("#include \"k.h\"\n__device__ {function}"),
            "int on_host;\n",
        ),
        (openmp, "kernels/k.c", of_devices, function),
    ] {
        package.declare(keys);
        package.put(file, &source);
        let told = text(&package.script().output().unwrap());
        assert!(told.contains("cargo::rustc-link-lib=static"), "{told}");
        let rust = fs::read_to_string(package.at(OUT).join("kernels.rs")).unwrap();
        assert!(rust.contains("KERNELS: &[&str] = &[];"), "{rust}");

        package.put(file, nothing);
        let error = package.fails(&mut package.script());
        assert!(error.contains("in any source [OFF703]"), "{error}");
        let complete = keys.replace("register = \"deferred\"\n", "");
        package.declare(&complete);
        package.put(file, &source);
        let error = package.fails(&mut package.script());
        assert!(error.contains("in any source [OFF703]"), "{error}");
    }
}

/// Entries of LLVM 19 have no place for the pointer that the runtime sets.
#[test]
fn registers_managed_variables_or_says_that_clang_cannot() {
    let Some(package) = package("hip", &format!("{HIP}{ALONE}")) else {
        return;
    };
    let source = "#include \"k.h\"\n__attribute__((managed)) int shared_value = 5;\n\
        __global__ void k(int *x) { *x = shared_value; }\nextern \"C\" void run() { k<<<1, 1>>>(&shared_value); }\n";
    package.put("kernels/k.hip", source);
    let error = package.fails(&mut package.script());
    assert!(
        error.contains("`shared_value` is `__managed__`, and host code of clang before 20")
            && error.contains("\nhint: set `images = \"source\"`"),
        "{error}"
    );
    let builds = |package: &Package, clang: &Path| {
        let mut script = package.script();
        text(&script.env("OFFLOAD_COMPILER", clang).output().unwrap())
    };
    if let Some(clang) = support::tool("llvm22", &["clang"]) {
        let told = builds(&package, &clang);
        assert!(told.contains("cargo::rustc-link-lib=static"), "{told}");
    }
    package.declare(&format!("{HIP}{ALONE}images = \"source\"\n"));
    let told = builds(&package, &package.at("llvm/bin/clang"));
    assert!(told.contains("cargo::rustc-link-lib=static"), "{told}");
}

/// clang warns of options for another side, which a command for one side does not use.
#[test]
fn gives_each_side_its_own_flags() {
    let Some(package) = package(
        "hip",
        r#"
        language = "hip"
        host = true
        sources = ["kernels/*.hip"]
        targets = ["gfx90a", "gfx1100"]
        flags = ["-nogpulib", "-nogpuinc", "-munsafe-fp-atomics", "-Xarch_device", "-DDEVICE", "-Xarch_gfx1100", "-DNEWER", "-Xarch_host", "-DHOST"]
        "#,
    ) else {
        return;
    };
    let source = r#"
        #ifdef __HIP_DEVICE_COMPILE__
        #if !defined DEVICE || defined HOST || defined NEWER != defined __gfx1100__
        #error flags of another side
        #endif
        #elif !defined HOST || defined DEVICE || defined NEWER
        #error flags of another side
        #endif
        #include "k.h"
        __global__ void k(int *x) { *x = 1; }
    "#;
    package.put("kernels/k.hip", source);
    let told = text(&package.script().output().unwrap());
    assert!(!told.contains("unused"), "{told}");
}

#[test]
fn says_where_a_runtime_was_looked_for() {
    let Some(package) = package("hip", &format!("{HIP}{ALONE}")) else {
        return;
    };
    let mut script = package.script();
    // For a host that has none.
    script
        .env("TARGET", "aarch64-unknown-linux-gnu")
        .env("LIBRARY_PATH", "/nowhere")
        .env("ROCM_PATH", "/opt/rocm");
    let told = text(&script.output().unwrap());
    let warnings = told
        .lines()
        .filter_map(|line| line.strip_prefix("cargo::warning="));
    let warnings: Vec<&str> = warnings.collect();
    let warnings = warnings.join("\n");
    assert!(
        warnings.starts_with("`libamdhip64.so` not found (searched: /nowhere, /opt/rocm/lib, "),
        "{warnings}"
    );
    assert!(warnings.contains("LIBRARY_PATH"), "{warnings}");
    let folder = "/opt/rocm/lib64,";
    assert_eq!(warnings.matches(folder).count(), 1, "{warnings}");
    assert!(
        told.contains("cargo::rustc-link-lib=dylib=amdhip64\n"),
        "{told}"
    );
    // And its objects are that host's.
    let object = module(&package);
    let file = object::File::parse(&*object).unwrap();
    assert_eq!(file.architecture(), object::Architecture::Aarch64);
}

#[test]
fn refuses_what_has_no_host_code() {
    let Some(package) = package("hip", HIP) else {
        return;
    };
    let hip = HIP.replace("host = true\n", "");
    let nvcc = format!("{CUDA}compiler = \"nvcc\"\n").replace("*.cu", "k.hip");
    for (keys, problem) in [
        (
            format!("{HIP}{ALONE}register = \"deferred\"\nrdc = false\n"),
            "10:1: a `deferred` module calls device functions of other crates: not with `rdc = false`",
        ),
        (
            format!("{HIP}{ALONE}register = \"none\"\n"),
            "10:1: `hip` launches registered kernels: `none` is only for modules without host code",
        ),
        (
            format!("{HIP}{ALONE}container = \"raw\"\n"),
            "10:1: `raw` is not a container of `hip` with host code (`bundle` is)",
        ),
        (
            format!("{HIP}{ALONE}register = \"deferred\"\ncompress = \"zstd\"\n"),
            "11:1: the last link writes the container of a `deferred` module: pass `--compress` to `offload-link`",
        ),
        (
            format!("{hip}{ALONE}register = \"deferred\"\n"),
            "9:1: `register = \"deferred\"` needs `host = true`",
        ),
        (
            format!("{nvcc}flags = [\"-xcu\"]\nregister = \"deferred\"\n"),
            "11:1: `nvcc` registers what it links, so its modules cannot be `deferred`: remove `compiler` to use clang",
        ),
        (
            "language = \"openmp\"\nsources = [\"kernels/k.hip\"]\nflags = [\"-xc\"]\ntargets = [\"gfx90a\"]\n\
             host = true\n"
                .to_owned(),
            "9:1: `host` has no effect on modules of `openmp` [OFF502]",
        ),
        (
            hip.replace("hip\"\n", "bitcode\"\nhost = true\n").replace("*.hip", "k.hip") + "flags = [\"-xir\"]\n",
            "6:1: `host` has no effect on modules of `bitcode` [OFF502]",
        ),
    ] {
        package.declare(&keys);
        let mut script = package.script();
        let error = package.fails(script.env_remove("OFFLOAD_COMPILER"));
        assert_eq!(error, format!("Cargo.toml:{problem}"), "{keys}");
    }
    let mut script = package.script();
    package.declare(&format!("{HIP}{ALONE}"));
    let error = package.fails(script.env("TARGET", "aarch64-apple-darwin"));
    assert_eq!(
        error,
        "modules with host code are not supported for `aarch64-apple-darwin` (they are for x86_64 and aarch64 Linux, and for x86_64 Windows) [OFF609]"
    );
}
