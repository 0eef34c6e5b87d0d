//! Images that are there once, without having them in memory.
//!
//! An archive that is named twice, a header's code in each object: of equal images one is linked. Only images for one
//! target that are as large as each other, and begin, go on and end alike, are read as a whole for that.

use std::collections::HashMap;

use super::Error;
use super::images::Image;

/// The images that were added.
#[derive(Default)]
pub(super) struct Distinct<'a> {
    alike: HashMap<Key<'a>, Vec<Known<'a>>>,
}

/// Triple, processor, size, and [`Image::sample`].
type Key<'a> = (&'a str, &'a str, u64, u64);

struct Known<'a> {
    image: &'a Image,
    /// Of most there is one, and nobody asks for it.
    digest: Option<u64>,
}

impl<'a> Distinct<'a> {
    /// Adds an image, unless an equal one is there: which.
    pub(super) fn add(&mut self, image: &'a Image) -> Result<Option<&'a Image>, Error> {
        let sample = image.sample()?;
        let key = (&*image.triple, &*image.processor, image.size(), sample);
        let alike = self.alike.entry(key).or_default();
        let mut same = alike.iter().map(|known| known.image);
        if let Some(same) = same.find(|known| known.is_same_place(image)) {
            return Ok(Some(same));
        }
        let digest = match alike.is_empty() {
            true => None,
            false => Some(image.digest()?),
        };
        for known in alike.iter_mut() {
            if known.digest.is_none() {
                known.digest = Some(known.image.digest()?);
            }
            if known.digest == digest && known.image.is_same(image)? {
                return Ok(Some(known.image));
            }
        }
        alike.push(Known { image, digest });
        Ok(None)
    }
}
