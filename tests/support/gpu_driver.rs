//! A library that stands for HIP's runtime or CUDA's driver and computes on the CPU: `tests/support/gpu_driver.c`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the library with the headers of a vendor, `amdhip` or `cuda`: the words of `OFFLOAD_REQUIRE` for both. Without the
/// header this says so and returns nothing.
///
/// # Panics
///
/// When there is no header and `OFFLOAD_REQUIRE` lists `word`.
pub fn build(word: &str) -> Option<PathBuf> {
    let cuda = env::var_os("CUDA_PATH").unwrap_or_else(|| "/usr/local/cuda".into());
    let (include, header, name) = match word {
        "amdhip" => (
            PathBuf::from("/usr/include"),
            "hip/hip_runtime_api.h",
            "libamdhip64.so.5",
        ),
        _ => (Path::new(&cuda).join("include"), "cuda.h", "libcuda.so.1"),
    };
    if !include.join(header).exists() {
        let required = env::var("OFFLOAD_REQUIRE").unwrap_or_default();
        let is_required = required.split(',').any(|one| one == word);
        assert!(!is_required, "missing: {header} ({word})");
        eprintln!("skipped: {header} is missing ({word})");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join(name);
    // Tests of other processes compile it at the same time.
    let new = folder.join(format!("{name}-{}", std::process::id()));
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Wextra", "-Werror", "-Wno-format-zero-length"])
        .args(["-shared", "-fPIC", "-o"])
        .arg(&new)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/support/gpu_driver.c"))
        .arg("-I")
        .arg(include);
    if word == "amdhip" {
        cc.arg("-DHIP");
    }
    let output = cc.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    std::fs::rename(&new, &library).unwrap();
    Some(library)
}
