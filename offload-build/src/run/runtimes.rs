//! The folder below `OUT_DIR` in which linkers find the libraries of a runtime.

use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_build_core::installed::runtimes::versions;
use offload_formats::escape::terminal;
use std::fs;
use std::path::{Path, PathBuf};

/// The way in which linkers get the libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linking {
    /// Copies, which the loader finds as well.
    Copies,
    /// Linker scripts that name them.
    Scripts,
}

/// Makes `place`, a folder below `OUT_DIR`, in which linkers find these libraries of `folder`, and nothing else that it holds.
/// Modules of several languages have libraries in one such place.
///
/// Beside each copy, `<file>.origin` has the path of its library, for the rpath that `offload-link` adds.
///
/// Linkers search it instead of `folder`, which may hold other libraries that are not the system's. Because it lies in
/// the target folder, `cargo run` and `cargo test` add it to the loader's path, also for programs that only depend on
/// this package. So if the loader does not find `folder` itself, the libraries are copied; otherwise
/// linker scripts name them. There are no links to `folder`: whatever edits the target folder would edit the
/// system's libraries through them.
pub(crate) fn provide(
    libraries: &[&str],
    folder: &Path,
    place: &Path,
    how: Linking,
) -> Result<(), Error> {
    fs::create_dir_all(place).map_err(error::io(place))?;
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
                let copy = copy(&library, name, place)?;
                write_origin(&library, copy)?;
            }
        } else if let Some(file) = linked {
            let (script, file) = (place.join(&plain), folder.join(file));
            files::write(&script, linker_script(&file)?.as_bytes()).map_err(error::io(&script))?;
        }
    }
    Ok(())
}

/// Makes `place`, a folder below `OUT_DIR`, in which rustc finds copies of these static libraries, and nothing else that
/// their folder holds.
pub(crate) fn provide_static(libraries: &[PathBuf], place: &Path) -> Result<(), Error> {
    fs::create_dir_all(place).map_err(error::io(place))?;
    for library in libraries {
        let name = library.file_name().and_then(|name| name.to_str());
        let name = name.expect("this crate names the library");
        copy(library, name, place)?;
    }
    Ok(())
}

/// Writes the place of a library beside its copy, for `offload-link`: an installed program must not need the target folder.
fn write_origin(library: &Path, copy: PathBuf) -> Result<(), Error> {
    let mut origin = copy.into_os_string();
    origin.push(".origin");
    let origin = PathBuf::from(origin);
    let library = library.as_os_str().as_encoded_bytes();
    files::write(&origin, library).map_err(error::io(&origin))
}

/// Copies a library to `place`, where it is called `name` too, by a link within `place`. Returns the copy.
fn copy(library: &Path, name: &str, place: &Path) -> Result<PathBuf, Error> {
    let real = fs::canonicalize(library).map_err(error::io(library))?;
    let bytes = fs::read(&real).map_err(error::io(&real))?;
    let real_name = real.file_name().expect("a file that was read has a name");
    let copy = place.join(real_name);
    files::write(&copy, &bytes).map_err(error::io(&copy))?;
    if Path::new(real_name) != Path::new(name) {
        let link = place.join(name);
        symlink(Path::new(real_name), &link).map_err(error::io(&link))?;
    }
    Ok(copy)
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
        let place = folder.path().join("runtime");
        // As of packages without the plain name, which becomes a link.
        for library in ["omptarget", "cudart", "omptarget"] {
            fs::write(folder.path().join(format!("lib{library}.so.1")), library).unwrap();
            provide(&[library], folder.path(), &place, Linking::Copies).unwrap();
        }
        for library in ["omptarget", "cudart"] {
            let plain = place.join(format!("lib{library}.so"));
            assert_eq!(fs::read_to_string(&plain).unwrap(), library);
            let copy = fs::canonicalize(plain).unwrap();
            let origin = fs::read_to_string(format!("{}.origin", copy.display())).unwrap();
            assert_eq!(
                Path::new(&origin),
                folder.path().join(format!("lib{library}.so.1"))
            );
        }
    }
}
