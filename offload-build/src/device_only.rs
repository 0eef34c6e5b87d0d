//! The plan of a module without host code (HIP, CUDA, bitcode): an image for each target, and the container that the
//! program gives to the runtime's module API.

use crate::artifacts::{self, Unit};
use crate::container::kernels;
use crate::context::{self, Context};
use crate::error::{self, Error};
use crate::format::compressed_bundle::{self, Compression, Method};
use crate::host_file::{self, Content, Described, HostFile, Place};
use crate::language::{Container, Language};
use crate::link;
use crate::link::fatbin::{FatbinImage, cuda_fatbin};
use crate::link::hip_bundle::{self, hip_bundle};
use crate::module::{Module, Target};
use crate::plan::{Plan, Step};
use crate::planned_image::PlannedImage;
use crate::toolchain::task::{self, Done};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
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
    let packing = Packing::new(module, code.images, &context.compiler.version, context.out);
    let last = [Step::Pack(packing)].into_iter();
    let stages = vec![
        code.compiles,
        code.links,
        last.chain(artifacts.into_iter().map(Step::Artifact))
            .collect(),
    ];
    let notes = code.notes;
    Ok((Plan { stages, notes }, code.built))
}

/// Checks the linked images, and writes their container and the file that Rust includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packing {
    pub(crate) module: String,
    pub(crate) images: Vec<PlannedImage>,
    container: Container,
    compress: Option<(Method, Option<i32>)>,
    language: Language,
    version: String,
    pub(crate) output: PathBuf,
    host_file: PathBuf,
}

/// The bytes of a container, and where the images are in it; nowhere when it is compressed.
type Packed = (Vec<u8>, Vec<Range<u64>>);

impl Packing {
    /// Of images that `version` of a compiler makes.
    pub(crate) fn new(
        module: &Module,
        images: Vec<PlannedImage>,
        version: &str,
        out: &Path,
    ) -> Self {
        Self {
            module: module.name.clone(),
            images,
            container: module.container,
            compress: module.compress,
            language: module.language,
            version: version.to_owned(),
            output: out.join("offload").join(&module.name).join("images"),
            host_file: out.join(format!("{}.rs", module.name)),
        }
    }

    pub(crate) fn outputs(&self) -> Vec<PathBuf> {
        vec![self.output.clone(), self.host_file.clone()]
    }

    pub(crate) fn inputs(&self) -> Vec<PathBuf> {
        let images = self.images.iter();
        images.map(|image| image.path().to_owned()).collect()
    }

    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let mut images = Vec::new();
        for image in &self.images {
            images.push(image.read()?);
        }
        let kernels = self.kernels(&images)?;
        for (image, bytes) in self.images.iter().zip(&images) {
            // Of kernels it was seen already.
            link::check(
                bytes,
                &image.target.triple,
                &image.target.id,
                &BTreeSet::new(),
            )
            .map_err(|error| Error::because(image, error))?;
        }
        let mut done = Done::default();
        let (bytes, ranges) = self.pack(&images, &mut done)?;
        task::write(&self.output, &bytes).map_err(error::io(&self.output))?;
        let shown = self
            .images
            .iter()
            .enumerate()
            .map(|(index, image)| host_file::Image {
                target: image.target.written.clone(),
                kind: image.kind().name(),
                compiler: self.version.clone(),
                place: ranges
                    .get(index)
                    .cloned()
                    .map_or(Place::Nowhere, Place::Part),
            });
        let file = HostFile {
            module: self.module.clone(),
            kernels: kernels.iter().map(|kernel| kernel.name.clone()).collect(),
            described: kernels,
            content: Content::Included {
                file: format!("offload/{}/images", self.module),
                size: bytes.len() as u64,
                is_container: self.container != Container::Raw,
                images: shown.collect(),
            },
        };
        let text = file.to_string();
        task::write(&self.host_file, text.as_bytes()).map_err(error::io(&self.host_file))?;
        Ok(done)
    }

    /// Those of all images. What one target has, all have, but those that leave sources out; and all take the same
    /// arguments, because the program fills them in without knowing which image runs.
    fn kernels(&self, images: &[Vec<u8>]) -> Result<Vec<Described>, Error> {
        let mut all: BTreeMap<String, Described> = BTreeMap::new();
        for (image, bytes) in self.images.iter().zip(images) {
            let target = &image.target.written;
            let found = kernels::kernels(bytes).map_err(|error| Error::because(image, error))?;
            for kernel in found {
                let described = all.entry(kernel.name.clone()).or_insert_with(|| Described {
                    name: kernel.name.clone(),
                    arguments: kernel.arguments.clone(),
                    images: Vec::new(),
                });
                if let (true, Some((other, _))) = (
                    described.arguments != kernel.arguments,
                    described.images.first(),
                ) {
                    let name = &kernel.name;
                    return Err(Error::new(format_args!(
                        "{image}: kernel `{name}` takes other arguments than for `{other}`"
                    )));
                }
                described.images.push((target.clone(), kernel));
            }
        }
        if all.is_empty() {
            return Err(Error::new(
                "no kernel in any source\nhint: write a `__global__` function in one of `sources`",
            ));
        }
        for image in self.images.iter().filter(|image| !image.target.leaves_out) {
            let target = &image.target.written;
            let lacks = |kernel: &&Described| kernel.images.iter().all(|(of, _)| of != target);
            let missing = all.values().filter(lacks);
            let missing: Vec<&str> = missing.map(|kernel| &*kernel.name).collect();
            if !missing.is_empty() {
                let missing = missing.join("`, `");
                return Err(Error::new(format_args!(
                    "{image}: no kernel `{missing}`, which other targets have\n\
                     hint: `exclude` leaves sources out for one target"
                )));
            }
        }
        Ok(all.into_values().collect())
    }

    fn pack(&self, images: &[Vec<u8>], done: &mut Done) -> Result<Packed, Error> {
        match self.container {
            Container::Bundle => {
                let ids = self.images.iter().map(|image| {
                    let processor = image.target.id.to_string();
                    hip_bundle::entry_id("hipv4", &processor)
                });
                let entries: Vec<(String, &[u8])> =
                    ids.zip(images.iter().map(Vec::as_slice)).collect();
                let bundle = hip_bundle(hip_bundle::HOST_ID, &entries).map_err(Error::new)?;
                if let Some(warning) = bundle.warning() {
                    done.messages += &format!("warning: {warning}\n");
                }
                let Some((method, level)) = self.compress else {
                    return Ok((bundle.bytes, bundle.images));
                };
                let how = Compression {
                    // Every runtime that reads compressed ones reads this.
                    version: compressed_bundle::Version::V2,
                    method,
                    level,
                    ..Compression::default()
                };
                let bytes = compressed_bundle::compress(&bundle.bytes, how);
                Ok((bytes.map_err(Error::new)?, Vec::new()))
            }
            Container::Fatbin => {
                let processors: Vec<String> = self
                    .images
                    .iter()
                    .map(|image| image.target.id.to_string())
                    .collect();
                let cubins: Vec<FatbinImage<'_>> = processors
                    .iter()
                    .zip(images)
                    .map(|(processor, cubin)| FatbinImage { processor, cubin })
                    .collect();
                let fatbin = cuda_fatbin(&cubins).map_err(Error::new)?;
                Ok((fatbin.bytes, fatbin.images))
            }
            Container::OffloadBinary => {
                let mut bytes = Vec::new();
                let mut ranges = Vec::new();
                for (planned, image) in self.images.iter().zip(images) {
                    let (binary, range) =
                        planned.pack(image, self.language.offload_kind(&planned.target))?;
                    let start = bytes.len() as u64;
                    ranges.push(start + range.start..start + range.end);
                    bytes.extend(binary);
                }
                Ok((bytes, ranges))
            }
            Container::Raw => {
                let mut bytes: Vec<u8> = Vec::new();
                let mut ranges = Vec::new();
                for image in images {
                    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
                    let start = bytes.len() as u64;
                    bytes.extend_from_slice(image);
                    ranges.push(start..bytes.len() as u64);
                }
                Ok((bytes, ranges))
            }
        }
    }
}

/// Of images that are in no container.
const ALIGNMENT: usize = 4096;

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (container, output) = (self.container.name(), self.output.display());
        writeln!(
            f,
            "# images of `{}` ({container}), in this process: {output}",
            self.module
        )?;
        self.images
            .iter()
            .try_for_each(|image| writeln!(f, "#   {image}"))
    }
}
