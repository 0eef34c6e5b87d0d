//! What linked images say of their kernels, compared with what `llvm-readelf --notes` prints of the same file.

use crate::support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use offload_formats::container::images;
use offload_formats::container::kernels::{
    Argument, ArgumentKind, Kernel, kernels, kernels_within,
};
use offload_formats::format::bytes::{ReadAt as _, ReadCache, Source};
use support::{Random, run, tool};

const HIP: &str = "
#define KERNEL extern \"C\" __attribute__((global))
struct Odd { char bytes[13]; };
struct Wide { double a; char b; };
KERNEL __attribute__((amdgpu_flat_work_group_size(64, 256)))
void shared(float *p, int n, Odd odd) {
  static __attribute__((shared)) float s[64];
  s[n] = p[n] + odd.bytes[n & 7];
  p[n + 1] = s[n / 2];
}
KERNEL void scratch(long n, int *q, char c, Wide w) {
  int v[100];
  for (int i = 0; i < 100; i++) v[i] = q[i];
  for (int i = 0; i < n; i++) v[q[i]] += v[i];
  q[0] = v[n] + c + (int)w.a + w.b;
}
KERNEL void nothing() {}
__attribute__((global)) void mangled(short s, float *p) { *p = s; }
";

const OPENCL: &str = "
__attribute__((reqd_work_group_size(8, 4, 2)))
kernel void required(global float *p, float x, local int *l) { p[0] = x + l[0]; }
kernel void any(global float *p, constant float4 *x) { p[0] = x[0].y; }
";

const ACCUMULATORS: &str = "
kernel void accumulate(global float *p, float x) {
  float y;
  __asm__ volatile(\"v_accvgpr_write_b32 a19, %1\\n v_accvgpr_read_b32 %0, a19\"
                   : \"=v\"(y) : \"v\"(x) : \"a19\", \"v40\");
  p[0] = y;
}
";

/// An installation of LLVM.
struct Llvm {
    clang: PathBuf,
    readelf: PathBuf,
    linker: PathBuf,
}

fn installations() -> Vec<Llvm> {
    let installation = |word| {
        Some(Llvm {
            clang: tool(word, &["clang"])?,
            readelf: tool(word, &["llvm-readelf"])?,
            linker: tool(word, &["ld.lld"])?,
        })
    };
    ["llvm19", "llvm22"]
        .into_iter()
        .filter_map(installation)
        .collect()
}

impl Llvm {
    /// The kernels of an image, as LLVM prints them.
    fn printed(&self, image: &Path) -> Vec<Kernel> {
        let text = run(Command::new(&self.readelf).arg("--notes").arg(image));
        assert!(text.contains("NT_AMDGPU_METADATA"), "{text}");
        with_sizes(printed(&text), &self.readelf, image)
    }
}

fn hip(clang: &Path, folder: &Path, arguments: &[&str]) -> PathBuf {
    let (source, image) = (folder.join("k.hip"), folder.join("hip.img"));
    fs::write(&source, HIP).unwrap();
    let mut command = Command::new(clang);
    command.args(["-x", "hip", "--offload-device-only", "-c", "-nogpulib"]);
    command.args(["--no-gpu-bundle-output", "-nogpuinc"]);
    command.args(arguments).arg(&source).arg("-o").arg(&image);
    run(&mut command);
    image
}

fn opencl(clang: &Path, folder: &Path, source: &str, arguments: &[&str]) -> PathBuf {
    let (file, image) = (folder.join("k.cl"), folder.join("cl.img"));
    fs::write(&file, source).unwrap();
    let mut command = Command::new(clang);
    command.args(["-x", "cl", "-target", "amdgcn-amd-amdhsa", "-nogpulib"]);
    command.args(arguments).arg(&file).arg("-o").arg(&image);
    run(&mut command);
    image
}

/// Adds the sizes of functions that `llvm-readelf --symbols` prints: `3: 0000000000001900    56 FUNC … <name>`.
fn with_sizes(mut kernels: Vec<Kernel>, readelf: &Path, image: &Path) -> Vec<Kernel> {
    let text = run(Command::new(readelf).args(["--symbols", "-W"]).arg(image));
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let functions = lines.filter(|fields| fields.contains(&"FUNC"));
    let sizes: BTreeMap<&str, u64> = functions
        .map(|fields| (fields[7], fields[2].parse().unwrap()))
        .collect();
    for kernel in &mut kernels {
        kernel.code_size = Some(sizes[kernel.name.as_str()]);
    }
    kernels
}

/// The kernels in what `llvm-readelf --notes` prints, by name.
///
/// A kernel is a list item at column 2 with its keys at column 4, and an argument of it a list item at column
/// 6 with its keys at column 8.
fn printed(text: &str) -> Vec<Kernel> {
    let mut kernels = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with("  - .") {
            continue;
        }
        let mut keys = BTreeMap::new();
        // The items below a key, each the lines of it.
        let mut items: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
        let mut last = String::new();
        let mut line = line.replacen("  - ", "    ", 1);
        loop {
            if let Some(item) = line.strip_prefix("      - ") {
                let items = items.entry(last.clone()).or_default();
                items.push(vec![item.to_owned()]);
            } else if let Some(rest) = line.strip_prefix("        ") {
                let item = items.get_mut(&last).unwrap().last_mut().unwrap();
                item.push(rest.to_owned());
            } else {
                let (key, value) = key_and_value(&line);
                last.clone_from(&key);
                keys.insert(key, value);
            }
            match lines.next_if(|line| line.starts_with("    ")) {
                Some(next) => line = next.to_owned(),
                None => break,
            }
        }
        kernels.push(kernel(&keys, &items));
    }
    kernels.sort_by(|a: &Kernel, b: &Kernel| a.name.cmp(&b.name));
    kernels
}

fn key_and_value(line: &str) -> (String, String) {
    let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("{line}"));
    let value = value.trim().trim_matches('\'');
    (key.trim().to_owned(), value.to_owned())
}

fn kernel(keys: &BTreeMap<String, String>, items: &BTreeMap<String, Vec<Vec<String>>>) -> Kernel {
    let number = |keys: &BTreeMap<String, String>, key: &str| keys[key].parse::<u32>().unwrap();
    let none = Vec::new();
    let list = |key: &str| items.get(key).unwrap_or(&none).iter();
    let argument = |lines: &Vec<String>| {
        let keys: BTreeMap<_, _> = lines.iter().map(|line| key_and_value(line)).collect();
        let (offset, size) = (number(&keys, ".offset"), number(&keys, ".size"));
        let value_kind = &*keys[".value_kind"];
        let kind = match value_kind {
            "global_buffer" | "dynamic_shared_pointer" => Some(ArgumentKind::Pointer),
            "by_value" => Some(ArgumentKind::Value),
            _ => None,
        };
        (!value_kind.starts_with("hidden_")).then_some(Argument::new(offset, size, kind))
    };
    let size = list(".reqd_workgroup_size").map(|lines| lines[0].parse().unwrap());
    let size: Vec<u32> = size.collect();
    kernel_with(|kernel| {
        kernel.name = keys[".symbol"].strip_suffix(".kd").unwrap().to_owned();
        kernel.arguments = list(".args").filter_map(argument).collect();
        kernel.arguments_size = number(keys, ".kernarg_segment_size");
        kernel.max_threads = Some(number(keys, ".max_flat_workgroup_size"));
        kernel.required_threads = size.try_into().ok();
        kernel.shared_size = number(keys, ".group_segment_fixed_size");
        kernel.private_size = number(keys, ".private_segment_fixed_size");
        kernel.registers = Some(number(keys, ".vgpr_count"));
        kernel.scalar_registers = Some(number(keys, ".sgpr_count"));
        // Only of processors that have them.
        kernel.accumulation_registers =
            keys.get(".agpr_count").map(|_| number(keys, ".agpr_count"));
        kernel.spilled_registers = Some(number(keys, ".vgpr_spill_count"));
        kernel.spilled_scalar_registers = Some(number(keys, ".sgpr_spill_count"));
        kernel.has_dynamic_stack = keys.get(".uses_dynamic_stack").map(|value| value == "true");
        kernel.wavefront = Some(number(keys, ".wavefront_size"));
    })
}

fn find<'a>(kernels: &'a [Kernel], name: &str) -> &'a Kernel {
    let found = kernels.iter().find(|kernel| kernel.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {kernels:?}"))
}

/// Offset and size of each argument.
fn places(kernel: &Kernel) -> Vec<(u32, u32)> {
    let place = |argument: &Argument| (argument.offset, argument.size);
    kernel.arguments.iter().map(place).collect()
}

#[test]
fn describes_kernels_of_hip_as_llvm_readelf_prints_them() {
    let folder = tempfile::tempdir().unwrap();
    for llvm in installations() {
        let processors = [
            ("gfx906", 64),
            ("gfx90a", 64),
            ("gfx1030", 32),
            ("gfx1100", 32),
        ];
        for (index, (processor, wavefront)) in processors.into_iter().enumerate() {
            let all = [
                &["-O2"][..],
                // Without optimization the runtime adds its arguments.
                &["-O0"],
                &["-O0", "-mcode-object-version=4"],
                &["-O2", "-mcode-object-version=6"],
            ];
            // Each processor with all options, or with one of two.
            for options in support::share(all, index % 2, 2) {
                let target = format!("--offload-arch={processor}");
                let arguments = [&[target.as_str()], options].concat();
                let image = hip(&llvm.clang, folder.path(), &arguments);
                let ours = kernels(&fs::read(&image).unwrap()).unwrap();
                assert_eq!(ours, llvm.printed(&image), "{arguments:?}");

                // And what the source says.
                let names: Vec<&str> = ours.iter().map(|kernel| kernel.name.as_str()).collect();
                assert_eq!(names, ["_Z7mangledsPf", "nothing", "scratch", "shared"]);
                let shared = find(&ours, "shared");
                assert_eq!(places(shared), [(0, 8), (8, 4), (12, 13)]);
                assert_eq!((shared.shared_size, shared.max_threads), (256, Some(256)));
                let scratch = find(&ours, "scratch");
                assert_eq!(places(scratch), [(0, 8), (8, 8), (16, 1), (24, 16)]);
                assert!(scratch.private_size >= 400, "{scratch:?}");
                assert_eq!(scratch.max_threads, Some(1024));
                assert_eq!(scratch.required_threads, None);
                let nothing = find(&ours, "nothing");
                assert_eq!(places(nothing), []);
                let hidden = options.contains(&"-O0");
                assert_eq!(nothing.arguments_size > 0, hidden, "{nothing:?}");
                assert_eq!(nothing.wavefront, Some(wavefront));
            }
        }
    }
}

#[test]
fn describes_kernels_of_opencl_as_llvm_readelf_prints_them() {
    let folder = tempfile::tempdir().unwrap();
    for llvm in installations() {
        for processor in ["-mcpu=gfx90a", "-mcpu=gfx1100"] {
            let image = opencl(&llvm.clang, folder.path(), OPENCL, &[processor, "-O2"]);
            let ours = kernels(&fs::read(&image).unwrap()).unwrap();
            assert_eq!(ours, llvm.printed(&image), "{processor}");
            let required = find(&ours, "required");
            assert_eq!(required.required_threads, Some([8, 4, 2]));
            assert_eq!(required.max_threads, Some(64));
            assert_eq!(places(required), [(0, 8), (8, 4), (12, 4)]);
            assert_eq!(find(&ours, "any").required_threads, None);
        }
    }
}

#[test]
fn counts_registers_for_accumulation_where_they_are_in_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    for llvm in installations() {
        // 41 of the one kind and 20 of the other; the second start at a multiple of 4.
        for (processor, registers) in [("gfx908", 41), ("gfx90a", 64), ("gfx942", 64)] {
            let target = format!("-mcpu={processor}");
            let image = opencl(&llvm.clang, folder.path(), ACCUMULATORS, &[&target]);
            let ours = kernels(&fs::read(&image).unwrap()).unwrap();
            assert_eq!(ours, llvm.printed(&image), "{processor}");
            assert_eq!(ours[0].registers, Some(registers), "{processor}");
        }
    }
}

#[test]
fn describes_kernels_of_every_object_that_was_linked() {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("k.o");
    for llvm in installations() {
        let mut link = Command::new(&llvm.linker);
        let image = folder.path().join("linked.img");
        link.arg("-shared").arg("-o").arg(&image);
        for (name, source) in [("a.o", OPENCL), ("b.o", ACCUMULATORS)] {
            let compiled = opencl(&llvm.clang, folder.path(), source, &["-mcpu=gfx90a", "-c"]);
            let object = object.with_file_name(name);
            fs::rename(compiled, &object).unwrap();
            link.arg(object);
        }
        run(&mut link);
        let ours = kernels(&fs::read(&image).unwrap()).unwrap();
        assert_eq!(ours, llvm.printed(&image));
        let names: Vec<&str> = ours.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["accumulate", "any", "required"]);
    }
}

#[test]
fn describes_code_objects_of_versions_2_and_3() {
    let (Some(clang), Some(linker), Some(readelf)) = (
        tool("llvm16", &["clang"]),
        tool("llvm22", &["ld.lld"]),
        tool("llvm22", &["llvm-readelf"]),
    ) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("old.img");
    for version in ["2", "3"] {
        let option = format!("-mcode-object-version={version}");
        let arguments = ["-mcpu=gfx906", "-c", "-O0", &option];
        let object = opencl(&clang, folder.path(), OPENCL, &arguments);
        let mut link = Command::new(&linker);
        run(link.arg("-shared").arg(object).arg("-o").arg(&image));
        let ours = kernels(&fs::read(&image).unwrap()).unwrap();
        let text = run(Command::new(&readelf).arg("--notes").arg(&image));
        let theirs = match version {
            "2" => printed_of_version_2(&text),
            _ => with_sizes(printed(&text), &readelf, &image),
        };
        let names: Vec<&str> = ours.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["any", "required"], "{version}");
        for (mut ours, theirs) in ours.into_iter().zip(theirs) {
            // In version 2 the symbol starts with a record. The code is larger than that of an empty kernel.
            if version == "2" {
                assert!(
                    ours.code_size
                        .take()
                        .is_some_and(|size| size > 4 && size < 4096)
                );
            }
            assert_eq!(ours, theirs, "{version}");
        }
    }
}

/// The kernels in the YAML of version 2 that `llvm-readelf --notes` prints, by name. Values stand once in a kernel,
/// except those of arguments.
fn printed_of_version_2(text: &str) -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = text
        .split("\n  - Name:")
        .skip(1)
        .map(|text| {
            let value = |key: &str| {
                let (_, rest) = text.split_once(&format!(" {key}:"))?;
                Some(rest.lines().next().unwrap().trim())
            };
            let number = |key: &str| value(key).map(|value| value.parse::<u32>().unwrap());
            let mut end = 0;
            let mut arguments = Vec::new();
            for text in text.split("      - ").skip(1) {
                let value = |key: &str| {
                    let (_, rest) = text.split_once(&format!("{key}:")).unwrap();
                    rest.lines().next().unwrap().trim()
                };
                let size: u32 = value("Size").parse().unwrap();
                let offset = u32::next_multiple_of(end, value("Align").parse().unwrap());
                end = offset + size;
                let kind = match value("ValueKind") {
                    "ByValue" => ArgumentKind::Value,
                    hidden if hidden.starts_with("Hidden") => continue,
                    _ => ArgumentKind::Pointer,
                };
                let kind = Some(kind);
                arguments.push(Argument::new(offset, size, kind));
            }
            let required = value("ReqdWorkGroupSize").map(|list| {
                let list = list.trim_matches(['[', ']', ' ']);
                let list: Vec<u32> = list.split(", ").map(|one| one.parse().unwrap()).collect();
                list.try_into().unwrap()
            });
            kernel_with(|kernel| {
                kernel.name = text.lines().next().unwrap().trim().to_owned();
                kernel.arguments = arguments;
                kernel.arguments_size = number("KernargSegmentSize").unwrap();
                kernel.max_threads = number("MaxFlatWorkGroupSize");
                kernel.required_threads = required;
                kernel.shared_size = number("GroupSegmentFixedSize").unwrap();
                kernel.private_size = number("PrivateSegmentFixedSize").unwrap();
                kernel.registers = number("NumVGPRs");
                kernel.scalar_registers = number("NumSGPRs");
                kernel.spilled_registers = number("NumSpilledVGPRs");
                kernel.spilled_scalar_registers = number("NumSpilledSGPRs");
                kernel.wavefront = number("WavefrontSize");
            })
        })
        .collect();
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    kernels
}

/// A small image, and the range of the content of its note.
fn image(folder: &Path) -> Option<(Vec<u8>, std::ops::Range<usize>)> {
    let clang = tool("llvm22", &["clang"])?;
    let arguments = ["-mcpu=gfx90a", "-O2", "-Wl,-s"];
    let image = fs::read(opencl(&clang, folder, OPENCL, &arguments)).unwrap();
    let note = b"\x20\0\0\0AMDGPU\0\0";
    let at = image.windows(note.len()).position(|bytes| bytes == note);
    let at = at.unwrap();
    let size = u32::from_le_bytes(image[at - 4..at].try_into().unwrap());
    let start = at + note.len();
    Some((image, start..start + size as usize))
}

#[test]
fn finds_the_note_in_segments_and_in_sections() {
    let folder = tempfile::tempdir().unwrap();
    let Some((image, _)) = image(folder.path()) else {
        return;
    };
    let whole = kernels(&image).unwrap();
    assert!(whole.iter().all(|kernel| kernel.wavefront == Some(64)));
    assert_eq!(whole.len(), 2);
    // `e_phnum`.
    let without_segments = |mut image: Vec<u8>| {
        image[0x38..0x3a].fill(0);
        image
    };
    // `e_shoff`; of `.note`, which is the first, `sh_type`.
    let without_sections = |mut image: Vec<u8>| {
        let table = u64::from_le_bytes(image[0x28..0x30].try_into().unwrap()) as usize;
        let kind = &mut image[table + 64 + 4..][..4];
        assert_eq!(kind, [7, 0, 0, 0]);
        kind[0] = 1;
        image
    };
    assert_eq!(kernels(&without_segments(image.clone())).unwrap(), whole);
    assert_eq!(kernels(&without_sections(image.clone())).unwrap(), whole);
    // Without either there are only symbols.
    let ours = kernels(&without_segments(without_sections(image))).unwrap();
    let names = [0, 1].map(|index| {
        kernel_with(|kernel| {
            kernel.name = ["any", "required"][index].to_owned();
            kernel.code_size = whole[index].code_size;
        })
    });
    assert_eq!(ours, names);
}

/// A source that counts the bytes that are read.
struct Counted(Vec<u8>, Arc<AtomicU64>);

impl Source for Counted {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.1.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        let read = self.0.as_slice().read_once(buffer, offset);
        read.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

#[test]
fn reads_headers_symbols_and_notes_of_an_image_in_a_large_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return;
    };
    let large = format!(
        "{OPENCL}\nconstant int table[1 << 20] = {{1}};\nkernel void look(global int *p) {{ p[0] = table[p[1] & 7]; }}"
    );
    let image = fs::read(opencl(&clang, folder.path(), &large, &["-mcpu=gfx90a"])).unwrap();
    assert!(image.len() > 4 << 20);
    let whole = kernels(&image).unwrap();
    assert_eq!(whole.len(), 3);
    let (before, after) = (vec![0x7f; 12_345], vec![0x7f; 1 << 20]);
    let file = [before.as_slice(), &image, &after].concat();
    let read = Arc::new(AtomicU64::new(0));
    let cache = ReadCache::new(Counted(file, Arc::clone(&read)));
    let start = before.len() as u64;
    let range = start..start + image.len() as u64;
    assert_eq!(kernels_within(&cache, range).unwrap(), whole);
    let read = read.load(Ordering::Relaxed);
    assert!(read < 32 << 10, "{read}");
}

/// A folder opens like a file, and cannot be read.
#[cfg(unix)]
#[test]
fn reports_a_folder() {
    let folder = fs::File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
    let problem = images(&ReadCache::new(folder)).unwrap_err();
    let text = problem.to_string();
    assert!(text.starts_with("cannot read "), "{text}");
}

#[test]
fn rejects_notes_that_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let Some((image, note)) = image(folder.path()) else {
        return;
    };
    // The size of the content is before its type and owner; that of the segment in its header.
    let size = note.start - 16..note.start - 12;
    let headers = u64::from_le_bytes(image[0x20..0x28].try_into().unwrap()) as usize;
    let count = usize::from(image[0x38]);
    let mut headers = (0..count).map(|index| headers + 56 * index);
    let header = headers
        .find(|at| image[*at..][..4] == [4, 0, 0, 0])
        .unwrap();
    for len in 0..note.len() {
        let mut cut = image.clone();
        cut[size.clone()].copy_from_slice(&(len as u32).to_le_bytes());
        let segment = (20 + len) as u64;
        cut[header + 32..][..8].copy_from_slice(&segment.to_le_bytes());
        let error = kernels(&cut).unwrap_err().to_string();
        let end = format!(" runs past the end at {len:#x}");
        let of_note = error.starts_with("note NT_AMDGPU_METADATA: ") && error.ends_with(&end);
        assert!(of_note, "{len:#x}: {error}");
    }
    let mut more = image.clone();
    more[size].copy_from_slice(&(note.len() as u32 + 0x1000).to_le_bytes());
    let error = kernels(&more).unwrap_err().to_string();
    let start = note.start - 20;
    assert_eq!(
        error,
        format!("the notes at offset {start:#x} are invalid or overlap")
    );
}

#[test]
fn survives_every_truncation_and_changed_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let Some((image, note)) = image(folder.path()) else {
        return;
    };
    for len in (0..image.len()).step_by(3) {
        let _ = kernels(&image[..len]);
    }
    let mut random = Random::new();
    for at in (0..0x40).chain(note.start - 16..note.end) {
        let mut changed = image.clone();
        changed[at] = random.below(256) as u8;
        let _ = kernels(&changed);
    }
}

/// Returns a kernel with these values and defaults.
fn kernel_with(set: impl FnOnce(&mut Kernel)) -> Kernel {
    let mut kernel = Kernel::default();
    set(&mut kernel);
    kernel
}
