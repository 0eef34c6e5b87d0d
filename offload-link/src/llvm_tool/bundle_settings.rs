//! Settings of LLVM's bundler that variables have, too. Links of HIP code read these variables under the name of LLVM's
//! wrapper, which starts the bundler.
//!
//! Specification: `docs/spec/bundler.md` §1.7.

use std::ffi::{OsStr, OsString};

use offload_formats::format::compressed_bundle::CompressedBundleVersion;
use offload_formats::names::LlvmRelease;

/// Settings that variables have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BundleSettings {
    pub verbose: bool,
    pub compress: bool,
    pub level: Option<i32>,
    /// Version of compressed bundles.
    pub version: Option<CompressedBundleVersion>,
}

impl BundleSettings {
    /// Reads the environment: `variable` looks up one. Adds warnings to `warnings`.
    pub(crate) fn from_environment(
        variable: impl Fn(&str) -> Option<OsString>,
        warnings: &mut Vec<String>,
    ) -> Self {
        let is_one = |value: &OsStr| value == "1";
        if variable("OFFLOAD_BUNDLER_IGNORE_ENV_VAR").is_some_and(|value| is_one(&value)) {
            return Self::default();
        }
        let flag = |name| variable(name).is_some_and(|value| is_one(&value));
        let mut read = Self {
            verbose: flag("OFFLOAD_BUNDLER_VERBOSE"),
            compress: flag("OFFLOAD_BUNDLER_COMPRESS"),
            ..Self::default()
        };
        const LEVEL: &str = "OFFLOAD_BUNDLER_COMPRESSION_LEVEL";
        if let Some(value) = variable(LEVEL) {
            let text = value.to_string_lossy();
            // `parse` accepts a plus sign, LLVM does not.
            read.level = text.parse().ok().filter(|_| !text.starts_with('+'));
            if read.level.is_none() {
                warnings.push(format!("Invalid value for {LEVEL}: {text}. Ignoring it."));
            }
        }
        const VERSION: &str = "COMPRESSED_BUNDLE_FORMAT_VERSION";
        if let Some(value) = variable(VERSION) {
            let text = value.to_string_lossy();
            let number = text.parse::<u16>().ok().filter(|_| !text.starts_with('+'));
            read.version = match number {
                Some(2) => Some(CompressedBundleVersion::V2),
                Some(3) => Some(CompressedBundleVersion::V3),
                _ => {
                    let valid = number.map_or("", |_| " Valid values are 2 or 3.");
                    warnings.push(format!(
                        "Invalid value for {VERSION}: {text}.{valid} Using default version 3."
                    ));
                    Some(CompressedBundleVersion::V3)
                }
            };
        }
        read
    }

    /// Returns the version of compressed bundles: from a variable, else that of a release.
    pub(crate) fn version_for(self, release: LlvmRelease) -> CompressedBundleVersion {
        self.version.unwrap_or(if release < LlvmRelease::V22 {
            CompressedBundleVersion::V2
        } else {
            CompressedBundleVersion::V3
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> (BundleSettings, Vec<String>) {
        let mut warnings = Vec::new();
        let lookup = |name: &str| {
            let pair = pairs.iter().find(|(known, _)| *known == name);
            pair.map(|(_, value)| OsString::from(value))
        };
        (
            BundleSettings::from_environment(lookup, &mut warnings),
            warnings,
        )
    }

    /// Covers every row of `docs/spec/bundler.md` §1.7.
    #[test]
    fn reads_the_environment_as_llvm_does() {
        let (settings, _) = read(&[
            ("OFFLOAD_BUNDLER_COMPRESS", "1"),
            ("OFFLOAD_BUNDLER_VERBOSE", "true"),
            ("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", "-9"),
            ("COMPRESSED_BUNDLE_FORMAT_VERSION", "02"),
        ]);
        assert!(settings.compress && !settings.verbose);
        assert_eq!(settings.level, Some(-9));
        assert_eq!(
            settings.version_for(LlvmRelease::V22),
            CompressedBundleVersion::V2
        );
        let (settings, warnings) = read(&[
            ("OFFLOAD_BUNDLER_IGNORE_ENV_VAR", "1"),
            ("OFFLOAD_BUNDLER_COMPRESS", "1"),
            ("COMPRESSED_BUNDLE_FORMAT_VERSION", "x"),
        ]);
        assert!(!settings.compress && warnings.is_empty());
        assert!(
            read(&[
                ("OFFLOAD_BUNDLER_IGNORE_ENV_VAR", "true"),
                ("OFFLOAD_BUNDLER_COMPRESS", "1")
            ])
            .0
            .compress
        );
        for text in ["+1", "0x1", " 1", "", "1.5"] {
            let (settings, warnings) = read(&[("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", text)]);
            assert_eq!(settings.level, None);
            assert_eq!(
                warnings,
                [format!(
                    "Invalid value for OFFLOAD_BUNDLER_COMPRESSION_LEVEL: {text}. Ignoring it."
                )]
            );
        }
        for (text, valid) in [
            ("4", " Valid values are 2 or 3."),
            ("1", " Valid values are 2 or 3."),
            ("", ""),
            ("-1", ""),
            ("70000", ""),
            (" 3", ""),
        ] {
            let (settings, warnings) = read(&[("COMPRESSED_BUNDLE_FORMAT_VERSION", text)]);
            assert_eq!(
                settings.version_for(LlvmRelease::V22),
                CompressedBundleVersion::V3
            );
            assert_eq!(
                warnings,
                [format!(
                    "Invalid value for COMPRESSED_BUNDLE_FORMAT_VERSION: {text}.{valid} Using default version 3."
                )]
            );
        }
    }
}
