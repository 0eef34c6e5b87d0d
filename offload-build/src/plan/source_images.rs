//! The plan of a module with host code whose sources have images of their own: clang puts the images of a source into its
//! host object, which registers them, as `hipcc` and `nvcc` do without relocatable device code.

use crate::plan::artifacts::{self, Unit};
use crate::plan::context::{self, Context};
use crate::plan::stages::{Plan, Stage, keyed, step};
use crate::steps::describe::{DescribedPart, Description};
use crate::steps::host_objects::own::{Own, Symbols};
use crate::steps::images::{Images, PartImages};
use crate::steps::pack::ContainerFile;
use crate::steps::task::Task;
use offload_build_core::compile::host::HostRegistration;
use offload_build_core::declare::module::{Module, Target};
use offload_build_core::error::Error;
use offload_build_core::process::launcher::Start;
use offload_formats::registration::HostFormat;
use std::path::{Path, PathBuf};

/// Plans a module, and says for which of its targets there will be images.
pub(crate) fn plan(module: &Module, context: &Context<'_>) -> Result<(Plan, Vec<Target>), Error> {
    let form = context.host.objects()?;
    let folder = context.folder(module);
    let unit = |source: &PathBuf| {
        let stem = context::stem(context.root, source);
        Unit {
            host: folder.join("host").join(&stem).with_extension("o"),
            stem: stem.trim_end_matches('.').to_owned(),
            images: Vec::new(),
        }
    };
    let mut units: Vec<Unit> = module.sources.iter().map(unit).collect();
    let code = context.device_code(module, &mut units)?;
    let artifacts = artifacts::plan(module, &units, &context.host.triple, context.out)?;
    let version = &context.compiler.version;
    let (mut containers, mut compiles) = (Stage::new(), Stage::new());
    let mut parts = Vec::new();
    for ((part, source), unit) in code.parts.into_iter().zip(&module.sources).zip(units) {
        let part: PartImages = part;
        let container = ContainerFile::new(module, part.clone(), version, context.out);
        compiles.push(step(host_compile(
            module,
            context,
            source,
            &container.output,
            &unit.host,
        )));
        containers.push(keyed(container));
        parts.push(DescribedPart {
            images: Images::new(module, part, version),
            linked: None,
            objects: vec![unit.host],
        });
    }
    let hosts: Vec<PathBuf> = parts.iter().flat_map(|part| part.objects.clone()).collect();
    let own = Own {
        suffix: context.unique.to_owned(),
        symbols: Symbols::OfStubs,
    };
    let description = Description {
        module: module.name.clone(),
        parts,
        skipped: code.skipped.clone(),
        decompressed: module.decompressed,
        host: form,
        anchor: format!("{}_anchor", context.unique),
        own: own.clone(),
        output: folder.join("registration.o"),
        out: context.out.to_owned(),
    };
    let mut objects = vec![description.output.clone()];
    objects.extend(hosts);
    let mut stages = vec![
        code.compiles,
        code.links,
        containers,
        compiles,
        vec![keyed(description)],
    ];
    if let HostFormat::Elf(_) = form {
        let object = folder.join("module.o");
        stages.push(vec![step(context.join(&module.name, objects, &object))]);
        objects = vec![object];
    }
    let archive = keyed(context.archive(objects, Some(own)));
    let artifacts = artifacts.into_iter().map(step);
    stages.push([archive].into_iter().chain(artifacts).collect());
    let skipped = code.skipped;
    Ok((Plan { stages, skipped }, code.built))
}

/// Plans the host object of `source`, which contains and registers `images`.
fn host_compile(
    module: &Module,
    context: &Context<'_>,
    source: &Path,
    images: &Path,
    output: &Path,
) -> Task {
    let registrar = HostRegistration::Itself(images);
    let mut task = context.compile_host(module, source, registrar, output);
    task.inputs.push(images.to_owned());
    if task.start != Start::Plain {
        task.start = Start::Here("the compiler reads images, and no cache knows that");
    }
    task
}
