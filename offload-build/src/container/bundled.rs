//! Entries of bundles wherever they are: an object's sections, bundles one behind the other, plain or
//! compressed, texts between comments.
//!
//! Specification: bundler §2, §3, §4, §7; linker-wrapper §7.1.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use object::ReadRef;

use super::object_bundle::{ObjectError, whole_bundle_sections};
use crate::format::bundle::{self, Bundle};
use crate::format::bundle_text::{self, Comment};
use crate::format::bundles::{self, AnyBundle};
use crate::format::compressed_bundle;
use crate::format::magic::Magic;
use crate::target::{EntryId, EntryIdError, EntryKind, ImageTarget, OffloadKind};

/// The most that a compressed bundle may take when it is unpacked.
const LIMIT: u64 = 1 << 34;

/// An entry of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundledEntry {
    /// As written.
    pub id: String,
    /// Where its bundle starts in the file, which tells bundles apart.
    pub bundle: u64,
    /// Where its bytes are: in `unpacked`, or else in the file.
    pub range: Range<u64>,
    /// What had to be unpacked.
    pub unpacked: Option<Arc<[u8]>>,
    /// Of a text bundle: what the comments around the entry start with (bundler §3).
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
/// When the object or a bundle is damaged, or a compressed one is too large to be unpacked.
pub fn entries<'d, R: ReadRef<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<BundledEntry>, Problem> {
    let entry = |id, range, bundle| BundledEntry {
        id,
        bundle,
        range,
        unpacked: None,
        comment: None,
    };
    if let Some(texts) = texts(data, range.clone())? {
        return Ok(texts);
    }
    if let Magic::Elf | Magic::Coff = Magic::at(data, range.clone()) {
        let start = range.start;
        let sections = whole_bundle_sections(data, range).map_err(Problem::Object)?;
        let sections = sections.into_iter().filter(|section| !section.host);
        return Ok(sections
            .map(|section| entry(section.id, section.content, start))
            .collect());
    }
    let mut entries = Vec::new();
    for bundle in bundles::walk(data, range)
        .map_err(Problem::Bundles)?
        .bundles
    {
        let start = bundle.range().start;
        match bundle {
            AnyBundle::Plain(bundle) => {
                let all = bundle.entries.into_iter();
                entries.extend(all.map(|found| entry(found.id, found.image, start)));
            }
            AnyBundle::Compressed(compressed) => {
                let bytes = compressed.decompress(data, LIMIT);
                let bytes: Arc<[u8]> = bytes.map_err(Problem::Compressed)?.into();
                if let Some(texts) = texts(&*bytes, 0..bytes.len() as u64)? {
                    entries.extend(texts.into_iter().map(|entry| BundledEntry {
                        unpacked: Some(Arc::clone(&bytes)),
                        bundle: start,
                        ..entry
                    }));
                    continue;
                }
                let bundle = Bundle::parse(&*bytes, 0, bytes.len() as u64);
                let all = bundle.map_err(Problem::Bundle)?.entries.into_iter();
                entries.extend(all.map(|found| BundledEntry {
                    id: found.id,
                    bundle: start,
                    range: found.image,
                    unpacked: Some(Arc::clone(&bytes)),
                    comment: None,
                }));
            }
        }
    }
    Ok(entries)
}

/// Those of a text bundle; nothing for anything else.
fn texts<'d, R: ReadRef<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Option<Vec<BundledEntry>>, Problem> {
    let Some(comment) = Comment::at(data, range.clone()) else {
        return Ok(None);
    };
    let start = range.start;
    let found = bundle_text::parse(data, range, comment).map_err(Problem::Text)?;
    let entries = found.into_iter().map(|entry| BundledEntry {
        id: entry.id,
        bundle: start,
        range: entry.text,
        unpacked: None,
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

    /// Its bytes, given the data that it was found in.
    pub fn content<'a, R: ReadRef<'a>>(&'a self, data: R) -> Option<&'a [u8]> {
        content(&self.range, self.unpacked.as_ref(), data)
    }
}

/// The bytes of a range: of what was unpacked, or else of the file.
pub(super) fn content<'a, R: ReadRef<'a>>(
    range: &Range<u64>,
    unpacked: Option<&'a Arc<[u8]>>,
    data: R,
) -> Option<&'a [u8]> {
    let size = range.end.checked_sub(range.start)?;
    match unpacked {
        Some(bytes) => bytes.as_ref().read_bytes_at(range.start, size).ok(),
        None => data.read_bytes_at(range.start, size).ok(),
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
pub enum Problem {
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

impl fmt::Display for Problem {
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

impl std::error::Error for Problem {}

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
                comment: None,
            };
            let target = entry.target().unwrap();
            target.map(|target| (target.kind, target.triple, target.processor))
        };
        for (id, kind, triple, processor) in [
            // As clang 19 and 22 name the sections of HIP objects (linker-wrapper §7.1).
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
            let entries = entries(&file[..], 2..file.len() as u64).unwrap();
            let found: Vec<(&str, &[u8])> = entries
                .iter()
                .map(|entry| (entry.id.as_str(), entry.content(&file[..]).unwrap()))
                .collect();
            assert_eq!(found, texts);
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
        let problem = entries(&text[..], 2..text.len() as u64).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "text bundle: entry \"hip-x\" that starts at offset 0x3 has no end"
        );
    }
}
