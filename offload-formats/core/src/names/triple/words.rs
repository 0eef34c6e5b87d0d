//! The words of triples that LLVM knows, and their synonyms. Observed with LLVM 22.1.

/// Parts of the first field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arch<'a> {
    /// The same name for all spellings.
    pub name: &'static str,
    /// Sub-architecture, perhaps empty.
    pub sub: &'a str,
}

/// Parses the architecture in a word.
pub(super) fn arch(word: &str) -> Option<Arch<'_>> {
    let row = ARCHITECTURES
        .iter()
        .find(|(_, _, spellings)| spellings.contains(&word));
    if let Some((name, sub, _)) = row {
        return Some(Arch { name, sub });
    }
    // `spirv64v1.6`, `dxilv1.3`; `spirv1.5` has no second `v`.
    for (name, versions) in VERSIONED {
        let version = word.strip_prefix(name);
        let version = version.map(|rest| rest.strip_prefix('v').unwrap_or(rest));
        if let Some(sub) = version.filter(|version| versions.contains(version)) {
            return Some(Arch { name, sub });
        }
    }
    if word.starts_with("kalimba") {
        return Some(Arch {
            name: "kalimba",
            sub: "",
        });
    }
    // Main branch: `amdgpu9.0a` is `amdgcn` with a sub-architecture.
    if let Some(sub) = word.strip_prefix("amdgpu") {
        let name = "amdgcn";
        return sub
            .starts_with(|char: char| char.is_ascii_digit())
            .then_some(Arch { name, sub });
    }
    arm(word)
}

/// Parses `armv7a`, `armv7eb`, `thumbebv7`, `aarch64v8a`: any version with a digit, known or not.
fn arm(word: &str) -> Option<Arch<'_>> {
    let (prefix, little, big) = ARM_PREFIXES
        .into_iter()
        .find(|(prefix, _, _)| word.starts_with(prefix))?;
    let version = word.strip_prefix(prefix)?;
    let (name, version) = match version.strip_suffix("eb") {
        Some(version) if little != "aarch64" && little != big => (big, version),
        _ => (little, version),
    };
    let digits = version.strip_prefix('v')?;
    if !digits.is_empty() && !digits.starts_with(|char: char| char.is_ascii_digit()) {
        return None;
    }
    let thumb = name.starts_with("thumb");
    if version.contains("eb") || (thumb && (digits.starts_with('2') || digits.starts_with('3'))) {
        return None;
    }
    let row = ARM_VERSIONS
        .iter()
        .find(|(_, spellings)| spellings.contains(&digits));
    let sub = row.map_or("", |(sub, _)| *sub);
    let name = match (sub, name) {
        // These have only Thumb instructions.
        ("6m", "arm") => "thumb",
        ("6m", "armeb") => "thumbeb",
        _ => name,
    };
    Some(Arch { name, sub })
}

/// Returns the vendor in a word.
pub(super) fn vendor(word: &str) -> Option<&'static str> {
    let vendor = VENDORS.into_iter().find(|vendor| *vendor == word);
    vendor.map(|vendor| if vendor == "sie" { "scei" } else { vendor })
}

/// Returns the operating system at the start of a word; a version may follow.
pub(super) fn os(word: &str) -> Option<&'static str> {
    let os = SYSTEMS.into_iter().find(|os| word.starts_with(os));
    os.map(|os| match os {
        "win32" => "windows",
        "xros" => "visionos",
        _ => os,
    })
}

/// Returns the environment at the start of a word: the longest, because `gnueabihf` starts with
/// `gnu`.
pub(super) fn environment(word: &str) -> Option<&'static str> {
    ENVIRONMENTS
        .into_iter()
        .filter(|environment| word.starts_with(environment))
        .max_by_key(|environment| environment.len())
}

/// Returns the object format at the end of the environment's word.
pub(super) fn object_format(word: &str) -> Option<&'static str> {
    OBJECT_FORMATS
        .into_iter()
        .find(|format| word.ends_with(format))
}

/// Returns the object format if the environment does not name one.
pub(super) fn default_format(arch: &str, os: &str) -> &'static str {
    const DARWIN: [&str; 8] = [
        "darwin",
        "macos",
        "ios",
        "tvos",
        "watchos",
        "driverkit",
        "visionos",
        "bridgeos",
    ];
    let apple = DARWIN.contains(&os);
    match (arch, os) {
        ("wasm32" | "wasm64", _) => "wasm",
        ("spirv" | "spirv32" | "spirv64", _) => "spirv",
        ("dxil", _) => "dxcontainer",
        ("ppc" | "ppc64", "aix") => "xcoff",
        ("systemz", "zos") => "goff",
        ("aarch64" | "aarch64_32" | "arm" | "thumb" | "x86" | "x86_64" | "ppc" | "ppc64", _)
            if apple =>
        {
            "macho"
        }
        ("aarch64" | "aarch64_32" | "arm" | "thumb" | "x86" | "x86_64", "windows" | "uefi")
        | ("mips" | "mipsel", "windows") => "coff",
        _ => "elf",
    }
}

/// Each architecture with name, sub-architecture and spellings. `bpf` has the byte order of LLVM's
/// machine.
const ARCHITECTURES: &[(&str, &str, &[&str])] = &[
    (
        "x86",
        "",
        &["i386", "i486", "i586", "i686", "i786", "i886", "i986"],
    ),
    ("x86_64", "", &["amd64", "x86_64", "x86_64h"]),
    ("ppc", "", &["powerpc", "ppc", "ppc32"]),
    ("ppc", "spe", &["powerpcspe"]),
    ("ppcle", "", &["powerpcle", "ppcle", "ppc32le"]),
    ("ppc64", "", &["powerpc64", "ppu", "ppc64"]),
    ("ppc64le", "", &["powerpc64le", "ppc64le"]),
    ("arm", "5te", &["xscale"]),
    ("armeb", "5te", &["xscaleeb"]),
    ("aarch64", "8", &["aarch64", "arm64"]),
    ("aarch64_be", "", &["aarch64_be"]),
    ("aarch64_32", "", &["aarch64_32", "arm64_32"]),
    ("aarch64", "arm64e", &["arm64e"]),
    ("aarch64", "arm64ec", &["arm64ec"]),
    ("arc", "", &["arc"]),
    ("arm", "", &["arm"]),
    ("armeb", "", &["armeb"]),
    ("thumb", "", &["thumb"]),
    ("thumbeb", "", &["thumbeb"]),
    ("avr", "", &["avr"]),
    ("m68k", "", &["m68k"]),
    ("msp430", "", &["msp430"]),
    ("mips", "", &["mips", "mipseb", "mipsallegrex"]),
    ("mips", "r6", &["mipsisa32r6", "mipsr6"]),
    ("mipsel", "", &["mipsel", "mipsallegrexel"]),
    ("mipsel", "r6", &["mipsisa32r6el", "mipsr6el"]),
    ("mips64", "", &["mips64", "mips64eb", "mipsn32"]),
    ("mips64", "r6", &["mipsisa64r6", "mips64r6", "mipsn32r6"]),
    ("mips64el", "", &["mips64el", "mipsn32el"]),
    (
        "mips64el",
        "r6",
        &["mipsisa64r6el", "mips64r6el", "mipsn32r6el"],
    ),
    ("r600", "", &["r600"]),
    ("amdgcn", "", &["amdgcn", "amdgpu"]),
    ("riscv32", "", &["riscv32"]),
    ("riscv64", "", &["riscv64"]),
    ("riscv32be", "", &["riscv32be"]),
    ("riscv64be", "", &["riscv64be"]),
    ("hexagon", "", &["hexagon"]),
    ("systemz", "", &["s390x", "systemz"]),
    ("sparc", "", &["sparc"]),
    ("sparcel", "", &["sparcel"]),
    ("sparcv9", "", &["sparcv9", "sparc64"]),
    ("tce", "", &["tce"]),
    ("tcele", "", &["tcele"]),
    ("xcore", "", &["xcore"]),
    ("nvptx", "", &["nvptx"]),
    ("nvptx64", "", &["nvptx64"]),
    ("amdil", "", &["amdil"]),
    ("amdil64", "", &["amdil64"]),
    ("hsail", "", &["hsail"]),
    ("hsail64", "", &["hsail64"]),
    ("spir", "", &["spir"]),
    ("spir64", "", &["spir64"]),
    ("spirv", "", &["spirv"]),
    ("spirv32", "", &["spirv32"]),
    ("spirv64", "", &["spirv64"]),
    ("lanai", "", &["lanai"]),
    ("renderscript32", "", &["renderscript32"]),
    ("renderscript64", "", &["renderscript64"]),
    ("shave", "", &["shave"]),
    ("ve", "", &["ve"]),
    ("wasm32", "", &["wasm32"]),
    ("wasm64", "", &["wasm64"]),
    ("csky", "", &["csky"]),
    ("loongarch32", "", &["loongarch32"]),
    ("loongarch64", "", &["loongarch64"]),
    ("dxil", "", &["dxil"]),
    ("xtensa", "", &["xtensa"]),
    ("bpfel", "", &["bpf", "bpf_le", "bpfel"]),
    ("bpfeb", "", &["bpf_be", "bpfeb"]),
];

/// Architectures whose name ends in one of these versions.
const VERSIONED: [(&str, &[&str]); 4] = [
    (
        "spirv32",
        &["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6"],
    ),
    (
        "spirv64",
        &["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6"],
    ),
    ("spirv", &["1.5", "1.6"]),
    (
        "dxil",
        &[
            "1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9",
        ],
    ),
];

/// Prefixes of ARM's architectures, the longer first; name, and name of the big-endian form.
const ARM_PREFIXES: [(&str, &str, &str); 10] = [
    ("arm64_32", "aarch64", "aarch64"),
    ("arm64e", "aarch64", "aarch64"),
    ("arm64", "aarch64", "aarch64"),
    ("aarch64_32", "aarch64", "aarch64"),
    ("aarch64_be", "aarch64_be", "aarch64_be"),
    ("aarch64", "aarch64", "aarch64"),
    ("armeb", "armeb", "armeb"),
    ("arm", "arm", "armeb"),
    ("thumbeb", "thumbeb", "thumbeb"),
    ("thumb", "thumb", "thumbeb"),
];

/// Each sub-architecture with its spellings after the `v`. Version 4 is the default, without a
/// sub-architecture.
const ARM_VERSIONS: &[(&str, &[&str])] = &[
    ("4t", &["4t"]),
    ("5", &["5", "5t"]),
    ("5te", &["5e", "5te", "5tej"]),
    ("6", &["6", "6j"]),
    ("6k", &["6k", "6hl", "6z", "6zk", "6kz"]),
    ("6t2", &["6t2"]),
    ("6m", &["6m", "6sm"]),
    ("7", &["7", "7a", "7hl", "7l", "7r"]),
    ("7ve", &["7ve"]),
    ("7k", &["7k"]),
    ("7m", &["7m"]),
    ("7s", &["7s"]),
    ("7em", &["7em"]),
    ("8", &["8", "8a", "8l"]),
    ("8.1", &["8.1a"]),
    ("8.2", &["8.2a"]),
    ("8.3", &["8.3a"]),
    ("8.4", &["8.4a"]),
    ("8.5", &["8.5a"]),
    ("8.6", &["8.6a"]),
    ("8.7", &["8.7a"]),
    ("8.8", &["8.8a"]),
    ("8.9", &["8.9a"]),
    ("9", &["9", "9a"]),
    ("9.1", &["9.1a"]),
    ("9.2", &["9.2a"]),
    ("9.3", &["9.3a"]),
    ("9.4", &["9.4a"]),
    ("9.5", &["9.5a"]),
    ("9.6", &["9.6a"]),
    ("9.7", &["9.7a"]),
    ("8r", &["8r"]),
    ("8m.base", &["8m.base"]),
    ("8m.main", &["8m.main"]),
    ("8.1m.main", &["8.1m.main"]),
];

const VENDORS: [&str; 16] = [
    "apple", "pc", "scei", "sie", "fsl", "ibm", "img", "mti", "nvidia", "csr", "amd", "mesa",
    "suse", "oe", "meta", "intel",
];

/// Starts of the words of operating systems; a version may follow each.
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

const ENVIRONMENTS: [&str; 54] = [
    "eabihf",
    "eabi",
    "gnuabin32",
    "gnuabi64",
    "gnueabihft64",
    "gnueabihf",
    "gnueabit64",
    "gnueabi",
    "gnuf32",
    "gnuf64",
    "gnusf",
    "gnux32",
    "gnu_ilp32",
    "code16",
    "gnut64",
    "gnu",
    "android",
    "muslabin32",
    "muslabi64",
    "musleabihf",
    "musleabi",
    "muslf32",
    "muslsf",
    "muslx32",
    "muslwali",
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
];

const OBJECT_FORMATS: [&str; 7] = ["xcoff", "coff", "elf", "goff", "macho", "wasm", "spirv"];
