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
pub(crate) struct Libraries(ByName<Result<TargetLibraries, Error>>);

/// The libraries of one target, in the order of the link.
#[derive(Default)]
pub(crate) struct TargetLibraries {
    /// Libraries of device code.
    pub(crate) device: Vec<Rc<Library>>,
    /// Libraries of the host, which the image for a CPU links as programs do.
    host: Vec<HostLibrary>,
}

/// A library without device code.
pub(crate) struct HostLibrary {
    pub(crate) name: String,
    /// The archive, if it is in a folder that was searched.
    pub(crate) path: Option<PathBuf>,
}

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
            let mut linked = TargetLibraries::default();
            for path in &target.libraries.archives {
                linked.device.push(library(path.clone())?);
            }
            for name in &target.libraries.link {
                let found = match find(module, target, name)? {
                    Some(path) => Some(library(path)?),
                    None if target.triple.is_cpu() => None,
                    None => return Err(not_found(module, target, name)),
                };
                let is_hosts =
                    |library: &Rc<Library>| library.images.is_empty() && target.triple.is_cpu();
                match found {
                    Some(library) if !is_hosts(&library) => linked.device.push(library),
                    other => linked.host.push(HostLibrary {
                        name: name.clone(),
                        path: other.map(|library| library.path.clone()),
                    }),
                }
            }
            Ok(linked)
        };
        let targets = module.targets.iter();
        Self(
            targets
                .map(|target| (target.written.clone(), of_target(target)))
                .collect(),
        )
    }

    /// Returns the libraries of device code for one of the module's targets.
    pub(crate) fn of_target(&self, target: &Target) -> Result<&[Rc<Library>], Error> {
        match self.0.get(&target.written) {
            Some(Ok(libraries)) => Ok(&libraries.device),
            Some(Err(error)) => Err(BuildPart::Inputs.coded()(Error::new(error))),
            None => Ok(&[]),
        }
    }

    /// Returns the host's libraries that the image for `target` links.
    pub(crate) fn of_host(&self, target: &Target) -> &[HostLibrary] {
        match self.0.get(&target.written) {
            Some(Ok(libraries)) => &libraries.host,
            _ => &[],
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
            [] => "code for the target in its name".to_owned(),
            targets => targets.join(", "),
        };
        write!(f, "`{}` has {has}", self.path.display())
    }
}

/// Finds the library of `link` that is for the target.
fn find(module: &Module, target: &Target, name: &str) -> Result<Option<PathBuf>, Error> {
    let names = names(name, target);
    let folders = module
        .library_dirs
        .iter()
        .flat_map(|folder| [folder.join("libdevice"), folder.clone()]);
    for folder in folders {
        for name in &names {
            let path = folder.join(name);
            if readable::is_file(&path)? {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

fn not_found(module: &Module, target: &Target, name: &str) -> Error {
    let folders: Vec<String> = module
        .library_dirs
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    Error::new(format_args!(
        "module `{}`: no library `{name}` for `{}` (searched: {} in {})\n\
         hint: `link`, in the manifest or as OFFLOAD_LINK, names libraries as `-l` does: set LIBRARY_PATH to their folders",
        module.name,
        target.written,
        names(name, target).join(", "),
        folders.join(", ")
    ))
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
    images.map_err(|problem| crate::unpacking::unpacking(path, problem.remedy(), problem))
}

pub(crate) fn changed(path: &Path) -> Error {
    Error::new(format_args!(
        "`{}` changed while it was read",
        path.display()
    ))
}
