//! Keys whose values depend on each other: what a language, its compiler and its containers support.

use crate::declare::family::Family;
use crate::declare::language::{ArtifactKind, Container, ImageSources, Language};
use crate::declare::module::refused_flags;
use crate::declare::module::target::Target;
use crate::declare::settings::{Reach, Settings, nearest};
use crate::error::Error;
use offload_formats_core::names::Triple;
use std::path::Path;

/// Policy for targets whose tools are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nothing is built.
    Error,
    /// They are left out; nothing is built when none is left.
    Skip,
    /// They are left out, and when none is left a crate without images is built.
    Stub,
}

/// The one that registers the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// `Deferred` under our linker, else `Complete`.
    Auto,
    /// The module's own object.
    Complete,
    /// The object that `offload-link` adds to the last link.
    Deferred,
    /// Nobody registers them: the program loads them.
    None,
}

/// Tells whether a key stands in the workspace or in a variable, which may be for other modules: where it has no effect, it is
/// none of this module's.
pub(super) fn is_of_others(settings: &Settings, key: &'static str) -> bool {
    let entry = settings.entry(key);
    entry.is_some_and(|entry| entry.reach == Reach::World)
}

/// How Rust gets the images of a module without host code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embed {
    /// `Link` where objects can be written and the crate does not forbid unsafe code, else `Include`.
    Auto,
    /// From an object in a static library.
    Link,
    /// By `include_bytes!`.
    Include,
}

/// Reads the key `embed`. Images of a module with host code are always linked.
pub(super) fn embed(settings: &Settings, has_host_code: bool) -> Result<Embed, Error> {
    let embed = match settings.text("embed") {
        Some("link") => Embed::Link,
        Some("include") => Embed::Include,
        _ => Embed::Auto,
    };
    if has_host_code && embed == Embed::Include {
        if is_of_others(settings, "embed") {
            return Ok(Embed::Auto);
        }
        let problem = "`embed = \"include\"` is for modules without host code";
        return Err(settings.error_at("embed", problem));
    }
    Ok(embed)
}

/// The form of CUDA's runtime library that programs with host code link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cudart {
    /// The shared library, which programs need when they start.
    Shared,
    /// The static library, which becomes part of the program.
    Static,
    /// None: something else links one.
    None,
}

/// Reads the key `cudart`. Without host code nothing calls the runtime library.
pub(super) fn cudart(settings: &Settings, has_host_code: bool) -> Result<Cudart, Error> {
    let cudart = match settings.text("cudart") {
        Some("static") => Cudart::Static,
        Some("none") => Cudart::None,
        _ => Cudart::Shared,
    };
    let entry = settings.entry("cudart").filter(|_| !has_host_code);
    match entry.is_some_and(|entry| entry.reach == Reach::Module) {
        true => {
            let problem = "`cudart` needs `host = true`";
            Err(settings.error_at("cudart", problem))
        }
        false => Ok(cudart),
    }
}

/// Returns what becomes of targets whose tools are missing.
pub(super) fn missing(settings: &Settings) -> Missing {
    match settings.text("missing") {
        Some("skip") => Missing::Skip,
        Some("stub") => Missing::Stub,
        _ => Missing::Error,
    }
}

/// Reads the key `register`. Without host code there is nothing to register images with.
pub(super) fn register(
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
        Register::Complete | Register::Deferred
            if !has_host_code && is_of_others(settings, "register") =>
        {
            return Ok(Register::None);
        }
        Register::None if has_host_code && is_of_others(settings, "register") => {
            return Ok(Register::Auto);
        }
        Register::None if has_host_code => {
            format!(
                "`{name}` launches registered kernels: `none` is only for modules without host code"
            )
        }
        Register::Complete | Register::Deferred if !has_host_code => match language {
            Language::Hip | Language::Cuda => {
                let value = settings.text("register").unwrap_or_default();
                format!("`register = \"{value}\"` needs `host = true`")
            }
            _ => format!("modules of `{name}` have no host code: the program loads their images"),
        },
        _ => return Ok(register),
    };
    Err(settings.error_at("register", problem))
}

/// Checks that the last link joins sources that may call each other.
pub(super) fn deferred(settings: &Settings, register: Register, rdc: bool) -> Result<(), Error> {
    if rdc || register != Register::Deferred {
        return Ok(());
    }
    let problem =
        "a `deferred` module calls device functions of other crates: not with `rdc = false`";
    Err(settings.error_at("register", problem))
}

/// Reads the keys `images` and `rdc`: the sources of an image, and whether sources call device functions of each other.
///
/// With host code they do not by default, as with `hipcc` and `nvcc`; without, a program loads one image of all sources, which
/// may call each other. NVIDIA's tools link only relocatable code, so several sources of `cuda` become one image only with
/// `rdc = true`.
pub(super) fn images(
    settings: &Settings,
    language: Language,
    has_host_code: bool,
    sources: usize,
) -> Result<(ImageSources, bool), Error> {
    let (rdc, images) = (
        settings.flag("rdc"),
        settings.text("images").and_then(ImageSources::named),
    );
    let rdc = rdc.filter(|_| matches!(language, Language::Hip | Language::Cuda));
    if matches!(
        language,
        Language::OpenMp | Language::Rust | Language::Prebuilt
    ) {
        return Ok((ImageSources::OfModule, true));
    }
    if images == Some(ImageSources::OfSource) {
        if rdc == Some(true) {
            let problem = "with `images = \"source\"` no source calls device functions of another";
            return Err(settings.error_at("rdc", problem));
        }
        return Ok((ImageSources::OfSource, false));
    }
    let is_one_of_many = images == Some(ImageSources::OfModule) && sources > 1;
    if language == Language::Cuda && is_one_of_many && rdc == Some(false) {
        let problem = format!(
            "without `rdc` an image of `cuda` is made from one source, and there are {sources}\n\
             hint: set `rdc = true`, or `images = \"source\"`"
        );
        return Err(settings.error_at("images", problem));
    }
    let needs_rdc = needs_rdc(settings)
        || !artifacts(settings, language)?.is_empty()
        || language == Language::Cuda && is_one_of_many;
    let rdc = rdc.unwrap_or(needs_rdc || !has_host_code);
    let is_apart = language == Language::Cuda && !rdc && (has_host_code || sources > 1);
    match is_apart {
        true => Ok((ImageSources::OfSource, false)),
        false => Ok((ImageSources::OfModule, rdc)),
    }
}

/// Tells whether another key is about device functions that libraries and other crates share.
fn needs_rdc(settings: &Settings) -> bool {
    let lists = ["archives", "link"];
    settings.text("register") == Some("deferred") || lists.iter().any(|key| settings.has_list(key))
}

/// Checks that the declared compiler supports the language and the other keys, and that no option is lost.
pub(super) fn compiler(settings: &Settings, language: Language) -> Result<(), Error> {
    refused_flags::check(settings, language)?;
    let family = Family::of(Path::new(settings.text("compiler").unwrap_or_default()));
    let own = match family {
        Family::Clang => return Ok(()),
        // That of a crate of kernels is a rustc.
        _ if matches!(language, Language::Rust | Language::Prebuilt) => return Ok(()),
        Family::Hipcc => Language::Hip,
        Family::Nvcc => Language::Cuda,
    };
    if language != own {
        let (compiler, own, name) = (family.name(), own.name(), language.name());
        let problem = format!(
            "`{compiler}` compiles `{own}`, not `{name}`\n\
             hint: remove `compiler` to use a clang, or set it only in modules of its language"
        );
        return Err(settings.error_at("compiler", problem));
    }
    if family != Family::Nvcc {
        return Ok(());
    }
    if settings.text("register") == Some("deferred") {
        let problem = "`nvcc` registers what it links, so its modules cannot be `deferred`: remove `compiler` to use clang";
        return Err(settings.error_at("register", problem));
    }
    if !settings.list("artifact").is_empty() {
        let problem = "archives consist of bitcode, which `nvcc` does not produce: remove `compiler` to use clang";
        return Err(settings.error_at("artifact", problem));
    }
    let (reason, how) = match (settings.flag("rdc"), settings.text("images")) {
        (_, Some("source")) => ("images", "with `images = \"source\"`"),
        (Some(false), _) => ("rdc", "without `rdc`"),
        _ => return Ok(()),
    };
    for key in ["archives", "link"] {
        if settings.has_list(key) {
            let problem = format!("{how}, `nvcc` links no libraries, but `{key}` names some");
            return Err(settings.error_at(reason, problem));
        }
    }
    Ok(())
}

/// Tells whether there is host code: always with OpenMP, never without sources, else as `host` says.
pub(super) fn host(settings: &Settings, language: Language) -> bool {
    match language {
        Language::OpenMp => true,
        Language::Hip | Language::Cuda => settings.flag("host").unwrap_or(false),
        Language::Bitcode | Language::Rust | Language::Prebuilt => false,
    }
}

pub(super) fn container(
    settings: &Settings,
    language: Language,
    has_host_code: bool,
    targets: &[Target],
) -> Result<Container, Error> {
    let triples: Vec<&Triple> = targets.iter().map(|target| &target.triple).collect();
    let known = match (Container::of(language, &triples), has_host_code) {
        // What is registered is what the runtime loads.
        ([usual, ..], true) => std::slice::from_ref(usual),
        (all, _) => all,
    };
    let named = settings.text("container");
    // One of another language.
    let is_unfit =
        |name: &str| Container::NAMES.contains(&name) && known.iter().all(|one| one.name() != name);
    let named = named.filter(|name| !is_unfit(name) || !is_of_others(settings, "container"));
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
            let name = named.expect("without a name the first container is chosen");
            let language = language.name();
            let host = if has_host_code { " with host code" } else { "" };
            let problem = format!(
                "`{name}` is not a container of `{language}`{host} ({} {})",
                names.join(", "),
                if names.len() == 1 { "is" } else { "are" }
            );
            settings.error_at("container", problem)
        })
}

pub(super) fn artifacts(
    settings: &Settings,
    language: Language,
) -> Result<Vec<ArtifactKind>, Error> {
    let is_others = is_of_others(settings, "artifact");
    let kind = |text: &String| {
        let kind = ArtifactKind::named(text).ok_or_else(|| {
            let known = ArtifactKind::NAMES;
            let (listed, hint) = (known.join("`, `"), nearest(text, known));
            let problem = format!("`{text}` is not one of `{listed}`{hint}");
            settings.error_at("artifact", problem)
        })?;
        if kind == ArtifactKind::Hda && language != Language::OpenMp {
            if is_others {
                return Ok(None);
            }
            let name = language.name();
            let problem = format!("`hda` supports only modules of `openmp`, not of `{name}`");
            return Err(settings.error_at("artifact", problem));
        }
        Ok(Some(kind))
    };
    let kinds = settings.list("artifact").iter().map(kind);
    kinds.filter_map(Result::transpose).collect()
}
