//! Checks that a linked image is what its target loads, and has every kernel that the host registers.

use object::elf;
use offload_formats::container::elf::{Elf, SymbolPlace, SymbolTable};
use offload_formats::container::kernels;
use offload_formats::format::bytes::ReadAt;
use offload_formats::format::ptx;
use offload_formats::names::{TargetId, Triple, elf_flags};
use std::collections::BTreeSet;
use std::fmt;

/// Reason to refuse an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckError {
    /// The image is not a valid ELF file.
    NotElf {
        /// The reader's message.
        problem: String,
    },
    /// The image is for another machine.
    Machine {
        /// `e_machine` found.
        found: u16,
        /// `e_machine` of the target.
        expected: u16,
    },
    /// The image is for another processor, or another setting of a feature.
    Flags {
        /// `e_flags` found.
        found: u32,
        /// The expected value.
        expected: String,
    },
    /// The image is not valid PTX.
    NotPtx {
        /// The reader's message.
        problem: String,
    },
    /// The image is PTX for another processor.
    PtxTarget {
        /// The `.target` found.
        found: String,
        /// The expected `.target`.
        expected: String,
    },
    /// Entries that the host registers are not defined in it.
    Undefined {
        /// Their names.
        names: Vec<String>,
    },
    /// Functions and variables that PTX uses are not defined in it.
    UndefinedInPtx {
        /// Their names.
        names: Vec<String>,
    },
    /// Variables of PTX whose initial values have addresses in shared memory.
    SharedInPtx {
        /// Names of the variables.
        names: Vec<String>,
    },
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf { problem } => write!(f, "image is not an ELF file: {problem}"),
            Self::Machine { found, expected } => {
                write!(f, "image has e_machine {found:#x}, expected {expected:#x}")
            }
            Self::Flags { found, expected } => {
                write!(f, "image has e_flags {found:#x}, expected {expected}")
            }
            Self::NotPtx { problem } => write!(f, "image is not PTX: {problem}"),
            Self::PtxTarget { found, expected } => {
                write!(f, "PTX has .target {found}, expected {expected}")
            }
            Self::Undefined { names } => write!(f, "image does not define {}", declared(names)),
            Self::UndefinedInPtx { names } => {
                write!(
                    f,
                    "PTX does not define what it uses: {} [OFF701]",
                    declared(names)
                )
            }
            Self::SharedInPtx { names } => {
                let names = names.join(", ");
                write!(
                    f,
                    "PTX initializes {names} with addresses in shared memory, which no driver loads"
                )
            }
        }
    }
}

impl std::error::Error for CheckError {}

/// Returns a list of symbols, with the declarations of those that are mangled names.
fn declared(symbols: &[String]) -> String {
    let declared = |symbol: &String| match kernels::signature(symbol) {
        declaration if declaration == *symbol => declaration,
        declaration => format!("{symbol} (`{declaration}`)"),
    };
    symbols.iter().map(declared).collect::<Vec<_>>().join(", ")
}

/// Checks the format, the machine, the processor and the symbols of a linked image.
///
/// # Errors
///
/// At the first thing that the runtime would refuse, or quietly do without.
pub fn check<'d, R: ReadAt<'d>>(
    image: R,
    triple: &Triple,
    id: &TargetId,
    entries: &BTreeSet<String>,
) -> Result<(), CheckError> {
    let not_elf = |problem: &dyn fmt::Display| CheckError::NotElf {
        problem: problem.to_string(),
    };
    let file = Elf::parse(image, 0..image.size().unwrap_or(0)).map_err(|error| not_elf(&error))?;
    if image.read_at(4, 1) != Some(&[CLASS_64]) {
        return Err(not_elf(&"it is not of 64 bits"));
    }
    let header = (file.machine, file.flags, file.abi_version);
    check_header(header, triple, id)?;
    if entries.is_empty() {
        return Ok(());
    }
    let mut missing = entries.clone();
    for table in [SymbolTable::All, SymbolTable::Dynamic] {
        let symbols = file.symbols(table).map_err(|error| not_elf(&error))?;
        let defined = symbols
            .iter()
            .filter(|symbol| symbol.place != SymbolPlace::Undefined);
        for name in defined.filter_map(|symbol| std::str::from_utf8(symbol.name).ok()) {
            missing.remove(name);
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(CheckError::Undefined {
            names: missing.into_iter().collect(),
        }),
    }
}

/// Returns the warning that libomptarget of an LLVM release ignores the images for `targets`; nothing without targets.
#[must_use]
pub fn warning_of_ignored(targets: &[&str], release: u32) -> Option<String> {
    let list = targets.join(", ");
    let images = match targets.len() {
        0 => return None,
        1 => format!("the image for {list}, which has"),
        _ => format!("the images for {list}, which have"),
    };
    Some(format!(
        "libomptarget of LLVM {release} does not load {images} the ELF format of CUDA 13\n\
         hint: build with CUDA 12 in `CUDA_PATH` and `PATH`, whose format for processors before sm_100 is older, or with LLVM 21.1.2 \
         or later"
    ))
}

/// `EI_CLASS` of 64-bit files.
const CLASS_64: u8 = 2;

/// Checks the machine and the processor of an image by three fields of its header, `e_machine`, `e_flags` and `EI_ABIVERSION`.
///
/// # Errors
///
/// When they are another target's.
pub(crate) fn check_header(
    (found, e_flags, abi_version): (u16, u32, u8),
    triple: &Triple,
    id: &TargetId,
) -> Result<(), CheckError> {
    machine(found, triple)?;
    flags(e_flags, abi_version, triple, id)
}

/// Checks that an image is PTX for the processor, has what the host registers, and defines what it uses.
///
/// # Errors
///
/// At the first thing that the driver would refuse, when the program starts.
pub(crate) fn check_ptx(
    image: &[u8],
    id: &TargetId,
    entries: &BTreeSet<String>,
) -> Result<(), CheckError> {
    let not_ptx = |problem: &dyn fmt::Display| CheckError::NotPtx {
        problem: problem.to_string(),
    };
    ptx::version(image).ok_or_else(|| not_ptx(&"it has no `.version`"))?;
    let found = ptx::target(image).ok_or_else(|| not_ptx(&"it has no `.target`"))?;
    let expected = id.to_string();
    if found != expected {
        return Err(CheckError::PtxTarget { found, expected });
    }
    let refused = kernels::refused_in_ptx(image, entries).map_err(|error| not_ptx(&error))?;
    let undefined = refused.undefined.into_iter();
    let (missing, used): (Vec<_>, Vec<_>) = undefined.partition(|name| entries.contains(name));
    if !missing.is_empty() {
        return Err(CheckError::Undefined { names: missing });
    }
    if !used.is_empty() {
        return Err(CheckError::UndefinedInPtx { names: used });
    }
    let names = refused.initialized_with_shared;
    match names.is_empty() {
        true => Ok(()),
        false => Err(CheckError::SharedInPtx { names }),
    }
}

fn machine(found: u16, triple: &Triple) -> Result<(), CheckError> {
    let expected = match triple.arch() {
        "amdgcn" => elf::EM_AMDGPU,
        "nvptx64" => elf::EM_CUDA,
        "x86_64" => elf::EM_X86_64,
        "aarch64" => elf::EM_AARCH64,
        _ => return Ok(()),
    };
    let expected = expected.0;
    if found == expected {
        Ok(())
    } else {
        Err(CheckError::Machine { found, expected })
    }
}

fn flags(found: u32, abi_version: u8, triple: &Triple, id: &TargetId) -> Result<(), CheckError> {
    let wrong = |expected: String| Err(CheckError::Flags { found, expected });
    let processor = id.processor();
    if triple.is_amdgpu() {
        // A processor that the table does not know is left to the compiler that knew it.
        let known = elf_flags::amd_machine(processor);
        if let Some(number) = known.filter(|number| found & 0xff != *number) {
            return wrong(format!("{processor} ({number:#x} in bits 0-7)"));
        }
        if let Some(feature) = elf_flags::amd_excluding_feature(id, found, abi_version) {
            return wrong(feature);
        }
    } else if triple.is_nvptx() {
        let digits = processor
            .trim_start_matches("sm_")
            .trim_end_matches(['a', 'f']);
        let number = digits.parse::<u8>();
        if number.is_ok_and(|number| elf_flags::nvidia_number(found, abi_version) != number) {
            return wrong(format!("{processor} (in bits 0-7 or 8-15)"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use offload_formats::container::elf::Machine;
    use offload_formats::format::offload_entry::EntryLayout;
    use offload_formats::format::pieces::Embedded;
    use offload_formats::registration::Global;
    use offload_formats::registration::fat_binary::{EntryTable, FatBinary, HostTable, Runtime};

    /// An ELF file for `machine` and `flags` that defines `kernel` and needs `missing`.
    fn image(machine: u16, flags: u32) -> Vec<u8> {
        let table = EntryTable::Symbol {
            symbol: "missing",
            size: 0,
        };
        let registration = FatBinary {
            runtime: Runtime::Cuda,
            bytes: Embedded::Bytes(b""),
            tables: &[HostTable {
                layout: EntryLayout::V21,
                table,
            }],
            symbols: Default::default(),
            globals: &[Global::Anchor { name: "kernel" }],
        };
        let mut bytes = registration.to_object(Machine::X86_64).unwrap();
        bytes[0x12..0x14].copy_from_slice(&machine.to_le_bytes());
        bytes[0x30..0x34].copy_from_slice(&flags.to_le_bytes());
        bytes
    }

    fn result(bytes: &[u8], triple: &str, id: &str, names: &[&str]) -> String {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let (triple, id) = (Triple::parse(triple).unwrap(), TargetId::parse(id).unwrap());
        check(bytes, &triple, &id, &names)
            .map_or_else(|error| error.to_string(), |()| "ok".to_owned())
    }

    #[test]
    fn accepts_what_the_target_loads() {
        let cpu = image(62, 0);
        assert_eq!(result(&cpu, "x86_64-pc-linux-gnu", "", &["kernel"]), "ok");
        // Flags as clang 19 writes them for gfx90a and gfx90a:sramecc+:xnack-.
        assert_eq!(
            result(
                &image(224, 0x53f),
                "amdgcn-amd-amdhsa",
                "gfx90a",
                &["kernel"]
            ),
            "ok"
        );
        assert_eq!(
            result(
                &image(224, 0xe3f),
                "amdgcn-amd-amdhsa",
                "gfx90a:sramecc+:xnack-",
                &[]
            ),
            "ok"
        );
        // "Any", of an image without functions.
        for id in ["gfx90a:xnack-", "gfx90a:sramecc-:xnack+"] {
            let result = result(&image(224, 0x53f), "amdgcn-amd-amdhsa", id, &[]);
            assert_eq!(result, "ok", "{id}");
        }
        // As ptxas 12.4 writes them for sm_80, and as 13.5 does.
        assert_eq!(
            result(
                &image(190, 0x0050_0550),
                "nvptx64-nvidia-cuda",
                "sm_80",
                &[]
            ),
            "ok"
        );
        let mut newer = image(190, 0x0600_5004);
        newer[8] = 8;
        assert_eq!(result(&newer, "nvptx64-nvidia-cuda", "sm_80", &[]), "ok");
        // Of PTX for sm_80.
        let later = image(190, 0x0050_0556);
        assert_eq!(result(&later, "nvptx64-nvidia-cuda", "sm_86", &[]), "ok");
    }

    #[test]
    fn refuses_what_it_would_not_run() {
        let amd = |flags: u32, id: &str| result(&image(224, flags), "amdgcn-amd-amdhsa", id, &[]);
        assert_eq!(
            result(b"BC\xc0\xde", "amdgcn-amd-amdhsa", "gfx90a", &[]),
            "image is not an ELF file: expected an ELF file at offset 0x0"
        );
        assert_eq!(
            result(&image(62, 0), "amdgcn-amd-amdhsa", "gfx90a", &[]),
            "image has e_machine 0x3e, expected 0xe0"
        );
        assert_eq!(
            amd(0x530, "gfx90a"),
            "image has e_flags 0x530, expected gfx90a (0x3f in bits 0-7)"
        );
        assert_eq!(
            amd(0x63f, "gfx90a:xnack+"),
            "image has e_flags 0x63f, expected xnack+"
        );
        for flags in [0x43f, 0x73f] {
            let expected = format!("image has e_flags {flags:#x}, expected xnack-");
            assert_eq!(amd(flags, "gfx90a:xnack-"), expected);
        }
        assert_eq!(
            result(
                &image(190, 0x0050_0546),
                "nvptx64-nvidia-cuda",
                "sm_80",
                &[]
            ),
            "image has e_flags 0x500546, expected sm_80 (in bits 0-7 or 8-15)"
        );
        let cpu = image(62, 0);
        let names = ["kernel", "missing", "_Z5otheri"];
        assert_eq!(
            result(&cpu, "x86_64-pc-linux-gnu", "", &names),
            "image does not define _Z5otheri (`other(int)`), missing"
        );
    }

    #[test]
    fn rejects_ptx_without_version_or_target() {
        let id = TargetId::parse("sm_80").expect("the ID is valid");
        let result = |text: &str| match check_ptx(text.as_bytes(), &id, &BTreeSet::new()) {
            Ok(()) => "correct".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(result(".version 7.0\n.target sm_80\n"), "correct");
        assert_eq!(
            result(".target sm_80\n"),
            "image is not PTX: it has no `.version`"
        );
        assert_eq!(
            result(".version 7.0\n"),
            "image is not PTX: it has no `.target`"
        );
    }
}
