//! Corrections of entry IDs.

use crate::names::entry_id::words::FIELDS;
use crate::names::{EntryId, EntryIdError};

impl EntryIdError {
    /// Returns a corrected entry ID, if the correction is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let Self::Fields { text } = self else {
            return None;
        };
        let id = EntryId::parse(text).ok()?;
        // The dash of the empty environment is missing, and perhaps the one at the end.
        let triple = id.triple.as_str();
        (triple.matches('-').count() == FIELDS - 2).then(|| {
            format!(
                "the environment is missing; write `{}-{triple}--{}`, with two dashes where it is empty",
                id.kind, id.target_id
            )
        })
    }
}
