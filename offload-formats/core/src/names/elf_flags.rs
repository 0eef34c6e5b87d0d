//! Targets of GPU images, according to the headers of the ELF files: `e_machine` and `e_flags`.
//!
//! | machine | bits of `e_flags` | content |
//! |---|---|---|
//! | AMD (224) | 0–7 | the processor, a number of [`Processor`]'s table |
//! |           | 8–9, 10–11 | XNACK, SRAMECC since code object version 4: 0 unsupported, 1 any, 2 off, 3 on |
//! |           | 8, 9 | XNACK, SRAMECC in code object version 3: 1 on |
//! | NVIDIA (190) | 0–7, 16–23 | the number of the processor twice, up to the ABI of CUDA 12 |
//! |           | 8–15 | the number of the processor, since the ABI of CUDA 13 |
//!
//! Specification: <https://llvm.org/docs/AMDGPUUsage.html#amdgpu-elf-header>, "AMDGPU `EF_AMDGPU_MACH` Values" (LLVM 22).
//! NVIDIA documents no flags; `nvcc` of CUDA 12.4 and 13.5 writes these.

use super::{Processor, TargetId};

/// `e_machine` of AMD's images.
const EM_AMDGPU: u16 = 224;
/// `e_machine` of NVIDIA's images.
const EM_CUDA: u16 = 190;

/// Returns bits 0–7 of `e_flags` in code objects for an AMD processor; `None` for unknown processors.
#[must_use]
pub fn amd_machine(processor: &str) -> Option<u32> {
    let row = Processor::all().find(|row| row.name() == processor)?;
    row.elf_machine().map(u32::from)
}

/// Returns the processor of an image with these `e_machine`, `e_flags` and `EI_ABIVERSION`; `None` for CPUs, and for unknown GPUs.
#[must_use]
pub fn processor_of(machine: u16, flags: u32, abi_version: u8) -> Option<String> {
    match machine {
        EM_AMDGPU => {
            let [low, ..] = flags.to_le_bytes();
            let row = Processor::all().find(|row| row.elf_machine() == Some(low));
            row.map(|row| row.name().to_owned())
        }
        EM_CUDA => Some(format!("sm_{}", nvidia_number(flags, abi_version))),
        _ => None,
    }
}

/// `EI_ABIVERSION` of NVIDIA's newer format, whose `e_flags` have the processor in bits 8-15 and not in bits 0-7.
const NVIDIA_NEWER: u8 = 8;

/// Returns the number of the processor of NVIDIA's machine code, 80 for `sm_80`. In the older format bits 16-23 are that of the PTX
/// from which it was made, which may be an older one.
///
/// Source: headers that ptxas 12.4, 12.9 and 13.5 wrote.
#[must_use]
pub fn nvidia_number(flags: u32, abi_version: u8) -> u8 {
    let [low, second, ..] = flags.to_le_bytes();
    match abi_version {
        ..NVIDIA_NEWER => low,
        _ => second,
    }
}

/// `EI_ABIVERSION` of code object version 3, which knows "on" alone.
const CODE_OBJECT_V3: u8 = 1;
/// Settings of a feature since code object version 4.
const ANY: u32 = 1;
const OFF: u32 = 2;
const ON: u32 = 3;

/// Features of AMD's processors, sorted, with their bits in code object version 3 and in later ones.
const FEATURES: [(&str, u32, u32); 2] = [("sramecc", 9, 10), ("xnack", 8, 8)];

/// Returns the setting of one of `FEATURES` in an image with these `e_flags` and `EI_ABIVERSION`.
fn setting((_, v3, v4): (&str, u32, u32), flags: u32, abi_version: u8) -> u32 {
    match abi_version {
        CODE_OBJECT_V3 if flags >> v3 & 1 == 1 => ON,
        CODE_OBJECT_V3 => 0,
        _ => flags >> v4 & 3,
    }
}

/// Returns the first feature of a target ID whose setting excludes AMD images with these `e_flags` and `EI_ABIVERSION`, such as
/// `xnack+`. The setting "any" excludes none: the code of such images runs with the feature on and off.
///
/// Specification: <https://llvm.org/docs/AMDGPUUsage.html#target-features>.
#[must_use]
pub fn amd_excluding_feature(id: &TargetId, flags: u32, abi_version: u8) -> Option<String> {
    FEATURES.into_iter().find_map(|feature| {
        let on = id.feature(feature.0)?;
        let (expected, sign) = if on { (ON, '+') } else { (OFF, '-') };
        let fits = match setting(feature, flags, abi_version) {
            ANY => true,
            // Version 3 writes the same for "off" and "unsupported".
            0 if abi_version == CODE_OBJECT_V3 => !on,
            found => found == expected,
        };
        (!fits).then(|| format!("{}{sign}", feature.0))
    })
}

/// Tells whether an AMD image with these `e_flags` and `EI_ABIVERSION` has the setting "any" for a feature that a target ID sets.
#[must_use]
pub fn amd_leaves_open(id: &TargetId, flags: u32, abi_version: u8) -> bool {
    let mut features = FEATURES.into_iter();
    features.any(|feature| {
        id.feature(feature.0).is_some() && setting(feature, flags, abi_version) == ANY
    })
}

/// Returns the target ID of an image with these `e_machine`, `e_flags` and `EI_ABIVERSION`, such as
/// `gfx90a:sramecc+:xnack-`; `None` for CPUs, and for unknown GPUs. Letters of NVIDIA's processors, as in `sm_90a`, are
/// not in the header.
#[must_use]
#[cfg(feature = "tools")]
pub fn target_id_of(machine: u16, flags: u32, abi_version: u8) -> Option<String> {
    let mut target_id = processor_of(machine, flags, abi_version)?;
    if machine == EM_AMDGPU {
        for feature in FEATURES {
            match setting(feature, flags, abi_version) {
                OFF => target_id += &format!(":{}-", feature.0),
                ON => target_id += &format!(":{}+", feature.0),
                _ => {}
            }
        }
    }
    Some(target_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_processor_of_an_image() {
        // As `llvm-readelf-22 -h` prints them of images of clang 22, of ptxas 12.4 and 13.5, and of ptxas 12.4 for PTX of `sm_80`.
        for (machine, flags, abi_version, expected) in [
            (224, 0x53f, 4, Some("gfx90a")),
            (224, 0x54c, 4, Some("gfx942")),
            (224, 0x5fe, 4, None),
            (190, 0x0050_0550, 7, Some("sm_80")),
            (190, 0x0050_0556, 7, Some("sm_86")),
            (190, 0x0600_5004, 8, Some("sm_80")),
            (190, 0x0600_7802, 8, Some("sm_120")),
            (62, 0, 0, None),
        ] {
            assert_eq!(
                processor_of(machine, flags, abi_version).as_deref(),
                expected,
                "{flags:#x}"
            );
        }
    }

    #[test]
    fn names_the_features_of_an_image() {
        // As clang 22 writes them; for ABI version 1, clang 16 with -mcode-object-version=3.
        for (flags, abi_version, expected) in [
            (0x53f, 2, "gfx90a"),
            (0xb3f, 4, "gfx90a:sramecc-:xnack+"),
            (0x33f, 1, "gfx90a:sramecc+:xnack+"),
            (0x03f, 1, "gfx90a"),
            (0x041, 4, "gfx1100"),
            (0x0100_0054, 4, "gfx11-generic"),
        ] {
            let found = target_id_of(224, flags, abi_version);
            assert_eq!(found.as_deref(), Some(expected), "{flags:#x}");
        }
    }

    #[test]
    fn names_the_feature_that_excludes_an_image() {
        // ABI version 3 as clang 19 writes it; for version 1, clang 16 with -mcode-object-version=3.
        for (id, flags, abi_version, expected) in [
            ("gfx90a", 0xe3f, 3, None),
            ("gfx90a:sramecc+:xnack-", 0xe3f, 3, None),
            ("gfx90a:xnack+", 0xe3f, 3, Some("xnack+")),
            ("gfx90a:sramecc-", 0xe3f, 3, Some("sramecc-")),
            // "Any" for both.
            ("gfx90a:sramecc+:xnack-", 0x53f, 3, None),
            ("gfx90a:sramecc-:xnack+", 0x53f, 3, None),
            // Without the features.
            ("gfx90a:xnack-", 0x03f, 3, Some("xnack-")),
            ("gfx90a:xnack+", 0x33f, 1, None),
            ("gfx90a:xnack-", 0x33f, 1, Some("xnack-")),
            ("gfx90a:sramecc+:xnack-", 0x23f, 1, None),
            ("gfx90a:sramecc-", 0x23f, 1, Some("sramecc-")),
        ] {
            let target = TargetId::parse(id).expect("the ID is valid");
            let found = amd_excluding_feature(&target, flags, abi_version);
            assert_eq!(found.as_deref(), expected, "{id} {flags:#x}");
        }
        let leaves_open = |id: &str, flags| {
            amd_leaves_open(&TargetId::parse(id).expect("the ID is valid"), flags, 3)
        };
        assert!(leaves_open("gfx90a:xnack+", 0x53f));
        assert!(!leaves_open("gfx90a", 0x53f));
        // "On" for XNACK, "any" for SRAMECC.
        assert!(!leaves_open("gfx90a:xnack+", 0x73f));
        assert!(leaves_open("gfx90a:sramecc+:xnack+", 0x73f));
    }
}
