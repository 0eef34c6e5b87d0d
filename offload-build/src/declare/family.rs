//! Whose command lines a compiler speaks.

use crate::compile::{clang, nvcc};
use crate::installed::rocm;
use std::path::Path;

/// A kind of device compilers, told by the name of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// clang.
    Clang,
    /// A front for the clang of a ROCm tree, which takes its options.
    Hipcc,
    /// NVIDIA's: a driver around its own front end and assembler, without an LLVM to use.
    Nvcc,
}

impl Family {
    /// That of `compiler`, a path or a name.
    #[must_use]
    pub(crate) fn of(compiler: &Path) -> Self {
        match compiler.file_stem() {
            Some(stem) if stem == "nvcc" => Self::Nvcc,
            Some(stem) if stem == "hipcc" => Self::Hipcc,
            _ => Self::Clang,
        }
    }

    /// Its name in the manifest.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Clang => "clang",
            Self::Hipcc => "hipcc",
            Self::Nvcc => "nvcc",
        }
    }

    /// The variables that change what it makes.
    #[must_use]
    pub(crate) fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Clang => clang::VARIABLES,
            Self::Hipcc => rocm::VARIABLES,
            Self::Nvcc => nvcc::VARIABLES,
        }
    }
}
