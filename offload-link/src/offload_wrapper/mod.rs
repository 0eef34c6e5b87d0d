//! The offload wrapper: `llvm-offload-wrapper` without LLVM. It writes a registration of images that have been linked
//! and bundled, for the host's compiler or linker.
//!
//! | phase                                   | file             |
//! |-----------------------------------------|------------------|
//! | parse the command line                  | `options.rs`     |
//! | read the images                         | this file        |
//! | write the registration in one of its forms | this file; `offload_formats::registration` |
//!
//! LLVM's tool writes bitcode. Here the output's extension selects the form: an object (`.o`, `.obj`), C (`.c`), or
//! else LLVM IR as text, which clang reads under the name `.bc`, too.

mod options;

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use offload_formats::container::elf::Machine;
use offload_formats::container::large::{self, ImagePlacement};
use offload_formats::format::magic::Magic;
use offload_formats::format::offload_binary::{BinaryEntry, walk};
use offload_formats::format::offload_entry;
use offload_formats::format::pieces::{self, Embedded, Piece};
use offload_formats::names::OffloadKind;
use offload_formats::registration::coff::WindowsAbi;
use offload_formats::registration::fat_binary::{EntryTable, FatBinary, HostTable, Runtime};
use offload_formats::registration::hip_symbols::HipSymbols;
use offload_formats::registration::openmp::{Blob, BlobSection, OpenMp};
use offload_formats::registration::sycl::{Sycl, SyclImage};
use offload_formats::registration::{self, ElfHost, HostFormat};

use crate::llvm_tool::{
    self, CommandLine, LlvmToolError, Output, Sources, installation, outputs, print,
};
use crate::options::llvm::{Answer, Started};
use options::{TABLE, UnknownKind, WrapperOptions};

/// LLVM's name of the tool.
pub(crate) const NAME: &str = "llvm-offload-wrapper";

/// Runs the tool under the name with which it was started, and returns the exit status.
pub(crate) fn run(name: &OsStr, args: Vec<OsString>) -> u8 {
    llvm_tool::run(name, args, work)
}

fn work(started: &Started<'_>, args: Vec<OsString>) -> Result<u8, LlvmToolError> {
    let (values, positional) = match llvm_tool::read_line(&TABLE, &args, started)? {
        CommandLine::Answer(answer) => return Ok(print(&reply(answer, started))),
        CommandLine::Mistaken => return Ok(1),
        CommandLine::Work(values, positional) => (values, positional),
    };
    if positional.is_empty() {
        eprintln!(
            "{}: Not enough positional command line arguments specified!\n\
             Must specify at least 1 positional argument: See: {} --help",
            started.base, started.path
        );
        return Ok(1);
    }
    let options = match WrapperOptions::new(installation::release(started)?, values, positional)? {
        Ok(options) => options,
        Err(UnknownKind(kind)) => {
            eprintln!(
                "{}: for the --kind option: Cannot find option named '{kind}'!",
                started.base
            );
            return Ok(1);
        }
    };
    let mut sources = Sources::default();
    for input in &options.inputs {
        sources.open(input)?;
    }
    let pieces = registration(&options, &sources)?;
    let output = Output::plain(options.output, pieces);
    outputs::write(&[output], &sources)?;
    Ok(0)
}

/// Form of an output.
enum OutputForm {
    Object(HostFormat),
    C,
    Ir,
}

impl OutputForm {
    fn of(options: &WrapperOptions) -> Result<Self, LlvmToolError> {
        let extension = options.output.extension().unwrap_or_default();
        if extension == "c" {
            return Ok(Self::C);
        }
        if extension != "o" && extension != "obj" {
            return Ok(Self::Ir);
        }
        let host = &options.host;
        if host.os().starts_with("windows") && host.arch() == "x86_64" {
            let abi = match host.environment().starts_with("gnu") {
                true => WindowsAbi::Gnu,
                false => WindowsAbi::Msvc,
            };
            return Ok(Self::Object(HostFormat::Coff(abi)));
        }
        // Operating systems without ELF objects of 64 bits.
        let others = ["windows", "macos", "darwin", "ios", "uefi"];
        let elf = !others.iter().any(|os| host.os().starts_with(os));
        let wide = !host.environment().ends_with("x32");
        let known = [Machine::X86_64, Machine::AARCH64];
        let machine = Machine::of(host).filter(|machine| elf && wide && known.contains(machine));
        let format = machine.map(HostFormat::Elf);
        format.map(Self::Object).ok_or_else(|| {
            LlvmToolError::new(format!(
                "objects are written for ELF hosts of x86_64 and aarch64 and for Windows on \
                 x86_64, and `{host}` is none"
            ))
            .with_hint(Some(
                "name the output .c or .ll, and compile it for that host".into(),
            ))
        })
    }
}

/// Returns the registration; the inputs of its pieces are the `sources`.
fn registration(options: &WrapperOptions, sources: &Sources) -> Result<Vec<Piece>, LlvmToolError> {
    let form = OutputForm::of(options)?;
    let layout = offload_entry::EntryLayout::of(options.llvm);
    let table = layout.section(options.kind).map(|section| HostTable {
        layout,
        table: EntryTable::StartStop {
            section,
            entries: &[],
        },
    });
    if let Some(runtime) = Runtime::of(options.kind) {
        return fat_binary(options, sources, form, (runtime, table.as_slice()));
    }
    match table.filter(|_| options.kind == OffloadKind::OPENMP) {
        Some(HostTable { table, .. }) => openmp(options, sources, form, table),
        None => sycl(options, sources, form),
    }
}

fn fat_binary(
    options: &WrapperOptions,
    sources: &Sources,
    form: OutputForm,
    (runtime, tables): (Runtime, &[HostTable<'_>]),
) -> Result<Vec<Piece>, LlvmToolError> {
    let [input] = &*options.inputs else {
        return Err(LlvmToolError::new(
            "CUDA / HIP offloading uses a single fatbinary or offload bundle",
        ));
    };
    let contents = contents(&form, sources, options)?;
    let fat_binary = FatBinary {
        runtime,
        bytes: Embedded::Pieces(&contents),
        tables,
        symbols: HipSymbols::default(),
        globals: &[],
    };
    written(match form {
        OutputForm::Object(host) => {
            let placement = placement(host, pieces::size(&contents))?;
            fat_binary.to_host_pieces(host, placement)
        }
        OutputForm::Ir => fat_binary.to_ir(&options.host).map(text),
        OutputForm::C => fat_binary.to_c(&absolute(input)?).map(text),
    })
}

fn openmp(
    options: &WrapperOptions,
    sources: &Sources,
    form: OutputForm,
    table: EntryTable<'_>,
) -> Result<Vec<Piece>, LlvmToolError> {
    let contents = contents(&form, sources, options)?;
    let images = contents.iter().enumerate().map(|(number, content)| {
        Ok(Blob {
            bytes: Embedded::Pieces(std::slice::from_ref(content)),
            image: image_of(sources, number)?,
        })
    });
    let openmp = OpenMp {
        images: &images.collect::<Result<Vec<_>, LlvmToolError>>()?,
        table,
        section: section(options),
        globals: &[],
    };
    let paths = options.inputs.iter().map(|input| absolute(input));
    let paths: Vec<PathBuf> = paths.collect::<Result<_, _>>()?;
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    written(match form {
        OutputForm::Object(host) => {
            let placement = placement(host, pieces::size(&contents))?;
            openmp.to_host_pieces(host, placement)
        }
        OutputForm::Ir => openmp.to_ir(&options.host).map(text),
        OutputForm::C => openmp.to_c(&paths).map(text),
    })
}

fn sycl(
    options: &WrapperOptions,
    sources: &Sources,
    form: OutputForm,
) -> Result<Vec<Piece>, LlvmToolError> {
    let contents = contents(&form, sources, options)?;
    let mut found: Vec<(Vec<Piece>, BinaryEntry)> = Vec::new();
    for number in 0..contents.len() {
        for entry in entries(sources, number)? {
            let part = Piece::Copy {
                input: number,
                range: entry.image.clone(),
            };
            let files: Vec<&[Piece]> = contents.iter().map(std::slice::from_ref).collect();
            let image = pieces::replace_inputs(&[part], &files);
            found.push((image.expect("the parser checked the range"), entry));
        }
    }
    let images = found.iter().map(|(image, entry)| SyclImage {
        bytes: Embedded::Pieces(image),
        kind: entry.image_kind,
        triple: entry.triple(),
        symbols: entry.strings.value("symbols").unwrap_or_default(),
        compile_options: b"",
        link_options: b"",
    });
    let sycl = Sycl {
        images: &images.collect::<Vec<_>>(),
        section: section(options),
        globals: &[],
    };
    let refused = |text, hint: &str| Err(LlvmToolError::new(text).with_hint(Some(hint.into())));
    written(match form {
        OutputForm::Object(host @ HostFormat::Elf(machine)) => {
            let placement = placement(host, pieces::size(&contents))?;
            sycl.to_pieces(ElfHost { machine, placement })
        }
        OutputForm::Ir => sycl.to_ir(&options.host).map(text),
        OutputForm::Object(HostFormat::Coff(_)) => {
            return refused(
                "objects of SYCL are written for ELF hosts",
                "name the output .ll, and compile it for that host",
            );
        }
        OutputForm::C => {
            return refused(
                "images of SYCL are parts of their files, which C cannot embed",
                "name the output .o or .ll",
            );
        }
    })
}

/// Returns where the host's linker places `total` bytes of images.
fn placement(host: HostFormat, total: u64) -> Result<ImagePlacement, LlvmToolError> {
    let variable = std::env::var(large::LARGE_VARIABLE).ok();
    let largest_usual = large::largest_usual(None, variable.as_deref());
    let largest_usual = largest_usual.map_err(LlvmToolError::new)?;
    let placement = ImagePlacement::choose(host.elf(), total, largest_usual);
    placement.map_err(|problem| LlvmToolError::new(format!("{problem} [OFF813]")))
}

/// Returns the section for the images.
fn section(options: &WrapperOptions) -> BlobSection {
    match options.relocatable {
        false => BlobSection::Offloading,
        true => BlobSection::Finished,
    }
}

/// Returns the content of each input, the whole source of that number. LLVM IR has it as text, so it must be in memory.
fn contents(
    form: &OutputForm,
    sources: &Sources,
    options: &WrapperOptions,
) -> Result<Vec<Piece>, LlvmToolError> {
    let content = |number| {
        let whole = sources.all(number);
        if !matches!(form, OutputForm::Ir) {
            return Ok(whole);
        }
        let mut bytes = Vec::new();
        let read = sources.reader(&[whole]).read_to_end(&mut bytes);
        read.map_err(|error| LlvmToolError::new(error.to_string()))?;
        Ok(Piece::Bytes(bytes))
    };
    (0..options.inputs.len()).map(content).collect()
}

fn text(text: String) -> Vec<Piece> {
    vec![Piece::Bytes(text.into_bytes())]
}

fn absolute(path: &Path) -> Result<PathBuf, LlvmToolError> {
    std::path::absolute(path).map_err(|error| LlvmToolError::file(path, &error))
}

fn written(
    result: Result<Vec<Piece>, registration::RegistrationError>,
) -> Result<Vec<Piece>, LlvmToolError> {
    result.map_err(|error| LlvmToolError::new(error.to_string()))
}

/// Returns the images in a source of offload binaries.
fn entries(sources: &Sources, number: usize) -> Result<Vec<BinaryEntry>, LlvmToolError> {
    let (path, file) = (sources.name(number), sources.file(number));
    let binaries =
        walk(file.data(), file.whole()).map_err(|error| LlvmToolError::input(path, error))?;
    if binaries.iter().any(|binary| binary.compressed.is_some()) {
        return Err(LlvmToolError::input(path, "a compressed offload binary"));
    }
    let entries = binaries.into_iter().flat_map(|binary| binary.entries);
    Ok(entries
        .filter(|entry| entry.flags & BinaryEntry::METADATA == 0)
        .collect())
}

/// Returns the range of the only image in a source, which the runtime gets.
fn image_of(sources: &Sources, number: usize) -> Result<Range<u64>, LlvmToolError> {
    let file = sources.file(number);
    if Magic::at(file.data(), file.whole()) != Magic::OffloadBinary {
        return Ok(file.whole());
    }
    let entries = entries(sources, number)?;
    match &*entries {
        [only] => Ok(only.image.clone()),
        several => {
            let text = format!(
                "{} images, but one file can register only one",
                several.len()
            );
            Err(LlvmToolError::input(sources.name(number), text))
        }
    }
}

fn reply(answer: Answer, started: &Started<'_>) -> String {
    match answer {
        Answer::Version => {
            let version = env!("CARGO_PKG_VERSION");
            format!("LLVM version 22.1 (offload-link {version})\n")
        }
        help => format!(
            "OVERVIEW: Generate runtime registration code for a device binary image\n\n\
             USAGE: {} [options] <image>...\n\nOPTIONS:\n{}",
            started.base,
            TABLE.help(help, NAME, ("", ""))
        ),
    }
}
