//! Writes text bundles.

use std::fmt;

use super::{Comment, END, START};

/// Returns the comments around a text, for callers that copy the texts from file to file.
///
/// # Errors
///
/// Fails if the entry ID contains a line feed.
pub fn comments(id: &str, comment: Comment) -> Result<[Vec<u8>; 2], TextBundleWriteError> {
    if id.contains('\n') {
        let id = id.to_owned();
        return Err(TextBundleWriteError::Lines { id });
    }
    let line = |word| [&comment.marker(word), id.as_bytes(), b"\n"].concat();
    Ok([START, END].map(line))
}

/// Writes a text bundle as LLVM does. Each entry is an ID and its text.
///
/// # Errors
///
/// Fails if a text could not be read back: it contains its closing comment, an entry ID contains a line
/// feed, or an entry ID is given twice.
pub fn to_bytes(
    entries: &[(&str, &[u8])],
    comment: Comment,
) -> Result<Vec<u8>, TextBundleWriteError> {
    let mut bytes = Vec::new();
    let ending = comment.marker(END);
    for (index, (id, text)) in entries.iter().enumerate() {
        let owned = || (*id).to_owned();
        if entries.iter().take(index).any(|(other, _)| other == id) {
            return Err(TextBundleWriteError::Twice { id: owned() });
        }
        let [start, end] = comments(id, comment)?;
        if let Some(offset) = find(text, &ending) {
            let offset = offset as u64;
            return Err(TextBundleWriteError::Ends {
                id: owned(),
                offset,
            });
        }
        bytes.extend_from_slice(&start);
        bytes.extend_from_slice(text);
        bytes.extend_from_slice(&end);
    }
    Ok(bytes)
}

/// Returns the first position of a marker, which starts with a line feed.
fn find(text: &[u8], marker: &[u8]) -> Option<usize> {
    let mut feeds = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let (place, _) = feeds.find(|(place, _)| {
        let here = text.get(*place..);
        here.is_some_and(|here| here.starts_with(marker))
    })?;
    Some(place)
}

/// An error while writing a text bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextBundleWriteError {
    /// Two texts with the same ID.
    Twice {
        /// The ID.
        id: String,
    },
    /// An entry ID with a line feed.
    Lines {
        /// The ID.
        id: String,
    },
    /// A text that contains its closing comment, where readers would cut it.
    Ends {
        /// ID of the text.
        id: String,
        /// Offset of the comment in the text.
        offset: u64,
    },
}

impl fmt::Display for TextBundleWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice { id } => write!(f, "two texts for the entry ID {id:?}"),
            Self::Lines { id } => write!(f, "the entry ID {id:?} contains a line feed"),
            Self::Ends { id, offset } => write!(
                f,
                "the text for {id:?} contains the end of a text bundle at offset {offset:#x}"
            ),
        }
    }
}

impl std::error::Error for TextBundleWriteError {}
