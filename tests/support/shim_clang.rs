//! A stand-in for clang that makes AMD's images of files, and inputs whose code nobody looks at.

use super::folder::Folder;

/// An ELF object for x86-64, with images for sm_70 and gfx90a.
pub const OBJECT: &[u8] = include_bytes!("../golden/22.1.8/elf64le.o");
/// Images for gfx906 and `gfx90a:sramecc+:xnack-`.
const BUNDLE: &[u8] = include_bytes!("../golden/22.1.8/three-images.bundle");

/// Makes an image of the file `image-` with the processor's name.
pub const COPY: &str = "cp \"image-$cpu\" \"$o\"";

/// Writes `bin/clang`, and `bin/ld.lld`, which our own way needs besides. In the body `$o` is the output, `$cpu` the
/// processor, `$*` what it was given.
pub fn put(folder: &Folder, body: &str) {
    let arguments = "for a; do case $a in -mcpu=*) cpu=${a#-mcpu=};; esac; [ \"$last\" = -o ] && o=$a; last=$a; done";
    folder.script("bin/clang", &format!("{arguments}\n{body}"));
    folder.write("bin/ld.lld", "");
}

/// Makes what a device linker would make: an ELF file of the machine, with a processor's flags (LLVM's AMDGPUUsage).
pub fn amd_image(flags: u32) -> Vec<u8> {
    let mut image = OBJECT.to_vec();
    image[0x12] = 224;
    image[0x30..0x34].copy_from_slice(&flags.to_le_bytes());
    image
}

/// Writes the images of processors with these flags.
pub fn put_images(folder: &Folder, images: &[(&str, u32)]) {
    for (name, flags) in images {
        folder.write(format!("image-{name}"), amd_image(*flags));
    }
}

/// A bundle without a part for the host, where no object is, and with images that are no text, which would be assembly.
pub fn bundle() -> Vec<u8> {
    let mut bundle = BUNDLE.to_vec();
    bundle[0x28..0x30].fill(0);
    for start in [216, 241] {
        bundle[start] = 0;
    }
    bundle
}
