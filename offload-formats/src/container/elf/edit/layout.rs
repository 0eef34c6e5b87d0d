//! Offsets in the new file.

use object::elf;

use super::super::ElfWriteError;
use super::file::{EditedElf, SectionContent, Segment};

/// Offsets of all parts from the start of the new file.
#[derive(Debug)]
pub(super) struct NewLayout {
    /// Offsets of sections by old index.
    pub(super) sections: Vec<u64>,
    /// Offsets of segments by index.
    pub(super) segments: Vec<u64>,
    pub(super) program_headers: u64,
    pub(super) section_headers: u64,
}

impl NewLayout {
    pub(super) fn of(file: &EditedElf<'_>) -> Result<Self, ElfWriteError> {
        let (segments, mut end) = place_segments(file)?;
        let mut sections = vec![0; file.parts.len()];
        let mut free: Vec<(u64, usize)> = Vec::new();
        for (index, part) in file.parts.iter().enumerate().skip(1) {
            let offset = part.section.offset.saturating_sub(file.start);
            let segment = part.segment.and_then(|index| file.segments.get(index));
            let moved = segment.and_then(|segment| {
                let start = segments.get(segment.index)?;
                // The address decides if a section without bytes is in a segment. Its offset may be
                // before the segment.
                Some(start.wrapping_add(offset.wrapping_sub(segment.offset)))
            });
            match (moved, sections.get_mut(index)) {
                (Some(moved), Some(place)) => *place = moved,
                _ if part.kept => free.push((part.section.offset, index)),
                _ => (),
            }
        }
        free.sort_unstable();
        for (_, index) in free {
            let (Some(part), Some(place)) = (file.parts.get(index), sections.get_mut(index)) else {
                continue;
            };
            end = align(end, part.section.alignment, 0)?;
            *place = end;
            if part.section.section_type != elf::SHT_NOBITS.0 {
                end = add(end, part.section.size)?;
            }
        }
        // Alignments and overlapping sections can amplify the size.
        let grown = end
            .saturating_sub(file.size)
            .saturating_sub(file.new_size());
        if grown > LARGEST_GROWTH {
            return Err(ElfWriteError::TooLarge { value: end });
        }
        let headers = file.segments.len();
        Ok(Self {
            sections,
            program_headers: *segments
                .get(headers + 1)
                .expect("the program headers follow the file header"),
            segments,
            section_headers: align(end, file.form.word_size(), 0)?,
        })
    }
}

/// Maximum growth of a file without new contents.
const LARGEST_GROWTH: u64 = 1 << 30;

/// Returns the offsets of the segments, then of the file header and the program headers, and the end of all.
fn place_segments(file: &EditedElf<'_>) -> Result<(Vec<u64>, u64), ElfWriteError> {
    let [header_size, ..] = file.form.sizes();
    let (program_headers, offset) = file.program_headers;
    let count = file.segments.len();
    let mut segments = file.segments.clone();
    // The headers are laid out like segments.
    segments.push(Segment {
        index: count,
        segment_type: elf::PT_PHDR.0,
        offset: 0,
        file_size: header_size.into(),
        address: 0,
        memory_size: 0,
        alignment: 0,
    });
    segments.push(Segment {
        index: count + 1,
        segment_type: elf::PT_PHDR.0,
        offset,
        file_size: program_headers.len() as u64,
        address: offset,
        memory_size: 0,
        alignment: file.form.word_size(),
    });
    let mut places = vec![0; segments.len()];
    segments.sort_unstable_by_key(Segment::order);
    // The parent of a segment is the first segment that reaches beyond its offset. Later ones may, too,
    // but they move with the first.
    let parents = segments.iter().filter(|parent| parent.index < count);
    let mut parents = parents.peekable();
    let mut end = 0;
    for segment in &segments {
        let before = |parent: &Segment| parent.order() < segment.order();
        let passed = |parent: &&Segment| before(parent) && parent.ends_before(segment.offset);
        while parents.next_if(passed).is_some() {}
        let parent = parents.peek().filter(|parent| before(parent));
        let parent = parent.and_then(|parent| {
            let distance = segment.offset.checked_sub(parent.offset)?;
            Some((places.get(parent.index)?, distance))
        });
        let start = match parent {
            Some((start, distance)) => add(*start, distance)?,
            None => align(end, segment.alignment, segment.address)?,
        };
        if let Some(place) = places.get_mut(segment.index) {
            *place = start;
        }
        end = end.max(add(start, segment.file_size)?);
    }
    Ok((places, end))
}

impl Segment {
    /// Sorts by offset. At equal offsets, the segment with the largest alignment is first and so
    /// decides the place.
    fn order(&self) -> (u64, std::cmp::Reverse<u64>, usize) {
        (self.offset, std::cmp::Reverse(self.alignment), self.index)
    }

    fn ends_before(&self, offset: u64) -> bool {
        self.offset.saturating_add(self.file_size) <= offset
    }
}

impl EditedElf<'_> {
    /// Returns the size of all new contents.
    fn new_size(&self) -> u64 {
        let new = self.parts.iter().filter_map(|part| match &part.content {
            SectionContent::New(piece) => Some(piece.size()),
            _ => None,
        });
        new.fold(0, u64::saturating_add)
    }

    /// Sets the sizes of rewritten sections, except strings.
    pub(super) fn size_tables(&mut self) {
        let [.., symbol_size] = self.form.sizes();
        let symbols = self.symbols.as_ref();
        let count = symbols.map_or(0, |symbols| symbols.symbols.len() as u64);
        for part in &mut self.parts {
            let section = &mut part.section;
            match &part.content {
                SectionContent::Group(group) => section.size = 4 + 4 * group.members.len() as u64,
                SectionContent::Symbols => {
                    section.entry_size = symbol_size.into();
                    section.size = count.saturating_mul(symbol_size.into());
                }
                SectionContent::WideIndices => section.size = 4 * count,
                _ => (),
            }
        }
    }
}

fn add(offset: u64, size: u64) -> Result<u64, ElfWriteError> {
    let value = u64::MAX;
    offset
        .checked_add(size)
        .ok_or(ElfWriteError::TooLarge { value })
}

/// Returns the first offset from `offset` on that is congruent to `address` modulo `alignment`, which need
/// not be a power of two.
fn align(offset: u64, alignment: u64, address: u64) -> Result<u64, ElfWriteError> {
    let alignment = alignment.max(1);
    let skew = address % alignment;
    let distance = add(offset, alignment - 1 - skew)? / alignment;
    let value = u64::MAX;
    distance
        .checked_mul(alignment)
        .and_then(|multiple| multiple.checked_add(skew))
        .ok_or(ElfWriteError::TooLarge { value })
}
