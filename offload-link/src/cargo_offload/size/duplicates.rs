//! Images of a file that are the same.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::BufReader;

use offload_formats::container::inventory::{ContainerData, PlacedImage};
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::pieces::{Piece, PieceSource};
use offload_formats::format::unpacked::Unpacked;
use serde::Serialize;
use sha2::Sha256;

use crate::cargo_offload::digest::digest;
use crate::cargo_offload::image_text;
use crate::cargo_offload::images::{FileImages, FilePart};
use crate::cargo_offload::unpacker::{ImageUnpacker, is_unpacked};
use crate::decompressed::DecompressionLimit;

/// Images with the same bytes. JSON has these fields.
#[derive(Serialize)]
pub(super) struct DuplicateImages {
    pub(super) target: String,
    /// Numbers of the images in the file, at least two.
    pub(super) images: Vec<usize>,
    /// Size of one of them, unpacked, in bytes.
    pub(super) size: u64,
}

impl DuplicateImages {
    /// Returns the bytes of all copies but one, unpacked.
    pub(super) fn wasted(&self) -> u64 {
        let copies = self.images.len().saturating_sub(1) as u64;
        self.size.saturating_mul(copies)
    }

    /// Compares images of the same size by the SHA-256 of their unpacked bytes; unpacks at most `limit` bytes at once.
    /// Lists those that waste most first. Images that cannot be read become problems of the file.
    pub(super) fn find(found: &mut FileImages, limit: DecompressionLimit) -> Vec<Self> {
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        for part in &found.parts {
            for placed in part.inventory.images() {
                *sizes.entry(placed.image.size).or_default() += 1;
            }
        }
        let mut unpacker = ImageUnpacker::new(limit);
        let mut groups: BTreeMap<(u64, Vec<u8>), Self> = BTreeMap::new();
        let (mut number, mut problems) = (0, Vec::new());
        for part in &found.parts {
            for placed in part.inventory.images() {
                let size = placed.image.size;
                let target = image_text::target(&placed);
                let is_alone = sizes.get(&size).is_none_or(|count| *count < 2);
                if size > 0 && !is_alone {
                    match image_digest(&mut unpacker, part, &placed) {
                        Ok(digest) => {
                            let group = groups.entry((size, digest)).or_insert_with(|| Self {
                                target,
                                images: Vec::new(),
                                size,
                            });
                            group.images.push(number);
                        }
                        Err(problem) => {
                            problems.push(format!("image {number} ({target}): {problem}"));
                        }
                    }
                }
                number += 1;
            }
        }
        found.problems.extend(problems);
        let mut groups: Vec<Self> = groups.into_values().collect();
        groups.retain(|group| group.images.len() > 1);
        groups.sort_by(|one, two| {
            let wasted = two.wasted().cmp(&one.wasted());
            wasted.then_with(|| one.images.cmp(&two.images))
        });
        groups
    }
}

fn image_digest(
    unpacker: &mut ImageUnpacker,
    part: &FilePart,
    placed: &PlacedImage<'_>,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let image = placed.image;
    let entry = image.fatbin_entry.as_ref();
    let entry = entry.filter(|entry| is_unpacked(entry));
    let stream = |bytes: &Unpacked| {
        let range = image.range.clone();
        let piece = Piece::Copy { input: 0, range };
        let source = PieceSource::new(vec![piece], vec![bytes.source()]);
        digest::<Sha256>(&mut BufReader::with_capacity(1 << 17, source))
    };
    let file = ReadCache::new(part.reading.part(0..part.size));
    let bytes = match (placed.data(), entry) {
        (ContainerData::File, None) => {
            return Ok(digest::<Sha256>(
                &mut part.reading.stream(image.range.clone()),
            )?);
        }
        (ContainerData::File, Some(entry)) => unpacker.fatbin_image(part, None, &file, entry)?,
        (ContainerData::Unpacked(bytes), Some(entry)) => {
            unpacker.fatbin_image(part, Some(bytes), &bytes.open(), entry)?
        }
        (ContainerData::Unpacked(bytes), None) => return Ok(stream(bytes)?),
        (ContainerData::Packed(bundle), _) => {
            return Ok(stream(&unpacker.bundle_content(bundle, &file)?)?);
        }
    };
    Ok(digest::<Sha256>(&mut &*bytes)?)
}
