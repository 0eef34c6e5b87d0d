//! clang's command lines for OpenMP: the host object and the device images of one source, apart.
//!
//! One process makes one file for one target: what the jobserver can spread and a compiler cache can keep.
//! Each device pass has clang read the host's side again (unoptimised), to learn the order of the entries.

use crate::files;
use crate::process::command::Command;
use offload_formats_core::by_name::ByName;
use offload_formats_core::escape::Colors;
use offload_formats_core::names::Triple;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The last release that was seen to write dependencies of HIP's device pass (16 and 19 do, 21 and 22 do not).
const HIP_DEPENDENCIES: u32 = 19;

/// Machine code as text, and last of all options. sccache takes what has no `-c` for no compile, and ccache puts it at the end.
const ASSEMBLY: [&str; 3] = ["-S", "--start-no-unused-arguments", "-c"];

/// Text of clang's warning about a `__managed__` variable in CUDA (clang 19, 22). Host and device would each get a variable.
pub const MANAGED: &str = "'managed' attribute ignored";

/// Options that all compiles of one module share.
#[derive(Clone, Debug)]
pub struct Clang<'a> {
    /// The compiler.
    pub clang: &'a Path,
    /// The compiler's release, if known.
    pub release: Option<u32>,
    /// The host's triple.
    pub host: &'a str,
    /// The same as clang spells it, where it may be another one than clang's own.
    pub target: Option<&'a str>,
    /// Options for host objects that go with the host.
    pub host_options: &'a [&'a str],
    /// `-std=`.
    pub std: Option<&'a str>,
    /// `-I`, in order.
    pub include: &'a [PathBuf],
    /// Folders that `#include` searches after the system's, in order.
    pub include_last: &'a [PathBuf],
    /// Folders, and what `__FILE__` says of each in its place.
    pub renamed_folders: &'a [(&'a Path, &'a str)],
    /// Debug information in host objects.
    pub debug: bool,
    /// Colors of messages.
    pub colors: Colors,
}

/// Options of one compile.
#[derive(Clone, Debug)]
pub struct Compile<'a> {
    /// The source.
    pub source: &'a Path,
    /// The file that is made; its dependencies are written beside it, see [`depfile`].
    pub output: &'a Path,
    /// HIP: the file for machine code as text, from which the output is assembled. Without it the output
    /// is bitcode.
    pub assembly: Option<&'a Path>,
    /// `-O`.
    pub opt_level: &'a str,
    /// HIP and CUDA: true if other sources call its device functions.
    pub rdc: bool,
    /// HIP: true if its image is also that of other sources or of host code, which start kernels by name, also those that are the
    /// source's own.
    pub shares_image: bool,
    /// `-D`, by name; empty for a name without value.
    pub define: &'a ByName<String>,
    /// Options as spelled, after all others.
    pub flags: &'a [String],
    /// Makes the source's private names unique in a program (HIP and CUDA).
    pub unit: &'a str,
    /// The file's number in names of kernels (OpenMP); empty if unknown.
    pub file: &'a str,
    /// All of the compile, or a half of it.
    pub part: Part<'a>,
}

/// The part of a compile that one command does. Clang makes no device code of what it calls preprocessed
/// (`-x hip-cpp-output`: an empty image; `-x cpp-output` with OpenMP: the host's object), so the second half reads
/// the text as a source again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// From the source to the output.
    Whole,
    /// From the source to this text, with the dependencies.
    Preprocess(&'a Path),
    /// From this text to the output.
    Compile(&'a Path),
}

/// Returns the file to which a compile writes what it read.
#[must_use]
pub fn depfile(output: &Path) -> PathBuf {
    files::beside(output, ".d")
}

impl Clang<'_> {
    /// The host object: host code and offload entries, no device code.
    ///
    /// It is the same for all device targets, so the one that is named is always the host itself.
    #[must_use]
    pub fn host_object(&self, compile: &Compile<'_>) -> Command {
        let mut command = self.openmp(self.host);
        if self.debug {
            command = command.arg("-g");
        }
        let command = command.arg("--offload-host-only").args(self.host_options);
        self.finish_openmp(command, compile)
    }

    /// The image of one source for one target: an object for a CPU, bitcode for a GPU.
    #[must_use]
    pub fn device_image(&self, triple: &Triple, processor: &str, compile: &Compile<'_>) -> Command {
        let mut command = self.openmp(triple.as_str()).arg("--offload-device-only");
        if !processor.is_empty() {
            command = command
                .arg(format!("-Xopenmp-target={triple}"))
                .arg(format!("-march={processor}"));
        }
        if triple.is_cpu() {
            command = command.arg("-fPIC");
        } else {
            // The vendor's libraries join at the device link, if the module needs them.
            command = command.args(["-nogpulib", "-foffload-lto"]);
        }
        if triple.is_nvptx() {
            let feature = crate::compile::ptxas::ptx_version(processor);
            command = command.arg(format!("--cuda-feature=+{feature}"));
        }
        self.finish_openmp(command, compile)
    }

    fn openmp(&self, device: &str) -> Command {
        let openmp = ["-fopenmp".to_owned(), format!("-fopenmp-targets={device}")];
        self.start().args(openmp)
    }

    fn finish_openmp(&self, command: Command, compile: &Compile<'_>) -> Command {
        // Names of kernels hold the numbers of their file. Clang does not look at this; a cache does, and
        // gives this file what was made of it.
        let seed = (!compile.file.is_empty()).then(|| format!("-frandom-seed={}", compile.file));
        self.finish(command.args(seed), compile)
    }

    pub fn start(&self) -> Command {
        let target = self.target.map(|target| format!("--target={target}"));
        Command::new(self.clang)
            .refuse_warning(MANAGED)
            .arg("--no-default-config")
            .args(target)
    }

    pub fn finish(&self, command: Command, compile: &Compile<'_>) -> Command {
        // One process, one pass: this speaks of the device's where that is what is made (clang 16, 19, 22).
        let dependencies = depfile(compile.output).into_os_string();
        let options = [
            "-MD".into(),
            "-MF".into(),
            dependencies,
            "-MT".into(),
            "out".into(),
        ];
        self.finish_with(command, &options, compile)
    }

    /// Finishes a command for HIP, for whose device pass later releases write no dependencies with `-MD`, and warn that
    /// `-MF` is unused.
    /// They do not warn of `-Wp`, by which a cache knows the file; but it takes its path for a part of the result.
    pub fn finish_hip(&self, command: Command, compile: &Compile<'_>) -> Command {
        if self
            .release
            .is_some_and(|release| release <= HIP_DEPENDENCIES)
        {
            return self.finish(command, compile);
        }
        let dependencies = depfile(compile.output).into_os_string();
        let mut known = OsString::from("-Wp,-MD,");
        known.push(&dependencies);
        let is_one_word = !dependencies.to_string_lossy().contains(',');
        let frontend = [
            "-dependency-file".into(),
            dependencies,
            "-MT".into(),
            "out".into(),
        ];
        let mut options: Vec<OsString> = is_one_word.then_some(known).into_iter().collect();
        options.extend(frontend.into_iter().flat_map(|arg| ["-Xclang".into(), arg]));
        self.finish_with(command, &options, compile)
    }

    fn finish_with(
        &self,
        command: Command,
        dependencies: &[OsString],
        compile: &Compile<'_>,
    ) -> Command {
        let mut command = command
            .arg(format!("-O{}", compile.opt_level))
            .with_colors(self.colors);
        if let Some(std) = self.std {
            command = command.arg(format!("-std={std}"));
        }
        let (made, compiles): (PathBuf, &[&str]) = match compile.assembly {
            Some(text) => (text.to_owned(), &ASSEMBLY),
            None => (files::part(compile.output), &["-c"]),
        };
        let (mode, input, output) = match compile.part {
            Part::Whole => (compiles, compile.source, made),
            Part::Preprocess(text) => (&["-E"][..], compile.source, text.to_owned()),
            Part::Compile(text) => {
                // The text has the headers that clang includes by itself. What is not used in one half is in the other.
                let once = ["-nogpuinc", "-Wno-unused-command-line-argument"];
                let command = command.args(compile.flags).args(once);
                return command.args(compiles).arg(text).arg("-o").arg(made);
            }
        };
        command = command.args(self.renamed_folders.iter().filter_map(prefix_map));
        for folder in self.include {
            command = command.arg("-I").arg(folder);
        }
        for folder in self.include_last {
            command = command.arg("-idirafter").arg(folder);
        }
        for (name, value) in compile.define.iter() {
            command = command.arg(format!("-D{name}={value}"));
        }
        command
            .args(compile.flags)
            .args(dependencies)
            .args(mode)
            .arg(input)
            .arg("-o")
            .arg(output)
    }
}

/// Returns the option that renames a folder in `__FILE__`: what is compiled is the same in every checkout, unless it has debug
/// information. The folder ends at the first `=`.
fn prefix_map((folder, name): &(&Path, &str)) -> Option<OsString> {
    let is_whole = !folder.as_os_str().as_encoded_bytes().contains(&b'=');
    let mut option = OsString::from("-fmacro-prefix-map=");
    option.push(folder);
    option.push("/=");
    option.push(name);
    is_whole.then_some(option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_each_pass_needs() {
        let include = [PathBuf::from("my include")];
        let clang = Clang {
            clang: Path::new("clang-19"),
            release: Some(19),
            host: "x86_64-unknown-linux-gnu",
            target: None,
            host_options: &["-fPIC"],
            std: Some("c11"),
            include: &include,
            include_last: &[],
            renamed_folders: &[(Path::new("/pack"), ""), (Path::new("/a=b"), "")],
            debug: true,
            colors: Colors::Removed,
        };
        let define = [("FAST", ""), ("TILE", "64")];
        let define = define
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect();
        let compile = Compile {
            source: Path::new("k.c"),
            output: Path::new("k.o"),
            assembly: None,
            opt_level: "2",
            rdc: true,
            shares_image: false,
            define: &define,
            flags: &["-Wall".to_owned()],
            unit: "",
            file: "fe00-12",
            part: Part::Whole,
        };
        let tail = "-frandom-seed=fe00-12 -O2 -std=c11 -fmacro-prefix-map=/pack/= -I 'my include' -DFAST= -DTILE=64 -Wall \
                    -MD -MF k.o.d -MT out -c k.c -o k.o.part";
        assert_eq!(
            clang.host_object(&compile).to_string(),
            format!(
                "clang-19 --no-default-config -fopenmp -fopenmp-targets=x86_64-unknown-linux-gnu -g \
                 --offload-host-only -fPIC {tail}"
            )
        );
        let amd = Triple::parse("amdgcn-amd-amdhsa").unwrap();
        assert_eq!(
            clang
                .device_image(&amd, "gfx90a:xnack-", &compile)
                .to_string(),
            format!(
                "clang-19 --no-default-config -fopenmp -fopenmp-targets=amdgcn-amd-amdhsa --offload-device-only \
                 -Xopenmp-target=amdgcn-amd-amdhsa -march=gfx90a:xnack- -nogpulib -foffload-lto {tail}"
            )
        );
    }
}
