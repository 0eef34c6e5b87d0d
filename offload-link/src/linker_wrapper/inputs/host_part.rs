//! Extracts the host parts of bundles that are files or archive members, for the host linker.
//!
//! | the host's entry            | becomes                                     |
//! |-----------------------------|---------------------------------------------|
//! | an object                   | a file                                      |
//! | bitcode, LLVM IR as text    | an object, by clang                         |
//! | assembly, in a text bundle  | an object, by clang                         |
//! | source, in a text bundle    | an error: linkers do not compile            |
//! | empty or missing            | nothing: the bundle is for devices only     |
//! | anything else               | an error                                    |
//!
//! clang's older driver handles files like this (LLVM 19: `clang-offload-bundler -unbundle`, then `-cc1` or
//! `-cc1as`). It passes archives with such members to the host linker, which ignores the members. Here
//! `host_archive.rs` puts the object in the member's place.
//!
//! The objects are made before images are chosen, because they tell how HIP's older objects register themselves.

use crate::linker_wrapper::inputs::host_archive::Maker;
use std::path::{Path, PathBuf};

use offload_build::tools::{Command, Search};
use offload_formats::container::bundled::{self, Unpacking};
use offload_formats::escape::terminal;
use offload_formats::format::bitcode;
use offload_formats::format::bundle_text::Comment;
use offload_formats::format::device_text::DeviceText;
use offload_formats::format::magic::Magic;
use offload_formats::names::host::clang_triple;

use crate::files::scratch;
use crate::linker_wrapper::error::{LinkError, Problem};
use crate::linker_wrapper::inputs::blocks::Blocks;
use crate::linker_wrapper::inputs::file::{FileKind, InputFile, Inputs, Unit};
use crate::linker_wrapper::inputs::host_archive;
use crate::linker_wrapper::inputs::images::with_hint;
use crate::linker_wrapper::installed::programs;
use crate::linker_wrapper::line::arguments::Position;
use crate::linker_wrapper::line::host;
use crate::linker_wrapper::report::fates::Report;

/// The host part of a bundle.
struct HostPart {
    bytes: Vec<u8>,
    form: HostCode,
}

enum HostCode {
    Object,
    /// LLVM IR with the release that wrote it, if known.
    Ir(Option<u32>),
    Assembly,
}

impl Inputs {
    /// Makes an object of the host part of each bundle, which becomes the bundle's unit, and sets the file that the
    /// host linker reads instead.
    pub(crate) fn make_host_parts(
        &mut self,
        maker: &Maker<'_>,
        report: &mut Report,
    ) -> Result<(), LinkError> {
        let mut files = std::mem::take(&mut self.files);
        let mut count = 0;
        let limit = maker.arguments.options.max_decompressed_size()?.files();
        for file in &mut files {
            let mut made = Vec::new();
            for (index, unit) in file.units.iter().enumerate() {
                if !unit.is_bundle_file() {
                    continue;
                }
                let from = file.unit_name(unit);
                let part = read(file, unit, limit);
                let part = part.map_err(|problem| LinkError::input(&from, problem))?;
                let Some(part) = part else {
                    continue;
                };
                made.push((index, maker.object(&part, &from, count, self)?));
                count += 1;
            }
            if made.is_empty() {
                continue;
            }
            if maker.actions.are_dry() {
                report.warnings.push(format!(
                    "{}: the symbols that its host part needs are unknown before it is linked",
                    terminal(&*file.path)
                ));
            } else {
                for (index, path) in &made {
                    self.adopt(file, *index, path)?;
                }
            }
            file.in_place = Some(match file.kind {
                FileKind::Archive => host_archive::write(file, maker)?,
                _ => made.remove(0).1,
            });
        }
        self.files = files;
        Ok(())
    }

    /// Uses an object as the host's view of a unit.
    fn adopt(&mut self, file: &mut InputFile, index: usize, path: &Path) -> Result<(), LinkError> {
        let from = file.unit_name(&file.units[index]);
        let wrong = |problem: Problem| LinkError::input(&from, problem);
        let unreadable = self.unreadable.len();
        let blocks = Blocks::open(path).map_err(|problem| wrong(problem.into()))?;
        let seen = self.look(path, &blocks)?;
        if let Some(unreadable) = self.unreadable.drain(unreadable..).next() {
            let problem = format!("its host part: {}", unreadable.problem);
            return Err(wrong(problem.into()));
        }
        let object = match seen {
            Some((FileKind::Object, units)) => units.into_iter().next(),
            _ => None,
        };
        match (object, file.units.get_mut(index)) {
            (Some(object), Some(unit)) if object.bundle.is_none() => {
                unit.outside = Some(path.to_owned());
                unit.data = object.data;
                unit.kind = object.kind;
                unit.device_code = object.device_code;
                Ok(())
            }
            (Some(_), _) => Err(wrong("its host part is a bundle, too".into())),
            (None, _) => Err(wrong("its host part is not an object".into())),
        }
    }
}

/// Limit in bytes on entry IDs, and on compressed bundles that are unpacked whole while one is read.
const MAX_IDS: u64 = 16 << 20;

/// Limit on a host part in bytes: it is kept in memory.
const MAX_PART: u64 = 1 << 30;

/// Returns the host part of a bundle, unless it is empty.
fn read(file: &InputFile, unit: &Unit, limit: u64) -> Result<Option<HostPart>, Problem> {
    let blocks = file.blocks(unit)?;
    let data = blocks.apart();
    let mut found = None;
    // Unpacks only the host part.
    let mut unpacking = Unpacking::within(limit, scratch()).at_once(MAX_IDS);
    let entries = bundled::entries(&data, unit.data.clone(), &mut unpacking);
    for entry in entries.map_err(with_hint)? {
        // Invalid entry IDs are reported with the images.
        if !matches!(entry.target(), Ok(None)) || entry.range.is_empty() {
            continue;
        }
        let id = terminal(&entry.id);
        let said = |problem: &str| format!("entry `{id}`: {problem}");
        let size = entry.range.end.saturating_sub(entry.range.start);
        if size > MAX_PART {
            let problem =
                format!("{size} bytes exceed the limit of {MAX_PART} bytes for a host part");
            return Err(said(&problem).into());
        }
        let bytes = entry.content(&data).map_err(|problem| match problem {
            Some(problem) => said(&problem.to_string()),
            None => said("it cannot be read"),
        })?;
        let form = form(&bytes, entry.comment).map_err(|problem| said(&problem))?;
        if found.is_some() {
            return Err(said("second host part; a bundle can have only one").into());
        }
        found = Some(HostPart {
            bytes: bytes.into_owned(),
            form,
        });
    }
    Ok(found)
}

fn form(bytes: &[u8], comment: Option<Comment>) -> Result<HostCode, String> {
    let is_text = comment.is_some();
    match (Magic::of(bytes), DeviceText::of(bytes)) {
        _ if comment == Some(Comment::Slashes) => Err(
            "the host part is source, which linkers do not compile\nhint: compile the file with -c"
                .to_owned(),
        ),
        (Magic::Elf | Magic::Coff, _) => Ok(HostCode::Object),
        (Magic::Bitcode, _) => {
            let release = bitcode::release(bytes, 0..bytes.len() as u64);
            Ok(HostCode::Ir(release.ok().flatten()))
        }
        (Magic::Unknown, Some(DeviceText::Ir)) => Ok(HostCode::Ir(None)),
        (Magic::Unknown, Some(DeviceText::Assembly)) if is_text => Ok(HostCode::Assembly),
        _ => Err("the host part is neither an object nor bitcode nor assembly".to_owned()),
    }
}

impl Maker<'_> {
    /// Writes or compiles the object of a host part, and returns its path.
    fn object(
        &self,
        part: &HostPart,
        from: &str,
        count: usize,
        inputs: &Inputs,
    ) -> Result<PathBuf, LinkError> {
        let name = from.trim_end_matches(')');
        let name = name.rsplit(['/', '(']).next().unwrap_or(name);
        let stem = Path::new(name).file_stem().unwrap_or_default();
        let base = format!("{}-{count}.host", stem.to_string_lossy());
        let object = self.workplace.file(&format!("{base}.o"));
        let (actions, shown) = (self.actions, object.display());
        actions.note(format_args!("host part of {from}: {shown}"));
        let extension = match part.form {
            HostCode::Object => return actions.write(&object, &part.bytes).map(|()| object),
            HostCode::Ir(_) => "bc",
            HostCode::Assembly => "s",
        };
        let source = self.workplace.file(&format!("{base}.{extension}"));
        let command = self.compile(&part.form, &source, &object, inputs, from)?;
        actions.write(&source, &part.bytes)?;
        let compiled = actions.run(&command, self.workplace);
        compiled.map_err(|source| LinkError::HostPart {
            from: from.to_owned(),
            source,
        })?;
        Ok(object)
    }

    /// Compiles with clang, whose assembly has directives that GNU's assembler does not support.
    fn compile(
        &self,
        form: &HostCode,
        source: &Path,
        object: &Path,
        inputs: &Inputs,
        from: &str,
    ) -> Result<Command, LinkError> {
        let arguments = self.arguments;
        let release = match form {
            HostCode::Ir(release) => *release,
            _ => None,
        };
        let search: Search = programs::search(arguments);
        let same = release.and_then(|release| search.clang_of(release));
        let clang = same.or_else(|| search.clang_from(release.unwrap_or_default()).ok());
        let clang = clang.ok_or_else(|| {
            let release = release.map_or(String::new(), |release| format!(" {release}"));
            LinkError::Option(format!(
                "{from}: found no clang{release} to compile its host part\n\
                 hint: install clang, of the release that made the bundle or newer"
            ))
        })?;
        let mut command = Command::new(clang.clang).arg("--no-default-config");
        let host = host::machine(arguments, inputs.host);
        if let Some(triple) = host::target(arguments, Some(host)) {
            command = command.arg(format!("--target={}", clang_triple(&triple)));
        }
        if arguments.position == Position::Driver {
            command = command.args(arguments.machine_flags());
        }
        let language: &[&str] = match form {
            HostCode::Assembly => &["-x", "assembler"],
            _ => &["-O2", "-Wno-override-module", "-x", "ir"],
        };
        if arguments.family.is_elf() {
            command = command.arg("-fPIC");
        }
        Ok(command
            .args(["-c", "-Wno-unused-command-line-argument"])
            .args(language)
            .arg(source)
            .arg("-o")
            .arg(object))
    }
}
