//! What is read of the kernels in NVIDIA's cubins, against their source and what `cuobjdump` says of them.

use crate::support;
use crate::support::folder::Folder;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _};
use object::{Object as _, ObjectSection as _};
use offload_formats::container::kernels::{Argument, ArgumentKind, Kernel, kernels};

/// By ptxas of CUDA 12.4, for sm_80: OS/ABI 0x33 with ABI version 7.
const SEVEN: &[u8] = include_bytes!("../golden/cuda-12.4/kernels.cubin");
/// By ptxas of CUDA 13.5, for sm_90: OS/ABI 0x41 with ABI version 8.
const EIGHT: &[u8] = include_bytes!("../golden/cuda-13.5/kernels.cubin");

/// By ptxas of CUDA 11.8, for sm_80. Of the same source, `ptxas -v` of CUDA 13.5 says "used 3 barriers" for `three`.
const BARRIERS: &[u8] = include_bytes!("../golden/cuda-11.8/barriers.cubin");

/// Sources, without the three directives that name the processor.
const KERNELS: &str = include_str!("../kernels_cuda/kernels.ptx");
const SAME_NAME: &str = include_str!("../kernels_cuda/same_name.ptx");
const CALLS: &str = include_str!("../kernels_cuda/calls.ptx");
const CALLED: &str = include_str!("../kernels_cuda/called.ptx");

/// A processor, and the version of PTX that has it.
const PROCESSORS: [(u32, &str); 5] = [
    (75, "8.1"),
    (80, "8.1"),
    (90, "8.1"),
    (100, "8.6"),
    (120, "8.7"),
];

/// What the system keeps of a kernel's shared memory, from sm_90 on.
const RESERVED: u32 = 1024;

#[test]
fn reads_both_forms_of_cubins() {
    // Sizes of constants by `cuobjdump -res-usage`, those of functions by `readelf -s`.
    for (image, abi, shared_size, constants, code_size) in [
        (SEVEN, (0x33, 7), 100, 352, 384),
        (EIGHT, (0x41, 8), 100 + RESERVED, 528, 512),
    ] {
        assert_eq!((image[7], image[8]), abi);
        let both = kernel_with(|kernel| {
            kernel.has_dynamic_stack = Some(false);
            kernel.barriers = Some(0);
            kernel.wavefront = Some(32);
        });
        let nothing = changed(both.clone(), |kernel| {
            kernel.name = "nothing".to_owned();
            kernel.required_threads = Some([32, 4, 2]);
            kernel.registers = Some(4);
            kernel.constant_size = Some(constants);
            kernel.code_size = Some(256);
        });
        let scale = changed(both.clone(), |kernel| {
            kernel.name = "scale".to_owned();
            kernel.arguments = arguments(&[(0, 8), (8, 7), (16, 4)]);
            kernel.arguments_size = 20;
            kernel.max_threads = Some(128);
            kernel.shared_size = shared_size;
            kernel.private_size = 24;
            kernel.registers = Some(12);
            kernel.constant_size = Some(constants + 20);
            kernel.code_size = Some(code_size);
        });
        assert_eq!(kernels(image).unwrap(), [nothing, scale]);
    }
}

#[test]
fn counts_barriers_of_older_cubins_in_the_flags_of_the_code() {
    let counts = kernels(BARRIERS).unwrap().into_iter();
    let counts: Vec<_> = counts
        .map(|kernel| (kernel.name, kernel.barriers))
        .collect();
    let expected = [("none", 0), ("three", 3)];
    assert_eq!(
        counts,
        expected.map(|(name, count)| (name.to_owned(), Some(count)))
    );
}

#[test]
fn counts_barriers_as_ptxas_does() {
    let Some(cuda) = Cuda::find() else { return };
    let source = ".visible .entry all(.param .u32 p) { .reg .b32 %r<2>; ld.param.u32 %r1, [p]; bar.sync %r1; ret; }\n\
        .visible .entry none() { ret; }\n.visible .entry six() { bar.sync 0; bar.sync 5; ret; }\n";
    let mut processors = 0;
    for (processor, version) in PROCESSORS {
        let Some(cubin) = cuda.assemble(processor, version, source, &[]) else {
            continue;
        };
        processors += 1;
        let ours = kernels(&fs::read(&cubin).unwrap()).unwrap();
        assert_eq!(cuda.described(&cubin, &ours), ours, "sm_{processor}");
        let counts: Vec<_> = ours.iter().map(|kernel| kernel.barriers).collect();
        assert_eq!(counts, [Some(16), Some(0), Some(6)], "sm_{processor}");
    }
    assert!(processors >= 3, "{processors}");
}

#[test]
fn says_of_kernels_what_cuobjdump_says() {
    let Some(cuda) = Cuda::find() else { return };
    let mut processors = 0;
    for (processor, version) in PROCESSORS {
        let Some(cubin) = cuda.assemble(processor, version, KERNELS, &[]) else {
            continue;
        };
        processors += 1;
        let image = fs::read(&cubin).unwrap();
        let ours = kernels(&image).unwrap();
        assert_eq!(declared(&ours, processor), ours, "sm_{processor}");
        assert_eq!(cuda.described(&cubin, &ours), ours, "sm_{processor}");
    }
    assert!(processors >= 3, "{processors}");
}

/// What the source declares; registers, and memory that ptxas may add to, as they are in `ours`.
fn declared(ours: &[Kernel], processor: u32) -> Vec<Kernel> {
    // One of them has dynamic shared memory: then all of the file have what is reserved.
    let shared_size = if processor < 90 { 0 } else { RESERVED };
    let kernel = |name: &str, parameters: &[(u32, u32)], arguments_size| {
        kernel_with(|kernel| {
            kernel.name = name.to_owned();
            kernel.arguments = arguments(parameters);
            kernel.arguments_size = arguments_size;
            kernel.shared_size = shared_size;
            kernel.wavefront = Some(32);
        })
    };
    let parameters: Vec<(u32, u32)> = (0..40).map(|index| (index * 4, 4)).collect();
    let mut declared = vec![
        changed(kernel("calls", &[(0, 8), (8, 4)], 12), |kernel| {
            kernel.max_threads = Some(64);
            kernel.private_size = 48;
        }),
        kernel("dynamic", &[(0, 8)], 8),
        // More than 14 bits.
        kernel(
            "huge",
            &[(0, 20_000), (20_000, 5), (20_008, 8), (20_016, 9000)],
            29_016,
        ),
        kernel("large", &[(0, 4200), (4200, 8)], 4208),
        changed(
            kernel(
                "many",
                &[(0, 8), (8, 1), (10, 2), (12, 12), (24, 7), (32, 8), (40, 4)],
                44,
            ),
            |kernel| {
                kernel.max_threads = Some(256);
            },
        ),
        kernel("many_more", &parameters, 160),
        kernel("plain", &[], 0),
        changed(kernel("required", &[(0, 8)], 8), |kernel| {
            kernel.required_threads = Some([32, 4, 2]);
            kernel.shared_size = 1104 + shared_size;
            kernel.private_size = 256;
        }),
    ];
    assert_eq!(declared.len(), ours.len());
    for (declared, ours) in declared.iter_mut().zip(ours) {
        declared.registers = ours.registers;
        declared.code_size = ours.code_size;
        declared.constant_size = ours.constant_size;
        declared.barriers = ours.barriers;
        declared.has_dynamic_stack = Some(false);
        assert!(ours.registers.is_some_and(|count| count >= 4), "{ours:?}");
    }
    declared
}

#[test]
fn says_of_linked_kernels_what_cuobjdump_says() {
    let Some(cuda) = Cuda::find() else { return };
    let Some(nvlink) = support::tool("cuda", &["nvlink"]) else {
        return;
    };
    for (processor, version) in [(75, "8.1"), (90, "8.1")] {
        // This order, or nvlink takes the local function for the kernel of that name.
        let objects = [SAME_NAME, CALLS, CALLED]
            .map(|part| cuda.assemble(processor, version, part, &["-c"]).unwrap());
        let linked = cuda.file("cubin");
        let mut command = Command::new(&nvlink);
        command.arg("-w").arg(format!("-arch=sm_{processor}"));
        support::run(command.args(objects).arg("-o").arg(&linked));
        let image = fs::read(&linked).unwrap();
        let ours = kernels(&image).unwrap();
        assert_eq!(cuda.described(&linked, &ours), ours, "sm_{processor}");

        let names: Vec<&str> = ours.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["linked", "recursive", "same"]);
        // Its own frame and that of what it calls, which another file has.
        assert_eq!(ours[0].private_size, 96 + 160);
        let reserved = if processor < 90 { 0 } else { RESERVED };
        let shared: Vec<u32> = ours.iter().map(|kernel| kernel.shared_size).collect();
        assert_eq!(shared, [200 + reserved, 0, 40 + reserved]);
        // Of a recursion only its own frame is known.
        assert_eq!(ours[1].private_size, 96);
        // The local function of that name, in another file, has a frame and no parameters.
        let same = &ours[2];
        assert_eq!(same.arguments, arguments(&[(0, 4), (8, 8)]));
        assert_eq!((same.max_threads, same.private_size), (Some(64), 0));
    }
}

#[test]
fn survives_every_truncation() {
    for image in [SEVEN, EIGHT] {
        for size in 0..image.len() {
            let prefix = &image[..size];
            // Program headers, which are not read, and the table of sections are at the end.
            let headers = u64::from_le_bytes(image[0x20..0x28].try_into().unwrap()) as usize;
            match kernels(prefix) {
                Ok(found) => assert!(
                    size >= headers && found == kernels(image).unwrap(),
                    "{size}"
                ),
                Err(error) => assert!(size < image.len(), "{error}"),
            }
        }
    }
}

#[test]
fn survives_every_single_byte_change() {
    for image in [SEVEN, EIGHT] {
        let mut image = image.to_vec();
        for place in 0..image.len() {
            let byte = image[place];
            for changed in [0, 1, byte ^ 1, byte ^ 0x80, 0xff] {
                image[place] = changed;
                let _ = kernels(&image);
            }
            image[place] = byte;
        }
    }
}

#[test]
fn rejects_records_that_are_cut() {
    for image in [SEVEN, EIGHT] {
        let section = Section::find(image, ".nv.info.scale");
        let mut cuts = 0;
        for size in 0..section.size {
            let mut cut = image.to_vec();
            section.set_size(&mut cut, size);
            if let Err(error) = kernels(&cut) {
                cuts += 1;
                let error = error.to_string();
                let known = error.starts_with("`.nv.info.scale`: record at offset 0x")
                    || error.starts_with("kernel `scale`: expected parameter ")
                    || error.starts_with("kernel `scale`: parameter");
                assert!(known, "{error}");
            }
        }
        // Each record has four bytes or more, and ends are between them.
        assert!(cuts >= section.size * 3 / 4, "{cuts} of {}", section.size);
    }
    let mut cut = EIGHT.to_vec();
    let section = Section::find(EIGHT, ".nv.info");
    section.set_size(&mut cut, 6);
    let start = section.offset;
    assert_eq!(
        kernels(&cut).unwrap_err().to_string(),
        format!(
            "`.nv.info`: record at offset {start:#x}: value at offset {:#x} with size 0x8 runs past the end at {:#x}",
            start + 4,
            start + 6
        )
    );
}

#[test]
fn rejects_what_makes_no_sense() {
    let info = Section::find(EIGHT, ".nv.info.scale");
    let all = Section::find(EIGHT, ".nv.info");
    let shared = Section::find(EIGHT, ".nv.shared.scale");
    let at = |section: &Section, bytes: &[u8]| section.offset + section.position(EIGHT, bytes);
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut image = EIGHT.to_vec();
        change(&mut image);
        kernels(&image).unwrap_err().to_string()
    };
    let place = |place: usize| format!("record at offset {place:#x}");

    let first = info.offset;
    assert_eq!(
        error(&|image| image[first] = 5),
        format!(
            "`.nv.info.scale`: {}: format 5 is not supported (1 to 4 are)",
            place(first)
        )
    );
    let size = at(&info, b"\x03\x19\x14\0");
    assert_eq!(
        error(&|image| image[size] = 2),
        format!(
            "`.nv.info.scale`: {}: attribute 0x19: expected format 3, found 2",
            place(size)
        )
    );
    assert_eq!(
        error(&|image| image[size + 2] = 19),
        "kernel `scale`: parameter at offset 0x10 with size 0x4 runs past the end at 0x13"
    );
    // The parameters come from the last to the first.
    let last = at(&info, b"\x04\x17\x0c\0\0\0\0\0\x02\0");
    let second = last + 16;
    assert_eq!(
        error(&|image| image[second + 8] = 2),
        format!("`.nv.info.scale`: {}: duplicate parameter 2", place(second))
    );
    assert_eq!(
        error(&|image| image[last + 8] = 3),
        "kernel `scale`: expected parameter 2, found 3"
    );
    let threads = at(&info, b"\x04\x05\x0c\0");
    assert_eq!(
        error(&|image| image[threads + 4..threads + 12].fill(0xff)),
        format!(
            "`.nv.info.scale`: {}: 4294967295 by 4294967295 by 1 threads do not fit in 32 bits",
            place(threads)
        )
    );
    // Of another size: what follows is read as records no more.
    assert_eq!(
        error(&|image| image[threads + 2] = 8),
        format!(
            "`.nv.info.scale`: {}: z of value at offset {:#x} with size 0x4 runs past the end at {:#x}",
            place(threads),
            threads + 12,
            threads + 12
        )
    );
    assert_eq!(
        error(&|image| image[threads + 2] = 16),
        format!(
            "`.nv.info.scale`: {}: attribute 0x5: expected 0xc bytes, found 0x10",
            place(threads)
        )
    );
    let registers = at(&all, b"\x04\x2f\x08\0");
    assert_eq!(
        error(&|image| image[registers + 4] = 0xff),
        format!("`.nv.info`: {}: its symbol is missing", place(registers))
    );
    assert_eq!(
        error(&|image| shared.set_size(image, 1 << 32)),
        "`.nv.shared.scale`: its size 0x100000000 does not fit in 32 bits"
    );
    assert_eq!(
        error(&|image| info.set_size(image, EIGHT.len())),
        format!(
            "`.nv.info.scale`: section at offset {:#x} with size {:#x} runs past the end at {:#x}",
            info.offset,
            EIGHT.len(),
            EIGHT.len()
        )
    );
    assert_eq!(
        error(&|image| info.set_type(image, object::elf::SHT_NOBITS.0)),
        "`.nv.info.scale`: expected content, found a section without bytes in the file"
    );
    assert_eq!(
        error(&|image| info.set_info(image, 0)),
        "kernel `scale`: section `.nv.info.scale` is missing"
    );
}

#[test]
fn skips_attributes_it_does_not_know() {
    for attribute in [0x06, 0x77, 0xff] {
        let mut image = EIGHT.to_vec();
        let info = Section::find(EIGHT, ".nv.info.scale");
        let threads = info.offset + info.position(EIGHT, b"\x04\x05\x0c\0");
        image[threads + 1] = attribute;
        let kernels = kernels(&image).unwrap();
        assert_eq!(kernels[1].max_threads, None);
        assert_eq!(kernels[1].arguments.len(), 3);
    }
}

#[test]
fn reads_no_more_than_the_file_has() {
    // Each section of records is as large as the rest of the file, and all its bytes make records.
    let mut image = EIGHT.to_vec();
    let sections = [".nv.info.scale", ".nv.info.nothing"].map(|name| Section::find(EIGHT, name));
    let start = image.len();
    image.extend([1, 0xff, 0, 0].repeat(4096));
    for section in &sections {
        section.set_offset(&mut image, start);
        section.set_size(&mut image, 4 * 4096);
    }
    let error = kernels(&image).unwrap_err().to_string();
    assert!(
        error.ends_with("the section overlaps another one"),
        "{error}"
    );
}

#[test]
fn survives_as_many_parameters_as_there_can_be() {
    let mut image = EIGHT.to_vec();
    let section = Section::find(EIGHT, ".nv.info.scale");
    let start = image.len();
    for ordinal in 0..=u16::MAX {
        image.extend([4, 0x17, 12, 0, 0, 0, 0, 0]);
        image.extend(ordinal.to_le_bytes());
        image.extend([0; 6]);
    }
    section.set_offset(&mut image, start);
    section.set_size(&mut image, 16 << 16);
    assert_eq!(kernels(&image).unwrap()[1].arguments.len(), 1 << 16);
}

fn arguments(parameters: &[(u32, u32)]) -> Vec<Argument> {
    let parameters = parameters.iter();
    let argument = |&(offset, size): &(u32, u32)| argument(offset, size);
    parameters.map(argument).collect()
}

/// An argument of a kernel whose name is not mangled: eight bytes may be a pointer.
fn argument(offset: u32, size: u32) -> Argument {
    let kind = (size != 8).then_some(ArgumentKind::Value);
    Argument::new(offset, size, kind)
}

/// NVIDIA's tools, and a folder for what they make.
struct Cuda {
    ptxas: PathBuf,
    cuobjdump: PathBuf,
    folder: Folder,
    files: std::cell::Cell<u32>,
}

impl Cuda {
    fn find() -> Option<Self> {
        Some(Self {
            ptxas: support::tool("cuda", &["ptxas"])?,
            cuobjdump: support::tool("cuda", &["cuobjdump"])?,
            folder: Folder::new(),
            files: std::cell::Cell::default(),
        })
    }

    /// A new one. nvlink passes over what has not the extension of its kind.
    fn file(&self, extension: &str) -> PathBuf {
        self.files.set(self.files.get() + 1);
        let name = format!("{}.{extension}", self.files.get());
        self.folder.path(name)
    }

    /// The image, or object; none when this ptxas does not know the processor.
    fn assemble(
        &self,
        processor: u32,
        version: &str,
        source: &str,
        options: &[&str],
    ) -> Option<PathBuf> {
        let (text, cubin) = (self.file("ptx"), self.file("cubin"));
        let known = support::run(Command::new(&self.ptxas).arg("--help"));
        if !known.contains(&format!("'sm_{processor}'")) {
            return None;
        }
        let head = format!(".version {version}\n.target sm_{processor}\n.address_size 64\n");
        fs::write(&text, head + source).unwrap();
        let mut command = Command::new(&self.ptxas);
        command.arg(format!("-arch=sm_{processor}")).args(options);
        support::run(command.arg(&text).arg("-o").arg(&cubin));
        Some(cubin)
    }

    /// What `cuobjdump` says of these kernels.
    fn described(&self, cubin: &Path, ours: &[Kernel]) -> Vec<Kernel> {
        let run = |option| support::run(Command::new(&self.cuobjdump).arg(option).arg(cubin));
        let (usage, dump) = (run("--dump-resource-usage"), run("-elf"));
        let kernel = |ours: &Kernel| theirs(&ours.name, &usage, &dump);
        ours.iter().map(kernel).collect()
    }
}

fn theirs(name: &str, usage: &str, dump: &str) -> Kernel {
    let mut kernel = kernel_with(|kernel| {
        kernel.name = name.to_owned();
        kernel.wavefront = Some(32);
    });
    // ` Function <name>:`, then `  REG:8 STACK:0 SHARED:0 LOCAL:0 …`. A local function of the name comes after it.
    let mut lines = usage.lines();
    assert!(
        lines.any(|line| line.trim() == format!("Function {name}:")),
        "{usage}"
    );
    let fields = lines.next().unwrap().split_whitespace();
    let fields: BTreeMap<&str, &str> = fields.filter_map(|field| field.split_once(':')).collect();
    let number = |field: &str| fields[field].parse::<u32>().unwrap();
    kernel.registers = Some(number("REG"));
    let banks = fields.keys().filter(|field| field.starts_with("CONSTANT["));
    kernel.constant_size = Some(banks.map(|bank| number(bank)).sum());
    kernel.barriers = Some(0);
    kernel.has_dynamic_stack = Some(fields["STACK"] == "UNKNOWN");
    kernel.code_size = Some(symbol_size(dump, name));
    kernel.shared_size = number("SHARED");
    kernel.private_size = match fields["STACK"] {
        "UNKNOWN" => function(dump, name, "frame size: "),
        _ => number("STACK") + number("LOCAL"),
    };

    // `.nv.info.<name>`, then the records, then an empty line or two.
    let heading = format!("\n.nv.info.{name}\n");
    let (_, records) = dump.split_once(&heading).unwrap();
    let (records, _) = records.split_once("\n.").unwrap();
    let mut parameters = BTreeMap::new();
    for record in records.split("Attribute:").skip(1) {
        let mut lines = record.lines().map(str::trim);
        let attribute = lines.next().unwrap();
        let value = lines.find_map(|line| line.strip_prefix("Value:"));
        let value = value.unwrap_or_default();
        let words = || value.split_whitespace().map(hex).collect::<Vec<u32>>();
        match attribute.trim() {
            "EIATTR_KPARAM_INFO" | "EIATTR_KPARAM_INFO_V2" => {
                let field = |name| {
                    let (_, rest) = value.split_once(name).unwrap();
                    hex(rest
                        .trim_start_matches([' ', ':'])
                        .split_whitespace()
                        .next()
                        .unwrap())
                };
                let (offset, size) = (field("Offset"), field("Size"));
                let other = parameters.insert(field("Ordinal"), argument(offset, size));
                assert_eq!(other, None);
            }
            "EIATTR_CBANK_PARAM_SIZE" => kernel.arguments_size = words()[0],
            "EIATTR_NUM_BARRIERS" => kernel.barriers = Some(words()[0]),
            "EIATTR_MAX_THREADS" => kernel.max_threads = Some(words().iter().product()),
            "EIATTR_REQNTID" => kernel.required_threads = Some(words().try_into().unwrap()),
            _ => {}
        }
    }
    kernel.arguments = parameters.into_values().collect();
    kernel
}

/// The size of a kernel's symbol: `0x8  0  0x100  FUNC  GLOBAL  DEFAULT  ENTRY  0xe  <name>`.
fn symbol_size(dump: &str, name: &str) -> u64 {
    let mut lines = dump
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let fields = lines.find(|fields| {
        fields.contains(&"FUNC") && fields.contains(&"ENTRY") && fields.last() == Some(&name)
    });
    hex(fields.unwrap()[2]).into()
}

/// The number of `function: <name>(0x12)`, a tab and `<what>0x34` in the dump of `.nv.info`.
fn function(dump: &str, name: &str, what: &str) -> u32 {
    let of = format!("function: {name}(");
    let mut lines = dump.lines().filter(|line| line.contains(&of));
    hex(lines
        .find_map(|line| Some(line.split_once(what)?.1))
        .unwrap())
}

fn hex(word: &str) -> u32 {
    u32::from_str_radix(word.strip_prefix("0x").unwrap(), 16).unwrap()
}

/// A section, and where its header is.
struct Section {
    header: usize,
    offset: usize,
    size: usize,
}

impl Section {
    fn find(image: &[u8], name: &str) -> Self {
        let file = ElfFile64::<object::Endianness>::parse(image).unwrap();
        let section = file.section_by_name(name).unwrap();
        let (table, header) = (file.elf_header(), section.elf_section_header());
        let start = table.e_shoff(file.endian()) as usize;
        Self {
            header: start + section.index().0 * usize::from(table.e_shentsize(file.endian())),
            offset: header.sh_offset(file.endian()) as usize,
            size: header.sh_size(file.endian()) as usize,
        }
    }

    /// Of the first such bytes, in it.
    fn position(&self, image: &[u8], bytes: &[u8]) -> usize {
        let own = &image[self.offset..self.offset + self.size];
        let mut windows = own.windows(bytes.len());
        windows.position(|window| window == bytes).unwrap()
    }

    // `Elf64_Shdr`: `sh_type` is at 4, `sh_offset` at 24, `sh_size` at 32, `sh_info` at 44.
    fn set_type(&self, image: &mut [u8], kind: u32) {
        image[self.header + 4..][..4].copy_from_slice(&kind.to_le_bytes());
    }

    fn set_offset(&self, image: &mut [u8], offset: usize) {
        image[self.header + 24..][..8].copy_from_slice(&offset.to_le_bytes());
    }

    fn set_size(&self, image: &mut [u8], size: usize) {
        image[self.header + 32..][..8].copy_from_slice(&size.to_le_bytes());
    }

    fn set_info(&self, image: &mut [u8], info: u32) {
        image[self.header + 44..][..4].copy_from_slice(&info.to_le_bytes());
    }
}

/// Returns a kernel with these values and defaults.
fn kernel_with(set: impl FnOnce(&mut Kernel)) -> Kernel {
    let mut kernel = Kernel::default();
    set(&mut kernel);
    kernel
}

/// Returns a kernel with some values changed.
fn changed(mut kernel: Kernel, set: impl FnOnce(&mut Kernel)) -> Kernel {
    set(&mut kernel);
    kernel
}
