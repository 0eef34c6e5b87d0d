//! Values of options for some targets: `[<triple>=]<value>` and similar forms.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use offload_formats::names::{LlvmRelease, OffloadKind, Triple};

use crate::platform;

/// Returns the files of `--bitcode-library=<kind>-<triple>-<processor>=<file>` for a target and the kinds of its images.
pub(crate) fn bitcode_libraries<'a>(
    values: &'a [OsString],
    for_target: (&'a str, &'a str),
    kinds: &'a [OffloadKind],
) -> impl Iterator<Item = PathBuf> + 'a {
    values.iter().filter_map(move |value| {
        let (target, file) = split(value)?;
        let target = target.to_str()?;
        let (kind, rest) = target.split_once('-')?;
        let (triple, processor) = rest.rsplit_once('-')?;
        let kind = OffloadKind::from_name(kind)?;
        let same = (triple, processor) == for_target;
        (same && kinds.contains(&kind)).then(|| file.into())
    })
}

/// Returns the files of `--builtin-bitcode=<triple>=<file>` for a triple.
pub(crate) fn builtin_bitcode(values: &[OsString], triple: &str) -> Vec<PathBuf> {
    let values = values.iter().filter_map(|value| split(value));
    let files = values.filter(|(for_triple, _)| for_triple == triple);
    files.map(|(_, file)| file.into()).collect()
}

/// Splits at the first `=`.
fn split(value: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = value.as_encoded_bytes();
    let place = bytes.iter().position(|byte| *byte == b'=')?;
    let (before, after) = (bytes.get(..place)?, bytes.get(place + 1..)?);
    let owned = |bytes: &[u8]| platform::os_string(bytes.to_vec());
    Some((owned(before), owned(after)))
}

/// Returns the values for `triple` in `[<triple>=]<value>`, by the rules of a release (`docs/spec/linker-wrapper.md`
/// §1.6).
pub(crate) fn for_target(values: &[OsString], triple: &str, release: LlvmRelease) -> Vec<OsString> {
    let applies = |value: &OsString| -> Option<OsString> {
        let Some((before, after)) = split(value) else {
            return Some(value.clone());
        };
        let before = before.to_string_lossy();
        let parsed = Triple::parse(&before).ok();
        let known = parsed.as_ref().is_some_and(Triple::has_known_arch);
        let is_for = match release {
            LlvmRelease::V19 => before == triple,
            _ if !known => return Some(value.clone()),
            LlvmRelease::V20 | LlvmRelease::V21 | LlvmRelease::V22 => before == triple,
            _ => {
                let wanted = Triple::parse(triple).ok();
                parsed
                    .zip(wanted)
                    .is_some_and(|(own, wanted)| own.serves(&wanted))
            }
        };
        is_for.then_some(after)
    };
    values.iter().filter_map(applies).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn gives_each_kind_its_libraries() {
        let values = [
            "hip-amdgcn-amd-amdhsa-gfx90a=h.bc",
            "openmp-amdgcn-amd-amdhsa-gfx90a=o.bc",
        ];
        let values = values.map(OsString::from);
        let of = |processor, kinds| -> Vec<PathBuf> {
            bitcode_libraries(&values, ("amdgcn-amd-amdhsa", processor), kinds).collect()
        };
        assert_eq!(of("gfx90a", &[OffloadKind::OPENMP]), [Path::new("o.bc")]);
        assert_eq!(of("gfx90a", &[OffloadKind::HIP]), [Path::new("h.bc")]);
        assert!(of("gfx906", &[OffloadKind::HIP]).is_empty());
    }

    #[test]
    fn gives_each_target_its_arguments() {
        let values: Vec<OsString> = ["foo=bar", "a", "nvptx64-nvidia-cuda=b", "-DX=1"]
            .map(OsString::from)
            .to_vec();
        let for_22 = |triple| for_target(&values, triple, LlvmRelease::V22);
        assert_eq!(for_22("amdgcn-amd-amdhsa"), ["foo=bar", "a", "-DX=1"]);
        assert_eq!(
            for_22("nvptx64-nvidia-cuda"),
            ["foo=bar", "a", "b", "-DX=1"]
        );
        // Up to LLVM 19, any text before `=` is a triple.
        let for_19 = |triple| for_target(&values, triple, LlvmRelease::V19);
        assert_eq!(for_19("nvptx64-nvidia-cuda"), ["a", "b"]);
        assert_eq!(for_19("amdgcn-amd-amdhsa"), ["a"]);
        // On the main branch, one triple may stand for several.
        let values = ["amdgpu-amd-amdhsa=c".into()];
        let for_release = |release| for_target(&values, "amdgcn-amd-amdhsa", release);
        assert_eq!(for_release(LlvmRelease::Main), ["c"]);
        assert_eq!(for_release(LlvmRelease::V22), [""; 0]);
    }
}
