//! Modules with and without an SDK.

use super::*;

/// A tree of ROCm whose header says of each thread that it is the seventh.
fn rocm(package: &Package) -> std::path::PathBuf {
    let version = "HIP_VERSION_MAJOR=6\nHIP_VERSION_MINOR=4\nHIP_VERSION_PATCH=1\n";
    package.put("rocm/share/hip/version", version);
    package.put(
        "rocm/include/hip/hip_runtime.h",
        "#pragma once\n#define HIP_INCLUDE_HIP_HIP_RUNTIME_H\n#define __global__ __attribute__((global))\n\
         #define __device__ __attribute__((device))\nstruct Seventh { unsigned x; };\n\
         static const __device__ Seventh threadIdx = {7};\n",
    );
    package.at("rocm")
}

#[test]
fn needs_no_sdk_and_uses_none_that_is_installed() {
    let Some(package) = package(&format!("#include <offload/gpu.h>\n{PLACE}")) else {
        return;
    };
    let root = rocm(&package);
    package.declare(&format!("{HIP}targets = [\"gfx90a\"]\n"));
    let plan = |root: Option<&Path>| {
        let mut script = script(&package, 22)?;
        script.env("OFFLOAD_DRY_RUN", "1");
        script.envs(root.map(|root| ("ROCM_PATH", root)));
        let output = script.output().unwrap();
        Some(String::from_utf8(output.stderr).unwrap())
    };
    let Some(without) = plan(None) else { return };
    assert!(without.contains(" -nogpuinc -nogpulib "), "{without}");
    assert!(
        without.contains("# headers of kernels, in this process: "),
        "{without}"
    );
    assert_eq!(plan(Some(&root)).unwrap(), without);

    // A source with the SDK's header needs it. There is ROCm in `/usr` here, and no CUDA.
    package.put(
        "kernels/k.cu",
        "#include <offload/gpu.h>\n#include <cuda_runtime.h>\n",
    );
    package.declare(&format!("{CUDA}targets = [\"compute_80\"]\n"));
    let missing = package.fails(&mut script(&package, 22).unwrap());
    let hint = "or do without: include `<offload/gpu.h>` in each source, or set `flags = ";
    assert!(missing.contains(hint), "{missing}");

    // Beside it a source without.
    let own = format!(
        "#include <offload/gpu.h>\n{}",
        PLACE.replace("place", "other")
    );
    package.put("kernels/other.hip", &own);
    let both = format!("#include <offload/gpu.h>\n#include <hip/hip_runtime.h>\n{PLACE}");
    package.put("kernels/k.hip", &both);
    let keys = format!("{HIP}targets = [\"gfx90a\"]\nflags = [\"-nogpulib\"]\n");
    package.declare(&keys);
    let plan = plan(Some(&root)).unwrap();
    let line = |name: &str| {
        plan.lines()
            .find(|line| line.contains(&format!("-c {}", package.at(name).display())))
            .unwrap()
    };
    assert!(!line("kernels/k.hip").contains("-nogpuinc"), "{plan}");
    assert!(
        line("kernels/other.hip").contains(" -nogpulib -nogpuinc "),
        "{plan}"
    );
    text(
        &script(&package, 22)
            .unwrap()
            .env("ROCM_PATH", &root)
            .output()
            .unwrap(),
    );
    let code = disassembly(&package, 22, "gfx90a");
    check(
        "the SDK's header is the one that counts",
        &code,
        &[("place", &["v_mov_b32_e32 v1, 7"]), ("other", &["!, 7"])],
    );
}

/// clang reads no release of the toolkit for the source without one, whatever names it.
#[test]
fn launches_kernels_beside_a_source_of_the_toolkit() {
    let source = |name: &str, header: &str| {
        format!(
            "#include <{header}>\n__global__ void {name}(float *x) {{ *x = 1; }}\n\
             extern \"C\" int launch_{name}(float *x) {{ {name}<<<1, 1>>>(x); return cudaGetLastError(); }}\n"
        )
    };
    let own = source("own", "offload/gpu.h");
    let (Some(cuda), Some(package)) = (support::cuda_package::cuda(), package(&own)) else {
        return;
    };
    package.put("kernels/other.cu", &source("other", "cuda_runtime.h"));
    let option = format!("flags = [\"--cuda-path={}\"]\n", cuda.display());
    for (rdc, option) in [("true", ""), ("false", ""), ("true", &*option)] {
        let keys = format!("{CUDA}targets = [\"sm_80\"]\nhost = true\nrdc = {rdc}\n{option}");
        package.declare(&keys);
        let Some(mut script) = script(&package, 22) else {
            return;
        };
        text(&script.env("CUDA_PATH", &cuda).output().unwrap());
    }
}

/// CUDA's own headers, which clang includes first, and the kernels of this file.
#[test]
fn is_cudas_own_header_beside_the_toolkit() {
    let Some(cuda) = support::cuda_package::cuda() else {
        return;
    };
    let source = KERNELS
        .replace(
            "#include <offload/gpu.h>",
            "#include <cuda_runtime.h>\n#include <offload/gpu.h>",
        )
        // What CUDA has under other names, or for newer processors only.
        .replace("__lane_id()", "(threadIdx.x % 32)")
        .lines()
        .filter(|line| !line.contains("__shfl(x") && !line.contains("votes"))
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    let start = source.find("KERNEL shuffle_up").unwrap();
    let end = source.find("extern __shared__").unwrap();
    let source = format!("{}{}", &source[..start], &source[end..]);
    let Some(package) = package(&source) else {
        return;
    };
    package.declare(&format!("{CUDA}targets = [\"compute_90\"]\n"));
    let Some(mut script) = script(&package, 22) else {
        return;
    };
    text(&script.env("CUDA_PATH", cuda).output().unwrap());
    let ptx = fs::read_to_string(package.at(OUT).join("offload/kernels/compute_90/image")).unwrap();
    check(
        "with CUDA's headers",
        &ptx,
        &[("thread", &["%tid.x", "%tid.y", "%tid.z"])],
    );
}
