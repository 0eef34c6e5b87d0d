//! Findings and their places.

use std::fmt;

use super::codes::FindingCode;
use crate::container::inventory::{ImageContainer, InventoryImage};
use crate::escape::terminal;

/// Something that is wrong with the device code of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Kind of the finding.
    pub code: FindingCode,
    /// Place in the file.
    pub place: FindingPlace,
    /// Description: what was expected and what was found. Strings from the file are escaped for terminals.
    pub message: String,
}

/// Place of a finding in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct FindingPlace {
    /// Names of the archive members, the outermost first.
    pub members: Vec<Vec<u8>>,
    /// Name of the section.
    pub section: Option<Vec<u8>>,
    /// Offset in the file in bytes; of a place in unpacked bytes, the offset of their container.
    pub offset: Option<u64>,
    /// Index of the image in its container.
    pub index: Option<usize>,
    /// Entry ID or target of the image.
    pub entry: Option<String>,
}

impl FindingPlace {
    /// Returns the place of a container.
    pub(super) fn of(container: &ImageContainer) -> Self {
        Self {
            members: container.members.clone(),
            section: container.section.clone(),
            offset: Some(container.range.start),
            ..Self::default()
        }
    }

    /// Returns the place of an image in this container.
    pub(super) fn entry(&self, image: &InventoryImage) -> Self {
        let target = &image.target;
        let entry = image
            .entry_id
            .clone()
            .unwrap_or_else(|| match target.processor.as_str() {
                "" => target.triple.clone(),
                processor => processor.to_owned(),
            });
        Self {
            index: Some(image.index),
            entry: Some(entry),
            ..self.clone()
        }
    }

    /// Returns a place in a section of the file.
    pub(super) fn in_section(name: &[u8], offset: u64) -> Self {
        Self {
            section: Some(name.to_vec()),
            offset: Some(offset),
            ..Self::default()
        }
    }
}

impl fmt::Display for FindingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut part = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            write!(f, "{separator}{text}")?;
            separator = ", ";
            Ok(())
        };
        for member in &self.members {
            part(f, format_args!("member `{}`", terminal(&member[..])))?;
        }
        if let Some(section) = &self.section {
            part(f, format_args!("section `{}`", terminal(&section[..])))?;
        }
        if let Some(offset) = self.offset {
            part(f, format_args!("offset {offset:#x}"))?;
        }
        match (self.index, &self.entry) {
            (Some(index), Some(entry)) => {
                part(f, format_args!("entry {index} `{}`", terminal(entry)))
            }
            _ => Ok(()),
        }
    }
}

/// Findings of a file while it is verified.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn add(
        &mut self,
        code: FindingCode,
        place: FindingPlace,
        message: &dyn fmt::Display,
    ) {
        let message = message.to_string();
        self.0.push(Finding {
            code,
            place,
            message,
        });
    }

    /// Returns the findings in the order of their codes, and for each code in the order of the file.
    pub(super) fn sorted(mut self) -> Vec<Finding> {
        self.0
            .sort_by(|one, two| (one.code, &one.place).cmp(&(two.code, &two.place)));
        self.0.dedup();
        self.0
    }
}
