//! nvcc's command lines for CUDA: the device's side of one source for one processor, as a cubin.
//!
//! nvcc has a C++ compiler of the host read each source, also where no host code is made; what it read stands in the
//! dependencies of both sides together.

use crate::compile::clang::{Compile, depfile};
use crate::declare::module::{ImageCompression, Target};
use crate::files;
use crate::installed::cuda;
use crate::process::command::Command;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Extension of cubins: to nvlink of CUDA 11 a file called `.o` is a host object, whose device code it ignores if it is a cubin.
pub const EXTENSION: &str = "cubin";

/// Options that say how much an image tells of its source.
const DEBUG: [&str; 4] = ["-G", "--device-debug", "-lineinfo", "--generate-line-info"];

/// Options that all compiles of one module share.
#[derive(Clone, Debug)]
pub struct Nvcc<'a> {
    /// The compiler.
    pub nvcc: &'a Path,
    /// `-std=`.
    pub std: Option<&'a str>,
    /// `-I`, in order.
    pub include: &'a [PathBuf],
    /// Images name the lines of the source, for profilers; their code stays the same.
    pub debug: bool,
    /// The line of `--version` that tells its release.
    pub version: &'a str,
    /// `-ccbin=`: the compiler of the host.
    pub ccbin: Option<&'a str>,
}

/// The warning of nvcc (20044-D) about a variable that is declared `extern` without relocatable device code. It makes another one for
/// that source alone, so kernels read other values than the host wrote.
pub const OWN_VARIABLE: &str = "is treated as a static definition";

impl Nvcc<'_> {
    /// The cubin of one source: to be linked with others, or without `rdc` an image by itself.
    #[must_use]
    pub fn cubin(&self, processor: &str, compile: &Compile<'_>) -> Command {
        let command = Command::new(self.nvcc)
            .args(["-x", "cu", "-cubin", "-m64"])
            .arg(format!("-arch={processor}"))
            .arg(format!("-rdc={}", compile.rdc))
            // `-O` is of host code.
            .args(ptxas_level(compile.opt_level, compile.flags));
        self.finish(command, compile)
    }

    /// PTX of one source.
    #[must_use]
    pub fn ptx(&self, processor: &str, compile: &Compile<'_>) -> Command {
        let number = processor.trim_start_matches("sm_");
        let command = Command::new(self.nvcc)
            .args(["-x", "cu", "-ptx", "-m64"])
            .arg(format!("-arch=compute_{number}"))
            .arg(format!("-rdc={}", compile.rdc));
        self.finish(command, compile)
    }

    /// The host's object of one source, with device code for all of `targets`, optimized at `device_level`: nvcc makes no
    /// host code without the device's. With `rdc` the device code is not linked yet; without, the object registers it,
    /// compressed.
    #[must_use]
    pub fn object(
        &self,
        targets: &[Target],
        device_level: &str,
        compression: ImageCompression,
        compile: &Compile<'_>,
    ) -> Command {
        let compression = (!compile.rdc).then(|| compress_options(compression, self.version));
        let command = Command::new(self.nvcc)
            .args(["-x", "cu", if compile.rdc { "-dc" } else { "-c" }])
            .args(compression.unwrap_or_default())
            .args(["-m64", "-Xcompiler=-fPIC"])
            .args(generations(targets))
            .args(host_level(compile.opt_level, compile.flags))
            .args(ptxas_level(device_level, compile.flags));
        let command = match self.debug {
            true => command.arg("-g"),
            false => command,
        };
        self.finish(command, compile)
    }

    /// Everything behind what the two differ in.
    fn finish(&self, mut command: Command, compile: &Compile<'_>) -> Command {
        let says = |flag: &String| DEBUG.contains(&flag.as_str());
        if self.debug && !compile.flags.iter().any(says) {
            command = command.arg("-lineinfo");
        }
        if let Some(std) = self.std {
            command = command.arg(format!("-std={std}"));
        }
        // Names of anonymous namespaces, and of sources without an external name, have the number of the process otherwise.
        let is_seeded = |flag: &String| flag.contains("frandom-seed");
        let seeds = cuda::release(self.version).is_some_and(|release| release >= SEEDS);
        if seeds && !compile.unit.is_empty() && !compile.flags.iter().any(is_seeded) {
            // A number would be taken as it is, and may be too large.
            command = command.arg(format!("-frandom-seed=u{}", compile.unit));
        }
        for folder in self.include {
            command = command.arg("-I").arg(folder);
        }
        for (name, value) in compile.define.iter() {
            // A name has commas if the macro has parameters.
            let definition = format!("{name}={value}");
            command = command.arg(format!("-D{}", as_nvcc_reads(&definition)));
        }
        if !compile.rdc {
            command = command.refuse_warning(OWN_VARIABLE);
        }
        command
            .args(host_compiler(self.ccbin))
            .args(compile.flags)
            .args(["-MD", "-MT", "out", "-MF"])
            .arg(depfile(compile.output))
            .arg(compile.source)
            .arg("-o")
            .arg(files::part(compile.output))
    }
}

/// Returns the definition of a macro as an argument of nvcc, which takes lists, removes a backslash in front of any character, and
/// passes the rest in quotes to a shell (nvcc 13.5 on Linux).
fn as_nvcc_reads(definition: &str) -> String {
    let mut text = String::new();
    for char in definition.chars() {
        match char {
            ',' => text.push('\\'),
            // The shell removes one of two.
            '$' | '`' if cfg!(unix) => text.push_str("\\\\"),
            '\\' if cfg!(unix) => text.push_str("\\\\\\"),
            _ => {}
        }
        text.push(char);
    }
    text
}

/// Returns the first character of a path that the shell of nvcc does not leave as it is.
#[must_use]
pub fn special(path: &Path) -> Option<char> {
    let text = path.to_string_lossy();
    text.chars()
        .find(|char| cfg!(unix) && "$`\\\"',".contains(*char))
}

/// The device link of `objects` for all of `targets`: an object with the images, which registers them for all.
#[must_use]
pub fn registered_images(
    nvcc: &Path,
    targets: &[Target],
    flags: &[String],
    compression: ImageCompression,
    objects: &[PathBuf],
    output: &Path,
    version: &str,
) -> Command {
    let nvlink = options_behind(NVLINK, flags).map(|option| format!("-Xnvlink={option}"));
    Command::new(nvcc)
        .arg("-dlink")
        .args(compress_options(compression, version))
        .args(["-m64", "-Xcompiler=-fPIC"])
        .args(generations(targets))
        .args(debugs(flags).then_some("-G"))
        .args(removes_kernels(version).then_some("-Xnvlink=-ignore-host-info"))
        .args(nvlink)
        .args(objects)
        .arg("-o")
        .arg(output)
}

/// Returns the options for images that are read here and by every driver. Since 12.8 nvcc has a mode for each method, and may
/// choose Zstandard.
fn compress_options(compression: ImageCompression, version: &str) -> &'static [&'static str] {
    match (compression, has_modes(version)) {
        (ImageCompression::Unset, true) => &["--compress-mode=speed"],
        (ImageCompression::Unset, false) => &[],
        (ImageCompression::Lz4, true) => &["--compress-mode=speed", "-Xfatbin=-compress-all"],
        (ImageCompression::Lz4, false) => &["-Xfatbin=-compress-all"],
        // The mode `balance` has larger images, and leaves cubins as they are.
        (ImageCompression::Zstd(_), _) => &["--compress-mode=size"],
        (ImageCompression::None | ImageCompression::Zlib(_), _) => &["-no-compress"],
    }
}

/// Returns whether nvcc of `version` has `--compress-mode`, and so Zstandard: since CUDA 12.8 (NVIDIA's documentation of nvcc).
#[must_use]
pub fn has_modes(version: &str) -> bool {
    cuda::release(version).is_none_or(|release| release >= (12, 8))
}

/// Returns `-gencode` for each of them.
fn generations(targets: &[Target]) -> impl Iterator<Item = String> {
    targets.iter().map(|target| {
        let processor = target.id.to_string();
        let number = processor.trim_start_matches("sm_");
        let code = if target.is_ptx { "compute" } else { "sm" };
        format!("-gencode=arch=compute_{number},code={code}_{number}")
    })
}

/// Returns whether `flags` ask for device code that a debugger can follow.
fn debugs(flags: &[String]) -> bool {
    flags.iter().any(|flag| DEBUG[..2].contains(&flag.as_str()))
}

/// The options of nvcc with options of `nvlink`. Compiles take them and do nothing with them.
const NVLINK: [&str; 2] = ["-Xnvlink", "--nvlink-options"];
/// Those with options of ptxas.
const PTXAS: [&str; 2] = ["-Xptxas", "--ptxas-options"];

/// Returns the values of the options `names` among `flags`: lists for another program.
fn options_behind<'f>(
    names: [&'static str; 2],
    flags: &'f [String],
) -> impl Iterator<Item = &'f str> {
    let mut flags = flags.iter();
    std::iter::from_fn(move || {
        loop {
            let flag = flags.next()?;
            let named = names.iter().find_map(|name| flag.strip_prefix(name));
            match named {
                Some("") => return flags.next().map(String::as_str),
                Some(value) if value.starts_with('=') => return value.strip_prefix('='),
                _ => {}
            }
        }
    })
}

/// The level for host code, unless `flags` have one: nvcc warns of a second one.
fn host_level(opt_level: &str, flags: &[String]) -> Option<String> {
    let mut is_value = false;
    let has_own = flags.iter().any(|flag| {
        let is_own = !is_value && names_level(flag, "--optimize");
        // Such as `-Xcompiler` and `--compiler-options`.
        is_value = (flag.starts_with("-X") && !flag.contains('=')) || flag.ends_with("-options");
        is_own
    });
    (!has_own).then(|| format!("-O{}", level(opt_level)))
}

/// The level of ptxas for device code, unless `flags` have one. With code for debuggers, and when it compiles fast, ptxas has a level
/// of its own and refuses others.
fn ptxas_level(opt_level: &str, flags: &[String]) -> Option<String> {
    let is_fast =
        |option: &str| option.starts_with("-Ofc") || option.starts_with("--Ofast-compile");
    let mut own = options_behind(PTXAS, flags).flat_map(|options| options.split(','));
    let is_left_out = debugs(flags)
        || flags.iter().any(|flag| is_fast(flag))
        || own.any(|option| names_level(option, "--opt-level") || is_fast(option));
    (!is_left_out).then(|| format!("-Xptxas=-O{}", level(opt_level)))
}

/// Tells whether an option is `-O` or the `long` one for a level.
fn names_level(option: &str, long: &str) -> bool {
    // `-Ofc=max` is another option.
    let is_level = |level: &str| level.is_empty() || level.starts_with(['=', '0', '1', '2', '3']);
    option.strip_prefix("-O").is_some_and(is_level) || option.split('=').next() == Some(long)
}

/// ptxas has none for size.
fn level(opt_level: &str) -> &str {
    match opt_level {
        "s" | "z" => "2",
        level => level,
    }
}

/// Returns the options with which `nvlink` links what nvcc made for code with these `flags`. The library `runtime` of the
/// device's runtime joins if it is called.
#[must_use]
pub fn link_options(runtime: Option<&Path>, flags: &[String]) -> Vec<OsString> {
    let debug = debugs(flags).then(|| "-g".into());
    // nvcc takes lists.
    let options = options_behind(NVLINK, flags).flat_map(|options| options.split(','));
    let runtime = runtime.map(|library| [search_of(library), "-lcudadevrt".into()]);
    debug
        .into_iter()
        .chain(runtime.into_iter().flatten())
        .chain(options.map(Into::into))
        .collect()
}

/// Returns the option that has nvcc run this compiler of the host, with the toolkit's files for its processor.
#[must_use]
pub fn host_compiler(ccbin: Option<&str>) -> Option<String> {
    ccbin.map(|name| format!("-ccbin={name}"))
}

/// Returns the option that makes a linker search the folder of `library`.
#[must_use]
pub fn search_of(library: &Path) -> OsString {
    let mut search = OsString::from("-L");
    search.push(library.parent().unwrap_or(Path::new(".")));
    search
}

/// Returns whether nvlink removes the kernels and variables that no C++ of the module uses, unless an option says otherwise.
/// Rust launches them by their stubs. It does since CUDA 11.6.
fn removes_kernels(version: &str) -> bool {
    cuda::release(version).is_none_or(|release| release >= (11, 6))
}

/// First release that was seen to know `-frandom-seed`; those from 12.0 to 12.9 were not looked at.
const SEEDS: (u32, u32) = (13, 0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::clang::Part;

    #[test]
    fn says_what_nvcc_needs() {
        let include = [PathBuf::from("my include")];
        let mut nvcc = Nvcc {
            nvcc: Path::new("nvcc"),
            std: Some("c++17"),
            include: &include,
            debug: true,
            version: "",
            ccbin: None,
        };
        let define = [("FAST", ""), ("MAX(x, y)", "x"), ("PAIR", "1,2")];
        let define = define
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect();
        let mut compile = Compile {
            source: Path::new("k.cu"),
            output: Path::new("k.cubin"),
            assembly: None,
            opt_level: "s",
            rdc: true,
            shares_image: false,
            define: &define,
            flags: &["--use_fast_math".to_owned()],
            unit: "",
            file: "",
            part: Part::Whole,
        };
        let tail = "-MD -MT out -MF k.cubin.d k.cu -o k.cubin.part";
        assert_eq!(
            nvcc.cubin("sm_90a", &compile).to_string(),
            format!(
                "nvcc -x cu -cubin -m64 -arch=sm_90a -rdc=true -Xptxas=-O2 -lineinfo -std=c++17 -I 'my include' \
                 -DFAST= '-DMAX(x\\, y)=x' '-DPAIR=1\\,2' --use_fast_math {tail}"
            )
        );
        // Two of four backslashes are for the shell.
        assert_eq!(
            as_nvcc_reads(r#""a\n$HOME`id`""#),
            r#""a\\\\n\\$HOME\\`id\\`""#
        );
        nvcc.ccbin = Some("g++-11");
        let line = nvcc.cubin("sm_90a", &compile).to_string();
        assert!(line.contains(" -ccbin=g++-11 --use_fast_math "), "{line}");
        // Who debugs says so.
        (nvcc.std, nvcc.include, nvcc.ccbin) = (None, &[], None);
        let (none, flags) = (Default::default(), ["-G".to_owned()]);
        (compile.define, compile.flags) = (&none, &flags);
        (compile.opt_level, compile.rdc) = ("0", false);
        assert_eq!(
            nvcc.cubin("sm_80", &compile).to_string(),
            format!("nvcc -x cu -cubin -m64 -arch=sm_80 -rdc=false -G {tail}")
        );
        // The same names in each build, from the first release on that can.
        (nvcc.version, compile.unit) = ("Cuda compilation tools, release 13.0, V13.0.88", "12ab");
        let seeded = nvcc.cubin("sm_80", &compile).to_string();
        assert!(seeded.contains(" -frandom-seed=u12ab -G "), "{seeded}");
        nvcc.version = "Cuda compilation tools, release 12.9, V12.9.86";
        assert!(!nvcc.cubin("sm_80", &compile).to_string().contains("seed"));
        let own = ["-frandom-seed=7".to_owned()];
        (nvcc.version, compile.flags) = ("release 13.5,", &own);
        let seeded = nvcc.cubin("sm_80", &compile).to_string();
        assert_eq!(seeded.matches("frandom-seed").count(), 1, "{seeded}");
        assert_eq!(link_options(None, &flags), ["-g"]);
        let runtime = Some(Path::new("/cuda/lib64/libcudadevrt.a"));
        assert_eq!(link_options(runtime, &[]), ["-L/cuda/lib64", "-lcudadevrt"]);
        let own = ["-Xnvlink=-a,-b", "-O1", "--nvlink-options", "-c"].map(str::to_owned);
        assert_eq!(link_options(None, &own), ["-a", "-b", "-c"]);
        let (nvcc, out) = (Path::new("nvcc"), Path::new("images.o"));
        let link = |compression, version: &str| {
            let version = format!("release {version},");
            registered_images(nvcc, &[], &own, compression, &[], out, &version).to_string()
        };
        let rest = "-m64 -Xcompiler=-fPIC";
        assert_eq!(
            link(ImageCompression::None, "11.5"),
            format!("nvcc -dlink -no-compress {rest} -Xnvlink=-a,-b -Xnvlink=-c -o images.o")
        );
        for (compression, version, options) in [
            (ImageCompression::Unset, "12.6", ""),
            (ImageCompression::Unset, "12.8", "--compress-mode=speed "),
            (ImageCompression::Lz4, "12.6", "-Xfatbin=-compress-all "),
            (
                ImageCompression::Lz4,
                "13.5",
                "--compress-mode=speed -Xfatbin=-compress-all ",
            ),
            (
                ImageCompression::Zstd(None),
                "13.5",
                "--compress-mode=size ",
            ),
        ] {
            let line = link(compression, version);
            let start = format!("nvcc -dlink {options}{rest} ");
            assert!(line.starts_with(&start), "{line}");
        }
    }

    #[test]
    fn leaves_levels_to_the_flags() {
        for (flags, levels) in [
            ("-Xcompiler -O1 -Xptxas -v --optimizer", "-O2 -Xptxas=-O3"),
            ("-O1", "-Xptxas=-O3"),
            ("--optimize=1", "-Xptxas=-O3"),
            ("--optimize 1 -Xptxas -v,-O1", ""),
            ("--ptxas-options=--opt-level=1", "-O2"),
            ("-G", "-O2"),
            ("--compiler-options -O3", "-O2 -Xptxas=-O3"),
            ("--ptxas-options -O1", "-O2"),
            ("--compiler-options=-g -O=1", "-Xptxas=-O3"),
            // ptxas 13.5 refuses a level with it.
            ("-Ofc=max", "-O2"),
            ("--Ofast-compile mid", "-O2"),
            ("-Xptxas=-Ofc=max", "-O2"),
        ] {
            let flags: Vec<String> = flags.split(' ').map(str::to_owned).collect();
            let host = host_level("2", &flags);
            let found: Vec<String> = host.into_iter().chain(ptxas_level("3", &flags)).collect();
            assert_eq!(found.join(" "), levels, "{flags:?}");
        }
    }

    #[test]
    fn knows_which_releases_remove_kernels() {
        for (version, removes) in [
            ("Cuda compilation tools, release 13.5, V13.5.37", true),
            ("Cuda compilation tools, release 11.6, V11.6.55", true),
            ("Cuda compilation tools, release 11.5, V11.5.119", false),
            ("Cuda compilation tools, release 10.2, V10.2.89", false),
            ("another", true),
        ] {
            assert_eq!(removes_kernels(version), removes, "{version}");
        }
    }
}
