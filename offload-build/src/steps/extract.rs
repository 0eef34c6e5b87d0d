//! Takes the images for a target out of a library of device code.

use crate::inputs::libraries;
use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::step::{Done, Made, Step};
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_build_core::readable::Readable;
use offload_formats::container::decompression_limit::DecompressionLimit;
use offload_formats::format::pieces::{Piece, PieceSource};
use std::fmt;
use std::path::PathBuf;

/// Takes the images for one target out of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extraction {
    pub(crate) library: PathBuf,
    /// The target as the manifest spells it.
    pub(crate) target: String,
    /// Indices of its images, and the file of each.
    pub(crate) files: Vec<(usize, PathBuf)>,
    /// The limit on what compressed images become.
    pub(crate) decompressed: DecompressionLimit,
}

impl Extraction {
    fn run(&self) -> Result<Done, Error> {
        let library = Readable::open(&self.library)?;
        let images = libraries::images(&self.library, &library, self.decompressed)?;
        for (index, path) in &self.files {
            let image = images.get(*index);
            let image = image.ok_or_else(|| libraries::changed(&self.library))?;
            let range = image.range.clone();
            let piece = [Piece::Copy { input: 0, range }];
            let written = match &image.unpacked {
                None => files::write_pieces(path, &piece, &[&self.library]),
                Some(unpacked) => {
                    let unpacked = PieceSource::new(piece.to_vec(), vec![unpacked.source()]);
                    files::write_from(path, unpacked)
                }
            };
            written.map_err(error::io(path))?;
        }
        Ok(Done::default())
    }
}

impl Step for Extraction {
    fn title(&self) -> String {
        format!("images of `{}` for {}", self.library.display(), self.target)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let library = self.library.display();
        writeln!(
            f,
            "# images of {library} for {}, in this process",
            self.target
        )
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        Ok(self.run()?)
    }

    fn made(&self) -> Made {
        Made::in_process(
            self.title(),
            self.files.iter().map(|(_, path)| path.clone()).collect(),
            vec![self.library.clone()],
        )
    }
}
