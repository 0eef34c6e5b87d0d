//! Places where programs for devices are searched.

use std::env;
use std::path::PathBuf;

use offload_build::tools::Search;

use crate::environment::variable;
use crate::linker_wrapper::line::arguments::Arguments;

/// Returns the search for programs for devices.
pub(crate) fn search(arguments: &Arguments) -> Search {
    let options = &arguments.options;
    // clang's driver passes the path of CUDA only to the compiler.
    let compilers = options.device_compiler.iter().filter_map(|value| {
        let (_, root) = value.to_str()?.split_once("--cuda-path=")?;
        Some(PathBuf::from(root))
    });
    let roots = options.cuda.clone().into_iter().chain(compilers);
    Search {
        path: env::var_os("PATH").unwrap_or_default(),
        cuda: roots
            .chain(variable("CUDA_PATH").map(PathBuf::from))
            .collect(),
    }
}
