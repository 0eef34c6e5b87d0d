//! One module of device code: settings checked and made into values.

use crate::artifacts;
use crate::environment::Environment;
use crate::error::Error;
use crate::format::compressed_bundle::Method;
use crate::language::{Container, Language, is_cpp};
use crate::settings::{Reach, Settings, nearest};
use crate::target::{TargetId, Triple};
use crate::toolchain::Family;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the manifest, the variables and the build script together say about one module.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) language: Language,
    /// Whether its sources are compiled for the host, too, and its images registered.
    pub(crate) has_host_code: bool,
    /// Absolute, sorted, each once.
    pub(crate) sources: Vec<PathBuf>,
    /// Folders in which patterns look for sources: a new file in one of them is a new source.
    pub(crate) watched: Vec<PathBuf>,
    pub(crate) targets: Vec<Target>,
    pub(crate) include: Vec<PathBuf>,
    /// Libraries of device code, by path.
    pub(crate) archives: Vec<PathBuf>,
    /// And by name.
    pub(crate) link: Vec<String>,
    /// Where the latter are looked for.
    pub(crate) library_dirs: Vec<PathBuf>,
    /// Libraries that it comes out as ([`crate::artifacts`]), and what they are called.
    pub(crate) artifacts: Vec<String>,
    pub(crate) library: String,
    pub(crate) container: Container,
    /// The method and its level, where the container is compressed.
    pub(crate) compress: Option<(Method, Option<i32>)>,
    pub(crate) std: Option<String>,
    /// Whether sources call device functions of each other.
    pub(crate) rdc: bool,
    /// Of the host objects.
    pub(crate) own: Flags,
    pub(crate) compiler: Option<String>,
    /// As written, and where.
    pub(crate) launcher: Option<(String, String)>,
    pub(crate) register: Register,
    pub(crate) missing: Missing,
    /// What is odd and no error.
    pub(crate) warnings: Vec<String>,
}

/// What images are made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// As the manifest spells it.
    pub(crate) written: String,
    pub(crate) triple: Triple,
    /// Empty where the triple says all.
    pub(crate) id: TargetId,
    pub(crate) own: Flags,
    /// Whether it does without sources that other targets have.
    pub(crate) leaves_out: bool,
    /// Its image is PTX, which the driver compiles.
    pub(crate) is_ptx: bool,
}

/// What may differ from target to target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) opt_level: String,
    pub(crate) define: BTreeMap<String, String>,
    pub(crate) flags: Vec<String>,
    /// Sources that are left out.
    pub(crate) exclude: Vec<glob::Pattern>,
}

/// What becomes of targets whose tools are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Nothing is built.
    Error,
    /// They are left out; nothing is built when none is left.
    Skip,
    /// They are left out, and when none is left a crate without images is built.
    Stub,
}

/// Who registers the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    /// `Deferred` under our linker, else `Complete`.
    Auto,
    /// The module's own object.
    Complete,
    /// The object that `offload-link` adds to the last link.
    Deferred,
    /// Nobody: the program loads them.
    None,
}

impl Module {
    /// Whether objects of host code need the library of C++.
    pub(crate) fn has_cpp(&self) -> bool {
        self.language != Language::OpenMp || self.sources.iter().any(|path| is_cpp(path))
    }

    /// Whether C++ may be among what is linked: libraries and flags do not say.
    pub(crate) fn may_have_cpp(&self) -> bool {
        let flags = &self.own.flags;
        let has_others = !self.archives.is_empty() || !self.link.is_empty();
        has_others || self.has_cpp() || flags.iter().any(|flag| flag.starts_with("-x"))
    }

    /// Whose command lines its compiler speaks.
    pub(crate) fn family(&self) -> Family {
        let declared = self.compiler.as_deref().map(Path::new);
        declared.map_or(Family::Clang, Family::of)
    }

    /// Whether the module that `settings` describe belongs to a cargo feature that is off.
    pub(crate) fn is_off(settings: &Settings, environment: &Environment) -> bool {
        settings.text("feature").is_some_and(|feature| {
            let variable = format!("CARGO_FEATURE_{}", feature.to_uppercase().replace('-', "_"));
            environment.cargo(&variable).is_none()
        })
    }

    /// Checks `settings`.
    pub(crate) fn new(settings: &Settings, environment: &Environment) -> Result<Self, Error> {
        let name = Self::name(settings).to_owned();
        if !is_identifier(&name) {
            return Err(wrong(
                settings,
                "name",
                format_args!("`{name}` is not a Rust identifier"),
            ));
        }
        let root = PathBuf::from(environment.required("CARGO_MANIFEST_DIR")?);
        let Some(language) = settings.text("language").and_then(Language::named) else {
            return Err(Error::new(format_args!(
                "module `{name}` has no `language`"
            )));
        };
        let default = environment
            .cargo("OPT_LEVEL")
            .unwrap_or_else(|| "2".to_owned());
        let own = flags(settings, &default)?;
        let out = PathBuf::from(environment.required("OUT_DIR")?);
        let mut watched = Vec::new();
        let (sources, mut warnings) = sources(settings, language, &root, &out, &own, &mut watched)?;
        if sources.is_empty() {
            return Err(Error::new(format_args!("module `{name}` has no `sources`")));
        }
        let targets = targets(settings, language, &own)?;
        // Of GPUs that nobody looks for.
        if targets.is_empty() && environment.variable("DOCS_RS").is_none() {
            return Err(Error::new(format_args!("module `{name}` has no `targets`")));
        }
        for target in &targets {
            let over = settings.targets.get(&target.written);
            warnings.extend(
                over.into_iter()
                    .flat_map(|over| unmatched(over, &target.own.exclude, &root, &sources)),
            );
        }
        let include = settings
            .list("include")
            .iter()
            .map(|folder| root.join(folder))
            .collect();
        let archives = archives(settings, &root)?;
        let library_dirs =
            std::env::split_paths(&environment.variable("LIBRARY_PATH").unwrap_or_default())
                .filter(|folder| !folder.as_os_str().is_empty())
                .chain([root.clone()])
                .collect();
        let package = environment.cargo("CARGO_PKG_NAME");
        let library = settings.text("name").map(str::to_owned).or(package);
        let rdc = rdc(settings, language, sources.len())?;
        compiler(settings, language)?;
        let has_host_code = host(settings, language, rdc)?;
        let register = register(settings, language, has_host_code)?;
        let container = container(settings, language, has_host_code, &targets)?;
        Ok(Self {
            sources,
            watched,
            targets,
            include,
            archives,
            link: settings.list("link").to_vec(),
            library_dirs,
            artifacts: artifacts(settings, language)?,
            library: library.unwrap_or_else(|| name.clone()),
            compress: compress(settings, container)?,
            container,
            name,
            language,
            has_host_code,
            std: settings.text("std").map(str::to_owned),
            rdc,
            own,
            compiler: settings
                .text("compiler")
                .map(|text| match text.contains('/') {
                    true => root.join(text).to_string_lossy().into_owned(),
                    false => text.to_owned(),
                }),
            launcher: settings.text("launcher").map(|text| {
                (
                    text.trim().to_owned(),
                    settings.origin("launcher").to_owned(),
                )
            }),
            register,
            missing: match settings.text("missing") {
                Some("error") => Missing::Error,
                Some("stub") => Missing::Stub,
                _ => Missing::Skip,
            },
            warnings,
        })
    }

    /// The name of the module that `settings` describe.
    pub(crate) fn name(settings: &Settings) -> &str {
        settings.text("name").unwrap_or("kernels")
    }
}

impl Target {
    /// `gfx90a:xnack-`, `sm_80`, `compute_80`, or the triple of a CPU device.
    pub(crate) fn parse(written: &str) -> Result<Self, String> {
        let target = |triple: &str, id: &str| {
            let triple = Triple::parse(triple).map_err(|error| error.to_string())?;
            let id = TargetId::parse(id).map_err(|error| error.to_string())?;
            let (written, own) = (written.to_owned(), Flags::default());
            Ok(Self {
                written,
                triple,
                id,
                own,
                leaves_out: false,
                is_ptx: false,
            })
        };
        let digits = |rest: &str| rest.starts_with(|char: char| char.is_ascii_digit());
        if written.strip_prefix("gfx").is_some_and(digits) {
            return target("amdgcn-amd-amdhsa", written);
        }
        if written.strip_prefix("sm_").is_some_and(digits) && !written.contains(':') {
            return target("nvptx64-nvidia-cuda", written);
        }
        let virtual_processor = written.strip_prefix("compute_");
        if let Some(number) = virtual_processor.filter(|rest| digits(rest) && !rest.contains(':')) {
            return Ok(Self {
                is_ptx: true,
                written: written.to_owned(),
                ..target("nvptx64-nvidia-cuda", &format!("sm_{number}"))?
            });
        }
        match Triple::parse(written) {
            Ok(triple) if triple.is_cpu() && written.contains('-') => target(written, ""),
            _ => {
                let known = [
                    "x86_64-pc-linux-gnu",
                    "x86_64-unknown-linux-gnu",
                    "aarch64-unknown-linux-gnu",
                ];
                let hint = nearest(written, known);
                Err(format!(
                    "`{written}` is no target: expected a processor (`gfx90a`, `sm_80`) or a host triple{hint}"
                ))
            }
        }
    }

    fn makes_same_image(&self, other: &Self) -> bool {
        self.triple == other.triple && self.id == other.id && self.is_ptx == other.is_ptx
    }

    /// Whether sources are compiled for it as for `other`.
    pub(crate) fn compiles_like(&self, other: &Self) -> bool {
        self.triple == other.triple && self.id == other.id && self.own == other.own
    }

    /// How `cfg(offload_target_…)` names it (design §9).
    pub(crate) fn cfg_name(&self) -> String {
        let text = self.written.to_lowercase().replace('+', "_on");
        let text = match text.split_once(':') {
            // Only a feature ends in a sign: in a triple the dash divides.
            Some((processor, features)) => format!("{processor}_{}", features.replace('-', "_off")),
            None => text,
        };
        let plain = |c: char| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                c
            } else {
                '_'
            }
        };
        format!(
            "offload_target_{}",
            text.chars().map(plain).collect::<String>()
        )
    }

    /// Its folder among intermediate files.
    pub(crate) fn folder(&self) -> String {
        self.written.replace(':', "-")
    }
}

fn targets(settings: &Settings, language: Language, own: &Flags) -> Result<Vec<Target>, Error> {
    let written = settings.list("targets");
    let mut targets: Vec<Target> = Vec::new();
    for text in written {
        let mut target =
            Target::parse(text).map_err(|problem| wrong(settings, "targets", problem))?;
        if !language.takes(&target) {
            let problem = format!("`{text}` is no target of `{}`", language.name());
            return Err(wrong(settings, "targets", problem));
        }
        if let Some(same) = targets.iter().find(|other| other.makes_same_image(&target)) {
            let problem = format!("`{text}` and `{}` are the same target", same.written);
            return Err(wrong(settings, "targets", problem));
        }
        target.own = own.clone();
        if let Some(over) = settings.targets.get(text) {
            for (name, value) in over.map("define") {
                match value {
                    Some(value) => target.own.define.insert(name, value),
                    None => target.own.define.remove(&name),
                };
            }
            let over = flags(over, &own.opt_level)?;
            target.own.flags.extend(over.flags);
            target.leaves_out = !over.exclude.is_empty();
            target.own.exclude.extend(over.exclude);
        }
        targets.push(target);
    }
    for name in settings.targets.keys() {
        if !written.contains(name) {
            let hint = nearest(name, written.iter().map(String::as_str));
            return Err(Error::new(format_args!(
                "[package.metadata.offload.target.{name:?}]: `{name}` is not one of `targets`{hint}"
            )));
        }
    }
    Ok(targets)
}

fn archives(settings: &Settings, root: &Path) -> Result<Vec<PathBuf>, Error> {
    let paths = settings.list("archives").iter().map(|text| {
        let path = root.join(text);
        match path.is_file() {
            true => Ok(path),
            false => Err(wrong(
                settings,
                "archives",
                format_args!("`{text}`: no such file"),
            )),
        }
    });
    paths.collect()
}

/// Without host code there is nothing to register images with.
fn register(
    settings: &Settings,
    language: Language,
    has_host_code: bool,
) -> Result<Register, Error> {
    let register = match settings.text("register") {
        Some("complete") => Register::Complete,
        Some("deferred") => Register::Deferred,
        Some("none") => Register::None,
        _ => Register::Auto,
    };
    let name = language.name();
    let problem = match register {
        Register::Auto if !has_host_code => return Ok(Register::None),
        Register::None if has_host_code => {
            format!(
                "`{name}` calls kernels that are registered: `none` is for modules without host code"
            )
        }
        Register::Complete | Register::Deferred if !has_host_code => match language {
            Language::Hip | Language::Cuda => format!(
                "without `host = true` a module of `{name}` is device code that the program loads itself"
            ),
            _ => format!("modules of `{name}` have no host code: the program loads their images"),
        },
        _ => return Ok(register),
    };
    Err(wrong(settings, "register", problem))
}

/// Of what is compiled apart, NVIDIA's tools make no image together, and a fat binary's loader takes one for each target.
fn rdc(settings: &Settings, language: Language, sources: usize) -> Result<bool, Error> {
    let Some(rdc) = settings.flag("rdc") else {
        return Ok(true);
    };
    let name = language.name();
    let problem = match language {
        Language::Hip => return Ok(rdc),
        Language::Cuda if rdc || sources == 1 => return Ok(rdc),
        Language::Cuda => format!(
            "without `rdc` an image of `{name}` is made from one source, and there are {sources}\n\
             hint: a module for each, or `static` for the functions that are a file's own"
        ),
        _ => format!("`rdc` is for modules of `hip` and `cuda`, not of `{name}`"),
    };
    Err(wrong(settings, "rdc", problem))
}

/// What a compiler has no way for, or its images none.
fn compiler(settings: &Settings, language: Language) -> Result<(), Error> {
    let family = Family::of(Path::new(settings.text("compiler").unwrap_or_default()));
    let own = match family {
        Family::Clang => return Ok(()),
        _ if language == Language::Prebuilt => return Ok(()),
        Family::Hipcc => Language::Hip,
        Family::Nvcc => Language::Cuda,
    };
    if language != own {
        let (compiler, own, name) = (family.name(), own.name(), language.name());
        let problem = format!(
            "`{compiler}` compiles `{own}`, not `{name}`\n\
             hint: without `compiler` a clang is found that does; a module may have a compiler of its own"
        );
        return Err(wrong(settings, "compiler", problem));
    }
    if family != Family::Nvcc {
        return Ok(());
    }
    if settings.text("register") == Some("deferred") {
        let problem = "what `nvcc` links is registered: take clang, without `compiler`";
        return Err(wrong(settings, "register", problem));
    }
    if !settings.list("artifact").is_empty() {
        let problem =
            "archives are made of bitcode, and `nvcc` makes none: take clang, without `compiler`";
        return Err(wrong(settings, "artifact", problem));
    }
    let without_rdc = settings.flag("rdc") == Some(false);
    for key in ["archives", "link"] {
        if without_rdc && !settings.list(key).is_empty() {
            let problem = format!(
                "without `rdc` nothing is linked with what `nvcc` makes, and `{key}` names libraries"
            );
            return Err(wrong(settings, "rdc", problem));
        }
    }
    Ok(())
}

/// Whether there is host code: always with OpenMP, never in what is no source, else as `host` says.
fn host(settings: &Settings, language: Language, rdc: bool) -> Result<bool, Error> {
    let Some(host) = settings.flag("host") else {
        return Ok(language == Language::OpenMp);
    };
    let name = language.name();
    let problem = match language {
        Language::Hip | Language::Cuda if rdc || !host => return Ok(host),
        Language::Hip | Language::Cuda => {
            "host code knows the kernels of sources that are linked with each other: not with `rdc = false`".to_owned()
        }
        Language::OpenMp => format!("`host` is for `hip` and `cuda`: `{name}` has host code anyway"),
        Language::Bitcode | Language::Prebuilt => {
            format!("`host` is for `hip` and `cuda`: modules of `{name}` have no host code")
        }
    };
    Err(wrong(settings, "host", problem))
}

fn container(
    settings: &Settings,
    language: Language,
    has_host_code: bool,
    targets: &[Target],
) -> Result<Container, Error> {
    let known = match (Container::of(language, targets), has_host_code) {
        // What is registered is what the runtime loads.
        ([usual, ..], true) => std::slice::from_ref(usual),
        (all, _) => all,
    };
    let named = settings.text("container");
    let is_named = |container: &&Container| named.is_none_or(|name| name == container.name());
    known
        .iter()
        .copied()
        .find(|container| is_named(&container))
        .ok_or_else(|| {
            let names: Vec<String> = known
                .iter()
                .map(|one| format!("`{}`", one.name()))
                .collect();
            let (name, language) = (named.unwrap_or_default(), language.name());
            let host = if has_host_code { " with host code" } else { "" };
            let problem = format!(
                "`{name}` is no container of `{language}`{host} ({} {})",
                names.join(", "),
                if names.len() == 1 { "is" } else { "are" }
            );
            wrong(settings, "container", problem)
        })
}

fn compress(
    settings: &Settings,
    container: Container,
) -> Result<Option<(Method, Option<i32>)>, Error> {
    let text = settings.text("compress").unwrap_or("none");
    let (method, level) = match text.split_once(':') {
        Some((method, level)) => (method, Some(level)),
        None => (text, None),
    };
    let level = level.map(str::parse).transpose();
    let how = match (method, level) {
        ("none", Ok(None)) => return Ok(None),
        ("zstd", Ok(level)) => (Method::Zstd, level),
        ("zlib", Ok(level)) => (Method::Zlib, level),
        _ => {
            let problem = format!(
                "`{text}` is not one of `none`, `zlib`, `zstd`, or such a method with a level: `zstd:19`"
            );
            return Err(wrong(settings, "compress", problem));
        }
    };
    match container {
        Container::Bundle => Ok(Some(how)),
        other => {
            let problem = format!(
                "only a `bundle` is compressed, and `container` is `{}`",
                other.name()
            );
            Err(wrong(settings, "compress", problem))
        }
    }
}

fn artifacts(settings: &Settings, language: Language) -> Result<Vec<String>, Error> {
    let kinds = artifacts::KINDS;
    let listed = settings.list("artifact");
    if language != Language::OpenMp && listed.iter().any(|kind| kind == artifacts::HDA) {
        let name = language.name();
        let problem = format!("`hda` is for modules of `openmp` yet, not of `{name}`");
        return Err(wrong(settings, "artifact", problem));
    }
    match listed.iter().find(|text| !kinds.contains(&text.as_str())) {
        None => Ok(listed.to_vec()),
        Some(text) => {
            let known = kinds.join("`, `");
            let hint = nearest(text, kinds);
            let problem = format!("`{text}` is not one of `{known}`{hint}");
            Err(wrong(settings, "artifact", problem))
        }
    }
}

fn flags(settings: &Settings, opt_level: &str) -> Result<Flags, Error> {
    let pattern = |text: &String| {
        glob::Pattern::new(text.trim_start_matches("./"))
            .map_err(|error| wrong(settings, "exclude", format_args!("`{text}`: {error}")))
    };
    Ok(Flags {
        opt_level: settings.text("opt-level").unwrap_or(opt_level).to_owned(),
        define: settings
            .map("define")
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect(),
        flags: settings.list("flags").to_vec(),
        exclude: settings
            .list("exclude")
            .iter()
            .map(pattern)
            .collect::<Result<_, _>>()?,
    })
}

fn sources(
    settings: &Settings,
    language: Language,
    root: &Path,
    out: &Path,
    own: &Flags,
    watched: &mut Vec<PathBuf>,
) -> Result<(Vec<PathBuf>, Vec<String>), Error> {
    let mut found = Vec::new();
    for text in settings.list("sources") {
        let problem =
            |problem: String| wrong(settings, "sources", format_args!("`{text}`: {problem}"));
        let pattern = match Path::new(text).is_absolute() {
            true => text.clone(),
            false => format!("{}/{text}", glob::Pattern::escape(&root.to_string_lossy())),
        };
        let star = text.find(['*', '?', '[']);
        let matches = glob::glob(&pattern).map_err(|error| problem(error.to_string()))?;
        let before = found.len();
        for path in matches {
            let path = path.map_err(|error| problem(error.to_string()))?;
            // What a pattern finds there was made by some build script.
            let made = star.is_some()
                && target_folder(root, out).is_some_and(|made| path.starts_with(made));
            if path.is_file() && !made {
                found.push(path);
            }
        }
        if found.len() == before {
            return Err(problem("no such file".to_owned()));
        }
        if let Some(star) = star {
            let (fixed, rest) = text.split_at(star);
            let folder = root.join(fixed.rsplit_once('/').map_or("", |(folder, _)| folder));
            watched.extend(watch(&folder, out, rest.contains('/')));
        }
    }
    let warnings = unmatched(settings, &own.exclude, root, &found);
    found.retain(|path| !excluded(&own.exclude, root, path));
    found.sort();
    found.dedup();
    if !own.flags.iter().any(|flag| flag.starts_with("-x")) {
        let known = language.extensions();
        let is_unknown = |path: &&PathBuf| {
            let extension = path.extension().unwrap_or_default();
            let mut known = known.iter().flatten().peekable();
            known.peek().is_some() && !known.any(|known| extension == *known)
        };
        if let Some(path) = found.iter().find(is_unknown) {
            let shown = path.strip_prefix(root).unwrap_or(path).display();
            let (name, known) = (language.name(), known.unwrap_or_default().join("`, `."));
            let problem = format!("`{shown}` is no source of `{name}` (`.{known}` are)");
            return Err(wrong(settings, "sources", problem));
        }
    }
    Ok((found, warnings))
}

/// What is said of patterns of `exclude`, written for this module, that leave no source out.
fn unmatched(
    settings: &Settings,
    exclude: &[glob::Pattern],
    root: &Path,
    sources: &[PathBuf],
) -> Vec<String> {
    let entry = settings.entry("exclude");
    let Some(entry) = entry.filter(|entry| entry.reach == Reach::Module) else {
        return Vec::new();
    };
    let own = settings.list("exclude");
    let is_own = |pattern: &&glob::Pattern| {
        own.iter()
            .any(|text| text.trim_start_matches("./") == pattern.as_str())
    };
    let is_unmatched = |pattern: &&glob::Pattern| {
        let pattern = std::slice::from_ref(*pattern);
        !sources.iter().any(|path| excluded(pattern, root, path))
    };
    let patterns = exclude.iter().filter(is_own).filter(is_unmatched);
    patterns
        .map(|pattern| {
            format!(
                "{}: `exclude`: `{pattern}` leaves out no source",
                entry.origin
            )
        })
        .collect()
}

/// The folder of the package, if any, in which Cargo builds.
fn target_folder(root: &Path, out: &Path) -> Option<PathBuf> {
    let below = out.strip_prefix(root).ok()?;
    Some(root.join(below.components().next()?))
}

/// What is watched for new files in `folder`, and in the folders below it when `deep`.
///
/// Cargo watches a folder with everything in it: one in which it builds itself would change with every build.
fn watch(folder: &Path, out: &Path, deep: bool) -> Vec<PathBuf> {
    if !out.starts_with(folder) {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let beside = entries.map(|entry| entry.path()).filter(|path| {
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        deep && path.is_dir() && !hidden && !out.starts_with(path)
    });
    let mut beside: Vec<PathBuf> = beside.collect();
    beside.sort();
    beside
}

/// Whether `path` is one of those that `exclude` names, relative to the package.
pub(crate) fn excluded(exclude: &[glob::Pattern], root: &Path, path: &Path) -> bool {
    let relative = path.strip_prefix(root).unwrap_or(path);
    exclude.iter().any(|pattern| pattern.matches_path(relative))
}

pub(crate) fn wrong(
    settings: &Settings,
    key: &'static str,
    problem: impl std::fmt::Display,
) -> Error {
    Error::new(format_args!("{}: {problem}", settings.origin(key)))
}

fn is_identifier(name: &str) -> bool {
    let letter = |char: char| char.is_ascii_alphabetic() || char == '_';
    name.starts_with(letter)
        && name
            .chars()
            .all(|char| letter(char) || char.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_processors_and_host_triples_as_targets() {
        let row = |written: &str| {
            let target = Target::parse(written).unwrap();
            (
                target.triple.to_string(),
                target.id.to_string(),
                target.cfg_name(),
            )
        };
        let expect =
            |triple: &str, id: &str, cfg: &str| (triple.to_owned(), id.to_owned(), cfg.to_owned());
        assert_eq!(
            row("sm_80"),
            expect("nvptx64-nvidia-cuda", "sm_80", "offload_target_sm_80")
        );
        assert_eq!(
            row("compute_90a"),
            expect(
                "nvptx64-nvidia-cuda",
                "sm_90a",
                "offload_target_compute_90a"
            )
        );
        assert_eq!(
            row("gfx90a:xnack-"),
            expect(
                "amdgcn-amd-amdhsa",
                "gfx90a:xnack-",
                "offload_target_gfx90a_xnack_off"
            )
        );
        assert_eq!(
            row("gfx90a:sramecc+:xnack-"),
            expect(
                "amdgcn-amd-amdhsa",
                "gfx90a:sramecc+:xnack-",
                "offload_target_gfx90a_sramecc_on_xnack_off"
            )
        );
        assert_eq!(
            row("x86_64-pc-linux-gnu"),
            expect(
                "x86_64-pc-linux-gnu",
                "",
                "offload_target_x86_64_pc_linux_gnu"
            )
        );
    }

    #[test]
    fn rejects_what_is_no_target() {
        let expected = "expected a processor (`gfx90a`, `sm_80`) or a host triple";
        let error = |written: &str| Target::parse(written).unwrap_err();
        for written in ["gpu", "compute_", "compute_x", "compute_80:xnack+"] {
            assert_eq!(
                error(written),
                format!("`{written}` is no target: {expected}")
            );
        }
        assert_eq!(
            error("x86-64-pc-linux-gnu"),
            format!(
                "`x86-64-pc-linux-gnu` is no target: {expected}; did you mean `x86_64-pc-linux-gnu`?"
            )
        );
    }
}
