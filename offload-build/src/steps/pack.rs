//! Packs the images of a module, or of each source of it, and writes the file that Rust includes.

use crate::generate::{Content, HostFile, PartFile, Place};
use crate::messages::Failure;
use crate::out_dir::{host_file, module_folder};
use crate::steps::digests::Digests;
use crate::steps::image_library::{self, ImageLibrary, LinkedContainer};
use crate::steps::images::lacking::warnings_of_lacking_kernels;
use crate::steps::images::{Images, Packed, PartImages, no_kernel};
use crate::steps::placement::placement;
use crate::steps::step::{Done, Made, Step};
use offload_build_core::declare::language::{Container, Language};
use offload_build_core::declare::module::Module;
use offload_build_core::declare::skipped::Skipped;
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_build_core::readable::Readable;
use offload_formats::container::large::ImagePlacement;
use std::ffi::OsStr;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Checks the linked images, and writes their containers and the file that Rust includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packing {
    pub(crate) module: String,
    /// Its device code comes out as archives: kernels of others call its functions.
    is_library: bool,
    containers: Vec<ContainerFile>,
    skipped: Vec<Skipped>,
    out: PathBuf,
    /// The static library with the containers; nothing if Rust includes them.
    library: Option<ImageLibrary>,
}

/// A container, and the images that are packed in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerFile {
    pub(crate) images: Images,
    pub(crate) output: PathBuf,
}

impl ContainerFile {
    /// Returns the container of one part of a module, which `version` of a compiler makes.
    pub(crate) fn new(module: &Module, part: PartImages, version: &str, out: &Path) -> Self {
        let folder = module_folder(out, &module.name);
        let name = match &part.source {
            Some(source) => files::short_name(&source.module) + ".images",
            None => "images".to_owned(),
        };
        Self {
            images: Images::new(module, part, version),
            output: folder.join(name),
        }
    }

    /// Writes the container, and returns it with its size in bytes.
    fn write(&self, images: &[Readable]) -> Result<(Packed, u64), Error> {
        let packed = self.images.pack(images)?;
        let inputs: Vec<PathBuf> = self.images.paths().collect();
        let size = packed.write(&self.output, &inputs)?;
        Ok((packed, size))
    }

    fn show_images(&self, f: &mut fmt::Formatter<'_>, of: &str) -> fmt::Result {
        let (container, output) = (self.images.container.name(), self.output.display());
        writeln!(
            f,
            "# images of `{of}` ({container}), in this process: {output}"
        )?;
        let mut images = self.images.planned.iter();
        images.try_for_each(|image| writeln!(f, "#   {image}"))
    }
}

impl Packing {
    /// Packs `parts`, which `version` of a compiler makes, into `OUT_DIR` and, if there is one, a library.
    pub(crate) fn new(
        module: &Module,
        parts: Vec<PartImages>,
        skipped: Vec<Skipped>,
        version: &str,
        place: (&Path, Option<&ImageLibrary>),
    ) -> Self {
        let (out, library) = place;
        let containers = parts.into_iter();
        let containers = containers.map(|part| ContainerFile::new(module, part, version, out));
        Self {
            module: module.name.clone(),
            is_library: !module.artifacts.is_empty(),
            containers: containers.collect(),
            skipped,
            out: out.to_owned(),
            library: library.cloned(),
        }
    }

    fn run(&self) -> Result<Done, Error> {
        let mut checked = Vec::new();
        for container in &self.containers {
            let images = container.images.open()?;
            let described = container.images.described(&images)?;
            checked.push((container, images, described));
        }
        let has_none = checked.iter().all(|(.., described)| described.is_empty());
        if has_none && !self.is_library {
            let first = self.containers.first();
            let language = first.map_or(Language::Hip, |container| container.images.language);
            return Err(no_kernel(language));
        }
        let described = checked.iter();
        let mut warnings = warnings_of_lacking_kernels(
            described.map(|(container, _, described)| {
                (container.images.planned.as_slice(), described.as_slice())
            }),
            &[],
            &self.skipped,
        );
        let mut parts = Vec::new();
        let mut linked = Vec::new();
        for (index, (container, images, described)) in checked.into_iter().enumerate() {
            let (packed, size) = container.write(&images)?;
            drop(images);
            if self.library.is_none() {
                // Rust includes them among the program's data.
                placement(None, size, u64::MAX)?;
            }
            let warning = packed.warning.iter();
            warnings.extend(warning.map(|text| format!("warning: {text}\n")));
            parts.push(PartFile {
                source: container.images.source.clone(),
                described,
                content: self.content(container, (&packed.ranges, size), index),
                ptx: container.images.ptx(&self.out),
            });
            if let Some(library) = &self.library {
                linked.push(LinkedContainer {
                    file: &container.output,
                    size,
                    container: container.images.container,
                    symbols: library.symbols(index),
                    images: packed.ranges,
                });
            }
        }
        if let Some(library) = &self.library {
            let is_large = library.write(&linked)? == ImagePlacement::Large;
            let mut all = self.containers.iter();
            if is_large && all.any(|container| container.images.are_plain()) {
                let text = "warning: large images are in a section of large data; `compress = \"zstd\"` makes them smaller\n";
                warnings.push_str(text);
            }
        }
        let file = HostFile::of_parts(self.module.clone(), parts, self.skipped.clone());
        let (text, path) = (file.to_string(), host_file(&self.out, &self.module));
        files::write(&path, text.as_bytes()).map_err(error::io(&path))?;
        Ok(Done {
            messages: warnings,
            ..Done::default()
        })
    }

    /// Returns where the generated file finds the images of `container`, the one with that index, by their ranges and its
    /// size.
    fn content(
        &self,
        container: &ContainerFile,
        (ranges, size): (&[Range<u64>], u64),
        index: usize,
    ) -> Content {
        let images = &container.images;
        let symbols = self.library.as_ref().map(|library| library.symbols(index));
        let place = |(number, range): (usize, &Range<u64>)| match &symbols {
            Some(symbols) => Place::Symbol(symbols.image(number), range.end - range.start),
            None => Place::Part(range.clone()),
        };
        let mut places = ranges.iter().enumerate().map(place);
        let shown = images.planned.iter();
        let shown = shown.map(|image| images.shown(image, places.next().unwrap_or(Place::Nowhere)));
        let shown = shown.collect();
        let is_container = images.container != Container::Raw;
        match &symbols {
            Some(symbols) => Content::Linked {
                anchor: None,
                container: (symbols.container(), size),
                is_container,
                images: shown,
            },
            None => {
                let file = container.output.strip_prefix(&self.out);
                let file = file.expect("the plan puts the container below `OUT_DIR`");
                let parts: Vec<_> = file.iter().map(OsStr::to_string_lossy).collect();
                Content::Included {
                    file: parts.join("/"),
                    size,
                    is_container,
                    images: shown,
                }
            }
        }
    }
}

impl Step for Packing {
    fn title(&self) -> String {
        format!("images of `{}`", self.module)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut containers = self.containers.iter();
        containers.try_for_each(|container| container.show_images(f, &self.module))?;
        let Some(library) = &self.library else {
            return Ok(());
        };
        let (section, _) = self.containers.first().map_or(("", 0), |container| {
            image_library::section(container.images.container)
        });
        let path = library.library.display();
        writeln!(
            f,
            "# library with section `{section}`, in this process: {path}"
        )
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        Ok(self.run()?)
    }

    fn made(&self) -> Made {
        let containers = self.containers.iter();
        let outputs = containers.map(|container| container.output.clone());
        let inputs = self.containers.iter();
        let library = self.library.iter().map(|library| library.library.clone());
        Made::in_process(
            self.title(),
            outputs
                .chain([host_file(&self.out, &self.module)])
                .chain(library)
                .collect(),
            inputs
                .flat_map(|container| container.images.paths())
                .collect(),
        )
    }
}

/// A container alone, which a compiler puts into host code.
impl Step for ContainerFile {
    fn title(&self) -> String {
        let source = self.images.source.iter();
        let source: String = source.map(|name| name.path.as_str()).collect();
        format!("images of {source}")
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.images.source.iter();
        self.show_images(
            f,
            &source.map(|name| name.path.as_str()).collect::<String>(),
        )
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        let images = self.images.open()?;
        self.images.described(&images)?;
        let (packed, size) = self.write(&images)?;
        // The compiler puts them among the program's data.
        placement(None, size, u64::MAX)?;
        Ok(Done::with_warning(packed.warning))
    }

    fn made(&self) -> Made {
        Made::in_process(
            self.title(),
            vec![self.output.clone()],
            self.images.paths().collect(),
        )
    }
}
