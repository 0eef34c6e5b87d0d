//! The bit stream of bitcode: nested blocks of records, whose fields have any number of bits.
//!
//! The lowest bit of a byte comes first. Each item of a block starts with an abbreviation ID, whose
//! width the block states: 0 ends the block, 1 enters a block, and 2 defines an abbreviation. 3 is
//! a record without abbreviation; other IDs are records laid out as defined.
//!
//! Specification: <https://llvm.org/docs/BitCodeFormat.html#bitstream-format>.

use std::collections::BTreeMap;
use std::ops::Range;

use super::BitcodeError;
use crate::format::bytes::{Cursor, OutOfBounds, ReadAt};

/// Number of fields that are kept of each record, unless the caller asks for more.
const KEPT: usize = 16;
/// Maximum number of fields of an abbreviation. LLVM's have fewer than 20; without a limit a few
/// bits could stand for any number of fields.
const MAX_FIELDS: usize = 64;

/// A block at the top level of the file.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub id: u64,
    /// Width of the abbreviation IDs in the block, in bits.
    width: u32,
    /// Contents, as offsets from the start of the file.
    range: Range<u64>,
}

/// Lists the blocks of a range without reading their contents. Ignores data after the last block.
pub(super) fn blocks<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<Block>, BitcodeError> {
    let mut cursor = Cursor::new(data, range);
    let mut blocks = Vec::new();
    while let Some(block) = next_block(&mut cursor)? {
        blocks.push(block);
    }
    Ok(blocks)
}

/// Reads the start of the block at the cursor, and moves the cursor to its end; `None` if there is no block.
pub(super) fn next_block<'d, R: ReadAt<'d>>(
    cursor: &mut Cursor<'d, R>,
) -> Result<Option<Block>, BitcodeError> {
    /// Upper bound for the size of a block's start.
    const START: u64 = 24;
    let start = cursor.position();
    let rest = cursor.end().saturating_sub(start);
    // LLVM also treats fewer bytes as padding.
    if rest < 8 {
        return Ok(None);
    }
    let bytes = cursor.read(START.min(rest), "block");
    let mut bits = Bits::new(bytes.map_err(BitcodeError::Outside)?, start);
    if bits.fixed(2)? != ENTER {
        return Ok(None);
    }
    let (id, width, size) = bits.enter()?;
    let range = OutOfBounds::check("block", bits.place(), size, cursor.end());
    let range = range.map_err(BitcodeError::Outside)?;
    *cursor = cursor.at(range.end);
    Ok(Some(Block { id, width, range }))
}

/// Fields to keep besides a record's first ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// None.
    First,
    /// All fields, as bytes; `wide` reports a value that does not fit.
    Bytes,
    /// All fields.
    All,
}

/// A record with its first fields.
#[derive(Debug, Default)]
pub(super) struct BitcodeRecord<'d> {
    pub code: u64,
    /// At most [`KEPT`], or all with [`Keep::All`].
    pub fields: Vec<u64>,
    /// All fields, with [`Keep::Bytes`].
    pub bytes: Vec<u8>,
    /// True if a field of `bytes` exceeded a byte.
    pub wide: bool,
    pub blob: Option<&'d [u8]>,
    started: bool,
}

impl BitcodeRecord<'_> {
    /// Returns a field, or 0 if an older writer omitted it.
    pub(super) fn field(&self, index: usize) -> u64 {
        self.fields.get(index).copied().unwrap_or(0)
    }

    fn push(&mut self, value: u64, keep: Keep) {
        if !self.started {
            (self.code, self.started) = (value, true);
            return;
        }
        if self.fields.len() < KEPT || keep == Keep::All {
            self.fields.push(value);
        }
        if keep == Keep::Bytes {
            self.wide |= value > 0xff;
            self.bytes.push(value as u8);
        }
    }
}

const END: u64 = 0;
const ENTER: u64 = 1;
const DEFINE: u64 = 2;
const UNABBREVIATED: u64 = 3;

impl Block {
    /// Reads the records of a block, but not those of nested blocks.
    pub(super) fn records<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        each: &mut dyn FnMut(BitcodeRecord<'d>),
    ) -> Result<(), BitcodeError> {
        let (mut items, none) = (self.open(data)?, BlockInfo::default());
        while let Some(item) = items.next(&none, Keep::First)? {
            if let BlockItem::Record(record) = item {
                each(record);
            }
        }
        Ok(())
    }

    /// Reads the block, so that its items can be iterated.
    pub(super) fn open<'d, R: ReadAt<'d>>(&self, data: R) -> Result<Items<'d>, BitcodeError> {
        let start = self.range.start;
        let size = self.range.end.saturating_sub(start);
        let bytes = Cursor::new(data, self.range.clone()).read(size, "block");
        let bits = Bits::new(bytes.map_err(BitcodeError::Outside)?, start);
        Ok(Items::new(self.id, self.width, bits))
    }
}

/// An item of a block.
pub(super) enum BlockItem<'d> {
    Record(BitcodeRecord<'d>),
    Block(Items<'d>),
}

/// The remaining items of a block.
pub(super) struct Items<'d> {
    /// ID of the block.
    pub id: u64,
    width: u32,
    bits: Bits<'d>,
    abbreviations: Vec<Abbreviation>,
}

impl<'d> Items<'d> {
    fn new(id: u64, width: u32, bits: Bits<'d>) -> Self {
        Self {
            id,
            width,
            bits,
            abbreviations: Vec::new(),
        }
    }

    /// Returns the next item, or `None` at the end of the block.
    pub(super) fn next(
        &mut self,
        info: &BlockInfo,
        keep: Keep,
    ) -> Result<Option<BlockItem<'d>>, BitcodeError> {
        loop {
            let place = self.bits.place();
            let record = match self.bits.fixed(self.width)? {
                END => return Ok(None),
                ENTER => {
                    let (id, width, size) = self.bits.enter()?;
                    let start = self.bits.place();
                    let bits = Bits::new(self.bits.skip(size)?, start);
                    return Ok(Some(BlockItem::Block(Self::new(id, width, bits))));
                }
                DEFINE => {
                    let abbreviation = Abbreviation::read(&mut self.bits)?;
                    self.abbreviations.push(abbreviation);
                    continue;
                }
                UNABBREVIATED => {
                    let mut record = BitcodeRecord::default();
                    record.push(self.bits.vbr(6)?, keep);
                    for _ in 0..self.bits.vbr(6)? {
                        record.push(self.bits.vbr(6)?, keep);
                    }
                    record
                }
                id => {
                    // The first four IDs are reserved.
                    let index = usize::try_from(id - 4).unwrap_or(usize::MAX);
                    let common = info.of(self.id);
                    let own = || self.abbreviations.get(index.checked_sub(common.len())?);
                    let abbreviation = common.get(index).or_else(own);
                    let abbreviation =
                        abbreviation.ok_or(BitcodeError::Abbreviation { offset: place })?;
                    abbreviation.record(&mut self.bits, keep)?
                }
            };
            return Ok(Some(BlockItem::Record(record)));
        }
    }
}

/// Abbreviations that every block with a certain ID starts with.
#[derive(Default)]
pub(super) struct BlockInfo(BTreeMap<u64, Vec<Abbreviation>>);

impl BlockInfo {
    /// ID of the blocks that define these abbreviations.
    pub(super) const ID: u64 = 0;
    /// Record that sets the block ID for the abbreviations after it.
    const SET_ID: u64 = 1;

    fn of(&self, id: u64) -> &[Abbreviation] {
        self.0.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Adds the abbreviations of such a block.
    pub(super) fn read(&mut self, mut items: Items<'_>) -> Result<(), BitcodeError> {
        let (mut id, none) = (None, Self::default());
        loop {
            let place = items.bits.place();
            let item = items.next(&none, Keep::First)?;
            let defined = items.abbreviations.drain(..);
            match id {
                Some(id) => self.0.entry(id).or_default().extend(defined),
                None if defined.len() > 0 => {
                    return Err(BitcodeError::Abbreviation { offset: place });
                }
                None => {}
            }
            match item {
                None => return Ok(()),
                Some(BlockItem::Record(record)) if record.code == Self::SET_ID => {
                    id = Some(record.field(0));
                }
                Some(_) => {}
            }
        }
    }
}

/// Layout of a record's fields.
struct Abbreviation(Vec<FieldEncoding>);

#[derive(Clone, Copy)]
enum FieldEncoding {
    Literal(u64),
    Fixed(u32),
    Vbr(u32),
    /// A count, then elements with the encoding that follows.
    Array,
    Char6,
    Blob,
}

impl Abbreviation {
    fn read(bits: &mut Bits<'_>) -> Result<Self, BitcodeError> {
        let offset = bits.place();
        let wrong = BitcodeError::Abbreviation { offset };
        let count = usize::try_from(bits.vbr(5)?).unwrap_or(usize::MAX);
        if count > MAX_FIELDS {
            return Err(wrong);
        }
        let mut layouts = Vec::new();
        for _ in 0..count {
            if bits.fixed(1)? == 1 {
                layouts.push(FieldEncoding::Literal(bits.vbr(8)?));
                continue;
            }
            let encoding = bits.fixed(3)?;
            let width = if matches!(encoding, 1 | 2) {
                bits.vbr(5)?
            } else {
                0
            };
            let width = u32::try_from(width).ok().filter(|width| *width <= 64);
            layouts.push(match (encoding, width) {
                (1 | 2, Some(0)) => FieldEncoding::Literal(0),
                (1, Some(width)) => FieldEncoding::Fixed(width),
                (2, Some(width)) => FieldEncoding::Vbr(width),
                (3, _) => FieldEncoding::Array,
                (4, _) => FieldEncoding::Char6,
                (5, _) => FieldEncoding::Blob,
                _ => return Err(wrong),
            });
        }
        // An array must be the last but one field; the encoding of its elements follows.
        let array = layouts
            .iter()
            .position(|layout| matches!(layout, FieldEncoding::Array));
        match array {
            Some(array) if array + 2 != layouts.len() => Err(wrong),
            _ => Ok(Self(layouts)),
        }
    }

    fn record<'d>(
        &self,
        bits: &mut Bits<'d>,
        keep: Keep,
    ) -> Result<BitcodeRecord<'d>, BitcodeError> {
        let mut record = BitcodeRecord::default();
        let mut layouts = self.0.iter();
        while let Some(layout) = layouts.next() {
            match layout {
                FieldEncoding::Array => {
                    let count = bits.vbr(6)?;
                    // Elements without bits would allow any count in a few bits.
                    let Some(
                        element @ (FieldEncoding::Fixed(_)
                        | FieldEncoding::Vbr(_)
                        | FieldEncoding::Char6),
                    ) = layouts.next()
                    else {
                        return Err(BitcodeError::Abbreviation {
                            offset: bits.place(),
                        });
                    };
                    for _ in 0..count {
                        record.push(bits.scalar(*element)?, keep);
                    }
                }
                FieldEncoding::Blob => {
                    let size = bits.vbr(6)?;
                    bits.align()?;
                    record.blob = Some(bits.skip(size)?);
                    bits.align()?;
                }
                scalar => record.push(bits.scalar(*scalar)?, keep),
            }
        }
        Ok(record)
    }
}

/// A bit position in some bytes.
pub(super) struct Bits<'d> {
    bytes: &'d [u8],
    /// Offset of the bytes in the file.
    start: u64,
    /// Position in bits, at most the number of bits.
    position: u64,
}

impl<'d> Bits<'d> {
    pub(super) fn new(bytes: &'d [u8], start: u64) -> Self {
        Self {
            bytes,
            start,
            position: 0,
        }
    }

    /// Returns the offset of the next byte from the start of the file.
    fn place(&self) -> u64 {
        self.start.saturating_add(self.position / 8)
    }

    fn outside(&self, size: u64) -> BitcodeError {
        BitcodeError::Outside(OutOfBounds {
            what: "bits",
            offset: self.place(),
            size,
            end: self.start.saturating_add(self.bytes.len() as u64),
        })
    }

    /// Reads at most 64 bits.
    fn fixed(&mut self, width: u32) -> Result<u64, BitcodeError> {
        let (mut value, mut done) = (0, 0);
        while done < width {
            let byte = usize::try_from(self.position / 8).ok();
            let byte = byte.and_then(|byte| self.bytes.get(byte));
            let byte = byte.ok_or_else(|| self.outside(1))?;
            let within = (self.position % 8) as u32;
            let take = (8 - within).min(width - done);
            let part = (u64::from(*byte) >> within) & ((1 << take) - 1);
            value |= part << done;
            done += take;
            self.position += u64::from(take);
        }
        Ok(value)
    }

    /// Reads groups of `width` bits, lowest first. The highest bit of a group tells whether another
    /// follows.
    pub(super) fn vbr(&mut self, width: u32) -> Result<u64, BitcodeError> {
        let offset = self.place();
        let more = 1u64 << (width - 1);
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let group = self.fixed(width)?;
            let part = group & (more - 1);
            let shifted = part.checked_shl(shift).filter(|it| it >> shift == part);
            value |= match shifted {
                Some(shifted) => shifted,
                None if part == 0 => 0,
                None => return Err(BitcodeError::Number { offset }),
            };
            if group & more == 0 {
                return Ok(value);
            }
            shift = shift.saturating_add(width - 1);
        }
    }

    fn scalar(&mut self, layout: FieldEncoding) -> Result<u64, BitcodeError> {
        const CHARACTERS: &[u8; 64] =
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
        match layout {
            FieldEncoding::Literal(value) => Ok(value),
            FieldEncoding::Fixed(width) => self.fixed(width),
            FieldEncoding::Vbr(width) => self.vbr(width),
            FieldEncoding::Char6 => {
                let index = self.fixed(6)? as usize;
                Ok(CHARACTERS.get(index).map_or(0, |char| u64::from(*char)))
            }
            FieldEncoding::Array | FieldEncoding::Blob => Ok(0),
        }
    }

    /// Reads the rest of a block's start: its ID, the width of its abbreviation IDs, and its size
    /// in bytes.
    fn enter(&mut self) -> Result<(u64, u32, u64), BitcodeError> {
        let offset = self.place();
        let (id, width) = (self.vbr(8)?, self.vbr(4)?);
        let width = u32::try_from(width).ok().filter(|width| *width <= 32);
        let width = width.ok_or(BitcodeError::Number { offset })?;
        self.align()?;
        // The size is a number of words.
        Ok((id, width, self.fixed(32)? * 4))
    }

    /// Skips to the next multiple of 32 bits.
    fn align(&mut self) -> Result<(), BitcodeError> {
        let padding = self.position.wrapping_neg() % 32;
        self.position += padding;
        if self.position / 8 > self.bytes.len() as u64 {
            return Err(self.outside(0));
        }
        Ok(())
    }

    /// Reads whole bytes.
    fn skip(&mut self, size: u64) -> Result<&'d [u8], BitcodeError> {
        let start = self.position / 8;
        let range = OutOfBounds::check("bits", start, size, self.bytes.len() as u64);
        let range = range.map_err(|_| self.outside(size))?;
        self.position = range.end * 8;
        let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).ok());
        let bytes = start
            .zip(end)
            .and_then(|(start, end)| self.bytes.get(start..end));
        bytes.ok_or_else(|| self.outside(size))
    }
}
