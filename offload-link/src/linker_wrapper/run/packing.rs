//! Packs the linked images of each kind in the format of its runtime.
//!
//! | kind   | container                                                              |
//! |--------|------------------------------------------------------------------------|
//! | OpenMP | an offload binary for each image                                       |
//! | CUDA   | one fatbin, with the bytes of NVIDIA's `fatbinary`; on request LZ4     |
//! | HIP    | one bundle, images at multiples of 4096; compressed on request         |
//! | SYCL   | the offload binaries that the device link made                         |
//!
//! Specification: `docs/spec/linker-wrapper.md` §4; `docs/spec/hip-runtime.md` for the requirements of HIP's runtime.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use offload_build::tools::{Command, Search, cuda_fatbinary};
use offload_formats::container::fatbin::{FatbinImage, compressed_cuda_fatbin, cuda_fatbin};
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::compressed_bundle::{self, CompressedBundleVersion, Compression};
use offload_formats::format::fatbin::FatbinCompressor;
use offload_formats::format::hip_bundle::{self, ALIGNMENT, hip_bundle};
use offload_formats::format::magic::Magic;
use offload_formats::format::offload_binary::{self, BinaryEntry};
use offload_formats::format::pieces::{self, Piece, PieceSource};
use offload_formats::names::entry_id::{ConflictScope, conflict};
use offload_formats::names::{EntryId, LlvmRelease, OffloadKind};
use offload_formats::registration::fat_binary::Runtime;

use crate::files::{self, Reading};
use crate::linker_wrapper::actions::Actions;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::plan::containers::{Container, ContainerContent, Packed, Product};
use crate::linker_wrapper::report::fates::{Report, target};
use crate::linker_wrapper::tool::Rules;
use crate::linker_wrapper::workplace::Workplace;
use crate::llvm_tool::bundle_settings::BundleSettings;
use crate::llvm_tool::compression::all_processors;
use crate::say;

/// Settings for packing.
pub(crate) struct Packing<'a> {
    /// Name of the tool, for messages.
    pub tool: &'a OsStr,
    pub rules: Rules,
    pub search: &'a Search,
    pub workplace: &'a Workplace,
    /// `--compress`, with its level for HIP's bundles.
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
            let mut files: Vec<PathBuf> = images.iter().map(|image| image.file.clone()).collect();
            let content = match kind {
                OffloadKind::CUDA => {
                    ContainerContent::FatBinary(Runtime::Cuda, self.fatbin(&images, &mut files)?)
                }
                OffloadKind::HIP => {
                    let bundle = self.bundle(&images, &mut files, report)?;
                    ContainerContent::FatBinary(Runtime::Hip, bundle)
                }
                OffloadKind::SYCL => ContainerContent::Sycl(self.sycl(&images, products)?),
                _ => {
                    let packed = images.iter().enumerate();
                    let packed = packed.map(|(input, image)| Packed::new(image, input));
                    ContainerContent::OpenMp(packed.collect::<Result<_, _>>()?)
                }
            };
            if let (true, ContainerContent::FatBinary(runtime, pieces)) = (self.keep, &content) {
                let file = self.file(*runtime);
                // A tool may have made it.
                if !files.contains(&file) {
                    self.actions.write_pieces(&file, pieces, &files)?;
                }
            }
            containers.push(Container {
                kind,
                content,
                files,
            });
        }
        Ok(containers)
    }

    /// Returns the path of a fat binary among the intermediate files.
    fn file(&self, runtime: Runtime) -> PathBuf {
        self.workplace.file(match runtime {
            Runtime::Cuda => "fatbin",
            Runtime::Hip => "hipfb",
        })
    }

    /// Returns the fatbin with the bytes of NVIDIA's tool; its pieces copy `files`. Under LLVM's name, and for images other
    /// than cubins, that tool writes it if it exists. If it fails, like CUDA 13's with the options of LLVM 19, cubins
    /// are packed here.
    fn fatbin(
        &self,
        images: &[&Product],
        files: &mut Vec<PathBuf>,
    ) -> Result<Vec<Piece>, LinkError> {
        let failed = |problem: String| LinkError::Container {
            kind: OffloadKind::CUDA,
            problem,
        };
        let tool = self.search.cuda_program("fatbinary");
        let own = || -> Result<Vec<Piece>, String> {
            let read = images.iter().map(|image| Reading::open(&image.file));
            let read = read.collect::<Result<Vec<_>, _>>();
            let read = read.map_err(|problem| problem.to_string())?;
            let cubins = images.iter().zip(&read).map(|(image, data)| FatbinImage {
                processor: image.processor(),
                image: data,
            });
            let cubins: Vec<_> = cubins.collect();
            let fatbin = match self.compresses_fatbins() {
                // Drivers before CUDA 12.4 do not read Zstandard.
                true => compressed_cuda_fatbin(&cubins, FatbinCompressor::Lz4),
                false => cuda_fatbin(&cubins),
            };
            let fatbin = fatbin.map_err(|problem| problem.to_string())?;
            Ok(fatbin.pieces)
        };
        let dry = self.actions.are_dry();
        if !dry && (self.rules == Rules::Ours || tool.is_err()) {
            match (own(), &tool) {
                (Ok(fatbin), _) => return Ok(fatbin),
                (Err(_), Ok(_)) => {}
                (Err(problem), Err(missing)) => {
                    return Err(failed(format!("{problem}\n{missing}")));
                }
            }
        }
        let output = self.file(Runtime::Cuda);
        let named: Vec<(&str, &Path)> = images
            .iter()
            .map(|image| (image.processor(), image.file.as_path()))
            .collect();
        let release = match self.rules {
            Rules::Ours => LlvmRelease::default(),
            Rules::Llvm(release) => release,
        };
        let program = tool.unwrap_or_else(|_| "fatbinary".into());
        let command = cuda_fatbinary(&program, &named, &output, release, 64);
        if let Err(problem) = self.actions.run(&command, self.workplace) {
            return own().map_err(|_| failed(problem.to_string()));
        }
        match dry {
            true => Ok(Vec::new()),
            false => whole(output, files),
        }
    }

    /// Tells whether images of CUDA are compressed. LLVM compresses those of HIP only.
    fn compresses_fatbins(&self) -> bool {
        self.compress.is_some() && self.rules == Rules::Ours
    }

    /// Returns the bundle; its pieces copy `files`.
    fn bundle(
        &self,
        images: &[&Product],
        files: &mut Vec<PathBuf>,
        report: &mut Report,
    ) -> Result<Vec<Piece>, LinkError> {
        let failed = |problem: String| LinkError::Container {
            kind: OffloadKind::HIP,
            problem,
        };
        let ids = images
            .iter()
            .map(|image| EntryId::parse_target(&self.device_id(image)));
        let ids: Vec<EntryId> = ids
            .collect::<Result<_, _>>()
            .map_err(|problem| failed(problem.to_string()))?;
        if let Some((first, second)) = conflict(&ids, ConflictScope::KindAndTriple) {
            let [first, second] = [first, second].map(|index| ids[index].as_str());
            return Err(failed(format!(
                "Cannot bundle inputs with conflicting targets: '{first}' and '{second}'\n\
                 hint: the runtime could not choose between them; compile all objects for the same of the two"
            )));
        }
        self.actions.show(&self.bundler(images));
        let images: Vec<(String, u64)> = ids
            .iter()
            .zip(images)
            .map(|(id, image)| (id.to_string(), image.size))
            .collect();
        let bundle = hip_bundle(self.host_id(), &images);
        let bundle = bundle.map_err(|problem| failed(problem.to_string()))?;
        self.warn(bundle.warning(), report);
        let settings = self.bundle_settings(report);
        if !settings.compress || self.actions.are_dry() {
            return Ok(bundle.pieces);
        }
        let size = pieces::size(&bundle.pieces);
        let how = Compression {
            level: settings.level,
            version: match self.rules {
                Rules::Ours => CompressedBundleVersion::for_any_runtime(size),
                Rules::Llvm(release) => settings.version_for(release),
            },
            threads: all_processors(),
            ..Compression::default()
        };
        let output = self.file(Runtime::Hip);
        let mut file =
            File::create(&output).map_err(|source| LinkError::unwritten(&output, source))?;
        let inputs = files.iter().map(|file| Reading::source(file));
        let inputs = inputs.collect::<io::Result<Vec<_>>>();
        let inputs = inputs.map_err(|problem| failed(problem.to_string()))?;
        let reader = PieceSource::new(bundle.pieces, inputs);
        let written = compressed_bundle::compress_to(how, size, reader, &mut file);
        written.map_err(|problem| failed(problem.to_string()))?;
        whole(output, files)
    }

    /// Returns how HIP's bundle is written: from the command line, and with LLVM's rules from the bundler's variables.
    fn bundle_settings(&self, report: &mut Report) -> BundleSettings {
        let mut warnings = Vec::new();
        let variable = |name: &str| std::env::var_os(name);
        let mut settings = match self.rules {
            Rules::Ours => BundleSettings::default(),
            Rules::Llvm(_) => BundleSettings::from_environment(variable, &mut warnings),
        };
        self.warn(warnings, report);
        if let Some(level) = self.compress {
            settings.compress = true;
            settings.level = level.or(settings.level);
        }
        settings
    }

    fn warn(&self, warnings: impl IntoIterator<Item = String>, report: &mut Report) {
        for warning in warnings {
            say::warning(&self.tool.to_string_lossy(), &warning);
            report.warnings.push(warning);
        }
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
        hip_bundle::entry_id(kind, image.processor())
    }

    fn sycl(&self, images: &[&Product], products: &[Product]) -> Result<Vec<Piece>, LinkError> {
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
        let mut pieces = Vec::new();
        for (input, image) in images.iter().enumerate() {
            if !self.actions.are_dry() {
                let data = Reading::open(&image.file);
                let data = data.map_err(|problem| failed(problem.to_string()))?;
                if Magic::at(&data, 0..image.size) != Magic::OffloadBinary {
                    return Err(failed(format!(
                        "expected an offload binary for {} in `{}`, found another file",
                        target(&image.triple, image.processor()),
                        image.file.display()
                    )));
                }
            }
            pieces.push(Piece::Copy {
                input,
                range: 0..image.size,
            });
            let end = image.size.next_multiple_of(8);
            pieces.push(Piece::Zeros(end - image.size));
        }
        Ok(pieces)
    }
}

/// Adds a whole file to `files`, and returns the piece that copies it.
fn whole(file: PathBuf, files: &mut Vec<PathBuf>) -> Result<Vec<Piece>, LinkError> {
    let size = std::fs::metadata(&file).map(|data| data.len());
    let size =
        size.map_err(|source| LinkError::io(format!("cannot read `{}`", file.display()), source))?;
    files.push(file);
    Ok(vec![Piece::Copy {
        input: files.len() - 1,
        range: 0..size,
    }])
}

/// Returns the container with all its bytes in memory, to print them.
pub(crate) fn in_memory(container: &Container) -> io::Result<Container> {
    let read = |pieces: &Vec<Piece>| files::read_pieces(pieces, &container.files);
    Ok(Container {
        kind: container.kind,
        content: match &container.content {
            ContainerContent::OpenMp(images) => {
                let images = images.iter().map(|packed| {
                    Ok(Packed {
                        binary: read(&packed.binary)?,
                        image: packed.image.clone(),
                    })
                });
                ContainerContent::OpenMp(images.collect::<io::Result<_>>()?)
            }
            ContainerContent::FatBinary(runtime, pieces) => {
                ContainerContent::FatBinary(*runtime, read(pieces)?)
            }
            ContainerContent::Sycl(pieces) => ContainerContent::Sycl(read(pieces)?),
        },
        files: container.files.clone(),
    })
}

/// Reads the images of SYCL in the offload binaries that the device links made; there is at most one such container.
///
/// # Errors
///
/// Fails if a file cannot be read or is not an offload binary.
pub(crate) fn sycl_entries(containers: &[Container]) -> Result<Vec<BinaryEntry>, LinkError> {
    let mut entries = Vec::new();
    for container in containers {
        let ContainerContent::Sycl(pieces) = &container.content else {
            continue;
        };
        // A dry run has no images.
        if pieces::size(pieces) == 0 {
            continue;
        }
        let failed = |problem: String| LinkError::Container {
            kind: container.kind,
            problem,
        };
        let opened = container.files.iter().map(|file| Reading::source(file));
        let opened = opened.collect::<io::Result<Vec<_>>>();
        let opened = opened.map_err(|problem| failed(problem.to_string()))?;
        let data = ReadCache::new(PieceSource::new(pieces.clone(), opened));
        let binaries = offload_binary::walk(&data, 0..pieces::size(pieces));
        let binaries = binaries.map_err(|problem| failed(problem.to_string()))?;
        entries.extend(binaries.into_iter().flat_map(|binary| binary.entries));
    }
    Ok(entries)
}
