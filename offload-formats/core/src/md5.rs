//! MD5, the digest in headers of compressed bundles. Build scripts recognize unchanged files by it.
//!
//! Specification: RFC 1321, <https://www.rfc-editor.org/rfc/rfc1321>. The digest detects damage, not attacks.
//!
//! The code is written for compilers that do not optimize, as build scripts are compiled: no closure, iterator or call
//! runs for each word.

/// Bytes that one call of [`Md5::block`] hashes.
const BLOCK: usize = 64;

/// The MD5 of bytes that arrive in parts.
///
/// ```
/// # use offload_formats_core as offload_formats;
/// let mut hash = offload_formats::md5::Md5::new();
/// hash.update("message ");
/// hash.update("digest");
/// assert_eq!(hash.finalize(), offload_formats::md5::Md5::digest("message digest"));
/// ```
#[derive(Clone, Debug)]
pub struct Md5 {
    state: [u32; 4],
    /// Bytes that do not fill a block yet: the first `size % 64`.
    pending: [u8; BLOCK],
    /// Number of all bytes.
    size: u64,
}

/// Returns bytes of a digest in hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Md5 {
    /// Starts the hash of no bytes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476],
            pending: [0; BLOCK],
            size: 0,
        }
    }

    /// Returns the MD5 of `bytes`.
    #[must_use]
    pub fn digest(bytes: impl AsRef<[u8]>) -> [u8; 16] {
        let mut hash = Self::new();
        hash.add(bytes.as_ref());
        hash.finalize()
    }

    /// Hashes more bytes.
    pub fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.add(bytes.as_ref());
    }

    fn add(&mut self, mut bytes: &[u8]) {
        let filled = (self.size % BLOCK as u64) as usize;
        self.size = self.size.wrapping_add(bytes.len() as u64);
        if filled != 0 {
            let taken = bytes.len().min(BLOCK - filled);
            let (start, later) = bytes.split_at(taken);
            bytes = later;
            self.pending[filled..filled + taken].copy_from_slice(start);
            if filled + taken < BLOCK {
                return;
            }
            let block = self.pending;
            self.block(&block);
        }
        while let Some((block, later)) = bytes.split_first_chunk() {
            self.block(block);
            bytes = later;
        }
        self.pending[..bytes.len()].copy_from_slice(bytes);
    }

    /// Returns the digest.
    #[must_use]
    pub fn finalize(mut self) -> [u8; 16] {
        let bits = self.size.wrapping_mul(8);
        // A bit that is set, then zeros until 8 bytes are left in the block.
        let padding = 1 + (2 * BLOCK - 9 - (self.size % BLOCK as u64) as usize) % BLOCK;
        let mut first = [0; BLOCK];
        first[0] = 0x80;
        self.add(&first[..padding]);
        self.add(&bits.to_le_bytes());
        let mut digest = [0; 16];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        digest
    }

    fn block(&mut self, block: &[u8; BLOCK]) {
        let mut words = [0_u32; 16];
        let mut index = 0;
        while index < 16 {
            let at = 4 * index;
            words[index] =
                u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
            index += 1;
        }
        let [mut a, mut b, mut c, mut d] = self.state;
        macro_rules! step {
            ($to:ident, $from:ident, $shift:literal, $mixed:expr, $step:expr, $word:expr) => {
                let sum = $to
                    .wrapping_add($mixed)
                    .wrapping_add(SINES[$step])
                    .wrapping_add(words[($word) & 15]);
                $to = $from.wrapping_add(sum.rotate_left($shift));
            };
        }
        let mut n = 0;
        while n < 16 {
            step!(a, b, 7, (b & c) | (!b & d), n, n);
            step!(d, a, 12, (a & b) | (!a & c), n + 1, n + 1);
            step!(c, d, 17, (d & a) | (!d & b), n + 2, n + 2);
            step!(b, c, 22, (c & d) | (!c & a), n + 3, n + 3);
            n += 4;
        }
        while n < 32 {
            step!(a, b, 5, (d & b) | (!d & c), n, 5 * n + 1);
            step!(d, a, 9, (c & a) | (!c & b), n + 1, 5 * n + 6);
            step!(c, d, 14, (b & d) | (!b & a), n + 2, 5 * n + 11);
            step!(b, c, 20, (a & c) | (!a & d), n + 3, 5 * n + 16);
            n += 4;
        }
        while n < 48 {
            step!(a, b, 4, b ^ c ^ d, n, 3 * n + 5);
            step!(d, a, 11, a ^ b ^ c, n + 1, 3 * n + 8);
            step!(c, d, 16, d ^ a ^ b, n + 2, 3 * n + 11);
            step!(b, c, 23, c ^ d ^ a, n + 3, 3 * n + 14);
            n += 4;
        }
        while n < 64 {
            step!(a, b, 6, c ^ (b | !d), n, 7 * n);
            step!(d, a, 10, b ^ (a | !c), n + 1, 7 * n + 7);
            step!(c, d, 15, a ^ (d | !b), n + 2, 7 * n + 14);
            step!(b, c, 21, d ^ (c | !a), n + 3, 7 * n + 21);
            n += 4;
        }
        let [was_a, was_b, was_c, was_d] = self.state;
        self.state = [
            was_a.wrapping_add(a),
            was_b.wrapping_add(b),
            was_c.wrapping_add(c),
            was_d.wrapping_add(d),
        ];
    }
}

impl Default for Md5 {
    fn default() -> Self {
        Self::new()
    }
}

/// The integer part of 2<sup>32</sup> · |sin(step + 1)|, the step counted from 0.
#[rustfmt::skip]
static SINES: [u32; 64] = [
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee,
    0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be,
    0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa,
    0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
    0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c,
    0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05,
    0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039,
    0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1,
    0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1321, appendix A.5.
    #[test]
    fn has_the_digests_of_the_specification() {
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (
                "abcdefghijklmnopqrstuvwxyz",
                "c3fcd3d76192e4007dfb496cca67e13b",
            ),
            (
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
                "d174ab98d277d9f5a5611c2c9f419d9f",
            ),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(hex(&Md5::digest(text)), digest, "{text}");
        }
    }

    /// `for n in $(seq 0 199); do head -c $n /dev/zero | md5sum | cut -c1-32; done | md5sum` (coreutils 9.1).
    #[test]
    fn pads_every_size() {
        let lines: String = (0..200)
            .map(|size| hex(&Md5::digest(vec![0; size])) + "\n")
            .collect();
        assert_eq!(hex(&Md5::digest(lines)), "f131c463386694a189b4a3d158c5fd52");
    }

    #[test]
    fn agrees_with_the_crate_md_5() {
        use md5::Digest;
        let bytes: Vec<u8> = (0_u32..1000).map(|n| ((n * n) >> 3) as u8).collect();
        for size in 0..bytes.len() {
            let bytes = &bytes[..size];
            let expected: [u8; 16] = md5::Md5::digest(bytes).into();
            assert_eq!(Md5::digest(bytes), expected, "{size}");
        }
    }

    #[test]
    fn hashes_the_same_in_any_parts() {
        let bytes: Vec<u8> = (0..200).collect();
        let whole = Md5::digest(&bytes);
        for first in 0..bytes.len() {
            for second in [first, first + 1, 63, 64, 65, 128, 150] {
                let second = second.clamp(first, bytes.len());
                let mut hash = Md5::new();
                for part in [&bytes[..first], &bytes[first..second], &bytes[second..]] {
                    hash.update(part);
                }
                assert_eq!(hash.finalize(), whole, "{first} {second}");
            }
        }
    }
}
