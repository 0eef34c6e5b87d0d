//! The host that programs are built for, and where the runtime that they are linked with is.

use crate::container::elf::Machine;
use crate::environment::Environment;
use crate::error::Error;
use crate::toolchain::{Llvm, machine_of};
use std::path::{Path, PathBuf};

/// What programs are built for.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// As Cargo has it.
    pub(crate) triple: String,
    machine: Option<Machine>,
    /// Whether it is another one than that on which the build runs.
    pub(crate) is_cross: bool,
    /// Folders in which the programs' linker looks, as far as Cargo and the C compilers say.
    folders: Vec<PathBuf>,
}

impl Host {
    /// That of Cargo's `TARGET`.
    pub(crate) fn of(environment: &Environment) -> Result<Self, Error> {
        let triple = environment.required("TARGET")?;
        let machine = machine(&triple);
        let is_cross = triple != environment.required("HOST")?;
        let rustflags = environment
            .cargo("CARGO_ENCODED_RUSTFLAGS")
            .unwrap_or_default();
        let mut folders = link_folders(rustflags.split('\x1f'));
        if is_cross {
            let variable = environment.variable("LIBRARY_PATH").unwrap_or_default();
            let named = std::env::split_paths(&variable);
            folders.extend(named.filter(|folder| !folder.as_os_str().is_empty()));
        }
        Ok(Self {
            triple,
            machine,
            is_cross,
            folders,
        })
    }

    /// Folders in which the programs' linker looks, as far as `-L` in `rustflags` and LIBRARY_PATH say.
    pub(crate) fn link_folders(&self, environment: &Environment) -> impl Iterator<Item = PathBuf> {
        // In a cross build they are there already.
        let variable = environment.variable("LIBRARY_PATH");
        let variable = variable.filter(|_| !self.is_cross).unwrap_or_default();
        let named: Vec<PathBuf> = std::env::split_paths(&variable).collect();
        let named = named
            .into_iter()
            .filter(|path| !path.as_os_str().is_empty());
        self.folders.clone().into_iter().chain(named)
    }

    /// For its objects, which modules with host code need.
    pub(crate) fn machine(&self) -> Result<Machine, Error> {
        self.machine.ok_or_else(|| {
            Error::new(format_args!(
                "`{}` is not supported as a host yet (x86_64 and aarch64 Linux are)",
                self.triple
            ))
        })
    }

    /// The processor, as triples name it.
    pub(crate) fn arch(&self) -> &str {
        self.triple.split('-').next().unwrap_or_default()
    }

    /// The folder of OpenMP's offload runtime for this host, of the release of `llvm`; otherwise those that were
    /// searched.
    ///
    /// In a cross build, clang's own folders mostly hold that of the machine that builds: the sysroot has them again,
    /// and folders of the programs' link count.
    pub(crate) fn runtime(
        &self,
        llvm: &Llvm,
        sysroot: Option<&Path>,
    ) -> Result<PathBuf, Vec<PathBuf>> {
        let own = llvm.libraries(self.arch());
        let mut searched: Vec<PathBuf> = own.collect();
        if self.is_cross {
            let arch = self.arch();
            let system = [
                format!("/usr/{arch}-linux-gnu/lib"),
                format!("/usr/lib/{arch}-linux-gnu"),
            ];
            let below = |root: &Path, folder: &Path| {
                let inside = folder.strip_prefix("/").unwrap_or(folder);
                root.join(inside)
            };
            if let Some(root) = sysroot {
                let inside = searched.iter().map(|folder| below(root, folder));
                let inside: Vec<PathBuf> = inside.collect();
                searched.extend(inside);
                searched.push(root.join("usr/lib"));
            }
            searched.extend(self.folders.iter().cloned());
            searched.extend(system.map(PathBuf::from));
        }
        let release = llvm.release();
        let own = self.machine.map(|machine| machine.number);
        let fits = |folder: &&PathBuf| {
            let library = folder.join("libomptarget.so");
            let machine = machine_of(&library);
            machine.is_some()
                && machine == own
                && (release.is_none() || [None, release].contains(&release_of(&library)))
        };
        match searched.iter().find(fits) {
            Some(folder) => Ok(folder.clone()),
            None => Err(searched),
        }
    }
}

fn machine(triple: &str) -> Option<Machine> {
    let linux = triple.contains("-linux-");
    match triple.split('-').next() {
        Some("x86_64") if linux => Some(Machine::X86_64),
        Some("aarch64") if linux => Some(Machine::AARCH64),
        _ => None,
    }
}

/// The folders of rustc's `-L` that hold libraries of C.
fn link_folders<'a>(flags: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut is_value = false;
    for flag in flags {
        let value = match flag.strip_prefix("-L") {
            _ if is_value => flag,
            Some(value) => value,
            None => continue,
        };
        is_value = !is_value && value.is_empty();
        let folder = match value.split_once('=') {
            Some(("native" | "all", folder)) => folder,
            Some(("dependency" | "crate" | "framework", _)) => continue,
            _ => value,
        };
        if !folder.is_empty() {
            folders.push(PathBuf::from(folder));
        }
    }
    folders
}

/// The release that the name of the file behind a link says: 19 of `libomptarget.so.19.1`.
fn release_of(library: &Path) -> Option<u32> {
    let real = library.canonicalize().ok()?;
    let (_, version) = real.file_name()?.to_str()?.split_once(".so.")?;
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_folders_of_rustflags() {
        let flags = [
            "-C",
            "opt-level=3",
            "-L",
            "/one",
            "-Lnative=/two",
            "-Ldependency=/three",
            "-L",
            "all=/four",
            "-lomp",
        ];
        let folders = ["/one", "/two", "/four"].map(PathBuf::from);
        assert_eq!(link_folders(flags.into_iter()), folders);
        assert_eq!(
            link_folders(["", "-L"].into_iter()),
            [""; 0].map(PathBuf::from)
        );
    }

    #[test]
    fn takes_a_runtime_for_its_own_machine_and_release() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let put = |path: &str, machine: u8| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut head = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\0\0";
            head[18] = machine;
            std::fs::write(path, head).unwrap();
        };
        let host = |folder: Option<&str>| Host {
            triple: "aarch64-unknown-linux-gnu".into(),
            machine: Some(Machine::AARCH64),
            is_cross: true,
            folders: folder.map(|name| root.join(name)).into_iter().collect(),
        };
        put("llvm/bin/clang-19", 62);
        put("llvm/lib/libomptarget.so", 62);
        let llvm = Llvm::of(root.join("llvm/bin/clang-19"));
        let searched = host(None).runtime(&llvm, None).unwrap_err();
        assert!(searched.contains(&llvm.prefix.join("lib")), "{searched:?}");
        assert!(
            searched.contains(&"/usr/lib/aarch64-linux-gnu".into()),
            "{searched:?}"
        );
        // Another release, by its name.
        put("other/libomptarget.so.18.1", 183);
        std::os::unix::fs::symlink("libomptarget.so.18.1", root.join("other/libomptarget.so"))
            .unwrap();
        host(Some("other")).runtime(&llvm, None).unwrap_err();
        put("target/libomptarget.so", 183);
        assert_eq!(
            host(Some("target")).runtime(&llvm, None),
            Ok(root.join("target"))
        );
        // The sysroot has clang's folder again.
        let inside = root
            .join("sysroot")
            .join(llvm.prefix.strip_prefix("/").unwrap())
            .join("lib");
        put(inside.join("libomptarget.so").to_str().unwrap(), 183);
        let sysroot = root.join("sysroot");
        assert_eq!(
            host(Some("target")).runtime(&llvm, Some(&sysroot)),
            Ok(inside)
        );
        // Clang's own folder for that machine comes first.
        let own = llvm.prefix.join("lib/aarch64-unknown-linux-gnu");
        put("llvm/lib/aarch64-unknown-linux-gnu/libomptarget.so", 183);
        assert_eq!(host(None).runtime(&llvm, Some(&sysroot)), Ok(own));
    }
}
