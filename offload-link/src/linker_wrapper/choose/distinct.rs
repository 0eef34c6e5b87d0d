//! Removes duplicate images without keeping images in memory.
//!
//! Duplicates come from an archive that is named twice, or from a header's code in each object. Of equal images, one
//! is linked. Images are compared in full only if target, size and samples of their bytes are equal.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::images::Image;
use offload_formats::format::bytes::ReadAt;
use offload_formats::names::OffloadKind;

/// Images that were added.
#[derive(Default)]
pub(crate) struct Distinct<'a> {
    alike: HashMap<Key<'a>, Vec<KnownImages<'a>>>,
}

/// Offload kind, triple, processor, size and [`sample`] of an image. Each kind registers its own images.
type Key<'a> = (OffloadKind, &'a str, &'a str, u64, u64);

struct KnownImages<'a> {
    image: &'a Image,
    /// Digest of the whole image, computed on demand: most images have a key of their own.
    digest: Option<u64>,
}

impl<'a> Distinct<'a> {
    /// Adds an image. If an equal one was added before, returns that one.
    pub(crate) fn add(&mut self, image: &'a Image) -> Result<Option<&'a Image>, LinkError> {
        let sample = sample(image)?;
        let target = (&*image.triple, &*image.processor);
        let key = (image.offload_kind, target.0, target.1, image.size(), sample);
        let alike = self.alike.entry(key).or_default();
        let mut same = alike.iter().map(|known| known.image);
        if let Some(same) = same.find(|known| known.is_same_place(image)) {
            return Ok(Some(same));
        }
        let own = match alike.is_empty() {
            true => None,
            false => Some(digest(image)?),
        };
        for known in alike.iter_mut() {
            if known.digest.is_none() {
                known.digest = Some(digest(known.image)?);
            }
            if known.digest == own && known.image.is_same(image)? {
                return Ok(Some(known.image));
            }
        }
        alike.push(KnownImages { image, digest: own });
        Ok(None)
    }
}

/// Returns a hash of a few bytes. Different images rarely share it.
fn sample(image: &Image) -> Result<u64, LinkError> {
    const PART: u64 = 1 << 8;
    let size = image.size();
    let last = size.saturating_sub(PART);
    image.read(|data| {
        let mut hasher = DefaultHasher::new();
        for start in [0, last / 2, last] {
            let part = data.read_at(start, size.min(PART));
            part.unwrap_or_default().hash(&mut hasher);
        }
        hasher.finish()
    })
}

/// Returns a hash of all bytes.
fn digest(image: &Image) -> Result<u64, LinkError> {
    let mut hasher = DefaultHasher::new();
    image.bytes()?.hash(&mut hasher);
    Ok(hasher.finish())
}
