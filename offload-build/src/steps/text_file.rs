//! Writes a text that comes with this crate to a file.

use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::step::{Done, Made, Step};
use offload_build_core::error;
use offload_build_core::files;
use std::fmt;
use std::path::PathBuf;

/// A file with a fixed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextFile {
    pub(crate) path: PathBuf,
    pub(crate) text: &'static str,
}

impl Step for TextFile {
    fn title(&self) -> String {
        let name = self.path.file_name().expect("the plan names the file");
        name.to_string_lossy().into_owned()
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# {}, in this process: {}",
            self.title(),
            self.path.display()
        )
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        files::write(&self.path, self.text.as_bytes()).map_err(error::io(&self.path))?;
        Ok(Done::default())
    }

    fn made(&self) -> Made {
        Made::in_process(self.title(), vec![self.path.clone()], Vec::new())
    }
}
