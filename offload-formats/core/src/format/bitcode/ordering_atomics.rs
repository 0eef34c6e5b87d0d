//! Atomic read-modify-write operations that order other accesses of memory.
//!
//! The record of such an operation ends with: operation, volatile, order, scope, alignment. Before these it has its operands, each
//! with a type if the operand is defined later.
//!
//! Specification: <https://llvm.org/docs/BitCodeFormat.html>; the numbers of the records:
//! `llvm/include/llvm/Bitcode/LLVMBitCodes.h` of LLVM 22.

use std::ops::Range;

use super::bitstream::{BitcodeRecord, BlockInfo, BlockItem, Items, Keep, blocks};
use super::{BitcodeError, FUNCTION, MODULE, STRTAB, name, unwrap};
use crate::format::bytes::ReadAt;

/// Block of a function's instructions.
const BODY: u64 = 12;
/// Record of an atomic read-modify-write operation.
const READ_MODIFY_WRITE: u64 = 59;
/// The order of relaxed operations; numbers above order other accesses, too.
const RELAXED: u64 = 2;
/// The alignment of four bytes: the binary logarithm plus one.
const FOUR_BYTES: u64 = 3;

/// Returns the names of the functions in the bitcode in a range of `data` that have an atomic read-modify-write operation of four
/// bytes or more that orders other accesses, such as `fetch_add` with `AcqRel`.
///
/// # Errors
///
/// Fails if the range is not bitcode, or a block, record or name exceeds its container.
pub fn functions_with_ordering_atomics<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<&'d [u8]>, BitcodeError> {
    let (mut waiting, mut found) = (Vec::new(), Vec::new());
    for block in blocks(data, unwrap(data, range)?)? {
        match block.id {
            MODULE => waiting.extend(of_module(block.open(data)?)?),
            STRTAB => {
                let mut strings = None;
                block.records(data, &mut |record| strings = strings.or(record.blob))?;
                let strings = strings.ok_or(BitcodeError::Strings)?;
                for (offset, size) in waiting.drain(..) {
                    found.push(name(strings, offset, size)?);
                }
            }
            _ => {}
        }
    }
    match waiting.as_slice() {
        [] => Ok(found),
        _ => Err(BitcodeError::Strings),
    }
}

/// Returns the places of the functions' names.
fn of_module(mut items: Items<'_>) -> Result<Vec<(u64, u64)>, BitcodeError> {
    let (mut defined, mut bodies, mut found) = (Vec::new(), 0, Vec::new());
    let mut info = BlockInfo::default();
    while let Some(item) = items.next(&info, Keep::First)? {
        match item {
            BlockItem::Record(record) if record.code == FUNCTION && record.field(4) == 0 => {
                defined.push((record.field(0), record.field(1)));
            }
            BlockItem::Block(inner) if inner.id == BlockInfo::ID => info.read(inner)?,
            // Bodies have the order of the functions that are defined.
            BlockItem::Block(body) if body.id == BODY => {
                let name = defined.get(bodies).copied();
                bodies += 1;
                if has_ordering_atomic(body, &info)? {
                    found.extend(name);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

fn has_ordering_atomic(mut body: Items<'_>, info: &BlockInfo) -> Result<bool, BitcodeError> {
    while let Some(item) = body.next(info, Keep::First)? {
        match item {
            BlockItem::Record(record) if is_ordering_atomic(&record) => return Ok(true),
            _ => {}
        }
    }
    Ok(false)
}

fn is_ordering_atomic(record: &BitcodeRecord<'_>) -> bool {
    match record.fields.as_slice() {
        [.., order, _scope, alignment] => {
            record.code == READ_MODIFY_WRITE && *order > RELAXED && *alignment >= FOUR_BYTES
        }
        _ => false,
    }
}
