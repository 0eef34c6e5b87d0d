//! The form in which Intel's OpenMP runtime takes SPIR-V: an ELF file around the module.
//!
//! | section | content |
//! |---|---|
//! | `.note.inteloneompoffload` | three notes: version, options of image 0, count of images |
//! | `__openmp_offload_spirv_0` | the module |
//! | `.strtab`, `.shstrtab` | nothing, the names of sections |
//!
//! Source: `docs/spec/linker-wrapper.md` §4.5; `containerizeOpenMPSPIRVImage` in
//! `llvm/lib/Frontend/Offloading/Utility.cpp` of LLVM 22, whose bytes these are.

use offload_formats::format::bytes::ReadAt;
use offload_formats::format::pieces::Piece;
use std::fmt;

const NOTE_NAME: &[u8] = b"INTELONEOMPOFFLOAD\0";
const SECTION_NAMES: &[u8] =
    b"\0.note.inteloneompoffload\0.shstrtab\0.strtab\0__openmp_offload_spirv_0\0";
const HEADER_SIZE: u16 = 64;
/// `ET_DYN`, and Intel's graphics as machine.
const TYPE: u16 = 3;
const MACHINE: u16 = 205;
const PROGBITS: u32 = 1;
const STRTAB: u32 = 3;
const NOTE: u32 = 7;

/// The first words of SPIR-V of either byte order.
const MAGICS: [[u8; 4]; 2] = [[0x03, 0x02, 0x23, 0x07], [0x07, 0x23, 0x02, 0x03]];

/// The ELF file of `module`, input 0 of its pieces, with the options with which the runtime compiles and links it.
///
/// # Errors
///
/// When it is not SPIR-V, or an option has a zero byte, which separates them.
pub fn openmp_image<'d, R: ReadAt<'d>>(
    module: R,
    compile_options: &str,
    link_options: &str,
) -> Result<Vec<Piece>, SpirvError> {
    let magic = module.read_at(0, 4).unwrap_or_default();
    if !MAGICS.iter().any(|known| known == magic) {
        return Err(SpirvError::Magic);
    }
    if [compile_options, link_options].concat().contains('\0') {
        return Err(SpirvError::Zero);
    }
    let mut notes = Vec::new();
    note(&mut notes, 1, b"1.0");
    // Index, format (1: SPIR-V), options.
    let image = ["0", "1", compile_options, link_options].join("\0");
    note(&mut notes, 3, image.as_bytes());
    note(&mut notes, 2, b"1");

    let range = 0..module.size().unwrap_or(0);
    let module = Piece::Copy { input: 0, range };
    let contents = [
        (0x01, NOTE, 0, Piece::Bytes(notes)),
        (0x2c, PROGBITS, 0, module),
        (0x24, STRTAB, 1, Piece::Bytes(b"\0".to_vec())),
        (0x1a, STRTAB, 1, Piece::Bytes(SECTION_NAMES.to_vec())),
    ];
    let mut offset = u64::from(HEADER_SIZE);
    let mut body = Vec::new();
    let mut table = vec![0; HEADER_SIZE.into()];
    for (name, kind, alignment, content) in contents {
        let size = content.size();
        let fields = [0, 0, offset, size, 0, alignment, 0];
        table.extend([name, kind].map(u32::to_le_bytes).as_flattened());
        table.extend(fields.map(u64::to_le_bytes).as_flattened());
        body.push(content);
        offset += size;
    }
    let table_offset = offset.next_multiple_of(8);
    body.push(Piece::Zeros(table_offset - offset));

    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([TYPE, MACHINE, 1, 0].map(u16::to_le_bytes).as_flattened());
    file.extend([0, 0, table_offset].map(u64::to_le_bytes).as_flattened());
    // Flags in two halves, then sizes and counts: no program headers, five sections, names in the last.
    let tail = [0, 0, HEADER_SIZE, 0, 0, HEADER_SIZE, 5, 4];
    file.extend(tail.map(u16::to_le_bytes).as_flattened());
    body.insert(0, Piece::Bytes(file));
    body.push(Piece::Bytes(table));
    Ok(body)
}

fn note(notes: &mut Vec<u8>, kind: u32, description: &[u8]) {
    let sizes = [NOTE_NAME.len() as u32, description.len() as u32, kind];
    notes.extend(sizes.map(u32::to_le_bytes).as_flattened());
    notes.extend_from_slice(NOTE_NAME);
    pad(notes, 4);
    notes.extend_from_slice(description);
    pad(notes, 4);
}

fn pad(bytes: &mut Vec<u8>, alignment: usize) {
    bytes.resize(bytes.len().next_multiple_of(alignment), 0);
}

/// Reason why a module cannot be put in an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpirvError {
    /// The linked module does not start as SPIR-V does.
    Magic,
    /// An option has a zero byte.
    Zero,
}

impl fmt::Display for SpirvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Magic => "the linked image is not SPIR-V: expected 0x07230203 at offset 0x0",
            Self::Zero => "an option for SPIR-V has a zero byte, which separates options",
        })
    }
}

impl std::error::Error for SpirvError {}

#[cfg(test)]
mod tests {
    use super::*;
    use offload_formats::format::pieces;

    /// Made by clang-linker-wrapper 22.1.8 around these 17 bytes.
    const GOLDEN: &[u8] = include_bytes!("../../../tests/golden/22.1.8/intel-openmp.elf");
    const MODULE: &[u8] = b"\x03\x02\x23\x07abcdefghijklm";

    #[test]
    fn writes_the_bytes_llvm_writes() {
        let pieces = openmp_image(MODULE, "", "").unwrap();
        assert_eq!(pieces::to_bytes(&pieces, &[MODULE]).unwrap(), GOLDEN);
    }

    #[test]
    fn writes_options_where_the_runtime_looks_for_them() {
        use offload_formats::container::elf::Elf;
        let image = openmp_image(MODULE, "-cl-fast", "-library").unwrap();
        let image = pieces::to_bytes(&image, &[MODULE]).unwrap();
        let elf = Elf::parse(&*image, 0..image.len() as u64).unwrap();
        let content = |name| elf.content(&elf.find(name).unwrap().unwrap()).unwrap();
        assert_eq!(content("__openmp_offload_spirv_0"), MODULE);
        let expected =
            b"\x13\0\0\0\x15\0\0\0\x03\0\0\0INTELONEOMPOFFLOAD\0\x000\x001\0-cl-fast\0-library";
        let notes = content(".note.inteloneompoffload");
        assert_eq!(notes.get(36..36 + expected.len()), Some(&expected[..]));
    }

    #[test]
    fn rejects_what_is_not_spirv_and_options_that_would_be_read_as_two() {
        assert_eq!(
            openmp_image(&b"BC\xc0\xde"[..], "", ""),
            Err(SpirvError::Magic)
        );
        assert_eq!(openmp_image(MODULE, "a\0b", ""), Err(SpirvError::Zero));
    }
}
