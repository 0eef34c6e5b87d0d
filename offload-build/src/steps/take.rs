//! Takes an image out of a source of a prebuilt module.

use crate::inputs::prebuilt::PrebuiltImage;
use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::step::{Done, Made, Step};
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_formats::format::pieces::Piece;
use std::fmt;
use std::path::PathBuf;

/// Writes an image of a source to a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Take {
    pub(crate) source: PathBuf,
    /// The image, with the bytes that were unpacked to find it.
    pub(crate) image: PrebuiltImage,
    /// The target as the manifest spells it.
    pub(crate) target: String,
    pub(crate) output: PathBuf,
}

impl Take {
    fn run(&self) -> Result<Done, Error> {
        let written = match self.image.range_in_source() {
            Some(range) => {
                let piece = Piece::Copy { input: 0, range };
                files::write_pieces(&self.output, &[piece], &[&self.source])
            }
            None => files::write_from(&self.output, self.image.reader(&self.source)?),
        };
        written.map_err(error::io(&self.output))?;
        Ok(Done::default())
    }
}

impl Step for Take {
    fn title(&self) -> String {
        format!("image of `{}` for {}", self.source.display(), self.target)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, output) = (self.source.display(), self.output.display());
        writeln!(
            f,
            "# image for {} of {source}, in this process: {output}",
            self.target
        )
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        Ok(self.run()?)
    }

    fn made(&self) -> Made {
        Made::in_process(
            self.title(),
            vec![self.output.clone()],
            vec![self.source.clone()],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::prebuilt::images;
    use offload_formats::container::bundled::Unpacking;
    use offload_formats::format::bundle::{self, BundleImage};
    use offload_formats::format::compressed_bundle;
    use std::fs;
    use std::num::NonZeroU64;

    #[test]
    fn takes_an_image_out_of_what_was_unpacked_to_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let (source, output) = (folder.path().join("k.hipfb"), folder.path().join("image"));
        let image = b"BC\xc0\xde of an image";
        let id = "hipv4-amdgcn-amd-amdhsa--gfx90a";
        let plain = bundle::to_bytes(&[BundleImage { id, image }], NonZeroU64::MIN).unwrap();
        let packed = compressed_bundle::compress(&plain, Default::default()).unwrap();
        fs::write(&source, packed).unwrap();
        let found = images(&source, 1 << 30, &mut Unpacking::in_memory(1 << 30))
            .unwrap()
            .remove(0);
        // Whoever unpacks it again needs it again.
        fs::remove_file(&source).unwrap();
        let take = Take {
            source,
            image: found,
            target: "gfx90a".to_owned(),
            output: output.clone(),
        };
        take.run().unwrap();
        assert_eq!(fs::read(output).unwrap(), image);
    }
}
