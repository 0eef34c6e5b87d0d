//! Bundles and their entry IDs, ours and LLVM's: the same bytes, and each reads the other's.

use crate::support;

use std::fs;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::Command;

use offload_formats::format::bundle::{Bundle, BundleImage, to_bytes};
use offload_formats::format::bundle_text::{self, Comment};
use offload_formats::format::bundles::{self, AnyBundle};
use offload_formats::format::compressed_bundle::{
    CompressedBundle, CompressedBundleVersion, Compression, Method, compress,
};
use offload_formats::names::EntryId;
use support::{Random, run, tool};

/// Cases for each release and direction.
fn case_count() -> usize {
    support::cases(30, 120)
}

/// A target as users write it, right or nearly so.
fn target(random: &mut Random) -> String {
    const ARCHITECTURES: [&str; 6] = ["x86_64", "aarch64", "amdgcn", "nvptx64", "spirv64", "arm"];
    const WORDS: [&str; 18] = [
        "",
        "unknown",
        "none",
        "pc",
        "amd",
        "nvidia",
        "suse",
        "linux",
        "amdhsa",
        "amdhsa1.0",
        "cuda",
        "windows",
        "mingw32",
        "gnu",
        "musl",
        "androideabi21",
        "gnueabi",
        "foo",
    ];
    const TARGET_IDS: [&str; 8] = [
        "",
        "-",
        "-gfx906",
        "-gfx90a:xnack+:sramecc-",
        "-gfx9-4-generic:xnack-",
        "-sm_70",
        "-generic",
        "-gfx906:bogus+",
    ];
    let kind = random.pick(&["host", "hip", "hipv4", "openmp"]);
    let [vendor, os, environment] = [0; 3].map(|_| *random.pick(&WORDS));
    let arch = random.pick(&ARCHITECTURES);
    let target_id = random.pick(&TARGET_IDS);
    format!("{kind}-{arch}-{vendor}-{os}-{environment}{target_id}")
}

#[test]
fn writes_entry_ids_as_the_bundler_does() {
    let Some(bundler) = tool("llvm22", &["clang-offload-bundler"]) else {
        return;
    };
    let mut random = Random::dealt();
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::write(&input, "").unwrap();
    for _ in 0..2 * case_count() {
        let target = target(&mut random);
        // Where the host is needed and not the target, it comes second.
        let host = target
            .starts_with("openmp")
            .then_some(",host-x86_64-unknown-linux-gnu-");
        let mut command = Command::new(&bundler);
        command
            .arg("-type=bc")
            .arg(format!("-targets={target}{}", host.unwrap_or_default()));
        for _ in 0..1 + usize::from(host.is_some()) {
            command.arg("-input").arg(&input);
        }
        run(command.arg("-output").arg(&output));
        let bytes = fs::read(&output).unwrap();
        let size = u64::from_le_bytes(bytes[48..56].try_into().unwrap()) as usize;
        let theirs = std::str::from_utf8(&bytes[56..56 + size]).unwrap();
        let ours = EntryId::parse_target(&target).unwrap();
        assert_eq!(ours.to_string(), theirs, "{target}");
    }
    random.expect_every_choice();
    println!("llvm22: {} entry IDs, equal", 2 * case_count());
}

const RELEASES: [&str; 2] = ["llvm19", "llvm22"];

/// What a bundle is made of, and how the bundler of both releases is told to make it.
#[derive(Debug)]
struct Case {
    bundle_type: &'static str,
    align: u32,
    /// In the form that is written, the same for both releases.
    images: Vec<(&'static str, Vec<u8>)>,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        const DEVICES: [&str; 8] = [
            "hip-amdgcn-amd-amdhsa--gfx906",
            "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
            "hipv4-amdgcn-amd-amdhsa--gfx1030",
            "hipv4-amdgcn-amd-amdhsa--gfx1100",
            "openmp-amdgcn-amd-amdhsa--gfx908",
            "openmp-nvptx64-nvidia-cuda-unknown-sm_80",
            "hip-spirv64-amd-amdhsa--amdgcnspirv",
            "openmp-x86_64-pc-linux-gnu-",
        ];
        let mut ids: Vec<&str> = DEVICES
            .into_iter()
            .filter(|_| random.below(3) == 0)
            .collect();
        let only_hip = !ids.is_empty() && ids.iter().all(|id| id.starts_with("hip"));
        if !only_hip || random.below(3) > 0 {
            let place = random.any_below(ids.len() as u64 + 1) as usize;
            ids.insert(place, "host-x86_64-unknown-linux-gnu-");
        }
        Self {
            bundle_type: *random.pick(&["bc", "o", "gch", "ast"]),
            align: *random.pick(&[1, 1, 2, 3, 7, 16, 64, 4096]),
            images: ids.into_iter().map(|id| (id, random.bytes(200))).collect(),
        }
    }

    fn images(&self) -> Vec<(&str, &[u8])> {
        self.images
            .iter()
            .map(|(id, image)| (*id, image.as_slice()))
            .collect()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let images = self
            .images
            .iter()
            .map(|(id, image)| BundleImage { id, image });
        let align = NonZeroU64::new(self.align.into()).unwrap();
        to_bytes(&images.collect::<Vec<_>>(), align).unwrap()
    }

    fn arguments(&self) -> [String; 2] {
        // LLVM 19 takes all of a target that ends in a dash for the target ID.
        let target = |id: &'static str| {
            if id.contains(':') {
                id
            } else {
                id.trim_end_matches('-')
            }
        };
        let ids = self.images.iter().map(|(id, _)| target(id));
        let ids: Vec<&str> = ids.collect();
        let targets = ids.join(",");
        [
            format!("-type={}", self.bundle_type),
            format!("-targets={targets}"),
        ]
    }
}

fn images<'a>(bytes: &'a [u8], bundle: &'a Bundle) -> Vec<(&'a str, &'a [u8])> {
    let entries = bundle.entries.iter();
    let image = entries.map(|entry| {
        let image = &bytes[entry.image.start as usize..entry.image.end as usize];
        (entry.id.as_str(), image)
    });
    image.collect()
}

/// Runs a test for the bundler of each release, with a folder that has some files of its own.
fn with_bundlers(mut test: impl FnMut(&str, &dyn Fn() -> Command, &dyn Fn(usize) -> PathBuf)) {
    for word in support::share(RELEASES, 1, 2) {
        let Some(bundler) = tool(word, &["clang-offload-bundler"]) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let file = |index: usize| folder.path().join(index.to_string());
        test(word, &|| Command::new(&bundler), &file);
    }
}

#[test]
fn bundles_what_the_bundler_bundles_and_reads_what_it_bundled() {
    let mut random = Random::dealt();
    with_bundlers(|word, bundler, file| {
        for _ in 0..case_count() {
            let case = Case::new(&mut random);
            let output = file(case.images.len());
            let mut command = bundler();
            command
                .args(case.arguments())
                .arg(format!("-bundle-align={}", case.align));
            for (index, (_, image)) in case.images.iter().enumerate() {
                fs::write(file(index), image).unwrap();
                command.arg("-input").arg(file(index));
            }
            run(command.arg("-output").arg(&output));
            let theirs = fs::read(output).unwrap();
            assert!(case.to_bytes() == theirs, "{word}: other bytes: {case:?}");
            let found = bundles::walk(&theirs[..], 0..theirs.len() as u64).unwrap();
            let [AnyBundle::Plain(bundle)] = &found.bundles[..] else {
                panic!("{found:?}")
            };
            assert_eq!(images(&theirs, bundle), case.images());
            assert_eq!(bundle.size, theirs.len() as u64);
        }
        println!("{word}: {} bundles, equal", case_count());
    });
    random.expect_every_choice();
}

#[test]
fn bundles_what_the_bundler_lists_and_unbundles() {
    let mut random = Random::dealt();
    with_bundlers(|word, bundler, file| {
        for _ in 0..case_count() {
            let case = Case::new(&mut random);
            let input = file(case.images.len());
            fs::write(&input, case.to_bytes()).unwrap();
            expect_unbundled(word, bundler, file, &case, Order::OfAHash);
        }
        println!("{word}: {} unbundled, equal", case_count());
    });
    random.expect_every_choice();
}

/// The order in which entries are listed.
#[derive(PartialEq)]
enum Order {
    OfTheFile,
    OfAHash,
}

/// Has the bundler list and unbundle the case, which is in the file after those of its images.
fn expect_unbundled(
    word: &str,
    bundler: &dyn Fn() -> Command,
    file: &dyn Fn(usize) -> PathBuf,
    case: &Case,
    order: Order,
) {
    let input = file(case.images.len());
    let [bundle_type, targets] = case.arguments();
    let mut command = bundler();
    command.args([&bundle_type, "-list", "-input"]).arg(&input);
    let list = run(&mut command);
    let mut listed: Vec<&str> = list.lines().collect();
    let mut written: Vec<&str> = case.images.iter().map(|(id, _)| *id).collect();
    if order == Order::OfAHash {
        listed.sort_unstable();
        written.sort_unstable();
    }
    assert_eq!(listed, written, "{word}");

    let mut command = bundler();
    command
        .args([&bundle_type, &targets, "-unbundle", "-input"])
        .arg(&input);
    for index in 0..case.images.len() {
        command.arg("-output").arg(file(index));
    }
    run(&mut command);
    for (index, (id, image)) in case.images.iter().enumerate() {
        assert_eq!(
            &fs::read(file(index)).unwrap(),
            image,
            "{word}: {id}: {case:?}"
        );
    }
}

/// The version that the bundler writes, with what is set in its environment.
const VERSIONS: [(&str, Option<&str>, CompressedBundleVersion); 3] = [
    ("llvm19", None, CompressedBundleVersion::V2),
    ("llvm22", None, CompressedBundleVersion::V3),
    ("llvm22", Some("2"), CompressedBundleVersion::V2),
];

#[test]
fn decompresses_what_the_bundler_compresses() {
    let mut random = Random::dealt();
    with_bundlers(|word, bundler, file| {
        let rows = VERSIONS.iter().filter(|(llvm, _, _)| *llvm == word);
        for (_, variable, version) in rows {
            for _ in 0..case_count() {
                let case = Case::new(&mut random);
                let output = file(case.images.len());
                let mut command = bundler();
                command.args(case.arguments()).arg("-compress");
                command.arg(format!("-bundle-align={}", case.align));
                command.arg(format!("-compression-level={}", random.below(20)));
                if let Some(variable) = variable {
                    command.env("COMPRESSED_BUNDLE_FORMAT_VERSION", variable);
                }
                for (index, (_, image)) in case.images.iter().enumerate() {
                    fs::write(file(index), image).unwrap();
                    command.arg("-input").arg(file(index));
                }
                run(command.arg("-output").arg(&output));
                let theirs = fs::read(output).unwrap();
                let size = theirs.len() as u64;
                let found = CompressedBundle::parse(&theirs[..], 0, size).unwrap();
                assert_eq!((found.version, found.method), (*version, Method::Zstd));
                assert_eq!(found.range(), 0..size);
                let mut bundle = Vec::new();
                found.decompress_to(&theirs[..], &mut bundle).unwrap();
                assert!(bundle == case.to_bytes(), "{word}: other bytes: {case:?}");
            }
            println!(
                "{word}: {} decompressed, version {}, equal",
                case_count(),
                version.raw()
            );
        }
    });
    random.expect_every_choice();
}

#[test]
fn compresses_what_the_bundler_unbundles() {
    let mut random = Random::dealt();
    with_bundlers(|word, bundler, file| {
        let mut counts = [[0; 2]; 3];
        for _ in 0..case_count() {
            let case = Case::new(&mut random);
            // LLVM 19 does not know version 3.
            let versions = [
                CompressedBundleVersion::V1,
                CompressedBundleVersion::V2,
                CompressedBundleVersion::V3,
            ];
            let versions = &versions[..if word == "llvm19" { 2 } else { 3 }];
            let how = Compression {
                version: *random.pick(versions),
                method: *random.pick(&[Method::Zlib, Method::Zstd]),
                level: *random.pick(&[None, Some(1), Some(9), Some(19)]),
                ..Compression::default()
            };
            counts[usize::from(how.version.raw()) - 1][usize::from(how.method.raw())] += 1;
            let input = file(case.images.len());
            fs::write(&input, compress(&case.to_bytes(), how).unwrap()).unwrap();
            let mut command = bundler();
            command
                .args(case.arguments())
                .args(["-verbose", "-unbundle", "-input"]);
            command.arg(&input);
            for index in 0..case.images.len() {
                command.arg("-output").arg(file(index));
            }
            let output = command.output().unwrap();
            let report = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{word}: {how:?}: {report}");
            assert!(
                report.contains("Hashes match: Yes"),
                "{word}: {how:?}: {report}"
            );
            for (index, (id, image)) in case.images.iter().enumerate() {
                assert_eq!(
                    &fs::read(file(index)).unwrap(),
                    image,
                    "{word}: {id}: {case:?}"
                );
            }
        }
        println!(
            "{word}: {} unbundled, equal; by version, zlib and zstd: {counts:?}",
            case_count()
        );
    });
    random.expect_every_choice();
}

/// The types of text, with what starts a comment in each.
const TEXTS: [(&str, Comment); 7] = [
    ("i", Comment::Slashes),
    ("ii", Comment::Slashes),
    ("cui", Comment::Slashes),
    ("hipi", Comment::Slashes),
    ("d", Comment::Hash),
    ("s", Comment::Hash),
    ("ll", Comment::Semicolon),
];

/// Texts in the place of a case's images, and the comment of its type.
fn text_case(random: &mut Random) -> (Case, Comment) {
    const PIECES: [&str; 9] = [
        "\n",
        "int x;",
        "\r\n",
        ";",
        "#",
        "//",
        " __CLANG_OFFLOAD_BUNDLE__",
        "__START__ ",
        "_END__ x",
    ];
    let mut case = Case::new(random);
    let (bundle_type, comment) = *random.pick(&TEXTS);
    case.bundle_type = bundle_type;
    for (_, text) in &mut case.images {
        let pieces = (0..random.below(12)).map(|_| *random.pick(&PIECES));
        *text = pieces.collect::<String>().into_bytes();
    }
    (case, comment)
}

#[test]
fn bundles_texts_as_the_bundler_does_and_reads_what_it_bundled() {
    let mut random = Random::dealt();
    with_bundlers(|word, bundler, file| {
        for _ in 0..case_count() {
            let (case, comment) = text_case(&mut random);
            let output = file(case.images.len());
            let mut command = bundler();
            command.args(case.arguments());
            for (index, (_, text)) in case.images.iter().enumerate() {
                fs::write(file(index), text).unwrap();
                command.arg("-input").arg(file(index));
            }
            run(command.arg("-output").arg(&output));
            let theirs = fs::read(output).unwrap();
            let ours = bundle_text::to_bytes(&case.images(), comment).unwrap();
            assert!(ours == theirs, "{word}: other bytes: {case:?}");
            let entries = bundle_text::parse(&theirs[..], 0..theirs.len() as u64, comment).unwrap();
            let entries = entries.iter().map(|entry| {
                let text = &theirs[entry.text.start as usize..entry.text.end as usize];
                (entry.id.as_str(), text)
            });
            assert_eq!(entries.collect::<Vec<_>>(), case.images());
        }
        println!("{word}: {} text bundles, equal", case_count());
    });
    random.expect_every_choice();
}

#[test]
fn bundles_texts_that_the_bundler_lists_and_unbundles() {
    let mut random = Random::dealt();
    with_bundlers(|word, bundler, file| {
        for _ in 0..case_count() {
            let (case, comment) = text_case(&mut random);
            let input = file(case.images.len());
            fs::write(
                &input,
                bundle_text::to_bytes(&case.images(), comment).unwrap(),
            )
            .unwrap();
            expect_unbundled(word, bundler, file, &case, Order::OfTheFile);
        }
        println!("{word}: {} text bundles unbundled, equal", case_count());
    });
    random.expect_every_choice();
}
