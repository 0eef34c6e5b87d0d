//! Entries of bundles wherever they are: an object's sections, bundles one behind the other, plain or
//! compressed, texts between comments.
//!
//! Specification: `docs/spec/bundler.md` §2, §3, §4, §7; `docs/spec/linker-wrapper.md` §7.1.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::object_bundle::{ObjectError, whole_bundle_sections};
use crate::format::bundle::{self, Bundle};
use crate::format::bundle_text::{self, Comment};
use crate::format::bundles::{self, AnyBundle};
use crate::format::bytes::ReadAt;
use crate::format::compressed_bundle::{self, CompressedBundle};
use crate::format::magic::Magic;
use crate::names::{EntryId, EntryIdError, EntryKind, ImageTarget, OffloadKind};

/// Bounds what compressed bundles may cost, whatever they claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacking {
    /// Largest uncompressed size of a bundle.
    pub limit: u64,
    /// Bytes that all bundles together may still take in memory. Entries of what does not fit are unpacked when they are
    /// asked for.
    pub memory: u64,
}

impl Unpacking {
    /// Unpacks `limit` bytes in memory, and no more.
    #[must_use]
    pub fn in_memory(limit: u64) -> Self {
        Self {
            limit,
            memory: limit,
        }
    }

    /// Takes `size` bytes of memory, if as many are left.
    fn take(&mut self, size: u64) -> bool {
        let left = self.memory.checked_sub(size);
        self.memory = left.unwrap_or(self.memory);
        left.is_some()
    }
}

/// An entry of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundledEntry {
    /// As written.
    pub id: String,
    /// Where its bundle starts in the file, which tells bundles apart.
    pub bundle: u64,
    /// Range of its bytes: in `unpacked` or `packed`, or else in the file.
    pub range: Range<u64>,
    /// What had to be unpacked.
    pub unpacked: Option<Arc<[u8]>>,
    /// The compressed bundle that has its bytes, if that was not unpacked.
    pub packed: Option<Arc<CompressedBundle>>,
    /// Of a text bundle: what the comments around the entry start with (`docs/spec/bundler.md` §3).
    pub comment: Option<Comment>,
}

/// Who an image is for, as offload binaries say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTarget {
    /// Who manages it.
    pub kind: OffloadKind,
    /// The triple, without an empty environment.
    pub triple: String,
    /// A processor or target ID; may be empty.
    pub processor: String,
}

/// The entries of the bundle in a range of `data`: of an object its sections, without what stands for
/// the object itself; otherwise those of all bundles that follow each other there.
///
/// # Errors
///
/// When the object or a bundle is damaged, or a compressed one is larger than `unpacking` allows.
pub fn entries<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    unpacking: &mut Unpacking,
) -> Result<Vec<BundledEntry>, BundledEntryError> {
    let entry = |id, range, bundle| BundledEntry {
        id,
        bundle,
        range,
        unpacked: None,
        packed: None,
        comment: None,
    };
    if let Some(texts) = texts(data, range.clone())? {
        return Ok(texts);
    }
    if let Magic::Elf | Magic::Coff = Magic::at(data, range.clone()) {
        let start = range.start;
        let sections = whole_bundle_sections(data, range).map_err(BundledEntryError::Object)?;
        let sections = sections.into_iter().filter(|section| !section.host);
        return Ok(sections
            .map(|section| entry(section.id, section.content, start))
            .collect());
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
                entries.extend(all.map(|found| entry(found.id, found.image, start)));
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

/// The same, for callers that need every entry in memory.
///
/// # Errors
///
/// As [`entries`], and when a compressed bundle is larger than the memory that is left.
pub fn entries_in_memory<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    unpacking: &mut Unpacking,
) -> Result<Vec<BundledEntry>, BundledEntryError> {
    let found = entries(data, range, unpacking)?;
    match found.iter().find_map(|entry| entry.packed.as_ref()) {
        None => Ok(found),
        Some(packed) => Err(BundledEntryError::Compressed(
            compressed_bundle::Error::Limit {
                claimed: packed.uncompressed_size,
                limit: unpacking.memory,
            },
        )),
    }
}

/// The entries of a compressed bundle: unpacked if there is memory for it, else only its headers are.
fn of_compressed<'d, R: ReadAt<'d>>(
    data: R,
    compressed: CompressedBundle,
    unpacking: &mut Unpacking,
) -> Result<Vec<BundledEntry>, BundledEntryError> {
    let claimed = compressed.uncompressed_size;
    let limited = |limit| compressed_bundle::Error::Limit { claimed, limit };
    let wrong = BundledEntryError::Compressed;
    if claimed > unpacking.limit {
        return Err(wrong(limited(unpacking.limit)));
    }
    if unpacking.take(claimed) {
        let bytes = compressed.decompress(data, claimed).map_err(wrong)?;
        let bytes: Arc<[u8]> = bytes.into();
        let all = 0..bytes.len() as u64;
        let entries = match texts(&*bytes, all.clone())? {
            Some(texts) => texts,
            None => {
                let bundle =
                    Bundle::parse(&*bytes, 0, all.end).map_err(BundledEntryError::Bundle)?;
                of_binary(bundle)
            }
        };
        let unpacked = |entry| BundledEntry {
            unpacked: Some(Arc::clone(&bytes)),
            ..entry
        };
        return Ok(entries.into_iter().map(unpacked).collect());
    }
    let entries = match compressed.contents(data).map_err(wrong)? {
        Some(bundle) => of_binary(bundle),
        None => {
            // Texts are read as a whole, and not kept.
            let bytes = compressed.decompress(data, MAX_TEXT).map_err(wrong)?;
            let all = 0..bytes.len() as u64;
            match texts(&*bytes, all.clone())? {
                Some(texts) => texts,
                None => of_binary(
                    Bundle::parse(&*bytes, 0, all.end).map_err(BundledEntryError::Bundle)?,
                ),
            }
        }
    };
    // IDs stay in memory, and compress well.
    let ids = entries.iter().map(|entry| entry.id.len() as u64);
    if !unpacking.take(ids.sum()) {
        return Err(wrong(limited(unpacking.memory)));
    }
    let compressed = Arc::new(compressed);
    let packed = |entry| BundledEntry {
        packed: Some(Arc::clone(&compressed)),
        ..entry
    };
    Ok(entries.into_iter().map(packed).collect())
}

/// Largest text bundle that is read when memory is short, in bytes.
const MAX_TEXT: u64 = 256 << 20;

/// The entries of an uncompressed bundle that starts at 0.
fn of_binary(bundle: Bundle) -> Vec<BundledEntry> {
    let entries = bundle.entries.into_iter().map(|found| BundledEntry {
        id: found.id,
        bundle: 0,
        range: found.image,
        unpacked: None,
        packed: None,
        comment: None,
    });
    entries.collect()
}

/// Those of a text bundle; nothing for anything else.
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
    /// Who it is for; nothing for the host's entry.
    ///
    /// # Errors
    ///
    /// When the entry ID is of no known kind, or has too few fields.
    pub fn target(&self) -> Result<Option<DeviceTarget>, EntryIdError> {
        let id = EntryId::parse(&self.id)?;
        if id.kind() == EntryKind::Host {
            return Ok(None);
        }
        let triple = id.triple();
        // Four fields, where offload binaries have three.
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

    /// Its bytes, given the data that it was found in; those of a bundle that was not unpacked are a copy.
    ///
    /// # Errors
    ///
    /// When the compressed bundle is damaged; with nothing when the data has other bytes than before.
    pub fn content<'a, R: ReadAt<'a>>(
        &'a self,
        data: R,
    ) -> Result<Cow<'a, [u8]>, Option<compressed_bundle::Error>> {
        let Some(packed) = &self.packed else {
            let found = content(&self.range, self.unpacked.as_ref(), data);
            return found.map(Cow::Borrowed).ok_or(None);
        };
        let mut bytes = Vec::new();
        packed.extract(data, self.range.clone(), &mut bytes)?;
        Ok(Cow::Owned(bytes))
    }
}

/// The bytes of a range: of what was unpacked, or else of the file.
pub(super) fn content<'a, R: ReadAt<'a>>(
    range: &Range<u64>,
    unpacked: Option<&'a Arc<[u8]>>,
    data: R,
) -> Option<&'a [u8]> {
    let size = range.end.checked_sub(range.start)?;
    match unpacked {
        Some(bytes) => bytes.as_ref().read_at(range.start, size),
        None => data.read_at(range.start, size),
    }
}

impl DeviceTarget {
    /// The same, to be compared.
    #[must_use]
    pub fn image_target(&self) -> ImageTarget<'_> {
        ImageTarget {
            triple: &self.triple,
            arch: &self.processor,
        }
    }
}

/// As people read it: `amdgcn-amd-amdhsa gfx90a`.
impl fmt::Display for DeviceTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processor.as_str() {
            "" => f.write_str(&self.triple),
            processor => write!(f, "{} {processor}", self.triple),
        }
    }
}

/// What is wrong with a bundle, or with what it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BundledEntryError {
    /// With an object.
    Object(ObjectError),
    /// With bundles.
    Bundles(bundles::Error),
    /// With the compressed form of one.
    Compressed(compressed_bundle::Error),
    /// With one that was compressed.
    Bundle(bundle::Error),
    /// With one of texts.
    Text(bundle_text::Error),
}

impl BundledEntryError {
    /// Returns whether a compressed bundle claims more than the caller allows.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::Compressed(compressed_bundle::Error::Limit { .. })
        )
    }
}

impl fmt::Display for BundledEntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
            "text bundle: entry `hip-x` that starts at offset 0x3 has no end"
        );
    }

    /// Damage in the data of a bundle, which only those who unpack it see.
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
                    memory,
                },
            );
            let found = entries(&packed[..], all.clone(), &mut unpacking).unwrap();
            for (entry, image) in found.iter().zip(&images) {
                assert_eq!(entry.packed.is_some(), later);
                assert_eq!(&*entry.content(&packed[..]).unwrap(), image);
            }
            let mut small = Unpacking {
                limit: limit - 1,
                memory,
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
            memory: 10,
        };
        assert!(entries(&packed[..], all, &mut none).is_err());

        let texts: Vec<(&str, &[u8])> = ids.into_iter().zip([&b"nop"[..], b"s_nop 0"]).collect();
        let plain = bundle_text::to_bytes(&texts, Comment::Hash).unwrap();
        let packed = compressed_bundle::compress(&plain, Default::default()).unwrap();
        let mut unpacking = Unpacking {
            limit: 1000,
            memory: 100,
        };
        let found = entries(&packed[..], 0..packed.len() as u64, &mut unpacking).unwrap();
        for (entry, (_, text)) in found.iter().zip(texts) {
            assert!(entry.packed.is_some() && entry.comment == Some(Comment::Hash));
            assert_eq!(&*entry.content(&packed[..]).unwrap(), text);
        }
    }
}
