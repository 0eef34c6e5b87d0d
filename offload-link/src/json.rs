//! JSON in the form that every tool prints.

use std::io::{self, Write};

use serde::Serialize;

/// Returns indented JSON with a line feed at the end.
pub(crate) fn text(value: &impl Serialize) -> String {
    // Fails only for maps whose keys are not strings and for handwritten `Serialize`; no value here has either.
    let text = serde_json::to_string_pretty(value).expect("derived values have string keys");
    text + "\n"
}

/// Writes a value like [`text`], which may be too large for memory.
pub(crate) fn write(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}
