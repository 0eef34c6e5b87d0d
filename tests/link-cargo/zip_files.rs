//! `cargo offload` on zip files that Python's `zipfile` wrote: what it says of members is what it says of the files.

use crate::commands::{cargo_offload, done};
use crate::support::folder::Folder;
use std::num::NonZeroU64;
use std::process::Command;

use offload_formats::format::bundle::{self, BundleImage};
use offload_formats::format::compressed_bundle;
use serde_json::Value;

use crate::support::{program, run};

const FATBIN: &[u8] = include_bytes!("../golden/cuda-13.5/two-images.fatbin");
const PTX: &str = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";

fn bundled() -> Vec<u8> {
    let entry = |id, image| BundleImage { id, image };
    let images = [
        entry("hip-amdgcn-amd-amdhsa--gfx90a:xnack+", &[b'i'; 6000][..]),
        entry("hip-amdgcn-amd-amdhsa--gfx1100", &[b'k'; 2000]),
    ];
    bundle::to_bytes(&images, NonZeroU64::new(4096).unwrap()).unwrap()
}

/// Files with images, and some without: text, an empty file.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let packed = compressed_bundle::compress(&bundled(), Default::default()).unwrap();
    vec![
        ("k.hipfb", bundled()),
        ("packed.hipfb", packed),
        ("two.fatbin", FATBIN.to_vec()),
        ("k.ptx", PTX.as_bytes().to_vec()),
        ("module.py", b"import sys\n".repeat(1000)),
        ("empty", Vec::new()),
    ]
}

fn folder() -> Folder {
    let folder = Folder::new();
    for (name, bytes) in files() {
        folder.write(name, bytes);
    }
    folder
}

/// Writes `name` with the files of the folder as `pkg/<name>`, by Python. `method` is that of its `zipfile`.
fn zip(folder: &Folder, name: &str, method: &str, names: &[&str]) -> bool {
    let Some(python) = program("python3") else {
        return false;
    };
    const SCRIPT: &str = "
import sys, zipfile
archive, method, names = sys.argv[1], sys.argv[2], sys.argv[3:]
with zipfile.ZipFile(archive, 'w') as file:
    file.writestr(zipfile.ZipInfo('pkg/'), b'')
    for name in names:
        info = zipfile.ZipInfo('pkg/' + name, (2024, 1, 2, 3, 4, 6))
        info.compress_type = getattr(zipfile, method)
        with file.open(info, 'w', force_zip64=name.startswith('two')) as out:
            out.write(open(name, 'rb').read())
";
    let mut command = Command::new(python);
    command.args(["-c", SCRIPT, name, method]).args(names);
    run(command.current_dir(folder.root()));
    true
}

fn containers(folder: &Folder, file: &str) -> Vec<Value> {
    let json = done(folder, &["inspect", "--kernels", "--json", file]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["files"][0]["problems"], Value::Array(Vec::new()));
    json["files"][0]["containers"].as_array().unwrap().clone()
}

/// Removes what differs between a file and a member: numbers of images in the file, and where the member is.
fn comparable(mut container: Value, base: u64) -> Value {
    container["members"] = Value::Null;
    container["packed_size"] = Value::Null;
    let is_file = container["unpacked"] == Value::Bool(false);
    let moved = |value: &mut Value| *value = (value.as_u64().unwrap() - base).into();
    moved(&mut container["offset"]);
    for image in container["images"].as_array_mut().unwrap() {
        image["number"] = Value::Null;
        if is_file {
            moved(&mut image["offset"]);
        }
    }
    container
}

#[test]
fn inspects_members_as_it_inspects_files() {
    let folder = folder();
    let files = files();
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    for method in ["ZIP_STORED", "ZIP_DEFLATED"] {
        if !zip(&folder, "k.whl", method, &names) {
            return;
        }
        let found = containers(&folder, "k.whl");
        let whole = std::fs::read(folder.path("k.whl")).unwrap();
        let mut found = found.into_iter();
        for (name, bytes) in &files {
            for expected in containers(&folder, name) {
                let container = found.next().unwrap();
                assert_eq!(container["members"][0], format!("pkg/{name}"));
                // Offsets in stored members are those in the zip file.
                let base = match method {
                    "ZIP_STORED" => {
                        assert_eq!(container["packed_size"], Value::Null);
                        let at = whole.windows(bytes.len()).position(|part| part == bytes);
                        at.unwrap() as u64
                    }
                    _ => {
                        assert!(container["packed_size"].is_u64(), "{name}");
                        0
                    }
                };
                assert_eq!(
                    comparable(container, base),
                    comparable(expected, 0),
                    "{name}"
                );
            }
        }
        assert!(found.next().is_none(), "{method}");
    }
}

#[test]
fn inspects_zip_files_in_zip_files() {
    let folder = folder();
    for (inner, outer) in [
        ("ZIP_STORED", "ZIP_STORED"),
        ("ZIP_STORED", "ZIP_DEFLATED"),
        ("ZIP_DEFLATED", "ZIP_STORED"),
        ("ZIP_DEFLATED", "ZIP_DEFLATED"),
    ] {
        if !zip(&folder, "inner.zip", inner, &["two.fatbin", "module.py"]) {
            return;
        }
        zip(&folder, "outer.zip", outer, &["inner.zip", "k.hipfb"]);
        let text = done(&folder, &["inspect", "outer.zip"]);
        assert!(text.starts_with("outer.zip: 4 device images"), "{text}");
        assert!(text.contains("pkg/inner.zip"), "{text}");
        assert!(text.contains("pkg/two.fatbin"), "{text}");
        let json = done(&folder, &["size", "--json", "outer.zip"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert!(json["device"].as_u64() < json["size"].as_u64(), "{json}");
    }
}

#[test]
fn extracts_from_members() {
    let folder = folder();
    for method in ["ZIP_STORED", "ZIP_DEFLATED"] {
        if !zip(
            &folder,
            "k.zip",
            method,
            &["k.hipfb", "packed.hipfb", "module.py", "k.ptx"],
        ) {
            return;
        }
        let paths = done(&folder, &["extract", "k.zip", "--out", method]);
        let images: [&[u8]; 5] = [
            &[b'i'; 6000],
            &[b'k'; 2000],
            &[b'i'; 6000],
            &[b'k'; 2000],
            PTX.as_bytes(),
        ];
        assert_eq!(paths.lines().count(), images.len(), "{paths}");
        for (path, image) in paths.lines().zip(images) {
            let content = std::fs::read(folder.path(path)).unwrap();
            assert!(content == image, "{path}");
        }
    }
}

#[test]
fn shares_the_size_of_compressed_members() {
    let folder = folder();
    if !zip(&folder, "k.zip", "ZIP_DEFLATED", &["k.hipfb", "module.py"]) {
        return;
    }
    let json = done(&folder, &["size", "--json", "k.zip"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let size = folder.path("k.zip").metadata().unwrap().len();
    assert_eq!(json["size"], size);
    let packed = containers(&folder, "k.zip")[0]["packed_size"].clone();
    // The member is one bundle.
    assert_eq!(json["device"], packed);
    let packed = packed.as_u64().unwrap();
    assert_eq!(json["containers"][0]["compressed"], true);
    assert_eq!(
        json["containers"][0]["images"][0]["stored"],
        packed * 6000 / 8000
    );
    assert_eq!(json["containers"][0]["images"][0]["unpacked"], 6000);
}

#[test]
fn reports_damaged_and_large_members() {
    let folder = folder();
    if !zip(&folder, "k.zip", "ZIP_DEFLATED", &["k.hipfb", "two.fatbin"]) {
        return;
    }
    let mut bytes = std::fs::read(folder.path("k.zip")).unwrap();
    let output = cargo_offload(
        &folder,
        &["inspect", "--max-decompressed-size=9000", "k.zip"],
    );
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("k.zip: member `pkg/k.hipfb`: the content of 0x37d0 bytes exceeds the limit on decompressed data\nhint: "),
        "{said}"
    );
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.contains("pkg/two.fatbin") && !shown.contains("k.hipfb"),
        "{shown}"
    );
    // The CRC-32 of the second member in the directory; the first is the folder.
    let mut entries = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"PK\x01\x02"));
    let entry = entries.nth(1).unwrap();
    bytes[entry + 16] ^= 1;
    folder.write("k.zip", &bytes);
    let output = cargo_offload(&folder, &["inspect", "k.zip"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("error: k.zip: member `pkg/k.hipfb`: the content has CRC-32 "),
        "{said}"
    );
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.starts_with("k.zip: 2 device images"), "{shown}");
}
