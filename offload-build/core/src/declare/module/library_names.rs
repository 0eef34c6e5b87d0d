//! Libraries of device code that device links take.

use crate::declare::settings::Settings;
use crate::error::Error;
use crate::readable;
use std::path::{Path, PathBuf};

/// Libraries of device code for the device link of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryNames {
    /// Libraries by path.
    pub archives: Vec<PathBuf>,
    /// Libraries by name.
    pub link: Vec<String>,
}

impl LibraryNames {
    /// Reads the libraries of `settings`, which may be those of one target; `root` is the package's folder.
    pub fn new(settings: &Settings, root: &Path) -> Result<Self, Error> {
        let paths =
            settings.list("archives").iter().map(|text| {
                let path = root.join(text);
                match readable::is_file(&path)? {
                    true => Ok(path),
                    false => Err(settings
                        .error_at("archives", format_args!("`{text}`: no such file [OFF506]"))),
                }
            });
        for text in settings.list("link") {
            check_name(text).map_err(|problem| settings.error_at("link", problem))?;
        }
        Ok(Self {
            archives: paths.collect::<Result<_, Error>>()?,
            link: settings.list("link").to_vec(),
        })
    }

    /// Adds libraries after these.
    pub fn extend(&mut self, others: Self) {
        self.archives.extend(others.archives);
        self.link.extend(others.link);
    }

    pub fn is_empty(&self) -> bool {
        self.archives.is_empty() && self.link.is_empty()
    }
}

/// Fails if an item of `link` is not a name: a file, or an option of a linker.
fn check_name(text: &str) -> Result<(), String> {
    let name = text.strip_prefix("-l").unwrap_or(text);
    if name.contains('/') || [".a", ".bc", ".o"].iter().any(|end| name.ends_with(end)) {
        let problem =
            "is a file, and `link` takes names, `foo` for `libfoo.a`: files belong in `archives`";
        return Err(format!("`{text}` {problem}"));
    }
    if text.starts_with('-') {
        let is_name = name != text && !name.is_empty();
        let name = if is_name { name } else { "foo" };
        return Err(format!(
            "`{text}` is an option, and `link` takes names: write `{name}` for `-l{name}`"
        ));
    }
    Ok(())
}
