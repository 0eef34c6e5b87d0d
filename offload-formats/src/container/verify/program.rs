//! Checks of a linked host file: wrappers, and the kernels that it registers.

use std::collections::BTreeSet;

use super::codes::FindingCode;
use super::finding::{FindingPlace, Findings};
use super::image::ImageKernels;
use crate::container::elf::SymbolPlace;
use crate::container::host_file::HostFile;
use crate::container::inventory::{ContainerFormat, Inventory};
use crate::container::kernels::{component_at, is_of_one_processor};
use crate::container::large;
use crate::escape::terminal;
use crate::format::bytes::ReadAt;
use crate::format::offload_entry::EntryLayout;

/// Sections of wrappers.
const WRAPPERS: [&str; 2] = [".hipFatBinSegment", ".nvFatBinSegment"];
/// Size of a wrapper in bytes: magic, version, pointer to a bundle or fat binary, another pointer.
const WRAPPER_SIZE: u64 = 24;
/// Wrapper for HIP.
const HIP: u32 = 0x4849_5046;
/// Wrapper for HIP whose images are in an archive beside the program.
const HIP_ARCHIVE: u32 = 0x4b50_4948;
/// Wrapper for CUDA.
const CUDA: u32 = 0x4662_43b1;
/// Sections whose containers wrappers register.
const REGISTERED: [&[u8]; 2] = [b".hip_fatbin", b".nv_fatbin"];
/// Start of the names of functions that start kernels.
const STUB: &str = "__device_stub__";

/// Checks a host file with the images of `inventory`, which define `kernels`.
pub(super) fn check<'d, R: ReadAt<'d>>(
    host: &HostFile<'d, R>,
    inventory: &Inventory,
    kernels: &ImageKernels,
    findings: &mut Findings,
) {
    let mut registered = Registered::default();
    wrappers(host, inventory, &mut registered, findings);
    unregistered(inventory, &registered, findings);
    if registered.is_elsewhere {
        return;
    }
    let mut wanted = entry_kernels(host);
    let stubs = stub_kernels(host).into_iter();
    // A kernel of an entry has such a function, too.
    let others = stubs.filter(|stub| !wanted.iter().any(|kernel| kernel.is_same(stub)));
    let others: Vec<HostKernel> = others.collect();
    wanted.extend(others);
    if let (0, Some(first)) = (kernels.images, wanted.first()) {
        let text = format!(
            "the host registers {} kernels, such as `{}`",
            wanted.len(),
            terminal(first.shown())
        );
        return findings.add(FindingCode::NoImages, FindingPlace::default(), &text);
    }
    if !kernels.is_complete {
        return;
    }
    let names = wanted.iter().map(HostKernel::shown);
    let names: Vec<&str> = names.collect();
    kernels.openmp.report_differences(&names, findings);
    let defined: BTreeSet<&str> = kernels.names.iter().map(|name| plain(name)).collect();
    for kernel in &wanted {
        let is_known = |name: &String| defined.contains(name.as_str()) || is_of_one_processor(name);
        if !kernel.names.iter().any(is_known) {
            let text = format!("no image defines `{}`", terminal(kernel.shown()));
            findings.add(FindingCode::MissingKernel, FindingPlace::default(), &text);
        }
    }
}

/// Device code that wrappers point to.
#[derive(Default)]
struct Registered {
    /// Offsets of containers in the file.
    offsets: BTreeSet<u64>,
    /// True if images are in another file.
    is_elsewhere: bool,
}

/// Checks that each wrapper is valid and points to a container.
fn wrappers<'d, R: ReadAt<'d>>(
    host: &HostFile<'d, R>,
    inventory: &Inventory,
    registered: &mut Registered,
    findings: &mut Findings,
) {
    let starts: BTreeSet<u64> = inventory
        .containers
        .iter()
        .map(|at| at.range.start)
        .collect();
    for (section, name) in host.named(&WRAPPERS) {
        let range = host.content(section);
        let count = range.end.saturating_sub(range.start) / WRAPPER_SIZE;
        for index in 0..count {
            let offset = range.start + index * WRAPPER_SIZE;
            let address = section.address.wrapping_add(index * WRAPPER_SIZE);
            let place = FindingPlace::in_section(name, offset);
            let (Some(magic), Some(version)) = (host.half(offset), host.half(offset + 4)) else {
                continue;
            };
            match (magic, version) {
                (HIP_ARCHIVE, 1) => {
                    registered.is_elsewhere = true;
                    continue;
                }
                (HIP, 1) | (CUDA, 1 | 2) => {}
                _ => {
                    let text = format!("found magic {magic:#x}, version {version}");
                    findings.add(FindingCode::WrapperInvalid, place, &text);
                    continue;
                }
            }
            let pointer = host.pointer(address.wrapping_add(8));
            let target = pointer.and_then(|pointer| host.offset_of(pointer));
            match target.filter(|target| starts.contains(target)) {
                Some(target) => {
                    registered.offsets.insert(target);
                }
                None => {
                    let pointer = pointer.unwrap_or(0);
                    let text = format!("it points to address {pointer:#x}");
                    findings.add(FindingCode::WrapperTarget, place, &text);
                }
            }
        }
    }
}

/// Finds containers in the sections of registered device code to which no wrapper points.
fn unregistered(inventory: &Inventory, registered: &Registered, findings: &mut Findings) {
    for container in &inventory.containers {
        let name = container.section.as_deref().unwrap_or_default();
        let is_free = !registered.offsets.contains(&container.range.start);
        let is_registered = match container.format {
            ContainerFormat::Bundle | ContainerFormat::Fatbin => {
                REGISTERED.iter().any(|usual| large::is_called(name, usual))
            }
            _ => REGISTERED.contains(&name),
        };
        if container.members.is_empty() && is_registered && is_free {
            let place = FindingPlace::of(container);
            let text = "no wrapper points to it";
            findings.add(FindingCode::Unregistered, place, &text);
        }
    }
}

/// A kernel that the host registers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HostKernel {
    /// Names that the kernel may have in images; never empty.
    names: Vec<String>,
}

impl HostKernel {
    fn shown(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.names.iter().any(|name| other.names.contains(name))
    }
}

/// Returns a name without the suffix that tells apart kernels of several sources.
fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Lists the kernels in the tables of offload entries.
fn entry_kernels<'d, R: ReadAt<'d>>(host: &HostFile<'d, R>) -> BTreeSet<HostKernel> {
    let mut found = BTreeSet::new();
    // Modules of ours add a name of their own.
    let starts: Vec<&str> = EntryLayout::all_sections().collect();
    for (section, _) in host.named(&starts) {
        let range = host.content(section);
        let Some(layout) = EntryFields::of(host, section.address, range.start) else {
            continue;
        };
        let count = range.end.saturating_sub(range.start) / layout.size;
        for index in 0..count {
            let place = index * layout.size;
            let offset = range.start + place;
            let size = host.word(offset + layout.bytes);
            let flags = host.half(offset + layout.flags);
            if (size, flags) != (Some(0), Some(0)) {
                continue;
            }
            let name = host.pointer(section.address.wrapping_add(place + layout.name));
            let name = name.and_then(|name| host.string(name)).unwrap_or_default();
            let name = plain(&String::from_utf8_lossy(name)).to_owned();
            if !name.is_empty() {
                found.insert(HostKernel { names: vec![name] });
            }
        }
    }
    found
}

/// Offsets of fields in an offload entry.
struct EntryFields {
    size: u64,
    name: u64,
    bytes: u64,
    flags: u64,
}

impl EntryFields {
    /// Entries of LLVM 19 and older: address, name, size, flags.
    const OLD: Self = Self {
        size: 32,
        name: 0x08,
        bytes: 0x10,
        flags: 0x18,
    };
    /// Entries of LLVM 20 and later: 0, version, kind, flags, address, name, size.
    const NEW: Self = Self {
        size: 56,
        name: 0x18,
        bytes: 0x20,
        flags: 0x0c,
    };

    /// Returns the layout of the table at an address and offset; `None` for an empty one. Older entries start with a
    /// pointer, newer ones with 0.
    fn of<'d, R: ReadAt<'d>>(host: &HostFile<'d, R>, address: u64, offset: u64) -> Option<Self> {
        let first = host.pointer(address)?;
        let version = host.half(offset.checked_add(8)?)? & 0xffff;
        Some(match (first, version) {
            (0, 1) => Self::NEW,
            _ => Self::OLD,
        })
    }
}

/// Lists the kernels whose start functions the host defines.
fn stub_kernels<'d, R: ReadAt<'d>>(host: &HostFile<'d, R>) -> BTreeSet<HostKernel> {
    let symbols = host.symbols();
    let functions = symbols.iter().filter(|symbol| {
        symbol.place != SymbolPlace::Undefined && symbol.symbol_type == object::elf::STT_FUNC.0
    });
    let kernels = functions.filter_map(|symbol| kernel_of(std::str::from_utf8(symbol.name).ok()?));
    kernels.collect()
}

/// Parts of names that nvcc gives to the types of extended lambdas in host code. Images have other names for them.
const EXTENDED_LAMBDAS: [&str; 3] = ["Unvdl", "Unvdtl", "Unvhdl"];

/// Returns the kernel that a function starts; `None` for other functions, and for kernels whose names differ in images.
///
/// | function | compiler | kernel |
/// |---|---|---|
/// | `__device_stub__scale` | clang | `scale` |
/// | `_ZN1n20__device_stub__scaleEPf` | clang | `_ZN1n5scaleEPf` |
/// | `_Z28__device_stub__Z5scalePfPf` | nvcc | `_Z5scalePf` |
/// | `_Z24__device_stub__Z5scalePfPf` | nvcc 13.5, `extern "C"` | `scale` |
/// | `_Z20__device_stub__scalePf` | nvcc, `extern "C"` | `scale` |
fn kernel_of(function: &str) -> Option<HostKernel> {
    let function = plain(function);
    if EXTENDED_LAMBDAS.iter().any(|part| function.contains(part)) {
        return None;
    }
    if let Some(name) = function.strip_prefix(STUB) {
        let names = vec![name.to_owned()];
        return Some(HostKernel { names }).filter(|_| !name.is_empty());
    }
    let place = function.find(STUB).filter(|_| function.starts_with("_Z"))?;
    let component = function.get(place..)?;
    let (prefix, length) = component_at(function, place, STUB.len())?;
    let inner = component.get(STUB.len()..length)?;
    let after = component.get(length..)?;
    let mut names = vec![
        format!("{prefix}{}{inner}{after}", inner.len()),
        inner.to_owned(),
    ];
    if let Some(mangled) = inner.strip_prefix('Z') {
        names.insert(0, format!("_{inner}"));
        names.extend(own_name(mangled).map(str::to_owned));
    }
    Some(HostKernel { names })
}

/// Returns the name of a function without its namespaces from its mangled name, after `_Z`.
fn own_name(mangled: &str) -> Option<&str> {
    let (mut rest, is_nested) = match mangled.strip_prefix('N') {
        Some(rest) => (rest, true),
        None => (mangled, false),
    };
    let mut last = None;
    while rest.starts_with(|char: char| char.is_ascii_digit()) {
        let name = rest.trim_start_matches(|char: char| char.is_ascii_digit());
        let length = rest.get(..rest.len() - name.len())?.parse().ok()?;
        last = Some(name.get(..length)?);
        rest = name.get(length..).filter(|_| is_nested).unwrap_or("");
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of clang 22, nvcc 13.5 and the library for CUDA 11.8 in bitsandbytes 0.49.2.
    #[test]
    fn names_the_kernel_of_a_start_function() {
        for (function, kernel) in [
            ("__device_stub__saxpy.hip_launch_kernels_91acc68b", "saxpy"),
            ("_Z21__device_stub__matmulPKfS0_Pfi", "_Z6matmulPKfS0_Pfi"),
            ("_ZN1n20__device_stub__scaleIfEEvPT_", "_ZN1n5scaleIfEEvPT_"),
            ("_ZN4fp1620__device_stub__scaleEPf", "_ZN4fp165scaleEPf"),
            (
                "_Z33__device_stub__Z9kQuantizePfS_PhiPfS_Phi",
                "_Z9kQuantizePfS_Phi",
            ),
            ("_Z20__device_stub__scalePf", "scale"),
            ("_Z24__device_stub__Z5plainPfPf", "_Z5plainPf"),
            ("_Z24__device_stub__Z5plainPfPf", "plain"),
            ("_Z24__device_stub__ZN1n1kEPiPi", "k"),
            ("_Z31__device_stub__ZN1n2k2ENS_1sEPiRN1n1sEPi", "k2"),
            // The type of the parameter is no part of the name.
            ("_Z24__device_stub__Z3foo3bar3bar", "foo"),
        ] {
            let names = kernel_of(function)
                .map(|kernel| kernel.names)
                .unwrap_or_default();
            assert!(
                names.iter().any(|name| name == kernel),
                "{function}: {names:?}"
            );
        }
        for function in [
            "main",
            "_Z15__device_stub__",
            "_Z99__device_stub__xPf",
            "_Z__device_stub__x",
            "__device_stub__",
            // An extended lambda, by nvcc 13.5.
            "_Z52__device_stub__Z3runIZ1aPfEUnvdl0_PFvS0_E1a1_EvS0_T_PfR17__nv_dl_wrapper_tI11__nv_dl_tagIPFvS_EXadL_Z1aS_EELj1EEJEE",
        ] {
            assert_eq!(kernel_of(function), None, "{function}");
        }
    }
}
