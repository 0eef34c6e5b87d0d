//! Chooses the images to keep.

use crate::format::compressed_bundle::Compression;
use crate::format::fatbin::{FatbinCompressor, FatbinEntry, FatbinKind};
use crate::names::{EntryId, EntryKind, Processor, TargetId};

/// Images to keep. Hosts' entries, and entries whose IDs are unknown, are always kept.
///
/// | name | stands for |
/// |---|---|
/// | `gfx90a`, `sm_80` | the processor, with all settings of its features |
/// | `gfx90a:xnack+` | to keep: images that a GPU with this setting can use; to drop: images with this setting |
/// | `gfx9`, `gfx11` | all processors of that major version, and their generic processors |
/// | `gfx9-generic` | the generic processor |
/// | `gfx10*`, `sm_9*` | names that start so |
/// | `x86_64-pc-linux-gnu` | images of offload binaries without a processor, such as OpenMP's for CPUs; only to drop them |
///
/// To keep a processor keeps what can run on it, too: its generic processor, SPIR-V, and of NVIDIA's cubins those that use
/// features of the processor or its family (`sm_90a` on a GPU of `sm_90`, `sm_100f` on one of `sm_103`), and, in each fat
/// binary, the newest other one of the same major version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PruneChoice {
    names: Vec<String>,
    mode: ChoiceMode,
    ptx: PtxChoice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChoiceMode {
    Keep,
    Drop,
    Recompress(Recompression),
}

/// New compression of bundles and fat binaries, whose images all stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recompression {
    /// Compress what is plain, unless it would grow.
    Compress {
        /// Compression of bundles, also of compressed ones of another version or method; nothing if they stay as they are.
        bundles: Option<Compression>,
        /// Compression of images in CUDA's fat binaries; nothing if they stay as they are.
        fatbins: Option<FatbinRecompression>,
    },
    /// Decompress compressed bundles, and images in CUDA's fat binaries that are compressed by themselves. A linked file
    /// has no room for that.
    Decompress,
}

/// New compression of images in CUDA's fat binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatbinRecompression {
    /// The compression.
    pub compressor: FatbinCompressor,
    /// True if images that are compressed otherwise are compressed again.
    pub replaces: bool,
}

impl FatbinRecompression {
    /// Tells whether somebody asks for a level.
    pub(super) fn has_level(self) -> bool {
        matches!(self.compressor, FatbinCompressor::Zstd { level: Some(_) })
    }
}

/// PTX in CUDA fat binaries, which drivers compile for GPUs without an image of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PtxChoice {
    /// Keep all PTX.
    #[default]
    Keep,
    /// Drop PTX, except where a kept processor has no cubin.
    Drop,
}

impl PruneChoice {
    /// Keeps the images for these names.
    #[must_use]
    pub fn keep(names: Vec<String>, ptx: PtxChoice) -> Self {
        let mode = ChoiceMode::Keep;
        Self { names, mode, ptx }
    }

    /// Keeps all images but those for these names.
    #[must_use]
    pub fn drop(names: Vec<String>, ptx: PtxChoice) -> Self {
        let mode = ChoiceMode::Drop;
        Self { names, mode, ptx }
    }

    /// Keeps all images and changes their compression.
    #[must_use]
    pub fn recompress(how: Recompression) -> Self {
        Self {
            names: Vec::new(),
            mode: ChoiceMode::Recompress(how),
            ptx: PtxChoice::Keep,
        }
    }

    /// Returns the new compression.
    pub(super) fn recompression(&self) -> Option<Recompression> {
        match self.mode {
            ChoiceMode::Recompress(how) => Some(how),
            _ => None,
        }
    }

    /// Tells whether a bundle's entry is kept.
    pub(super) fn keeps_entry(&self, id: &str) -> bool {
        let Ok(id) = EntryId::parse(id) else {
            return true;
        };
        if id.kind() == EntryKind::Host {
            return true;
        }
        let target_id = id.target_id();
        let is_named = self.names.iter().any(|name| is_named(target_id, name));
        match self.mode {
            ChoiceMode::Recompress(_) => true,
            ChoiceMode::Drop => !is_named,
            ChoiceMode::Keep => {
                is_named
                    || target_id.is_empty()
                    || !id.triple().is_amdgpu()
                    || self.names.iter().any(|name| runs_on(target_id, name))
            }
        }
    }

    /// Tells whether an image of an offload binary without a processor is kept.
    pub(super) fn keeps_triple(&self, triple: &str) -> bool {
        let is_named = |name: &String| match name.strip_suffix('*') {
            Some(start) => triple.starts_with(start),
            None => triple == name,
        };
        self.mode != ChoiceMode::Drop || !self.names.iter().any(is_named)
    }

    /// Tells whether an image of an offload binary is kept. `processors` are those of all images that belong together.
    pub(super) fn keeps_binary_entry(&self, arch: &str, is_ptx: bool, processors: &[&str]) -> bool {
        let is_named = self.names.iter().any(|name| is_named(arch, name));
        match self.mode {
            ChoiceMode::Keep if is_ptx && self.ptx == PtxChoice::Drop => {
                // `processors` do not tell which images are PTX.
                let others = processors.iter().copied().filter(|other| *other != arch);
                let (cubins, ptx) = (others.collect::<Vec<_>>(), [arch]);
                self.needs_ptx(
                    arch,
                    &NvidiaImages {
                        cubins: &cubins,
                        ptx: &ptx,
                    },
                )
            }
            ChoiceMode::Drop if is_ptx && self.ptx == PtxChoice::Drop => false,
            ChoiceMode::Recompress(_) => true,
            ChoiceMode::Drop => !is_named,
            ChoiceMode::Keep => {
                let is_usable =
                    |wanted: &String| runs_on(arch, wanted) || may_run(arch, wanted, processors);
                let is_spirv = arch == "amdgcnspirv";
                is_named || is_ptx || is_spirv || self.names.iter().any(is_usable)
            }
        }
    }

    /// Tells whether a kept processor has no cubin among `all`, and the driver would compile the PTX for `processor` for it.
    fn needs_ptx(&self, processor: &str, all: &NvidiaImages<'_>) -> bool {
        let has_cubin = |wanted: &String| {
            let mut cubins = all.cubins.iter();
            cubins.any(|cubin| is_named(cubin, wanted) || may_run(cubin, wanted, all.cubins))
        };
        let mut names = self.names.iter();
        names.any(|wanted| !has_cubin(wanted) && is_compiled_for(processor, wanted, all.ptx))
    }

    /// Tells for each image of a fat binary whether it is kept.
    pub(super) fn keeps_fatbin(&self, entries: &[FatbinEntry]) -> Vec<bool> {
        let cubins = entries
            .iter()
            .filter(|entry| entry.kind == FatbinKind::Cubin);
        let cubins: Vec<&str> = cubins.map(|entry| entry.processor.as_str()).collect();
        let ptx = entries.iter().filter(|entry| entry.kind == FatbinKind::Ptx);
        let ptx: Vec<&str> = ptx.map(|entry| entry.processor.as_str()).collect();
        let all = NvidiaImages {
            cubins: &cubins,
            ptx: &ptx,
        };
        let kept = entries.iter().map(|entry| match (entry.kind, self.mode) {
            (_, ChoiceMode::Recompress(_)) => true,
            (FatbinKind::Ptx, ChoiceMode::Keep) => {
                self.ptx == PtxChoice::Keep || self.needs_ptx(&entry.processor, &all)
            }
            (FatbinKind::Ptx, ChoiceMode::Drop) if self.ptx == PtxChoice::Drop => false,
            (FatbinKind::Ptx, ChoiceMode::Drop) => {
                let name = entry.processor.replacen("sm_", "compute_", 1);
                !self.names.iter().any(|wanted| is_named(&name, wanted))
            }
            (FatbinKind::Cubin, ChoiceMode::Drop) => {
                let name = &entry.processor;
                !self.names.iter().any(|wanted| is_named(name, wanted))
            }
            (FatbinKind::Cubin, ChoiceMode::Keep) => {
                let mut names = self.names.iter();
                names.any(|wanted| {
                    is_named(&entry.processor, wanted) || may_run(&entry.processor, wanted, &cubins)
                })
            }
            (_, ChoiceMode::Keep | ChoiceMode::Drop) => true,
        });
        kept.collect()
    }
}

/// Processors of the images in a fat binary: those of cubins, and those that PTX was made for.
struct NvidiaImages<'a> {
    cubins: &'a [&'a str],
    ptx: &'a [&'a str],
}

/// Tells whether a name stands for a target ID or processor.
fn is_named(target_id: &str, name: &str) -> bool {
    if let Some(start) = name.strip_suffix('*') {
        return target_id.starts_with(start);
    }
    let id = TargetId::parse(target_id);
    let processor = id.as_ref().map_or(target_id, |id| id.processor());
    if processor == name || major(processor).is_some_and(|major| name == format!("gfx{major}")) {
        return true;
    }
    let (Ok(id), Ok(wanted)) = (&id, TargetId::parse(name)) else {
        return target_id == name;
    };
    // An image without a setting is for either, and is needed for the other one.
    let has = |(feature, on)| id.feature(feature) == Some(on);
    id.processor() == wanted.processor()
        && wanted.features().next().is_some()
        && wanted.features().all(has)
}

/// Returns the major version in the name of one of AMD's processors: its digits without the last two, or those before
/// `-generic`.
fn major(processor: &str) -> Option<&str> {
    let number = processor.strip_prefix("gfx")?;
    match number.split_once('-') {
        Some((major, _)) => Some(major),
        None => number.get(..number.len().checked_sub(2)?),
    }
}

/// Tells whether a GPU of AMD for which a name stands runs images for a target ID: those for its processor or generic
/// processor, unless they have another setting of a feature.
fn runs_on(target_id: &str, name: &str) -> bool {
    let Ok(id) = TargetId::parse(target_id) else {
        return false;
    };
    let is_family = |processor: &Processor| processor.family() == Some(id.processor());
    if let Some(start) = name.strip_suffix('*') {
        let mut processors = Processor::all();
        return processors
            .any(|processor| processor.name().starts_with(start) && is_family(processor));
    }
    let Ok(wanted) = TargetId::parse(name) else {
        return false;
    };
    let is_open = |(feature, on): (&str, bool)| id.feature(feature) != Some(!on);
    let is_generic = || Processor::find(wanted.processor()).is_some_and(is_family);
    wanted.features().all(is_open) && (id.processor() == wanted.processor() || is_generic())
}

/// Tells whether the driver may choose a cubin for a GPU of the processor `wanted`: the newest of the same major and no
/// later minor version, and those for features of the GPU. With a letter, `wanted` is the same GPU.
fn may_run(processor: &str, wanted: &str, cubins: &[&str]) -> bool {
    let Some((gpu, _)) = cubin_number(wanted) else {
        return false;
    };
    let runs = |other: u32| other / 10 == gpu / 10 && other <= gpu;
    match cubin_number(processor) {
        Some((number, "a")) => number == gpu,
        Some((number, "f")) => runs(number),
        Some((number, "")) => {
            let others = cubins.iter().filter_map(|other| cubin_number(other));
            let plain = others.filter(|(other, letter)| letter.is_empty() && runs(*other));
            plain.map(|(other, _)| other).max() == Some(number)
        }
        _ => false,
    }
}

/// Tells whether the driver compiles the PTX for `processor` for a GPU of `wanted`: the newest that is no newer than the GPU, and
/// of PTX with a letter what is for the GPU or its family. For a pattern (`sm_9*`) that may be any PTX.
fn is_compiled_for(processor: &str, wanted: &str, ptx: &[&str]) -> bool {
    let Some((gpu, _)) = cubin_number(wanted) else {
        return wanted.starts_with("sm_");
    };
    match cubin_number(processor) {
        Some((number, "a")) => number == gpu,
        Some((number, "f")) => number / 10 == gpu / 10 && number <= gpu,
        Some((number, _)) => {
            let others = ptx.iter().filter_map(|other| cubin_number(other));
            let plain = others.filter(|(other, letter)| letter.is_empty() && *other <= gpu);
            plain.map(|(other, _)| other).max() == Some(number)
        }
        None => false,
    }
}

/// Returns the number and the letter of one of NVIDIA's processors: 90 and `a` of `sm_90a`.
fn cubin_number(processor: &str) -> Option<(u32, &str)> {
    let name = processor.strip_prefix("sm_")?;
    let number = name.trim_end_matches(|char: char| char.is_ascii_lowercase());
    let letter = name.get(number.len()..)?;
    Some((number.parse().ok()?, letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_processors_families_and_features() {
        for (target_id, name, expected) in [
            ("gfx90a:xnack+", "gfx90a", true),
            ("gfx90a", "gfx90a:xnack+", false),
            ("gfx90a:xnack-", "gfx90a:xnack+", false),
            ("gfx90a:xnack+", "gfx90a:xnack+", true),
            ("gfx90a:sramecc+:xnack+", "gfx90a:xnack+", true),
            ("gfx90a:xnack+", "gfx90a:sramecc+:xnack+", false),
            ("gfx908", "gfx9", true),
            ("gfx90a", "gfx9", true),
            ("gfx1030", "gfx9", false),
            ("gfx1030", "gfx10", true),
            ("gfx1030", "gfx1", false),
            ("gfx9-4-generic", "gfx9", true),
            ("gfx942", "gfx9-4-generic", false),
            ("gfx942", "gfx94*", true),
            ("gfx950", "gfx94*", false),
            ("sm_80", "sm_8*", true),
            ("sm_80", "sm_8", false),
        ] {
            assert_eq!(is_named(target_id, name), expected, "{target_id} {name}");
        }
    }

    #[test]
    fn keeps_the_cubins_that_a_gpu_may_run() {
        let all = [
            "sm_75", "sm_80", "sm_86", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_120f",
        ];
        for (gpu, expected) in [
            ("sm_75", &["sm_75"][..]),
            ("sm_80", &["sm_80"]),
            // No cubin of its own.
            ("sm_89", &["sm_86"]),
            ("sm_90", &["sm_90", "sm_90a"]),
            ("sm_90a", &["sm_90", "sm_90a"]),
            ("sm_100", &["sm_100", "sm_100a", "sm_100f"]),
            ("sm_103", &["sm_100", "sm_100f"]),
            ("sm_121", &["sm_120f"]),
            ("sm_70", &[]),
            ("gfx90a", &[]),
        ] {
            let kept = all.iter().filter(|cubin| may_run(cubin, gpu, &all));
            let kept: Vec<&str> = kept.copied().collect();
            assert_eq!(kept, expected, "{gpu}");
        }
    }

    #[test]
    fn keeps_ptx_that_is_all_a_gpu_has() {
        let all = NvidiaImages {
            cubins: &["sm_80", "sm_90a"],
            ptx: &["sm_70", "sm_80", "sm_100a", "sm_100f", "sm_120"],
        };
        for (gpu, expected) in [
            ("sm_80", &[][..]),
            // The cubin of sm_80 runs.
            ("sm_86", &[]),
            ("sm_90", &[]),
            ("sm_75", &["sm_70"]),
            ("sm_100", &["sm_80", "sm_100a", "sm_100f"]),
            ("sm_103", &["sm_80", "sm_100f"]),
            ("sm_121", &["sm_120"]),
            ("sm_60", &[]),
            ("sm_8*", &[]),
            ("sm_10*", all.ptx),
            ("gfx90a", &[]),
        ] {
            let choice = PruneChoice::keep(vec![gpu.to_owned()], PtxChoice::Drop);
            let kept = all.ptx.iter().filter(|ptx| choice.needs_ptx(ptx, &all));
            assert_eq!(kept.copied().collect::<Vec<_>>(), expected, "{gpu}");
        }
    }

    #[test]
    fn keeps_what_a_kept_processor_can_run() {
        let keep = |name: &str| PruneChoice::keep(vec![name.to_owned()], PtxChoice::Keep);
        for (id, name, expected) in [
            ("host-x86_64-unknown-linux-gnu-", "gfx942", true),
            ("hipv4-amdgcn-amd-amdhsa--gfx942", "gfx942", true),
            ("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic", "gfx942", true),
            ("hipv4-amdgcn-amd-amdhsa--gfx9-generic", "gfx942", false),
            ("hipv4-amdgcn-amd-amdhsa--gfx11-generic", "gfx1100", true),
            ("hipv4-spirv64-amd-amdhsa--amdgcnspirv", "gfx1100", true),
            ("hipv4-amdgcn-amd-amdhsa--gfx1030", "gfx1100", false),
            ("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic", "gfx94*", true),
            ("hipv4-amdgcn-amd-amdhsa--gfx11-generic", "gfx110*", true),
            ("hipv4-amdgcn-amd-amdhsa--gfx11-generic", "gfx10*", false),
            // What is not set may be on or off.
            ("hipv4-amdgcn-amd-amdhsa--gfx90a", "gfx90a:xnack+", true),
            (
                "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack+",
                "gfx90a:xnack+",
                true,
            ),
            (
                "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+",
                "gfx90a:sramecc-:xnack+",
                true,
            ),
            (
                "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
                "gfx90a:xnack+",
                false,
            ),
            (
                "hipv4-amdgcn-amd-amdhsa--gfx9-4-generic:xnack-",
                "gfx942:xnack+",
                false,
            ),
        ] {
            assert_eq!(keep(name).keeps_entry(id), expected, "{id} {name}");
        }
        for arch in ["gfx1100", "gfx11-generic", "amdgcnspirv"] {
            assert!(
                keep("gfx1100").keeps_binary_entry(arch, false, &[]),
                "{arch}"
            );
        }
        let drop = |name: &str| PruneChoice::drop(vec![name.to_owned()], PtxChoice::Keep);
        // GPUs with xnack off need it.
        assert!(drop("gfx90a:xnack+").keeps_entry("hip-amdgcn-amd-amdhsa--gfx90a"));
        let drop = drop("gfx1030");
        assert!(!drop.keeps_entry("hip-amdgcn-amd-amdhsa--gfx1030"));
        assert!(drop.keeps_entry("hip-amdgcn-amd-amdhsa--gfx1031"));
    }
}
