//! The device links of one host link: planned, then run.

mod content;
mod host_libraries;
mod planner;
mod values;

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use offload_build::link::{Way, spirv};
use offload_build::toolchain::command::without_rustc;
use offload_build::toolchain::jobserver;
use offload_build::toolchain::{Command, Llvm, Search};
use offload_formats::names::{ImageKind, OffloadKind};

use super::arguments::Arguments;
use super::groups::Group;
use super::host_linker;
use super::images::Image;
use super::inputs::Inputs;
use super::linked_image;
use super::options::{Jobs, Options};
use super::runtime::{Places, runtime_libraries};
use super::select::Images;
use super::shown::Shown;
use super::trace::Trace;
use super::{Error, LLVM_NAME, tool_name};
use crate::response_file::Quoting;
use host_libraries::host_libraries;
use planner::Planner;

/// One device link: the files it reads, the commands, and the image they make.
#[derive(Debug)]
pub(super) struct DeviceLink<'a> {
    pub group: &'a Group,
    /// Each written from an image of the inputs before the commands run.
    pub inputs: Vec<(PathBuf, &'a Image)>,
    /// Makes objects and bitcode of those that are text; each with the image.
    pub translations: Vec<(&'a Image, Command)>,
    pub commands: Vec<Command>,
    pub output: PathBuf,
    /// What the image is: an object, or bitcode when that was asked for.
    pub kind: ImageKind,
    /// Whether what the commands say is shown, also when they succeed.
    shows_output: bool,
    /// The image is SPIR-V, which OpenMP's runtime takes in an ELF file.
    wraps_spirv: bool,
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

    /// What the image's file is called after: for LLVM the architecture and the processor.
    fn label(&self, way: Way) -> String {
        let arch = self.triple.split('-').next().unwrap_or_default();
        match (way, self.processor.as_str()) {
            (Way::Llvm, processor) => format!("{arch}.{processor}"),
            (Way::Own, "") => self.triple.clone(),
            (Way::Own, processor) => format!("{}.{processor}", self.triple),
        }
    }
}

/// Where intermediate files go: a folder, and how their names begin.
#[derive(Clone, Debug)]
pub(super) struct Workplace {
    pub folder: PathBuf,
    pub prefix: String,
    /// Folder for children's temporary files, so that none stays when a signal ends them.
    pub temporary: Option<PathBuf>,
}

impl Workplace {
    /// Variables of the programs that work here.
    pub(super) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let temporary = self.temporary.iter();
        temporary.map(|folder| ("TMPDIR", folder.into())).collect()
    }

    /// The path of an intermediate file.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        let safe = |c: char| if "/\\ ".contains(c) { '_' } else { c };
        let name: String = name.chars().map(safe).collect();
        self.folder.join(format!("{}{name}", self.prefix))
    }
}

/// Where programs for devices are looked for.
pub(super) fn search(arguments: &Arguments) -> Search {
    let options = &arguments.options;
    // clang's driver tells the compiler alone where CUDA is.
    let compilers = options.device_compiler.iter().filter_map(|value| {
        let (_, root) = value.to_str()?.split_once("--cuda-path=")?;
        Some(PathBuf::from(root))
    });
    let roots = options.cuda.clone().into_iter().chain(compilers);
    Search {
        path: env::var_os("PATH").unwrap_or_default(),
        cuda: roots
            .chain(env::var_os("CUDA_PATH").map(PathBuf::from))
            .collect(),
    }
}

/// The plan of each group's link, or why there is none. `release` is that of the clang that made the host objects.
pub(super) fn plan<'a>(
    images: &'a Images,
    inputs: &Inputs,
    arguments: &Arguments,
    release: Option<u32>,
    tool: &OsStr,
    workplace: &Workplace,
) -> Result<Vec<Result<DeviceLink<'a>, Missing<'a>>>, Error> {
    let options = &arguments.options;
    let way = match tool_name(tool) == LLVM_NAME {
        true => Way::Llvm,
        false => Way::Own,
    };
    let search = search(arguments);
    let mut libraries = host_libraries(arguments, inputs, way);
    if way == Way::Own {
        // What the program will be linked with.
        let machine = host_linker::machine(arguments, inputs.host);
        let places = Places::find(arguments, release, machine);
        libraries.extend(runtime_libraries(&[OffloadKind::OPENMP], arguments, &places).0);
    }
    let planner = Planner {
        arguments,
        way,
        cuda: search.cuda.first().map(PathBuf::as_path),
        search: &search,
        beside: clang_beside(tool, options),
        host_release: release,
        libraries,
        executable: arguments.output_path(),
        workplace,
    };
    let mut names = BTreeSet::new();
    let plans = images.groups.iter();
    plans
        .map(|group| planner.plan(images, group, &mut names))
        .collect()
}

/// The clang in the folder of this tool: of its file, or of the name that it was started by.
fn clang_beside(tool: &OsStr, options: &Options) -> Option<Llvm> {
    let file = env::current_exe().ok()?;
    let real = file
        .canonicalize()
        .ok()
        .filter(|_| !options.no_canonical_prefixes);
    let named = Some(PathBuf::from(tool)).filter(|tool| tool.components().count() > 1);
    [real, named].into_iter().flatten().find_map(|tool| {
        let clang = tool.parent()?.join("clang");
        clang.is_file().then(|| Llvm::of(clang))
    })
}

/// Runs the links; the images in the order of `links`.
pub(super) fn run(
    links: &[DeviceLink<'_>],
    workplace: &Workplace,
    jobs: Jobs,
    verbose: Option<Shown>,
    trace: &Trace,
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
    let results = pool.run(links.iter().collect(), |link| {
        link.run(workplace, verbose, trace)
    });
    let (mut images, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(image) => images.push(image),
            Err(error) => errors.push(error),
        }
    }
    match (errors.len(), errors.pop()) {
        (1, Some(error)) => Err(error),
        (_, Some(last)) => Err(Error::Several(errors.into_iter().chain([last]).collect())),
        (_, None) => Ok(images),
    }
}

impl DeviceLink<'_> {
    fn run(
        &self,
        workplace: &Workplace,
        verbose: Option<Shown>,
        trace: &Trace,
    ) -> Result<Vec<u8>, Error> {
        for (path, image) in &self.inputs {
            image.copy_to(path)?;
        }
        let libraries: Vec<_> = env::var_os("LD_LIBRARY_PATH")
            .map(|path| ("LD_LIBRARY_PATH", without_rustc(&path)))
            .into_iter()
            .chain(workplace.variables())
            .collect();
        let translations = self.translations.iter();
        let translations = translations.map(|(image, command)| (Some(*image), command));
        let commands = self.commands.iter().map(|command| (None, command));
        for (text, command) in translations.chain(commands) {
            if let Some(shown) = verbose {
                shown.print(command);
            }
            let _phase = trace.phase("Device link", command);
            let short = self.shorten(command)?;
            let said = short
                .as_ref()
                .unwrap_or(command)
                .run_with(&libraries)
                .map_err(|source| Error::DeviceLink {
                    target: match text {
                        Some(image) => format!("{}: {}", self.group.target(), image.from),
                        None => self.group.target(),
                    },
                    source,
                })?;
            if self.shows_output {
                eprint!("{}{}", said.stdout, said.stderr);
            }
        }
        let refused = |problem| Error::Image {
            target: self.group.target(),
            problem,
            command: self.commands.last().map(Command::to_string),
        };
        let image = fs::read(&self.output).map_err(|source| {
            let file = self.output.display();
            refused(format!("cannot read `{file}`: {source}").into())
        })?;
        let Group {
            triple, processor, ..
        } = self.group;
        linked_image::check(&image, self.kind, triple, processor).map_err(refused)?;
        if !self.wraps_spirv {
            return Ok(image);
        }
        spirv::openmp_image(&image, "", "").map_err(|error| Error::Input {
            from: self.output.display().to_string(),
            source: error.into(),
        })
    }
}

impl DeviceLink<'_> {
    /// The command with its arguments in a file, when they are more than the kernel may take.
    fn shorten(&self, command: &Command) -> Result<Option<Command>, Error> {
        let sizes = command
            .arguments()
            .iter()
            .map(|argument| argument.len() + 16);
        if sizes.sum::<usize>() < SHORT {
            return Ok(None);
        }
        let mut path = self.output.clone().into_os_string();
        path.push(".rsp");
        fs::write(&path, Quoting::Gnu.quote(command.arguments())).map_err(|source| {
            Error::io(
                format!("cannot write `{}`", Path::new(&path).display()),
                source,
            )
        })?;
        let mut file = OsString::from("@");
        file.push(path);
        Ok(Some(Command::new(command.program()).arg(file)))
    }
}

/// Bytes of arguments that every kernel takes, even as a single one.
const SHORT: usize = 100_000;
