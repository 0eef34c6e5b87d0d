//! Images in bundles: what clang's older driver and `clang-offload-bundler` make.
//!
//! | where                                          | the host's part                       |
//! |------------------------------------------------|---------------------------------------|
//! | sections `__CLANG_OFFLOAD_BUNDLE__<id>` of an object | the object itself               |
//! | a bundle, plain or compressed, as a file        | its entry of kind `host`, if not empty |
//! | either as a member of an archive                | the same                              |
//!
//! Specification: linker-wrapper §7, bundler §2, §4, §6.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use object::ReadRef;
use offload_build::container::object_bundle::bundle_sections;
use offload_build::format::bundle::Bundle;
use offload_build::format::bundles::{self, AnyBundle};
use offload_build::format::magic::Magic;
use offload_build::target::{EntryId, EntryKind, OffloadKind};

use super::Error;
use super::blocks::Blocks;

/// An entry of a bundle.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// As written.
    pub id: String,
    /// Where its bytes are: in `unpacked`, or else in the file.
    pub range: Range<u64>,
    pub unpacked: Option<Arc<[u8]>>,
}

/// Who an entry is for, as images of offload binaries say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub kind: OffloadKind,
    pub triple: String,
    pub processor: String,
}

type Problem = Box<dyn std::error::Error + Send + Sync>;

/// The most that a compressed bundle may take when it is unpacked.
const LIMIT: u64 = 1 << 34;

/// The entries of the bundle in a range of a file: an object's sections, or bundles one behind the
/// other.
pub(super) fn entries<'d, R: ReadRef<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<Entry>, Problem> {
    let entry = |id, range| Entry {
        id,
        range,
        unpacked: None,
    };
    if let Magic::Elf | Magic::Coff = Magic::at(data, range.clone()) {
        let sections = bundle_sections(data, range)?.into_iter();
        let sections = sections.filter(|section| !section.host);
        return Ok(sections
            .map(|section| entry(section.id, section.content))
            .collect());
    }
    let mut entries = Vec::new();
    for bundle in bundles::walk(data, range)?.bundles {
        match bundle {
            AnyBundle::Plain(bundle) => {
                let all = bundle.entries.into_iter();
                entries.extend(all.map(|found| entry(found.id, found.image)));
            }
            AnyBundle::Compressed(compressed) => {
                let bytes: Arc<[u8]> = compressed.decompress(data, LIMIT)?.into();
                let bundle = Bundle::parse(&*bytes, 0, bytes.len() as u64)?;
                entries.extend(bundle.entries.into_iter().map(|found| Entry {
                    id: found.id,
                    range: found.image,
                    unpacked: Some(Arc::clone(&bytes)),
                }));
            }
        }
    }
    Ok(entries)
}

impl Entry {
    /// Whether nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Who it is for; nothing for the host's entry.
    pub(super) fn target(&self) -> Result<Option<Target>, Problem> {
        let id = EntryId::parse(&self.id)?;
        if id.kind() == EntryKind::Host {
            return Ok(None);
        }
        let triple = id.triple();
        // Four fields, where offload binaries have three.
        let fields = [triple.arch(), triple.vendor(), triple.os()].join("-");
        Ok(Some(Target {
            kind: id.kind().offload_kind(),
            triple: match triple.environment() {
                "" | "unknown" => fields,
                environment => format!("{fields}-{environment}"),
            },
            processor: id.target_id().to_owned(),
        }))
    }
}

/// The host's entry of the bundle that a file is, unless it is empty.
pub(super) fn host_part(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    read_host_part(path).map_err(|source| Error::Input {
        from: path.display().to_string(),
        source,
    })
}

fn read_host_part(path: &Path) -> Result<Option<Vec<u8>>, Problem> {
    let blocks = Blocks::open(path)?;
    let data = &blocks;
    let size = data.len().map_err(|()| "its size cannot be read")?;
    for entry in entries(data, 0..size)? {
        let is_host = EntryId::parse(&entry.id)?.kind() == EntryKind::Host;
        if is_host && !entry.is_empty() {
            let Range { start, end } = entry.range;
            let bytes = match &entry.unpacked {
                Some(bytes) => bytes.as_ref().read_bytes_at(start, end - start),
                None => data.read_bytes_at(start, end - start),
            };
            let bytes = bytes.map_err(|()| "its host entry cannot be read")?;
            return Ok(Some(bytes.to_vec()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_who_an_entry_is_for_as_offload_binaries_do() {
        let target = |id: &str| {
            let entry = Entry {
                id: id.to_owned(),
                range: 0..0,
                unpacked: None,
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
}
