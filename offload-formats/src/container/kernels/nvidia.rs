//! Kernel descriptions in NVIDIA cubins. NVIDIA does not publish the layout. This is the layout that `ptxas` 11.8, 12.4,
//! 12.8 and 13.5 and `nvlink` 13.5 write for sm_52 to sm_120, and `cuobjdump` 13.5 reads. It is the same in both forms of
//! the ELF file: OS/ABI `0x33` with ABI version 7, and `0x41` with 8 (13.5, and 12.8 for sm_100 and later).
//!
//! | section | content |
//! |---|---|
//! | `.nv.info` | records of all functions, kernels or not |
//! | `.nv.info.<function>` | records of that function |
//! | `.nv.shared.<kernel>` | no bytes; its size is that of the kernel's shared memory |
//!
//! `sh_info` of the last two is the section of the function's code, which contains no other kernel. The names are ambiguous:
//! one file that `nvlink` links may have a kernel, and another a local function with the same name.
//!
//! A record:
//!
//! | offset | size | field |
//! |-------:|-----:|---|
//! | `0x0` | 1 | format: 1 no value, 2 a value of one byte, 3 a value of two bytes, 4 a value after the record |
//! | `0x1` | 1 | attribute |
//! | `0x2` | 2 | the value, or the size of the value after the record, or padding |
//!
//! Attributes have the names of `cuobjdump -elf` without `EIATTR_`. Attributes of functions, in `.nv.info` (a symbol and a
//! number):
//!
//! | attribute | name | number |
//! |---|---|---|
//! | `0x11` | `FRAME_SIZE` | bytes of the function's stack frame |
//! | `0x12` | `MIN_STACK_SIZE` | bytes of stack with callees, `0xffffffff` for recursion; only after linking |
//! | `0x2f` | `REGCOUNT` | registers, with callees |
//!
//! Attributes of kernels, in `.nv.info.<function>`:
//!
//! | attribute | name | value |
//! |---|---|---|
//! | `0x05` | `MAX_THREADS` | three numbers: PTX's `.maxntid` |
//! | `0x10` | `REQNTID` | three numbers: `.reqntid`; excludes `MAX_THREADS` |
//! | `0x17` | `KPARAM_INFO` | a parameter with its size in bits 18 to 31 |
//! | `0x19` | `CBANK_PARAM_SIZE` | bytes of all parameters (format 3); missing without parameters |
//! | `0x45` | `KPARAM_INFO_V2` | a parameter with its size in bits 0 to 15; for all parameters, if one needs more than 14 bits |
//!
//! `cuobjdump --dump-resource-usage` prints these values: `REG` is `REGCOUNT`, `STACK` is `MIN_STACK_SIZE`, and
//! `SHARED` is the size of the section. From sm_90 on, it includes 1024 bytes that the system reserves for each kernel with shared memory, and
//! for each kernel of a PTX file with `.extern` shared memory. `.nv.shared.reserved.0` belongs to no kernel. `LOCAL` was for
//! code without a stack (`-abi=no`), which none of these versions writes.
//!
//! Not read: bits 24 to 31 of `sh_info` of the code, which are registers before sm_90 and 0 later; and `PARAM_CBANK`
//! (`0x0a`), which repeats `CBANK_PARAM_SIZE`.

use super::{Argument, Kernel, KernelError};
use crate::format::bytes::{Cursor, OutOfBounds, record};
use object::read::elf::{ElfFile64, SectionHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolIndex};
use std::collections::{BTreeMap, BTreeSet};

const INFO: &str = ".nv.info";
const INFO_OF: &str = ".nv.info.";
const SHARED_OF: &str = ".nv.shared.";

/// Threads of a warp of every processor.
const WARP: u32 = 32;
/// `MIN_STACK_SIZE` of a recursive function.
const UNBOUNDED: u32 = u32::MAX;

const NO_VALUE: u8 = 1;
const BYTE: u8 = 2;
const HALF: u8 = 3;
const SIZED: u8 = 4;

const MAX_THREADS: u8 = 0x05;
const REQNTID: u8 = 0x10;
const FRAME_SIZE: u8 = 0x11;
const MIN_STACK_SIZE: u8 = 0x12;
const KPARAM_INFO: u8 = 0x17;
const CBANK_PARAM_SIZE: u8 = 0x19;
const REGCOUNT: u8 = 0x2f;
const KPARAM_INFO_V2: u8 = 0x45;

record! {
    struct RecordHeader, "record", 4 bytes {
        0x0 format: [u8; 1],
        0x1 attribute: [u8; 1],
        0x2 value: u16,
    }
}

record! {
    /// A number of the function with that symbol of `.symtab`.
    struct OfFunction, "value", 8 bytes {
        0x0 symbol: u32,
        0x4 number: u32,
    }
}

record! {
    struct Threads, "value", 12 bytes {
        0x0 x: u32,
        0x4 y: u32,
        0x8 z: u32,
    }
}

record! {
    /// The index is 0. `packed` also has the pointee's alignment and space, and the constant bank.
    struct Parameter, "value", 12 bytes {
        0x0 index: u32,
        0x4 ordinal: u16,
        0x6 offset: u16,
        0x8 packed: u32,
    }
}

/// Describes the kernels `names` of the image.
pub(super) fn kernels(
    file: &ElfFile64<'_, Endianness>,
    names: &BTreeSet<String>,
) -> Result<Vec<Kernel>, KernelError> {
    let mut found = Found::all(file, names)?;
    let mut records = Records::new(file.data());
    for section in file.sections() {
        let wrong = |error| KernelError::new(format!("section {}: {error}", section.index()));
        let name = section.name().map_err(wrong)?;
        let wrong = |problem| KernelError::new(format!("`{name}`: {problem}"));
        let code = section.elf_section_header().sh_info(file.endian());
        let code = usize::try_from(code).ok();
        let of = code.and_then(|code| found.get_mut(&code));
        let range = section.file_range();
        match (name, of) {
            (INFO, _) => records.each(range, |record| note(file, &mut found, record)),
            (_, Some(of)) if name.starts_with(INFO_OF) => {
                of.is_described = true;
                records.each(range, |record| of.read(record))
            }
            (_, Some(of)) if name.starts_with(SHARED_OF) => of.shared(section.size()),
            _ => Ok(()),
        }
        .map_err(wrong)?;
    }
    let kernel = |found: Found| {
        let name = found.kernel.name.clone();
        let kernel = found.into_kernel();
        kernel.map_err(|problem| KernelError::new(format!("kernel `{name}`: {problem}")))
    };
    found.into_values().map(kernel).collect()
}

/// Reads a record of [`INFO`]. Functions that are not kernels have records, too.
fn note(
    file: &ElfFile64<'_, Endianness>,
    found: &mut BTreeMap<usize, Found>,
    record: &InfoRecord<'_>,
) -> Result<(), String> {
    let (REGCOUNT | FRAME_SIZE | MIN_STACK_SIZE) = record.attribute else {
        return Ok(());
    };
    let OfFunction { symbol, number } = record.sized(OfFunction::read)?;
    let symbol = usize::try_from(symbol).ok();
    let symbol = symbol.and_then(|index| file.symbol_by_index(SymbolIndex(index)).ok());
    let symbol = symbol.ok_or("its symbol is missing")?;
    let code = symbol.section_index();
    let of = code.and_then(|code| found.get_mut(&code.0));
    if let Some(of) = of.filter(|of| of.symbol == symbol.index()) {
        match record.attribute {
            REGCOUNT => of.kernel.registers = Some(number),
            FRAME_SIZE => of.frame_size = number,
            _ => of.stack_size = Some(number),
        }
    }
    Ok(())
}

/// The description of a kernel, collected from records in any order.
struct Found {
    symbol: SymbolIndex,
    kernel: Kernel,
    is_described: bool,
    /// Parameters by their position in the source.
    parameters: BTreeMap<u16, Argument>,
    frame_size: u32,
    stack_size: Option<u32>,
}

impl Found {
    /// Lists the kernels by the section of their code, without descriptions.
    fn all(
        file: &ElfFile64<'_, Endianness>,
        names: &BTreeSet<String>,
    ) -> Result<BTreeMap<usize, Self>, KernelError> {
        let mut found = BTreeMap::new();
        let mut missing: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        for symbol in file.symbols().filter(|symbol| symbol.is_global()) {
            let (Ok(name), Some(code)) = (symbol.name(), symbol.section_index()) else {
                continue;
            };
            if !missing.remove(name) {
                continue;
            }
            let kernel = Self::new(name, symbol.index());
            if let Some(Self { kernel, .. }) = found.insert(code.0, kernel) {
                let other = kernel.name;
                let problem = format!("kernels `{other}` and `{name}` have the same code");
                return Err(KernelError::new(problem));
            }
        }
        match missing.first() {
            Some(name) => Err(KernelError::new(format!(
                "kernel `{name}`: its code is missing"
            ))),
            None => Ok(found),
        }
    }

    fn new(name: &str, symbol: SymbolIndex) -> Self {
        Self {
            symbol,
            kernel: Kernel {
                name: name.to_owned(),
                wavefront: Some(WARP),
                ..Kernel::default()
            },
            is_described: false,
            parameters: BTreeMap::new(),
            frame_size: 0,
            stack_size: None,
        }
    }

    /// Reads a record of the kernel's own section.
    fn read(&mut self, record: &InfoRecord<'_>) -> Result<(), String> {
        match record.attribute {
            MAX_THREADS => {
                let Threads { x, y, z } = record.sized(Threads::read)?;
                let threads = x.checked_mul(y).and_then(|plane| plane.checked_mul(z));
                let wrong = || format!("{x} by {y} by {z} threads do not fit in 32 bits");
                self.kernel.max_threads = Some(threads.ok_or_else(wrong)?);
            }
            REQNTID => {
                let Threads { x, y, z } = record.sized(Threads::read)?;
                self.kernel.required_threads = Some([x, y, z]);
            }
            CBANK_PARAM_SIZE => self.kernel.arguments_size = record.half()?.into(),
            KPARAM_INFO => {
                let parameter = record.sized(Parameter::read)?;
                self.parameter(parameter, parameter.packed >> 18)?;
            }
            KPARAM_INFO_V2 => {
                let parameter = record.sized(Parameter::read)?;
                self.parameter(parameter, parameter.packed & 0xffff)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn parameter(&mut self, parameter: Parameter, size: u32) -> Result<(), String> {
        let Parameter {
            ordinal, offset, ..
        } = parameter;
        let offset = offset.into();
        match self.parameters.insert(ordinal, Argument::at(offset, size)) {
            Some(_) => Err(format!("duplicate parameter {ordinal}")),
            None => Ok(()),
        }
    }

    fn shared(&mut self, size: u64) -> Result<(), String> {
        let wrong = |_| format!("its size {size:#x} does not fit in 32 bits");
        self.kernel.shared_size = u32::try_from(size).map_err(wrong)?;
        Ok(())
    }

    fn into_kernel(self) -> Result<Kernel, String> {
        let mut kernel = self.kernel;
        if !self.is_described {
            return Err(format!("section `{INFO_OF}{}` is missing", kernel.name));
        }
        let end = kernel.arguments_size;
        for (index, (ordinal, argument)) in (0..=u16::MAX).zip(self.parameters) {
            if ordinal != index {
                return Err(format!("expected parameter {index}, found {ordinal}"));
            }
            let Argument { offset, size, .. } = argument;
            let range = OutOfBounds::check("parameter", offset.into(), size.into(), end.into());
            range.map_err(|problem| problem.to_string())?;
            kernel.arguments.push(argument);
        }
        // For recursion, only its own frame is known.
        let stack = self.stack_size.filter(|size| *size != UNBOUNDED);
        kernel.private_size = stack.unwrap_or(self.frame_size);
        Ok(kernel)
    }
}

/// A record whose value is inside its section.
struct InfoRecord<'d> {
    format: u8,
    attribute: u8,
    half: u16,
    value: Cursor<'d, &'d [u8]>,
}

impl<'d> InfoRecord<'d> {
    /// Returns the value of two bytes.
    fn half(&self) -> Result<u16, String> {
        self.expect(HALF).map(|()| self.half)
    }

    /// Reads the value after the record. Fails if it has another size.
    fn sized<T>(
        &self,
        read: fn(&mut Cursor<'d, &'d [u8]>) -> Result<T, OutOfBounds>,
    ) -> Result<T, String> {
        self.expect(SIZED)?;
        let mut cursor = self.value;
        let value = read(&mut cursor).map_err(|problem| problem.to_string())?;
        match cursor.end().checked_sub(cursor.position()) {
            Some(0) => Ok(value),
            _ => Err(format!(
                "attribute {:#x}: expected {:#x} bytes, found {:#x}",
                self.attribute,
                cursor.position() - self.value.position(),
                self.value.end() - self.value.position(),
            )),
        }
    }

    fn expect(&self, expected: u8) -> Result<(), String> {
        let Self {
            format, attribute, ..
        } = self;
        if *format == expected {
            return Ok(());
        }
        Err(format!(
            "attribute {attribute:#x}: expected format {expected}, found {format}"
        ))
    }
}

/// Reads the records of sections.
struct Records<'d> {
    data: &'d [u8],
    /// Bytes that may still be read: sections do not overlap, so together they are not larger than the file.
    left: u64,
}

impl<'d> Records<'d> {
    fn new(data: &'d [u8]) -> Self {
        let left = data.len() as u64;
        Self { data, left }
    }

    /// Calls `take` for each record of a section in order. `range` is the section's offset and size.
    fn each(
        &mut self,
        range: Option<(u64, u64)>,
        mut take: impl FnMut(&InfoRecord<'d>) -> Result<(), String>,
    ) -> Result<(), String> {
        let text = |problem: OutOfBounds| problem.to_string();
        let (offset, size) =
            range.ok_or("expected content, found a section without bytes in the file")?;
        let end = self.data.len() as u64;
        let range = OutOfBounds::check("section", offset, size, end).map_err(text)?;
        let left = self.left.checked_sub(size);
        self.left = left.ok_or("the section overlaps another one")?;
        let mut cursor = Cursor::new(self.data, range);
        while cursor.position() < cursor.end() {
            let at = cursor.position();
            let wrong = |problem| format!("record at offset {at:#x}: {problem}");
            let record = self.next(&mut cursor).map_err(wrong)?;
            take(&record).map_err(wrong)?;
        }
        Ok(())
    }

    fn next(&self, cursor: &mut Cursor<'d, &'d [u8]>) -> Result<InfoRecord<'d>, String> {
        let text = |problem: OutOfBounds| problem.to_string();
        let header = RecordHeader::read(cursor).map_err(text)?;
        let RecordHeader {
            format: [format],
            attribute: [attribute],
            value: half,
        } = header;
        let size = match format {
            NO_VALUE | BYTE | HALF => 0,
            SIZED => half,
            _ => return Err(format!("format {format} is not supported (1 to 4 are)")),
        };
        let start = cursor.position();
        cursor.read(size.into(), "value").map_err(text)?;
        let value = Cursor::new(self.data, start..cursor.position());
        Ok(InfoRecord {
            format,
            attribute,
            half,
            value,
        })
    }
}
