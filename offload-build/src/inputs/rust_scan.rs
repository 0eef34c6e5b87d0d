//! Names of kernels that the sources of a crate define, for builds without device code.

use offload_build_core::error::{self, Error};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Attributes of kernels (`offload-device`).
const ATTRIBUTES: [&str; 2] = ["#[kernel", "#[offload_device::kernel"];

/// Returns the names of the kernels in the folder of a crate's root.
///
/// # Errors
///
/// If a source cannot be read.
pub(crate) fn kernels(root: &Path) -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    let mut folders: Vec<PathBuf> = root.parent().map(Path::to_owned).into_iter().collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(error::io(&folder))? {
            let path = entry.map_err(error::io(&folder))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read(&path).map_err(error::io(&path))?;
                names.extend(named(&String::from_utf8_lossy(&text)));
            }
        }
    }
    Ok(names)
}

/// Returns the names of functions after an attribute of kernels.
fn named(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_kernel = false;
    for line in text.lines().map(str::trim_start) {
        let after = ATTRIBUTES.iter().find_map(|start| line.strip_prefix(start));
        is_kernel |= after.is_some_and(|after| after.starts_with([']', '(']));
        if line.starts_with("//") || !is_kernel {
            continue;
        }
        let code = line.rsplit_once(']').map_or(line, |(_, code)| code);
        let function = [line, code]
            .into_iter()
            .flat_map(|code| {
                code.split_whitespace()
                    .skip_while(|word| *word != "fn")
                    .nth(1)
            })
            .next();
        if let Some(function) = function {
            let is_end = |c: char| !c.is_alphanumeric() && c != '_';
            names.extend(function.split(is_end).next().map(str::to_owned));
            is_kernel = false;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_functions_after_the_attribute() {
        let text = "#[kernel]\npub fn one(item: &Item) {\n fn inner() {}\n}\n\
            #[kernel(threads = 256)]\n#[allow(dead_code)]\n// fn not()\npub(crate) fn two(\n item: &Item,\n) {}\n\
            #[offload_device::kernel] fn three(item: &Item<[f32; 4]>) {}\n\
            #[kernels]\nfn four() {}\n// #[kernel]\nfn five() {}\n";
        let expected = ["one", "two", "three"].map(str::to_owned);
        assert_eq!(named(text), expected.into());
    }
}
