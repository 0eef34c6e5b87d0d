//! Names that only one module in any program has.

use offload_build_core::declare::module::Module;
use offload_build_core::environment::Environment;
use offload_build_core::error::Error;
use offload_build_core::files;
use offload_formats::md5::{self, Md5};
use std::path::Path;

/// A name that no other module in any program has: two versions of a package, and two modules of one,
/// may meet in one link. Cargo's folder for the package tells what the version alone does not.
pub(crate) fn unique(environment: &Environment, module: &Module) -> Result<String, Error> {
    let package = environment.required("CARGO_PKG_NAME")?;
    // Names of symbols that Rust declares have no other letters.
    let is_other = |letter: char| !letter.is_ascii_alphanumeric();
    let package = package.replace(is_other, "_");
    let out = environment.required("OUT_DIR")?;
    let folders: Vec<_> = Path::new(&out).components().rev().skip(1).take(2).collect();
    let mut hash = Md5::new();
    hash.update(environment.required("CARGO_PKG_VERSION")?);
    for folder in folders {
        hash.update("/");
        hash.update(folder.as_os_str().to_string_lossy().as_bytes());
    }
    let digest = md5::hex(&hash.finalize()[..4]);
    let names = format!("{package}_{}", module.name);
    Ok(match files::short_name(&names) {
        short if short == names => format!("{names}_{digest}"),
        // It starts with digits, and this names symbols.
        short => format!("m{}_{digest}", short.replace('-', "_")),
    })
}
