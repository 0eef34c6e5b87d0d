//! Offload binaries as text, in the form of LLVM's `yaml2obj` and `obj2yaml`.
//!
//! ```yaml
//! --- !Offload
//! Version: 1              # these four change fields of the header, and nothing else
//! Size: 152
//! EntryOffset: 32         # or EntriesOffset
//! EntrySize: 40           # or EntriesCount
//! Compression: zstd       # or zlib; only of the main branch
//! Members:                # required
//!   - ImageKind:   IMG_Object      # or a number
//!     OffloadKind: OFK_OpenMP
//!     Flags:       0
//!     String:
//!       - Key:   triple
//!         Value: nvptx64-nvidia-cuda
//!     Content:     DEADBEEF
//! ...
//! ```
//!
//! The reader supports only as much YAML as such documents need: no anchors, no scalars of several
//! lines, one document. Our differences to LLVM: `docs/differences.md#offload-binary`.

mod error;
mod print;
mod reader;

use std::ops::Range;

use super::bytes::{Cursor, ReadAt};
use super::codec::Method;
use super::offload_binary::{
    self, NewBinaryEntry, OffloadBinary, OffloadBinaryVersion, OffloadBinaryWriteError, compress,
    layout,
};
use super::pieces;
use crate::names::{ImageKind, LlvmRelease, OffloadKind};
use reader::{Map, Node, YamlContent, YamlPosition};

pub use error::{ReadError, YamlError, YamlProblem};

const TAG: &str = "!Offload";

/// The content of offload binaries, with header fields for `yaml2obj`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The version in the header.
    pub version: Option<u32>,
    /// The size in the header.
    pub size: Option<u64>,
    /// The offset of the entries in the header.
    pub entries_offset: Option<u64>,
    /// The size of the entry in the header, or the number of entries.
    pub entries: Option<u64>,
    /// Compression method; only in version 3.
    pub compression: Option<Method>,
    /// The images. Up to LLVM 22 each has an offload binary of its own.
    pub members: Vec<YamlMember>,
}

/// An image with its properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YamlMember {
    /// Kind of the image.
    pub image_kind: ImageKind,
    /// Runtime that manages the image. Numbers are those since LLVM 21.
    pub offload_kind: OffloadKind,
    /// Bit 0: there are strings but no image.
    pub flags: u32,
    /// Keys and values.
    pub strings: Vec<(String, String)>,
    /// The bytes of the image.
    pub content: Vec<u8>,
}

/// Names in LLVM 22, which has none for SPIR-V and SYCL.
const IMAGE_KINDS: [(&str, u16); 7] = [
    ("IMG_None", 0),
    ("IMG_Object", 1),
    ("IMG_Bitcode", 2),
    ("IMG_Cubin", 3),
    ("IMG_Fatbinary", 4),
    ("IMG_PTX", 5),
    ("IMG_LAST", 7),
];

const OFFLOAD_KINDS: [(&str, u16); 5] = [
    ("OFK_None", 0),
    ("OFK_OpenMP", 1),
    ("OFK_Cuda", 2),
    ("OFK_HIP", 4),
    ("OFK_LAST", 16),
];

/// Reads a document.
///
/// Accepts any text: this does not panic, and allocates a small multiple of it.
///
/// # Errors
///
/// Fails if the text is not the YAML of an offload binary.
pub fn parse(text: &str) -> Result<Document, YamlError> {
    let root = reader::read(text, TAG)?;
    let place = root.place;
    let mut fields = YamlFields::of(root)?;
    let document = Document {
        version: fields.number(&["Version"], u32::MAX.into())?.map(low),
        size: fields.number(&["Size"], u64::MAX)?,
        entries_offset: fields.number(&["EntryOffset", "EntriesOffset"], u64::MAX)?,
        entries: fields.number(&["EntrySize", "EntriesCount"], u64::MAX)?,
        compression: fields.take(&["Compression"]).map(method).transpose()?,
        members: list(fields.required(place, "Members")?, member)?,
    };
    fields.finish()?;
    Ok(document)
}

impl Document {
    /// Returns the bytes that `yaml2obj` of that release writes.
    ///
    /// # Errors
    ///
    /// Fails as [`layout`] and [`compress`] do.
    pub fn to_bytes(&self, release: LlvmRelease) -> Result<Vec<u8>, OffloadBinaryWriteError> {
        let version = OffloadBinaryVersion::of(release);
        let strings = self.members.iter().map(|member| {
            let pairs = member.strings.iter();
            pairs.map(|(key, value)| (key.as_bytes(), value.as_bytes()))
        });
        let strings: Vec<Vec<(&[u8], &[u8])>> = strings.map(Iterator::collect).collect();
        let entries = self.members.iter().zip(&strings);
        let entries: Vec<NewBinaryEntry<'_>> = entries
            .map(|(member, strings)| NewBinaryEntry {
                image_kind: member.image_kind,
                offload_kind: member.offload_kind,
                flags: member.flags,
                strings,
                image_size: member.content.len() as u64,
            })
            .collect();
        let images = self.members.iter().map(|member| &member.content[..]);
        let images: Vec<&[u8]> = images.collect();
        let pieces = layout(&entries, version, release)?;
        let bytes = pieces::to_bytes(&pieces, &images);
        let mut bytes = bytes.expect("each image has the size of its entry");
        let size = bytes.len() as u64;
        let all = offload_binary::walk(&bytes[..], 0..size);
        let all = all.expect("the layout is valid");
        if let Some(method) = self.compression {
            bytes = compress(&bytes, method, None)?;
        }
        for binary in all {
            self.change_header(&mut bytes, binary.offset);
        }
        Ok(bytes)
    }

    fn change_header(&self, bytes: &mut [u8], start: u64) {
        let mut set = |offset: u64, value: &[u8]| {
            let start = usize::try_from(start.saturating_add(offset)).ok();
            let room = start.and_then(|start| bytes.get_mut(start..)?.get_mut(..value.len()));
            let room = room.expect("an offload binary has all fields of its header");
            room.copy_from_slice(value);
        };
        if let Some(version) = self.version {
            set(4, &version.to_le_bytes());
        }
        let fields = [
            (8, self.size),
            (16, self.entries_offset),
            (24, self.entries),
        ];
        for (offset, value) in fields {
            if let Some(value) = value {
                set(offset, &value.to_le_bytes());
            }
        }
    }

    /// Reads the offload binaries in a range of `data` as `obj2yaml` does: all images in one list,
    /// without the headers. Replaces bytes of strings that are not UTF-8. Inflates compressed
    /// offload binaries, each up to `limit` bytes.
    ///
    /// # Errors
    ///
    /// Fails if an offload binary is invalid, or cannot be inflated.
    pub fn of<'d, R: ReadAt<'d>>(
        data: R,
        range: Range<u64>,
        limit: u64,
    ) -> Result<Self, ReadError> {
        let mut document = Self::default();
        for binary in offload_binary::walk(data, range).map_err(ReadError::Binary)? {
            if binary.compressed.is_some() {
                let bytes = binary.inflate(data, limit).map_err(ReadError::Inflate)?;
                let size = bytes.len() as u64;
                let inflated = OffloadBinary::parse(&bytes[..], 0, size);
                document.add(&bytes[..], &inflated.map_err(ReadError::Binary)?)?;
            } else {
                document.add(data, &binary)?;
            }
        }
        Ok(document)
    }

    fn add<'d, R: ReadAt<'d>>(&mut self, data: R, binary: &OffloadBinary) -> Result<(), ReadError> {
        for entry in &binary.entries {
            let mut cursor = Cursor::new(data, entry.image.clone());
            let size = entry.image.end.saturating_sub(entry.image.start);
            let content = cursor.read(size, "image").map_err(ReadError::Outside)?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            self.members.push(YamlMember {
                image_kind: entry.image_kind,
                offload_kind: entry.offload_kind,
                flags: entry.flags,
                strings: entry
                    .strings
                    .iter()
                    .map(|(key, value)| (text(key), text(value)))
                    .collect(),
                content: content.to_vec(),
            });
        }
        Ok(())
    }
}

/// The entries of a map that were not requested yet.
struct YamlFields(Map);

impl YamlFields {
    fn of(node: Node) -> Result<Self, YamlError> {
        match node.content {
            YamlContent::Map(entries) => Ok(Self(entries)),
            YamlContent::Nothing => Ok(Self(Map::new())),
            _ => Err(node.place.error(YamlProblem::Expected { what: "a map" })),
        }
    }

    /// Returns the value of a key with one of these spellings.
    fn take(&mut self, keys: &[&str]) -> Option<Node> {
        keys.iter()
            .find_map(|key| self.0.remove(*key))
            .map(|(_, node)| node)
    }

    /// Returns the value of a required key of the map at `place`.
    fn required(&mut self, place: YamlPosition, key: &'static str) -> Result<Node, YamlError> {
        let missing = place.error(YamlProblem::Missing { key });
        self.take(&[key]).ok_or(missing)
    }

    fn number(&mut self, keys: &[&str], most: u64) -> Result<Option<u64>, YamlError> {
        let Some(node) = self.take(keys) else {
            return Ok(None);
        };
        let (place, found) = scalar(node)?;
        match number(&found) {
            Some(number) if number <= most => Ok(Some(number)),
            _ => Err(place.error(YamlProblem::Number { found, most })),
        }
    }

    fn kind(&mut self, key: &str, names: &[(&str, u16)]) -> Result<u16, YamlError> {
        let Some(node) = self.take(&[key]) else {
            return Ok(0);
        };
        let (place, found) = scalar(node)?;
        let row = names.iter().find(|(name, _)| *name == found);
        let named = row.map(|(_, number)| *number);
        let number = || u16::try_from(number(&found)?).ok();
        let kind = named.or_else(number);
        kind.ok_or_else(|| place.error(YamlProblem::Kind { found }))
    }

    fn finish(self) -> Result<(), YamlError> {
        match self.0.into_iter().min_by_key(|(_, (place, _))| *place) {
            Some((key, (place, _))) => Err(place.error(YamlProblem::Unknown { key })),
            None => Ok(()),
        }
    }
}

fn member(node: Node) -> Result<YamlMember, YamlError> {
    let mut fields = YamlFields::of(node)?;
    let image_kind = fields.kind("ImageKind", &IMAGE_KINDS)?;
    let offload_kind = fields.kind("OffloadKind", &OFFLOAD_KINDS)?;
    let flags = fields.number(&["Flags"], u32::MAX.into())?;
    let strings = fields.take(&["String"]).map(|node| list(node, pair));
    let content = fields.take(&["Content"]).map(bytes);
    fields.finish()?;
    Ok(YamlMember {
        image_kind: ImageKind::from_raw(image_kind),
        offload_kind: OffloadKind::from_raw(offload_kind),
        flags: flags.map_or(0, low),
        strings: strings.transpose()?.unwrap_or_default(),
        content: content.transpose()?.unwrap_or_default(),
    })
}

fn pair(node: Node) -> Result<(String, String), YamlError> {
    let place = node.place;
    let mut fields = YamlFields::of(node)?;
    let key = scalar(fields.required(place, "Key")?)?.1;
    let value = scalar(fields.required(place, "Value")?)?.1;
    fields.finish()?;
    Ok((key, value))
}

fn list<T>(node: Node, item: impl Fn(Node) -> Result<T, YamlError>) -> Result<Vec<T>, YamlError> {
    match node.content {
        YamlContent::List(items) => items.into_iter().map(item).collect(),
        YamlContent::Nothing => Ok(Vec::new()),
        YamlContent::Scalar(scalar) if scalar.text == "~" && !scalar.quoted => Ok(Vec::new()),
        _ => Err(node.place.error(YamlProblem::Expected { what: "a list" })),
    }
}

fn scalar(node: Node) -> Result<(YamlPosition, String), YamlError> {
    match node.content {
        YamlContent::Scalar(scalar) => Ok((node.place, scalar.text)),
        _ => Err(node.place.error(YamlProblem::Expected { what: "a scalar" })),
    }
}

fn bytes(node: Node) -> Result<Vec<u8>, YamlError> {
    let (place, text) = scalar(node)?;
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    };
    let bytes = text.as_bytes().chunks(2).map(byte);
    let bytes: Option<Vec<u8>> = bytes.collect();
    bytes.ok_or_else(|| place.error(YamlProblem::Content))
}

fn method(node: Node) -> Result<Method, YamlError> {
    let (place, found) = scalar(node)?;
    let methods = [Method::Zlib, Method::Zstd];
    let method = methods.into_iter().find(|method| method.name() == found);
    method.ok_or_else(|| place.error(YamlProblem::Compression { found }))
}

/// Parses a number as LLVM does: decimal, or with the prefix of another base.
fn number(text: &str) -> Option<u64> {
    let bases = [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2), ("0o", 8)];
    let found = bases
        .into_iter()
        .find_map(|(prefix, base)| Some((text.strip_prefix(prefix)?, base)));
    let (digits, base) = match found {
        Some(found) => found,
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let valid = digits.chars().all(|char| char.is_digit(base));
    Some(digits)
        .filter(|_| valid)
        .and_then(|digits| u64::from_str_radix(digits, base).ok())
}

/// Tells whether other YAML readers parse a plain scalar as a number.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    for (prefix, base) in [("0x", 16), ("0o", 8)] {
        if let Some(rest) = text.strip_prefix(prefix) {
            return !rest.is_empty() && rest.chars().all(|char| char.is_digit(base));
        }
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent = exponent.map(|text| text.strip_prefix(['-', '+']).unwrap_or(text));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa = match (whole, fraction) {
        ("", fraction) => digits(fraction) && mantissa.starts_with('.'),
        (whole, "") => digits(whole),
        (whole, fraction) => digits(whole) && digits(fraction),
    };
    mantissa && exponent.is_none_or(digits)
}

/// Converts a number that was compared with the largest `u32`.
fn low(number: u64) -> u32 {
    u32::try_from(number).expect("the number was compared")
}

#[cfg(test)]
mod tests;
