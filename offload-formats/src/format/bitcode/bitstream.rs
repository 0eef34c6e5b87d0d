//! The bit stream that bitcode is: nested blocks of records, whose fields have any number of bits.
//!
//! Bits are taken from the lowest of a byte upwards. Each item of a block starts with an abbreviation
//! ID, whose width the block states: 0 ends the block, 1 enters a block, 2 defines an abbreviation,
//! 3 is a record that uses none, and others are records laid out as defined.
//!
//! Specification: <https://llvm.org/docs/BitCodeFormat.html#bitstream-format>.

use std::collections::BTreeMap;
use std::ops::Range;

use super::BitcodeError;
use crate::format::bytes::{Cursor, OutOfBounds, ReadAt};

/// How many fields of a record are kept; those that need more are asked for.
const KEPT: usize = 16;
/// How many fields an abbreviation may define. LLVM's have fewer than 20; without a limit a few
/// bits could stand for any number of fields.
const MAX_FIELDS: usize = 64;

/// A block at the top of the file.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub id: u64,
    /// Of the abbreviation IDs in it, in bits.
    width: u32,
    /// From the start of the file.
    range: Range<u64>,
}

/// The blocks of a range, whose contents are not read. What follows the last block is left alone.
pub(super) fn blocks<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<Block>, BitcodeError> {
    /// Longer than the start of a block.
    const START: u64 = 24;
    let mut cursor = Cursor::new(data, range);
    let mut blocks = Vec::new();
    // As LLVM, which takes less than this for padding.
    while cursor.end().saturating_sub(cursor.position()) >= 8 {
        let start = cursor.position();
        let size = START.min(cursor.end() - start);
        let bytes = cursor.read(size, "block").map_err(BitcodeError::Outside)?;
        let mut bits = Bits::new(bytes, start);
        if bits.fixed(2)? != ENTER {
            break;
        }
        let (id, width, size) = bits.enter()?;
        let start = bits.place();
        let range = OutOfBounds::check("block", start, size, cursor.end());
        let range = range.map_err(BitcodeError::Outside)?;
        cursor = cursor.at(range.end);
        blocks.push(Block { id, width, range });
    }
    Ok(blocks)
}

/// What is kept of a record besides its first fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Nothing.
    First,
    /// All fields, of which one that is no byte is told.
    Bytes,
    /// All fields.
    All,
}

/// A record, with its first fields.
#[derive(Debug, Default)]
pub(super) struct BitcodeRecord<'d> {
    pub code: u64,
    /// At most [`KEPT`], unless all were asked for.
    pub fields: Vec<u64>,
    /// All fields, when bytes were asked for.
    pub bytes: Vec<u8>,
    /// Whether a field of `bytes` was none.
    pub wide: bool,
    pub blob: Option<&'d [u8]>,
    started: bool,
}

impl BitcodeRecord<'_> {
    /// A field; those that older writers did not know are 0.
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
    /// Reads the records of a block, not those of the blocks in it.
    pub(super) fn records<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        mut each: impl FnMut(BitcodeRecord<'d>),
    ) -> Result<(), BitcodeError> {
        let (mut items, none) = (self.open(data)?, BlockInfo::default());
        while let Some(item) = items.next(&none, Keep::First)? {
            if let BlockItem::Record(record) = item {
                each(record);
            }
        }
        Ok(())
    }

    /// Reads the block, whose items then come one by one.
    pub(super) fn open<'d, R: ReadAt<'d>>(&self, data: R) -> Result<Items<'d>, BitcodeError> {
        let start = self.range.start;
        let size = self.range.end.saturating_sub(start);
        let bytes = Cursor::new(data, self.range.clone()).read(size, "block");
        let bits = Bits::new(bytes.map_err(BitcodeError::Outside)?, start);
        Ok(Items::new(self.id, self.width, bits))
    }
}

/// What a block consists of.
pub(super) enum BlockItem<'d> {
    Record(BitcodeRecord<'d>),
    Block(Items<'d>),
}

/// The items of a block that are still to come.
pub(super) struct Items<'d> {
    /// Of the block.
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

    /// The next item, unless the block ends.
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
                    // The first four are taken.
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

/// The abbreviations that all blocks of an ID start with.
#[derive(Default)]
pub(super) struct BlockInfo(BTreeMap<u64, Vec<Abbreviation>>);

impl BlockInfo {
    /// ID of the blocks that say so.
    pub(super) const ID: u64 = 0;
    /// The record that says which blocks the abbreviations after it are for.
    const SET_ID: u64 = 1;

    fn of(&self, id: u64) -> &[Abbreviation] {
        self.0.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Takes in a block of that ID.
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

/// How the fields of a record are laid out.
struct Abbreviation(Vec<FieldEncoding>);

#[derive(Clone, Copy)]
enum FieldEncoding {
    Literal(u64),
    Fixed(u32),
    Vbr(u32),
    /// A number of elements of the layout that follows.
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
        // The layout of its elements ends an abbreviation with an array.
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
                    let element = layouts.next().unwrap_or(&FieldEncoding::Literal(0));
                    // Elements without bits could be any number.
                    if matches!(
                        element,
                        FieldEncoding::Literal(_) | FieldEncoding::Array | FieldEncoding::Blob
                    ) {
                        return Err(BitcodeError::Abbreviation {
                            offset: bits.place(),
                        });
                    }
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

/// A place in some bytes, counted in bits.
pub(super) struct Bits<'d> {
    bytes: &'d [u8],
    /// Where the bytes start in the file.
    start: u64,
    /// In bits; no more than there are.
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

    /// Of the byte that is read next, from the start of the file.
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

    /// At most 64 bits.
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

    /// Groups of `width` bits, the low one first, whose highest bit says that another follows.
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

    /// What follows the abbreviation ID that enters a block: its ID, the width of the abbreviation
    /// IDs in it, its size in bytes.
    fn enter(&mut self) -> Result<(u64, u32, u64), BitcodeError> {
        let offset = self.place();
        let (id, width) = (self.vbr(8)?, self.vbr(4)?);
        let width = u32::try_from(width).ok().filter(|width| *width <= 32);
        let width = width.ok_or(BitcodeError::Number { offset })?;
        self.align()?;
        // A number of words.
        Ok((id, width, self.fixed(32)? * 4))
    }

    /// To the next multiple of 32 bits.
    fn align(&mut self) -> Result<(), BitcodeError> {
        let padding = self.position.wrapping_neg() % 32;
        self.position += padding;
        if self.position / 8 > self.bytes.len() as u64 {
            return Err(self.outside(0));
        }
        Ok(())
    }

    /// Whole bytes.
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
