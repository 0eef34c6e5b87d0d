//! Kernel metadata of AMD code objects of version 2: the notes `NT_AMD_HSA_METADATA`, in YAML.
//!
//! This reads the YAML that LLVM writes: block style, indented by two for each level, and short lists in brackets.
//!
//! | indentation | line | in [`Kernel`] or [`Argument`] |
//! |---:|---|---|
//! | 0 | `Kernels:` | the kernels follow |
//! | 2 | `- Name: f` | starts a kernel; the dash is at column 2 |
//! | 4 | `SymbolName: 'f@kd'` | `name`, without `@kd` |
//! | 6 | `ReqdWorkGroupSize: [ 8, 4, 2 ]`, after `Attrs:` | `required_threads`, if it is not 0, 0, 0 |
//! | 6 | `- …`, after `Args:` | starts an argument |
//! | 8 | `Size: 8`, `Align: 8` | `size`; `offset` is the next multiple of the alignment |
//! | 8 | `ValueKind: ByValue` | `kind`; `Hidden…`: added by the runtime, left out |
//! | 6 | `KernargSegmentSize: 16`, after `CodeProps:` | `arguments_size` |
//! | | `GroupSegmentFixedSize`, `PrivateSegmentFixedSize` | `shared_size`, `private_size` |
//! | | `WavefrontSize`, `MaxFlatWorkGroupSize` | `wavefront`, `max_threads` |
//! | | `NumVGPRs`, `NumSGPRs` | `registers`, `scalar_registers` |
//! | | `NumSpilledVGPRs`, `NumSpilledSGPRs` | `spilled_registers`, `spilled_scalar_registers` |
//! | | `IsDynamicCallStack` | `has_dynamic_stack` |
//!
//! Other keys are skipped.
//!
//! Specification: <https://llvm.org/docs/AMDGPUUsage.html#code-object-v2-metadata>.

use std::fmt;

use crate::container::kernels::kernel::{Argument, ArgumentKind, Kernel};

/// Suffix of a kernel's symbol name in the metadata.
const DESCRIPTOR: &str = "@kd";
/// Prefix of the kinds of arguments that the runtime adds.
const HIDDEN: &str = "Hidden";

/// Lists the kernels that a note describes.
pub(super) fn kernels(content: &[u8]) -> Result<Vec<Kernel>, LineProblem> {
    let text = String::from_utf8_lossy(content);
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        let wrong = |problem| LineProblem {
            line: index + 1,
            problem,
        };
        reader.line(line).map_err(wrong)?;
    }
    reader.kernels.iter_mut().for_each(place_arguments);
    Ok(reader.kernels.into_iter().map(|one| one.kernel).collect())
}

/// A line of the metadata with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineProblem {
    line: usize,
    problem: String,
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

#[derive(Default)]
struct Reader {
    /// True after the key `Kernels`, up to the next key without indentation.
    is_in_kernels: bool,
    /// The kernel's key of the list or map that the line belongs to.
    part: String,
    kernels: Vec<KernelLines>,
}

/// A kernel and the lines of its arguments.
#[derive(Default)]
struct KernelLines {
    kernel: Kernel,
    arguments: Vec<ArgumentLines>,
}

/// An argument without its offset.
#[derive(Default)]
struct ArgumentLines {
    size: u32,
    align: u32,
    value_kind: String,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let trimmed = line.trim_start();
        let mut indentation = line.len() - trimmed.len();
        let item = trimmed.strip_prefix("- ");
        if item.is_some() {
            indentation += 2;
        }
        let Some((key, value)) = item.unwrap_or(trimmed).split_once(':') else {
            return Ok(());
        };
        let value = value.trim().trim_matches(['\'', '"']);
        if indentation == 0 {
            self.is_in_kernels = key == "Kernels";
            return Ok(());
        }
        if !self.is_in_kernels {
            return Ok(());
        }
        if indentation == 4 && item.is_some() {
            self.kernels.push(KernelLines::default());
        }
        let Some(of) = self.kernels.last_mut() else {
            return Ok(());
        };
        match (indentation, self.part.as_str()) {
            (4, _) => {
                key.clone_into(&mut self.part);
                let name = value.strip_suffix(DESCRIPTOR);
                if let ("SymbolName", Some(name)) = (key, name) {
                    name.clone_into(&mut of.kernel.name);
                }
            }
            (6, "Attrs") if key == "ReqdWorkGroupSize" => {
                let size = sizes(value).ok_or_else(|| expected("three numbers", key, value))?;
                of.kernel.required_threads = (size != [0; 3]).then_some(size);
            }
            (6, "CodeProps") => property(&mut of.kernel, key, value)?,
            (8, "Args") => {
                if item.is_some() {
                    of.arguments.push(ArgumentLines::default());
                }
                if let Some(argument) = of.arguments.last_mut() {
                    argument.read(key, value)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn property(kernel: &mut Kernel, key: &str, value: &str) -> Result<(), String> {
    let field = match key {
        "KernargSegmentSize" => &mut kernel.arguments_size,
        "GroupSegmentFixedSize" => &mut kernel.shared_size,
        "PrivateSegmentFixedSize" => &mut kernel.private_size,
        "WavefrontSize" => kernel.wavefront.insert(0),
        "MaxFlatWorkGroupSize" => kernel.max_threads.insert(0),
        "NumVGPRs" => kernel.registers.insert(0),
        "NumSGPRs" => kernel.scalar_registers.insert(0),
        "NumSpilledVGPRs" => kernel.spilled_registers.insert(0),
        "NumSpilledSGPRs" => kernel.spilled_scalar_registers.insert(0),
        "IsDynamicCallStack" => {
            kernel.has_dynamic_stack = Some(value == "true");
            return Ok(());
        }
        _ => return Ok(()),
    };
    *field = number(key, value)?;
    Ok(())
}

impl ArgumentLines {
    fn read(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "Size" => self.size = number(key, value)?,
            "Align" => self.align = number(key, value)?,
            "ValueKind" => value.clone_into(&mut self.value_kind),
            _ => {}
        }
        Ok(())
    }
}

/// Adds the arguments to their kernel, each at the next multiple of its alignment.
fn place_arguments(of: &mut KernelLines) {
    let mut end = 0_u32;
    for argument in &of.arguments {
        let offset = end.checked_next_multiple_of(argument.align.max(1));
        let offset = offset.unwrap_or(u32::MAX);
        end = offset.saturating_add(argument.size);
        if !argument.value_kind.starts_with(HIDDEN) {
            of.kernel.arguments.push(Argument {
                offset,
                size: end - offset,
                kind: match argument.value_kind.as_str() {
                    "GlobalBuffer" | "DynamicSharedPointer" => Some(ArgumentKind::Pointer),
                    "ByValue" => Some(ArgumentKind::Value),
                    _ => None,
                },
            });
        }
    }
}

fn sizes(value: &str) -> Option<[u32; 3]> {
    let list = value.strip_prefix('[')?.strip_suffix(']')?;
    let numbers = list.split(',').map(|number| number.trim().parse().ok());
    numbers.collect::<Option<Vec<u32>>>()?.try_into().ok()
}

fn number(key: &str, value: &str) -> Result<u32, String> {
    let number = value.parse();
    number.map_err(|_| expected("a number of 32 bits", key, value))
}

fn expected(what: &str, key: &str, value: &str) -> String {
    format!("`{key}`: expected {what}, found `{value}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By clang 16 with `-mcode-object-version=2`, without keys that are skipped.
    const NOTE: &str = "---\nVersion:         [ 1, 0 ]\nKernels:\n  - Name:            required\n    \
        SymbolName:      'required@kd'\n    Attrs:\n      ReqdWorkGroupSize: [ 8, 4, 2 ]\n    Args:\n      \
        - TypeName:        'float*'\n        Size:            8\n        Align:           8\n        \
        ValueKind:       GlobalBuffer\n      - Size:            4\n        Align:           4\n        \
        ValueKind:       ByValue\n      - Size:            8\n        Align:           8\n        \
        ValueKind:       HiddenGlobalOffsetX\n    CodeProps:\n      KernargSegmentSize: 24\n      \
        GroupSegmentFixedSize: 256\n      PrivateSegmentFixedSize: 16\n      KernargSegmentAlign: 8\n      \
        WavefrontSize:   64\n      NumSGPRs:        34\n      NumVGPRs:        2\n      \
        MaxFlatWorkGroupSize: 64\n      IsDynamicCallStack: true\n      NumSpilledSGPRs: 3\n      NumSpilledVGPRs: 5\n  \
        - Name:            any\n    SymbolName:      'any@kd'\n...\n";

    #[test]
    fn reads_a_note() {
        let argument = |offset, size, kind| Argument {
            offset,
            size,
            kind: Some(kind),
        };
        let required = Kernel {
            name: "required".to_owned(),
            arguments: vec![
                argument(0, 8, ArgumentKind::Pointer),
                argument(8, 4, ArgumentKind::Value),
            ],
            arguments_size: 24,
            max_threads: Some(64),
            required_threads: Some([8, 4, 2]),
            shared_size: 256,
            private_size: 16,
            registers: Some(2),
            scalar_registers: Some(34),
            spilled_registers: Some(5),
            spilled_scalar_registers: Some(3),
            has_dynamic_stack: Some(true),
            wavefront: Some(64),
            ..Kernel::default()
        };
        let any = Kernel {
            name: "any".to_owned(),
            ..Kernel::default()
        };
        assert_eq!(kernels(NOTE.as_bytes()), Ok(vec![required, any]));
    }

    #[test]
    fn says_which_line_is_invalid() {
        let error = |from: &str, to: &str| {
            let changed = NOTE.replacen(from, to, 1);
            kernels(changed.as_bytes()).unwrap_err().to_string()
        };
        assert_eq!(
            error("NumVGPRs:        2", "NumVGPRs: many"),
            "line 26: `NumVGPRs`: expected a number of 32 bits, found `many`"
        );
        assert_eq!(
            error("[ 8, 4, 2 ]", "[ 8, 4 ]"),
            "line 7: `ReqdWorkGroupSize`: expected three numbers, found `[ 8, 4 ]`"
        );
    }

    #[test]
    fn survives_every_truncation_and_every_single_byte_change() {
        let mut note = NOTE.as_bytes().to_vec();
        for place in 0..note.len() {
            let _ = kernels(&note[..place]);
            let byte = note[place];
            for changed in [0, b' ', b':', b'9', b'-', 0xff] {
                note[place] = changed;
                let _ = kernels(&note);
            }
            note[place] = byte;
        }
    }
}
