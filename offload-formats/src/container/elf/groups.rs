//! The COMDAT groups of an object: sections of which the linker keeps one copy in a program.

use object::{Endian as _, elf};

use super::{Elf, ElfError, ElfSection};
use crate::format::bytes::ReadAt;

/// A COMDAT group. Of all groups whose signatures have one name, the linker keeps the first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComdatGroup {
    /// Index of the section that describes the group.
    pub section: u32,
    /// Index of the symbol whose name identifies the group.
    pub signature: u32,
    /// Indices of the sections in the group.
    pub members: Vec<u32>,
}

impl<'d, R: ReadAt<'d>> Elf<'d, R> {
    /// Returns the COMDAT groups in the order of their headers.
    ///
    /// # Errors
    ///
    /// Fails if a group is not inside the file.
    pub fn comdat_groups(&self) -> Result<Vec<ComdatGroup>, ElfError> {
        let is_group = |section: &ElfSection| section.section_type == elf::SHT_GROUP.0;
        let mut groups = Vec::new();
        for section in self.sections().filter(is_group) {
            let words = self.content(&section)?.chunks_exact(4);
            let mut words = words.map(|word| {
                let word = word.try_into().expect("chunks have 4 bytes");
                self.endian.read_u32(word)
            });
            let flags = words.next().unwrap_or(0);
            if flags & elf::GRP_COMDAT.0 != 0 {
                groups.push(ComdatGroup {
                    section: section.index,
                    signature: section.info,
                    members: words.collect(),
                });
            }
        }
        Ok(groups)
    }
}
