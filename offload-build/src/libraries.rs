//! The libraries for devices that a module links: found, and taken apart for each target.
//!
//! `archives` names files, `link` names libraries, which are looked for as linkers do it: first what is
//! for one target, then archives of bundles. Specification: linker-wrapper §7.4.

use crate::container::bundled::DeviceTarget;
use crate::container::device_library::{self, LibraryImage};
use crate::error::{self, Error};
use crate::format::magic::Magic;
use crate::link::DeviceInput;
use crate::module::{Module, Target};
use crate::target::ImageTarget;
use crate::toolchain::task::{self, Done};
use object::ReadCache;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Takes the images for one target out of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extraction {
    pub(crate) library: PathBuf,
    /// As the manifest spells it.
    pub(crate) target: String,
    /// Which of its images, and where each goes.
    pub(crate) files: Vec<(usize, PathBuf)>,
}

impl Extraction {
    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let cache = open(&self.library)?;
        let images = images(&self.library, &cache)?;
        for (index, path) in &self.files {
            let image = images.get(*index);
            let content = image.and_then(|image| image.content(&cache));
            let content = content.ok_or_else(|| changed(&self.library))?;
            task::write(path, content).map_err(error::io(path))?;
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
        let seen = Seen::of(&path)?;
        let name = library_name(&path);
        let mut files = Vec::new();
        for (index, image) in seen.images.iter().enumerate() {
            if !seen.is_for(image, target) {
                continue;
            }
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
    fn of(path: &Path) -> Result<Self, Error> {
        let cache = open(path)?;
        let images = images(path, &cache)?;
        let is_bitcode = |(index, image): (usize, &LibraryImage)| {
            let content = image.content(&cache)?;
            (Magic::of(content) == Magic::Bitcode).then_some(index)
        };
        Ok(Self {
            path: path.to_owned(),
            bitcode: images.iter().enumerate().filter_map(is_bitcode).collect(),
            images,
        })
    }

    fn is_for(&self, image: &LibraryImage, target: &Target) -> bool {
        let id = target.id.to_string();
        match &image.target {
            Some(of) => of.image_target().serves(&ImageTarget {
                triple: target.triple.as_str(),
                arch: &id,
            }),
            None => match device_of(&self.path) {
                _ if target.triple.is_cpu() => false,
                // Nothing in the name: the user says that it fits.
                None => true,
                Some((arch, "")) => arch == architecture(target),
                Some((arch, processor)) => {
                    let base = id.split(':').next().unwrap_or_default();
                    arch == architecture(target)
                        && [id.replace(':', "-").as_str(), base].contains(&processor)
                }
            },
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
        let mut candidates = folders.flat_map(|folder| {
            names
                .iter()
                .map(move |name| folder.join(name))
                .collect::<Vec<_>>()
        });
        let found = candidates.find(|path| path.is_file());
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

fn architecture(target: &Target) -> &str {
    match target.triple.is_amdgpu() {
        true => "amdgcn",
        false => target.triple.arch(),
    }
}

/// As linker-wrapper §7.4 has them, in its order.
fn names(name: &str, target: &Target) -> Vec<String> {
    let arch = architecture(target);
    let id = target.id.to_string();
    let processor = id.split(':').next().unwrap_or_default();
    let full = id.replace(':', "-");
    let of_gpu = |before: &str, after: &str| {
        let mut names: Vec<String> = [full.as_str(), processor]
            .iter()
            .filter(|gpu| !gpu.is_empty())
            .map(|gpu| format!("{before}-{arch}-{gpu}{after}"))
            .collect();
        names.dedup();
        names.push(format!("{before}-{arch}{after}"));
        names
    };
    let (bitcode, plain) = (format!("libbc-{name}"), format!("lib{name}"));
    let mut names = of_gpu(&bitcode, ".a");
    names.push(format!("{bitcode}.a"));
    names.extend(of_gpu(&plain, ".bc"));
    names.push(format!("{plain}.bc"));
    names.extend(of_gpu(&plain, ".a"));
    names.push(format!("{plain}.a"));
    names
}

/// `foo` of `libfoo.a` and of `libbc-foo-amdgcn-gfx90a.a`.
fn library_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem
        .strip_prefix("libbc-")
        .or_else(|| stem.strip_prefix("lib"))
        .unwrap_or(&stem);
    match split_device(name) {
        Some((name, _, _)) => name.to_owned(),
        None => name.to_owned(),
    }
}

/// Architecture and processor that the name of a library ends with.
fn device_of(path: &Path) -> Option<(&str, &str)> {
    let stem = path.file_stem()?.to_str()?;
    split_device(stem).map(|(_, arch, processor)| (arch, processor))
}

fn split_device(name: &str) -> Option<(&str, &str, &str)> {
    ["amdgcn", "nvptx64"].into_iter().find_map(|arch| {
        let at = name.rfind(&format!("-{arch}"))?;
        let (before, rest) = name.split_at(at);
        let rest = rest.get(1 + arch.len()..)?;
        match rest.strip_prefix('-') {
            Some(processor) => Some((before, arch, processor)),
            None if rest.is_empty() => Some((before, arch, "")),
            None => None,
        }
    })
}

fn open(path: &Path) -> Result<ReadCache<fs::File>, Error> {
    fs::File::open(path)
        .map(ReadCache::new)
        .map_err(error::io(path))
}

fn images(path: &Path, cache: &ReadCache<fs::File>) -> Result<Vec<LibraryImage>, Error> {
    device_library::images(cache).map_err(|problem| Error::because(path.display(), problem))
}

fn changed(path: &Path) -> Error {
    Error::new(format_args!(
        "`{}` changed while it was read",
        path.display()
    ))
}
