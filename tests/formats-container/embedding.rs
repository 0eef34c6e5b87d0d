//! Images in the files of compilers and linkers: what LLVM's tools embed is found, and they find
//! what is embedded here. Numbers: `docs/spec/offload-binary.md` §8.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use offload_formats::container::bundled::Unpacking;
use offload_formats::container::embed::{Flavor, Host, embed, embed_bytes, embed_source};
use offload_formats::container::{
    FoundImage, FoundItem, INFLATE_LIMIT, Standing, find, images, link_inputs,
};
use offload_formats::format::magic::Magic;
use offload_formats::format::offload_binary::BinaryImage;
use offload_formats::format::pieces::Piece;
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind, Triple};
use support::folder::Folder;
use support::{Random, program, tool};

/// Runs a program here, with these arguments, which no space is in.
fn run_here(folder: &Folder, program: &Path, arguments: &str) -> String {
    folder.run(program, arguments.split_whitespace())
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
    let text: Vec<u8> = large[..1 << 16]
        .iter()
        .map(|byte| b'a' + byte % 26)
        .collect();
    let folder = Folder::new();
    folder.write("a.c", HOST);
    folder.write("one", binary("gfx90a", b"\0"));
    folder.write(
        "two",
        [binary("gfx906", &large), binary("gfx942", b"")].concat(),
    );
    folder.write("text", binary("gfx1100", &text));
    folder.write("empty", b"");
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
            run_here(&folder, &clang, &format!("{embed} {form} -c a.c -o a.o"));
            let file = folder.read("a.o");
            assert!(contents(&file) == expected, "{word} {form}");
            let found = link_inputs(&file[..], &mut Unpacking::in_memory(INFLATE_LIMIT)).unwrap();
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

const PAST_MAGIC: &str = "embedded object 0: offload binary 0: version of header at offset 0x4 with \
    size 0x4 runs past the end at 0x4";

/// What a variable holds, and what is said about it, as assembled by LLVM 22.
#[test]
fn rejects_embedded_objects_that_are_not_understood() {
    let Some(assembler) = tool("llvm22", &["llvm-as", "llvm-as-22"]) else {
        return;
    };
    let folder = Folder::new();
    let find = |module: &str| {
        folder.write("a.ll", module);
        run_here(&folder, &assembler, "a.ll -o a.bc");
        let file = folder.read("a.bc");
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
    // `docs/spec/offload-binary.md` §3.4: what LLVM skips, since nothing is in it.
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
        "its variable is not an array of bytes",
    );
    wrong(
        "@v = constant i64 1",
        ours,
        "its variable is not an array of bytes",
    );
    wrong(
        "define void @v() { ret void }",
        ours,
        "value 1 is not a variable",
    );
    // The forms that bitcode has for bytes: with a NUL at the end, of six, seven and eight bits.
    for (bytes, size) in [
        ("ABc._09\\00", 8),
        ("A B\\00", 4),
        ("\\FF\\80\\00", 3),
        ("\\FF\\80", 2),
        ("\\00\\00x\\00", 4),
    ] {
        let found = list(&format!("@v = constant [{size} x i8] c\"{bytes}\""), ours);
        let message = found.unwrap_err();
        let start = "embedded object 0: offload binary 0: ";
        assert!(message.starts_with(start), "{message}");
        let end = format!("runs past the end at {size:#x}");
        assert!(message.ends_with(&end) || size >= 4, "{message}");
    }
    assert_eq!(
        list("@v = constant [4 x i8] c\"\\10\\FF\\10\\AD\"", ours).unwrap_err(),
        PAST_MAGIC
    );
    assert_eq!(
        list("@v = constant [5 x i8] c\"\\10\\FF\\10\\AD\\00\"", ours).unwrap_err(),
        PAST_MAGIC.replace("end at 0x4", "end at 0x5")
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
    folder.write("i.bc", b"BC\xc0\xde");
    folder.write("i.cubin", b"image");
    folder.write("i", b"");
    let image = |file: &str, arch: &str, kind: &str| {
        format!("--image=file={file},triple=nvptx64-nvidia-cuda,arch={arch},kind={kind} ")
    };
    let four = [
        image("i.bc", "gfx908", "openmp"),
        image("i.bc", "gfx90a", "openmp"),
        image("i.cubin", "sm_52", "openmp"),
        image("i", "sm_70", "none"),
    ];
    run_here(&folder, &packager, &format!("-o four {}", four.concat()));
    let hex: String = folder
        .read("four")
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
    let raw = folder.read("four");
    for file in std::iter::once(raw).chain(files.iter().map(|yaml| {
        folder.write("a.yaml", yaml);
        run_here(&folder, &yaml2obj, "a.yaml -o a.o");
        folder.read("a.o")
    })) {
        folder.write("file", &file);
        let printed = run_here(&folder, &objdump, "--offloading file");
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
        folder.write(
            "a.yaml",
            format!(
                "--- !ELF\nFileHeader: {{Class: ELFCLASS64, Data: ELFDATA2LSB, Type: ET_REL}}\n\
                 Sections:\n  - {{{section}, {content}}}\n"
            ),
        );
        run_here(&folder, &yaml2obj, "a.yaml -o a.o");
        let message = images(&folder.read("a.o")[..]).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
        let mut command = Command::new(&objdump);
        let status = command.arg("--offloading").arg(folder.path("a.o")).output();
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
    folder.write("two", &binaries);
    let assembly = |section: &str| {
        format!("{HOST}__asm__(\".section {section}\\n.incbin \\\"two\\\"\\n\");\n")
    };

    folder.write("a.c", assembly("__DATA,__images"));
    for machine in ["x86_64", "arm64", "i386"] {
        let target = format!("-target {machine}-apple-macos10.13");
        run_here(&folder, &clang, &format!("{target} -c a.c -o {machine}.o"));
        let file = folder.read(format!("{machine}.o"));
        assert_eq!(contents(&file), expected, "{machine}");
        assert_eq!(images(&file[..]).unwrap()[0].standing, Standing::Allocated);
    }
    let link =
        "-arch x86_64 -platform_version macos 11 11 x86_64.o -o program -undefined dynamic_lookup";
    run_here(&folder, &ld64, &format!("{link} -dylib"));
    assert_eq!(contents(&folder.read("program")), expected);
    if let (Some(lipo), Some(ar)) = (lipo, ar) {
        run_here(&folder, &ar, "--format=darwin rc arm64.a arm64.o");
        run_here(&folder, &lipo, "-create x86_64.o arm64.a -output universal");
        let file = folder.read("universal");
        let found = images(&file[..]).unwrap();
        let members: Vec<_> = found.iter().map(|found| found.members.clone()).collect();
        let members_of =
            |names: &[&[u8]]| names.iter().map(|name| name.to_vec()).collect::<Vec<_>>();
        let of_arm = members_of(&[b"arm64", b"arm64.o"]);
        assert_eq!(members[0], members_of(&[b"x86_64"]));
        assert_eq!((members.len(), &members[2]), (4, &of_arm));
        assert_eq!(contents(&file)[2..], expected);
    }

    folder.write("a.c", assembly(".llvm.offloading,\\\"dr\\\""));
    run_here(
        &folder,
        &clang,
        "-target x86_64-windows-msvc -c a.c -o a.obj",
    );
    let file = folder.read("a.obj");
    assert_eq!(contents(&file), expected);
    assert_eq!(images(&file[..]).unwrap()[0].standing, Standing::Allocated);
    run_here(
        &folder,
        &lld_link,
        "/entry:main /subsystem:console /out:a.exe a.obj",
    );
    let file = folder.read("a.exe");
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
    folder.write("a.c", HOST);
    folder.write("fat.o", binary("gfx90a", b"one"));
    run_here(&folder, &clang, "-target wasm32 -c a.c -o wasm.o");
    run_here(&folder, &clang, "-target powerpc64-ibm-aix -c a.c -o aix.o");
    run_here(&folder, &ar, "--format=gnu rcS a.a wasm.o aix.o fat.o");
    let file = folder.read("a.a");
    let unread = |format, name: &[u8]| FoundItem::Unread {
        members: vec![name.to_vec()],
        format,
    };
    let items = find(&file[..]).unwrap();
    assert_eq!(items[0], unread(Magic::Wasm, b"wasm.o"));
    assert_eq!(items[1], unread(Magic::Xcoff, b"aix.o"));
    assert_eq!((items.len(), contents(&file).len()), (3, 1));

    fs::create_dir(folder.path("sub")).unwrap();
    folder.write("sub/fat.o", binary("gfx90a", b"one"));
    run_here(&folder, &ar, "rcS --thin thin.a sub/fat.o");
    let members = vec![b"sub/fat.o".to_vec()];
    let items = find(&folder.read("thin.a")[..]).unwrap();
    let size = fs::metadata(folder.path("sub/fat.o")).unwrap().len();
    assert_eq!(items, [FoundItem::Outside { members, size }]);
}

const ELF_HOSTS: [&str; 9] = [
    "x86_64-unknown-linux-gnu",
    "x86_64-unknown-linux-gnux32",
    "i686-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "armv7-unknown-linux-gnueabihf",
    "riscv64-unknown-linux-gnu",
    "powerpc64le-unknown-linux-gnu",
    "s390x-unknown-linux-gnu",
    "loongarch64-unknown-linux-gnu",
];
const COFF_HOSTS: [&str; 3] = [
    "x86_64-pc-windows-msvc",
    "aarch64-pc-windows-msvc",
    "i686-pc-windows-gnu",
];

fn host(triple: &str) -> Host {
    Host::of(&Triple::parse(triple).unwrap()).unwrap()
}

/// The lines from the one of the section on, as `llvm-readobj` describes it, without places.
fn described(readobj: &str) -> Vec<String> {
    let lines = readobj.lines().map(str::trim);
    let section = lines.skip_while(|line| !line.starts_with("Name: .llvm.offloading"));
    // The number in brackets is the place of the name.
    let names = section.map(|line| line.split(" (2F").next().unwrap_or(line));
    let names = names.map(|line| match line.split_once(" (") {
        Some((name, _)) if line.starts_with("Name:") => name,
        _ => line,
    });
    let places = ["Offset", "PointerToRawData"];
    let lines = names.take_while(|line| *line != "}");
    lines
        .filter(|line| !places.iter().any(|place| line.starts_with(place)))
        .map(str::to_owned)
        .collect()
}

/// 38, 39: kind, flags, alignment and size of the section, and what the object is for.
#[test]
fn embeds_the_section_that_clang_makes() {
    let names = ["clang", "llvm-readobj", "llvm-objdump"];
    let tools = names.map(|name| tool("llvm22", &[name, &format!("{name}-22")]));
    let [Some(clang), Some(readobj), Some(objdump)] = tools else {
        return;
    };
    let folder = Folder::new();
    let binaries = [binary("gfx90a", b"one"), binary("gfx942", b"second")].concat();
    folder.write("two", &binaries);
    folder.write("a.c", HOST);
    for triple in ELF_HOSTS.iter().chain(&COFF_HOSTS) {
        let object = embed_bytes(host(triple), Flavor::Excluded, &binaries).unwrap();
        folder.write("ours.o", &object);
        let embed = "-Xclang -fembed-offload-object=two";
        run_here(
            &folder,
            &clang,
            &format!("-target {triple} {embed} -c a.c -o clang.o"),
        );
        let sections = ["ours.o", "clang.o"].map(|file| {
            let text = run_here(
                &folder,
                &readobj,
                &format!("--file-headers --sections {file}"),
            );
            let header = text.lines().map(str::trim);
            let header = header.take_while(|line| !line.starts_with("Section {"));
            let header = header.filter(|line| {
                let kinds = [
                    "Format:",
                    "Arch:",
                    "Class:",
                    "DataEncoding:",
                    "Machine:",
                    "Flags ",
                ];
                kinds.iter().any(|kind| line.starts_with(kind))
            });
            let header: Vec<String> = header.map(str::to_owned).collect();
            (header, described(&text))
        });
        let [ours, theirs] = sections;
        assert!(ours.1.len() > 8, "{ours:?}");
        assert_eq!(ours, theirs, "{triple}");
        let printed = run_here(&folder, &objdump, "--offloading ours.o");
        assert_eq!(printed.matches("OFFLOADING IMAGE").count(), 2, "{printed}");
        let found = images(&object[..]).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].standing, Standing::Excluded);

        let object = embed_bytes(host(triple), Flavor::Allocated, &binaries).unwrap();
        assert_eq!(
            images(&object[..]).unwrap()[1].standing,
            Standing::Allocated
        );
        folder.write("ours.o", &object);
        let text = run_here(&folder, &readobj, "--sections ours.o");
        let kept = ["SHF_ALLOC (0x2)", "IMAGE_SCN_CNT_INITIALIZED_DATA (0x40)"];
        assert!(kept.iter().any(|flag| text.contains(flag)), "{text}");
    }
}

/// Links it into a program that has nothing else, and says whether the images are in it.
#[test]
fn links_what_is_embedded_in_elf() {
    let names = ["clang", "ld.lld", "llvm-ar"];
    let tools = names.map(|name| tool("llvm22", &[name, &format!("{name}-22")]));
    let [Some(clang), Some(lld), Some(ar)] = tools else {
        return;
    };
    let folder = Folder::new();
    folder.write("a.c", "int x; void _start(void) { x = 1; }\n");
    let binaries = [binary("gfx90a", b"one"), binary("gfx942", b"second")].concat();
    let others = ["ld", "ld.gold"].map(program);
    for triple in ELF_HOSTS {
        run_here(
            &folder,
            &clang,
            &format!("-target {triple} -fno-pic -ffreestanding -c a.c -o a.o"),
        );
        for flavor in [Flavor::Excluded, Flavor::Allocated] {
            let object = embed_bytes(host(triple), flavor, &binaries).unwrap();
            folder.write("e.o", object);
            run_here(&folder, &ar, "rcS e.a e.o");
            let others = others.iter().flatten().filter(|_| triple == ELF_HOSTS[0]);
            for linker in others.chain([&lld]) {
                run_here(&folder, linker, "-r a.o e.o -o r.o");
                assert_eq!(
                    contents(&folder.read("r.o")).len(),
                    2,
                    "{linker:?} {triple}"
                );
                let kept = if flavor == Flavor::Allocated { 2 } else { 0 };
                for input in ["e.o", "r.o", "--whole-archive e.a"] {
                    let first = if input == "r.o" { "" } else { "a.o" };
                    run_here(&folder, linker, &format!("{first} {input} -o program"));
                    let found = contents(&folder.read("program"));
                    assert_eq!(found.len(), kept, "{linker:?} {triple} {input}");
                }
            }
        }
    }
}

#[test]
fn links_what_is_embedded_in_coff_and_mach_o() {
    let names = ["clang", "lld-link", "ld64.lld"];
    let tools = names.map(|name| tool("llvm22", &[name, &format!("{name}-22")]));
    let [Some(clang), Some(lld_link), Some(ld64)] = tools else {
        return;
    };
    let folder = Folder::new();
    folder.write("a.c", "int x; int main(void) { return x; }\n");
    let binaries = [binary("gfx90a", b"one"), binary("gfx942", b"second")].concat();
    for (flavor, kept) in [(Flavor::Excluded, 0), (Flavor::Allocated, 2)] {
        for triple in &COFF_HOSTS[..2] {
            folder.write(
                "e.obj",
                embed_bytes(host(triple), flavor, &binaries).unwrap(),
            );
            run_here(
                &folder,
                &clang,
                &format!("-target {triple} -c a.c -o a.obj"),
            );
            let link = "/entry:main /subsystem:console /out:a.exe a.obj e.obj";
            run_here(&folder, &lld_link, link);
            assert_eq!(contents(&folder.read("a.exe")).len(), kept, "{triple}");
        }
        for arch in ["x86_64", "arm64"] {
            let triple = format!("{arch}-apple-macos11");
            folder.write(
                "e.o",
                embed_bytes(host(&triple), flavor, &binaries).unwrap(),
            );
            let found = images(&folder.read("e.o")[..]).unwrap().len();
            assert_eq!(found, 2, "{triple}");
            run_here(&folder, &clang, &format!("-target {triple} -c a.c -o a.o"));
            let platform = "-platform_version macos 11 11";
            let link = format!("-arch {arch} {platform} -dylib -dead_strip a.o e.o -o a.dylib");
            let mut command = Command::new(&ld64);
            command
                .args(link.split_whitespace())
                .current_dir(folder.root());
            let output = command.output().unwrap();
            let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && warnings.is_empty(), "{warnings}");
            assert_eq!(contents(&folder.read("a.dylib")).len(), kept, "{triple}");
        }
    }
}

#[test]
fn is_input_of_the_linker_wrapper_of_llvm() {
    let (Some(wrapper), Some(ar)) = (
        tool(
            "llvm22",
            &["clang-linker-wrapper", "clang-linker-wrapper-22"],
        ),
        tool("llvm22", &["llvm-ar", "llvm-ar-22"]),
    ) else {
        return;
    };
    let folder = Folder::new();
    let wrap = |input: &str| {
        let arguments = "--host-triple=x86_64-unknown-linux-gnu --dry-run --linker-path=/bin/true";
        let mut command = Command::new(&wrapper);
        let arguments = format!("{arguments} -- {input} -o program");
        command.args(arguments.split_whitespace());
        let output = command.current_dir(folder.root()).output().unwrap();
        assert!(output.status.success());
        let both = [output.stdout, output.stderr].concat();
        String::from_utf8(both).unwrap()
    };
    let content = binary("gfx90a", b"one");
    let host = host(ELF_HOSTS[0]);
    folder.write(
        "e.o",
        embed_bytes(host, Flavor::Excluded, &content).unwrap(),
    );
    run_here(&folder, &ar, "rcS e.a e.o");
    for input in ["e.o", "--whole-archive e.a"] {
        let plan = wrap(input);
        assert!(plan.contains("--target=amdgcn-amd-amdhsa"), "{plan}");
        assert!(plan.contains("gfx90a"), "{plan}");
    }
}

#[test]
fn copies_content_from_where_it_is() {
    let content = binary("gfx90a", b"one");
    let copy = |input, range| Piece::Copy { input, range };
    let size = content.len() as u64;
    for triple in [
        ELF_HOSTS[0],
        ELF_HOSTS[7],
        COFF_HOSTS[0],
        "arm64-apple-macos11",
    ] {
        let host = host(triple);
        let parts = [
            copy(3, 5..5 + size),
            Piece::Zeros(8),
            Piece::Bytes(content.clone()),
        ];
        let pieces = embed(host, Flavor::Excluded, &parts).unwrap();
        assert_eq!(pieces[1..4], parts);
        let more = [&b"other"[..], &content, b"more"].concat();
        let inputs = [b"", b"", b"", &more[..]];
        let object = offload_formats::format::pieces::to_bytes(&pieces, &inputs).unwrap();
        let all = [&content[..], &[0; 8], &content].concat();
        assert_eq!(object, embed_bytes(host, Flavor::Excluded, &all).unwrap());
        assert_eq!(contents(&object).len(), 2);
    }
    let large = [copy(0, 0..1 << 32)];
    embed(host(ELF_HOSTS[0]), Flavor::Excluded, &large).unwrap();
    embed(host("arm64-apple-macos11"), Flavor::Excluded, &large).unwrap();
    for narrow in [ELF_HOSTS[2], COFF_HOSTS[0]] {
        let message = embed(host(narrow), Flavor::Excluded, &large).unwrap_err();
        let text = "content of size 0x100000000 is too large for an object of this format";
        assert_eq!(message.to_string(), text);
    }
    for unknown in [
        "wasm32-wasip1",
        "sparc64-unknown-linux-gnu",
        "armeb-unknown-linux-gnu",
    ] {
        assert_eq!(
            Host::of(&Triple::parse(unknown).unwrap()),
            None,
            "{unknown}"
        );
    }
}

/// With any compiler of C, on any host.
#[test]
fn embeds_with_compilers() {
    let folder = Folder::new();
    let name = "a file's \"name\" \\ ??( \u{e9}";
    let content = binary("gfx90a", b"one");
    folder.write(name, &content);
    let clang = tool("llvm22", &["clang", "clang-22"]);
    let of_clang = |triple: &'static str| clang.clone().map(|clang| (clang, triple));
    let mut compilers: Vec<(PathBuf, &str)> =
        program("gcc").map(|gcc| (gcc, "")).into_iter().collect();
    let mac = ["arm64-apple-macos11", "x86_64-apple-macos11"];
    let more = [
        "powerpc64-linux-gnu",
        "mips64el-linux-gnuabi64",
        "riscv32-linux-gnu",
    ];
    let hosts = ELF_HOSTS
        .into_iter()
        .chain(COFF_HOSTS)
        .chain(mac)
        .chain(more);
    compilers.extend(hosts.filter_map(of_clang));
    for (compiler, triple) in compilers {
        for (flavor, standing) in [
            (Flavor::Excluded, Standing::Excluded),
            (Flavor::Allocated, Standing::Allocated),
        ] {
            folder.write("a.c", embed_source(name, flavor) + "int x;\n");
            let target = if triple.is_empty() { "" } else { "-target" };
            run_here(
                &folder,
                &compiler,
                &format!("{target} {triple} -c a.c -o a.o"),
            );
            let file = folder.read("a.o");
            let found = images(&file[..]).unwrap();
            assert_eq!(found.len(), 1, "{compiler:?} {triple}");
            assert_eq!(found[0].content(&file[..]), Some(b"one"[..].into()));
            assert_eq!(found[0].standing, standing, "{compiler:?} {triple}");
        }
    }
}

#[test]
fn finds_images_in_archives_of_every_form() {
    let Some(ar) = tool("llvm22", &["llvm-ar", "llvm-ar-22"]) else {
        return;
    };
    let folder = Folder::new();
    let object = |triple: &str, arch: &str| {
        embed_bytes(host(triple), Flavor::Excluded, &binary(arch, b"image")).unwrap()
    };
    folder.write("elf.o", object(ELF_HOSTS[7], "gfx90a"));
    folder.write(
        "a_member_with_a_long_name.obj",
        object(COFF_HOSTS[0], "gfx942"),
    );
    folder.write("macho.o", object("x86_64-apple-macos11", "gfx1100"));
    folder.write("inner", "no object");
    for form in ["gnu", "bsd", "darwin", "bigarchive", "coff"] {
        run_here(
            &folder,
            &ar,
            &format!("--format={form} rcS inner.a elf.o inner macho.o"),
        );
        let outer = "outer.a a_member_with_a_long_name.obj inner.a elf.o";
        run_here(&folder, &ar, &format!("--format={form} rcS {outer}"));
        let file = folder.read("outer.a");
        let found = contents(&file);
        let arches: Vec<&str> = found.iter().map(|(arch, _)| arch.as_str()).collect();
        assert_eq!(arches, ["gfx942", "gfx90a", "gfx1100", "gfx90a"], "{form}");
        assert!(found.iter().all(|(_, image)| image == b"image"), "{form}");
        let members = &images(&file[..]).unwrap()[2].members;
        assert_eq!(*members, [&b"inner.a"[..], b"macho.o"], "{form}");
        fs::remove_file(folder.path("inner.a")).unwrap();
        fs::remove_file(folder.path("outer.a")).unwrap();
    }
}
