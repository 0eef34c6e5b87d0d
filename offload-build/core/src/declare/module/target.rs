//! Targets: what the images of a module are made for.

use crate::declare::language::Language;
use crate::declare::module::flags::Flags;
use crate::declare::module::library_names::LibraryNames;
use crate::declare::module::optional_kernels::{OptionalKernel, optional_kernels};
use crate::declare::settings::{Reach, Settings, nearest};
use crate::error::Error;
use offload_formats_core::names::{Processor, TargetId, Triple, spelling};
use std::path::Path;

/// The optimization level of device code in every profile: kernels that nobody optimized say nothing about a GPU.
const OPT_LEVEL: &str = "3";

/// Hint at targets such as AMD's `amdgcnspirv`, which is for all GPUs of a vendor.
const NO_SPIRV: &str =
    "; SPIR-V is not supported: name processors, or generic ones such as `gfx11-generic`";

/// A target: what images are made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The target as the manifest spells it.
    pub written: String,
    pub triple: Triple,
    /// The target ID; empty if the triple says all.
    pub id: TargetId,
    pub own: Flags,
    /// Libraries for its device link: the module's, then its own.
    pub libraries: LibraryNames,
    /// True if it does without sources that other targets have.
    pub leaves_out: bool,
    /// Kernels that its images may lack.
    pub optional_kernels: Vec<OptionalKernel>,
    /// Its image is PTX, which the driver compiles.
    pub is_ptx: bool,
}

impl Target {
    /// `gfx90a:xnack-`, `sm_80`, `compute_80`, or the triple of a CPU device.
    pub fn parse(written: &str) -> Result<Self, String> {
        let is_target = |word| Self::parse(word).is_ok();
        if written.contains(char::is_whitespace) && written.split_whitespace().all(is_target) {
            return Err(format!(
                "`{written}` is not a valid target: a target has no blanks [OFF503]\nhint: separate targets by commas"
            ));
        }
        let target = |triple: &str, id: &str| {
            let triple = Triple::parse(triple).map_err(|error| error.to_string())?;
            let id = TargetId::parse(id).map_err(|error| error.to_string())?;
            let (written, own) = (written.to_owned(), Flags::default());
            Ok(Self {
                written,
                triple,
                id,
                own,
                libraries: LibraryNames::default(),
                leaves_out: false,
                optional_kernels: Vec::new(),
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
                let hint = match spelling::meant(written) {
                    _ if written.contains("spirv") => NO_SPIRV.to_owned(),
                    Some(meant) => format!("; did you mean `{meant}`?"),
                    None => nearest(written, known),
                };
                Err(format!(
                    "`{written}` is not a valid target: expected a processor (`gfx90a`, `sm_80`) or a host triple{hint} [OFF503]"
                ))
            }
        }
    }

    /// Returns a hint if no release of LLVM knows the processor: it may be the reason of an error.
    pub fn doubt(&self) -> Option<String> {
        let processor = self.id.processor();
        if self.triple.is_cpu() || Processor::find(processor).is_some() {
            return None;
        }
        let near = spelling::nearest_processor(processor);
        let near = near.map(|near| format!("; did you mean `{near}`?"));
        Some(format!(
            "`{processor}` is not a known processor{} [OFF504]",
            near.unwrap_or_default()
        ))
    }

    /// Tells whether there are images of `language` for it.
    pub fn is_target_of(&self, language: Language) -> bool {
        let (is_amdgpu, is_nvptx) = (self.triple.is_amdgpu(), self.triple.is_nvptx());
        match language {
            Language::OpenMp => !self.is_ptx,
            Language::Hip => is_amdgpu,
            Language::Cuda => is_nvptx,
            Language::Bitcode | Language::Rust | Language::Prebuilt => is_amdgpu || is_nvptx,
        }
    }

    fn makes_same_image(&self, other: &Self) -> bool {
        self.triple == other.triple && self.id == other.id && self.is_ptx == other.is_ptx
    }

    /// Tells whether sources are compiled for it as for `other`.
    pub fn compiles_like(&self, other: &Self) -> bool {
        self.triple == other.triple && self.id == other.id && self.own == other.own
    }

    /// Returns its name in `cfg(offload_target_…)` (`docs/generated-file.md`, "cfg").
    pub fn cfg_name(&self) -> String {
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

    /// Returns its folder among intermediate files.
    pub fn folder(&self) -> String {
        self.written.replace(':', "-")
    }
}

/// Returns the targets that a module names. A list for several packages may have targets of other languages, which are left out
/// if others are left.
fn of_language(settings: &Settings, language: Language) -> Result<Vec<Target>, Error> {
    let entry = settings.entry("targets");
    let is_for_others = entry.is_some_and(|entry| entry.reach == Reach::World);
    let (mut targets, mut others) = (Vec::new(), Vec::new());
    for text in settings.list("targets") {
        let target = Target::parse(text);
        let target = target.map_err(|problem| settings.error_at("targets", problem))?;
        match target.is_target_of(language) {
            true => targets.push(target),
            false => others.push(target),
        }
    }
    match others.first() {
        Some(other) if !is_for_others || targets.is_empty() => {
            let name = language.name();
            let (text, hint) = (&other.written, other_language(other, language));
            let problem =
                format!("`{text}` is not a valid target of `{name}` [OFF503]\nhint: {hint}");
            Err(settings.error_at("targets", problem))
        }
        _ => Ok(targets),
    }
}

/// Returns what to do about `target`, which `language` has no images for.
fn other_language(target: &Target, language: Language) -> String {
    let (amd, nvidia) = ("AMD GPUs (`gfx90a`)", "NVIDIA GPUs (`sm_80`)");
    let name = language.name();
    match language {
        Language::OpenMp => {
            let processor = target.id.processor();
            format!("`{name}` takes `{processor}`, and no PTX")
        }
        Language::Hip if target.triple.is_nvptx() => format!(
            "`{name}` is for {amd}; for NVIDIA GPUs set `language = \"cuda\"`, in a module of its own"
        ),
        Language::Cuda if target.triple.is_amdgpu() => format!(
            "`{name}` is for {nvidia}; for AMD GPUs set `language = \"hip\"`, in a module of its own"
        ),
        Language::Hip => format!("`{name}` is for {amd}"),
        Language::Cuda => format!("`{name}` is for {nvidia}"),
        Language::Bitcode | Language::Rust | Language::Prebuilt => {
            format!("`{name}` is for {amd} and {nvidia}")
        }
    }
}

/// Returns the targets of a module, with what holds for each alone.
pub(super) fn targets(
    settings: &Settings,
    language: Language,
    own: &Flags,
    root: &Path,
) -> Result<Vec<Target>, Error> {
    let written = of_language(settings, language)?;
    let libraries = LibraryNames::new(settings, root)?;
    let has_all = has_all_targets(settings, language);
    let mut targets: Vec<Target> = Vec::new();
    for mut target in written {
        let text = target.written.clone();
        let text = text.as_str();
        if let Some(same) = targets.iter().find(|other| other.makes_same_image(&target)) {
            let problem = format!("`{text}` and `{}` are the same target", same.written);
            return Err(settings.error_at("targets", problem));
        }
        target.own = own.clone();
        let level = settings.text("opt-level").unwrap_or(OPT_LEVEL);
        target.own.opt_level = level.to_owned();
        target.libraries = libraries.clone();
        let table = settings.targets.get(text);
        target.optional_kernels = optional_kernels(settings, table, has_all)?;
        if let Some(table) = table {
            for (name, value) in table.map("define").iter() {
                target.own.define.remove(name);
                if let Some(value) = value {
                    target.own.define.insert(name.to_owned(), value.clone());
                }
            }
            let over = Flags::new(table, level)?;
            target.own.flags.extend(over.flags);
            target.leaves_out = !over.exclude.is_empty();
            target.own.exclude.extend(over.exclude);
            target.libraries.extend(LibraryNames::new(table, root)?);
        }
        targets.push(target);
    }
    Ok(targets)
}

/// Returns warnings about the targets of a module, and about tables of targets.
///
/// # Errors
///
/// If there is no target for which a table could be.
pub(super) fn warnings(
    settings: &Settings,
    targets: &[Target],
    language: Language,
) -> Result<Vec<String>, Error> {
    let mut warnings = unlisted(settings, language)?;
    warnings.extend(exclusive(targets, language));
    Ok(warnings)
}

/// Returns warnings about targets of one processor of which only one sets a feature.
fn exclusive(targets: &[Target], language: Language) -> Vec<String> {
    let have_same_features = |one: &Target, other: &Target| {
        let (one, other) = (one.id.features(), other.id.features());
        one.map(|(name, _)| name).eq(other.map(|(name, _)| name))
    };
    let mut warnings = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        let mut before = targets.iter().take(index);
        let other = before.find(|other| {
            other.id.processor() == target.id.processor() && !have_same_features(other, target)
        });
        // OpenMP's runtime asks the images; HIP's takes the first of a bundle that fits.
        if let Some(other) = other.filter(|_| language != Language::OpenMp) {
            warnings.push(format!(
                "`{}` and `{}` in `targets` exclude each other: a GPU that both fit gets either. Set the same features in both \
                 (`gfx90a:xnack-` and `gfx90a:xnack+`), or leave one out",
                other.written, target.written
            ));
        }
    }
    warnings
}

/// Tells whether this build has each target of `language` that a layer lists.
fn has_all_targets(settings: &Settings, language: Language) -> bool {
    let targets = settings.list("targets");
    let is_here = |listed: &String| match Target::parse(listed) {
        Ok(target) => !target.is_target_of(language) || targets.contains(listed),
        // `native` is another GPU on each machine.
        Err(_) => listed != "native",
    };
    settings.listed.iter().all(is_here)
}

/// Returns warnings about tables of targets that no layer lists: a variable may add these targets in other builds.
///
/// # Errors
///
/// If no variable can, because there is no such GPU, or none of `language`.
fn unlisted(settings: &Settings, language: Language) -> Result<Vec<String>, Error> {
    let mut warnings = Vec::new();
    // What a layer lists, a variable or a profile may leave out of this build.
    let names = settings.targets.names();
    for name in names.filter(|name| !settings.listed.contains(*name)) {
        let place = format!("[package.metadata.offload.target.{name:?}]");
        let target = Target::parse(name).ok();
        let is_same = |listed: &&String| {
            let listed = Target::parse(listed).ok();
            let mut both = listed.iter().zip(&target);
            both.any(|(listed, target)| listed.makes_same_image(target))
        };
        if let Some(same) = settings.listed.iter().find(is_same) {
            return Err(Error::new(format_args!(
                "{place}: this target is `{same}` in `targets`: spell both alike"
            )));
        }
        if let Some(problem) = impossible(name, target.as_ref(), settings, language) {
            return Err(Error::new(format_args!("{place}: {problem}")));
        }
        // `native` is another GPU on each machine.
        if !settings.listed.contains("native") {
            warnings.push(format!(
                "{place} has no effect: `{name}` is not one of `targets`, and no variable adds it to this build"
            ));
        }
    }
    Ok(warnings)
}

/// Returns the reason if no variable can add the target `name` to a module of `language`.
fn impossible(
    name: &str,
    target: Option<&Target>,
    settings: &Settings,
    language: Language,
) -> Option<String> {
    let mut hint = nearest(name, settings.listed.iter().map(String::as_str));
    let Some(target) = target.filter(|target| !target.triple.is_cpu()) else {
        return Some(format!("`{name}` is not one of `targets`{hint}"));
    };
    if !target.is_target_of(language) {
        let hint = other_language(target, language);
        let language = language.name();
        return Some(format!(
            "`{name}` is not a valid target of `{language}` [OFF503]\nhint: {hint}"
        ));
    }
    target.doubt()?;
    let near = spelling::nearest_processor(name);
    if let Some(near) = near.filter(|_| hint.is_empty()) {
        hint = format!("; did you mean `{near}`?");
    }
    Some(format!("`{name}` is not a known processor{hint} [OFF504]"))
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
                format!("`{written}` is not a valid target: {expected} [OFF503]")
            );
        }
        for written in [
            "gfx90a gfx1100",
            "x86_64-pc-linux-gnu gfx90a",
            "sm_80\tsm_90",
        ] {
            assert_eq!(
                error(written),
                format!(
                    "`{written}` is not a valid target: a target has no blanks [OFF503]\nhint: separate targets by commas"
                )
            );
        }
        for written in ["amdgcnspirv", "spirv64-amd-amdhsa"] {
            let error = error(written);
            let hint = "; SPIR-V is not supported: name processors, or generic ones such as `gfx11-generic` [OFF503]";
            assert!(error.ends_with(&format!("{expected}{hint}")), "{error}");
        }
        assert_eq!(
            error("x86-64-pc-linux-gnu"),
            format!(
                "`x86-64-pc-linux-gnu` is not a valid target: {expected}; did you mean `x86_64-pc-linux-gnu`? [OFF503]"
            )
        );
    }
}
