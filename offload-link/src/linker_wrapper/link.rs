//! A host link with device code: the phases in their order.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use object::elf;
use offload_build::container::elf::Elf;
use offload_build::container::elf::Machine;
use offload_build::target::{ImageKind, OffloadKind};
use offload_build::toolchain::Command;

use super::arguments::{Arguments, Item, Position};
use super::device_link::{self, DeviceLink, Missing, Workplace};
use super::inputs::{FileKind, Inputs};
use super::options::Jobs;
use super::registration::{self, HostEntries, Linked};
use super::report::{Fate, Report, write_beside};
use super::runtime::{Places, runtime_libraries};
use super::select::{Images, Rules};
use super::temporaries::Temporaries;
use super::trace::Trace;
use super::{Error, host_linker, relocatable};

/// What the phases share.
pub(super) struct Link<'a> {
    pub arguments: Arguments,
    pub inputs: Inputs,
    pub linker: Command,
    /// As the tool was started.
    pub tool: &'a OsStr,
    pub trace: &'a Trace,
    /// What is added for the runtimes of the images.
    pub runtime: Vec<OsString>,
}

impl Link<'_> {
    /// Links; the result is the exit status of the host linker.
    pub(super) fn run(mut self) -> Result<u8, Error> {
        let mut report = Report::default();
        let result = self.link(&mut report);
        let options = &self.arguments.options;
        let request = options
            .report
            .clone()
            .or_else(|| std::env::var_os("OFFLOAD_LINK_REPORT"));
        let delivered = request.map_or(Ok(()), |request| report.deliver(&request));
        let traced = self.trace.write(options);
        let code = result?;
        delivered?;
        traced?;
        Ok(code)
    }

    fn link(&mut self, report: &mut Report) -> Result<u8, Error> {
        let files = Temporaries::default();
        let workplace = self.workplace(&files)?;
        if !self.arguments.options.override_images.is_empty() {
            let linked = self.override_images()?;
            let all: Vec<bool> = self.inputs.units().map(|_| true).collect();
            let entries = HostEntries::read(&self.inputs, &all, &self.arguments)?;
            return self.finish(entries, &linked, &files, &workplace);
        }
        let rules = self.rules()?;
        let images = Images::select(&self.inputs, &self.arguments, rules, report)?;
        let entries = HostEntries::read(&self.inputs, &images.linked_units, &self.arguments)?;
        self.drop_offload_binaries();

        let mut links = Vec::new();
        let mut reasons = Vec::new();
        let plans = device_link::plan(
            &images,
            &self.inputs,
            &self.arguments,
            entries.clang,
            self.tool,
            &workplace,
        )?;
        for plan in plans {
            match plan {
                Ok(link) => {
                    note_linked(report, &link);
                    links.push(link);
                }
                Err(missing) => {
                    // The one thing said on a link that succeeds: a target that was asked for is lost.
                    let reason = note_missing(report, &missing);
                    eprintln!("{}: warning: {reason}", self.tool.to_string_lossy());
                    reasons.push(reason);
                }
            }
        }
        if links.is_empty() && !reasons.is_empty() {
            return Err(Error::NothingLinked { reasons });
        }
        let left_out: Vec<String> = report
            .left_out()
            .map(|(line, reason)| format!("{}: {}: {reason}", line.from, line.target()))
            .collect();
        if self.arguments.options.dropped_image_is_error && !left_out.is_empty() {
            return Err(Error::Dropped { images: left_out });
        }

        // The runtime takes the first image that fits, so the order is part of the output.
        links.sort_by(|a, b| {
            let key =
                |link: &DeviceLink<'_>| (link.group.triple.clone(), link.group.processor.clone());
            key(b).cmp(&key(a))
        });
        let dry = self.arguments.options.dry_run;
        let made = if dry {
            for link in &links {
                for (path, image) in &link.inputs {
                    eprintln!("{}", image.extraction(path));
                }
                link.commands.iter().for_each(print);
            }
            vec![Vec::new(); links.len()]
        } else {
            let options = &self.arguments.options;
            let usual = match self.arguments.position {
                Position::Driver => Jobs::Jobserver,
                Position::Linker { .. } => Jobs::Count(1),
            };
            let _phase = self.trace.phase("Device links", links.len());
            device_link::run(&links, options.jobs.unwrap_or(usual), options.verbose)?
        };
        let mut linked = Vec::new();
        for (link, image) in links.iter().zip(&made) {
            let is_openmp =
                |index: &usize| images.images[*index].offload_kind == OffloadKind::OPENMP;
            if !link.group.members.iter().any(is_openmp) {
                let target = link.group.target();
                report.warnings.push(format!(
                    "the image for {target} is of no kind that a runtime knows: not registered"
                ));
                continue;
            }
            linked.push(Linked::new(
                link.kind,
                &link.group.triple,
                &link.group.processor,
                image,
            )?);
        }
        drop(made);
        if !linked.is_empty() {
            let places = Places::find(&self.arguments, entries.clang);
            let kinds = [OffloadKind::OPENMP];
            let (line, folders) = runtime_libraries(&kinds, &self.arguments, &places);
            self.runtime = line;
            report.warnings.extend(folders.iter().map(|folder| {
                let folder = folder.display();
                format!("the program must find the runtime's libraries in {folder} when it runs")
            }));
        }
        self.finish(entries, &linked, &files, &workplace)
    }

    fn finish(
        &self,
        entries: HostEntries,
        linked: &[Linked],
        files: &Temporaries,
        workplace: &Workplace,
    ) -> Result<u8, Error> {
        if self.arguments.options.emit_fatbin_only {
            return self.emit(linked);
        }
        self.host_link(entries, linked, files, workplace)
    }

    /// Under LLVM's name, its rules.
    fn rules(&self) -> Result<Rules, Error> {
        if super::tool_name(self.tool) != super::LLVM_NAME {
            return Ok(Rules::Ours);
        }
        let release = self.arguments.options.release(self.tool)?;
        Ok(Rules::Llvm(release))
    }

    /// Images that were linked before: `<kind>=<file>`.
    fn override_images(&self) -> Result<Vec<Linked>, Error> {
        let values = self.arguments.options.override_images.iter();
        let images = values.map(|value| {
            let text = value.to_string_lossy();
            let (kind, path) = text.split_once('=').ok_or_else(|| {
                Error::Option(format!("--override-image: `{text}` is not `<kind>=<file>`"))
            })?;
            if kind != OffloadKind::OPENMP.name() {
                return Err(Error::Option(format!(
                    "--override-image: only `openmp` images are supported yet, not `{kind}`"
                )));
            }
            let invalid = |source: Box<dyn std::error::Error + Send + Sync>| Error::Input {
                from: path.to_owned(),
                source,
            };
            let bytes = fs::read(path).map_err(|source| invalid(source.into()))?;
            let elf = Elf::parse(&*bytes, 0..bytes.len() as u64)
                .map_err(|source| invalid(source.into()))?;
            let known = MACHINES.iter().find(|(machine, _)| *machine == elf.machine);
            let architecture = known.map_or("unknown", |(_, architecture)| architecture);
            Linked::new(ImageKind::OBJECT, architecture, "", &bytes)
        });
        images.collect()
    }

    fn workplace(&self, files: &Temporaries) -> Result<Workplace, Error> {
        let options = &self.arguments.options;
        let output = self.arguments.output_path();
        let name = output.file_name().unwrap_or(OsStr::new("a.out"));
        Ok(Workplace {
            folder: match (options.save_temps, options.dry_run) {
                (true, _) => output.parent().unwrap_or(Path::new("")).to_owned(),
                (false, true) => std::env::temp_dir(),
                (false, false) => files.folder()?.to_owned(),
            },
            prefix: format!("{}.", name.to_string_lossy()),
        })
    }

    /// No host linker reads these.
    fn drop_offload_binaries(&mut self) {
        let binaries = self
            .inputs
            .files
            .iter()
            .filter(|file| file.kind == FileKind::OffloadBinary);
        for file in binaries {
            if let Item::File { token, .. } = self.arguments.items[file.item] {
                self.arguments.drop_input(token);
            }
        }
    }

    fn emit(&self, linked: &[Linked]) -> Result<u8, Error> {
        match linked {
            _ if self.arguments.options.dry_run => Ok(0),
            [] => Ok(0),
            [only] => write_beside(&self.arguments.output_path(), &only.binary).map(|()| 0),
            _ => Err(Error::Option(
                "Expected a single bundled image for direct fat binary output".into(),
            )),
        }
    }

    fn host_link(
        &self,
        mut entries: HostEntries,
        linked: &[Linked],
        files: &Temporaries,
        workplace: &Workplace,
    ) -> Result<u8, Error> {
        let arguments = &self.arguments;
        let host = self.inputs.host.unwrap_or(Machine::X86_64);
        let mut flags = Vec::new();
        if !linked.is_empty() && !arguments.relocatable && !arguments.options.dry_run {
            flags = self.keep_entries();
        }
        flags.extend(self.runtime.iter().cloned());
        // A second time only when a relocatable link took other entries than was foreseen.
        for _ in 0..2 {
            let mut objects = Vec::new();
            if !linked.is_empty() {
                let relocatable = arguments.relocatable;
                for (section, object) in registration::objects(&entries, linked, relocatable, host)?
                {
                    let generation = match entries.tables.len() {
                        1 => String::new(),
                        _ => format!(".{section}"),
                    };
                    let path = workplace.file(&format!("openmp{generation}.image.wrapper.o"));
                    if arguments.options.dry_run {
                        eprintln!("# registration object {}", path.display());
                    } else {
                        fs::write(&path, object).map_err(|source| {
                            Error::io(format!("cannot write `{}`", path.display()), source)
                        })?;
                    }
                    objects.push(path);
                }
            }
            let line =
                arguments.render(&objects, &flags, |content| files.response_file(content))?;
            let command = self.linker.clone().args(line);
            if arguments.options.dry_run {
                print(&command);
                return Ok(0);
            }
            if arguments.options.verbose {
                print(&command);
            }
            let phase = self.trace.phase("Host link", &command);
            let status = host_linker::run(&command, arguments.quoting(), files)?;
            drop(phase);
            let code = host_linker::code(status);
            if code != 0 || !arguments.relocatable || linked.is_empty() {
                return Ok(code);
            }
            if relocatable::finish(&arguments.output_path(), &mut entries.tables)? {
                return Ok(0);
            }
        }
        Err(Error::Option(format!(
            "{}: the offload entries of a relocatable link could not be counted",
            arguments.output_path().display()
        )))
    }

    /// lld collects sections that only `__start_` and `__stop_` name, unless told otherwise.
    fn keep_entries(&self) -> Vec<OsString> {
        if !host_linker::is_lld(&self.arguments, &self.linker) {
            return Vec::new();
        }
        match self.arguments.position {
            Position::Driver => vec!["-Wl,-z,nostart-stop-gc".into()],
            Position::Linker { .. } => vec!["-z".into(), "nostart-stop-gc".into()],
        }
    }
}

/// `e_machine` of linked images, and what a triple calls it.
const MACHINES: [(u16, &str); 4] = [
    (elf::EM_X86_64.0, "x86_64"),
    (elf::EM_AARCH64.0, "aarch64"),
    (elf::EM_AMDGPU.0, "amdgcn"),
    (elf::EM_CUDA.0, "nvptx64"),
];

fn print(command: &Command) {
    eprintln!("{command}");
}

fn note_linked(report: &mut Report, link: &DeviceLink<'_>) {
    for index in &link.group.members {
        if let Fate::Linked(targets) = &mut report.lines[*index].fate {
            targets.push(link.group.target());
        }
    }
}

/// Members that are linked for another target keep that as their fate.
fn note_missing(report: &mut Report, missing: &Missing<'_>) -> String {
    for index in &missing.group.members {
        let line = &mut report.lines[*index];
        if line.fate == Fate::Linked(Vec::new()) {
            line.fate = Fate::LeftOut {
                reason: missing.reason.clone(),
            };
        }
    }
    let text = format!("{}: left out: {}", missing.group.target(), missing.reason);
    report.warnings.push(text.clone());
    text
}
