//! Programs that link SPIR-V, and those that clang runs for it.

use crate::installed::llvm::Llvm;
use crate::process::install::Need;
use crate::process::search::{NotFound, Search, program_in};
use std::path::PathBuf;

/// The programs of device links of SPIR-V.
#[derive(Clone, Debug)]
pub struct SpirvTools {
    pub spirv_link: Result<PathBuf, NotFound>,
    /// The translator that clang runs for AMD's SPIR-V.
    pub llvm_spirv: Result<PathBuf, NotFound>,
    /// The linker of SYCL beside clang.
    pub sycl_linker: Result<PathBuf, NotFound>,
    /// True if `PATH`, the only place where clang 22 looks, has the linker of SYCL.
    pub has_sycl_linker_in_path: bool,
}

impl SpirvTools {
    /// Finds the programs beside the clang of `llvm` and with `search`.
    pub(crate) fn find(llvm: Result<&Llvm, NotFound>, search: &Search) -> Self {
        Self {
            spirv_link: search.program("spirv-link").ok_or_else(|| {
                let hint = Need::SpirvTools.install(None);
                NotFound::new("spirv-link", vec!["PATH".to_owned()], hint)
            }),
            llvm_spirv: llvm_spirv(llvm.as_ref().ok().copied(), search),
            sycl_linker: llvm.and_then(|llvm| llvm.sibling("clang-sycl-linker")),
            has_sycl_linker_in_path: search.program("clang-sycl-linker").is_some(),
        }
    }
}

/// Finds the translator where clang does: with the number of its release, without, or in ROCm as `amd-llvm-spirv`; beside
/// itself, then in `PATH`.
fn llvm_spirv(llvm: Option<&Llvm>, search: &Search) -> Result<PathBuf, NotFound> {
    let release = llvm.and_then(Llvm::release);
    let numbered = release.map(|release| format!("llvm-spirv-{release}"));
    let others = ["llvm-spirv", "amd-llvm-spirv"].map(str::to_owned);
    let mut names = numbered.into_iter().chain(others);
    let beside = |name: &str| {
        let path = program_in(&llvm?.prefix.join("bin"), name);
        path.is_file().then_some(path)
    };
    let found = names.find_map(|name| beside(&name).or_else(|| search.program(&name)));
    found.ok_or_else(|| {
        let searched = vec!["clang's folder".to_owned(), "PATH".to_owned()];
        let hint = Need::SpirvTranslator.install(release);
        NotFound::new("llvm-spirv", searched, hint)
    })
}
