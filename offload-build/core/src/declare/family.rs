//! Families of compilers: which command lines a compiler takes.

use std::path::Path;

/// Variables that change what clang reads or does.
const CLANG_VARIABLES: &[&str] = &[
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "INCLUDE",
    "SOURCE_DATE_EPOCH",
    "CCC_OVERRIDE_OPTIONS",
    "HIP_DEVICE_LIB_PATH",
];

/// Variables that change what hipcc, or the clang that it runs, reads or does.
const HIPCC_VARIABLES: &[&str] = &[
    "HIP_PATH",
    "ROCM_PATH",
    "HIP_PLATFORM",
    "HIP_COMPILER",
    "HIP_RUNTIME",
    "HIP_CLANG_PATH",
    "HIP_CLANG_HCC_COMPAT_MODE",
    "HIP_COMPILE_CXX_AS_HIP",
    "HIP_DEVICE_LIB_PATH",
    "HIP_LIB_PATH",
    "HIP_ROCCLR_HOME",
    "HIPCC_COMPILE_FLAGS_APPEND",
    "DEVICE_LIB_PATH",
    "HSA_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "INCLUDE",
    "SOURCE_DATE_EPOCH",
    "CCC_OVERRIDE_OPTIONS",
];

/// Variables that change what nvcc, or the host's compiler below it, reads or does. Those from `CUDAFE_FLAGS` to `SYSTEM_INCLUDES`
/// are the ones that `nvcc.profile` and its phases have: `nvcc --dryrun` of 13.5 shows them on its command lines.
const NVCC_VARIABLES: &[&str] = &[
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "CUDAFE_FLAGS",
    "INCLUDES",
    "LIBRARIES",
    "NVLINK_FLAGS",
    "NVVM_FLAGS",
    "OCG_FLAGS",
    "PTXAS_FLAGS",
    "SYSTEM_INCLUDES",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "INCLUDE",
    "SOURCE_DATE_EPOCH",
];

/// A kind of device compilers, told by the name of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// clang.
    Clang,
    /// A front for the clang of a ROCm tree, which takes its options.
    Hipcc,
    /// NVIDIA's: a driver around its own front end and assembler, without an LLVM to use.
    Nvcc,
}

impl Family {
    /// Returns the family of `compiler`, a path or a name.
    #[must_use]
    pub fn of(compiler: &Path) -> Self {
        match compiler.file_stem() {
            Some(stem) if stem == "nvcc" => Self::Nvcc,
            Some(stem) if stem == "hipcc" => Self::Hipcc,
            _ => Self::Clang,
        }
    }

    /// Returns its name in the manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Clang => "clang",
            Self::Hipcc => "hipcc",
            Self::Nvcc => "nvcc",
        }
    }

    /// The variables that change what it makes.
    #[must_use]
    pub fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Clang => CLANG_VARIABLES,
            Self::Hipcc => HIPCC_VARIABLES,
            Self::Nvcc => NVCC_VARIABLES,
        }
    }
}
