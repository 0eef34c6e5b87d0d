//! Packs the images of a module without host code, and writes the file that Rust includes.

use crate::declare::language::Container;
use crate::declare::module::Module;
use crate::declare::skipped::Skipped;
use crate::error::{self, Error};
use crate::files;
use crate::generate::{Content, HostFile, Place};
use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::images::Images;
use crate::steps::images::planned::PlannedImage;
use crate::steps::step::{Done, Made, Step};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// Checks the linked images, and writes their container and the file that Rust includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packing {
    pub(crate) module: String,
    images: Images,
    pub(crate) output: PathBuf,
    host_file: PathBuf,
}

impl Packing {
    /// Returns the images, which `version` of a compiler makes.
    pub(crate) fn new(
        module: &Module,
        planned: Vec<PlannedImage>,
        skipped: Vec<Skipped>,
        version: &str,
        out: &Path,
    ) -> Self {
        Self {
            module: module.name.clone(),
            images: Images::new(module, planned, skipped, version),
            output: out.join("offload").join(&module.name).join("images"),
            host_file: out.join(format!("{}.rs", module.name)),
        }
    }

    fn run(&self) -> Result<Done, Error> {
        let images = self.images.read()?;
        let kernels = self.images.kernels(&images)?;
        // Of kernels it was seen already.
        self.images.check(&images, &BTreeSet::new())?;
        let packed = self.images.pack(&images)?;
        files::write(&self.output, &packed.bytes).map_err(error::io(&self.output))?;
        let shown = self.images.planned.iter().enumerate();
        let shown = shown.map(|(index, image)| {
            let range = packed.ranges.get(index).cloned();
            self.images
                .shown(image, range.map_or(Place::Nowhere, Place::Part))
        });
        let file = HostFile {
            module: self.module.clone(),
            kernels: kernels.iter().map(|kernel| kernel.name.clone()).collect(),
            described: kernels,
            skipped: self.images.skipped.clone(),
            content: Content::Included {
                file: format!("offload/{}/images", self.module),
                size: packed.bytes.len() as u64,
                is_container: self.images.container != Container::Raw,
                images: shown.collect(),
            },
        };
        let text = file.to_string();
        files::write(&self.host_file, text.as_bytes()).map_err(error::io(&self.host_file))?;
        Ok(Done::with_warning(packed.warning))
    }
}

impl Step for Packing {
    fn title(&self) -> String {
        format!("images of `{}`", self.module)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (container, output) = (self.images.container.name(), self.output.display());
        writeln!(
            f,
            "# images of `{}` ({container}), in this process: {output}",
            self.module
        )?;
        let mut images = self.images.planned.iter();
        images.try_for_each(|image| writeln!(f, "#   {image}"))
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        Ok(self.run()?)
    }

    fn made(&self, _reads: Vec<PathBuf>) -> Made {
        Made::in_process(
            self.title(),
            vec![self.output.clone(), self.host_file.clone()],
            self.images.paths().collect(),
        )
    }
}
