//! Checks of a compile's output, from outside: whether it is whole, and whether it is what a cache or another
//! machine had no right to give.

use crate::steps::task::file_numbers;
use crate::steps::task::finish::Finish;
use offload_build_core::compile::nvcc;
use offload_formats::container::elf::Elf;
use offload_formats::container::symbols;
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::magic::Magic;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Kind of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bitcode,
    /// An object with AMD's machine code.
    Amd,
    /// Any object; bitcode where `flags` say so.
    Object,
    /// Any file.
    Any,
}

impl Kind {
    /// The kind of a task's output, from the output's name and from what finishes it.
    pub(crate) fn of(output: &Path, finish: Finish) -> Self {
        let extension = output.extension().and_then(OsStr::to_str);
        match (finish, extension) {
            (Finish::MachineCode, _) => Self::Amd,
            (_, Some("bc")) => Self::Bitcode,
            (_, Some("o" | nvcc::EXTENSION)) => Self::Object,
            _ => Self::Any,
        }
    }
}

/// Checks that `output` is of its kind and not cut off: a program that ran out of space may succeed all the same, and
/// what it left would be taken for good until it is made again.
pub(crate) fn check_whole(output: &Path, kind: Kind) -> Result<(), String> {
    let unread = |error| format!("{}: {error}", output.display());
    let file = File::open(output).map_err(unread)?;
    let size = file.metadata().map_err(unread)?.len();
    let data = ReadCache::new(file);
    let checked = whole(&data, size, kind);
    data.take_error()
        .map_or(checked, |error| Err(unread(error)))
}

/// Reads headers and symbols.
fn whole(data: &ReadCache, size: u64, kind: Kind) -> Result<(), String> {
    let range = 0..size;
    let magic = Magic::at(data, range.clone());
    let fits = match kind {
        Kind::Bitcode => magic == Magic::Bitcode,
        Kind::Amd => magic == Magic::Elf,
        Kind::Object => [Magic::Elf, Magic::Coff, Magic::Bitcode].contains(&magic),
        Kind::Any => size > 0,
    };
    if !fits {
        return Err(match (kind, size) {
            (_, 0) => "it is empty",
            (Kind::Bitcode, _) => "it is not the bitcode of a device",
            (Kind::Amd, _) => "it is not the machine code of a device",
            (Kind::Object | Kind::Any, _) => "it is not an object",
        }
        .to_owned());
    }
    if magic == Magic::Elf {
        let elf = Elf::parse(data, range.clone()).map_err(|problem| problem.to_string())?;
        if kind == Kind::Amd && elf.machine != object::elf::EM_AMDGPU.0 {
            return Err("it is not the machine code of a device".to_owned());
        }
        for section in elf.sections() {
            elf.check(&section).map_err(|problem| problem.to_string())?;
        }
    }
    // It reads the tables of what it knows, and nothing of others.
    let symbols = symbols(data, range);
    symbols.map(drop).map_err(|problem| problem.to_string())
}

/// Checks `output`, made of the files `reads`: that it is of its kind, and names none but these.
pub(crate) fn check(output: &Path, kind: Kind, reads: &[PathBuf]) -> Result<(), String> {
    let shown = output.display();
    check_whole(output, kind).map_err(|problem| format!("{shown}: {problem}"))?;
    let known: BTreeSet<String> = reads
        .iter()
        .filter_map(|path| file_numbers::number(path))
        .collect();
    // Where files have no numbers.
    if known.is_empty() {
        return Ok(());
    }
    let bytes = fs::read(output).map_err(|error| format!("{shown}: {error}"))?;
    match file_numbers::numbers(&bytes).difference(&known).next() {
        None => Ok(()),
        Some(other) => Err(format!("{shown}: made of another file (`{other}`)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_numbers_of_files_in_names() {
        let found = |text: &str| {
            let found: Vec<String> = file_numbers::numbers(text.as_bytes()).into_iter().collect();
            found.join(" ")
        };
        // As clang 19 names them, and cut short.
        let name = "\0.offloading.entry.__omp_offloading_fe00_98c019_saxpy_l11\0";
        assert_eq!(found(&name.repeat(2)), "fe00_98c019");
        assert_eq!(found("__omp_offloading_x__omp_offloading_1_2_f_l3"), "1_2");
        for text in [
            "__omp_offloading_fe00_98c019",
            "__omp_offloading_x_1_f",
            "__omp_off",
            "_",
            "",
        ] {
            assert_eq!(found(text), "", "{text}");
        }
    }
}
