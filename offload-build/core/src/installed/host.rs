//! The host that programs are built for, and where the runtime that they are linked with is.

use crate::environment::Environment;
use crate::error::Error;
use crate::installed::llvm::{Llvm, machine_of};
use offload_formats_core::names::host::{DataHost, HostFormat, Machine, WindowsAbi, clang_triple};
use std::path::{Path, PathBuf};

/// The host that programs are built for.
#[derive(Clone, Debug)]
pub struct Host {
    /// The triple as Cargo spells it.
    pub triple: String,
    machine: Option<Machine>,
    windows: Option<Windows>,
    /// Its programs are static ones of Linux, which load no libraries.
    is_static: bool,
    /// True if it differs from the machine that builds.
    pub is_cross: bool,
    /// Folders in which the programs' linker looks, as far as Cargo and the C compilers say.
    folders: Vec<PathBuf>,
}

/// Properties of Windows hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Windows {
    abi: WindowsAbi,
    is_x86_64: bool,
    /// LLVM's libraries in place of GNU's.
    is_llvm: bool,
    /// Microsoft's C library is a part of the program.
    has_static_crt: bool,
}

impl Host {
    /// Returns the host of Cargo's `TARGET`.
    pub fn of(environment: &Environment) -> Result<Self, Error> {
        let triple = environment.required("TARGET")?;
        let machine = machine(&triple);
        let features = environment.cargo("CARGO_CFG_TARGET_FEATURE");
        let features = features.unwrap_or_default();
        let has_static_crt = features.split(',').any(|feature| feature == "crt-static");
        let is_cross = triple != environment.required("HOST")?;
        let rustflags = environment
            .cargo("CARGO_ENCODED_RUSTFLAGS")
            .unwrap_or_default();
        let rustflags = rustflags.as_str();
        let mut folders = link_folders(rustflags.split('\x1f'));
        if is_cross {
            let variable = environment.variable("LIBRARY_PATH").unwrap_or_default();
            let named = std::env::split_paths(&variable);
            folders.extend(named.filter(|folder| !folder.as_os_str().is_empty()));
        }
        Ok(Self {
            windows: windows(&triple, has_static_crt),
            is_static: triple.contains("-linux-")
                && (has_static_crt || is_static_by_default(&triple, rustflags)),
            triple,
            machine,
            is_cross,
            folders,
        })
    }

    /// Folders in which the programs' linker looks, as far as `-L` in `rustflags` and LIBRARY_PATH say.
    pub fn link_folders(&self, environment: &Environment) -> impl Iterator<Item = PathBuf> {
        // In a cross build they are there already.
        let variable = environment.variable("LIBRARY_PATH");
        let variable = variable.filter(|_| !self.is_cross).unwrap_or_default();
        let named: Vec<PathBuf> = std::env::split_paths(&variable).collect();
        let named = named
            .into_iter()
            .filter(|path| !path.as_os_str().is_empty());
        self.folders.clone().into_iter().chain(named)
    }

    /// Checks that its programs load the runtimes of devices: shared libraries.
    pub fn loads_runtimes(&self) -> Result<(), Error> {
        if !self.is_static {
            return Ok(());
        }
        let hint = match self.triple.contains("-musl") {
            true => {
                "build for a target of glibc, such as `x86_64-unknown-linux-gnu`, or with RUSTFLAGS=-Ctarget-feature=-crt-static"
            }
            false => "remove `+crt-static` from RUSTFLAGS",
        };
        Err(Error::new(format_args!(
            "host code is not supported for static programs of `{}`: the runtimes of devices are shared libraries [OFF609]\n\
             hint: {hint}",
            self.triple
        )))
    }

    /// Returns the format of the objects of modules with host code.
    pub fn objects(&self) -> Result<HostFormat, Error> {
        self.loads_runtimes()?;
        let windows = self.windows.filter(|windows| windows.is_x86_64);
        let objects = windows.map(|windows| HostFormat::Coff(windows.abi));
        let objects = objects.or_else(|| self.machine.map(HostFormat::Elf));
        objects.ok_or_else(|| {
            Error::new(format_args!(
                "modules with host code are not supported for `{}` (they are for x86_64 and aarch64 Linux, and for \
                 x86_64 Windows) [OFF609]",
                self.triple
            ))
        })
    }

    /// Returns the format of objects that contain only data; `None` if no such object can be written.
    pub fn data_objects(&self) -> Option<DataHost> {
        match self.windows {
            Some(windows) => windows.is_x86_64.then_some(DataHost::Coff),
            None => {
                let linux = self.triple.contains("-linux-");
                let other = match self.arch() {
                    // Of RISC-V, what has the flags of Linux distributions.
                    "riscv64gc" if linux => Some(Machine::RISCV64),
                    "powerpc64le" if linux => Some(Machine::POWERPC64LE),
                    _ => None,
                };
                self.machine.or(other).map(DataHost::Elf)
            }
        }
    }

    /// Debian's package of the headers of the library of `language`, `C` or `C++`, in a cross build.
    pub fn headers_package(&self, language: &str) -> Option<&'static str> {
        let is_cpp = language == "C++";
        if let Some(windows) = self.windows {
            let is_gnu = windows.is_x86_64 && windows.abi == WindowsAbi::Gnu;
            return is_gnu.then_some(if is_cpp {
                "g++-mingw-w64-x86-64"
            } else {
                "mingw-w64-x86-64-dev"
            });
        }
        match (self.machine?, is_cpp) {
            (Machine::AARCH64, false) => Some("libc6-dev-arm64-cross"),
            (Machine::AARCH64, true) => Some("g++-aarch64-linux-gnu"),
            (Machine::X86_64, false) => Some("libc6-dev-amd64-cross"),
            (Machine::X86_64, true) => Some("g++-x86-64-linux-gnu"),
            _ => None,
        }
    }

    /// Returns the compiler that `CC_<target>` or `CXX_<target>` names for this host, as for the crate `cc`; `kind` is `CC` or `CXX`.
    pub fn declared_compiler(&self, environment: &Environment, kind: &str) -> Option<String> {
        let names = [self.triple.clone(), self.triple.replace('-', "_")];
        let mut named = names
            .iter()
            .filter_map(|triple| environment.variable(&format!("{kind}_{triple}")));
        named.next()
    }

    /// Returns the usual name of GCC's compiler for this host in a cross build, such as `aarch64-linux-gnu-g++`; `program` is `gcc`
    /// or `g++`.
    pub fn usual_compiler(&self, program: &str) -> String {
        let parts: Vec<&str> = self.triple.split('-').collect();
        let prefix = match parts[..] {
            [arch, _vendor, "windows", "gnu"] => format!("{arch}-w64-mingw32"),
            ["riscv64gc", _vendor, system, abi] => format!("riscv64-{system}-{abi}"),
            [arch, _vendor, system, abi] => [arch, system, abi].join("-"),
            _ => parts.join("-"),
        };
        format!("{prefix}-{program}")
    }

    /// Tells whether its C library is that of GNU, on Linux.
    pub fn has_glibc(&self) -> bool {
        self.triple.ends_with("-linux-gnu")
    }

    /// The processor of ELF objects, where those are supported.
    pub fn machine(&self) -> Option<Machine> {
        self.machine
    }

    /// Returns the triple as clang spells it, if clang's default may differ.
    pub fn clang_target(&self) -> Option<String> {
        match self.windows {
            // Cargo has a triple for each set of libraries, clang for each ABI.
            Some(windows) => {
                let abi = match windows.abi {
                    WindowsAbi::Msvc => "msvc",
                    WindowsAbi::Gnu => "gnu",
                };
                Some(format!("{}-pc-windows-{abi}", self.arch()))
            }
            None => self.is_cross.then(|| clang_triple(&self.triple)),
        }
    }

    /// Options for host objects that Rust programs of any kind can be linked with.
    pub fn code_options(&self) -> &'static [&'static str] {
        match self.windows {
            None => &["-fPIC"],
            Some(Windows {
                abi: WindowsAbi::Gnu,
                ..
            }) => &[],
            // An object names the C library that it wants, and there must be one.
            Some(windows) if windows.has_static_crt => &["-fms-runtime-lib=static"],
            Some(_) => &["-fms-runtime-lib=dll"],
        }
    }

    /// The library of C++, as `-l` wants it, unless objects name it themselves.
    pub fn cpp_library(&self) -> Option<&'static str> {
        match self.windows {
            None => Some("stdc++"),
            Some(windows) if windows.abi == WindowsAbi::Msvc => None,
            Some(windows) if windows.is_llvm => Some("c++"),
            Some(_) => Some("stdc++"),
        }
    }

    /// The file of the static library that `-l` calls `name`.
    pub fn static_library(&self, name: &str) -> String {
        match self.windows {
            Some(windows) if windows.abi == WindowsAbi::Msvc => format!("{name}.lib"),
            _ => format!("lib{name}.a"),
        }
    }

    /// Returns the names that the import library of a DLL may have, on a Windows host.
    pub fn import_libraries(&self, name: &str) -> Vec<String> {
        let microsofts = format!("{name}.lib");
        match self.windows.map(|windows| windows.abi) {
            Some(WindowsAbi::Gnu) => vec![format!("lib{name}.dll.a"), microsofts],
            _ => vec![microsofts],
        }
    }

    pub fn is_windows(&self) -> bool {
        self.windows.is_some()
    }

    /// The processor, as triples name it.
    pub fn arch(&self) -> &str {
        self.triple
            .split('-')
            .next()
            .expect("a split text has a first part")
    }

    /// The folder of OpenMP's offload runtime for this host, of the release of `llvm`; otherwise those that were
    /// searched.
    ///
    /// In a cross build, clang's own folders mostly hold that of the machine that builds: the sysroot has them again,
    /// and folders of the programs' link count.
    pub fn runtime(&self, llvm: &Llvm, sysroot: Option<&Path>) -> Result<PathBuf, Vec<PathBuf>> {
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
    // Not ABIs with pointers of 32 bits.
    let is_narrow = triple.ends_with("x32") || triple.ends_with("ilp32");
    let linux = triple.contains("-linux-") && !is_narrow;
    match triple.split('-').next() {
        Some("x86_64") if linux => Some(Machine::X86_64),
        Some("aarch64") if linux => Some(Machine::AARCH64),
        _ => None,
    }
}

/// Tells whether rustc makes static programs for a target that says nothing else. Cargo's question for the features of the
/// target is for proc macros, too, and then rustc leaves `crt-static` out.
fn is_static_by_default(triple: &str, rustflags: &str) -> bool {
    // Distributions have targets of their own, such as `x86_64-alpine-linux-musl`, whose programs are dynamic.
    triple.contains("-unknown-linux-musl") && !rustflags.contains("-crt-static")
}

fn windows(triple: &str, has_static_crt: bool) -> Option<Windows> {
    let (_, abi) = triple.split_once("-windows-")?;
    Some(Windows {
        abi: match abi {
            "msvc" => WindowsAbi::Msvc,
            _ => WindowsAbi::Gnu,
        },
        is_x86_64: triple.starts_with("x86_64-"),
        is_llvm: abi == "gnullvm",
        has_static_crt,
    })
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
    fn knows_what_objects_and_libraries_of_windows_are_called() {
        let host = |triple: &str, features: &str| {
            let variables = [
                ("TARGET", triple),
                ("HOST", "x86_64-unknown-linux-gnu"),
                ("CARGO_CFG_TARGET_FEATURE", features),
            ];
            let variables = variables.map(|(name, value)| (name.into(), value.into()));
            Host::of(&Environment::new(variables.into())).unwrap()
        };
        let (msvc, gnu) = ("x86_64-pc-windows-msvc", "x86_64-pc-windows-gnu");
        let coff = |abi| Some(HostFormat::Coff(abi));
        for (triple, features, target, objects, options, cpp, library) in [
            (
                msvc,
                "fxsr,sse2",
                msvc,
                coff(WindowsAbi::Msvc),
                &["-fms-runtime-lib=dll"][..],
                None,
                "k.lib",
            ),
            (
                "x86_64-win7-windows-msvc",
                "crt-static,fxsr",
                msvc,
                coff(WindowsAbi::Msvc),
                &["-fms-runtime-lib=static"],
                None,
                "k.lib",
            ),
            (
                gnu,
                "",
                gnu,
                coff(WindowsAbi::Gnu),
                &[],
                Some("stdc++"),
                "libk.a",
            ),
            (
                "x86_64-pc-windows-gnullvm",
                "",
                gnu,
                coff(WindowsAbi::Gnu),
                &[],
                Some("c++"),
                "libk.a",
            ),
            (
                "aarch64-pc-windows-msvc",
                "",
                "aarch64-pc-windows-msvc",
                None,
                &["-fms-runtime-lib=dll"],
                None,
                "k.lib",
            ),
            (
                "x86_64-unknown-linux-musl",
                "crt-static",
                "x86_64-unknown-linux-musl",
                None,
                &["-fPIC"],
                Some("stdc++"),
                "libk.a",
            ),
            (
                "x86_64-alpine-linux-musl",
                "",
                "x86_64-alpine-linux-musl",
                Some(HostFormat::Elf(Machine::X86_64)),
                &["-fPIC"],
                Some("stdc++"),
                "libk.a",
            ),
            (
                "aarch64-unknown-linux-gnu",
                "",
                "aarch64-unknown-linux-gnu",
                Some(HostFormat::Elf(Machine::AARCH64)),
                &["-fPIC"],
                Some("stdc++"),
                "libk.a",
            ),
            (
                "riscv64gc-unknown-linux-gnu",
                "",
                "riscv64-unknown-linux-gnu",
                None,
                &["-fPIC"],
                Some("stdc++"),
                "libk.a",
            ),
        ] {
            let host = host(triple, features);
            assert_eq!(host.clang_target().as_deref(), Some(target), "{triple}");
            assert_eq!(host.objects().ok(), objects, "{triple}");
            assert_eq!(host.code_options(), options, "{triple}");
            assert_eq!(host.cpp_library(), cpp, "{triple}");
            assert_eq!(host.static_library("k"), library, "{triple}");
        }
        let library = |triple| host(triple, "").import_libraries("amdhip64");
        assert_eq!(library(msvc), ["amdhip64.lib"]);
        assert_eq!(library(gnu), ["libamdhip64.dll.a", "amdhip64.lib"]);
    }

    #[test]
    fn names_the_compiler_of_a_cross_build() {
        for (triple, variable, named, expected) in [
            (
                "aarch64-unknown-linux-gnu",
                "CXX",
                "clang++",
                "aarch64-linux-gnu-g++",
            ),
            (
                "x86_64-unknown-linux-gnu",
                "CXX_x86_64_unknown_linux_gnu",
                "g++-14",
                "g++-14",
            ),
            (
                "aarch64-unknown-linux-gnu",
                "CXX_aarch64-unknown-linux-gnu",
                "my-g++",
                "my-g++",
            ),
            (
                "aarch64-linux-android",
                "CXX",
                "",
                "aarch64-linux-android-g++",
            ),
            ("x86_64-pc-windows-gnu", "CXX", "", "x86_64-w64-mingw32-g++"),
            (
                "riscv64gc-unknown-linux-gnu",
                "CXX",
                "",
                "riscv64-linux-gnu-g++",
            ),
        ] {
            let variables = [("TARGET", triple), ("HOST", "other"), (variable, named)];
            let variables = variables.map(|(name, value)| (name.into(), value.into()));
            let environment = Environment::new(variables.into());
            let host = Host::of(&environment).unwrap();
            let compiler = host.declared_compiler(&environment, "CXX");
            let compiler = compiler.unwrap_or_else(|| host.usual_compiler("g++"));
            assert_eq!(compiler, expected, "{triple}");
        }
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
            is_static: false,
            windows: None,
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
