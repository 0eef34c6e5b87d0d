//! hipcc, and other programs of ROCm trees.

use crate::declare::family::Family;
use crate::declare::module::Module;
use crate::environment::Environment;
use crate::error::Error;
use crate::installed::answers::Answers;
use crate::installed::compilers::compiler::Compiler;
use crate::installed::rocm;
use crate::process::command::Command;
use crate::process::search::NotFound;
use crate::process::search::Search;
use std::path::PathBuf;

/// A program of a ROCm tree that `module` declares: in `PATH`, else in the trees that are found.
pub(super) fn find(
    module: &Module,
    declared: &str,
    environment: &Environment,
    search: &Search,
    answers: &Answers,
) -> Result<PathBuf, Error> {
    if let Some(path) = search.programs(declared).next() {
        return Ok(path);
    }
    let mut searched = vec!["PATH".to_owned()];
    if !declared.contains('/') {
        let in_roots =
            |roots: &[PathBuf]| roots.iter().find_map(|root| rocm::program(root, declared));
        let mut roots = rocm::named_roots(environment);
        if let Some(path) = in_roots(&roots) {
            return Ok(path);
        }
        let asked = rocm::asked_roots(search, answers)?;
        let usual = rocm::ROCM_FOLDERS.iter().map(PathBuf::from);
        let others: Vec<PathBuf> = asked.into_iter().chain(usual).collect();
        if let Some(path) = in_roots(&others) {
            return Ok(path);
        }
        roots.extend(others);
        searched.extend(roots.iter().map(|root| root.display().to_string()));
    }
    let hint = "install ROCm's compilers and set ROCM_PATH to its root, or leave `compiler` out: any clang compiles HIP";
    let missing = NotFound::new(declared, searched, hint);
    let name = &module.name;
    Err(module.with_compiler_origin(Error::missing(format_args!("module `{name}`: {missing}"))))
}

/// hipcc with the clang that it starts.
pub(super) fn hipcc(
    module: &Module,
    program: PathBuf,
    search: &Search,
    answers: &Answers,
) -> Result<Compiler, Error> {
    // Asked without a processor it looks for a GPU.
    let question = Command::new(&program).args(["--offload-arch=gfx906", "--version"]);
    let answer = answers.to(&question).map_err(Error::new)?;
    let Some(llvm) = rocm::clang_behind(&answer) else {
        return Err(Error::new(format_args!(
            "module `{}`: `{question}` does not name an installed clang; it printed:\n{}\n\
             hint: set HIP_CLANG_PATH to the folder of hipcc's clang, and HIP_PLATFORM, if it is set, to `amd`",
            module.name,
            answer.trim_end()
        )));
    };
    let version = rocm::version_line(&answer);
    // It names headers and device libraries to its clang.
    Ok(Compiler {
        behind: vec![llvm.clang.clone()],
        llvm: Some(llvm),
        ..Compiler::alone(program, Family::Hipcc, search.clone(), version)
    })
}
