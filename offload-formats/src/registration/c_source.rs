//! Registrations as C, for hosts without machine code here, and for readers.
//!
//! Each is a complete translation unit without headers. gcc and clang compile it for ELF hosts of
//! any instruction set, clang also for COFF and Mach-O. The images are in files, which the
//! assembler reads (`.incbin`) when the source is compiled. Prefer absolute paths: a relative path
//! is relative to the directory in which the compiler starts.
//!
//! | registration | difference to the object that this crate writes                                |
//! |--------------|--------------------------------------------------------------------------------|
//! | all          | the entry section is not retained, but referenced, with the same effect          |
//! | all          | images are in `.offloading.images`, for any [`BlobSection`]                     |
//! | COFF         | the entries are between two of zeros, in the sections `$OA` and `$OZ` of LLVM    |
//! | Mach-O       | sections and symbols of LLVM's main branch; linking is not tested             |
//!
//! [`BlobSection`]: super::openmp::BlobSection

use std::fmt::Write as _;
use std::path::Path;

use super::entries::EntryTable;
use super::error::{RegistrationError, check_alignment};
use super::fat_binary::{FatBinary, HostTable, Runtime};
use super::global::Global;
use super::hip_symbols::{HipFatBinary, HipSymbols};
use super::openmp::OpenMp;
use super::sycl::Sycl;
use crate::escape;
use crate::format::offload_entry;

const ENTRIES: &str = include_str!("../../templates/registration/entries.c");
const FAT_BINARY: &str = include_str!("../../templates/registration/fat_binary.c");
const OPENMP: &str = include_str!("../../templates/registration/openmp.c");
const SYCL: &str = include_str!("../../templates/registration/sycl.c");

impl OpenMp<'_> {
    /// Writes the registration as C. Each of `files` contains exactly one blob.
    ///
    /// # Errors
    ///
    /// Fails if the number of files differs from the number of images, an image exceeds its blob, or a
    /// name cannot be written in C.
    pub fn to_c(&self, files: &[&Path]) -> Result<String, RegistrationError> {
        one_file_each(self.images.len(), files)?;
        let mut definitions = String::new();
        let mut images = String::new();
        define_table(&mut definitions, 0, &self.table, "entry")?;
        let ends = ends(0, &self.table);
        for (index, (blob, file)) in self.images.iter().zip(files).enumerate() {
            let (start, end) = blob.checked(index)?;
            define_image(&mut definitions, index, "IMAGES", 8, file);
            let _ = writeln!(
                images,
                "  {{image_{index} + {start}, image_{index} + {end}, {ends}}},"
            );
        }
        let sizes = self.images.iter().map(|blob| blob.bytes.size());
        define_globals(&mut definitions, self.globals, all(sizes))?;
        let filled = fill(
            OPENMP,
            &[
                ("DEFINITIONS", &definitions),
                ("ENDS", &ends),
                ("IMAGES", &images),
            ],
        );
        Ok(format!("{ENTRIES}\n{filled}"))
    }
}

impl FatBinary<'_> {
    /// Writes the registration as C. `file` contains the fat binary.
    ///
    /// # Errors
    ///
    /// Fails if a name cannot be written in C.
    pub fn to_c(&self, file: &Path) -> Result<String, RegistrationError> {
        let mut definitions = String::new();
        let mut tables = String::new();
        for (index, HostTable { layout, table }) in self.tables.iter().enumerate() {
            let record = match layout {
                offload_entry::EntryLayout::V19 => "entry_19",
                _ => "entry",
            };
            define_table(&mut definitions, index, table, record)?;
            let [first, second] = self.runtime.kinds(*layout);
            let ends = ends(index, table);
            let _ = writeln!(
                tables,
                "  {{{ends}, &keep_{index}, sizeof(struct {record}), {{{first}, {second}}}}},"
            );
        }
        define_image(
            &mut definitions,
            0,
            "FAT_BINARY",
            self.runtime.alignment(),
            file,
        );
        define_hip_symbols(&mut definitions, &self.symbols)?;
        let size = self.bytes.size();
        define_globals(&mut definitions, self.globals, size)?;
        let runtime = match self.runtime {
            Runtime::Cuda => "CUDA",
            Runtime::Hip => "HIP",
        };
        let parts = [("DEFINITIONS", &*definitions), ("TABLES", &tables)];
        let filled = fill(FAT_BINARY, &parts);
        Ok(format!("#define {runtime} 1\n\n{ENTRIES}\n{filled}"))
    }
}

impl HipFatBinary<'_> {
    /// Writes the object as C, for ELF hosts. `file` contains the fat binary.
    ///
    /// # Errors
    ///
    /// Fails if a name cannot be written in C.
    pub fn to_c(&self, file: &Path) -> Result<String, RegistrationError> {
        let mut definitions = String::new();
        let alignment = Runtime::Hip.alignment();
        define_image(
            &mut definitions,
            0,
            "DATA(\".hip_fatbin\")",
            alignment,
            file,
        );
        define_hip_symbols(&mut definitions, &self.symbols)?;
        Ok(format!("{ENTRIES}\n{definitions}"))
    }
}

impl Sycl<'_> {
    /// Writes the registration as C. `files` contain the images.
    ///
    /// # Errors
    ///
    /// Fails if `files` is not one file for each image, an image's kind does not fit into a byte, or a name
    /// cannot be written in C.
    pub fn to_c(&self, files: &[&Path]) -> Result<String, RegistrationError> {
        one_file_each(self.images.len(), files)?;
        let mut definitions = String::new();
        let mut images = String::new();
        for (index, (image, file)) in self.images.iter().zip(files).enumerate() {
            define_image(&mut definitions, index, "IMAGES", 8, file);
            let _ = writeln!(
                definitions,
                "static const struct entry entries_{index}[] = {{"
            );
            let mut count = 0_usize;
            for kernel in image.kernels() {
                let _ = writeln!(definitions, "  KERNEL({})", escape::c_string(kernel));
                count += 1;
            }
            definitions += "  {0, 0, 0, 0, 0, 0, 0, 0, 0},\n};\n";
            let kind = image.kind.raw();
            let kind =
                u8::try_from(kind).map_err(|_| RegistrationError::ImageKind { index, kind })?;
            let [triple, compile, link] = image.texts()?.map(escape::c_string);
            let _ = writeln!(
                images,
                "  {{3, 8, {kind}, {triple}, {compile}, {link}, image_{index}, image_end_{index},\n   \
                 entries_{index}, entries_{index} + {count}, 0, 0}},"
            );
        }
        let sizes = self.images.iter().map(|image| image.bytes.size());
        define_globals(&mut definitions, self.globals, all(sizes))?;
        let filled = fill(SYCL, &[("DEFINITIONS", &definitions), ("IMAGES", &images)]);
        Ok(format!("{ENTRIES}\n{filled}"))
    }
}

/// Replaces names between `@` by the parts; does not replace names inside of parts.
fn fill(template: &str, parts: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    for line in template.split_inclusive('\n') {
        let part = parts.iter().find_map(|(name, part)| {
            let rest = line
                .strip_prefix('@')?
                .strip_prefix(name)?
                .strip_prefix('@')?;
            Some((*part, rest))
        });
        match part {
            Some((part, rest)) => {
                filled += part;
                // A part contains its own line feeds, so a line feed right after the name is
                // dropped.
                filled += if rest == "\n" { "" } else { rest };
            }
            None => filled += line,
        }
    }
    filled
}

fn one_file_each(images: usize, files: &[&Path]) -> Result<(), RegistrationError> {
    match files.len() == images {
        true => Ok(()),
        false => Err(RegistrationError::Files {
            images,
            files: files.len(),
        }),
    }
}

fn define_table(
    out: &mut String,
    index: usize,
    table: &EntryTable<'_>,
    record: &str,
) -> Result<(), RegistrationError> {
    // Writing to a string cannot fail.
    let _ = match *table {
        EntryTable::StartStop { section, .. } => {
            let section = label(section)?;
            writeln!(out, "ENTRIES({index}, \"{section}\", {record})")
        }
        EntryTable::SectionRange {
            section,
            size,
            flags,
            alignment,
        } => {
            let section = label(section)?;
            let flags: String = [('w', 1), ('a', 2), ('x', 4)]
                .into_iter()
                .filter(|(_, bit)| flags & bit != 0)
                .map(|(letter, _)| letter)
                .collect();
            let alignment = check_alignment(section, alignment)?;
            writeln!(
                out,
                "RANGE({index}, \"{section}\", \"{flags}\", {alignment}, {size})"
            )
        }
        EntryTable::Symbol { symbol, .. } => {
            let symbol = label(symbol)?;
            writeln!(out, "extern const char keep_{index} LABEL(\"{symbol}\");")
        }
    };
    Ok(())
}

/// Returns the first byte of a table, and the byte after it.
fn ends(index: usize, table: &EntryTable<'_>) -> String {
    match table {
        EntryTable::Symbol { size, .. } => format!("&keep_{index}, &keep_{index} + {size}"),
        _ => format!("FIRST({index}), LAST({index})"),
    }
}

fn define_image(out: &mut String, index: usize, section: &str, alignment: u64, file: &Path) {
    let file = file_name(file);
    let _ = writeln!(out, "IMAGE({index}, {section}, {alignment}, \"{file}\")");
}

fn define_hip_symbols(out: &mut String, symbols: &HipSymbols<'_>) -> Result<(), RegistrationError> {
    for name in symbols.fat_binary {
        protected(out, name, "offload_image_0")?;
    }
    if !symbols.handle.is_empty() {
        *out += "__asm__(\".section .hip_gpubin_handle,\\\"aw\\\"\\n.balign 8\\n\"\n        \
                 \"offload_hip_handle:\\n.zero 8\\n.text\");\n";
    }
    for name in symbols.handle {
        protected(out, name, "offload_hip_handle")?;
    }
    Ok(())
}

fn protected(out: &mut String, name: &str, place: &str) -> Result<(), RegistrationError> {
    let name = label(name)?;
    let _ = writeln!(
        out,
        "__asm__(\".globl {name}\\n.protected {name}\\n.type {name}, %object\\n\"\n        \
         \".set {name}, {place}\");"
    );
    Ok(())
}

/// Returns the number of bytes of images, each at a multiple of 8.
fn all(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.map(|size| size.next_multiple_of(8)).sum()
}

/// `available`: number of bytes of all images, each at a multiple of 8.
fn define_globals(
    out: &mut String,
    globals: &[Global<'_>],
    available: u64,
) -> Result<(), RegistrationError> {
    let available = available.next_multiple_of(8);
    for (index, global) in globals.iter().enumerate() {
        let name = label(global.name())?;
        let _ = match global {
            Global::Bytes { offset, size, .. } => {
                let end = offset.saturating_add(*size);
                if end > available {
                    return Err(RegistrationError::Range {
                        what: format!("symbol `{name}`"),
                        end,
                        size: available,
                    });
                }
                // The images are consecutive.
                writeln!(
                    out,
                    "__asm__(\".globl {name}\\n.set {name}, offload_image_0 + {offset}\");"
                )
            }
            Global::Anchor { .. } => writeln!(
                out,
                "void anchor_{index}(void) __asm__(\"{name}\");\nvoid anchor_{index}(void) {{}}"
            ),
            Global::Marker { .. } => writeln!(
                out,
                // Constructors of deferred objects for Windows call it, and linkers for Windows refuse weak functions of two
                // objects. GCC for Windows has no other form.
                "#if defined(_WIN32) && defined(__clang__)\n\
                 __asm__(\".section .text,\\\"xr\\\",discard,{name}\\n.globl {name}\\n{name}:\\nret\\n.text\");\n\
                 #else\n\
                 void marker_{index}(void) __asm__(\"{name}\");\n\
                 __attribute__((weak, visibility(\"hidden\"))) void marker_{index}(void) {{}}\n\
                 #endif"
            ),
        };
    }
    Ok(())
}

/// Returns a name that assemblers accept without quotes.
fn label(name: &str) -> Result<&str, RegistrationError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
    match !name.is_empty() && name.chars().all(plain) {
        true => Ok(name),
        false => Err(RegistrationError::Name { name: name.into() }),
    }
}

/// Escapes a file name for a string of the assembler inside of a C string. Characters special to
/// either become octal numbers.
fn file_name(file: &Path) -> String {
    let mut text = String::new();
    for byte in file.as_os_str().as_encoded_bytes() {
        match byte {
            b'0'..=b'9'
            | b'A'..=b'Z'
            | b'a'..=b'z'
            | b'/'
            | b'.'
            | b'_'
            | b'-'
            | b'+'
            | b':'
            | b' ' => text.push(char::from(*byte)),
            // Clang's assembler for Windows accepts both slashes.
            b'\\' if cfg!(windows) => text.push('/'),
            _ => {
                let _ = write!(text, "\\\\{byte:03o}");
            }
        }
    }
    text
}
