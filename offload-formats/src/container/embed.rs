//! Writes objects that contain only offload binaries, for a linker wrapper or for a program.
//!
//! | format | [`Flavor::Excluded`]                         | [`Flavor::Allocated`]                 |
//! |--------|----------------------------------------------|---------------------------------------|
//! | ELF    | `.llvm.offloading`, its type, `SHF_EXCLUDE`  | the same with `SHF_ALLOC`             |
//! | COFF   | `.llvm.offloading`, removed and discardable  | the same name, read-only data         |
//! | Mach-O | `__LLVM,__offloading`                        | `__TEXT,__offloading`                 |
//!
//! ELF and COFF objects are those of clang 22's `-fembed-offload-object`. LLVM defines no Mach-O form and
//! clang reports an error, so the form is ours: linkers drop the segment `__LLVM`. Offload binaries are
//! little-endian for every host.
//!
//! This module makes the headers; the caller copies the content, which may be large. For
//! hosts that are not in the tables, [`embed_source`] returns C source that embeds a file.

use std::fmt;

use object::{elf, macho, pe};

use super::elf::{ElfWriteError, Machine, OFFLOADING_SECTION, SHT_LLVM_OFFLOADING, check};
use crate::format::bytes::Alignment;
use crate::format::pieces::{self, Piece};
use crate::names::Triple;

/// Tells if linkers keep the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flavor {
    /// Linkers leave it out: images that a linker wrapper links.
    Excluded,
    /// Programs load it: linked images.
    Allocated,
}

/// A host that objects can be written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host(HostForm);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostForm {
    Elf {
        machine: Machine,
        form: FieldForm,
    },
    Coff {
        machine: u16,
    },
    MachO {
        processor: u32,
        subtype: u32,
        /// The oldest macOS that has such processors and that Rust supports.
        oldest: u32,
    },
}

/// Rows: architecture, prefix of the environment, machine, flags as clang 22 writes
/// them, form of fields.
const ELF: [(&str, &str, u16, u32, FieldForm); 11] = [
    (
        "x86_64",
        "gnux32",
        elf::EM_X86_64.0,
        0,
        FieldForm::LITTLE_32,
    ),
    ("x86_64", "", elf::EM_X86_64.0, 0, FieldForm::LITTLE_64),
    ("i386", "", elf::EM_386.0, 0, FieldForm::LITTLE_32),
    ("i586", "", elf::EM_386.0, 0, FieldForm::LITTLE_32),
    ("i686", "", elf::EM_386.0, 0, FieldForm::LITTLE_32),
    ("aarch64", "", elf::EM_AARCH64.0, 0, FieldForm::LITTLE_64),
    // Version 5 of the ABI.
    ("arm", "", elf::EM_ARM.0, 0x0500_0000, FieldForm::LITTLE_32),
    // Compressed instructions, hardware floating point of double precision.
    ("riscv64", "", elf::EM_RISCV.0, 5, FieldForm::LITTLE_64),
    ("powerpc64le", "", elf::EM_PPC64.0, 2, FieldForm::LITTLE_64),
    ("s390x", "", elf::EM_S390.0, 0, FieldForm::BIG_64),
    (
        "loongarch64",
        "",
        elf::EM_LOONGARCH.0,
        0x43,
        FieldForm::LITTLE_64,
    ),
];

const COFF: [(&str, u16); 4] = [
    ("x86_64", pe::IMAGE_FILE_MACHINE_AMD64.0),
    ("aarch64", pe::IMAGE_FILE_MACHINE_ARM64.0),
    ("i586", pe::IMAGE_FILE_MACHINE_I386.0),
    ("i686", pe::IMAGE_FILE_MACHINE_I386.0),
];

/// Rows: architecture, processor, subtype, and the version of macOS, 10.12 or 11.0.
const MACHO: [(&str, u32, u32, u32); 3] = [
    ("x86_64", macho::CPU_TYPE_X86_64.0, 3, 0x000a_0c00),
    ("aarch64", macho::CPU_TYPE_ARM64.0, 0, 0x000b_0000),
    ("arm64", macho::CPU_TYPE_ARM64.0, 0, 0x000b_0000),
];

impl Host {
    /// Returns the host of a triple; `None` if objects for it cannot be written.
    #[must_use]
    pub fn of(triple: &Triple) -> Option<Self> {
        let (arch, os) = (triple.arch(), triple.os());
        // Versions are part of the word: `armv7`, `macos11`.
        let arch = match arch {
            arch if arch.starts_with("armv") && !arch.ends_with("eb") => "arm",
            arch => arch,
        };
        let form = if os.starts_with("windows") {
            let (_, machine) = *COFF.iter().find(|row| row.0 == arch)?;
            HostForm::Coff { machine }
        } else if os.starts_with("macos") || os.starts_with("darwin") {
            let (_, processor, subtype, oldest) = *MACHO.iter().find(|row| row.0 == arch)?;
            HostForm::MachO {
                processor,
                subtype,
                oldest,
            }
        } else {
            let environment = triple.environment();
            let row = ELF
                .iter()
                .find(|row| row.0 == arch && (row.1.is_empty() || environment.starts_with(row.1)));
            let (_, _, number, flags, form) = *row?;
            let machine = Machine { number, flags };
            HostForm::Elf { machine, form }
        };
        Some(Self(form))
    }

    /// Returns the host of a little-endian ELF64 machine.
    fn of_machine(machine: Machine) -> Self {
        Self(HostForm::Elf {
            machine,
            form: FieldForm::LITTLE_64,
        })
    }
}

/// Returns an object for `host` with `content`: consecutive offload binaries, which are not
/// checked. Inputs keep their numbers in `content`.
///
/// # Errors
///
/// Fails if the content is larger than the format allows.
pub fn embed(host: Host, flavor: Flavor, content: &[Piece]) -> Result<Vec<Piece>, EmbedError> {
    let size = content.iter().try_fold(0_u64, |size, piece| {
        let sum = size.checked_add(piece.size());
        sum.ok_or(EmbedError::TooLarge { size })
    })?;
    let (before, after) = match host.0 {
        HostForm::Elf { machine, form } => of_elf(machine, form, flavor, size)?,
        HostForm::Coff { machine } => of_coff(machine, flavor, size)?,
        HostForm::MachO {
            processor,
            subtype,
            oldest,
        } => of_macho([processor, subtype, oldest], flavor, size),
    };
    let mut pieces = vec![Piece::Bytes(before)];
    pieces.extend_from_slice(content);
    pieces.extend((!after.is_empty()).then_some(Piece::Bytes(after)));
    Ok(pieces)
}

/// Returns an object as [`embed`] does, in memory.
///
/// # Errors
///
/// Fails as [`embed`] does.
pub fn embed_bytes(host: Host, flavor: Flavor, content: &[u8]) -> Result<Vec<u8>, EmbedError> {
    let size = content.len() as u64;
    let copy = Piece::Copy {
        input: 0,
        range: 0..size,
    };
    let object = embed(host, flavor, &[copy])?;
    pieces::to_bytes(&object, &[content]).ok_or(EmbedError::TooLarge { size })
}

/// Returns an ELF object that contains only offload binaries for the linker wrapper.
///
/// # Errors
///
/// Fails if objects for that machine cannot be written.
pub fn elf_object(machine: Machine, offload_binaries: &[u8]) -> Result<Vec<u8>, ElfWriteError> {
    check(machine)?;
    let host = Host::of_machine(machine);
    let object = embed_bytes(host, Flavor::Excluded, offload_binaries);
    object.map_err(|EmbedError::TooLarge { size: value }| ElfWriteError::TooLarge { value })
}

/// Names of the sections of ELF objects.
const ELF_NAMES: &[u8] = b"\0.llvm.offloading\0.note.GNU-stack\0.shstrtab\0";

/// Returns the bytes before and after the content of an ELF object.
fn of_elf(
    machine: Machine,
    form: FieldForm,
    flavor: Flavor,
    size: u64,
) -> Result<(Vec<u8>, Vec<u8>), EmbedError> {
    const WIDE: (u64, u16, u16) = (64, 64, 64);
    const NARROW: (u64, u16, u16) = (56, 52, 40);
    let (start, header_size, section_size) = if form.wide { WIDE } else { NARROW };
    let too_large = EmbedError::TooLarge { size };
    let names = start.checked_add(size).ok_or(too_large)?;
    let names_end = names.checked_add(ELF_NAMES.len() as u64).ok_or(too_large)?;
    let headers = Alignment::EIGHT.align(names_end).ok_or(too_large)?;
    if !form.wide && u32::try_from(headers).is_err() {
        return Err(too_large);
    }
    let mut fields = FieldWriter::new(form);
    fields.bytes(&[0x7f, b'E', b'L', b'F']);
    fields.bytes(&[1 + u8::from(form.wide), 1 + u8::from(form.big_endian), 1]);
    fields.bytes(&[0; 9]);
    fields.half(elf::ET_REL.0);
    fields.half(machine.number);
    fields.word(1);
    fields.native(0);
    fields.native(0);
    fields.native(headers);
    fields.word(machine.flags);
    for half in [header_size, 0, 0, section_size, 4, 3] {
        fields.half(half);
    }
    let mut after = FieldWriter::new(form);
    after.bytes(ELF_NAMES);
    let padding = headers - names_end;
    after.bytes(&vec![0; padding as usize]);
    let flags = match flavor {
        Flavor::Excluded => elf::SHF_EXCLUDE.0,
        Flavor::Allocated => elf::SHF_ALLOC.0,
    };
    // Name, type, flags, offset, size, alignment. Without `.note.GNU-stack` linkers make the stack
    // executable.
    for (name, kind, flags, offset, size, alignment) in [
        (0, elf::SHT_NULL.0, 0, 0, 0, 0),
        (1, SHT_LLVM_OFFLOADING, flags, start, size, 8),
        (18, elf::SHT_PROGBITS.0, 0, names, 0, 1),
        (34, elf::SHT_STRTAB.0, 0, names, ELF_NAMES.len() as u64, 1),
    ] {
        after.word(name);
        after.word(kind);
        after.native(flags);
        after.native(0);
        after.native(offset);
        after.native(size);
        after.word(0);
        after.word(0);
        after.native(alignment);
        after.native(0);
    }
    let mut before = fields.bytes;
    before.resize(start as usize, 0);
    Ok((before, after.bytes))
}

fn of_coff(machine: u16, flavor: Flavor, size: u64) -> Result<(Vec<u8>, Vec<u8>), EmbedError> {
    const START: u32 = 20 + 40;
    let too_large = EmbedError::TooLarge { size };
    let size = u32::try_from(size).map_err(|_| too_large)?;
    let end = START.checked_add(size).ok_or(too_large)?;
    let characteristics = match flavor {
        Flavor::Excluded => pe::IMAGE_SCN_LNK_REMOVE | pe::IMAGE_SCN_MEM_DISCARDABLE,
        Flavor::Allocated => pe::IMAGE_SCN_CNT_INITIALIZED_DATA | pe::IMAGE_SCN_MEM_READ,
    } | pe::IMAGE_SCN_ALIGN_8BYTES;
    let mut fields = FieldWriter::new(FieldForm::LITTLE_32);
    fields.half(machine);
    fields.half(1);
    // No symbols. The strings start at their end.
    for word in [0, end, 0, 0] {
        fields.word(word);
    }
    // Name: offset 4 of the strings.
    fields.bytes(b"/4\0\0\0\0\0\0");
    for word in [0, 0, size, START, 0, 0, 0, characteristics.0] {
        fields.word(word);
    }
    let mut strings = FieldWriter::new(FieldForm::LITTLE_32);
    strings.word(4 + OFFLOADING_SECTION.len() as u32 + 1);
    strings.bytes(OFFLOADING_SECTION.as_bytes());
    strings.bytes(&[0]);
    Ok((fields.bytes, strings.bytes))
}

fn of_macho(
    [processor, subtype, oldest]: [u32; 3],
    flavor: Flavor,
    size: u64,
) -> (Vec<u8>, Vec<u8>) {
    const SEGMENT_SIZE: u32 = 72 + 80;
    const BUILD_SIZE: u32 = 24;
    const START: u32 = 32 + SEGMENT_SIZE + BUILD_SIZE;
    let mut fields = FieldWriter::new(FieldForm::LITTLE_64);
    // Two commands; no flags.
    for word in [macho::MH_MAGIC_64, processor, subtype, macho::MH_OBJECT.0] {
        fields.word(word);
    }
    for word in [2, SEGMENT_SIZE + BUILD_SIZE, 0, 0] {
        fields.word(word);
    }
    let (segment, flags) = match flavor {
        Flavor::Excluded => (b"__LLVM", 0),
        // Nothing refers to the section, and linkers must keep it.
        Flavor::Allocated => (b"__TEXT", macho::S_ATTR_NO_DEAD_STRIP.0),
    };
    let name = |name: &[u8]| {
        let mut field = name.to_vec();
        field.resize(16, 0);
        field
    };
    fields.word(macho::LC_SEGMENT_64.0);
    fields.word(SEGMENT_SIZE);
    // Objects have one segment, without a name.
    fields.bytes(&name(b""));
    for native in [0, size, START.into(), size] {
        fields.native(native);
    }
    // Protection (read, write, execute), twice; one section.
    for word in [7, 7, 1, 0] {
        fields.word(word);
    }
    fields.bytes(&name(b"__offloading"));
    fields.bytes(&name(segment));
    fields.native(0);
    fields.native(size);
    // The exponent of the alignment, 8.
    for word in [START, 3, 0, 0, flags, 0, 0, 0] {
        fields.word(word);
    }
    for word in [
        macho::LC_BUILD_VERSION.0,
        BUILD_SIZE,
        macho::PLATFORM_MACOS.0,
    ] {
        fields.word(word);
    }
    for word in [oldest, 0, 0] {
        fields.word(word);
    }
    (fields.bytes, Vec::new())
}

/// Byte order of fields, and size of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldForm {
    /// Addresses of 8 bytes instead of 4.
    wide: bool,
    big_endian: bool,
}

impl FieldForm {
    const LITTLE_32: Self = Self {
        wide: false,
        big_endian: false,
    };
    const LITTLE_64: Self = Self {
        wide: true,
        ..Self::LITTLE_32
    };
    const BIG_64: Self = Self {
        big_endian: true,
        ..Self::LITTLE_64
    };
}

/// Writes fields of one form.
struct FieldWriter {
    form: FieldForm,
    bytes: Vec<u8>,
}

impl FieldWriter {
    fn new(form: FieldForm) -> Self {
        Self {
            form,
            bytes: Vec::new(),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn half(&mut self, value: u16) {
        let bytes = value.to_le_bytes();
        self.ordered(bytes);
    }

    fn word(&mut self, value: u32) {
        self.ordered(value.to_le_bytes());
    }

    /// Writes a number of the size of an address; the caller has checked that it fits.
    fn native(&mut self, value: u64) {
        if self.form.wide {
            self.ordered(value.to_le_bytes());
        } else {
            self.word(value as u32);
        }
    }

    fn ordered<const N: usize>(&mut self, mut bytes: [u8; N]) {
        if self.form.big_endian {
            bytes.reverse();
        }
        self.bytes(&bytes);
    }
}

/// Returns C source that embeds the file `file_name`, for any host and compilers whose assembler
/// knows `.incbin`, such as gcc and clang. The compiler resolves the name.
#[must_use]
pub fn embed_source(file_name: &str, flavor: Flavor) -> String {
    let (elf, coff, macho) = match flavor {
        Flavor::Excluded => ("e", "ynD", "__LLVM,__offloading"),
        Flavor::Allocated => ("a", "dr", "__TEXT,__offloading,regular,no_dead_strip"),
    };
    // Escaped for the assembler, then for C. Both know octal escapes.
    let mut quoted = String::new();
    for byte in file_name.bytes() {
        match byte {
            b'"' | b'\\' => quoted.push_str(&format!("\\\\\\{}", byte as char)),
            b' '..=b'~' if byte != b'?' => quoted.push(byte.into()),
            other => quoted.push_str(&format!("\\\\{other:03o}")),
        }
    }
    let line = |text: &str| format!("    \"{text}\\n\"\n");
    let section = |condition: &str, text: String| format!("#{condition}\n{}", line(&text));
    // GNU as has no name for the type. `%` because `@` starts comments on ARM.
    let elf = format!(".section {OFFLOADING_SECTION},\\\"{elf}\\\",%{SHT_LLVM_OFFLOADING:#x}");
    let coff = format!(".section {OFFLOADING_SECTION},\\\"{coff}\\\"");
    let macho = format!(".section {macho}");
    [
        "__asm__(\n",
        &section("if defined(__APPLE__)", macho),
        &section("elif defined(_WIN32)", coff),
        &section("else", elf),
        "#endif\n",
        &line(".p2align 3"),
        &line(&format!(".incbin \\\"{quoted}\\\"")),
        &line(".text"),
        ");\n",
    ]
    .concat()
}

/// Reason why an object with offload binaries cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmbedError {
    /// The content is too large for the format.
    TooLarge {
        /// Size of the content in bytes.
        size: u64,
    },
}

impl fmt::Display for EmbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { size } => {
                write!(
                    f,
                    "content of size {size:#x} is too large for an object of this format"
                )
            }
        }
    }
}

impl std::error::Error for EmbedError {}
