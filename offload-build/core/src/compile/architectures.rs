//! The macro with the architectures of all images of a program.
//!
//! nvcc, and clang from 22 on, define `__CUDA_ARCH_LIST__` in each pass over a source, with the architectures on their command line.
//! CUB, Thrust and libcu++ name a namespace after it, so kernels get other names with other lists. Each of our commands makes code for
//! one target, or for the host alone: clang's own list would differ between them.

/// The macro.
pub const ARCHITECTURES: &str = "__CUDA_ARCH_LIST__";

/// The release of clang that first defines it.
const FIRST: u32 = 22;

/// Returns options that make clang of `release` define the macro for all of `processors` (`sm_90a`); none if it does not define the macro.
#[must_use]
pub fn of_clang<'a>(
    release: Option<u32>,
    processors: impl IntoIterator<Item = &'a str>,
) -> Option<[String; 2]> {
    let is_without = release.is_some_and(|release| release < FIRST);
    (!is_without).then(|| options(&numbers(processors).join(",")))
}

/// Returns options that make nvcc define the macro for all of `processors`. With one processor nvcc's own list is right, so there are
/// none.
#[must_use]
pub fn of_nvcc<'a>(processors: impl IntoIterator<Item = &'a str>) -> Option<[String; 2]> {
    let numbers = numbers(processors);
    // nvcc takes lists of macros.
    (numbers.len() > 1).then(|| options(&numbers.join("\\,")))
}

fn options(list: &str) -> [String; 2] {
    // Without the first option compilers warn that the macro is defined twice.
    [
        format!("-U{ARCHITECTURES}"),
        format!("-D{ARCHITECTURES}={list}"),
    ]
}

/// Returns the numbers of architectures, in order.
fn numbers<'a>(processors: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let number = |processor: &str| {
        let digits: String = processor.chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()?.checked_mul(10)
    };
    let mut numbers: Vec<u32> = processors.into_iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.iter().map(u32::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_each_architecture_once_in_order() {
        let clang = |release, processors: &[&str]| {
            of_clang(release, processors.iter().copied()).map(|[_, list]| list)
        };
        // As `clang-22 --offload-host-only --offload-arch=sm_120a --offload-arch=sm_90a --offload-arch=sm_75` defines it.
        let expected = "-D__CUDA_ARCH_LIST__=750,900,1200";
        let processors = ["sm_120a", "sm_90a", "sm_75", "sm_90"];
        assert_eq!(clang(Some(22), &processors).as_deref(), Some(expected));
        assert_eq!(clang(None, &processors).as_deref(), Some(expected));
        assert_eq!(clang(Some(21), &processors), None);
        let expected = "-D__CUDA_ARCH_LIST__=750,900,1200".replace(',', "\\,");
        assert_eq!(of_nvcc(processors).map(|[_, list]| list), Some(expected));
        assert_eq!(of_nvcc(["sm_90a", "sm_90"]), None);
    }
}
