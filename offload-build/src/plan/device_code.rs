//! The images of a module for all of its targets: compiles, extractions and device links.

use crate::device_link::DeviceInput;
use crate::generate::{SourceName, source_names};
use crate::plan::artifacts::Unit;
use crate::plan::context::{Context, Side, stem};
use crate::plan::libraries;
use crate::plan::rust::RustStages;
use crate::plan::stages::{Stage, step};
use crate::steps::images::PartImages;
use crate::steps::images::planned::PlannedImage;
use crate::steps::task::Task;
use crate::steps::task::finish::assembly;
use offload_build_core::compile::clang::{Clang, Compile};
use offload_build_core::compile::device;
use offload_build_core::compile::nvcc::{self, Nvcc};
use offload_build_core::declare::family::Family;
use offload_build_core::declare::language::{ImageSources, Language};
use offload_build_core::declare::module::{Module, Target, excluded};
use offload_build_core::declare::skipped::{self, Skipped};
use offload_build_core::error::Error;
use offload_build_core::installed::host::Host;
use offload_build_core::process::command::Command;
use std::path::Path;

/// Steps that make the images of a module.
#[derive(Debug, Default)]
pub(crate) struct DeviceCode {
    /// Before the compiles: what a crate of kernels needs.
    pub(crate) rust: RustStages,
    pub(crate) compiles: Stage,
    /// After all of these.
    pub(crate) links: Stage,
    /// The images of all sources, or of each source.
    pub(crate) parts: Vec<PartImages>,
    /// The targets that have one.
    pub(crate) built: Vec<Target>,
    /// The others.
    pub(crate) skipped: Vec<Skipped>,
}

/// A source's number in the module, and what its compile makes.
type SourceInput = (usize, DeviceInput);

/// Images of a part for one target: the part's number, and the device link that makes them, unless they are complete or the
/// last link does it.
type TargetImages = (usize, Option<Task>, Vec<PlannedImage>);

/// The reason why there is no plan of an image.
enum Unmade {
    /// A tool is missing.
    Skipped(Skipped),
    Failed(Error),
}

impl Context<'_> {
    /// Plans an image for each target, or, where the device is linked with the program, what it is linked from.
    pub(crate) fn device_code(
        &self,
        module: &Module,
        units: &mut [Unit],
    ) -> Result<DeviceCode, Error> {
        let part = |source| PartImages {
            source,
            planned: Vec::new(),
        };
        let mut code = DeviceCode {
            parts: match module.images {
                ImageSources::OfModule => vec![part(None)],
                ImageSources::OfSource => {
                    let names = source_names(self.root, self.out, &module.sources).into_iter();
                    names.map(|name| part(Some(name))).collect()
                }
            },
            ..DeviceCode::default()
        };
        // An image and PTX for one processor are made of the same bitcode; nvcc makes each by itself.
        let mut compiled: Vec<(Target, Vec<SourceInput>)> = Vec::new();
        for target in &module.targets {
            if let Some(skipped) = self.without_image(module, target) {
                code.skipped.push(skipped);
                continue;
            }
            let folder = self.folder(module).join(target.folder());
            let is_like = |(other, _): &&(Target, Vec<SourceInput>)| {
                target.compiles_like(other) && self.compiler.family != Family::Nvcc
            };
            let crates = code.rust.len();
            let (tasks, sources) = match compiled.iter().find(is_like) {
                Some((_, sources)) => (Vec::new(), sources.clone()),
                None => self.device_compiles(module, target, &folder, units, &mut code.rust),
            };
            if sources.is_empty() {
                return Err(Error::new(format_args!(
                    "module `{}`: `exclude` leaves `{}` without sources",
                    module.name, target.written
                )));
            }
            // Those of a target without an image go into artifacts.
            let start = code.compiles.len();
            code.compiles.extend(tasks);
            let libraries = self.libraries.of_target(target)?;
            let (extractions, libraries) = libraries::inputs(module, target, &folder, libraries)?;
            code.compiles.extend(extractions.into_iter().map(step));
            self.check_libraries(module, target, &libraries)?;
            let made = match self.unknown_to_ptxas(module, target) {
                Some(unknown) => Err(Unmade::Skipped(unknown)),
                None => self.parts(module, target, &sources, &libraries, &folder, &code.parts),
            };
            match made {
                Ok(made) => {
                    for (number, link, images) in made {
                        code.links.extend(link.map(step));
                        code.parts[number].planned.extend(images);
                    }
                }
                Err(Unmade::Failed(error)) => return Err(error),
                Err(Unmade::Skipped(skipped)) => {
                    code.skipped.push(skipped);
                    if module.artifacts.is_empty() {
                        code.compiles.truncate(start);
                        code.rust.truncate(crates);
                    } else {
                        compiled.push((target.clone(), sources));
                    }
                    continue;
                }
            }
            compiled.push((target.clone(), sources));
            code.built.push(target.clone());
        }
        if code.built.is_empty() {
            return Err(skipped::nothing_left(module, &code.skipped));
        }
        Ok(code)
    }

    /// Returns why no image for `target` is planned, if no tool could change that.
    fn without_image(&self, module: &Module, target: &Target) -> Option<Skipped> {
        if let Some(reason) = foreign(target, self.host) {
            return Some(Skipped::useless(module, target, reason));
        }
        let without = self.compiler.without_clang.as_ref();
        if let Some(problem) = without.and_then(|without| without.problem(target)) {
            return Some(Skipped::missing(module, target, problem));
        }
        // What clang compiles goes into artifacts.
        if module.artifacts.is_empty() || self.compiler.family == Family::Nvcc {
            if let Some(unknown) = self.unknown_to_ptxas(module, target) {
                return Some(unknown);
            }
        }
        if !target.is_ptx {
            return None;
        }
        let is_joined = module.images == ImageSources::OfModule && module.sources.len() > 1;
        let reason = match (self.deferred, self.compiler.family) {
            (true, _) => {
                "offload-link makes images, not PTX: set `register = \"complete\"` [OFF500]"
            }
            (false, Family::Nvcc) if is_joined => {
                "`nvcc` makes PTX from each source separately: set `images = \"source\"`, or leave out `compiler` [OFF500]"
            }
            (false, _) => return None,
        };
        Some(Skipped::missing(module, target, reason))
    }

    /// Checks that the module's compiler links what the libraries for `target` contain.
    fn check_libraries(
        &self,
        module: &Module,
        target: &Target,
        libraries: &[DeviceInput],
    ) -> Result<(), Error> {
        if self.compiler.family != Family::Nvcc || !libraries.iter().any(is_bitcode) {
            return Ok(());
        }
        Err(Error::new(format_args!(
            "module `{}`: libraries for `{}` have bitcode, which `nvcc` does not link: remove `compiler` to use clang",
            module.name, target.written
        )))
    }

    /// Plans the images of each of `parts` for one target.
    fn parts(
        &self,
        module: &Module,
        target: &Target,
        sources: &[SourceInput],
        libraries: &[DeviceInput],
        folder: &Path,
        parts: &[PartImages],
    ) -> Result<Vec<TargetImages>, Unmade> {
        let mut made = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let is_of_part =
                |(source, _): &&SourceInput| part.source.is_none() || *source == number;
            let inputs = sources.iter().filter(is_of_part);
            let inputs: Vec<DeviceInput> = inputs.map(|(_, input)| input.clone()).collect();
            // `exclude` leaves the source out for this target.
            if inputs.is_empty() {
                continue;
            }
            let name = match (&part.source, module.sources.get(number)) {
                (Some(_), Some(source)) => stem(self.root, source) + "image",
                _ => "image".to_owned(),
            };
            let inputs = [inputs, libraries.to_vec()].concat();
            let output = folder.join(name);
            let source = part.source.as_ref();
            let (link, images) = self.images(module, target, inputs, source, &output)?;
            made.push((number, link, images));
        }
        Ok(made)
    }

    /// Plans what becomes of the inputs of one image for one target.
    fn images(
        &self,
        module: &Module,
        target: &Target,
        inputs: Vec<DeviceInput>,
        source: Option<&SourceName>,
        output: &Path,
    ) -> Result<(Option<Task>, Vec<PlannedImage>), Unmade> {
        let planned = |input| PlannedImage::new(target, input, self.call_hints(module, target));
        let is_complete = match inputs.as_slice() {
            [DeviceInput::Object(_)] => self.compiler.family == Family::Nvcc && !module.rdc,
            [DeviceInput::Ptx(_)] => true,
            _ => false,
        };
        if is_complete {
            return Ok((None, inputs.into_iter().map(planned).collect()));
        }
        let is_wrong = |input: &&DeviceInput| target.is_ptx && !is_bitcode(input);
        if let Some(other) = inputs.iter().find(is_wrong) {
            return Err(Unmade::Failed(Error::new(format_args!(
                "module `{}`: PTX for `{}` is made from bitcode, and `{}` is not bitcode",
                module.name,
                target.written,
                other.path().display()
            ))));
        }
        let link = self.device_link(module, target, inputs.clone(), source, output);
        let link = link.map_err(|missing| {
            let skipped = Skipped::unlinked(module, target, &missing);
            match missing.is_unsupported() {
                true => Unmade::Failed(Error::new(skipped)),
                false => Unmade::Skipped(skipped),
            }
        })?;
        // The last link makes it, with the same tools. If it lacked one, rustc would hide what it says.
        if self.deferred {
            return Ok((None, inputs.into_iter().map(planned).collect()));
        }
        let image = match target.is_ptx {
            true => DeviceInput::Ptx(output.to_owned()),
            false => DeviceInput::Object(output.to_owned()),
        };
        Ok((Some(link), vec![planned(image)]))
    }

    fn device_compiles(
        &self,
        module: &Module,
        target: &Target,
        folder: &Path,
        units: &mut [Unit],
        rust: &mut RustStages,
    ) -> (Stage, Vec<SourceInput>) {
        if let (Some(kernels), Some(rustc)) = (&module.kernel_crate, self.rustc) {
            let output = folder
                .join(stem(self.root, &kernels.source))
                .with_extension("bc");
            let made = self.rust_kernels(module, (kernels, rustc), target, &output, rust);
            for unit in units {
                unit.images.push((target.clone(), output.clone()));
            }
            return (vec![step(made)], vec![(0, DeviceInput::Bitcode(output))]);
        }
        let family = self.compiler.family;
        let is_machine_code = self.makes_machine_code(module);
        let bitcode = !target.triple.is_cpu() && family != Family::Nvcc && !is_machine_code;
        let mut tasks = Vec::new();
        let mut inputs = Vec::new();
        for ((number, source), unit) in module.sources.iter().enumerate().zip(units) {
            if excluded(&target.own.exclude, self.root, source) {
                continue;
            }
            let extension = match family {
                Family::Nvcc if target.is_ptx => "ptx",
                Family::Nvcc => nvcc::EXTENSION,
                _ if bitcode => "bc",
                _ => "o",
            };
            let output = folder
                .join(stem(self.root, source))
                .with_extension(extension);
            let side = Side::Device(target);
            let task = self.compile(module, source, side, &output, &|clang, compile| {
                self.device_command(module, target, clang, compile)
            });
            tasks.push(step(match is_machine_code {
                true => self.assembled(task, target),
                false => self.with_device_libraries(task, target),
            }));
            unit.images.push((target.clone(), output.clone()));
            let input = match bitcode {
                true => DeviceInput::Bitcode(output),
                false if family == Family::Nvcc && target.is_ptx => DeviceInput::Ptx(output),
                false => DeviceInput::Object(output),
            };
            inputs.push((number, input));
        }
        (tasks, inputs)
    }

    /// Returns the command that compiles a source for a target.
    fn device_command(
        &self,
        module: &Module,
        target: &Target,
        clang: &Clang<'_>,
        compile: &Compile<'_>,
    ) -> Command {
        let processor = target.id.to_string();
        match module.language {
            Language::OpenMp => clang.device_image(&target.triple, &processor, compile),
            Language::Hip => {
                let text = assembly(compile.output);
                let is_machine_code = self.makes_machine_code(module);
                let compile = Compile {
                    assembly: is_machine_code.then_some(text.as_path()),
                    ..compile.clone()
                };
                device::hip(clang, &processor, self.compiler.rocm(), &compile)
            }
            Language::Cuda if self.compiler.family == Family::Nvcc => {
                let nvcc = Nvcc {
                    nvcc: &self.compiler.program,
                    std: clang.std,
                    include: clang.include,
                    debug: clang.debug,
                    version: &self.compiler.version,
                    ccbin: self.compiler.ccbin.as_deref(),
                };
                match target.is_ptx {
                    true => nvcc.ptx(&processor, compile),
                    false => nvcc.cubin(&processor, compile),
                }
            }
            Language::Cuda => {
                device::cuda(clang, &processor, self.compiler.sdk.as_deref(), compile)
            }
            Language::Bitcode | Language::Rust | Language::Prebuilt => {
                device::bitcode(clang, &target.triple, &processor, compile)
            }
        }
    }
}

/// Tells whether the device link reads a file as bitcode.
fn is_bitcode(input: &DeviceInput) -> bool {
    matches!(input, DeviceInput::Bitcode(_))
}

/// Returns why programs for `host` take no image for `target`: OpenMP's CPU device is the processor that runs them.
fn foreign(target: &Target, host: &Host) -> Option<String> {
    let is_foreign = target.triple.is_cpu() && target.triple.arch() != host.arch();
    is_foreign.then(|| {
        let (triple, variable) = (&host.triple, host.triple.replace('-', "_"));
        format!(
            "programs for `{triple}` cannot load images for another processor\n\
             hint: OFFLOAD_TARGETS_{variable} lists the targets of builds for this host"
        )
    })
}
