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
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use offload_formats::container::elf::Machine;
use offload_formats::container::large::{self, ImagePlacement};
use offload_formats::format::offload_binary::{BinaryEntry, walk};
use offload_formats::format::offload_entry;
use offload_formats::format::pieces::Piece;
use offload_formats::names::{LlvmRelease, OffloadKind};
use offload_formats::registration::coff::WindowsAbi;
use offload_formats::registration::fat_binary::{EntryTable, FatBinary, HostTable, Runtime};
use offload_formats::registration::hip_symbols::HipSymbols;
use offload_formats::registration::openmp::{Blob, BlobSection, OpenMp};
use offload_formats::registration::sycl::{Sycl, SyclImage};
use offload_formats::registration::{self, ElfHost, HostFormat};

use crate::files::part;
use crate::llvm_tool::{
    self, CommandLine, LlvmToolError, Output, Sources, Style, installation, outputs, print,
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
    let options = match WrapperOptions::new(release(started)?, values, positional)? {
        Ok(options) => options,
        Err(UnknownKind(kind)) => {
            eprintln!(
                "{}: for the --kind option: Cannot find option named '{kind}'!",
                started.base
            );
            return Ok(1);
        }
    };
    let bytes = registration(&options)?;
    let output = Output {
        path: options.output,
        pieces: vec![Piece::Bytes(bytes)],
        style: Style::Plain,
    };
    outputs::write(&[output], &Sources::default())?;
    Ok(0)
}

/// Returns the default release, which determines the layout of the entry table.
fn release(started: &Started<'_>) -> Result<LlvmRelease, LlvmToolError> {
    match std::env::var("OFFLOAD_LLVM") {
        Ok(text) => {
            let release = text.parse();
            release.map_err(|error| LlvmToolError::new(format!("OFFLOAD_LLVM: {error}")))
        }
        Err(_) => Ok(installation::stands_for(OsStr::new(started.path))),
    }
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

fn registration(options: &WrapperOptions) -> Result<Vec<u8>, LlvmToolError> {
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
        return fat_binary(options, form, runtime, table.as_slice());
    }
    match table.filter(|_| options.kind == OffloadKind::OPENMP) {
        Some(HostTable { table, .. }) => openmp(options, form, table),
        None => sycl(options, form),
    }
}

fn fat_binary(
    options: &WrapperOptions,
    form: OutputForm,
    runtime: Runtime,
    tables: &[HostTable<'_>],
) -> Result<Vec<u8>, LlvmToolError> {
    let [input] = &*options.inputs else {
        return Err(LlvmToolError::new(
            "CUDA / HIP offloading uses a single fatbinary or offload bundle",
        ));
    };
    let bytes = read(input)?;
    let fat_binary = FatBinary {
        runtime,
        bytes: &bytes,
        tables,
        symbols: HipSymbols::default(),
        globals: &[],
    };
    written(match form {
        OutputForm::Object(host) => {
            let placement = placement(host, bytes.len())?;
            fat_binary.to_host_object(host, placement)
        }
        OutputForm::Ir => fat_binary.to_ir(&options.host).map(String::into_bytes),
        OutputForm::C => fat_binary.to_c(&absolute(input)?).map(String::into_bytes),
    })
}

fn openmp(
    options: &WrapperOptions,
    form: OutputForm,
    table: EntryTable<'_>,
) -> Result<Vec<u8>, LlvmToolError> {
    let files = files(options)?;
    let images = options.inputs.iter().zip(&files).map(|(path, bytes)| {
        let image = image_of(path, bytes)?;
        Ok(Blob { bytes, image })
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
            let placement = placement(host, files.iter().map(Vec::len).sum())?;
            openmp.to_host_object(host, placement)
        }
        OutputForm::Ir => openmp.to_ir(&options.host).map(String::into_bytes),
        OutputForm::C => openmp.to_c(&paths).map(String::into_bytes),
    })
}

fn sycl(options: &WrapperOptions, form: OutputForm) -> Result<Vec<u8>, LlvmToolError> {
    let files = files(options)?;
    let inputs = options.inputs.iter().zip(&files);
    let entries = inputs.map(|(path, bytes)| Ok((bytes, entries(path, bytes)?)));
    let entries: Vec<_> = entries.collect::<Result<_, LlvmToolError>>()?;
    let images = entries.iter().flat_map(|(bytes, entries)| {
        entries.iter().map(|entry| SyclImage {
            bytes: part(bytes, &entry.image),
            kind: entry.image_kind,
            triple: entry.triple(),
            symbols: entry.strings.value("symbols").unwrap_or_default(),
            compile_options: b"",
            link_options: b"",
        })
    });
    let sycl = Sycl {
        images: &images.collect::<Vec<_>>(),
        section: section(options),
        globals: &[],
    };
    let refused = |text, hint: &str| Err(LlvmToolError::new(text).with_hint(Some(hint.into())));
    written(match form {
        OutputForm::Object(host @ HostFormat::Elf(machine)) => {
            let placement = placement(host, files.iter().map(Vec::len).sum())?;
            sycl.to_object(ElfHost { machine, placement })
        }
        OutputForm::Ir => sycl.to_ir(&options.host).map(String::into_bytes),
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
fn placement(host: HostFormat, total: usize) -> Result<ImagePlacement, LlvmToolError> {
    let variable = std::env::var(large::LARGE_VARIABLE).ok();
    let largest_usual = large::largest_usual(None, variable.as_deref());
    let largest_usual = largest_usual.map_err(LlvmToolError::new)?;
    let placement = ImagePlacement::choose(host.elf(), total as u64, largest_usual);
    placement.map_err(|problem| LlvmToolError::new(format!("{problem} [OFF813]")))
}

/// Returns the section for the images.
fn section(options: &WrapperOptions) -> BlobSection {
    match options.relocatable {
        false => BlobSection::Offloading,
        true => BlobSection::Finished,
    }
}

/// Returns the bytes of all inputs.
fn files(options: &WrapperOptions) -> Result<Vec<Vec<u8>>, LlvmToolError> {
    options.inputs.iter().map(|input| read(input)).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, LlvmToolError> {
    fs::read(path).map_err(|error| LlvmToolError::file(path, &error))
}

fn absolute(path: &Path) -> Result<PathBuf, LlvmToolError> {
    std::path::absolute(path).map_err(|error| LlvmToolError::file(path, &error))
}

fn written(
    result: Result<Vec<u8>, registration::RegistrationError>,
) -> Result<Vec<u8>, LlvmToolError> {
    result.map_err(|error| LlvmToolError::new(error.to_string()))
}

/// Returns the images in a file of offload binaries.
fn entries(path: &Path, bytes: &[u8]) -> Result<Vec<BinaryEntry>, LlvmToolError> {
    let binaries =
        walk(bytes, 0..bytes.len() as u64).map_err(|error| LlvmToolError::input(path, error))?;
    if binaries.iter().any(|binary| binary.compressed.is_some()) {
        return Err(LlvmToolError::input(path, "a compressed offload binary"));
    }
    let entries = binaries.into_iter().flat_map(|binary| binary.entries);
    Ok(entries
        .filter(|entry| entry.flags & BinaryEntry::METADATA == 0)
        .collect())
}

/// Returns the range of the only image in a file, which the runtime gets.
fn image_of(path: &Path, bytes: &[u8]) -> Result<Range<u64>, LlvmToolError> {
    if !bytes.starts_with(b"\x10\xff\x10\xad") {
        return Ok(0..bytes.len() as u64);
    }
    let entries = entries(path, bytes)?;
    match &*entries {
        [only] => Ok(only.image.clone()),
        several => {
            let text = format!(
                "{} images, but one file can register only one",
                several.len()
            );
            Err(LlvmToolError::input(path, text))
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
             USAGE: {} [options] <image>...\n\nOPTIONS:\n{}{}",
            started.base,
            match help {
                Answer::HelpList | Answer::HelpListHidden => "",
                _ => "\n",
            },
            TABLE.help(help, NAME, ("", ""))
        ),
    }
}
