//! Places where programs for devices are searched.

use std::env;
use std::path::PathBuf;

use offload_build::tools::{CUDA_ROOTS, Search, USUAL_CUDA};

use crate::environment::variable;
use crate::linker_wrapper::line::arguments::Arguments;

/// Returns the search for programs for devices, in the places where build scripts search them.
pub(crate) fn search(arguments: &Arguments) -> Search {
    let named = cuda_roots(arguments).into_iter();
    Search {
        path: env::var_os("PATH").unwrap_or_default(),
        cuda: named.chain([USUAL_CUDA.into()]).collect(),
    }
}

/// Returns the roots of CUDA trees that options and variables name.
pub(super) fn cuda_roots(arguments: &Arguments) -> Vec<PathBuf> {
    let options = &arguments.options;
    // clang's driver passes the path of CUDA only to the compiler.
    let compilers = options.device_compiler.iter().filter_map(|value| {
        let (_, root) = value.to_str()?.split_once("--cuda-path=")?;
        Some(PathBuf::from(root))
    });
    let roots = options.cuda.clone().into_iter().chain(compilers);
    let variables = CUDA_ROOTS.iter().filter_map(variable);
    roots.chain(variables.map(PathBuf::from)).collect()
}
