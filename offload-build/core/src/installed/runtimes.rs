//! The runtime libraries that programs with host code are linked with, and where they are.

use crate::declare::language::Language;
use crate::declare::module::{Cudart, Module};
use crate::environment::Environment;
use crate::error;
use crate::error::Error;
use crate::installed::compilers::Compiler;
use crate::installed::host::Host;
use crate::installed::llvm::{machine_in, machine_of};
use crate::installed::sdk;
use crate::process::search::NotFound;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The runtime that a module's host code calls.
#[derive(Debug)]
pub struct Runtime {
    /// The libraries' names after `-l`.
    pub libraries: &'static [&'static str],
    pub form: LibraryForm,
    /// The libraries' folder, unless only the linker knows it.
    pub folder: Result<PathBuf, NotFound>,
}

/// The form of a runtime's libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryForm {
    Shared,
    /// Programs also link these libraries of the system, which the static ones call.
    Static(&'static [&'static str]),
}

/// Libraries of Linux that nvcc names after `libcudart_static.a`.
const LIBRARIES_OF_CUDART: &[&str] = &["rt", "pthread", "dl"];

impl Runtime {
    /// Returns the runtime of a module's language; nothing if no host code calls one.
    pub fn of(
        module: &Module,
        compiler: &Compiler,
        host: &Host,
        environment: &Environment,
    ) -> Option<Self> {
        let (libraries, form): (&[_; 1], _) = match (module.language, module.cudart) {
            _ if !module.has_host_code => return None,
            (Language::OpenMp, _) => {
                let folder = compiler.runtime.as_ref()?;
                return Some(Self {
                    libraries: &["omptarget", "omp"],
                    form: LibraryForm::Shared,
                    folder: folder.as_ref().cloned().map_err(NotFound::clone),
                });
            }
            (Language::Hip, _) => (&["amdhip64"], LibraryForm::Shared),
            (Language::Cuda, Cudart::None) => return None,
            (Language::Cuda, Cudart::Shared) => (&["cudart"], LibraryForm::Shared),
            (Language::Cuda, Cudart::Static) => {
                let of_linux = LIBRARIES_OF_CUDART;
                let system = if host.is_windows() { &[] } else { of_linux };
                (&["cudart_static"], LibraryForm::Static(system))
            }
            (Language::Bitcode | Language::Rust | Language::Prebuilt, _) => return None,
        };
        let mut roots: Vec<PathBuf> = compiler.sdk.iter().cloned().collect();
        for root in sdk::roots(module, environment) {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        let spread = roots.iter().filter_map(|root| sdk::spread_over(root));
        let spread: Vec<PathBuf> = spread.map(Path::to_owned).collect();
        roots.extend(spread);
        let [library] = libraries;
        let folder = gpu_folder(module, library, form, host, environment, &roots);
        Some(Self {
            libraries,
            form,
            folder,
        })
    }

    /// Returns all libraries that programs link, in their order: their kinds as Cargo spells them, and names after `-l`.
    pub fn linked(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (kind, system) = match self.form {
            LibraryForm::Shared => ("dylib", &[][..]),
            LibraryForm::Static(system) => ("static", system),
        };
        let own = self.libraries.iter().map(move |library| (kind, *library));
        own.chain(system.iter().map(|library| ("dylib", *library)))
    }

    /// Returns the files of the libraries in `folder`.
    pub fn files(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        for library in self.libraries {
            let files = files_of(folder, library, self.form)?;
            found.extend(files.iter().map(|file| folder.join(file)));
        }
        Ok(found)
    }
}

/// The folder of HIP's or CUDA's runtime: where programs' linker looks, as far as anybody says, then the vendor's tree.
fn gpu_folder(
    module: &Module,
    library: &str,
    form: LibraryForm,
    host: &Host,
    environment: &Environment,
    roots: &[PathBuf],
) -> Result<PathBuf, NotFound> {
    let below = library_folders(host);
    let inside = roots
        .iter()
        .flat_map(|root| below.iter().map(|folder| root.join(folder)));
    let searched: Vec<PathBuf> = host.link_folders(environment).chain(inside).collect();
    let names = match form {
        LibraryForm::Shared if host.is_windows() => host.import_libraries(library),
        LibraryForm::Shared => vec![format!("lib{library}.so")],
        LibraryForm::Static(_) => vec![host.static_library(library)],
    };
    let fits = |folder: &&PathBuf| match host.is_windows() {
        true => names.iter().any(|name| folder.join(name).is_file()),
        false => holds(folder, library, form, host),
    };
    let missing = || missing(module, &names.join("` or `"), &searched);
    searched.iter().find(fits).cloned().ok_or_else(missing)
}

/// Returns the folders of a vendor's tree that libraries of `host` may be in.
fn library_folders(host: &Host) -> Vec<String> {
    let arch = host.arch();
    match host.is_windows() {
        true => vec!["lib/x64".to_owned(), "lib".to_owned()],
        false => vec![
            "lib".to_owned(),
            "lib64".to_owned(),
            format!("lib/{arch}-linux-gnu"),
            format!("targets/{arch}-linux/lib"),
            // NVIDIA's name for servers with AArch64.
            "targets/sbsa-linux/lib".to_owned(),
        ],
    }
}

/// Tells whether `folder` holds a library with code of `host`, a Linux.
fn holds(folder: &Path, library: &str, form: LibraryForm, host: &Host) -> bool {
    let machine = host.machine().map(|machine| machine.number);
    let files = files_of(folder, library, form).unwrap_or_default();
    let mut machines = files
        .iter()
        .map(|file| machine_of_library(&folder.join(file)));
    machine.is_some() && machines.any(|other| other == machine)
}

/// Returns the library of CUDA's device runtime for programs of `host`, a Linux, in the tree `root` of a toolkit.
pub(super) fn cuda_device_runtime(root: &Path, host: &Host) -> Option<PathBuf> {
    let (name, form) = ("cudadevrt", LibraryForm::Static(&[]));
    let folders = library_folders(host);
    let mut folders = folders.iter().map(|folder| root.join(folder));
    let folder = folders.find(|folder| holds(folder, name, form, host))?;
    Some(folder.join(host.static_library(name)))
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

/// The files of a library in `folder`.
fn files_of(folder: &Path, library: &str, form: LibraryForm) -> Result<Vec<String>, Error> {
    match form {
        LibraryForm::Shared => versions(folder, library),
        LibraryForm::Static(_) => {
            let file = format!("lib{library}.a");
            let is_there = folder.join(&file).is_file();
            Ok(is_there.then_some(file).into_iter().collect())
        }
    }
}

/// Returns the machine number of a shared library, or of an archive's first object.
fn machine_of_library(path: &Path) -> Option<u16> {
    machine_of(path).or_else(|| machine_of_archive(path))
}

/// Returns the machine number of the first object of an archive; `None` for other files.
fn machine_of_archive(path: &Path) -> Option<u16> {
    /// Offset and size in bytes of a member's size, a decimal number, in its header.
    const SIZE: std::ops::Range<usize> = 48..58;
    let mut file = File::open(path).ok()?;
    let mut magic = [0; 8];
    file.read_exact(&mut magic).ok()?;
    if magic != *b"!<arch>\n" {
        return None;
    }
    loop {
        let mut header = [0; 60];
        file.read_exact(&mut header).ok()?;
        let size = std::str::from_utf8(&header[SIZE]).ok()?.trim_end();
        let size: u32 = size.parse().ok()?;
        // Index and table of names: `/`, `/SYM64/` and `//`. Other names that start with a slash have digits after it.
        let is_object = header[0] != b'/' || header[1].is_ascii_digit();
        if is_object {
            return machine_in(&mut file);
        }
        let even = i64::from(size) + i64::from(size % 2);
        file.seek(SeekFrom::Current(even)).ok()?;
    }
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
