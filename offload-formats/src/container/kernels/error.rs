//! The error of kernel descriptions.

use std::fmt;

use crate::container::elf::ElfError;

/// Reason why the kernels of an image cannot be described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelError {
    problem: String,
}

impl KernelError {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self { problem }
    }
}

impl From<ElfError> for KernelError {
    fn from(error: ElfError) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::escape::terminal(&self.problem).fmt(f)
    }
}

impl std::error::Error for KernelError {}
