//! Archives of bundles that are larger than what may be in memory: how much of them is read, and what becomes of a link
//! when one of them changes. They are files with holes, so that they cost neither disk nor time.

use crate::linker::text;
use crate::support::folder::Folder;
use crate::support::shim_clang::{self, OBJECT};

use std::fs::{self, File};
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU64;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use offload_formats::container::archive::{self, Index, MemberPlan};
use offload_formats::container::object_bundle::{NewObjectEntry, embed_bundle};
use offload_formats::container::{elf, embed};
use offload_formats::format::bundle::{self, BundleImage, BundleLayout};
use offload_formats::format::compressed_bundle::{Compression, compress, compress_to};
use offload_formats::format::offload_binary::{self, Method, NewBinaryEntry, OffloadBinaryVersion};
use offload_formats::format::pieces::{self, Piece};
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};

pub(super) const WRAPPER: &str = env!("CARGO_BIN_EXE_offload-link");
pub(super) const BUNDLER: &str = env!("CARGO_BIN_EXE_offload-bundler");
const NAMES: [&str; 2] = ["offload-ld", "clang-linker-wrapper"];
/// Processors, and the flags of their images.
const FLAGS: [(&str, u32); 2] = [("gfx906", 0x2f), ("gfx90a", 0x3f)];

pub(super) const MIB: u64 = 1 << 20;

pub(super) fn id(processor: &str) -> String {
    format!("hip-amdgcn-amd-amdhsa--{processor}")
}

/// An archive that is written member by member.
struct Archive(File);

impl Archive {
    fn new(path: PathBuf) -> Self {
        let mut file = File::create(path).unwrap();
        file.write_all(b"!<arch>\n").unwrap();
        Self(file)
    }

    fn header(&mut self, name: &str, size: u64) {
        let end = self.0.seek(SeekFrom::End(0)).unwrap();
        self.0.set_len(end.next_multiple_of(2)).unwrap();
        self.0.seek(SeekFrom::End(0)).unwrap();
        let fields = [
            format!("{:<16}{:<12}", format!("{name}/"), 0),
            format!("{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, "644"),
        ];
        self.0.write_all(fields.concat().as_bytes()).unwrap();
    }

    fn member(&mut self, name: &str, content: &[u8]) {
        self.header(name, content.len() as u64);
        self.0.write_all(content).unwrap();
    }

    /// A bundle of images that are `start` and then a hole.
    fn holes(&mut self, name: &str, start: &[u8], sizes: &[(&str, u64)]) {
        let ids: Vec<(String, u64)> = sizes.iter().map(|(name, size)| (id(name), *size)).collect();
        let images = ids.iter().map(|(id, size)| (id.as_str(), *size));
        let layout = BundleLayout::new(images, NonZeroU64::MIN).unwrap();
        self.header(name, layout.size());
        let begin = self.0.stream_position().unwrap();
        self.0.write_all(&layout.head).unwrap();
        for image in &layout.images {
            self.0.seek(SeekFrom::Start(begin + image.start)).unwrap();
            self.0.write_all(start).unwrap();
        }
        self.0.set_len(begin + layout.size()).unwrap();
    }
}

fn bundled(images: &[(&str, &[u8])]) -> Vec<u8> {
    let ids: Vec<(String, &[u8])> = images
        .iter()
        .map(|(name, image)| (id(name), *image))
        .collect();
    let images: Vec<BundleImage<'_>> = ids
        .iter()
        .map(|(id, image)| BundleImage { id, image })
        .collect();
    bundle::to_bytes(&images, NonZeroU64::MIN).unwrap()
}

/// A folder in which the wrapper has a clang of ours beside it, and a linker of ours.
pub(super) struct Place {
    folder: Folder,
}

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Place {
    /// In the body of `clang` `$cpu` is the processor, `$*` what it was given.
    pub(super) fn new(clang: &str) -> Self {
        let place = Self {
            folder: Folder::new(),
        };
        for folder in ["bin", "tmp"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        for name in NAMES {
            symlink(WRAPPER, place.path("bin").join(name)).unwrap();
        }
        shim_clang::put(&place, &format!("{clang}\n{}", shim_clang::COPY));
        // What packs images under LLVM's name.
        symlink(BUNDLER, place.path("bin/clang-offload-bundler")).unwrap();
        place.script(
            "ld",
            "cat /proc/$PPID/status /proc/$PPID/io > seen; echo program > output",
        );
        shim_clang::put_images(&place, &FLAGS);
        let images = FLAGS.map(|(name, _)| (name, &b"\0program"[..]));
        place.write("program.bc", bundled(&images));
        place
    }

    fn archive(&self) -> Archive {
        Archive::new(self.path("libhda.a"))
    }

    pub(super) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root())
            .env("TMPDIR", self.path("tmp"))
            .env_remove("OFFLOAD_LINK_REPORT")
            .env_remove("OFFLOAD_LINK_ACTIVE")
            .stdin(Stdio::null());
        command
    }

    fn link(&self, name: &str, args: &[&str]) -> Output {
        let mut command = self.command(self.path("bin").join(name));
        command.args(["--linker-path=./ld", "-o", "output", "program.bc"]);
        command.args(args).output().unwrap()
    }

    pub(super) fn left(&self) -> usize {
        fs::read_dir(self.path("tmp")).unwrap().count()
    }

    /// A number that the kernel counted.
    fn counted(&self, name: &str) -> u64 {
        let seen = fs::read_to_string(self.path("seen")).unwrap();
        let line = seen.lines().find_map(|line| line.strip_prefix(name));
        let number = line.unwrap().trim_start_matches([':', ' ', '\t']);
        number.split(' ').next().unwrap().parse().unwrap()
    }
}

const MEMBERS: u64 = 4096;
const WANTED: u64 = 16;
/// Of each image that is wanted.
const SIZE: u64 = 8 * MIB;

/// Of a gigabyte and more. Every member is for `gfx908`, which is in no link; some are for `gfx906`.
fn write_large(place: &Place) -> u64 {
    let mut archive = place.archive();
    for index in 0..MEMBERS {
        // What is no text is not read to know its language.
        let start = format!("\x7fELF {index}");
        let sizes = [("gfx908", MIB / 4), ("gfx906", SIZE)];
        let sizes = match index % (MEMBERS / WANTED) {
            0 => &sizes[..],
            _ => &sizes[..1],
        };
        archive.holes(&format!("m{index}.bc"), start.as_bytes(), sizes);
    }
    archive.0.metadata().unwrap().len()
}

#[test]
fn links_what_is_wanted_of_a_large_archive_in_little_memory() {
    let place = Place::new("");
    let size = write_large(&place);
    assert!(size > 1024 * MIB);
    for name in NAMES {
        let link = place.link(name, &["-L.", "-lhda", "--report=text:report"]);
        assert!(link.status.success(), "{name}: {}", text(&link.stderr));
        let report = fs::read_to_string(place.path("report")).unwrap();
        let linked = report.lines().filter(|line| line.contains(": linked"));
        assert_eq!(linked.count() as u64, WANTED + 2, "{name}");
        let memory = place.counted("VmHWM") * 1024;
        let read = place.counted("rchar");
        // A table of the members, and one image. All that is linked would be 128 MiB.
        assert!(memory < 64 * MIB, "{name}: {memory} bytes of memory");
        // What is linked, once; a few blocks of each member.
        let bound = WANTED * SIZE + MEMBERS * (48 << 10);
        assert!(read < bound, "{name}: {read} bytes were read");
    }
}

#[test]
fn unbundles_a_large_archive_in_little_memory() {
    let place = Place::new("");
    let size = write_large(&place);
    let args = [
        "-type=a",
        "-unbundle",
        "-input=libhda.a",
        "-output=out.a",
        "-allow-missing-bundles",
        &format!("-targets={}", id("gfx906")),
    ];
    // The shell is told what its children read.
    let script = "ulimit -v 65536; \"$@\" || exit; cat /proc/$$/io > seen";
    let mut shell = place.command("sh");
    shell.args(["-c", script, "sh", BUNDLER]).args(args);
    let done = shell.output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    let output = fs::metadata(place.path("out.a")).unwrap().len();
    assert!(output > WANTED * SIZE && output < WANTED * (SIZE + 4096));
    let read = place.counted("rchar");
    let bound = WANTED * SIZE + MEMBERS * (32 << 10);
    assert!(read < bound, "{read} of {size} bytes were read");
}

/// For a small image a copy by the system costs several times as much as a read and a share of a large write.
#[test]
fn writes_many_small_images_with_few_system_calls() {
    let place = Place::new("");
    let mut archive = place.archive();
    for index in 0..MEMBERS {
        let image = format!("image {index:04}").repeat(100);
        let images = [("gfx906", image.as_bytes())];
        archive.member(&format!("m{index}.bc"), &bundled(&images));
    }
    let args = [
        "-type=a",
        "-unbundle",
        "-input=libhda.a",
        "-output=out.a",
        &format!("-targets={}", id("gfx906")),
    ];
    // The shell's numbers include those of its children.
    let mut shell = place.command("sh");
    shell.args([
        "-c",
        "\"$@\" || exit; cat /proc/$$/io > seen",
        "sh",
        BUNDLER,
    ]);
    let done = shell.args(args).output().unwrap();
    assert!(done.status.success(), "{}", errors(&done));
    let output = fs::metadata(place.path("out.a")).unwrap().len();
    assert!(output > MEMBERS * 1000, "{output}");
    let (reads, writes) = (place.counted("syscr"), place.counted("syscw"));
    // A header and its image were two writes, one of them a copy by the system.
    assert!(writes < output / (128 << 10) + 20, "{writes} writes");
    // One for each image, and two for each block with headers: to find bundles, and to read symbols.
    assert!(reads < MEMBERS * 4 / 3, "{reads} reads");
}

/// Outputs of this size are copied by several threads, smaller ones by one, and so are all if no thread starts.
#[test]
fn splits_a_large_archive_into_the_same_bytes_as_small_ones() {
    let place = Place::new("");
    let mut archive = place.archive();
    let processors = ["gfx906", "gfx908", "gfx90a"];
    for index in 0..40_u8 {
        // Some are copied by the system, others read and written together.
        let size = [200_000, 30_000, 300_000][usize::from(index) % 3];
        let image = |number: u8| [number ^ index, index].repeat(size / 2);
        let images = [image(1), image(2), image(3)];
        let images: Vec<(&str, &[u8])> = processors
            .into_iter()
            .zip(images.iter().map(Vec::as_slice))
            .collect();
        archive.member(&format!("m{index}.bc"), &bundled(&images));
    }
    let split = |processors: &[&str], folder: &str, stack: &str| {
        fs::create_dir(place.path(folder)).unwrap();
        let ids: Vec<String> = processors.iter().map(|name| id(name)).collect();
        let mut bundler = place.command(BUNDLER);
        bundler.env("RUST_MIN_STACK", stack);
        bundler.args(["-type=a", "-unbundle", "-input=libhda.a"]);
        bundler.arg(format!("-targets={}", ids.join(",")));
        bundler.args(
            processors
                .iter()
                .map(|name| format!("-output={folder}/{name}")),
        );
        let done = bundler.output().unwrap();
        assert!(done.status.success(), "{}", errors(&done));
    };
    const USUAL: &str = "2097152";
    split(&processors, "together", USUAL);
    // No process has as much memory.
    split(&processors, "alone", &(1_u64 << 60).to_string());
    for name in processors {
        split(&[name], name, USUAL);
        let folders = ["together", "alone", name];
        let [one, two, three] = folders.map(|folder| place.read(format!("{folder}/{name}")));
        assert!(one.len() > 6 << 20, "{}", one.len());
        assert!(one == two && one == three, "{name}");
    }
}

/// A member costs the block with its header and that with its section headers, which are often the same one. The text
/// without styles is written in large parts.
#[test]
fn lists_many_members_with_few_system_calls() {
    let place = Place::new("");
    let mut archive = place.archive();
    for index in 0..MEMBERS {
        let images = [("gfx908", 40_000), ("gfx906", 20_000)];
        archive.holes(&format!("m{index}.bc"), b"image", &images);
    }
    // The shell's numbers include those of its children.
    let mut shell = place.command("sh");
    shell.args(["-c", "\"$@\" > list || exit; cat /proc/$$/io > seen", "sh"]);
    shell.arg(env!("CARGO_BIN_EXE_cargo-offload"));
    let done = shell
        .args(["archive", "list", "libhda.a"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", errors(&done));
    let list = fs::read_to_string(place.path("list")).unwrap();
    assert_eq!(list.lines().count() as u64, 2 + 2 * MEMBERS);
    let (reads, writes) = (place.counted("syscr"), place.counted("syscw"));
    // Two writes for each line, and two reads of each header.
    assert!(writes < 50, "{writes} writes");
    assert!(reads < MEMBERS + MEMBERS / 10, "{reads} reads");
}

/// The section headers of a member tell where its images are, so they are read once. One more read gives the symbols of
/// an image that another one may need.
#[test]
fn reads_the_headers_of_each_member_and_the_symbols_of_each_image_once() {
    const OBJECTS: usize = 1024;
    let place = Place::new("");
    let host = include_bytes!("../golden/22.1.8/bundle-host.o");
    let bitcode: &[u8] = include_bytes!("../golden/22.1.8/symbols.bc");
    let ids = [id("gfx908"), id("gfx906")];
    let images = [&[7; 16_001][..], bitcode];
    let entries = ids.iter().zip(images).map(|(id, image)| NewObjectEntry {
        id,
        size: Some(image.len() as u64),
    });
    let entries: Vec<NewObjectEntry<'_>> = entries.collect();
    let pieces = embed_bundle(&host[..], 0..host.len() as u64, &entries).unwrap();
    let member = pieces::to_bytes(&pieces, &[host, images[0], images[1]]).unwrap();
    // The index tells that the host link takes none of them.
    let names: Vec<String> = (0..OBJECTS).map(|index| format!("f{index}")).collect();
    let symbols: Vec<[&[u8]; 1]> = names.iter().map(|name| [name.as_bytes()]).collect();
    let content = [Piece::Bytes(member)];
    let plans = names.iter().zip(&symbols);
    let plans: Vec<MemberPlan<'_>> = plans
        .map(|(name, symbols)| MemberPlan {
            name,
            content: &content,
            symbols,
        })
        .collect();
    let archive = archive::layout(&plans, Index::Always).unwrap();
    let archive = pieces::to_bytes(&archive, &[]).unwrap();
    assert!(archive.len() as u64 > 16 * MIB, "{}", archive.len());
    place.write("libhda.a", archive);
    place.write("program.bc", bundled(&[("gfx906", bitcode)]));
    let reads = |archives: &[&str]| {
        let link = place.link("offload-ld", archives);
        assert!(link.status.success(), "{}", text(&link.stderr));
        place.counted("syscr") as usize
    };
    let reads = reads(&["libhda.a"]) - reads(&[]);
    assert!(reads > OBJECTS, "{reads} reads");
    assert!(reads < OBJECTS * 27 / 10, "{reads} reads");
}

/// Compilers name libraries such as libgcc twice, and headers of members lie across blocks.
#[test]
fn reads_each_block_of_an_archive_once() {
    let place = Place::new("");
    let mut archive = place.archive();
    for index in 0..500 {
        archive.member(&format!("m{index}.o"), OBJECT);
    }
    let blocks = archive.0.metadata().unwrap().len().div_ceil(8 << 10);
    assert!(blocks > 20, "{blocks}");
    let reads = |archives: &[&str]| {
        let link = place.link("offload-ld", archives);
        assert!(link.status.success(), "{}", text(&link.stderr));
        place.counted("syscr")
    };
    let others = reads(&[]);
    for archives in [&["libhda.a"][..], &["libhda.a", "libhda.a"]] {
        let reads = reads(archives) - others;
        assert!(
            reads <= blocks + 2,
            "{archives:?}: {reads} reads of {blocks} blocks"
        );
    }
}

/// A start of clang takes longer than the rest of a small link.
#[test]
fn asks_clang_for_no_program_that_a_link_of_bitcode_for_amd_does_not_run() {
    let place = Place::new("echo \"$*\" >> started");
    let bitcode = FLAGS.map(|(name, _)| (name, &b"BC\xc0\xde and more"[..]));
    place.write("program.bc", bundled(&bitcode));
    let link = place.link("offload-ld", &[]);
    assert!(link.status.success(), "{}", text(&link.stderr));
    let started = fs::read_to_string(place.path("started")).unwrap();
    assert_eq!(started.lines().count(), FLAGS.len(), "{started}");
    assert!(
        started.lines().all(|line| line.contains("-mcpu=gfx90")),
        "{started}"
    );
}

/// Members of each form, with a member of that size before them that nobody wants.
fn write_every_form(place: &Place, unwanted: u64) -> Vec<u8> {
    let image = |name: &str, size: usize| {
        let mut image = format!("\0{name}\n").into_bytes();
        image.resize(size, b'.');
        image
    };
    let (plain, packed) = (image("plain", 40_000), image("packed", 50_001));
    // Where no sample is taken.
    let mut other = plain.clone();
    other[10_000] = b'!';
    let mut archive = place.archive();
    archive.holes("unwanted.bc", b"", &[("gfx908", unwanted)]);
    archive.member("plain.bc", &bundled(&[("gfx906", &plain)]));
    let bytes = bundled(&[("gfx908", b"\0none"), ("gfx906", &packed)]);
    let bytes = compress(&bytes, Compression::default()).unwrap();
    archive.member("packed.bc", &bytes);
    archive.member("other.bc", &bundled(&[("gfx906", &other)]));
    archive.member("again.bc", &bundled(&[("gfx906", &plain)]));
    [b"\0program", &plain[..], &packed, &other].concat()
}

#[test]
fn gives_the_device_linker_the_same_bytes_of_small_and_large_archives() {
    let clang =
        "for a; do case $a in *.o) [ \"$cpu\" = gfx906 ] && cat \"$a\" >> given;; esac; done";
    let place = Place::new(clang);
    for unwanted in [1, 32 * MIB] {
        let expected = write_every_form(&place, unwanted);
        let _ = fs::remove_file(place.path("given"));
        let link = place.link("offload-ld", &["libhda.a", "libhda.a"]);
        assert!(link.status.success(), "{}", text(&link.stderr));
        let given = fs::read(place.path("given")).unwrap();
        assert!(given == expected, "{}", text(&given));
    }
}

#[test]
fn says_which_member_of_an_archive_changed_while_it_was_linked() {
    for (change, problem) in [
        (
            "printf '!<arch>\\n' > libhda.a",
            "the file changed while it was linked",
        ),
        (
            "head -c 40000000 /dev/zero > libhda.a",
            "the file changed while it was linked",
        ),
        // As long as before.
        (
            "printf X | dd of=libhda.a bs=1 seek=100 conv=notrunc 2> /dev/null",
            "the file changed while it was linked",
        ),
        (
            "mv libhda.a old; cp old libhda.a",
            "the file changed while it was linked",
        ),
        ("rm libhda.a", "No such file or directory (os error 2)"),
    ] {
        for name in NAMES {
            // The link for gfx90a comes after that for gfx906.
            let place = Place::new(&format!("[ \"$cpu\" = gfx906 ] && {{ {change}; }}"));
            let mut archive = place.archive();
            let sizes = [("gfx906", 4096), ("gfx90a", 32 * MIB)];
            archive.holes("member.bc", b"\0image", &sizes);
            let before = SystemTime::now() - Duration::from_secs(60);
            archive.0.set_modified(before).unwrap();
            let link = place.link(name, &["libhda.a"]);
            let said = text(&link.stderr);
            assert_eq!(link.status.code(), Some(1), "{name}: {change}: {said}");
            let start = "error: libhda.a(member.bc): the hip image for amdgcn-amd-amdhsa gfx90a cannot be copied to `";
            assert!(said.contains(start), "{name}: {change}: {said}");
            let said = said.replace(" [OFF809]", "").replace(" [OFF811]", "");
            assert!(
                said.trim_end().ends_with(problem),
                "{name}: {change}: {said}"
            );
            assert!(!place.path("seen").exists(), "{name}: {change}: {said}");
            assert!(!place.path("output").exists(), "{name}: {change}: {said}");
            assert_eq!(place.left(), 0, "{name}: {change}: {said}");
        }
    }
}

/// Size of a compressed bundle's content, almost all of it zeros.
const CONTAINED: u64 = 256 * MIB;

/// Compresses that many bytes, of which these are the first.
fn bomb(first: &[u8], size: u64) -> Vec<u8> {
    let zeros = std::io::repeat(0).take(size - first.len() as u64);
    let mut packed = Cursor::new(Vec::new());
    let how = Compression::default();
    compress_to(how, size, first.chain(zeros), &mut packed).unwrap();
    packed.into_inner()
}

/// A bundle of an empty part for the host and one large image, compressed.
fn bundle_bomb(start: &[u8]) -> Vec<u8> {
    let ids = ["host-x86_64-unknown-linux-gnu-", &id("gfx906")];
    // The first is for its size.
    let layout = BundleLayout::new([(ids[0], 0), (ids[1], 0)], NonZeroU64::MIN).unwrap();
    let image = CONTAINED - layout.head.len() as u64;
    let layout = BundleLayout::new([(ids[0], 0), (ids[1], image)], NonZeroU64::MIN).unwrap();
    bomb(&[&layout.head, start].concat(), CONTAINED)
}

/// The command with 224 MiB of address space: less than the bombs contain, more than zstd's window of 128 MiB. One heap
/// for all threads, as glibc reserves 64 MiB and more for each.
fn short_of_memory(place: &Place, program: &str, args: &[&str]) -> Output {
    let mut shell = place.command("sh");
    shell.args([
        "-c",
        "ulimit -v 229376; MALLOC_ARENA_MAX=1; export MALLOC_ARENA_MAX; exec \"$@\"",
        "sh",
        program,
    ]);
    shell.args(args).output().unwrap()
}

#[test]
#[ignore = "`make test-all`: unpacks four times; `links_more_than_it_has_memory_for` is shorter"]
fn unpacks_more_than_it_has_memory_for() {
    let place = Place::new("");
    place.write("bomb.bc", bundle_bomb(b"image"));
    let text = b"\n; __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx906\n";
    place.write("bomb.ll", bomb(text, CONTAINED));
    let target = format!("-targets={}", id("gfx906"));
    let list = |name, file| short_of_memory(&place, BUNDLER, &["-list", name, file]);

    let done = list("-type=bc", "-input=bomb.bc");
    assert!(done.status.success(), "{}", errors(&done));
    // No text, which only one who has read all of it knows.
    let done = list("-type=ll", "-input=bomb.bc");
    assert!(done.status.success(), "{}", errors(&done));
    assert_eq!(done.stdout, b"");
    let done = list("-type=ll", "-input=bomb.ll");
    assert_eq!(done.status.code(), Some(1));
    let said = errors(&done);
    assert!(said.contains("missing end of entry"), "{said}");
    let args = [
        "-unbundle",
        "-type=bc",
        &target,
        "-input=bomb.bc",
        "-output=o",
    ];
    let done = short_of_memory(&place, BUNDLER, &args);
    assert!(done.status.success(), "{}", errors(&done));
    let size = fs::metadata(place.path("o")).unwrap().len();
    assert!(CONTAINED - size < 1000, "{size}");
}

#[test]
fn links_more_than_it_has_memory_for() {
    let place = Place::new("");
    let start = shim_clang::amd_image(FLAGS[0].1);
    place.write("bomb.bc", bundle_bomb(&start));
    let link = place.path("bin/offload-ld");
    let args = ["--linker-path=./ld", "-o", "output", "bomb.bc"];
    let done = short_of_memory(&place, link.to_str().unwrap(), &args);
    assert!(done.status.success(), "{}", errors(&done));
    let memory = place.counted("VmHWM") * 1024;
    assert!(memory < 192 * MIB, "{memory} bytes of memory");
    assert_eq!(place.left(), 0);
}

#[test]
fn refuses_bundles_that_claim_more_than_the_limit() {
    let place = Place::new("");
    let bytes = bundled(&[("gfx906", &[1; 100_000])]);
    let packed = compress(&bytes, Compression::default()).unwrap();
    place.write("packed.bc", &packed);
    let mut archive = place.archive();
    archive.member("one.bc", &packed);
    archive.member("two.bc", &packed);
    let size = bytes.len();
    let target = format!("-targets={}", id("gfx906"));
    let cargo = env!("CARGO_BIN_EXE_cargo-offload");
    let link = place.path("bin/offload-ld");
    let link = link.to_str().unwrap();
    let list = ["-list", "-type=bc", "-input=packed.bc"];
    let split = [
        "-unbundle",
        "-type=a",
        "-input=libhda.a",
        "-output=o",
        &target,
    ];
    let linked = ["--linker-path=./ld", "-o", "output", "packed.bc"];
    let archives = ["archive", "list", "libhda.a"];
    // What all members claim together is on disk at once.
    for (program, args, claimed) in [
        (BUNDLER, &list[..], size),
        (BUNDLER, &split, 2 * size),
        (link, &linked, size),
        (cargo, &archives, size),
    ] {
        let run = |option: &str, variable: &str| {
            let mut command = place.command(program);
            command.env("OFFLOAD_MAX_DECOMPRESSED_SIZE", variable);
            command
                .args(args)
                .args((!option.is_empty()).then_some(option));
            command.output().unwrap()
        };
        let exact = format!("--max-decompressed-size={claimed}");
        let less = format!("--max-decompressed-size={}", claimed - 1);
        let done = run(&exact, "1");
        assert!(done.status.success(), "{args:?}: {}", errors(&done));
        let done = run("", "1k");
        assert_eq!(done.status.code(), Some(1), "{args:?}");
        assert!(errors(&done).contains("more than the allowed 0x400"));
        let done = run(&less, "1G");
        let said = errors(&done);
        assert_eq!(done.status.code(), Some(1), "{args:?}: {said}");
        let expected = format!(
            "uncompressed size {claimed:#x} is more than the allowed {:#x}\nhint: --max-decompressed-size=<size>",
            claimed - 1
        );
        assert!(said.contains(&expected), "{args:?}: {said}");
        let done = run("--max-decompressed-size=much", "");
        let said = errors(&done);
        assert!(
            said.contains("--max-decompressed-size: `much` is not a size"),
            "{said}"
        );
    }
}

#[test]
fn refuses_offload_binaries_that_inflate_to_more_than_the_limit() {
    let place = Place::new("");
    let image = shim_clang::amd_image(FLAGS[0].1);
    let written = NewBinaryEntry {
        image_kind: ImageKind::OBJECT,
        offload_kind: OffloadKind::HIP,
        strings: &[(b"triple", b"amdgcn-amd-amdhsa"), (b"arch", b"gfx906")],
        image_size: image.len() as u64,
        ..Default::default()
    };
    let plain =
        offload_binary::layout(&[written], OffloadBinaryVersion::V3, LlvmRelease::Main).unwrap();
    let plain = pieces::to_bytes(&plain, &[&image]).unwrap();
    let packed = offload_binary::compress(&plain, Method::Zstd, None).unwrap();
    place.write("one.bin", &packed);
    place.write("two.bin", [&packed[..], &packed].concat());
    // More than the size that it claims.
    let mut longer = packed.clone();
    longer[0x20] -= 1;
    place.write("longer.bin", &longer);
    let object = embed::elf_object(elf::Machine::X86_64, &packed).unwrap();
    place.write("one.o", &object);
    place.write("two.o", &object);
    let size = plain.len();
    let cargo = env!("CARGO_BIN_EXE_cargo-offload");
    let packager = env!("CARGO_BIN_EXE_offload-packager");
    let link = place.path("bin/offload-ld");
    let link = link.to_str().unwrap();
    let run = |program: &str, args: &[&str], option: &str, variable: &str| {
        let mut command = place.command(program);
        command.env("OFFLOAD_MAX_DECOMPRESSED_SIZE", variable);
        command.args(args);
        command
            .args((!option.is_empty()).then_some(option))
            .output()
            .unwrap()
    };
    // What all files claim together is in memory at once.
    let cases: [(&str, &[&str], usize); 5] = [
        (packager, &["--list", "one.bin"], 1),
        (packager, &["--list", "two.bin"], 2),
        (cargo, &["inspect", "one.bin"], 1),
        (cargo, &["inspect", "one.bin", "one.bin"], 2),
        (
            link,
            &["--linker-path=./ld", "-o", "output", "one.o", "two.o"],
            2,
        ),
    ];
    for (program, args, count) in cases {
        let exact = format!("--max-decompressed-size={}", count * size);
        let done = run(program, args, &exact, "1");
        assert!(done.status.success(), "{args:?}: {}", errors(&done));
        let less = format!("--max-decompressed-size={}", count * size - 1);
        for (option, variable) in [(&*less, "1G"), ("", less.split_once('=').unwrap().1)] {
            let done = run(program, args, option, variable);
            let said = errors(&done);
            assert_eq!(done.status.code(), Some(1), "{args:?}: {said}");
            let expected = format!(
                "inflated size {size:#x} is more than the allowed {:#x}\nhint: --max-decompressed-size=<size>",
                size - 1
            );
            assert!(said.contains(&expected), "{args:?}: {said}");
        }
        let done = run(program, args, "--max-decompressed-size=much", "");
        let expected = "--max-decompressed-size: `much` is not a size";
        assert!(errors(&done).contains(expected), "{}", errors(&done));
    }
    for (program, command) in [(packager, "--list"), (cargo, "inspect")] {
        let done = run(program, &[command, "longer.bin"], "", "");
        assert_eq!(done.status.code(), Some(1));
        let expected = format!("expected data of inflated size {:#x}, found more", size - 1);
        assert!(errors(&done).contains(&expected), "{}", errors(&done));
    }
}

/// Each bundle is within the limit; what is linked of all is not.
#[test]
fn refuses_links_that_decompress_more_than_the_limit() {
    let place = Place::new("");
    let mut start = shim_clang::amd_image(FLAGS[0].1);
    // More than stays in memory.
    start.resize(65 << 20, 0);
    let bytes = bundled(&[("gfx906", &start)]);
    let packed = compress(&bytes, Compression::default()).unwrap();
    place.write("one.bc", &packed);
    place.write("two.bc", &packed);
    let link = place.path("bin/offload-ld");
    let claimed = bytes.len();
    let limit = format!("--max-decompressed-size={claimed}");
    let args = ["--linker-path=./ld", "-o", "output", &limit, "one.bc"];
    let run = |more: &[&str]| place.command(&link).args(args).args(more).output().unwrap();
    let done = run(&[]);
    assert!(done.status.success(), "{}", errors(&done));
    fs::remove_file(place.path("output")).unwrap();
    let done = run(&["two.bc"]);
    let said = errors(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    let expected = format!(
        "the compressed images of this link are larger than the allowed {claimed:#x}\nhint: --max-decompressed-size=<size>"
    );
    assert!(said.contains(&expected), "{said}");
    assert!(!place.path("output").exists());
    assert_eq!(place.left(), 0);

    // A folder for temporary files that is full.
    let mut shell = place.command("sh");
    shell.args(["-c", "ulimit -f 16; exec \"$@\"", "sh"]);
    let done = shell.arg(&link).args(args).output().unwrap();
    let said = errors(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("file too large"), "{said}");
    assert!(said.contains("set TMPDIR to a folder"), "{said}");
    assert!(
        !said.contains("damaged") && !said.contains("invalid"),
        "{said}"
    );
    assert_eq!(place.left(), 0);
}

pub(super) fn errors(done: &Output) -> String {
    text(&done.stderr)
}
