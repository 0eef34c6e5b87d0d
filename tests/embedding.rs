//! Images in the files of compilers and linkers: what LLVM's tools embed is found, and they find
//! what is embedded here. Numbers are those of the behaviours in the specification, section 8.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use offload_build::container::{FoundImage, Item, Standing, find, images, link_inputs};
use offload_build::format::magic::Magic;
use offload_build::format::offload_binary::BinaryImage;
use offload_build::target::{ImageKind, LlvmRelease, OffloadKind};
use support::{Random, run, tool};
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.at(name), bytes).unwrap();
    }

    fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).unwrap()
    }

    /// Runs a program here, with these arguments, which no space is in.
    fn run(&self, program: &Path, arguments: &str) -> String {
        run(Command::new(program)
            .args(arguments.split_whitespace())
            .current_dir(self.0.path()))
    }
}

/// Of each image its arch and its bytes.
fn contents(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let found = images(file).unwrap();
    let content = |image: &FoundImage| image.content(file).unwrap().to_vec();
    let rows = found.iter();
    rows.map(|image| (image.entry.arch().to_owned(), content(image)))
        .collect()
}

fn binary(arch: &str, image: &[u8]) -> Vec<u8> {
    let strings: &[_] = &[("triple", "amdgcn-amd-amdhsa"), ("arch", arch)];
    let written = BinaryImage {
        image_kind: ImageKind::OBJECT,
        offload_kind: OffloadKind::OPENMP,
        flags: 0,
        strings,
        image,
    };
    written.to_bytes(LlvmRelease::V22).unwrap()
}

const HOST: &str = "int x; int main(void) { return x; }\n";

/// 9, 40.
#[test]
fn finds_what_clang_embeds_in_bitcode_and_in_objects() {
    let mut random = Random::new();
    let large: Vec<u8> = (0..1 << 20).map(|_| random.below(256) as u8).collect();
    let text: Vec<u8> = large.iter().map(|byte| b'a' + byte % 26).collect();
    let folder = Folder::new();
    folder.put("a.c", HOST);
    folder.put("one", binary("gfx90a", b"\0"));
    folder.put(
        "two",
        [binary("gfx906", &large), binary("gfx942", b"")].concat(),
    );
    folder.put("text", binary("gfx1100", &text));
    folder.put("empty", b"");
    let expected = [
        ("gfx90a", vec![0]),
        ("gfx906", large),
        ("gfx942", Vec::new()),
        ("gfx90a", vec![0]),
        ("gfx1100", text),
    ];
    let expected = expected.map(|(arch, image)| (arch.to_owned(), image));
    for (word, release) in [("llvm19", "19"), ("llvm22", "22")] {
        let clang = ["clang", &format!("clang-{release}")].map(str::to_owned);
        let Some(clang) = tool(word, &[&clang[0], &clang[1]]) else {
            continue;
        };
        let embed = ["one", "two", "empty", "one", "text"]
            .map(|file| format!("-Xclang -fembed-offload-object={file} "))
            .concat();
        for form in [
            "-emit-llvm -target x86_64-linux-gnu",
            "-flto -target x86_64-linux-gnu",
            "-flto=thin -target x86_64-linux-gnu",
            "-emit-llvm -g -O2 -target aarch64-apple-macos",
            "-emit-llvm -target x86_64-windows-msvc",
            "-target x86_64-linux-gnu",
            "-target i686-linux-gnu",
            "-target powerpc64-linux-gnu",
            "-target s390x-linux-gnu",
            "-target x86_64-windows-msvc",
        ] {
            folder.run(&clang, &format!("{embed} {form} -c a.c -o a.o"));
            let file = folder.get("a.o");
            assert!(contents(&file) == expected, "{word} {form}");
            let found = link_inputs(&file[..]).unwrap();
            assert!(
                found
                    .iter()
                    .all(|found| found.standing == Standing::Excluded)
            );
            let unpacked = found.iter().filter(|found| found.bytes.is_some()).count();
            let is_bitcode = Magic::of(&file) == Magic::Bitcode;
            assert_eq!(unpacked, if is_bitcode { 5 } else { 0 }, "{word} {form}");
        }
    }
}

/// What a variable holds, and what is said about it, as assembled by LLVM 22.
#[test]
fn rejects_embedded_objects_that_are_not_understood() {
    let Some(assembler) = tool("llvm22", &["llvm-as", "llvm-as-22"]) else {
        return;
    };
    let folder = Folder::new();
    let find = |module: &str| {
        folder.put("a.ll", module);
        folder.run(&assembler, "a.ll -o a.bc");
        let file = folder.get("a.bc");
        let found = images(&file[..]).map(|found| found.len());
        found.map_err(|error| error.to_string())
    };
    let list = |variable: &str, operand: &str| {
        find(&format!(
            "@other = global i32 1\n{variable}\n!llvm.embedded.objects = !{{!0}}\n\
             !0 = !{{{operand}}}\n"
        ))
    };
    let ours = "ptr @v, !\".llvm.offloading\"";
    let wrong = |variable, operand, expected: &str| {
        let found = list(variable, operand);
        assert_eq!(
            found.unwrap_err(),
            format!("bitcode: embedded object 0: {expected}")
        );
    };
    // Spec 3.4: what LLVM skips, since nothing is in it.
    for empty in [
        "[0 x i8] zeroinitializer",
        "[80 x i8] zeroinitializer",
        "[4 x i8] undef",
        "[4 x i8] poison",
    ] {
        assert_eq!(list(&format!("@v = constant {empty}"), ours), Ok(0));
    }
    let list_of_two = "@v = constant [2 x i8] c\"AB\"";
    assert_eq!(list(list_of_two, "ptr @v, !\".llvm.lto\""), Ok(0));
    assert_eq!(find("@v = global i32 1"), Ok(0));
    wrong(list_of_two, "ptr @v", "expected a variable and a string");
    wrong(
        list_of_two,
        "ptr @v, i32 4",
        "expected a variable and a string",
    );
    wrong(
        list_of_two,
        "!\".llvm.offloading\", !\".llvm.offloading\"",
        "expected a variable and a string",
    );
    wrong(
        "@v = external global [4 x i8]",
        ours,
        "its variable is only declared",
    );
    wrong(
        "@v = constant [2 x i16] [i16 1, i16 2]",
        ours,
        "its variable is no array of bytes",
    );
    wrong(
        "@v = constant i64 1",
        ours,
        "its variable is no array of bytes",
    );
    wrong(
        "define void @v() { ret void }",
        ours,
        "value 1 is not a variable",
    );
    assert_eq!(
        list(list_of_two, ours).unwrap_err(),
        "embedded object 0: offload binary 0: magic of header at offset 0x0 with size 0x4 runs \
         past the end at 0x2"
    );
}

/// 21, 22: kind and arch, as `llvm-objdump-22` prints them.
#[test]
fn finds_what_objdump_prints() {
    let tools = ["yaml2obj", "llvm-objdump", "llvm-offload-binary"]
        .map(|name| tool("llvm22", &[name, &format!("{name}-22")]));
    let [Some(yaml2obj), Some(objdump), Some(packager)] = tools else {
        return;
    };
    let folder = Folder::new();
    folder.put("i.bc", b"BC\xc0\xde");
    folder.put("i.cubin", b"image");
    folder.put("i", b"");
    let image = |file: &str, arch: &str, kind: &str| {
        format!("--image=file={file},triple=nvptx64-nvidia-cuda,arch={arch},kind={kind} ")
    };
    let four = [
        image("i.bc", "gfx908", "openmp"),
        image("i.bc", "gfx90a", "openmp"),
        image("i.cubin", "sm_52", "openmp"),
        image("i", "sm_70", "none"),
    ];
    folder.run(&packager, &format!("-o four {}", four.concat()));
    let hex: String = folder
        .get("four")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let elf = |class: &str, data: &str, kind: &str| {
        format!(
            "--- !ELF\nFileHeader: {{Class: ELFCLASS{class}, Data: ELFDATA2{data}, Type: {kind}}}\n\
             Sections:\n- {{Name: .other, Type: SHT_PROGBITS, Content: '01020304'}}\n\
             - {{Name: .llvm.offloading, Type: SHT_LLVM_OFFLOADING, Flags: [SHF_EXCLUDE], \
             Content: '{hex}'}}\n"
        )
    };
    let coff = format!(
        "--- !COFF\nheader: {{Machine: IMAGE_FILE_MACHINE_AMD64}}\nsections:\n\
         - {{Name: .llvm.offloading, Characteristics: [IMAGE_SCN_LNK_REMOVE, \
         IMAGE_SCN_MEM_DISCARDABLE], SectionData: '{hex}'}}\nsymbols: []\n"
    );
    // 23: without an alignment, the second section of these files is at an odd place.
    let files = [
        elf("64", "LSB", "ET_REL"),
        elf("64", "LSB", "ET_EXEC"),
        elf("64", "MSB", "ET_DYN"),
        elf("32", "LSB", "ET_REL"),
        elf("32", "MSB", "ET_REL"),
        coff,
    ];
    let described = |file: &[u8]| -> Vec<String> {
        let found = images(file).unwrap();
        let line = |image: &FoundImage| {
            let entry = &image.entry;
            let kind = match entry.image_kind {
                ImageKind::BITCODE => "llvm ir",
                kind if kind == ImageKind::NONE => "<none>",
                kind => kind.name(),
            };
            let producer = entry.offload_kind.name();
            format!("{kind} {} {} {producer}", entry.arch(), entry.triple())
        };
        found.iter().map(line).collect()
    };
    let mut expected = None;
    let raw = folder.get("four");
    for file in std::iter::once(raw).chain(files.iter().map(|yaml| {
        folder.put("a.yaml", yaml);
        folder.run(&yaml2obj, "a.yaml -o a.o");
        folder.get("a.o")
    })) {
        folder.put("file", &file);
        let printed = folder.run(&objdump, "--offloading file");
        let values: Vec<&str> = ["kind", "arch", "triple", "producer"]
            .iter()
            .flat_map(|label| {
                printed
                    .lines()
                    .filter_map(move |line| line.strip_prefix(label))
            })
            .map(str::trim)
            .collect();
        let (columns, count) = (values.chunks(4).collect::<Vec<_>>(), values.len() / 4);
        assert_eq!(count, 4, "{printed}");
        let lines = (0..4).map(|row| {
            let of = |column: usize| columns[column][row];
            format!("{} {} {} {}", of(0), of(1), of(2), of(3))
        });
        let lines: Vec<String> = lines.collect();
        assert_eq!(described(&file), lines);
        assert_eq!(*expected.get_or_insert(lines.clone()), lines);
    }
}

/// 24, 25: errors, where `llvm-objdump-22` has them too.
#[test]
fn rejects_what_objdump_rejects() {
    let tools =
        ["yaml2obj", "llvm-objdump"].map(|name| tool("llvm22", &[name, &format!("{name}-22")]));
    let [Some(yaml2obj), Some(objdump)] = tools else {
        return;
    };
    let folder = Folder::new();
    let section = "Name: .llvm.offloading, Type: SHT_LLVM_OFFLOADING, Flags: [SHF_EXCLUDE]";
    for (content, expected) in [
        (
            "Offset: 0x80, ShOffset: 0x99999, ShSize: 0x100",
            "section 1: content at offset 0x99999 with size 0x100 runs past the end at",
        ),
        (
            "Content: '10ffb0ad00000000'",
            "section 1: offload binary 0: expected the magic 10ff10ad at offset 0x40, found 10ffb0ad",
        ),
    ] {
        folder.put(
            "a.yaml",
            format!(
                "--- !ELF\nFileHeader: {{Class: ELFCLASS64, Data: ELFDATA2LSB, Type: ET_REL}}\n\
                 Sections:\n  - {{{section}, {content}}}\n"
            ),
        );
        folder.run(&yaml2obj, "a.yaml -o a.o");
        let message = images(&folder.get("a.o")[..]).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
        let mut command = Command::new(&objdump);
        let status = command.arg("--offloading").arg(folder.at("a.o")).output();
        assert!(!status.unwrap().status.success());
    }
}

/// 26: LLVM reads neither; here both are found, and of universal files and archives in them too.
#[test]
fn finds_images_in_mach_o_and_pe_files() {
    let names = ["clang", "lld-link", "ld64.lld", "llvm-lipo", "llvm-ar"];
    let tools = names.map(|name| tool("llvm22", &[name, &format!("{name}-22")]));
    let [Some(clang), Some(lld_link), Some(ld64), lipo, ar] = tools else {
        return;
    };
    let folder = Folder::new();
    let binaries = [binary("gfx90a", b"one"), binary("gfx942", b"second")].concat();
    let expected = [("gfx90a", &b"one"[..]), ("gfx942", b"second")];
    let expected = expected.map(|(arch, image)| (arch.to_owned(), image.to_vec()));
    folder.put("two", &binaries);
    let assembly = |section: &str| {
        format!("{HOST}__asm__(\".section {section}\\n.incbin \\\"two\\\"\\n\");\n")
    };

    folder.put("a.c", assembly("__DATA,__images"));
    for machine in ["x86_64", "arm64", "i386"] {
        let target = format!("-target {machine}-apple-macos10.13");
        folder.run(&clang, &format!("{target} -c a.c -o {machine}.o"));
        let file = folder.get(&format!("{machine}.o"));
        assert_eq!(contents(&file), expected, "{machine}");
        assert_eq!(images(&file[..]).unwrap()[0].standing, Standing::Allocated);
    }
    let link =
        "-arch x86_64 -platform_version macos 11 11 x86_64.o -o program -undefined dynamic_lookup";
    folder.run(&ld64, &format!("{link} -dylib"));
    assert_eq!(contents(&folder.get("program")), expected);
    if let (Some(lipo), Some(ar)) = (lipo, ar) {
        folder.run(&ar, "--format=darwin rc arm64.a arm64.o");
        folder.run(&lipo, "-create x86_64.o arm64.a -output universal");
        let file = folder.get("universal");
        let found = images(&file[..]).unwrap();
        let members: Vec<_> = found.iter().map(|found| found.members.clone()).collect();
        let members_of =
            |names: &[&[u8]]| names.iter().map(|name| name.to_vec()).collect::<Vec<_>>();
        let of_arm = members_of(&[b"arm64", b"arm64.o"]);
        assert_eq!(members[0], members_of(&[b"x86_64"]));
        assert_eq!((members.len(), &members[2]), (4, &of_arm));
        assert_eq!(contents(&file)[2..], expected);
    }

    folder.put("a.c", assembly(".llvm.offloading,\\\"dr\\\""));
    folder.run(&clang, "-target x86_64-windows-msvc -c a.c -o a.obj");
    let file = folder.get("a.obj");
    assert_eq!(contents(&file), expected);
    assert_eq!(images(&file[..]).unwrap()[0].standing, Standing::Allocated);
    folder.run(&lld_link, "/entry:main /subsystem:console /out:a.exe a.obj");
    let file = folder.get("a.exe");
    assert_eq!(contents(&file), expected);
    // As Microsoft's linker names it.
    let mut cut = file.clone();
    let name = file
        .windows(8)
        .position(|bytes| bytes == b".llvm\0\0\0")
        .unwrap();
    cut[name..name + 8].copy_from_slice(b".llvm.of");
    assert_eq!(contents(&cut), expected);
    cut[name..name + 8].copy_from_slice(b".rdata\0\0");
    assert_eq!(contents(&cut), []);
}

#[test]
fn says_what_it_does_not_read() {
    let (Some(clang), Some(ar)) = (
        tool("llvm22", &["clang", "clang-22"]),
        tool("llvm22", &["llvm-ar", "llvm-ar-22"]),
    ) else {
        return;
    };
    let folder = Folder::new();
    folder.put("a.c", HOST);
    folder.put("fat.o", binary("gfx90a", b"one"));
    folder.run(&clang, "-target wasm32 -c a.c -o wasm.o");
    folder.run(&clang, "-target powerpc64-ibm-aix -c a.c -o aix.o");
    folder.run(&ar, "--format=gnu rcS a.a wasm.o aix.o fat.o");
    let file = folder.get("a.a");
    let unread = |format, name: &[u8]| Item::Unread {
        members: vec![name.to_vec()],
        format,
    };
    let items = find(&file[..]).unwrap();
    assert_eq!(items[0], unread(Magic::Wasm, b"wasm.o"));
    assert_eq!(items[1], unread(Magic::Xcoff, b"aix.o"));
    assert_eq!((items.len(), contents(&file).len()), (3, 1));

    fs::create_dir(folder.at("sub")).unwrap();
    folder.put("sub/fat.o", binary("gfx90a", b"one"));
    folder.run(&ar, "rcS --thin thin.a sub/fat.o");
    let members = vec![b"sub/fat.o".to_vec()];
    let items = find(&folder.get("thin.a")[..]).unwrap();
    assert_eq!(items, [Item::Outside { members }]);
}
