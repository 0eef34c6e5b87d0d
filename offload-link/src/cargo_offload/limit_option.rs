//! The option `--max-decompressed-size` of commands that unpack images.

use super::error::CargoOffloadError;
use crate::decompressed::{self, DecompressionLimit};

/// The option that limits decompressed data.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct LimitOption {
    #[doc = "Largest decompressed size: bytes, or a number with K, M, G or T [default: 8G on disk, 1G in memory]"]
    #[arg(long = decompressed::OPTION, value_name = "SIZE")]
    max_decompressed_size: Option<String>,
}

impl LimitOption {
    /// Returns the limit: the option's value, else the variable's, else the default.
    ///
    /// # Errors
    ///
    /// Fails if the value is not a size.
    pub(super) fn value(&self) -> Result<DecompressionLimit, CargoOffloadError> {
        let limit = decompressed::limit(self.max_decompressed_size.as_deref());
        limit.map_err(CargoOffloadError::usage)
    }
}
