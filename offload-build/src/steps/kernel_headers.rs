//! Writes the headers that sources of HIP and CUDA include as `<offload/gpu.h>`, those that clang misses in CUDA's toolkit, and
//! one that stands in front of glibc's.
//!
//! They come with this crate as text: no compile reads a file of the folder in which Cargo keeps its source.

use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::step::{Done, Made, Step};
use offload_build_core::declare::language::Language;
use offload_build_core::error;
use offload_build_core::files;
use offload_formats::names::Triple;
use std::fmt;
use std::path::{Path, PathBuf};

macro_rules! headers {
    ($($name:literal),* $(,)?) => {
        /// Each header by the name that sources include, and its text.
        const HEADERS: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../include/", $name)))),*];
    };
}

headers![
    "offload/glibc/bits/floatn.h",
    "offload/gpu.h",
    "offload/gpu/amd.h",
    "offload/gpu/atomic.h",
    "offload/gpu/device.h",
    "offload/gpu/index.h",
    "offload/gpu/language.h",
    "offload/gpu/launch.h",
    "offload/gpu/math.h",
    "offload/gpu/nvidia.h",
    "offload/gpu/runtime.h",
    "offload/gpu/warp.h",
    "offload/toolkit/cache_hints.h",
    "offload/toolkit/curand_mtgp32_kernel.h",
    "offload/toolkit/nvcc.h",
    "offload/toolkit/nvcc_host.h",
];

/// The first clang that reads the header of glibc for NVIDIA GPUs.
const READS_GLIBC: u32 = 22;

/// Returns the folder of all headers. No module has its name: that is an identifier.
pub(crate) fn root(out: &Path) -> PathBuf {
    out.join("offload").join("kernel-headers")
}

/// Returns the folder in which compilers look for the headers, if sources of `language` may include them.
pub(crate) fn folder(language: Language, out: &Path) -> Option<PathBuf> {
    match language {
        Language::Hip | Language::Cuda => Some(root(out)),
        Language::OpenMp | Language::Bitcode | Language::Rust | Language::Prebuilt => None,
    }
}

/// Returns the folder with the header in front of glibc's, if clang of this release needs it in sources of `language` for `triple`.
pub(crate) fn glibc_folder(
    language: Language,
    triple: &Triple,
    release: Option<u32>,
    out: &Path,
) -> Option<PathBuf> {
    let reads_it = release.is_some_and(|release| release >= READS_GLIBC);
    let is_needed = language == Language::OpenMp && triple.is_nvptx() && !reads_it;
    is_needed.then(|| root(out).join("offload").join("glibc"))
}

/// Returns the folder with headers that clang includes and NVIDIA's wheels lack. Compilers search it last, so a header that
/// the toolkit has comes first.
pub(crate) fn toolkit_folder(out: &Path) -> Option<PathBuf> {
    folder(Language::Cuda, out).map(|folder| folder.join("offload").join("toolkit"))
}

/// Writes the headers of all modules to one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelHeaders {
    pub(crate) folder: PathBuf,
}

impl KernelHeaders {
    fn outputs(&self) -> impl Iterator<Item = (PathBuf, &'static str)> {
        let headers = HEADERS.iter();
        headers.map(|(name, text)| (self.folder.join(name), *text))
    }
}

impl Step for KernelHeaders {
    fn title(&self) -> String {
        "headers of kernels".to_owned()
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.display();
        writeln!(f, "# {}, in this process: {folder}", self.title())
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        for (path, text) in self.outputs() {
            files::write(&path, text.as_bytes()).map_err(error::io(&path))?;
        }
        Ok(Done::default())
    }

    fn made(&self) -> Made {
        let outputs = self.outputs().map(|(path, _)| path).collect();
        Made::in_process(self.title(), outputs, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    #[test]
    fn carries_every_header() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
        let list = |folder: &str| {
            let files = fs::read_dir(root.join(folder)).unwrap();
            let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            let headers = names.filter(|name| name.ends_with(".h"));
            headers
                .map(|name| format!("{folder}/{name}"))
                .collect::<BTreeSet<_>>()
        };
        let mut expected = list("offload");
        expected.extend(list("offload/glibc/bits"));
        expected.extend(list("offload/gpu"));
        expected.extend(list("offload/toolkit"));
        let carried = HEADERS.iter().map(|(name, _)| (*name).to_owned());
        assert_eq!(carried.collect::<BTreeSet<_>>(), expected);
    }
}
