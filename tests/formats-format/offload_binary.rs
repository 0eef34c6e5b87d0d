//! Offload binaries, ours and LLVM's: the same bytes, and each reads the other's.

use crate::support;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use offload_formats::format::offload_binary::{
    BinaryEntry, BinaryImage, Method, NewBinaryEntry, OffloadBinary, OffloadBinaryVersion,
    compress, layout, pair_order, walk,
};
use offload_formats::format::pieces;
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};
use support::{Random, run, tool};

const RELEASES: [(&str, LlvmRelease, &str); 2] = [
    ("llvm19", LlvmRelease::V19, "clang-offload-packager"),
    ("llvm22", LlvmRelease::V22, "llvm-offload-binary"),
];

/// Cases for each release and direction.
const CASES: usize = 120;

/// What an image is made of.
#[derive(Debug)]
struct Case {
    image_kind: ImageKind,
    offload_kind: OffloadKind,
    flags: u32,
    strings: Vec<(String, String)>,
    image: Vec<u8>,
}

impl Case {
    fn to_bytes(&self, release: LlvmRelease) -> Vec<u8> {
        let strings: Vec<(&str, &str)> = self
            .strings
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let image = BinaryImage {
            image_kind: self.image_kind,
            offload_kind: self.offload_kind,
            flags: self.flags,
            strings: &strings,
            image: &self.image,
        };
        image.to_bytes(release).unwrap()
    }

    /// What is read back: each key once.
    fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (key, value) in &self.strings {
            match pairs.iter_mut().find(|(known, _)| known == key) {
                Some((_, known)) => known.clone_from(value),
                None => pairs.push((key.clone(), value.clone())),
            }
        }
        pairs
    }

    fn expect_read_from(&self, bytes: &[u8], binary: &OffloadBinary) {
        let [entry] = &binary.entries[..] else {
            panic!("{binary:?}")
        };
        assert_eq!(entry.image_kind, self.image_kind);
        assert_eq!(
            (entry.offload_kind, entry.flags),
            (self.offload_kind, self.flags)
        );
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let pairs: Vec<_> = entry
            .strings
            .iter()
            .map(|(key, value)| (text(key), text(value)))
            .collect();
        assert_eq!(pairs, self.pairs());
        assert_eq!(
            bytes[entry.image.start as usize..entry.image.end as usize],
            self.image
        );
    }
}

fn text(random: &mut Random, below: u64) -> String {
    // Few letters, so that strings are often equal, or the tail of another.
    let letters = if random.below(2) == 0 {
        "ab"
    } else {
        "abcxyz019_-+:./ '\"\\,="
    };
    let letters: Vec<char> = letters.chars().collect();
    (0..random.below(below))
        .map(|_| *random.pick(&letters))
        .collect()
}

/// Any content that a library user could write.
fn any_case(random: &mut Random) -> Case {
    let strings = (0..random.below(9)).map(|_| {
        let key = match random.below(4) {
            0 => "triple".to_owned(),
            1 => "arch".to_owned(),
            _ => text(random, 12),
        };
        (key, text(random, 40))
    });
    let strings = strings.collect();
    Case {
        image_kind: ImageKind::from_raw(*random.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 999])),
        offload_kind: *random.pick(&[
            OffloadKind::NONE,
            OffloadKind::OPENMP,
            OffloadKind::CUDA,
            OffloadKind::HIP,
            OffloadKind::from_raw(0x40),
        ]),
        flags: random.below(3) as u32,
        strings,
        image: random.bytes(70),
    }
}

/// The form in which `yaml2obj` takes offload binaries.
fn yaml(cases: &[Case], release: LlvmRelease) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let mut out = "--- !Offload\nMembers:\n".to_owned();
    for case in cases {
        let kind = match case.offload_kind {
            OffloadKind::HIP => "OFK_HIP".to_owned(),
            kind => format!("{:#x}", kind.raw(release)),
        };
        let image = case.image_kind.raw();
        writeln!(out, "  - ImageKind: {image:#x}\n    OffloadKind: {kind}").unwrap();
        writeln!(out, "    Flags: {}", case.flags).unwrap();
        if !case.strings.is_empty() {
            writeln!(out, "    String:").unwrap();
        }
        for (key, value) in &case.strings {
            writeln!(
                out,
                "      - Key: {}\n        Value: {}",
                quote(key),
                quote(value)
            )
            .unwrap();
        }
        if !case.image.is_empty() {
            let hex: String = case
                .image
                .iter()
                .map(|byte| format!("{byte:02X}"))
                .collect();
            writeln!(out, "    Content: '{hex}'").unwrap();
        }
    }
    out + "...\n"
}

#[test]
fn writes_and_reads_what_the_library_of_llvm_writes() {
    let mut random = Random::new();
    for (word, release, _) in RELEASES {
        let Some(yaml2obj) = tool(word, &["yaml2obj"]) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let cases: Vec<Case> = (0..CASES).map(|_| any_case(&mut random)).collect();
        let (input, output) = (folder.path().join("in.yaml"), folder.path().join("out"));
        fs::write(&input, yaml(&cases, release)).unwrap();
        run(Command::new(yaml2obj).arg(&input).arg("-o").arg(&output));
        let theirs = fs::read(output).unwrap();
        let binaries = walk(&theirs[..], 0..theirs.len() as u64).unwrap();
        assert_eq!(binaries.len(), CASES);
        for (case, binary) in cases.iter().zip(&binaries) {
            let range = binary.range();
            assert_eq!(
                case.to_bytes(release),
                theirs[range.start as usize..range.end as usize],
                "{case:?}"
            );
            case.expect_read_from(&theirs, binary);
        }
        println!("{word}: {CASES} of the library, equal");
    }
}

/// The strings that the packager takes, in the order in which it writes them.
fn packager_case(random: &mut Random, index: usize) -> Case {
    let (triple, arch) = *random.pick(&[
        ("nvptx64-nvidia-cuda", "sm_80"),
        ("amdgcn-amd-amdhsa", "gfx90a:sramecc-:xnack+"),
        ("amdgcn-amd-amdhsa", "gfx1100"),
        ("x86_64-pc-linux-gnu", "generic"),
    ]);
    // Unique, so that each can be asked for.
    let arch = format!("{arch}.{index}");
    let mut strings = vec![
        ("arch".to_owned(), arch),
        ("triple".to_owned(), triple.to_owned()),
    ];
    if random.below(2) == 0 {
        let feature = (
            "feature".to_owned(),
            (*random.pick(&["+a", "-wavefrontsize64", "+ptx80"])).to_owned(),
        );
        strings.insert(0, feature);
    }
    let kinds = [
        OffloadKind::NONE,
        OffloadKind::OPENMP,
        OffloadKind::CUDA,
        OffloadKind::HIP,
    ];
    let kinds_of_images = [
        ImageKind::NONE,
        ImageKind::OBJECT,
        ImageKind::BITCODE,
        ImageKind::CUBIN,
        ImageKind::FATBINARY,
        ImageKind::PTX,
    ];
    Case {
        image_kind: *random.pick(&kinds_of_images),
        offload_kind: *random.pick(&kinds),
        flags: 0,
        strings,
        image: random.bytes(300),
    }
}

fn argument(case: &Case, file: &Path) -> String {
    let strings: Vec<String> = case
        .strings
        .iter()
        .map(|(key, value)| format!(",{key}={value}"))
        .collect();
    let kind = case.offload_kind.name();
    format!(
        "--image=file={},kind={kind}{}",
        file.display(),
        strings.concat()
    )
}

#[test]
fn packs_what_the_packager_packs_and_unpacks_what_it_packed() {
    let mut random = Random::new();
    for (word, release, name) in RELEASES {
        let Some(packager) = tool(word, &[name]) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let cases: Vec<Case> = (0..CASES)
            .map(|index| packager_case(&mut random, index))
            .collect();
        let mut command = Command::new(packager);
        command.arg("-o").arg(folder.path().join("out"));
        for (index, case) in cases.iter().enumerate() {
            let mut file = folder.path().join(index.to_string());
            file.set_extension(case.image_kind.extension());
            fs::write(&file, &case.image).unwrap();
            command.arg(argument(case, &file));
        }
        run(&mut command);
        let theirs = fs::read(folder.path().join("out")).unwrap();
        let ours: Vec<u8> = cases
            .iter()
            .flat_map(|case| case.to_bytes(release))
            .collect();
        assert!(ours == theirs, "{word}: other bytes");
        for (case, binary) in cases
            .iter()
            .zip(walk(&theirs[..], 0..theirs.len() as u64).unwrap())
        {
            case.expect_read_from(&theirs, &binary);
        }
        println!("{word}: {CASES} of the packager, equal");
    }
}

#[test]
fn packs_what_the_packager_unpacks() {
    let mut random = Random::new();
    for (word, release, name) in RELEASES {
        let Some(packager) = tool(word, &[name]) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let cases: Vec<Case> = (0..CASES)
            .map(|index| packager_case(&mut random, index))
            .collect();
        let ours: Vec<u8> = cases
            .iter()
            .flat_map(|case| case.to_bytes(release))
            .collect();
        let input = folder.path().join("in");
        fs::write(&input, ours).unwrap();
        let mut command = Command::new(packager);
        command.arg(&input);
        let output = |index: usize| folder.path().join(index.to_string());
        for (index, case) in cases.iter().enumerate() {
            command.arg(argument(case, &output(index)));
        }
        run(&mut command);
        for (index, case) in cases.iter().enumerate() {
            assert_eq!(
                fs::read(output(index)).unwrap(),
                case.image,
                "{word}: {case:?}"
            );
        }
        println!("{word}: {CASES} unpacked, equal");
    }
}

/// Keys that `--image` takes, each once, in any order.
fn random_keys(random: &mut Random) -> Vec<String> {
    // Any printable character but those of the grammar; also letters of other scripts.
    let letters: Vec<char> = (' '..='~')
        .chain("äß日".chars())
        .filter(|char| !matches!(char, ',' | '='))
        .collect();
    let mut keys: Vec<String> = vec!["file".to_owned(), "triple".to_owned()];
    let usual = [
        "kind", "arch", "feature", "member", "version", "symbols", "",
    ];
    for _ in 0..*random.pick(&[0, 1, 2, 5, 20, 50, 90]) {
        let key = match random.below(4) {
            0 => (*random.pick(&usual)).to_owned(),
            _ => {
                let below = *random.pick(&[4, 10, 20, 40, 65]);
                let len = random.below(below);
                let key = (0..len).map(|_| *random.pick(&letters));
                key.collect()
            }
        };
        // What the map hashes are bytes.
        if key.len() <= 64 && !keys.contains(&key) {
            let place = random.below(keys.len() as u64 + 1) as usize;
            keys.insert(place, key);
        }
    }
    keys
}

#[test]
fn orders_strings_as_the_packager_does() {
    const RUNS: usize = 20;
    const IMAGES: usize = 12;
    let mut random = Random::new();
    for (word, release, name) in RELEASES {
        let Some(packager) = tool(word, &[name]) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out");
        for _ in 0..RUNS {
            let mut command = Command::new(&packager);
            command.arg("-o").arg(&output);
            let mut ours = Vec::new();
            for index in 0..IMAGES {
                let file = folder.path().join(format!("{index}.cubin"));
                let image = random.bytes(60);
                fs::write(&file, &image).unwrap();
                let keys = random_keys(&mut random);
                let value = |key: &String| match key.as_str() {
                    "file" => file.display().to_string(),
                    "kind" => "cuda".to_owned(),
                    key => format!("{key}-{}", key.len() % 7),
                };
                let pairs: Vec<(&str, String)> =
                    keys.iter().map(|key| (key.as_str(), value(key))).collect();
                let items = pairs.iter().map(|(key, value)| format!("{key}={value}"));
                let items: Vec<String> = items.collect();
                command.arg(format!("--image={}", items.join(",")));
                let keys: Vec<&str> = pairs.iter().map(|(key, _)| *key).collect();
                let order = pair_order(&keys, release);
                let strings: Vec<(&[u8], &[u8])> = order
                    .into_iter()
                    .map(|index| (pairs[index].0.as_bytes(), pairs[index].1.as_bytes()))
                    .collect();
                let entry = NewBinaryEntry {
                    image_kind: ImageKind::CUBIN,
                    offload_kind: match keys.contains(&"kind") {
                        true => OffloadKind::CUDA,
                        false => OffloadKind::NONE,
                    },
                    flags: 0,
                    strings: &strings,
                    image_size: image.len() as u64,
                };
                let pieces = layout(&[entry], OffloadBinaryVersion::of(release), release).unwrap();
                ours.extend(pieces::to_bytes(&pieces, &[&image]).unwrap());
            }
            run(&mut command);
            assert!(ours == fs::read(&output).unwrap(), "{word}: {command:?}");
        }
        println!("{word}: {} sets of keys, equal", RUNS * IMAGES);
    }
}

const VERSIONS: [OffloadBinaryVersion; 3] = [
    OffloadBinaryVersion::V1,
    OffloadBinaryVersion::V2,
    OffloadBinaryVersion::V3,
];

/// The bytes of one offload binary, or in version 1 of several.
fn bytes_of(cases: &[Case], version: OffloadBinaryVersion) -> Vec<u8> {
    let strings = cases.iter().map(|case| {
        let pairs = case.strings.iter();
        pairs
            .map(|(key, value)| (key.as_bytes(), value.as_bytes()))
            .collect()
    });
    let strings: Vec<Vec<(&[u8], &[u8])>> = strings.collect();
    let entries = cases
        .iter()
        .zip(&strings)
        .map(|(case, strings)| NewBinaryEntry {
            image_kind: case.image_kind,
            offload_kind: case.offload_kind,
            flags: case.flags,
            strings,
            image_size: case.image.len() as u64,
        });
    let entries: Vec<NewBinaryEntry<'_>> = entries.collect();
    let images: Vec<&[u8]> = cases.iter().map(|case| &case.image[..]).collect();
    let pieces = layout(&entries, version, LlvmRelease::Main).unwrap();
    pieces::to_bytes(&pieces, &images).unwrap()
}

/// The largest that LLVM's own test of its writer makes.
fn large_case(random: &mut Random) -> Case {
    let mut text = |below: u64| -> String {
        let letters = (0..random.below(below)).map(|_| char::from(32 + random.below(95) as u8));
        letters.collect()
    };
    let strings = (0..256).map(|_| (text(257), text(257))).collect();
    Case {
        image_kind: ImageKind::from_raw(random.below(8) as u16),
        offload_kind: OffloadKind::from_raw(4 << random.below(4)),
        flags: random.below(1 << 32) as u32,
        strings,
        image: random.bytes(257),
    }
}

#[test]
fn reads_back_what_it_wrote_in_each_version() {
    let mut random = Random::new();
    for version in VERSIONS {
        for round in 0..30 {
            let case = match round % 10 {
                0 => large_case(&mut random),
                _ => any_case(&mut random),
            };
            let cases = [case];
            let bytes = bytes_of(&cases, version);
            let binary = OffloadBinary::parse(&bytes[..], 0, bytes.len() as u64).unwrap();
            assert_eq!(binary.version, version);
            assert_eq!((binary.size, bytes.len() % 8), (bytes.len() as u64, 0));
            cases[0].expect_read_from(&bytes, &binary);
        }
    }
}

/// Five images, the last of which is none; no strings, no image, a long value among them.
fn five(random: &mut Random) -> Vec<Case> {
    let mut cases: Vec<Case> = (0..5).map(|_| any_case(random)).collect();
    cases[1].strings.clear();
    cases[2].image.clear();
    cases[3].strings = vec![("key".to_owned(), "v".repeat(4096))];
    cases[4].image.clear();
    cases[4].flags = BinaryEntry::METADATA;
    cases
}

/// One entry, as if it were alone.
fn expect_entry(case: &Case, bytes: &[u8], binary: &OffloadBinary, index: usize) {
    let mut alone = binary.clone();
    alone.entries = vec![binary.entries[index].clone()];
    case.expect_read_from(bytes, &alone);
}

#[test]
fn reads_back_five_images_in_one_and_each_by_its_index() {
    let mut random = Random::new();
    for version in [OffloadBinaryVersion::V2, OffloadBinaryVersion::V3] {
        let cases = five(&mut random);
        let bytes = bytes_of(&cases, version);
        let binary = OffloadBinary::parse(&bytes[..], 0, bytes.len() as u64).unwrap();
        assert_eq!(binary.entries.len(), 5);
        for (index, case) in cases.iter().enumerate() {
            expect_entry(case, &bytes, &binary, index);
        }
        assert!(binary.entries[1].strings.is_empty());
        assert!(binary.entries[2].image.is_empty());
        assert_eq!(binary.entries[3].strings.value("key").unwrap().len(), 4096);
        let last = &binary.entries[4];
        assert_eq!((last.flags, last.image.is_empty()), (1, true));
        assert!(binary.entries.get(5).is_none());
    }
}

#[test]
fn compresses_and_gives_every_field_back() {
    let mut random = Random::new();
    for method in [Method::Zstd, Method::Zlib] {
        let cases = five(&mut random);
        let plain = bytes_of(&cases, OffloadBinaryVersion::V3);
        let small = compress(&plain, method, None).unwrap();
        assert!(small.len() < plain.len());
        let both = [&small[..], &plain].concat();
        let binaries = walk(&both[..], 0..both.len() as u64).unwrap();
        assert_eq!(binaries.len(), 2);
        assert_eq!(binaries[0].size.next_multiple_of(8), small.len() as u64);
        let claimed = binaries[0].compressed.as_ref().unwrap().inflated_size;
        assert_eq!(claimed, plain.len() as u64);
        for binary in binaries {
            let bytes = binary.inflate(&both[..], claimed).unwrap();
            let inflated = OffloadBinary::parse(&bytes[..], 0, claimed).unwrap();
            assert_eq!(inflated.size, claimed);
            for (index, case) in cases.iter().enumerate() {
                expect_entry(case, &bytes, &inflated, index);
            }
        }
    }
}
