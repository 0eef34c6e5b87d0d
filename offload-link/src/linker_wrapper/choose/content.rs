//! Recognizes the format of a device link's images by their bytes.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use object::elf;
use offload_build::tools::{DeviceInput, SourceText, Way};
use offload_formats::container::elf::Elf;
use offload_formats::format::bitcode;
use offload_formats::format::bytes::ReadAt;
use offload_formats::format::device_text::DeviceText;
use offload_formats::format::magic::Magic;

/// Format of an image by its bytes; the kind that a file records is only advisory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputContent {
    Bitcode,
    Ptx,
    /// A cubin for NVIDIA's linker, which requires this extension.
    Cubin,
    /// A cubin that needs no link.
    Complete,
    /// LLVM IR or assembly, which device linkers do not read.
    Source(SourceText),
    Other,
}

impl InputContent {
    /// Reads all of a text, and the headers of other formats.
    pub(crate) fn of<'d, R: ReadAt<'d>>(data: R, way: Way) -> Self {
        let size = data.size().unwrap_or_default();
        match Magic::at(data, 0..size) {
            Magic::Bitcode => Self::Bitcode,
            Magic::Elf => match Elf::parse(data, 0..size) {
                Ok(file) if file.machine == elf::EM_CUDA.0 && way == Way::Own => {
                    match elf::FileType(file.file_type) == elf::ET_EXEC {
                        true => Self::Complete,
                        false => Self::Cubin,
                    }
                }
                _ => Self::Other,
            },
            _ => match DeviceText::of(data.read_at(0, size).unwrap_or_default()) {
                Some(DeviceText::Ptx) => Self::Ptx,
                Some(DeviceText::Ir) => Self::Source(SourceText::Ir),
                Some(DeviceText::Assembly) => Self::Source(SourceText::Assembly),
                _ => Self::Other,
            },
        }
    }

    /// Returns an extension with which clang passes the file to the linker instead of compiling it.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Ptx | Self::Source(SourceText::Assembly) => "s",
            Self::Source(SourceText::Ir) => "ll",
            Self::Cubin | Self::Complete => "cubin",
            Self::Bitcode | Self::Other => "o",
        }
    }

    /// Returns the input of the device link; for a text, the object or bitcode made of it.
    pub(crate) fn input(self, path: PathBuf) -> DeviceInput {
        match self {
            Self::Bitcode => DeviceInput::Bitcode(path),
            Self::Source(SourceText::Ir) => DeviceInput::Bitcode(SourceText::made_from(&path)),
            Self::Source(SourceText::Assembly) => DeviceInput::Object(SourceText::made_from(&path)),
            Self::Ptx => DeviceInput::Ptx(path),
            Self::Complete => DeviceInput::Linked(path),
            Self::Cubin | Self::Other => DeviceInput::Object(path),
        }
    }
}

/// Functions of OpenMP's device runtime in the bitcode of one link.
#[derive(Debug, Default)]
pub(crate) struct RuntimeUse {
    called: BTreeSet<Vec<u8>>,
    /// Functions that the bitcode itself defines, because it contains or is the runtime.
    defined: BTreeSet<Vec<u8>>,
    unreadable: bool,
}

/// Prefixes of these functions' names.
const BEGINNINGS: [&[u8]; 4] = [b"__kmpc_", b"omp_", b"__omp_", b"ompx_"];

impl RuntimeUse {
    /// Adds LLVM IR as text. Only the names of the functions matter.
    pub(crate) fn add_text(&mut self, text: &[u8]) {
        let mut names = text.split(|byte| *byte == b'@');
        self.unreadable |= names.any(|rest| BEGINNINGS.iter().any(|name| rest.starts_with(name)));
    }

    pub(crate) fn add<'d, R: ReadAt<'d>>(&mut self, data: R, range: Range<u64>) {
        let Ok(symbols) = bitcode::symbols(data, range) else {
            self.unreadable = true;
            return;
        };
        for symbol in symbols {
            if BEGINNINGS
                .iter()
                .any(|start| symbol.name.starts_with(start))
            {
                let names = match symbol.defined {
                    true => &mut self.defined,
                    false => &mut self.called,
                };
                names.insert(symbol.name.to_vec());
            }
        }
    }

    /// Tells whether the runtime must be linked. Bitcode that cannot be read may call it.
    pub(crate) fn is_missing(&self) -> bool {
        self.unreadable || !self.called.is_subset(&self.defined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_calls_of_the_runtime_in_text() {
        for (text, expected) in [
            ("declare i32 @__kmpc_target_init(ptr, ptr)", true),
            ("call i32 @omp_get_thread_num()", true),
            ("@omp = global i32 0 ; __kmpc_", false),
        ] {
            let mut runtime = RuntimeUse::default();
            runtime.add_text(text.as_bytes());
            assert_eq!(runtime.is_missing(), expected, "{text}");
        }
    }

    #[test]
    fn expects_calls_of_the_runtime_in_bitcode_that_it_cannot_read() {
        let module = &include_bytes!("../../../../tests/golden/22.1.8/symbols.bc")[..];
        for (end, expected) in [(module.len(), false), (module.len() / 2, true)] {
            let mut runtime = RuntimeUse::default();
            runtime.add(&module[..end], 0..end as u64);
            assert_eq!(runtime.is_missing(), expected, "{end}");
        }
    }
}
