//! Lists the host libraries that a CPU's image is linked with.

use std::ffi::{OsStr, OsString};

use offload_build::tools::Way;

use crate::linker_wrapper::inputs::file::{FileKind, InputFile, Inputs};
use crate::linker_wrapper::line::arguments::{Arguments, Item};

/// Returns the libraries of the host program that a CPU's image may need, in their order.
///
/// The result has no host objects, whose code would then exist twice, and no archives of Rust. Except under LLVM's
/// rules, it also has no archive with device code: its images are linked already, and its host code defines the same
/// functions. There no archive is linked as a whole: its constructors would run twice, and register a fat binary again.
/// And the image needs no shared library that its code does not call: the loader may not find what the program does not need.
pub(crate) fn host_libraries(arguments: &Arguments, inputs: &Inputs, way: Way) -> Vec<OsString> {
    let mut args = match way {
        Way::Llvm => Vec::new(),
        // A library is needed by those before and after it.
        Way::Own => vec!["-Wl,--as-needed".into(), "-Wl,--start-group".into()],
    };
    let option = |option: &str, value: &OsStr| match way {
        Way::Llvm => vec![option.into(), value.into()],
        Way::Own => {
            let mut arg = OsString::from(option);
            arg.push(value);
            vec![arg]
        }
    };
    for (index, item) in arguments.items.iter().enumerate() {
        // More than one, if it is a linker script.
        let mut files = inputs.files.iter().filter(|file| file.item == index);
        if way == Way::Own && files.clone().any(InputFile::has_device_code) {
            continue;
        }
        let file = files.next();
        match item {
            Item::File { path, .. } => {
                let is_library = file.is_some_and(|file| match file.kind {
                    FileKind::SharedObject => true,
                    FileKind::Archive => path.extension() != Some(OsStr::new("rlib")),
                    _ => false,
                });
                if is_library {
                    args.push(path.into());
                }
            }
            Item::Library {
                name, only_static, ..
            } if *only_static && way == Way::Own => {
                args.push("-Wl,-Bstatic".into());
                args.extend(option("-l", name));
                args.push("-Wl,-Bdynamic".into());
            }
            Item::Library { name, .. } => args.extend(option("-l", name)),
            Item::LibraryDir(dir) => args.extend(option("-L", dir)),
            Item::Rpath(dir) => args.extend([
                "-Xlinker".into(),
                "-rpath".into(),
                "-Xlinker".into(),
                dir.clone(),
            ]),
            Item::WholeArchive(_) if way == Way::Own => {}
            Item::WholeArchive(true) => args.push("-Wl,--whole-archive".into()),
            Item::WholeArchive(false) => args.push("-Wl,--no-whole-archive".into()),
        }
    }
    if way == Way::Own {
        args.push("-Wl,--end-group".into());
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn gives_a_cpu_image_the_libraries_of_the_host_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, bytes).unwrap();
            path.into_os_string()
        };
        // Headers of ELF files, of type 1 (relocatable) and 3 (shared).
        let elf = |e_type: u8| {
            let mut header = vec![0; 64];
            header[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
            (header[16], header[18], header[20], header[52], header[58]) = (e_type, 62, 1, 64, 64);
            header
        };
        let shared = file("libs.so", &elf(3));
        let object = file("a.o", &elf(1));
        let archive = file("liba.a", b"!<arch>\n");
        let rlib = file("libr.rlib", b"!<arch>\n");
        let argv = [
            "-dynamic-linker".into(),
            shared.clone(),
            "-plugin".into(),
            shared.clone(),
            object,
            "-Ldir".into(),
            shared.clone(),
            "--whole-archive".into(),
            archive.clone(),
            rlib,
            "--no-whole-archive".into(),
            "-l".into(),
            "m".into(),
            "-Bstatic".into(),
            "-lz".into(),
            "-Bdynamic".into(),
            "--as-needed".into(),
            "-rpath=x".into(),
        ];
        let arguments = Arguments::parse(argv.to_vec(), "offload-ld").unwrap();
        let inputs = Inputs::scan(&arguments).unwrap();
        let expected = [
            "-Wl,--as-needed".into(),
            "-Wl,--start-group".into(),
            "-Ldir".into(),
            shared,
            archive,
            "-lm".into(),
            "-Wl,-Bstatic".into(),
            "-lz".into(),
            "-Wl,-Bdynamic".into(),
            "-Xlinker".into(),
            "-rpath".into(),
            "-Xlinker".into(),
            "x".into(),
            "-Wl,--end-group".into(),
        ];
        assert_eq!(host_libraries(&arguments, &inputs, Way::Own), expected);
    }
}
