//! The two ELF formats of NVIDIA's machine code.
//!
//! | `EI_OSABI` | `EI_ABIVERSION` | processor in `e_flags` | written by |
//! |---|---|---|---|
//! | 0x33 | 7 | bits 0-7 | `ptxas` 12.8 and 12.9 for processors before `sm_100` |
//! | 0x41 | 8 | bits 8-15 | `ptxas` 12.8 and 12.9 for `sm_100` and later, `ptxas` and `nvlink` 13.5 for all |
//!
//! libomptarget reads the newer one since LLVM 21.1.2 (llvm/llvm-project#159354, backport #159451). An older one takes
//! such an image for another machine's: tried with libomptarget 19.1.7, which then runs its kernels on the CPU or stops.

use crate::format::bytes::ReadAt;

/// First LLVM whose libomptarget reads the newer format.
const READS_NEWER: [u32; 3] = [21, 1, 2];

const EM_CUDA: [u8; 2] = 190_u16.to_le_bytes();

/// `EI_OSABI` of the newer format.
const NEWER: u8 = 0x41;

/// Tells whether libomptarget of an LLVM release, such as `[19, 1, 7]`, reads the newer format.
#[must_use]
pub fn libomptarget_reads_newer(llvm: &[u32]) -> bool {
    llvm >= &READS_NEWER[..]
}

/// Tells whether libomptarget of an LLVM release ignores the image at `start`: it is a cubin in a
/// format that this release does not read.
#[must_use]
pub fn is_ignored_by_libomptarget<'d, R: ReadAt<'d>>(image: R, start: u64, llvm: &[u32]) -> bool {
    let Some(head) = image.read_at(start, 20) else {
        return false;
    };
    let is_newer = head.starts_with(b"\x7fELF") && head.get(7) == Some(&NEWER);
    is_newer && head.ends_with(&EM_CUDA) && !libomptarget_reads_newer(llvm)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Headers that `ptxas` 12.9.86 wrote for `sm_90` and `sm_120`, and LLVM 19 for gfx90a, up to `e_machine`.
    const OLDER: &[u8; 20] = b"\x7fELF\x02\x01\x01\x33\x07\0\0\0\0\0\0\0\x02\0\xbe\0";
    const NEWER_ONE: &[u8; 20] = b"\x7fELF\x02\x01\x01\x41\x08\0\0\0\0\0\0\0\x02\0\xbe\0";
    const AMD: &[u8; 20] = b"\x7fELF\x02\x01\x01\x40\x03\0\0\0\0\0\0\0\x03\0\xe0\0";

    #[test]
    fn tells_which_images_a_release_ignores() {
        let is_ignored = |image: &[u8], llvm: &[u32]| is_ignored_by_libomptarget(image, 0, llvm);
        for llvm in [&[19][..], &[19, 1, 7], &[20, 1, 8], &[21, 1, 1]] {
            assert!(is_ignored(NEWER_ONE, llvm), "{llvm:?}");
            for image in [&OLDER[..], AMD, b"BC\xc0\xde", b"", &NEWER_ONE[..19]] {
                assert!(!is_ignored(image, llvm), "{image:x?}, {llvm:?}");
            }
        }
        for llvm in [&[21, 1, 2][..], &[22], &[22, 1, 8]] {
            assert!(!is_ignored(NEWER_ONE, llvm), "{llvm:?}");
        }
    }
}
