//! The compiler of a module, found.

use crate::declare::family::Family;
use crate::declare::module::{Module, Target};
use crate::installed::lld::Lld;
use crate::installed::llvm::Llvm;
use crate::installed::llvm_tools::LlvmTools;
use crate::installed::rocm::RocmTree;
use crate::process::search::{NotFound, Search};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A compiler with its runtime: objects of one release crash another's.
#[derive(Debug)]
pub struct Compiler {
    /// The program that compiles each source.
    pub program: PathBuf,
    pub family: Family,
    /// The LLVM whose tools link device code; nvcc and the programs in place of clang have none.
    pub llvm: Option<Llvm>,
    /// The programs in place of clang, for a crate of kernels.
    pub without_clang: Option<WithoutClang>,
    /// The search for other programs that belong to it.
    pub search: Search,
    /// Programs that `program` runs, and that decide what it makes.
    pub behind: Vec<PathBuf>,
    /// The compiler that nvcc runs for host code in a cross build.
    pub host_compiler: Option<PathBuf>,
    /// The value of nvcc's `-ccbin`, unless its flags name the compiler of the host or it is the usual one.
    pub ccbin: Option<String>,
    /// The folder of the host's `libomptarget.so`, for OpenMP. A cross build may go without: where it is missing is
    /// said then.
    pub runtime: Option<Result<PathBuf, NotFound>>,
    /// The root of the vendor's headers and device libraries, where the sources need them.
    pub sdk: Option<PathBuf>,
    /// The folder of ROCm's device libraries, if clang does not find it in the tree.
    pub device_libraries: Option<PathBuf>,
    /// True if ROCm's headers need `__AMDGCN_WAVEFRONT_SIZE` and the compiler does not define it.
    pub lacks_wavefront_size: bool,
    /// Folders of the toolkit's headers that clang does not search by itself.
    pub include_last: Vec<PathBuf>,
    /// The root of the host's files, where `flags` say so.
    pub sysroot: Option<PathBuf>,
    /// The line of `--version` that tells its release.
    pub version: String,
}

/// Programs that link kernels in Rust without clang; nothing for GPUs that are no target. The error says why there are none, with
/// hints.
#[derive(Debug)]
pub struct WithoutClang {
    /// For AMD GPUs.
    pub lld: Option<Result<Lld, String>>,
    /// For NVIDIA GPUs.
    pub llvm_tools: Option<Result<LlvmTools, String>>,
}

impl WithoutClang {
    /// Returns the reason why kernels for `target` cannot be linked.
    pub fn problem(&self, target: &Target) -> Option<String> {
        match (target.triple.is_amdgpu(), &self.lld, &self.llvm_tools) {
            (true, Some(Err(problem)), _) | (false, _, Some(Err(problem))) => Some(problem.clone()),
            (false, _, Some(Ok(tools))) => tools.problem(target.id.processor()),
            _ => None,
        }
    }
}

/// A program that makes bitcode and images of kernels in Rust.
#[derive(Clone, Copy, Debug)]
pub enum KernelLinker<'a> {
    Clang(&'a Path),
    Lld(&'a Lld),
    LlvmTools(&'a LlvmTools),
}

impl Compiler {
    /// Returns a compiler with nothing else that belongs to it.
    pub(super) fn alone(program: PathBuf, family: Family, search: Search, version: String) -> Self {
        Self {
            program,
            family,
            llvm: None,
            without_clang: None,
            search,
            behind: Vec::new(),
            host_compiler: None,
            ccbin: None,
            runtime: None,
            sdk: None,
            device_libraries: None,
            lacks_wavefront_size: false,
            include_last: Vec::new(),
            sysroot: None,
            version,
        }
    }

    /// Returns the linker of kernels in Rust for a target.
    pub fn kernel_linker(&self, target: &Target) -> KernelLinker<'_> {
        let without = self.without_clang.as_ref();
        match (without, target.triple.is_amdgpu()) {
            (None, _) => KernelLinker::Clang(&self.program),
            (Some(without), true) => match &without.lld {
                Some(Ok(lld)) => KernelLinker::Lld(lld),
                _ => unreachable!("targets without a linker are left out"),
            },
            (Some(without), false) => match &without.llvm_tools {
                Some(Ok(tools)) => KernelLinker::LlvmTools(tools),
                _ => unreachable!("targets without a linker are left out"),
            },
        }
    }

    /// Returns the ROCm tree, for sources that use it.
    pub fn rocm(&self) -> Option<RocmTree<'_>> {
        self.sdk.as_deref().map(|root| RocmTree {
            root,
            device_libraries: self.device_libraries.as_deref(),
            lacks_wavefront_size: self.lacks_wavefront_size,
        })
    }

    /// The libraries that code of `module` for the host's processor may call.
    pub fn host_libraries(&self, module: &Module) -> Result<Vec<OsString>, NotFound> {
        let mut folder = OsString::from("-L");
        if let Some(runtime) = &self.runtime {
            folder.push(runtime.as_ref().map_err(NotFound::clone)?);
        }
        let cpp = module.may_have_cpp().then(|| "-lstdc++".into());
        let start = [
            "-Wl,--as-needed".into(),
            folder,
            "-lomp".into(),
            "-lomptarget".into(),
        ];
        Ok(start.into_iter().chain(cpp).chain(["-lm".into()]).collect())
    }

    /// The folders, also among those of `reads`, whose headers change only when the compiler does. In `/usr` there are
    /// packages, too.
    pub fn headers<'r>(&self, mut reads: impl Iterator<Item = &'r Path>) -> Vec<PathBuf> {
        let own = self.llvm.iter().flat_map(Llvm::headers);
        // Every source is compiled with it; a front for nvcc lies elsewhere.
        let is_toolkits = |path: &&Path| {
            let folder = path.parent().unwrap_or(Path::new("/"));
            path.ends_with("include/cuda_runtime.h") && folder != Path::new("/usr/include")
        };
        let toolkit = match self.family {
            Family::Nvcc => reads.find(is_toolkits).and_then(|path| path.parent()),
            Family::Clang | Family::Hipcc => None,
        };
        own.chain(toolkit.map(Path::to_owned)).collect()
    }
}
