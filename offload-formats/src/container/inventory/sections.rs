//! Sections of objects and programs, as far as names and flags tell what is in them.

use object::elf;

use crate::container::elf::ElfSection;
use crate::container::large::usual_name;

/// Names of the section for images without a container, one after the other (`container = "raw"` of `offload-build`): in objects and
/// ELF programs, and in Windows programs, of whose names linkers keep 8 bytes.
const RAW_SECTIONS: [&[u8]; 2] = [b".device_images", b".device_"];

/// Sections that have nothing but fat binaries.
const FATBIN_SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];

/// Tells whether a section named `name` has images without a container.
pub(super) fn is_raw(name: &[u8]) -> bool {
    RAW_SECTIONS.contains(&usual_name(name))
}

/// Tells whether a section named `name` has nothing but fat binaries.
pub(super) fn has_only_fatbins(name: &[u8]) -> bool {
    FATBIN_SECTIONS.contains(&usual_name(name))
}

/// Tells whether a section has data of the program.
pub(super) fn is_data(section: &ElfSection) -> bool {
    let is_code = section.flags & elf::SHF_EXECINSTR.0 != 0;
    section.section_type == elf::SHT_PROGBITS.0 && section.allocated() && !is_code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_sections_by_the_names_that_linkers_leave() {
        // The second one as in large data, the third one as `lld-link` 22 cuts it.
        for name in [".device_images", ".lrodata.device_images", ".device_"] {
            assert!(is_raw(name.as_bytes()), "{name}");
        }
        for name in [".device", ".device_images.x", ".hip_fatbin", ".nv_fatbin"] {
            assert!(!is_raw(name.as_bytes()), "{name}");
        }
        for name in [".nv_fatbin", "__nv_relfatbin", ".lrodata.nv_fatbin"] {
            assert!(has_only_fatbins(name.as_bytes()), "{name}");
        }
        assert!(!has_only_fatbins(b".nvFatBinSegment"));
    }
}
