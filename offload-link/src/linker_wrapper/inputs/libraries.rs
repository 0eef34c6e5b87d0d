//! Finds the libraries after `-l` like the host link.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use offload_formats::container::archive::ArchiveMembers;
use offload_formats::container::elf::{Elf, Machine};
use offload_formats::format::magic::Magic;

use crate::environment::variable;
use crate::files::Opened;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::blocks::Blocks;
use crate::linker_wrapper::line::arguments::{Arguments, Position};
use crate::linker_wrapper::line::family::Family;
use crate::linker_wrapper::line::host;
use crate::platform::{self, is_absent};

/// Folders that drivers name to their linker; Debian's folders for one machine come first.
const OF_DRIVER: Folders = Folders {
    with_machines: &["/lib", "/usr/lib"],
    plain: &["/lib64", "/usr/lib64", "/lib", "/usr/lib"],
};

/// Folders that GNU ld and gold search after those of their command line, in Debian's order.
const OF_LINKER: Folders = Folders {
    with_machines: &["/usr/local/lib", "/lib", "/usr/lib"],
    plain: &[
        "/usr/local/lib64",
        "/lib64",
        "/usr/lib64",
        "/usr/local/lib",
        "/lib",
        "/usr/lib",
    ],
};

/// Folders of the system.
struct Folders {
    /// Those with a folder for each machine.
    with_machines: &'static [&'static str],
    plain: &'static [&'static str],
}

/// Folders to search: those of the command line, then those that a driver adds.
pub(crate) struct Search {
    dirs: Vec<PathBuf>,
    /// Number of those that the command line and linker scripts name.
    named: usize,
    family: Family,
}

/// Returns the folders of the command line.
fn named_dirs(arguments: &Arguments) -> Vec<PathBuf> {
    let root = arguments.sysroot.as_deref();
    let dirs = arguments.library_dirs.iter();
    dirs.map(|dir| below_root(Path::new(dir), root).unwrap_or_else(|| dir.into()))
        .collect()
}

/// Returns the path that begins with a sign for the system's root, `=` or `$SYSROOT`; `None` for others.
pub(crate) fn below_root(path: &Path, root: Option<&OsStr>) -> Option<PathBuf> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let rest = bytes.strip_prefix(b"=");
    let rest = rest.or_else(|| bytes.strip_prefix(b"$SYSROOT"))?;
    let mut whole = root.unwrap_or_default().to_owned();
    whole.push(platform::os_string(rest.to_vec()));
    Some(whole.into())
}

/// Returns the folders for device libraries: `LIBRARY_PATH`, then the folders of the command line.
pub(crate) fn device_dirs(arguments: &Arguments) -> Vec<PathBuf> {
    let list = std::env::var_os("LIBRARY_PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&list).collect();
    dirs.retain(|dir| !dir.as_os_str().is_empty());
    dirs.extend(named_dirs(arguments));
    dirs
}

impl Search {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        let root = arguments.sysroot.as_deref().unwrap_or(OsStr::new(""));
        let mut dirs = named_dirs(arguments);
        let of_linker = dirs.split_off(arguments.own_library_dirs);
        let machine = host::multiarch(arguments);
        let of_system = |folders: &Folders| {
            let of_machine = machine.into_iter().flat_map(|machine| {
                let folders = folders.with_machines.iter();
                folders.map(move |folder| format!("{folder}/{machine}"))
            });
            let plain = folders.plain.iter().map(|folder| (*folder).to_owned());
            let whole = |folder: String| {
                let mut path = root.to_owned();
                path.push(folder);
                PathBuf::from(path)
            };
            of_machine.chain(plain).map(whole).collect::<Vec<_>>()
        };
        if arguments.position == Position::Driver {
            // gcc takes them for folders of libraries, too.
            dirs.extend(arguments.prefixes.iter().map(PathBuf::from));
            if let Some(list) = variable("LIBRARY_PATH") {
                dirs.extend(std::env::split_paths(&list));
            }
            dirs.extend(of_system(&OF_DRIVER));
        }
        dirs.extend(of_linker);
        let named = dirs.len();
        if arguments.family == Family::Gnu {
            dirs.extend(of_system(&OF_LINKER));
        }
        if arguments.family == Family::Coff {
            // Microsoft's linkers search them after the folders of the command line.
            let list = std::env::var_os("LIB").unwrap_or_default();
            let folders = list.as_encoded_bytes().split(|byte| *byte == b';');
            let folders = folders.filter(|folder| !folder.is_empty());
            dirs.extend(folders.map(|folder| PathBuf::from(platform::os_string(folder.to_vec()))));
        }
        Self {
            dirs,
            named,
            family: arguments.family,
        }
    }

    /// Adds a folder that a linker script names, which is searched after those of the command line.
    pub(crate) fn add(&mut self, folder: PathBuf) {
        self.dirs.insert(self.named, folder);
        self.named += 1;
    }

    /// Finds and opens the file for `-l<name>`; on COFF hosts also an input without a folder. Files of another machine than
    /// `host` are passed over, as GNU ld and gold do it. A missing file is left to the host linker's error.
    ///
    /// # Errors
    ///
    /// Fails if a file exists but cannot be opened: the host linker may open it a moment later.
    pub(crate) fn find(
        &self,
        name: &OsStr,
        only_static: bool,
        host: Option<Machine>,
    ) -> Result<Option<(PathBuf, File)>, LinkError> {
        let here = PathBuf::new();
        let mut dirs: Vec<&PathBuf> = self.dirs.iter().collect();
        let is_coff = self.family == Family::Coff;
        if is_coff {
            dirs.insert(0, &here);
            if has_folder(name) {
                dirs.truncate(1);
            }
        }
        let names: Vec<OsString> = match name.as_encoded_bytes().strip_prefix(b":") {
            Some(exact) => vec![platform::os_string(exact.to_vec())],
            None if is_coff && has_extension(name) => vec![name.to_owned()],
            None => self
                .family
                .library_names(only_static)
                .iter()
                .map(|(before, after)| {
                    let mut file = OsString::from(before);
                    file.push(name);
                    file.push(after);
                    file
                })
                .collect(),
        };
        for dir in dirs {
            for name in &names {
                let path = dir.join(Path::new(name));
                match Opened::open(&path) {
                    Ok(file) if host.is_some_and(|host| is_for_another(&path, &file, host)) => {}
                    Ok(file) => return Ok(Some((path, file))),
                    Err(problem) if is_absent(&problem) || is_closed(dir, &problem) => {}
                    Err(problem) => return Err(LinkError::unopened(&path, &problem)),
                }
            }
        }
        Ok(None)
    }
}

/// Tells whether Microsoft's linkers take a name as it is, and add no extension.
pub(crate) fn has_extension(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'.')
}

/// Tells whether Microsoft's linkers search no folders for a name.
pub(crate) fn has_folder(name: &OsStr) -> bool {
    let mut bytes = name.as_encoded_bytes().iter();
    bytes.any(|byte| [b'/', b'\\'].contains(byte))
}

/// Tells whether a library, by its ELF header or that of the first object of an archive, is for another machine than `host`.
fn is_for_another(path: &Path, file: &File, host: Machine) -> bool {
    /// Members before the first object, such as metadata.
    const MOST: usize = 4;
    let blocks = file.try_clone().and_then(|file| Blocks::of(path, file));
    // Whoever reads it next reports the problem.
    let Ok(blocks) = blocks else { return false };
    let machine = |range| Elf::parse(&blocks, range).ok().map(|elf| elf.machine);
    let whole = 0..blocks.size();
    let machine = match Magic::at(&blocks, whole.clone()) {
        Magic::Archive | Magic::BigArchive => {
            let members = ArchiveMembers::new(&blocks, whole).take(MOST);
            members
                .flatten()
                .find_map(|member| machine(member.content?))
        }
        _ => machine(whole),
    };
    machine.is_some_and(|machine| machine != host.number)
}

/// Tells whether no process may read the folder; then the host linker finds nothing there, either.
fn is_closed(dir: &Path, problem: &io::Error) -> bool {
    let denied = |problem: &io::Error| problem.kind() == io::ErrorKind::PermissionDenied;
    let inside = fs::symlink_metadata(dir.join("."));
    denied(problem) && inside.is_err_and(|problem| denied(&problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the file that `name` finds if all `files` exist in `d`.
    fn found(triple: &str, files: &[&str], name: &str, only_static: bool) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let folder = match triple.ends_with("msvc") {
            true => format!("-libpath:{}", dir.path().display()),
            false => format!("-L{}", dir.path().display()),
        };
        let args = [format!("--host-triple={triple}"), folder].map(OsString::from);
        let arguments = Arguments::parse(args.to_vec(), "offload-ld").unwrap();
        let found = Search::new(&arguments).find(name.as_ref(), only_static, None);
        let (path, _) = found.unwrap()?;
        Some(path.file_name()?.to_str()?.to_owned())
    }

    #[test]
    fn finds_what_the_linker_of_that_host_would() {
        let all = [
            "libx.so",
            "libx.a",
            "libx.dll.a",
            "x.lib",
            "libx.dylib",
            "exact",
        ];
        for (triple, name, only_static, expected) in [
            ("x86_64-pc-linux-gnu", "x", false, Some("libx.so")),
            ("x86_64-pc-linux-gnu", "x", true, Some("libx.a")),
            ("x86_64-pc-linux-gnu", ":exact", false, Some("exact")),
            ("x86_64-pc-linux-gnu", "y", false, None),
            ("x86_64-pc-windows-gnu", "x", false, Some("libx.dll.a")),
            ("x86_64-pc-windows-gnu", "x", true, Some("libx.a")),
            // LLVM's main branch (PR 216239).
            ("x86_64-pc-windows-msvc", "x.lib", false, Some("x.lib")),
            ("x86_64-pc-windows-msvc", "x", false, Some("x.lib")),
            ("arm64-apple-macosx", "x", false, Some("libx.dylib")),
        ] {
            let found = found(triple, &all, name, only_static);
            assert_eq!(found.as_deref(), expected, "{triple} {name} {only_static}");
        }
        let found = found("x86_64-pc-windows-msvc", &["libx.dll.a"], "x", false);
        assert_eq!(found.as_deref(), Some("libx.dll.a"));
    }
}
