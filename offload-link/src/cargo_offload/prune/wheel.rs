//! Wheels and other zip files: members are pruned one by one, and `RECORD` gets their new hashes and sizes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use offload_formats::container::inventory::{HEAD_SIZE, may_contain_images};
use offload_formats::container::prune::{PruneChoice, PruneCounts, PrunedFile, prune};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::{ReadAt, ReadCache};
use offload_formats::format::magic::Magic;
use offload_formats::format::pieces::Piece;
use offload_formats::format::unpacked::Scratch;
use offload_formats::format::zip::{NewZipContent, ZipFile, ZipMember, ZipMethod, deflate};

use super::new_file::{OTHER_IMAGES, copy, keep_all, unchecked, write_checked};
use super::record::{WheelRecord, hash, plain};
use super::unchanged::{contains_images, images_stay};
use crate::cargo_offload::packed::unpack_if;
use crate::decompressed;
use crate::decompressed::DecompressionLimit;
use crate::files::{self, Opened, Reading};

/// Largest size of `RECORD` in bytes.
const RECORD_SIZE: u64 = 64 << 20;

/// A zip file, with the images of its members.
pub(super) enum ZipPruning {
    Pruned(PrunedZip),
    /// No member has images that can be pruned. Members that stay as they are, because their images are of other kinds.
    Nothing(Vec<String>),
}

/// A pruned zip file: pieces, of which input 0 is the old file, and input 1 has new content.
pub(super) struct PrunedZip {
    pub(super) counts: PruneCounts,
    /// Members that stay as they are, because their images are of a kind that is not pruned.
    pub(super) left: Vec<String>,
    pieces: Vec<Piece>,
    /// Size of the new file in bytes.
    pub(super) size: u64,
    spool: File,
}

/// Prunes the members of a zip file of that size.
///
/// # Errors
///
/// Returns a message if the zip file or a member cannot be pruned.
pub(super) fn prune_zip(
    input: &Arc<Reading>,
    size: u64,
    choice: &PruneChoice,
    limit: &DecompressionLimit,
) -> Result<ZipPruning, String> {
    let cache = ReadCache::new(input.part(0..size));
    let zip = ZipFile::parse(&cache, 0..size).map_err(|error| error.to_string())?;
    let mut pruner = ZipPruner {
        input,
        choice,
        limit: *limit,
        members: limit.files(),
        counts: PruneCounts::default(),
        has_images: false,
        left: Vec::new(),
        spool: files::temporary().map_err(unwritten)?,
        end: 0,
        new: BTreeMap::new(),
    };
    let record = zip
        .members
        .iter()
        .position(|member| is_record(&member.name));
    let mut lines = record
        .and_then(|index| zip.members.get(index))
        .map(|member| read_record(input, member))
        .transpose()?;
    for (index, member) in zip.members.iter().enumerate() {
        let done = pruner.member(index, member, lines.as_mut());
        done.map_err(|problem| in_member(member, &problem))?;
    }
    if !pruner.has_images {
        return Ok(ZipPruning::Nothing(pruner.left));
    }
    if !pruner.new.is_empty() {
        check_unsigned(&zip)?;
    }
    if let (Some(index), Some(lines), false) = (record, lines, pruner.new.is_empty()) {
        let method = zip.members.get(index).map(|member| member.method);
        pruner
            .add(
                index,
                method.expect("the member is in the list"),
                &mut &lines.to_bytes()[..],
            )
            .map_err(unwritten)?;
    }
    let pieces = zip.with_new_content(&cache, &pruner.new);
    let pieces = pieces.map_err(|error| error.to_string())?;
    Ok(ZipPruning::Pruned(PrunedZip {
        counts: pruner.counts,
        left: pruner.left,
        size: pieces.iter().map(Piece::size).sum(),
        pieces,
        spool: pruner.spool,
    }))
}

impl PrunedZip {
    /// Writes the new file and reads it again: all members are there, and their images are those that were kept.
    ///
    /// # Errors
    ///
    /// Returns a message.
    pub(super) fn write(
        &self,
        old: &Arc<Reading>,
        new: &File,
        limit: &DecompressionLimit,
    ) -> Result<(), String> {
        let written = old
            .file
            .with(|old| copy(&[(old, 0), (&self.spool, 0)], &self.pieces, new));
        written.map_err(unwritten)?;
        let again = new.try_clone().map_err(unwritten)?;
        let again = Reading::new(Opened::new(Path::new(""), again, None));
        let read = prune_zip(&again, self.size, &keep_all(), limit);
        match read {
            Ok(ZipPruning::Pruned(read))
                if read.counts.keeps_like(&self.counts) && read.size == self.size =>
            {
                Ok(())
            }
            Ok(ZipPruning::Nothing(_)) if self.counts.kept.is_empty() => Ok(()),
            Ok(_) => Err(OTHER_IMAGES.to_owned()),
            Err(problem) => Err(unchecked(&problem)),
        }
    }
}

struct ZipPruner<'a> {
    input: &'a Arc<Reading>,
    choice: &'a PruneChoice,
    /// Limit on the content of a compressed bundle.
    limit: DecompressionLimit,
    /// Remaining limit on unpacked members in bytes.
    members: u64,
    counts: PruneCounts,
    has_images: bool,
    /// Members that stay as they are, because their images are of a kind that is not pruned.
    left: Vec<String>,
    /// Stored content of changed members, one after the other, and its end.
    spool: File,
    end: u64,
    new: BTreeMap<usize, NewZipContent>,
}

impl ZipPruner<'_> {
    /// Prunes a member, if it has images.
    fn member(
        &mut self,
        index: usize,
        member: &ZipMember,
        record: Option<&mut WheelRecord>,
    ) -> Result<(), String> {
        if member.size == 0 {
            return Ok(());
        }
        let is_stored = member.method == ZipMethod::Stored && !member.is_encrypted;
        let (file, range) = match is_stored {
            true => (Arc::clone(self.input), member.content.clone()),
            false => match unpack_if(may_contain_images, self.input, member, &mut self.members)? {
                Some(unpacked) => (unpacked.reading, 0..unpacked.size),
                None => return Ok(()),
            },
        };
        let cache = ReadCache::new(file.part(range.clone()));
        if Magic::at(&cache, 0..HEAD_SIZE.min(member.size)) == Magic::Zip {
            let text = "zip files in zip files are not pruned";
            self.left.push(in_member(member, text));
            return Ok(());
        }
        let contents = files::scratch();
        let pruned = match prune(&cache, self.choice, self.limit, &contents) {
            Ok(pruned) => pruned,
            Err(error) if error.problem.is_without_images() => {
                let size = range.end.saturating_sub(range.start);
                if contains_images(&cache, size) {
                    self.left.push(in_member(member, &images_stay(&error)));
                }
                return Ok(());
            }
            Err(error) if error.problem.is_unsupported() => {
                self.left.push(in_member(member, &error.to_string()));
                return Ok(());
            }
            Err(error) => return Err(decompressed::with_hint(&error, error.problem.remedy())),
        };
        self.has_images = true;
        self.counts.append(&pruned.counts);
        let left = pruned.left.iter();
        self.left
            .extend(left.map(|error| in_member(member, &error.to_string())));
        if pruned.counts.removed.is_empty() {
            return Ok(());
        }
        if is_stored {
            // Compressed members were checked when they were unpacked.
            let stored = self.input.stream(member.content.clone());
            let checked = member
                .unpack(stored)
                .and_then(|mut content| io::copy(&mut content, &mut io::sink()));
            checked.map_err(|error| error.to_string())?;
        }
        self.replace(index, member, (&file, range), (&pruned, &contents), record)
    }

    /// Writes the new content of a member, and changes its line in `RECORD`.
    fn replace(
        &mut self,
        index: usize,
        member: &ZipMember,
        (old, range): (&Arc<Reading>, Range<u64>),
        (pruned, contents): (&PrunedFile, &Scratch),
        record: Option<&mut WheelRecord>,
    ) -> Result<(), String> {
        let made = files::temporary().map_err(unwritten)?;
        let written = old
            .file
            .with(|old| Ok(write_checked(old, range.start, pruned, contents, &made)));
        written.map_err(unwritten)??;
        let made = Reading::new(Opened::new(Path::new(""), made, None));
        if let Some(record) = record {
            if let Some(algorithm) = record.algorithm(&member.name).map(<[u8]>::to_vec) {
                let hash = hash(&algorithm, &mut made.stream(0..pruned.size)).map_err(unwritten)?;
                let hash = hash.ok_or_else(|| {
                    let name = terminal(&algorithm[..]);
                    format!("RECORD has a hash of the unknown kind `{name}`")
                })?;
                record.change(&member.name, &hash, pruned.size);
            }
        }
        self.add(index, member.method, &mut made.stream(0..pruned.size))
            .map_err(unwritten)
    }

    /// Stores the new content of a member.
    fn add(&mut self, index: usize, method: ZipMethod, content: &mut impl Read) -> io::Result<()> {
        let mut out = SpoolWriter {
            file: &self.spool,
            size: 0,
        };
        let mut buffered = io::BufWriter::with_capacity(1 << 17, &mut out);
        let packed = deflate(content, method, &mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        let start = self.end;
        self.end += out.size;
        let content = NewZipContent {
            crc: packed.crc,
            size: packed.size,
            pieces: vec![Piece::Copy {
                input: 1,
                range: start..self.end,
            }],
        };
        self.new.insert(index, content);
        Ok(())
    }
}

/// Appends to the spool, and counts.
struct SpoolWriter<'a> {
    file: &'a File,
    size: u64,
}

impl Write for SpoolWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn unwritten(error: io::Error) -> String {
    format!("cannot write: {error}\nhint: {}", decompressed::FULL)
}

fn in_member(member: &ZipMember, problem: &str) -> String {
    format!("member `{}`: {problem}", terminal(&member.name[..]))
}

/// Tells whether a member is the `RECORD` of a wheel.
fn is_record(name: &[u8]) -> bool {
    metadata_name(name) == Some(b"RECORD")
}

/// Returns the name of a file in a wheel's folder of metadata.
fn metadata_name(name: &[u8]) -> Option<&[u8]> {
    let mut parts = plain(name).split(|byte| *byte == b'/');
    let (folder, file) = (parts.next()?, parts.next()?);
    (folder.ends_with(b".dist-info") && parts.next().is_none()).then_some(file)
}

/// Checks that no signature would be wrong.
fn check_unsigned(zip: &ZipFile) -> Result<(), String> {
    const SIGNATURES: [&[u8]; 2] = [b"RECORD.jws", b"RECORD.p7s"];
    let mut members = zip.members.iter();
    let signature = members
        .find(|member| metadata_name(&member.name).is_some_and(|name| SIGNATURES.contains(&name)));
    match signature {
        None => Ok(()),
        Some(member) => Err(format!(
            "the wheel is signed: `{}` would not fit the new RECORD\n\
             hint: remove the signature (`zip -d`), and sign the pruned wheel",
            terminal(&member.name[..])
        )),
    }
}

fn read_record(input: &Arc<Reading>, member: &ZipMember) -> Result<WheelRecord, String> {
    if member.size > RECORD_SIZE {
        return Err(in_member(member, "is too large"));
    }
    let mut text = Vec::new();
    let read = member
        .unpack(input.stream(member.content.clone()))
        .and_then(|mut content| content.read_to_end(&mut text));
    read.map_err(|error| in_member(member, &error.to_string()))?;
    Ok(WheelRecord::parse(&text))
}

/// Tells whether a file is a zip file.
pub(super) fn is_zip<'d>(data: impl ReadAt<'d>, size: u64) -> bool {
    Magic::at(data, 0..size) == Magic::Zip
}
