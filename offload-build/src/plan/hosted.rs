//! The plan of a module with host code: host objects with offload entries, an image for each target, and a static
//! library of the host code together with what registers the images: on ELF one object, on COFF several.

use crate::out_dir::host_file;
use crate::plan::artifacts::{self, Unit};
use crate::plan::context::{self, Context};
use crate::plan::stages::{Plan, keyed, step};
use crate::steps::host_objects::own::{Own, Symbols};
use crate::steps::images::Images;
use crate::steps::register::Registration;
use offload_build_core::compile::host::HostRegistration;
use offload_build_core::declare::language::Language;
use offload_build_core::declare::module::{Module, Target};
use offload_build_core::error::Error;
use offload_formats::registration::HostFormat;
use std::path::PathBuf;

/// Plans a module, and says for which of its targets there will be an image.
pub(crate) fn plan(module: &Module, context: &Context<'_>) -> Result<(Plan, Vec<Target>), Error> {
    let form = context.host.objects()?;
    let folder = context.folder(module);
    let mut compiles = Vec::new();
    let mut units = Vec::new();
    for source in &module.sources {
        let stem = context::stem(context.root, source);
        let output = folder.join("host").join(&stem).with_extension("o");
        let registrar = HostRegistration::Other;
        compiles.push(step(
            context.compile_host(module, source, registrar, &output),
        ));
        units.push(Unit {
            stem: stem.trim_end_matches('.').to_owned(),
            host: output,
            images: Vec::new(),
        });
    }
    let mut code = context.device_code(module, &mut units)?;
    compiles.extend(code.compiles);
    let artifacts = artifacts::plan(module, &units, &context.host.triple, context.out)?;
    let hosts: Vec<PathBuf> = units.into_iter().map(|unit| unit.host).collect();
    let own = |symbols| Own {
        suffix: context.unique.to_owned(),
        symbols,
    };
    let names = (!context.deferred).then(|| match module.language {
        Language::OpenMp => own(Symbols::None),
        _ => own(Symbols::OfEntries),
    });
    let registration = Registration {
        module: module.name.clone(),
        images: Images::new(
            module,
            code.parts.pop().expect("a module's images are one part"),
            &context.compiler.version,
        ),
        skipped: code.skipped.clone(),
        hosts: hosts.clone(),
        host: form,
        largest_usual: module.largest_usual,
        unique: context.unique.to_owned(),
        own: names.clone(),
        output: folder.join("registration.o"),
        host_file: host_file(context.out, &module.name),
    };
    let output = registration.output.clone();
    let mut objects: Vec<PathBuf> = [output].into_iter().chain(hosts).collect();
    let mut stages = vec![compiles, code.links, vec![keyed(registration)]];
    if let HostFormat::Elf(_) = form {
        let object = folder.join("module.o");
        let join = context.join(&module.name, objects, &object);
        stages.push(vec![step(join)]);
        objects = vec![object];
    }
    let names = match form {
        // Nothing joins them, and what is weak in two of them must not meet.
        HostFormat::Coff(_) => names.or_else(|| Some(own(Symbols::None))),
        HostFormat::Elf(_) if module.language == Language::OpenMp && context.deferred => {
            Some(own(Symbols::Deferred))
        }
        HostFormat::Elf(_) => names,
    };
    let archive = context.archive(objects, names);
    let artifacts = artifacts.into_iter().map(step);
    stages.push([keyed(archive)].into_iter().chain(artifacts).collect());
    let skipped = code.skipped;
    Ok((Plan { stages, skipped }, code.built))
}
