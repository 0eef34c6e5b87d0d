//! The compilers of this machine, with the processors that each makes code for.

use offload_build_core::environment::Environment;
use offload_build_core::error::Error;
use offload_build_core::installed::all_processors;
use offload_build_core::installed::answers::Answers;
use offload_build_core::installed::compilers::{nvcc, processors};
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
    let ask = |command: Command| answers.to(&command).unwrap_or_default();
    let ptxas = search.cuda_program("ptxas").ok();
    let ptxas = ptxas.map(|ptxas| {
        let help = ask(Command::new(ptxas).arg("--help"));
        nvidia_names(all_processors::gpu_names(&help))
    });
    let clangs = search.clangs().into_iter();
    let mut found: Vec<GpuCompiler> = clangs
        .map(|llvm| clang(&llvm, ptxas.as_ref(), &answers))
        .collect();
    if let Some(path) = nvcc::program("nvcc", &search) {
        let codes = ask(Command::new(&path).arg("--list-gpu-code"));
        found.push(GpuCompiler {
            name: "nvcc".to_owned(),
            path,
            processors: nvidia_names(&codes),
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

/// Parses the names in an answer: `sm_90a`, between blanks, commas or quotes.
fn nvidia_names(answer: &str) -> BTreeSet<String> {
    let words = answer.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    let is_name = |word: &&str| {
        let number = word.strip_prefix("sm_");
        number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    };
    words.filter(is_name).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_in_any_quotes() {
        // ptxas 13.5 and nvcc 13.5, shortened.
        let ptxas = "\t'compute_90','sm_90','sm_90a','sm_100f'. Default: sm_XY\n";
        let names: Vec<String> = nvidia_names(ptxas).into_iter().collect();
        assert_eq!(names, ["sm_100f", "sm_90", "sm_90a"]);
        assert_eq!(nvidia_names("sm_75\nsm_80\n").len(), 2);
    }
}
