//! Writes bitcode with functions that do nothing: definitions of names that mark something and that code calls, to link
//! with a linker that reads no LLVM IR as text.
//!
//! | block | record | fields |
//! |---|---|---|
//! | identification (13) | producer (1), epoch (2) | a text; 0 |
//! | module (8) | version (1) | 2: names are in the strings |
//! | groups of attributes (10) | group (3) | number, of the function, then kind and attribute of each |
//! | lists of attributes (9) | list (2) | numbers of groups |
//! | types (17) | count (1), void (2), function (21) | 2; none; no variable arguments, type of the result |
//! | module, again | triple (2), data layout (3) | texts |
//! | | function (8), for each name | offset and size of its name in the strings, type, 0, it has a body, … |
//! | body (12), for each name | count of blocks (1), return (10) | 1; none |
//! | strings (23) | blob (1) | the names |
//!
//! Specification: <https://llvm.org/docs/BitCodeFormat.html>; the numbers:
//! `llvm/include/llvm/Bitcode/LLVMBitCodes.h` of LLVM 22.

use super::{FUNCTION, IDENTIFICATION, MODULE, PRODUCER, STRTAB, TRIPLE, VERSION};

const MAGIC: [u8; 4] = *b"BC\xc0\xde";

const EPOCH: u64 = 2;
const LAYOUT: u64 = 3;

/// Blocks in a module, and their records.
const ATTRIBUTE_LISTS: u64 = 9;
const ATTRIBUTE_LIST: u64 = 2;
const ATTRIBUTE_GROUPS: u64 = 10;
const ATTRIBUTE_GROUP: u64 = 3;
const BODY: u64 = 12;
const BLOCK_COUNT: u64 = 1;
const RETURN: u64 = 10;
const TYPES: u64 = 17;
const TYPE_COUNT: u64 = 1;
const VOID: u64 = 2;
const FUNCTION_TYPE: u64 = 21;
const BLOB: u64 = 1;

/// Index of a function's own attributes, beside those of its parameters.
const OF_FUNCTION: u64 = 0xffff_ffff;
const ALWAYS_INLINE: u64 = 2;
const NO_UNWIND: u64 = 18;

const HIDDEN: u64 = 1;

/// Items of a block: abbreviation IDs that all blocks have, and the first that a block defines.
const END: u64 = 0;
const ENTER: u64 = 1;
const DEFINE: u64 = 2;
const UNABBREVIATED: u64 = 3;
const FIRST_DEFINED: u64 = 4;

/// Widths of abbreviation IDs: outside of blocks, and in every block that is written here.
const OUTER_WIDTH: u32 = 2;
const ID_WIDTH: u32 = 3;

/// Returns bitcode that defines hidden functions with these names, which take nothing, return nothing, do nothing and are
/// inlined. `layout` is the data layout of the target `triple`.
#[must_use]
pub fn empty_functions(triple: &str, layout: &str, names: &[&str]) -> Vec<u8> {
    let text = |text: &str| text.bytes().map(u64::from).collect::<Vec<u64>>();
    let mut out = BitWriter {
        bytes: MAGIC.to_vec(),
        free: 0,
        id_width: OUTER_WIDTH,
    };
    out.block(IDENTIFICATION, |out| {
        out.record(PRODUCER, &text("offload"));
        out.record(EPOCH, &[0]);
    });
    out.block(MODULE, |out| {
        out.record(VERSION, &[2]);
        out.block(ATTRIBUTE_GROUPS, |out| {
            let attributes = [1, OF_FUNCTION, 0, ALWAYS_INLINE, 0, NO_UNWIND];
            out.record(ATTRIBUTE_GROUP, &attributes);
        });
        out.block(ATTRIBUTE_LISTS, |out| out.record(ATTRIBUTE_LIST, &[1]));
        out.block(TYPES, |out| {
            out.record(TYPE_COUNT, &[2]);
            out.record(VOID, &[]);
            out.record(FUNCTION_TYPE, &[0, 0]);
        });
        out.record(TRIPLE, &text(triple));
        out.record(LAYOUT, &text(layout));
        let mut offset = 0;
        for name in names {
            let size = name.len() as u64;
            // Type 1, C's calling convention, a body, external, the first list, no alignment, no section, hidden.
            out.record(FUNCTION, &[offset, size, 1, 0, 0, 0, 1, 0, 0, HIDDEN]);
            offset += size;
        }
        for _ in names {
            out.block(BODY, |out| {
                out.record(BLOCK_COUNT, &[1]);
                out.record(RETURN, &[]);
            });
        }
    });
    out.block(STRTAB, |out| out.blob(names.concat().as_bytes()));
    out.bytes
}

/// Writes a bit stream: the lowest bit of a byte first.
struct BitWriter {
    bytes: Vec<u8>,
    /// Unused bits of the last byte, the high ones.
    free: u32,
    id_width: u32,
}

impl BitWriter {
    fn fixed(&mut self, value: u64, width: u32) {
        for bit in 0..width {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            let set = u8::from(value >> bit & 1 == 1);
            if let Some(last) = self.bytes.last_mut() {
                *last |= set << (8 - self.free);
            }
            self.free -= 1;
        }
    }

    /// Writes groups of `width` bits, the lowest first; the highest bit of each says that another follows.
    fn vbr(&mut self, mut value: u64, width: u32) {
        let more = 1 << (width - 1);
        while value >= more {
            self.fixed(value & (more - 1) | more, width);
            value >>= width - 1;
        }
        self.fixed(value, width);
    }

    fn align(&mut self) {
        self.free = 0;
        while self.bytes.len() % 4 != 0 {
            self.bytes.push(0);
        }
    }

    fn block(&mut self, id: u64, content: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.id_width, ID_WIDTH);
        self.fixed(ENTER, outer);
        self.vbr(id, 8);
        self.vbr(ID_WIDTH.into(), 4);
        self.align();
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        content(self);
        self.fixed(END, ID_WIDTH);
        self.align();
        self.id_width = outer;
        let words = (self.bytes.len() - start) / 4 - 1;
        let size = self.bytes.iter_mut().skip(start);
        let words = u32::try_from(words).expect("names of functions are short");
        for (byte, digit) in size.zip(words.to_le_bytes()) {
            *byte = digit;
        }
    }

    fn record(&mut self, code: u64, fields: &[u64]) {
        self.fixed(UNABBREVIATED, ID_WIDTH);
        self.vbr(code, 6);
        self.vbr(fields.len() as u64, 6);
        for field in fields {
            self.vbr(*field, 6);
        }
    }

    /// Writes a record that only an abbreviation can lay out.
    fn blob(&mut self, bytes: &[u8]) {
        // Two fields: the code as a literal, and the encoding of blobs.
        self.fixed(DEFINE, ID_WIDTH);
        self.vbr(2, 5);
        self.fixed(1, 1);
        self.vbr(BLOB, 8);
        self.fixed(0, 1);
        self.fixed(5, 3);
        self.fixed(FIRST_DEFINED, ID_WIDTH);
        self.vbr(bytes.len() as u64, 6);
        self.align();
        self.bytes.extend_from_slice(bytes);
        self.align();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::bitcode::symbols;

    #[test]
    fn defines_functions_that_the_reader_finds() {
        let long = "x".repeat(100);
        for names in [&[][..], &["a"], &["a$1$", &long, "ab"]] {
            let bytes = empty_functions("amdgcn-amd-amdhsa", "e-p:64:64", names);
            assert_eq!(bytes.len() % 4, 0);
            let found = symbols(bytes.as_slice(), 0..bytes.len() as u64).unwrap();
            let found: Vec<_> = found
                .iter()
                .map(|symbol| (symbol.name, symbol.defined))
                .collect();
            let expected: Vec<_> = names.iter().map(|name| (name.as_bytes(), true)).collect();
            assert_eq!(found, expected);
        }
    }
}
