//! Triples, processors and entry IDs, ours and LLVM's.

use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use offload_formats::format::bundle::Bundle;
use offload_formats::names::elf_flags::{amd_machine, processor_of, target_id_of};
use offload_formats::names::processor::Device;
use offload_formats::names::{
    ConflictScope, EntryId, EntryIdError, KindRule, LlvmRelease, Processor, Triple, conflict,
};
use support::{Random, tool};

#[test]
fn normalizes_as_clang_does() {
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return;
    };
    // No `elf`: after `windows` clang repeats it. No `gnu` after an unknown system: there clang, not
    // LLVM, takes it for that of Hurd.
    const WORDS: [&str; 27] = [
        "x86_64",
        "aarch64",
        "amdgcn",
        "nvptx64",
        "riscv64",
        "s390x",
        "pc",
        "amd",
        "nvidia",
        "suse",
        "unknown",
        "none",
        "linux",
        "amdhsa",
        "cuda",
        "freebsd",
        "windows",
        "win32",
        "mingw32",
        "cygwin",
        "gnu",
        "musl",
        "android21",
        "msvc",
        "foo",
        "",
        "gnueabihf",
    ];
    let (mut random, mut compared) = (Random::dealt(), 0);
    while compared < support::cases(80, 200) {
        let count = 1 + random.below(5);
        let words: Vec<&str> = (0..count).map(|_| *random.pick(&WORDS)).collect();
        let Ok(ours) = Triple::parse(&words.join("-")) else {
            continue;
        };
        let mut command = Command::new(&clang);
        command
            .arg(format!("--target={}", ours.as_str()))
            .arg("-print-target-triple");
        // It prints the triple and then refuses the one that it cannot compile for.
        let theirs = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(!theirs.is_empty(), "{command:?}");
        if theirs.contains("-hurd-") {
            continue;
        }
        assert_eq!(ours.to_string(), theirs.trim(), "{}", ours.as_str());
        compared += 1;
    }
}

/// What a list of LLVM's says about processors of a device.
struct List {
    word: &'static str,
    release: LlvmRelease,
    names: &'static [&'static str],
    arguments: &'static [&'static str],
}

const LISTS: [List; 7] = [
    List {
        word: "llvm22",
        release: LlvmRelease::V22,
        names: &["clang"],
        arguments: &["--target=amdgcn-amd-amdhsa", "-print-supported-cpus"],
    },
    List {
        word: "llvm22",
        release: LlvmRelease::V22,
        names: &["clang"],
        arguments: &["--target=nvptx64-nvidia-cuda", "-print-supported-cpus"],
    },
    List {
        word: "llvm22",
        release: LlvmRelease::V22,
        names: &["llc"],
        arguments: &["-mtriple=amdgcn", "-mattr=help"],
    },
    List {
        word: "llvm22",
        release: LlvmRelease::V22,
        names: &["llc"],
        arguments: &["-mtriple=r600", "-mattr=help"],
    },
    List {
        word: "llvm19",
        release: LlvmRelease::V19,
        names: &["clang"],
        arguments: &["--target=nvptx64-nvidia-cuda", "-print-supported-cpus"],
    },
    List {
        word: "llvm19",
        release: LlvmRelease::V19,
        names: &["llc"],
        arguments: &["-mtriple=amdgcn", "-mattr=help"],
    },
    List {
        word: "llvm19",
        release: LlvmRelease::V19,
        names: &["llc"],
        arguments: &["-mtriple=r600", "-mattr=help"],
    },
];

#[test]
fn lists_the_processors_that_compilers_list() {
    for list in LISTS {
        let Some(program) = tool(list.word, list.names) else {
            continue;
        };
        let output = Command::new(program).args(list.arguments).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let lines = text
            .lines()
            .skip_while(|line| !line.starts_with("Available CPUs"))
            .take_while(|line| !line.starts_with("Available features"));
        let theirs: BTreeSet<&str> = lines
            .filter(|line| line.starts_with([' ', '\t']))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert!(theirs.len() > 15, "{:?}: {text}", list.arguments);
        let device = match list.arguments[0] {
            triple if triple.contains("amdgcn") => Device::Amdgcn,
            triple if triple.contains("r600") => Device::R600,
            _ => Device::Nvptx,
        };
        // Names of no device in particular, of which the table says the same.
        let named = |name: &str| name.starts_with("generic");
        for name in &theirs {
            let row = Processor::find(name).unwrap_or_else(|| panic!("no row for {name}"));
            assert!(row.device() == device || named(name), "{name}");
        }
        // Other names are not in every list; the compiler may be older than the bundler's table of
        // r600, and it knows `f` variants that the bundler of its release does not.
        for row in Processor::all().filter(|row| row.device() == device) {
            let known = row.known_to(list.release) || device == Device::R600;
            let variant = row.name().ends_with('f');
            let listed = theirs.contains(row.name());
            assert!(listed == known || (listed && variant), "{}", row.name());
        }
    }
}

/// Every processor of AMD, with each setting of its features, in the ELF header that clang writes.
#[test]
fn reads_targets_from_elf_headers_as_clang_writes_them() {
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("empty.o");
    let processors = Processor::all()
        .filter(|row| row.device() == Device::Amdgcn && row.known_to(LlvmRelease::V22));
    let mut count = 0;
    for row in support::share(processors, 0, 3) {
        let mut target_ids = vec![row.name().to_owned()];
        for feature in row.features() {
            for id in target_ids.clone() {
                target_ids.extend(["-", "+"].map(|setting| format!("{id}:{feature}{setting}")));
            }
        }
        for id in target_ids {
            support::run(
                Command::new(&clang)
                    .arg(format!("-mcpu={id}"))
                    .args(["--target=amdgcn-amd-amdhsa", "-x", "assembler", "/dev/null"])
                    .args(["-c", "-o"])
                    .arg(&object),
            );
            let header = fs::read(&object).unwrap();
            let machine = u16::from_le_bytes([header[0x12], header[0x13]]);
            let flags = u32::from_le_bytes(header[0x30..0x34].try_into().unwrap());
            assert_eq!(target_id_of(machine, flags, header[8]), Some(id));
            assert_eq!(
                processor_of(machine, flags, header[8]).as_deref(),
                Some(row.name())
            );
            assert_eq!(
                amd_machine(row.name()),
                Some(flags & 0xff),
                "{}",
                row.name()
            );
            count += 1;
        }
    }
    assert!(count > support::cases(30, 90), "{count}");
}

/// Whether the bundler of the release takes the name in a target, told from what it writes.
#[test]
fn knows_the_names_that_the_bundler_knows() {
    for (word, release) in [("llvm19", LlvmRelease::V19), ("llvm22", LlvmRelease::V22)] {
        let Some(bundler) = tool(word, &["clang-offload-bundler"]) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let names = Processor::all().flat_map(|row| [&[row.name()], row.other_names()].concat());
        // Release 19 looks at the last word only.
        let names = names.filter(|name| release != LlvmRelease::V19 || !name.contains('-'));
        let names: Vec<&str> = names.collect();
        let targets = names
            .iter()
            .map(|name| format!("hip-amdgcn-amd-amdhsa--{name}"));
        let targets: Vec<String> = targets.collect();
        let given: Vec<&str> = targets.iter().map(String::as_str).collect();
        let theirs = written(&bundler, folder.path(), &given).unwrap();
        assert_eq!(theirs.len(), names.len());
        for ((name, target), theirs) in names.iter().zip(&targets).zip(&theirs) {
            let row = Processor::find(name).unwrap();
            let known = row.name() == *name && row.known_to(release);
            assert_eq!(theirs == target, known, "{word}: {name}: {theirs}");
        }
    }
}

/// The IDs that the bundler writes for targets, or what it says.
fn written(bundler: &Path, folder: &Path, targets: &[&str]) -> Result<Vec<String>, String> {
    let (input, output) = (folder.join("in"), folder.join("out"));
    fs::write(&input, "").unwrap();
    let mut command = Command::new(bundler);
    command
        .arg("-type=bc")
        .arg(format!("-targets={}", targets.join(",")));
    for _ in targets {
        command.arg("-input").arg(&input);
    }
    let theirs = command.arg("-output").arg(&output).output().unwrap();
    if !theirs.status.success() {
        return Err(String::from_utf8(theirs.stderr).unwrap());
    }
    let bytes = fs::read(&output).unwrap();
    let bundle = Bundle::parse(bytes.as_slice(), 0, bytes.len() as u64).unwrap();
    Ok(bundle.entries.into_iter().map(|entry| entry.id).collect())
}

#[test]
fn allows_the_features_that_clang_allows() {
    for (word, release) in [("llvm19", LlvmRelease::V19), ("llvm22", LlvmRelease::V22)] {
        let Some(clang) = tool(word, &["clang"]) else {
            continue;
        };
        let rows = Processor::all().filter(|row| row.device() == Device::Amdgcn);
        let rows = rows.filter(|row| row.known_to(release));
        // A third of them: neighbors have the same features.
        for row in support::share(rows, usize::from(word == "llvm19"), 3) {
            for feature in ["sramecc", "xnack"] {
                let mut command = Command::new(&clang);
                command
                    .args([
                        "--target=amdgcn-amd-amdhsa",
                        "-nogpulib",
                        "-xc",
                        "-c",
                        "-###",
                    ])
                    .arg(format!("-mcpu={}:{feature}+", row.name()))
                    .arg("/dev/null");
                let error = String::from_utf8(command.output().unwrap().stderr).unwrap();
                let refused = error.contains("invalid target ID");
                assert_eq!(refused, !row.features().contains(&feature), "{command:?}");
            }
        }
    }
}

/// How many random cases are compared in each test.
fn case_count() -> usize {
    support::cases(20, 80)
}

/// A target whose processor the bundler knows, for it takes all others for the same.
fn target(random: &mut Random, processors: &[&str]) -> String {
    const TRIPLES: [&str; 16] = [
        "amdgcn-amd-amdhsa-",
        "amdgcn-amd-amdhsa-",
        "amdgcn-amd-amdhsa-unknown",
        "amdgcn-amd-amdhsa1.0-",
        "amdgcn-foo-amdhsa-",
        "amdgcn-unknown-amdhsa-",
        "amdgcn-mesa-mesa3d-",
        "r600-amd-amdhsa-",
        "spirv64-amd-amdhsa-",
        "nvptx64-nvidia-cuda-",
        "x86_64-unknown-linux-gnu",
        "amd64-unknown-linux-gnuelf",
        "armv7-unknown-linux-gnueabi",
        "thumbv7a-unknown-linux5.1-gnueabi",
        "arm64-apple-macosx11-gnu",
        "aarch64-apple-macosx-macabi",
    ];
    const FEATURES: [&str; 12] = [
        "",
        "",
        "",
        ":",
        ":xnack+",
        ":xnack-",
        ":xnack+:",
        ":sramecc+",
        ":sramecc+:xnack+",
        ":xnack+:sramecc+",
        ":sramecc-:xnack+",
        ":bogus+",
    ];
    let kind = random.pick(&["host", "openmp", "hip", "hip", "hipv4"]);
    let triple = random.pick(&TRIPLES);
    let processor = random.pick(processors);
    if processor.is_empty() {
        format!("{kind}-{triple}-")
    } else {
        format!("{kind}-{triple}-{processor}{}", random.pick(&FEATURES))
    }
}

#[test]
fn serves_where_the_bundler_finds_an_entry() {
    let Some(bundler) = tool("llvm22", &["clang-offload-bundler"]) else {
        return;
    };
    const PROCESSORS: [&str; 10] = [
        "gfx906",
        "gfx906",
        "gfx906",
        "gfx1030",
        "gfx9-generic",
        "gfx1250",
        "generic",
        "amdgcnspirv",
        "sm_70",
        "",
    ];
    let mut random = Random::dealt();
    let folder = tempfile::tempdir().unwrap();
    let [bundle, image] = ["out", "image"].map(|name| folder.path().join(name));
    let mut served = 0;
    for _ in 0..case_count() {
        let entry = target(&mut random, &PROCESSORS);
        // Where the host is needed, it comes second; nobody asks for this one.
        let mut targets = vec![entry.as_str()];
        if entry.starts_with("openmp") {
            targets.push("host-s390x-ibm-linux-gnu");
        }
        let stored = written(&bundler, folder.path(), &targets)
            .unwrap()
            .swap_remove(0);
        for _ in 0..4 {
            // Half of them close to the entry.
            let wanted = if random.below(2) == 0 && !entry.ends_with('-') {
                let feature = random.pick(&["", "", ":xnack+", ":sramecc+:xnack+", ":xnack-"]);
                format!("{entry}{feature}").replace("::", ":")
            } else {
                target(&mut random, &PROCESSORS)
            };
            let rule = *random.pick(&[KindRule::SameRuntime, KindRule::HipAndOpenmp]);
            let mut command = Command::new(&bundler);
            command
                .args(["-unbundle", "-type=bc"])
                .arg(format!("-targets={wanted}"))
                .arg("-input")
                .arg(&bundle)
                .arg("-output")
                .arg(&image)
                .args((rule == KindRule::HipAndOpenmp).then_some("-hip-openmp-compatible"));
            let theirs = command.output().unwrap();
            // LLVM 22 reads the features of target IDs that have none (`gfx906:xnack+:xnack+`), and may be killed: no answer.
            if theirs.status.code().is_none() {
                continue;
            }
            let error = String::from_utf8(theirs.stderr).unwrap();
            assert!(
                theirs.status.success() || error.contains("Can't find bundles"),
                "{error}"
            );
            let ours = EntryId::parse(&stored)
                .unwrap()
                .serves(&EntryId::parse_target(&wanted).unwrap(), rule);
            assert_eq!(
                ours,
                theirs.status.success(),
                "{stored} for {wanted}, {rule:?}"
            );
            served += usize::from(ours);
        }
    }
    random.expect_every_choice();
    println!("llvm22: {} pairs, {served} served", case_count() * 4);
    assert!(served > case_count() / 4, "{served}");
}

#[test]
fn finds_the_conflict_that_the_bundler_reports() {
    let Some(bundler) = tool("llvm22", &["clang-offload-bundler"]) else {
        return;
    };
    let mut random = Random::dealt();
    let (mut reported, mut silent) = (0, 0);
    for _ in 0..2 * case_count() {
        let count = 2 + random.below(5);
        let targets: BTreeSet<String> = (0..count)
            .map(|_| {
                let kind = random.pick(&["hip", "hipv4"]);
                let environment = random.pick(&["", "", "unknown"]);
                let processor = random.pick(&["gfx906", "gfx9-4-generic"]);
                let features = random.pick(&[
                    "",
                    ":xnack+",
                    ":xnack-",
                    ":sramecc+",
                    ":sramecc-:xnack+",
                    ":xnack+:sramecc+",
                    ":foo+",
                ]);
                format!("{kind}-amdgcn-amd-amdhsa-{environment}-{processor}{features}")
            })
            .collect();
        let mut targets: Vec<String> = targets.into_iter().collect();
        let by = random.any_below(targets.len() as u64) as usize;
        targets.rotate_left(by);
        let mut command = Command::new(&bundler);
        command.args(["-type=bc", "-unbundle", "-input=/dev/null"]);
        command.arg(format!("-targets={}", targets.join(",")));
        command.args(targets.iter().map(|_| "-output=/dev/null"));
        let theirs = String::from_utf8(command.output().unwrap().stderr).unwrap();
        let ids: Vec<EntryId> = targets
            .iter()
            .map(|target| EntryId::parse_target(target).unwrap())
            .collect();
        let ours = conflict(&ids, ConflictScope::KindAndTriple);
        let ours = ours.map(|(first, later)| {
            let [first, later] = [first, later].map(|index| ids[index].as_str());
            (
                first,
                later,
                format!("conflicting targets: '{first}' and '{later}'"),
            )
        });
        if theirs.contains("conflicting targets") {
            let (_, _, message) = ours.unwrap_or_else(|| panic!("{targets:?}: {theirs}"));
            assert!(theirs.contains(&message), "{message} is not {theirs}");
            reported += 1;
        } else if let Some((first, later, _)) = ours {
            // As the main branch: only the first sets a feature that the later one leaves open.
            let set = |id: &str, feature| id.contains(&format!(":{feature}"));
            let more = |feature| set(first, feature) && !set(later, feature);
            let less = |feature| set(later, feature) && !set(first, feature);
            let features = ["xnack", "sramecc"];
            assert!(features.into_iter().any(more) && !features.into_iter().any(less));
            silent += 1;
        }
    }
    random.expect_every_choice();
    println!(
        "llvm22: {reported} conflicts reported, {silent} not, of {}",
        2 * case_count()
    );
    assert!(reported > case_count() / 4, "{reported}");
}

/// Any words in any number.
fn words(random: &mut Random) -> String {
    const WORDS: [&str; 26] = [
        "", "", "host", "hip", "openmp", "x86_64", "amdgcn", "nvptx64", "armv7", "pc", "amd",
        "nvidia", "unknown", "linux", "amdhsa", "cuda", "windows", "gnu", "foo", "gfx906", "gfx9",
        "4", "generic", "gfx950", "sm_70", "native",
    ];
    const STARTS: [&str; 5] = [
        "hip-amdgcn-amd-amdhsa-",
        "hip-amdgcn-amd-",
        "hipv4-",
        "host-x86_64-",
        "",
    ];
    let start = random.pick(&STARTS);
    let words: Vec<&str> = (0..2 + random.below(4))
        .map(|_| *random.pick(&WORDS))
        .collect();
    let features = random.pick(&["", "", "", ":xnack+", ":xnack-"]);
    format!("{start}{}{features}", words.join("-"))
}

#[test]
fn takes_and_rewrites_targets_as_the_bundler_of_the_release() {
    for (word, release) in support::share(
        [("llvm19", LlvmRelease::V19), ("llvm22", LlvmRelease::V22)],
        1,
        2,
    ) {
        let Some(bundler) = tool(word, &["clang-offload-bundler"]) else {
            continue;
        };
        let mut random = Random::dealt();
        let folder = tempfile::tempdir().unwrap();
        let (mut taken, mut refused) = (0, 0);
        while taken < 2 * case_count() || refused < case_count() {
            let target = words(&mut random);
            let ours = EntryId::parse_target_for(&target, release);
            // Where the host is needed, it comes first.
            let host = target
                .starts_with("openmp")
                .then_some("host-s390x-ibm-linux-gnu");
            let targets: Vec<&str> = host.into_iter().chain([target.as_str()]).collect();
            let theirs = match written(&bundler, folder.path(), &targets) {
                Ok(mut theirs) => theirs.pop().unwrap(),
                Err(theirs) => {
                    let text = message(&ours).unwrap_or_else(|| panic!("{ours:?}, but {theirs}"));
                    assert!(theirs.contains(&text), "{target}: {theirs}{text}");
                    refused += 1;
                    continue;
                }
            };
            // What 22 takes for an environment.
            let features = target
                .split_once(':')
                .map(|(before, _)| before.matches('-').count());
            if release == LlvmRelease::V22 && features.is_some_and(|dashes| dashes < 5) {
                assert!(
                    matches!(ours, Err(EntryIdError::Fields { .. })),
                    "{target}: {ours:?}"
                );
                continue;
            }
            // An architecture with features; 19 forgets them.
            if matches!(ours, Err(EntryIdError::Character { char: ':', .. })) {
                assert!(features < Some(3), "{target}: {ours:?}");
                continue;
            }
            let ours = ours.unwrap();
            // What 22 forgets.
            if release == LlvmRelease::V22
                && (ours.unknown_processor().is_some() || ours.target_id().starts_with(':'))
            {
                continue;
            }
            assert_eq!(ours.display_for(release), theirs, "{target}");
            taken += 1;
        }
        random.expect_every_choice();
        println!("{word}: {taken} taken, {refused} refused");
    }
}

/// What the bundler says about a target.
fn message(ours: &Result<EntryId, EntryIdError>) -> Option<String> {
    match ours {
        Err(EntryIdError::Fields { .. }) => Some("Targets need to follow the format".to_owned()),
        Err(EntryIdError::Target { text, kind, triple }) => {
            let kind = kind
                .as_ref()
                .map(|kind| format!(", unknown offloading kind '{kind}'"));
            let triple = triple
                .as_ref()
                .map(|triple| format!(", unknown target triple '{triple}'"));
            let [kind, triple] = [kind, triple].map(Option::unwrap_or_default);
            Some(format!("error: invalid target '{text}'{kind}{triple}\n"))
        }
        _ => None,
    }
}
