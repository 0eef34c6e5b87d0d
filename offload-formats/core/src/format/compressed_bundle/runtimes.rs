//! Compressed bundles that each release of the HIP runtime reads.
//!
//! `docs/verify.md` shows the table with its sources: shipping libraries, which ROCm's own compiler made for its runtime,
//! and the sources of the runtime.

use std::fmt;

use super::header::CompressedBundleVersion;
use crate::format::codec::Method;

/// A release of ROCm, whose HIP runtime reads bundles: `rocm-6.4`.
///
/// ```
/// # use offload_formats_core as offload_formats;
/// use offload_formats::format::compressed_bundle::{CompressedBundleVersion, HipRuntime, Method};
///
/// let runtime: HipRuntime = "rocm-6.4".parse()?;
/// assert!(runtime.reads(CompressedBundleVersion::V2, Method::Zstd));
/// assert!(!runtime.reads(CompressedBundleVersion::V3, Method::Zstd));
/// # Ok::<(), offload_formats::format::compressed_bundle::HipRuntimeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HipRuntime {
    major: u16,
    minor: u16,
}

/// The text is not a release of ROCm.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HipRuntimeError {
    /// The text.
    pub text: String,
}

/// Versions and methods that a range of releases reads.
struct ReadBundles {
    /// First release, up to the next row.
    since: HipRuntime,
    /// Versions, the best one for new bundles last.
    versions: &'static [CompressedBundleVersion],
    /// Methods, the best one for new bundles last.
    methods: &'static [Method],
}

/// Versions and methods that each release reads. Version 1 is missing: no runtime reads it as it is written.
const READ_BUNDLES: [ReadBundles; 4] = [
    ReadBundles {
        since: HipRuntime::new(0, 0),
        versions: &[],
        methods: &[],
    },
    ReadBundles {
        since: HipRuntime::new(6, 2),
        versions: &[CompressedBundleVersion::V2],
        methods: &[Method::Zlib],
    },
    ReadBundles {
        since: HipRuntime::new(6, 3),
        versions: &[CompressedBundleVersion::V2],
        methods: &[Method::Zlib, Method::Zstd],
    },
    ReadBundles {
        since: HipRuntime::new(7, 1),
        versions: &[CompressedBundleVersion::V2, CompressedBundleVersion::V3],
        methods: &[Method::Zlib, Method::Zstd],
    },
];

impl HipRuntime {
    /// Returns a release by its numbers.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    fn row(self) -> &'static ReadBundles {
        let rows = READ_BUNDLES.iter().rev();
        let mut rows = rows.skip_while(|row| row.since > self);
        rows.next().expect("the first row is for all releases")
    }

    /// Tells whether the runtime is known to read compressed bundles of that version and method.
    #[must_use]
    pub fn reads(self, version: CompressedBundleVersion, method: Method) -> bool {
        let row = self.row();
        row.versions.contains(&version) && row.methods.contains(&method)
    }

    /// Returns the versions that the runtime is known to read, the best one for new bundles last.
    #[must_use]
    pub fn versions(self) -> &'static [CompressedBundleVersion] {
        self.row().versions
    }

    /// Returns the methods that the runtime is known to read, the best one for new bundles last.
    #[must_use]
    pub fn methods(self) -> &'static [Method] {
        self.row().methods
    }
}

impl fmt::Display for HipRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rocm-{}.{}", self.major, self.minor)
    }
}

impl std::str::FromStr for HipRuntime {
    type Err = HipRuntimeError;

    /// Reads `rocm-6.4`, `rocm6.4`, `6.4` or `rocm-6.4.1`, of which the third number does not matter.
    fn from_str(text: &str) -> Result<Self, HipRuntimeError> {
        let wrong = || HipRuntimeError {
            text: text.to_owned(),
        };
        let numbers = text.strip_prefix("rocm").unwrap_or(text);
        let numbers = numbers.strip_prefix('-').unwrap_or(numbers);
        let mut parts = numbers.split('.').map(|part| {
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| is_number)
        });
        let mut next = || parts.next().map(|part: Option<u16>| part.ok_or_else(wrong));
        let major = next().ok_or_else(wrong)??;
        let minor = next().ok_or_else(wrong)??;
        let _patch = next().transpose()?;
        match next() {
            None => Ok(Self { major, minor }),
            Some(_) => Err(wrong()),
        }
    }
}

impl fmt::Display for HipRuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a valid runtime; expected a release of ROCm such as `rocm-6.4`",
            self.text
        )
    }
}

impl std::error::Error for HipRuntimeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_releases_in_each_spelling() {
        for text in ["rocm-6.4", "rocm6.4", "6.4", "rocm-6.4.3"] {
            assert_eq!(text.parse(), Ok(HipRuntime::new(6, 4)), "{text}");
        }
        for text in [
            "",
            "rocm",
            "rocm-",
            "rocm-6",
            "6.",
            "6.x",
            "6.4.",
            "6.4.1.2",
            "-6.4.",
            "+6.4",
            "rocm-99999.1",
        ] {
            assert!(text.parse::<HipRuntime>().is_err(), "{text}");
        }
        assert_eq!(HipRuntime::new(7, 0).to_string(), "rocm-7.0");
    }

    #[test]
    fn prefers_the_version_that_all_releases_read() {
        let version = CompressedBundleVersion::for_any_runtime;
        assert_eq!(version(0), CompressedBundleVersion::V2);
        assert_eq!(version(3 << 30), CompressedBundleVersion::V2);
        assert_eq!(version((4 << 30) - 1), CompressedBundleVersion::V3);
        assert_eq!(version(u64::MAX), CompressedBundleVersion::V3);
        for ReadBundles {
            since, versions, ..
        } in READ_BUNDLES.iter().skip(1)
        {
            assert!(versions.contains(&version(0)), "{since}");
        }
    }

    /// Versions and methods in the libraries of bitsandbytes 0.49.2, which the compilers of ROCm 6.2 to 7.2 made.
    #[test]
    fn reads_what_the_compiler_of_the_release_writes() {
        use CompressedBundleVersion::{V1, V2, V3};
        for (release, version, method) in [
            ((6, 2), V2, Method::Zlib),
            ((6, 3), V2, Method::Zstd),
            ((6, 4), V2, Method::Zstd),
            ((7, 0), V2, Method::Zstd),
            ((7, 1), V3, Method::Zstd),
            ((7, 2), V3, Method::Zstd),
        ] {
            let runtime = HipRuntime::new(release.0, release.1);
            assert!(runtime.reads(version, method), "{runtime}");
            assert!(!runtime.reads(V1, method), "{runtime}");
        }
        assert!(HipRuntime::new(6, 1).versions().is_empty());
        assert!(!HipRuntime::new(7, 0).reads(V3, Method::Zstd));
    }
}
