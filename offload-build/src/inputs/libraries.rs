//! The libraries of device code that a module links: found, and read for each target.
//!
//! `archives` names files, `link` names libraries, which are looked for as linkers do it: first what is
//! for one target, then archives of bundles. Specification: `docs/spec/linker-wrapper.md` §7.4.

use offload_build_core::declare::module::{Module, Target};
use offload_build_core::error::{BuildPart, Error};
use offload_build_core::files;
use offload_build_core::readable::{self, Readable};
use offload_formats::by_name::ByName;
use offload_formats::container::bundled::{DeviceTarget, Unpacking};
use offload_formats::container::decompression_limit::DecompressionLimit;
use offload_formats::container::device_library::{self, LibraryImage, PlainObjects};
use offload_formats::format::magic::Magic;
use offload_formats::names::library_name::{self, LibraryName};
use offload_formats::names::{ImageTarget, Triple, nearest};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The libraries that the device links of a module take, read once.
pub(crate) struct Libraries(ByName<Result<Vec<Rc<Library>>, Error>>);

impl Libraries {
    /// Finds and reads the libraries for each target of `module`. An error counts when that target's link is planned.
    pub(crate) fn of(module: &Module) -> Self {
        let mut read: Vec<Rc<Library>> = Vec::new();
        let mut library = |path: PathBuf| match read.iter().find(|known| known.path == path) {
            Some(known) => Ok(Rc::clone(known)),
            None => {
                let library = Rc::new(Library::read(&path, module.decompressed)?);
                read.push(Rc::clone(&library));
                Ok(library)
            }
        };
        let mut of_target = |target: &Target| {
            let paths = paths(module, target)?.into_iter();
            paths.map(&mut library).collect()
        };
        let targets = module.targets.iter();
        Self(
            targets
                .map(|target| (target.written.clone(), of_target(target)))
                .collect(),
        )
    }

    /// Returns the libraries for one of the module's targets, in the order of the link.
    pub(crate) fn of_target(&self, target: &Target) -> Result<&[Rc<Library>], Error> {
        match self.0.get(&target.written) {
            Some(Ok(libraries)) => Ok(libraries),
            Some(Err(error)) => Err(BuildPart::Inputs.coded()(Error::new(error))),
            None => Ok(&[]),
        }
    }
}

/// A library, with what is in it.
pub(crate) struct Library {
    pub(crate) path: PathBuf,
    images: Vec<LibraryImage>,
    /// Indices of those that are bitcode, sorted.
    pub(crate) bitcode: Vec<usize>,
}

impl Library {
    fn read(path: &Path, decompressed: DecompressionLimit) -> Result<Self, Error> {
        let library = Readable::open(path)?;
        let images = images(path, &library, decompressed)?;
        let mut bitcode = Vec::new();
        for (index, image) in images.iter().enumerate() {
            let magic = image.magic(library.data());
            library.check()?;
            if magic == Magic::Bitcode {
                bitcode.push(index);
            }
        }
        Ok(Self {
            path: path.to_owned(),
            bitcode,
            images,
        })
    }

    /// Returns the images that a target's device link takes.
    pub(crate) fn of_target(&self, target: &Target) -> Result<Vec<(usize, &LibraryImage)>, Error> {
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
            let member = &served[one].1.member;
            let [one, two] = [one, two].map(|index| match &served[index].1.target {
                Some(target) => target.to_string(),
                None => target.written.clone(),
            });
            Error::new(format_args!(
                "{}: member `{member}`: its entries for {one} and {two} conflict: a link for `{}` would use both",
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

impl fmt::Display for Library {
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
    let mut paths = target.libraries.archives.clone();
    for name in &target.libraries.link {
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
                 hint: set LIBRARY_PATH to the folders of libraries",
                module.name,
                target.written,
                names.join(", "),
                folders.join(", ")
            ))
        })?);
    }
    Ok(paths)
}

/// Returns the file names that a link for `target` looks for, then the archive of bundles.
fn names(name: &str, target: &Target) -> Vec<String> {
    let mut names = library_name::candidates(name, &target.triple, &target.id.to_string());
    names.push(format!("lib{name}.a"));
    names
}

/// Returns what the name of a library says.
pub(crate) fn name_of(path: &Path) -> LibraryName<'_> {
    let stem = path.file_stem().and_then(OsStr::to_str);
    LibraryName::parse(stem.unwrap_or_default())
}

pub(crate) fn images(
    path: &Path,
    library: &Readable,
    decompressed: DecompressionLimit,
) -> Result<Vec<LibraryImage>, Error> {
    let plain = match Triple::parse(name_of(path).arch) {
        Ok(triple) if triple.is_cpu() => PlainObjects::Images,
        _ => PlainObjects::HostCode,
    };
    let mut unpacking = Unpacking::within(decompressed.files(), files::scratch());
    let images = device_library::images(library.data(), plain, &mut unpacking);
    library.check()?;
    images.map_err(|problem| crate::unpacking::unpacking(path, problem))
}

pub(crate) fn changed(path: &Path) -> Error {
    Error::new(format_args!(
        "`{}` changed while it was read",
        path.display()
    ))
}
