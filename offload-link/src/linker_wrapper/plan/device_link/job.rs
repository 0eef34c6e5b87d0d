//! A device link as a value, and a group that has none.

use std::path::PathBuf;

use offload_build::tools::{Command, Way};
use offload_formats::names::ImageKind;

use crate::linker_wrapper::choose::groups::Group;
use crate::linker_wrapper::inputs::images::Image;

/// One device link: the files it reads, the commands, and the image they make.
#[derive(Debug)]
pub(crate) struct DeviceLink<'a> {
    pub group: &'a Group,
    /// Each written from an image of the inputs before the commands run.
    pub inputs: Vec<(PathBuf, &'a Image)>,
    /// Makes objects and bitcode of those that are text; each with the image.
    pub translations: Vec<(&'a Image, Command)>,
    pub commands: Vec<Command>,
    pub output: PathBuf,
    /// What the image is: an object, or bitcode when that was asked for.
    pub kind: ImageKind,
    /// Whether what the commands say is shown, also when they succeed.
    pub shows_output: bool,
    /// The image is SPIR-V, which OpenMP's runtime takes in an ELF file.
    pub wraps_spirv: bool,
}

/// A group that cannot be linked on this machine, and why.
#[derive(Debug)]
pub(crate) struct Missing<'a> {
    pub group: &'a Group,
    pub reason: String,
}

impl Group {
    /// As the device linker is told: `generic` means that there is nothing to say.
    pub(crate) fn processor(&self) -> &str {
        match self.processor.as_str() {
            "generic" => "",
            other => other,
        }
    }

    /// What the image's file is called after: for LLVM the architecture and the processor.
    pub(crate) fn label(&self, way: Way) -> String {
        let arch = self.triple.split('-').next().unwrap_or_default();
        match (way, self.processor.as_str()) {
            (Way::Llvm, processor) => format!("{arch}.{processor}"),
            (Way::Own, "") => self.triple.clone(),
            (Way::Own, processor) => format!("{}.{processor}", self.triple),
        }
    }
}
