//! Target triples: architecture, vendor, operating system, environment.
//!
//! `x86_64-pc-linux-gnu`, `x86_64-linux-gnu` and `amdgcn-amd-amdhsa` are all in use. A triple is
//! kept as written, because files are compared by their bytes, and displayed as LLVM normalises
//! it. Which words LLVM knows is observed from release 22.1.

use std::fmt;

/// A target triple.
///
/// Equality is that of the normalised forms: `x86_64-linux-gnu` equals `x86_64-unknown-linux-gnu`.
#[derive(Clone, Debug)]
pub struct Triple {
    text: String,
    /// Normalised; one or more, each without a dash.
    fields: Vec<String>,
}

impl Triple {
    /// Reads a triple of one to four fields, or more, which LLVM counts to the environment.
    ///
    /// Words that LLVM does not know are accepted.
    ///
    /// # Errors
    ///
    /// When the text is empty, or a character cannot be in a triple.
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

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Architecture, such as `amdgcn`.
    #[must_use]
    pub fn arch(&self) -> &str {
        self.field(0)
    }

    /// Vendor, such as `amd`; `unknown` or empty when not given.
    #[must_use]
    pub fn vendor(&self) -> &str {
        self.field(1)
    }

    /// Operating system or runtime, such as `amdhsa`; `unknown` or empty when not given.
    #[must_use]
    pub fn os(&self) -> &str {
        self.field(2)
    }

    /// Environment, such as `gnu`; `unknown` or empty when not given.
    #[must_use]
    pub fn environment(&self) -> &str {
        self.field(3)
    }

    /// Whether it names an AMD GPU.
    #[must_use]
    pub fn is_amdgpu(&self) -> bool {
        matches!(self.arch(), "amdgcn" | "r600")
    }

    /// Whether it names an NVIDIA GPU.
    #[must_use]
    pub fn is_nvptx(&self) -> bool {
        matches!(self.arch(), "nvptx" | "nvptx64")
    }

    /// Whether it names a processor that can be a host.
    #[must_use]
    pub fn is_cpu(&self) -> bool {
        const DEVICES: [&str; 5] = ["amdil", "hsail", "spir", "renderscript", "dxil"];
        let arch = self.arch();
        let device = DEVICES.iter().any(|device| arch.starts_with(device));
        is_arch(arch) && !device && !self.is_amdgpu() && !self.is_nvptx() && arch != "shave"
    }

    fn field(&self, index: usize) -> &str {
        self.fields.get(index).map_or("", String::as_str)
    }
}

impl PartialEq for Triple {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl Eq for Triple {}

/// Normalised as LLVM does.
impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fields.join("-"))
    }
}

/// Why a text is not a triple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TripleError {
    /// No text.
    Empty,
    /// A character that no triple contains.
    Character {
        /// Which.
        char: char,
        /// In bytes from the start of the text.
        offset: usize,
    },
}

impl fmt::Display for TripleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "a triple has at least an architecture"),
            Self::Character { char, offset } => {
                write!(f, "{char:?} at offset {offset:#x} cannot be in a triple")
            }
        }
    }
}

impl std::error::Error for TripleError {}

/// What a field of a triple is about, in the order of the fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Arch,
    Vendor,
    Os,
    Environment,
}

const ROLES: [Role; 4] = [Role::Arch, Role::Vendor, Role::Os, Role::Environment];

/// Moves the words that LLVM knows to their place. `docs/differences.md#triples`.
fn normalize(text: &str) -> Vec<String> {
    let mut fields: Vec<String> = text.split('-').map(str::to_owned).collect();
    let mut fixed = [false; 4];
    for (role, fixed) in ROLES.into_iter().zip(&mut fixed) {
        let field = fields.get(role as usize);
        *fixed = field.is_some_and(|word| is_known(role, word, Moved::No));
    }
    for role in ROLES {
        let place = role as usize;
        if fixed.get(place) == Some(&true) {
            continue;
        }
        let is_fixed = |index: usize| fixed.get(index) == Some(&true);
        let found = fields
            .iter()
            .enumerate()
            .find(|(index, word)| !is_fixed(*index) && is_known(role, word, Moved::Yes));
        let Some((mut from, _)) = found else { continue };
        if from > place {
            let word = fields.get_mut(from).map(std::mem::take).unwrap_or_default();
            insert(&mut fields, place, word, is_fixed);
        }
        while from < place {
            // An empty field in front of the word moves it, and what it displaces, to the right.
            insert(&mut fields, from, String::new(), is_fixed);
            from = (from + 1..)
                .find(|index| !is_fixed(*index))
                .unwrap_or(place);
        }
        if let Some(fixed) = fixed.get_mut(place) {
            *fixed = true;
        }
    }
    if let ([true, false, false, true], [_, vendor, os, _, ..]) = (fixed, fields.as_mut_slice()) {
        if vendor == "none" && os.is_empty() {
            std::mem::swap(vendor, os);
        }
    }
    for field in fields.iter_mut().filter(|field| field.is_empty()) {
        "unknown".clone_into(field);
    }
    rename(&mut fields);
    fields
}

/// Puts `word` at `place`; what was there goes to the next field that is not fixed, until an
/// empty field takes the last.
fn insert(fields: &mut Vec<String>, place: usize, word: String, fixed: impl Fn(usize) -> bool) {
    let (mut carried, mut first) = (word, true);
    for index in (place..).filter(|index| !fixed(*index)) {
        if carried.is_empty() && !first {
            return;
        }
        first = false;
        match fields.get_mut(index) {
            Some(field) => std::mem::swap(field, &mut carried),
            None => {
                fields.resize(index, String::new());
                fields.push(carried);
                return;
            }
        }
    }
}

/// Spellings that depend on each other.
fn rename(fields: &mut Vec<String>) {
    let field = |role: Role| fields.get(role as usize).map_or("", String::as_str);
    let (vendor, environment) = (field(Role::Vendor), field(Role::Environment));
    if let Some(version) = environment.strip_prefix("androideabi") {
        let version = format!("android{version}");
        set(fields, Role::Environment, &version);
    } else if vendor == "suse" && environment == "gnueabi" {
        set(fields, Role::Environment, "gnueabihf");
    }
    let field = |role: Role| fields.get(role as usize).map_or("", String::as_str);
    let (os, environment) = (field(Role::Os), field(Role::Environment));
    let starts = |words: [&str; 2]| words.iter().any(|word| os.starts_with(word));
    let environment = if starts(["windows", "win32"]) {
        let known = is_known(Role::Environment, environment, Moved::Yes);
        if known {
            environment.to_owned()
        } else {
            "msvc".to_owned()
        }
    } else if os.starts_with("mingw") {
        "gnu".to_owned()
    } else if os.starts_with("cygwin") {
        "cygnus".to_owned()
    } else {
        return;
    };
    fields.truncate(ROLES.len());
    set(fields, Role::Os, "windows");
    set(fields, Role::Environment, &environment);
}

fn set(fields: &mut Vec<String>, role: Role, text: &str) {
    let place = role as usize;
    fields.resize(fields.len().max(place + 1), "unknown".to_owned());
    if let Some(field) = fields.get_mut(place) {
        text.clone_into(field);
    }
}

/// Whether a word is looked at where it stands, or as one to be moved: then more words count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moved {
    No,
    Yes,
}

fn is_known(role: Role, word: &str, moved: Moved) -> bool {
    let starts = |words: &[&str]| words.iter().any(|known| word.starts_with(known));
    let ends = |words: &[&str]| words.iter().any(|known| word.ends_with(known));
    match role {
        Role::Arch => is_arch(word),
        Role::Vendor => VENDORS.contains(&word),
        Role::Os => starts(&SYSTEMS) || (moved == Moved::Yes && starts(&["mingw", "cygwin"])),
        Role::Environment => {
            starts(&ENVIRONMENTS) || (moved == Moved::Yes && ends(&OBJECT_FORMATS))
        }
    }
}

fn is_arch(word: &str) -> bool {
    ARCHITECTURES.contains(&word)
        || ARCHITECTURE_FAMILIES.iter().any(|family| {
            let version = word.strip_prefix(family);
            version.is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
        })
}

const VENDORS: [&str; 16] = [
    "apple", "pc", "scei", "sie", "fsl", "ibm", "img", "mti", "nvidia", "csr", "amd", "mesa",
    "suse", "oe", "meta", "intel",
];

/// Each may be followed by a version.
const SYSTEMS: [&str; 43] = [
    "darwin",
    "dragonfly",
    "freebsd",
    "fuchsia",
    "ios",
    "kfreebsd",
    "linux",
    "lv2",
    "macos",
    "netbsd",
    "openbsd",
    "solaris",
    "uefi",
    "win32",
    "windows",
    "zos",
    "haiku",
    "rtems",
    "aix",
    "cuda",
    "nvcl",
    "amdhsa",
    "ps4",
    "ps5",
    "elfiamcu",
    "tvos",
    "watchos",
    "bridgeos",
    "driverkit",
    "xros",
    "visionos",
    "mesa3d",
    "amdpal",
    "hermit",
    "hurd",
    "wasi",
    "emscripten",
    "shadermodel",
    "liteos",
    "serenity",
    "vulkan",
    "managarm",
    "cheriotrtos",
];

/// By their beginnings, so that `gnu` stands for `gnueabihf` too.
const ENVIRONMENTS: [&str; 36] = [
    "eabi",
    "gnu",
    "code16",
    "android",
    "musl",
    "msvc",
    "itanium",
    "cygnus",
    "coreclr",
    "simulator",
    "macabi",
    "pixel",
    "vertex",
    "geometry",
    "hull",
    "domain",
    "compute",
    "library",
    "raygeneration",
    "intersection",
    "anyhit",
    "closesthit",
    "miss",
    "callable",
    "mesh",
    "amplification",
    "rootsignature",
    "opencl",
    "ohos",
    "pauthtest",
    "llvm",
    "mlibc",
    "mtia",
    "eabihf",
    "gnueabi",
    "musleabi",
];

const OBJECT_FORMATS: [&str; 7] = ["xcoff", "coff", "elf", "goff", "macho", "wasm", "spirv"];

/// A number follows, as in `armv7a` or `spirv64v1.5`.
const ARCHITECTURE_FAMILIES: [&str; 12] = [
    "armv", "armebv", "thumbv", "thumbebv", "aarch64v", "kalimba", "spirv32v", "spirv64v",
    "spirv1.", "dxilv", "amdgpu", "arm64v",
];

const ARCHITECTURES: [&str; 102] = [
    "i386",
    "i486",
    "i586",
    "i686",
    "i786",
    "i886",
    "i986",
    "amd64",
    "x86_64",
    "x86_64h",
    "powerpc",
    "powerpcspe",
    "ppc",
    "ppc32",
    "powerpcle",
    "ppcle",
    "ppc32le",
    "powerpc64",
    "ppu",
    "ppc64",
    "powerpc64le",
    "ppc64le",
    "xscale",
    "xscaleeb",
    "aarch64",
    "aarch64_be",
    "aarch64_32",
    "arc",
    "arm64",
    "arm64_32",
    "arm64e",
    "arm64ec",
    "arm",
    "armeb",
    "thumb",
    "thumbeb",
    "avr",
    "m68k",
    "msp430",
    "mips",
    "mipseb",
    "mipsallegrex",
    "mipsisa32r6",
    "mipsr6",
    "mipsel",
    "mipsallegrexel",
    "mipsisa32r6el",
    "mipsr6el",
    "mips64",
    "mips64eb",
    "mipsn32",
    "mipsisa64r6",
    "mips64r6",
    "mipsn32r6",
    "mips64el",
    "mipsn32el",
    "mipsisa64r6el",
    "mips64r6el",
    "mipsn32r6el",
    "r600",
    "amdgcn",
    "riscv32",
    "riscv64",
    "riscv32be",
    "riscv64be",
    "hexagon",
    "s390x",
    "systemz",
    "sparc",
    "sparcel",
    "sparcv9",
    "sparc64",
    "tce",
    "tcele",
    "xcore",
    "nvptx",
    "nvptx64",
    "amdil",
    "amdil64",
    "hsail",
    "hsail64",
    "spir",
    "spir64",
    "spirv",
    "spirv32",
    "spirv64",
    "lanai",
    "renderscript32",
    "renderscript64",
    "shave",
    "ve",
    "wasm32",
    "wasm64",
    "csky",
    "loongarch32",
    "loongarch64",
    "dxil",
    "xtensa",
    "bpf",
    "bpf_be",
    "bpfeb",
    "bpfel",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn triple(text: &str) -> Triple {
        Triple::parse(text).unwrap()
    }

    /// As `clang --target=<left> -print-target-triple` of release 22.1 prints.
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
        assert_eq!(message(""), "a triple has at least an architecture");
        assert_eq!(
            message("x86_64 linux"),
            "' ' at offset 0x6 cannot be in a triple"
        );
        assert_eq!(message("a,b"), "',' at offset 0x1 cannot be in a triple");
    }
}
