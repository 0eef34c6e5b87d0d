use super::*;
use crate::format::pieces::to_bytes;

const ELF_HOST: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/bundle-host.o");
const ELF: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/bundle-in-object.o");
const COFF_HOST: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/bundle-host.obj");
const COFF: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/bundle-in-object.obj");
const COFF_AGAIN: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/bundle-host-again.obj");
const IMAGE: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/image.exe");

const HOST_ID: &str = "host-x86_64-unknown-linux-gnu-";
const DEVICE_ID: &str = "hip-amdgcn-amd-amdhsa--gfx906";
const DEVICE: &[u8] = b"Content of device file 1\n";

fn of(file: &[u8]) -> Option<ObjectKind> {
    ObjectKind::of(file, 0..file.len() as u64)
}

fn embed(host: &[u8], images: &[(&str, Option<&[u8]>)]) -> Result<Vec<u8>, ObjectError> {
    let mut entries = Vec::new();
    let mut inputs = vec![host];
    for (id, image) in images {
        entries.push(NewObjectEntry {
            id,
            size: image.map(|image| image.len() as u64),
        });
        inputs.push(image.unwrap_or_default());
    }
    let pieces = embed_bundle(host, 0..host.len() as u64, &entries)?;
    Ok(to_bytes(&pieces, &inputs).unwrap())
}

fn host(file: &[u8]) -> Vec<u8> {
    let pieces = host_part(file, 0..file.len() as u64).unwrap();
    to_bytes(&pieces, &[file]).unwrap()
}

/// ID, content and whether it is the host's.
fn entries(file: &[u8]) -> Vec<(String, Vec<u8>, bool)> {
    let sections = bundle_sections(file, 0..file.len() as u64).unwrap();
    let entry = |section: BundleSection| {
        let content = section.content.start as usize..section.content.end as usize;
        (section.id, file[content].to_vec(), section.host)
    };
    sections.into_iter().map(entry).collect()
}

#[test]
fn bundles_and_unbundles_with_the_bytes_of_llvm() {
    for (plain, fat, again) in [(ELF_HOST, ELF, ELF_HOST), (COFF_HOST, COFF, COFF_AGAIN)] {
        let written = embed(plain, &[(HOST_ID, None), (DEVICE_ID, Some(DEVICE))]).unwrap();
        assert_eq!(written, fat);
        let expected = [
            (HOST_ID.to_owned(), vec![0], true),
            (DEVICE_ID.to_owned(), DEVICE.to_vec(), false),
        ];
        assert_eq!(entries(fat), expected);
        assert_eq!(entries(plain), []);
        assert_eq!(host(fat), again);
    }
}

#[test]
fn adds_to_the_bundle_that_is_there() {
    let twice = embed(ELF, &[(HOST_ID, None), (DEVICE_ID, Some(b"second"))]).unwrap();
    let found = entries(&twice);
    let ids: Vec<&str> = found.iter().map(|(id, ..)| &id[..]).collect();
    assert_eq!(ids, [HOST_ID, DEVICE_ID, HOST_ID, DEVICE_ID]);
    assert_eq!((&found[1].1[..], &found[3].1[..]), (DEVICE, &b"second"[..]));
    assert_eq!(host(&twice), ELF_HOST);
}

#[test]
fn gives_back_an_image_of_one_nul() {
    let image = embed(
        ELF_HOST,
        &[(DEVICE_ID, Some(b"\0")), (HOST_ID, Some(b"\x01"))],
    )
    .unwrap();
    let expected = [
        (DEVICE_ID.to_owned(), vec![0], false),
        (HOST_ID.to_owned(), vec![1], false),
    ];
    assert_eq!(entries(&image), expected);
    // One that only starts with a NUL.
    let image = embed(ELF_HOST, &[(HOST_ID, Some(b"\0x"))]).unwrap();
    assert_eq!(
        entries(&image),
        [(HOST_ID.to_owned(), b"\0x".to_vec(), false)]
    );
}

#[test]
fn recognizes_object_files_as_the_bundler_does() {
    // Those of which `clang-offload-bundler -type=o -###` of LLVM 22.1 prints an `llvm-objcopy`.
    let empty = |machine: u16| [&machine.to_le_bytes()[..], &[0; 18]].concat();
    let macho = [&b"\xcf\xfa\xed\xfe"[..], &[0; 28]].concat();
    for (file, kind) in [
        (ELF_HOST, ObjectKind::Elf),
        (COFF_HOST, ObjectKind::Coff),
        (&empty(0x14c), ObjectKind::Coff),
        (&empty(0x8664), ObjectKind::Coff),
        (&empty(0xa641), ObjectKind::Coff),
        (IMAGE, ObjectKind::Image),
        (&macho, ObjectKind::MachO),
        (b"\0asm\x01\0\0\0", ObjectKind::Wasm),
    ] {
        assert_eq!(of(file), Some(kind), "{}", kind.name());
    }
    for file in [
        &b""[..],
        b"\0asm",
        b"text",
        b"BC\xc0\xde and more",
        b"!<arch>\n",
        b"__CLANG_OFFLOAD_BUNDLE__",
        b"MZ and no signature",
        &macho[..20],
        &ELF_HOST[..200],
        &COFF_HOST[..30],
        &empty(0x8664)[..19],
        &empty(0x1c0),
        b"\0\0\xff\xff\0\0\x64\x86\0\0\0\0\x04\0\0\0\0\0\0\0a\0b\0",
    ] {
        assert_eq!(of(file), None, "{}", file.escape_ascii());
    }
}

#[test]
fn tells_what_cannot_be_written() {
    let macho = [&b"\xcf\xfa\xed\xfe"[..], &[0; 28]].concat();
    let error = |host, id| embed(host, &[(id, None)]).unwrap_err().to_string();
    assert_eq!(
        error(&macho, HOST_ID),
        "sections of Mach-O files are not supported (those of ELF and COFF are)"
    );
    assert_eq!(
        error(b"text", HOST_ID),
        "expected an object file, found another format or a truncated file"
    );
    assert_eq!(
        error(ELF, "hip-\0"),
        "invalid entry ID `hip-\\0`: expected UTF-8 without NUL"
    );
    let mut fat = ELF.to_vec();
    // The last letter of the names of sections before that of the host's.
    fat[0x8f] = 0xff;
    let error = bundle_sections(&fat[..], 0..u64::MAX).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid entry ID `hip-amdgcn-amd-amdhsa--gfx90\\xff`: expected UTF-8 without NUL"
    );
}
