//! The limit on decompressed bundles and offload binaries: one setting of all tools and build scripts.

use super::{INFLATE_LIMIT, sizes};

/// Option of the tools, without dashes.
pub const OPTION: &str = "max-decompressed-size";

/// Environment variable that applies if the option is missing.
pub const VARIABLE: &str = "OFFLOAD_MAX_DECOMPRESSED_SIZE";

/// Default for data decompressed to files, in bytes.
const FILES: u64 = 8 << 30;

/// Limit on the size that compressed data claims to decompress to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecompressionLimit {
    /// Limit in bytes; `None` selects the defaults.
    given: Option<u64>,
}

impl DecompressionLimit {
    /// Reads the value of the option, or else of the variable. An empty variable counts as unset.
    ///
    /// # Errors
    ///
    /// Returns a message if the value is not a size.
    pub fn parse(option: Option<&str>, variable: Option<&str>) -> Result<Self, String> {
        let given = sizes::setting([OPTION, VARIABLE], option, variable)?;
        Ok(Self { given })
    }

    /// Allows so many bytes, in files and in memory.
    #[must_use]
    pub const fn of(bytes: u64) -> Self {
        Self { given: Some(bytes) }
    }

    /// Returns the limit in bytes for data decompressed to files: for each compressed bundle, and for all of a run.
    #[must_use]
    pub fn files(self) -> u64 {
        self.given.unwrap_or(FILES)
    }

    /// Returns the limit in bytes for data decompressed in memory, for all of a run.
    #[must_use]
    pub fn memory(self) -> u64 {
        self.given.unwrap_or(INFLATE_LIMIT)
    }
}

/// Change by a user with which compressed data can be unpacked, or new data be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// The limit, which the data exceeds.
    Limit,
    /// The folder for temporary files, which cannot be written.
    Space,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefers_the_option() {
        let parse = DecompressionLimit::parse;
        let given = |size| Ok(DecompressionLimit { given: Some(size) });
        assert_eq!(parse(Some("1"), Some("x")), given(1));
        assert_eq!(parse(None, Some("2M")), given(2 << 20));
        assert_eq!(parse(None, Some("")), Ok(DecompressionLimit::default()));
        let expected = "is not a size; expected bytes, or a number with K, M, G or T";
        let problem = parse(None, Some("x")).unwrap_err();
        assert_eq!(problem, format!("{VARIABLE}: `x` {expected}"));
        let problem = parse(Some("y"), None).unwrap_err();
        assert_eq!(problem, format!("--{OPTION}: `y` {expected}"));
    }

    #[test]
    fn allows_less_in_memory_unless_a_size_is_given() {
        let default = DecompressionLimit::default();
        assert_eq!((default.files(), default.memory()), (8 << 30, 1 << 30));
        let given = DecompressionLimit::parse(Some("3G"), None).unwrap();
        assert_eq!((given.files(), given.memory()), (3 << 30, 3 << 30));
    }
}
