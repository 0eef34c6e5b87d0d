//! LLVM installations, known by their clang.

#[cfg(feature = "tools")]
mod releases;

use crate::files::real_path;
use crate::installed::answers::Answers;
use crate::process::command::Command;
use crate::process::install::Need;
use crate::process::search::{NotFound, Search, program_in};
use offload_formats_core::format::bitcode;
use offload_formats_core::format::global_symbol::GlobalSymbol;
use offload_formats_core::names::Triple;
use offload_formats_core::names::host::Machine;
use std::env::consts::EXE_SUFFIX;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The newest LLVM release whose versioned program names (`clang-23`) are looked for, and the oldest.
pub const RELEASES: std::ops::RangeInclusive<u32> = 16..=24;

/// The function that enters a critical region, `impl::setCriticalLock(omp_lock_t *)`.
const CRITICAL_LOCK: &[u8] = b"_ZN4impl15setCriticalLockEP10omp_lock_t";

/// The processor of this machine, as triples name it.
pub const HERE: &str = std::env::consts::ARCH;

/// One LLVM installation, known by its clang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Llvm {
    /// The compiler, as found or declared.
    pub clang: PathBuf,
    /// The folder that holds `bin` and `lib`, links resolved.
    pub prefix: PathBuf,
    release: Option<u32>,
}

impl Search {
    /// Returns every clang found, newest release first: versioned names, then plain `clang`. What stands before one in
    /// `PATH` under its name may be a link to a compiler cache, which has no LLVM around it.
    #[must_use]
    pub fn clangs(&self) -> Vec<Llvm> {
        let names = RELEASES.rev().map(|release| format!("clang-{release}"));
        let mut found: Vec<Llvm> = Vec::new();
        for name in names.chain(["clang".to_owned()]) {
            for llvm in self.programs(&name).map(Llvm::of) {
                if found.iter().all(|other| other.prefix != llvm.prefix) {
                    found.push(llvm);
                }
            }
        }
        found
    }
}

impl Llvm {
    /// The installation to which `clang` belongs.
    #[must_use]
    pub fn of(clang: PathBuf) -> Self {
        let real = real_path(&clang).unwrap_or_else(|| clang.clone());
        let prefix = real.ancestors().nth(2).unwrap_or(Path::new("/"));
        Self::within(prefix.to_path_buf(), clang)
    }

    /// The installation in the folder `prefix`, with `clang` as its compiler.
    pub fn within(prefix: PathBuf, clang: PathBuf) -> Self {
        Self {
            release: release(&prefix, &clang),
            prefix,
            clang,
        }
    }

    /// The release, such as 22: by the name of the program, else by its folder of headers (`lib/clang/22`).
    /// Nothing when neither tells, or there are several of these folders.
    #[must_use]
    pub fn release(&self) -> Option<u32> {
        self.release
    }

    /// A sibling of clang, such as `llvm-link`.
    ///
    /// # Errors
    ///
    /// When clang's folder does not have it.
    pub fn sibling(&self, name: &'static str) -> Result<PathBuf, NotFound> {
        let bin = self.prefix.join("bin");
        let path = program_in(&bin, name);
        if path.is_file() {
            return Ok(path);
        }
        let hint = Need::of_sibling(name).install(self.release());
        Err(NotFound::new(name, vec![bin.display().to_string()], hint))
    }

    /// A sibling of clang, or the program of that name that clang says it runs: a script in clang's place may start a
    /// clang that lies elsewhere.
    ///
    /// # Errors
    ///
    /// When clang does not know one either. That is not kept in `answers`.
    pub(in crate::installed) fn program(
        &self,
        name: &'static str,
        answers: Option<&Answers>,
    ) -> Result<PathBuf, NotFound> {
        self.sibling(name).or_else(|missing| {
            let question = Command::new(&self.clang).arg(format!("-print-prog-name={name}"));
            let named = |answer: &str| {
                let path = PathBuf::from(answer.lines().next()?);
                (path.is_absolute() && path.is_file()).then_some(path)
            };
            let answer = match answers {
                Some(answers) => answers.accepted(&question, |answer| named(answer).is_some()),
                None => question.run().map(|output| output.stdout),
            };
            answer.ok().and_then(|answer| named(&answer)).ok_or(missing)
        })
    }

    /// The folder with the `libomptarget.so` for that machine, when this release has OpenMP's offload runtime for it
    /// installed.
    #[must_use]
    pub fn offload_runtime(&self, machine: Machine) -> Option<PathBuf> {
        let arch = match machine {
            Machine::AARCH64 => "aarch64",
            _ => "x86_64",
        };
        self.libraries(arch)
            .find(|dir| machine_of(&dir.join("libomptarget.so")) == Some(machine.number))
    }

    /// Returns the folders of clang's own headers. Libraries beside them are of other packages.
    pub(in crate::installed) fn headers(&self) -> Vec<PathBuf> {
        let folders = self.prefix.join("lib/clang").read_dir();
        let folders = folders.into_iter().flatten().flatten();
        folders
            .map(|folder| folder.path().join("include"))
            .collect()
    }

    /// OpenMP's device runtime, as bitcode to be linked into every image for `processor`.
    ///
    /// LLVM 19 has one file for each processor, later releases one for each vendor, from 21 on in a folder of the GPU's triple.
    ///
    /// # Errors
    ///
    /// When no library folder of this release has one.
    pub(in crate::installed) fn device_runtime(
        &self,
        triple: &Triple,
        processor: &str,
    ) -> Result<PathBuf, NotFound> {
        let vendor = match triple.is_amdgpu() {
            true => "amdgpu",
            false => "nvptx",
        };
        let prefix = format!("libomptarget-{vendor}");
        let name = format!("{prefix}-{processor}.bc");
        let names = [name.clone(), format!("{prefix}.bc")];
        let found = self
            .device_folders(vendor)
            .flat_map(|dir| names.clone().map(|name| dir.join(name)))
            .find(|path| path.is_file());
        found.ok_or_else(|| {
            let searched = self.device_folders(vendor);
            let searched = searched.map(|dir| dir.display().to_string()).collect();
            let hint = Need::of_device_runtime(self.release()).install(self.release());
            NotFound::new(&name, searched, hint).with_supported(self.processors(vendor))
        })
    }

    /// The folders that may have OpenMP's device runtime for GPUs of a vendor.
    fn device_folders(&self, vendor: &str) -> impl Iterator<Item = PathBuf> {
        let triple = match vendor {
            "amdgpu" => "amdgcn-amd-amdhsa",
            _ => "nvptx64-nvidia-cuda",
        };
        let of_gpu = self.prefix.join("lib").join(triple);
        self.libraries(HERE).chain([of_gpu])
    }

    /// Tells whether the device runtime for a processor declares the lock of `omp critical` and does not define it.
    pub(in crate::installed) fn lacks_critical_lock(
        &self,
        triple: &Triple,
        processor: &str,
    ) -> bool {
        let runtime = self.device_runtime(triple, processor).ok();
        let Some(bytes) = runtime.and_then(|path| std::fs::read(path).ok()) else {
            return false;
        };
        let symbols = bitcode::symbols(bytes.as_slice(), 0..bytes.len() as u64);
        let is_lock = |symbol: &GlobalSymbol<'_>| !symbol.defined && symbol.name == CRITICAL_LOCK;
        symbols.is_ok_and(|symbols| symbols.iter().any(is_lock))
    }

    /// Returns LLVM's C and math libraries for GPUs of `triple`, if they are installed: archives of bitcode.
    pub(in crate::installed) fn gpu_libraries(&self, triple: &str) -> Vec<PathBuf> {
        let folder = self.prefix.join("lib").join(triple);
        let files = ["libm.a", "libc.a"].map(|name| folder.join(name));
        files.into_iter().filter(|path| path.is_file()).collect()
    }

    /// Counts the files of OpenMP's device runtime for GPUs of a vendor (`amdgpu`, `nvptx`).
    #[cfg(feature = "tools")]
    pub fn device_runtimes(&self, vendor: &str) -> usize {
        let name = format!("libomptarget-{vendor}");
        let mut folders = self.device_folders(vendor);
        let is_one = folders.any(|folder| folder.join(format!("{name}.bc")).is_file());
        usize::from(is_one) + self.processors(vendor).len()
    }

    /// The processors that have a device runtime of their own, sorted.
    fn processors(&self, vendor: &str) -> Vec<String> {
        let prefix = format!("libomptarget-{vendor}-");
        let files = self
            .device_folders(vendor)
            .filter_map(|dir| dir.read_dir().ok())
            .flatten()
            .flatten();
        let processor = |file: std::fs::DirEntry| {
            let name = file.file_name().into_string().ok()?;
            Some(name.strip_prefix(&prefix)?.strip_suffix(".bc")?.to_owned())
        };
        let mut processors: Vec<String> = files.filter_map(processor).collect();
        processors.sort();
        processors
    }

    /// The folders of its libraries for hosts of that processor, as triples name it.
    pub fn libraries(&self, arch: &str) -> impl Iterator<Item = PathBuf> {
        let folders = [
            "lib".to_owned(),
            "lib64".to_owned(),
            format!("lib/{arch}-unknown-linux-gnu"),
            format!("lib/{arch}-linux-gnu"),
        ];
        folders.into_iter().map(|dir| self.prefix.join(dir))
    }
}

fn release(prefix: &Path, clang: &Path) -> Option<u32> {
    let real = real_path(clang);
    let names = [real.as_deref(), Some(clang)];
    let named = names.into_iter().flatten().find_map(|path| {
        let name = path.file_name()?.to_str()?;
        let name = name.strip_suffix(EXE_SUFFIX)?;
        name.strip_prefix("clang-")?.parse().ok()
    });
    named.or_else(|| {
        let folders = prefix.join("lib/clang").read_dir().ok()?;
        let release = |folder: std::fs::DirEntry| {
            let name = folder.file_name().into_string().ok()?;
            name.split('.').next()?.parse().ok()
        };
        // `22` and `22.1.8` are one release.
        let mut found = folders.flatten().filter_map(release);
        let first: u32 = found.next()?;
        found.all(|other| other == first).then_some(first)
    })
}

/// Reads the numbers of a release in what a program of LLVM says to `--version`: `[19, 1, 7]`.
#[must_use]
pub fn numbers(answer: &str) -> Option<Vec<u32>> {
    let names = ["LLVM version ", "clang version "];
    let mut found = names.iter().filter_map(|name| answer.split_once(name));
    let (_, numbers) = found.next()?;
    let numbers = numbers
        .split(['.', '-', 'g', ' ', '\n'])
        .map_while(|number| number.parse().ok());
    let numbers: Vec<u32> = numbers.take(3).collect();
    (!numbers.is_empty()).then_some(numbers)
}

/// Returns the machine number of an ELF file; `None` for other files.
pub fn machine_of(path: &Path) -> Option<u16> {
    machine_in(&mut File::open(path).ok()?)
}

/// Returns the machine number of the ELF file that starts where `file` is read next.
pub(super) fn machine_in(file: &mut File) -> Option<u16> {
    let mut head = [0; 20];
    file.read_exact(&mut head).ok()?;
    match head {
        [0x7f, b'E', b'L', b'F', _, 1, .., low, high] => Some(u16::from_le_bytes([low, high])),
        [0x7f, b'E', b'L', b'F', _, 2, .., high, low] => Some(u16::from_be_bytes([high, low])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_numbers_of_a_release() {
        // llc of Rust 1.98 and Debian, one built from a checkout, clang of Debian, and another program.
        for (answer, expected) in [
            (
                "LLVM version 22.1.8-rust-1.98.0-stable",
                Some(vec![22, 1, 8]),
            ),
            ("Debian LLVM version 19.1.7", Some(vec![19, 1, 7])),
            ("LLVM version 23.0.0git", Some(vec![23, 0, 0])),
            (
                "Debian clang version 19.1.7 (3~deb12u1)",
                Some(vec![19, 1, 7]),
            ),
            (
                "clang version 22.1.8\nTarget: x86_64-pc-linux-gnu",
                Some(vec![22, 1, 8]),
            ),
            ("LDC - the LLVM D compiler (1.30.0):", None),
        ] {
            assert_eq!(numbers(answer), expected, "{answer}");
        }
    }
}
