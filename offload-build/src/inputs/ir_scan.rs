//! Names of kernels that LLVM IR in text form defines, for builds without device code.

use std::collections::BTreeSet;

/// Calling conventions of kernels in LLVM IR.
const CONVENTIONS: [&str; 3] = ["amdgpu_kernel", "ptx_kernel", "spir_kernel"];

/// Returns the names of the kernels that `text` defines.
pub(crate) fn kernels(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(kernel).collect()
}

/// Returns the name of the kernel that a line defines, or annotates, as LLVM before 20 does for NVIDIA GPUs.
fn kernel(line: &str) -> Option<String> {
    let (head, rest) = line.split_once('@')?;
    let mut words = head.split_whitespace();
    let is_kernel = match words.next()? {
        "define" => words.any(|word| CONVENTIONS.contains(&word)),
        word => word.starts_with('!') && rest.contains("!\"kernel\""),
    };
    let name = match rest.strip_prefix('"') {
        Some(quoted) => unescaped(quoted.split('"').next()?),
        None => rest.split(['(', ',']).next()?.to_owned(),
    };
    // One without a name has a number.
    let has_name = name.contains(|char: char| !char.is_ascii_digit());
    (is_kernel && has_name).then_some(name)
}

/// Returns a name in quotes as the object has it: `\22` stands for a quote, and `\01` before a name for no prefix.
fn unescaped(name: &str) -> String {
    let mut parts = name.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.split_at_checked(2);
        let code = code.and_then(|(code, rest)| Some((u8::from_str_radix(code, 16).ok()?, rest)));
        match code {
            Some((1, rest)) => text += rest,
            Some((code, rest)) => {
                text.extend(std::iter::once(char::from(code)).chain(rest.chars()))
            }
            None => text += part,
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_kernels_by_their_convention_or_annotation() {
        // As LLVM 22 and 19 print them.
        let text = "define protected amdgpu_kernel void @scale(ptr addrspace(1) %p) #0 {\n  call void @helper()\n}\n\
            define dso_local ptx_kernel void @\"a b\"(ptr %p) {\ndefine ptx_kernel void @\"\\01a\\22c\"(ptr %p) {\n\
            define ptx_kernel void @0() {\ndeclare amdgpu_kernel void @other()\n\
            define internal void @helper() {\ndefine void @old(ptr %p) {\n!nvvm.annotations = !{!0, !1}\n\
            !0 = !{ptr @old, !\"kernel\", i32 1}\n!1 = !{ptr @helper, !\"maxntidx\", i32 1}\n";
        let expected = ["a b", "a\"c", "old", "scale"].map(str::to_owned);
        assert_eq!(kernels(text), expected.into());
    }
}
