//! The plan of a CUDA module whose host code nvcc compiles: objects of the host with device code for all targets, whose
//! device link makes an object that registers the images. What is left to do is to join them, and to say what they have.

use crate::compile::nvcc::{self, Nvcc};
use crate::declare::module::{Flags, Module, Target};
use crate::device_link::DeviceInput;
use crate::error;
use crate::error::Error;
use crate::files;
use crate::generate::{Content, Described, HostFile, Place, Stub};
use crate::plan::context::{self, Context};
use crate::plan::stages::{Plan, Step};
use crate::steps::host_objects::own::{Own, Symbols};
use crate::steps::images::Images;
use crate::steps::images::planned::PlannedImage;
use crate::steps::task::finish::Finish;
use crate::steps::task::{Done, Task};
use object::{Object, ObjectSection, ObjectSymbol};
use offload_formats::container::elf::Machine;
use offload_formats::format::fatbin;
use offload_formats::registration::anchor;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the device link puts the images.
const SECTION: &str = ".nv_fatbin";

/// Plans a module, which has an image for each of its targets.
pub(crate) fn plan(module: &Module, context: &Context<'_>) -> Result<(Plan, Vec<Target>), Error> {
    let host = check(module, context)?;
    let folder = context.folder(module);
    let processors = module.targets.iter().map(|target| target.id.to_string());
    let processors: Vec<String> = processors.collect();
    // One process compiles for all of them; `check` refuses tables of their own.
    let levels = module.targets.iter().map(|target| &target.own.opt_level);
    let device_level = levels.max().map_or("", String::as_str);
    let mut compiles = Vec::new();
    let mut objects = Vec::new();
    for source in &module.sources {
        let stem = context::stem(context.root, source);
        let output = folder.join("host").join(&stem).with_extension("o");
        compiles.push(Step::Run(context.compile(
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
                nvcc.object(&processors, device_level, compile)
            },
        )));
        objects.push(output);
    }
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
        vec![Step::Run(link)],
        vec![Step::Describe(description)],
        vec![Step::Run(join)],
        vec![Step::Archive(context.archive(vec![object], Some(own)))],
    ];
    let skipped = Vec::new();
    Ok((Plan { stages, skipped }, module.targets.clone()))
}

/// What nvcc cannot do, as one process compiles for the host and all targets.
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

/// Reads what the device link made, and writes the file that Rust includes, and an object for it to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) module: String,
    images: Images,
    linked: PathBuf,
    objects: Vec<PathBuf>,
    host: Machine,
    anchor: String,
    own: Own,
    pub(crate) output: PathBuf,
    host_file: PathBuf,
}

impl Description {
    pub(crate) fn outputs(&self) -> Vec<PathBuf> {
        vec![self.output.clone(), self.host_file.clone()]
    }

    pub(crate) fn inputs(&self) -> Vec<PathBuf> {
        let linked = [self.linked.clone()].into_iter();
        linked.chain(self.objects.iter().cloned()).collect()
    }

    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let images = self.read()?;
        let mut described = self.images.kernels(&images)?;
        self.images.check(&images, &BTreeSet::new())?;
        let functions = functions(&self.objects)?;
        let stub = |kernel: &mut Described| {
            let is_seen = functions.contains(&kernel.name);
            let symbol = self.own.name(&kernel.name);
            kernel.stub = is_seen.then_some(Stub::Function { symbol });
        };
        described.iter_mut().for_each(stub);
        let object = anchor::to_object(self.host, &self.anchor).map_err(Error::new)?;
        files::write(&self.output, &object).map_err(error::io(&self.output))?;
        let images = self.images.planned.iter();
        let images = images.map(|image| self.images.shown(image, Place::Nowhere));
        let file = HostFile {
            module: self.module.clone(),
            kernels: described.iter().map(|kernel| kernel.name.clone()).collect(),
            described,
            skipped: self.images.skipped.clone(),
            content: Content::Kept {
                anchor: self.anchor.clone(),
                images: images.collect(),
            },
        };
        let text = file.to_string();
        files::write(&self.host_file, text.as_bytes()).map_err(error::io(&self.host_file))?;
        Ok(Done::default())
    }

    /// The image of each target.
    fn read(&self) -> Result<Vec<Vec<u8>>, Error> {
        let bytes = fs::read(&self.linked).map_err(error::io(&self.linked))?;
        let wrong = |problem: &dyn fmt::Display| {
            Error::new(format_args!("{}: {problem}", self.linked.display()))
        };
        let file = object::File::parse(bytes.as_slice()).map_err(|error| wrong(&error))?;
        let section = file.section_by_name(SECTION);
        let section = section.ok_or_else(|| wrong(&format_args!("has no section `{SECTION}`")))?;
        let data = section.data().map_err(|error| wrong(&error))?;
        let entries = fatbin::parse(data, 0..data.len() as u64).map_err(|error| wrong(&error))?;
        let image = |image: &PlannedImage| {
            let processor = image.target.id.to_string();
            let mut found = entries.iter().filter(|entry| {
                entry.kind == fatbin::FatbinKind::Cubin
                    && entry.processor == processor
                    && !entry.is_compressed
            });
            let range = found.next().map(|entry| entry.image.clone());
            let bytes = range.and_then(|range| {
                let start = usize::try_from(range.start).ok()?;
                data.get(start..usize::try_from(range.end).ok()?)
            });
            bytes
                .map(<[u8]>::to_vec)
                .ok_or_else(|| wrong(&format_args!("has no image for `{processor}`")))
        };
        self.images.planned.iter().map(image).collect()
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host_file = self.host_file.display();
        writeln!(
            f,
            "# kernels of `{}`, in this process: {host_file}",
            self.module
        )
    }
}

/// What the objects define for each other.
fn functions(objects: &[PathBuf]) -> Result<BTreeSet<String>, Error> {
    let mut functions = BTreeSet::new();
    for path in objects {
        let bytes = fs::read(path).map_err(error::io(path))?;
        let wrong = |error| Error::because(Path::display(path), error);
        let file = object::File::parse(bytes.as_slice()).map_err(wrong)?;
        for symbol in file.symbols() {
            if symbol.is_global() && symbol.is_definition() {
                functions.insert(symbol.name().map_err(wrong)?.to_owned());
            }
        }
    }
    Ok(functions)
}
