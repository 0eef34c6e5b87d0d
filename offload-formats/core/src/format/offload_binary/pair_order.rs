//! The order in which LLVM's packager writes the strings of an image: the order of its hash maps.
//!
//! No reader depends on it; it only makes our bytes equal LLVM's. The linker wrapper and `yaml2obj`
//! keep the given order.

use crate::names::LlvmRelease;

/// Returns the order in which the packager of `release` writes the keys of one `--image`, as
/// indices into `keys`. `keys` has all keys of the option as given, also `file` and `kind`, which
/// are not written. For a repeated key, the result has its first index.
///
/// If the order is unknown, returns the given order: up to LLVM 22, if a key has more than 64
/// bytes; since LLVM 23, if there is any key except `triple`, `arch`, `feature`, `file`, `kind`,
/// `member`, `version`, `symbols`, `compile-opts` and the empty one.
#[must_use]
pub fn pair_order(keys: &[&str], release: LlvmRelease) -> Vec<usize> {
    let mut distinct: Vec<(usize, &str)> = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        if distinct.iter().all(|(_, known)| known != key) {
            distinct.push((index, key));
        }
    }
    let probing = match release {
        LlvmRelease::V23 | LlvmRelease::Main => Probing::Linear,
        _ => Probing::Triangular,
    };
    let hashes = distinct.iter().map(|(_, key)| match probing {
        Probing::Linear => hash_23(key),
        Probing::Triangular => hash_19(key.as_bytes()),
    });
    let order = match hashes.collect::<Option<Vec<u64>>>() {
        Some(hashes) => buckets(&hashes, probing),
        None => (0..distinct.len()).collect(),
    };
    let entries = order.into_iter().filter_map(|place| distinct.get(place));
    // `file` and `kind` occupy buckets, but are not written.
    let written = entries.filter(|(_, key)| !matches!(*key, "file" | "kind"));
    written.map(|(index, _)| *index).collect()
}

/// The next bucket to try if a bucket is occupied. Each kind of map has its own hash.
#[derive(Clone, Copy, PartialEq)]
enum Probing {
    /// LLVM 19 to 22: 1, 3, 6, 10, … buckets further.
    Triangular,
    /// LLVM 23 and later: the following bucket.
    Linear,
}

/// Inserts as many places as there are hashes into a map of 64 buckets, which grows. Returns
/// the map's order.
fn buckets(hashes: &[u64], probing: Probing) -> Vec<usize> {
    let mut map = vec![None; 64];
    for place in 0..hashes.len() {
        // LLVM grows the map before it inserts.
        if place.saturating_add(1).saturating_mul(4) >= map.len().saturating_mul(3) {
            map = twice(&map, hashes, probing);
        }
        insert(&mut map, place, hashes, probing);
    }
    map.into_iter().flatten().collect()
}

fn twice(map: &[Option<usize>], hashes: &[u64], probing: Probing) -> Vec<Option<usize>> {
    let mut larger = vec![None; map.len().saturating_mul(2)];
    for place in map.iter().flatten() {
        insert(&mut larger, *place, hashes, probing);
    }
    larger
}

fn insert(map: &mut [Option<usize>], place: usize, hashes: &[u64], probing: Probing) {
    let hash = *hashes.get(place).expect("each place has a hash");
    // Sizes are powers of two; the lower half of the hash selects the bucket.
    let mask = map.len().wrapping_sub(1);
    let mut bucket = (hash as u32 as usize) & mask;
    for step in 1..=map.len() {
        match map.get_mut(bucket) {
            Some(Some(_)) => {}
            Some(free) => {
                *free = Some(place);
                return;
            }
            None => return,
        }
        let distance = if probing == Probing::Linear { 1 } else { step };
        bucket = bucket.wrapping_add(distance) & mask;
    }
}

/// Keys with known hashes: XXH3 with [`SEED`] folded in.
const KEYS_23: [(&str, u64); 10] = [
    ("", 0xd257_2fd2_d586_180f),
    ("arch", 0x6577_7618_bb52_a285),
    ("file", 0xcbeb_be08_05a5_5b4b),
    ("kind", 0xebcb_815e_d46e_f789),
    ("triple", 0x72cb_77b6_f899_1a93),
    ("feature", 0xf94f_0dc5_7df0_2cb7),
    ("member", 0xc8c6_609e_8cbf_84b8),
    ("version", 0x2f25_c0d0_91d2_74b6),
    ("symbols", 0x6c42_bab9_0ccb_3822),
    ("compile-opts", 0xbda9_d6d2_1d2e_ab15),
];

fn hash_23(key: &str) -> Option<u64> {
    let row = KEYS_23.iter().find(|(known, _)| *known == key);
    row.map(|(_, hash)| *hash)
}

const SEED: u64 = 0xff51_afd7_ed55_8ccd;
const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;
const K3: u64 = 0xc949_d7c7_509e_6557;
const K: u64 = 0x9ddf_ea08_eb38_2d69;

/// Computes the hash of LLVM 19 to 22 for up to 64 bytes: a CityHash with LLVM's seed.
fn hash_19(key: &[u8]) -> Option<u64> {
    let len = key.len();
    let n = len as u64;
    let f64 = |offset: usize| word::<8>(key, offset);
    let f32 = |offset: usize| word::<4>(key, offset);
    let back = |bytes: usize| len.saturating_sub(bytes);
    let mul = u64::wrapping_mul;
    let add = u64::wrapping_add;
    let sub = u64::wrapping_sub;
    Some(match len {
        0 => K2 ^ SEED,
        1..=3 => {
            let byte = |offset: usize| word::<1>(key, offset);
            let y = add(byte(0), byte(len / 2) << 8);
            let z = add(n, byte(back(1)) << 2);
            mul(mix(mul(y, K2) ^ mul(z, K3) ^ SEED), K2)
        }
        4..=8 => both(add(n, f32(0) << 3), SEED ^ f32(back(4))),
        9..=16 => {
            let (a, b) = (f64(0), f64(back(8)));
            both(SEED ^ a, add(b, n).rotate_right(n as u32)) ^ b
        }
        17..=32 => {
            let (a, b) = (mul(f64(0), K1), f64(8));
            let (c, d) = (mul(f64(back(8)), K2), mul(f64(back(16)), K0));
            let x = add(sub(a, b).rotate_right(43), (c ^ SEED).rotate_right(30));
            let y = add(sub(add(a, (b ^ K3).rotate_right(20)), c), add(n, SEED));
            both(add(x, d), y)
        }
        33..=64 => {
            // The first and the last 32 bytes.
            let half = |start: usize, a: u64, z: u64| {
                let (b, c) = (add(a, z).rotate_right(52), a.rotate_right(37));
                let a = add(a, f64(start + 8));
                let c = add(c, a.rotate_right(7));
                let a = add(a, f64(start + 16));
                (add(a, z), add(add(b, a.rotate_right(31)), c))
            };
            let a = add(f64(0), mul(add(n, f64(back(16))), K0));
            let (vf, vs) = half(0, a, f64(24));
            let (wf, ws) = half(back(32), add(f64(16), f64(back(32))), f64(back(8)));
            let r = mix(add(mul(add(vf, ws), K2), mul(add(wf, vs), K0)));
            mul(mix(add(SEED ^ mul(r, K0), vs)), K2)
        }
        _ => return None,
    })
}

fn word<const N: usize>(key: &[u8], offset: usize) -> u64 {
    let bytes = key.get(offset..offset + N);
    let bytes = bytes.expect("the key's length determines its words");
    bytes
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn mix(value: u64) -> u64 {
    value ^ (value >> 47)
}

/// Mixes two words into one.
fn both(x: u64, y: u64) -> u64 {
    let a = mix((x ^ y).wrapping_mul(K));
    mix((y ^ a).wrapping_mul(K)).wrapping_mul(K)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with the hash of LLVM 22, which two hundred runs of its packager agree with.
    #[test]
    fn hashes_as_llvm_22_does() {
        for (key, expected) in [
            ("", 0x65b0_c5ec_c2c5_cc82),
            ("a", 0xaeb6_f9d5_517c_61f8),
            ("id", 0x9a53_5364_2add_0f37),
            ("arch", 0x1499_ea7c_f386_c709),
            ("file", 0x7d2d_536e_d4e6_b353),
            ("kind", 0xe421_e5cb_c820_7aa5),
            ("triple", 0x45f9_d327_0819_b0d8),
            ("feature", 0x9bfd_2475_907b_e7c2),
            ("member", 0xbdd6_1562_c697_d9ab),
            ("version", 0x2948_d8b9_1a14_4505),
            ("symbols", 0x6083_647b_49a1_f865),
            ("compile-opts", 0xc42b_2482_30e6_6573),
            ("0123456789abcdef", 0xa677_c604_c15e_7943),
            ("0123456789abcdefg", 0xde23_b5f2_b2ee_3cff),
            ("0123456789abcdefghijklmnopqrstuv", 0x542b_ad92_41d0_92fd),
            ("0123456789abcdefghijklmnopqrstuvw", 0x007a_354c_cc53_14ba),
        ] {
            assert_eq!(hash_19(key.as_bytes()), Some(expected), "{key}");
        }
        assert_eq!(hash_19(&[b'x'; 65]), None);
    }

    #[test]
    fn knows_the_buckets_of_llvm_23() {
        let keys = [
            ("", 15),
            ("arch", 5),
            ("file", 11),
            ("kind", 9),
            ("triple", 19),
            ("feature", 55),
            ("member", 56),
            ("version", 54),
            ("symbols", 34),
            ("compile-opts", 21),
        ];
        for (key, bucket) in keys {
            assert_eq!(hash_23(key).map(|hash| hash % 64), Some(bucket), "{key}");
        }
        assert_eq!(keys.len(), KEYS_23.len());
    }

    /// Written by the packagers of LLVM 19 and 22; for 23, derived from its hashes.
    #[test]
    fn orders_the_usual_keys_as_each_release_does() {
        let order = |release: LlvmRelease, keys: &[&'static str]| {
            let order = pair_order(keys, release);
            let names: Vec<&str> = order.iter().map(|index| keys[*index]).collect();
            names.join(" ")
        };
        let releases = [LlvmRelease::V19, LlvmRelease::V22, LlvmRelease::V23];
        for keys in [
            ["file", "triple", "arch", "kind"],
            ["kind", "arch", "triple", "file"],
        ] {
            let found = releases.map(|release| order(release, &keys));
            assert_eq!(found, ["arch triple"; 3]);
        }
        let keys = ["file", "triple", "arch", "kind", "feature"];
        assert_eq!(
            releases.map(|release| order(release, &keys)),
            [
                "feature arch triple",
                "feature arch triple",
                "arch triple feature"
            ]
        );
    }

    #[test]
    fn keeps_the_order_of_keys_whose_hashes_are_not_known() {
        let keys = ["triple", "mine", "arch", "file", "mine"];
        assert_eq!(pair_order(&keys, LlvmRelease::V23), [0, 1, 2]);
        let long = "x".repeat(65);
        assert_eq!(
            pair_order(&["triple", &long, "arch"], LlvmRelease::V22),
            [0, 1, 2]
        );
        assert_eq!(pair_order(&[], LlvmRelease::V22), [0_usize; 0]);
        assert_eq!(
            pair_order(&["kind", "file"], LlvmRelease::V22),
            [0_usize; 0]
        );
    }

    #[test]
    fn gives_every_key_once_however_many_there_are() {
        let keys: Vec<String> = (0..200).map(|number| format!("key{number}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        for release in [LlvmRelease::V19, LlvmRelease::V23] {
            let mut order = pair_order(&[&keys[..], &keys].concat(), release);
            order.sort_unstable();
            assert_eq!(order, (0..200).collect::<Vec<_>>(), "{release:?}");
        }
    }
}
