//! Decides where the host linker places the images, and what it must be told for that.
//!
//! Large images are in sections of large data (`offload_formats::container::large`), which linkers treat differently:
//!
//! | linker  | program            | what is done                                                     |
//! |---------|--------------------|------------------------------------------------------------------|
//! | GNU ld  | dynamic            | nothing: it places large data last                               |
//! | GNU ld  | static             | an error: the C library refers to the end of the program         |
//! | gold    | any                | nothing: it places large data last                               |
//! | lld     | dynamic            | `-z lrodata-after-bss`; by default it places large data first    |
//! | lld     | static             | an error, for the same reason                                    |
//! | mold    | any                | an error: it places them like other data, and damages the program |
//!
//! A relocatable link keeps the sections. Specification: `docs/spec/large-images.md`.

use std::ffi::OsString;

use offload_formats::container::elf::Machine;
use offload_formats::container::large::ImagePlacement;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::line::arguments::{Arguments, Position};
use crate::linker_wrapper::line::elf_linker::ElfLinker;

/// Placement of the images by the host linker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedImages {
    pub placement: ImagePlacement,
    /// Options for the host linker or driver.
    pub flags: Vec<OsString>,
}

impl PlacedImages {
    /// Returns the placement of images of `total` bytes on `host`.
    ///
    /// # Errors
    ///
    /// Fails if no program for the host can have such images, or the linker does not place them safely.
    pub(crate) fn of(
        total: u64,
        host: Machine,
        arguments: &Arguments,
        linker: impl FnOnce() -> ElfLinker,
    ) -> Result<Self, LinkError> {
        let elf = arguments.family.is_elf().then_some(host);
        let largest_usual = arguments.options.largest_usual()?;
        let too_large = |problem: String, hint| LinkError::LargeImages { problem, hint };
        let placement = ImagePlacement::choose(elf, total, largest_usual).map_err(|problem| {
            too_large(problem.to_string(), "link fewer targets in one program")
        })?;
        let mut placed = Self {
            placement,
            flags: Vec::new(),
        };
        if placement == ImagePlacement::Usual {
            return Ok(placed);
        }
        let refused = |reason, hint| {
            let problem = format!("the images have {total:#x} bytes, and {reason}");
            Err(too_large(problem, hint))
        };
        if arguments.options.wrapper_from_c {
            return refused("C has no sections for them", "omit `--emit-wrapper=c`");
        }
        if arguments.relocatable {
            return Ok(placed);
        }
        match linker() {
            ElfLinker::Mold => refused(
                "mold places them between code and its tables for exceptions, which then abort",
                "link with GNU ld, gold or lld (`-fuse-ld=lld`), or make the images smaller: `--compress`, fewer targets",
            ),
            ElfLinker::Gnu | ElfLinker::Lld if arguments.is_fully_static() => refused(
                "GNU ld and lld cannot link the static C library with them",
                "link the C library dynamically, link with gold (`-fuse-ld=gold`), or make the images smaller: `--compress`, fewer targets",
            ),
            ElfLinker::Lld => {
                placed.flags = match arguments.position {
                    Position::Driver => vec!["-Wl,-z,lrodata-after-bss".into()],
                    Position::Linker { .. } => vec!["-z".into(), "lrodata-after-bss".into()],
                };
                Ok(placed)
            }
            ElfLinker::Gnu | ElfLinker::Gold | ElfLinker::Unknown => Ok(placed),
        }
    }
}
