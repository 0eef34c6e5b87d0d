//! The device links of one host link: planned, then run.

mod content;
mod host_libraries;
mod values;

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use offload_build::format::bitcode;
use offload_build::link::{
    DeviceInput, DeviceLinker, LinkJob, LinkOptions, PlannedLink, SourceText, Way, spirv,
};
use offload_build::target::{ImageKind, LlvmRelease, OffloadKind, TargetId, TargetIdError, Triple};
use offload_build::toolchain::command::without_rustc;
use offload_build::toolchain::jobserver;
use offload_build::toolchain::{Command, Llvm, NotFound, Search};

use super::arguments::Arguments;
use super::groups::Group;
use super::images::Image;
use super::inputs::Inputs;
use super::linked_image;
use super::options::{Jobs, Options};
use super::select::Images;
use super::shown::Shown;
use super::trace::Trace;
use super::{Error, LLVM_NAME, tool_name};
use crate::response_file::Quoting;
use content::{Content, RuntimeUse};
use host_libraries::host_libraries;
use values::{for_target, libraries_of, split};

/// One device link: the files it reads, the commands, and the image they make.
#[derive(Debug)]
pub(super) struct DeviceLink<'a> {
    pub group: &'a Group,
    /// Each written from an image of the inputs before the commands run.
    pub inputs: Vec<(PathBuf, &'a Image)>,
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
}

impl Workplace {
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
    let planner = Planner {
        arguments,
        way,
        cuda: search.cuda.first().map(PathBuf::as_path),
        search: &search,
        beside: clang_beside(tool, options),
        host_release: release,
        libraries: host_libraries(arguments, inputs, way),
        executable: arguments.output_path(),
        workplace,
    };
    let mut names = BTreeSet::new();
    let plans = images.groups.iter();
    plans
        .map(|group| planner.plan(images, group, &mut names))
        .collect()
}

/// What the plans of one host link have in common.
struct Planner<'a> {
    arguments: &'a Arguments,
    way: Way,
    cuda: Option<&'a Path>,
    search: &'a Search,
    beside: Option<Llvm>,
    host_release: Option<u32>,
    libraries: Vec<OsString>,
    executable: PathBuf,
    workplace: &'a Workplace,
}

impl Planner<'_> {
    fn plan<'a>(
        &self,
        images: &'a Images,
        group: &'a Group,
        names: &mut BTreeSet<String>,
    ) -> Result<Result<DeviceLink<'a>, Missing<'a>>, Error> {
        let options = &self.arguments.options;
        let from = group
            .members
            .first()
            .map(|index| &images.images[*index].from);
        let triple = Triple::parse(&group.triple).map_err(|error| Error::Input {
            from: from.cloned().unwrap_or_default(),
            source: format!("triple `{}`: {error}", group.triple).into(),
        })?;
        // What no option and no entry ID can say.
        if let Err(error @ TargetIdError::Character { .. }) = TargetId::parse(group.processor()) {
            return Err(Error::Input {
                from: from.cloned().unwrap_or_default(),
                source: format!("processor {:?}: {error}", group.processor).into(),
            });
        }
        let mut made_by = None;
        let mut runtime = RuntimeUse::default();
        let (mut files, mut inputs, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for index in &group.members {
            let image = &images.images[*index];
            let bytes = image.bytes()?;
            let content = Content::of(bytes, self.way);
            let path = self
                .workplace
                .file(&file_name(image, group, content.extension(), names));
            if content == Content::Bitcode {
                made_by = made_by.max(
                    bitcode::release(bytes, 0..bytes.len() as u64)
                        .ok()
                        .flatten(),
                );
                runtime.add(bytes);
            }
            if let Content::Source(language) = content {
                if language == SourceText::Ir {
                    runtime.add_text(bytes);
                }
                let processor = match image.processor.as_str() {
                    "" | "generic" => group.processor(),
                    own => own,
                };
                texts.push((language, path.clone(), processor));
            }
            inputs.push(content.input(path.clone()));
            files.push((path, image));
        }
        let mut copies = Vec::new();
        for (index, library) in libraries_of(&options.bitcode_libraries, group).enumerate() {
            // By another name clang would compile it instead of giving it to the linker.
            let path = self
                .workplace
                .file(&format!("{}.library-{index}.o", group.label(self.way)));
            copies.push(Command::new("cp").arg(library).arg(&path));
            inputs.push(DeviceInput::Bitcode(path));
        }
        let job = LinkJob {
            triple,
            processor: group.processor().to_owned(),
            kinds: group.kinds.clone(),
            uses_openmp_runtime: runtime.is_missing(),
            inputs,
        };
        let label = group.label(self.way);
        let numbered = (1..).map(|count| format!("{label}.{count}.img"));
        let name = std::iter::once(format!("{label}.img"))
            .chain(numbered)
            .find(|name| names.insert(name.clone()));
        let output = self.workplace.file(&name.unwrap_or_default());
        let wraps_spirv = job.triple.arch() == "spirv64"
            && job.triple.vendor() == "intel"
            && job.kinds.contains(&OffloadKind::OPENMP);
        let planned = self
            .clang(made_by)
            .and_then(|llvm| self.linker(&job, &texts, &output, group, llvm.as_ref()));
        Ok(match planned {
            Ok(planned) => Ok(DeviceLink {
                group,
                inputs: files,
                commands: copies.into_iter().chain(planned.commands).collect(),
                output: planned.output,
                kind: planned.kind,
                shows_output: options.verbose || self.way == Way::Llvm,
                wraps_spirv,
            }),
            Err(missing) => Err(Missing {
                group,
                reason: missing.to_string(),
            }),
        })
    }

    fn linker(
        &self,
        job: &LinkJob,
        texts: &[(SourceText, PathBuf, &str)],
        output: &Path,
        group: &Group,
        llvm: Option<&Llvm>,
    ) -> Result<PlannedLink, NotFound> {
        let options = &self.arguments.options;
        let release = options
            .llvm
            .unwrap_or_else(|| match llvm.and_then(Llvm::release) {
                Some(..=19) => LlvmRelease::V19,
                Some(23..) => LlvmRelease::Main,
                _ => LlvmRelease::V22,
            });
        let linker_args = for_target(&options.device_linker, &group.triple, release);
        let compiler_args = for_target(&options.device_compiler, &group.triple, release);
        let plugin_options = [&options.mllvm[..], &options.offload_opt].concat();
        let builtin_bitcode: Vec<PathBuf> = options
            .builtin_bitcode
            .iter()
            .filter_map(|value| split(value, '='))
            .filter(|(triple, _)| *triple == *group.triple)
            .map(|(_, file)| file.into())
            .collect();
        let by_name = |linker: &PathBuf| linker.to_string_lossy().ends_with("lld");
        let linker = DeviceLinker {
            llvm,
            search: self.search,
            cc: Path::new("cc"),
            way: self.way,
            opt_level: "2",
            host_libraries: &self.libraries,
            compiler_args: &compiler_args,
            linker_args: &linker_args,
            options: LinkOptions {
                plugin_options: &plugin_options,
                // Our own way says each option once.
                mllvm: match self.way {
                    Way::Llvm => &options.mllvm,
                    Way::Own => &[],
                },
                save_temps: options.save_temps,
                embed_bitcode: options.embed_bitcode,
                no_lto: options.no_lto,
                verbose: options.verbose,
                builtin_bitcode: &builtin_bitcode,
                cuda: self.cuda,
                executable: match self.way == Way::Llvm || options.save_temps {
                    true => self.executable.as_os_str(),
                    false => OsStr::new(""),
                },
                host_is_lld: options.linker.as_ref().is_some_and(by_name),
                dry_run: options.dry_run,
            },
        };
        let translations = texts.iter().map(|(language, path, processor)| {
            linker.translate(*language, path, &job.triple, processor)
        });
        let mut commands = translations.collect::<Result<Vec<_>, _>>()?;
        let planned = linker.plan(job, output)?;
        commands.extend(planned.commands);
        Ok(PlannedLink {
            commands,
            ..planned
        })
    }

    /// The clang for bitcode that `made_by` wrote: of that release or newer. Without bitcode the release of the
    /// host objects' compiler is as good as any.
    fn clang(&self, made_by: Option<u32>) -> Result<Option<Llvm>, NotFound> {
        let reads = |llvm: &Llvm| match (llvm.release(), made_by) {
            (Some(release), Some(made_by)) => release >= made_by,
            _ => true,
        };
        let beside = self.beside.clone().filter(reads);
        let same = || self.search.clang_of(made_by.or(self.host_release)?);
        let plain = || {
            let plain = self.search.program(&["clang"]).map(Llvm::of);
            plain.filter(|llvm| self.way == Way::Llvm && reads(llvm))
        };
        // Beside LLVM's tool is the clang that belongs to it.
        let chosen = match self.way {
            Way::Llvm => beside.or_else(same),
            Way::Own => same().or(beside),
        };
        if let Some(llvm) = chosen.or_else(plain) {
            return Ok(Some(llvm));
        }
        match self.search.clang_from(made_by.unwrap_or_default()) {
            Ok(llvm) => Ok(Some(llvm)),
            Err(older) => too_old(&older, made_by),
        }
    }
}

/// Nothing is no error: objects for a CPU need no clang.
fn too_old(older: &[Llvm], made_by: Option<u32>) -> Result<Option<Llvm>, NotFound> {
    let (Some(made_by), false) = (made_by, older.is_empty()) else {
        return Ok(None);
    };
    let found = older.iter().map(|llvm| {
        let release = llvm.release().unwrap_or_default();
        format!("{} is of LLVM {release}", llvm.clang.display())
    });
    Err(NotFound::new(
        &format!("clang-{made_by}"),
        found.collect(),
        format!(
            "the device code was compiled by LLVM {made_by}, which older releases do not read: install that or a newer \
             one (Debian: `clang-{made_by} lld-{made_by} llvm-{made_by}`)"
        ),
    ))
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
    let results = pool.run(links.iter().collect(), |link| link.run(verbose, trace));
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
    fn run(&self, verbose: Option<Shown>, trace: &Trace) -> Result<Vec<u8>, Error> {
        for (path, image) in &self.inputs {
            fs::write(path, image.bytes()?).map_err(|source| {
                Error::io(format!("cannot write `{}`", path.display()), source)
            })?;
        }
        let libraries: Vec<_> = env::var_os("LD_LIBRARY_PATH")
            .map(|path| ("LD_LIBRARY_PATH", without_rustc(&path)))
            .into_iter()
            .collect();
        for command in &self.commands {
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
                    target: self.group.target(),
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

/// `<stem of the host file>-<triple>-<processor>.o`, and a number when that is taken.
fn file_name(
    image: &Image,
    group: &Group,
    extension: &str,
    taken: &mut BTreeSet<String>,
) -> String {
    let name = image.from.trim_end_matches(')');
    let name = name.rsplit(['/', '(']).next().unwrap_or(name);
    let stem = Path::new(name).file_stem().unwrap_or_default();
    let label = format!("{}-{}", group.triple, group.processor);
    let base = format!("{}-{label}", stem.to_string_lossy());
    let numbered = (1..).map(|count| format!("{base}-{count}.{extension}"));
    let mut names = std::iter::once(format!("{base}.{extension}")).chain(numbered);
    names
        .find(|name| taken.insert(name.clone()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_which_release_reads_the_bitcode() {
        let old = Llvm {
            clang: "/usr/lib/llvm-19/bin/clang-19".into(),
            prefix: "/usr/lib/llvm-19".into(),
        };
        assert_eq!(
            too_old(&[old], Some(22)).unwrap_err().to_string(),
            "`clang-22` not found (searched: /usr/lib/llvm-19/bin/clang-19 is of LLVM 19)\n\
             hint: the device code was compiled by LLVM 22, which older releases do not read: install that or a newer \
             one (Debian: `clang-22 lld-22 llvm-22`)"
        );
        assert_eq!(too_old(&[], Some(22)), Ok(None));
    }
}
