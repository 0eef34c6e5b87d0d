//! An archive of bundles (HDA) of any size, the same in each run, without a compiler for each member.
//!
//! One member is compiled, by clang's older driver. The others are copies of it with other names in them; each image
//! is bitcode that LLVM reads, filled up with noise in a block that LLVM skips.
//!
//! | of 100 members | form                                                       |
//! |---------------:|------------------------------------------------------------|
//! |             90 | host object with sections `__CLANG_OFFLOAD_BUNDLE__*`      |
//! |              9 | bundle without a host part                                 |
//! |              1 | the same, compressed                                       |

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::num::NonZeroU64;
use std::path::Path;
use std::process::Command;

use offload_formats::container::archive::{Index, MemberPlan, layout};
use offload_formats::container::definitions;
use offload_formats::container::object_bundle::{
    BundleSection, NewObjectEntry, bundle_sections, embed_bundle, host_part,
};
use offload_formats::format::bundle::{self, BundleImage};
use offload_formats::format::compressed_bundle::{Compression, compress};
use offload_formats::format::pieces::{self, Piece};

use crate::folder::run;
use crate::stand_ins::CLANG;

/// The targets of every member.
pub(crate) const PROCESSORS: [&str; 4] = ["gfx906", "gfx908", "gfx90a", "gfx942"];

/// Of each device's image, in bytes; four of them in 5,000 members are a little more than 1 GiB.
const IMAGE_SIZE: usize = 53 << 10;

/// What clang needs of HIP's headers.
pub(crate) const HIP: &str = "#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
typedef struct { unsigned x, y, z; } dim3;
extern \"C\" int __hipPushCallConfiguration(dim3, dim3, unsigned long, void *);
extern \"C\" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
extern \"C\" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
";

/// What becomes the number of the member.
const NUMBER: &str = "00000";

/// The flags of clang's older driver for HIP.
pub(crate) const OLDER_DRIVER: [&str; 6] = [
    "-x",
    "hip",
    "-nogpulib",
    "-nogpuinc",
    "-fgpu-rdc",
    "--no-offload-new-driver",
];

/// The member that the others are copies of.
struct Template {
    /// The host's object, without a bundle.
    host: Vec<u8>,
    /// Entry ID and bitcode; none for the host's.
    entries: Vec<(String, Option<Vec<u8>>)>,
    /// What clang made of the name of the source.
    unique: String,
}

/// Writes an archive of `count` members.
pub(crate) fn write(path: &Path, count: usize) {
    let template = Template::compile(&path.with_extension("hip"));
    let members: Vec<Member> = (0..count).map(|index| template.member(index)).collect();
    let plans: Vec<MemberPlan<'_>> = members
        .iter()
        .map(|member| MemberPlan {
            name: &member.name,
            content: &member.pieces,
            symbols: &[],
        })
        .collect();
    let symbols: Vec<Vec<&[u8]>> = members.iter().map(Member::symbols).collect();
    let plans: Vec<MemberPlan<'_>> = plans
        .into_iter()
        .zip(&symbols)
        .map(|(plan, symbols)| MemberPlan { symbols, ..plan })
        .collect();
    let pieces = layout(&plans, Index::Always).expect("members of usual size");
    let mut out = BufWriter::new(File::create(path).expect("the archive"));
    for piece in &pieces {
        match piece {
            Piece::Bytes(bytes) => out.write_all(bytes),
            Piece::Zeros(size) => out.write_all(&vec![0; *size as usize]),
            Piece::Copy { input, .. } => {
                let (index, entry) = (input / PER_MEMBER, input % PER_MEMBER);
                out.write_all(&template.image(index, entry))
            }
        }
        .expect("the archive is written");
    }
    out.flush().expect("the archive is written");
}

/// Images are numbered through all members.
const PER_MEMBER: usize = 16;

struct Member {
    name: String,
    /// The input of a piece is the number of an image, of which it is all.
    pieces: Vec<Piece>,
    /// Of the host, where there is one.
    host: Vec<u8>,
}

impl Member {
    fn symbols(&self) -> Vec<&[u8]> {
        definitions(&*self.host, 0..self.host.len() as u64).expect("an object")
    }
}

impl Template {
    fn compile(source: &Path) -> Self {
        let text = format!(
            "{HIP}__device__ int helper{NUMBER}(int x) {{ return x + 1; }}
__global__ void kernel{NUMBER}(int *p) {{ *p = helper{NUMBER}(*p); }}
extern \"C\" void launch{NUMBER}(int *p) {{ kernel{NUMBER}<<<dim3{{}}, dim3{{}}, 0, 0>>>(p); }}
"
        );
        fs::write(source, text).expect("a source");
        let object = source.with_extension("template.o");
        let mut clang = Command::new(CLANG);
        clang.args(OLDER_DRIVER).args(["-O1", "-c"]);
        clang.arg(format!("--offload-arch={}", PROCESSORS.join(",")));
        run(clang.arg(source).arg("-o").arg(&object));

        let bytes = fs::read(object).expect("the object");
        let whole = 0..bytes.len() as u64;
        let sections = bundle_sections(&*bytes, whole.clone()).expect("a bundle");
        let pieces = host_part(&*bytes, whole).expect("an object");
        let host = pieces::to_bytes(&pieces, &[&bytes]).expect("pieces of it");
        let entry = |section: &BundleSection| {
            let range = section.content.start as usize..section.content.end as usize;
            let bitcode = (!section.host).then(|| bytes[range].to_vec());
            (section.id.clone(), bitcode)
        };
        let symbols = definitions(&*host, 0..host.len() as u64).expect("symbols");
        let unique = symbols
            .iter()
            .find_map(|name| name.strip_prefix(b"__hip_cuid_"));
        let unique = String::from_utf8(unique.expect("clang's name").to_vec());
        Self {
            host,
            entries: sections.iter().map(entry).collect(),
            unique: unique.expect("a number"),
        }
    }

    fn member(&self, index: usize) -> Member {
        let input = |entry: usize| index * PER_MEMBER + entry;
        let copy = |entry: usize| Piece::Copy {
            input: input(entry),
            range: 0..IMAGE_SIZE as u64,
        };
        let images = || {
            let entries = self.entries.iter().enumerate();
            entries.filter(|(_, (_, bitcode))| bitcode.is_some())
        };
        let (pieces, host) = match index % 100 {
            99 => {
                let all: Vec<(&str, Vec<u8>)> = images()
                    .map(|(entry, (id, _))| (id.as_str(), self.image(index, entry)))
                    .collect();
                let images: Vec<BundleImage<'_>> = all
                    .iter()
                    .map(|(id, image)| BundleImage { id, image })
                    .collect();
                let bytes = bundle::to_bytes(&images, NonZeroU64::MIN).expect("a bundle");
                let bytes = compress(&bytes, Compression::default()).expect("zstd");
                (vec![Piece::Bytes(bytes)], Vec::new())
            }
            90.. => {
                let ids = images().map(|(_, (id, _))| (id.as_str(), IMAGE_SIZE as u64));
                let layout = bundle::BundleLayout::new(ids, NonZeroU64::MIN).expect("a bundle");
                let head = [Piece::Bytes(layout.head)];
                let images = images().map(|(entry, _)| copy(entry));
                (head.into_iter().chain(images).collect(), Vec::new())
            }
            _ => {
                let host = self.numbered(&self.host, index);
                let entries = self.entries.iter().map(|(id, bitcode)| NewObjectEntry {
                    id,
                    size: bitcode.as_ref().map(|_| IMAGE_SIZE as u64),
                });
                let entries: Vec<NewObjectEntry<'_>> = entries.collect();
                let pieces = embed_bundle(&*host, 0..host.len() as u64, &entries);
                let pieces = pieces.expect("an object").into_iter();
                let pieces = pieces.map(|piece| match piece {
                    Piece::Copy { input: 0, range } => {
                        Piece::Bytes(host[range.start as usize..range.end as usize].to_vec())
                    }
                    Piece::Copy { input, .. } => copy(input - 1),
                    other => other,
                });
                (pieces.collect(), host)
            }
        };
        let extension = if host.is_empty() { "bc" } else { "o" };
        Member {
            name: format!("member{index:05}.{extension}"),
            pieces,
            host,
        }
    }

    /// An image of that member, and of that entry of the template.
    fn image(&self, index: usize, entry: usize) -> Vec<u8> {
        let bitcode = self.entries[entry].1.as_ref().expect("a device's entry");
        let mut bytes = self.numbered(bitcode, index);
        assert!(bytes.len() % 4 == 0 && bytes.len() + 8 < IMAGE_SIZE);
        // At the end of bitcode, the start of a block: two bits of abbreviation, the number of the block, the width of
        // abbreviations in it; and how many words it has.
        const UNKNOWN: u32 = 1 | 100 << 2 | 2 << 10;
        let words = (IMAGE_SIZE - bytes.len() - 8) / 4;
        bytes.extend(UNKNOWN.to_le_bytes());
        bytes.extend((words as u32).to_le_bytes());
        let mut noise = (index * PER_MEMBER + entry + 1) as u64;
        for _ in 0..words {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            bytes.extend((noise as u32).to_le_bytes());
        }
        bytes
    }

    /// With the number of a member in its names.
    fn numbered(&self, bytes: &[u8], index: usize) -> Vec<u8> {
        let number = format!("{index:05}");
        let mut bytes = bytes.to_vec();
        for name in ["helper", "kernel", "launch"] {
            let old = format!("{name}{NUMBER}");
            replace(&mut bytes, &old, &format!("{name}{number}"));
        }
        let width = self.unique.len();
        replace(&mut bytes, &self.unique, &format!("{index:0width$x}"));
        bytes
    }
}

fn replace(bytes: &mut [u8], old: &str, new: &str) {
    assert_eq!(old.len(), new.len());
    for at in 0..bytes.len().saturating_sub(old.len() - 1) {
        if bytes[at..].starts_with(old.as_bytes()) {
            bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
        }
    }
}
