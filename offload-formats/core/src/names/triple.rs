//! Target triples: architecture, vendor, operating system, environment.
//!
//! `x86_64-pc-linux-gnu`, `x86_64-linux-gnu` and `amdgcn-amd-amdhsa` are all in use. A triple keeps
//! its spelling, because files are compared by their bytes, and is displayed in LLVM's normalized
//! form. The words that LLVM knows were observed with release 22.1.

mod normalize;
mod words;

use std::fmt;

use normalize::normalize;

/// A target triple.
///
/// Equality compares normalized forms: `x86_64-linux-gnu` equals `x86_64-unknown-linux-gnu`.
#[derive(Clone, Debug)]
pub struct Triple {
    text: String,
    /// Normalized fields; at least one, none with a dash.
    fields: Vec<String>,
}

impl Triple {
    /// Reads a triple of one to four fields. Like LLVM, counts further fields to the environment.
    ///
    /// Accepts words that LLVM does not know.
    ///
    /// # Errors
    ///
    /// Fails if the text is empty, or a character cannot be in a triple.
    pub fn parse(text: &str) -> Result<Self, TripleError> {
        if text.is_empty() {
            return Err(TripleError::Empty);
        }
        let own =
            |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '+');
        if let Some((offset, char)) = text.char_indices().find(|(_, char)| !own(*char)) {
            return Err(TripleError::Character { char, offset });
        }
        Ok(Self {
            text: text.to_owned(),
            fields: normalize(text),
        })
    }

    /// Returns the text as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the architecture, such as `amdgcn`.
    #[must_use]
    pub fn arch(&self) -> &str {
        self.field(0)
    }

    /// Returns the vendor, such as `amd`; `unknown` or empty if missing.
    #[must_use]
    pub fn vendor(&self) -> &str {
        self.field(1)
    }

    /// Returns the operating system or runtime, such as `amdhsa`; `unknown` or empty if missing.
    #[must_use]
    pub fn os(&self) -> &str {
        self.field(2)
    }

    /// Returns the environment, such as `gnu`; `unknown` or empty if missing.
    #[must_use]
    pub fn environment(&self) -> &str {
        self.field(3)
    }

    /// Returns true for an AMD GPU.
    #[must_use]
    pub fn is_amdgpu(&self) -> bool {
        let arch = words::arch(self.arch());
        arch.is_some_and(|arch| matches!(arch.name, "amdgcn" | "r600"))
    }

    /// Returns true for an NVIDIA GPU.
    #[must_use]
    pub fn is_nvptx(&self) -> bool {
        matches!(self.arch(), "nvptx" | "nvptx64")
    }

    /// Returns true for a processor that can be a host.
    #[must_use]
    pub fn is_cpu(&self) -> bool {
        const DEVICES: [&str; 6] = ["amdil", "hsail", "spir", "renderscript", "dxil", "shave"];
        let device = |arch: &str| DEVICES.iter().any(|device| arch.starts_with(device));
        words::arch(self.arch()).is_some_and(|arch| !device(arch.name))
            && !self.is_amdgpu()
            && !self.is_nvptx()
    }

    /// Returns true if LLVM knows the architecture, which must be the first word as written.
    #[must_use]
    pub fn has_known_arch(&self) -> bool {
        let first = self.text.split('-').next();
        first.is_some_and(|word| words::arch(word).is_some())
    }

    /// Returns true if code for `self` is also code for `wanted`. Architecture with
    /// sub-architecture, vendor, system, environment and object format must be equal, without
    /// versions. All words that LLVM does not know are equal.
    ///
    /// Not symmetric: Apple's triples are compared without the environment.
    #[must_use]
    pub fn serves(&self, wanted: &Self) -> bool {
        let [parts, wanted] = [self, wanted].map(|triple| TripleParts::new(triple.all()));
        parts.serve(&wanted)
    }

    fn all(&self) -> [&str; 4] {
        [0, 1, 2, 3].map(|index| self.field(index))
    }

    fn field(&self, index: usize) -> &str {
        self.fields.get(index).map_or("", String::as_str)
    }
}

/// LLVM's interpretation of a triple; `None` for each word that it does not know.
pub(super) struct TripleParts<'a> {
    pub(super) arch: Option<&'static str>,
    sub: Option<&'a str>,
    vendor: Option<&'static str>,
    os: Option<&'static str>,
    environment: Option<&'static str>,
    format: &'static str,
}

impl<'a> TripleParts<'a> {
    /// Interprets normalized fields.
    pub(super) fn new([arch, vendor, os, environment]: [&'a str; 4]) -> Self {
        let (arch, os) = (words::arch(arch), words::os(os));
        let default = || words::default_format(arch.map_or("", |arch| arch.name), os.unwrap_or(""));
        Self {
            arch: arch.map(|arch| arch.name),
            sub: arch.map(|arch| arch.sub),
            vendor: words::vendor(vendor),
            os,
            environment: words::environment(environment),
            format: words::object_format(environment).unwrap_or_else(default),
        }
    }

    /// Implements `Triple::isCompatibleWith` of LLVM 22.
    pub(super) fn serve(&self, wanted: &TripleParts<'_>) -> bool {
        let thumb = |name: Option<&'static str>| match name {
            Some("thumb") => Some("arm"),
            Some("thumbeb") => Some("armeb"),
            _ => name,
        };
        // Rule of the main branch: `amdgcn` without a sub-architecture matches all of them.
        let any = self.arch == Some("amdgcn") && [self.sub, wanted.sub].contains(&Some(""));
        thumb(self.arch) == thumb(wanted.arch)
            && (self.sub == wanted.sub || any)
            && (self.vendor, self.os) == (wanted.vendor, wanted.os)
            && (self.vendor == Some("apple")
                || (self.environment, self.format) == (wanted.environment, wanted.format))
    }
}

impl PartialEq for Triple {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl Eq for Triple {}

/// Displays LLVM's normalized form.
impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fields.join("-"))
    }
}

/// An error in a triple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TripleError {
    /// The text is empty.
    Empty,
    /// A character that no triple contains.
    Character {
        /// The character.
        char: char,
        /// Offset in bytes from the start of the text.
        offset: usize,
    },
}

impl fmt::Display for TripleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "a triple must have an architecture"),
            Self::Character { char, offset } => {
                write!(f, "{char:?} at offset {offset:#x} cannot be in a triple")
            }
        }
    }
}

impl std::error::Error for TripleError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn triple(text: &str) -> Triple {
        Triple::parse(text).unwrap()
    }

    /// Printed by `clang --target=<left> -print-target-triple` of release 22.1.
    #[test]
    fn normalizes_as_llvm_does() {
        let cases = [
            ("x86_64-pc-linux-gnu", "x86_64-pc-linux-gnu"),
            ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"),
            ("x86_64-linux-gnu", "x86_64-unknown-linux-gnu"),
            ("x86_64--linux-gnu", "x86_64-unknown-linux-gnu"),
            ("x86_64-linux", "x86_64-unknown-linux"),
            ("x86_64-gnu-linux", "x86_64-unknown-linux-gnu"),
            ("linux-x86_64", "x86_64-unknown-linux"),
            ("aarch64-linux-android21", "aarch64-unknown-linux-android21"),
            ("amdgcn-amd-amdhsa", "amdgcn-amd-amdhsa"),
            ("amdgcn--amdhsa", "amdgcn-unknown-amdhsa"),
            ("amdgcn-amdhsa", "amdgcn-unknown-amdhsa"),
            ("amdgcn-amd-amdhsa-", "amdgcn-amd-amdhsa-unknown"),
            ("nvptx64-nvidia-cuda", "nvptx64-nvidia-cuda"),
            ("nvptx64", "nvptx64"),
            ("spirv64-amd-amdhsa", "spirv64-amd-amdhsa"),
            ("x86_64-none-elf", "x86_64-unknown-none-elf"),
            ("x86_64-w64-mingw32", "x86_64-w64-windows-gnu"),
            ("x86_64-pc-win32", "x86_64-pc-windows-msvc"),
            ("x86_64-pc-windows10.0", "x86_64-pc-windows-msvc"),
            ("x86_64-pc-cygwin", "x86_64-pc-windows-cygnus"),
            ("arm-linux-androideabi21", "arm-unknown-linux-android21"),
            ("armv7-suse-linux-gnueabi", "armv7-suse-linux-gnueabihf"),
        ];
        for (text, expected) in cases {
            assert_eq!(triple(text).to_string(), expected, "{text}");
            assert_eq!(triple(text).as_str(), text);
        }
    }

    #[test]
    fn names_its_fields() {
        let host = triple("x86_64-linux-gnu");
        let fields = [host.arch(), host.vendor(), host.os(), host.environment()];
        assert_eq!(fields, ["x86_64", "unknown", "linux", "gnu"]);
        assert_eq!(triple("amdgcn-amd-amdhsa").environment(), "");
    }

    #[test]
    fn equals_other_spellings_of_itself() {
        assert_eq!(
            triple("x86_64-linux-gnu"),
            triple("x86_64-unknown-linux-gnu")
        );
        assert_ne!(
            triple("x86_64-pc-linux-gnu"),
            triple("x86_64-unknown-linux-gnu")
        );
    }

    #[test]
    fn tells_hosts_from_devices() {
        let tell = |text| {
            let triple = triple(text);
            [triple.is_cpu(), triple.is_amdgpu(), triple.is_nvptx()]
        };
        assert_eq!(tell("x86_64-pc-linux-gnu"), [true, false, false]);
        assert_eq!(tell("armv7-unknown-linux-gnueabihf"), [true, false, false]);
        assert_eq!(tell("amdgcn-amd-amdhsa"), [false, true, false]);
        assert_eq!(tell("nvptx64-nvidia-cuda"), [false, false, true]);
        assert_eq!(tell("spirv64-amd-amdhsa"), [false; 3]);
        assert_eq!(tell("gfx90a"), [false; 3]);
        assert_eq!(tell("AMDGCN-amd-amdhsa"), [false; 3]);
    }

    #[test]
    fn rejects_what_is_no_triple() {
        let message = |text| Triple::parse(text).unwrap_err().to_string();
        assert_eq!(message(""), "a triple must have an architecture");
        assert_eq!(
            message("x86_64 linux"),
            "' ' at offset 0x6 cannot be in a triple"
        );
        assert_eq!(message("a,b"), "',' at offset 0x1 cannot be in a triple");
    }

    /// The pairs of `docs/spec/bundler.md` §6.9, and others observed with `clang-offload-bundler` 22.1.
    #[test]
    fn serves_what_llvm_calls_compatible() {
        let pairs = [
            ("amd64-unknown-linux-gnu", "x86_64-unknown-linux-gnu", true),
            ("x86_64-pc-linux-gnu", "x86_64-unknown-linux-gnu", false),
            ("x86_64-pc-linux-gnu", "x86_64-pc-linux-musl", false),
            ("x86_64-pc-linux5.1-gnu", "x86_64-pc-linux-gnu", true),
            ("x86_64-pc-linux-gnux32", "x86_64-pc-linux-gnu", false),
            ("amdgcn-foo-amdhsa", "amdgcn-bar-amdhsa", true),
            ("amdgcn-unknown-amdhsa", "amdgcn-amd-amdhsa", false),
            ("amdgcn-amd-amdhsa1.0", "amdgcn-amd-amdhsa", true),
            ("arm-pc-linux-gnueabi", "thumb-pc-linux-gnueabi", true),
            ("armv7-pc-linux-gnueabi", "arm-pc-linux-gnueabi", false),
            ("armv7a-pc-linux-gnueabi", "armv7l-pc-linux-gnueabi", true),
            ("armv7-pc-linux-gnueabi", "thumbv7-pc-linux-gnueabi", true),
            ("armv6m-none-none-eabi", "thumbv6m-none-none-eabi", true),
            ("aarch64-pc-linux-gnu", "arm64-pc-linux-gnu", true),
            ("aarch64v8.2a-pc-linux-gnu", "aarch64-pc-linux-gnu", false),
            (
                "arm64-apple-macosx11-gnu",
                "arm64-apple-macosx-macabi",
                true,
            ),
            ("x86_64-pc-windows-msvc", "x86_64-pc-win32-msvc", true),
            ("x86_64-pc-windows-elf", "x86_64-pc-windows-msvc", false),
            (
                "spirv64v1.5-unknown-unknown",
                "spirv64v1.6-unknown-unknown",
                false,
            ),
            ("gfx-unknown-linux", "foo-unknown-linux", true),
        ];
        for (left, right, expected) in pairs {
            let serves = triple(left).serves(&triple(right));
            assert_eq!(serves, expected, "{left} for {right}");
        }
    }

    /// Taken and refused by `-targets` of `clang-offload-bundler` 22.1.
    #[test]
    fn knows_the_architectures_that_llvm_knows() {
        let known = "armv99 armv7xyz armv7eb armebv7 thumbv6m armv aarch64v8a arm64v8 kalimbafoo \
            spirv1.5 spirv64v1.6 dxilv1.9 bpf_le aarch64_bev8a arm64_32v8 arm64ev8 x86_64h xscaleeb";
        let unknown = "thumbv2 aarch64foo armfoo spirv64v1.7 spirv1.4 bpffoo arm64foo xscalefoo \
            arm64ecfoo AMDGCN x86 gfx906 armv7ebeb";
        for (words, expected) in [(known, true), (unknown, false)] {
            for word in words.split_whitespace() {
                let triple = triple(&format!("{word}-unknown-linux-gnu"));
                assert_eq!(triple.has_known_arch(), expected, "{word}");
            }
        }
        assert!(!triple("linux-x86_64-gnu").has_known_arch());
    }
}
