//! Target IDs: a processor with features, such as `gfx90a:sramecc-:xnack+`.
//!
//! A missing feature may be on or off. Specification:
//! <https://clang.llvm.org/docs/ClangOffloadBundler.html#target-id>.

use std::fmt;

use super::Processor;

/// A processor with features. It may be a processor alone (`sm_80`) or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId {
    processor: String,
    /// Sorted by name, without duplicates.
    features: Vec<(&'static str, bool)>,
}

/// All features that have ever been part of a target ID.
pub(super) const FEATURES: [&str; 2] = ["sramecc", "xnack"];

impl TargetId {
    /// Reads `<processor>[:<feature><+|->]…`, features in any order. Accepts any processor.
    ///
    /// # Errors
    ///
    /// Fails if the processor is missing before features; if a feature lacks its sign, is unknown or
    /// given twice; or if a character cannot be in a target ID.
    pub fn parse(text: &str) -> Result<Self, TargetIdError> {
        // Characters that separate target IDs from other text in command lines and file names.
        let foreign =
            |char: char| !char.is_ascii_graphic() || matches!(char, ',' | ';' | '=' | '/');
        if let Some((offset, char)) = text.char_indices().find(|(_, char)| foreign(*char)) {
            return Err(TargetIdError::Character { char, offset });
        }
        let (processor, written) = split(text)?;
        let mut features = Vec::new();
        for (name, on) in written {
            let Some(name) = FEATURES.into_iter().find(|known| *known == name) else {
                let sign = if on { '+' } else { '-' };
                return Err(TargetIdError::UnknownFeature {
                    feature: format!("{name}{sign}"),
                });
            };
            features.push((name, on));
        }
        Ok(Self {
            processor: processor.to_owned(),
            features,
        })
    }

    /// Reads the target ID of an image for an AMD GPU, as LLVM's main branch does. A missing
    /// processor means `generic`, and features that the processor lacks are dropped.
    pub(super) fn of_image(arch: &str) -> Self {
        let (processor, rest) = arch.split_once(':').unwrap_or((arch, ""));
        let processor = if processor.is_empty() {
            "generic"
        } else {
            processor
        };
        let known = Processor::find(processor);
        let possible = known.map_or(&FEATURES[..], Processor::features);
        let mut features = Vec::new();
        for feature in rest.split(':') {
            let name = feature.strip_suffix(['+', '-']);
            let name = name.and_then(|name| possible.iter().find(|known| **known == name));
            if let Some(name) = name {
                set(&mut features, name, feature.ends_with('+'));
            }
        }
        Self {
            processor: known.map_or(processor, |known| known.name()).to_owned(),
            features,
        }
    }

    /// Returns the processor, such as `gfx90a` or `sm_80`; may be empty.
    #[must_use]
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// Returns whether a feature is on or off; `None` if it is not set.
    #[must_use]
    pub fn feature(&self, name: &str) -> Option<bool> {
        let found = self.features.iter().find(|(known, _)| *known == name);
        found.map(|(_, on)| *on)
    }

    /// Lists the features that are set, sorted by name.
    pub fn features(&self) -> impl Iterator<Item = (&'static str, bool)> + '_ {
        self.features.iter().copied()
    }

    /// Returns true if an image for `self` serves `wanted`, if the triples are equal.
    ///
    /// Not symmetric: an image without a setting for a feature serves every setting, and an image
    /// for a family of processors serves each of them. `generic` matches all.
    ///
    /// This is the rule of LLVM's main branch, but a processor that no table knows serves only
    /// itself.
    #[must_use]
    pub(crate) fn serves(&self, wanted: &Self) -> bool {
        let generic = |id: &Self| id.processor == "generic";
        let family = || {
            let wanted = Processor::find(&wanted.processor).and_then(Processor::family);
            wanted.is_some_and(|family| family == self.processor)
        };
        let processor =
            self.processor == wanted.processor || generic(self) || generic(wanted) || family();
        processor && self.features_serve(wanted)
    }

    /// Returns true if `wanted` has all features as they are set here.
    pub(super) fn features_serve(&self, wanted: &Self) -> bool {
        self.features()
            .all(|(name, on)| wanted.feature(name) == Some(on))
    }
}

/// Names of features, sorted; true if the feature is on.
pub(super) type Features<'a> = Vec<(&'a str, bool)>;

/// Switches a feature on or off; returns false if it was already set.
fn set<'a>(features: &mut Features<'a>, name: &'a str, on: bool) -> bool {
    match features.binary_search_by(|(known, _)| (*known).cmp(name)) {
        Ok(known) => {
            features[known].1 = on;
            false
        }
        Err(place) => {
            features.insert(place, (name, on));
            true
        }
    }
}

/// Returns the processor of a target ID: the part before the features.
pub(super) fn processor(target_id: &str) -> &str {
    let parts = target_id.split_once(':');
    parts.map_or(target_id, |(processor, _)| processor)
}

/// Splits a target ID; features may have any name, each once.
pub(super) fn split(text: &str) -> Result<(&str, Features<'_>), TargetIdError> {
    let (processor, rest) = text.split_once(':').unwrap_or((text, ""));
    if processor.is_empty() && !text.is_empty() {
        return Err(TargetIdError::NoProcessor);
    }
    // LLVM ignores a colon at the end of the text.
    let rest = rest.strip_suffix(':').unwrap_or(rest);
    let mut features = Features::new();
    for feature in rest.split(':').filter(|_| !rest.is_empty()) {
        let Some(name) = feature.strip_suffix(['+', '-']) else {
            let feature = feature.to_owned();
            return Err(TargetIdError::NoSign { feature });
        };
        if !set(&mut features, name, feature.ends_with('+')) {
            let feature = name.to_owned();
            return Err(TargetIdError::Twice { feature });
        }
    }
    Ok((processor, features))
}

/// Displays features sorted by name, as in every canonical target ID.
impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.processor)?;
        self.features().try_for_each(|(name, on)| {
            let sign = if on { '+' } else { '-' };
            write!(f, ":{name}{sign}")
        })
    }
}

/// An error in a target ID.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetIdError {
    /// A character that no target ID contains.
    Character {
        /// The character.
        char: char,
        /// Offset in bytes from the start of the text.
        offset: usize,
    },
    /// Features without a processor.
    NoProcessor,
    /// A feature without `+` or `-` at its end.
    NoSign {
        /// The feature as written.
        feature: String,
    },
    /// A feature that no processor has.
    UnknownFeature {
        /// The feature as written, with its sign.
        feature: String,
    },
    /// A duplicate feature.
    Twice {
        /// Name of the feature.
        feature: String,
    },
}

impl fmt::Display for TargetIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Character { char, offset } => {
                write!(f, "{char:?} at offset {offset:#x} cannot be in a target ID")
            }
            Self::NoProcessor => write!(f, "a target ID must start with a processor"),
            Self::NoSign { feature } => {
                write!(
                    f,
                    "feature `{feature}` of a target ID must end in `+` or `-`"
                )
            }
            Self::UnknownFeature { feature } => write!(
                f,
                "unknown feature `{feature}` of a target ID; expected `sramecc` or `xnack`"
            ),
            Self::Twice { feature } => write!(f, "feature `{feature}` is given twice"),
        }
    }
}

impl std::error::Error for TargetIdError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> TargetId {
        TargetId::parse(text).unwrap()
    }

    #[test]
    fn sorts_features_when_displayed() {
        let id = id("gfx90a:xnack+:sramecc-");
        assert_eq!(id.to_string(), "gfx90a:sramecc-:xnack+");
        assert_eq!(id.processor(), "gfx90a");
        assert_eq!(
            (id.feature("xnack"), id.feature("sramecc")),
            (Some(true), Some(false))
        );
        assert_eq!(Ok(id), TargetId::parse("gfx90a:sramecc-:xnack+"));
    }

    #[test]
    fn accepts_a_processor_alone_and_nothing() {
        for text in [
            "",
            "sm_80",
            "sm_90a",
            "gfx1234",
            "gfx9-4-generic",
            "generic",
            "x86-64-v3",
        ] {
            assert_eq!(id(text).to_string(), text);
        }
        // As `clang-offload-bundler` 22.1 does.
        assert_eq!(id("gfx906:").to_string(), "gfx906");
        assert_eq!(id("gfx906:xnack+:").to_string(), "gfx906:xnack+");
    }

    #[test]
    fn rejects_what_is_no_target_id() {
        let cases = [
            (
                "gfx90a:xnack",
                "feature `xnack` of a target ID must end in `+` or `-`",
            ),
            (
                "gfx90a::xnack+",
                "feature `` of a target ID must end in `+` or `-`",
            ),
            (
                "gfx90a:xnak+",
                "unknown feature `xnak+` of a target ID; expected `sramecc` or `xnack`",
            ),
            (
                "gfx90a:+",
                "unknown feature `+` of a target ID; expected `sramecc` or `xnack`",
            ),
            (
                "gfx90a:xnack++",
                "unknown feature `xnack++` of a target ID; expected `sramecc` or `xnack`",
            ),
            ("gfx90a:xnack+:xnack-", "feature `xnack` is given twice"),
            (":xnack+", "a target ID must start with a processor"),
            ("gfx 90a", "' ' at offset 0x3 cannot be in a target ID"),
            (
                "gfx90a,gfx906",
                "',' at offset 0x6 cannot be in a target ID",
            ),
            ("gfx90ä", "'ä' at offset 0x5 cannot be in a target ID"),
        ];
        for (text, expected) in cases {
            let message = TargetId::parse(text).err().map(|error| error.to_string());
            assert_eq!(message.unwrap_or_default(), expected, "{text}");
        }
    }

    /// Rows: what the image is for; columns: what is asked for. Observed with
    /// `clang-offload-bundler` 22.1, whose rule for features is the same.
    #[test]
    fn serves_every_setting_of_a_feature_it_does_not_mention() {
        let ids = [
            "",
            ":xnack+",
            ":xnack-",
            ":sramecc+",
            ":sramecc+:xnack+",
            ":sramecc-:xnack+",
        ];
        let table = ["YYYYYY", ".Y..YY", "..Y...", "...YY.", "....Y.", ".....Y"];
        for (image, row) in ids.iter().zip(table) {
            for (wanted, expected) in ids.iter().zip(row.chars()) {
                let serves = id(&format!("gfx906{image}")).serves(&id(&format!("gfx906{wanted}")));
                assert_eq!(serves, expected == 'Y', "{image} for {wanted}");
            }
        }
    }

    #[test]
    fn serves_the_processors_of_its_family() {
        let pairs = [
            ("gfx9-generic", "gfx906:xnack+", true),
            ("gfx906", "gfx9-generic", false),
            ("gfx9-generic", "gfx90a", false),
            ("gfx9-4-generic", "gfx942", true),
            ("gfx11-generic", "gfx1151", true),
            ("gfx11-generic", "gfx1170", false),
            ("generic", "gfx90a", true),
            ("generic", "sm_80", true),
            ("sm_80", "generic", true),
            ("sm_70", "sm_80", false),
            ("sm_90", "sm_90a", false),
            ("", "", true),
            ("", "sm_70", false),
            ("gfx1234", "gfx1234:xnack+", true),
            ("gfx1234", "gfx906", false),
        ];
        for (image, wanted, expected) in pairs {
            assert_eq!(
                id(image).serves(&id(wanted)),
                expected,
                "{image} for {wanted}"
            );
        }
    }
}
