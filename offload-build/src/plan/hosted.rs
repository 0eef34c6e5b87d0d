//! The plan of a module with host code: host objects with offload entries, an image for each target, and a static
//! library of the host code together with what registers the images: on ELF one object, on COFF several.

use crate::compile::host;
use crate::declare::family::Family;
use crate::declare::language::Language;
use crate::declare::module::{Module, Target};
use crate::error::Error;
use crate::files;
use crate::installed::host::Objects;
use crate::installed::llvm::Llvm;
use crate::plan::artifacts::{self, Unit};
use crate::plan::context::{self, Context};
use crate::plan::stages::{Plan, Step};
use crate::process::command::Command;
use crate::steps::archive::Archive;
use crate::steps::host_objects::own::{Own, Symbols};
use crate::steps::images::Images;
use crate::steps::register::Registration;
use crate::steps::task::Task;
use crate::steps::task::finish::Finish;
use std::path::{Path, PathBuf};

/// Plans a module, and says for which of its targets there will be an image.
pub(crate) fn plan(module: &Module, context: &Context<'_>) -> Result<(Plan, Vec<Target>), Error> {
    if context.compiler.family == Family::Nvcc {
        return crate::plan::nvcc::plan(module, context);
    }
    let form = context.host.objects()?;
    let folder = context.folder(module);
    let mut compiles = Vec::new();
    let mut units = Vec::new();
    for source in &module.sources {
        let stem = context::stem(context.root, source);
        let output = folder.join("host").join(&stem).with_extension("o");
        compiles.push(Step::Run(context.compile(
            module,
            source,
            context::Side::Host("the host"),
            &output,
            |clang, compile| {
                let sdk = context.compiler.sdk.as_deref();
                match module.language {
                    Language::Hip => host::hip_host(clang, context.compiler.rocm(), compile),
                    Language::Cuda => host::cuda_host(clang, sdk, compile),
                    _ => clang.host_object(compile),
                }
            },
        )));
        units.push(Unit {
            stem: stem.trim_end_matches('.').to_owned(),
            host: output,
            images: Vec::new(),
        });
    }
    let code = context.device_code(module, &mut units)?;
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
            code.images,
            code.skipped.clone(),
            &context.compiler.version,
        ),
        hosts: hosts.clone(),
        host: form,
        unique: context.unique.to_owned(),
        own: names.clone(),
        output: folder.join("registration.o"),
        host_file: context.out.join(format!("{}.rs", module.name)),
    };
    let output = registration.output.clone();
    let mut objects: Vec<PathBuf> = [output].into_iter().chain(hosts).collect();
    let mut stages = vec![compiles, code.links, vec![Step::Register(registration)]];
    if let Objects::Elf(_) = form {
        let object = folder.join("module.o");
        let join = context.join(&module.name, objects, &object);
        stages.push(vec![Step::Run(join)]);
        objects = vec![object];
    }
    let names = match form {
        // Nothing joins them, and what is weak in two of them must not meet.
        Objects::Coff(_) => names.or_else(|| Some(own(Symbols::None))),
        Objects::Elf(_) => names,
    };
    let archive = context.archive(objects, names);
    let artifacts = artifacts.into_iter().map(Step::Artifact);
    stages.push(
        [Step::Archive(archive)]
            .into_iter()
            .chain(artifacts)
            .collect(),
    );
    let skipped = code.skipped;
    Ok((Plan { stages, skipped }, code.built))
}

impl Context<'_> {
    /// The module's library.
    pub(crate) fn archive(&self, objects: Vec<PathBuf>, own: Option<Own>) -> Archive {
        let name = format!("{}_offload", self.unique);
        Archive {
            library: self.out.join(self.host.static_library(&name)),
            name,
            objects,
            own,
        }
    }

    /// One relocatable object of what registers the images, which comes first, and the host objects.
    pub(crate) fn join(&self, module: &str, inputs: Vec<PathBuf>, object: &Path) -> Task {
        // hipcc links HIP's runtime, and nvcc NVIDIA's; there the host's compiler is the system's.
        let llvm = self.compiler.llvm.as_ref();
        let mut link = match llvm {
            Some(llvm) => Command::new(&llvm.clang).arg("--no-default-config"),
            None => Command::new("cc"),
        };
        if self.host.is_cross {
            link = link.arg(format!("--target={}", self.host.triple));
            // Without it clang takes the linker for that host when there is one, otherwise this machine's.
            let lld = |llvm: &Llvm| llvm.sibling("ld.lld").is_ok();
            if llvm.is_some_and(lld) {
                link = link.arg("-fuse-ld=lld");
            }
        }
        let link = link
            .args(["-r", "-nostdlib", "-o"])
            .arg(files::part(object))
            .args(&inputs);
        Task {
            title: format!("host code and registration of `{module}`"),
            commands: vec![link],
            launched: None,
            inputs,
            depfile: None,
            output: object.to_owned(),
            finish: Finish::None,
            environment: String::new(),
            undefined_hint: "",
        }
    }
}
