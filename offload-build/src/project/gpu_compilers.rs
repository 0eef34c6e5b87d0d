//! The compilers of this machine, with the processors that each makes code for.

use offload_build_core::environment::Environment;
use offload_build_core::error::Error;
use offload_build_core::installed::answers::Answers;
use offload_build_core::installed::compilers::{nvcc, processors};
use offload_build_core::installed::cuda;
use offload_build_core::installed::llvm::Llvm;
use offload_build_core::process::command::Command;
use offload_formats::names::Triple;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

/// A compiler of device code.
#[derive(Debug)]
pub struct GpuCompiler {
    /// Name with the release, such as `clang 22` or `nvcc`.
    pub name: String,
    /// The program.
    pub path: PathBuf,
    /// Processors for which it makes images here. Images of NVIDIA's need `ptxas` beside clang.
    pub processors: BTreeSet<String>,
    /// Processors for which it makes PTX alone.
    pub ptx_only: BTreeSet<String>,
}

/// Asks each compiler which processors it knows; one that does not answer knows none.
///
/// # Errors
///
/// If `OUT_DIR`, where the answers are kept, is not among `variables`.
pub fn gpu_compilers(variables: BTreeMap<OsString, OsString>) -> Result<Vec<GpuCompiler>, Error> {
    let environment = Environment::new(variables.into_iter().collect());
    let out = PathBuf::from(environment.required("OUT_DIR")?);
    let answers = Answers::below(&out, "");
    let search = environment.search();
    let assembled = |ptxas: PathBuf| cuda::processors(&ptxas, &answers).unwrap_or_default();
    let ptxas = search.cuda_program("ptxas").ok().map(assembled);
    let clangs = search.clangs().into_iter();
    let mut found: Vec<GpuCompiler> = clangs
        .map(|llvm| clang(&llvm, ptxas.as_ref(), &answers))
        .collect();
    if let Some(path) = nvcc::program("nvcc", &search) {
        // Its own list lacks processors with a suffix: `sm_90a`.
        let codes = || {
            let question = Command::new(&path).arg("--list-gpu-code");
            cuda::names(&answers.to(&question).unwrap_or_default())
        };
        let processors = nvcc::ptxas(&path).map(assembled);
        let processors = processors.filter(|names| !names.is_empty());
        let processors = processors.unwrap_or_else(codes);
        found.push(GpuCompiler {
            name: "nvcc".to_owned(),
            path,
            processors,
            ptx_only: BTreeSet::new(),
        });
    }
    Ok(found)
}

fn clang(llvm: &Llvm, ptxas: Option<&BTreeSet<String>>, answers: &Answers) -> GpuCompiler {
    let known = |triple: &str| {
        let triple = Triple::parse(triple).expect("the triple is well-formed");
        processors(llvm, &triple, answers).unwrap_or_default()
    };
    let mut images = known("amdgcn-amd-amdhsa");
    if llvm.sibling("ld.lld").is_err() {
        images.clear();
    }
    let nvidia = known("nvptx64-nvidia-cuda");
    let assembled = |name: &&String| ptxas.is_some_and(|ptxas| ptxas.contains(*name));
    images.extend(nvidia.iter().filter(assembled).cloned());
    let release = llvm.release();
    GpuCompiler {
        name: release.map_or("clang".to_owned(), |release| format!("clang {release}")),
        path: llvm.clang.clone(),
        ptx_only: nvidia.difference(&images).cloned().collect(),
        processors: images,
    }
}
