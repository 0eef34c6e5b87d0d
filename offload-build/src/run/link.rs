//! Tells Cargo what to link.

use crate::run::prepare::Prepared;
use crate::run::runtimes::{Linking, RuntimeFolder};
use crate::steps::digests::Digests;
use offload_build_core::declare::module::Module;
use offload_build_core::environment::Environment;
use offload_build_core::error::Error;
use offload_build_core::installed::host::Host;
use offload_build_core::installed::runtimes::{LibraryForm, Runtime};
use std::path::{Path, PathBuf};

/// Folders in which the loader looks anyway.
const LOADER_FOLDERS: [&str; 3] = ["/lib", "/usr/lib", "/usr/lib64"];

/// The runtime that host code of `module` calls.
pub(crate) fn runtime<'a>(module: &Module, built: &'a Prepared) -> Option<&'a Runtime> {
    let machine = built.machine.as_ref().filter(|_| module.has_host_code);
    machine?.runtime.as_ref()
}

/// The libraries that host code of `module` needs, in the order of a link.
pub(crate) fn libraries(module: &Module, built: &Prepared) -> Vec<String> {
    let runtime = runtime(module, built).into_iter().flat_map(Runtime::linked);
    let is_cpp = module.has_host_code && module.has_cpp();
    let cpp = built.host.cpp_library().filter(|_| is_cpp);
    let names = runtime.map(|(_, library)| library).chain(cpp);
    let own = built.host_libraries.iter().map(String::as_str);
    own.chain(names).map(str::to_owned).collect()
}

/// The libraries of the modules, then, once, what they need.
pub(crate) fn tell_what_to_link(
    environment: &Environment,
    out: &Path,
    finished: &[(&Module, Prepared)],
    runtimes: &mut RuntimeFolder,
) -> Result<(), Error> {
    let search = |folder: &Path| {
        let folder = format!("native={}", folder.display());
        environment.tell("rustc-link-search", folder);
    };
    for (module, built) in finished {
        for target in &built.targets {
            environment.tell("rustc-cfg", target.cfg_name());
        }
        if module.has_host_code {
            let name = format!("{}_offload", built.unique);
            tell_whole_library(environment, out, &built.host, &name);
            for library in &built.host_libraries {
                environment.tell("rustc-link-lib", library);
            }
            let folders = module.library_dirs.iter();
            folders
                .filter(|_| !built.host_libraries.is_empty())
                .for_each(|folder| search(folder));
        } else if built.links_images {
            // The generated file names their symbols: without a reference they are left out.
            let library = format!("static={}_offload", built.unique);
            environment.tell("rustc-link-lib", library);
        }
    }
    let mut needs = finished.iter();
    if !needs.any(|(module, built)| module.has_host_code || built.links_images) {
        return Ok(());
    }
    search(out);
    let mut told: Vec<&[&str]> = Vec::new();
    let called = finished.iter();
    let called =
        called.filter_map(|(_, built)| Some((built.machine.as_ref()?.runtime.as_ref()?, built)));
    for (runtime, built) in called {
        if told.contains(&runtime.libraries) {
            continue;
        }
        told.push(runtime.libraries);
        if let Some(folder) = runtime_folder(environment, out, runtime, built, runtimes)? {
            search(&folder);
        }
        let is_static = matches!(runtime.form, LibraryForm::Static(_));
        for (kind, library) in runtime.linked() {
            environment.tell("rustc-link-lib", format_args!("{kind}={library}"));
            if is_static && runtime.libraries.contains(&library) {
                tell_after_modules(environment, &built.host, library);
            }
        }
    }
    let mut modules = finished.iter().map(|(module, _)| module);
    let has_cpp = modules.any(|module| module.has_host_code && module.has_cpp());
    let mut hosts = finished.iter().map(|(_, built)| &built.host);
    if let Some(library) = hosts.next().filter(|_| has_cpp).and_then(Host::cpp_library) {
        environment.tell("rustc-link-lib", format_args!("dylib={library}"));
    }
    Ok(())
}

/// Tells Cargo to link all of a library of `out`, which may have changed.
///
/// sccache 0.16, as a wrapper of rustc, reads the libraries of `static=` but not of `static:+whole-archive=`: it would
/// return a crate with the code of an earlier build. An option of rustc that it compares has the library's digest.
pub(crate) fn tell_whole_library(environment: &Environment, out: &Path, host: &Host, name: &str) {
    environment.tell(
        "rustc-link-lib",
        format_args!("static:+whole-archive={name}"),
    );
    let wrappers = ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"];
    let mut wrappers = wrappers.iter().filter_map(|name| environment.cargo(name));
    if wrappers.any(|wrapper| !wrapper.is_empty()) {
        let digest = Digests::default().of(&out.join(host.static_library(name)));
        let digest = digest.unwrap_or_default();
        environment.tell("rustc-check-cfg", "cfg(offload_library, values(any()))");
        environment.tell("rustc-cfg", format_args!("offload_library=\"{digest}\""));
    }
}

/// Tells Cargo to link a static library, which is part of the crate's rlib, once more after the modules.
///
/// rustc names a library of `+whole-archive` after the rlib, and GNU ld and gold do not search the rlib again for what it
/// calls. With `-bundle` the library follows. For rustc another name is another library, so the rlib keeps its copy, which
/// static libraries for C need.
fn tell_after_modules(environment: &Environment, host: &Host, library: &str) {
    // The linkers of Windows search again.
    if !host.is_windows() {
        let file = host.static_library(library);
        environment.tell(
            "rustc-link-lib",
            format_args!("static:-bundle,+verbatim={file}"),
        );
    }
}

/// Returns the folder in which programs find a runtime, when they are linked and, as far as a build script can provide,
/// when they are
/// started.
fn runtime_folder(
    environment: &Environment,
    out: &Path,
    runtime: &Runtime,
    built: &Prepared,
    runtimes: &mut RuntimeFolder,
) -> Result<Option<PathBuf>, Error> {
    let folder = match &runtime.folder {
        Ok(folder) => folder,
        Err(missing) => {
            let text = missing.to_string();
            let mut skipped = built.plan.skipped.iter();
            if !skipped.any(|skipped| skipped.reason == text) {
                environment.report("warning", &text);
                environment.look_again(out);
            }
            return Ok(None);
        }
    };
    if built.host.is_windows() {
        // Programs find DLLs in `PATH`.
        return Ok(Some(folder.clone()));
    }
    if let LibraryForm::Static(_) = runtime.form {
        let copied = runtime.files(folder)?;
        copied.iter().for_each(|file| environment.watch(file));
        runtimes.provide_static(&copied)?;
        return Ok(Some(runtimes.folder().to_owned()));
    }
    // What is built for another host finds nothing on this machine.
    let of_host = LOADER_FOLDERS.map(|known| format!("{known}/{}-linux-gnu", built.host.arch()));
    let known = LOADER_FOLDERS
        .into_iter()
        .chain(of_host.iter().map(|known| &**known));
    let is_known = known.into_iter().any(|known| folder == Path::new(known));
    let how = match !built.host.is_cross && !is_known {
        true => Linking::Copies,
        false => Linking::Scripts,
    };
    runtimes.provide(runtime.libraries, folder, how)?;
    if how == Linking::Copies {
        let copied = runtime.files(folder)?;
        copied.iter().for_each(|file| environment.watch(file));
        // For this package's own programs; no build script can do it for those that depend on it.
        for arg in rpath(folder) {
            environment.tell("rustc-link-arg", arg);
        }
    }
    Ok(Some(runtimes.folder().to_owned()))
}

/// Returns the arguments of a compiler driver that add `folder` to those in which a program finds its libraries.
fn rpath(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    match folder.contains(',') {
        // `-Wl` divides at commas.
        true => ["-Xlinker", "-rpath", "-Xlinker", &folder]
            .map(str::to_owned)
            .into(),
        false => vec![format!("-Wl,-rpath,{folder}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_folders_with_commas_to_the_linker() {
        assert_eq!(rpath(Path::new("/a b/lib")), ["-Wl,-rpath,/a b/lib"]);
        let expected = ["-Xlinker", "-rpath", "-Xlinker", "/cu,da/lib64"];
        assert_eq!(rpath(Path::new("/cu,da/lib64")), expected);
    }
}
