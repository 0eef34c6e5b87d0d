//! An image of a module for one target.

use crate::check::{self, CheckError};
use crate::device_link::DeviceInput;
use crate::steps::task::SymbolHints;
use offload_build_core::declare::module::Target;
use offload_build_core::error::Error;
use offload_build_core::readable::Readable;
use offload_formats::container::kernels::{self, Kernel};
use offload_formats::format::offload_binary::BinaryImage;
use offload_formats::format::pieces::{self, Piece};
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// The hint for an image that lacks what the host registers.
const LACKING: &str = "host code registers these with each image, so `exclude` and `#if` cannot leave them out for one target: put their \
    sources into a module of their own, with fewer `targets`";

/// An image that the plan makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedImage {
    pub(crate) target: Target,
    input: DeviceInput,
    /// Hints for functions that it calls and does not define.
    hints: SymbolHints,
}

impl PlannedImage {
    pub(crate) fn new(target: &Target, input: DeviceInput, hints: SymbolHints) -> Self {
        let target = target.clone();
        Self {
            target,
            input,
            hints,
        }
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

    /// Checks that `image`, its file, is what the target loads and has what `names` lists.
    pub(crate) fn check(&self, image: &Readable, names: &BTreeSet<String>) -> Result<(), Error> {
        let Target { triple, id, .. } = &self.target;
        let checked = match self.kind() {
            ImageKind::PTX => check::check_ptx(image.text().unwrap_or_default(), id, names),
            _ => check::check(image.data(), triple, id, names),
        };
        image.check()?;
        checked.map_err(|error| {
            let hint = match &error {
                CheckError::UndefinedInPtx { names } => self.hints.of_names(names).to_owned(),
                CheckError::SharedInPtx { .. } => self.hints.of(&error.to_string()),
                CheckError::Undefined { .. } => LACKING.to_owned(),
                _ => String::new(),
            };
            let error = Error::because(self, error);
            match hint.is_empty() {
                true => error,
                false => error.with_line(format_args!("hint: {hint}")),
            }
        })
    }

    /// Returns the kernels that `image` describes, without those that no other file can name.
    pub(crate) fn kernels(&self, image: &Readable) -> Result<Vec<Kernel>, Error> {
        let found = match self.kind() {
            ImageKind::PTX => kernels::ptx_kernels(image.text().unwrap_or_default()),
            _ => kernels::kernels_within(image.data(), 0..image.size()),
        };
        image.check()?;
        let mut found = found.map_err(|error| Error::because(self, error))?;
        found.retain(|kernel| !kernel.is_local);
        Ok(found)
    }

    /// Returns the offload binary around an image of `size` bytes, which its pieces copy as `input`, and the range of the
    /// image in it.
    pub(crate) fn pack(
        &self,
        (input, size): (usize, u64),
        offload_kind: OffloadKind,
    ) -> Result<(Vec<Piece>, Range<u64>), Error> {
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
            image: &[],
        };
        let packed = binary.to_pieces(size, LlvmRelease::default());
        let (pieces, range) = packed.map_err(|error| Error::because(self, error))?;
        Ok((pieces::renumbered(pieces, |_| input), range))
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
