//! Floor 4: link jobs: which images go together, and the device link of each, as commands.
//!
//! | target | inputs | commands |
//! |---|---|---|
//! | CPU | objects | `clang -shared` (or the host's `cc`) with the host's libraries |
//! | any | bitcode of several sources | `llvm-link` first |
//! | AMDGPU | bitcode, objects | `clang`, with the device runtime as built-in bitcode, and `ld.lld` behind it |
//! | NVPTX | bitcode | `clang -S`, likewise, then `ptxas` |
//! | NVPTX | cubins | `clang`, which runs `nvlink` |
//!
//! Spec: linker-wrapper §3.2–3.4, §3.6. Differently from LLVM, OpenMP's device runtime joins here and
//! not at each compile, so that an image has one copy of it, and neither ROCm nor CUDA is needed.

mod check;

pub use check::{CheckError, check};

use crate::target::Triple;
use crate::toolchain::{Command, Llvm, NotFound, Search, ptxas};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What `OpenMPOpt` did in each compile and must not do again here: both call functions of the device runtime
/// that it had no use for before, so that they were not linked into the module and stay undefined.
const DECIDED_BEFORE: [&str; 2] = [
    "-openmp-opt-disable-spmdization",
    "-openmp-opt-disable-state-machine-rewrite",
];

/// Images for one target that become one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkJob {
    /// The device's triple.
    pub triple: Triple,
    /// The processor or target ID; empty when the triple says all.
    pub processor: String,
    /// In the order in which the linker sees them.
    pub inputs: Vec<DeviceInput>,
}

/// An image as the device linker reads it: a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceInput {
    /// A device object: ELF, or a cubin.
    Object(PathBuf),
    /// LLVM bitcode.
    Bitcode(PathBuf),
}

impl DeviceInput {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Object(path) | Self::Bitcode(path) => path,
        }
    }
}

/// What every device link of one build or one host link has in common.
#[derive(Clone, Debug)]
pub struct DeviceLinker<'a> {
    /// The LLVM that made the images; CPU objects can do without.
    pub llvm: Option<&'a Llvm>,
    /// Where other programs are looked for.
    pub search: &'a Search,
    /// The host's C compiler, for CPU objects when there is no clang.
    pub cc: &'a Path,
    /// `0`, `1`, `2`, `3`, `s` or `z`: of the code made from bitcode.
    pub opt_level: &'a str,
    /// Put behind the inputs of CPU targets: `-L`, `-l`, `-Wl,…`, archives and shared objects.
    pub host_libraries: &'a [OsString],
    /// For the compiler driver of every target, as spelled (`--device-compiler=`).
    pub compiler_args: &'a [OsString],
    /// For the linker of every target, each behind `-Xlinker` (`--device-linker=`).
    pub linker_args: &'a [OsString],
}

impl DeviceLinker<'_> {
    /// The commands that link `job` into the file `output`; intermediate files lie beside it.
    ///
    /// # Errors
    ///
    /// When a program or file that this target needs is not installed.
    pub fn plan(&self, job: &LinkJob, output: &Path) -> Result<Vec<Command>, NotFound> {
        let (objects, bitcode) = split(&job.inputs);
        let mut commands = Vec::new();
        let module = match bitcode.as_slice() {
            [] => None,
            [one] => Some((*one).to_owned()),
            several => {
                let merged = output.with_extension("merged.bc");
                let link = Command::new(self.llvm()?.sibling("llvm-link")?);
                commands.push(link.arg("-o").arg(&merged).args(several));
                Some(merged)
            }
        };
        if job.triple.is_nvptx() && objects.is_empty() {
            let module = module.unwrap_or_default();
            let assembly = output.with_extension("s");
            let ptxas = self.search.cuda_program("ptxas")?;
            commands.push(self.ptx(job, &module, &assembly)?);
            commands.push(ptxas::assemble(&ptxas, &job.processor, &assembly, output));
        } else if job.triple.is_cpu() {
            commands.push(self.shared_object(job, &objects, module.as_deref(), output)?);
        } else {
            commands.push(self.device_image(job, &objects, module.as_deref(), output)?);
        }
        Ok(commands)
    }

    /// A CPU device's image: a shared object, linked against what the host program links.
    fn shared_object(
        &self,
        job: &LinkJob,
        objects: &[&PathBuf],
        module: Option<&Path>,
        output: &Path,
    ) -> Result<Command, NotFound> {
        // Objects need no clang: what the host's programs are linked with will do.
        let command = match (self.llvm, module) {
            (None, None) => Command::new(self.cc),
            _ => self.clang(job)?,
        };
        let command = command
            .args([
                "-shared",
                "-fPIC",
                "-Wl,-Bsymbolic",
                "-Wl,--no-undefined",
                "-o",
            ])
            .arg(output)
            .args(objects);
        let command = self.extra(self.module(command, module));
        // Libraries are none of the language of the module before them.
        let language = module.map(|_| ["-x", "none"]).into_iter().flatten();
        Ok(command.args(language).args(self.host_libraries))
    }

    /// A GPU's image, through clang and the linker that it knows for this target.
    fn device_image(
        &self,
        job: &LinkJob,
        objects: &[&PathBuf],
        module: Option<&Path>,
        output: &Path,
    ) -> Result<Command, NotFound> {
        let mut command = self
            .clang(job)?
            .arg("-nogpulib")
            .arg("-o")
            .arg(output)
            .args(objects);
        if job.triple.is_amdgpu() {
            command = command.arg("-Wl,--no-undefined");
            if module.is_some() {
                command = command.args(self.device_runtime("amdgpu", job)?);
            }
        }
        Ok(self.extra(self.module(command, module)))
    }

    fn ptx(&self, job: &LinkJob, module: &Path, assembly: &Path) -> Result<Command, NotFound> {
        let feature = format!("+{}", ptxas::ptx_version(&job.processor));
        let command = self
            .clang(job)?
            .args([
                "-nogpulib",
                // Or a ptxas in PATH makes clang choose the newest PTX that it knows itself.
                "--cuda-path=/nonexistent",
                "-S",
                "-Xclang",
                "-target-feature",
                "-Xclang",
                &feature,
            ])
            .args(self.device_runtime("nvptx", job)?)
            .arg("-o")
            .arg(assembly);
        Ok(self.module(command, Some(module)).args(self.compiler_args))
    }

    fn clang(&self, job: &LinkJob) -> Result<Command, NotFound> {
        let mut command = Command::new(&self.llvm()?.clang)
            .arg("--no-default-config")
            .arg(format!("--target={}", job.triple));
        if !job.processor.is_empty() {
            let flag = if job.triple.is_amdgpu() {
                "-mcpu"
            } else {
                "-march"
            };
            command = command.arg(format!("{flag}={}", job.processor));
        }
        Ok(command)
    }

    fn device_runtime(
        &self,
        vendor: &'static str,
        job: &LinkJob,
    ) -> Result<Vec<OsString>, NotFound> {
        let processor = job.processor.split(':').next().unwrap_or_default();
        let runtime = self.llvm()?.device_runtime(vendor, processor)?;
        let passes = DECIDED_BEFORE.iter().flat_map(|pass| ["-mllvm", pass]);
        let options = passes.chain(["-mlink-builtin-bitcode"]).map(OsString::from);
        let options = options.chain([runtime.into()]);
        Ok(options
            .flat_map(|option| ["-Xclang".into(), option])
            .collect())
    }

    fn module(&self, command: Command, module: Option<&Path>) -> Command {
        let Some(module) = module else { return command };
        // Unoptimised, the device runtime asks for a C library that is not there.
        let level = match self.opt_level {
            "0" => "1",
            level => level,
        };
        command
            .args([&format!("-O{level}"), "-x", "ir"])
            .arg(module)
    }

    fn extra(&self, command: Command) -> Command {
        let linker = self
            .linker_args
            .iter()
            .flat_map(|arg| ["-Xlinker".into(), arg.clone()]);
        command.args(self.compiler_args).args(linker)
    }

    fn llvm(&self) -> Result<&Llvm, NotFound> {
        self.llvm.ok_or_else(|| {
            NotFound::new(
                "clang",
                vec!["PATH".to_owned()],
                "install clang of the release that compiled the device code (Debian: `clang-<release>`)",
            )
        })
    }
}

fn split(inputs: &[DeviceInput]) -> (Vec<&PathBuf>, Vec<&PathBuf>) {
    let mut objects = Vec::new();
    let mut bitcode = Vec::new();
    for input in inputs {
        match input {
            DeviceInput::Object(path) => objects.push(path),
            DeviceInput::Bitcode(path) => bitcode.push(path),
        }
    }
    (objects, bitcode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder that looks like an LLVM installation and a CUDA tree, as far as looking goes.
    fn tree(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("offload-link-{name}-{}", std::process::id()));
        let files = [
            "bin/clang",
            "bin/llvm-link",
            "bin/ptxas",
            "lib/libomptarget-amdgpu-gfx90a.bc",
            "lib/libomptarget-nvptx-sm_80.bc",
        ];
        for file in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    /// The commands for a job, with the folder's name left out.
    fn planned(
        name: &str,
        triple: &str,
        processor: &str,
        inputs: &[&str],
    ) -> Result<Vec<String>, String> {
        let folder = tree(name);
        let llvm = Llvm {
            clang: folder.join("bin/clang"),
            prefix: folder.clone(),
        };
        let search = Search {
            path: OsString::new(),
            cuda: vec![folder.clone()],
        };
        let linker = DeviceLinker {
            llvm: (name != "no-clang").then_some(&llvm),
            search: &search,
            cc: Path::new("cc"),
            opt_level: "3",
            host_libraries: &["-lomp".into()],
            compiler_args: &["-g".into()],
            linker_args: &["-x".into()],
        };
        let input = |name: &&str| match name.ends_with(".bc") {
            true => DeviceInput::Bitcode(name.into()),
            false => DeviceInput::Object(name.into()),
        };
        let job = LinkJob {
            triple: Triple::parse(triple).unwrap(),
            processor: processor.to_owned(),
            inputs: inputs.iter().map(input).collect(),
        };
        let shown = |text: String| {
            text.replace(&format!("{}/", folder.display()), "")
                .replace(&folder.display().to_string(), ".")
        };
        let plan = linker.plan(&job, Path::new("k.img"));
        fs::remove_dir_all(&folder).unwrap();
        match plan {
            Ok(commands) => Ok(commands
                .iter()
                .map(|command| shown(command.to_string()))
                .collect()),
            Err(error) => Err(shown(error.to_string())),
        }
    }

    #[test]
    fn plans_a_shared_object_for_a_cpu() {
        let cpu =
            "--target=x86_64-pc-linux-gnu -shared -fPIC -Wl,-Bsymbolic -Wl,--no-undefined -o k.img";
        assert_eq!(
            planned("cpu", "x86_64-pc-linux-gnu", "", &["a.o", "b.o"]).unwrap(),
            [format!(
                "bin/clang --no-default-config {cpu} a.o b.o -g -Xlinker -x -lomp"
            )]
        );
        assert_eq!(
            planned("mixed", "x86_64-pc-linux-gnu", "", &["a.o", "b.bc"]).unwrap(),
            [format!(
                "bin/clang --no-default-config {cpu} a.o -O3 -x ir b.bc -g -Xlinker -x -x none -lomp"
            )]
        );
        assert_eq!(
            planned("no-clang", "x86_64-pc-linux-gnu", "", &["a.o"]).unwrap(),
            [
                "cc -shared -fPIC -Wl,-Bsymbolic -Wl,--no-undefined -o k.img a.o -g -Xlinker -x -lomp"
            ]
        );
    }

    #[test]
    fn plans_one_module_with_the_device_runtime_for_amd() {
        let runtime = "-Xclang -mllvm -Xclang -openmp-opt-disable-spmdization \
                       -Xclang -mllvm -Xclang -openmp-opt-disable-state-machine-rewrite \
                       -Xclang -mlink-builtin-bitcode -Xclang lib/libomptarget-amdgpu-gfx90a.bc";
        let link = "bin/clang --no-default-config --target=amdgcn-amd-amdhsa -mcpu=gfx90a:xnack- -nogpulib -o k.img";
        assert_eq!(
            planned(
                "amd",
                "amdgcn-amd-amdhsa",
                "gfx90a:xnack-",
                &["a.bc", "b.bc"]
            )
            .unwrap(),
            [
                "bin/llvm-link -o k.merged.bc a.bc b.bc".to_owned(),
                format!("{link} -Wl,--no-undefined {runtime} -O3 -x ir k.merged.bc -g -Xlinker -x"),
            ]
        );
        assert_eq!(
            planned("amd-object", "amdgcn-amd-amdhsa", "gfx90a:xnack-", &["a.o"]).unwrap(),
            [format!("{link} a.o -Wl,--no-undefined -g -Xlinker -x")]
        );
    }

    #[test]
    fn plans_an_assembly_for_nvidia() {
        let runtime = "-Xclang -mllvm -Xclang -openmp-opt-disable-spmdization \
                       -Xclang -mllvm -Xclang -openmp-opt-disable-state-machine-rewrite \
                       -Xclang -mlink-builtin-bitcode -Xclang lib/libomptarget-nvptx-sm_80.bc";
        let target = "--target=nvptx64-nvidia-cuda -march=sm_80 -nogpulib";
        assert_eq!(
            planned("nvidia", "nvptx64-nvidia-cuda", "sm_80", &["a.bc"]).unwrap(),
            [
                format!(
                    "bin/clang --no-default-config {target} --cuda-path=/nonexistent -S -Xclang -target-feature -Xclang +ptx78 \
                     {runtime} -o k.s -O3 -x ir a.bc -g"
                ),
                "bin/ptxas -m64 -O3 -arch sm_80 k.s -o k.img".to_owned(),
            ]
        );
    }

    #[test]
    fn says_what_is_missing_where_it_was_searched_and_how_to_get_it() {
        assert_eq!(
            planned("missing", "amdgcn-amd-amdhsa", "gfx906", &["a.bc"]).unwrap_err(),
            "`libomptarget-amdgpu-gfx906.bc` not found (searched: lib, lib64, \
             lib/x86_64-unknown-linux-gnu, lib/x86_64-linux-gnu)\n\
             hint: this LLVM has OpenMP's device runtime for gfx90a; name one of these, or take another release"
        );
        let error = planned("no-clang", "amdgcn-amd-amdhsa", "gfx90a", &["a.bc"]).unwrap_err();
        assert!(
            error.starts_with("`clang` not found (searched: PATH)\nhint: "),
            "{error}"
        );
    }
}
