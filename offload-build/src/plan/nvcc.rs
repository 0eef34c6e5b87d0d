//! The plan of a CUDA module whose host code nvcc compiles: objects of the host with device code for all targets. What
//! registers the images is in the objects, or with `rdc = true` in that of their device link. What is left to do is to join
//! them, and to describe the kernels.

use crate::device_link::DeviceInput;
use crate::generate::source_names;
use crate::plan::compile_hints::RUNTIME_HINT;
use crate::plan::context::{self, Context};
use crate::plan::device_link::APART_HINT;
use crate::plan::stages::{Plan, Stage, keyed, step};
use crate::steps::describe::{DescribedPart, Description};
use crate::steps::host_objects::own::{Own, Symbols};
use crate::steps::images::planned::PlannedImage;
use crate::steps::images::{Images, PartImages};
use crate::steps::task::{SymbolHints, Task};
use offload_build_core::compile::nvcc::{self, Nvcc};
use offload_build_core::declare::language::ImageSources;
use offload_build_core::declare::module::{Flags, ImageCompression, Module, Target};
use offload_build_core::declare::skipped::{self, Skipped};
use offload_build_core::error::Error;
use offload_build_core::files;
use offload_formats::registration::HostFormat;
use std::path::{Path, PathBuf};

const NVCC_HINT: &str = "`nvcc` makes a host function of each `__device__` function: declare those of headers `static` or \
    `inline`";

const HOST_RUNTIME_HINT: &str = "kernels that launch kernels need CUDA's device runtime for the host: install NVIDIA's package for \
    cross builds, such as `cuda-cross-sbsa`, whose `libcudadevrt.a` is in the toolkit's `targets/sbsa-linux/lib`";

/// Plans a module, which has an image for each of its targets.
pub(crate) fn plan(module: &Module, context: &Context<'_>) -> Result<(Plan, Vec<Target>), Error> {
    let (module, skipped) = &possible(module, context)?;
    let host = check(module, context)?;
    let folder = context.folder(module);
    let (compiles, objects) = compiles(module, context);
    let mut stages = vec![compiles];
    let images = |source, linked: &Path| {
        let planned = |target: &Target| {
            let input = match target.is_ptx {
                true => DeviceInput::Ptx(linked.to_owned()),
                false => DeviceInput::Object(linked.to_owned()),
            };
            PlannedImage::new(target, input, context.call_hints(module, target))
        };
        let planned = module.targets.iter().map(planned).collect();
        let part = PartImages { source, planned };
        Images::new(module, part, &context.compiler.version)
    };
    let (mut parts, mut linked) = (Vec::new(), None);
    if module.images == ImageSources::OfSource {
        let names = source_names(context.root, context.out, &module.sources);
        for (name, object) in names.into_iter().zip(&objects) {
            parts.push(DescribedPart {
                images: images(Some(name), object),
                linked: Some(object.clone()),
                objects: vec![object.clone()],
            });
        }
    } else {
        let link = device_link(module, context, &objects);
        parts.push(DescribedPart {
            images: images(None, &link.output),
            linked: Some(link.output.clone()),
            objects: objects.clone(),
        });
        linked = Some(link.output.clone());
        stages.push(vec![step(link)]);
    }
    let own = Own {
        suffix: context.unique.to_owned(),
        symbols: Symbols::OfNvcc,
    };
    let description = Description {
        module: module.name.clone(),
        parts,
        skipped: skipped.clone(),
        decompressed: module.decompressed,
        host,
        anchor: format!("{}_anchor", context.unique),
        own: own.clone(),
        output: folder.join("registration.o"),
        out: context.out.to_owned(),
    };
    let object = folder.join("module.o");
    // The archive's member joins only if the device link took its device code, for kernels that launch kernels. It finds the
    // registration in here, under names that are then the module's own.
    let runtime = linked.as_ref().and(context.cuda_device_runtime);
    let runtime = runtime.map(Path::to_owned);
    let first = [description.output.clone()].into_iter().chain(linked);
    let inputs = first.chain(objects).chain(runtime).collect();
    let mut join = context.join(&module.name, inputs, &object);
    join.hints.duplicate = NVCC_HINT;
    stages.extend([
        vec![keyed(description)],
        vec![step(join)],
        vec![keyed(context.archive(vec![object], Some(own)))],
    ]);
    let skipped = skipped.clone();
    Ok((Plan { stages, skipped }, module.targets.clone()))
}

/// Returns the module without the targets that nvcc does not know, nor those for PTX if the sources are linked to one image, and these
/// targets.
fn possible(module: &Module, context: &Context<'_>) -> Result<(Module, Vec<Skipped>), Error> {
    let reason = "`nvcc` does not link PTX: leave it out of `targets`, as nvcc's own device link does, set `rdc = false`, or remove \
        `compiler` to use clang, which links PTX [OFF500]";
    let is_joined = module.images == ImageSources::OfModule;
    let joined_ptx = |target: &Target| {
        (is_joined && target.is_ptx).then(|| Skipped::missing(module, target, reason))
    };
    let (mut targets, mut skipped) = (Vec::new(), Vec::new());
    for target in &module.targets {
        let unknown = context.unknown_to_ptxas(module, target);
        match unknown.or_else(|| joined_ptx(target)) {
            Some(without) => skipped.push(without),
            None => targets.push(target.clone()),
        }
    }
    if targets.is_empty() {
        return Err(skipped::nothing_left(module, &skipped));
    }
    let mut module = module.clone();
    module.targets = targets;
    Ok((module, skipped))
}

/// Plans the device link of all `objects` for all targets.
fn device_link(module: &Module, context: &Context<'_>, objects: &[PathBuf]) -> Task {
    let output = context.folder(module).join("images.o");
    let command = nvcc::registered_images(
        &context.compiler.program,
        &module.targets,
        &module.own.flags,
        module.compress,
        objects,
        &files::part(&output),
        &context.compiler.version,
    );
    // nvcc names the library itself, but knows one folder.
    let runtime = context.cuda_device_runtime;
    let of_this_machine = context.compiler.host_compiler.is_none();
    let command = command
        .args(match runtime {
            Some(library) => Some(nvcc::search_of(library)),
            None => (!of_this_machine).then(|| "-cudadevrt=none".into()),
        })
        .args(nvcc::host_compiler(context.compiler.ccbin.as_deref()));
    let inputs = objects.iter().chain(&module.named_files);
    let inputs = inputs.map(PathBuf::as_path).chain(runtime);
    Task {
        title: "device link for all targets".to_owned(),
        commands: vec![command],
        inputs: inputs.map(Path::to_owned).collect(),
        hints: SymbolHints {
            undefined: "check that `sources` has the file that defines it; device functions of other crates are found by clang: without \
                `compiler`, with `register = \"deferred\"`",
            duplicate: APART_HINT,
            others: match of_this_machine {
                true => &[("__cudaCDP2", RUNTIME_HINT)],
                false => &[("__cudaCDP2", HOST_RUNTIME_HINT)],
            },
            ..SymbolHints::default()
        },
        ..context.task(&output)
    }
}

/// Plans the objects of all sources, with device code for all targets.
fn compiles(module: &Module, context: &Context<'_>) -> (Stage, Vec<PathBuf>) {
    // One process compiles for all of them; `check` refuses tables of their own.
    let levels = module.targets.iter().map(|target| &target.own.opt_level);
    let device_level = levels.max().map_or("", String::as_str);
    let folder = context.folder(module);
    let mut compiles = Vec::new();
    let mut objects = Vec::new();
    for source in &module.sources {
        let stem = context::stem(context.root, source);
        let output = folder.join("host").join(&stem).with_extension("o");
        compiles.push(step(context.compile(
            module,
            source,
            context::Side::Host("the host and all targets"),
            &output,
            &|clang, compile| {
                let nvcc = Nvcc {
                    nvcc: &context.compiler.program,
                    std: clang.std,
                    include: clang.include,
                    debug: clang.debug,
                    version: &context.compiler.version,
                    ccbin: context.compiler.ccbin.as_deref(),
                };
                nvcc.object(&module.targets, device_level, module.compress, compile)
            },
        )));
        objects.push(output);
    }
    (compiles, objects)
}

/// Checks that nvcc can do it: one process compiles for the host and all targets.
fn check(module: &Module, context: &Context<'_>) -> Result<HostFormat, Error> {
    let name = &module.name;
    let hint = "hint: remove `compiler` to use clang, which supports this";
    let host = context.host.objects()?;
    let HostFormat::Elf(_) = host else {
        return Err(Error::new(format_args!(
            "module `{name}`: host code for `{}` is not supported with `nvcc`\n{hint}",
            context.host.triple
        )));
    };
    if module.has_libraries() {
        return Err(Error::new(format_args!(
            "module `{name}`: `nvcc` links no libraries of device code (`archives`, `link`) into host objects\n{hint}"
        )));
    }
    let needs_modes = matches!(module.compress, ImageCompression::Zstd(_));
    if needs_modes && !nvcc::has_modes(&context.compiler.version) {
        return Err(Error::new(format_args!(
            "module `{name}`: `compress = \"zstd\"` needs nvcc of CUDA 12.8 or later, found {}\n\
             hint: `lz4` works with this one",
            context.compiler.version
        )));
    }
    // Levels are the same for all targets, and no table has one.
    let own = |target: &Target| Flags {
        opt_level: module.own.opt_level.clone(),
        ..target.own.clone()
    };
    let differs = |target: &&Target| own(target) != module.own;
    if let Some(target) = module.targets.iter().find(differs) {
        return Err(Error::new(format_args!(
            "module `{name}`: `nvcc` compiles the host code of a source once for all targets, so \
             [package.metadata.offload.target.{:?}] cannot change it\n{hint}",
            target.written
        )));
    }
    Ok(host)
}
