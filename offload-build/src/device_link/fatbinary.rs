//! The container of CUDA's images, made by NVIDIA's `fatbinary`.

use offload_build_core::process::command::Command;
use offload_formats::names::LlvmRelease;
use std::ffi::OsString;
use std::path::Path;

/// The command by which `program`, NVIDIA's `fatbinary`, puts linked images, each with its processor
/// (`sm_80`), into a fat binary for a host of 64 or 32 bits.
///
/// LLVM 19 and 20 call an older form of the tool's options (`docs/spec/linker-wrapper.md` §4.2); NVIDIA's of CUDA 12.9
/// and later know the newer form alone.
#[must_use]
pub fn cuda_fatbinary(
    program: &Path,
    images: &[(&str, &Path)],
    output: &Path,
    release: LlvmRelease,
    host_bits: u32,
) -> Command {
    let command = Command::new(program)
        .arg(format!("-{host_bits}"))
        .arg("--create")
        .arg(output);
    let option = |(processor, path): &(&str, &Path)| {
        let mut option = OsString::from(match release {
            LlvmRelease::V19 | LlvmRelease::V20 => format!("--image=profile={processor},file="),
            _ => {
                let number = processor.strip_prefix("sm_").unwrap_or(processor);
                format!("--image3=kind=elf,sm={number},file=")
            }
        });
        option.push(path);
        option
    };
    command.args(images.iter().map(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_the_tool_as_each_release_does() {
        let images = [
            ("sm_70", Path::new("a.img")),
            ("sm_90a", Path::new("b.img")),
        ];
        let line = |release, bits| {
            let (program, output) = (Path::new("fatbinary"), Path::new("a.fatbin"));
            cuda_fatbinary(program, &images, output, release, bits).to_string()
        };
        // What clang-linker-wrapper 22 and 19 print with --dry-run.
        assert_eq!(
            line(LlvmRelease::V22, 64),
            "fatbinary -64 --create a.fatbin --image3=kind=elf,sm=70,file=a.img \
             --image3=kind=elf,sm=90a,file=b.img"
        );
        assert_eq!(
            line(LlvmRelease::V19, 32),
            "fatbinary -32 --create a.fatbin --image=profile=sm_70,file=a.img \
             --image=profile=sm_90a,file=b.img"
        );
    }
}
