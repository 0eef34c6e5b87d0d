//! The end of SPIR-V that other data follows.
//!
//! A header of five words, then instructions. The first word of an instruction has its number of words in the upper half
//! and its opcode in the lower half. Functions are last.
//!
//! Specification: <https://registry.khronos.org/SPIR-V/specs/unified1/SPIRV.html>.

use std::ops::Range;

use crate::format::bytes::{Cursor, ReadAt};

const LINE: u16 = 8;
const EXTENDED_INSTRUCTION: u16 = 12;
const FUNCTION: u16 = 54;
const FUNCTION_END: u16 = 56;
const NO_LINE: u16 = 317;

/// Largest number of IDs ("Universal Limits").
const LARGEST_BOUND: u32 = 0x3f_ffff;

/// Returns the end of the module that a range of `data` starts with: that of its last function.
pub(super) fn end<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<u64> {
    let mut words = SpirvWords {
        data,
        end: Cursor::new(data, range.clone()).end(),
        start: 0,
        buffer: Vec::new(),
    };
    let header =
        |words: &mut SpirvWords<R>, index: u64| words.at(range.start.checked_add(index * 4)?);
    let (version, bound) = (header(&mut words, 1)?, header(&mut words, 3)?);
    let is_header = matches!(version & 0xffff_00ff, 0x0001_0000) && version <= 0x0001_0600;
    if !is_header || !(1..=LARGEST_BOUND).contains(&bound) || header(&mut words, 4)? != 0 {
        return None;
    }
    let mut position = range.start.checked_add(20)?;
    let mut end = None;
    let mut in_function = false;
    while let Some(word) = words.at(position) {
        let (count, opcode) = (u64::from(word >> 16), word as u16);
        let may_follow = match opcode {
            FUNCTION | LINE | NO_LINE | EXTENDED_INSTRUCTION => true,
            _ => end.is_none() || in_function,
        };
        let next = position.saturating_add(count * 4);
        if count == 0 || !may_follow || next > words.end {
            break;
        }
        in_function = in_function && opcode != FUNCTION_END || opcode == FUNCTION;
        if opcode == FUNCTION_END {
            end = Some(next);
        }
        position = next;
    }
    end
}

/// Words of a module, read in parts.
struct SpirvWords<R> {
    data: R,
    end: u64,
    /// Offset of the part in `buffer`.
    start: u64,
    buffer: Vec<u8>,
}

impl<'d, R: ReadAt<'d>> SpirvWords<R> {
    /// Returns the word at an offset, which only grows from call to call.
    fn at(&mut self, offset: u64) -> Option<u32> {
        const PART: u64 = 1 << 12;
        if offset.checked_add(4)? > self.start.saturating_add(self.buffer.len() as u64) {
            let size = PART.min(self.end.checked_sub(offset)?);
            self.buffer.resize(size as usize, 0);
            self.data.read_once(&mut self.buffer, offset)?;
            self.start = offset;
        }
        let place = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let word = self.buffer.get(place..)?.first_chunk()?;
        Some(u32::from_le_bytes(*word))
    }
}
