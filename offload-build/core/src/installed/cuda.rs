//! Releases of CUDA's programs, and the processors and the PTX that they know.

use crate::installed::answers::Answers;
use crate::process::command::{Command, CommandError};
use std::collections::BTreeSet;
use std::path::Path;

/// Returns the processors for which a `ptxas` makes images.
///
/// # Errors
///
/// If it does not answer.
pub fn processors(ptxas: &Path, answers: &Answers) -> Result<BTreeSet<String>, CommandError> {
    let help = answers.to(&Command::new(ptxas).arg("--help"))?;
    Ok(names(gpu_names(&help)))
}

/// Returns the part of ptxas' help that lists the values of `--gpu-name`; other options name processors that it no longer supports.
fn gpu_names(help: &str) -> &str {
    let names = help.split_once("\n--gpu-name").map(|(_, names)| names);
    let names = names.unwrap_or_default();
    names.split_once("\n--").map_or(names, |(names, _)| names)
}

/// Parses the processors in an answer: `sm_90a`, between blanks, commas or quotes.
#[must_use]
pub fn names(answer: &str) -> BTreeSet<String> {
    let words = answer.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    let is_name = |word: &&str| {
        let number = word.strip_prefix("sm_");
        number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    };
    words.filter(is_name).map(str::to_owned).collect()
}

/// Returns the release in a line that nvcc and ptxas say to `--version`: `Cuda compilation tools, release 13.5, V13.5.37`.
#[must_use]
pub fn release(version: &str) -> Option<(u32, u32)> {
    let (_, rest) = version.split_once("release ")?;
    let (major, minor) = rest.split(',').next()?.split_once('.')?;
    Some((major.trim().parse().ok()?, minor.trim().parse().ok()?))
}

/// Returns the newest PTX that a release of clang writes and the ptxas of a release of CUDA reads, 84 for 8.4.
///
/// Source: features of clang 16, 19 and 22, and LLVM 17's release notes; those of NVIDIA's PTX ISA manual for CUDA.
pub(super) fn newest_ptx(clang: u32, cuda: (u32, u32)) -> Option<u32> {
    let of_clang = match clang {
        ..17 => 78,
        17 | 18 => 81,
        19..=21 => 85,
        22.. => 90,
    };
    let of_cuda = match cuda {
        (..=10, _) => return None,
        (11, minor) => 70 + minor,
        (12, minor @ ..6) => 80 + minor,
        (12, minor) => 79 + minor,
        (13, minor) => 90 + minor,
        _ => of_clang,
    };
    Some(of_clang.min(of_cuda))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_processors_in_any_quotes() {
        // ptxas 13.5, nvcc 13.5 and clang 22, shortened.
        let help = "--def-load-cache\n  'sm_70' and above\n--gpu-name <gpu name>  (-arch)\n  PTX for .target sm_XY\n  Allowed \
            values for this option:  'compute_90','lto_90','sm_100f','sm_90',\n  'sm_90a'. Default value:  'sm_75'.\n--help\n  'sm_60'\n";
        let ptxas: Vec<String> = names(gpu_names(help)).into_iter().collect();
        assert_eq!(ptxas, ["sm_100f", "sm_75", "sm_90", "sm_90a"]);
        assert_eq!(names("sm_75\nsm_80\n").len(), 2);
        assert_eq!(names("\tsm_80\n\tsm_90a\n").len(), 2);
        // Another program may refuse a processor by its name.
        for other in ["", "error: sm_60 is too old\n"] {
            assert!(names(gpu_names(other)).is_empty(), "{other}");
        }
    }

    #[test]
    fn knows_the_newest_ptx_of_clang_and_cuda() {
        // `.version` of what nvcc 12.4, 12.9 and 13.5 write is 8.4, 8.8 and 9.5.
        for (clang, release, expected) in [
            (16, (12, 9), Some(78)),
            (17, (12, 9), Some(81)),
            (19, (12, 9), Some(85)),
            (22, (12, 9), Some(88)),
            (22, (12, 4), Some(84)),
            (22, (12, 6), Some(85)),
            (22, (11, 8), Some(78)),
            (22, (13, 5), Some(90)),
            (22, (10, 2), None),
        ] {
            assert_eq!(newest_ptx(clang, release), expected, "{clang} {release:?}");
        }
        let answer = "Cuda compilation tools, release 12.9, V12.9.86\nBuild cuda_12.9.r12.9/compiler.36037853_0\n";
        assert_eq!(release(answer), Some((12, 9)));
        assert_eq!(release("no answer"), None);
    }
}
