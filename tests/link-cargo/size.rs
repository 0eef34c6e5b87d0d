//! `cargo offload size` and `diff` on bundles of known sizes.

use crate::commands::{cargo_offload, done};
use crate::support::folder::Folder;
use std::num::NonZeroU64;
use std::process::Command;

use offload_formats::format::bundle::{self, BundleImage};
use offload_formats::format::compressed_bundle;
use serde_json::Value;

use crate::support::{self, program, tool};

/// A bundle whose headers have 200 bytes: 32, three times 24, and 96 of entry IDs.
fn bundle(sizes: [usize; 3]) -> Vec<u8> {
    let ids = [
        "hip-amdgcn-amd-amdhsa--gfx90a:xnack+",
        "hip-amdgcn-amd-amdhsa--gfx1100",
        "hip-amdgcn-amd-amdhsa--gfx1200",
    ];
    assert_eq!(ids.concat().len(), 96);
    let images = sizes.map(|size| vec![b'i'; size]);
    let images: Vec<BundleImage<'_>> = std::iter::zip(ids, &images)
        .map(|(id, image)| BundleImage { id, image })
        .collect();
    bundle::to_bytes(&images, NonZeroU64::MIN).unwrap()
}

fn folder(files: &[(&str, Vec<u8>)]) -> Folder {
    let folder = Folder::new();
    for (name, bytes) in files {
        folder.write(name, bytes);
    }
    folder
}

#[test]
fn measures_targets_and_containers() {
    let folder = folder(&[("k.hipfb", bundle([4096, 2048, 1024]))]);
    assert_eq!(
        done(&folder, &["size", "k.hipfb"]),
        "k.hipfb: 7.2 KiB, device code 7.2 KiB (100 %)\n\
        \x20 gfx1100        1 image  2.0 KiB  28 %\n\
        \x20 gfx1200        1 image  1.0 KiB  14 %\n\
        \x20 gfx90a:xnack+  1 image  4.0 KiB  56 %\n\
         keeping only gfx90a:xnack+ would save 3.0 KiB\n\
         7.0 KiB are in bundles that are not compressed\n"
    );
    let json: Value = serde_json::from_str(&done(&folder, &["size", "--json", "k.hipfb"])).unwrap();
    assert_eq!(
        (&json["size"], &json["device"]),
        (&7368.into(), &7368.into())
    );
    let stored = |index: usize| json["targets"][index]["stored"].as_u64().unwrap();
    assert_eq!([stored(0), stored(1), stored(2)], [2048, 1024, 4096]);
}

#[test]
fn shares_the_size_of_compressed_bundles() {
    let plain = bundle([4096, 2048, 2048]);
    let packed = compressed_bundle::compress(&plain, Default::default()).unwrap();
    let folder = folder(&[("k.hipfb", packed.clone())]);
    let json: Value = serde_json::from_str(&done(&folder, &["size", "--json", "k.hipfb"])).unwrap();
    let images = &json["containers"][0]["images"];
    let all = packed.len() as u64;
    assert_eq!(images[0]["stored"].as_u64(), Some(all / 2));
    assert_eq!(images[1]["stored"].as_u64(), Some(all / 4));
    assert_eq!(images[1]["unpacked"].as_u64(), Some(2048));
    let text = done(&folder, &["size", "k.hipfb"]);
    assert!(text.contains("  4.0 KiB unpacked\n"), "{text}");
    assert!(!text.contains("not compressed"), "{text}");
}

#[test]
fn compares_two_files() {
    let folder = folder(&[
        ("old", bundle([4096, 2048, 0])),
        ("new", bundle([1024, 2048, 1024])),
    ]);
    let expected = "old 6.2 KiB → new 4.2 KiB: -2.0 KiB\n\
        \x20 gfx1100             1 image  2.0 KiB  2.0 KiB      same\n\
        \x20 gfx1200             1 image      0 B  1.0 KiB  +1.0 KiB\n\
        \x20 gfx90a:xnack+       1 image  4.0 KiB  1.0 KiB  -3.0 KiB\n\
        \x20 host code and data               0 B      0 B      same\n";
    assert_eq!(done(&folder, &["diff", "old", "new"]), expected);
    assert_eq!(done(&folder, &["size", "new", "old"]), expected);
    let json: Value =
        serde_json::from_str(&done(&folder, &["diff", "--json", "old", "new"])).unwrap();
    assert_eq!(json["targets"][2]["old"]["stored"], 4096);
    assert_eq!(json["targets"][2]["new"]["stored"], 1024);
}

/// Returns class and area of each rectangle.
fn rectangles(svg: &str) -> Vec<(String, f64)> {
    let rectangles = svg.split("<rect ").skip(1).map(|text| {
        let value = |name: &str| {
            let start = format!("{name}=\"");
            let value = text.split(&*start).nth(1).unwrap();
            value.split('"').next().unwrap().to_owned()
        };
        let number = |name| value(name).parse::<f64>().unwrap();
        (value("class"), number("width") * number("height"))
    });
    rectangles.collect()
}

#[test]
fn draws_areas_in_proportion() {
    let folder = folder(&[("a<b>&k.hipfb", bundle([400_000, 200_000, 100_000]))]);
    let arguments = ["size", "a<b>&k.hipfb", "--svg", "s.svg", "--html", "s.html"];
    done(&folder, &arguments);
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    let svg = read("s.svg");
    let rectangles = rectangles(&svg);
    let area = |class: &str| {
        let mut found = rectangles.iter().filter(|(is, _)| is == class);
        found.next().unwrap().1
    };
    // Classes are numbered by the targets' names: gfx1100, gfx1200, gfx90a:xnack+.
    for (class, part) in [("c0", 2.0), ("c1", 1.0), ("c2", 4.0)] {
        let found = area(class) / area("c1");
        assert!((found - part).abs() < 0.02, "{class}: {found}");
    }
    assert!(svg.contains(">gfx90a:xnack+ 390.6 KiB</text>"), "{svg}");
    assert!(svg.contains("a&lt;b&gt;&amp;k.hipfb: "), "{svg}");
    assert!(svg.contains("prefers-color-scheme:dark") && !svg.contains("<script"));
    let html = read("s.html");
    assert_eq!(html.matches("<tr><td").count(), 3);
    assert!(html.contains("data-v=\"400000\">390.6 KiB</td>"), "{html}");
    assert!(html.contains("<title>a&lt;b&gt;&amp;k.hipfb</title>"));
    // The same input gives the same bytes.
    done(&folder, &arguments);
    assert_eq!(read("s.svg"), svg);
}

#[test]
fn fails_for_files_that_cannot_be_read() {
    let folder = folder(&[("cut", b"\x10\xff\x10\xad".to_vec())]);
    for (file, expected) in [
        ("cut", "error: cut: offload binary 0: "),
        ("none", "error: none: No such file"),
    ] {
        let output = cargo_offload(&folder, &["size", file, "--svg", "s.svg"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(said.starts_with(expected), "{said}");
    }
}

/// The cubins for `sm_80` and `sm_100a` have a kernel `k`, the one for `sm_90` others; `cuobjdump -elf` of CUDA 13.5 shows
/// sections `.text.k` of 0x100 bytes, `.text.nothing` of 0x100 and `.text.scale` of 0x200.
#[test]
fn measures_the_code_of_kernels() {
    const TWO: &[u8] = include_bytes!("../golden/cuda-13.5/two-images.fatbin");
    const CUBIN: &[u8] = include_bytes!("../golden/cuda-13.5/kernels.cubin");
    let folder = folder(&[
        ("two.fatbin", TWO.to_vec()),
        ("kernels.cubin", CUBIN.to_vec()),
    ]);
    let text = done(&folder, &["size", "--kernels", "two.fatbin"]);
    assert!(text.contains("\n1 kernel, code 512 B ("), "{text}");
    assert!(text.contains("2 images  k\n"), "{text}");
    let text = done(&folder, &["size", "--kernels", "--top=1", "kernels.cubin"]);
    assert!(text.contains("\n2 kernels, code 768 B ("), "{text}");
    assert!(text.contains("\n  512 B"), "{text}");
    assert!(
        text.contains("1 image  scale\n") && !text.contains("nothing"),
        "{text}"
    );
    let json = done(&folder, &["size", "--kernels", "--json", "kernels.cubin"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let kernel = |symbol: &str, code_size: u64| serde_json::json!({ "symbol": symbol, "name": symbol, "images": 1, "code_size": code_size });
    let expected = [kernel("scale", 512), kernel("nothing", 256)];
    assert_eq!(json["kernels"], Value::Array(expected.to_vec()));
    let expected = "\n3 kernels changed\n";
    for arguments in [
        &["size", "--kernels", "two.fatbin", "kernels.cubin"][..],
        &["diff", "--kernels", "kernels.cubin", "two.fatbin"],
    ] {
        let text = done(&folder, arguments);
        let (_, kernels) = text.split_once(expected).unwrap();
        let lines: Vec<Vec<&str>> = kernels
            .lines()
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|cell| !cell.is_empty())
                    .collect()
            })
            .collect();
        // Equal changes are in the order of names.
        assert_eq!(lines[0], ["0 → 2 images", "0 B", "512 B", "+512 B", "k"]);
        assert_eq!(
            lines[1],
            ["1 → 0 images", "512 B", "0 B", "-512 B", "scale"]
        );
        assert_eq!(
            lines[2],
            ["1 → 0 images", "256 B", "0 B", "-256 B", "nothing"]
        );
    }
    let json = done(
        &folder,
        &["diff", "--kernels", "--json", "kernels.cubin", "two.fatbin"],
    );
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["kernels"][0],
        serde_json::json!({ "symbol": "k", "name": "k", "old": { "images": 0, "code_size": 0 },
                            "new": { "images": 2, "code_size": 512 } })
    );
    let same = done(&folder, &["diff", "--kernels", "two.fatbin", "two.fatbin"]);
    assert!(same.ends_with("\n0 kernels changed\n"), "{same}");
}

/// The areas of kernels are in proportion to their code, in an image that is not compressed.
#[test]
fn draws_kernels() {
    const CUBIN: &[u8] = include_bytes!("../golden/cuda-13.5/kernels.cubin");
    let folder = folder(&[("kernels.cubin", CUBIN.to_vec())]);
    let arguments = [
        "size",
        "--kernels",
        "kernels.cubin",
        "--svg=s.svg",
        "--html=s.html",
    ];
    done(&folder, &arguments);
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    let svg = read("s.svg");
    let other = CUBIN.len() - 768;
    let titles = [
        "scale: sm_90, 512 B",
        "nothing: sm_90, 256 B",
        "data, headers, other functions: sm_90, ",
    ];
    // The largest comes first.
    let places = titles.map(|title| svg.find(title).unwrap());
    assert!(places[2] < places[0] && places[0] < places[1], "{places:?}");
    let areas = titles.map(|title| {
        let (_, after) = svg.split_once(&format!("<title>{title}")).unwrap();
        rectangles(after)[0].1
    });
    for (area, size) in areas.into_iter().zip([512, 256, other]) {
        let expected = areas[0] / 512.0 * size as f64;
        assert!((area / expected - 1.0).abs() < 0.05, "{area} {expected}");
    }
    let html = read("s.html");
    assert_eq!(html.matches("<tbody>").count(), 2);
    assert!(html.contains("<td data-v=\"scale\">scale</td>"), "{html}");
}

#[test]
fn finds_duplicates_in_all_containers() {
    let plain = bundle([4096, 4096, 1024]);
    let packed = compressed_bundle::compress(&bundle([4096, 1000, 0]), Default::default()).unwrap();
    const FATBIN: &[u8] = include_bytes!("../golden/cuda-13.5/group.fatbin");
    let both = [FATBIN, FATBIN].concat();
    let folder = folder(&[
        ("k", plain.clone()),
        ("all", [plain, packed].concat()),
        ("twice.fatbin", both),
    ]);
    let text = done(&folder, &["size", "--duplicates", "k"]);
    assert!(
        text.contains("\n1 image is a copy of another one: 4.0 KiB unpacked\n  4.0 KiB  gfx90a:xnack+  images 0, 1\n"),
        "{text}"
    );
    let json = done(&folder, &["size", "--duplicates", "--json", "all"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["duplicates"],
        serde_json::json!([{ "target": "gfx90a:xnack+", "images": [0, 1, 3], "size": 4096, "wasted": 8192 }])
    );
    // The four images of a group have the same stored bytes. The first two are the same PTX: `cuobjdump -xptx all`.
    let json = done(&folder, &["size", "--duplicates", "--json", "twice.fatbin"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let duplicates = json["duplicates"].as_array().unwrap().iter();
    let images: Vec<&Value> = duplicates.map(|same| &same["images"]).collect();
    let expected = serde_json::json!([[3, 7], [2, 6], [0, 1, 4, 5]]);
    assert_eq!(
        images,
        expected.as_array().unwrap().iter().collect::<Vec<_>>()
    );
    let text = done(&folder, &["size", "k"]);
    assert!(!text.contains("copy"), "{text}");
}

#[test]
fn compresses_bundles_to_tell_what_it_would_save() {
    let plain = bundle([40_960, 20_480, 1024]);
    let packed = compressed_bundle::compress(&plain, Default::default()).unwrap();
    let folder = folder(&[("plain", plain.clone()), ("packed", packed.clone())]);
    let json = done(
        &folder,
        &["size", "--estimate-compression", "--json", "plain"],
    );
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["compression"],
        serde_json::json!({ "bundles": 1, "plain": plain.len(), "packed": packed.len() })
    );
    let text = done(&folder, &["size", "--estimate-compression", "plain"]);
    assert!(
        text.contains("\n1 bundle of 61.2 KiB would have "),
        "{text}"
    );
    let text = done(&folder, &["size", "--estimate-compression", "packed"]);
    assert!(!text.contains("would have"), "{text}");
}

/// Two cubins of one size in a group have the same stored bytes, and differ.
#[test]
fn compares_images_of_a_group_unpacked() {
    let (Some(nvcc), Some(fatbinary)) = (program("nvcc"), tool("cuda", &["fatbinary"])) else {
        return;
    };
    let folder = folder(&[(
        "k.cu",
        b"__global__ void k(float *x) { *x *= 2; }\n".to_vec(),
    )]);
    let compile = |arch: &str| {
        let mut command = Command::new(&nvcc);
        command.args(["-cubin", "k.cu", "-arch", arch, "-o", arch]);
        support::run(command.current_dir(folder.root()));
        std::fs::read(folder.path(arch)).unwrap()
    };
    let images = ["sm_80", "sm_86"].map(compile);
    assert!(images[0].len() == images[1].len() && images[0] != images[1]);
    let mut command = Command::new(fatbinary);
    command.args([
        "-64",
        "--create",
        "k.fatbin",
        "--compress-all",
        "--concat",
        "-ident",
        "k.cu",
        "-cmdline=-O3",
    ]);
    for number in ["80", "86", "80"] {
        command.arg(format!("--image3=kind=elf,sm={number},file=sm_{number}"));
    }
    support::run(command.current_dir(folder.root()));
    let json = done(&folder, &["size", "--duplicates", "--json", "k.fatbin"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let images: Vec<&Value> = json["duplicates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|same| &same["images"])
        .collect();
    let stored = json["containers"][0]["images"].as_array().unwrap();
    assert_eq!(stored.len(), 3, "{json}");
    assert_eq!(images, [&serde_json::json!([0, 2])], "{json}");
}
