//! Finds what a module needs, and plans it.

use crate::inputs::libraries::Libraries;
use crate::inputs::{prebuilt, unsafe_code};
use crate::plan::{Context, Plan, plan_compiled, plan_prebuilt};
use crate::run::unique::unique;
use crate::steps::image_library::ImageLibrary;
use crate::steps::task::file_numbers;
use offload_build_core::compile::nvcc;
use offload_build_core::declare::family::Family;
use offload_build_core::declare::language::Language;
use offload_build_core::declare::module::{Embed, Module, Target};
use offload_build_core::declare::skipped;
use offload_build_core::environment::Environment;
use offload_build_core::error::{BuildPart, Error};
use offload_build_core::installed::host::Host;
use offload_build_core::installed::machine::{Machine, Registrar};
use offload_build_core::installed::target_folder::shared_folder;
use offload_build_core::process::install::Need;
use std::path::{Path, PathBuf};

/// A module that is ready to be built.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) targets: Vec<Target>,
    /// `None` if nothing is compiled.
    pub(crate) machine: Option<Machine>,
    pub(crate) host: Host,
    pub(crate) unique: String,
    /// True if Rust links images of a module without host code.
    pub(crate) links_images: bool,
    pub(crate) registration: Registrar,
    /// Names of the host's libraries that images for CPUs link, and so the host code of the same sources.
    pub(crate) host_libraries: Vec<String>,
}

impl Prepared {
    /// Adds what the compiler does not know of the targets of `module`, if that is why it failed.
    pub(crate) fn explained(&self, module: &Module, error: Error) -> Error {
        let text = error.to_string();
        let language = missing_header(&text).filter(|_| self.host.is_cross);
        let package =
            language.and_then(|language| Some((language, self.host.headers_package(language)?)));
        let error = match package {
            Some((language, package)) => error.with_line(format_args!(
                "hint: headers of the {language} library for {} are in Debian's and Ubuntu's package {package}; \
                 `flags = [\"--sysroot=DIR\"]` names others",
                self.host.triple
            )),
            None => error,
        };
        let error = match device_library_hint(&error.to_string()) {
            Some(hint) => error.with_line(format_args!("hint: {hint}")),
            None => error,
        };
        let replaced = module.compiler_variable();
        let replaced = replaced.filter(|_| error.to_string().contains("set `compiler = "));
        let error = match replaced {
            Some(variable) => error.with_line(format_args!(
                "note: {variable} replaces the key `compiler`: unset it, or name the compiler there"
            )),
            None => error,
        };
        let error = match missing_folders(module, &error.to_string()) {
            Some(folders) => error.with_line(folders),
            None => error,
        };
        let compiles_for_gpus = !matches!(module.language, Language::OpenMp | Language::Prebuilt);
        let machine = self.machine.as_ref().filter(|_| compiles_for_gpus);
        let explain = |machine: &Machine| machine.compiler.explain(module, &machine.answers);
        match machine.and_then(explain) {
            Some(why) => Error::new(format_args!("{error}\n{why}")),
            None => error,
        }
    }
}

/// Returns the language whose header clang did not find: those of C++ have no extension, but for the one that tells its settings.
fn missing_header(error: &str) -> Option<&'static str> {
    let (before, _) = error.split_once("' file not found")?;
    let (_, name) = before.rsplit_once('\'')?;
    match !name.contains('.') || name.starts_with("bits/c++") {
        true => Some("C++"),
        false => Some("C"),
    }
}

/// Returns a note about folders of `include` that do not exist, if a compiler did not find a header: compilers ignore them.
fn missing_folders(module: &Module, error: &str) -> Option<String> {
    // Words of clang and GCC.
    let of_gcc = ["fatal error: ", ": No such file or directory"];
    let lacks_header =
        error.contains("' file not found") || of_gcc.iter().all(|words| error.contains(words));
    let folders = module.include.iter().filter(|folder| !folder.is_dir());
    let folders = folders.map(|folder| format!("`{}`", folder.display()));
    let folders: Vec<String> = folders.collect();
    if !lacks_header || folders.is_empty() {
        return None;
    }
    let folders = folders.join(", ");
    let hint = match folders.contains('$') {
        true => "\nhint: a variable is `${NAME}` in a manifest, not `$NAME`",
        false => "",
    };
    Some(format!(
        "note: `include` names folders that do not exist: {folders}{hint}"
    ))
}

/// Returns what to do if clang did not find the vendor's device libraries.
pub(crate) fn device_library_hint(error: &str) -> Option<String> {
    if error.contains("cannot find libdevice") {
        let install = Need::CudaToolkit.install(None);
        return Some(format!("{install} and set CUDA_PATH to its root"));
    }
    let (_, what) = error.split_once("cannot find ROCm device library")?;
    if what.starts_with(" for gfx") {
        return Some("the device libraries are older than this processor: install a newer ROCm, or remove it from `targets`".to_owned());
    }
    if what.starts_with(" for ABI version 6") {
        return Some("set `flags = [\"-mcode-object-version=5\"]`, or `compiler = \"clang-19\"`, or install ROCm 6.3 or later".to_owned());
    }
    what.starts_with(';').then(|| {
        format!(
            "{} or name their folder by HIP_DEVICE_LIB_PATH\n\
             hint: kernels that call no function of the math library need none if the source includes `<offload/gpu.h>` in place of \
             ROCm's headers",
            Need::DeviceLibraries.install(None)
        )
    })
}

/// Plans `module`, one of `modules` of its package.
pub(crate) fn prepare(
    module: &Module,
    modules: usize,
    environment: &Environment,
    out: &Path,
) -> Result<Prepared, Error> {
    if let Some(problem) = &module.missing_sdk {
        return Err(Error::missing(problem));
    }
    let root = PathBuf::from(environment.required("CARGO_MANIFEST_DIR")?);
    let host = Host::of(environment)?;
    let unique = unique(environment, module)?;
    let library = image_library(module, &host, &unique, environment, (&root, out))?;
    let links_images = library.is_some();
    if module.language == Language::Prebuilt {
        let images = prebuilt::find(module, &root).map_err(BuildPart::Inputs.coded())?;
        let (plan, targets) = plan_prebuilt(module, images, (out, library.as_ref()));
        return Ok(Prepared {
            plan,
            targets,
            machine: None,
            host,
            unique,
            links_images,
            registration: Registrar::Module,
            host_libraries: Vec::new(),
        });
    }
    let machine =
        Machine::ask(module, &host, environment, &root, out).map_err(BuildPart::Machine.coded())?;
    check_paths(module, machine.compiler.family, [&root, out])?;
    let package = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"].map(|name| environment.required(name));
    let [name, version] = package;
    let package = format!("{} {}", name?, version?);
    let numbers = source_numbers(module);
    let shared = shared_folder(out, &host.triple);
    let libraries = Libraries::of(module);
    let context = Context {
        shared: shared.as_deref(),
        compiler: &machine.compiler,
        rustc: machine.rustc.as_ref(),
        root: &root,
        out,
        host: &host,
        debug: environment
            .cargo("DEBUG")
            .is_some_and(|value| !["false", "0", "none"].contains(&value.as_str())),
        colors: environment.colors(),
        variables: &machine.variables,
        package: &package,
        launcher: machine.launcher.as_ref(),
        unique: &unique,
        images: library.as_ref(),
        deferred: machine.registration == Registrar::LastLink,
        libraries: &libraries,
        device_tools: &machine.device_tools,
        unknown_to_ptxas: &machine.unknown_to_ptxas,
        has_lld: machine.has_lld,
        device_libraries: &machine.device_libraries,
        sdk_libraries: &machine.sdk_libraries,
        without_critical_lock: &machine.without_critical_lock,
        cuda_device_runtime: machine.cuda_device_runtime.as_deref(),
        source_numbers: &numbers,
    };
    let (plan, targets) = plan_compiled(module, &context)?;
    if let Some(error) = skipped::refused(module, &plan.skipped, &targets, modules) {
        return Err(BuildPart::Machine.coded()(error));
    }
    Ok(Prepared {
        host_libraries: host_libraries(&libraries, &targets),
        plan,
        targets,
        registration: machine.registration,
        machine: Some(machine),
        host,
        unique,
        links_images,
    })
}

/// Returns the number of each source's file.
fn source_numbers(module: &Module) -> Vec<(PathBuf, String)> {
    let sources = module.sources.iter();
    let numbers =
        sources.filter_map(|source| Some((source.clone(), file_numbers::number(source)?)));
    numbers.collect()
}

/// Returns the names of the host's libraries that images for some of the targets link.
fn host_libraries(libraries: &Libraries, targets: &[Target]) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for library in targets.iter().flat_map(|target| libraries.of_host(target)) {
        if !once.contains(&library.name) {
            once.push(library.name.clone());
        }
    }
    once
}

/// Checks the paths that compiles get: nvcc passes them to a shell, and could compile other files.
fn check_paths(module: &Module, family: Family, folders: [&Path; 2]) -> Result<(), Error> {
    if family != Family::Nvcc {
        return Ok(());
    }
    let sources = module.sources.iter().map(PathBuf::as_path);
    for path in folders.into_iter().chain(sources) {
        if let Some(char) = nvcc::special(path) {
            return Err(Error::new(format_args!(
                "`{}`: nvcc passes paths to a shell, for which `{char}` is special\n\
                 hint: rename the folder or file, or set `compiler = \"clang\"`; CARGO_TARGET_DIR names another target folder",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Returns the library that Rust links the images of `module` from; nothing if it includes them, or if they are linked
/// with host code. `root` is the package, `out` is `OUT_DIR`.
fn image_library(
    module: &Module,
    host: &Host,
    unique: &str,
    environment: &Environment,
    (root, out): (&Path, &Path),
) -> Result<Option<ImageLibrary>, Error> {
    if module.has_host_code || module.embed == Embed::Include {
        return Ok(None);
    }
    let form = match (module.embed, host.data_objects()) {
        (_, Some(form)) => form,
        (Embed::Link, None) => {
            return Err(Error::new(format_args!(
                "`embed = \"link\"` is not supported for `{}` [OFF609]\nhint: `embed = \"include\"` works for every host",
                host.triple
            )));
        }
        (_, None) => return Ok(None),
    };
    if module.embed == Embed::Auto && unsafe_code::is_forbidden(root, environment)? {
        return Ok(None);
    }
    let name = format!("{unique}_offload");
    Ok(Some(ImageLibrary {
        host: form,
        largest_usual: module.largest_usual,
        unique: unique.to_owned(),
        library: out.join(host.static_library(&name)),
    }))
}
