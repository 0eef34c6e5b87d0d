//! A device link as a value, and a group without one.

use std::path::PathBuf;

use offload_build::tools::Command;
use offload_formats::names::ImageKind;

use crate::linker_wrapper::choose::groups::Group;
use crate::linker_wrapper::inputs::images::Image;

/// A device link: its input files, its commands and the image that they make.
#[derive(Debug)]
pub(crate) struct DeviceLink<'a> {
    pub group: &'a Group,
    /// Files that are written from images of the inputs before the commands run.
    pub inputs: Vec<(PathBuf, &'a Image)>,
    /// Commands that make objects and bitcode from texts, each with the text's image.
    pub translations: Vec<(&'a Image, Command)>,
    pub commands: Vec<Command>,
    pub output: PathBuf,
    /// Kind of the image: an object, or bitcode on request.
    pub kind: ImageKind,
    /// Set if the commands' output is shown after a success, too.
    pub shows_output: bool,
    /// Set if the image is SPIR-V, which OpenMP's runtime requires in an ELF file.
    pub wraps_spirv: bool,
}

/// A group that cannot be linked on this machine, with the reason.
#[derive(Debug)]
pub(crate) struct Missing<'a> {
    pub group: &'a Group,
    pub reason: String,
}
