//! Finds the library of an API.

use std::env;

use libloading::Library;

use super::{Api, Error};

/// Loads the library of an API, and returns it with the name by which it was found.
pub(super) fn open(api: Api) -> Result<(Library, String), Error> {
    let (mut searched, mut failures) = (Vec::new(), Vec::new());
    for name in candidates(api) {
        // SAFETY: the library of the vendor's driver, whose constructors may run in any program that uses the GPU.
        match unsafe { Library::new(&name) } {
            Ok(library) => return Ok((library, name)),
            Err(error) => {
                let text = error.to_string();
                if !is_missing(&name, &text) {
                    // Some texts do not name the library.
                    if !failures.contains(&text) {
                        failures.push(text);
                    }
                }
                searched.push(name);
            }
        }
    }
    Err(Error::Library {
        api,
        searched,
        failures,
    })
}

/// Returns names and paths of the library, in the order in which they are tried.
fn candidates(api: Api) -> Vec<String> {
    let (variable, names) = match api {
        Api::Hip if cfg!(windows) => (
            "OFFLOAD_DEVICE_HIP",
            &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"][..],
        ),
        // Only packages for developers have the plain name.
        Api::Hip => (
            "OFFLOAD_DEVICE_HIP",
            &[
                "libamdhip64.so",
                "libamdhip64.so.7",
                "libamdhip64.so.6",
                "libamdhip64.so.5",
            ][..],
        ),
        Api::Cuda if cfg!(windows) => ("OFFLOAD_DEVICE_CUDA", &["nvcuda.dll"][..]),
        Api::Cuda => ("OFFLOAD_DEVICE_CUDA", &["libcuda.so.1", "libcuda.so"][..]),
    };
    if let Some(path) = variable_text(variable) {
        return vec![path];
    }
    let mut folders = Vec::new();
    if !cfg!(windows) {
        match api {
            Api::Hip => {
                folders.extend(variable_text("ROCM_PATH").map(|root| format!("{root}/lib")));
                folders.push("/opt/rocm/lib".to_owned());
            }
            Api::Cuda => folders.push("/usr/lib/wsl/lib".to_owned()),
        }
    }
    let named = names.iter().map(|&name| name.to_owned());
    let in_folders = folders
        .iter()
        .flat_map(|folder| names.iter().map(move |name| format!("{folder}/{name}")));
    named.chain(in_folders).collect()
}

/// Returns the value of a variable that is set and not empty.
fn variable_text(name: &str) -> Option<String> {
    let value = env::var_os(name)?.to_string_lossy().into_owned();
    Some(value).filter(|value| !value.is_empty())
}

/// Returns true if the loader's text says that the library itself is missing, rather than one that it needs or a part of it.
fn is_missing(name: &str, text: &str) -> bool {
    if cfg!(windows) {
        // ERROR_MOD_NOT_FOUND does not tell which library is missing.
        return text.contains("126");
    }
    // glibc begins with the file that is missing; musl names it in quotes or after a colon.
    let is_glibc = text
        .strip_prefix(name)
        .is_some_and(|after| after.starts_with(": cannot open shared object file: No such file"));
    is_glibc
        || text.starts_with(&format!(
            "Error loading shared library {name}: No such file"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_a_missing_library_from_one_that_cannot_be_loaded() {
        let name = "libamdhip64.so.6";
        let suffix = "cannot open shared object file: No such file or directory";
        assert!(is_missing(name, &format!("{name}: {suffix}")));
        assert!(!is_missing(
            name,
            &format!("libhsa-runtime64.so.1: {suffix}")
        ));
        assert!(!is_missing(
            name,
            "/lib/libamdhip64.so.6: invalid ELF header"
        ));
        assert!(is_missing(
            name,
            "Error loading shared library libamdhip64.so.6: No such file or directory"
        ));
        assert!(!is_missing(
            name,
            "Error loading shared library libhsa.so.1: No such file or directory (needed by /lib/libamdhip64.so.6)"
        ));
    }
}
