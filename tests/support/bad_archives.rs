//! Archives of bundles that are cut, or lie. What is said of each is computed from where things are in it.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    unreachable_pub,
    reason = "a module of several crates, none of which exports it"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// `clang-offload-bundler -type=o` of LLVM 22 made it (`tests/golden/README.md`).
const OBJECT: &[u8] = include_bytes!("../golden/22.1.8/bundle-in-object.o");
/// With `-compress`.
const COMPRESSED: &[u8] = include_bytes!("../golden/22.1.8/compressed.bundle");

pub const HOST: &str = "host-x86_64-unknown-linux-gnu-";
pub const GFX906: &str = "hip-amdgcn-amd-amdhsa--gfx906";

/// A bundle as `docs/spec/bundler.md` §2.1 has it: images at no alignment.
pub fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    let number = |bytes: &mut Vec<u8>, value: usize| bytes.extend((value as u64).to_le_bytes());
    number(&mut bytes, entries.len());
    let ids: usize = entries.iter().map(|(id, _)| 24 + id.len()).sum();
    let mut offset = bytes.len() + ids;
    for (id, image) in entries {
        for value in [offset, image.len(), id.len()] {
            number(&mut bytes, value);
        }
        bytes.extend(id.as_bytes());
        offset += image.len();
    }
    let images = entries.iter().flat_map(|(_, image)| image.iter());
    bytes.extend(images);
    bytes
}

/// The header of a member, of any size.
fn header(name: &str, size: &str) -> String {
    format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644)
}

/// An archive without an index; names that are not short are in the table of names.
pub fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let is_long = |name: &str| name.len() > 15 || name.contains('/');
    let mut names = String::new();
    let mut bodies = Vec::new();
    for (name, content) in members {
        let field = match is_long(name) {
            true => format!("/{}", names.len()),
            false => format!("{name}/"),
        };
        if is_long(name) {
            names += &format!("{name}/\n");
        }
        bodies.extend(header(&field, &content.len().to_string()).into_bytes());
        bodies.extend(*content);
        bodies.extend(vec![b'\n'; content.len() % 2]);
    }
    let mut bytes = b"!<arch>\n".to_vec();
    if !names.is_empty() {
        names += if names.len() % 2 == 1 { "\n" } else { "" };
        let size = names.len();
        bytes.extend(format!("{:<48}{size:<10}`\n", "//").into_bytes());
        bytes.extend(names.into_bytes());
    }
    bytes.extend(bodies);
    bytes
}

/// An archive with an index in front: names, and where it says that the members are which define them.
pub fn with_index(archive: &[u8], symbols: &[(&str, u32)]) -> Vec<u8> {
    let mut index = (symbols.len() as u32).to_be_bytes().to_vec();
    index.extend(symbols.iter().flat_map(|(_, place)| place.to_be_bytes()));
    index.extend(
        symbols
            .iter()
            .flat_map(|(name, _)| format!("{name}\0").into_bytes()),
    );
    let mut bytes = b"!<arch>\n".to_vec();
    bytes.extend(header("/", &index.len().to_string()).into_bytes());
    bytes.extend(&index);
    bytes.extend(vec![0; index.len() % 2]);
    bytes.extend(&archive[8..]);
    bytes
}

/// An archive that nobody can read whole.
pub struct Bad {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    /// The member with the damage; nothing where that of the archive has no name.
    pub member: Option<&'static str>,
    /// What is said of it.
    pub problem: String,
}

/// Each has a whole member `a.bc` and then `b.bc`, whose header is at `second`.
pub fn bad_archives() -> Vec<Bad> {
    let good = bundle(&[(HOST, b""), (GFX906, &[b'x'; 64])]);
    let second = 8 + 60 + good.len() + good.len() % 2;
    let start = second + 60;
    let two = |content: &[u8]| archive(&[("a.bc", &good), ("b.bc", content)]);
    let sized = |size: &str| {
        let mut bytes = two(&good);
        bytes[second + 48..second + 58].copy_from_slice(format!("{size:<10}").as_bytes());
        bytes
    };
    let end = two(&good).len();
    let mut small = two(&good);
    let less = format!("{:<10}", good.len() - 10);
    small[8 + 48..8 + 58].copy_from_slice(less.as_bytes());
    let early = second - 10;
    let found = &small[early + 58..early + 60].escape_ascii().to_string();
    let mut nameless = two(&good);
    nameless[second..second + 16].copy_from_slice(format!("{:<16}", "/7").as_bytes());

    let images = good.len() - 64;
    let ids = 24 + 8 + 24;
    let text = format!("\n# __CLANG_OFFLOAD_BUNDLE____START__ {GFX906}\ns_nop 0\n");
    // `sh_size` of the section of the device, in the table of sections; of 64 bytes each, ELF64.
    let table = u64::from_le_bytes(OBJECT[0x28..0x30].try_into().unwrap()) as usize;
    let count = u16::from_le_bytes(OBJECT[0x3c..0x3e].try_into().unwrap()) as usize;
    let bad = |name, bytes, member, problem: String| Bad {
        name,
        bytes,
        member,
        problem,
    };
    vec![
        bad(
            "a size past the end",
            sized("99999"),
            None,
            format!(
                "member at offset {second:#x}: content at offset {start:#x} with size {:#x} runs past the end at {end:#x}",
                99999
            ),
        ),
        bad(
            "a size that is no number",
            sized("12x4"),
            None,
            format!("member at offset {second:#x}: size field `12x4` is not a decimal number"),
        ),
        bad(
            "a size too small",
            small.clone(),
            None,
            format!(
                "member at offset {early:#x}: expected its header to end with \"`\\n\", found \"{found}\""
            ),
        ),
        bad(
            "a long name that is not there",
            nameless,
            None,
            format!("member at offset {second:#x}: its long name is missing"),
        ),
        bad(
            "a bundle cut in an image",
            two(&good[..good.len() - 10]),
            Some("b.bc"),
            format!(
                "bundle 0: entry 1: image at offset {:#x} with size 0x40 runs past the end at {:#x}",
                start + images,
                start + good.len() - 10
            ),
        ),
        bad(
            "a bundle cut in an entry ID",
            two(&good[..60]),
            Some("b.bc"),
            format!(
                "bundle 0: entry 0: entry ID at offset {:#x} with size {:#x} runs past the end at {:#x}",
                start + ids,
                HOST.len(),
                start + 60
            ),
        ),
        bad(
            "a compressed bundle cut in its data",
            two(&COMPRESSED[..COMPRESSED.len() - 20]),
            Some("b.bc"),
            "compressed bundle: the data is damaged".to_owned(),
        ),
        bad(
            "a text bundle without its end",
            two(text.as_bytes()),
            Some("b.bc"),
            format!(
                "text bundle: missing end of entry `{GFX906}`, which starts at offset {:#x}",
                start + 1
            ),
        ),
        bad(
            "an object cut in its table of sections",
            two(&OBJECT[..OBJECT.len() - 100]),
            Some("b.bc"),
            format!(
                "section header table at offset {:#x} with size {:#x} runs past the end at {:#x}",
                start + table,
                64 * count,
                start + OBJECT.len() - 100
            ),
        ),
    ]
}

/// Every file below a folder, with what is in it.
pub fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        match path.is_dir() {
            true => found.extend(tree(&path)),
            false => drop(found.insert(name, fs::read(&path).unwrap_or_default())),
        }
    }
    found
}
