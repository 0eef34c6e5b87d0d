//! The libraries for devices that a module links: found, and taken apart for each target.
//!
//! `archives` names files, `link` names libraries, which are looked for as linkers do it: first what is
//! for one target, then archives of bundles. Specification: `docs/spec/linker-wrapper.md` §7.4.

use crate::declare::module::{Module, Target};
use crate::device_link::DeviceInput;
use crate::error;
use crate::error::Error;
use crate::files;
use crate::readable::{self, Readable};
use crate::steps::task::Done;
use offload_formats::container::bundled::{DeviceTarget, Unpacking};
use offload_formats::container::decompression_limit::DecompressionLimit;
use offload_formats::container::device_library::{self, LibraryImage};
use offload_formats::format::magic::Magic;
use offload_formats::names::library_name::{self, LibraryName};
use offload_formats::names::{ImageTarget, Triple, nearest};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// Takes the images for one target out of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extraction {
    pub(crate) library: PathBuf,
    /// As the manifest spells it.
    pub(crate) target: String,
    /// Which of its images, and where each goes.
    pub(crate) files: Vec<(usize, PathBuf)>,
    /// The limit on what compressed images become.
    pub(crate) decompressed: DecompressionLimit,
}

impl Extraction {
    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let library = Readable::open(&self.library)?;
        let images = images(&self.library, &library, self.decompressed)?;
        for (index, path) in &self.files {
            let image = images.get(*index);
            let content = image.and_then(|image| image.content(library.data()));
            library.check()?;
            let content = content.ok_or_else(|| changed(&self.library))?;
            files::write(path, content).map_err(error::io(path))?;
        }
        Ok(Done {
            reads: vec![self.library.clone()],
            ..Done::default()
        })
    }
}

/// For a dry run: the command that does the like.
impl fmt::Display for Extraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let library = self.library.display();
        writeln!(
            f,
            "# images of {library} for {}, in this process",
            self.target
        )
    }
}

/// What a target's device link takes from the libraries of `module`: extractions, and the files that
/// they write, below `folder`.
pub(crate) fn inputs(
    module: &Module,
    target: &Target,
    folder: &Path,
) -> Result<(Vec<Extraction>, Vec<DeviceInput>), Error> {
    let (mut extractions, mut inputs) = (Vec::new(), Vec::new());
    let mut lacking: BTreeMap<String, Vec<Seen>> = BTreeMap::new();
    let mut served = BTreeSet::new();
    for (number, path) in paths(module, target)?.into_iter().enumerate() {
        let seen = Seen::of(&path, module.decompressed)?;
        let name = name_of(&path).name.to_owned();
        let mut files = Vec::new();
        for (index, image) in seen.of_target(target)? {
            let stem = Path::new(&image.member).file_stem().unwrap_or_default();
            let stem = stem
                .to_string_lossy()
                .replace(|c: char| c.is_control(), "_");
            let extension = if seen.bitcode.contains(&index) {
                "bc"
            } else {
                "o"
            };
            let file = folder.join(format!("library-{number}-{index}-{stem}.{extension}"));
            inputs.push(match extension {
                "bc" => DeviceInput::Bitcode(file.clone()),
                _ => DeviceInput::Object(file.clone()),
            });
            files.push((index, file));
        }
        if files.is_empty() {
            lacking.entry(name).or_default().push(seen);
            continue;
        }
        served.insert(name);
        extractions.push(Extraction {
            library: path,
            target: target.written.clone(),
            files,
            decompressed: module.decompressed,
        });
    }
    match lacking.into_iter().find(|(name, _)| !served.contains(name)) {
        None => Ok((extractions, inputs)),
        Some((_, libraries)) => {
            let libraries: Vec<String> = libraries.iter().map(ToString::to_string).collect();
            Err(Error::new(format_args!(
                "module `{}`: no library code for `{}`: {}",
                module.name,
                target.written,
                libraries.join("; ")
            )))
        }
    }
}

/// A library, with what is in it.
struct Seen {
    path: PathBuf,
    images: Vec<LibraryImage>,
    /// Which of them are bitcode.
    bitcode: BTreeSet<usize>,
}

impl Seen {
    fn of(path: &Path, decompressed: DecompressionLimit) -> Result<Self, Error> {
        let library = Readable::open(path)?;
        let images = images(path, &library, decompressed)?;
        let mut bitcode = BTreeSet::new();
        for (index, image) in images.iter().enumerate() {
            let content = image.content(library.data());
            library.check()?;
            let content = content.ok_or_else(|| changed(path))?;
            if Magic::of(content) == Magic::Bitcode {
                bitcode.insert(index);
            }
        }
        Ok(Self {
            path: path.to_owned(),
            bitcode,
            images,
        })
    }

    /// The images that a target's device link takes.
    fn of_target(&self, target: &Target) -> Result<Vec<(usize, &LibraryImage)>, Error> {
        let images = self.images.iter().enumerate();
        let served: Vec<_> = images
            .filter(|(_, image)| self.is_for(image, target))
            .collect();
        let id = target.id.to_string();
        let wanted = ImageTarget {
            triple: target.triple.as_str(),
            arch: &id,
        };
        // What is in no bundle is apart from all others.
        let rows = served.iter().map(|(index, image)| {
            let bundle = image.bundle.ok_or(*index);
            let target = image.target.as_ref().map(DeviceTarget::image_target);
            (bundle, target.unwrap_or(wanted))
        });
        let excludes = |(one, two): (usize, usize)| {
            let found = [one, two].map(|index| served.get(index).map(|(_, image)| *image));
            let [one, two] = found.map(|image| {
                let target = image.and_then(|image| image.target.as_ref());
                target.map(ToString::to_string).unwrap_or_default()
            });
            let member = found[0].map_or("", |image| &image.member);
            Error::new(format_args!(
                "{}: member `{member}`: its entries for {one} and {two} exclude each other, and a link for `{}` takes both",
                self.path.display(),
                target.written
            ))
        };
        let linked = nearest(&wanted, rows).map_err(excludes)?;
        let linked = served.into_iter().zip(linked);
        Ok(linked
            .filter_map(|(image, linked)| linked.then_some(image))
            .collect())
    }

    fn is_for(&self, image: &LibraryImage, target: &Target) -> bool {
        let id = target.id.to_string();
        match &image.target {
            Some(of) => of.image_target().serves(&ImageTarget {
                triple: target.triple.as_str(),
                arch: &id,
            }),
            // Where the name says nothing, the user says that it fits.
            None => {
                let name = name_of(&self.path);
                (!name.arch.is_empty() || !target.triple.is_cpu()) && name.fits(&target.triple, &id)
            }
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets = self.images.iter().filter_map(|image| image.target.as_ref());
        let targets: BTreeSet<String> = targets.map(DeviceTarget::to_string).collect();
        let targets: Vec<String> = targets.into_iter().collect();
        let has = match targets.as_slice() {
            [] if self.images.is_empty() => "nothing for a device".to_owned(),
            [] => "what its name says".to_owned(),
            targets => targets.join(", "),
        };
        write!(f, "`{}` has {has}", self.path.display())
    }
}

/// The files of `archives`, and for each library of `link` the one that is for the target.
fn paths(module: &Module, target: &Target) -> Result<Vec<PathBuf>, Error> {
    let mut paths = module.archives.clone();
    for name in &module.link {
        let names = names(name, target);
        let folders = module
            .library_dirs
            .iter()
            .flat_map(|folder| [folder.join("libdevice"), folder.clone()]);
        let candidates = folders.flat_map(|folder| {
            names
                .iter()
                .map(move |name| folder.join(name))
                .collect::<Vec<_>>()
        });
        let mut found = None;
        for path in candidates {
            if readable::is_file(&path)? {
                found = Some(path);
                break;
            }
        }
        paths.push(found.ok_or_else(|| {
            let folders: Vec<String> = module
                .library_dirs
                .iter()
                .map(|folder| folder.display().to_string())
                .collect();
            Error::new(format_args!(
                "module `{}`: no library `{name}` for `{}` (searched: {} in {})\n\
                 hint: LIBRARY_PATH says where libraries are",
                module.name,
                target.written,
                names.join(", "),
                folders.join(", ")
            ))
        })?);
    }
    Ok(paths)
}

/// What a link for `target` looks for, then the archive of bundles.
fn names(name: &str, target: &Target) -> Vec<String> {
    let mut names = library_name::candidates(name, &target.triple, &target.id.to_string());
    names.push(format!("lib{name}.a"));
    names
}

/// What the name of a library says.
fn name_of(path: &Path) -> LibraryName<'_> {
    let stem = path.file_stem().and_then(OsStr::to_str);
    LibraryName::parse(stem.unwrap_or_default())
}

fn images(
    path: &Path,
    library: &Readable,
    decompressed: DecompressionLimit,
) -> Result<Vec<LibraryImage>, Error> {
    let of_cpu = Triple::parse(name_of(path).arch).is_ok_and(|triple| triple.is_cpu());
    let mut unpacking = Unpacking::in_memory(decompressed.memory());
    let images = device_library::images(library.data(), of_cpu, &mut unpacking);
    library.check()?;
    images.map_err(|problem| {
        let is_limit = problem.is_limit();
        error::unpacking(path, is_limit, problem)
    })
}

fn changed(path: &Path) -> Error {
    Error::new(format_args!(
        "`{}` changed while it was read",
        path.display()
    ))
}
