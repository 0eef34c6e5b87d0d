//! The LLVM release whose formats are written.

use std::fmt;
use std::str::FromStr;

/// An LLVM release, ordered by date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LlvmRelease {
    /// LLVM 19.
    V19,
    /// LLVM 20.
    V20,
    /// LLVM 21.
    V21,
    /// LLVM 22.
    #[default]
    V22,
    /// LLVM 23.
    V23,
    /// The main branch.
    Main,
}

const RELEASES: [LlvmRelease; 6] = [
    LlvmRelease::V19,
    LlvmRelease::V20,
    LlvmRelease::V21,
    LlvmRelease::V22,
    LlvmRelease::V23,
    LlvmRelease::Main,
];

impl fmt::Display for LlvmRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V19 => "19",
            Self::V20 => "20",
            Self::V21 => "21",
            Self::V22 => "22",
            Self::V23 => "23",
            Self::Main => "main",
        })
    }
}

impl FromStr for LlvmRelease {
    type Err = UnknownRelease;

    fn from_str(text: &str) -> Result<Self, UnknownRelease> {
        let known = RELEASES.iter().find(|release| release.to_string() == text);
        known.copied().ok_or_else(|| UnknownRelease {
            text: text.to_owned(),
        })
    }
}

/// A text that is not a release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownRelease {
    /// The text.
    pub text: String,
}

impl fmt::Display for UnknownRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a release of LLVM; expected", self.text)?;
        for (index, name) in RELEASES.iter().enumerate() {
            let separator = match index {
                0 => "",
                _ if index + 1 == RELEASES.len() => " or",
                _ => ",",
            };
            write!(f, "{separator} `{name}`")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownRelease {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints() {
        let names = ["19", "20", "21", "22", "23", "main"];
        for (release, name) in RELEASES.into_iter().zip(names) {
            assert_eq!(name.parse(), Ok(release));
            assert_eq!(release.to_string(), name);
        }
    }

    #[test]
    fn orders_releases_by_date() {
        assert!(RELEASES.is_sorted());
    }

    #[test]
    fn rejects_other_words_and_lists_the_known_ones() {
        assert_eq!(
            "18".parse::<LlvmRelease>().unwrap_err().to_string(),
            "`18` is not a release of LLVM; expected `19`, `20`, `21`, `22`, `23` or `main`"
        );
    }
}
