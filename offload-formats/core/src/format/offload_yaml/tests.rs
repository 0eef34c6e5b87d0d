use super::*;

/// `obj2yaml` 22.1.8 prints this, of what `yaml2obj` 22.1.8 makes of it.
const TWO: &str = "\
--- !Offload
Members:
  - ImageKind:       IMG_Object
    OffloadKind:     OFK_OpenMP
    Flags:           0
    String:
      - Key:             triple
        Value:           nvptx64-nvidia-cuda
      - Key:             arch
        Value:           'gfx90a:xnack+'
    Content:         DEADBEEF
  - ImageKind:       0x3E7
    OffloadKind:     OFK_LAST
    Flags:           1
    Content:         '41414141'
...
";

fn message(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn members(text: &str) -> Vec<YamlMember> {
    parse(&format!("--- !Offload\n{text}")).unwrap().members
}

#[test]
fn reads_what_it_prints_and_prints_what_llvm_prints() {
    let document = parse(TWO).unwrap();
    assert_eq!(document.to_string(), TWO);
    let [first, second] = &document.members[..] else {
        panic!("two members")
    };
    assert_eq!(first.image_kind, ImageKind::OBJECT);
    assert_eq!(first.offload_kind, OffloadKind::OPENMP);
    assert_eq!(
        first.strings[1],
        ("arch".to_owned(), "gfx90a:xnack+".to_owned())
    );
    assert_eq!(first.content, b"\xde\xad\xbe\xef");
    assert_eq!((second.image_kind.raw(), second.flags), (999, 1));
    assert_eq!(second.content, b"AAAA");
}

#[test]
fn reads_block_and_flow_style() {
    let one = members(
        "Members:\n  - ImageKind: IMG_PTX\n    String:\n      - Key: a\n        Value: b c\n",
    );
    for text in [
        "Members:\n- ImageKind: 5\n  String:\n  - Key: a\n    Value: b c\n",
        "Members: [ { ImageKind: 0x5, String: [{Key: a, Value: b c},] } ]\n...\n",
        "Members: [{\"ImageKind\": IMG_PTX, 'String': [{Value: \"b\\x20c\", Key: 'a'}]}] # x",
        "# x\nMembers: # x\n  -\n    ImageKind: 05\n    # x\n    String:\n     - {Key: a, Value: b c}\n",
        "{Members: [{ImageKind: 0b101, String: [{Key: a, Value: b c}]}]}",
    ] {
        assert_eq!(members(text), one, "{text}");
    }
    for text in ["Members: []", "Members:", "Members: ~", "{Members: []}"] {
        assert_eq!(members(text), [], "{text}");
    }
    assert_eq!(members("Members: [{}, {}]\n").len(), 2);
    assert_eq!(
        parse("!Offload\nMembers: []\n").unwrap(),
        Document::default()
    );
}

#[test]
fn reads_what_shall_be_in_the_header() {
    let text = "--- !Offload\nVersion: 9\nSize: 0x10\nEntryOffset: 1\nEntrySize: 2\n\
                Compression: zlib\nMembers: []\n";
    let document = parse(text).unwrap();
    let other = text.replace("EntryOffset", "EntriesOffset");
    let other = other.replace("EntrySize", "EntriesCount");
    assert_eq!(parse(&other).unwrap(), document);
    assert_eq!((document.version, document.size), (Some(9), Some(16)));
    assert_eq!(
        (document.entries_offset, document.entries),
        (Some(1), Some(2))
    );
    assert_eq!(document.compression, Some(Method::Zlib));
    assert_eq!(parse(&document.to_string()).unwrap(), document);
}

#[test]
fn names_the_problem_with_line_and_column() {
    let document = |rest: &str| format!("--- !Offload\n{rest}");
    for (text, expected) in [
        (
            "Members: []\n".to_owned(),
            "1:1: expected a document that starts with `--- !Offload`",
        ),
        (
            "--- !ELF\n".to_owned(),
            "1:5: expected a document that starts with `--- !Offload`",
        ),
        (
            document("Version: 1\n"),
            "2:1: missing required key 'Members'",
        ),
        (document("Foo: 1\nMembers: []\n"), "2:1: unknown key 'Foo'"),
        (
            document("Members: [{String: [{Key: a, Value: b, Foo: c}]}]\n"),
            "2:40: unknown key 'Foo'",
        ),
        (
            document("Members: []\nMembers: []\n"),
            "3:1: duplicated mapping key 'Members'",
        ),
        (
            document("Members:\n  - String:\n      - Key: a\n"),
            "4:9: missing required key 'Value'",
        ),
        (
            document("Members:\n  - ImageKind: IMG_SPIRV\n"),
            "3:16: expected a kind or its number, up to 0xffff, found `IMG_SPIRV`",
        ),
        (
            document("Members:\n  - OffloadKind: 65536\n"),
            "3:18: expected a kind or its number, up to 0xffff, found `65536`",
        ),
        (
            document("Members: [{Flags: 4294967296}]"),
            "2:19: expected a number up to 0xffffffff, found `4294967296`",
        ),
        (
            document("Members: []\nSize: -1\n"),
            "3:7: expected a number up to 0xffffffffffffffff, found `-1`",
        ),
        (
            document("Members:\n  - Content: ABC\n"),
            "3:14: expected hexadecimal digits, two for each byte",
        ),
        (
            document("Members:\n  - Content: +1\n"),
            "3:14: expected hexadecimal digits, two for each byte",
        ),
        (
            document("Members: []\nCompression: lzma"),
            "3:14: expected `zstd` or `zlib`, found `lzma`",
        ),
        (document("Members: 1\n"), "2:10: expected a list"),
        (document("Members: [1]\n"), "2:11: expected a map"),
        (
            document("Members: [{Flags: []}]\n"),
            "2:19: expected a scalar",
        ),
        (document("Members: [{}\n"), "3:1: expected `,` or `]`"),
        (
            document("Members: [{Flags: 1]\n"),
            "2:20: expected `,` or `}`",
        ),
        (
            document("Members: - Flags: 1\n"),
            "2:10: expected a list to start on its own line",
        ),
        (
            document("Members: Flags: 1\n"),
            "2:15: expected a map to start on its own line",
        ),
        (
            document("Members: [] x\n"),
            "2:13: expected the end of the line",
        ),
        (
            document("Members:\n  - Flags: 1\n x\n"),
            "4:2: expected a line with less indentation",
        ),
        (
            document("Members: []\nSize\n"),
            "3:5: expected `:` after a key",
        ),
        (
            document("Members: &x []\n"),
            "2:10: expected a scalar, a list or a map",
        ),
        (
            document("Members: 'x\n"),
            "2:11: expected `'` at the end of the scalar, on its line",
        ),
        (
            document("Members: \"x\\q\"\n"),
            "2:12: expected an escape sequence",
        ),
        (
            document("Members: \"\\u+12\"\n"),
            "2:11: expected an escape sequence",
        ),
        (
            document("Members: []\n...\n--- !Offload\nMembers: []\n"),
            "4:1: expected the end of the document, and of the file",
        ),
        (
            document("Members:\n  - String:\n      - Key: a\n        Value:\n"),
            "6:1: expected a scalar",
        ),
    ] {
        assert_eq!(message(&text), expected, "{text}");
    }
    for deep in ["[".repeat(100_000), "- ".repeat(100_000)] {
        assert!(
            message(&document(&format!("Members:\n  {deep}")))
                .contains("nested more than 16 levels")
        );
    }
}

/// `obj2yaml` 22.1.8 prints the values so.
#[test]
fn quotes_as_llvm_does() {
    let plain =
        ". 1e 0x 0xg 0o8 0o 1_000 1.5.2 tRUE nULL x-y^z ... 1E 0E a, .nAn 1e5x 5e.5 yes .e5";
    let single = "+5 -5 .5 5. 1e+ 1e+5 +.inf .Inf -.INF .nan 0xAf +0x1 0o7 1.5e3 TRUE NULL << = (x) \
        a:b a;b a+b a=b +a + --- 12E3 00 !a +.nan -.5 -. +.e1 1.e5 ~ a/b -x";
    let print = |value: &str| {
        let strings = vec![("k".to_owned(), value.to_owned())];
        let members = vec![YamlMember {
            strings,
            ..YamlMember::default()
        }];
        let text = Document {
            members,
            ..Document::default()
        }
        .to_string();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("        Value:"));
        line.unwrap().trim_start().to_owned()
    };
    for value in plain.split_whitespace() {
        assert_eq!(print(value), value);
    }
    for value in single.split_whitespace() {
        assert_eq!(print(value), format!("'{value}'"));
    }
    for (value, expected) in [
        ("", "''"),
        ("it's", "'it''s'"),
        (" a", "' a'"),
        ("a ", "'a '"),
        ("a\tb", "a\tb"),
        ("x\ny\x01é\ttab", "\"x\\ny\\x01é\\ttab\""),
        ("\x7f", "\"\x7f\""),
        ("x\\y\"\x1b", "\"x\\\\y\\\"\\e\""),
        ("a\u{2028}\u{a0}😀\u{feff}", "\"a\\L\\_😀\\uFEFF\""),
    ] {
        assert_eq!(print(value), expected);
    }
}

#[test]
fn changes_header_fields_and_nothing_else() {
    let mut document = parse(TWO).unwrap();
    for (release, count) in [(LlvmRelease::V22, 2), (LlvmRelease::V23, 1)] {
        let before = document.to_bytes(release).unwrap();
        let size = before.len() as u64;
        let binaries = offload_binary::walk(&before[..], 0..size).unwrap();
        assert_eq!(binaries.len(), count);
        let changed = Document {
            version: Some(0x0403_0201),
            size: Some(0x0c0b_0a09_0807_0605),
            entries_offset: Some(0x1413_1211_100f_0e0d),
            entries: Some(0x1c1b_1a19_1817_1615),
            ..document.clone()
        };
        let mut expected = before;
        for binary in binaries {
            let start = binary.offset as usize + 4;
            (1..=28_u8).for_each(|byte| expected[start + usize::from(byte) - 1] = byte);
        }
        assert_eq!(changed.to_bytes(release).unwrap(), expected);
    }
    document.members.clear();
    assert_eq!(document.to_bytes(LlvmRelease::V22).unwrap(), b"");
    document.to_bytes(LlvmRelease::V23).unwrap_err();
}
