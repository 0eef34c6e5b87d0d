//! Decides where the host linker places the images, and which options it needs for that.
//!
//! Large images of x86-64 are in sections of large data (`offload_formats::container::large`), which linkers treat
//! differently; those of AArch64 need nothing.
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

/// Returns the placement of images of `total` bytes on `host`.
///
/// # Errors
///
/// Fails if no program for the host can have such images.
pub(crate) fn choose(
    total: u64,
    host: Machine,
    arguments: &Arguments,
) -> Result<ImagePlacement, LinkError> {
    let elf = arguments.family.is_elf().then_some(host);
    let largest_usual = arguments.options.largest_usual()?;
    let placement = ImagePlacement::choose(elf, total, largest_usual).map_err(|problem| {
        LinkError::LargeImages {
            problem: problem.to_string(),
            hint: "link fewer targets in one program",
        }
    })?;
    if placement != ImagePlacement::Usual && arguments.options.wrapper_from_c {
        let hint = "omit `--emit-wrapper=c`";
        return Err(refused(total, "C has no sections for them", hint));
    }
    Ok(placement)
}

/// Returns options that keep sections of entries, which only `__start_` and `__stop_` name: lld removes them by default, other
/// linkers if an option asks for that.
pub(crate) fn keep_entries(arguments: &Arguments, linker: ElfLinker) -> Vec<OsString> {
    if linker != ElfLinker::Lld && !arguments.mentions("start-stop-gc") {
        return Vec::new();
    }
    match arguments.position {
        Position::Driver => vec!["-Wl,-z,nostart-stop-gc".into()],
        Position::Linker { .. } => vec!["-z".into(), "nostart-stop-gc".into()],
    }
}

/// Returns options with which `linker`, or its driver, places large images of `total` bytes safely.
///
/// # Errors
///
/// Fails if the linker has none.
pub(crate) fn flags(
    total: u64,
    arguments: &Arguments,
    linker: ElfLinker,
) -> Result<Vec<OsString>, LinkError> {
    match linker {
        ElfLinker::Mold => Err(refused(
            total,
            "mold places them between code and its tables for exceptions, which then abort",
            "link with GNU ld, gold or lld (`-fuse-ld=lld`), or make the images smaller: `--compress`, fewer targets",
        )),
        ElfLinker::Gnu | ElfLinker::Lld if arguments.is_fully_static() => Err(refused(
            total,
            "GNU ld and lld cannot link the static C library with them",
            "link the C library dynamically, link with gold (`-fuse-ld=gold`), or make the images smaller: `--compress`, fewer targets",
        )),
        ElfLinker::Lld => Ok(match arguments.position {
            Position::Driver => vec!["-Wl,-z,lrodata-after-bss".into()],
            Position::Linker { .. } => vec!["-z".into(), "lrodata-after-bss".into()],
        }),
        ElfLinker::Gnu | ElfLinker::Gold | ElfLinker::Unknown => Ok(Vec::new()),
    }
}

fn refused(total: u64, reason: &str, hint: &'static str) -> LinkError {
    let problem = format!("the images have {total:#x} bytes, and {reason}");
    LinkError::LargeImages { problem, hint }
}
