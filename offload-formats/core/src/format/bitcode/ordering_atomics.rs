//! Atomic operations that order other accesses of memory: read-modify-write operations and compare-exchange.
//!
//! The record of a read-modify-write operation ends with: operation, volatile, order, scope, alignment. That of a compare-exchange
//! ends with: order, scope, order of a failure, weak, alignment. Before these a record has its operands, each with a type if the
//! operand is defined later.
//!
//! Specification: <https://llvm.org/docs/BitCodeFormat.html>; the numbers of the records:
//! `llvm/include/llvm/Bitcode/LLVMBitCodes.h` of LLVM 22.

use std::ops::Range;

use super::bitstream::{BitcodeRecord, BlockInfo, BlockItem, Items, Keep, blocks};
use super::{BitcodeError, FUNCTION, MODULE, STRTAB, name, unwrap};
use crate::format::bytes::ReadAt;

/// Block of a function's instructions.
const BODY: u64 = 12;
/// Record of a compare-exchange.
const COMPARE_EXCHANGE: u64 = 46;
/// Record of an atomic read-modify-write operation.
const READ_MODIFY_WRITE: u64 = 59;
/// The order of relaxed operations; numbers above order other accesses, too.
const RELAXED: u64 = 2;
/// The alignment of four bytes: the binary logarithm plus one.
const FOUR_BYTES: u64 = 3;

/// Atomic operation that orders other accesses, such as `fetch_add` with `AcqRel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrderingAtomic {
    /// Group of the operation.
    pub kind: AtomicKind,
    /// True for operations of one or two bytes.
    pub is_small: bool,
}

/// Group of atomic operations for which LLVM generates similar code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtomicKind {
    /// `cmpxchg`.
    CompareExchange,
    /// `and`, `or` and `xor`, which change no other bytes if they are done on a larger word.
    Bitwise,
    /// `nand`, which GPUs do not have.
    Nand,
    /// Other read-modify-write operations.
    Other,
}

/// Returns the names of the functions in the bitcode in a range of `data` that have an atomic operation that orders other accesses
/// and for which `is_wanted` returns true.
///
/// # Errors
///
/// Fails if the range is not bitcode, or a block, record or name exceeds its container.
pub fn functions_with_ordering_atomics<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    is_wanted: impl Fn(OrderingAtomic) -> bool,
) -> Result<Vec<&'d [u8]>, BitcodeError> {
    let (mut waiting, mut found) = (Vec::new(), Vec::new());
    for block in blocks(data, unwrap(data, range)?)? {
        match block.id {
            MODULE => waiting.extend(of_module(block.open(data)?, &is_wanted)?),
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
fn of_module(
    mut items: Items<'_>,
    is_wanted: &impl Fn(OrderingAtomic) -> bool,
) -> Result<Vec<(u64, u64)>, BitcodeError> {
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
                if has_ordering_atomic(body, &info, is_wanted)? {
                    found.extend(name);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

fn has_ordering_atomic(
    mut body: Items<'_>,
    info: &BlockInfo,
    is_wanted: &impl Fn(OrderingAtomic) -> bool,
) -> Result<bool, BitcodeError> {
    while let Some(item) = body.next(info, Keep::First)? {
        match item {
            BlockItem::Record(record) if ordering_atomic(&record).is_some_and(is_wanted) => {
                return Ok(true);
            }
            _ => {}
        }
    }
    Ok(false)
}

fn ordering_atomic(record: &BitcodeRecord<'_>) -> Option<OrderingAtomic> {
    let (kind, order, alignment) = match (record.code, record.fields.as_slice()) {
        (COMPARE_EXCHANGE, [.., order, _scope, failure, _weak, alignment]) => {
            let order = order.max(failure);
            (AtomicKind::CompareExchange, order, alignment)
        }
        (READ_MODIFY_WRITE, [.., operation, _volatile, order, _scope, alignment]) => {
            let kind = match operation {
                3 | 5 | 6 => AtomicKind::Bitwise,
                4 => AtomicKind::Nand,
                _ => AtomicKind::Other,
            };
            (kind, order, alignment)
        }
        _ => return None,
    };
    (*order > RELAXED).then_some(OrderingAtomic {
        kind,
        is_small: *alignment < FOUR_BYTES,
    })
}
