use super::write::{layout_with, write_with};
use super::*;
use crate::format::pieces::{Piece, to_bytes};

const GNU: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/gnu.a");
const SYM64: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/sym64.a");
const BSD: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/bsd.a");
const DARWIN: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/darwin.a");
const COFF: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/coff.a");
const AIX: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/aix.a");
const THIN: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/thin.a");
const FAT: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/elf64le.o");

fn parse(bytes: &[u8]) -> Result<Archive<'_, &[u8]>, ArchiveError> {
    Archive::parse(bytes, 0..bytes.len() as u64)
}

fn names<'d>(archive: &Archive<'d, &'d [u8]>) -> Vec<&'d str> {
    archive
        .members
        .iter()
        .map(|member| std::str::from_utf8(member.name).unwrap())
        .collect()
}

fn content<'d>(bytes: &'d [u8], member: &ArchiveMember<'_>) -> &'d [u8] {
    let range = member.content.clone().unwrap();
    &bytes[range.start as usize..range.end as usize]
}

/// Symbols, each with the name of its member.
fn index<'d>(archive: &Archive<'d, &'d [u8]>) -> Vec<(&'d [u8], &'d [u8])> {
    let symbols = archive.symbols().unwrap();
    let member = |offset| {
        let found = archive
            .members
            .iter()
            .find(|member| member.header_offset == offset);
        found.unwrap().name
    };
    symbols
        .iter()
        .map(|symbol| (symbol.name, member(symbol.header_offset)))
        .collect()
}

const LONG: &str = "a_rather_long_member_name.o";
const INDEX: [(&[u8], &[u8]); 3] = [
    (b"x", b"fat.o"),
    (b"f", LONG.as_bytes()),
    (b"y", LONG.as_bytes()),
];

#[test]
fn reads_every_form() {
    for (bytes, expected) in [
        (GNU, &["fat.o", LONG, "odd.txt"][..]),
        (SYM64, &["fat.o", LONG]),
        (BSD, &["fat.o", LONG]),
    ] {
        let archive = parse(bytes).unwrap();
        assert_eq!((names(&archive), archive.thin), (expected.to_vec(), false));
        assert_eq!(index(&archive), INDEX);
        assert_eq!(&content(bytes, &archive.members[0])[..FAT.len()], FAT);
        assert_eq!(&content(bytes, &archive.members[1])[..4], b"\x7fELF");
    }
    assert_eq!(content(GNU, &parse(GNU).unwrap().members[2]), b"odd");
}

#[test]
fn reads_the_forms_of_other_systems() {
    let expected = ["fat.o", LONG, "odd.txt"];
    for bytes in [DARWIN, COFF, AIX] {
        let archive = parse(bytes).unwrap();
        assert_eq!((names(&archive), archive.thin), (expected.to_vec(), false));
        assert_eq!(&content(bytes, &archive.members[0])[..FAT.len()], FAT);
        assert_eq!(&content(bytes, &archive.members[1])[..4], b"\x7fELF");
        assert_eq!(&content(bytes, &archive.members[2])[..3], b"odd");
        let mut symbols = index(&archive);
        symbols.sort_unstable_by_key(|(name, _)| *name != b"x");
        let expected = if bytes == AIX { &[][..] } else { &INDEX };
        assert_eq!(symbols, expected);
    }
    // Inside of a file, places are still those of the archive.
    let file = [b"more", AIX, b"more"].concat();
    let archive = Archive::parse(&file[..], 4..4 + AIX.len() as u64).unwrap();
    assert_eq!(names(&archive), expected);
    assert_eq!(content(&file, &archive.members[2]), b"odd");
}

#[test]
fn rejects_long_names_outside_of_a_thin_archive() {
    // A member whose long name is that of the long names, which a thin archive contains.
    let header = |name: &str, size: usize| format!("{name:<16}{:<32}{size:<10}`\n", 0);
    let archive = ["!<thin>\n", &header("//", 4), "///\n", &header("/0", 0)].concat();
    assert_eq!(
        parse(archive.as_bytes()).unwrap_err().to_string(),
        "member at offset 0x48: its long name is missing"
    );
}

/// As GNU ar 2.40 writes it for `Kokkos_Serial.o`.
#[test]
fn reads_the_place_of_a_long_name_in_front_of_a_slash() {
    let header = |name: &str, size: usize| format!("{name:<16}{:<32}{size:<10}`\n", 0);
    let place = format!("/0{:>14}", '/');
    let archive = [
        "!<thin>\n",
        &header("//", 18),
        "Kokkos_Serial.o/\n\n",
        &header(&place, 1112),
    ];
    let archive = archive.concat();
    let archive = parse(archive.as_bytes()).unwrap();
    assert_eq!(names(&archive), ["Kokkos_Serial.o"]);
}

#[test]
fn rejects_big_archives_that_lie() {
    let change = |offset: usize, value: &[u8]| {
        let mut bytes = AIX.to_vec();
        bytes[offset..offset + value.len()].copy_from_slice(value);
        parse(&bytes).err().map(|error| error.to_string())
    };
    // The members are at 0x80, 0x4e8 and 0x97e.
    let cases: [(usize, &[u8], &str); 6] = [
        (
            0x44,
            b"x",
            "header at offset 0x0: `x28` is not a decimal number",
        ),
        (
            0x80 + 20,
            b"128 ",
            "member at offset 0x80: the chain of members has a cycle",
        ),
        (
            0x80 + 20,
            b"9999",
            "size of member header at offset 0x270f with size 0x14 runs past the end at 0xb80",
        ),
        (
            0x80,
            b"99999",
            "member at offset 0x80: content at offset 0xf8 with size 0x1869f runs past the end at \
             0xb80",
        ),
        (
            0x80 + 108,
            b"9999",
            "member at offset 0x80: name at offset 0xf0 with size 0x270f runs past the end at 0xb80",
        ),
        (
            0x80 + 112 + 6,
            b"x",
            "member at offset 0x80: expected its header to end with \"`\\n\", found \"x\\n\"",
        ),
    ];
    for (offset, value, expected) in cases {
        assert_eq!(change(offset, value).unwrap(), expected, "{offset:#x}");
    }
}

#[test]
fn reads_thin_archives_as_the_files_they_name() {
    let archive = parse(THIN).unwrap();
    assert_eq!((names(&archive), archive.thin), (vec!["fat.o", LONG], true));
    assert_eq!(index(&archive), INDEX);
    let sizes: Vec<_> = archive
        .members
        .iter()
        .map(|it| (it.size, it.content.clone()))
        .collect();
    assert_eq!(sizes, [(1008, None), (1032, None)]);
    // The wide index is in the archive, too: 8 bytes for no symbols.
    let header = |name: &str, size: usize| format!("{name:<16}{:<32}{size:<10}`\n", 0);
    let (index, member) = (header("/SYM64/", 8), header("a.o/", 4));
    let archive = ["!<thin>\n", &index, &"\0".repeat(8), &member].concat();
    let archive = parse(archive.as_bytes()).unwrap();
    assert_eq!(names(&archive), ["a.o"]);
}

#[test]
fn reads_an_archive_inside_a_file_at_any_offset() {
    for start in [1, 2, 60] {
        let file = [&vec![0; start][..], GNU, b"more"].concat();
        let range = start as u64..(start + GNU.len()) as u64;
        let archive = Archive::parse(&file[..], range).unwrap();
        assert_eq!(names(&archive), ["fat.o", LONG, "odd.txt"]);
        assert_eq!(index(&archive), INDEX);
        assert_eq!(content(&file, &archive.members[2]), b"odd");
    }
}

#[test]
fn writes_the_bytes_ar_and_llvm_write() {
    let archive = parse(GNU).unwrap();
    let members = [
        NewMember {
            name: "fat.o",
            bytes: FAT,
            symbols: &["x"],
        },
        NewMember {
            name: LONG,
            bytes: content(GNU, &archive.members[1]),
            symbols: &["f", "y"],
        },
        NewMember {
            name: "odd.txt",
            bytes: b"odd",
            symbols: &[],
        },
    ];
    assert_eq!(write(&members), GNU);
    assert_eq!(write_with(&members[..2], 0), SYM64);
    // `ar rcsD` of GNU binutils 2.40 and `llvm-ar-22 rcsD` of `printf odd > odd.txt`.
    let odd = b"!<arch>\nodd.txt/        0           0     0     644     3         `\nodd\n";
    assert_eq!(write(&members[2..]), odd);
    assert_eq!(write(&[]), b"!<arch>\n");
}

/// `docs/spec/bundler.md` §5.3, worked example E: written by `clang-offload-bundler` 22.1
/// `-type=a -unbundle`.
const DEVICE: &[u8] = b"!<arch>\n\
    //                                              124       `\n\
    lib1-openmp-amdgcn-amd-amdhsa--gfx906_sramecc+_xnack-lib1.bc/\n\
    lib2-openmp-amdgcn-amd-amdhsa--gfx906_sramecc+_xnack-lib2.bc/\n\
    /0              0           0     0     644     25        `\nContent of device file 1\n\n\
    /62             0           0     0     644     25        `\nContent of device file 2\n\n";

#[test]
fn plans_what_is_copied_from_which_input() {
    let names = ["lib1", "lib2"]
        .map(|lib| format!("{lib}-openmp-amdgcn-amd-amdhsa--gfx906_sramecc+_xnack-{lib}.bc"));
    let copy = |input, range| Piece::Copy { input, range };
    let contents = [[copy(1, 2..27)], [copy(0, 0..25)]];
    let plan = |index: usize| MemberPlan {
        name: &names[index],
        content: &contents[index],
        symbols: &[],
    };
    let members = [plan(0), plan(1)];
    let pieces = layout(&members, Index::OfSymbols).unwrap();
    let copies: Vec<_> = pieces
        .iter()
        .filter(|piece| matches!(piece, Piece::Copy { .. }))
        .collect();
    assert_eq!(copies, [&contents[0][0], &contents[1][0]]);
    let inputs: [&[u8]; 2] = [
        b"Content of device file 2\n",
        b"..Content of device file 1\n..",
    ];
    assert_eq!(to_bytes(&pieces, &inputs).unwrap(), DEVICE);
}

#[test]
fn stores_equal_names_once_and_an_index_when_asked() {
    let content = [Piece::Copy {
        input: 0,
        range: 0..1,
    }];
    let member = MemberPlan {
        name: LONG,
        content: &content,
        symbols: &[],
    };
    let bytes = |members: &[_], index| {
        let pieces = layout(members, index).unwrap();
        to_bytes(&pieces, &[b"x"]).unwrap()
    };
    let twice = bytes(&[member.clone(), member.clone()], Index::OfSymbols);
    let archive = parse(&twice).unwrap();
    assert_eq!(names(&archive), [LONG, LONG]);
    let count = twice
        .windows(LONG.len())
        .filter(|at| *at == LONG.as_bytes());
    assert_eq!(count.count(), 1);
    assert!(bytes(&[member], Index::Always)[8..].starts_with(b"/ "));
    assert_eq!(bytes(&[], Index::OfSymbols), b"!<arch>\n");
    // 4 GiB of zeros and more, of which nothing is read.
    let zeros = [1 << 32, 0, 10_000_000_000].map(|size| [Piece::Zeros(size)]);
    let large = |index: usize, symbols| MemberPlan {
        name: "a",
        content: &zeros[index],
        symbols,
    };
    let symbols = [&b"s"[..]];
    let members = [large(0, &[]), large(1, &symbols)];
    let pieces = layout(&members, Index::OfSymbols).unwrap();
    assert!(matches!(&pieces[0], Piece::Bytes(bytes) if bytes[8..].starts_with(b"/SYM64/ ")));
    assert_eq!(pieces, layout_with(&members, Index::OfSymbols, 1));
    let error = layout(&[large(2, &[])], Index::OfSymbols).unwrap_err();
    assert_eq!(error.to_string(), "member 0 is too large for an archive");
}

#[test]
fn widens_the_index_when_an_offset_needs_it() {
    let members = [
        NewMember {
            name: "a",
            bytes: b"12345",
            symbols: &["s"],
        },
        NewMember {
            name: "b",
            bytes: b"",
            symbols: &["t"],
        },
    ];
    // With 32 bits the second member is at 8 + 60 + 16 + 60 + 6 = 0x96.
    assert!(write_with(&members, 0x97)[8..].starts_with(b"/ "));
    assert!(write_with(&members, 0x96)[8..].starts_with(b"/SYM64/ "));
    let (wide, narrow) = (write_with(&members, 0x96), write_with(&members, 0x97));
    assert_eq!(
        index(&parse(&wide).unwrap()),
        index(&parse(&narrow).unwrap())
    );
}

#[test]
fn round_trips_names_of_every_length() {
    let name = "n".repeat(40);
    let members: Vec<_> = (1..40)
        .map(|len| NewMember {
            name: &name[..len],
            bytes: &b"0123456789"[..len % 10],
            symbols: &[],
        })
        .collect();
    let bytes = write(&members);
    let archive = parse(&bytes).unwrap();
    assert_eq!(archive.members.len(), members.len());
    for (member, written) in archive.members.iter().zip(&members) {
        assert_eq!(
            (member.name, content(&bytes, member)),
            (written.name.as_bytes(), written.bytes)
        );
    }
}

#[test]
fn names_the_problem_and_its_place() {
    let change = |offset: usize, value: &[u8]| {
        let mut bytes = GNU.to_vec();
        bytes[offset..offset + value.len()].copy_from_slice(value);
        parse(&bytes)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    // Headers: index at 0x8, long names at 0x5a, members at 0xb4, 0x4e0, 0x924.
    let cases: [(usize, &[u8], &str); 8] = [
        (0, b"?", "expected an archive at offset 0x0"),
        (
            0x8 + 48,
            b"12x4",
            "member at offset 0x8: size field `12x4` is not a decimal number",
        ),
        (
            0xb4 + 48,
            b"-1  ",
            "member at offset 0xb4: size field `-1` is not a decimal number",
        ),
        (
            0xb4 + 48,
            b"9999999999",
            "member at offset 0xb4: content at offset 0xf0 with size 0x2540be3ff runs past the end \
             at 0x964",
        ),
        (
            0xb4 + 58,
            b"xx",
            "member at offset 0xb4: expected its header to end with \"`\\n\", found \"xx\"",
        ),
        (
            0x4e0,
            b"/30 ",
            "member at offset 0x4e0: its long name is missing",
        ),
        (
            0x4e0,
            b"/0:80 ",
            "member at offset 0x4e0: it is a member of another archive, which is not supported (`ar` with the members \
             themselves makes an archive that is)",
        ),
        (
            0x4e0,
            b"#1/9999",
            "member at offset 0x4e0: name at offset 0x51c with size 0x270f runs \
             past the end at 0x924",
        ),
    ];
    for (offset, value, expected) in cases {
        assert_eq!(change(offset, value), expected, "{offset:#x}");
    }
    assert_eq!(
        parse(&GNU[..0x60]).unwrap_err().to_string(),
        "member header at offset 0x5a with size 0x3c runs past the end at 0x60"
    );
    let mut bytes = GNU.to_vec();
    bytes[0x44] = 0xff;
    assert_eq!(
        parse(&bytes).unwrap().symbols().unwrap_err().to_string(),
        "symbol index: Invalid archive symbol table"
    );
}

#[test]
fn rejects_every_truncation_but_that_between_members() {
    let ends = [8, 0x5a, 0xb4, 0x4e0, 0x924];
    for len in 0..GNU.len() {
        // Of the member that ends the archive, the padding may be absent.
        let whole = ends.contains(&len) || len + 1 == GNU.len();
        assert_eq!(parse(&GNU[..len]).is_ok(), whole, "{len:#x}");
    }
}

#[test]
fn reads_members_one_after_the_other_up_to_the_first_error() {
    let cut = &GNU[..GNU.len() - 4];
    let read: Vec<Result<&[u8], ArchiveError>> = ArchiveMembers::new(cut, 0..cut.len() as u64)
        .map(|member| member.map(|member| member.name))
        .collect();
    // As `llvm-ar-22 t` lists them; the last one is cut off.
    let whole: [&[u8]; 2] = [b"fat.o", b"a_rather_long_member_name.o"];
    assert_eq!(read[..2], whole.map(Ok));
    assert!(
        matches!(read[2..], [Err(ArchiveError::Content { .. })]),
        "{read:?}"
    );
    let mut none = ArchiveMembers::new(&b"text"[..], 0..4);
    assert_eq!(none.next(), Some(Err(ArchiveError::Magic { offset: 0 })));
    assert_eq!(none.next(), None);
}

#[test]
fn survives_every_single_byte_change() {
    let all = std::env::var_os("OFFLOAD_TEST_ALL").is_some_and(|value| value == "1");
    for bytes in [GNU, BSD, THIN, AIX] {
        let mut bytes = bytes.to_vec();
        let len = bytes.len();
        for offset in (0..0x130)
            .chain(0x4c0..0x560)
            .filter(|offset| *offset < len)
        {
            let before = bytes[offset];
            // All values with `make test-all`; else digits and what is beside them, and those that differ in one bit.
            let is_tried = |value: u8| {
                all || (b'/'..=b':').contains(&value) || (value ^ before).count_ones() == 1
            };
            for value in (0..=255).filter(|value| is_tried(*value)) {
                bytes[offset] = value;
                if let Ok(archive) = parse(&bytes) {
                    let _ = archive.symbols();
                    for member in archive.members {
                        assert!(
                            member
                                .content
                                .is_none_or(|range| range.end <= bytes.len() as u64)
                        );
                    }
                }
            }
            bytes[offset] = before;
        }
    }
}

#[test]
fn names_members_without_folders() {
    for (name, expected) in [
        ("a.o", "a.o"),
        ("../../a.o", "a.o"),
        ("/etc/a b", "a b"),
        ("..", "_"),
        ("a/", "_"),
        ("", "_"),
        ("c:\\a\n.o", "c:_a_.o"),
    ] {
        assert_eq!(plain_name(name), expected);
    }
}
