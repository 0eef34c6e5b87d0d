//! The runtime libraries that programs with host code are linked with, and where they are.

use crate::declare::language::Language;
use crate::declare::module::Module;
use crate::environment::Environment;
use crate::error;
use crate::error::Error;
use crate::installed::compilers::Compiler;
use crate::installed::host::Host;
use crate::installed::llvm::machine_of;
use crate::installed::sdk;
use crate::process::search::NotFound;
use std::fs;
use std::path::{Path, PathBuf};

/// The runtime that a module's host code calls.
#[derive(Debug)]
pub struct Runtime {
    /// The libraries' names after `-l`.
    pub libraries: &'static [&'static str],
    /// The libraries' folder, unless only the linker knows it.
    pub folder: Result<PathBuf, NotFound>,
}

impl Runtime {
    /// Returns the runtime of a module's language; nothing if no host code calls one.
    pub fn of(
        module: &Module,
        compiler: &Compiler,
        host: &Host,
        environment: &Environment,
    ) -> Option<Self> {
        let libraries: &[&str] = match module.language {
            _ if !module.has_host_code => return None,
            Language::OpenMp => {
                let folder = compiler.runtime.as_ref()?;
                return Some(Self {
                    libraries: &["omptarget", "omp"],
                    folder: folder.as_ref().cloned().map_err(NotFound::clone),
                });
            }
            Language::Hip => &["amdhip64"],
            Language::Cuda => &["cudart"],
            Language::Bitcode | Language::Rust | Language::Prebuilt => return None,
        };
        let roots = compiler.sdk.iter().cloned();
        let roots = roots.chain(sdk::roots(module, environment)).collect();
        let folder = gpu_folder(module, libraries, host, environment, roots);
        Some(Self { libraries, folder })
    }

    /// Returns the files of the libraries in `folder`.
    pub fn files(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        for library in self.libraries {
            let files = versions(folder, library)?;
            found.extend(files.iter().map(|file| folder.join(file)));
        }
        Ok(found)
    }
}

/// The folder of HIP's or CUDA's runtime: where programs' linker looks, as far as anybody says, then the vendor's tree.
fn gpu_folder(
    module: &Module,
    libraries: &[&str],
    host: &Host,
    environment: &Environment,
    roots: Vec<PathBuf>,
) -> Result<PathBuf, NotFound> {
    if host.is_windows() {
        return windows_folder(module, libraries, host, environment, &roots);
    }
    let arch = host.arch();
    let below = ["lib", "lib64"].map(str::to_owned).into_iter().chain([
        format!("lib/{arch}-linux-gnu"),
        format!("targets/{arch}-linux/lib"),
    ]);
    let below: Vec<String> = below.collect();
    let inside = roots
        .iter()
        .flat_map(|root| below.iter().map(|folder| root.join(folder)));
    let searched: Vec<PathBuf> = host.link_folders(environment).chain(inside).collect();
    let machine = host.machine().map(|machine| machine.number);
    let fits = |folder: &&PathBuf| {
        let has = |library: &&str| {
            let files = versions(folder, library).unwrap_or_default();
            let machine_of = |file: &String| machine_of(&folder.join(file));
            files
                .iter()
                .any(|file| machine.is_some() && machine_of(file) == machine)
        };
        libraries.iter().all(has)
    };
    searched.iter().find(fits).cloned().ok_or_else(|| {
        let name = libraries.first().expect("a runtime has a library");
        missing(module, &format!("lib{name}.so"), &searched)
    })
}

/// The folder of the import libraries of HIP's or CUDA's runtime, searched for in the same order.
fn windows_folder(
    module: &Module,
    libraries: &[&str],
    host: &Host,
    environment: &Environment,
    roots: &[PathBuf],
) -> Result<PathBuf, NotFound> {
    let below = ["lib/x64", "lib"];
    let inside = roots
        .iter()
        .flat_map(|root| below.iter().map(|folder| root.join(folder)));
    let searched: Vec<PathBuf> = host.link_folders(environment).chain(inside).collect();
    let fits = |folder: &&PathBuf| {
        let has = |library: &&str| {
            let mut files = host.import_libraries(library).into_iter();
            files.any(|file| folder.join(file).is_file())
        };
        libraries.iter().all(has)
    };
    searched.iter().find(fits).cloned().ok_or_else(|| {
        let name = libraries.first().expect("a runtime has a library");
        let files = host.import_libraries(name);
        missing(module, &files.join("` or `"), &searched)
    })
}

fn missing(module: &Module, file: &str, searched: &[PathBuf]) -> NotFound {
    let searched = searched.iter().map(|folder| folder.display().to_string());
    let hint = format!(
        "programs with this module link it: name its folder in LIBRARY_PATH or with `-L` in Cargo's `rustflags`, or \
         its tree in {}",
        sdk::main_variable(module.language)
    );
    NotFound::new(file, searched.collect(), hint)
}

/// The files of a shared library in `folder`, sorted.
pub fn versions(folder: &Path, library: &str) -> Result<Vec<String>, Error> {
    let name = format!("lib{library}.so");
    let mut found = Vec::new();
    for file in fs::read_dir(folder).map_err(error::io(folder))? {
        let file = file.map_err(error::io(folder))?.file_name();
        let Some(rest) = file.to_str().and_then(|file| file.strip_prefix(&name)) else {
            continue;
        };
        if rest.is_empty() || rest.starts_with('.') {
            found.push(format!("{name}{rest}"));
        }
    }
    found.sort();
    Ok(found)
}
