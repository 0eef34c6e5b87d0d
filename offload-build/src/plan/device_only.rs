//! The plan of a module without host code (HIP, CUDA, bitcode): an image for each target, and the container that the
//! program gives to the runtime's module API.

use crate::declare::language::Container;
use crate::declare::module::{Module, Target};
use crate::declare::skipped::Skipped;
use crate::error;
use crate::error::Error;
use crate::files;
use crate::generate::{Content, HostFile, Place};
use crate::plan::artifacts::{self, Unit};
use crate::plan::context::{self, Context};
use crate::plan::stages::{Plan, Step};
use crate::steps::images::Images;
use crate::steps::images::planned::PlannedImage;
use crate::steps::task::Done;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// Plans a module, and says for which of its targets there will be an image.
pub(crate) fn plan(module: &Module, context: &Context<'_>) -> Result<(Plan, Vec<Target>), Error> {
    let unit = |source: &PathBuf| Unit {
        stem: context::stem(context.root, source)
            .trim_end_matches('.')
            .to_owned(),
        host: PathBuf::new(),
        images: Vec::new(),
    };
    let mut units: Vec<Unit> = module.sources.iter().map(unit).collect();
    let code = context.device_code(module, &mut units)?;
    let artifacts = artifacts::plan(module, &units, &context.host.triple, context.out)?;
    let version = &context.compiler.version;
    let skipped = code.skipped.clone();
    let packing = Packing::new(module, code.images, skipped, version, context.out);
    let last = [Step::Pack(packing)].into_iter();
    let stages = vec![
        code.compiles,
        code.links,
        last.chain(artifacts.into_iter().map(Step::Artifact))
            .collect(),
    ];
    let skipped = code.skipped;
    Ok((Plan { stages, skipped }, code.built))
}

/// Checks the linked images, and writes their container and the file that Rust includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packing {
    pub(crate) module: String,
    images: Images,
    pub(crate) output: PathBuf,
    host_file: PathBuf,
}

impl Packing {
    /// Of images that `version` of a compiler makes.
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

    pub(crate) fn outputs(&self) -> Vec<PathBuf> {
        vec![self.output.clone(), self.host_file.clone()]
    }

    pub(crate) fn inputs(&self) -> Vec<PathBuf> {
        self.images.paths().collect()
    }

    pub(crate) fn execute(&self) -> Result<Done, Error> {
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

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (container, output) = (self.images.container.name(), self.output.display());
        writeln!(
            f,
            "# images of `{}` ({container}), in this process: {output}",
            self.module
        )?;
        let mut images = self.images.planned.iter();
        images.try_for_each(|image| writeln!(f, "#   {image}"))
    }
}
