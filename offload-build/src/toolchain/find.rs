//! Where the programs are: what was searched is kept, so that a report can say it.

#[cfg(feature = "tools")]
mod releases;

use super::command::Command;
use super::install::Need;
use offload_formats::container::elf::Machine;
use std::borrow::Cow;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The newest LLVM release whose versioned program names (`clang-23`) are looked for, and the oldest.
pub(super) const RELEASES: std::ops::RangeInclusive<u32> = 16..=24;

/// The processor of this machine, as triples name it.
const HERE: &str = std::env::consts::ARCH;

/// Folders in which programs are looked for, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The value of `PATH`.
    pub path: OsString,
    /// Roots of CUDA trees, whose `bin` folders are searched before `PATH` for NVIDIA's tools.
    pub cuda: Vec<PathBuf>,
}

impl Search {
    /// The first of `names` that is an executable file in a folder of `PATH`.
    #[must_use]
    pub fn program(&self, names: &[&str]) -> Option<PathBuf> {
        names.iter().find_map(|name| self.programs(name).next())
    }

    /// Every executable file `name` in the folders of `PATH`, in order.
    pub fn programs(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        // A relative folder in PATH would depend on where the build is started: not searched.
        let here = Path::new("/");
        which::which_in_all(name, Some(&self.path), here)
            .into_iter()
            .flatten()
    }

    /// A program of the CUDA toolkit.
    ///
    /// # Errors
    ///
    /// When none of the trees, nor `PATH`, has it.
    pub fn cuda_program(&self, name: &'static str) -> Result<PathBuf, NotFound> {
        let bins = self.cuda.iter().map(|root| root.join("bin"));
        let found = bins
            .map(|bin| program_in(&bin, name))
            .find(|path| path.is_file());
        found.or_else(|| self.program(&[name])).ok_or_else(|| {
            let mut searched: Vec<String> = self
                .cuda
                .iter()
                .map(|root| format!("{}/bin", root.display()))
                .collect();
            searched.push("PATH".to_owned());
            NotFound {
                program: name.to_owned(),
                searched,
                instead: Vec::new(),
                hint: format!(
                    "{}, and set CUDA_PATH to its root",
                    Need::CudaTools.install(None)
                )
                .into(),
            }
        })
    }

    /// Every clang found, newest release first: versioned names, then plain `clang`. What stands before one in
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

/// One LLVM installation, known by its clang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Llvm {
    /// The compiler, as found or declared.
    pub clang: PathBuf,
    /// The folder that holds `bin` and `lib`, links resolved.
    pub prefix: PathBuf,
}

/// A program in a folder, as this system calls the file.
pub(crate) fn program_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{EXE_SUFFIX}"))
}

/// Where a file really is, links resolved. What Windows says of it starts with `\\?\`, which compilers do not take.
pub(crate) fn real_path(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let plain = real.to_str().and_then(|real| real.strip_prefix(r"\\?\"));
    let plain = plain.filter(|plain| cfg!(windows) && plain.get(1..3) == Some(r":\"));
    Some(plain.map_or(real.clone(), PathBuf::from))
}

impl Llvm {
    /// The installation to which `clang` belongs.
    #[must_use]
    pub fn of(clang: PathBuf) -> Self {
        let real = real_path(&clang).unwrap_or_else(|| clang.clone());
        let prefix = real.ancestors().nth(2).unwrap_or(Path::new("/"));
        Self {
            prefix: prefix.to_path_buf(),
            clang,
        }
    }

    /// The release, such as 22: by the name of the program, else by its folder of headers (`lib/clang/22`).
    /// Nothing when neither tells, or there are several of these folders.
    #[must_use]
    pub fn release(&self) -> Option<u32> {
        let real = real_path(&self.clang);
        let names = [real.as_deref(), Some(self.clang.as_path())];
        let named = names.into_iter().flatten().find_map(|path| {
            let name = path.file_name()?.to_str()?;
            let name = name.strip_suffix(EXE_SUFFIX)?;
            name.strip_prefix("clang-")?.parse().ok()
        });
        named.or_else(|| {
            let folders = self.prefix.join("lib/clang").read_dir().ok()?;
            let release = |folder: std::fs::DirEntry| {
                let name = folder.file_name().into_string().ok()?;
                name.split('.').next()?.parse().ok()
            };
            // `22` and `22.1.8` are one release.
            let found: std::collections::BTreeSet<u32> =
                folders.flatten().filter_map(release).collect();
            found.first().copied().filter(|_| found.len() == 1)
        })
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
        Err(NotFound {
            program: name.to_owned(),
            searched: vec![bin.display().to_string()],
            instead: Vec::new(),
            hint: Need::of_sibling(name).install(self.release()).into(),
        })
    }

    /// A sibling of clang, or the program of that name that clang says it runs: a script in clang's place may start a
    /// clang that lies elsewhere.
    ///
    /// # Errors
    ///
    /// When clang does not know one either.
    pub fn program(&self, name: &'static str) -> Result<PathBuf, NotFound> {
        self.sibling(name).or_else(|missing| {
            let question = Command::new(&self.clang).arg(format!("-print-prog-name={name}"));
            let answer = question.run().map_err(|_| missing.clone())?;
            let path = PathBuf::from(answer.stdout.trim());
            (path.is_absolute() && path.is_file())
                .then_some(path)
                .ok_or(missing)
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

    /// OpenMP's device runtime, as bitcode to be linked into every image for `processor`.
    ///
    /// LLVM 19 has one file for each processor, later releases one for each vendor.
    ///
    /// # Errors
    ///
    /// When no library folder of this release has one.
    pub fn device_runtime(
        &self,
        vendor: &'static str,
        processor: &str,
    ) -> Result<PathBuf, NotFound> {
        let prefix = format!("libomptarget-{vendor}");
        let name = format!("{prefix}-{processor}.bc");
        let names = [name.clone(), format!("{prefix}.bc")];
        let found = self
            .libraries(HERE)
            .flat_map(|dir| names.clone().map(|name| dir.join(name)))
            .find(|path| path.is_file());
        found.ok_or_else(|| NotFound {
            program: name,
            searched: self
                .libraries(HERE)
                .map(|dir| dir.display().to_string())
                .collect(),
            instead: self.processors(&format!("{prefix}-")),
            hint: Need::OffloadRuntime.install(self.release()).into(),
        })
    }

    /// The processors for which there are device runtimes whose names start so, sorted.
    fn processors(&self, prefix: &str) -> Vec<String> {
        let files = self
            .libraries(HERE)
            .filter_map(|dir| dir.read_dir().ok())
            .flatten()
            .flatten();
        let processor = |file: std::fs::DirEntry| {
            let name = file.file_name().into_string().ok()?;
            Some(name.strip_prefix(prefix)?.strip_suffix(".bc")?.to_owned())
        };
        let mut processors: Vec<String> = files.filter_map(processor).collect();
        processors.sort();
        processors
    }

    /// The folders of its libraries for hosts of that processor, as triples name it.
    pub(crate) fn libraries(&self, arch: &str) -> impl Iterator<Item = PathBuf> {
        let folders = [
            "lib".to_owned(),
            "lib64".to_owned(),
            format!("lib/{arch}-unknown-linux-gnu"),
            format!("lib/{arch}-linux-gnu"),
        ];
        folders.into_iter().map(|dir| self.prefix.join(dir))
    }
}

/// The number of the machine that an ELF file is for; nothing when it is no such file.
pub(crate) fn machine_of(path: &Path) -> Option<u16> {
    let mut head = [0; 20];
    File::open(path).ok()?.read_exact(&mut head).ok()?;
    match head {
        [0x7f, b'E', b'L', b'F', _, 1, .., low, high] => Some(u16::from_le_bytes([low, high])),
        [0x7f, b'E', b'L', b'F', _, 2, .., high, low] => Some(u16::from_be_bytes([high, low])),
        _ => None,
    }
}

/// A program or file that a target needs and that no searched place has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    program: String,
    searched: Vec<String>,
    /// What is there for others: not the file is missing, but support for this processor.
    instead: Vec<String>,
    hint: Cow<'static, str>,
}

impl NotFound {
    /// `program` was looked for in `searched`; `hint` says how to get it.
    #[must_use]
    pub fn new(program: &str, searched: Vec<String>, hint: impl Into<Cow<'static, str>>) -> Self {
        Self {
            program: program.to_owned(),
            searched,
            instead: Vec::new(),
            hint: hint.into(),
        }
    }

    /// Whether no installation would help: the release does not know the processor.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        !self.instead.is_empty()
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, searched) = (&self.program, self.searched.join(", "));
        write!(f, "`{program}` not found (searched: {searched})\nhint: ")?;
        match self.instead.as_slice() {
            [] => f.write_str(&self.hint),
            known => write!(
                f,
                "this LLVM has OpenMP's device runtime for {}; name one of these, or take another release",
                known.join(", ")
            ),
        }
    }
}

impl std::error::Error for NotFound {}
