//! A CMake package and a pkg-config file beside each library for programs: others find it, its headers, what it
//! needs, and the linker that links its device code.
//!
//! | file below `--out`                           | for |
//! |----------------------------------------------|-----|
//! | `cmake/<name>/<name>-config.cmake`           | `find_package(<name>)`: the target `<name>::<name>` |
//! | `cmake/<name>/<name>-config-version.cmake`   | its version |
//! | `pkgconfig/<name>.pc`                        | pkg-config |
//! | `include/<name>/`                            | headers of the package's own folders of `include` |
//!
//! Paths in these files are relative to them, so the folder may be moved. Libraries of one target
//! (`libbc-<name>-<target>.a`) have no such files: they have no host code to link.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use offload_formats::escape::terminal;
use offload_formats::names::{Triple, library_name};
use serde::Deserialize;

use crate::cargo_offload::error::CargoOffloadError;
use crate::files;
use crate::platform::is_absent;

/// Extensions of files that programs include.
const HEADERS: [&str; 9] = ["h", "hh", "hpp", "hxx", "h++", "cuh", "inc", "inl", "ipp"];

/// The record that a build script leaves, as far as a program that links its library needs it.
#[derive(Deserialize)]
struct Record {
    package: ExportedPackage,
    host: String,
    modules: Vec<Module>,
}

#[derive(Deserialize)]
struct ExportedPackage {
    name: String,
    version: String,
    folder: PathBuf,
}

#[derive(Deserialize)]
struct Module {
    targets: Vec<ExportedTarget>,
    include: Vec<PathBuf>,
    libraries: Vec<String>,
    library_folder: PathBuf,
    files: Vec<MadeFiles>,
}

#[derive(Deserialize)]
struct ExportedTarget {
    triple: String,
    processor: String,
}

#[derive(Deserialize)]
struct MadeFiles {
    outputs: Vec<PathBuf>,
}

impl Module {
    /// Tells whether a library of the module has the name of one for a target. The name of a package may begin with `bc-`.
    fn is_for_one_target(&self, file: &str) -> bool {
        self.targets.iter().any(|target| {
            let Ok(triple) = Triple::parse(&target.triple) else {
                return false;
            };
            let pattern = library_name::file_name("*", &triple, &target.processor);
            let parts = pattern.split_once('*');
            parts.is_some_and(|(start, end)| file.starts_with(start) && file.ends_with(end))
        })
    }
}

/// Writes the files for `library`, which the build script of `out_dir` made and which lies in `folder` now.
///
/// # Errors
///
/// Fails if the record of the build is missing or unreadable, or a file cannot be written.
pub(super) fn export(
    library: &Path,
    out_dir: &Path,
    folder: &Path,
) -> Result<(), CargoOffloadError> {
    let file = library.file_name().unwrap_or_default().to_string_lossy();
    let name = file
        .strip_prefix("lib")
        .and_then(|name| name.strip_suffix(".a"));
    let Some(name) = name else {
        return Ok(());
    };
    let path = out_dir.join("offload/manifest.json");
    let record = match fs::read(&path) {
        Ok(record) => record,
        // Another build script made the library; nothing is known of it.
        Err(problem) if is_absent(&problem) => return Ok(()),
        Err(problem) => return Err(CargoOffloadError::of(&path, problem)),
    };
    let record: Record = serde_json::from_slice(&record).map_err(|problem| {
        let hint = "hint: `cargo update -p offload-build` gets the release of this tool";
        CargoOffloadError::of(&path, format_args!("{problem}\n{hint}"))
    })?;
    let made_it = |module: &&Module| {
        let mut outputs = module.files.iter().flat_map(|files| &files.outputs);
        outputs.any(|output| output == library)
    };
    let Some(module) = record.modules.iter().find(made_it) else {
        let text = format!("no module made `{}`", terminal(library));
        return Err(CargoOffloadError::of(&path, text));
    };
    if module.is_for_one_target(&file) {
        return Ok(());
    }
    let own = |folder: &&PathBuf| is_own(folder, &record.package.folder, out_dir);
    let own: Vec<&PathBuf> = module.include.iter().filter(own).collect();
    let has_headers = install_headers(&own, &folder.join("include").join(name))?;
    let values = values(name, &file, &record, module, has_headers);
    let config = format!("cmake/{name}/{name}-config");
    for (path, template) in [
        (
            format!("{config}.cmake"),
            include_str!("export/config.cmake"),
        ),
        (
            format!("{config}-version.cmake"),
            include_str!("export/version.cmake"),
        ),
        (
            format!("pkgconfig/{name}.pc"),
            include_str!("export/package.pc"),
        ),
    ] {
        write(&folder.join(path), filled(template, &values).as_bytes())?;
    }
    Ok(())
}

/// Returns the value of each word in the templates.
fn values(
    name: &str,
    file: &str,
    record: &Record,
    module: &Module,
    has_headers: bool,
) -> BTreeMap<&'static str, String> {
    // A standard library is where each compiler has its own.
    let is_standard = |library: &&String| matches!(library.as_str(), "stdc++" | "c++");
    let (standard, runtime): (Vec<&String>, Vec<&String>) =
        module.libraries.iter().partition(is_standard);
    let words = |libraries: &[&String]| {
        let libraries = libraries.iter().map(|library| library.as_str());
        libraries.collect::<Vec<_>>().join(" ")
    };
    let version = &record.package.version;
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let standard_options = standard.iter().map(|library| format!(" -l{library}"));
    let cflags = if has_headers { " -I${includedir}" } else { "" };
    let folder = module.library_folder.to_string_lossy();
    [
        ("NAME", name.to_owned()),
        ("FILE", file.to_owned()),
        ("PACKAGE", record.package.name.clone()),
        ("VERSION", version.clone()),
        ("VERSION_NUMBERS", numbers.to_owned()),
        ("HOST", record.host.clone()),
        ("PROCESSORS", processors(&record.host).to_owned()),
        ("RUNTIME", words(&runtime)),
        ("RUNTIME_FOLDER", cmake_text(&folder)),
        ("OTHER_LIBRARIES", words(&standard)),
        ("CFLAGS", cflags.to_owned()),
        ("LIBS", standard_options.collect()),
    ]
    .into()
}

/// Returns the names that CMake has for the processor of a triple, as a regular expression.
fn processors(host: &str) -> &'static str {
    match host.split('-').next() {
        Some("x86_64") => "x86_64|AMD64|amd64",
        Some("aarch64") => "aarch64|arm64|ARM64",
        _ => ".*",
    }
}

/// Returns a text for a quoted argument of CMake.
fn cmake_text(text: &str) -> String {
    let mut quoted = String::new();
    for char in text.chars() {
        if matches!(char, '\\' | '"' | '$' | ';') {
            quoted.push('\\');
        }
        quoted.push(char);
    }
    quoted
}

/// Replaces each `@WORD@`.
fn filled(template: &str, values: &BTreeMap<&'static str, String>) -> String {
    let mut text = String::new();
    for (index, part) in template.split('@').enumerate() {
        match index % 2 {
            0 => text.push_str(part),
            _ => text.push_str(values.get(part).expect("templates have these words only")),
        }
    }
    text
}

/// Tells whether a folder of headers is a part of the package: below its folder, and not made by a build.
fn is_own(include: &Path, package: &Path, out_dir: &Path) -> bool {
    let Ok(below) = include.strip_prefix(package) else {
        return false;
    };
    let mut parts = below.components();
    let stays_below = parts.all(|part| matches!(part, Component::Normal(_)));
    stays_below && below != Path::new("") && !include.starts_with(out_dir)
}

/// Copies the headers in folders to another one. Tells whether there are any.
fn install_headers(folders: &[&PathBuf], to: &Path) -> Result<bool, CargoOffloadError> {
    let mut has_headers = false;
    for folder in folders {
        for header in headers(folder)? {
            let bytes =
                fs::read(&header).map_err(|problem| CargoOffloadError::of(&header, problem))?;
            let below = header.strip_prefix(folder).unwrap_or(&header);
            write(&to.join(below), &bytes)?;
            has_headers = true;
        }
    }
    Ok(has_headers)
}

/// Returns the headers below a folder, in order. Links to folders are not followed.
fn headers(folder: &Path) -> Result<Vec<PathBuf>, CargoOffloadError> {
    let mut folders = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let wrong = |problem: io::Error| CargoOffloadError::of(&folder, problem);
        for entry in fs::read_dir(&folder).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let path = entry.path();
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            let is_header = HEADERS.contains(&&*extension);
            if entry.file_type().map_err(wrong)?.is_dir() {
                folders.push(path);
            } else if is_header {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a file, with its folder.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CargoOffloadError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|problem| CargoOffloadError::of(folder, problem))?;
    files::write_beside(path, bytes).map_err(|problem| CargoOffloadError::of(path, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{
        "schema": 1, "package": { "name": "pack", "version": "1.2.3-beta.1+x", "folder": "FOLDER" },
        "host": "aarch64-unknown-linux-gnu",
        "modules": [{
            "name": "k", "targets": [
                { "target": "gfx90a", "triple": "amdgcn-amd-amdhsa", "processor": "gfx90a" },
                { "target": "amdgcnspirv", "triple": "spirv64-amd-amdhsa", "processor": "amdgcnspirv" }
            ],
            "include": ["FOLDER/api", "FOLDER/../api", "FOLDER", "FOLDER/target/out/gen"],
            "libraries": ["omptarget", "stdc++"], "library_folder": "/opt/a \"$b;c\\",
            "files": [{ "outputs": [
                "FOLDER/target/out/libk.a", "FOLDER/target/out/libbc-k.a",
                "FOLDER/target/out/libbc-k-amdgcn-gfx90a.a", "FOLDER/target/out/libbc-k-spirv64-amdgcnspirv.a"
            ] }]
        }]
    }"#;

    /// Exports the library of [`RECORD`]; returns the folder of the package.
    fn exported(record: &str, name: &str) -> (tempfile::TempDir, Result<(), CargoOffloadError>) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let out_dir = folder.join("target/out");
        for path in [
            "api/a/a.hpp",
            "api/b.h",
            "api/b.c",
            "root.h",
            "target/out/gen/g.h",
        ] {
            write(&folder.join(path), b"").unwrap();
        }
        let record = record.replace("FOLDER", &folder.display().to_string());
        write(&out_dir.join("offload/manifest.json"), record.as_bytes()).unwrap();
        let done = export(&out_dir.join(name), &out_dir, &folder.join("lib"));
        (place, done)
    }

    #[test]
    fn writes_what_programs_need_of_a_library() {
        let (place, done) = exported(RECORD, "libk.a");
        done.unwrap();
        let read = |name: &str| fs::read_to_string(place.path().join("lib").join(name)).unwrap();
        let config = read("cmake/k/k-config.cmake");
        for part in [
            "CMake package of k 1.2.3-beta.1+x: device code of the Cargo package pack.",
            "MATCHES \"^(aarch64|arm64|ARM64)$\"",
            "IN ITEMS omptarget)",
            r#"HINTS "/opt/a \"\$b\;c\\")"#,
            "set(_offload_libraries stdc++)",
            "\"${_offload_folder}/libk.a\"",
        ] {
            assert!(config.contains(part), "{part}\n{config}");
        }
        assert!(!config.contains('@'), "{config}");
        let version = read("cmake/k/k-config-version.cmake");
        assert!(
            version.contains("set(PACKAGE_VERSION \"1.2.3\")"),
            "{version}"
        );
        let package = read("pkgconfig/k.pc");
        assert!(
            package.ends_with(
                "Version: 1.2.3-beta.1+x\nCflags: -I${includedir}\nLibs: -L${libdir} -lk -lstdc++\n"
            ),
            "{package}"
        );
        // The package's own headers, and nothing else.
        let headers = headers(&place.path().join("lib/include")).unwrap();
        let below = |path: &PathBuf| path.strip_prefix(place.path()).unwrap().to_owned();
        let headers: Vec<PathBuf> = headers.iter().map(below).collect();
        assert_eq!(
            headers,
            ["lib/include/k/a/a.hpp", "lib/include/k/b.h"].map(PathBuf::from)
        );
    }

    #[test]
    fn leaves_libraries_of_one_target_alone() {
        for name in ["libbc-k-amdgcn-gfx90a.a", "libbc-k-spirv64-amdgcnspirv.a"] {
            let (place, done) = exported(RECORD, name);
            done.unwrap();
            assert!(!place.path().join("lib").exists(), "{name}");
        }
        // The library of a package that is called `bc-k`.
        let (place, done) = exported(RECORD, "libbc-k.a");
        done.unwrap();
        for file in ["cmake/bc-k/bc-k-config.cmake", "pkgconfig/bc-k.pc"] {
            assert!(place.path().join("lib").join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn names_a_record_that_it_cannot_use() {
        let (_place, done) = exported(RECORD, "libother.a");
        let error = done.unwrap_err().to_string();
        assert!(error.contains("manifest.json: no module made `"), "{error}");
        let (_place, done) = exported("{ \"schema\": 1 }", "libk.a");
        let error = done.unwrap_err().to_string();
        assert!(
            error.contains("manifest.json: missing field `package`"),
            "{error}"
        );
        assert!(
            error.ends_with("hint: `cargo update -p offload-build` gets the release of this tool")
        );
    }
}
