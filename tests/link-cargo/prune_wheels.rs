//! `cargo offload prune` of wheels, beside Python's `zipfile` and `pip`.

use crate::support::folder::Folder;
use std::path::Path;
use std::process::Command;

use crate::prune::{cc, folder, prune, pruned, size};
use crate::support::{program, run};

/// Writes a wheel of the files in the folder: `libk.so` and `plain.so`, stored, are the same library.
const BUILD: &str = "
import base64, hashlib, sys, zipfile
wheel, extra = sys.argv[1], sys.argv[2:]
files = [('pkg/__init__.py', b'value = 7\\n', 8), ('pkg/libk.so', open('libk.so', 'rb').read(), 8),
         ('pkg/plain.so', open('libk.so', 'rb').read(), 0), ('pkg/odd, name.hipfb', open('one', 'rb').read(), 8),
         ('pkg-1.0.dist-info/WHEEL', b'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: false\\nTag: py3-none-any\\n', 8),
         ('pkg-1.0.dist-info/METADATA', b'Metadata-Version: 2.1\\nName: pkg\\nVersion: 1.0\\n', 8)]
files += [(name, b'x', 0) for name in extra]
record = ''
for (name, data, _), kind in zip(files, ['sha256', 'sha512', 'sha256', 'sha384'] + ['sha256'] * 9):
    digest = base64.urlsafe_b64encode(hashlib.new(kind, data).digest()).rstrip(b'=').decode()
    shown = '\"' + name + '\"' if ',' in name else name
    record += f'{shown},{kind}={digest},{len(data)}\\n'
record += 'pkg-1.0.dist-info/RECORD,,\\n'
files.append(('pkg-1.0.dist-info/RECORD', record.encode(), 8))
with zipfile.ZipFile(wheel, 'w') as out:
    out.comment = b'a comment'
    for index, (name, data, method) in enumerate(files):
        info = zipfile.ZipInfo(name, (2020, 1, 1 + index, 3, 4, 6))
        info.compress_type, info.external_attr = method, (0o100644 + index % 2 * 0o111) << 16
        out.writestr(info, data)
";

/// Compares both wheels: everything but the pruned files and `RECORD` is the same, and the hashes fit.
const CHECK: &str = "
import base64, csv, hashlib, io, sys, zipfile
old, new = zipfile.ZipFile(sys.argv[1]), zipfile.ZipFile(sys.argv[2])
assert new.testzip() is None
assert old.comment == new.comment
changed = []
for one, two in zip(old.infolist(), new.infolist(), strict=True):
    for key in ['filename', 'date_time', 'external_attr', 'compress_type', 'extra', 'comment', 'create_system', 'flag_bits']:
        assert getattr(one, key) == getattr(two, key), (one, key)
    if old.read(one) != new.read(two):
        changed.append(one.filename)
        assert two.file_size < one.file_size or one.filename.endswith('RECORD')
print(changed)
rows = list(csv.reader(io.TextIOWrapper(new.open('pkg-1.0.dist-info/RECORD'), 'utf-8-sig')))
assert [row[0] for row in rows] == [name for name in new.namelist()], rows
for name, record, size in rows[:-1]:
    kind, expected = record.split('=', 1)
    digest = base64.urlsafe_b64encode(hashlib.new(kind, new.read(name)).digest()).rstrip(b'=').decode()
    assert (digest, int(size)) == (expected, len(new.read(name))), name
assert rows[-1] == ['pkg-1.0.dist-info/RECORD', '', '']
";

/// Writes the wheel again, with a mark at the start of `RECORD` and all of its fields in quotes.
const QUOTE: &str = "
import csv, io, sys, zipfile
old = zipfile.ZipFile(sys.argv[1])
with zipfile.ZipFile('quoted.whl', 'w') as out:
    out.comment = old.comment
    for info in old.infolist():
        data = old.read(info)
        if info.filename.endswith('RECORD'):
            text = io.StringIO()
            csv.writer(text, quoting=csv.QUOTE_ALL).writerows(csv.reader(io.StringIO(data.decode())))
            data = text.getvalue().encode('utf-8-sig')
        out.writestr(info, data)
";

/// Writes `locked.zip` with a bundle and bytes, and `left.zip` with that bundle, another zip file, and an archive with a bundle and an object with sections of one.
const LEFT: &str = "
import io, sys, zipfile
one = open('one', 'rb').read()
inner = io.BytesIO()
zipfile.ZipFile(inner, 'w').writestr('one', one)
header = lambda name, size: f'{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\\n'.encode()
other = open(sys.argv[1], 'rb').read()
archive = b'!<arch>\\n'
for name, data in [('one/', one), ('other.o/', other)]:
    archive += header(name, len(data)) + data + b'\\n' * (len(data) % 2)
with zipfile.ZipFile('left.zip', 'w') as out:
    out.writestr('one.hipfb', one)
    out.writestr('inner.zip', inner.getvalue())
    out.writestr('libk.a', archive)
with zipfile.ZipFile('locked.zip', 'w') as out:
    out.writestr('one.hipfb', one)
    out.writestr('locked', b'x' * 9000)
";

const WHEEL: &str = "pkg-1.0-py3-none-any.whl";

fn python(folder: &Folder, arguments: &[&str]) -> Option<String> {
    let python = program("python3")?;
    Some(run(Command::new(python)
        .args(arguments)
        .current_dir(folder.root())))
}

fn built(extra: &[&str]) -> Option<Folder> {
    let folder = folder();
    let library = ["-shared", "-fPIC", "images.c", "-o", "libk.so"];
    cc(&folder, Path::new("cc"), &library);
    python(&folder, &[&["-c", BUILD, WHEEL], extra].concat())?;
    Some(folder)
}

#[test]
fn prunes_wheels_that_pip_installs() {
    let Some(folder) = built(&[]) else { return };
    std::fs::create_dir(folder.path("small")).unwrap();
    let small = format!("small/{WHEEL}");
    let text = pruned(&folder, &["--keep=gfx1100", WHEEL, "-o", &small]);
    assert!(text.contains("kept     gfx1100        5 images"), "{text}");
    let changed = python(&folder, &["-c", CHECK, WHEEL, &small]).unwrap();
    assert_eq!(
        changed,
        "['pkg/libk.so', 'pkg/plain.so', 'pkg/odd, name.hipfb', 'pkg-1.0.dist-info/RECORD']\n"
    );
    // Ten images of 300 KB, which do not compress.
    assert!(size(&folder, &small) + 10 * 300_000 - 65_536 < size(&folder, WHEEL));
    // A `RECORD` in another form of CSV.
    python(&folder, &["-c", QUOTE, WHEEL]).unwrap();
    let quoted = pruned(&folder, &["--keep=gfx1100", "quoted.whl", "-o", "new.whl"]);
    assert!(
        quoted.contains("kept     gfx1100        5 images"),
        "{quoted}"
    );
    python(&folder, &["-c", CHECK, "quoted.whl", "new.whl"]).unwrap();
    // Members that are named as `RECORD` may name files.
    let dotted = QUOTE.replace(
        "out.writestr(info",
        "info.filename = './' + info.filename; out.writestr(info",
    );
    python(&folder, &["-c", &dotted, WHEEL]).unwrap();
    pruned(&folder, &["--keep=gfx1100", "quoted.whl", "-o", "new.whl"]);
    let check = CHECK.replace("[name for name", "[name[2:] for name");
    let check = check.replace("new.read(name)", "new.read('./' + name)");
    let check = check.replace("open('", "open('./");
    python(&folder, &["-c", &check, "quoted.whl", "new.whl"]).unwrap();
    let twice = pruned(&folder, &["--keep=gfx1100", "--in-place", &small]);
    assert!(twice.contains("(100 %)"), "{twice}");
    if crate::support::program("pip3").is_none() {
        return;
    }
    let install = [
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        "site",
    ];
    python(&folder, &[&install[..], &[&small]].concat());
    // The program uses the installed library.
    let link = [
        "main.c",
        "site/pkg/libk.so",
        "-Wl,-rpath,$ORIGIN",
        "-o",
        "k",
    ];
    cc(&folder, Path::new("cc"), &link);
    let lines = crate::prune::printed(&folder, &["./k"]);
    assert_eq!(
        lines.matches(" hipv4-amdgcn-amd-amdhsa--gfx1100 ").count(),
        2,
        "{lines}"
    );
    assert_eq!(lines.lines().count(), 4, "{lines}");
}

#[test]
fn names_members_that_it_does_not_prune() {
    let folder = folder();
    let golden = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/golden/22.1.8/bundle-in-object.o"
    );
    if python(&folder, &["-c", LEFT, golden]).is_none() {
        return;
    }
    let output = prune(
        &folder,
        &["--keep=gfx1100", "--json", "left.zip", "-o", "new.zip"],
    );
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let left = json["files"][0]["left"].as_array().unwrap();
    assert_eq!(left.len(), 2, "{json}");
    for (text, start) in std::iter::zip(left, ["member `inner.zip`: ", "member `libk.a`: "]) {
        let text = text.as_str().unwrap();
        assert!(text.starts_with(start), "{text}");
        assert!(
            said.contains(&format!("warning: left.zip: {text}\n")),
            "{said}"
        );
    }
    // The flag of an encrypted member, in its header and in the directory: the last member's bytes may be images.
    let mut bytes = std::fs::read(folder.path("locked.zip")).unwrap();
    for (magic, flags) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let at = bytes.windows(4).rposition(|part| part == magic).unwrap();
        bytes[at + flags] |= 1;
    }
    folder.write("locked.zip", &bytes);
    let output = prune(&folder, &["--keep=gfx1100", "locked.zip", "-o", "locked"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let error = "error: locked.zip: member `locked`: encrypted members are not supported\n";
    assert_eq!(said, error);
    assert!(!folder.path("locked").exists());
}

/// A library as Intel's compiler links it.
const SYCL: &str = r#"
.section __CLANG_OFFLOAD_BUNDLE__sycl-spir64, "a"
image: .long 0x07230203, 0x10000, 0, 1, 0
.section .tgtimg, "aw"
.quad image, 20
.section .note.GNU-stack, "", @progbits
"#;

#[test]
fn names_members_if_no_image_can_be_pruned() {
    let folder = folder();
    folder.write("k.s", SYCL);
    cc(
        &folder,
        Path::new("cc"),
        &["-shared", "-nostdlib", "k.s", "-o", "libk.so"],
    );
    // An object for 32 bits with images.
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/22.1.8");
    std::fs::copy(format!("{golden}/elf32le.o"), folder.path("images.o")).unwrap();
    folder.write("text", "text");
    let zip = |arguments: &[&str]| python(&folder, &[&["-m", "zipfile", "-c"], arguments].concat());
    if zip(&["inner.zip", "libk.so"]).is_none() {
        return;
    }
    zip(&["all.zip", "libk.so", "inner.zip", "images.o", "text"]);
    let before = folder.read("all.zip");
    let members = [
        "member `libk.so`: images in sections `__CLANG_OFFLOAD_BUNDLE__…` are not pruned",
        "member `inner.zip`: zip files in zip files are not pruned",
        "member `images.o`: its device images stay: expected a 64-bit little-endian ELF file for x86-64 or AArch64",
    ];
    let warnings = |file: &str| {
        let lines = members.map(|text| format!("cargo offload prune: warning: {file}: {text}\n"));
        lines.concat()
    };
    let output = prune(&folder, &["--keep=gfx1100", "--in-place", "all.zip"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = "error: all.zip: no device images that can be pruned are in the zip file\n";
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, warnings("all.zip") + error);
    assert!(folder.read("all.zip") == before);
    std::fs::create_dir(folder.path("tree")).unwrap();
    std::fs::rename(folder.path("all.zip"), folder.path("tree/all.zip")).unwrap();
    let output = prune(&folder, &["--keep=gfx1100", "-r", "tree", "-o", "small"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with(&warnings("tree/all.zip")), "{said}");
    assert!(folder.read("small/all.zip") == before);
}

#[test]
fn refuses_signed_and_damaged_wheels() {
    let Some(folder) = built(&["pkg-1.0.dist-info/RECORD.jws"]) else {
        return;
    };
    let fails = |file: &str, expected: &str| {
        let before = std::fs::read(folder.path(file)).unwrap();
        let output = prune(&folder, &["--keep=gfx1100", "--in-place", file]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(before == std::fs::read(folder.path(file)).unwrap());
    };
    fails(
        WHEEL,
        "the wheel is signed: `pkg-1.0.dist-info/RECORD.jws` would not fit the new RECORD\nhint: ",
    );
    // Nothing is removed, so that the signature still fits.
    let text = pruned(&folder, &["--drop=gfx999", WHEEL, "-o", "same.whl"]);
    assert!(text.contains("(100 %)"), "{text}");
    // The CRC-32 of the stored library in the directory.
    python(&folder, &["-c", BUILD, "k.whl"]);
    let mut bytes = std::fs::read(folder.path("k.whl")).unwrap();
    let entries: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(b"PK\x01\x02"))
        .collect();
    bytes[entries[2] + 16] ^= 1;
    folder.write("k.whl", &bytes);
    fails(
        "k.whl",
        "k.whl: member `pkg/plain.so`: the content has CRC-32 ",
    );
    folder.write("text", "text");
    python(&folder, &["-m", "zipfile", "-c", "text.zip", "text"]);
    fails(
        "text.zip",
        "text.zip: no device images that can be pruned are in the zip file\nhint: images in the middle of data",
    );
}
