//! Sources that include `<offload/gpu.h>` and no header of a vendor's SDK.
//!
//! The build of such a source does not depend on whether an SDK is installed. Headers of the package are not read:
//! a source decides by its own lines, and all branches of `#if` count.

use crate::inputs::source_scan::{Include, includes};
use offload_build_core::declare::language::Language;
use offload_build_core::declare::module::Module;
use offload_build_core::error::{self, Error};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const HEADER: &str = "offload/gpu.h";

/// Starts of the names of headers that come with CUDA's toolkit or with ROCm.
const SDK_HEADERS: [&str; 30] = [
    "builtin_types.h",
    "ck/",
    "ck_tile/",
    "cooperative_groups",
    "crt/",
    "cub/",
    "cublas",
    "cuda",
    "cudnn",
    "cufft",
    "cuComplex.h",
    "curand",
    "cusolver",
    "cusparse",
    "device_",
    "driver_types.h",
    "hip",
    "host_defines.h",
    "hsa/",
    "math_constants.h",
    "miopen/",
    "mma.h",
    "nv/",
    "nvml.h",
    "nvrtc.h",
    "nvtx3/",
    "rccl/",
    "roc",
    "thrust/",
    "vector_",
];

/// Returns the sources of `module` that do without an SDK.
///
/// # Errors
///
/// If a source of HIP or CUDA cannot be read.
pub(crate) fn sources(module: &Module) -> Result<BTreeSet<PathBuf>, Error> {
    let mut found = BTreeSet::new();
    if !matches!(module.language, Language::Hip | Language::Cuda) {
        return Ok(found);
    }
    for source in &module.sources {
        let text = fs::read(source).map_err(error::io(source))?;
        if does_without(&String::from_utf8_lossy(&text), source, &module.include) {
            found.insert(source.clone());
        }
    }
    Ok(found)
}

/// Tells whether a source with this text does without an SDK; `folders` are those of its own headers.
fn does_without(text: &str, source: &Path, folders: &[PathBuf]) -> bool {
    let is_of_sdk = |include: &Include| {
        let beside = source.parent().filter(|_| include.is_quoted);
        let mut folders = folders.iter().map(PathBuf::as_path).chain(beside);
        let mut starts = SDK_HEADERS.iter();
        starts.any(|start| include.name.starts_with(start))
            && !folders.any(|folder| folder.join(&include.name).is_file())
    };
    let includes = includes(text);
    includes.iter().any(|include| include.name == HEADER) && !includes.iter().any(is_of_sdk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_sources_that_use_no_sdk() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("include");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("hip_tiles.h"), "").unwrap();
        fs::write(folder.path().join("cuda_tiles.h"), "").unwrap();
        let source = folder.path().join("k.hip");
        let tells = |text: &str| does_without(text, &source, std::slice::from_ref(&own));
        for text in [
            "#include <offload/gpu.h>",
            "#include \"offload/gpu.h\"\n#include <cmath>",
            "#include <offload/gpu.h>\n#include <hip_tiles.h>\n#include \"cuda_tiles.h\"",
            "#include <offload/gpu.h>\n// #include <hip/hip_runtime.h>\n",
            "#include <offload/gpu.h>\n/*\n#include <hip/hip_runtime.h>\n*/",
        ] {
            assert!(tells(text), "{text}");
        }
        for text in [
            "",
            "__global__ void k() {}",
            "#include \"tiles.h\"",
            "// #include <offload/gpu.h>",
            "#include <offload/gpu.h>\n#include <hip/hip_runtime.h>",
            "#include <offload/gpu.h>\n#include <cuda_tiles.h>",
            "#ifdef HAVE_CUDA\n  #  include\t<cuda_fp16.h>\n#endif\n#include <offload/gpu.h>",
        ] {
            assert!(!tells(text), "{text}");
        }
    }
}
