//! An image of a module for one target.

use crate::check;
use crate::declare::module::Target;
use crate::device_link::DeviceInput;
use crate::error;
use crate::error::Error;
use offload_formats::container::kernels::{self, Kernel};
use offload_formats::format::offload_binary::BinaryImage;
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// An image that the plan makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedImage {
    pub(crate) target: Target,
    input: DeviceInput,
}

impl PlannedImage {
    pub(crate) fn new(target: &Target, input: DeviceInput) -> Self {
        let target = target.clone();
        Self { target, input }
    }

    pub(crate) fn path(&self) -> &Path {
        self.input.path()
    }

    pub(crate) fn kind(&self) -> ImageKind {
        match self.input {
            DeviceInput::Object(_) => ImageKind::OBJECT,
            DeviceInput::Bitcode(_) => ImageKind::BITCODE,
            DeviceInput::Ptx(_) => ImageKind::PTX,
            DeviceInput::Linked(_) => ImageKind::CUBIN,
        }
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>, Error> {
        let path = self.input.path();
        fs::read(path).map_err(error::io(path))
    }

    /// Checks that `image`, its bytes, is what the target loads and has what `names` lists.
    pub(crate) fn check(&self, image: &[u8], names: &BTreeSet<String>) -> Result<(), Error> {
        let Target { triple, id, .. } = &self.target;
        let checked = match self.kind() {
            ImageKind::PTX => check::check_ptx(image, id, names),
            _ => check::check(image, triple, id, names),
        };
        checked.map_err(|error| Error::because(self, error))
    }

    /// Returns the kernels that `image` describes.
    pub(crate) fn kernels(&self, image: &[u8]) -> Result<Vec<Kernel>, Error> {
        let found = match self.kind() {
            ImageKind::PTX => kernels::ptx_kernels(image),
            _ => kernels::kernels(image),
        };
        found.map_err(|error| Error::because(self, error))
    }

    /// The offload binary around `image`, and where the image is in it.
    pub(crate) fn pack(
        &self,
        image: &[u8],
        offload_kind: OffloadKind,
    ) -> Result<(Vec<u8>, Range<u64>), Error> {
        let processor = self.target.id.to_string();
        let strings = [
            ("triple", self.target.triple.as_str()),
            ("arch", &processor),
        ];
        let binary = BinaryImage {
            image_kind: self.kind(),
            offload_kind,
            flags: 0,
            strings: &strings,
            image,
        };
        let packed = binary.to_bytes_with_range(LlvmRelease::default());
        packed.map_err(|error| Error::because(self, error))
    }
}

impl fmt::Display for PlannedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}",
            self.target.written,
            self.input.path().display()
        )
    }
}
