//! Kernel metadata of AMD code objects from version 3 on: the notes `NT_AMDGPU_METADATA`, in MessagePack.
//!
//! | map      | key                                      | in [`Kernel`] or [`Argument`]                        |
//! |----------|------------------------------------------|------------------------------------------------------|
//! | root     | `amdhsa.version`                         | the first number must be [`VERSION`]                 |
//! |          | `amdhsa.kernels`                         | an array with a map for each kernel                  |
//! | kernel   | `.symbol`, required                      | `name`, without `.kd`                                |
//! |          | `.args`                                  | `arguments`: an array with a map for each            |
//! |          | `.kernarg_segment_size`, required        | `arguments_size`                                     |
//! |          | `.group_segment_fixed_size`, required    | `shared_size`                                        |
//! |          | `.private_segment_fixed_size`, required  | `private_size`                                       |
//! |          | `.max_flat_workgroup_size`               | `max_threads`                                        |
//! |          | `.reqd_workgroup_size`                   | `required_threads`, if it is not 0, 0, 0             |
//! |          | `.vgpr_count`                            | `registers`                                          |
//! |          | `.sgpr_count`                            | `scalar_registers`                                   |
//! |          | `.agpr_count`                            | `accumulation_registers`                             |
//! |          | `.vgpr_spill_count`                      | `spilled_registers`                                  |
//! |          | `.sgpr_spill_count`                      | `spilled_scalar_registers`                           |
//! |          | `.uses_dynamic_stack`                    | `has_dynamic_stack`                                  |
//! |          | `.wavefront_size`                        | `wavefront`                                          |
//! | argument | `.offset`, `.size`, required             | `offset`, `size`                                     |
//! |          | `.value_kind`, required                  | `kind`; `hidden_…`: added by the runtime, left out   |
//!
//! Other keys are skipped. From gfx90a on, accumulation registers (`.agpr_count`) are in the same file as
//! vector registers, and `.vgpr_count` includes them: with `v40` and `a19` in use, it is 64 on gfx90a and
//! gfx942 (accumulation registers start at a multiple of 4: 44 + 20). On gfx908, which has two files, it is 41
//! (clang 19 and 22; not specified).
//!
//! Specification: <https://llvm.org/docs/AMDGPUUsage.html#code-object-v3-metadata>, V3 to V6.

use std::fmt;

use crate::container::kernels::kernel::{Argument, ArgumentKind, Kernel};
use crate::format::msgpack::{self, MsgpackReader};

/// Suffix of a descriptor's name, after the kernel's name.
pub(super) const DESCRIPTOR: &str = ".kd";

/// Version of the metadata in code objects of version 3 to 6.
const VERSION: u32 = 1;
/// Prefix of the kinds of arguments that the runtime adds.
const HIDDEN: &str = "hidden_";

/// Reason why the content of a note is invalid. Offsets are from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetadataProblem {
    MessagePack(msgpack::MsgpackError),
    Missing {
        key: &'static str,
        offset: u64,
    },
    NoDescriptor {
        offset: u64,
    },
    Count {
        key: &'static str,
        offset: u64,
        found: usize,
        expected: usize,
    },
    Version {
        offset: u64,
        found: u32,
    },
}

impl From<msgpack::MsgpackError> for MetadataProblem {
    fn from(error: msgpack::MsgpackError) -> Self {
        Self::MessagePack(error)
    }
}

impl fmt::Display for MetadataProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MessagePack(error) => error.fmt(f),
            Self::Missing { key, offset } => write!(f, "map at offset {offset:#x} has no `{key}`"),
            Self::NoDescriptor { offset } => write!(
                f,
                "`.symbol` at offset {offset:#x} does not end in `{DESCRIPTOR}`"
            ),
            Self::Count {
                key,
                offset,
                found,
                expected,
            } => write!(
                f,
                "`{key}` at offset {offset:#x} has {found} numbers, expected {expected}"
            ),
            Self::Version { offset, found } => write!(
                f,
                "`amdhsa.version` at offset {offset:#x}: {found} is not supported ({VERSION} is)"
            ),
        }
    }
}

/// Lists the kernels of a note. Bytes after its map are ignored, as in LLVM's reader.
pub(super) fn kernels(content: &[u8]) -> Result<Vec<Kernel>, MetadataProblem> {
    let mut kernels = Vec::new();
    MsgpackReader::new(content).map(|key, reader| match key {
        b"amdhsa.version" => version(reader),
        b"amdhsa.kernels" => reader.array(|reader| {
            kernels.push(kernel(reader)?);
            Ok(())
        }),
        _ => Ok::<(), MetadataProblem>(reader.skip()?),
    })?;
    Ok(kernels)
}

fn version(reader: &mut MsgpackReader<'_>) -> Result<(), MetadataProblem> {
    let offset = reader.offset();
    // The second number is the minor version.
    let [found, _] = numbers(reader, "amdhsa.version")?;
    if found == VERSION {
        Ok(())
    } else {
        Err(MetadataProblem::Version { offset, found })
    }
}

fn kernel(reader: &mut MsgpackReader<'_>) -> Result<Kernel, MetadataProblem> {
    let offset = reader.offset();
    let mut kernel = Kernel::default();
    let mut name = None;
    let [mut arguments_size, mut shared_size, mut private_size] = [None; 3];
    reader.map(|key, reader| {
        match key {
            b".symbol" => name = Some(symbol(reader)?),
            b".args" => kernel.arguments = arguments(reader)?,
            b".kernarg_segment_size" => arguments_size = Some(reader.number()?),
            b".group_segment_fixed_size" => shared_size = Some(reader.number()?),
            b".private_segment_fixed_size" => private_size = Some(reader.number()?),
            b".max_flat_workgroup_size" => kernel.max_threads = Some(reader.number()?),
            b".reqd_workgroup_size" => {
                let size = numbers(reader, ".reqd_workgroup_size")?;
                kernel.required_threads = (size != [0; 3]).then_some(size);
            }
            b".vgpr_count" => kernel.registers = Some(reader.number()?),
            b".sgpr_count" => kernel.scalar_registers = Some(reader.number()?),
            b".agpr_count" => kernel.accumulation_registers = Some(reader.number()?),
            b".vgpr_spill_count" => kernel.spilled_registers = Some(reader.number()?),
            b".sgpr_spill_count" => kernel.spilled_scalar_registers = Some(reader.number()?),
            b".uses_dynamic_stack" => kernel.has_dynamic_stack = Some(reader.boolean()?),
            b".wavefront_size" => kernel.wavefront = Some(reader.number()?),
            _ => reader.skip()?,
        }
        Ok::<(), MetadataProblem>(())
    })?;
    let missing = |key| MetadataProblem::Missing { key, offset };
    kernel.name = name.ok_or(missing(".symbol"))?;
    kernel.arguments_size = arguments_size.ok_or(missing(".kernarg_segment_size"))?;
    kernel.shared_size = shared_size.ok_or(missing(".group_segment_fixed_size"))?;
    kernel.private_size = private_size.ok_or(missing(".private_segment_fixed_size"))?;
    Ok(kernel)
}

/// Returns the name of a kernel from its descriptor's name.
fn symbol(reader: &mut MsgpackReader<'_>) -> Result<String, MetadataProblem> {
    let offset = reader.offset();
    let name = reader.text()?.strip_suffix(DESCRIPTOR);
    name.map(str::to_owned)
        .ok_or(MetadataProblem::NoDescriptor { offset })
}

fn arguments(reader: &mut MsgpackReader<'_>) -> Result<Vec<Argument>, MetadataProblem> {
    let mut arguments = Vec::new();
    reader.array(|reader| {
        arguments.extend(argument(reader)?);
        Ok::<(), MetadataProblem>(())
    })?;
    Ok(arguments)
}

/// Reads an argument; returns `None` for one that the runtime adds.
fn argument(reader: &mut MsgpackReader<'_>) -> Result<Option<Argument>, MetadataProblem> {
    let start = reader.offset();
    let [mut offset, mut size] = [None; 2];
    let mut value_kind = None;
    reader.map(|key, reader| {
        match key {
            b".offset" => offset = Some(reader.number()?),
            b".size" => size = Some(reader.number()?),
            b".value_kind" => value_kind = Some(reader.text()?),
            _ => reader.skip()?,
        }
        Ok::<(), MetadataProblem>(())
    })?;
    let missing = |key| MetadataProblem::Missing { key, offset: start };
    let value_kind = value_kind.ok_or(missing(".value_kind"))?;
    let argument = Argument {
        offset: offset.ok_or(missing(".offset"))?,
        size: size.ok_or(missing(".size"))?,
        kind: match value_kind {
            "global_buffer" | "dynamic_shared_pointer" => Some(ArgumentKind::Pointer),
            "by_value" => Some(ArgumentKind::Value),
            // OpenCL's images, samplers, pipes and queues.
            _ => None,
        },
    };
    Ok((!value_kind.starts_with(HIDDEN)).then_some(argument))
}

fn numbers<const N: usize>(
    reader: &mut MsgpackReader<'_>,
    key: &'static str,
) -> Result<[u32; N], MetadataProblem> {
    let offset = reader.offset();
    let mut numbers = Vec::new();
    reader.array(|reader| {
        numbers.push(reader.number()?);
        Ok::<(), MetadataProblem>(())
    })?;
    <[u32; N]>::try_from(numbers).map_err(|numbers| MetadataProblem::Count {
        key,
        offset,
        found: numbers.len(),
        expected: N,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A note of one kernel with the required sizes and `count` keys of `kernel`.
    fn note(kernel: &[u8], count: u8) -> Vec<u8> {
        let required: [&[u8]; 3] = [
            b"\xb5.kernarg_segment_size\x0c",
            b"\xb9.group_segment_fixed_size\xcd\x01\x00",
            b"\xbb.private_segment_fixed_size\x10",
        ];
        let head = [0x80 | (count + 3)];
        let start: [&[u8]; 2] = [b"\x81\xaeamdhsa.kernels\x91", &head];
        [&start.concat(), &required.concat(), kernel].concat()
    }

    fn read(content: &[u8]) -> Result<Vec<Kernel>, String> {
        kernels(content).map_err(|problem| problem.to_string())
    }

    /// Every key in arbitrary order, with skipped keys and arguments.
    fn sample() -> Vec<u8> {
        let parts: [&[u8]; 13] = [
            b"\xa7.symbol\xa4k.kd",
            b"\xa5.args\x92",
            b"\x84\xa5.name\xa1x\xa7.offset\x04\xa5.size\x08\xab.value_kind\xa8by_value",
            b"\x83\xa7.offset\x10\xa5.size\x08\xab.value_kind\xabhidden_none",
            b"\xb8.max_flat_workgroup_size\xcd\x04\x00",
            b"\xb4.reqd_workgroup_size\x93\x08\x04\x02",
            b"\xab.vgpr_count\x07",
            b"\xab.sgpr_count\xd0\x09",
            b"\xab.agpr_count\x03",
            b"\xb1.vgpr_spill_count\x05",
            b"\xb1.sgpr_spill_count\x06",
            b"\xb3.uses_dynamic_stack\xc3",
            b"\xaf.wavefront_size\x40",
        ];
        note(&parts.concat(), 11)
    }

    #[test]
    fn reads_what_a_note_says_of_a_kernel() {
        let expected = Kernel {
            name: "k".to_owned(),
            arguments: vec![Argument {
                offset: 4,
                size: 8,
                kind: Some(ArgumentKind::Value),
            }],
            arguments_size: 12,
            max_threads: Some(1024),
            required_threads: Some([8, 4, 2]),
            shared_size: 256,
            private_size: 16,
            registers: Some(7),
            scalar_registers: Some(9),
            accumulation_registers: Some(3),
            spilled_registers: Some(5),
            spilled_scalar_registers: Some(6),
            has_dynamic_stack: Some(true),
            wavefront: Some(64),
            ..Kernel::default()
        };
        assert_eq!(read(&sample()), Ok(vec![expected]));
        // 0, 0, 0 is what it is by default: any.
        let any = note(b"\xa7.symbol\xa4k.kd\xb4.reqd_workgroup_size\x93\0\0\0", 2);
        let expected = Kernel {
            name: "k".to_owned(),
            arguments_size: 12,
            shared_size: 256,
            private_size: 16,
            ..Kernel::default()
        };
        assert_eq!(read(&any), Ok(vec![expected]));
        assert_eq!(read(b"\x81\xaeamdhsa.kernels\x90"), Ok(Vec::new()));
    }

    #[test]
    fn rejects_every_truncation_of_a_note_and_survives_every_change() {
        let sample = sample();
        for len in 0..sample.len() {
            let error = read(&sample[..len]).unwrap_err();
            assert!(error.contains(" runs past the end at "), "{error}");
        }
        for at in 0..sample.len() {
            for byte in 0..=255 {
                let mut changed = sample.clone();
                changed[at] = byte;
                let _ = read(&changed);
            }
        }
    }

    #[test]
    fn says_what_makes_no_sense_and_where() {
        let error = |content: &[u8]| read(content).unwrap_err();
        assert_eq!(
            error(b"\x81\xaeamdhsa.version\x92\x02\x00"),
            "`amdhsa.version` at offset 0x10: 2 is not supported (1 is)"
        );
        assert_eq!(
            error(b"\x81\xaeamdhsa.version\x91\x01"),
            "`amdhsa.version` at offset 0x10 has 1 numbers, expected 2"
        );
        assert_eq!(error(b"\x90"), "expected a map at offset 0x0, found array");
        assert_eq!(
            error(b"\x81\xaeamdhsa.kernels\x91\x80"),
            "map at offset 0x11 has no `.symbol`"
        );
        assert_eq!(
            error(b"\x81\xaeamdhsa.kernels\x91\x81\xa7.symbol\xa4k.kd"),
            "map at offset 0x11 has no `.kernarg_segment_size`"
        );
        let error = |kernel: &[u8]| read(&note(kernel, 1)).unwrap_err();
        assert_eq!(
            error(b"\xa7.symbol\xa1k"),
            "`.symbol` at offset 0x6b does not end in `.kd`"
        );
        assert_eq!(
            error(b"\xb4.reqd_workgroup_size\x92\x08\x08"),
            "`.reqd_workgroup_size` at offset 0x78 has 2 numbers, expected 3"
        );
        assert_eq!(
            error(b"\xab.vgpr_count\xff"),
            "expected an integer from 0 to 0xffffffff at offset 0x6f, found negative integer"
        );
        for (argument, missing) in [
            (&b"\x82\xa7.offset\0\xa5.size\x08"[..], ".value_kind"),
            (b"\x82\xa5.size\x08\xab.value_kind\xa0", ".offset"),
            (b"\x82\xa7.offset\0\xab.value_kind\xa0", ".size"),
        ] {
            assert_eq!(
                error(&[b"\xa5.args\x91", argument].concat()),
                format!("map at offset 0x6a has no `{missing}`")
            );
        }
    }
}
