use super::*;

fn id(text: &str) -> EntryId {
    EntryId::parse(text).unwrap()
}

/// Left: given to `-targets` of `clang-offload-bundler` 22.1; right: found in its output.
const LLVM: [(&str, &str); 34] = [
    (
        "hip-amdgcn-amd-amdhsa--gfx906",
        "hip-amdgcn-amd-amdhsa--gfx906",
    ),
    (
        "hip-amdgcn-amd-amdhsa-unknown-gfx906",
        "hip-amdgcn-amd-amdhsa--gfx906",
    ),
    (
        "hip-amdgcn-amd-amdhsa-llvm-gfx906",
        "hip-amdgcn-amd-amdhsa--gfx906",
    ),
    ("hip-amdgcn-amd-amdhsa-gfx906", "hip-amdgcn-amd-amdhsa--"),
    ("hip-amdgcn-amd-amdhsa-", "hip-amdgcn-amd-amdhsa--"),
    ("hip-amdgcn-amd-amdhsa--", "hip-amdgcn-amd-amdhsa--"),
    (
        "hip-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc+",
        "hip-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc+",
    ),
    (
        "hip-amdgcn-amd-amdhsa--gfx906:bogus+",
        "hip-amdgcn-amd-amdhsa--gfx906:bogus+",
    ),
    (
        "hip-amdgcn-amd-amdhsa--gfx906:",
        "hip-amdgcn-amd-amdhsa--gfx906:",
    ),
    (
        "hip-amdgcn-amd-amdhsa--gfx9-4-generic:xnack+",
        "hip-amdgcn-amd-amdhsa--gfx9-4-generic:xnack+",
    ),
    (
        "hip-spirv64-amd-amdhsa-unknown-amdgcnspirv",
        "hip-spirv64-amd-amdhsa--amdgcnspirv",
    ),
    (
        "hip-amdgcn-mesa-mesa3d--gfx906",
        "hip-amdgcn-mesa-mesa3d-unknown-gfx906",
    ),
    (
        "hip-amdgcn-amd-amdpal--gfx906",
        "hip-amdgcn-amd-amdpal-unknown-gfx906",
    ),
    (
        "hip-amdgcn--amdhsa--gfx906",
        "hip-amdgcn-unknown-amdhsa--gfx906",
    ),
    (
        "hip-amdgcn-amdhsa--gfx906",
        "hip-amdgcn-unknown-amdhsa-gfx906-",
    ),
    (
        "hip-spirv64-unknown-unknown--generic",
        "hip-spirv64-unknown-unknown-unknown-generic",
    ),
    (
        "openmp-nvptx64-nvidia-cuda--sm_70",
        "openmp-nvptx64-nvidia-cuda-unknown-sm_70",
    ),
    (
        "openmp-nvptx64-nvidia-cuda-sm_70",
        "openmp-nvptx64-nvidia-cuda-sm_70-",
    ),
    (
        "host-x86_64-unknown-linux-gnu",
        "host-x86_64-unknown-linux-gnu-",
    ),
    (
        "host-x86_64-unknown-linux-gnu-",
        "host-x86_64-unknown-linux-gnu-",
    ),
    ("host-x86_64--linux-gnu", "host-x86_64-unknown-linux-gnu-"),
    ("host-x86_64-linux-gnu-", "host-x86_64-unknown-linux-gnu-"),
    ("host-x86_64-pc-win32-", "host-x86_64-pc-windows-msvc-"),
    ("host-x86_64-w64-mingw32-", "host-x86_64-w64-windows-gnu-"),
    ("host-x86_64-pc-cygwin-", "host-x86_64-pc-windows-cygnus-"),
    (
        "host-arm-linux-androideabi21-",
        "host-arm-unknown-linux-android21-",
    ),
    (
        "host-arm-suse-linux-gnueabi",
        "host-arm-suse-linux-gnueabihf-",
    ),
    (
        "host-arm64-apple-macosx11.0.0-",
        "host-arm64-apple-macosx11.0.0-unknown-",
    ),
    (
        "host-riscv64-unknown-elf-",
        "host-riscv64-unknown-unknown-elf-",
    ),
    ("host-x86_64-none-elf-", "host-x86_64-unknown-none-elf-"),
    ("host-x86_64---", "host-x86_64-unknown-unknown-unknown-"),
    ("host-x86_64-a-b-c", "host-x86_64-a-b-c-"),
    (
        "host-x86_64-unknown-linux-gnu-native",
        "host-x86_64-unknown-linux-gnu-",
    ),
    (
        "host-amd64-unknown-linux-gnu",
        "host-amd64-unknown-linux-gnu-",
    ),
];

#[test]
fn displays_targets_as_llvm_writes_them() {
    for (target, expected) in LLVM {
        let id = EntryId::parse_target(target).unwrap();
        assert_eq!(id.to_string(), expected, "{target}");
    }
}

#[test]
fn reads_what_it_displays_as_equal() {
    // LLVM itself rewrites what it wrote where the vendor was forgotten.
    let kept = |written: &&str| *written != "hip-amdgcn-unknown-amdhsa-gfx906-";
    for written in LLVM
        .map(|(_, written)| written)
        .iter()
        .filter(|written| kept(written))
    {
        assert_eq!(id(written).to_string(), *written);
        let again = EntryId::parse_target(written).unwrap();
        assert_eq!(again.to_string(), *written);
    }
}

#[test]
fn keeps_processors_that_no_table_knows() {
    for text in [
        "hip-amdgcn-amd-amdhsa--gfx9999",
        "hipv4-amdgcn-amd-amdhsa--gfx940",
    ] {
        assert_eq!(id(text).to_string(), text);
        assert_eq!(EntryId::parse_target(text).unwrap().to_string(), text);
    }
    assert_ne!(
        id("hip-amdgcn-amd-amdhsa--gfx9999"),
        id("hip-amdgcn-amd-amdhsa--gfx9998")
    );
}

/// The spellings are those of ROCm 4.3 to 5.3, of LLVM 17 to 19, and of LLVM 20 and newer.
#[test]
fn reads_every_spelling_of_the_host_that_was_ever_shipped() {
    let texts = [
        (
            "host-x86_64-unknown-linux",
            "host-x86_64-unknown-linux-unknown-",
        ),
        (
            "host-x86_64-unknown-linux--",
            "host-x86_64-unknown-linux-unknown-",
        ),
        (
            "host-x86_64-unknown-linux-gnu-",
            "host-x86_64-unknown-linux-gnu-",
        ),
        (
            "host-x86_64-unknown-linux-gnu",
            "host-x86_64-unknown-linux-gnu-",
        ),
    ];
    for (text, displayed) in texts {
        let id = id(text);
        assert_eq!((id.kind(), id.target_id()), (EntryKind::Host, ""), "{text}");
        assert_eq!(id.triple().arch(), "x86_64");
        assert_eq!(id.to_string(), displayed);
    }
    assert_eq!(id(texts[0].0), id(texts[1].0));
    assert_eq!(id(texts[2].0), id(texts[3].0));
    assert_ne!(id(texts[0].0), id(texts[2].0));
}

#[test]
fn reads_devices_of_older_releases() {
    let cases = [
        // Three fields, as up to LLVM 16.
        ("hip-amdgcn-amd-amdhsa-gfx906", "gfx906"),
        (
            "hip-amdgcn-amd-amdhsa-gfx90a:sramecc+:xnack-",
            "gfx90a:sramecc+:xnack-",
        ),
        ("hip-amdgcn-amd-amdhsa", ""),
        // A processor that LLVM 19 did not know; a target that ended in a dash.
        ("hip-amdgcn-amd-amdhsa--gfx999-", "gfx999"),
        ("hip-amdgcn-amd-amdhsa--hip-amdgcn-amd-amdhsa-", ""),
        (
            "hip-amdgcn-amd-amdhsa--gfx9-generic:xnack-",
            "gfx9-generic:xnack-",
        ),
    ];
    for (text, target_id) in cases {
        let id = id(text);
        assert_eq!(id.target_id(), target_id, "{text}");
        let displayed = format!("hip-amdgcn-amd-amdhsa--{target_id}");
        assert_eq!(id.to_string(), displayed);
    }
    let cuda = id("cuda-nvptx64-nvidia-cuda-sm_80");
    assert_eq!((cuda.kind(), cuda.target_id()), (EntryKind::Cuda, "sm_80"));
    assert_eq!(id("sycl-spir64").triple().as_str(), "spir64");
}

#[test]
fn rejects_what_is_no_entry_id() {
    let message = |text| EntryId::parse(text).unwrap_err().to_string();
    let shape = "is not an entry ID; expected `<kind>-<triple>[-<target ID>]`";
    for text in ["", "gfx906", "host-"] {
        assert_eq!(message(text), format!("{text:?} {shape}"));
    }
    assert_eq!(
        message("hipv5-amdgcn-amd-amdhsa--gfx906"),
        "\"hipv5\" is not the kind of an entry ID; expected `host`, `openmp`, `hip`, `hipv4`, \
         `cuda`, `sycl`, `hcc`"
    );
    assert_eq!(
        message("hip-amdgcn-amd-amdhsa--gfx906\r"),
        "'\\r' at offset 0x1d cannot be in an entry ID"
    );
    assert_eq!(
        message("hip-amd(gcn-amd-amdhsa--gfx906"),
        "'(' at offset 0x7 cannot be in an entry ID"
    );
}

#[test]
fn rejects_targets_that_llvm_rejects_and_names_the_missing_dash() {
    let error = |text| EntryId::parse_target(text).unwrap_err();
    let cases = [
        ("hip-amdgcn-amd-amdhsa", Some("hip-amdgcn-amd-amdhsa--")),
        ("host-x86_64-pc-linux", Some("host-x86_64-pc-linux--")),
        (
            "hip-amdgcn-amd-amdhsa-gfx906:xnack+",
            Some("hip-amdgcn-amd-amdhsa--gfx906:xnack+"),
        ),
        ("hip-amdgcn", None),
    ];
    for (text, hint) in cases {
        assert_eq!(
            error(text).to_string(),
            format!(
                "{text:?} has too few fields; expected \
                 `<kind>-<arch>-<vendor>-<os>-<environment>[-<target ID>]`"
            )
        );
        let hint = hint.map(|text| {
            format!("the environment is missing; write `{text}`, with two dashes where it is empty")
        });
        assert_eq!(error(text).hint(), hint);
    }
    // The two errors of `clang-offload-bundler` 22.1 name the same words.
    let kind = || Some("cuda".to_owned());
    let triple = || Some("foo-a-b-c".to_owned());
    let cases = [
        ("cuda-nvptx64-nvidia-cuda--sm_80", kind(), None),
        ("hip-foo-a-b-c-gfx906:xnack+", None, triple()),
        ("cuda-foo-a-b-c-gfx906", kind(), triple()),
    ];
    for (target, kind, triple) in cases {
        let text = target.to_owned();
        assert_eq!(error(target), EntryIdError::Target { text, kind, triple });
    }
    assert_eq!(
        error("cuda-foo-a-b-c-gfx906").to_string(),
        "\"cuda-foo-a-b-c-gfx906\" cannot be a target; its kind \"cuda\" is not one of `host`, \
         `openmp`, `hip`, `hipv4`; LLVM does not know its architecture \"foo\""
    );
    // LLVM wants the architecture in the first place.
    assert!(EntryId::parse_target("host-linux-x86_64-gnu-").is_err());
}

#[test]
fn names_the_missing_dash_where_llvm_takes_a_processor_for_the_environment() {
    let hint = |text| EntryId::parse_target(text).unwrap().hint();
    assert_eq!(
        hint("hip-amdgcn-amd-amdhsa-gfx906").unwrap(),
        "`gfx906` is read as the environment; for a processor write \
         `hip-amdgcn-amd-amdhsa--gfx906`, with two dashes"
    );
    for right in [
        "hip-amdgcn-amd-amdhsa--gfx906",
        "hip-amdgcn-amd-amdhsa-",
        "openmp-x86_64-pc-linux-gnu",
        "host-x86_64-a-b-c",
    ] {
        assert_eq!(hint(right), None, "{right}");
    }
}

/// Rows: entries; columns: targets; those of `docs/spec/bundler.md` §6.5, observed with 22.1.
#[test]
fn serves_every_setting_of_a_feature_it_does_not_mention() {
    let wanted = [
        "",
        ":xnack+",
        ":xnack-",
        ":sramecc+",
        ":sramecc+:xnack+",
        ":sramecc-:xnack+",
        ":xnack+:sramecc+",
    ];
    let table = [
        "YYYYYYY", ".Y..YYY", "..Y....", "...YY.Y", "....Y.Y", ".....Y.", "....Y.Y",
    ];
    for (image, row) in wanted.iter().zip(table) {
        for (wanted, expected) in wanted.iter().zip(row.chars()) {
            let [image, wanted] =
                [image, wanted].map(|id| format!("hip-amdgcn-amd-amdhsa--gfx906{id}"));
            let served = serves(&image, &wanted, KindRule::SameRuntime);
            assert_eq!(served, expected == 'Y', "{image} for {wanted}");
        }
    }
}

fn serves(image: &str, wanted: &str, kinds: KindRule) -> bool {
    id(image).serves(&EntryId::parse_target(wanted).unwrap(), kinds)
}

#[test]
fn serves_the_kinds_of_the_same_runtime() {
    let kinds = ["host", "openmp", "hip", "hipv4"];
    let tables = [
        (KindRule::SameRuntime, ["Y...", ".Y..", "..YY", "..YY"]),
        (KindRule::HipAndOpenmp, ["Y...", ".YYY", ".YYY", ".YYY"]),
    ];
    for (rule, table) in tables {
        for (image, row) in kinds.iter().zip(table) {
            for (wanted, expected) in kinds.iter().zip(row.chars()) {
                let [image, wanted] =
                    [image, wanted].map(|kind| format!("{kind}-amdgcn-amd-amdhsa--gfx906"));
                assert_eq!(
                    serves(&image, &wanted, rule),
                    expected == 'Y',
                    "{image} {wanted}"
                );
            }
        }
    }
}

#[test]
fn serves_as_observed() {
    // `docs/spec/bundler.md` §6.5, "More observed cases"; with 22.1 unless said otherwise.
    let amd = [
        ("-gfx9-generic", "-gfx906", false),
        ("-gfx906", "-gfx9-generic", false),
        ("-gfx9-generic", "-gfx9-generic:xnack+", true),
        ("-gfx1030", "-gfx1030:xnack+", false),
        ("-gfx1030:xnack+", "-gfx1030:xnack+", true),
        ("-gfx1250", "-gfx1250:xnack+", false),
        ("-gfx906:bogus+", "-gfx906:bogus+", true),
        ("-gfx906:bogus+", "-gfx906:bogus+:xnack+", false),
        ("-gfx906:", "-gfx906", true),
        ("-generic", "-gfx600", false),
        ("-", "-gfx906", false),
        // Not as LLVM: what three fields meant when they were written.
        ("gfx906", "-gfx906", true),
        ("gfx906", "gfx908", false),
        // Not as LLVM: unknown processors are not all the same.
        ("-gfx1234", "-gfx1234", true),
        ("-gfx1234", "-gfx1234:xnack+", true),
        ("-gfx1234:xnack+", "-gfx1234", false),
        ("-gfx1234", "-gfx1235", false),
        ("-gfx940", "-gfx940:xnack+", true),
        ("-gfx940", "-gfx941", false),
        ("-gfx940", "-gfx942", false),
        ("-fiji", "-gfx803", true),
    ];
    for (image, wanted, expected) in amd {
        let [image, wanted] = [image, wanted].map(|id| format!("hip-amdgcn-amd-amdhsa-{id}"));
        let served = serves(&image, &wanted, KindRule::SameRuntime);
        assert_eq!(served, expected, "{image} for {wanted}");
    }
    let others = [
        (
            "hip-amdgcn-amd-amdhsa--generic",
            "hipv4-amdgcn-amd-amdhsa--generic",
            false,
        ),
        (
            "hip-spirv64-amd-amdhsa--amdgcnspirv",
            "hip-amdgcn-amd-amdhsa--gfx906",
            false,
        ),
        (
            "hip-spirv64-amd-amdhsa--amdgcnspirv",
            "hipv4-spirv64-amd-amdhsa--amdgcnspirv",
            true,
        ),
        (
            "hip-amdgcn-unknown-amdhsa--gfx906",
            "hip-amdgcn-amd-amdhsa--gfx906",
            false,
        ),
        (
            "hip-amdgcn-foo-amdhsa--gfx906",
            "hip-amdgcn-bar-amdhsa--gfx906",
            true,
        ),
        (
            "hip-amdgcn-amd-amdhsa1.0--gfx906",
            "hip-amdgcn-amd-amdhsa--gfx906",
            true,
        ),
        (
            "hip-x86_64-unknown-linux-gnu-",
            "hipv4-x86_64-unknown-linux-gnu-",
            false,
        ),
        (
            "host-x86_64-unknown-linux-gnu",
            "host-x86_64-unknown-linux-gnu",
            true,
        ),
        (
            "host-x86_64-unknown-linux-gnu-",
            "host-x86_64-unknown-linux-gnu-native",
            true,
        ),
        (
            "host-amd64-unknown-linux-gnu-",
            "host-x86_64-unknown-linux-gnu-",
            true,
        ),
        (
            "host-x86_64-pc-linux-gnu-",
            "host-x86_64-unknown-linux-gnu-",
            false,
        ),
        (
            "openmp-nvptx64-nvidia-cuda--sm_70",
            "openmp-nvptx64-nvidia-cuda--sm_70",
            true,
        ),
        (
            "openmp-nvptx64-nvidia-cuda--sm_70",
            "openmp-nvptx64-nvidia-cuda--sm_80",
            false,
        ),
        (
            "cuda-nvptx64-nvidia-cuda-sm_70",
            "hip-nvptx64-nvidia-cuda--sm_70",
            false,
        ),
    ];
    for (image, wanted, expected) in others {
        let served = serves(image, wanted, KindRule::SameRuntime);
        assert_eq!(served, expected, "{image} for {wanted}");
    }
}

/// `docs/spec/bundler.md` §6.6; the pairs and their order are those of 22.1's message.
#[test]
fn finds_the_conflict_that_llvm_reports() {
    let find = |ids: &[&str], scope| {
        let ids: Vec<EntryId> = ids
            .iter()
            .map(|id| EntryId::parse_target(id).unwrap())
            .collect();
        conflict(&ids, scope).map(|(first, later)| (ids[first].to_string(), ids[later].to_string()))
    };
    let amd = |ids: &[&str]| {
        let ids: Vec<String> = ids
            .iter()
            .map(|id| format!("hip-amdgcn-amd-amdhsa--{id}"))
            .collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        find(&ids, ConflictScope::KindAndTriple).map(|(first, later)| {
            [first, later].map(|id| id.rsplit("--").next().unwrap().to_owned())
        })
    };
    let pair = |first: &str, later: &str| Some([first.to_owned(), later.to_owned()]);
    assert_eq!(
        amd(&["gfx90a:xnack-", "gfx90a"]),
        pair("gfx90a", "gfx90a:xnack-")
    );
    assert_eq!(amd(&["gfx90a:xnack+", "gfx90a:xnack-"]), None);
    assert_eq!(
        amd(&["gfx90a:xnack+", "gfx906", "gfx90a:sramecc+"]),
        pair("gfx90a:sramecc+", "gfx90a:xnack+")
    );
    assert_eq!(amd(&["gfx90a", "gfx906:xnack+", "gfx908:bogus"]), None);
    assert_eq!(
        amd(&["gfx999", "gfx999:xnack+"]),
        pair("gfx999", "gfx999:xnack+")
    );
    // Not reported by 22.1, but by the main branch; after what 22.1 reports.
    let missed = ["gfx906:sramecc+:xnack+", "gfx906:xnack+"];
    assert_eq!(amd(&missed), pair(missed[0], missed[1]));
    assert_eq!(
        amd(&[missed[0], missed[1], "gfx90a:xnack-", "gfx90a"]),
        pair("gfx90a", "gfx90a:xnack-")
    );
    // Invalid target IDs conflict with nothing.
    assert_eq!(amd(&["gfx906:bogus+:xnack+", "gfx906:xnack+"]), None);
    // Kinds and spellings of the triple are groups of their own, but not in an archive.
    let groups = [
        "hip-amdgcn-amd-amdhsa--gfx906",
        "hipv4-amdgcn-amd-amdhsa--gfx906:xnack+",
        "hip-amdgcn-amd-amdhsa-unknown-gfx906:xnack+",
    ];
    assert_eq!(find(&groups, ConflictScope::KindAndTriple), None);
    let found = find(&groups[..2], ConflictScope::All);
    assert_eq!(found, Some((groups[0].to_owned(), groups[1].to_owned())));
}

#[test]
fn names_processors_that_no_release_knows() {
    let unknown = |text: &str| id(text).unknown_processor().map(str::to_owned);
    assert_eq!(
        unknown("hip-amdgcn-amd-amdhsa--gfx999:xnack+").unwrap(),
        "gfx999"
    );
    for known in [
        "--gfx906",
        "--gfx940",
        "--fiji",
        "--",
        "-gfx906:bogus+",
        "--gfx12-5-generic",
    ] {
        assert_eq!(unknown(&format!("hip-amdgcn-amd-amdhsa{known}")), None);
    }
}

/// Left: a target; right: what `clang-offload-bundler` 19.1 stores.
#[test]
fn displays_what_older_releases_write() {
    let cases = [
        (
            "hip-amdgcn-amd-amdhsa-gfx906",
            "hip-amdgcn-amd-amdhsa--gfx906",
        ),
        (
            "hip-amdgcn-amd-amdhsa--gfx906:xnack+",
            "hip-amdgcn-amd-amdhsa--gfx906:xnack+",
        ),
        (
            "hip-amdgcn-amd-amdhsa--gfx999",
            "hip-amdgcn-amd-amdhsa--gfx999-",
        ),
        (
            "hip-amdgcn-amd-amdhsa-",
            "hip-amdgcn-amd-amdhsa--hip-amdgcn-amd-amdhsa-",
        ),
        (
            "hip-amdgcn-amd-amdhsa--gfx9-4-generic",
            "hip-amdgcn-amd-amdhsa--gfx9-4-generic",
        ),
        ("host-x86_64-pc-linux", "host-x86_64-pc-linux--"),
        (
            "host-x86_64-unknown-linux-gnu",
            "host-x86_64-unknown-linux-gnu-",
        ),
    ];
    for (target, expected) in cases {
        let id = EntryId::parse_target_for(target, LlvmRelease::V19).unwrap();
        assert_eq!(id.display_for(LlvmRelease::V19), expected, "{target}");
        assert_eq!(id.display_for(LlvmRelease::V22), id.to_string());
    }
    let error = EntryId::parse_target_for("cuda-foo", LlvmRelease::V19).unwrap_err();
    let (kind, triple) = (Some("cuda".to_owned()), Some("foo---".to_owned()));
    let text = "cuda-foo".to_owned();
    assert_eq!(error, EntryIdError::Target { text, kind, triple });
}
