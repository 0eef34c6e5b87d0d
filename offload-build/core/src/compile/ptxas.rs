//! NVIDIA's assembler: PTX to an image that the driver loads.

use crate::process::command::Command;
use std::path::Path;

/// The warning of ptxas about a variable that is declared only. It makes a variable of zeros for that module alone, so kernels read
/// other values than the host wrote.
const UNDEFINED_VARIABLE: &str = "Unresolved extern variable";

/// Makes a cubin of a module that leaves nothing to link. An undefined variable is an error, as in other links.
///
/// Code that clang did not optimize stays as it is: ptxas refuses to optimize what has debug information.
#[must_use]
pub fn assemble(
    ptxas: &Path,
    processor: &str,
    opt_level: &str,
    assembly: &Path,
    output: &Path,
) -> Command {
    let level = if opt_level == "0" { "-O0" } else { "-O3" };
    Command::new(ptxas)
        .args(["-m64", level, "-arch", processor])
        .arg(assembly)
        .arg("-o")
        .arg(output)
        .refuse_warning(UNDEFINED_VARIABLE)
}

/// Options with which clang writes PTX for `processor` that [`assemble`] reads, whatever toolkit is installed.
#[must_use]
pub fn options(processor: &str) -> [String; 5] {
    [
        // Or a ptxas in PATH makes clang choose the newest PTX that it knows itself.
        "--cuda-path=/nonexistent".to_owned(),
        "-Xclang".to_owned(),
        "-target-feature".to_owned(),
        "-Xclang".to_owned(),
        format!("+{}", ptx_version(processor)),
    ]
}

/// The PTX version to ask clang for: the first that knows `processor`, but none older than CUDA 11.8's,
/// which OpenMP's device runtime needs.
///
/// Source: NVIDIA's PTX ISA manual, release notes.
#[must_use]
pub fn ptx_version(processor: &str) -> &'static str {
    let number = processor.trim_start_matches("sm_");
    match number.trim_end_matches(['a', 'f']) {
        "88" | "110" => "ptx90",
        _ if number.ends_with('f') => "ptx88",
        "90" if number.ends_with('a') => "ptx80",
        "100" | "101" => "ptx86",
        "120" => "ptx87",
        "103" | "121" => "ptx88",
        _ => "ptx78",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_for_a_ptx_version_that_knows_the_processor() {
        // The minimum that clang 22 names in its error for a lower one.
        for (processor, version) in [
            ("sm_75", "ptx78"),
            ("sm_90", "ptx78"),
            ("sm_90a", "ptx80"),
            ("sm_88", "ptx90"),
            ("sm_100f", "ptx88"),
            ("sm_110", "ptx90"),
            ("sm_110f", "ptx90"),
            ("sm_121", "ptx88"),
        ] {
            assert_eq!(ptx_version(processor), version, "{processor}");
        }
    }
}
