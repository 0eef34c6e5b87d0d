//! Packs the linked images of each kind in the format of its runtime.
//!
//! | kind   | container                                                              |
//! |--------|------------------------------------------------------------------------|
//! | OpenMP | an offload binary for each image                                       |
//! | CUDA   | one fatbin, with the bytes of NVIDIA's `fatbinary`                     |
//! | HIP    | one bundle, images at multiples of 4096, compressed on request         |
//! | SYCL   | the offload binaries that the device link made                         |
//!
//! Specification: `docs/spec/linker-wrapper.md` §4; `docs/spec/hip-runtime.md` for the requirements of HIP's runtime.

use std::ops::Range;
use std::path::Path;

use offload_build::tools::{Command, Search, cuda_fatbinary};
use offload_formats::container::fatbin::{FatbinImage, cuda_fatbin};
use offload_formats::format::compressed_bundle::{self, CompressedBundleVersion, Compression};
use offload_formats::format::hip_bundle::{self, ALIGNMENT, hip_bundle};
use offload_formats::format::magic::Magic;
use offload_formats::format::offload_binary::BinaryImage;
use offload_formats::names::{EntryId, ImageKind, LlvmRelease, OffloadKind};
use offload_formats::registration::fat_binary::Runtime;

use crate::linker_wrapper::actions::Actions;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::report::fates::{Report, target};
use crate::linker_wrapper::tool::Rules;
use crate::linker_wrapper::workplace::Workplace;
use crate::llvm_tool::compression::all_processors;

/// A linked image.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub triple: String,
    /// Processor for the device linker; may be empty.
    pub processor: String,
    pub kinds: Vec<OffloadKind>,
    pub image_kind: ImageKind,
    pub bytes: Vec<u8>,
    /// File that it was read from.
    pub file: std::path::PathBuf,
}

/// Images that are registered with one runtime.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub kind: OffloadKind,
    pub content: ContainerContent,
}

#[derive(Clone, Debug)]
pub(crate) enum ContainerContent {
    OpenMp(Vec<Packed>),
    FatBinary(Runtime, Vec<u8>),
    Sycl(Vec<u8>),
}

/// An image in its offload binary.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    pub binary: Vec<u8>,
    pub image: Range<u64>,
}

/// Settings for packing.
pub(crate) struct Packing<'a> {
    pub rules: Rules,
    pub search: &'a Search,
    pub workplace: &'a Workplace,
    /// Level of `--compress` for HIP's bundles.
    pub compress: Option<Option<i32>>,
    pub actions: Actions,
    /// `--save-temps`: keep a fat binary as a file.
    pub keep: bool,
}

impl Packing<'_> {
    /// Returns one container for each kind, in the order in which the kinds first appear.
    pub(crate) fn pack(
        &self,
        products: &[Product],
        report: &mut Report,
    ) -> Result<Vec<Container>, LinkError> {
        let mut kinds: Vec<OffloadKind> = Vec::new();
        for kind in products.iter().flat_map(|product| &product.kinds) {
            if !kinds.contains(kind) {
                kinds.push(*kind);
            }
        }
        let mut containers = Vec::new();
        for kind in kinds {
            let of_kind = |product: &&Product| product.kinds.contains(&kind);
            let mut images: Vec<&Product> = products.iter().filter(of_kind).collect();
            // The runtime loads the first image that fits, so their order matters.
            images.sort_by(|a, b| {
                let key = |image: &Product| (image.triple.clone(), image.processor.clone());
                key(b).cmp(&key(a))
            });
            let content = match kind {
                OffloadKind::CUDA => {
                    ContainerContent::FatBinary(Runtime::Cuda, self.fatbin(&images)?)
                }
                OffloadKind::HIP => {
                    ContainerContent::FatBinary(Runtime::Hip, self.bundle(&images, report)?)
                }
                OffloadKind::SYCL => ContainerContent::Sycl(self.sycl(&images, products)?),
                _ => {
                    let packed = images.iter().map(|image| Packed::new(image));
                    ContainerContent::OpenMp(packed.collect::<Result<_, _>>()?)
                }
            };
            if let (true, ContainerContent::FatBinary(runtime, bytes)) = (self.keep, &content) {
                let file = self.workplace.file(match runtime {
                    Runtime::Cuda => "fatbin",
                    Runtime::Hip => "hipfb",
                });
                self.actions.write(&file, bytes)?;
            }
            containers.push(Container { kind, content });
        }
        Ok(containers)
    }

    /// Returns the fatbin with the bytes of NVIDIA's tool. Under LLVM's name, and for images other than cubins, that
    /// tool writes it if it exists. If it fails, like CUDA 13's with the options of LLVM 19, cubins are packed here.
    fn fatbin(&self, images: &[&Product]) -> Result<Vec<u8>, LinkError> {
        let failed = |problem: String| LinkError::Container {
            kind: OffloadKind::CUDA,
            problem,
        };
        let tool = self.search.cuda_program("fatbinary");
        let own = || {
            let cubins = images.iter().map(|image| FatbinImage {
                processor: &image.processor,
                image: &image.bytes,
            });
            cuda_fatbin(&cubins.collect::<Vec<_>>())
        };
        let dry = self.actions.are_dry();
        if !dry && (self.rules == Rules::Ours || tool.is_err()) {
            match (own(), &tool) {
                (Ok(fatbin), _) => return Ok(fatbin.bytes),
                (Err(_), Ok(_)) => {}
                (Err(problem), Err(missing)) => {
                    return Err(failed(format!("{problem}\n{missing}")));
                }
            }
        }
        let output = self.workplace.file("fatbin");
        let files: Vec<(&str, &Path)> = images
            .iter()
            .map(|image| (image.processor.as_str(), image.file.as_path()))
            .collect();
        let release = match self.rules {
            Rules::Ours => LlvmRelease::default(),
            Rules::Llvm(release) => release,
        };
        let program = tool.unwrap_or_else(|_| "fatbinary".into());
        let command = cuda_fatbinary(&program, &files, &output, release, 64);
        if let Err(problem) = self.actions.run(&command, self.workplace) {
            return own()
                .map(|fatbin| fatbin.bytes)
                .map_err(|_| failed(problem.to_string()));
        }
        if dry {
            return Ok(Vec::new());
        }
        std::fs::read(&output)
            .map_err(|source| LinkError::io(format!("cannot read `{}`", output.display()), source))
    }

    fn bundle(&self, images: &[&Product], report: &mut Report) -> Result<Vec<u8>, LinkError> {
        let failed = |problem: String| LinkError::Container {
            kind: OffloadKind::HIP,
            problem,
        };
        let mut ids = Vec::new();
        for image in images {
            let id = EntryId::parse_target(&self.device_id(image));
            ids.push(
                id.map_err(|problem| failed(problem.to_string()))?
                    .to_string(),
            );
        }
        self.actions.show(&self.bundler(images));
        let images: Vec<(String, &[u8])> = ids
            .into_iter()
            .zip(images)
            .map(|(id, image)| (id, &*image.bytes))
            .collect();
        let bundle = hip_bundle(self.host_id(), &images);
        let bundle = bundle.map_err(|problem| failed(problem.to_string()))?;
        report.warnings.extend(bundle.warning());
        let bytes = bundle.bytes;
        let Some(level) = self.compress else {
            return Ok(bytes);
        };
        let how = Compression {
            level,
            version: match self.rules {
                Rules::Ours => CompressedBundleVersion::for_any_runtime(bytes.len() as u64),
                Rules::Llvm(release) if release <= LlvmRelease::V21 => CompressedBundleVersion::V2,
                Rules::Llvm(_) => CompressedBundleVersion::V3,
            },
            threads: all_processors(),
            ..Compression::default()
        };
        compressed_bundle::compress(&bytes, how).map_err(|problem| failed(problem.to_string()))
    }

    /// Returns the equivalent command, with LLVM's tool or ours, to be read or pasted.
    fn bundler(&self, images: &[&Product]) -> Command {
        let name = match self.rules {
            Rules::Ours => "offload-bundler",
            Rules::Llvm(_) => "clang-offload-bundler",
        };
        let mut targets = format!("-targets={}", self.host_id().trim_end_matches('-'));
        for image in images {
            targets += ",";
            targets += &self.device_id(image);
        }
        let mut command = Command::new(name).arg("-type=o");
        command = command.arg(format!("-bundle-align={ALIGNMENT}"));
        if let Some(level) = self.compress {
            command = command.arg("-compress");
            if let Some(level) = level {
                command = command.arg(format!("-compression-level={level}"));
            }
        }
        command = command.arg(targets).arg("-input=/dev/null");
        for image in images {
            command = command.arg(format!("-input={}", image.file.display()));
        }
        command.arg(format!(
            "-output={}",
            self.workplace.file("hipfb").display()
        ))
    }

    fn host_id(&self) -> &'static str {
        match self.rules {
            Rules::Llvm(LlvmRelease::V19) => "host-x86_64-unknown-linux--",
            _ => hip_bundle::HOST_ID,
        }
    }

    /// Returns the entry ID: with LLVM's runtime-independent kind, or the kind that HIP's runtime accepts without
    /// reading the image. It has five fields, which the runtime requires.
    fn device_id(&self, image: &Product) -> String {
        let kind = match self.rules {
            Rules::Ours => "hipv4",
            Rules::Llvm(_) => "hip",
        };
        hip_bundle::entry_id(kind, &image.processor)
    }

    fn sycl(&self, images: &[&Product], products: &[Product]) -> Result<Vec<u8>, LinkError> {
        let failed = |problem: String| LinkError::Container {
            kind: OffloadKind::SYCL,
            problem,
        };
        if products.len() != images.len() || images.iter().any(|image| image.kinds.len() > 1) {
            return Err(failed(
                "Linking images of SYCL offload kind with images of any other kind is not supported"
                    .to_owned(),
            ));
        }
        let mut bytes = Vec::new();
        for image in images {
            if !self.actions.are_dry() && Magic::of(&image.bytes) != Magic::OffloadBinary {
                return Err(failed(format!(
                    "the device link for {} did not make an offload binary",
                    target(&image.triple, &image.processor)
                )));
            }
            bytes.extend_from_slice(&image.bytes);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        Ok(bytes)
    }
}

impl Packed {
    /// Packs an image into an offload binary like LLVM 22.
    pub(crate) fn new(product: &Product) -> Result<Self, LinkError> {
        let Product {
            triple,
            processor,
            bytes,
            ..
        } = product;
        let strings = [("triple", triple.as_str()), ("arch", processor.as_str())];
        let packed = BinaryImage {
            image_kind: product.image_kind,
            offload_kind: OffloadKind::OPENMP,
            flags: 0,
            strings: &strings,
            image: bytes,
        };
        let packed = packed.to_bytes_with_range(LlvmRelease::default());
        let (binary, image) = packed.map_err(|source| LinkError::Input {
            from: triple.to_owned(),
            source: source.into(),
        })?;
        Ok(Self { binary, image })
    }
}
