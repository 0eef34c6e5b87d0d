//! Offload binaries as YAML, ours and LLVM's: the same bytes of the same text, and the same text of
//! the same bytes.

use crate::support;

use std::fmt::Write;
use std::fs;
use std::process::Command;

use offload_formats::format::offload_binary::{
    InflateError, Method, NewBinaryEntry, OffloadBinary, OffloadBinaryVersion, compress, layout,
    walk,
};
use offload_formats::format::offload_yaml::{Document, parse};
use offload_formats::format::pieces;
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};
use support::{Random, run, tool};

/// Documents for each release and direction.
fn case_count() -> usize {
    support::cases(40, 120)
}

const RELEASES: [(&str, LlvmRelease); 2] =
    [("llvm19", LlvmRelease::V19), ("llvm22", LlvmRelease::V22)];

fn read(bytes: &[u8]) -> Document {
    Document::of(bytes, 0..bytes.len() as u64, 1 << 20).unwrap()
}

fn text(random: &mut Random, below: u64) -> String {
    let letters: Vec<char> = match random.below(4) {
        0 => "0123456789.eExobA+-_",
        1 => "ab",
        2 => "abc :#'\"\\[]{},&*!|>%@`-?/=+;\t~",
        _ => "aé\n\r\x01\x1b\x7f\u{a0}\u{2028}日😀 \u{85}",
    }
    .chars()
    .collect();
    (0..random.below(below))
        .map(|_| *random.pick(&letters))
        .collect()
}

/// Some way to write a text in YAML.
fn scalar(random: &mut Random, text: &str) -> String {
    let simple = !text.is_empty() && text.chars().all(|char| char.is_ascii_alphanumeric());
    let printable = text.chars().all(|char| (' '..='~').contains(&char));
    match random.below(3) {
        0 if simple => text.to_owned(),
        1 if printable => format!("'{}'", text.replace('\'', "''")),
        _ => {
            let escape = |char: char| match char {
                '"' | '\\' => format!("\\{char}"),
                ' '..='~' => char.to_string(),
                char if u32::from(char) < 0x100 => format!("\\x{:02x}", u32::from(char)),
                char if u32::from(char) < 0x10000 => format!("\\u{:04X}", u32::from(char)),
                char => format!("\\U{:08x}", u32::from(char)),
            };
            let escaped: String = text.chars().map(escape).collect();
            format!("\"{escaped}\"")
        }
    }
}

fn number(random: &mut Random, below: u64) -> String {
    let number = random.below(below);
    match random.below(4) {
        0 => format!("{number:#x}"),
        1 => format!("{number:#b}"),
        2 => format!("0{number:o}"),
        _ => number.to_string(),
    }
}

/// A map of members, in block or in flow style.
fn map(random: &mut Random, indent: usize, flow: bool, entries: &[(String, String)]) -> String {
    let entries = entries
        .iter()
        .map(|(key, value)| match value.strip_prefix('\n') {
            Some(_) => format!("{key}:{value}"),
            None => format!("{key}: {value}"),
        });
    let entries: Vec<String> = entries.collect();
    if flow {
        let end = if random.below(4) == 0 && !entries.is_empty() {
            ", }"
        } else {
            " }"
        };
        return format!("{{ {}{end}", entries.join(", "));
    }
    entries.join(&format!("\n{}", " ".repeat(indent)))
}

fn member(random: &mut Random, flow: bool) -> String {
    let mut entries: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: String| entries.push((key.to_owned(), value));
    if random.below(4) > 0 {
        let names = [
            "IMG_None",
            "IMG_Object",
            "IMG_Bitcode",
            "IMG_Cubin",
            "IMG_Fatbinary",
            "IMG_PTX",
        ];
        let kind = match random.below(2) {
            0 => (*random.pick(&names)).to_owned(),
            _ => number(random, 0x10000),
        };
        add("ImageKind", kind);
    }
    if random.below(4) > 0 {
        // Numbers but those of HIP, which are others in LLVM 19.
        let mut kind =
            (*random.pick(&["OFK_None", "OFK_OpenMP", "OFK_Cuda", "OFK_HIP"])).to_owned();
        if random.below(2) == 0 {
            kind = format!("{}", 5 + random.below(1000));
        }
        add("OffloadKind", kind);
    }
    if random.below(2) == 0 {
        add("Flags", number(random, 1 << 32));
    }
    let count = random.below(5);
    if count > 0 {
        let pairs = (0..count).map(|_| {
            let (key, value) = (text(random, 8), text(random, 20));
            let pair = [
                ("Key".to_owned(), scalar(random, &key)),
                ("Value".to_owned(), scalar(random, &value)),
            ];
            let flow = flow || random.below(3) == 0;
            map(random, 8, flow, &pair)
        });
        let pairs: Vec<String> = pairs.collect();
        let list = if flow {
            format!("[{}]", pairs.join(", "))
        } else {
            pairs
                .iter()
                .map(|pair| format!("\n      - {pair}"))
                .collect()
        };
        add("String", list);
    }
    if random.below(2) == 0 {
        let bytes = random.bytes(30).into_iter();
        let digits: String = bytes.map(|byte| format!("{byte:02x}")).collect();
        add("Content", scalar(random, &digits));
    }
    let flow = flow || entries.is_empty();
    map(random, 4, flow, &entries)
}

fn document(random: &mut Random) -> String {
    let mut out = "--- !Offload # random\n".to_owned();
    for (key, below) in [
        ("Version", 1 << 32),
        ("Size", u64::MAX),
        ("EntryOffset", u64::MAX),
        ("EntrySize", u64::MAX),
    ] {
        if random.below(8) == 0 {
            writeln!(out, "{key}: {}", number(random, below)).unwrap();
        }
    }
    let flow = random.below(3) == 0;
    let members: Vec<String> = (0..random.below(4)).map(|_| member(random, flow)).collect();
    if flow || members.is_empty() {
        writeln!(out, "Members: [ {} ]", members.join(", ")).unwrap();
    } else {
        out += "Members:\n";
        for member in members {
            writeln!(out, "  - {member}\n# a comment").unwrap();
        }
    }
    out + *random.pick(&["", "...\n"])
}

#[test]
fn makes_of_a_text_the_bytes_that_yaml2obj_makes() {
    let mut random = Random::new();
    for (word, release) in RELEASES {
        let Some(yaml2obj) = tool(word, &["yaml2obj"]) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let (input, output) = (folder.path().join("in.yaml"), folder.path().join("out"));
        for _ in 0..case_count() {
            let text = document(&mut random);
            fs::write(&input, &text).unwrap();
            run(Command::new(&yaml2obj).arg(&input).arg("-o").arg(&output));
            let ours = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let ours = ours.to_bytes(release).unwrap();
            assert!(ours == fs::read(&output).unwrap(), "{word}: {text}");
        }
        println!("{word}: {} texts, equal", case_count());
    }
}

#[test]
fn makes_of_bytes_the_text_that_obj2yaml_makes() {
    let mut random = Random::new();
    let Some(obj2yaml) = tool("llvm22", &["obj2yaml"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    for _ in 0..case_count() {
        let mut bytes = Vec::new();
        for _ in 0..1 + random.below(4) {
            let count = random.below(5);
            let strings: Vec<(String, String)> = (0..count)
                .map(|_| (text(&mut random, 8), text(&mut random, 20)))
                .collect();
            let strings = strings.iter();
            let strings: Vec<(&[u8], &[u8])> = strings
                .map(|(key, value)| (key.as_bytes(), value.as_bytes()))
                .collect();
            let image = random.bytes(20);
            let entry = NewBinaryEntry {
                image_kind: ImageKind::from_raw(*random.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 999])),
                // 3 is HIP in ours, as before LLVM 21.
                offload_kind: OffloadKind::from_raw(*random.pick(&[0, 1, 2, 4, 5, 8, 16, 0xabc])),
                flags: random.below(1 << 32) as u32,
                strings: &strings,
                image_size: image.len() as u64,
            };
            let pieces = layout(&[entry], OffloadBinaryVersion::V1, LlvmRelease::V22).unwrap();
            bytes.extend(pieces::to_bytes(&pieces, &[&image]).unwrap());
        }
        fs::write(&input, &bytes).unwrap();
        let theirs = run(Command::new(&obj2yaml).arg(&input));
        let ours = read(&bytes);
        assert_eq!(ours.to_string(), theirs);
        assert_eq!(parse(&theirs).unwrap(), ours);
    }
    println!("llvm22: {} files, equal", case_count());
}

/// What LLVM's tests ask of `yaml2obj` and `obj2yaml`, on a document and back.
fn round_trip(text: &str) -> String {
    let bytes = parse(text).unwrap().to_bytes(LlvmRelease::V22).unwrap();
    read(&bytes).to_string()
}

#[test]
fn round_trips_kinds_flags_strings_in_order_and_content() {
    let text = "--- !Offload
Members:
  - ImageKind:       IMG_Cubin
    OffloadKind:     OFK_OpenMP
    Flags:           0
    String:
      - Key:             triple
        Value:           nvptx64-nvidia-cuda
      - Key:             arch
        Value:           sm_70
    Content:         cafefeed
  - ImageKind:       IMG_Bitcode
    OffloadKind:     OFK_HIP
    Flags:           1
    Content:         DEADBEEF
...
";
    assert_eq!(round_trip(text), text.replace("cafefeed", "CAFEFEED"));
}

#[test]
fn fills_in_what_a_member_does_not_say() {
    let text = "--- !Offload
Members:
  - ImageKind:       IMG_None
    OffloadKind:     OFK_None
    Flags:           0
...
";
    assert_eq!(round_trip("--- !Offload\nMembers:\n  - {}\n"), text);
    // The smallest there is.
    let bytes = parse(text).unwrap().to_bytes(LlvmRelease::V22).unwrap();
    assert_eq!(bytes.len(), 80);
}

#[test]
fn round_trips_names_and_prints_other_numbers_in_hex() {
    for kind in [
        "None",
        "Object",
        "Bitcode",
        "Cubin",
        "Fatbinary",
        "PTX",
        "LAST",
    ] {
        let found = round_trip(&format!(
            "--- !Offload\nMembers: [{{ImageKind: IMG_{kind}}}]\n"
        ));
        assert!(found.contains(&format!(" IMG_{kind}\n")), "{found}");
    }
    for kind in ["None", "OpenMP", "Cuda", "HIP", "LAST"] {
        let found = round_trip(&format!(
            "--- !Offload\nMembers: [{{OffloadKind: OFK_{kind}}}]\n"
        ));
        assert!(found.contains(&format!(" OFK_{kind}\n")), "{found}");
    }
    let found = round_trip("--- !Offload\nMembers: [{ImageKind: 999, OffloadKind: 999}]\n");
    assert_eq!(found.matches("Kind:       0x3E7\n").count(), 1, "{found}");
    assert_eq!(found.matches("Kind:     0x3E7\n").count(), 1, "{found}");
}

#[test]
fn keeps_two_members_two() {
    for release in [LlvmRelease::V22, LlvmRelease::V23, LlvmRelease::Main] {
        let document = parse("--- !Offload\nMembers: [{Content: 11}, {Content: 22}]\n").unwrap();
        let bytes = document.to_bytes(release).unwrap();
        assert_eq!(read(&bytes), document, "{release}");
        let binaries = walk(&bytes[..], 0..bytes.len() as u64).unwrap();
        let expected = if release == LlvmRelease::V22 { 2 } else { 1 };
        assert_eq!(binaries.len(), expected);
    }
}

#[test]
fn finds_what_the_header_was_changed_to() {
    for (release, header, expected) in [
        (
            LlvmRelease::V22,
            "Version: 4",
            "offload binary 0: expected version 1, 2 or 3, found 4",
        ),
        (
            LlvmRelease::V23,
            "Version: 4",
            "offload binary 0: expected version 1, 2 or 3, found 4",
        ),
        (
            LlvmRelease::V22,
            "Size: 999999999",
            "offload binary 0: body at offset 0x0 with size 0x3b9ac9ff runs past the end at 0x58",
        ),
        (
            LlvmRelease::V22,
            "EntryOffset: 999999999",
            "offload binary 0: image_kind of entry at offset 0x3b9ac9ff with size 0x2 runs past the \
             end at 0x58",
        ),
        (
            LlvmRelease::V23,
            "EntriesOffset: 999999999",
            "offload binary 0: entry 0: image_kind of entry at offset 0x3b9ac9ff with size 0x2 runs \
             past the end at 0x58",
        ),
    ] {
        let text = format!("--- !Offload\n{header}\nMembers: [{{Content: 11}}]\n");
        let bytes = parse(&text).unwrap().to_bytes(release).unwrap();
        let error = Document::of(&bytes[..], 0..bytes.len() as u64, 0).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let text = "--- !Offload\nEntriesCount: 999999999\nMembers: [{}]\n";
    let bytes = parse(text).unwrap().to_bytes(LlvmRelease::V23).unwrap();
    walk(&bytes[..], 0..bytes.len() as u64).unwrap_err();
}

#[test]
fn compresses_without_printing_how() {
    for method in ["zstd", "zlib"] {
        let members =
            "Members:\n  - String: [{Key: arch, Value: sm_70}]\n    Content: '41414141'\n";
        let text = format!("--- !Offload\nCompression: {method}\n{members}");
        let bytes = parse(&text).unwrap().to_bytes(LlvmRelease::Main).unwrap();
        let found = OffloadBinary::parse(&bytes[..], 0, bytes.len() as u64).unwrap();
        assert_eq!(found.compressed.unwrap().method.name(), method);
        let plain = parse(&format!("--- !Offload\n{members}")).unwrap();
        assert_eq!(read(&bytes), plain);
        assert!(!read(&bytes).to_string().contains("Compression"));
        let moved = text.replace("Members", "EntriesOffset: 48\nMembers");
        let bytes = parse(&moved).unwrap().to_bytes(LlvmRelease::Main).unwrap();
        let error = walk(&bytes[..], 0..bytes.len() as u64).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("expected compressed entries at its offset 0x28"),
            "{error}"
        );
    }
    parse("--- !Offload\nCompression: zstd\nMembers: [{}]\n")
        .unwrap()
        .to_bytes(LlvmRelease::V22)
        .unwrap_err();
    let plain = parse("--- !Offload\nMembers: [{Content: 11}]\n").unwrap();
    let plain = plain.to_bytes(LlvmRelease::Main).unwrap();
    let binary = OffloadBinary::parse(&plain[..], 0, plain.len() as u64).unwrap();
    let (claimed, limit) = (plain.len() as u64, 8);
    let error = binary.inflate(&plain[..], limit);
    assert_eq!(error, Err(InflateError::Limit { claimed, limit }));
    let zlib = compress(&plain, Method::Zlib, Some(9)).unwrap();
    let both = [&zlib[..], &plain].concat();
    assert_eq!(read(&both).members.len(), 2);
}
