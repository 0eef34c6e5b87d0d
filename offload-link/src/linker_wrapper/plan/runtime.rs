//! Adds runtime libraries to the host link, and rpaths to them.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::linker_wrapper::installed::runtimes::FoundRuntime;
use crate::linker_wrapper::line::arguments::Position;

/// Returns the options to add at the end of a compiler driver's command line.
pub(crate) fn libraries(runtimes: &[FoundRuntime]) -> Vec<OsString> {
    let mut line = Vec::new();
    for runtime in runtimes {
        if let Some(folder) = &runtime.folder {
            let mut option = OsString::from("-L");
            option.push(folder);
            line.push(option);
        }
        // `--as-needed`: a program does not depend on libraries that it does not call.
        line.push("-Wl,--push-state,--as-needed".into());
        let names = runtime.libraries.iter();
        line.extend(names.map(|name| OsString::from(format!("-l{name}"))));
        line.push("-Wl,--pop-state".into());
    }
    line
}

/// Returns rpaths to `folders` as arguments of the linker or the driver.
pub(crate) fn rpaths(folders: &[PathBuf], position: Position) -> Vec<OsString> {
    let options = folders.iter().flat_map(|folder| match position {
        Position::Driver => {
            // A comma would end the folder's name after `-Wl,`.
            let words = [OsString::from("-rpath"), folder.into()];
            words.map(|word| vec!["-Xlinker".into(), word]).concat()
        }
        Position::Linker { .. } => vec!["-rpath".into(), folder.into()],
    });
    options.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_libraries_in_their_folder_as_far_as_they_are_needed() {
        let runtime = |libraries: &[&'static str], folder: Option<&str>| FoundRuntime {
            libraries: libraries.to_vec(),
            folder: folder.map(PathBuf::from),
        };
        let [as_needed, usual] = ["-Wl,--push-state,--as-needed", "-Wl,--pop-state"];
        let found = [
            runtime(&["omptarget", "omp"], None),
            runtime(&["cudart"], Some("/cuda/lib64")),
        ];
        assert_eq!(
            libraries(&found),
            [
                as_needed,
                "-lomptarget",
                "-lomp",
                usual,
                "-L/cuda/lib64",
                as_needed,
                "-lcudart",
                usual
            ]
        );
        assert!(libraries(&[]).is_empty());
    }

    #[test]
    fn passes_a_folder_with_a_comma_to_the_linker() {
        let folders = ["/a,b".into()];
        let driver = ["-Xlinker", "-rpath", "-Xlinker", "/a,b"];
        assert_eq!(rpaths(&folders, Position::Driver), driver);
        let linker = Position::Linker { answers: false };
        assert_eq!(rpaths(&folders, linker), ["-rpath", "/a,b"]);
    }
}
