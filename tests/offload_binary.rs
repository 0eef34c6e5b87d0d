//! Offload binaries, ours and LLVM's: the same bytes, and each reads the other's.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use offload_build::format::offload_binary::{BinaryImage, OffloadBinary, walk};
use offload_build::target::{ImageKind, LlvmRelease, OffloadKind};
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
