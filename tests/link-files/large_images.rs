//! Large images: no link, registration, bundle or package reads one into memory. Every program here, and every program that
//! it starts, gets 64 MiB of address space: half of an image. Images are files with holes.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, symlink};
use std::process::{Command, Output};

use crate::support;

use super::large_archives::{BUNDLER, MIB, Place, WRAPPER, errors, id};
use crate::support::shim_clang::OBJECT;
use offload_formats::container::elf::Elf;
use offload_formats::container::fatbin::{FatbinImage, cuda_fatbin};
use offload_formats::format::bundle::BundleLayout;
use offload_formats::format::bytes::{ReadAt, ReadCache};
use offload_formats::format::compressed_bundle::{Compression, Method, compress_to};
use offload_formats::format::pieces;

const PACKAGER: &str = env!("CARGO_BIN_EXE_offload-packager");
const CARGO: &str = env!("CARGO_BIN_EXE_cargo-offload");

const IMAGE: u64 = 128 * MIB;
/// Size of an image that is unpacked before the link needs it, and nearly as large as the limit.
const SMALL: u64 = 50 * MIB;
/// Address space of a program in KiB.
const LIMIT: u64 = 64 << 10;
/// Last bytes of an image, after the hole.
const END: &[u8] = b"end of the image";
const HOST: &str = "host-x86_64-unknown-linux-gnu-";

/// Large images for each machine, large bundles of one, and programs that stand for linkers and compilers.
fn place() -> Place {
    let place = Place::new("");
    for (name, machine, flags) in [("gfx906", 224, 0x2f_u32), ("sm_80", 190, 0x0050_0550)] {
        let mut image = OBJECT.to_vec();
        image[0x12] = machine;
        image[0x30..0x34].copy_from_slice(&flags.to_le_bytes());
        place.write(format!("image-{name}-start"), &image);
        place.write(format!("image-{name}"), image);
        end_with(&place, &format!("image-{name}"), IMAGE);
    }
    for kind in ["hip", "openmp"] {
        let ids = [(HOST, 0), (&*id("gfx906").replace("hip", kind), IMAGE)];
        let layout = BundleLayout::new(ids, NonZeroU64::MIN).unwrap();
        let size = layout.size();
        place.write(format!("{kind}.bc"), [&layout.head, OBJECT].concat());
        end_with(&place, &format!("{kind}.bc"), size);
    }
    // What clang makes of a registration in C.
    place.write("image-", b"");
    // The output of a link is its registration.
    let registration = "for a; do case $a in *.image.wrapper.o) cp \"$a\" output;; esac; done";
    place.script("ld", registration);
    symlink(WRAPPER, place.path("bin/llvm-offload-wrapper")).unwrap();
    place
}

/// Makes a file larger by a hole and [`END`] after it.
fn end_with(place: &Place, name: &str, size: u64) {
    let file = OpenOptions::new().write(true).open(place.path(name));
    let at = size - END.len() as u64;
    file.unwrap().write_all_at(END, at).unwrap();
}

/// Runs a program with little memory. glibc reserves address space for each thread, so all threads share one heap.
fn limited(place: &Place, program: &str, args: &[&str]) -> Output {
    let script =
        format!("ulimit -v {LIMIT}; MALLOC_ARENA_MAX=1; export MALLOC_ARENA_MAX; exec \"$@\"");
    let mut shell = place.command("sh");
    shell.args(["-c", &script, "sh", program]).args(args);
    shell.output().unwrap()
}

fn succeeds(place: &Place, program: &str, args: &[&str]) {
    let done = limited(place, program, args);
    assert!(
        done.status.success(),
        "{program} {args:?}: {}",
        errors(&done)
    );
}

/// Checks that a file has this section, which ends with the image.
fn has_image(place: &Place, name: &str, section: &str, size: u64) {
    let data = ReadCache::new(File::open(place.path(name)).unwrap());
    let elf = Elf::parse(&data, 0..(&data).size().unwrap()).unwrap();
    let section = elf.find(section).unwrap().unwrap();
    assert!(section.size >= size, "{name}");
    let end = section.offset + section.size;
    let size = END.len() as u64;
    assert_eq!((&data).read_at(end - size, size), Some(END), "{name}");
}

fn is_image(place: &Place, name: &str) {
    let file = File::open(place.path(name)).unwrap();
    let mut end = [0; END.len()];
    file.read_exact_at(&mut end, IMAGE - END.len() as u64)
        .unwrap();
    assert_eq!((&end[..], file.metadata().unwrap().len()), (END, IMAGE));
}

#[test]
fn links_large_images_in_little_memory() {
    let place = place();
    let (ours, llvm) = ("bin/offload-ld", "bin/clang-linker-wrapper");
    let [hip, openmp, cuda] = [
        "--override-image=hip=image-gfx906",
        "--override-image=openmp=image-gfx906",
        "--override-image=cuda=image-sm_80",
    ];
    let cases: [(&str, &[&str], &str); 8] = [
        (ours, &["hip.bc"], ".hip_fatbin"),
        (llvm, &["hip.bc"], ".hip_fatbin"),
        (ours, &["openmp.bc"], ".llvm.offloading"),
        (ours, &[hip], ".hip_fatbin"),
        (ours, &[openmp], ".llvm.offloading"),
        (ours, &[openmp, "-r"], ".offloading.images"),
        (ours, &[cuda], ".nv_fatbin"),
        (ours, &["openmp.bc", "--save-temps"], ".llvm.offloading"),
    ];
    for (tool, args, section) in cases {
        succeeds(
            &place,
            tool,
            &[&["--linker-path=./ld", "-o", "output"], args].concat(),
        );
        has_image(&place, "output", section, IMAGE);
        fs::remove_file(place.path("output")).unwrap();
    }
    let from_c = [
        "--linker-path=./ld",
        "-o",
        "output",
        "--linker-wrapper-from-c",
    ];
    succeeds(&place, ours, &[&from_c[..], &[hip]].concat());
    let only = ["--emit-fatbin-only", "-o", "output", hip];
    succeeds(&place, ours, &only);
    let size = fs::metadata(place.path("output")).unwrap().len();
    assert_eq!(size, 4096 + IMAGE);
    assert_eq!(place.left(), 0);
}

/// Sections of large data are searched for images, also those that have none.
#[test]
fn searches_large_data_in_little_memory() {
    let place = place();
    let data = ".section .lrodata,\"al\",@progbits\n.zero 33554432\n";
    place.write("data.s", data);
    let mut cc = Command::new("cc");
    cc.arg("-c").arg(place.path("data.s"));
    support::run(cc.arg("-o").arg(place.path("data.o")));
    for (command, expected) in [
        ("inspect", "no device images"),
        ("verify", "0 device images"),
    ] {
        let done = limited(&place, CARGO, &[command, "data.o"]);
        let told = String::from_utf8_lossy(&done.stdout);
        assert!(
            told.contains(expected),
            "{command}: {told} {}",
            errors(&done)
        );
    }
}

#[test]
fn registers_large_images_in_little_memory() {
    let place = place();
    for (kind, input, section) in [
        ("openmp", "image-gfx906", ".llvm.offloading"),
        ("hip", "hip.bc", ".hip_fatbin"),
        ("cuda", "image-sm_80", ".nv_fatbin"),
    ] {
        let kind = format!("--kind={kind}");
        for output in ["r.o", "r.c"] {
            let args = [&*kind, "-o", output, input];
            succeeds(&place, "bin/llvm-offload-wrapper", &args);
        }
        has_image(&place, "r.o", section, IMAGE);
    }
}

/// Compresses a bundle with zlib, whose window is small. Level 0 keeps the size: the compressed data is too large, too.
fn compress(place: &Place, name: &str) -> String {
    let mut bundle = File::open(place.path(name)).unwrap();
    let size = bundle.metadata().unwrap().len();
    let packed = format!("packed-{name}");
    let mut out = File::create(place.path(&packed)).unwrap();
    let how = Compression {
        method: Method::Zlib,
        level: Some(0),
        ..Compression::default()
    };
    compress_to(how, size, &mut bundle, &mut out).unwrap();
    packed
}

/// A bundle that is just small enough for the link to unpack it at once.
fn write_small_bundle(place: &Place) {
    let ids = [(HOST, 0), (&*id("gfx906"), SMALL)];
    let layout = BundleLayout::new(ids, NonZeroU64::MIN).unwrap();
    let image = fs::read(place.path("image-gfx906-start")).unwrap();
    place.write("small.bc", [&layout.head[..], &image].concat());
    end_with(place, "small.bc", layout.size());
}

#[test]
#[ignore = "`make test-all`: compresses and unpacks 128 MiB many times; the other tests of this file are shorter"]
fn links_and_unbundles_compressed_bundles_in_little_memory() {
    let place = place();
    write_small_bundle(&place);
    let cases = [
        ("hip.bc", ".hip_fatbin"),
        ("openmp.bc", ".llvm.offloading"),
        ("small.bc", ".hip_fatbin"),
    ];
    let cases = crate::support::share(cases, 0, 2);
    for (number, (name, section)) in cases.enumerate() {
        let bundle = &*compress(&place, name);
        let tools = ["bin/offload-ld", "bin/clang-linker-wrapper"];
        let size = if name == "small.bc" { SMALL } else { IMAGE };
        // Each bundle by one of the tools, or by both.
        for tool in crate::support::share(tools, number % 2, 2) {
            let args = ["--linker-path=./ld", "-o", "output", bundle];
            succeeds(&place, tool, &args);
            has_image(&place, "output", section, size);
        }
    }
    let bundle = "packed-hip.bc";
    let input = format!("-input={bundle}");
    succeeds(&place, BUNDLER, &["-list", "-type=bc", &input]);
    let target = format!("-targets={}", id("gfx906"));
    let unbundle = [
        "-unbundle",
        "-type=bc",
        &target,
        &input,
        "-output=extracted",
    ];
    succeeds(&place, BUNDLER, &unbundle);
    is_image(&place, "extracted");
    examines(&place, bundle);
    assert_eq!(place.left(), 0);
}

#[test]
fn packs_links_and_extracts_compressed_offload_binaries_in_little_memory() {
    let place = place();
    let target = "triple=amdgcn-amd-amdhsa,arch=gfx906,kind=openmp";
    let pack = format!("--image=file=image-gfx906,{target}");
    let how = [
        "--llvm=main",
        "--compress",
        "--compression-format=zlib",
        "--compression-level=0",
    ];
    succeeds(
        &place,
        PACKAGER,
        &[&how[..], &["-o", "packed.bin", &pack]].concat(),
    );
    succeeds(&place, PACKAGER, &["--list", "packed.bin"]);
    let extract = format!("--image=file=extracted,{target}");
    succeeds(&place, PACKAGER, &["packed.bin", &extract]);
    is_image(&place, "extracted");
    let linked = ["--linker-path=./ld", "-o", "output", "packed.bin"];
    succeeds(&place, "bin/offload-ld", &linked);
    has_image(&place, "output", ".llvm.offloading", IMAGE);
    examines(&place, "packed.bin");
    assert_eq!(place.left(), 0);
}

#[test]
#[ignore = "`make test-all`: compresses and unpacks 128 MiB many times; the other tests of this file are shorter"]
fn prunes_and_recompresses_contents_in_little_memory() {
    let place = place();
    let ids = [
        (HOST, 0),
        (&*id("gfx1100"), OBJECT.len() as u64),
        (&*id("gfx906"), IMAGE),
    ];
    let layout = BundleLayout::new(ids, NonZeroU64::MIN).unwrap();
    let start = fs::read(place.path("image-gfx906-start")).unwrap();
    place.write("two.bc", [&layout.head[..], OBJECT, &start].concat());
    end_with(&place, "two.bc", layout.size());

    let to_zlib = ["compress", "--method=zlib", "two.bc", "-o", "small.bc"];
    succeeds(&place, CARGO, &to_zlib);
    succeeds(&place, CARGO, &["decompress", "small.bc", "-o", "again.bc"]);
    let read = |name: &str| fs::read(place.path(name)).unwrap();
    assert!(read("again.bc") == read("two.bc"));
    assert!(read("small.bc").len() < MIB as usize);

    // The compressed content is large, too.
    let packed = compress(&place, "two.bc");
    let prune = ["prune", "--keep=gfx906", &packed, "-o", "pruned.bc"];
    succeeds(&place, CARGO, &prune);
    let target = format!("-targets={}", id("gfx906"));
    let unbundle = ["-unbundle", "-type=bc", &target, "-output=extracted"];
    let input = ["-input=pruned.bc"];
    succeeds(&place, BUNDLER, &[&unbundle[..], &input].concat());
    is_image(&place, "extracted");
    let list = place
        .command(BUNDLER)
        .args(["-list", "-type=bc"])
        .args(input)
        .output();
    let expected = format!("{HOST}\n{}\n", id("gfx906"));
    assert_eq!(String::from_utf8(list.unwrap().stdout).unwrap(), expected);
    assert_eq!(place.left(), 0);
}

#[test]
fn prunes_compressed_offload_binaries_in_little_memory() {
    let place = place();
    let image = |file: &str, arch: &str| {
        format!("--image=file={file},triple=amdgcn-amd-amdhsa,arch={arch},kind=openmp")
    };
    let (large, small) = (
        image("image-gfx906", "gfx906"),
        image("image-gfx906-start", "gfx908"),
    );
    let how = ["--llvm=main", "--compress", "--compression-format=zlib"];
    let pack = [&how[..], &["-o", "packed.bin", &large, &small]].concat();
    succeeds(&place, PACKAGER, &pack);
    let prune = ["prune", "--keep=gfx906", "packed.bin", "-o", "pruned.bin"];
    succeeds(&place, CARGO, &prune);
    let extract = image("extracted", "gfx906");
    succeeds(&place, PACKAGER, &["pruned.bin", &extract]);
    is_image(&place, "extracted");
    let list = place
        .command(PACKAGER)
        .args(["--list", "pruned.bin"])
        .output();
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    assert!(
        list.contains("gfx906") && !list.contains("gfx908"),
        "{list}"
    );
    assert_eq!(place.left(), 0);
}

/// Fat binaries with a cubin and PTX: each image is smaller than the limit, and all of them are larger.
#[test]
fn reads_one_image_of_fat_binaries_at_a_time() {
    const TEXTS: usize = 9;
    let place = place();
    let mut image = fs::read(place.path("image-sm_80-start")).unwrap();
    image.resize(8 << 20, 0);
    image.extend(END);
    let processor = "sm_80";
    let images = [FatbinImage {
        processor,
        image: &image[..],
    }];
    let cubin = cuda_fatbin(&images).unwrap();
    let mut fatbin = pieces::to_bytes(&cubin.pieces, &[&image]).unwrap();
    place.write("plain", &fatbin);
    // The kind of the first image.
    assert_eq!(std::mem::replace(&mut fatbin[16], 1), 2);
    let mut plain = OpenOptions::new().append(true).open(place.path("plain"));
    let plain = plain.as_mut().unwrap();
    plain.write_all(&fatbin.repeat(TEXTS)).unwrap();
    succeeds(&place, CARGO, &["compress", "plain", "-o", "packed"]);
    assert!(fs::metadata(place.path("packed")).unwrap().len() < 8 << 20);
    for file in ["plain", "packed"] {
        let folder = format!("images-{file}");
        succeeds(&place, CARGO, &["extract", file, "-o", &folder]);
        let files = fs::read_dir(place.path(folder)).unwrap();
        let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 1 + TEXTS);
        for path in files {
            assert!(fs::read(path).unwrap().starts_with(&image), "{file}");
        }
    }
    assert_eq!(place.left(), 0);
}

/// JSON is several times as large as the kernels that it describes.
#[test]
fn prints_kernels_as_json_in_little_memory() {
    const COUNT: usize = 16_000;
    let place = Place::new("");
    let parameters = ".param .u64 a, .param .u64 b, .param .u32 c";
    let kernels = (0..COUNT).map(|number| {
        let name = format!("_Z25kernel_with_a_name_{number:06}PfS_i");
        format!(".visible .entry {name}({parameters}) {{ ret; }}\n")
    });
    let kernels: String = kernels.collect();
    let head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    place.write("k.ptx", format!("{head}{kernels}"));
    let done = limited(&place, CARGO, &["inspect", "--kernels", "--json", "k.ptx"]);
    assert!(done.status.success(), "{}", errors(&done));
    let json = String::from_utf8(done.stdout).unwrap();
    assert_eq!(json.matches("\"symbol\": ").count(), COUNT);
}

/// Runs the commands for people that read a file, and extracts its image.
fn examines(place: &Place, file: &str) {
    for args in [
        &["inspect", file][..],
        &["inspect", "--kernels", file],
        &["size", file],
        &["verify", file],
    ] {
        // Images that are no real code objects have faults, which are reported.
        let done = limited(place, CARGO, args);
        let is_done = done.status.code().is_some_and(|code| code < 2);
        assert!(is_done, "{args:?}: {}", errors(&done));
        assert!(!errors(&done).contains("memory"), "{}", errors(&done));
    }
    succeeds(place, CARGO, &["extract", file, "-o", "images"]);
    let image = fs::read_dir(place.path("images")).unwrap().next();
    let image = image.unwrap().unwrap().file_name();
    is_image(place, &format!("images/{}", image.to_str().unwrap()));
}

#[test]
fn packs_and_bundles_large_images_in_little_memory() {
    let place = place();
    let target = "triple=amdgcn-amd-amdhsa,arch=gfx906,kind=openmp";
    let pack = format!("--image=file=image-gfx906,{target}");
    succeeds(&place, PACKAGER, &["-o", "packed.bin", &pack]);
    succeeds(&place, PACKAGER, &["--list", "packed.bin"]);
    let extract = format!("--image=file=extracted,{target}");
    succeeds(&place, PACKAGER, &["packed.bin", &extract]);
    is_image(&place, "extracted");
    let into_archive = format!("--image=file=extracted.a,{target}");
    succeeds(
        &place,
        PACKAGER,
        &["packed.bin", "--archive", &into_archive],
    );

    place.write("host.o", OBJECT);
    let gpu = id("gfx906");
    let targets = format!("-targets={HOST},{gpu}");
    let only = format!("-targets={gpu}");
    for (kind, host) in [("bc", "/dev/null"), ("o", "host.o")] {
        let (kind, host) = (format!("-type={kind}"), format!("-input={host}"));
        let image = "-input=image-gfx906";
        let bundle = [&*kind, &targets, &host, image, "-output=bundled"];
        succeeds(&place, BUNDLER, &bundle);
        succeeds(&place, BUNDLER, &["-list", &kind, "-input=bundled"]);
        let unbundle = [
            "-unbundle",
            &*kind,
            &only,
            "-input=bundled",
            "-output=extracted",
        ];
        succeeds(&place, BUNDLER, &unbundle);
        is_image(&place, "extracted");
    }
    for file in ["hip.bc", "packed.bin", "bundled"] {
        for command in ["inspect", "size", "verify"] {
            // Images that are no real code objects have faults, which are reported.
            let done = limited(&place, CARGO, &[command, file]);
            assert!(
                done.status.code().is_some_and(|code| code < 2),
                "{}",
                errors(&done)
            );
            assert!(!errors(&done).contains("memory"), "{}", errors(&done));
        }
    }
    succeeds(&place, CARGO, &["extract", "hip.bc", "-o", "images"]);
    succeeds(
        &place,
        CARGO,
        &["prune", "hip.bc", "--keep", "gfx906", "-o", "pruned"],
    );
}
