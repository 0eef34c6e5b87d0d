//! Checks the image of a device link by its headers before it goes into a program, which might not start or not use it.

use offload_build::tools;
use offload_formats::format::bytes::ReadAt;
use offload_formats::format::magic::Magic;
use offload_formats::names::{ImageKind, TargetId, Triple};

use crate::linker_wrapper::error::Problem;

/// Checks that a runtime can load `image`, of this kind, for the target.
pub(crate) fn check<'d, R: ReadAt<'d>>(
    image: R,
    kind: ImageKind,
    triple: &str,
    processor: &str,
) -> Result<(), Problem> {
    let size = image.size().unwrap_or(0);
    let magic = Magic::at(image, 0..size);
    let triple = Triple::parse(triple)?;
    match magic {
        _ if size == 0 => Err("it is empty".into()),
        // Runtimes that compile accept it for any kind.
        Magic::Bitcode => Ok(()),
        _ if kind == ImageKind::BITCODE => Err("it is not bitcode".into()),
        // Packing checks these formats.
        _ if triple.arch().starts_with("spirv") || has_other_objects(&triple) => Ok(()),
        Magic::Elf if image.read_at(4, 1) != Some(&[CLASS_32]) => {
            // Device linkers check processors that do not have the form of target IDs.
            let id = TargetId::parse(processor).or_else(|_| TargetId::parse(""))?;
            Ok(tools::check(image, &triple, &id, &Default::default())?)
        }
        Magic::Elf => Ok(()),
        _ => Err("it is not an ELF file".into()),
    }
}

const CLASS_32: u8 = 1;

/// Tells whether the device is a CPU with a system that does not use ELF.
fn has_other_objects(triple: &Triple) -> bool {
    let systems = ["windows", "darwin", "macos"];
    triple.is_cpu() && systems.iter().any(|system| triple.os().starts_with(system))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(image: &[u8], kind: ImageKind, triple: &str, processor: &str) -> String {
        check(image, kind, triple, processor)
            .map_or_else(|problem| problem.to_string(), |()| "ok".into())
    }

    /// Output of `fatbinary` of CUDA 13.5: a cubin for `sm_80`.
    const CUBIN: &[u8] = include_bytes!("../../../../tests/golden/cuda-13.5/two-images.fatbin");

    #[test]
    fn takes_images_of_the_target_and_nothing_else() {
        let cubin = &CUBIN[0x50..0xbf8];
        let nvptx =
            |image, processor| said(image, ImageKind::OBJECT, "nvptx64-nvidia-cuda", processor);
        assert_eq!(nvptx(cubin, "sm_80"), "ok");
        assert_eq!(nvptx(cubin, "generic"), "ok");
        assert_eq!(
            nvptx(cubin, "sm_90"),
            "image has e_flags 0x6005004, expected sm_90 (in bits 0-7 or 8-15)"
        );
        assert_eq!(nvptx(b"", "sm_80"), "it is empty");
        assert_eq!(nvptx(b"MZ", "sm_80"), "it is not an ELF file");
        assert_eq!(nvptx(b"BC\xc0\xde", "sm_80"), "ok");
        let cpu = |image, triple| said(image, ImageKind::OBJECT, triple, "");
        assert_eq!(
            cpu(cubin, "x86_64-pc-linux-gnu"),
            "image has e_machine 0xbe, expected 0x3e"
        );
        assert_eq!(cpu(b"MZ", "x86_64-pc-windows-msvc"), "ok");
        assert_eq!(
            said(cubin, ImageKind::BITCODE, "nvptx64-nvidia-cuda", "sm_80"),
            "it is not bitcode"
        );
    }
}
