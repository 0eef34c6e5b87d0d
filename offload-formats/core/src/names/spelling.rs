//! Finds the processor for the name of a GPU, for hints and for tables.

use super::{Processor, ProcessorProducts};

/// Words before the number of a card.
const WORDS: [&str; 10] = [
    "amd", "nvidia", "radeon", "instinct", "geforce", "tesla", "quadro", "jetson", "graphics",
    "gpu",
];

/// Returns the target for a text that is not one: another spelling, a compute capability, or the
/// name of a card.
pub fn meant(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let plain = without_words(&lower);
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
    product(&lower).map(str::to_owned)
}

/// Returns the processor of a product by its name, of which the words before the number, blanks and what follows may be
/// left out: `RTX 4090`, `geforce-rtx4090`, `MI300`. Nothing if several processors are meant.
#[must_use]
pub fn product(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    let spellings = [without_words(&lower), joined(&lower)];
    let mut named: Vec<(usize, &'static str)> = Vec::new();
    let mut started = Vec::new();
    for row in ProcessorProducts::all() {
        for product in row.products() {
            let product = product.to_lowercase();
            let names = [without_words(&product), joined(&product)];
            for (name, spelling) in std::iter::zip(names, &spellings) {
                if spelling.starts_with(&name) {
                    named.push((name.len(), row.processor()));
                } else if spelling.len() > 2 && name.starts_with(spelling) {
                    started.push(row.processor());
                }
            }
        }
    }
    // `A100` starts with `A10`, too.
    if let Some((_, processor)) = named.into_iter().max_by_key(|(length, _)| *length) {
        return Some(processor);
    }
    let first = *started.first()?;
    started.iter().all(|other| *other == first).then_some(first)
}

/// Returns the words of a name that tell products apart, without blanks.
fn without_words(lower: &str) -> String {
    let words = lower.split([' ', '-', '_', '.']);
    words.filter(|word| !WORDS.contains(word)).collect()
}

fn joined(lower: &str) -> String {
    lower.split([' ', '-', '_', '.']).collect()
}

/// Returns the known processor that differs from `name` in one character; of several the nearest.
pub fn nearest_processor(name: &str) -> Option<&'static str> {
    let difference = |known: &str| {
        let mut pairs = known
            .bytes()
            .zip(name.bytes())
            .filter(|(one, other)| one != other);
        let (one, other) = pairs.next()?;
        (known.len() == name.len() && pairs.next().is_none())
            .then(|| one.abs_diff(other.to_ascii_lowercase()))
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
        assert_eq!(nearest_processor("gfx90A"), Some("gfx90a"));
        assert_eq!(nearest_processor("gfx90b"), Some("gfx90a"));
        assert_eq!(nearest_processor("gfx90z"), Some("gfx90c"));
        assert_eq!(nearest_processor("sm_81"), Some("sm_80"));
        assert_eq!(nearest_processor("sm_999"), None);
        assert_eq!(nearest_processor("gfx9999"), None);
    }

    #[test]
    fn finds_processors_of_products() {
        for (text, processor) in [
            ("MI250", Some("gfx90a")),
            ("AMD Instinct MI300X", Some("gfx942")),
            ("mi300", Some("gfx942")),
            ("Radeon VII", Some("gfx906")),
            ("radeonvii", Some("gfx906")),
            ("RTX 4090", Some("sm_89")),
            ("NVIDIA GeForce RTX 3060 Ti", Some("sm_86")),
            ("rtx-40", Some("sm_89")),
            ("A100-SXM4-80GB", Some("sm_80")),
            ("a10", Some("sm_86")),
            ("T4", Some("sm_75")),
            // MI300X, MI325X and MI350X differ.
            ("MI3", None),
            ("RX", None),
            ("", None),
            ("Voodoo 2", None),
        ] {
            assert_eq!(product(text), processor, "{text}");
        }
    }

    #[test]
    fn finds_each_listed_product() {
        for row in ProcessorProducts::all() {
            for name in row.products() {
                assert_eq!(product(name), Some(row.processor()), "{name}");
            }
        }
    }
}
