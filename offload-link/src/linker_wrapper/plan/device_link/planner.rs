//! Plans one device link: its commands, with the programs that were found.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use offload_build::tools::{
    Command, DeviceLinker, DeviceTools, LinkJob, LinkOptions, NotFound, PlannedLink, Way,
};
use offload_formats::names::{LlvmRelease, OffloadKind};

use super::host_libraries::host_libraries;
use super::link::{DeviceLink, Missing};
use crate::linker_wrapper::choose::link_jobs::GroupJob;
use crate::linker_wrapper::inputs::file::Inputs;
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::installed::runtimes::FoundRuntime;
use crate::linker_wrapper::line::arguments::Arguments;
use crate::linker_wrapper::line::values::{builtin_bitcode, for_target};
use crate::linker_wrapper::plan::runtime;

/// Commands that compile the texts, and the link.
type Planned<'a> = (Vec<(&'a Image, Command)>, PlannedLink);

/// Settings that all plans of one host link share.
pub(crate) struct Planner<'a> {
    arguments: &'a Arguments,
    way: Way,
    /// Root of the CUDA tree.
    cuda: Option<&'a Path>,
    /// Libraries of the host program, for the images of CPUs.
    libraries: Vec<OsString>,
    executable: PathBuf,
}

impl<'a> Planner<'a> {
    /// Returns the settings for a host program that will be linked with `runtimes`.
    pub(crate) fn new(
        arguments: &'a Arguments,
        inputs: &Inputs,
        way: Way,
        cuda: Option<&'a Path>,
        runtimes: &[FoundRuntime],
    ) -> Self {
        let mut libraries = host_libraries(arguments, inputs, way);
        libraries.extend(runtime::libraries(runtimes));
        Self {
            arguments,
            way,
            cuda,
            libraries,
            executable: arguments.output_path(),
        }
    }
}

impl Planner<'_> {
    /// Adds a library, as an option, for the images of CPUs.
    pub(crate) fn add_library(&mut self, option: Option<&str>) {
        self.libraries.extend(option.map(OsString::from));
    }

    /// Checks that a link with `tools` has every program that it needs.
    ///
    /// # Errors
    ///
    /// Fails with the program that is missing.
    pub(crate) fn check(&self, job: &GroupJob<'_>, tools: &DeviceTools) -> Result<(), NotFound> {
        self.commands(job, tools).map(drop)
    }

    /// Returns the plan of a link with the programs that were found for it, or the reason for its absence.
    pub(crate) fn plan<'a>(
        &self,
        job: GroupJob<'a>,
        tools: Result<DeviceTools, NotFound>,
    ) -> Result<DeviceLink<'a>, Missing<'a>> {
        let planned = tools.and_then(|tools| self.commands(&job, &tools));
        let (translations, planned) = planned.map_err(|missing| Missing {
            group: job.group,
            reason: missing.to_string(),
        })?;
        let LinkJob { triple, kinds, .. } = &job.job;
        let wraps_spirv = triple.arch() == "spirv64"
            && triple.vendor() == "intel"
            && kinds.contains(&OffloadKind::OPENMP);
        let copies = job.libraries.iter();
        let copies = copies.map(|(library, copy)| Command::new("cp").arg(library).arg(copy));
        Ok(DeviceLink {
            group: job.group,
            inputs: job.files,
            translations,
            commands: copies.chain(planned.commands).collect(),
            output: planned.output,
            kind: planned.kind,
            shows_output: self.arguments.options.verbose || self.way == Way::Llvm,
            wraps_spirv,
        })
    }

    /// Returns the commands of a link with `tools`.
    fn commands<'a>(
        &self,
        job: &GroupJob<'a>,
        tools: &DeviceTools,
    ) -> Result<Planned<'a>, NotFound> {
        let options = &self.arguments.options;
        let release = options
            .named_llvm()
            .unwrap_or_else(|| match tools.release() {
                Some(..=19) => LlvmRelease::V19,
                Some(23..) => LlvmRelease::Main,
                _ => LlvmRelease::V22,
            });
        let triple = &job.group.triple;
        let linker_args = for_target(&options.device_linker, triple, release);
        let compiler_args = for_target(&options.device_compiler, triple, release);
        let builtin_bitcode = builtin_bitcode(&options.builtin_bitcode, triple);
        let by_name = |linker: &PathBuf| linker.to_string_lossy().ends_with("lld");
        let linker = DeviceLinker {
            tools,
            cc: Path::new("cc"),
            way: self.way,
            opt_level: "2",
            host_libraries: &self.libraries,
            compiler_args: &compiler_args,
            linker_args: &linker_args,
            options: LinkOptions {
                has_device_libraries: false,
                has_optimized_bitcode: false,
                plugin_options: &options.plugin_options,
                // Our rules pass each option once.
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
        let translations = job.texts.iter().map(|text| {
            let (triple, processor) = (&job.job.triple, text.processor);
            let command = linker.translate(text.language, &text.path, triple, processor);
            command.map(|command| (text.image, command))
        });
        let translations = translations.collect::<Result<_, _>>()?;
        Ok((translations, linker.plan(&job.job, &job.output)?))
    }
}
