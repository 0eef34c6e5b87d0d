//! Runs a host link with device code: all phases in order.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use offload_build::tools as device;
use offload_formats::container::cubin;
use offload_formats::container::elf::Machine;
use offload_formats::container::large::ImagePlacement;
use offload_formats::escape::terminal;
use offload_formats::format::offload_binary::BinaryEntry;
use offload_formats::format::pieces;
use offload_formats::names::{OffloadKind, Triple};

use crate::environment::variable;
use crate::linker_wrapper::actions::Actions;
use crate::linker_wrapper::choose::host_entries::HostEntries;
use crate::linker_wrapper::choose::link_jobs::{GroupJob, link_jobs};
use crate::linker_wrapper::choose::select::Images;
use crate::linker_wrapper::error::{self, LinkError};
use crate::linker_wrapper::inputs::file::{InputFile, Inputs};
use crate::linker_wrapper::inputs::{host_archive, host_objects};
use crate::linker_wrapper::installed::device_programs::DevicePrograms;
use crate::linker_wrapper::installed::host_linker::HostLinker;
use crate::linker_wrapper::installed::runtimes::{self, HostProgram};
use crate::linker_wrapper::installed::{host_compiler, programs, rpath_folders};
use crate::linker_wrapper::line::arguments::{Arguments, Position};
use crate::linker_wrapper::line::elf_linker::ElfLinker;
use crate::linker_wrapper::line::host;
use crate::linker_wrapper::line::options::Jobs;
use crate::linker_wrapper::plan::containers::{Container, ContainerContent, Product};
use crate::linker_wrapper::plan::device_link::{DeviceLink, Missing, Planner};
use crate::linker_wrapper::plan::from_c::CSource;
use crate::linker_wrapper::plan::registration::{self, Registration, Way};
use crate::linker_wrapper::plan::{self, placement};
use crate::linker_wrapper::report::fates::{Fate, Report};
use crate::linker_wrapper::report::shown::Shown;
use crate::linker_wrapper::report::trace::Trace;
use crate::linker_wrapper::run::dependency_file::HiddenInputs;
use crate::linker_wrapper::run::packing::{self, Packing};
use crate::linker_wrapper::run::{device_links, host_linker, override_image, relocatable, unseen};
use crate::linker_wrapper::temporaries::Temporaries;
use crate::linker_wrapper::tool::{LLVM_NAME, Rules, tool_name};
use crate::linker_wrapper::workplace::Workplace;
use crate::{files, say};

/// Values that the phases share.
pub(crate) struct Link<'a> {
    pub arguments: Arguments,
    pub inputs: Inputs,
    pub linker: HostLinker,
    /// Name under which the tool was started.
    pub tool: &'a OsStr,
    pub trace: &'a Trace,
    pub actions: Actions,
}

impl Link<'_> {
    /// Links, and returns the exit status of the host linker.
    pub(crate) fn run(mut self) -> Result<u8, LinkError> {
        let mut report = Report::default();
        let result = self.link(&mut report);
        let options = &self.arguments.options;
        let request = options
            .report
            .clone()
            .or_else(|| variable("OFFLOAD_LINK_REPORT"));
        let delivered = request.map_or(Ok(()), |request| report.deliver(&request));
        let traced = self.trace.write(&self.arguments);
        let code = result?;
        delivered?;
        traced?;
        Ok(code)
    }

    fn link(&mut self, report: &mut Report) -> Result<u8, LinkError> {
        let files = Temporaries::default();
        let workplace = self.workplace(&files)?;
        let rules = self.rules()?;
        if !self.arguments.options.override_images.is_empty() {
            let products = override_image::products(&self.arguments.options.override_images)?;
            let all: Vec<bool> = self.inputs.units().map(|_| true).collect();
            let entries = HostEntries::read(&self.inputs, &all, &self.arguments)?;
            return self.finish(products, entries, rules, report, &files, &workplace);
        }
        self.make_host_parts(&workplace, report)?;
        let mut images =
            Images::select(&self.inputs, &self.arguments, rules, &self.linker, report)?;
        if rules == Rules::Ours {
            images.part_releases()?;
        }
        let mut entries = HostEntries::read(&self.inputs, &images.linked_units, &self.arguments)?;
        images.settle_hip(&self.inputs, &mut entries.hip, report);
        images.add_device_libraries(&self.inputs, &self.arguments, report)?;
        self.take_out_containers()?;

        let links = self.plan(&images, entries.clang, &workplace, report)?;
        let made = self.make(&links, &workplace, rules);
        let made = made.map_err(|error| error.with_missing(&self.inputs.missing))?;
        let mut products = Vec::new();
        for (link, file) in links.into_iter().zip(made) {
            if link.group.kinds.is_empty() {
                report.warnings.push(format!(
                    "the image for {} has a kind without a runtime: not registered",
                    link.group.target()
                ));
                continue;
            }
            products.push(Product {
                triple: link.group.triple.clone(),
                processor: Some(rules.packed_processor(&link.group.processor).to_owned()),
                kinds: link.group.kinds.clone(),
                image_kind: link.kind,
                size: self.size(&file)?,
                file,
            });
        }
        self.warn_of_ignored(&products, entries.clang, report)?;
        self.finish(products, entries, rules, report, &files, &workplace)
    }

    /// Warns of images that libomptarget of `clang`'s release does not load.
    fn warn_of_ignored(
        &self,
        products: &[Product],
        clang: Option<u32>,
        report: &mut Report,
    ) -> Result<(), LinkError> {
        // Of LLVM 21 the later versions load them, and host objects do not tell the version.
        let Some(release) = clang.filter(|release| *release < 21 && !self.actions.are_dry()) else {
            return Ok(());
        };
        let mut targets = Vec::new();
        for product in products {
            if product.kinds.contains(&OffloadKind::OPENMP) && product.triple.starts_with("nvptx") {
                let path = &product.file;
                let image = files::Reading::open(path).map_err(|source| {
                    LinkError::io(format!("cannot read `{}`", path.display()), source)
                })?;
                if cubin::is_ignored_by_libomptarget(&image, 0, &[release]) {
                    targets.push(product.processor());
                }
            }
        }
        if let Some(text) = device::warning_of_ignored(&targets, release) {
            say::warning(&self.tool.to_string_lossy(), &text);
            report.warnings.push(text);
        }
        Ok(())
    }

    /// Plans the device links that this machine can run, and reports targets whose tools are missing.
    fn plan<'images>(
        &self,
        images: &'images Images,
        clang: Option<u32>,
        workplace: &Workplace,
        report: &mut Report,
    ) -> Result<Vec<DeviceLink<'images>>, LinkError> {
        let arguments = &self.arguments;
        let way = match self.is_llvm() {
            true => device::Way::Llvm,
            false => device::Way::Own,
        };
        let jobs = link_jobs(images, arguments, way, workplace)?;
        let programs = DevicePrograms::new(arguments, self.tool, way, clang);
        // Libraries that the program will be linked with.
        let runtimes = match way {
            device::Way::Llvm => Vec::new(),
            device::Way::Own => runtimes::find(&[OffloadKind::OPENMP], self.program(clang)),
        };
        let mut planner = Planner::new(arguments, &self.inputs, way, programs.cuda(), &runtimes);
        planner.add_library(arguments.cpp_library(self.linker.command.program().as_os_str()));
        let find = |job: &GroupJob<'_>| {
            programs.find(&job.job, job.made_by, |tools| planner.check(job, tools))
        };
        let found: Vec<_> = jobs.iter().map(find).collect();
        let mut links = Vec::new();
        let mut reasons = Vec::new();
        let if_dropped = arguments.error_if_dropped();
        // As LLVM's wrapper, which only shows commands of tools that are missing.
        let needs_all = self.is_llvm() && !self.actions.are_dry();
        for (job, tools) in jobs.into_iter().zip(found) {
            match planner.plan(job, tools) {
                Ok(link) => {
                    note_linked(report, &link);
                    links.push(link);
                }
                Err(missing) => {
                    // The only message of a successful link: a requested target is lost.
                    let reason = note_missing(report, &missing);
                    if !needs_all && if_dropped.is_none() {
                        say::warning(&self.tool.to_string_lossy(), &reason);
                    }
                    reasons.push(reason);
                }
            }
        }
        if !reasons.is_empty() && (links.is_empty() || needs_all) {
            let title = match links.is_empty() {
                true => error::NONE_LINKED,
                false => error::NOT_ALL_LINKED,
            };
            return Err(LinkError::NotLinked { title, reasons });
        }
        match if_dropped {
            Some(title) if !reasons.is_empty() => {
                let images = report.left_out();
                let images = images
                    .map(|(line, reason)| format!("{}: {}: {reason}", line.from, line.target()));
                let images: Vec<String> = images.collect();
                // Images that are linked for another target are not among them.
                let reasons = if images.is_empty() { reasons } else { images };
                Err(LinkError::NotLinked { title, reasons })
            }
            _ => Ok(links),
        }
    }

    /// Returns the size of a linked image in bytes; 0 in a dry run.
    fn size(&self, image: &Path) -> Result<u64, LinkError> {
        if self.actions.are_dry() {
            return Ok(0);
        }
        let size = std::fs::metadata(image).map(|data| data.len());
        size.map_err(|source| LinkError::io(format!("cannot read `{}`", image.display()), source))
    }

    /// Runs or shows the device links, and returns the files of the images in their order.
    fn make(
        &self,
        links: &[DeviceLink<'_>],
        workplace: &Workplace,
        rules: Rules,
    ) -> Result<Vec<PathBuf>, LinkError> {
        let options = &self.arguments.options;
        if self.actions.are_dry() {
            for link in links {
                // LLVM shows these commands on its main branch.
                if rules.writes_for_main() {
                    for (path, image) in &link.inputs {
                        self.actions.show(&image.extraction(path));
                    }
                }
                let translations = link.translations.iter().map(|(_, command)| command);
                translations
                    .chain(&link.commands)
                    .for_each(|command| self.actions.show(command));
            }
            return Ok(links.iter().map(|link| link.output.clone()).collect());
        }
        let usual = match self.arguments.position {
            Position::Driver => Jobs::Jobserver,
            Position::Linker { .. } => Jobs::Count(1),
        };
        let _phase = self.trace.phase("Device links", links.len());
        let jobs = options.jobs.unwrap_or(usual);
        device_links::run(links, workplace, jobs, self.actions, self.trace)
    }

    /// Finishes the link after the device links.
    fn finish(
        &self,
        products: Vec<Product>,
        mut entries: HostEntries,
        rules: Rules,
        report: &mut Report,
        files: &Temporaries,
        workplace: &Workplace,
    ) -> Result<u8, LinkError> {
        // Every input has been read.
        files::check()?;
        let options = &self.arguments.options;
        let packing = Packing {
            tool: self.tool,
            rules,
            search: &programs::search(&self.arguments),
            workplace,
            compress: options.compress.then_some(options.compression_level),
            actions: self.actions,
            keep: options.save_temps,
        };
        let containers = packing.pack(&products, report)?;
        if options.emit_fatbin_only {
            return self.emit(&containers);
        }
        let kinds: Vec<OffloadKind> = containers.iter().map(|container| container.kind).collect();
        entries.complete(&kinds, &self.arguments);
        let program = self.program(entries.clang);
        let runtimes = runtimes::find(&kinds, program);
        let mut runtime = plan::runtime::libraries(&runtimes);
        if !self.is_llvm() {
            let added = runtimes.into_iter().filter_map(|runtime| runtime.folder);
            let added: Vec<PathBuf> = added.collect();
            let rpaths = rpath_folders::find(&kinds, program.arguments, program.machine, &added);
            runtime.extend(plan::runtime::rpaths(&rpaths, self.arguments.position));
            report.notes.extend(rpaths.iter().map(|folder| {
                let folder = terminal(&**folder);
                format!("the program gets an rpath to {folder}, where the runtime's libraries are")
            }));
        }
        let code = self.host_link(&mut entries, &containers, &runtime, files, workplace)?;
        if code == 0 && !self.actions.are_dry() && !self.is_llvm() {
            let warning = unseen::check(&self.arguments, &self.inputs, &entries, self.tool)?;
            report.warnings.extend(warning);
        }
        Ok(code)
    }

    /// Tells whether the tool was started under LLVM's name.
    fn is_llvm(&self) -> bool {
        tool_name(self.tool) == LLVM_NAME
    }

    /// Returns the program; `release` is the release of clang that made the host objects.
    fn program(&self, release: Option<u32>) -> HostProgram<'_> {
        HostProgram {
            arguments: &self.arguments,
            release,
            machine: host::machine(&self.arguments, self.inputs.host),
        }
    }

    /// Returns the rules: LLVM's under LLVM's name.
    fn rules(&self) -> Result<Rules, LinkError> {
        if !self.is_llvm() {
            return Ok(Rules::Ours);
        }
        let of_inputs = || host_objects::release(&self.inputs);
        let release = self.arguments.options.release(self.tool, of_inputs)?;
        Ok(Rules::Llvm(release))
    }

    fn workplace(&self, files: &Temporaries) -> Result<Workplace, LinkError> {
        let options = &self.arguments.options;
        let output = self.arguments.output_path();
        let name = output.file_name().unwrap_or(OsStr::new("a.out"));
        Ok(Workplace {
            folder: match (options.save_temps, self.actions.are_dry()) {
                (true, _) => output.parent().unwrap_or(Path::new("")).to_owned(),
                (false, true) => std::env::temp_dir(),
                (false, false) => files.folder()?.to_owned(),
            },
            prefix: format!("{}.", name.to_string_lossy()),
            temporary: match self.actions.are_dry() {
                true => None,
                false => Some(files.folder()?.to_owned()),
            },
        })
    }

    fn make_host_parts(
        &mut self,
        workplace: &Workplace,
        report: &mut Report,
    ) -> Result<(), LinkError> {
        let maker = host_archive::Maker {
            arguments: &self.arguments,
            workplace,
            actions: self.actions,
        };
        self.inputs.make_host_parts(&maker, report)
    }

    /// Removes inputs that host linkers cannot read: offload binaries, bundles, and archives of them. Replaces inputs
    /// that have host parts by the files with these parts.
    fn take_out_containers(&mut self) -> Result<(), LinkError> {
        for file in &self.inputs.files {
            if !file.is_for_devices() && file.in_place.is_none() {
                continue;
            }
            // A linker script stays as it is.
            let done = !file.in_script && self.arguments.put(file.item, file.in_place.as_deref());
            // Otherwise it stays: the linker reads it or reports it.
            if let (false, Some(_)) = (done, &file.in_place) {
                let place = if file.in_script {
                    "in a linker script"
                } else {
                    "on the command line"
                };
                let hint = "name the file in an argument of its own";
                let text = format!("cannot replace it {place}\nhint: {hint}");
                return Err(LinkError::input(terminal(&*file.path), text));
            }
        }
        Ok(())
    }

    /// Writes the container instead of a program.
    fn emit(&self, containers: &[Container]) -> Result<u8, LinkError> {
        let container = match containers {
            _ if self.actions.are_dry() => return Ok(0),
            [] => return Ok(0),
            [only] => only,
            several => {
                let kinds = several.iter().map(|container| container.kind.name());
                return Err(LinkError::Option(format!(
                    "--emit-fatbin-only: images of several kinds ({}) do not fit into one file",
                    kinds.collect::<Vec<_>>().join(", ")
                )));
            }
        };
        let pieces = match &container.content {
            ContainerContent::OpenMp(images) => match images.as_slice() {
                [only] => &only.binary,
                _ => {
                    return Err(LinkError::Option(
                        "Expected a single bundled image for direct fat binary output".into(),
                    ));
                }
            },
            ContainerContent::FatBinary(_, pieces) | ContainerContent::Sycl(pieces) => pieces,
        };
        let path = self.arguments.output_path();
        let written = match path == Path::new("-") {
            true => files::print_pieces(pieces, &container.files),
            false => files::write_pieces_beside(&path, pieces, &container.files),
        };
        written
            .map(|()| 0)
            .map_err(|source| LinkError::unwritten(&path, source))
    }

    fn host_link(
        &self,
        entries: &mut HostEntries,
        containers: &[Container],
        runtime: &[OsString],
        files: &Temporaries,
        workplace: &Workplace,
    ) -> Result<u8, LinkError> {
        let arguments = &self.arguments;
        let host = host::machine(arguments, self.inputs.host);
        // Registrations are printed with the bytes of their images.
        let is_printed = arguments.options.print_registration;
        let in_memory = is_printed.then(|| containers.iter().map(packing::in_memory).collect());
        let in_memory: Option<Vec<Container>> = in_memory
            .transpose()
            .map_err(|source| LinkError::io("cannot read an image", source))?;
        let containers = in_memory.as_deref().unwrap_or(containers);
        let sycl = packing::sycl_entries(containers)?;
        let (placement, mut flags) = self.placed(entries, containers, &sycl, host)?;
        flags.extend_from_slice(runtime);
        // A second link is necessary if a relocatable link loaded other entries than expected.
        for _ in 0..2 {
            let mut objects = Vec::new();
            for container in containers {
                let relocatable = arguments.relocatable;
                registration::forms(entries, container, &sycl, relocatable, |name, form| {
                    let way = Way::of(host, arguments, placement);
                    let form = (form, container.files.as_slice());
                    objects.push(self.registration(name, form, way, host, workplace)?);
                    Ok(())
                })?;
            }
            let write = |content: &[u8]| self.actions.response_file(files, content);
            let line = arguments.render(&objects, &flags, write)?;
            let command = self.linker.command.clone().args(line);
            self.actions.show(&command);
            if self.actions.are_dry() {
                if arguments.relocatable && !containers.is_empty() {
                    let output = arguments.output_path();
                    let shown = relocatable::shown(&output, &entries.tables, self.rules()?);
                    self.actions.show(&shown);
                }
                return Ok(0);
            }
            files.watch_output(&arguments.output_path())?;
            let phase = self.trace.phase("Host link", &command);
            let status = host_linker::run(&command, arguments.quoting(), files)?;
            drop(phase);
            let code = host_linker::code(status);
            if code == 0 {
                self.correct_dependency_file(&objects, files)?;
            }
            if code != 0 || !arguments.relocatable || containers.is_empty() {
                return Ok(code);
            }
            let output = arguments.output_path();
            if output == Path::new("/dev/null") {
                return Ok(0);
            }
            let expected = entries.size();
            match relocatable::finish(&output, &mut entries.tables) {
                Ok(true) => return Ok(0),
                Ok(false) if entries.size() < expected && arguments.collects_sections() => {
                    relocatable::remove(&output);
                    return Err(LinkError::Option(COLLECTED.to_owned()));
                }
                Ok(false) => {}
                Err(problem) => {
                    relocatable::remove(&output);
                    return Err(problem);
                }
            }
        }
        relocatable::remove(&arguments.output_path());
        Err(LinkError::Option(format!(
            "{}: the offload entries of a relocatable link could not be counted",
            arguments.output_path().display()
        )))
    }

    /// Corrects the host linker's dependency file after a link with `objects`.
    fn correct_dependency_file(
        &self,
        objects: &[PathBuf],
        temporary: &Temporaries,
    ) -> Result<(), LinkError> {
        let Some(path) = &self.arguments.dependency_file else {
            return Ok(());
        };
        let files = &self.inputs.files;
        let is_hidden = |file: &&InputFile| file.in_place.is_some() || file.is_for_devices();
        let hidden = files.iter().filter(is_hidden);
        let parts = files.iter().filter_map(|file| file.in_place.as_deref());
        let inputs = HiddenInputs {
            inputs: hidden.map(|file| &*file.path).collect(),
            own: objects.iter().map(PathBuf::as_path).chain(parts).collect(),
            temporary: temporary.existing(),
            escapes: self.arguments.family.is_elf()
                && self.linker.elf(&self.arguments) == ElfLinker::Lld,
        };
        inputs.correct(path).map_err(|source| {
            LinkError::io(
                format!("cannot correct the dependency file `{}`", terminal(&**path)),
                source,
            )
        })
    }

    /// Decides where the host linker places the images of all registrations, and returns the options for that. The
    /// linker is found only if they depend on it.
    fn placed(
        &self,
        entries: &HostEntries,
        containers: &[Container],
        sycl: &[BinaryEntry],
        host: Machine,
    ) -> Result<(ImagePlacement, Vec<OsString>), LinkError> {
        let arguments = &self.arguments;
        let linker = || self.linker.elf(arguments);
        let mut flags = Vec::new();
        // LLVM's command lines do not have this option, and its tests compare the lines.
        let as_llvm = self.actions.show_as_llvm();
        let keeps = !containers.is_empty() && !arguments.relocatable && !as_llvm;
        if keeps && arguments.family.is_elf() {
            flags = placement::keep_entries(arguments, linker());
        }
        let mut total = 0;
        for container in containers {
            let relocatable = arguments.relocatable;
            registration::forms(entries, container, sycl, relocatable, |_, form| {
                let blobs = form.blobs();
                total += blobs.iter().map(|blob| pieces::size(blob)).sum::<u64>();
                Ok(())
            })?;
        }
        let placement = placement::choose(total, host, arguments)?;
        if placement == ImagePlacement::Large && !arguments.relocatable {
            flags.extend(placement::flags(total, arguments, linker())?);
        }
        Ok((placement, flags))
    }

    /// Makes the object that registers a container, whose pieces copy `files`, and returns its path.
    fn registration(
        &self,
        name: &str,
        (form, files): (&Registration<'_>, &[PathBuf]),
        way: Way,
        host: Machine,
        workplace: &Workplace,
    ) -> Result<PathBuf, LinkError> {
        let arguments = &self.arguments;
        let options = &arguments.options;
        let object = workplace.file(&format!("{name}.image.wrapper.o"));
        if options.print_registration {
            self.print_registration(name, form, host, workplace)?;
        }
        if let Some(pieces) = form.to_object(way)? {
            let shown = object.display();
            self.actions
                .note(format_args!("registration object {shown}"));
            self.actions.write_pieces(&object, &pieces, files)?;
            return Ok(object);
        }
        let source = CSource::of(form, name, workplace)?;
        if self.actions.show_as_llvm() {
            return Ok(object); // LLVM does this in its own process
        }
        let compiler = host_compiler::find(arguments, &self.linker.command, host)?;
        let command = source.compile(compiler, arguments.family, &object);
        for (file, pieces) in &source.blobs {
            self.actions.write_pieces(file, pieces, files)?;
        }
        self.actions.write(&source.file, source.text.as_bytes())?;
        let compiled = self.actions.run(&command, workplace);
        compiled.map_err(LinkError::RegistrationFromC)?;
        Ok(object)
    }

    /// Prints the registration: under LLVM's name as LLVM IR, otherwise as C.
    fn print_registration(
        &self,
        name: &str,
        form: &Registration<'_>,
        host: Machine,
        workplace: &Workplace,
    ) -> Result<(), LinkError> {
        let triple = || {
            let triple = host::target(&self.arguments, Some(host))?;
            Triple::parse(&triple).ok()
        };
        let module = match Shown::of(self.tool) {
            Shown::Llvm => triple().and_then(|triple| form.to_ir(&triple)),
            Shown::Plain => None,
        };
        match module {
            Some(module) => eprint!("{module}"),
            None => eprint!("{}", CSource::of(form, name, workplace)?.text),
        }
        Ok(())
    }
}

/// Error of a relocatable link without the entries that its registration needs.
const COLLECTED: &str = "--gc-sections: a relocatable link removes the offload entries of kernels and variables\n\
                         hint: omit it here; the link of the program removes what is not needed";

fn note_linked(report: &mut Report, link: &DeviceLink<'_>) {
    for index in &link.group.members {
        if let Fate::Linked { linked_for } = &mut report.lines[*index].fate {
            linked_for.push(link.group.target());
        }
    }
}

/// Members that are linked for another target keep that as their fate.
fn note_missing(report: &mut Report, missing: &Missing<'_>) -> String {
    for index in &missing.group.members {
        let line = &mut report.lines[*index];
        if line.fate == Fate::LINKED {
            line.fate = Fate::LeftOut {
                reason: missing.reason.clone(),
            };
        }
    }
    let text = format!("{}: left out: {}", missing.group.target(), missing.reason);
    report.warnings.push(text.clone());
    text
}
