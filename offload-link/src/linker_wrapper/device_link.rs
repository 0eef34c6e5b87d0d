//! The device links of one host link: planned, then run.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use offload_build::format::magic::Magic;
use offload_build::link::{DeviceInput, DeviceLinker, LinkJob};
use offload_build::target::Triple;
use offload_build::toolchain::jobserver;
use offload_build::toolchain::{Command, Llvm, Search};

use super::Error;
use super::arguments::{Arguments, Item};
use super::groups::Group;
use super::images::Image;
use super::inputs::{FileKind, InputFile, Inputs};
use super::options::Jobs;
use super::select::Images;

/// One device link: the files it reads, the commands, and the image they make.
#[derive(Debug)]
pub(super) struct DeviceLink<'a> {
    pub group: &'a Group,
    /// Each written from an image of the inputs before the commands run.
    pub inputs: Vec<(PathBuf, &'a Image)>,
    pub commands: Vec<Command>,
    pub output: PathBuf,
}

/// A group that cannot be linked on this machine, and why.
#[derive(Debug)]
pub(super) struct Missing<'a> {
    pub group: &'a Group,
    pub reason: String,
}

impl Group {
    /// As the device linker is told: `generic` means that there is nothing to say.
    fn processor(&self) -> &str {
        match self.processor.as_str() {
            "generic" => "",
            other => other,
        }
    }
}

/// Where intermediate files go: a folder, and how their names begin.
#[derive(Clone, Debug)]
pub(super) struct Workplace {
    pub folder: PathBuf,
    pub prefix: String,
}

impl Workplace {
    /// The path of an intermediate file.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        let safe = |c: char| if "/:\\ ".contains(c) { '_' } else { c };
        let name: String = name.chars().map(safe).collect();
        self.folder.join(format!("{}{name}", self.prefix))
    }
}

/// The plan of each group's link, or why there is none.
pub(super) fn plan<'a>(
    images: &'a Images,
    inputs: &Inputs,
    arguments: &Arguments,
    release: Option<u32>,
    tool: &OsStr,
    workplace: &Workplace,
) -> Result<Vec<Result<DeviceLink<'a>, Missing<'a>>>, Error> {
    let search = Search {
        path: env::var_os("PATH").unwrap_or_default(),
        cuda: arguments
            .options
            .cuda
            .clone()
            .into_iter()
            .chain(env::var_os("CUDA_PATH").map(PathBuf::from))
            .collect(),
    };
    let llvm = find_llvm(&search, tool, release);
    let libraries = host_libraries(arguments, inputs);
    let mut plans = Vec::new();
    let mut names = BTreeSet::new();
    for group in &images.groups {
        let triple = Triple::parse(&group.triple).map_err(|error| Error::Input {
            from: images.images[group.members[0]].from.clone(),
            source: format!("triple `{}`: {error}", group.triple).into(),
        })?;
        let mut files = Vec::new();
        for index in &group.members {
            let image = &images.images[*index];
            let name = file_name(image, group, &mut names)?;
            files.push((workplace.file(&name), image));
        }
        let job = LinkJob {
            triple,
            processor: group.processor().to_owned(),
            inputs: files
                .iter()
                .map(|(path, _)| match path.extension() {
                    Some(extension) if extension == BITCODE => DeviceInput::Bitcode(path.clone()),
                    _ => DeviceInput::Object(path.clone()),
                })
                .collect(),
        };
        let options = &arguments.options;
        let linker_args = for_target(&options.device_linker, &group.triple);
        let mut compiler_args = for_target(&options.device_compiler, &group.triple);
        let bitcode = |input: &DeviceInput| matches!(input, DeviceInput::Bitcode(_));
        if job.inputs.iter().any(bitcode) {
            // Without bitcode LLVM has nothing to do, and linkers refuse its options.
            for option in options.mllvm.iter().chain(&options.offload_opt) {
                compiler_args.extend(["-mllvm".into(), option.clone()]);
            }
        }
        if let (true, Some(root)) = (job.triple.is_nvptx(), &options.cuda) {
            let mut arg = OsString::from("--cuda-path=");
            arg.push(root);
            compiler_args.push(arg);
        }
        let linker = DeviceLinker {
            llvm: llvm.as_ref(),
            search: &search,
            cc: Path::new("cc"),
            opt_level: "2",
            host_libraries: &libraries,
            compiler_args: &compiler_args,
            linker_args: &linker_args,
        };
        let label = match group.processor.as_str() {
            "" => group.triple.clone(),
            processor => format!("{}.{processor}", group.triple),
        };
        let output = workplace.file(&format!("{label}.img"));
        plans.push(match linker.plan(&job, &output) {
            Ok(commands) => Ok(DeviceLink {
                group,
                inputs: files,
                commands,
                output,
            }),
            Err(missing) => Err(Missing {
                group,
                reason: missing.to_string(),
            }),
        });
    }
    Ok(plans)
}

/// Runs the links; the images in the order of `links`.
pub(super) fn run(
    links: &[DeviceLink<'_>],
    jobs: Jobs,
    verbose: bool,
) -> Result<Vec<Vec<u8>>, Error> {
    let pool = match jobs {
        Jobs::Count(count) => jobserver::Jobs::new(None, count),
        Jobs::Jobserver => jobserver::Jobs::new(
            env::var("CARGO_MAKEFLAGS")
                .or_else(|_| env::var("MAKEFLAGS"))
                .ok()
                .as_deref(),
            1,
        ),
    };
    let results = pool.run(links.iter().collect(), |link| link.run(verbose));
    results.into_iter().collect()
}

impl DeviceLink<'_> {
    fn run(&self, verbose: bool) -> Result<Vec<u8>, Error> {
        for (path, image) in &self.inputs {
            fs::write(path, image.bytes()?).map_err(|source| {
                Error::io(format!("cannot write `{}`", path.display()), source)
            })?;
        }
        for command in &self.commands {
            if verbose {
                eprintln!("{command}");
            }
            command.run().map_err(|source| Error::DeviceLink {
                target: self.group.target(),
                source,
            })?;
        }
        fs::read(&self.output)
            .map_err(|source| Error::io(format!("cannot read `{}`", self.output.display()), source))
    }
}

/// Extension of a file of LLVM bitcode.
const BITCODE: &str = "bc";

/// `<stem of the host file>-<triple>-<processor>.o`, and a number when that is taken.
fn file_name(image: &Image, group: &Group, taken: &mut BTreeSet<String>) -> Result<String, Error> {
    let name = image.from.trim_end_matches(')');
    let name = name.rsplit(['/', '(']).next().unwrap_or(name);
    let stem = Path::new(name).file_stem().unwrap_or_default();
    // By the bytes: what a file says about the kind is advisory.
    let extension = match Magic::of(image.bytes()?) {
        Magic::Bitcode => BITCODE,
        _ => "o",
    };
    let label = format!("{}-{}", group.triple, group.processor);
    let base = format!("{}-{label}", stem.to_string_lossy());
    let numbered = (1..).map(|count| format!("{base}-{count}.{extension}"));
    let mut names = std::iter::once(format!("{base}.{extension}")).chain(numbered);
    Ok(names
        .find(|name| taken.insert(name.clone()))
        .unwrap_or_default())
}

/// The clang of the release that made the device code: of the tool's own folder, by its number,
/// or the newest.
fn find_llvm(search: &Search, tool: &OsStr, release: Option<u32>) -> Option<Llvm> {
    let beside = Path::new(tool)
        .parent()
        .filter(|folder| *folder != Path::new(""))
        .map(|folder| folder.join("clang"))
        .filter(|clang| clang.is_file());
    let numbered = || search.program(&[&format!("clang-{}", release?)]);
    beside
        .or_else(numbered)
        .map(Llvm::of)
        .or_else(|| search.clangs().into_iter().next())
}

/// The values that are for `triple`, of `[<triple>=]<value>` as LLVM 20 to 22 read it.
fn for_target(values: &[OsString], triple: &str) -> Vec<OsString> {
    const ARCHITECTURES: [&str; 9] = [
        "amdgcn", "amdgpu", "nvptx", "nvptx64", "x86_64", "i386", "aarch64", "spirv64", "riscv64",
    ];
    let applies = |value: &OsString| {
        let text = value.to_str()?;
        let (before, after) = text.split_once('=')?;
        let known = ARCHITECTURES.contains(&before.split('-').next()?);
        known.then(|| (before == triple).then(|| OsString::from(after)))
    };
    values
        .iter()
        .filter_map(|value| applies(value).unwrap_or_else(|| Some(value.clone())))
        .collect()
}

/// What a CPU's image may need of the host program: its libraries, in their order.
///
/// Not its objects, whose code would then exist twice, no archive of Rust's, and none with device code
/// of its own: that has been taken out of it, and its host code defines the same functions.
fn host_libraries(arguments: &Arguments, inputs: &Inputs) -> Vec<OsString> {
    let mut args = Vec::new();
    let joined = |option: &str, value: &OsStr| {
        let mut arg = OsString::from(option);
        arg.push(value);
        arg
    };
    for (index, item) in arguments.items.iter().enumerate() {
        let file = inputs.files.iter().find(|file| file.item == index);
        if file.is_some_and(InputFile::has_device_code) {
            continue;
        }
        match item {
            Item::File { path, .. } => {
                let is_library = file.is_some_and(|file| match file.kind {
                    FileKind::SharedObject => true,
                    FileKind::Archive => path.extension() != Some(OsStr::new("rlib")),
                    _ => false,
                });
                if is_library {
                    args.push(path.into());
                }
            }
            Item::Library { name, .. } => args.push(joined("-l", name)),
            Item::LibraryDir(dir) => args.push(joined("-L", dir)),
            Item::Rpath(dir) => args.extend([
                "-Xlinker".into(),
                "-rpath".into(),
                "-Xlinker".into(),
                dir.clone(),
            ]),
            Item::WholeArchive(true) => args.push("-Wl,--whole-archive".into()),
            Item::WholeArchive(false) => args.push("-Wl,--no-whole-archive".into()),
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_each_target_its_arguments() {
        let values: Vec<OsString> = ["foo=bar", "a", "nvptx64-nvidia-cuda=b", "-DX=1"]
            .map(OsString::from)
            .to_vec();
        assert_eq!(
            for_target(&values, "amdgcn-amd-amdhsa"),
            ["foo=bar", "a", "-DX=1"]
        );
        assert_eq!(
            for_target(&values, "nvptx64-nvidia-cuda"),
            ["foo=bar", "a", "b", "-DX=1"]
        );
    }

    #[test]
    fn gives_a_cpu_image_the_libraries_of_the_host_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, bytes).unwrap();
            path.into_os_string()
        };
        // Headers of ELF files, of type 1 (relocatable) and 3 (shared).
        let elf = |e_type: u8| {
            let mut header = vec![0; 64];
            header[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
            (header[16], header[18], header[20], header[52], header[58]) = (e_type, 62, 1, 64, 64);
            header
        };
        let shared = file("libs.so", &elf(3));
        let object = file("a.o", &elf(1));
        let archive = file("liba.a", b"!<arch>\n");
        let rlib = file("libr.rlib", b"!<arch>\n");
        let argv = [
            "-dynamic-linker".into(),
            shared.clone(),
            "-plugin".into(),
            shared.clone(),
            object,
            "-Ldir".into(),
            shared.clone(),
            "--whole-archive".into(),
            archive.clone(),
            rlib,
            "--no-whole-archive".into(),
            "-l".into(),
            "m".into(),
            "--as-needed".into(),
            "-rpath=x".into(),
        ];
        let arguments = Arguments::parse(argv.to_vec(), "offload-ld").unwrap();
        let inputs = Inputs::scan(&arguments);
        let expected = [
            "-Ldir".into(),
            shared,
            "-Wl,--whole-archive".into(),
            archive,
            "-Wl,--no-whole-archive".into(),
            "-lm".into(),
            "-Xlinker".into(),
            "-rpath".into(),
            "-Xlinker".into(),
            "x".into(),
        ];
        assert_eq!(host_libraries(&arguments, &inputs), expected);
    }
}
