//! Objects that clang embedded in bitcode with `-fembed-offload-object`. In an object file they
//! become the section `.llvm.offloading`.
//!
//! Each object is the initializer of a variable. The named metadata `llvm.embedded.objects` lists
//! the variables with the names of their sections. So four blocks of a module are read: types,
//! constants, metadata, and the module's own records. Values and metadata are numbered in the order
//! of their records; metadata strings count too.
//!
//! Specification: <https://llvm.org/docs/BitCodeFormat.html>; the numbers of the records:
//! `llvm/include/llvm/Bitcode/LLVMBitCodes.h` of LLVM 22.

use std::ops::Range;
use std::sync::Arc;

use super::bitstream::{BitcodeRecord, Bits, BlockInfo, BlockItem, Items, Keep, blocks};
use super::{
    ALIAS, BitcodeError, EmbeddedProblem, FUNCTION, IFUNC, MODULE, VARIABLE, VERSION, unwrap,
};
use crate::format::bytes::{Cursor, ReadAt};

/// The named metadata that lists embedded objects.
const LIST: &[u8] = b"llvm.embedded.objects";
/// The section of offload binaries.
const SECTION: &[u8] = b".llvm.offloading";

/// Reads the objects for the section `.llvm.offloading` that are embedded in the bitcode in a range
/// of `data`. They have the order of the list; empty objects and objects of zeros are skipped.
///
/// The objects are copies, because they need not start at a byte of the bitcode.
///
/// Accepts any input: this does not panic, and allocates at most a small multiple of what it reads.
///
/// # Errors
///
/// Fails if the range is not bitcode, or an entry of the list is not understood.
pub fn embedded_objects<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<Arc<[u8]>>, BitcodeError> {
    /// Maximum size of all objects together, as a multiple of the file's size. Equal objects are
    /// one constant, and no compiler embeds many of them.
    const LIMIT: u64 = 16;
    let range = unwrap(data, range)?;
    let limit = range.end.saturating_sub(range.start).saturating_mul(LIMIT);
    let (mut objects, mut size) = (Vec::new(), 0_u64);
    for block in blocks(data, range)? {
        if block.id != MODULE {
            continue;
        }
        let module = EmbeddingModule::read(block.open(data)?)?;
        let operands = module.operands()?;
        if operands.is_empty() {
            continue;
        }
        let mut wanted = WantedConstants::new(&operands);
        // Reads the block a second time, for the embedded constants.
        module.constants(block.open(data)?, &mut wanted)?;
        for (operand, constant) in operands {
            let content = wanted.content(constant).cloned().flatten();
            let wrong = |problem| BitcodeError::Embedded { operand, problem };
            let value = constant;
            let content = content.ok_or(wrong(EmbeddedProblem::NoVariable { value }))?;
            let content = content.map_err(wrong)?;
            size = size.saturating_add(content.len() as u64);
            if size > limit {
                return Err(BitcodeError::Shared { size });
            }
            if !content.is_empty() {
                objects.push(content);
            }
        }
    }
    Ok(objects)
}

/// The content of a variable.
type EmbeddedContent = Result<Arc<[u8]>, EmbeddedProblem>;

/// Numbers of constants, sorted, with their contents once these are read.
struct WantedConstants {
    numbers: Vec<u64>,
    contents: Vec<Option<EmbeddedContent>>,
}

impl WantedConstants {
    fn new(operands: &[(usize, u64)]) -> Self {
        let mut numbers: Vec<u64> = operands.iter().map(|(_, constant)| *constant).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let contents = vec![None; numbers.len()];
        Self { numbers, contents }
    }

    fn place(&self, constant: u64) -> Option<usize> {
        self.numbers.binary_search(&constant).ok()
    }

    fn content(&self, constant: u64) -> Option<&Option<EmbeddedContent>> {
        self.contents.get(self.place(constant)?)
    }
}

/// IDs of a module's blocks.
const CONSTANTS: u64 = 11;
const METADATA: u64 = 15;
const TYPES: u64 = 17;

/// The parts of a module that describe its embedded objects.
#[derive(Default)]
struct EmbeddingModule {
    /// Types by number; only byte arrays matter.
    types: Vec<ValueType>,
    /// For each variable's value number, the value number of its initializer plus 1.
    variables: Numbered<u64>,
    version: u64,
    metadata: Metadata,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueType {
    Byte,
    /// An array of the type with that number.
    Array(u64),
    Other,
}

impl EmbeddingModule {
    fn read(mut items: Items<'_>) -> Result<Self, BitcodeError> {
        let (mut module, mut info, mut values) = (Self::default(), BlockInfo::default(), 0);
        while let Some(item) = items.next(&info, Keep::First)? {
            match item {
                BlockItem::Record(record) => match record.code {
                    VERSION => module.version = record.field(0),
                    VARIABLE => {
                        module.variables.push(values, record.field(4));
                        values += 1;
                    }
                    FUNCTION | ALIAS | IFUNC => values += 1,
                    _ => {}
                },
                BlockItem::Block(inner) => match inner.id {
                    BlockInfo::ID => info.read(inner)?,
                    TYPES => module.types(inner, &info)?,
                    METADATA => module.metadata.read(inner, &info)?,
                    CONSTANTS => {
                        constants(inner, &info, values, |value, _, _| {
                            values = value + 1;
                            Keep::First
                        })?;
                    }
                    _ => {}
                },
            }
        }
        Ok(module)
    }

    fn types(&mut self, mut items: Items<'_>, info: &BlockInfo) -> Result<(), BitcodeError> {
        const COUNT: u64 = 1;
        const INTEGER: u64 = 7;
        const ARRAY: u64 = 11;
        const NAME: u64 = 19;
        while let Some(item) = items.next(info, Keep::First)? {
            let BlockItem::Record(record) = item else {
                continue;
            };
            self.types.push(match record.code {
                COUNT | NAME => continue,
                INTEGER if record.field(0) == 8 => ValueType::Byte,
                ARRAY => ValueType::Array(record.field(1)),
                _ => ValueType::Other,
            });
        }
        Ok(())
    }

    /// Returns the list's operands for the section: the index of each, and the number of the
    /// embedded constant.
    fn operands(&self) -> Result<Vec<(usize, u64)>, BitcodeError> {
        let mut operands = Vec::new();
        for (operand, node) in self.metadata.list.iter().enumerate() {
            let wrong = |problem| BitcodeError::Embedded { operand, problem };
            if let Some(code) = self.metadata.unknown {
                return Err(BitcodeError::Metadata { code });
            }
            if self.version != 2 {
                let version = self.version;
                return Err(BitcodeError::Version { version });
            }
            let node = self.metadata.nodes.get(*node);
            let [first, second] = *node.ok_or(wrong(EmbeddedProblem::Operand))?;
            let second = second.checked_sub(1);
            match second.and_then(|second| self.metadata.is_section(second)) {
                // The operand belongs to another section.
                Some(false) => continue,
                Some(true) => {}
                None => return Err(wrong(EmbeddedProblem::Operand)),
            }
            let value = first
                .checked_sub(1)
                .and_then(|first| self.metadata.values.get(first));
            let value = *value.ok_or(wrong(EmbeddedProblem::Operand))?;
            let initializer = self.variables.get(value);
            let initializer = initializer.ok_or(wrong(EmbeddedProblem::NoVariable { value }))?;
            let constant = initializer.checked_sub(1);
            operands.push((operand, constant.ok_or(wrong(EmbeddedProblem::Declared))?));
        }
        Ok(operands)
    }

    /// Reads the wanted constants.
    fn constants(
        &self,
        mut items: Items<'_>,
        wanted: &mut WantedConstants,
    ) -> Result<(), BitcodeError> {
        let (mut info, mut values) = (BlockInfo::default(), 0);
        while let Some(item) = items.next(&info, Keep::First)? {
            match item {
                BlockItem::Record(record) => {
                    values += u64::from(matches!(record.code, VARIABLE | FUNCTION | ALIAS | IFUNC));
                }
                BlockItem::Block(inner) if inner.id == BlockInfo::ID => info.read(inner)?,
                BlockItem::Block(inner) if inner.id == CONSTANTS => {
                    constants(inner, &info, values, |value, kind, record| {
                        let place = wanted.place(value);
                        if let Some(slot) = place.and_then(|at| wanted.contents.get_mut(at)) {
                            *slot = Some(self.content(kind, record));
                        }
                        values = value + 1;
                        match wanted.place(values) {
                            Some(_) => Keep::Bytes,
                            None => Keep::First,
                        }
                    })?;
                }
                BlockItem::Block(_) => {}
            }
        }
        Ok(())
    }

    /// Returns the bytes of a constant of that type.
    fn content(&self, kind: u64, record: &BitcodeRecord<'_>) -> EmbeddedContent {
        const NULL: u64 = 2;
        const UNDEFINED: u64 = 3;
        const STRING: u64 = 8;
        const TERMINATED: u64 = 9;
        const DATA: u64 = 22;
        const POISON: u64 = 26;
        let type_of = |index: u64| self.types.get(usize::try_from(index).ok()?).copied();
        match type_of(kind) {
            Some(ValueType::Array(element)) if type_of(element) == Some(ValueType::Byte) => {}
            _ => return Err(EmbeddedProblem::NoBytes),
        }
        match record.code {
            // Zeros or undefined bytes: there is no object.
            NULL | UNDEFINED | POISON => Ok(Arc::default()),
            STRING | TERMINATED | DATA if record.wide => Err(EmbeddedProblem::NoBytes),
            STRING | DATA => Ok(record.bytes.as_slice().into()),
            // The record omits the last byte, a NUL.
            TERMINATED => Ok([record.bytes.as_slice(), &[0]].concat().into()),
            code => Err(EmbeddedProblem::Content { code }),
        }
    }
}

/// Passes each constant of a block to `each`: the numbers of its value and type, and its record.
/// `each` returns which fields to keep of the next.
fn constants<'d>(
    mut items: Items<'d>,
    info: &BlockInfo,
    first: u64,
    mut each: impl FnMut(u64, u64, &BitcodeRecord<'d>) -> Keep,
) -> Result<(), BitcodeError> {
    const SET_TYPE: u64 = 1;
    // Keeps the bytes of the first constant, because `each` has not been called yet.
    let (mut kind, mut keep, mut value) = (0, Keep::Bytes, first);
    while let Some(item) = items.next(info, keep)? {
        let BlockItem::Record(record) = item else {
            continue;
        };
        if record.code == SET_TYPE {
            kind = record.field(0);
            continue;
        }
        keep = each(value, kind, &record);
        value = value.saturating_add(1);
    }
    Ok(())
}

/// Values by number. They are added in the order of their numbers.
struct Numbered<T>(Vec<(u64, T)>);

impl<T> Numbered<T> {
    fn push(&mut self, number: u64, value: T) {
        self.0.push((number, value));
    }

    fn get(&self, number: u64) -> Option<&T> {
        let place = self.0.binary_search_by(|(known, _)| known.cmp(&number));
        self.0.get(place.ok()?).map(|(_, value)| value)
    }
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// The metadata of a module, by number.
#[derive(Default)]
struct Metadata {
    next: u64,
    strings: Vec<Range<u64>>,
    /// Strings that name the section.
    sections: Vec<u64>,
    /// Numbers of values.
    values: Numbered<u64>,
    /// Numbers of both elements, plus 1, for each node of two elements.
    nodes: Numbered<[u64; 2]>,
    /// Numbers of nodes.
    list: Vec<u64>,
    /// Code of an unknown record.
    unknown: Option<u64>,
}

impl Metadata {
    fn read(&mut self, mut items: Items<'_>, info: &BlockInfo) -> Result<(), BitcodeError> {
        const STRING: u64 = 1;
        const VALUE: u64 = 2;
        const NODE: u64 = 3;
        const NAME: u64 = 4;
        const UNIQUE_NODE: u64 = 5;
        const KIND: u64 = 6;
        const LIST_OF_NODES: u64 = 10;
        const STRINGS: u64 = 35;
        const ATTACHMENT: u64 = 36;
        const INDEX: [u64; 2] = [38, 39];
        /// Last code of LLVM 22. Most codes are debug information.
        const LAST: u64 = 49;
        let mut named = false;
        loop {
            let keep = if named { Keep::All } else { Keep::Bytes };
            let Some(item) = items.next(info, keep)? else {
                return Ok(());
            };
            let BlockItem::Record(record) = item else {
                continue;
            };
            let number = self.next;
            match record.code {
                NAME => {
                    named = record.bytes == LIST;
                    continue;
                }
                LIST_OF_NODES if named => self.list.extend(&record.fields),
                LIST_OF_NODES | KIND | ATTACHMENT => {}
                code if INDEX.contains(&code) => {}
                STRINGS => self.read_strings(&record)?,
                STRING => self.add_string(&record.bytes),
                code if code > LAST => self.unknown = Some(code),
                code => {
                    self.next = number.saturating_add(1);
                    match (code, &record.fields[..]) {
                        (VALUE, [_, value]) => {
                            self.values.push(number, *value);
                        }
                        (NODE | UNIQUE_NODE, [first, second]) => {
                            self.nodes.push(number, [*first, *second]);
                        }
                        _ => {}
                    }
                }
            }
            named = false;
        }
    }

    /// Reads many strings from a blob: their lengths, then their characters.
    fn read_strings(&mut self, record: &BitcodeRecord<'_>) -> Result<(), BitcodeError> {
        let code = record.code;
        let blob = record.blob.ok_or(BitcodeError::Metadata { code })?;
        let (count, offset) = (record.field(0), record.field(1));
        let mut lengths = Bits::new(blob, 0);
        let mut characters = Cursor::new(blob, 0..blob.len() as u64).at(offset);
        for _ in 0..count {
            let size = lengths.vbr(6)?;
            let string = characters
                .read(size, "string")
                .map_err(BitcodeError::Table)?;
            self.add_string(string);
        }
        Ok(())
    }

    fn add_string(&mut self, string: &[u8]) {
        let number = self.next;
        self.next = number.saturating_add(1);
        match self.strings.last_mut().filter(|last| last.end == number) {
            Some(last) => last.end = self.next,
            None => self.strings.push(number..self.next),
        }
        if string == SECTION {
            self.sections.push(number);
        }
    }

    /// Tells whether the metadata with that number is the name of the section; `None` if it is not
    /// a string.
    fn is_section(&self, number: u64) -> Option<bool> {
        let at = self
            .strings
            .partition_point(|strings| strings.end <= number);
        let _ = self
            .strings
            .get(at)
            .filter(|strings| strings.contains(&number))?;
        Some(self.sections.binary_search(&number).is_ok())
    }
}

#[cfg(test)]
mod tests;
