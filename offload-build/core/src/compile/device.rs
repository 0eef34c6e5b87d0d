//! clang's command lines for HIP, CUDA and LLVM IR: the device's side of one source for one processor, as bitcode that
//! the device link joins with that of other sources, or of HIP as machine code.

use crate::compile::clang::{Clang, Compile};
use crate::compile::{ptxas, sdk};
use crate::files;
use crate::installed::fitting_clangs::CODE_OBJECT_6;
use crate::installed::rocm::RocmTree;
use crate::process::command::Command;
use offload_formats_core::names::Triple;
use std::path::{Path, PathBuf};

/// HIP for an AMD GPU (`gfx90a:xnack-`); `rocm` is the root of ROCm's headers and device libraries, unless the
/// source does without.
#[must_use]
pub fn hip(
    clang: &Clang<'_>,
    processor: &str,
    rocm: Option<RocmTree<'_>>,
    compile: &Compile<'_>,
) -> Command {
    // For one processor too clang would write a bundle.
    let mut command = start(clang, "hip", processor, compile).arg("--no-gpu-bundle-output");
    if compile.shares_image && !compile.rdc {
        // To the front end alone: it names kernels as it does for the host, those of each source apart, and the driver still has
        // each source by itself.
        command = command.args(["-Xclang", "-fgpu-rdc"]);
    }
    let command = code_object_version(command, clang, processor, compile);
    let wavefront = sdk::wavefront(processor, compile.flags);
    clang.finish_hip(sdk::of_tree(command, rocm, wavefront, compile), compile)
}

/// Asks for code objects that can be for a generic processor (`gfx11-generic`). Clang 19 makes older ones by default.
fn code_object_version(
    command: Command,
    clang: &Clang<'_>,
    processor: &str,
    compile: &Compile<'_>,
) -> Command {
    let option = "-mcode-object-version=";
    let is_old = clang.release.is_some_and(|release| release < CODE_OBJECT_6);
    let is_generic = processor
        .split(':')
        .next()
        .is_some_and(|name| name.ends_with("-generic"));
    let is_chosen = compile.flags.iter().any(|flag| flag.starts_with(option));
    let version = (is_old && is_generic && !is_chosen).then(|| format!("{option}6"));
    command.args(version)
}

/// Makes an object of the text that [`hip`] has written.
///
/// clang makes objects of HIP for nobody but its own link, so text it is (`-Xclang -emit-obj` does not go together with the
/// `-E` of a cache).
#[must_use]
pub fn assemble(clang: &Path, processor: &str, text: &Path, output: &Path) -> Command {
    Command::new(clang)
        .arg("--no-default-config")
        .arg("--target=amdgcn-amd-amdhsa")
        .arg(format!("-mcpu={processor}"))
        // Caches add options of compiles; and clang warns of its own debug information.
        .args(["-Wno-unused-command-line-argument", "-Wa,--no-warn"])
        .arg("-c")
        .arg(text)
        .arg("-o")
        .arg(files::part(output))
}

/// CUDA for an NVIDIA GPU (`sm_90a`); `cuda` is the root of the toolkit, unless the source does without.
#[must_use]
pub fn cuda(
    clang: &Clang<'_>,
    processor: &str,
    cuda: Option<&Path>,
    compile: &Compile<'_>,
) -> Command {
    let feature = ptxas::ptx_version(processor);
    let command =
        start(clang, "cuda", processor, compile).arg(format!("--cuda-feature=+{feature}"));
    let command = sdk::toolkit(command, cuda, compile);
    let command = sdk::included_by_nvcc(command, sdk::OF_DEVICE_CODE, compile);
    clang.finish(command, compile)
}

/// LLVM IR for that target, as bitcode or text. What is for another one is an error.
#[must_use]
pub fn bitcode(
    clang: &Clang<'_>,
    triple: &Triple,
    processor: &str,
    compile: &Compile<'_>,
) -> Command {
    of_ir(
        Command::new(clang.clang).with_colors(clang.colors),
        triple,
        processor,
    )
    .arg("-Werror=override-module")
    .args(compile.flags)
    .arg("-c")
    .arg(compile.source)
    .arg("-o")
    .arg(files::part(compile.output))
}

/// Links functions that the bitcode `input` calls into it, and what these call: as clang does in a compile, with internal linkage.
#[must_use]
pub fn join(
    clang: &Path,
    triple: &Triple,
    processor: &str,
    libraries: &[PathBuf],
    (input, output): (&Path, &Path),
) -> Command {
    let mut command = of_ir(Command::new(clang), triple, processor);
    for library in libraries {
        let option = ["-Xclang", "-mlink-builtin-bitcode", "-Xclang"];
        command = command.args(option).arg(library);
    }
    command.arg("-c").arg(input).arg("-o").arg(output)
}

/// Makes bitcode of the LLVM IR in the file `input`.
#[must_use]
pub fn assemble_ir(
    clang: &Path,
    triple: &Triple,
    processor: &str,
    (input, output): (&Path, &Path),
) -> Command {
    join(clang, triple, processor, &[], (input, output))
}

/// Adds options that make bitcode of LLVM IR. The device link optimizes it, for all sources together.
fn of_ir(command: Command, triple: &Triple, processor: &str) -> Command {
    let command = command
        .arg("--no-default-config")
        .arg(format!("--target={triple}"))
        .arg(target_option(triple, processor))
        .args(["-nogpulib", "-x", "ir", "-emit-llvm"])
        .args(["-Xclang", "-disable-llvm-passes"]);
    match triple.is_nvptx() {
        true => command.args(ptxas::options(processor)),
        false => command,
    }
}

/// Returns the option that names a processor.
pub fn target_option(triple: &Triple, processor: &str) -> String {
    let option = match triple.is_amdgpu() {
        true => "-mcpu",
        false => "-march",
    };
    format!("{option}={processor}")
}

fn start(clang: &Clang<'_>, language: &str, processor: &str, compile: &Compile<'_>) -> Command {
    sdk::written_in(clang.start(), language, compile.part)
        .arg("--offload-device-only")
        .arg(format!("--offload-arch={processor}"))
        .args(compile.rdc.then_some("-fgpu-rdc"))
        .args(compile.assembly.is_none().then_some("-emit-llvm"))
        // Otherwise clang makes it of its command line. Not by `-Xclang`, which sccache does not know.
        .arg(format!("-cuid={}", compile.unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::clang::Part;

    /// The command for the first release of these, and the halves of it for a sender.
    fn commands(
        release: u32,
        output: &str,
        command: impl Fn(&Clang<'_>, &Compile<'_>) -> Command,
    ) -> [String; 3] {
        let clang = Clang {
            clang: Path::new("clang"),
            release: Some(release),
            host: "x86_64-unknown-linux-gnu",
            target: None,
            host_options: &[],
            std: None,
            include: &["inc".into()],
            include_last: &["last".into()],
            renamed_folders: &[],
            debug: true,
            colors: Default::default(),
        };
        let define = [("TILE".to_owned(), "64".to_owned())];
        let define = define.into_iter().collect();
        let text = Path::new("k.ii");
        [Part::Whole, Part::Preprocess(text), Part::Compile(text)].map(|part| {
            let compile = Compile {
                source: Path::new("k.hip"),
                output: Path::new(output),
                assembly: None,
                opt_level: "3",
                rdc: true,
                shares_image: false,
                define: &define,
                flags: &["-Wall".to_owned()],
                unit: "12ab",
                file: "",
                part,
            };
            command(&clang, &compile).to_string()
        })
    }

    #[test]
    fn writes_dependencies_where_caches_look_for_them() {
        let hip = |release, output| {
            let line = commands(release, output, |clang, compile| {
                super::hip(clang, "gfx90a", None, compile)
            });
            let [whole, ..] = line;
            let (_, rest) = whole.split_once(" -Wall ").unwrap();
            rest.to_owned()
        };
        assert_eq!(
            hip(19, "k.bc"),
            "-MD -MF k.bc.d -MT out -c k.hip -o k.bc.part"
        );
        let frontend = "-Xclang -dependency-file -Xclang k.bc.d -Xclang -MT -Xclang out";
        let tail = "-c k.hip -o k.bc.part";
        assert_eq!(hip(22, "k.bc"), format!("-Wp,-MD,k.bc.d {frontend} {tail}"));
        // In `-Wp` a comma divides.
        let with_comma = |text: &str| text.replace("k.bc", "a,b.bc");
        assert_eq!(hip(22, "a,b.bc"), with_comma(&format!("{frontend} {tail}")));
    }

    #[test]
    fn halves_a_compile_for_a_sender() {
        let [whole, preprocess, compile] = commands(22, "k.bc", |clang, compile| {
            cuda(clang, "sm_80", Some(Path::new("/cuda")), compile)
        });
        let head = "clang --no-default-config";
        let target = "--offload-device-only --offload-arch=sm_80 -fgpu-rdc -emit-llvm -cuid=12ab --cuda-feature=+ptx78 \
                      -Wno-unknown-cuda-version --cuda-path=/cuda";
        // The text has the header already.
        let header = "-include offload/toolkit/nvcc.h -O3";
        let mine = "-I inc -idirafter last -DTILE=64 -Wall -MD -MF k.bc.d -MT out";
        assert_eq!(
            [whole, preprocess, compile],
            [
                format!("{head} -x cuda {target} {header} {mine} -c k.hip -o k.bc.part"),
                format!("{head} -x cuda {target} {header} {mine} -E k.hip -o k.ii"),
                format!(
                    "{head} --language=cuda {target} -O3 -Wall -nogpuinc -Wno-unused-command-line-argument \
                     -c k.ii -o k.bc.part"
                ),
            ]
        );
    }
}
