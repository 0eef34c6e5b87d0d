//! Processors: the names that LLVM knows, and the features that a target ID may contain.
//!
//! There is one table. Names and features are those of `clang-offload-bundler` and clang. 19.1 and
//! 22.1 were observed, the main branch of 2026 was read. For 20, 21 and 23 the releases are
//! inferred from the dates of the changes. A name that the table lacks is never an error: it is
//! kept, and compared as written.

use super::LlvmRelease;
use LlvmRelease::{Main, V19, V20, V21, V22};

/// A processor of a device, or one that stands for a family of them.
#[derive(Debug)]
pub struct Processor {
    name: &'static str,
    other_names: &'static [&'static str],
    device: Device,
    /// Bits 0-7 of `e_flags` in AMD's code objects; 0 for others.
    elf_machine: u8,
    features: &'static [&'static str],
    family: Option<&'static str>,
    releases: ReleaseRange,
}

/// Family of devices, as far as the rules for target IDs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// AMD's GPUs since GCN.
    Amdgcn,
    /// AMD's GPUs before GCN.
    R600,
    /// NVIDIA's GPUs.
    Nvptx,
    /// Others, and names that do not stand for one processor.
    Other,
}

impl Processor {
    /// Finds a processor by its name or another name: `fiji` finds `gfx803`.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        let named = |row: &&Self| row.name == name || row.other_names.contains(&name);
        PROCESSORS.iter().find(named)
    }

    /// Lists all processors in the order of the table.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        PROCESSORS.iter()
    }

    /// Returns the name in target IDs, such as `gfx90a`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns other names that compilers accept, such as `fiji`. Target IDs in files never contain
    /// them.
    #[must_use]
    pub fn other_names(&self) -> &'static [&'static str] {
        self.other_names
    }

    /// Returns its family of devices.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns bits 0-7 of `e_flags` in code objects for it.
    pub(super) fn elf_machine(&self) -> Option<u8> {
        Some(self.elf_machine).filter(|number| *number != 0)
    }

    /// Returns the names of the features that its target ID may contain, as in LLVM 22.
    #[must_use]
    pub fn features(&self) -> &'static [&'static str] {
        self.features
    }

    /// Returns the processor that stands for the family of this one, such as `gfx9-generic`.
    #[must_use]
    pub fn family(&self) -> Option<&'static str> {
        self.family
    }

    /// Returns true if `clang-offload-bundler` of that release accepts the name.
    #[must_use]
    pub fn known_to(&self, release: LlvmRelease) -> bool {
        self.releases
            .is_some_and(|(first, last)| first <= release && release <= last)
    }

    const fn new(name: &'static str, device: Device, releases: ReleaseRange) -> Self {
        Self {
            name,
            other_names: &[],
            device,
            elf_machine: 0,
            features: &[],
            family: None,
            releases,
        }
    }

    const fn also(self, other_names: &'static [&'static str]) -> Self {
        Self {
            other_names,
            ..self
        }
    }

    const fn with(self, features: &'static [&'static str]) -> Self {
        Self { features, ..self }
    }

    const fn of(self, family: &'static str) -> Self {
        Self {
            family: Some(family),
            ..self
        }
    }
}

/// First and last release whose bundler knows a name.
type ReleaseRange = Option<(LlvmRelease, LlvmRelease)>;

const ALL: ReleaseRange = Some((V19, Main));
const SINCE_20: ReleaseRange = Some((V20, Main));
const SINCE_21: ReleaseRange = Some((V21, Main));
const SINCE_22: ReleaseRange = Some((V22, Main));
const MAIN: ReleaseRange = Some((Main, Main));
/// Range of a name that only compilers accept.
const NEVER: ReleaseRange = None;

const XNACK: &[&str] = &["xnack"];
const BOTH: &[&str] = &["sramecc", "xnack"];

/// `elf_machine` is 0 if no release of LLVM has a number.
const fn gfx(name: &'static str, elf_machine: u8, releases: ReleaseRange) -> Processor {
    Processor {
        elf_machine,
        ..Processor::new(name, Device::Amdgcn, releases)
    }
}

const fn r600(name: &'static str) -> Processor {
    Processor::new(name, Device::R600, NEVER)
}

const fn sm(name: &'static str, releases: ReleaseRange) -> Processor {
    Processor::new(name, Device::Nvptx, releases)
}

const PROCESSORS: &[Processor] = &[
    gfx("gfx600", 0x20, ALL).also(&["tahiti"]),
    gfx("gfx601", 0x21, ALL).also(&["pitcairn", "verde"]),
    gfx("gfx602", 0x3a, ALL).also(&["hainan", "oland"]),
    gfx("gfx700", 0x22, ALL).also(&["kaveri"]),
    gfx("gfx701", 0x23, ALL).also(&["hawaii"]),
    gfx("gfx702", 0x24, ALL),
    gfx("gfx703", 0x25, ALL).also(&["kabini", "mullins"]),
    gfx("gfx704", 0x26, ALL).also(&["bonaire"]),
    gfx("gfx705", 0x3b, ALL),
    gfx("gfx801", 0x28, ALL).also(&["carrizo"]).with(XNACK),
    gfx("gfx802", 0x29, ALL).also(&["iceland", "tonga"]),
    gfx("gfx803", 0x2a, ALL).also(&["fiji", "polaris10", "polaris11"]),
    gfx("gfx805", 0x3c, ALL).also(&["tongapro"]),
    gfx("gfx810", 0x2b, ALL).also(&["stoney"]).with(XNACK),
    gfx("gfx900", 0x2c, ALL).with(XNACK).of("gfx9-generic"),
    gfx("gfx902", 0x2d, ALL).with(XNACK).of("gfx9-generic"),
    gfx("gfx904", 0x2e, ALL).with(XNACK).of("gfx9-generic"),
    gfx("gfx906", 0x2f, ALL).with(BOTH).of("gfx9-generic"),
    gfx("gfx908", 0x30, ALL).with(BOTH),
    gfx("gfx909", 0x31, ALL).with(XNACK).of("gfx9-generic"),
    gfx("gfx90a", 0x3f, ALL).with(BOTH),
    gfx("gfx90c", 0x32, ALL).with(XNACK).of("gfx9-generic"),
    gfx("gfx940", 0x40, Some((V19, V20)))
        .with(BOTH)
        .of("gfx9-4-generic"),
    gfx("gfx941", 0x4b, Some((V19, V20)))
        .with(BOTH)
        .of("gfx9-4-generic"),
    gfx("gfx942", 0x4c, ALL).with(BOTH).of("gfx9-4-generic"),
    gfx("gfx950", 0x4f, SINCE_20)
        .with(BOTH)
        .of("gfx9-4-generic"),
    gfx("gfx1010", 0x33, ALL).with(XNACK).of("gfx10-1-generic"),
    gfx("gfx1011", 0x34, ALL).with(XNACK).of("gfx10-1-generic"),
    gfx("gfx1012", 0x35, ALL).with(XNACK).of("gfx10-1-generic"),
    gfx("gfx1013", 0x42, ALL).with(XNACK).of("gfx10-1-generic"),
    gfx("gfx1030", 0x36, ALL).of("gfx10-3-generic"),
    gfx("gfx1031", 0x37, ALL).of("gfx10-3-generic"),
    gfx("gfx1032", 0x38, ALL).of("gfx10-3-generic"),
    gfx("gfx1033", 0x39, ALL).of("gfx10-3-generic"),
    gfx("gfx1034", 0x3e, ALL).of("gfx10-3-generic"),
    gfx("gfx1035", 0x3d, ALL).of("gfx10-3-generic"),
    gfx("gfx1036", 0x45, ALL).of("gfx10-3-generic"),
    gfx("gfx1100", 0x41, ALL).of("gfx11-generic"),
    gfx("gfx1101", 0x46, ALL).of("gfx11-generic"),
    gfx("gfx1102", 0x47, ALL).of("gfx11-generic"),
    gfx("gfx1103", 0x44, ALL).of("gfx11-generic"),
    gfx("gfx1150", 0x43, ALL).of("gfx11-generic"),
    gfx("gfx1151", 0x4a, ALL).of("gfx11-generic"),
    gfx("gfx1152", 0x55, ALL).of("gfx11-generic"),
    gfx("gfx1153", 0x58, SINCE_20).of("gfx11-generic"),
    gfx("gfx1154", 0, MAIN).of("gfx11-generic"),
    gfx("gfx1170", 0, MAIN).of("gfx11-7-generic"),
    gfx("gfx1171", 0, MAIN).of("gfx11-7-generic"),
    gfx("gfx1172", 0, MAIN).of("gfx11-7-generic"),
    gfx("gfx1200", 0x48, ALL).of("gfx12-generic"),
    gfx("gfx1201", 0x4e, ALL).of("gfx12-generic"),
    // The main branch allows `sramecc` on these two.
    gfx("gfx1250", 0x49, SINCE_21).of("gfx12-5-generic"),
    gfx("gfx1251", 0x5a, SINCE_22).of("gfx12-5-generic"),
    gfx("gfx1310", 0, MAIN).of("gfx13-generic"),
    gfx("gfx9-generic", 0x51, ALL).with(XNACK),
    gfx("gfx9-4-generic", 0x5f, SINCE_20).with(BOTH),
    gfx("gfx10-1-generic", 0x52, ALL).with(XNACK),
    gfx("gfx10-3-generic", 0x53, ALL),
    gfx("gfx11-generic", 0x54, ALL),
    gfx("gfx11-7-generic", 0, MAIN),
    gfx("gfx12-generic", 0x59, ALL),
    gfx("gfx12-5-generic", 0, MAIN),
    gfx("gfx13-generic", 0, MAIN),
    r600("r600").also(&["rv630", "rv635"]),
    r600("r630"),
    r600("rs880").also(&["rs780", "rv610", "rv620"]),
    r600("rv670"),
    r600("rv710"),
    r600("rv730"),
    r600("rv770").also(&["rv740"]),
    r600("cedar").also(&["palm"]),
    r600("cypress").also(&["hemlock"]),
    r600("juniper"),
    r600("redwood"),
    r600("sumo").also(&["sumo2"]),
    r600("barts"),
    r600("caicos"),
    r600("cayman").also(&["aruba"]),
    r600("turks"),
    sm("sm_20", ALL),
    sm("sm_21", ALL),
    sm("sm_30", ALL),
    sm("sm_32", ALL),
    sm("sm_35", ALL),
    sm("sm_37", ALL),
    sm("sm_50", ALL),
    sm("sm_52", ALL),
    sm("sm_53", ALL),
    sm("sm_60", ALL),
    sm("sm_61", ALL),
    sm("sm_62", ALL),
    sm("sm_70", ALL),
    sm("sm_72", ALL),
    sm("sm_75", ALL),
    sm("sm_80", ALL),
    sm("sm_86", ALL),
    sm("sm_87", ALL),
    sm("sm_88", SINCE_22),
    sm("sm_89", ALL),
    sm("sm_90", ALL),
    sm("sm_90a", ALL),
    sm("sm_100", SINCE_20),
    sm("sm_100a", SINCE_20),
    sm("sm_100f", MAIN),
    sm("sm_101", SINCE_20),
    sm("sm_101a", SINCE_20),
    sm("sm_101f", MAIN),
    sm("sm_103", SINCE_21),
    sm("sm_103a", SINCE_21),
    sm("sm_103f", MAIN),
    sm("sm_110", SINCE_22),
    sm("sm_110a", SINCE_22),
    sm("sm_110f", MAIN),
    sm("sm_120", SINCE_20),
    sm("sm_120a", SINCE_20),
    sm("sm_120f", MAIN),
    sm("sm_121", SINCE_21),
    sm("sm_121a", SINCE_21),
    sm("sm_121f", MAIN),
    Processor::new("amdgcnspirv", Device::Other, ALL),
    Processor::new("generic", Device::Other, ALL),
    Processor::new("generic-hsa", Device::Other, NEVER),
    Processor::new("bmg_g21", Device::Other, SINCE_21),
    Processor::new("graniterapids", Device::Other, SINCE_21),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn finds_each_name_once() {
        let names = Processor::all().flat_map(|row| row.other_names().iter().chain([&row.name]));
        let names: Vec<&str> = names.copied().collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), distinct.len());
        for name in names {
            let found = Processor::find(name).unwrap();
            assert!(found.name == name || found.other_names.contains(&name));
        }
        assert!(Processor::find("gfx1234").is_none());
        assert!(Processor::find("GFX906").is_none());
    }

    #[test]
    fn families_are_processors_that_allow_no_feature_of_which_a_member_knows_nothing() {
        for row in Processor::all() {
            let Some(family) = row.family() else { continue };
            let family = Processor::find(family).unwrap();
            assert!(family.name.ends_with("-generic"));
            let known = |feature: &&str| row.features().contains(feature);
            assert!(family.features().iter().all(known));
        }
    }

    #[test]
    fn knows_the_releases_of_a_name() {
        let known = |name| {
            let row = Processor::find(name).unwrap();
            [V19, V22, Main].map(|release| row.known_to(release))
        };
        assert_eq!(known("gfx906"), [true; 3]);
        assert_eq!(known("gfx940"), [true, false, false]);
        assert_eq!(known("gfx950"), [false, true, true]);
        assert_eq!(known("gfx1310"), [false, false, true]);
        assert_eq!(known("cayman"), [false; 3]);
    }
}
