//! Notes of metadata, of several objects in one image.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use object::LittleEndian;
use object::elf::{FileHeader64, NoteType, PT_NOTE, ProgramHeader64, SHT_NOTE, SectionHeader64};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _, SectionHeader as _};

use super::CodeObjectError;
use crate::format::msgpack::MsgpackReader;

const OWNER: &[u8] = b"AMDGPU";
const NT_AMDGPU_METADATA: NoteType = NoteType(32);
/// Of all notes: their own parts, and each behind another.
const ALIGNMENT: usize = 4;
/// Lists, of which the joined note has those of all.
const KERNELS: &[u8] = b"amdhsa.kernels";
const PRINTF: &[u8] = b"amdhsa.printf";

/// Where sizes are in headers of 64 bits.
const SH_SIZE: u64 = 0x20;
const P_FILESZ: u64 = 0x20;
const P_MEMSZ: u64 = 0x28;

/// Makes one note of all notes `NT_AMDGPU_METADATA`, in their place: what several have is there once, so it is shorter, and
/// nothing else moves. Of kernels that several objects have, the first is described, which is the one the linker keeps.
///
/// # Errors
///
/// When it is no image that a linker makes for AMD GPUs, or the notes cannot be read, or do not agree.
pub fn join_notes(image: &mut [u8]) -> Result<(), CodeObjectError> {
    let Some(change) = Change::find(image)? else {
        return Ok(());
    };
    let Change {
        content,
        notes,
        sizes,
    } = change;
    let (size, layout) = (notes.len() as u64, CodeObjectError::Layout);
    let old = image.get_mut(content).ok_or(layout.clone())?;
    // Each note has at least a header of its own that goes.
    let (new, rest) = old
        .split_at_mut_checked(notes.len())
        .ok_or(layout.clone())?;
    new.copy_from_slice(&notes);
    rest.fill(0);
    for place in sizes {
        let place = usize::try_from(place).map_err(|_| layout.clone())?;
        let field = image.get_mut(place..).and_then(|rest| rest.get_mut(..8));
        field
            .ok_or(layout.clone())?
            .copy_from_slice(&size.to_le_bytes());
    }
    Ok(())
}

/// What is to be written, and where.
struct Change {
    /// The old notes, in the image.
    content: Range<usize>,
    notes: Vec<u8>,
    /// Fields with their size.
    sizes: Vec<u64>,
}

impl Change {
    /// Nothing where there are fewer than two notes of metadata.
    fn find(image: &[u8]) -> Result<Option<Self>, CodeObjectError> {
        let file = ElfFile64::<LittleEndian>::parse(image)?;
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
        let range = |()| {
            let start = usize::try_from(offset).ok()?;
            Some(start..start.checked_add(usize::try_from(size).ok()?)?)
        };
        let content = is_segment.then_some(()).and_then(range);
        let mut notes = note(OWNER, NT_AMDGPU_METADATA, &joined(&metadata)?);
        notes.extend(others);
        Ok(Some(Self {
            content: content.ok_or(CodeObjectError::Layout)?,
            notes,
            sizes,
        }))
    }

    /// The contents of a section's notes of metadata, and its other notes as they are.
    fn notes<'d>(
        section: &SectionHeader64<LittleEndian>,
        image: &'d [u8],
    ) -> Result<(Vec<&'d [u8]>, Vec<u8>), CodeObjectError> {
        let (mut metadata, mut others) = (Vec::new(), Vec::new());
        let Some(notes) = section.notes(LittleEndian, image)? else {
            return Ok((metadata, others));
        };
        for one in notes {
            let one: object::read::elf::Note<'d, FileHeader64<LittleEndian>> = one?;
            let kind = one.n_type(LittleEndian);
            match (one.name(), kind) {
                (OWNER, NT_AMDGPU_METADATA) => metadata.push(one.desc()),
                (owner, _) => others.extend(note(owner, kind, one.desc())),
            }
        }
        Ok((metadata, others))
    }
}

/// Where a field is of one of the headers `H` that begin at `table`.
fn field<H>(table: u64, index: u64, at: u64) -> u64 {
    let offset = index.saturating_mul(size_of::<H>() as u64);
    table.saturating_add(offset).saturating_add(at)
}

fn note(owner: &[u8], kind: NoteType, content: &[u8]) -> Vec<u8> {
    let size = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
    let owner = [owner, b"\0"].concat();
    let mut bytes = [size(owner.len()), size(content.len()), kind.0.to_le_bytes()].concat();
    for part in [&owner, content] {
        bytes.extend(part);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    }
    bytes
}

/// One map of all that these say, with its keys in order, as LLVM writes it.
fn joined(contents: &[&[u8]]) -> Result<Vec<u8>, CodeObjectError> {
    let mut lists: BTreeMap<Vec<u8>, Vec<&[u8]>> = BTreeMap::new();
    let mut single: BTreeMap<Vec<u8>, &[u8]> = BTreeMap::new();
    // Names of kernels, and formats.
    let mut seen = BTreeSet::new();
    for (index, content) in contents.iter().enumerate() {
        let mut left: BTreeSet<Vec<u8>> = single.keys().cloned().collect();
        let mut differ = None;
        MsgpackReader::new(content).map(|key, reader| match key {
            KERNELS | PRINTF => {
                let list = lists.entry(key.to_vec()).or_default();
                reader.array(|reader| {
                    let item = item(content, reader)?;
                    let name = match key {
                        KERNELS => symbol(content, item.clone())?,
                        _ => bytes(content, item.clone()).to_vec(),
                    };
                    if seen.insert(name) {
                        list.push(bytes(content, item));
                    }
                    Ok::<(), CodeObjectError>(())
                })
            }
            _ => {
                let range = item(content, reader)?;
                let value = bytes(content, range);
                left.remove(key);
                let known = match index {
                    0 => single.insert(key.to_vec(), value).or(Some(value)),
                    _ => single.get(key).copied(),
                };
                if known != Some(value) {
                    differ = Some(key.to_vec());
                }
                Ok(())
            }
        })?;
        // What only one of them says.
        if let Some(key) = differ.or_else(|| left.pop_first()) {
            let key = String::from_utf8_lossy(&key).into_owned();
            return Err(CodeObjectError::Differ { key });
        }
    }
    let mut entries: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for (key, items) in lists {
        let head = head(0x90, 0xdc, items.len());
        entries.insert(key, [&head, &*items.concat()].concat());
    }
    entries.extend(single.into_iter().map(|(key, value)| (key, value.to_vec())));
    let mut out = head(0x80, 0xde, entries.len());
    for (key, value) in entries {
        out.extend(str_head(key.len()));
        out.extend(key);
        out.extend(value);
    }
    Ok(out)
}

/// Passes a value, and says where it is.
fn item(content: &[u8], reader: &mut MsgpackReader<'_>) -> Result<Range<usize>, CodeObjectError> {
    let place = |offset: u64| usize::try_from(offset).unwrap_or(content.len());
    let start = place(reader.offset());
    reader.skip()?;
    Ok(start..place(reader.offset()))
}

fn bytes(content: &[u8], range: Range<usize>) -> &[u8] {
    content.get(range).unwrap_or_default()
}

/// The name of a kernel's descriptor.
fn symbol(content: &[u8], kernel: Range<usize>) -> Result<Vec<u8>, CodeObjectError> {
    let offset = kernel.start as u64;
    let mut symbol = None;
    MsgpackReader::new(bytes(content, kernel)).map(|key, reader| {
        match key {
            b".symbol" => symbol = Some(reader.text()?.as_bytes().to_vec()),
            _ => reader.skip()?,
        }
        Ok::<(), CodeObjectError>(())
    })?;
    symbol.ok_or(CodeObjectError::NoSymbol { offset })
}

/// Of an array or a map: in the first byte up to 15 values, else with a count of 2 or 4 bytes.
fn head(few: u8, many: u8, count: usize) -> Vec<u8> {
    if let Ok(low @ 0..16) = u8::try_from(count) {
        return vec![few | low];
    }
    match u16::try_from(count) {
        Ok(count) => [&[many][..], &count.to_be_bytes()].concat(),
        // A note has fewer bytes than that.
        Err(_) => {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            [&[many + 1][..], &count.to_be_bytes()].concat()
        }
    }
}

fn str_head(size: usize) -> Vec<u8> {
    match u8::try_from(size) {
        Ok(size @ 0..32) => vec![0xa0 | size],
        Ok(size) => vec![0xd9, size],
        Err(_) => {
            let size = u32::try_from(size).unwrap_or(u32::MAX);
            [&[0xdb][..], &size.to_be_bytes()].concat()
        }
    }
}
