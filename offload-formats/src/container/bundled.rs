//! Lists the entries of bundles in every form: sections of an object, consecutive bundles, plain or
//! compressed, and text bundles.
//!
//! Specification: `docs/spec/bundler.md` §2, §3, §4, §7; `docs/spec/linker-wrapper.md` §7.1.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::object_bundle::{ObjectError, whole_bundle_sections};
use crate::container::decompression_limit::Remedy;
use crate::format::bundle::{self, Bundle};
use crate::format::bundle_text::{self, Comment};
use crate::format::bundles::{self, AnyBundle};
use crate::format::bytes::{ReadAt, SourceError, unless_unread};
use crate::format::compressed_bundle::{self, CompressedBundle};
use crate::format::magic::Magic;
use crate::format::unpacked::{Scratch, Unpacked};
use crate::names::{EntryId, EntryIdError, EntryKind, ImageTarget, OffloadKind};

/// Limits on decompression, independent of the sizes that compressed bundles claim.
#[derive(Clone, Debug)]
pub struct Unpacking {
    /// Largest uncompressed size of a bundle, in bytes.
    pub limit: u64,
    /// Remaining size of all containers that are unpacked at once, in bytes. A bundle that does not fit is unpacked again
    /// for each entry that is read.
    pub(super) left: u64,
    /// Keeps what is unpacked.
    pub scratch: Scratch,
}

impl Unpacking {
    /// Allows to unpack `limit` bytes in memory.
    #[must_use]
    pub fn in_memory(limit: u64) -> Self {
        Self::within(limit, Scratch::in_memory())
    }

    /// Allows to unpack `limit` bytes to `scratch`.
    #[must_use]
    pub fn within(limit: u64, scratch: Scratch) -> Self {
        Self {
            limit,
            left: limit,
            scratch,
        }
    }

    /// Limits the size of all containers that are unpacked at once to `size` bytes.
    #[must_use]
    pub fn at_once(self, size: u64) -> Self {
        Self { left: size, ..self }
    }

    /// Returns the remaining size, in bytes, of all containers that can be unpacked at once.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.left
    }

    /// Takes `size` bytes of those that remain, for a caller that unpacks data to the scratch itself; of a larger size, all.
    #[doc(hidden)]
    pub fn spend(&mut self, size: u64) {
        self.left = self.left.saturating_sub(size);
    }

    /// Takes `size` bytes of those that remain; returns false if there are fewer.
    fn take(&mut self, size: u64) -> bool {
        match self.left.checked_sub(size) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

/// An entry of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundledEntry {
    /// Entry ID, as written.
    pub id: String,
    /// Offset of the bundle in the file; identifies the bundle.
    pub bundle: u64,
    /// Range of its bytes: in `unpacked` or `packed`, or else in the file.
    pub range: Range<u64>,
    /// Unpacked bytes of a compressed bundle.
    pub unpacked: Option<Unpacked>,
    /// The compressed bundle with the entry, if it was not unpacked.
    pub packed: Option<Arc<CompressedBundle>>,
    /// Start of the comments around the entry, in a text bundle (`docs/spec/bundler.md` §3).
    pub comment: Option<Comment>,
}

/// Target of an image, in the words of offload binaries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceTarget {
    /// Kind: the manager of the image.
    pub kind: OffloadKind,
    /// The triple, without an empty environment.
    pub triple: String,
    /// A processor or target ID; may be empty.
    pub processor: String,
}

/// Lists the entries of all bundles in a range of `data`: an object's sections, without the one that represents
/// the object itself, or consecutive bundles.
///
/// # Errors
///
/// Fails if the object or a bundle is damaged, a compressed bundle is larger than `unpacking` allows, or `data` cannot be
/// read.
pub fn entries<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    unpacking: &mut Unpacking,
) -> Result<Vec<BundledEntry>, BundledEntryError> {
    let found = all_entries(data, range, unpacking);
    unless_unread(data, found, BundledEntryError::Read)
}

fn all_entries<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    unpacking: &mut Unpacking,
) -> Result<Vec<BundledEntry>, BundledEntryError> {
    if let Some(texts) = texts(data, range.clone())? {
        return Ok(texts);
    }
    if let Magic::Elf | Magic::Coff = Magic::at(data, range.clone()) {
        return object_entries(data, range).map_err(BundledEntryError::Object);
    }
    let mut entries = Vec::new();
    for bundle in bundles::walk(data, range)
        .map_err(BundledEntryError::Bundles)?
        .bundles
    {
        let start = bundle.range().start;
        match bundle {
            AnyBundle::Plain(bundle) => {
                let all = bundle.entries.into_iter();
                entries.extend(all.map(|found| in_file(found.id, found.image, start)));
            }
            AnyBundle::Compressed(bundle) => {
                let found = of_compressed(data, bundle, unpacking)?;
                entries.extend(found.into_iter().map(|entry| BundledEntry {
                    bundle: start,
                    ..entry
                }));
            }
        }
    }
    Ok(entries)
}

/// Lists the entries in the sections of the object in a range of `data`, without the one that represents the object
/// itself.
///
/// # Errors
///
/// Fails if the format is not supported, or the object is damaged.
pub fn object_entries<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<BundledEntry>, ObjectError> {
    let start = range.start;
    let sections = whole_bundle_sections(data, range)?.into_iter();
    let sections = sections.filter(|section| !section.host);
    Ok(sections
        .map(|section| in_file(section.id, section.content, start))
        .collect())
}

/// Returns an entry whose bytes are a range of the file, in the bundle at the offset `bundle`.
fn in_file(id: String, range: Range<u64>, bundle: u64) -> BundledEntry {
    BundledEntry {
        id,
        bundle,
        range,
        unpacked: None,
        packed: None,
        comment: None,
    }
}

/// Lists entries as [`entries`] does, for callers that need every bundle unpacked.
///
/// # Errors
///
/// Fails as [`entries`] does, and if a compressed bundle is larger than what remains of `unpacking`.
pub fn unpacked_entries<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    unpacking: &mut Unpacking,
) -> Result<Vec<BundledEntry>, BundledEntryError> {
    let found = entries(data, range, unpacking)?;
    match found.iter().find_map(|entry| entry.packed.as_ref()) {
        None => Ok(found),
        Some(packed) => Err(BundledEntryError::Compressed(
            compressed_bundle::CompressedBundleError::Limit {
                claimed: packed.uncompressed_size,
                limit: unpacking.left,
            },
        )),
    }
}

/// Lists the entries of a compressed bundle. If too little remains, only the headers are unpacked.
fn of_compressed<'d, R: ReadAt<'d>>(
    data: R,
    compressed: CompressedBundle,
    unpacking: &mut Unpacking,
) -> Result<Vec<BundledEntry>, BundledEntryError> {
    let claimed = compressed.uncompressed_size;
    let limited = |limit| compressed_bundle::CompressedBundleError::Limit { claimed, limit };
    let wrong = BundledEntryError::Compressed;
    if claimed > unpacking.limit {
        return Err(wrong(limited(unpacking.limit)));
    }
    if unpacking.take(claimed) {
        let bytes = compressed.unpack(data, claimed, &unpacking.scratch);
        let bytes = bytes.map_err(wrong)?;
        let entries = of_unpacked(&bytes)?.into_iter();
        let unpacked = |entry| BundledEntry {
            unpacked: Some(bytes.clone()),
            ..entry
        };
        return Ok(entries.map(unpacked).collect());
    }
    let entries = match compressed.contents(data).map_err(wrong)? {
        Some(bundle) => of_binary(bundle),
        None => {
            // A text bundle is read completely, and not kept.
            let scratch = unpacking.scratch.another();
            let bytes = compressed.unpack(data, MAX_TEXT, &scratch);
            of_unpacked(&bytes.map_err(wrong)?)?
        }
    };
    // IDs stay in memory, and compress well.
    let ids = entries.iter().map(|entry| entry.id.len() as u64);
    if !unpacking.take(ids.sum()) {
        return Err(wrong(limited(unpacking.left)));
    }
    let compressed = Arc::new(compressed);
    let packed = |entry| BundledEntry {
        packed: Some(Arc::clone(&compressed)),
        ..entry
    };
    Ok(entries.into_iter().map(packed).collect())
}

/// Largest text bundle that is read for its entry IDs alone, in bytes.
const MAX_TEXT: u64 = 256 << 20;

/// Lists the entries of a bundle that was compressed.
fn of_unpacked(bytes: &Unpacked) -> Result<Vec<BundledEntry>, BundledEntryError> {
    let (data, end) = (bytes.open(), bytes.size());
    let found = match texts(&data, 0..end) {
        Ok(None) => {
            let bundle = Bundle::parse(&data, 0, end);
            bundle.map(of_binary).map_err(BundledEntryError::Bundle)
        }
        texts => texts.map(Option::unwrap_or_default),
    };
    unless_unread(&data, found, BundledEntryError::Read)
}

/// Lists the entries of an uncompressed bundle that starts at 0.
fn of_binary(bundle: Bundle) -> Vec<BundledEntry> {
    let entries = bundle.entries.into_iter();
    entries
        .map(|found| in_file(found.id, found.image, 0))
        .collect()
}

/// Lists the entries of a text bundle; `None` for other formats.
fn texts<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Option<Vec<BundledEntry>>, BundledEntryError> {
    let Some(comment) = Comment::at(data, range.clone()) else {
        return Ok(None);
    };
    let start = range.start;
    let found = bundle_text::parse(data, range, comment).map_err(BundledEntryError::Text)?;
    let entries = found.into_iter().map(|entry| BundledEntry {
        id: entry.id,
        bundle: start,
        range: entry.text,
        unpacked: None,
        packed: None,
        comment: Some(comment),
    });
    Ok(Some(entries.collect()))
}

impl BundledEntry {
    /// Returns the entry's target; `None` for the host's entry.
    ///
    /// # Errors
    ///
    /// Fails if the entry ID has an unknown kind or too few fields.
    pub fn target(&self) -> Result<Option<DeviceTarget>, EntryIdError> {
        Self::target_of(&self.id)
    }

    /// Returns the target that an entry ID names; `None` for the host's entry.
    pub(super) fn target_of(id: &str) -> Result<Option<DeviceTarget>, EntryIdError> {
        // The last character in a text bundle with the line ends of Windows.
        let id = EntryId::parse(id.strip_suffix('\r').unwrap_or(id))?;
        if id.kind() == EntryKind::Host {
            return Ok(None);
        }
        let triple = id.triple();
        // The entry ID has four fields, offload binaries have three.
        let fields = [triple.arch(), triple.vendor(), triple.os()].join("-");
        Ok(Some(DeviceTarget {
            kind: id.kind().offload_kind(),
            triple: match triple.environment() {
                "" | "unknown" => fields,
                environment => format!("{fields}-{environment}"),
            },
            processor: id.target_id().to_owned(),
        }))
    }

    /// Returns the entry's bytes. `data` is the data that it was found in. If the bundle was not unpacked, the
    /// bytes are a copy.
    ///
    /// # Errors
    ///
    /// Fails if the compressed bundle is damaged. The error is `None` if `data` ends before the entry does.
    pub fn content<'a, R: ReadAt<'a>>(
        &'a self,
        data: R,
    ) -> Result<Cow<'a, [u8]>, Option<compressed_bundle::CompressedBundleError>> {
        let Some(packed) = &self.packed else {
            return content(&self.range, self.unpacked.as_ref(), data).ok_or(None);
        };
        let mut bytes = Vec::new();
        packed.extract(data, self.range.clone(), &mut bytes)?;
        Ok(Cow::Owned(bytes))
    }
}

/// Returns the bytes of a range of the unpacked bytes, or else of the file.
pub(super) fn content<'a, R: ReadAt<'a>>(
    range: &Range<u64>,
    unpacked: Option<&Unpacked>,
    data: R,
) -> Option<Cow<'a, [u8]>> {
    let size = range.end.checked_sub(range.start)?;
    match unpacked {
        Some(bytes) => bytes.read(range).map(Cow::Owned),
        None => data.read_at(range.start, size).map(Cow::Borrowed),
    }
}

impl DeviceTarget {
    /// Returns the target in the form that [`ImageTarget`] compares.
    #[must_use]
    pub fn image_target(&self) -> ImageTarget<'_> {
        ImageTarget {
            triple: &self.triple,
            arch: &self.processor,
        }
    }
}

/// Writes the triple and the processor: `amdgcn-amd-amdhsa gfx90a`.
impl fmt::Display for DeviceTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processor.as_str() {
            "" => f.write_str(&self.triple),
            processor => write!(f, "{} {processor}", self.triple),
        }
    }
}

/// Damage in a bundle or in its container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BundledEntryError {
    /// A part of the file cannot be read.
    Read(SourceError),
    /// Damage in an object.
    Object(ObjectError),
    /// Damage in consecutive bundles.
    Bundles(bundles::BundleSequenceError),
    /// Damage in a compressed bundle.
    Compressed(compressed_bundle::CompressedBundleError),
    /// Damage in a bundle that was compressed.
    Bundle(bundle::BundleError),
    /// Damage in a text bundle.
    Text(bundle_text::TextBundleError),
}

impl BundledEntryError {
    /// Returns what a user changes so that the bundle can be read, if that is known.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Compressed(problem) => problem.remedy(),
            _ => None,
        }
    }
}

impl fmt::Display for BundledEntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(problem) => problem.fmt(f),
            Self::Object(problem) => problem.fmt(f),
            Self::Bundles(problem) => problem.fmt(f),
            Self::Compressed(problem) => problem.fmt(f),
            Self::Bundle(problem) => problem.fmt(f),
            Self::Text(problem) => problem.fmt(f),
        }
    }
}

impl std::error::Error for BundledEntryError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_who_an_entry_is_for_as_offload_binaries_do() {
        let target = |id: &str| {
            let entry = BundledEntry {
                id: id.to_owned(),
                bundle: 0,
                range: 0..0,
                unpacked: None,
                packed: None,
                comment: None,
            };
            let target = entry.target().unwrap();
            target.map(|target| (target.kind, target.triple, target.processor))
        };
        for (id, kind, triple, processor) in [
            // As clang 19 and 22 name the sections of HIP objects (`docs/spec/linker-wrapper.md` §7.1).
            (
                "hip-amdgcn-amd-amdhsa--gfx906",
                OffloadKind::HIP,
                "amdgcn-amd-amdhsa",
                "gfx906",
            ),
            (
                "hipv4-amdgcn-amd-amdhsa-unknown-gfx90a:xnack+",
                OffloadKind::HIP,
                "amdgcn-amd-amdhsa",
                "gfx90a:xnack+",
            ),
            (
                "openmp-x86_64-pc-linux-gnu",
                OffloadKind::OPENMP,
                "x86_64-pc-linux-gnu",
                "",
            ),
        ] {
            assert_eq!(target(id), Some((kind, triple.into(), processor.into())));
        }
        assert_eq!(target("host-x86_64-unknown-linux-gnu-"), None);
    }

    #[test]
    fn reads_text_bundles_compressed_or_not() {
        // As `clang-offload-bundler -type=s` writes them, and with `-compress`.
        let texts: [(&str, &[u8]); 2] = [
            ("host-x86_64-", b"nop\n"),
            ("hip-amdgcn-amd-amdhsa--gfx906", b"s_nop 0"),
        ];
        let plain = bundle_text::to_bytes(&texts, Comment::Hash).unwrap();
        let packed = compressed_bundle::compress(&plain, Default::default()).unwrap();
        for bytes in [plain, packed] {
            let file = [b"ab", &bytes[..]].concat();
            let all = 2..file.len() as u64;
            let entries = entries(&file[..], all, &mut Unpacking::in_memory(1 << 30)).unwrap();
            let found: Vec<(&str, Cow<'_, [u8]>)> = entries
                .iter()
                .map(|entry| (entry.id.as_str(), entry.content(&file[..]).unwrap()))
                .collect();
            assert_eq!(found, texts.map(|(id, text)| (id, text.into())));
            assert!(
                entries
                    .iter()
                    .all(|entry| entry.comment == Some(Comment::Hash))
            );
        }
    }

    #[test]
    fn says_where_a_text_bundle_has_no_end() {
        let text = b"  \n; __CLANG_OFFLOAD_BUNDLE____START__ hip-x\ndefine";
        let all = 2..text.len() as u64;
        let problem = entries(&text[..], all, &mut Unpacking::in_memory(1 << 30)).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "text bundle: missing end of entry `hip-x`, which starts at offset 0x3"
        );
    }

    #[test]
    fn unpacks_later_what_memory_has_no_room_for() {
        let ids = ["host-x86_64-", "hip-amdgcn-amd-amdhsa--gfx906"];
        let images = [vec![1; 70_000], vec![2; 300_000]];
        let bundled: Vec<bundle::BundleImage<'_>> = ids
            .iter()
            .zip(&images)
            .map(|(id, image)| bundle::BundleImage { id, image })
            .collect();
        let plain = bundle::to_bytes(&bundled, std::num::NonZeroU64::MIN).unwrap();
        let packed = compressed_bundle::compress(&plain, Default::default()).unwrap();
        let all = 0..packed.len() as u64;
        let size = plain.len() as u64;
        for (memory, later) in [(size, false), (size - 1, true)] {
            let (limit, mut unpacking) = (
                size,
                Unpacking {
                    limit: size,
                    left: memory,
                    scratch: Scratch::in_memory(),
                },
            );
            let found = entries(&packed[..], all.clone(), &mut unpacking).unwrap();
            for (entry, image) in found.iter().zip(&images) {
                assert_eq!(entry.packed.is_some(), later);
                assert_eq!(&*entry.content(&packed[..]).unwrap(), image);
            }
            let mut small = Unpacking {
                limit: limit - 1,
                left: memory,
                scratch: Scratch::in_memory(),
            };
            let problem = entries(&packed[..], all.clone(), &mut small).unwrap_err();
            let expected = format!(
                "compressed bundle: uncompressed size {size:#x} is more than the allowed {:#x}",
                size - 1
            );
            assert_eq!(problem.to_string(), expected);
        }
        // IDs take memory, too.
        let mut none = Unpacking {
            limit: size,
            left: 10,
            scratch: Scratch::in_memory(),
        };
        assert!(entries(&packed[..], all, &mut none).is_err());

        let texts: Vec<(&str, &[u8])> = ids.into_iter().zip([&b"nop"[..], b"s_nop 0"]).collect();
        let plain = bundle_text::to_bytes(&texts, Comment::Hash).unwrap();
        let packed = compressed_bundle::compress(&plain, Default::default()).unwrap();
        let mut unpacking = Unpacking {
            limit: 1000,
            left: 100,
            scratch: Scratch::in_memory(),
        };
        let found = entries(&packed[..], 0..packed.len() as u64, &mut unpacking).unwrap();
        for (entry, (_, text)) in found.iter().zip(texts) {
            assert!(entry.packed.is_some() && entry.comment == Some(Comment::Hash));
            assert_eq!(&*entry.content(&packed[..]).unwrap(), text);
        }
    }
}
