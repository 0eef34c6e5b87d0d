//! The registration objects: against those of `clang-linker-wrapper`, in every linker, and running.

use crate::linker_support as support;
use crate::support::WITHOUT_LIBLLVM;
use crate::support::folder::Folder;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags, elf};
use offload_build::tools::Llvm;
use offload_formats::container::elf::{Machine, SHT_LLVM_OFFLOADING};
use offload_formats::container::embed::elf_object;
use offload_formats::format::pieces::{Embedded, Piece, to_bytes};
use offload_formats::names::Triple;
use offload_formats::registration::coff::WindowsAbi;
use offload_formats::registration::deferred::{Deferred, add_demand};
use offload_formats::registration::openmp::{Blob, BlobSection, EntryTable, OpenMp};
use offload_formats::registration::sycl::Sycl;
use offload_formats::registration::{Global, NEEDS_OFFLOAD_LINK, RegistrationError};
use support::{found, tool};

const PROGRAM: &str = "
int printf(const char *, ...);
static int on_host(void) { return 1; }
#pragma omp begin declare variant match(device = {kind(nohost)})
static int on_host(void) { return 0; }
#pragma omp end declare variant
int main(void) {
  int host = -1;
#pragma omp target map(from : host)
  host = on_host();
  printf(\"host=%d\\n\", host);
  return host != 0;
}
";

/// A program's host object, the blob that LLVM's wrapper embeds for it, and LLVM's object.
struct Case {
    dir: Folder,
    clang: PathBuf,
    blob: Vec<u8>,
    llvm: Vec<u8>,
}

impl Deref for Case {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.dir
    }
}

impl Case {
    fn new(release: &str, clang: PathBuf, wrapper: PathBuf) -> Self {
        let dir = Folder::new();
        dir.write("a.c", PROGRAM);
        let mut compile = Command::new(&clang);
        compile
            .args(["-O1", "-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"])
            .args(["-ffunction-sections", "-c", "a.c"]);
        succeed(dir.root(), &mut compile);
        // What is linked by the wrapper does not matter here, so no host link takes place.
        let mut link = Command::new(wrapper);
        let nothing = found("true").expect("every system has `true`");
        link.arg(format!("--linker-path={}", nothing.display()));
        link.args(["--save-temps", "-o", "a", "a.o"]);
        link.arg("--host-triple=x86_64-pc-linux-gnu");
        succeed(dir.root(), &mut link);
        let llvm = fs::read(dir.path("a.openmp.image.wrapper.o"))
            .unwrap_or_else(|error| panic!("wrapper {release}: {error}"));
        let file = ElfFile64::<object::Endianness>::parse(&*llvm).unwrap();
        let section = file.section_by_name(".llvm.offloading").unwrap();
        let blob = section.data().unwrap().to_vec();
        Self {
            dir,
            clang,
            blob,
            llvm,
        }
    }

    /// Where the image is in an offload binary of version 1.
    fn image(&self) -> Blob<'_> {
        let field = |at: usize| u64::from_le_bytes(self.blob[at..at + 8].try_into().unwrap());
        Blob {
            bytes: Embedded::Bytes(&self.blob),
            image: field(56)..field(56) + field(64),
        }
    }

    fn link(&self, args: &[&str]) -> Output {
        let runtime = Llvm::of(self.clang.clone())
            .offload_runtime(Machine::X86_64)
            .unwrap();
        Command::new(&self.clang)
            .current_dir(self.root())
            .args(["-o", "a", "-Wl,--gc-sections"])
            .args(args)
            .arg(format!("-L{}", runtime.display()))
            .arg(format!("-Wl,-rpath,{}", runtime.display()))
            .args([WITHOUT_LIBLLVM, "-lomp", "-lomptarget"])
            .output()
            .unwrap()
    }

    fn run(&self) -> Output {
        let runtime = Llvm::of(self.clang.clone())
            .offload_runtime(Machine::X86_64)
            .unwrap();
        Command::new(self.path("a"))
            .env("OMP_TARGET_OFFLOAD", "MANDATORY")
            .env("LD_LIBRARY_PATH", runtime)
            .output()
            .unwrap()
    }
}

fn succeed(dir: &Path, command: &mut Command) {
    let output = command.current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

fn ours(case: &Case, table: EntryTable<'_>, section: BlobSection) -> Vec<u8> {
    let registration = OpenMp {
        images: &[case.image()],
        table,
        section,
        globals: &[],
    };
    registration.to_object(Machine::X86_64).unwrap()
}

/// What a linker sees, without the order in which it is stored.
fn summary(bytes: &[u8]) -> BTreeMap<String, String> {
    let file = ElfFile64::<object::Endianness>::parse(bytes).unwrap();
    let mut seen = BTreeMap::new();
    for section in file.sections() {
        let name = section.name().unwrap().to_owned();
        if [".strtab", ".shstrtab", ".symtab"].contains(&name.as_str())
            || name.starts_with(".rela.")
        {
            continue;
        }
        let SectionFlags::Elf { sh_type, sh_flags } = section.flags() else {
            unreachable!()
        };
        // LLVM 23 retains the entry section, and so do we.
        let sh_flags = sh_flags.0 & !elf::SHF_GNU_RETAIN.0;
        let relocations: Vec<String> = section
            .relocations()
            .map(|(offset, relocation)| {
                let RelocationTarget::Symbol(index) = relocation.target() else {
                    panic!("{relocation:?}")
                };
                let symbol = file.symbol_by_index(index).unwrap();
                let name = match symbol.section_index() {
                    Some(index) => file.section_by_index(index).unwrap().name().unwrap(),
                    None => symbol.name().unwrap(),
                };
                format!(
                    "{offset:#x} {:?} {name} {}",
                    relocation.flags(),
                    relocation.addend()
                )
            })
            .collect();
        let text = format!(
            "{sh_type:?} {sh_flags:#x} {} {:x?} {relocations:#?}",
            section.align(),
            section.data().unwrap()
        );
        seen.insert(format!("section {name}"), text);
    }
    for symbol in file.symbols() {
        let section = symbol.section_index().map(|index| {
            file.section_by_index(index)
                .unwrap()
                .name()
                .unwrap()
                .to_owned()
        });
        if symbol.kind() == object::SymbolKind::Section {
            continue;
        }
        seen.insert(
            format!("symbol {}", symbol.name().unwrap()),
            format!(
                "{section:?} {:#x} {:#x} {:?}",
                symbol.address(),
                symbol.size(),
                symbol.flags()
            ),
        );
    }
    seen
}

#[test]
fn writes_the_object_that_llvm_writes() {
    for (release, section) in [
        ("19", "omp_offloading_entries"),
        ("22", "llvm_offload_entries"),
    ] {
        let llvm = format!("llvm{release}");
        let (Some(clang), Some(wrapper)) =
            (tool(&llvm, "clang"), tool(&llvm, "clang-linker-wrapper"))
        else {
            continue;
        };
        let case = Case::new(release, clang, wrapper);
        let ours = ours(
            &case,
            EntryTable::StartStop {
                section,
                entries: &[],
            },
            BlobSection::Offloading,
        );
        assert_eq!(summary(&ours), summary(&case.llvm), "LLVM {release}");
    }
}

/// Name for messages, arguments for clang, arguments that keep the entry table.
fn linkers() -> Vec<(&'static str, String, &'static [&'static str])> {
    let keep: &[&str] = &["-Wl,-z,nostart-stop-gc"];
    let all = [
        ("bfd", found("ld.bfd"), &[][..]),
        ("gold", found("ld.gold"), &[]),
        ("lld 19", tool("llvm19", "ld.lld"), keep),
        ("lld 22", tool("llvm22", "ld.lld"), keep),
    ];
    let here = all.into_iter().filter_map(|(name, path, keep)| {
        Some((name, format!("--ld-path={}", path?.display()), keep))
    });
    let here: Vec<_> = here.collect();
    assert!(!here.is_empty(), "no linker is here");
    here
}

fn case19() -> Option<Case> {
    let wrapper = tool("llvm19", "clang-linker-wrapper")?;
    Some(Case::new("19", tool("llvm19", "clang")?, wrapper))
}

#[test]
fn runs_the_region_on_the_device_whatever_linker_was_used() {
    let Some(case) = case19() else { return };
    let table = EntryTable::StartStop {
        section: "omp_offloading_entries",
        entries: &[],
    };
    for section in [BlobSection::Offloading, BlobSection::Finished] {
        case.write("registration.o", ours(&case, table, section));
        for (name, linker, keep) in linkers() {
            let args = [&["registration.o", "a.o", &linker], keep].concat();
            let link = case.link(&args);
            assert!(link.status.success(), "{name}: {link:?}");
            assert_eq!(String::from_utf8_lossy(&link.stderr), "", "{name}");
            let run = case.run();
            assert!(run.status.success(), "{name} {section:?}: {run:?}");
            assert_eq!(run.stdout, b"host=0\n", "{name}");
        }
    }
}

#[test]
fn runs_the_region_when_registered_in_c_or_in_ir() {
    let Some(case) = case19() else { return };
    case.write("image", &case.blob);
    let files = ["image"; 2].map(Path::new);
    let registration = |table| {
        let registration = OpenMp {
            images: &[case.image(), case.image()],
            table,
            section: BlobSection::Finished,
            globals: &[Global::Anchor { name: "anchor" }],
        };
        let host = Triple::parse("x86_64-pc-linux-gnu").unwrap();
        let module = registration.to_ir(&host).unwrap();
        (registration.to_c(&files).unwrap(), module)
    };
    let section = "omp_offloading_entries";
    let whole = registration(EntryTable::StartStop {
        section,
        entries: &[],
    });
    let range = registration(EntryTable::SectionRange {
        section,
        size: 32,
        flags: (elf::SHF_WRITE | elf::SHF_ALLOC).0,
        alignment: 1,
    });
    for (name, (source, module)) in [("whole", whole), ("range", range)] {
        case.write(format!("{name}.c"), source.as_bytes());
        case.write(format!("{name}.bc"), module.as_bytes());
    }
    // gcc does not read modules.
    let clang = [
        ("c", Some(case.clang.clone())),
        ("bc", Some(case.clang.clone())),
    ];
    for (form, compiler) in clang.into_iter().chain([("c", found("gcc"))]) {
        let Some(compiler) = compiler else { continue };
        for source in ["whole", "range"] {
            let mut compile = Command::new(&compiler);
            compile.args(["-c", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]);
            compile.args([&format!("{source}.{form}"), "-o", "registration.o"]);
            succeed(case.root(), &mut compile);
            for (name, linker, keep) in linkers() {
                let mut args = vec!["registration.o", "a.o", &linker];
                args.extend(keep);
                if source == "range" {
                    let mut relocatable = Command::new(linker.trim_start_matches("--ld-path="));
                    relocatable.args(["-r", "registration.o", "a.o", "-o", "r.o"]);
                    succeed(case.root(), &mut relocatable);
                    args = vec!["r.o", &linker];
                }
                let link = case.link(&args);
                assert!(link.status.success(), "{name} {source}: {link:?}");
                let run = case.run();
                assert!(run.status.success(), "{name} {source}: {run:?}");
            }
        }
    }
}

#[test]
fn keeps_its_own_entry_table_through_a_relocatable_link_and_collection() {
    let Some(case) = case19() else { return };
    let table = EntryTable::SectionRange {
        section: "omp_offloading_entries",
        size: 32,
        flags: (elf::SHF_WRITE | elf::SHF_ALLOC).0,
        alignment: 1,
    };
    case.write("registration.o", ours(&case, table, BlobSection::Finished));
    for (name, linker, _) in linkers() {
        let mut relocatable = Command::new(linker.trim_start_matches("--ld-path="));
        relocatable.args(["-r", "registration.o", "a.o", "-o", "whole.o"]);
        succeed(case.root(), &mut relocatable);
        for (last, linker, _) in linkers() {
            // No `-z nostart-stop-gc`: nothing here is named by start and stop symbols.
            let link = case.link(&["whole.o", &linker]);
            assert!(link.status.success(), "{name}, {last}: {link:?}");
            let run = case.run();
            assert!(run.status.success(), "{name}, {last}: {run:?}");
        }
    }
}

#[test]
fn gives_images_and_an_anchor_to_the_program() {
    let Some(case) = case19() else { return };
    let registration = OpenMp {
        images: &[case.image(), case.image()],
        table: EntryTable::StartStop {
            section: "omp_offloading_entries",
            entries: &[],
        },
        section: BlobSection::Finished,
        globals: &[
            Global::Bytes {
                name: "image_1",
                offset: case.blob.len() as u64,
                size: 4,
            },
            Global::Anchor { name: "anchor" },
        ],
    };
    let bytes = registration.to_object(Machine::X86_64).unwrap();
    case.write("registration.o", &bytes);
    case.write(
        "b.c",
        b"extern const unsigned char image_1[]; void anchor(void);\n\
          int main(void) { anchor(); return image_1[0] != 0x10 || image_1[3] != 0xad; }",
    );
    let link = case.link(&["b.c", "registration.o"]);
    assert!(link.status.success(), "{link:?}");
    let status = Command::new(case.path("a")).status().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn defers_with_an_object_that_only_our_linker_completes() {
    let Some(case) = case19() else { return };
    let deferred = Deferred {
        binaries: Embedded::Bytes(&case.blob),
        anchor: "anchor",
    };
    let bytes = deferred.to_object(Machine::X86_64).unwrap();
    let file = ElfFile64::<object::Endianness>::parse(&*bytes).unwrap();
    let section = file.section_by_name(".llvm.offloading").unwrap();
    assert_eq!(
        section.flags(),
        SectionFlags::Elf {
            sh_type: elf::SectionType(SHT_LLVM_OFFLOADING),
            sh_flags: elf::SHF_EXCLUDE
        }
    );
    assert_eq!((section.align(), section.data().unwrap()), (8, &*case.blob));

    case.write("deferred.o", &bytes);
    case.write(
        "b.c",
        b"void anchor(void); int main(void) { anchor(); return 0; }",
    );
    let registration = OpenMp {
        images: &[],
        table: EntryTable::StartStop {
            section: "omp_offloading_entries",
            entries: &[],
        },
        section: BlobSection::Offloading,
        globals: &[Global::Marker {
            name: NEEDS_OFFLOAD_LINK,
        }],
    };
    let bytes = registration.to_object(Machine::X86_64).unwrap();
    case.write("registration.o", &bytes);
    for (name, linker, keep) in linkers() {
        let stock = case.link(&["b.c", "deferred.o", &linker]);
        assert!(!stock.status.success(), "{name} linked a deferred object");
        let text = String::from_utf8_lossy(&stock.stderr);
        assert!(text.contains(NEEDS_OFFLOAD_LINK), "{name}: {text}");
        let args = [&["b.c", "deferred.o", "registration.o", &linker], keep].concat();
        let link = case.link(&args);
        assert!(link.status.success(), "{name}: {link:?}");
    }
}

fn demanded(object: &[u8]) -> Result<Vec<Piece>, RegistrationError> {
    add_demand(object, 0..object.len() as u64)
}

#[test]
fn adds_the_demand_to_host_objects_of_every_machine() {
    let Some(lld) = tool("llvm22", "ld.lld") else {
        return;
    };
    let dir = Folder::new();
    let host = OpenMp {
        images: &[],
        table: EntryTable::StartStop {
            section: "omp_offloading_entries",
            entries: &[],
        },
        section: BlobSection::Offloading,
        globals: &[],
    };
    for machine in [Machine::X86_64, Machine::AARCH64] {
        let object = host.to_object(machine).unwrap();
        let demanding = to_bytes(&demanded(&object).unwrap(), &[&object]).unwrap();
        dir.write("host.o", demanding);
        let link = |options: &[&str]| {
            let mut link = Command::new(&lld);
            link.args(["-pie", "--gc-sections", "host.o", "-o", "host"]);
            for name in [
                "__tgt_register_lib",
                "__tgt_unregister_lib",
                "atexit",
                "_start",
            ] {
                link.arg(format!("--defsym={name}=0"));
            }
            let output = link.args(options).current_dir(dir.root()).output();
            let output = output.unwrap();
            String::from_utf8(output.stderr).unwrap()
        };
        let told = link(&[]);
        let undefined = format!("undefined symbol: {NEEDS_OFFLOAD_LINK}\n");
        assert!(told.contains(&undefined), "{told}");
        assert_eq!(told.matches("undefined symbol").count(), 1, "{told}");
        assert_eq!(link(&[&format!("--defsym={NEEDS_OFFLOAD_LINK}=0")]), "");
    }
    let object = elf_object(Machine::RISCV64, b"").unwrap();
    let machine = Machine::RISCV64.number;
    assert_eq!(
        demanded(&object).unwrap_err(),
        RegistrationError::Machine { machine }
    );
    let error = demanded(b"no object").unwrap_err();
    assert!(matches!(error, RegistrationError::Elf(_)), "{error}");
}

#[test]
fn links_for_aarch64() {
    let Some(lld) = tool("llvm22", "ld.lld") else {
        return;
    };
    let Some(objdump) = tool("llvm22", "llvm-objdump") else {
        return;
    };
    let dir = Folder::new();
    let registration = OpenMp {
        images: &[Blob {
            bytes: Embedded::Bytes(&[1; 16]),
            image: 8..16,
        }],
        table: EntryTable::StartStop {
            section: "llvm_offload_entries",
            entries: &[],
        },
        section: BlobSection::Offloading,
        globals: &[Global::Anchor { name: "anchor" }],
    };
    let bytes = registration.to_object(Machine::AARCH64).unwrap();
    dir.write("r.o", bytes);
    let mut link = Command::new(lld);
    link.args(["-shared", "r.o", "-o", "r.so", "--eh-frame-hdr"]);
    succeed(dir.root(), &mut link);
    let dump = Command::new(objdump)
        .args(["-d", "--no-show-raw-insn", "--no-leading-addr", "r.so"])
        .current_dir(dir.root())
        .output()
        .unwrap();
    let text = String::from_utf8(dump.stdout).unwrap();
    for line in [
        "bl\t",
        "<__tgt_register_lib@plt>",
        "<__tgt_unregister_lib@plt>",
        "<atexit@plt>",
        "<.omp_offloading.descriptor_unreg>:",
        "<anchor>:",
    ] {
        assert!(text.contains(line), "{line} not in {text}");
    }
    assert!(!text.contains("unknown"), "{text}");
}

#[test]
fn rejects_what_no_object_can_hold() {
    let blob = |image| Blob {
        bytes: Embedded::Bytes(&[0; 8]),
        image,
    };
    let object = |images: &[Blob<'_>], globals: &[Global<'_>], host| {
        OpenMp {
            images,
            table: EntryTable::StartStop {
                section: "s",
                entries: &[],
            },
            section: BlobSection::Offloading,
            globals,
        }
        .to_object(host)
        .unwrap_err()
        .to_string()
    };
    let riscv = Machine {
        number: 0xf3,
        flags: 0,
    };
    assert_eq!(
        object(&[], &[], riscv),
        "registration: expected host machine 0x3e (x86_64) or 0xb7 (aarch64), found 0xf3"
    );
    assert_eq!(
        object(&[blob(0..8), blob(8..9)], &[], Machine::X86_64),
        "image 1 ends at 0x9, after the end at 0x8"
    );
    let name = "x";
    let beyond = Global::Bytes {
        name,
        offset: u64::MAX,
        size: 2,
    };
    assert_eq!(
        object(&[blob(0..8)], &[beyond], Machine::X86_64),
        "symbol `x` ends at 0xffffffffffffffff, after the end at 0x8"
    );
    assert_eq!(
        object(&[], &[Global::Anchor { name: "a\0b" }], Machine::X86_64),
        "`a\\0b` cannot be the name of a symbol or section"
    );
    // As any object may have it in a section header.
    let openmp = OpenMp {
        images: &[],
        table: EntryTable::SectionRange {
            section: "s",
            size: 0,
            flags: 3,
            alignment: 3,
        },
        section: BlobSection::Offloading,
        globals: &[],
    };
    let host = Triple::parse("x86_64-unknown-linux-gnu").unwrap();
    for written in [
        openmp.to_object(Machine::X86_64).map(drop),
        openmp.to_c(&[]).map(drop),
        openmp.to_ir(&host).map(drop),
    ] {
        assert_eq!(
            written.unwrap_err().to_string(),
            "section `s`: alignment 0x3 is not a power of two"
        );
    }
    let openmp = OpenMp {
        table: EntryTable::StartStop {
            section: "/__X",
            entries: &[],
        },
        ..openmp
    };
    assert_eq!(
        openmp.to_coff(WindowsAbi::Msvc).unwrap_err().to_string(),
        "`/__X` cannot be the name of a symbol or section"
    );
    let openmp = OpenMp {
        table: EntryTable::Symbol {
            symbol: "a\0b",
            size: 1,
        },
        ..openmp
    };
    for written in [
        openmp.to_object(Machine::X86_64).map(drop),
        openmp.to_coff(WindowsAbi::Gnu).map(drop),
        openmp.to_c(&[]).map(drop),
        openmp.to_ir(&host).map(drop),
    ] {
        assert_eq!(
            written.unwrap_err().to_string(),
            "`a\\0b` cannot be the name of a symbol or section"
        );
    }
    let sycl = Sycl {
        images: &[],
        section: BlobSection::Offloading,
        globals: &[],
    };
    let file = [Path::new("image")];
    for written in [openmp.to_c(&file), sycl.to_c(&file)] {
        assert_eq!(
            written.unwrap_err().to_string(),
            "expected 0 files, one for each image, found 1"
        );
    }
}
