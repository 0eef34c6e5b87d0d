//! Folder and names of a link's intermediate files.

use std::ffi::OsString;
use std::path::PathBuf;

use offload_formats::md5::Md5;

/// A folder for intermediate files, and the prefix of their names.
#[derive(Clone, Debug)]
pub(crate) struct Workplace {
    pub folder: PathBuf,
    pub prefix: String,
    /// Folder for temporary files of children, so none stays after a signal.
    pub temporary: Option<PathBuf>,
}

impl Workplace {
    /// Returns the variables of programs that use this folder.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let temporary = self.temporary.iter();
        temporary.map(|folder| ("TMPDIR", folder.into())).collect()
    }

    /// Returns the path of an intermediate file.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let safe = |c: char| if "/\\ ".contains(c) { '_' } else { c };
        let name: String = name.chars().map(safe).collect();
        self.folder
            .join(shortened(format!("{}{name}", self.prefix)))
    }
}

/// Bytes of the longest name. Systems allow 255, and programs append to the names of their inputs.
const LONGEST: usize = 200;

/// Returns a name of at most [`LONGEST`] bytes: a longer one has its digest in place of its middle.
fn shortened(name: String) -> String {
    if name.len() <= LONGEST {
        return name;
    }
    let digest = Md5::digest(&name);
    let digest: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let part = (LONGEST - digest.len() - 2) / 2;
    let is_boundary = |at: &usize| name.is_char_boundary(*at);
    let start = (0..=part).rev().find(is_boundary).unwrap_or_default();
    let end = (name.len() - part..)
        .find(is_boundary)
        .unwrap_or(name.len());
    let (start, end) = (name.get(..start), name.get(end..));
    format!(
        "{}-{digest}-{}",
        start.unwrap_or_default(),
        end.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortens_long_names_and_keeps_them_apart() {
        let short = "a".repeat(LONGEST);
        assert_eq!(shortened(short.clone()), short);
        let long =
            |middle: &str| shortened(format!("{}{middle}{}.o", "ä".repeat(80), "b".repeat(90)));
        let (one, other) = (long("x"), long("y"));
        assert_ne!(one, other);
        for name in [one, other] {
            assert!(name.len() <= LONGEST && name.len() > LONGEST - 5, "{name}");
            assert!(name.starts_with("äää") && name.ends_with("bbb.o"), "{name}");
        }
    }
}
