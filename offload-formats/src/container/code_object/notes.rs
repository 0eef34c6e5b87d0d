//! Joins the metadata notes of several objects in one image.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use object::LittleEndian;
use object::elf::{FileHeader64, NoteType, PT_NOTE, ProgramHeader64, SHT_NOTE, SectionHeader64};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _, SectionHeader as _};

use super::CodeObjectError;
use crate::container::view::View;
use crate::format::bytes::ReadAt;
use crate::format::msgpack::MsgpackReader;

const OWNER: &[u8] = b"AMDGPU";
const NT_AMDGPU_METADATA: NoteType = NoteType(32);
/// Alignment of notes and of their parts in bytes.
const ALIGNMENT: usize = 4;
/// Keys of lists, which the joined note concatenates.
const KERNELS: &[u8] = b"amdhsa.kernels";
const PRINTF: &[u8] = b"amdhsa.printf";

/// Offsets of sizes in 64-bit headers.
const SH_SIZE: u64 = 0x20;
const P_FILESZ: u64 = 0x20;
const P_MEMSZ: u64 = 0x28;

/// Returns changes of a code object, new bytes by their offsets, that replace all notes `NT_AMDGPU_METADATA` by one note in
/// their place. It contains common values once, so it is shorter, and nothing else moves. If several objects define a
/// kernel, the first one is described: the linker keeps it. Reads headers and notes.
///
/// # Errors
///
/// Fails if `image` is not a linked code object, or the notes cannot be read or have different values.
pub fn joined_notes<'d, R: ReadAt<'d>>(
    image: R,
) -> Result<BTreeMap<u64, Vec<u8>>, CodeObjectError> {
    let Some(change) = Change::find(View::new(image, 0..image.size().unwrap_or(0)))? else {
        return Ok(BTreeMap::new());
    };
    let Change {
        content,
        mut notes,
        sizes,
    } = change;
    let size = notes.len() as u64;
    // The joined note is shorter: it has one header.
    if size > content.end - content.start {
        return Err(CodeObjectError::Layout);
    }
    let length = usize::try_from(content.end - content.start);
    notes.resize(length.map_err(|_| CodeObjectError::Layout)?, 0);
    let mut changes = BTreeMap::new();
    changes.insert(content.start, notes);
    for place in sizes {
        changes.insert(place, size.to_le_bytes().to_vec());
    }
    Ok(changes)
}

/// New notes and their place.
struct Change {
    /// Range of the old notes in the image.
    content: Range<u64>,
    notes: Vec<u8>,
    /// Offsets of the fields with the notes' size.
    sizes: Vec<u64>,
}

impl Change {
    /// Finds the notes of metadata; `None` if the image has fewer than two.
    fn find<'d, R: ReadAt<'d>>(image: View<R>) -> Result<Option<Self>, CodeObjectError> {
        let file = ElfFile64::<LittleEndian, View<R>>::parse(image).map_err(damaged)?;
        let header = file.elf_header();
        let mut found = None;
        let mut count = 0;
        for (index, section) in (0..).zip(file.elf_section_table().iter()) {
            if section.sh_type(LittleEndian) != SHT_NOTE {
                continue;
            }
            let (metadata, notes) = Self::notes(section, image)?;
            if metadata.is_empty() {
                continue;
            }
            count += metadata.len();
            if found.replace((index, section, metadata, notes)).is_some() {
                return Err(CodeObjectError::Layout);
            }
        }
        let Some((index, section, metadata, others)) = found.filter(|_| count > 1) else {
            return Ok(None);
        };
        let offset = section.sh_offset(LittleEndian);
        let size = section.sh_size(LittleEndian);
        let mut sizes = vec![field::<SectionHeader64<LittleEndian>>(
            header.e_shoff(LittleEndian),
            index,
            SH_SIZE,
        )];
        let mut is_segment = false;
        for (index, segment) in (0..).zip(file.elf_program_headers()) {
            if segment.p_type(LittleEndian) != PT_NOTE {
                continue;
            }
            let start = segment.p_offset(LittleEndian);
            let length = segment.p_filesz(LittleEndian);
            if (start, length) == (offset, size) {
                is_segment = true;
                let headers = header.e_phoff(LittleEndian);
                sizes.extend(
                    [P_FILESZ, P_MEMSZ]
                        .map(|at| field::<ProgramHeader64<LittleEndian>>(headers, index, at)),
                );
            }
        }
        let range = |()| Some(offset..offset.checked_add(size)?);
        let content = is_segment.then_some(()).and_then(range);
        let mut notes = note(OWNER, NT_AMDGPU_METADATA, &joined(&metadata)?)?;
        notes.extend(others);
        Ok(Some(Self {
            content: content.ok_or(CodeObjectError::Layout)?,
            notes,
            sizes,
        }))
    }

    /// Returns the contents of a section's metadata notes, and its other notes unchanged.
    fn notes<'d, R: ReadAt<'d>>(
        section: &SectionHeader64<LittleEndian>,
        image: View<R>,
    ) -> Result<(Vec<&'d [u8]>, Vec<u8>), CodeObjectError> {
        let (mut metadata, mut others) = (Vec::new(), Vec::new());
        let Some(notes) = section.notes(LittleEndian, image).map_err(damaged)? else {
            return Ok((metadata, others));
        };
        for one in notes {
            let one: object::read::elf::Note<'d, FileHeader64<LittleEndian>> =
                one.map_err(damaged)?;
            let kind = one.n_type(LittleEndian);
            match (one.name(), kind) {
                (OWNER, NT_AMDGPU_METADATA) => metadata.push(one.desc()),
                (owner, _) => others.extend(note(owner, kind, one.desc())?),
            }
        }
        Ok((metadata, others))
    }
}

fn damaged(error: object::Error) -> CodeObjectError {
    CodeObjectError::Elf64 {
        cause: error.to_string(),
    }
}

/// Returns the offset of a field in a table of headers `H` at `table`.
fn field<H>(table: u64, index: u64, at: u64) -> u64 {
    let offset = index.saturating_mul(size_of::<H>() as u64);
    table.saturating_add(offset).saturating_add(at)
}

fn note(owner: &[u8], kind: NoteType, content: &[u8]) -> Result<Vec<u8>, CodeObjectError> {
    let owner = [owner, b"\0"].concat();
    let sizes = [small(owner.len())?, small(content.len())?];
    let mut bytes = [sizes[0], sizes[1], kind.0].map(u32::to_le_bytes).concat();
    for part in [&owner, content] {
        bytes.extend(part);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    }
    Ok(bytes)
}

fn small(size: usize) -> Result<u32, CodeObjectError> {
    u32::try_from(size).map_err(|_| CodeObjectError::TooLarge { size })
}

/// Joins metadata in one map with sorted keys, as LLVM writes it.
fn joined(contents: &[&[u8]]) -> Result<Vec<u8>, CodeObjectError> {
    let mut lists = [KERNELS, PRINTF].map(|key| (key, None::<Vec<&[u8]>>));
    let mut single: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    // Names of kernels, and formats.
    let mut known_items = BTreeSet::new();
    for (index, content) in contents.iter().copied().enumerate() {
        let (mut keys, mut differ) = (BTreeSet::new(), None);
        MsgpackReader::new(content).map(|key, reader| {
            if let Some((_, list)) = lists.iter_mut().find(|(list, _)| *list == key) {
                let list = list.get_or_insert_default();
                return reader.array(|reader| {
                    let item = item(reader)?;
                    let name = match key {
                        KERNELS => symbol(content, item.clone())?,
                        _ => bytes(content, item.clone()),
                    };
                    if known_items.insert(name) {
                        list.push(bytes(content, item));
                    }
                    Ok::<(), CodeObjectError>(())
                });
            }
            let value = bytes(content, item(reader)?);
            keys.insert(key);
            let known = match index {
                0 => Some(*single.entry(key).or_insert(value)),
                _ => single.get(key).copied(),
            };
            if known != Some(value) {
                differ = Some(key);
            }
            Ok(())
        })?;
        let mut known = single.keys().copied();
        // A key that this note does not have.
        if let Some(key) = differ.or_else(|| known.find(|key| !keys.contains(key))) {
            let key = String::from_utf8_lossy(key).into_owned();
            return Err(CodeObjectError::Differ { key });
        }
    }
    let mut joined = Vec::new();
    for (key, items) in lists {
        if let Some(items) = items {
            let head = head(0x90, 0xdc, items.len())?;
            joined.push((key, [&head, &*items.concat()].concat()));
        }
    }
    let mut entries = single;
    entries.extend(joined.iter().map(|(key, list)| (*key, &list[..])));
    let mut out = head(0x80, 0xde, entries.len())?;
    for (key, value) in entries {
        out.extend(str_head(key.len())?);
        out.extend(key);
        out.extend(value);
    }
    Ok(out)
}

/// Skips a value and returns its range.
fn item(reader: &mut MsgpackReader<'_>) -> Result<Range<usize>, CodeObjectError> {
    let place = |offset: u64| usize::try_from(offset).expect("the content is in memory");
    let start = place(reader.offset());
    reader.skip()?;
    Ok(start..place(reader.offset()))
}

fn bytes(content: &[u8], range: Range<usize>) -> &[u8] {
    content
        .get(range)
        .expect("`item` returns a range of the content")
}

/// Returns the name of a kernel's descriptor.
fn symbol(content: &[u8], kernel: Range<usize>) -> Result<&[u8], CodeObjectError> {
    let offset = kernel.start as u64;
    let mut symbol = None;
    MsgpackReader::new(bytes(content, kernel)).map(|key, reader| {
        match key {
            b".symbol" => symbol = Some(reader.text()?.as_bytes()),
            _ => reader.skip()?,
        }
        Ok::<(), CodeObjectError>(())
    })?;
    symbol.ok_or(CodeObjectError::NoSymbol { offset })
}

/// Encodes the head of an array or a map: one byte for up to 15 values, else a count of 2 or 4 bytes.
fn head(few: u8, many: u8, count: usize) -> Result<Vec<u8>, CodeObjectError> {
    if let Ok(low @ 0..16) = u8::try_from(count) {
        return Ok(vec![few | low]);
    }
    Ok(match u16::try_from(count) {
        Ok(count) => [&[many][..], &count.to_be_bytes()].concat(),
        Err(_) => [&[many + 1][..], &small(count)?.to_be_bytes()].concat(),
    })
}

fn str_head(size: usize) -> Result<Vec<u8>, CodeObjectError> {
    Ok(match u8::try_from(size) {
        Ok(size @ 0..32) => vec![0xa0 | size],
        Ok(size) => vec![0xd9, size],
        Err(_) => [&[0xdb][..], &small(size)?.to_be_bytes()].concat(),
    })
}
