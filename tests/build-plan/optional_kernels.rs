//! Kernels that a target lacks on purpose: the key `optional-kernels`, which the warning of them names.

use crate::support;

use std::fs;
use support::package::{Package, text};

const AMD: &str = "language = \"hip\"\nsources = [\"kernels/*.hip\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n\
    targets = [\"gfx90a:xnack-\", \"gfx1100\", \"gfx942\"]\n";

/// Two kernels that gfx942 lacks, and one that all targets have.
const KERNELS: &str = "#define __global__ __attribute__((global))\n\
    extern \"C\" __global__ void all(int *x) { *x = 1; }\n\
    #ifndef __gfx942__\n\
    extern \"C\" __global__ void more(int *x) { *x = 2; }\n\
    template <int N> __global__ void matrix(int *x) { *x = N; }\n\
    template __global__ void matrix<4>(int *);\n\
    #endif\n";

const TITLE: &str = "images of `kernels`:";

fn package() -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.hip", KERNELS);
    Some(package)
}

/// Declares `keys` and returns the warnings of a build with variables.
fn warnings(package: &Package, keys: &str, variables: &[(&str, &str)]) -> Vec<String> {
    package.declare(keys);
    let mut script = package.script();
    let told = text(&script.envs(variables.iter().copied()).output().unwrap());
    let warnings = told.lines();
    let warnings = warnings.filter_map(|line| line.strip_prefix("cargo::warning="));
    warnings.map(str::to_owned).collect()
}

#[test]
fn names_the_key_that_allows_a_target_to_lack_kernels() {
    let Some(package) = package() else { return };
    let lacks = |kernels: &str| {
        format!("warning: gfx942 has no kernel {kernels}, which other targets have")
    };
    let hint = |patterns: &str| {
        format!(
            "hint: if this is intended, write `optional-kernels = [{patterns}]` in [package.metadata.offload.target.\"gfx942\"]"
        )
    };
    let found = warnings(&package, AMD, &[]);
    let both = hint("\"matrix<4>\", \"more\"");
    let first = lacks("`matrix<4>`, `more`");
    assert_eq!(found, [TITLE, first.as_str(), both.as_str()]);
    let starts = package.starts();
    // As the hint says it.
    let (_, rest) = found[2].split_once("write `").unwrap();
    let (key, table) = rest.split_once("` in ").unwrap();
    let table = format!("{AMD}{table}\n{key}\n");
    assert_eq!(warnings(&package, &table, &[]), [""; 0]);
    let one = "[package.metadata.offload.target.gfx942]\noptional-kernels = [\"mat*\"]\n";
    let found = warnings(&package, &format!("{AMD}{one}"), &[]);
    let (first, both) = (lacks("`more`"), hint("\"mat*\", \"more\""));
    assert_eq!(found, [TITLE, first.as_str(), both.as_str()]);
    // Symbols are names, too, and a pattern of the module holds for each target.
    let module = format!("{AMD}optional-kernels = [\"_Z6matrix*\", \"more\"]\n");
    assert_eq!(warnings(&package, &module, &[]), [""; 0]);
    assert_eq!(package.starts(), starts, "no image changes");
    let others = "#ifndef __gfx942__\nextern \"C\" __global__ void n(int *x) { *x = 3; }\n\
        extern \"C\" __global__ void o(int *x) { *x = 4; }\n#endif\n";
    package.put("kernels/k.hip", &format!("{KERNELS}{others}"));
    let found = warnings(&package, AMD, &[]);
    let first = lacks("`matrix<4>`, `more`, `n` and 1 other");
    let both = hint("\"matrix<4>\", \"more\", \"n\", \"o\"");
    assert_eq!(found, [TITLE, first.as_str(), both.as_str()]);
}

#[test]
fn warns_of_patterns_that_match_no_missing_kernel() {
    let Some(package) = package() else { return };
    let table = "[package.metadata.offload.target.gfx942]\noptional-kernels = [\"m*\", \"all\"]\n";
    let keys = format!("{AMD}optional-kernels = [\"more\", \"none\"]\n{table}");
    let unused = |place: &str, pattern: &str| {
        format!(
            "warning: Cargo.toml:{place}:1: `optional-kernels`: `{pattern}` matches no missing kernel"
        )
    };
    let found = warnings(&package, &keys, &[]);
    let expected = [TITLE.to_owned(), unused("9", "none"), unused("11", "all")];
    assert_eq!(found, expected);
    // Without gfx942, or with it alone, nobody knows which kernels it lacks.
    for targets in ["gfx90a:xnack-,gfx1100", "gfx942"] {
        let variables = [("OFFLOAD_TARGETS", targets)];
        assert_eq!(warnings(&package, &keys, &variables), [""; 0], "{targets}");
    }
    // What other modules or packages may need.
    let variables = [("OFFLOAD_OPTIONAL_KERNELS", "m*,none")];
    assert_eq!(warnings(&package, AMD, &variables), [""; 0]);
    let module = "[[package.metadata.offload.module]]\nname = \"kernels\"\n";
    let found = warnings(&package, &format!("{keys}{module}"), &[]);
    assert_eq!(found, [""; 0]);
}

/// hipcc and nvcc build such code; hipCUB and rocThrust have much of it.
#[test]
fn warns_of_kernels_of_host_code_that_no_image_has() {
    let Some(package) = package() else { return };
    let source = r#"
        #include <offload/gpu.h>
        namespace rocprim {
        template <int Gpu> struct comp_target {};
        template <class T> __global__ void trampoline_kernel(int *x) { *x = 1; }
        }
        template <int Gpu> __global__ void of(int *x) { *x = Gpu; }
        __global__ void plain(int *x) { *x = 2; }
        #if !defined __HIP_DEVICE_COMPILE__
        extern "C" void launch(int *x) {
          of<942><<<1, 1>>>(x);
          of<950><<<1, 1>>>(x);
          rocprim::trampoline_kernel<rocprim::comp_target<942>><<<1, 1>>>(x);
        }
        #endif
    "#;
    package.put("kernels/k.hip", source);
    let keys = "language = \"hip\"\nhost = true\nsources = [\"kernels/*.hip\"]\n";
    let targets = "targets = [\"gfx90a\", \"gfx1100\"]\n";
    let title = "registration of `kernels`:";
    let first = "warning: no image has the kernel `of<942>`, `of<950>`, which host code launches";
    let hint = |patterns: &str| {
        format!(
            "hint: if this is intended, write `optional-kernels = [{patterns}]` in the table of the module"
        )
    };
    let found = warnings(&package, &format!("{keys}{targets}"), &[]);
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    let both = hint("\"of<942>\", \"of<950>\"");
    // rocPRIM's kernel is one for another GPU.
    assert_eq!(found, [title, first, &both]);

    let one = format!("{keys}{targets}optional-kernels = [\"of<950>\"]\n");
    let first = "warning: no image has the kernel `of<942>`, which host code launches";
    let both = hint("\"of<950>\", \"of<942>\"");
    let found = warnings(&package, &one, &[]);
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(found, [title, first, &both]);
    let all = format!("{keys}{targets}optional-kernels = [\"of<*\"]\n");
    assert_eq!(warnings(&package, &all, &[]), [""; 0]);

    // Rust has constants of kernels that it can start.
    let files = package.files();
    let rust = files.iter().find(|file| file.ends_with("kernels.rs"));
    let rust = fs::read_to_string(rust.unwrap()).unwrap();
    let described = "pub static ALL: &[Kernel] = &[_Z5plainPi];";
    assert!(rust.contains(described), "{rust}");
}

#[test]
fn does_not_warn_of_patterns_if_a_target_has_no_image() {
    let Some(package) = package() else { return };
    let kernels = KERNELS.replace(
        "#ifndef __gfx942__",
        "#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900",
    );
    package.put("kernels/k.cu", &kernels);
    // Nothing assembles an image for sm_90 here.
    let keys = "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n\
        missing = \"skip\"\ntargets = [\"compute_80\", \"sm_90\"]\n\
        [package.metadata.offload.target.compute_80]\noptional-kernels = [\"m*\"]\n";
    let found = warnings(&package, keys, &[]);
    let skipped = "module `kernels`: no image for `sm_90`: ";
    assert!(found[0].starts_with(skipped), "{found:?}");
    let of_key = |line: &&String| line.contains("optional-kernels");
    assert_eq!(found.iter().filter(of_key).count(), 0, "{found:?}");
}

#[test]
fn names_the_place_of_an_invalid_pattern_of_kernels() {
    let Some(package) = package() else { return };
    let keys = format!("{AMD}optional-kernels = [\"scale<int**>\"]\n");
    package.put(
        "Cargo.toml",
        &format!("[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\n{keys}"),
    );
    let error = package.fails(&mut package.script());
    let expected = "Cargo.toml:9:1: `scale<int**>`: Pattern syntax error near position ";
    assert!(error.starts_with(expected), "{error}");
    let hint =
        "\nhint: `[*]` stands for the character `*`, and `[?]` and `[[]` for the other wildcards";
    assert!(error.ends_with(hint), "{error}");
}

/// The host registers a device variable with the images of all targets.
#[test]
fn refuses_a_variable_that_a_target_lacks() {
    let Some(package) = package() else { return };
    package.put(
        "kernels/v.hip",
        "#include <offload/gpu.h>\n__device__ int count;\n\
         __global__ void counted(int *x) { *x = count; }\nint run() { counted<<<1, 1>>>(nullptr); return 0; }\n",
    );
    let manifest = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"hip\"\nhost = true\n\
        sources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\", \"gfx1100\"]\n\
        [package.metadata.offload.target.gfx1100]\nexclude = [\"kernels/v.hip\"]\n";
    package.put(
        "kernels/k.hip",
        "#include <offload/gpu.h>\n__global__ void all(int *x) { *x = 1; }\n",
    );
    package.put("Cargo.toml", manifest);
    let error = package.fails(&mut package.script());
    let (problem, hint) = error.split_once("\nhint: ").unwrap_or_default();
    assert!(
        problem.starts_with("registration of `kernels`: gfx1100: "),
        "{error}"
    );
    assert!(problem.contains(": image does not define count"), "{error}");
    assert!(
        hint.starts_with("host code registers these with each image, so `exclude` and `#if` cannot leave them out"),
        "{error}"
    );
}
