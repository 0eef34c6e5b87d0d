//! The images of a module for all of its targets: compiles, extractions and device links.

use crate::compile::clang::Compile;
use crate::compile::device;
use crate::compile::nvcc::{self, Nvcc};
use crate::declare::family::Family;
use crate::declare::language::Language;
use crate::declare::module::{Module, Target, excluded};
use crate::declare::skipped::{self, Skipped};
use crate::device_link::DeviceInput;
use crate::error::Error;
use crate::installed::host::Host;
use crate::plan::artifacts::Unit;
use crate::plan::context::{Context, Side, stem};
use crate::plan::libraries;
use crate::plan::machine_code;
use crate::plan::stages::{Stage, step};
use crate::steps::images::planned::PlannedImage;
use crate::steps::task::Task;
use std::path::Path;

/// Steps that make the images of a module.
#[derive(Debug, Default)]
pub(crate) struct DeviceCode {
    pub(crate) compiles: Stage,
    /// After all of these.
    pub(crate) links: Stage,
    pub(crate) images: Vec<PlannedImage>,
    /// The targets that have one.
    pub(crate) built: Vec<Target>,
    /// The others.
    pub(crate) skipped: Vec<Skipped>,
}

/// Images for one target.
enum TargetImages {
    /// A device link makes them, unless they are complete or the last link does it.
    Made {
        link: Option<Task>,
        images: Vec<PlannedImage>,
    },
    /// A tool is missing.
    Missing(Skipped),
}

impl Context<'_> {
    /// Plans an image for each target, or, where the device is linked with the program, what it is linked from.
    pub(crate) fn device_code(
        &self,
        module: &Module,
        units: &mut [Unit],
    ) -> Result<DeviceCode, Error> {
        let mut code = DeviceCode::default();
        // An image and PTX for one processor are made of the same bitcode.
        let mut compiled: Vec<(Target, Vec<DeviceInput>)> = Vec::new();
        for target in &module.targets {
            if let Some(skipped) = self.without_image(module, target) {
                code.skipped.push(skipped);
                continue;
            }
            let folder = self.folder(module).join(target.folder());
            let is_like = |(other, _): &&(Target, Vec<DeviceInput>)| target.compiles_like(other);
            let (tasks, sources) = match compiled.iter().find(is_like) {
                Some((_, sources)) => (Vec::new(), sources.clone()),
                None => self.device_compiles(module, target, &folder, units),
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
            let inputs = [sources.clone(), libraries].concat();
            match self.images(module, target, inputs, &folder)? {
                TargetImages::Made { link, images } => {
                    code.links.extend(link.map(step));
                    code.images.extend(images);
                }
                TargetImages::Missing(skipped) => {
                    code.skipped.push(skipped);
                    if module.artifacts.is_empty() {
                        code.compiles.truncate(start);
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
        if !target.is_ptx {
            return None;
        }
        let reason = match (self.deferred, self.compiler.family) {
            (true, _) => "offload-link makes images alone, no PTX",
            (false, Family::Nvcc) => "PTX is made by clang: leave out `compiler`, or this target",
            (false, Family::Clang | Family::Hipcc) => return None,
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
            "module `{}`: libraries for `{}` have bitcode, which `nvcc` does not link: take clang, without `compiler`",
            module.name, target.written
        )))
    }

    /// Plans what becomes of the inputs for one target.
    fn images(
        &self,
        module: &Module,
        target: &Target,
        inputs: Vec<DeviceInput>,
        folder: &Path,
    ) -> Result<TargetImages, Error> {
        let planned = |input| PlannedImage::new(target, input);
        if let (Family::Nvcc, false, [DeviceInput::Object(cubin)]) =
            (self.compiler.family, module.rdc, inputs.as_slice())
        {
            // Complete already.
            let image = planned(DeviceInput::Object(cubin.clone()));
            return Ok(TargetImages::Made {
                link: None,
                images: vec![image],
            });
        }
        if self.deferred {
            return Ok(TargetImages::Made {
                link: None,
                images: inputs.into_iter().map(planned).collect(),
            });
        }
        let is_wrong = |input: &&DeviceInput| target.is_ptx && !is_bitcode(input);
        if let Some(other) = inputs.iter().find(is_wrong) {
            return Err(Error::new(format_args!(
                "module `{}`: PTX for `{}` is made of bitcode, and `{}` is none",
                module.name,
                target.written,
                other.path().display()
            )));
        }
        let output = folder.join("image");
        let link = match self.device_link(module, target, inputs, &output) {
            Ok(link) => link,
            Err(unknown) if unknown.is_unsupported() => {
                return Err(Error::new(Skipped::unlinked(module, target, &unknown)));
            }
            Err(missing) => {
                return Ok(TargetImages::Missing(Skipped::unlinked(
                    module, target, &missing,
                )));
            }
        };
        let image = match target.is_ptx {
            true => DeviceInput::Ptx(output),
            false => DeviceInput::Object(output),
        };
        Ok(TargetImages::Made {
            link: Some(link),
            images: vec![planned(image)],
        })
    }

    fn device_compiles(
        &self,
        module: &Module,
        target: &Target,
        folder: &Path,
        units: &mut [Unit],
    ) -> (Stage, Vec<DeviceInput>) {
        let family = self.compiler.family;
        let is_machine_code = self.makes_machine_code(module);
        let bitcode = !target.triple.is_cpu() && family != Family::Nvcc && !is_machine_code;
        let mut tasks = Vec::new();
        let mut inputs = Vec::new();
        for (source, unit) in module.sources.iter().zip(units) {
            if excluded(&target.own.exclude, self.root, source) {
                continue;
            }
            let extension = match family {
                Family::Nvcc => nvcc::EXTENSION,
                _ if bitcode => "bc",
                _ => "o",
            };
            let output = folder
                .join(stem(self.root, source))
                .with_extension(extension);
            let task = self.compile(
                module,
                source,
                Side::Device(target),
                &output,
                |clang, compile| {
                    let processor = target.id.to_string();
                    let sdk = self.compiler.sdk.as_deref();
                    match module.language {
                        Language::OpenMp => clang.device_image(&target.triple, &processor, compile),
                        Language::Hip => {
                            let text = machine_code::assembly(&output);
                            let compile = Compile {
                                assembly: is_machine_code.then_some(text.as_path()),
                                ..compile.clone()
                            };
                            device::hip(clang, &processor, self.compiler.rocm(), &compile)
                        }
                        Language::Cuda if family == Family::Nvcc => {
                            let nvcc = Nvcc {
                                nvcc: &self.compiler.program,
                                std: clang.std,
                                include: clang.include,
                                debug: clang.debug,
                            };
                            nvcc.cubin(&processor, compile)
                        }
                        Language::Cuda => device::cuda(clang, &processor, sdk, compile),
                        Language::Bitcode | Language::Prebuilt => {
                            device::bitcode(clang, &target.triple, &processor, compile)
                        }
                    }
                },
            );
            tasks.push(step(match is_machine_code {
                true => self.assembled(task, target),
                false => task,
            }));
            unit.images.push((target.clone(), output.clone()));
            inputs.push(if bitcode {
                DeviceInput::Bitcode(output)
            } else {
                DeviceInput::Object(output)
            });
        }
        (tasks, inputs)
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
            "programs for `{triple}` load none of another processor\n\
             hint: OFFLOAD_TARGETS_{variable} lists the targets of builds for this host"
        )
    })
}
