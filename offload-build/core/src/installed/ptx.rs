//! The PTX that installed programs know.

/// Returns the newest PTX that a release of clang writes and a ptxas reads, 84 for 8.4: `answer` is what `ptxas --version` prints.
///
/// Source: features of clang 16, 19 and 22, and LLVM 17's release notes; those of NVIDIA's PTX ISA manual for CUDA.
pub(super) fn newest(clang: u32, answer: &str) -> Option<u32> {
    let of_clang = match clang {
        ..17 => 78,
        17 | 18 => 81,
        19..=21 => 85,
        22.. => 90,
    };
    let (_, release) = answer.split_once("release ")?;
    let mut numbers = release.split(['.', ',']).map(str::trim);
    let mut number = || numbers.next()?.parse::<u32>().ok();
    let of_cuda = match (number()?, number()?) {
        (11, minor) => 70 + minor,
        (12, minor @ ..6) => 80 + minor,
        (12, minor) => 79 + minor,
        (13, minor) => 90 + minor,
        (major, _) if major < 11 => return None,
        _ => of_clang,
    };
    Some(of_clang.min(of_cuda))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_newest_ptx_of_clang_and_cuda() {
        // The last lines of ptxas 12.9; `.version` of what nvcc 12.4, 12.9 and 13.5 write is 8.4, 8.8 and 9.5.
        let answer = "Cuda compilation tools, release 12.9, V12.9.86\nBuild cuda_12.9.r12.9/compiler.36037853_0\n";
        for (clang, release, expected) in [
            (16, "12.9", Some(78)),
            (17, "12.9", Some(81)),
            (19, "12.9", Some(85)),
            (22, "12.9", Some(88)),
            (22, "12.4", Some(84)),
            (22, "12.6", Some(85)),
            (22, "11.8", Some(78)),
            (22, "13.5", Some(90)),
            (22, "10.2", None),
        ] {
            let answer = answer.replace("12.9,", &format!("{release},"));
            assert_eq!(newest(clang, &answer), expected, "{clang} {release}");
        }
        assert_eq!(newest(22, "no answer"), None);
    }
}
