//! One module of device code: settings checked and made into values.

mod choices;
mod compression;
mod flags;
mod kernel_crate;
mod library_names;
mod matches;
mod named_files;
mod optional_kernels;
mod refused_flags;
mod sources;
mod target;

pub use crate::declare::module::choices::{Cudart, Embed, Missing, Register};
pub use crate::declare::module::compression::ImageCompression;
pub use crate::declare::module::flags::Flags;
pub use crate::declare::module::kernel_crate::KernelCrate;
use crate::declare::module::kernel_crate::is_rustc;
pub use crate::declare::module::optional_kernels::OptionalKernel;
pub use crate::declare::module::refused_flags::{names_processor, refused_option};
pub use crate::declare::module::sources::excluded;
pub use crate::declare::module::target::Target;

use crate::declare::family::Family;
use crate::declare::language::{ArtifactKind, Container, ImageSources, Language, is_cpp};
use crate::declare::module::flags::is_identifier;
use crate::declare::settings::{Reach, Settings};
use crate::environment::Environment;
use crate::error::Error;
use offload_formats_core::settings::decompression_limit::{self, DecompressionLimit};
use offload_formats_core::settings::large_images;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One module, as the manifest, the variables and the build script together declare it.
#[derive(Clone, Debug)]
pub struct Module {
    pub name: String,
    pub language: Language,
    /// True if its sources are compiled for the host, too, and its images registered.
    pub has_host_code: bool,
    /// Absolute paths, sorted, each once. Of a crate of kernels its root.
    pub sources: Vec<PathBuf>,
    /// The crate of kernels of a module of `rust`.
    pub kernel_crate: Option<KernelCrate>,
    /// Sources that use `<offload/gpu.h>` in the place of the vendor's SDK.
    pub sources_without_sdk: BTreeSet<PathBuf>,
    /// Files that `flags` name, or variables with flags. No dependency file lists them.
    pub named_files: Vec<PathBuf>,
    /// Folders in which patterns look for sources: a new file in one of them is a new source.
    pub watched: Vec<PathBuf>,
    pub targets: Vec<Target>,
    pub include: Vec<PathBuf>,
    /// Folders in which libraries of device code are looked for by name.
    pub library_dirs: Vec<PathBuf>,
    /// Libraries that it comes out as , and what they are called.
    pub artifacts: Vec<ArtifactKind>,
    pub library: String,
    pub container: Container,
    /// How images are compressed in the container.
    pub compress: ImageCompression,
    pub embed: Embed,
    pub cudart: Cudart,
    pub std: Option<String>,
    /// True if sources call device functions of each other.
    pub rdc: bool,
    /// The sources that an image is made of.
    pub images: ImageSources,
    /// Options of the host objects.
    pub own: Flags,
    /// The language that `-x` among them gives to all sources, in the place of their names.
    named_language: Option<String>,
    /// The declared compiler. For a crate of kernels a clang that is set for other packages, too: it links device code.
    pub compiler: Option<String>,
    /// Place where the compiler was written.
    compiler_origin: Option<String>,
    /// The launcher as written, and where it was written.
    pub launcher: Option<(String, String)>,
    pub register: Register,
    pub missing: Missing,
    /// The limit on what compressed images become.
    pub decompressed: DecompressionLimit,
    /// Largest total of images in usual sections in bytes.
    pub largest_usual: u64,
    /// Hints about targets, as the manifest spells them, shown if something fails.
    doubts: Vec<(String, String)>,
    /// The error of a value that names an SDK which is not installed.
    pub missing_sdk: Option<String>,
    /// Oddities that are not errors.
    pub warnings: Vec<String>,
}

/// Size in bytes.
const LONGEST_NAME: usize = 200;

impl Module {
    /// Tells whether objects of host code need the library of C++.
    pub fn has_cpp(&self) -> bool {
        match &self.named_language {
            _ if self.language != Language::OpenMp => true,
            Some(language) => language.contains("++"),
            None => self.sources.iter().any(|path| is_cpp(path)),
        }
    }

    /// Returns the language standard for a source. In modules of C and C++ one standard is for the sources of its language.
    pub fn std_of(&self, source: &Path) -> Option<&str> {
        let std = self.std.as_deref()?;
        let mut sources = self.sources.iter();
        let is_mixed = self.language == Language::OpenMp
            && self.named_language.is_none()
            && sources.any(|other| is_cpp(other) != is_cpp(source));
        (!is_mixed || std.contains("++") == is_cpp(source)).then_some(std)
    }

    /// Tells whether C++ may be linked: libraries do not say.
    pub fn may_have_cpp(&self) -> bool {
        self.has_libraries() || self.has_cpp()
    }

    /// Tells whether a device link takes libraries of device code.
    pub fn has_libraries(&self) -> bool {
        let mut targets = self.targets.iter();
        targets.any(|target| !target.libraries.is_empty())
    }

    /// Returns the declared compiler of C, C++ or LLVM IR.
    pub fn declared_compiler(&self) -> Option<&str> {
        let compiler = self.compiler.as_deref();
        compiler.filter(|_| self.language != Language::Rust)
    }

    /// Adds to `error`, which the declared compiler causes, the place of the key, or the environment variable that names the
    /// compiler.
    pub fn with_compiler_origin(&self, error: Error) -> Error {
        let Some(origin) = &self.compiler_origin else {
            return error;
        };
        let text = error.to_string();
        if text.starts_with("`compiler`: ") {
            let text = format!("{origin}: {text}");
            return match error.is_missing() {
                true => Error::missing(text),
                false => Error::new(text),
            };
        }
        match self.compiler_variable() {
            Some(variable) => error.with_line(format_args!("note: {variable} names this compiler")),
            None => error,
        }
    }

    /// Says how to let the build choose the compiler.
    pub fn without_compiler(&self) -> String {
        match self.compiler_variable() {
            Some(variable) => format!("unset {variable}"),
            None => "remove `compiler`".to_owned(),
        }
    }

    /// Returns the variable that names the compiler in place of the key.
    pub fn compiler_variable(&self) -> Option<&str> {
        // Other places are `Cargo.toml:7:1` and `Build::compiler`.
        let origin = self.compiler_origin.as_deref();
        origin.filter(|origin| !origin.contains(':'))
    }

    /// Returns the end of a hint about missing tools: how to build without them, unless the build does.
    pub fn stub_hint(&self) -> &'static str {
        match self.missing {
            Missing::Stub => "",
            Missing::Error | Missing::Skip => {
                "; or build without device code: OFFLOAD_MISSING=stub"
            }
        }
    }

    /// Returns the clang to prefer for the device links of a crate of kernels.
    pub fn preferred_clang(&self) -> Option<&str> {
        let compiler = self.compiler.as_deref();
        compiler.filter(|_| self.language == Language::Rust)
    }

    /// Returns the family of its compiler.
    pub fn family(&self) -> Family {
        let declared = self.declared_compiler().map(Path::new);
        declared.map_or(Family::Clang, Family::of)
    }

    /// Tells whether the module that `settings` describe belongs to a cargo feature that is off.
    pub fn is_off(settings: &Settings, environment: &Environment) -> bool {
        settings
            .text("feature")
            .is_some_and(|feature| !environment.has_feature(feature))
    }

    /// Checks `settings`.
    pub fn new(settings: &Settings, environment: &Environment) -> Result<Self, Error> {
        let name = checked_name(settings)?;
        let root = PathBuf::from(environment.required("CARGO_MANIFEST_DIR")?);
        let Some(language) = settings.text("language").and_then(Language::named) else {
            return Err(lacks(settings, "language"));
        };
        let default = environment.cargo("OPT_LEVEL");
        let own = Flags::new(settings, default.as_deref().unwrap_or("2"))?;
        let out = PathBuf::from(environment.required("OUT_DIR")?);
        let mut watched = Vec::new();
        let kernel_crate = (language == Language::Rust)
            .then(|| KernelCrate::new(settings, &name, &root, environment))
            .transpose()?;
        let (sources, mut warnings) = match &kernel_crate {
            Some(kernels) => (vec![kernels.source.clone()], Vec::new()),
            None => sources::sources(settings, language, &root, &out, &own, &mut watched)?,
        };
        if sources.is_empty() {
            return Err(lacks(settings, "sources"));
        }
        let targets = target::targets(settings, language, &own, &root)?;
        // Of GPUs that nobody looks for.
        if targets.is_empty() && environment.variable("DOCS_RS").is_none() {
            return Err(lacks(settings, "targets"));
        }
        warnings.extend(target::warnings(settings, &targets, language)?);
        warnings.extend(unmatched(settings, &targets, &root, &sources));
        let include = settings.list("include").iter();
        let include = include.map(|folder| root.join(folder)).collect();
        let library_dirs = library_dirs(environment, &root);
        let package = environment.cargo("CARGO_PKG_NAME");
        let library = settings.text("name").map(str::to_owned).or(package);
        choices::compiler(settings, language)?;
        let has_host_code = choices::host(settings, language);
        let (images, rdc) = choices::images(settings, language, has_host_code, sources.len())?;
        let register = choices::register(settings, language, has_host_code)?;
        choices::deferred(settings, register, rdc)?;
        let container = choices::container(settings, language, has_host_code, &targets)?;
        let decompressed = environment.variable(decompression_limit::VARIABLE);
        let decompressed = DecompressionLimit::parse(None, decompressed.as_deref());
        let largest_usual = environment.variable(large_images::LARGE_VARIABLE);
        let largest_usual = large_images::largest_usual(None, largest_usual.as_deref());
        let doubts = doubts(settings, &targets);
        let module = Self {
            decompressed: decompressed.map_err(Error::new)?,
            largest_usual: largest_usual.map_err(Error::new)?,
            sources,
            kernel_crate,
            sources_without_sdk: BTreeSet::new(),
            named_files: Vec::new(),
            watched,
            targets,
            include,
            library_dirs,
            artifacts: choices::artifacts(settings, language)?,
            library: library.unwrap_or_else(|| name.clone()),
            compress: ImageCompression::of(settings, container, register, has_host_code)?,
            container,
            embed: choices::embed(settings, has_host_code)?,
            cudart: choices::cudart(settings, has_host_code)?,
            name,
            language,
            has_host_code,
            std: settings.text("std").map(str::to_owned),
            rdc,
            images,
            named_language: own.named_language(&root),
            own,
            compiler: compiler(settings, language, &root),
            compiler_origin: compiler_origin(settings),
            launcher: launcher(settings),
            register,
            missing: choices::missing(settings),
            doubts,
            missing_sdk: None,
            warnings,
        };
        Ok(module.with_named_files(environment, &root))
    }

    /// Adds the files that its flags name, and those of variables.
    fn with_named_files(mut self, environment: &Environment, root: &Path) -> Self {
        // The compiler's search announces the variables.
        let names = self.family().variables().iter();
        let values: Vec<String> = names.filter_map(|name| environment.cargo(name)).collect();
        self.named_files = named_files::named_files(&self.own, &self.targets, &values, root);
        self
    }

    /// Returns what may be wrong with `target`: where the manifest names it, and the processor that may be meant.
    pub fn doubt(&self, target: &Target) -> Option<&str> {
        let mut doubts = self.doubts.iter();
        let found = doubts.find(|(written, _)| *written == target.written);
        found.map(|(_, doubt)| doubt.as_str())
    }

    /// `error` with what may be wrong with the targets, unless it says so.
    pub fn explained(&self, error: Error) -> Error {
        let text = error.to_string();
        let doubts = self.doubts.iter().map(|(_, doubt)| doubt);
        let doubts = doubts.filter(|doubt| !text.contains(doubt.as_str()));
        doubts.fold(error, |error, doubt| {
            error.with_line(format_args!("hint: {doubt}"))
        })
    }

    /// The name of the module that `settings` describe.
    pub fn name(settings: &Settings) -> &str {
        settings.text("name").unwrap_or("kernels")
    }
}

/// Returns the error of a module without a key that it needs.
fn lacks(settings: &Settings, key: &'static str) -> Error {
    let hint = match (key, settings.text("language")) {
        ("language", _) => format!("the languages are `{}`", Language::NAMES.join("`, `")),
        ("targets", Some("cuda")) => "add for example `targets = [\"sm_80\"]`".to_owned(),
        ("targets", _) => "add for example `targets = [\"gfx90a\"]`".to_owned(),
        (key, language) => {
            let language = language.and_then(Language::named);
            let extensions = language.and_then(Language::extensions).unwrap_or_default();
            // Images of `prebuilt` have any; code objects are an example.
            let extension = extensions.first().unwrap_or(&"co");
            format!("add for example `{key} = [\"kernels/*.{extension}\"]`")
        }
    };
    let is_in_code = settings.origin("language").starts_with("Build::");
    match settings.text("name") {
        None if !is_in_code => Error::new(format_args!(
            "[package.metadata.offload] has no `{key}` [OFF508]\nhint: {hint}"
        )),
        _ => Error::new(format_args!(
            "module `{}` has no `{key}` [OFF508]\nhint: {hint}",
            Module::name(settings)
        )),
    }
}

/// Returns the launcher, and where it was written.
fn launcher(settings: &Settings) -> Option<(String, String)> {
    let text = settings.text("launcher")?.trim();
    Some((text.to_owned(), settings.origin("launcher").to_owned()))
}

/// Returns the place where the compiler was written.
fn compiler_origin(settings: &Settings) -> Option<String> {
    settings.text("compiler")?;
    Some(settings.origin("compiler").to_owned())
}

/// Returns the declared compiler: a name, or a path in the package's folder `root`.
///
/// A module of `rust` declares a rustc; only a clang that is set for other packages, too, can link its device code.
fn compiler(settings: &Settings, language: Language, root: &Path) -> Option<String> {
    let text = settings.text("compiler")?;
    let reach = settings.entry("compiler").map(|entry| entry.reach);
    let is_clang = Family::of(Path::new(text)) == Family::Clang && !is_rustc(text);
    if language == Language::Rust && !(is_clang && reach == Some(Reach::World)) {
        return None;
    }
    Some(match text.contains('/') {
        true => root.join(text).to_string_lossy().into_owned(),
        false => text.to_owned(),
    })
}

/// Returns the module's name: it names symbols, and with an extension the file that Rust includes.
fn checked_name(settings: &Settings) -> Result<String, Error> {
    let name = Module::name(settings);
    let problem = if !is_identifier(name) {
        format!("`{name}` is not a Rust identifier")
    } else if name.len() > LONGEST_NAME {
        format!("`{name}` is longer than {LONGEST_NAME} characters")
    } else {
        return Ok(name.to_owned());
    };
    Err(settings.error_at("name", problem))
}

/// Returns warnings about patterns of `exclude` for one target that leave no source out.
fn unmatched<'a>(
    settings: &'a Settings,
    targets: &'a [Target],
    root: &'a Path,
    sources: &'a [PathBuf],
) -> impl Iterator<Item = String> + 'a {
    let of_target = move |target: &'a Target| {
        let over = settings.targets.get(&target.written)?;
        let exclude = &target.own.exclude;
        Some(sources::unmatched(over, exclude, root, sources))
    };
    targets.iter().filter_map(of_target).flatten()
}

/// Returns hints about targets whose processor no release of LLVM knows, by the targets' names.
fn doubts(settings: &Settings, targets: &[Target]) -> Vec<(String, String)> {
    let origin = settings.origin("targets");
    let doubt = |target: &Target| {
        let doubt = format!("{origin}: {}", target.doubt()?);
        Some((target.written.clone(), doubt))
    };
    targets.iter().filter_map(doubt).collect()
}

/// Returns the folders in which libraries of device code are looked for by name.
fn library_dirs(environment: &Environment, root: &Path) -> Vec<PathBuf> {
    let variable = environment.variable("LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&variable)
        .filter(|folder| !folder.as_os_str().is_empty())
        .chain([root.to_owned()])
        .collect()
}
