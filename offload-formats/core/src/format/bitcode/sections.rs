//! Section names in bitcode.

use std::ops::Range;

use super::bitstream::{BlockInfo, BlockItem, Keep, blocks};
use super::{BitcodeError, MODULE, SECTION_NAME, unwrap};
use crate::format::bytes::ReadAt;

/// Reads the names of the sections of functions and variables of the bitcode in a range of `data`.
/// Each name is listed once per module, in the module's order.
///
/// # Errors
///
/// Fails if the range is not bitcode, or a block or record exceeds its container.
pub fn section_names<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<Vec<u8>>, BitcodeError> {
    let mut names = Vec::new();
    for block in blocks(data, unwrap(data, range)?)? {
        if block.id != MODULE {
            continue;
        }
        let (mut items, mut info) = (block.open(data)?, BlockInfo::default());
        while let Some(item) = items.next(&info, Keep::Bytes)? {
            match item {
                BlockItem::Record(record) if record.code == SECTION_NAME => {
                    names.push(record.bytes)
                }
                BlockItem::Block(inner) if inner.id == BlockInfo::ID => info.read(inner)?,
                _ => {}
            }
        }
    }
    Ok(names)
}
