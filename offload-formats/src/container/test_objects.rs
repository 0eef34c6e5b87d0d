//! Objects for tests of several modules.

use crate::container::edit::{NewContent, NewSection};
use crate::format::pieces::{Piece, to_bytes};

pub(super) const DEVICE: &[u8] = b"Content of device file 1\n";

/// Sections of the worked example.
pub(super) const SECTIONS: [NewSection<'_>; 2] = [
    NewSection {
        name: b"__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-",
        content: NewContent::Bytes(&[0]),
    },
    NewSection {
        name: b"__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx906",
        content: NewContent::Input {
            size: DEVICE.len() as u64,
        },
    },
];

/// Joins the pieces, unless they have gigabytes.
pub(super) fn bytes(pieces: &[Piece], host: &[u8]) -> Option<Vec<u8>> {
    let size: u64 = pieces.iter().map(Piece::size).sum();
    (size < 1 << 20).then(|| to_bytes(pieces, &[host, b"", DEVICE]).expect("inputs 0 to 2"))
}

/// Returns an ELF object with that many sections `.bundled_lib`, each of them the same archive.
pub(super) fn object_around(archive: &[u8], count: u16) -> Vec<u8> {
    let names = b"\0.bundled_lib\0\0\0";
    let start = 64 + names.len() as u64;
    let table = (start + archive.len() as u64).next_multiple_of(8);
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    for half in [1_u16, 62, 1, 0] {
        file.extend(half.to_le_bytes());
    }
    for word in [0, 0, table] {
        file.extend(word.to_le_bytes());
    }
    for half in [0, 0, 64, 0, 0, 64, count + 2, 1] {
        file.extend(half.to_le_bytes());
    }
    file.extend(names);
    file.extend(archive);
    file.resize(table as usize, 0);
    let strings = (0_u32, 3_u32, 64, names.len() as u64);
    let library = (1, 1, start, archive.len() as u64);
    let sections = [(0, 0, 0, 0), strings].into_iter();
    for (name, kind, offset, size) in sections.chain((0..count).map(|_| library)) {
        file.extend(name.to_le_bytes());
        file.extend(kind.to_le_bytes());
        for word in [0, 0, offset, size, 0, 1, 0] {
            file.extend(word.to_le_bytes());
        }
    }
    file
}
