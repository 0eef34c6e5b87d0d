//! The folder below `OUT_DIR` in which linkers find the libraries of a runtime.

use crate::out_dir::RUNTIME;
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_build_core::installed::runtimes::versions;
use offload_formats::escape::terminal;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// The list of the files that builds put into the folder; a path below `OUT_DIR`.
const LIST: &str = "offload/runtime.txt";

/// The way in which linkers get the libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linking {
    /// Copies, which the loader finds as well.
    Copies,
    /// Linker scripts that name them.
    Scripts,
}

/// The folder, with the names of the files that builds put there. The loader would take a library of a former build for the one that
/// this build links.
#[derive(Debug)]
pub(crate) struct RuntimeFolder {
    folder: PathBuf,
    /// The file with the names, one on a line.
    list: PathBuf,
    /// Names of former builds.
    former: BTreeSet<String>,
    /// Names of this build.
    names: BTreeSet<String>,
}

impl RuntimeFolder {
    /// Returns the folder below `out`.
    pub(crate) fn below(out: &Path) -> Self {
        let list = out.join(LIST);
        let text = fs::read_to_string(&list).unwrap_or_default();
        Self {
            folder: out.join(RUNTIME),
            list,
            former: text.lines().map(str::to_owned).collect(),
            names: BTreeSet::new(),
        }
    }

    /// Returns the folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lets linkers find these libraries of `folder`, and nothing else that it holds. Modules of several languages have libraries in
    /// this folder.
    ///
    /// Beside each copy, `<file>.origin` has the path of its library, for the rpath that `offload-link` adds.
    ///
    /// Linkers search this folder instead of `folder`, which may hold other libraries that are not the system's. `cargo run` and
    /// `cargo test` add it to the loader's path, also for programs that only depend on
    /// this package. So if the loader does not find `folder` itself, the libraries are copied; otherwise
    /// linker scripts name them. There are no links to `folder`: whatever edits the target folder would edit the
    /// system's libraries through them.
    pub(crate) fn provide(
        &mut self,
        libraries: &[&str],
        folder: &Path,
        how: Linking,
    ) -> Result<(), Error> {
        for library in libraries {
            let plain = format!("lib{library}.so");
            let files = versions(folder, library)?;
            // Packages for those who only run programs lack the plain name, which linkers look for.
            let linked = files.iter().find(|file| **file == plain).or(files.last());
            if how == Linking::Copies {
                let named = files.iter().map(|file| (file, file));
                let last = linked.filter(|file| **file != plain);
                for (name, file) in named.chain(last.map(|file| (&plain, file))) {
                    let library = folder.join(file);
                    let mut origin = self.copy(&library, name)?;
                    origin.push(".origin");
                    // An installed program must not need the target folder.
                    self.put(&origin, library.as_os_str().as_encoded_bytes())?;
                }
            } else if let Some(file) = linked {
                let script = linker_script(&folder.join(file))?;
                self.put(plain.as_ref(), script.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Lets rustc find copies of these static libraries, and nothing else that their folder holds.
    pub(crate) fn provide_static(&mut self, libraries: &[PathBuf]) -> Result<(), Error> {
        for library in libraries {
            let name = library.file_name().and_then(|name| name.to_str());
            self.copy(library, name.expect("this crate names the library"))?;
        }
        Ok(())
    }

    /// Removes the files of former builds that this build did not put there.
    pub(crate) fn remove_others(self) -> Result<(), Error> {
        for name in self.former.difference(&self.names) {
            let path = self.folder.join(name);
            // A power cut may leave anything in the list.
            let is_name = Path::new(name).file_name() == Some(name.as_ref());
            if is_name && (path.is_symlink() || path.is_file()) {
                files::remove(&path).map_err(error::io(&path))?;
            }
        }
        self.keep(&self.names)
    }

    /// Copies a library, with a link of the name `name` to the copy. Returns the name of the copy.
    fn copy(&mut self, library: &Path, name: &str) -> Result<OsString, Error> {
        let real = fs::canonicalize(library).map_err(error::io(library))?;
        let bytes = fs::read(&real).map_err(error::io(&real))?;
        let real_name = real.file_name().expect("a file that was read has a name");
        self.put(real_name, &bytes)?;
        if real_name != name {
            let link = self.path(name.as_ref())?;
            symlink(Path::new(real_name), &link).map_err(error::io(&link))?;
        }
        Ok(real_name.to_owned())
    }

    /// Writes a file.
    fn put(&mut self, name: &OsStr, bytes: &[u8]) -> Result<(), Error> {
        let path = self.path(name)?;
        // A link of a former build leads to a file that may be removed.
        if path.is_symlink() {
            files::remove(&path).map_err(error::io(&path))?;
        }
        files::write(&path, bytes).map_err(error::io(&path))
    }

    /// Returns the path of a file that is going to be written, and adds its name to the list.
    fn path(&mut self, name: &OsStr) -> Result<PathBuf, Error> {
        let text = name.to_string_lossy().into_owned();
        if self.names.insert(text) {
            self.keep(&self.former.union(&self.names).cloned().collect())?;
        }
        Ok(self.folder.join(name))
    }

    fn keep(&self, names: &BTreeSet<String>) -> Result<(), Error> {
        let in_list = error::io(&self.list);
        if names.is_empty() {
            return files::remove(&self.list).map_err(in_list);
        }
        let text: String = names.iter().map(|name| format!("{name}\n")).collect();
        files::write(&self.list, text.as_bytes()).map_err(in_list)
    }
}

#[cfg(unix)]
fn symlink(name: &Path, link: &Path) -> std::io::Result<()> {
    files::remove(link)?;
    std::os::unix::fs::symlink(name, link)
}

#[cfg(not(unix))]
fn symlink(name: &Path, link: &Path) -> std::io::Result<()> {
    fs::copy(link.with_file_name(name), link).map(|_| ())
}

/// A script for ELF linkers (GNU ld, gold, lld, mold) that stands for a library.
fn linker_script(library: &Path) -> Result<String, Error> {
    let name = library.to_str().filter(|name| !name.contains(['"', '\n']));
    let name = name.ok_or_else(|| {
        Error::new(format_args!(
            "`{}`: linker scripts cannot name this library",
            terminal(library)
        ))
    })?;
    Ok(format!(
        "/* Made by offload-build. */\nINPUT ( \"{name}\" )\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_another_module_has_there() {
        let folder = tempfile::tempdir().unwrap();
        let mut runtimes = RuntimeFolder::below(folder.path());
        // As of packages without the plain name, which becomes a link.
        for library in ["omptarget", "cudart", "omptarget"] {
            fs::write(folder.path().join(format!("lib{library}.so.1")), library).unwrap();
            runtimes
                .provide(&[library], folder.path(), Linking::Copies)
                .unwrap();
        }
        let links = runtimes.folder().to_owned();
        runtimes.remove_others().unwrap();
        for library in ["omptarget", "cudart"] {
            let plain = links.join(format!("lib{library}.so"));
            assert_eq!(fs::read_to_string(&plain).unwrap(), library);
            let copy = fs::canonicalize(plain).unwrap();
            let origin = fs::read_to_string(format!("{}.origin", copy.display())).unwrap();
            assert_eq!(
                Path::new(&origin),
                folder.path().join(format!("lib{library}.so.1"))
            );
        }
    }

    #[test]
    fn removes_what_only_former_builds_need() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        fs::write(at("toolkit/libcudart.so.13"), "one").unwrap();
        fs::write(at("other/libcudart.so"), "one").unwrap();
        fs::write(at("static/libcudart_static.a"), "").unwrap();
        fs::create_dir_all(at(RUNTIME)).unwrap();
        fs::write(at(RUNTIME).join("mine"), "").unwrap();
        let build = |provide: &dyn Fn(&mut RuntimeFolder)| {
            let mut runtimes = RuntimeFolder::below(folder.path());
            provide(&mut runtimes);
            runtimes.remove_others().unwrap();
            let names = fs::read_dir(at(RUNTIME)).unwrap();
            let names = names.map(|file| file.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        let provide = |name: &'static str, how| {
            let from = at(name);
            move |runtimes: &mut RuntimeFolder| runtimes.provide(&["cudart"], &from, how).unwrap()
        };
        let copies = [
            "libcudart.so",
            "libcudart.so.13",
            "libcudart.so.13.origin",
            "mine",
        ];
        assert_eq!(build(&provide("toolkit", Linking::Copies)), copies);
        // The same bytes under the name that was a link.
        let plain = ["libcudart.so", "libcudart.so.origin", "mine"];
        assert_eq!(build(&provide("other", Linking::Copies)), plain);
        let copy = at(RUNTIME).join("libcudart.so");
        assert_eq!(fs::read_to_string(copy).unwrap(), "one");
        assert_eq!(build(&provide("toolkit", Linking::Copies)), copies);
        let script = ["libcudart.so", "mine"];
        assert_eq!(build(&provide("toolkit", Linking::Scripts)), script);
        let library = [at("static/libcudart_static.a")];
        let copied = build(&|runtimes| runtimes.provide_static(&library).unwrap());
        assert_eq!(copied, ["libcudart_static.a", "mine"]);
        assert_eq!(build(&|_| ()), ["mine"]);
    }
}
