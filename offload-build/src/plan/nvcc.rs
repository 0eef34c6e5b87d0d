//! The plan of a CUDA module whose host code nvcc compiles: objects of the host with device code for all targets, whose
//! device link makes an object that registers the images. What is left to do is to join them, and to say what they have.

use crate::compile::nvcc::{self, Nvcc};
use crate::declare::module::{Flags, Module, Target};
use crate::device_link::DeviceInput;
use crate::error::Error;
use crate::files;
use crate::plan::context::{self, Context};
use crate::plan::stages::{Plan, Stage, step};
use crate::steps::describe::Description;
use crate::steps::host_objects::own::{Own, Symbols};
use crate::steps::images::Images;
use crate::steps::images::planned::PlannedImage;
use crate::steps::task::Task;
use crate::steps::task::finish::Finish;
use offload_formats::container::elf::Machine;
use std::path::PathBuf;

/// Plans a module, which has an image for each of its targets.
pub(crate) fn plan(module: &Module, context: &Context<'_>) -> Result<(Plan, Vec<Target>), Error> {
    let host = check(module, context)?;
    let folder = context.folder(module);
    let processors = module.targets.iter().map(|target| target.id.to_string());
    let processors: Vec<String> = processors.collect();
    // One process compiles for all of them; `check` refuses tables of their own.
    let levels = module.targets.iter().map(|target| &target.own.opt_level);
    let device_level = levels.max().map_or("", String::as_str);
    let (compiles, objects) = compiles(module, context, &processors, device_level);
    let linked = folder.join("images.o");
    let program = &context.compiler.program;
    let command = nvcc::registered_images(
        program,
        &processors,
        &module.own.flags,
        &objects,
        &files::part(&linked),
    );
    let link = Task {
        title: "device link for all targets".to_owned(),
        commands: vec![command],
        launched: None,
        inputs: objects.clone(),
        depfile: None,
        output: linked.clone(),
        finish: Finish::None,
        environment: context.variables.to_owned(),
        undefined_hint: "device functions of other crates are found by clang: without `compiler`, with `register = \"deferred\"`",
    };
    let planned = module.targets.iter();
    let planned =
        planned.map(|target| PlannedImage::new(target, DeviceInput::Object(linked.clone())));
    let own = Own {
        suffix: context.unique.to_owned(),
        symbols: Symbols::OfNvcc,
    };
    let description = Description {
        module: module.name.clone(),
        images: Images::new(
            module,
            planned.collect(),
            Vec::new(),
            &context.compiler.version,
        ),
        linked: linked.clone(),
        objects: objects.clone(),
        host,
        anchor: format!("{}_anchor", context.unique),
        own: own.clone(),
        output: folder.join("registration.o"),
        host_file: context.out.join(format!("{}.rs", module.name)),
    };
    let object = folder.join("module.o");
    let first = [description.output.clone(), linked];
    let inputs = first.into_iter().chain(objects).collect();
    let join = context.join(&module.name, inputs, &object);
    let stages = vec![
        compiles,
        vec![step(link)],
        vec![step(description)],
        vec![step(join)],
        vec![step(context.archive(vec![object], Some(own)))],
    ];
    let skipped = Vec::new();
    Ok((Plan { stages, skipped }, module.targets.clone()))
}

/// Plans the objects of all sources, with device code for all of `processors`.
fn compiles(
    module: &Module,
    context: &Context<'_>,
    processors: &[String],
    device_level: &str,
) -> (Stage, Vec<PathBuf>) {
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
            |clang, compile| {
                let nvcc = Nvcc {
                    nvcc: &context.compiler.program,
                    std: clang.std,
                    include: clang.include,
                    debug: clang.debug,
                };
                nvcc.object(processors, device_level, compile)
            },
        )));
        objects.push(output);
    }
    (compiles, objects)
}

/// Checks that nvcc can do it: one process compiles for the host and all targets.
fn check(module: &Module, context: &Context<'_>) -> Result<Machine, Error> {
    let name = &module.name;
    let hint = "hint: clang can, without `compiler`";
    let machine = context.host.machine().filter(|_| !context.host.is_cross);
    let Some(machine) = machine else {
        return Err(Error::new(format_args!(
            "module `{name}`: host code for `{}` is not made by `nvcc` here\n{hint}",
            context.host.triple
        )));
    };
    if let Some(target) = module.targets.iter().find(|target| target.is_ptx) {
        return Err(Error::new(format_args!(
            "module `{name}`: PTX for `{}` is not linked by `nvcc`\n{hint}",
            target.written
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
            "module `{name}`: `nvcc` compiles host code together with that for all targets, and \
             [package.metadata.offload.target.{:?}] wants another for one\n{hint}",
            target.written
        )));
    }
    Ok(machine)
}
