//! What the plan of every module is made from: compiles of sources, and an image for each target.

use crate::compile::clang::{self, Clang, Compile, Part};
use crate::compile::device;
use crate::compile::nvcc::{self, Nvcc};
use crate::declare::family::Family;
use crate::declare::language::Language;
use crate::declare::module::{Module, Target, excluded};
use crate::declare::skipped::{self, Skipped};
use crate::device_link::DeviceInput;
use crate::error::Error;
use crate::inputs::libraries;
use crate::installed::compilers::Compiler;
use crate::installed::host::Host;
use crate::installed::llvm::Llvm;
use crate::plan::artifacts::Unit;
use crate::plan::machine_code;
use crate::plan::stages::Step;
use crate::process::command::Command;
use crate::process::launcher::{Launched, Launcher};
use crate::process::search::Search;
use crate::steps::images::planned::PlannedImage;
use crate::steps::task::Task;
use crate::steps::task::file_numbers;
use crate::steps::task::finish::Finish;
use md5::{Digest, Md5};
use offload_formats::escape::Colors;
use std::path::{Path, PathBuf};

/// What the plan of a module is made from, besides the module.
pub(crate) struct Context<'a> {
    pub(crate) compiler: &'a Compiler,
    pub(crate) search: &'a Search,
    /// The package's folder.
    pub(crate) root: &'a Path,
    pub(crate) out: &'a Path,
    pub(crate) host: &'a Host,
    pub(crate) debug: bool,
    /// Colors of the compiler's messages.
    pub(crate) colors: Colors,
    /// Variables that the compiler reads, for the keys of tasks.
    pub(crate) variables: &'a str,
    /// Name and version of the package.
    pub(crate) package: &'a str,
    /// What compiles are started with.
    pub(crate) launcher: Option<&'a Launcher>,
    /// Unique in the whole program: prefix of symbols and name of the library.
    pub(crate) unique: &'a str,
    pub(crate) deferred: bool,
}

/// What a compile is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side<'a> {
    /// The host, as people are told.
    Host(&'static str),
    Device(&'a Target),
}

/// How a plan makes the images of a module.
#[derive(Debug, Default)]
pub(crate) struct DeviceCode {
    pub(crate) compiles: Vec<Step>,
    /// After all of these.
    pub(crate) links: Vec<Step>,
    pub(crate) images: Vec<PlannedImage>,
    /// The targets that have one.
    pub(crate) built: Vec<Target>,
    /// The others.
    pub(crate) skipped: Vec<Skipped>,
}

impl Context<'_> {
    /// The folder of a module's intermediate files.
    pub(crate) fn folder(&self, module: &Module) -> PathBuf {
        self.out.join("offload").join(&module.name)
    }

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
            if let Some(reason) = foreign(target, self.host) {
                code.skipped.push(Skipped::useless(module, target, reason));
                continue;
            }
            if target.is_ptx && (self.deferred || self.compiler.family == Family::Nvcc) {
                let reason = match self.deferred {
                    true => "offload-link makes images alone, no PTX",
                    false => "PTX is made by clang: leave out `compiler`, or this target",
                };
                code.skipped.push(Skipped::missing(module, target, reason));
                continue;
            }
            let folder = self.folder(module).join(target.folder());
            let is_like = |(other, _): &&(Target, Vec<DeviceInput>)| target.compiles_like(other);
            let (tasks, inputs) = match compiled.iter().find(is_like) {
                Some((_, inputs)) => (Vec::new(), inputs.clone()),
                None => self.device_compiles(module, target, &folder, units),
            };
            if inputs.is_empty() {
                return Err(Error::new(format_args!(
                    "module `{}`: `exclude` leaves `{}` without sources",
                    module.name, target.written
                )));
            }
            // Those of a target without an image go into artifacts.
            let start = code.compiles.len();
            code.compiles.extend(tasks);
            let (extractions, libraries) = libraries::inputs(module, target, &folder)?;
            let extractions = extractions.into_iter().map(Step::Extract);
            code.compiles.extend(extractions);
            let bitcode = libraries
                .iter()
                .find(|input| matches!(input, DeviceInput::Bitcode(_)));
            if let (Family::Nvcc, Some(_)) = (self.compiler.family, bitcode) {
                return Err(Error::new(format_args!(
                    "module `{}`: libraries for `{}` have bitcode, which `nvcc` does not link: take clang, without `compiler`",
                    module.name, target.written
                )));
            }
            let sources = inputs.clone();
            let inputs = [inputs, libraries].concat();
            if let (Family::Nvcc, false, [DeviceInput::Object(cubin)]) =
                (self.compiler.family, module.rdc, inputs.as_slice())
            {
                // Complete already.
                let image = DeviceInput::Object(cubin.clone());
                code.images.push(PlannedImage::new(target, image));
            } else if self.deferred {
                let images = inputs.into_iter();
                code.images
                    .extend(images.map(|input| PlannedImage::new(target, input)));
            } else {
                let output = folder.join("image");
                let is_bitcode = |input: &&DeviceInput| matches!(input, DeviceInput::Bitcode(_));
                if let Some(other) = inputs
                    .iter()
                    .find(|input| target.is_ptx && !is_bitcode(input))
                {
                    return Err(Error::new(format_args!(
                        "module `{}`: PTX for `{}` is made of bitcode, and `{}` is none",
                        module.name,
                        target.written,
                        other.path().display()
                    )));
                }
                match self.device_link(module, target, inputs, &output) {
                    Ok(task) => code.links.push(Step::Run(task)),
                    Err(unknown) if unknown.is_unsupported() => {
                        let skipped = Skipped::unlinked(module, target, &unknown);
                        return Err(Error::new(skipped));
                    }
                    Err(missing) => {
                        code.skipped
                            .push(Skipped::unlinked(module, target, &missing));
                        if module.artifacts.is_empty() {
                            code.compiles.truncate(start);
                        }
                        continue;
                    }
                }
                let image = match target.is_ptx {
                    true => DeviceInput::Ptx(output),
                    false => DeviceInput::Object(output),
                };
                code.images.push(PlannedImage::new(target, image));
            }
            compiled.push((target.clone(), sources));
            code.built.push(target.clone());
        }
        if code.built.is_empty() {
            return Err(skipped::nothing_left(module, &code.skipped));
        }
        Ok(code)
    }

    fn device_compiles(
        &self,
        module: &Module,
        target: &Target,
        folder: &Path,
        units: &mut [Unit],
    ) -> (Vec<Step>, Vec<DeviceInput>) {
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
            tasks.push(Step::Run(match is_machine_code {
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

    /// A number for a module in names of symbols.
    fn module_number(&self, module: &Module) -> u64 {
        let digest = Md5::digest(format!(
            "{}\0{}\0{}",
            self.package, self.unique, module.name
        ));
        let mut number = [0; 8];
        for (byte, digest) in number.iter_mut().zip(digest) {
            *byte = digest;
        }
        u64::from_le_bytes(number)
    }

    pub(crate) fn compile(
        &self,
        module: &Module,
        source: &Path,
        side: Side<'_>,
        output: &Path,
        command: impl Fn(&Clang<'_>, &Compile<'_>) -> Command,
    ) -> Task {
        let target = self.host.clang_target();
        let clang = Clang {
            clang: &self.compiler.program,
            release: self.compiler.llvm.as_ref().and_then(Llvm::release),
            host: &self.host.triple,
            target: target.as_deref(),
            host_options: self.host.code_options(),
            std: module.std.as_deref(),
            include: &module.include,
            debug: self.debug,
            colors: self.colors,
        };
        let (own, what_for) = match side {
            Side::Host(what_for) => (&module.own, what_for),
            Side::Device(target) => (&target.own, target.written.as_str()),
        };
        let is_device = matches!(side, Side::Device(_));
        let compile = Compile {
            source,
            output,
            assembly: None,
            // What makes a file's functions its own is a part of clang's optimiser.
            opt_level: match own.opt_level.as_str() {
                "0" if is_device && !module.rdc && self.compiler.family != Family::Nvcc => "1",
                level => level,
            },
            rdc: module.rdc,
            has_host_code: module.has_host_code,
            define: &own.define,
            flags: &own.flags,
            unit: &self.unit(module, source),
            file: &file_numbers::number(source).unwrap_or_default(),
            part: Part::Whole,
        };
        let shown = source.strip_prefix(self.root).unwrap_or(source);
        // LLVM IR includes nothing, and clang writes no dependencies of it.
        let (inputs, depfile) = match module.language {
            Language::Bitcode => (vec![source.to_owned()], None),
            _ => (Vec::new(), Some(clang::depfile(output))),
        };
        Task {
            title: format!("{} for {what_for}", shown.display()),
            commands: vec![command(&clang, &compile)],
            launched: self.launched(
                module,
                side,
                |part| {
                    command(
                        &clang,
                        &Compile {
                            part,
                            ..compile.clone()
                        },
                    )
                },
                output,
            ),
            inputs,
            depfile,
            output: output.to_owned(),
            finish: match module.language {
                Language::OpenMp => Finish::OwnRegions(self.module_number(module)),
                _ => Finish::None,
            },
            environment: self.variables.to_owned(),
            undefined_hint: "",
        }
    }

    /// The same in every checkout.
    fn unit(&self, module: &Module, source: &Path) -> String {
        let source = stem(self.root, source);
        let hash = Md5::digest(format!("{}\0{}\0{source}", self.package, module.name));
        let digits = hash.iter().take(8).map(|byte| format!("{byte:02x}"));
        digits.collect()
    }

    /// A compile as the launcher starts it.
    fn launched(
        &self,
        module: &Module,
        side: Side<'_>,
        command: impl Fn(Part<'_>) -> Command,
        output: &Path,
    ) -> Option<Launched> {
        let launcher = self.launcher?;
        let commands = match module.language {
            // No compile of a source: what IR costs is in the device link.
            Language::Bitcode | Language::Prebuilt => return None,
            // Names of OpenMP's kernels hold numbers of files, which are others on another machine; host objects, and
            // the cubins of nvcc, the name of the text that is sent.
            Language::Hip | Language::Cuda
                if launcher.sends()
                    && matches!(side, Side::Device(_))
                    && self.compiler.family == Family::Clang =>
            {
                let mut text = output.as_os_str().to_owned();
                text.push(".ii");
                let text = Path::new(&text);
                let compile = command(Part::Compile(text));
                vec![command(Part::Preprocess(text)), launcher.launch(&compile)]
            }
            _ if launcher.sends() => return None,
            _ => vec![launcher.launch(&command(Part::Whole))],
        };
        Some(Launched { commands })
    }
}

/// Why programs for `host` take no image for `target`: OpenMP's CPU device is the processor that runs them.
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

/// A name for the files made from `source`: its path in the package, in one word.
pub(crate) fn stem(root: &Path, source: &Path) -> String {
    let relative = source
        .strip_prefix(root)
        .unwrap_or(source)
        .to_string_lossy();
    // The dot goes as well: what is behind the last one is replaced by each file's own extension.
    shortened(&relative.replace('-', "--").replace(['/', '\\'], "-")) + "."
}

/// `name`, or where file systems would refuse it with an extension, its end behind a hash of all of it.
pub(crate) fn shortened(name: &str) -> String {
    const LONGEST: usize = 160;
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let hash = Md5::digest(name);
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut start = name.len() - LONGEST + digits.len() + 1;
    while !name.is_char_boundary(start) {
        start += 1;
    }
    format!("{digits}-{}", name.split_at(start).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortens_names_that_no_file_may_have() {
        let name = |source: &str| stem(Path::new("/p"), &Path::new("/p").join(source));
        assert_eq!(name("kernels/a-b.c"), "kernels-a--b.c.");
        let folders = "some-kernels/".repeat(30);
        let (one, two) = (
            name(&format!("{folders}k.c")),
            name(&format!("x{folders}k.c")),
        );
        assert_eq!(one.len(), 161);
        assert!(one.ends_with("-some--kernels-k.c.") && two.ends_with("-some--kernels-k.c."));
        assert_ne!(one, two);
        let wide = name(&"ä/".repeat(200));
        assert!(wide.len() <= 161, "{wide}");
    }
}
