//! Builds without device code, whose crates still check, link and start.
//!
//! The host functions of OpenMP's sources are compiled by the system's compiler, which ignores or runs target regions on
//! the host. Those of HIP and CUDA need the vendor's headers: in their place there are functions that say so and abort.
//! Kernel constants come from a scan of the sources.

use crate::generate::{Content, Described, HostFile, Ptx, SourceFile, source_names};
use crate::inputs::ir_scan;
use crate::inputs::rust_scan;
use crate::inputs::source_scan::{self, Scan};
use crate::out_dir::{host_file, module_folder};
use crate::run::link::tell_whole_library;
use crate::run::system_compiler::SystemCompiler;
use crate::run::unique::unique;
use crate::steps::archive::{NewMember, index_of, write_library};
use crate::steps::task::depfile;
use offload_build_core::declare::language::{ImageSources, Language};
use offload_build_core::declare::module::Module;
use offload_build_core::declare::option_files::expanded;
use offload_build_core::declare::skipped::Skipped;
use offload_build_core::environment::Environment;
use offload_build_core::error;
use offload_build_core::error::Error;
use offload_build_core::files;
use offload_build_core::installed::host::Host;
use offload_build_core::readable::Readable;
use offload_formats::container::kernels::Kernel;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns what a program without device code does instead.
pub(crate) fn effect(module: &Module) -> &'static str {
    match module.language {
        Language::OpenMp => "target regions run on the host",
        _ if module.has_host_code => "its host functions abort",
        _ => "`image()` returns an error",
    }
}

/// Writes the file that Rust includes, and what host code links, for a module without device code.
pub(crate) fn build(
    module: &Module,
    environment: &Environment,
    out: &Path,
    reason: &str,
) -> Result<(), Error> {
    environment.tell("rustc-cfg", "offload_stub");
    let read = module.sources.iter().chain(&module.named_files);
    let read = read.chain(&module.watched);
    read.for_each(|path| watch(environment, out, path));
    let crates = module.kernel_crate.iter();
    let folders = crates.filter_map(|kernels| kernels.source.parent());
    folders.for_each(|folder| watch(environment, out, folder));
    if module.has_host_code {
        let host = Host::of(environment)?;
        let unique = unique(environment, module)?;
        let made = host_library(module, environment, &host, &unique, out);
        // Documentation links nothing.
        if let Err(error) = made {
            environment.report("warning", &error.to_string());
        }
    }
    let path = host_file(out, &module.name);
    let skipped = module.targets.iter();
    let skipped = skipped.map(|target| Skipped::missing(module, target, reason));
    let described = kernels(module)?;
    let file = HostFile {
        module: module.name.clone(),
        kernels: described.iter().map(|kernel| kernel.name.clone()).collect(),
        described,
        skipped: skipped.collect(),
        content: Content::NotBuilt(reason.to_owned()),
        sources: sources(module, environment, reason)?,
    };
    files::write(&path, file.to_string().as_bytes()).map_err(error::io(&path))
}

/// Watches a path, unless the build script wrote it: it is newer than the start of the script, so Cargo would run the script again.
fn watch(environment: &Environment, out: &Path, path: &Path) {
    if !path.starts_with(out) {
        environment.watch(path);
    }
}

/// Describes the sources that would have images of their own.
fn sources(
    module: &Module,
    environment: &Environment,
    reason: &str,
) -> Result<Vec<SourceFile>, Error> {
    if module.images == ImageSources::OfModule {
        return Ok(Vec::new());
    }
    let root = PathBuf::from(environment.required("CARGO_MANIFEST_DIR")?);
    let mut kernels = kernels_of_sources(module)?.into_iter();
    let source = |name| {
        let names = kernels.next().unwrap_or_default();
        let ptx = module.targets.iter().filter(|target| target.is_ptx);
        SourceFile {
            name,
            described: described(names),
            content: Content::NotBuilt(reason.to_owned()),
            ptx: ptx
                .map(|target| Ptx {
                    target: target.written.clone(),
                    file: None,
                })
                .collect(),
        }
    };
    let out = PathBuf::from(environment.required("OUT_DIR")?);
    let names = source_names(&root, &out, &module.sources);
    Ok(names.into_iter().map(source).collect())
}

/// Describes the kernels that the sources of `module` define, as far as a scan finds them.
fn kernels(module: &Module) -> Result<Vec<Described>, Error> {
    let names = match &module.kernel_crate {
        Some(kernels) => rust_scan::kernels(&kernels.source)?,
        None => kernels_of_sources(module)?.into_iter().flatten().collect(),
    };
    Ok(described(names))
}

/// Returns the names of the kernels of each source, in the order of the sources.
fn kernels_of_sources(module: &Module) -> Result<Vec<BTreeSet<String>>, Error> {
    if module.language != Language::Bitcode {
        let scans = scans(module)?.into_iter();
        return Ok(scans
            .map(|(_, scan)| scan.kernels.into_iter().collect())
            .collect());
    }
    let kernels = |path: &PathBuf| {
        let text = fs::read(path).map_err(error::io(path))?;
        Ok(ir_scan::kernels(&String::from_utf8_lossy(&text)))
    };
    module.sources.iter().map(kernels).collect()
}

fn described(names: BTreeSet<String>) -> Vec<Described> {
    let described = names.into_iter().map(|name| Described {
        arguments: Vec::new(),
        images: Vec::<(String, Kernel)>::new(),
        stub: None,
        name,
    });
    described.collect()
}

/// Warns of host code in sources of HIP and CUDA that are compiled for devices alone, also by the other modules of the package.
pub(crate) fn host_code_left_out(
    module: &Module,
    modules: &[Module],
) -> Result<Vec<String>, Error> {
    if module.has_host_code {
        return Ok(Vec::new());
    }
    let mut warnings = Vec::new();
    let with_host_code = modules.iter().filter(|other| other.has_host_code);
    let compiled: Vec<&PathBuf> = with_host_code.flat_map(|other| &other.sources).collect();
    for (path, scan) in scans(module)? {
        if compiled.iter().any(|other| other.as_path() == path) {
            continue;
        }
        let launch = scan.launch.iter();
        let launch = launch.map(|found| (found, "launches a kernel"));
        let functions = scan.host_functions.iter();
        let functions = functions.map(|found| (found, "is host code"));
        if let Some((found, what)) = launch.chain(functions).next() {
            warnings.push(format!(
                "{}:{}: `{}` {what}, which this module does not compile\n\
                 hint: set `host = true` to compile the host code of its sources and to register its kernels",
                path.display(),
                found.line,
                found.function
            ));
        }
    }
    Ok(warnings)
}

/// Scans the sources of HIP and CUDA.
fn scans(module: &Module) -> Result<Vec<(&Path, Scan)>, Error> {
    if !matches!(module.language, Language::Hip | Language::Cuda) {
        return Ok(Vec::new());
    }
    let scan = |path: &PathBuf| {
        let source = fs::read(path).map_err(error::io(path))?;
        Ok(source_scan::scan(&String::from_utf8_lossy(&source)))
    };
    let sources = module.sources.iter();
    sources
        .map(|path| Ok((path.as_path(), scan(path)?)))
        .collect()
}

/// Makes the static library of a module's host functions without device code; tells Cargo to link it.
///
/// # Errors
///
/// If the system's compiler is missing, fails or compiles for another machine, or a file cannot be read or written.
fn host_library(
    module: &Module,
    environment: &Environment,
    host: &Host,
    unique: &str,
    out: &Path,
) -> Result<(), Error> {
    let folder = module_folder(out, &module.name).join("stub");
    fs::create_dir_all(&folder).map_err(error::io(&folder))?;
    let cc = SystemCompiler::of(environment, host);
    let mut objects = Vec::new();
    let mut uses_openmp = false;
    if module.language == Language::OpenMp {
        let root = PathBuf::from(environment.required("CARGO_MANIFEST_DIR")?);
        let flags = expanded(&module.own.flags, &root);
        for (number, source) in module.sources.iter().enumerate() {
            let text = fs::read(source).map_err(error::io(source))?;
            // Its header and its functions are the host compiler's own.
            let has_openmp = String::from_utf8_lossy(&text).contains("omp.h");
            uses_openmp |= has_openmp;
            let object = folder.join(format!("{number}.o"));
            let depfile = folder.join(format!("{number}.d"));
            let command = cc.compile(module, &flags, source, has_openmp, &object);
            let command = command.args(["-MMD", "-MF"]).arg(&depfile);
            cc.run(&command, &object)?;
            let headers = depfile::read(&depfile);
            let headers = headers.map_err(|(path, problem)| error::io(&path)(problem))?;
            headers
                .iter()
                .for_each(|path| watch(environment, out, Path::new(path)));
            objects.push(object);
        }
    } else {
        let mut functions = BTreeSet::new();
        for (_, scan) in scans(module)? {
            let names = scan.host_functions.into_iter();
            functions.extend(names.map(|found| found.function));
        }
        let (source, object) = (folder.join("host.c"), folder.join("host.o"));
        let text = aborting(&module.name, &functions, host);
        files::write(&source, text.as_bytes()).map_err(error::io(&source))?;
        cc.run(&cc.plain(&source, &object), &object)?;
        objects.push(object);
    }
    let name = format!("{unique}_offload");
    archive(&objects, &out.join(host.static_library(&name)))?;
    tell_whole_library(environment, out, host, &name);
    environment.tell(
        "rustc-link-search",
        format_args!("native={}", out.display()),
    );
    if uses_openmp {
        let runtime = cc.openmp_library();
        environment.tell("rustc-link-lib", format_args!("dylib={runtime}"));
    }
    if let Some(library) = host.cpp_library() {
        if module.language == Language::OpenMp && module.has_cpp() {
            environment.tell("rustc-link-lib", format_args!("dylib={library}"));
        }
    }
    Ok(())
}

/// C functions that name themselves and abort. All of them take any arguments. Their names in C are not those of their
/// symbols, which may be words of C or functions of its library. Several modules may have one.
fn aborting(module: &str, functions: &BTreeSet<String>, host: &Host) -> String {
    let mut text = format!(
        "#include <stdio.h>\n#include <stdlib.h>\nstatic void offload_build_missing(const char *name) {{\n  \
         fprintf(stderr, \"`%s` of module `{module}` was not built: this program has no device code\\n\", name);\n  abort();\n}}\n\
         #define TEXT_(word) #word\n#define TEXT(word) TEXT_(word)\n"
    );
    // Weak symbols of COFF are others.
    let weak = match host.is_windows() {
        true => "",
        false => ", weak",
    };
    for (number, function) in functions.iter().enumerate() {
        text += &format!(
            "void function_{number}(void) __asm__(TEXT(__USER_LABEL_PREFIX__) \"{function}\") __attribute__((used{weak}));\n\
             void function_{number}(void) {{ offload_build_missing(\"{function}\"); }}\n"
        );
    }
    text
}

fn archive(paths: &[PathBuf], library: &Path) -> Result<(), Error> {
    let objects = paths.iter().map(|path| Readable::open(path));
    let objects: Vec<Readable> = objects.collect::<Result<_, _>>()?;
    let members = paths.iter().zip(&objects).map(|(path, object)| {
        let name = path.file_name().expect("a file that was read has a name");
        NewMember {
            name: name.to_string_lossy().into_owned(),
            files: vec![path.clone()],
            pieces: object.all(),
        }
    });
    let index = index_of(&objects);
    write_library(library, &members.collect::<Vec<_>>(), index)
}
