//! `cargo offload new` and `init`: packages that build device code at once.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use offload_build::tools::Quoted;
use offload_formats::escape::terminal;
use toml_edit::{DocumentMut, Item, Table, value};

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::project::cargo_command::unstarted;
use crate::cargo_offload::project::rust_programs::cargo_program;
use crate::cargo_offload::project::templates::{self, Template};
use crate::files;
use crate::platform::is_absent;

/// Creates a package with a kernel that builds at once.
///
/// Runs `cargo new`, then adds a kernel, `build.rs` and the keys of Cargo.toml.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload new --hip my-kernels
  cargo offload new --lib my-library
  cargo offload new --rust my-rust-kernels
  cargo offload new --c my-program")]
pub(crate) struct NewLine {
    /// Folder of the package.
    path: PathBuf,
    #[command(flatten)]
    language: LanguageOptions,
    /// C program with OpenMP kernels.
    #[arg(long, conflicts_with_all = ["openmp", "hip", "cuda", "rust", "lib"])]
    c: bool,
    /// Library without a program; with OpenMP kernels, safe functions and tests.
    #[arg(long)]
    lib: bool,
    /// Name of the package; the folder's name by default.
    #[arg(long)]
    name: Option<String>,
    /// Version control, as for `cargo new`.
    #[arg(long, value_name = "VCS")]
    vcs: Option<OsString>,
    #[command(flatten)]
    source: SourceOption,
}

/// Adds a kernel and its build script to the package in this folder.
///
/// Existing files stay unchanged; Cargo.toml keeps its layout and comments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  cargo offload init --cuda")]
pub(crate) struct InitLine {
    #[command(flatten)]
    language: LanguageOptions,
    #[command(flatten)]
    source: SourceOption,
}

/// Language of the kernels.
#[derive(Debug, clap::Args)]
struct LanguageOptions {
    /// OpenMP kernels in C, which also run on the CPU; the default.
    #[arg(long, conflicts_with_all = ["hip", "cuda", "rust"])]
    openmp: bool,
    /// HIP kernels for AMD GPUs.
    #[arg(long, conflicts_with_all = ["cuda", "rust"])]
    hip: bool,
    /// CUDA kernels for NVIDIA GPUs.
    #[arg(long, conflicts_with = "rust")]
    cuda: bool,
    /// Kernels in Rust for AMD and NVIDIA GPUs, which also run on the CPU.
    #[arg(long)]
    rust: bool,
}

impl LanguageOptions {
    fn is_openmp(&self) -> bool {
        !(self.hip || self.cuda || self.rust)
    }

    fn template(&self) -> &'static Template {
        match self {
            Self { hip: true, .. } => &templates::HIP,
            Self { cuda: true, .. } => &templates::CUDA,
            Self { rust: true, .. } => &templates::RUST,
            _ => &templates::OPENMP,
        }
    }
}

/// Source of the build-dependency.
#[derive(Debug, clap::Args)]
struct SourceOption {
    /// Folder or Git URL of offload-build and offload-device; default: crates.io.
    #[arg(long, value_name = "PATH|URL")]
    offload_build: Option<String>,
}

fn is_url(source: &str) -> bool {
    source.contains("://") || source.starts_with("git@")
}

pub(crate) fn new(line: &NewLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    line.source.check()?;
    let language = &line.language;
    let template = match (line.c, line.lib && language.is_openmp()) {
        (true, _) => &templates::C,
        (_, true) => &templates::LIBRARY,
        _ => language.template(),
    };
    let folder = line.path.file_name().unwrap_or_default().to_string_lossy();
    let name = line.name.as_deref().unwrap_or(&folder);
    if is_ours(name) {
        return Err(CargoOffloadError::new(format_args!(
            "a package `{name}` cannot depend on another package of this name: choose another with --name"
        )));
    }
    if name == "kernels" && !line.lib {
        return Err(CargoOffloadError::new(
            "the program has a module `kernels`, and could not name a package `kernels`: choose another name with --name",
        ));
    }
    let mut cargo = Command::new(cargo_program());
    cargo
        .arg("new")
        .arg(if line.lib { "--lib" } else { "--bin" });
    if let Some(name) = &line.name {
        cargo.arg("--name").arg(name);
    }
    if let Some(vcs) = &line.vcs {
        cargo.arg("--vcs").arg(vcs);
    }
    let status = cargo.arg(&line.path).status().map_err(unstarted)?;
    if !status.success() {
        // Cargo has said why.
        return Err(CargoOffloadError::reported());
    }
    let mut manifest = Manifest::read(&line.path)?;
    manifest.add(template, &line.source)?;
    for (path, text) in files_of(template, &manifest.package, &line.source) {
        let is_wanted = path != "src/main.rs" || !line.lib;
        // Cargo has made it, for the version control that is used.
        if is_wanted && path != ".gitignore" {
            write(&line.path.join(path), &text)?;
        }
    }
    manifest.write()?;
    let folder = Quoted(line.path.as_os_str());
    let next = if line.lib { "test" } else { "run" };
    writeln!(out, "Next: cd {folder} && cargo {next}").map_err(CargoOffloadError::unwritten)
}

pub(crate) fn init(line: &InitLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    line.source.check()?;
    let folder = Path::new("");
    let template = line.language.template();
    let mut manifest = Manifest::read(folder)?;
    manifest.add(template, &line.source)?;
    let script = manifest.build_script()?;
    let files = files_of(template, &manifest.package, &line.source).into_iter();
    let files = files.filter(|(path, _)| *path == "build.rs" || path.starts_with("kernels/"));
    let files = files.map(|(path, text)| match path {
        "build.rs" => (script.as_str(), text),
        path => (path, text),
    });
    let files: Vec<_> = files.collect();
    let (mut kept, mut new) = (Vec::new(), Vec::new());
    for (path, text) in &files {
        match fs::symlink_metadata(path) {
            Ok(_) => kept.push(*path),
            Err(problem) if is_absent(&problem) => new.push((Path::new(*path), text)),
            Err(problem) => return Err(CargoOffloadError::of(Path::new(path), problem)),
        }
    }
    // Each folder comes before its parent.
    let folders = new.iter().flat_map(|(path, _)| path.ancestors().skip(1));
    let folders: Vec<&Path> = folders.filter(|folder| !folder.exists()).collect();
    let mut files_to_write = new.iter();
    let written = files_to_write.try_for_each(|(path, text)| write(path, text));
    if let Err(error) = written.and_then(|()| manifest.write()) {
        // Cargo would compile a new build script without its dependency.
        for (path, _) in &new {
            _ = fs::remove_file(path);
        }
        for folder in folders {
            _ = fs::remove_dir(folder);
        }
        return Err(error);
    }
    let mut said = vec!["Changed Cargo.toml".to_owned()];
    for (path, text) in &files {
        let verb = if kept.contains(path) {
            "Kept"
        } else {
            "Created"
        };
        said.push(format!("{verb} {path}"));
        if kept.contains(path) && *path == script {
            said.push(format!("Add to {script}:\n{}", indented(text)));
        }
    }
    for path in others(&files)? {
        said.push(format!(
            "Found {}: `sources` matches it, too",
            terminal(&*path)
        ));
    }
    // Cargo links what a build script names to the library, if there is one.
    let roots = ["src/lib.rs", "src/main.rs"];
    let root = roots.into_iter().find(|root| Path::new(root).is_file());
    said.push(format!(
        "Add to {}:\n    mod kernels {{\n        include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\"));\n    }}",
        root.unwrap_or("the crate")
    ));
    writeln!(out, "{}", said.join("\n")).map_err(CargoOffloadError::unwritten)
}

/// Returns the sources beside those of a template, which its pattern takes, too, sorted.
fn others(files: &[(&str, String)]) -> Result<Vec<PathBuf>, CargoOffloadError> {
    let own: Vec<&Path> = files.iter().map(|(path, _)| Path::new(*path)).collect();
    let folder = Path::new("kernels");
    let own_here = own.iter().filter(|path| path.parent() == Some(folder));
    let extensions = own_here.filter_map(|path| path.extension());
    // A crate of kernels has its manifest here, and no pattern.
    let extensions: Vec<&OsStr> = extensions.filter(|name| *name != "toml").collect();
    let wrong = |problem| CargoOffloadError::of(folder, problem);
    let mut found = Vec::new();
    for file in fs::read_dir(folder).map_err(wrong)? {
        let path = folder.join(file.map_err(wrong)?.file_name());
        let extension = path.extension();
        let is_taken = extension.is_some_and(|name| extensions.contains(&name));
        if is_taken && !own.contains(&&*path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the files of a template besides `Cargo.toml`; our crates come from where the user says.
fn files_of(
    template: &Template,
    package: &str,
    source: &SourceOption,
) -> Vec<(&'static str, String)> {
    let files = template.files(package).map(|(path, text)| {
        let mut document = match path.ends_with("Cargo.toml") {
            true => text.parse::<DocumentMut>().expect("templates are TOML"),
            false => return (path, text),
        };
        if let Some(dependencies) = table(&mut document, "dependencies") {
            for (name, version) in dependencies.iter_mut() {
                if let Some(item) = source.item(&name, version) {
                    *version = item;
                }
            }
        }
        (path, document.to_string())
    });
    files.collect()
}

/// Tells whether a package of this name is one that templates depend on.
fn is_ours(name: &str) -> bool {
    matches!(name, "offload-build" | "offload-device")
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| format!("    {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Writes a file, with its folder.
fn write(path: &Path, text: &str) -> Result<(), CargoOffloadError> {
    if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
        fs::create_dir_all(folder).map_err(|problem| CargoOffloadError::of(folder, problem))?;
    }
    files::write_beside(path, text.as_bytes())
        .map_err(|problem| CargoOffloadError::of(path, problem))
}

/// A `Cargo.toml` that keeps its form.
struct Manifest {
    path: PathBuf,
    document: DocumentMut,
    /// Name of the package.
    package: String,
    /// End of each line, which the document does not keep.
    line_end: &'static str,
    /// Mark before the first line, which it does not keep, either.
    mark: &'static str,
}

/// The mark of UTF-8 with which some editors begin files.
const MARK: &str = "\u{feff}";

impl Manifest {
    fn read(folder: &Path) -> Result<Self, CargoOffloadError> {
        let path = folder.join("Cargo.toml");
        let text = fs::read_to_string(&path).map_err(|problem| {
            let hint = match is_absent(&problem) {
                true => "\nhint: `cargo offload new` creates a package",
                false => "",
            };
            CargoOffloadError::of(&path, format_args!("{problem}{hint}"))
        })?;
        let document: DocumentMut = text
            .parse()
            .map_err(|problem| CargoOffloadError::of(&path, problem))?;
        let name = document
            .get("package")
            .and_then(|package| package.get("name"));
        let package = name.and_then(Item::as_str).map(str::to_owned);
        let package =
            package.ok_or_else(|| CargoOffloadError::of(&path, "it declares no package"))?;
        Ok(Self {
            path,
            document,
            package,
            line_end: match text.contains("\r\n") {
                true => "\r\n",
                false => "\n",
            },
            mark: match text.starts_with(MARK) {
                true => MARK,
                false => "",
            },
        })
    }

    /// Adds the build-dependencies of a template and its table `[package.metadata.offload]`.
    fn add(&mut self, template: &Template, source: &SourceOption) -> Result<(), CargoOffloadError> {
        let text = templates::filled(template.manifest, &self.package);
        let wanted: DocumentMut = text.parse().expect("templates are TOML");
        let path = &self.path;
        let wrong = |name: &str| CargoOffloadError::of(path, format_args!("`{name}` is no table"));
        let metadata = table(&mut self.document, "package")
            .and_then(|package| table(package, "metadata"))
            .ok_or_else(|| wrong("package.metadata"))?;
        metadata.set_implicit(true);
        if metadata.contains_key("offload") {
            return Err(CargoOffloadError::of(
                path,
                "there is a table [package.metadata.offload] already\n\
                 hint: further modules are tables [[package.metadata.offload.module]], each with a `name`",
            ));
        }
        metadata.insert("offload", wanted["package"]["metadata"]["offload"].clone());
        for section in ["dependencies", "build-dependencies"] {
            let Some(wanted) = wanted.get(section).and_then(Item::as_table) else {
                continue;
            };
            let dependencies = table(&mut self.document, section).ok_or_else(|| wrong(section))?;
            for (name, version) in wanted {
                if !dependencies.contains_key(name) {
                    let item = source.item(name, version);
                    dependencies.insert(name, item.unwrap_or_else(|| version.clone()));
                }
            }
        }
        if template.has_crate() && self.is_alone()? {
            // The crate of kernels is a member.
            self.document
                .entry("workspace")
                .or_insert_with(|| Item::Table(Table::new()));
        }
        Ok(())
    }

    /// Returns the path of the build script, from the package.
    fn build_script(&self) -> Result<String, CargoOffloadError> {
        let package = self.document.get("package");
        let item = package.and_then(|package| package.get("build"));
        match item.and_then(Item::as_str) {
            Some(path) => Ok(path.to_owned()),
            None if item.and_then(Item::as_bool) == Some(false) => Err(CargoOffloadError::of(
                &self.path,
                "`build = false`: Cargo would run no build script\nhint: remove this key",
            )),
            None => Ok("build.rs".to_owned()),
        }
    }

    /// Tells whether the package belongs to no workspace of other packages.
    fn is_alone(&self) -> Result<bool, CargoOffloadError> {
        let mut cargo = Command::new(cargo_program());
        cargo
            .args(["locate-project", "--workspace", "--message-format=plain"])
            .arg("--manifest-path")
            .arg(&self.path);
        let output = cargo.output().map_err(unstarted)?;
        let found = String::from_utf8_lossy(&output.stdout);
        let real = |path: &Path| fs::canonicalize(path).ok();
        Ok(real(Path::new(found.trim())) == real(&self.path))
    }

    fn write(&self) -> Result<(), CargoOffloadError> {
        write(&self.path, &self.text())
    }

    fn text(&self) -> String {
        let text = self.document.to_string();
        let text = text.strip_prefix(MARK).unwrap_or(&text);
        let lines = text.replace("\r\n", "\n").replace('\n', self.line_end);
        format!("{}{lines}", self.mark)
    }
}

/// Returns a table below another, and creates it if it is missing; `None` if the key is not a table. One in braces gets a
/// heading.
fn table<'t>(parent: &'t mut Table, name: &str) -> Option<&'t mut Table> {
    if let Some(inline) = parent.get(name).and_then(Item::as_inline_table) {
        // With a new key: the space after the old one would be in the heading.
        let table = inline.clone().into_table();
        parent.remove(name);
        parent.insert(name, Item::Table(table));
    }
    let item = parent
        .entry(name)
        .or_insert_with(|| Item::Table(Table::new()));
    item.as_table_mut()
}

impl SourceOption {
    /// Refuses a folder that is not there.
    fn check(&self) -> Result<(), CargoOffloadError> {
        let folder = self.offload_build.as_deref();
        match folder.filter(|folder| !is_url(folder) && !Path::new(folder).is_dir()) {
            None => Ok(()),
            Some(folder) => Err(CargoOffloadError::new(format_args!(
                "`--offload-build {}`: no such folder; expected the folder of a checkout or a URL such as https://…",
                terminal(folder)
            ))),
        }
    }

    /// Returns the dependency on one of our crates that the option describes, with the features that the template wants. They
    /// lie beside each other.
    fn item(&self, name: &str, wanted: &Item) -> Option<Item> {
        let source = self.offload_build.as_deref()?;
        if !is_ours(name) {
            return None;
        }
        let is_url = is_url(source);
        let key = if is_url { "git" } else { "path" };
        let source = match is_url {
            true => source.to_owned(),
            // The package may lie elsewhere.
            false => {
                let path = fs::canonicalize(source).unwrap_or_else(|_| PathBuf::from(source));
                // A URL is that of the repository; a folder can be it, too.
                let in_repository = path.join("offload-build");
                let path = match in_repository.join("Cargo.toml").is_file() {
                    true => in_repository,
                    false => path,
                };
                let path = match name == "offload-build" {
                    true => path,
                    false => path.with_file_name(name),
                };
                path.display().to_string()
            }
        };
        let mut dependency = toml_edit::InlineTable::new();
        dependency.insert(key, source.into());
        if let Some(features) = wanted.get("features").and_then(Item::as_value) {
            dependency.insert("features", features.clone());
        }
        Some(value(dependency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(text: &str) -> Manifest {
        Manifest {
            path: PathBuf::from("Cargo.toml"),
            document: text.parse().unwrap(),
            package: "pack".to_owned(),
            line_end: "\n",
            mark: "",
        }
    }

    #[test]
    fn keeps_the_ends_of_lines_and_the_mark_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Cargo.toml");
        let text = "\u{feff}[package]\r\nname = \"pack\" # c\r\n";
        std::fs::write(&path, text).unwrap();
        let mut manifest = Manifest::read(folder.path()).unwrap();
        manifest.add(&templates::C, &REGISTRY).unwrap();
        manifest.write().unwrap();
        let new = std::fs::read_to_string(&path).unwrap();
        assert!(new.starts_with(text), "{new:?}");
        assert!(
            new.lines().count() > 6 && new.matches('\n').count() == new.matches("\r\n").count(),
            "{new:?}"
        );
    }

    const REGISTRY: SourceOption = SourceOption {
        offload_build: None,
    };

    #[test]
    fn adds_to_a_manifest_and_keeps_its_form() {
        let text = "# mine\n[package]\nname   = 'pack' # odd\n\n[dependencies]\nlibc = \"0.2\"\n\n[build-dependencies]\ncc = \"1.0.100\"\n";
        let mut manifest = manifest(text);
        manifest.add(&templates::C, &REGISTRY).unwrap();
        let new = manifest.document.to_string();
        assert!(
            new.contains("# mine\n[package]\nname   = 'pack' # odd\n"),
            "{new}"
        );
        assert!(
            new.contains("\ncc = \"1.0.100\"\noffload-build = \"0.1\"\n"),
            "{new}"
        );
        assert!(
            new.contains("[package.metadata.offload]\nlanguage = \"openmp\"\n"),
            "{new}"
        );
        assert!(!new.contains("[package.metadata]\n"), "{new}");
        let error = manifest
            .add(&templates::HIP, &REGISTRY)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("Cargo.toml: there is a table [package.metadata.offload] already"),
            "{error}"
        );
    }

    #[test]
    fn takes_offload_build_from_elsewhere() {
        let url = "https://example.org/offload.git";
        let source = SourceOption {
            offload_build: Some(url.to_owned()),
        };
        let mut manifest = manifest("[package]\nname = \"pack\"\n");
        manifest.add(&templates::OPENMP, &source).unwrap();
        let new = manifest.document.to_string();
        assert!(
            new.contains(&format!("offload-build = {{ git = \"{url}\" }}")),
            "{new}"
        );
    }

    #[test]
    fn takes_the_device_crate_from_beside_offload_build() {
        let folder = tempfile::tempdir().unwrap();
        let build = folder.path().canonicalize().unwrap().join("offload-build");
        fs::create_dir(&build).unwrap();
        let source = SourceOption {
            offload_build: Some(build.display().to_string()),
        };
        let files = files_of(&templates::RUST, "my-app", &source);
        let of = |wanted: &str| &files.iter().find(|(path, _)| *path == wanted).unwrap().1;
        let device = build.with_file_name("offload-device");
        let expected = format!(
            "offload-device = {{ path = {:?} }}\n",
            device.display().to_string()
        );
        let manifest = of("kernels/Cargo.toml");
        assert!(manifest.contains(&expected), "{manifest}");
        assert!(
            manifest.starts_with("[package]\nname = \"my-app-kernels\"\n"),
            "{manifest}"
        );
        assert!(of("src/main.rs").contains("use my_app::{images, "));
        let mut manifest = self::manifest("[package]\nname = \"pack\"\n");
        manifest.add(&templates::HIP, &source).unwrap();
        let new = manifest.document.to_string();
        let with_features = expected.replace(" }\n", ", features = [\"gpu\"] }");
        assert!(new.contains(&with_features), "{new}");
    }

    #[test]
    fn takes_the_crates_from_a_folder_of_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().canonicalize().unwrap();
        fs::create_dir(repository.join("offload-build")).unwrap();
        fs::write(repository.join("offload-build/Cargo.toml"), "").unwrap();
        let source = SourceOption {
            offload_build: Some(repository.display().to_string()),
        };
        let mut manifest = manifest("[package]\nname = \"pack\"\n");
        manifest.add(&templates::HIP, &source).unwrap();
        let new = manifest.document.to_string();
        for name in ["offload-build", "offload-device"] {
            let path = repository.join(name).display().to_string();
            assert!(
                new.contains(&format!("{name} = {{ path = {path:?}")),
                "{new}"
            );
        }
    }

    #[test]
    fn refuses_keys_that_are_no_tables() {
        let mut manifest = manifest("build-dependencies = 1\n[package]\nname = \"pack\"\n");
        let error = manifest
            .add(&templates::HIP, &REGISTRY)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "Cargo.toml: `build-dependencies` is no table");
    }
}
