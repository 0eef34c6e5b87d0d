//! Command line of `cargo offload archive`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cargo_offload::error::CargoOffloadError;
use crate::decompressed;

pub(super) const USAGE: &str = "usage: cargo offload archive list FILE...
       cargo offload archive check FILE...
       cargo offload archive split [--out DIR] [--target TARGET]... FILE
       cargo offload archive merge --out FILE [--host FILE] TARGET=FILE...

list   the images in an archive of bundles, by member and target
check  what is wrong with entries, with the entries of each member together, and with the index
split  an archive for each target (or those named: gfx90a, hip-amdgcn-amd-amdhsa--gfx90a, host)
merge  archives of single targets (hip-amdgcn-amd-amdhsa--gfx90a=FILE) into one of bundles

--max-decompressed-size=SIZE refuses compressed bundles that claim more (default 8G)";

/// Arguments of a command.
#[derive(Debug, Default)]
pub(super) struct ArchiveLine {
    pub(super) out: Option<PathBuf>,
    pub(super) host: Option<PathBuf>,
    /// Limit on decompressed bundles, as given.
    pub(super) limit: Option<String>,
    pub(super) targets: Vec<String>,
    pub(super) others: Vec<OsString>,
}

impl ArchiveLine {
    pub(super) fn read(args: &[OsString]) -> Result<Self, CargoOffloadError> {
        let mut line = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let text = arg.to_string_lossy();
            let (name, joined) = match text.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.into())),
                _ => (&*text, None),
            };
            let limit = name.strip_prefix("--") == Some(decompressed::OPTION);
            if !limit && !["--out", "-o", "--host", "--target"].contains(&name) {
                if name.starts_with('-') {
                    return Err(CargoOffloadError::new(format_args!(
                        "archive: `{name}` is not an option\n{USAGE}"
                    )));
                }
                line.others.push(arg.clone());
                continue;
            }
            let value: Option<OsString> = joined.or_else(|| args.next().cloned());
            let value = value.ok_or_else(|| {
                CargoOffloadError::new(format_args!("archive: `{name}` needs a value\n{USAGE}"))
            })?;
            match name {
                _ if limit => line.limit = Some(value.to_string_lossy().into_owned()),
                "--host" => line.host = Some(value.into()),
                "--target" => line.targets.push(value.to_string_lossy().into_owned()),
                _ => line.out = Some(value.into()),
            }
        }
        Ok(line)
    }

    /// Returns the limit on a decompressed bundle.
    pub(super) fn limit(&self) -> Result<u64, CargoOffloadError> {
        let limit = decompressed::limit(self.limit.as_deref());
        Ok(limit.map_err(CargoOffloadError::new)?.files())
    }

    pub(super) fn files(&self) -> Result<Vec<PathBuf>, CargoOffloadError> {
        match self.others.as_slice() {
            [] => Err(CargoOffloadError::new(format_args!(
                "archive: expected a file\n{USAGE}"
            ))),
            files => Ok(files.iter().map(PathBuf::from).collect()),
        }
    }
}
