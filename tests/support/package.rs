//! A package whose build script is run as Cargo runs it.

use super::folder::Folder;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub const KERNEL: &str = "#include \"k.h\"\nint run(int x) {\n#pragma omp target map(tofrom : x)\n  x += ONE;\n  return x;\n}\n";
pub const MANIFEST: &str =
    "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"openmp\"\n";
pub const CPU: &str = "sources = [\"kernels/*.c\"]\ntargets = [\"x86_64-pc-linux-gnu\"]\n";

/// `OUT_DIR` of its build script.
pub const OUT: &str = "target/build/pack-0123/out";

/// A package, its build folder, and a clang that counts how often it is started.
pub struct Package {
    pub folder: Folder,
}

impl Package {
    /// With the keys of `[package.metadata.offload]`; nothing where the tools are missing.
    pub fn new(keys: &str) -> Option<Self> {
        super::tool("llvm19", &["clang"])?;
        super::tool("omptarget19", &["libomptarget.so.19.1"])?;
        let package = Self {
            folder: Folder::new(),
        };
        package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
        package.put("build.rs", "fn main() {}\n");
        package.put("kernels/k.c", KERNEL);
        package.put("kernels/k.h", "#define ONE 1\n");
        let llvm = Path::new("/usr/lib/llvm-19");
        for name in ["lib", "bin/llvm-link", "bin/ld.lld"] {
            let link = package.at("llvm").join(name);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(llvm.join(name), link).unwrap();
        }
        let log = package.at("starts");
        let shim = format!(
            "#!/bin/sh\necho \"$@\" >> '{}'\nexec /usr/bin/clang-19 \"$@\"\n",
            log.display()
        );
        package.put("llvm/bin/clang", &shim);
        Some(package)
    }

    /// Declares the keys of `[package.metadata.offload]`.
    pub fn declare(&self, keys: &str) {
        let manifest = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\n";
        self.put("Cargo.toml", &format!("{manifest}{keys}"));
    }

    /// The image of the module `kernels` for a target.
    pub fn image(&self, target: &str) -> PathBuf {
        self.at(OUT).join(format!("offload/kernels/{target}/image"))
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    pub fn put(&self, name: &str, text: &str) {
        self.folder.write(name, text);
        // Whatever was written less than a moment ago is not trusted by the cache.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }

    /// The build script with what Cargo sets, and the counting clang.
    pub fn script(&self) -> Command {
        self.script_called("build_script")
    }

    /// The same for another build script of `offload-build/examples`.
    pub fn script_called(&self, name: &str) -> Command {
        let tests = std::env::current_exe().unwrap();
        let script = tests
            .parent()
            .and_then(Path::parent)
            .unwrap()
            .join("examples")
            .join(name);
        assert!(
            script.is_file(),
            "{}: `cargo build --examples` makes it, and so does a run of all tests",
            script.display()
        );
        let mut command = Command::new(script);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("CARGO", env!("CARGO"))
            .env("CARGO_MANIFEST_DIR", self.folder.root())
            .env("CARGO_PKG_NAME", "pack")
            .env("CARGO_PKG_VERSION", "1.2.3")
            .env("OUT_DIR", self.at(OUT))
            .env("TARGET", "x86_64-unknown-linux-gnu")
            .env("HOST", "x86_64-unknown-linux-gnu")
            .env("OPT_LEVEL", "1")
            .env("PROFILE", "debug")
            .env("NUM_JOBS", "2")
            .env("OFFLOAD_COMPILER", self.at("llvm/bin/clang"))
            .current_dir(self.folder.root());
        command
    }

    /// Makes `rustc` link the images of modules without host code, as the build script tells Cargo.
    pub fn link_images(&self, rustc: &mut Command) {
        let out = self.at(OUT);
        for file in fs::read_dir(&out).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let name = name.strip_prefix("lib");
            if let Some(name) = name.and_then(|name| name.strip_suffix(".a")) {
                rustc
                    .arg("-L")
                    .arg(&out)
                    .args(["-l", &format!("static={name}")]);
            }
        }
    }

    /// The compiler that the last build used, as the record of the build says.
    pub fn recorded_compiler(&self) -> String {
        let record = fs::read_to_string(self.at(OUT).join("offload/manifest.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        let path = PathBuf::from(record["modules"][0]["compiler"].as_str().unwrap());
        let path = path.strip_prefix(self.folder.root());
        path.unwrap().display().to_string()
    }

    /// Puts another file with the same content in the place of one.
    pub fn replace(&self, name: &str) {
        let text = fs::read_to_string(self.at(name)).unwrap();
        // What is there stays, so that the new one gets a number of its own.
        fs::rename(self.at(name), self.at(&format!("{name}.old"))).unwrap();
        self.put(name, &text);
    }

    pub fn builds(&self) -> String {
        text(&self.script().output().unwrap())
    }

    /// Returns the error of a build script that fails, without the folder's name and without codes that all errors of one
    /// part of a build have.
    pub fn fails(&self, command: &mut Command) -> String {
        let mut text = self.fails_with_codes(command);
        for code in [
            " [OFF500]",
            " [OFF509]",
            " [OFF511]",
            " [OFF600]",
            " [OFF700]",
        ] {
            text = text.replace(code, "");
        }
        text
    }

    /// Returns the error of a build script that fails, without the folder's name. Each error has a code.
    pub fn fails_with_codes(&self, command: &mut Command) -> String {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let (plan, error) = stderr.split_once("Error: ").unwrap();
        assert!(plan.is_empty() || plan.ends_with('\n'), "{stderr}");
        // Cargo prints standard output in front of the reason.
        let stdout = String::from_utf8(output.stdout).unwrap();
        let is_warning = |line: &str| line.starts_with("cargo::warning=");
        assert!(stdout.lines().all(is_warning), "{stdout}");
        let error = error.trim_end_matches('\n');
        // The command that explains the first code ends the output.
        let code = error.split_once("[OFF").map(|(_, rest)| &rest[..3]);
        let help = code.map(|code| format!("\nhelp: `cargo offload explain OFF{code}`"));
        let help = match error.starts_with("OFFLOAD_DRY_RUN is set") {
            true => String::new(),
            false => help.unwrap_or_else(|| panic!("no code: {error}")),
        };
        let text = error.strip_suffix(&help);
        text.unwrap_or_else(|| panic!("no help for the code: {error}"))
            .replace(&format!("{}/", self.folder.root().display()), "")
    }

    pub fn starts(&self) -> usize {
        fs::read_to_string(self.at("starts"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    /// Every file below the build folder.
    pub fn files(&self) -> Vec<String> {
        fn walk(folder: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => walk(&entry.path(), found),
                    false => found.push(entry.path().display().to_string()),
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.at("target"), &mut found);
        found.sort();
        found
    }

    pub fn has_library(&self) -> bool {
        self.files().iter().any(|file| file.ends_with("_offload.a"))
    }
}

#[track_caller]
/// Returns the options with which rustc links what a build script told Cargo.
pub fn link_options(told: &str) -> Vec<String> {
    let option = |line: &str| {
        let (directive, value) = line.strip_prefix("cargo::rustc-link-")?.split_once('=')?;
        Some(match directive {
            "lib" => format!("-l{value}"),
            "search" => format!("-L{value}"),
            "arg" => format!("-Clink-arg={value}"),
            _ => return None,
        })
    };
    told.lines().filter_map(option).collect()
}

pub fn text(output: &Output) -> String {
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{stdout}\n{stderr}");
    stdout.into_owned()
}
