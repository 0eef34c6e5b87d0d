//! The plan of an OpenMP module: host objects with offload entries, an image for each target, and one
//! relocatable object that holds the host code together with what registers the images.

use crate::compiler::Compiler;
use crate::container::archive::{self, NewMember};
use crate::container::elf;
use crate::error::{self, Error};
use crate::format::offload_binary::{BinaryImage, OffloadBinary};
use crate::host_file::{self, Content, HostFile};
use crate::link::{self, DeviceInput, DeviceLinker, LinkJob};
use crate::module::{Flags, Module, Target, excluded};
use crate::plan::{Plan, Step};
use crate::registration::deferred::Deferred;
use crate::registration::openmp::{Blob, BlobSection, EntryTable, OpenMp};
use crate::registration::{Global, Host};
use crate::target::{ImageKind, LlvmRelease, OffloadKind};
use crate::toolchain::clang::{self, Clang, Compile};
use crate::toolchain::task::{self, Done, Task};
use crate::toolchain::{Command, NotFound, Search};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Sections of offload entries: LLVM 20 and before, 21 and after (spec linker-wrapper §5.1).
const ENTRY_SECTIONS: [&str; 2] = ["omp_offloading_entries", "llvm_offload_entries"];
/// The symbol of an offload entry is this and the name of the kernel or global.
const ENTRY_SYMBOL: &str = ".offloading.entry.";

/// What the plan of a module is made from, besides the module.
pub(crate) struct Context<'a> {
    pub(crate) compiler: &'a Compiler,
    pub(crate) search: &'a Search,
    /// The package's folder.
    pub(crate) root: &'a Path,
    pub(crate) out: &'a Path,
    /// The host's triple when it is not clang's own.
    pub(crate) cross: Option<&'a str>,
    pub(crate) host: Host,
    pub(crate) debug: bool,
    /// Variables that the compiler reads, for the keys of tasks.
    pub(crate) variables: &'a str,
    /// Unique in the whole program: prefix of symbols and name of the library.
    pub(crate) unique: &'a str,
    pub(crate) deferred: bool,
}

/// Plans a module, and says for which of its targets there will be an image.
pub(crate) fn plan(module: &Module, context: &Context<'_>) -> Result<(Plan, Vec<Target>), Error> {
    let folder = context.out.join("offload").join(&module.name);
    let mut notes = Vec::new();
    let mut compiles = Vec::new();
    let mut links = Vec::new();
    let mut images = Vec::new();
    let mut built = Vec::new();
    let mut hosts = Vec::new();
    for source in &module.sources {
        let output = folder
            .join("host")
            .join(stem(context.root, source))
            .with_extension("o");
        compiles.push(context.compile(
            module,
            source,
            &module.own,
            "the host",
            &output,
            |clang, compile| clang.host_object(compile),
        ));
        hosts.push(output);
    }
    for target in &module.targets {
        let folder = folder.join(target.folder());
        let (tasks, inputs) = context.device_compiles(module, target, &folder);
        if inputs.is_empty() {
            return Err(Error::new(format_args!(
                "module `{}`: `exclude` leaves `{}` without sources",
                module.name, target.written
            )));
        }
        if context.deferred {
            images.extend(
                inputs
                    .into_iter()
                    .map(|input| PlannedImage::new(target, input)),
            );
        } else {
            let output = folder.join("image");
            match context.device_link(target, inputs, &output) {
                Ok(task) => links.push(Step::Run(task)),
                Err(missing) => {
                    notes.push(format!(
                        "module `{}`: no image for `{}`: {missing}",
                        module.name, target.written
                    ));
                    continue;
                }
            }
            images.push(PlannedImage::new(target, DeviceInput::Object(output)));
        }
        compiles.extend(tasks);
        built.push(target.clone());
    }
    if built.is_empty() {
        return Err(Error::new(format_args!(
            "no image can be built\n{}",
            notes.join("\n")
        )));
    }
    let registration = Registration {
        module: module.name.clone(),
        images,
        hosts: hosts.clone(),
        deferred: context.deferred,
        host: context.host,
        unique: context.unique.to_owned(),
        version: context.compiler.version.clone(),
        output: folder.join("registration.o"),
        host_file: context.out.join(format!("{}.rs", module.name)),
    };
    let object = folder.join("module.o");
    let mut relocatable = Command::new(&context.compiler.llvm.clang).arg("--no-default-config");
    if let Some(host) = context.cross {
        relocatable = relocatable.arg(format!("--target={host}"));
    }
    let inputs: Vec<PathBuf> = [registration.output.clone()]
        .into_iter()
        .chain(hosts)
        .collect();
    let relocatable = relocatable
        .args(["-r", "-nostdlib", "-o"])
        .arg(task::part(&object))
        .args(&inputs);
    let join = Task {
        title: format!("host code and registration of `{}`", module.name),
        commands: vec![relocatable],
        inputs,
        depfile: None,
        output: object.clone(),
        environment: String::new(),
        hint: "",
    };
    let archive = Archive {
        name: format!("{}_offload", context.unique),
        library: context.out.join(format!("lib{}_offload.a", context.unique)),
        object,
        // An entry table of its own: the table that another registration finds by the section's
        // name must not hold entries whose images it does not have.
        entries: (!context.deferred).then(|| context.unique.to_owned()),
    };
    let stages = vec![
        compiles,
        links,
        vec![Step::Register(registration)],
        vec![Step::Run(join)],
        vec![Step::Archive(archive)],
    ];
    Ok((Plan { stages, notes }, built))
}

impl Context<'_> {
    fn device_compiles(
        &self,
        module: &Module,
        target: &Target,
        folder: &Path,
    ) -> (Vec<Step>, Vec<DeviceInput>) {
        let bitcode = !target.triple.is_cpu();
        let mut tasks = Vec::new();
        let mut inputs = Vec::new();
        for source in &module.sources {
            if excluded(&target.own.exclude, self.root, source) {
                continue;
            }
            let extension = if bitcode { "bc" } else { "o" };
            let output = folder
                .join(stem(self.root, source))
                .with_extension(extension);
            tasks.push(self.compile(
                module,
                source,
                &target.own,
                &target.written,
                &output,
                |clang, compile| {
                    clang.device_image(&target.triple, &target.id.to_string(), compile)
                },
            ));
            inputs.push(if bitcode {
                DeviceInput::Bitcode(output)
            } else {
                DeviceInput::Object(output)
            });
        }
        (tasks, inputs)
    }

    fn compile(
        &self,
        module: &Module,
        source: &Path,
        own: &Flags,
        what_for: &str,
        output: &Path,
        command: impl Fn(&Clang<'_>, &Compile<'_>) -> Command,
    ) -> Step {
        let clang = Clang {
            clang: &self.compiler.llvm.clang,
            host: self.cross,
            std: module.std.as_deref(),
            include: &module.include,
            debug: self.debug,
        };
        let compile = Compile {
            source,
            output,
            opt_level: &own.opt_level,
            define: &own.define,
            flags: &own.flags,
        };
        let shown = source.strip_prefix(self.root).unwrap_or(source);
        Step::Run(Task {
            title: format!("{} for {what_for}", shown.display()),
            commands: vec![command(&clang, &compile)],
            inputs: Vec::new(),
            depfile: Some(clang::depfile(output)),
            output: output.to_owned(),
            environment: self.variables.to_owned(),
            hint: "",
        })
    }

    fn device_link(
        &self,
        target: &Target,
        inputs: Vec<DeviceInput>,
        output: &Path,
    ) -> Result<Task, NotFound> {
        let files = inputs.iter().map(|input| input.path().to_owned()).collect();
        let job = LinkJob {
            triple: target.triple.clone(),
            processor: target.id.to_string(),
            inputs,
        };
        let mut folder = OsString::from("-L");
        folder.push(&self.compiler.runtime);
        let host_libraries = [
            "-Wl,--as-needed".into(),
            folder,
            "-lomp".into(),
            "-lstdc++".into(),
            "-lm".into(),
        ];
        let linker = DeviceLinker {
            llvm: Some(&self.compiler.llvm),
            search: self.search,
            cc: Path::new("cc"),
            opt_level: &target.own.opt_level,
            host_libraries: &host_libraries,
            compiler_args: &[],
            linker_args: &[],
        };
        Ok(Task {
            title: format!("device link for {}", target.written),
            commands: linker.plan(&job, &task::part(output))?,
            inputs: files,
            depfile: None,
            output: output.to_owned(),
            environment: self.variables.to_owned(),
            hint: "device functions of other crates are found when offload-link is Cargo's linker: \
                   it links the device code of all crates together",
        })
    }
}

/// A name for the files made from `source`: its path in the package, in one word.
fn stem(root: &Path, source: &Path) -> String {
    let relative = source
        .strip_prefix(root)
        .unwrap_or(source)
        .to_string_lossy();
    // The dot goes as well: what is behind the last one is replaced by each file's own extension.
    relative.replace(['/', '\\'], "-") + "."
}

/// An image that the plan makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedImage {
    target: Target,
    input: DeviceInput,
}

impl PlannedImage {
    fn new(target: &Target, input: DeviceInput) -> Self {
        let target = target.clone();
        Self { target, input }
    }

    fn kind(&self) -> ImageKind {
        match self.input {
            DeviceInput::Object(_) => ImageKind::OBJECT,
            DeviceInput::Bitcode(_) => ImageKind::BITCODE,
        }
    }

    fn read(&self) -> Result<Vec<u8>, Error> {
        let path = self.input.path();
        fs::read(path).map_err(error::io(path))
    }

    /// The offload binary around `image`, and where the image is in it.
    fn pack(&self, image: &[u8]) -> Result<(Vec<u8>, std::ops::Range<u64>), Error> {
        let processor = self.target.id.to_string();
        let strings = [
            ("triple", self.target.triple.as_str()),
            ("arch", &processor),
        ];
        let binary = BinaryImage {
            image_kind: self.kind(),
            offload_kind: OffloadKind::OPENMP,
            flags: 0,
            strings: &strings,
            image,
        };
        let bytes = binary.to_bytes(LlvmRelease::default());
        let bytes = bytes.map_err(|error| Error::because(self, error))?;
        let parsed = OffloadBinary::parse(bytes.as_slice(), 0, bytes.len() as u64);
        let parsed = parsed.map_err(|error| Error::because(self, error))?;
        let range = parsed.entries.first().map(|entry| entry.image.clone());
        Ok((bytes, range.unwrap_or_default()))
    }
}

impl fmt::Display for PlannedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}",
            self.target.written,
            self.input.path().display()
        )
    }
}

/// Writes the registration object of a module, and the file that Rust includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) module: String,
    pub(crate) images: Vec<PlannedImage>,
    hosts: Vec<PathBuf>,
    deferred: bool,
    host: Host,
    unique: String,
    version: String,
    pub(crate) output: PathBuf,
    host_file: PathBuf,
}

impl Registration {
    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let entries = Entries::of(&self.hosts)?;
        let anchor = format!("{}_anchor", self.unique);
        let (object, content) = if self.deferred {
            self.deferred_object(&anchor)?
        } else {
            self.complete_object(&anchor, &entries)?
        };
        task::write(&self.output, &object).map_err(error::io(&self.output))?;
        let kernels = entries.names.into_iter().collect();
        let module = self.module.clone();
        let file = HostFile {
            module,
            kernels,
            content,
        }
        .to_string();
        task::write(&self.host_file, file.as_bytes()).map_err(error::io(&self.host_file))?;
        Ok(Done::default())
    }

    fn complete_object(
        &self,
        anchor: &str,
        entries: &Entries,
    ) -> Result<(Vec<u8>, Content), Error> {
        let mut packed = Vec::new();
        for image in &self.images {
            let bytes = image.read()?;
            link::check(
                &bytes,
                &image.target.triple,
                &image.target.id,
                &entries.names,
            )
            .map_err(|error| Error::because(image, error))?;
            packed.push(image.pack(&bytes)?);
        }
        let blobs: Vec<Blob<'_>> = packed
            .iter()
            .map(|(bytes, image)| Blob {
                bytes,
                image: image.clone(),
            })
            .collect();
        let container = format!("{}_container", self.unique);
        let symbols: Vec<String> = (0..blobs.len())
            .map(|index| format!("{}_image_{index}", self.unique))
            .collect();
        let mut globals = vec![Global::Anchor { name: anchor }];
        let mut shown = Vec::new();
        let mut base = 0;
        for ((planned, blob), symbol) in self.images.iter().zip(&blobs).zip(&symbols) {
            let size = blob.image.end - blob.image.start;
            globals.push(Global::Bytes {
                name: symbol,
                offset: base + blob.image.start,
                size,
            });
            shown.push(self.shown(planned, symbol.clone(), size));
            // An offload binary's size is a multiple of 8, so the next one follows at once.
            base += blob.bytes.len() as u64;
        }
        globals.push(Global::Bytes {
            name: &container,
            offset: 0,
            size: base,
        });
        let registration = OpenMp {
            images: &blobs,
            table: EntryTable::SectionRange {
                section: &entries.section,
                size: entries.size,
                flags: entries.flags,
                alignment: entries.alignment,
            },
            section: BlobSection::Finished,
            globals: &globals,
        };
        let object = registration.to_object(self.host).map_err(Error::new)?;
        let anchor = anchor.to_owned();
        Ok((
            object,
            Content::Linked {
                anchor,
                container: (container, base),
                images: shown,
            },
        ))
    }

    fn deferred_object(&self, anchor: &str) -> Result<(Vec<u8>, Content), Error> {
        let mut binaries = Vec::new();
        let mut shown: Vec<host_file::Image> = Vec::new();
        for image in &self.images {
            binaries.extend(image.pack(&image.read()?)?.0);
            if shown
                .iter()
                .all(|other| other.target != image.target.written)
            {
                shown.push(self.shown(image, String::new(), 0));
            }
        }
        let deferred = Deferred {
            binaries: &binaries,
            anchor,
        };
        let object = deferred.to_object(self.host).map_err(Error::new)?;
        let anchor = anchor.to_owned();
        Ok((
            object,
            Content::Deferred {
                anchor,
                images: shown,
            },
        ))
    }

    fn shown(&self, image: &PlannedImage, symbol: String, size: u64) -> host_file::Image {
        host_file::Image {
            target: image.target.written.clone(),
            kind: image.kind().name(),
            compiler: self.version.clone(),
            symbol,
            size,
        }
    }
}

/// The offload entries of host objects, all in one section.
#[derive(Debug, PartialEq, Eq)]
struct Entries {
    section: String,
    /// Bytes, in all objects together.
    size: u64,
    flags: u64,
    alignment: u64,
    names: BTreeSet<String>,
}

impl Entries {
    fn of(objects: &[PathBuf]) -> Result<Self, Error> {
        let mut found: Option<Self> = None;
        for path in objects {
            let bytes = fs::read(path).map_err(error::io(path))?;
            let wrong = |problem: &dyn fmt::Display| {
                Error::new(format_args!("{}: {problem}", path.display()))
            };
            let file = object::File::parse(bytes.as_slice()).map_err(|error| wrong(&error))?;
            let sections = ENTRY_SECTIONS
                .iter()
                .filter_map(|name| file.section_by_name(name));
            for section in sections.filter(|section| section.size() > 0) {
                let name = section.name().map_err(|error| wrong(&error))?;
                let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
                    return Err(wrong(&"is not an ELF object"));
                };
                let entries = found.get_or_insert_with(|| Self {
                    section: name.to_owned(),
                    size: 0,
                    flags: sh_flags.0,
                    alignment: section.align(),
                    names: BTreeSet::new(),
                });
                if entries.section != name || entries.alignment != section.align() {
                    return Err(wrong(&format_args!(
                        "`{name}` is of another LLVM release than `{}`",
                        entries.section
                    )));
                }
                entries.size += section.size();
            }
            let names = file.symbols().filter_map(|symbol| {
                let name = symbol.name().ok()?.strip_prefix(ENTRY_SYMBOL)?;
                (!symbol.is_undefined()).then(|| name.to_owned())
            });
            let names: Vec<String> = names.collect();
            if let Some(entries) = &mut found {
                entries.names.extend(names);
            }
        }
        found.ok_or_else(|| {
            Error::new("no target region and no `declare target` variable in any source\nhint: write `#pragma omp target` in one of `sources`")
        })
    }
}

/// Puts the object of a module into its static library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Archive {
    /// As `-l` wants it.
    pub(crate) name: String,
    pub(crate) library: PathBuf,
    pub(crate) object: PathBuf,
    /// Renames the section of offload entries: to its name, an underscore, and this.
    entries: Option<String>,
}

impl Archive {
    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let mut object = fs::read(&self.object).map_err(error::io(&self.object))?;
        let wrong = |error| Error::because(self.object.display(), error);
        if let Some(suffix) = &self.entries {
            let section = entry_section(&object).map_err(wrong)?;
            object = elf::rename_section(&object, section, &format!("{section}_{suffix}"))
                .map_err(|error| Error::because(self.object.display(), error))?;
        }
        let symbols: Vec<String> = {
            let file = object::File::parse(object.as_slice()).map_err(wrong)?;
            let defined = file
                .symbols()
                .filter(|symbol| symbol.is_global() && !symbol.is_undefined());
            defined
                .map(|symbol| symbol.name().map(str::to_owned))
                .collect::<Result<_, _>>()
                .map_err(wrong)?
        };
        let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
        let name = format!("{}.o", self.name);
        let member = NewMember {
            name: &name,
            bytes: &object,
            symbols: &symbols,
        };
        task::write(&self.library, &archive::write(&[member])).map_err(error::io(&self.library))?;
        Ok(Done::default())
    }
}

/// Which of the entry sections an object has.
fn entry_section(object: &[u8]) -> Result<&'static str, object::Error> {
    let file = object::File::parse(object)?;
    let has = |name: &&str| file.section_by_name(name).is_some();
    // The objects joined in it had one, or there would have been no registration.
    Ok(ENTRY_SECTIONS.into_iter().find(has).unwrap_or_default())
}
