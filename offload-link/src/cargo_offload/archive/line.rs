//! The command line of `cargo offload archive`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cargo_offload::error::Error;
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

/// What a command is given.
#[derive(Debug, Default)]
pub(super) struct ArchiveLine {
    pub(super) out: Option<PathBuf>,
    pub(super) host: Option<PathBuf>,
    /// Limit on what compressed bundles claim, as given.
    pub(super) limit: Option<String>,
    pub(super) targets: Vec<String>,
    pub(super) others: Vec<OsString>,
}

impl ArchiveLine {
    pub(super) fn read(args: &[OsString]) -> Result<Self, Error> {
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
                    return Err(Error::new(format_args!(
                        "archive: `{name}` is no option\n{USAGE}"
                    )));
                }
                line.others.push(arg.clone());
                continue;
            }
            let value: Option<OsString> = joined.or_else(|| args.next().cloned());
            let value = value.ok_or_else(|| {
                Error::new(format_args!("archive: `{name}` wants a value\n{USAGE}"))
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

    /// Largest compressed bundle, by its uncompressed size.
    pub(super) fn limit(&self) -> Result<u64, Error> {
        let limit = decompressed::limit(self.limit.as_deref());
        Ok(limit.map_err(Error::new)?.files())
    }

    pub(super) fn files(&self) -> Result<Vec<PathBuf>, Error> {
        match self.others.as_slice() {
            [] => Err(Error::new(format_args!(
                "archive: no file is named\n{USAGE}"
            ))),
            files => Ok(files.iter().map(PathBuf::from).collect()),
        }
    }
}
