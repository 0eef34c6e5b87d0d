//! Options of the commands that find images.

use offload_formats::format::unpacked::Scratch;

use super::error::CargoOffloadError;
use super::images::FindSettings;
use super::limit_option::LimitOption;
use crate::decompressed::DecompressionLimit;

/// Places of images, and the limit on decompressed data.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct FindOptions {
    /// Also search inside of data for images, such as those of `include_bytes!` and PTX in strings. Reads all data.
    #[arg(long)]
    search_data: bool,
    #[command(flatten)]
    limit: LimitOption,
}

impl FindOptions {
    /// Returns the limit on decompressed data.
    ///
    /// # Errors
    ///
    /// Fails if the option's value is not a size.
    pub(super) fn limit(&self) -> Result<DecompressionLimit, CargoOffloadError> {
        self.limit.value()
    }

    /// Returns the settings for the files of one command, which keeps unpacked containers in `scratch`.
    ///
    /// # Errors
    ///
    /// Fails as [`Self::limit`] does.
    pub(super) fn settings(&self, scratch: Scratch) -> Result<FindSettings, CargoOffloadError> {
        let limit = self.limit()?;
        Ok(FindSettings::new(self.search_data, &limit, scratch))
    }

    /// Returns a hint for a file without images.
    pub(super) fn hint(&self) -> Option<&'static str> {
        (!self.search_data)
            .then_some("pass --search-data to search inside of data, such as `include_bytes!`; images that a program does not use are not linked")
    }
}
