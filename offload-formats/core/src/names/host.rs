//! Hosts, as the objects for them name them: the machine, the object format and the C runtime.

/// A host's machine, as the headers of its objects name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// `e_machine`.
    pub number: u16,
    /// `e_flags`; some linkers refuse objects whose flags differ.
    pub flags: u32,
}

/// Architectures of triples, with their machine and the flags of Linux distributions: those for which
/// `offload-formats` writes ELF objects.
#[doc(hidden)]
pub const MACHINES: [(&str, Machine); 4] = [
    ("x86_64", Machine::X86_64),
    ("aarch64", Machine::AARCH64),
    ("riscv64", Machine::RISCV64),
    ("powerpc64le", Machine::POWERPC64LE),
];

/// Returns a triple of Rust as clang spells it: Rust names the extensions of RISC-V in the architecture (`riscv64gc`).
#[doc(hidden)]
#[must_use]
pub fn clang_triple(triple: &str) -> String {
    let (arch, rest) = triple.split_once('-').unwrap_or((triple, ""));
    let families = ["riscv64", "riscv32"];
    match families.iter().find(|family| arch.starts_with(**family)) {
        Some(family) => format!("{family}-{rest}"),
        None => triple.to_owned(),
    }
}

#[cfg(feature = "tools")]
impl Machine {
    /// Returns the machine of a host; `None` if objects for it cannot be written.
    #[must_use]
    pub fn of(triple: &super::Triple) -> Option<Self> {
        let row = MACHINES.iter().find(|(arch, _)| *arch == triple.arch());
        row.map(|(_, machine)| *machine)
    }
}

impl Machine {
    /// x86-64.
    pub const X86_64: Self = Self {
        number: 62,
        flags: 0,
    };
    /// AArch64, little-endian.
    pub const AARCH64: Self = Self {
        number: 183,
        flags: 0,
    };
    /// RISC-V with compressed instructions and hardware floating point of double precision.
    pub const RISCV64: Self = Self {
        number: 243,
        flags: 5,
    };
    /// POWER, little-endian, second version of the ABI.
    pub const POWERPC64LE: Self = Self {
        number: 21,
        flags: 2,
    };
}

/// The C runtime of a Windows host, which determines the section of constructors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WindowsAbi {
    /// Microsoft's, also with clang.
    Msvc,
    /// MinGW's, with GNU ld and lld.
    Gnu,
}

/// Format of a host's objects, for hosts with machine code here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFormat {
    /// ELF, for that machine.
    Elf(Machine),
    /// COFF, for x86-64 Windows.
    Coff(WindowsAbi),
}

impl HostFormat {
    /// Returns the machine of an ELF host.
    #[must_use]
    pub const fn elf(self) -> Option<Machine> {
        match self {
            Self::Elf(machine) => Some(machine),
            Self::Coff(_) => None,
        }
    }
}

/// A host whose linker reads the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataHost {
    /// ELF of a 64-bit little-endian machine.
    Elf(Machine),
    /// COFF of x86-64.
    Coff,
}
