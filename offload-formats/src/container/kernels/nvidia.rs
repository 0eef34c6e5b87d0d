//! Kernel descriptions in NVIDIA cubins. NVIDIA does not publish the layout. This is the layout that `ptxas` 11.8, 12.4,
//! 12.8 and 13.5 and `nvlink` 13.5 write for sm_52 to sm_120, and `cuobjdump` 13.5 reads. It is the same in both forms of
//! the ELF file: OS/ABI `0x33` with ABI version 7, and `0x41` with 8 (13.5, and 12.8 for sm_100 and later).
//!
//! | section | content |
//! |---|---|
//! | `.nv.info` | records of all functions, kernels or not |
//! | `.nv.info.<function>` | records of that function |
//! | `.nv.shared.<kernel>` | no bytes; its size is that of the kernel's shared memory |
//! | `.nv.constant<bank>.<kernel>` | constant memory of the kernel; bank 0 ends with its parameters |
//!
//! `sh_info` of the last three is the section of the function's code, which contains no other kernel. The names are ambiguous:
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
//! | `0x4c` | `NUM_BARRIERS` | number of barriers (format 2), from 13.5 on |
//! | `0x45` | `KPARAM_INFO_V2` | a parameter with its size in bits 0 to 15; for all parameters, if one needs more than 14 bits |
//!
//! `cuobjdump --dump-resource-usage` prints these values: `REG` is `REGCOUNT`, `STACK` is `MIN_STACK_SIZE`, and
//! `SHARED` is the size of the section. From sm_90 on, it includes 1024 bytes that the system reserves for each kernel with shared memory, and
//! for each kernel of a PTX file with `.extern` shared memory. `.nv.shared.reserved.0` belongs to no kernel. `LOCAL` was for
//! code without a stack (`-abi=no`), which none of these versions writes.
//!
//! Up to 12.8, bits 20 to 26 of `sh_flags` of the code are the number of barriers, which `ptxas -v` prints.
//!
//! Not read: bits 24 to 31 of `sh_info` of the code, which are registers before sm_90 and 0 later; and `PARAM_CBANK`
//! (`0x0a`), which repeats `CBANK_PARAM_SIZE`.

mod records;

use super::{Argument, Kernel, KernelError};
use crate::container::elf::{Binding, Elf, ElfSymbol, SymbolPlace, SymbolTable};
use crate::format::bytes::{OutOfBounds, ReadAt, record};
use records::{InfoRecord, Records};

/// Flag in `st_other` of a kernel.
const STO_CUDA_ENTRY: u8 = 0x10;

const INFO: &str = ".nv.info";
const INFO_OF: &str = ".nv.info.";
const SHARED_OF: &str = ".nv.shared.";
const CONSTANT_OF: &str = ".nv.constant";

/// Threads of a warp of every processor.
const WARP: u32 = 32;
/// Place of the number of barriers in `sh_flags` of the code.
const BARRIERS_SHIFT: u32 = 20;
const BARRIERS_MASK: u64 = 0x7f;
/// `MIN_STACK_SIZE` of a recursive function.
const UNBOUNDED: u32 = u32::MAX;

const MAX_THREADS: u8 = 0x05;
const REQNTID: u8 = 0x10;
const FRAME_SIZE: u8 = 0x11;
const MIN_STACK_SIZE: u8 = 0x12;
const KPARAM_INFO: u8 = 0x17;
const CBANK_PARAM_SIZE: u8 = 0x19;
const REGCOUNT: u8 = 0x2f;
const KPARAM_INFO_V2: u8 = 0x45;
const NUM_BARRIERS: u8 = 0x4c;

record! {
    /// A number of the function with that symbol of `.symtab`.
    pub(crate) struct OfFunction, "value", 8 bytes {
        0x0 symbol: u32,
        0x4 number: u32,
    }
}

record! {
    pub(crate) struct Threads, "value", 12 bytes {
        0x0 x: u32,
        0x4 y: u32,
        0x8 z: u32,
    }
}

record! {
    /// The index is 0. `packed` also has the pointee's alignment and space, and the constant bank.
    pub(crate) struct Parameter, "value", 12 bytes {
        0x0 index: u32,
        0x4 ordinal: u16,
        0x6 offset: u16,
        0x8 packed: u32,
    }
}

/// Describes the kernels of a cubin, sorted by name.
pub(super) fn kernels<'d, R: ReadAt<'d>>(file: &Elf<'d, R>) -> Result<Vec<Kernel>, KernelError> {
    let symbols = file.symbols(SymbolTable::All)?;
    let mut found = Found::all(&symbols)?;
    let mut records = Records::new(file.data(), file.range());
    let names = file.names()?;
    for section in file.sections().skip(1) {
        let name = String::from_utf8_lossy(names.of(&section)?);
        let wrong = |problem| KernelError::new(format!("`{name}`: {problem}"));
        if let Some(of) = Found::with_code(&mut found, section.index) {
            let barriers = (section.flags >> BARRIERS_SHIFT) & BARRIERS_MASK;
            of.kernel.barriers.get_or_insert(barriers as u32);
        }
        let of = Found::with_code(&mut found, section.info);
        let is_stored = section.section_type != object::elf::SHT_NOBITS.0;
        let range = is_stored.then_some((section.offset, section.size));
        match (&*name, of) {
            (INFO, _) => records.each(range, |record| note(&symbols, &mut found, record)),
            (_, Some(of)) if name.starts_with(INFO_OF) => {
                of.is_described = true;
                records.each(range, |record| of.read(record))
            }
            (_, Some(of)) if name.starts_with(SHARED_OF) => of.shared(section.size),
            (_, Some(of)) if name.starts_with(CONSTANT_OF) => of.constant(section.size),
            _ => Ok(()),
        }
        .map_err(wrong)?;
    }
    described(found)
}

/// Completes the descriptions, sorted by name.
fn described(found: Vec<Found>) -> Result<Vec<Kernel>, KernelError> {
    let mut kernels = Vec::new();
    for found in found {
        let name = found.kernel.name.clone();
        let kernel = found.into_kernel();
        let wrong = |problem| KernelError::new(format!("kernel `{name}`: {problem}"));
        kernels.push(kernel.map_err(wrong)?);
    }
    kernels.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(kernels)
}

/// Reads a record of [`INFO`]. Functions that are not kernels have records, too.
fn note(
    symbols: &[ElfSymbol<'_>],
    found: &mut [Found],
    record: &InfoRecord<'_>,
) -> Result<(), String> {
    let (REGCOUNT | FRAME_SIZE | MIN_STACK_SIZE) = record.attribute else {
        return Ok(());
    };
    let OfFunction { symbol, number } = record.sized(OfFunction::read)?;
    let index = usize::try_from(symbol).ok();
    let place = index.and_then(|index| symbols.get(index));
    let place = place.ok_or("its symbol is missing")?.place;
    let SymbolPlace::Section(code) = place else {
        return Ok(());
    };
    if let Some(of) = Found::with_code(found, code).filter(|of| of.symbol == symbol) {
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
    /// Index of the section of its code.
    code: u32,
    /// Index of its symbol.
    symbol: u32,
    kernel: Kernel,
    is_described: bool,
    /// Positions of parameters in the source, sorted, with the parameters.
    parameters: Vec<(u16, Argument)>,
    frame_size: u32,
    stack_size: Option<u32>,
}

impl Found {
    /// Lists the kernels, sorted by the section of their code, without descriptions.
    fn all(symbols: &[ElfSymbol<'_>]) -> Result<Vec<Self>, KernelError> {
        let mut found = Vec::new();
        for (index, symbol) in (0..).zip(symbols) {
            let is_kernel = symbol.other & STO_CUDA_ENTRY != 0;
            if !is_kernel || symbol.place == SymbolPlace::Undefined {
                continue;
            }
            let name = String::from_utf8_lossy(symbol.name);
            let SymbolPlace::Section(code) = symbol.place else {
                let problem = format!("kernel `{name}`: its code is missing");
                return Err(KernelError::new(problem));
            };
            found.push(Self {
                code,
                symbol: index,
                kernel: Kernel {
                    name: name.into_owned(),
                    is_local: symbol.binding == Binding::Local,
                    wavefront: Some(WARP),
                    code_size: Some(symbol.size),
                    ..Kernel::default()
                },
                is_described: false,
                parameters: Vec::new(),
                frame_size: 0,
                stack_size: None,
            });
        }
        found.sort_unstable_by_key(|found: &Self| (found.code, found.symbol));
        for (one, other) in found.iter().zip(found.iter().skip(1)) {
            if one.code == other.code {
                let (one, other) = (&one.kernel.name, &other.kernel.name);
                let problem = format!("kernels `{one}` and `{other}` have the same code");
                return Err(KernelError::new(problem));
            }
        }
        Ok(found)
    }

    /// Returns the kernel whose code is in that section.
    fn with_code(found: &mut [Self], code: u32) -> Option<&mut Self> {
        let place = found.binary_search_by(|known| known.code.cmp(&code));
        found.get_mut(place.ok()?)
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
            NUM_BARRIERS => self.kernel.barriers = Some(record.byte()?.into()),
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
        let argument = Argument::at(offset.into(), size);
        let known = &mut self.parameters;
        match known.binary_search_by(|(known, _)| known.cmp(&ordinal)) {
            Ok(_) => Err(format!("duplicate parameter {ordinal}")),
            Err(place) => {
                known.insert(place, (ordinal, argument));
                Ok(())
            }
        }
    }

    fn shared(&mut self, size: u64) -> Result<(), String> {
        let wrong = |_| format!("its size {size:#x} does not fit in 32 bits");
        self.kernel.shared_size = u32::try_from(size).map_err(wrong)?;
        Ok(())
    }

    /// Adds the size of a bank.
    fn constant(&mut self, size: u64) -> Result<(), String> {
        let all = u64::from(self.kernel.constant_size.unwrap_or(0)).checked_add(size);
        let all = all.and_then(|all| u32::try_from(all).ok());
        let wrong = || format!("its size {size:#x} does not fit in 32 bits");
        self.kernel.constant_size = Some(all.ok_or_else(wrong)?);
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
        kernel.has_dynamic_stack = self.stack_size.map(|size| size == UNBOUNDED);
        kernel.private_size = stack.unwrap_or(self.frame_size);
        Ok(kernel)
    }
}
