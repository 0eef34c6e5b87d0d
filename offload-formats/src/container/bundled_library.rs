//! Native libraries in rlibs.
//!
//! rustc puts the members of a native library among those of the rlib, unless it is to be linked with `+whole-archive`. Then
//! the archive is the section [`SECTION`] of an object, which is a member with the archive's name. When rustc links a program,
//! it writes the archive to a file again, for the linker.
//!
//! Specification: `create_wrapper_file` in `compiler/rustc_codegen_ssa/src/back/metadata.rs`.

use std::ops::Range;

use crate::format::bytes::ReadAt;
use crate::format::magic::Magic;

/// Name of the section. Mach-O's name of the segment comes before it.
const SECTION: &[u8] = b".bundled_lib";

/// Tells whether a section of an object is a native library that rustc put into an rlib.
pub(super) fn is_bundled_library<'d, R: ReadAt<'d>>(
    data: R,
    name: &[u8],
    content: Range<u64>,
) -> bool {
    name.ends_with(SECTION) && Magic::at(data, content) == Magic::Archive
}
