//! Finds prebuilt device libraries for the names after `-l`.
//!
//! The first existing file among the names of [`library_name`] is linked whole for a target. The search covers the
//! folder `libdevice` of each folder, then the folder itself. A library whose own archive has images is skipped.
//! Specification: `docs/spec/linker-wrapper.md` §7.4.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use offload_formats::names::{Triple, library_name};

use crate::linker_wrapper::choose::groups::Group;
use crate::linker_wrapper::choose::select::Images;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::file::Inputs;
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::inputs::libraries;
use crate::linker_wrapper::line::arguments::{Arguments, Item};
use crate::linker_wrapper::report::fates::{Fate, Report};

/// Libraries that only the host uses.
const SKIPPED: [&str; 8] = [
    "omp", "cudart", "m", "gcc", "gcc_s", "pthread", "hip_hcc", "c",
];

impl Images {
    /// Adds the device libraries that exist for the device links.
    pub(crate) fn add_device_libraries(
        &mut self,
        inputs: &Inputs,
        arguments: &Arguments,
        report: &mut Report,
    ) -> Result<(), LinkError> {
        let names = names(inputs, arguments);
        let dirs = libraries::device_dirs(arguments);
        if names.is_empty() || dirs.is_empty() {
            return Ok(());
        }
        for group in &mut self.groups {
            for name in &names {
                let Some(path) = find(&dirs, name, group) else {
                    continue;
                };
                for image in Image::of_library(&path, &group.triple, &group.processor)? {
                    report.lines.push(image.line(Fate::LINKED));
                    group.members.push(self.images.len());
                    self.images.push(image);
                }
            }
        }
        Ok(())
    }
}

/// Returns each name after `-l` once, if the host's library has no images of its own.
fn names<'a>(inputs: &Inputs, arguments: &'a Arguments) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (index, item) in arguments.items.iter().enumerate() {
        let Item::Library { name, .. } = item else {
            continue;
        };
        let mut files = inputs.files.iter().filter(|file| file.item == index);
        let has_images = files.any(|file| file.has_device_code());
        let name = name.to_str().filter(|name| !name.starts_with(':'));
        if let (Some(name), false) = (name, has_images) {
            if !SKIPPED.contains(&name) && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

fn find(dirs: &[PathBuf], name: &str, group: &Group) -> Option<PathBuf> {
    let triple = Triple::parse(&group.triple).ok()?;
    let names = library_name::candidates(name, &triple, &group.processor);
    let folders = dirs
        .iter()
        .flat_map(|dir| [dir.join("libdevice"), dir.clone()]);
    folders.into_iter().find_map(|folder| {
        let paths = names.iter().map(|name| folder.join(OsStr::new(name)));
        paths.into_iter().find(|path: &PathBuf| Path::is_file(path))
    })
}
