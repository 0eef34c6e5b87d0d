//! Finds the processor for the name of a GPU, for hints.
//!
//! Sources: AMD, ROCm documentation, "Accelerator and GPU hardware specifications"; LLVM, "User Guide for AMDGPU
//! Backend", "Processors"; NVIDIA, "CUDA GPU Compute Capability" (developer.nvidia.com/cuda-gpus).

use super::Processor;

/// Words before the number of a card.
const WORDS: [&str; 10] = [
    "amd", "nvidia", "radeon", "instinct", "geforce", "tesla", "quadro", "jetson", "graphics",
    "gpu",
];

/// Prefixes of the names of cards, without blanks and [`WORDS`], with their processors.
const CARDS: [(&str, &str); 61] = [
    ("mi25", "gfx900"),
    ("mi250", "gfx90a"),
    ("mi210", "gfx90a"),
    ("mi100", "gfx908"),
    ("mi50", "gfx906"),
    ("mi60", "gfx906"),
    ("mi300", "gfx942"),
    ("mi325", "gfx942"),
    ("mi350", "gfx950"),
    ("mi355", "gfx950"),
    ("radeonvii", "gfx906"),
    ("rx6950", "gfx1030"),
    ("rx6900", "gfx1030"),
    ("rx6800", "gfx1030"),
    ("prow6800", "gfx1030"),
    ("prov620", "gfx1030"),
    ("rx67", "gfx1031"),
    ("rx66", "gfx1032"),
    ("rx7900", "gfx1100"),
    ("prow7900", "gfx1100"),
    ("prow7800", "gfx1100"),
    ("rx7800", "gfx1101"),
    ("rx7700", "gfx1101"),
    ("prow7700", "gfx1101"),
    ("rx7600", "gfx1102"),
    ("rx9060", "gfx1200"),
    ("rx9070", "gfx1201"),
    ("p100", "sm_60"),
    ("p40", "sm_61"),
    ("p4", "sm_61"),
    ("gtx10", "sm_61"),
    ("v100", "sm_70"),
    ("t4", "sm_75"),
    ("gtx16", "sm_75"),
    ("rtx20", "sm_75"),
    ("a100", "sm_80"),
    ("a30", "sm_80"),
    ("a10", "sm_86"),
    ("a16", "sm_86"),
    ("a40", "sm_86"),
    ("a2", "sm_86"),
    ("rtxa", "sm_86"),
    ("rtx305", "sm_86"),
    ("rtx306", "sm_86"),
    ("rtx307", "sm_86"),
    ("rtx308", "sm_86"),
    ("rtx309", "sm_86"),
    ("agxorin", "sm_87"),
    ("rtx405", "sm_89"),
    ("rtx406", "sm_89"),
    ("rtx407", "sm_89"),
    ("rtx408", "sm_89"),
    ("rtx409", "sm_89"),
    ("l4", "sm_89"),
    ("h100", "sm_90"),
    ("h200", "sm_90"),
    ("gh200", "sm_90"),
    ("b200", "sm_100"),
    ("gb200", "sm_100"),
    ("b300", "sm_103"),
    ("rtx50", "sm_120"),
];

/// Returns the target for a text that is not one: another spelling, a compute capability, or the
/// name of a card.
pub fn meant(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let plain: String = lower
        .split([' ', '-', '_', '.'])
        .filter(|word| !WORDS.contains(word))
        .collect();
    let known = |name: String| Processor::find(&name).map(|processor| processor.name().to_owned());
    if lower.starts_with("gfx") {
        let (processor, features) = lower.split_at(lower.find(':').unwrap_or(lower.len()));
        let processor = processor.replace(['-', '_', ' '], "");
        return known(processor).map(|processor| processor + features);
    }
    for (start, prefix) in [("sm", "sm_"), ("compute", "compute_"), ("", "sm_")] {
        let number = plain.strip_prefix(start);
        if let Some(processor) = number.and_then(|number| known(format!("sm_{number}"))) {
            return Some(processor.replacen("sm_", prefix, 1));
        }
    }
    let cards = CARDS.iter().filter(|(name, _)| plain.starts_with(name));
    let longest = cards.max_by_key(|(name, _)| name.len());
    longest.map(|(_, processor)| (*processor).to_owned())
}

/// Returns the known processor that differs from `name` in one character; of several the nearest.
pub fn nearest_processor(name: &str) -> Option<&'static str> {
    let difference = |known: &str| {
        let mut pairs = known
            .bytes()
            .zip(name.bytes())
            .filter(|(one, other)| one != other);
        let (one, other) = pairs.next()?;
        (known.len() == name.len() && pairs.next().is_none()).then(|| one.abs_diff(other))
    };
    Processor::all()
        .map(Processor::name)
        .filter_map(|known| Some((difference(known)?, known)))
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_other_spellings_and_the_names_of_cards() {
        for (text, expected) in [
            ("sm80", "sm_80"),
            ("SM_80", "sm_80"),
            ("sm-90a", "sm_90a"),
            ("8.0", "sm_80"),
            ("86", "sm_86"),
            ("compute80", "compute_80"),
            ("GFX90A:xnack+", "gfx90a:xnack+"),
            ("gfx-1100", "gfx1100"),
            ("MI250", "gfx90a"),
            ("MI25", "gfx900"),
            ("AMD Instinct MI300X", "gfx942"),
            ("RX 7900 XTX", "gfx1100"),
            ("RTX 4090", "sm_89"),
            ("NVIDIA GeForce RTX 3080 Ti", "sm_86"),
            ("h100", "sm_90"),
            ("A10", "sm_86"),
            ("A100", "sm_80"),
            ("L40S", "sm_89"),
        ] {
            assert_eq!(meant(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "gpu", "gfx", "x86_64", "sm_", "Arc A770", "RTX 4000"] {
            assert_eq!(meant(text), None, "{text}");
        }
    }

    #[test]
    fn names_processors_that_are_known() {
        for (card, processor) in CARDS {
            assert!(Processor::find(processor).is_some(), "{card}");
        }
        assert_eq!(nearest_processor("gfx90b"), Some("gfx90a"));
        assert_eq!(nearest_processor("gfx90z"), Some("gfx90c"));
        assert_eq!(nearest_processor("sm_81"), Some("sm_80"));
        assert_eq!(nearest_processor("sm_999"), None);
        assert_eq!(nearest_processor("gfx9999"), None);
    }
}
