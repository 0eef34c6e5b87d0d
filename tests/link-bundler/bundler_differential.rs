//! The bundler beside LLVM's: generated command lines, the same for both, and everything that can
//! be seen is compared: exit status, standard error, standard output, every file.
//!
//! What may differ is a [`Key`], each with its row in `docs/differences.md`. The seed and the counts are
//! printed; `OFFLOAD_BUNDLER_CASES` sets how many rounds there are for each type; there are more with
//! `OFFLOAD_TEST_ALL=1`.

use crate::support;

use std::fs;
use std::process::Command;

use offload_formats::format::compressed_bundle::CompressedBundle;
use support::beside::{Outcome, Pair};
use support::{Random, tool};

/// Rounds for all types of a test without `OFFLOAD_TEST_ALL`: so many that each choice is in one of them.
const FEW: usize = 24;

/// Rounds for each of `types` types; each bundles, lists and unbundles.
fn rounds(word: &str, types: usize) -> usize {
    let given = std::env::var("OFFLOAD_BUNDLER_CASES").ok();
    let default = match word {
        "llvm22" => support::cases(FEW.div_ceil(types), 100),
        _ => support::cases(FEW.div_ceil(types), 25),
    };
    given.map_or(default, |count| count.parse().unwrap())
}

/// A difference that is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Compressed bytes depend on the version of zstd, and speeds on the day.
    Compressed,
    /// IDs are listed in the order of the file.
    ListOrder,
    /// A failure leaves no output.
    NoOutputOnFailure,
    /// What is wrong is said with more words.
    Hint,
    /// Damage is an error.
    Damage,
}

const NAME: &str = "clang-offload-bundler";

fn pair(word: &'static str) -> Option<Pair<Key>> {
    Pair::new(word, NAME, env!("CARGO_BIN_EXE_offload-bundler"), explain)
}

/// Whether two outcomes are the same but for keys, which are collected.
fn explain(theirs: &Outcome, ours: &Outcome, keys: &mut Vec<Key>) -> bool {
    if theirs.status.is_none() || theirs.err.contains("LLVM ERROR") {
        // It crashed: whatever is wrong with the input is an error here.
        keys.push(Key::Damage);
        return ours.status == Some(1);
    }
    if theirs.status != ours.status {
        return false;
    }
    if !same_out(theirs, ours, keys) || !same_err(&theirs.err, &ours.err, keys) {
        return false;
    }
    if theirs.status != Some(0) {
        // Files that LLVM left behind may be missing, nothing else.
        let fewer = ours
            .files
            .iter()
            .all(|(name, bytes)| theirs.files.get(name) == Some(bytes));
        if theirs.files != ours.files {
            keys.push(Key::NoOutputOnFailure);
        }
        return fewer;
    }
    theirs.files.keys().eq(ours.files.keys())
        && theirs.files.iter().all(|(name, bytes)| {
            let mine = &ours.files[name];
            mine == bytes || same_uncompressed(bytes, mine, keys)
        })
}

fn same_uncompressed(theirs: &[u8], ours: &[u8], keys: &mut Vec<Key>) -> bool {
    let open = |bytes: &[u8]| {
        let parsed = CompressedBundle::parse(bytes, 0, bytes.len() as u64).ok()?;
        let mut bundle = Vec::new();
        parsed.decompress_to(bytes, &mut bundle).ok()?;
        Some((parsed.version, parsed.method, bundle))
    };
    let (theirs, ours) = (open(theirs), open(ours));
    keys.push(Key::Compressed);
    theirs.is_some() && theirs == ours
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

fn same_out(theirs: &Outcome, ours: &Outcome, keys: &mut Vec<Key>) -> bool {
    if theirs.out == ours.out {
        return true;
    }
    if theirs.out.starts_with(b"CCOB") {
        return same_uncompressed(&theirs.out, &ours.out, keys);
    }
    keys.push(Key::ListOrder);
    lines(&theirs.out) == lines(&ours.out)
}

fn same_err(theirs: &str, ours: &str, keys: &mut Vec<Key>) -> bool {
    if theirs == ours {
        return true;
    }
    // Sizes and speeds of what is compressed.
    let plain = |text: &str| -> Vec<String> {
        let measured = [
            " speed: ",
            "after compression: ",
            "before decompression: ",
            "rate: ",
            "ratio: ",
            "Total file size",
        ];
        let lines = text.lines().filter(|line| !line.starts_with("hint: "));
        let lines = lines.map(
            |line| match measured.iter().find_map(|start| line.find(start)) {
                Some(place) => line[..place].to_owned(),
                None => line.to_owned(),
            },
        );
        lines.collect()
    };
    let (a, b) = (plain(theirs), plain(ours));
    let kept = ours
        .lines()
        .filter(|line| line.starts_with("hint: "))
        .count();
    keys.push(if kept > 0 { Key::Hint } else { Key::Compressed });
    // Of a text that says what is wrong with a file, LLVM's is a part.
    a == b
}

/// Targets that LLVM 19 and 22 read the same, each compatible with no other of the list.
const DEVICES: [&str; 12] = [
    "hip-amdgcn-amd-amdhsa--gfx906",
    "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
    "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack+",
    "hipv4-amdgcn-amd-amdhsa--gfx1030",
    "hipv4-amdgcn-amd-amdhsa--gfx1100",
    "hipv4-amdgcn-amd-amdhsa--gfx942:xnack+",
    "openmp-amdgcn-amd-amdhsa--gfx908",
    "openmp-amdgcn-amd-amdhsa--gfx90c:xnack-",
    "openmp-nvptx64-nvidia-cuda-unknown-sm_80",
    "openmp-nvptx64-nvidia-cuda-unknown-sm_70",
    "hip-spirv64-amd-amdhsa--amdgcnspirv",
    "openmp-x86_64-pc-linux-gnu-",
];
const HOSTS: [&str; 3] = [
    "host-x86_64-unknown-linux-gnu-",
    "host-aarch64-unknown-linux-gnu-",
    "host-powerpc64le-ibm-linux-gnu-",
];
const TYPES: [&str; 11] = [
    "i", "ii", "cui", "hipi", "d", "ll", "bc", "s", "o", "gch", "ast",
];

/// What is asked for besides what is there.
const ABSENT: [&str; 4] = [
    "hip-amdgcn-amd-amdhsa--gfx803",
    "openmp-amdgcn-amd-amdhsa--gfx1201",
    "openmp-nvptx64-nvidia-cuda-unknown-sm_35",
    "hipv4-amdgcn-amd-amdhsa--gfx1101",
];

/// Several of `choices`, each once, in any order.
#[track_caller]
fn some<'a>(random: &mut Random, choices: &[&'a str], most: u64) -> Vec<&'a str> {
    let mut taken: Vec<&str> = Vec::new();
    for _ in 0..random.any_below(most + 1) {
        let choice = *random.pick(choices);
        if !taken.contains(&choice) {
            taken.push(choice);
        }
    }
    taken
}

/// Written in either of the ways that mean the same.
fn option(random: &mut Random, name: &str, value: &str) -> Vec<String> {
    match random.below(4) {
        0 => vec![format!("-{name}={value}")],
        1 => vec![format!("--{name}={value}")],
        2 => vec![format!("-{name}"), value.to_owned()],
        _ => vec![format!("--{name}"), value.to_owned()],
    }
}

/// The files of an option, in its new form or the old one.
fn files(random: &mut Random, name: &str, files: &[String]) -> Vec<String> {
    if !files.is_empty() && random.below(4) == 0 {
        return option(random, &format!("{name}s"), &files.join(","));
    }
    files
        .iter()
        .flat_map(|file| option(random, name, file))
        .collect()
}

fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// Bundles, lists and unbundles files of types, over and over.
fn campaign(word: &'static str, types: &[&str], hosts: &[Vec<u8>]) {
    let Some(mut pair) = pair(word) else {
        return;
    };
    let mut random = Random::dealt();
    for file_type in types {
        for _ in 0..rounds(word, types.len()) {
            round(&mut pair, &mut random, file_type, hosts);
            pair.clear();
        }
    }
    random.expect_every_choice();
    pair.report();
}

fn round(pair: &mut Pair<Key>, random: &mut Random, file_type: &str, hosts: &[Vec<u8>]) {
    let mut targets = some(random, &DEVICES, 5);
    let only_hip = targets.iter().all(|target| target.starts_with("hip"));
    let chosen = random.below(3) > 0;
    let host = !only_hip || targets.is_empty() || chosen;
    if host {
        let place = random.any_below(targets.len() as u64 + 1) as usize;
        targets.insert(place, *random.pick(&HOSTS));
    }
    let mut inputs = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        let name = format!("in{index}");
        let is_host = target.starts_with("host");
        let bytes = match random.below(6) {
            0 => Vec::new(),
            _ if is_host && !hosts.is_empty() => random.pick(hosts).clone(),
            1 => b"line\nand no feed".to_vec(),
            2 => b"__CLANG_OFFLOAD_BUNDLE__".to_vec(),
            _ => random.bytes(6000),
        };
        pair.write(&name, &bytes);
        inputs.push(name);
    }
    let mut groups = vec![
        option(random, "type", file_type),
        option(random, "targets", &targets.join(",")),
        files(random, "input", &inputs),
        option(random, "output", "out"),
    ];
    let mut variables = Vec::new();
    // A third of them, each alignment once.
    let aligns = ["1", "3", "8", "0x10", "010", "4096"];
    if let Some(align) = aligns.get(random.below(18) as usize) {
        groups.push(option(random, "bundle-align", align));
    }
    match random.below(6) {
        0 => groups.push(vec!["-compress".into()]),
        1 => {
            groups.push(vec!["--compress=1".into()]);
            groups.push(option(random, "compression-level", "7"));
        }
        2 => variables.push(("OFFLOAD_BUNDLER_COMPRESS", "1")),
        _ => {}
    }
    let versions = ["2", "3", "9", "x"];
    let version = versions.get(random.below(16) as usize);
    if let Some(version) = version.filter(|_| pair.release == "22") {
        variables.push(("COMPRESSED_BUNDLE_FORMAT_VERSION", *version));
    }
    // LLVM 19 prints how long it took too; and of an object, which it does not compress, LLVM says
    // how well it compressed nothing.
    let verbose = random.below(4) == 0 && pair.release == "22" && hosts.is_empty();
    let verbose = vec![format!("-verbose={verbose}")];
    groups.push(verbose.clone());
    random.shuffle(&mut groups);
    let args = groups.concat();
    let what = |direction: &str| format!("{file_type} {direction}");
    let theirs = pair.compare(&what("bundle"), &strs(&args), &variables);
    if theirs.status != Some(0) {
        return;
    }
    // Of the bytes that LLVM wrote.
    let bundle = &theirs.files["out"];
    pair.clear();
    pair.write("bundle", bundle);
    let list = [
        option(random, "type", file_type),
        option(random, "input", "bundle"),
        vec!["-list".into()],
        verbose.clone(),
    ];
    pair.compare(&what("list"), &strs(&list.concat()), &variables);

    let mut wanted = targets.clone();
    random.shuffle(&mut wanted);
    wanted.truncate(random.below(6) as usize);
    if random.below(3) == 0 {
        wanted.extend(some(random, &ABSENT, 3));
    }
    let host = HOSTS.get(random.below(18) as usize);
    let has_host = wanted.iter().any(|target| target.starts_with("host"));
    wanted.extend(host.filter(|_| !has_host));
    if wanted.is_empty() {
        wanted.push(targets[0]);
    }
    let outputs: Vec<String> = (0..wanted.len()).map(|index| format!("o{index}")).collect();
    let mut groups = vec![
        option(random, "type", file_type),
        option(random, "targets", &wanted.join(",")),
        option(random, "input", "bundle"),
        files(random, "output", &outputs),
        vec!["-unbundle".into()],
        verbose,
    ];
    if random.below(2) == 0 {
        groups.push(vec!["--allow-missing-bundles".into()]);
    }
    if random.below(6) == 0 {
        groups.push(vec!["-hip-openmp-compatible".into()]);
    }
    random.shuffle(&mut groups);
    pair.compare(&what("unbundle"), &strs(&groups.concat()), &variables);
}

macro_rules! campaigns {
    ($($(#[$ignore:meta])? $name:ident: $word:literal $types:expr;)+) => {
        $(
            #[test]
            $(#[$ignore])?
            fn $name() {
                campaign($word, &$types, &[]);
            }
        )+
    };
}

campaigns! {
    agrees_with_llvm_22_about_preprocessed_text: "llvm22" ["i", "ii", "cui", "hipi"];
    agrees_with_llvm_22_about_other_text: "llvm22" ["d", "ll", "s"];
    agrees_with_llvm_22_about_binary_bundles: "llvm22" ["bc", "gch", "ast"];
    #[ignore = "`make test-all`: as LLVM 22, beside LLVM 19"]
    agrees_with_llvm_19: "llvm19" TYPES;
}

/// Objects of `clang`, for the host of an object bundle.
fn host_objects(word: &'static str) -> Option<Vec<Vec<u8>>> {
    let clang = tool(word, &["clang"])?;
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("k.c");
    fs::write(
        &source,
        "int a[100]; static int b = 3; __thread int c; const char *d = \"d\";\n\
         int f(int x) { return x + b; } inline int g(void) { return f(a[1]); }\n\
         __attribute__((weak, section(\".own\"))) int h(void) { return c + d[0]; }\n",
    )
    .unwrap();
    let mut objects = Vec::new();
    for (triple, more) in [
        ("x86_64-unknown-linux-gnu", "-O2"),
        ("x86_64-unknown-linux-gnu", "-ffunction-sections"),
        ("x86_64-unknown-linux-gnu", "-g"),
        ("aarch64-unknown-linux-gnu", "-O0"),
        ("i386-unknown-linux-gnu", "-O1"),
        ("powerpc64-unknown-linux-gnu", "-O1"),
        ("x86_64-pc-windows-msvc", "-O1"),
    ] {
        // The string table of COFF objects is laid out as LLVM 22 does it.
        if word == "llvm19" && triple.contains("windows") {
            continue;
        }
        let object = folder.path().join("k.o");
        support::run(
            Command::new(&clang)
                .arg(format!("--target={triple}"))
                .args([more, "-c", "-o"])
                .args([&object, &source]),
        );
        objects.push(fs::read(object).unwrap());
    }
    // The compiler of the machine and its assembler, whose layout is another.
    let object = folder.path().join("gas.o");
    if support::program("cc").is_some() {
        support::run(
            Command::new("cc")
                .args(["-g", "-c", "-o"])
                .args([&object, &source]),
        );
        objects.push(fs::read(object).unwrap());
    }
    Some(objects)
}

#[test]
fn agrees_with_llvm_22_about_objects() {
    campaign("llvm22", &["o"], &[]);
    if let Some(hosts) = host_objects("llvm22") {
        campaign("llvm22", &["o"], &hosts);
    }
}

#[test]
#[ignore = "`make test-all`: as LLVM 22, beside LLVM 19"]
fn agrees_with_llvm_19_about_objects() {
    if let Some(hosts) = host_objects("llvm19") {
        campaign("llvm19", &["o"], &hosts);
    }
}

/// Command lines that mean nothing, and those that nearly do.
fn failing(word: &'static str) {
    let Some(mut pair) = pair(word) else {
        return;
    };
    let mut random = Random::dealt();
    let host = HOSTS[0];
    let both = format!("{host},{}", DEVICES[0]);
    let options: Vec<Vec<String>> = [
        &["-type=bc"][..],
        &["-type", "o"],
        &["--type=a"],
        &["-type=ll"],
        &["-type=BC"],
        &["-type="],
        &["-type"],
        &["-targets", &both],
        &["-targets", host],
        &["-targets=hip-amdgcn-amd-amdhsa--gfx90a,hip-amdgcn-amd-amdhsa--gfx90a:xnack+"],
        &["-targets=hxst-powerpcxxle-ibm-linux-gnu"],
        &["-targets=host-powerpcxxle-ibm-linux-gnu"],
        &["-targets=openmp-amdgcn-amd-amdhsa--gfx906"],
        &["-targets=host-x86_64-unknown-linux-gnu,host-x86_64-unknown-linux-gnu"],
        &["-targets="],
        &["-input=in0"],
        &["-input", "in1"],
        &["-input=bundle"],
        &["-input=missing"],
        &["-input=."],
        &["-inputs=in0,in1"],
        &["-inputs=in0,"],
        &["-output=out"],
        &["-output", "out2"],
        &["-output=missing/out"],
        &["-outputs=out,out2"],
        &["-unbundle"],
        &["-unbundle=0"],
        &["--list"],
        &["-list=TRUE"],
        &["-allow-missing-bundles"],
        &["-check-input-archive"],
        &["-hip-openmp-compatible"],
        &["-compress"],
        &["-bundle-align=16"],
        &["-bundle-align=abc"],
        &["-bundle-align=-1"],
        &["-compression-level=9"],
        &["-compression-level=x"],
        &["-list=yes"],
        &["-print-options"],
        &["-h=0"],
        &["extra"],
        &[""],
        &["-"],
        &["@absent"],
        &["@response"],
    ]
    .iter()
    .map(|option| option.iter().map(|word| (*word).to_owned()).collect())
    .collect();
    pair.write("in0", b"host");
    pair.write("in1", b"device");
    pair.write("response", b"-type=bc '-input=in0'  -input in1");
    let bundle = [
        "-type=bc",
        "-targets",
        &both,
        "-input=in0",
        "-input=in1",
        "-output=bundle",
    ];
    pair.compare("set-up", &bundle, &[]);
    for _ in 0..6 * rounds(word, 2) {
        let mut args = Vec::new();
        for _ in 0..1 + random.below(8) {
            args.extend(random.pick(&options).clone());
        }
        pair.compare("command line", &strs(&args), &[]);
        for name in ["out", "out2"] {
            for folder in &pair.folders {
                let _ = fs::remove_file(folder.root().join(name));
            }
        }
        pair.write(
            "bundle",
            &fs::read(pair.folders[0].root().join("bundle")).unwrap(),
        );
    }
    random.expect_every_choice();
    pair.report();
}

#[test]
fn agrees_with_llvm_22_about_command_lines() {
    failing("llvm22");
}

#[test]
#[ignore = "`make test-all`: as LLVM 22, beside LLVM 19"]
fn agrees_with_llvm_19_about_command_lines() {
    failing("llvm19");
}

/// Archives of bundles, of objects with bundles and of other things.
fn archives(word: &'static str) {
    let Some(mut pair) = pair(word) else {
        return;
    };
    let Some(archiver) = tool(word, &["llvm-ar"]) else {
        return;
    };
    let mut random = Random::dealt();
    let hosts = host_objects(word).unwrap_or_default();
    let devices = device_objects(word).unwrap_or_default();
    for _ in 0..2 * rounds(word, 2) {
        let mut members = Vec::new();
        for index in 0..random.below(5) {
            let name = format!("m{index}{}", random.pick(&[".o", ".bc", ".tar.obj", ""]));
            members.push(name.clone());
            if random.below(8) == 0 {
                pair.write(&name, &random.bytes(50));
                continue;
            }
            // For each target at most one image of a member: of several, LLVM's order is its own.
            let mut targets = some(&mut random, &DEVICES, 4);
            targets.insert(0, HOSTS[0]);
            let mut args = vec![
                "-type=o".to_owned(),
                format!("-targets={}", targets.join(",")),
            ];
            for (index, _) in targets.iter().enumerate() {
                let input = format!("in{index}");
                let bytes = match random.below(3) {
                    0 => random.bytes(300),
                    1 if index == 0 => random.pick(&hosts).clone(),
                    _ => random.pick(&devices).clone(),
                };
                pair.write(&input, &bytes);
                args.push(format!("-input={input}"));
            }
            args.push(format!("-output={name}"));
            if random.below(4) == 0 {
                args.push("-compress".into());
            }
            let made = pair.run_theirs(&strs(&args));
            assert_eq!(made.status, Some(0), "{}", made.err);
            pair.write(&name, &made.files[&name]);
        }
        let folder = pair.folders[0].root().to_owned();
        let _ = fs::remove_file(folder.join("lib.a"));
        support::run(
            Command::new(&archiver)
                .current_dir(&folder)
                .arg("rcsD")
                .arg("lib.a")
                .args(&members),
        );
        let archive = fs::read(folder.join("lib.a")).unwrap();
        pair.clear();
        pair.write("lib.a", &archive);
        let mut wanted = some(&mut random, &DEVICES, 4);
        wanted.extend(some(&mut random, &ABSENT, 1));
        if random.below(3) == 0 || wanted.is_empty() {
            wanted.push(HOSTS[0]);
        }
        let mut args = vec![
            "-type=a".to_owned(),
            "-unbundle".to_owned(),
            "-input=lib.a".to_owned(),
            format!("-targets={}", wanted.join(",")),
        ];
        args.extend((0..wanted.len()).map(|index| format!("-output=o{index}.a")));
        for option in [
            "-allow-missing-bundles",
            "-hip-openmp-compatible",
            "-check-input-archive",
        ] {
            if random.below(2) == 0 {
                args.push(option.into());
            }
        }
        pair.compare("a unbundle", &strs(&args), &[]);
        pair.clear();
    }
    random.expect_every_choice();
    pair.report();
}

/// Device images with symbols: bitcode and code objects of `clang`.
fn device_objects(word: &'static str) -> Option<Vec<Vec<u8>>> {
    let clang = tool(word, &["clang"])?;
    let folder = tempfile::tempdir().unwrap();
    let (source, object) = (folder.path().join("k.c"), folder.path().join("k.o"));
    fs::write(
        &source,
        "int a[100]; static int b = 3; extern int e;\n\
         int f(int x) { return x + b + e; } __attribute__((weak)) int h(void) { return 1; }\n",
    )
    .unwrap();
    let mut objects = Vec::new();
    for args in [
        &[
            "--target=amdgcn-amd-amdhsa",
            "-mcpu=gfx906",
            "-nogpulib",
            "-emit-llvm",
        ][..],
        &["--target=amdgcn-amd-amdhsa", "-mcpu=gfx906", "-nogpulib"],
        &["--target=nvptx64-nvidia-cuda", "-emit-llvm"],
    ] {
        support::run(
            Command::new(&clang)
                .args(args)
                .args(["-O1", "-c", "-o"])
                .args([&object, &source]),
        );
        objects.push(fs::read(&object).unwrap());
    }
    Some(objects)
}

#[test]
fn agrees_with_llvm_22_about_archives() {
    archives("llvm22");
}

#[test]
#[ignore = "`make test-all`: as LLVM 22, beside LLVM 19"]
fn agrees_with_llvm_19_about_archives() {
    archives("llvm19");
}
