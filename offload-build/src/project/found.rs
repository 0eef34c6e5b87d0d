//! The programs, SDKs, libraries and GPUs of this machine that matter to device code.

use offload_build_core::declare::language::Language;
use offload_build_core::environment::Environment;
use offload_build_core::error::Error;
use offload_build_core::installed::answers::Answers;
use offload_build_core::installed::compilers::nvcc;
use offload_build_core::installed::fitting_clangs;
use offload_build_core::installed::lld::Lld;
use offload_build_core::installed::llvm::{HERE, Llvm};
use offload_build_core::installed::llvm_tools::LlvmTools;
use offload_build_core::installed::native::Native;
use offload_build_core::installed::rocm;
use offload_build_core::installed::rustc;
use offload_build_core::installed::sdk;
use offload_build_core::process::command::Command;
use offload_build_core::process::install::Need;
use offload_build_core::process::search::{Search, program_in};
use offload_formats::names::ProcessorProducts;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Purpose of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolGroup {
    /// Compilers of device code, and programs that they need.
    Compilers,
    /// Headers and device libraries.
    Sdks,
    /// Libraries that programs call at run time.
    Runtimes,
    /// Linkers of host code.
    Linkers,
    /// Caches and distributors of compiles.
    Launchers,
    /// GPUs of this machine.
    Gpus,
}

/// Something that was looked for.
#[derive(Debug)]
pub struct FoundTool {
    /// Purpose.
    pub group: ToolGroup,
    /// Its name: `clang 22`, `ptxas`, `ROCm`.
    pub name: String,
    /// Its place; `None` if it was not found.
    pub path: Option<PathBuf>,
    /// Its version, and what it can do.
    pub detail: String,
    /// How to get it, or what it lacks. A machine without GPUs of a vendor needs no tools of that vendor.
    pub hint: Option<String>,
}

/// Looks for all of it. Programs are asked for their versions; one that fails is listed with its failure.
///
/// # Errors
///
/// If `OUT_DIR`, where the answers are kept, is not among `variables`.
pub fn found_tools(variables: BTreeMap<OsString, OsString>) -> Result<Vec<FoundTool>, Error> {
    let environment = Environment::new(variables.into_iter().collect());
    let out = PathBuf::from(environment.required("OUT_DIR")?);
    let here = Here {
        search: environment.search(),
        answers: Answers::below(&out, ""),
        environment: &environment,
    };
    let mut found = here.compilers();
    found.extend(here.sdk(Language::Hip, "ROCm", Need::Rocm));
    found.extend(here.sdk(Language::Cuda, "CUDA", Need::CudaToolkit));
    found.extend(here.runtimes());
    found.extend(here.linkers());
    found.extend(here.launchers());
    found.extend(here.gpus());
    Ok(found)
}

/// Kernels that need no SDK.
const WITHOUT_SDK: &str = "sources that include `<offload/gpu.h>` and none of the SDK's headers build without the SDK, if no kernel calls a \
    function of the math library such as `sinf`";

struct Here<'a> {
    environment: &'a Environment,
    search: Search,
    answers: Answers,
}

impl Here<'_> {
    fn compilers(&self) -> Vec<FoundTool> {
        let clangs = self.search.clangs();
        let mut found: Vec<FoundTool> = clangs.iter().map(|llvm| self.clang(llvm)).collect();
        if clangs.is_empty() {
            found.push(missing(
                ToolGroup::Compilers,
                "clang",
                Need::ClangWithRuntime.install(None),
            ));
        }
        let hipcc = self.search.program("hipcc");
        let hipcc = hipcc.or_else(|| {
            let roots = rocm::named_roots(self.environment).into_iter();
            let mut roots = roots.chain(rocm::ROCM_FOLDERS.iter().map(PathBuf::from));
            roots.find_map(|root| rocm::program(&root, "hipcc"))
        });
        if let Some(hipcc) = hipcc {
            let version = self.answer(&hipcc, &["--version"], rocm::version_line);
            found.push(tool(ToolGroup::Compilers, "hipcc", hipcc, version));
        }
        let release = |answer: &str| {
            let mut lines = answer.lines();
            let line = lines.find(|line| line.contains("release"));
            line.unwrap_or_default().trim().to_owned()
        };
        if let Some(nvcc) = nvcc::program("nvcc", &self.search) {
            let version = self.answer(&nvcc, &["--version"], release);
            found.push(tool(ToolGroup::Compilers, "nvcc", nvcc, version));
        }
        for rustc in rustc::known(self.environment, &self.search, &self.answers) {
            let use_for_kernels = match rustc.problem {
                None => "compiles kernels".to_owned(),
                Some(problem) => format!("compiles no kernels: it {problem}"),
            };
            found.push(FoundTool {
                group: ToolGroup::Compilers,
                name: format!("rustc {}", rustc.version),
                path: Some(rustc.program),
                detail: format!("LLVM {}, {use_for_kernels}", rustc.llvm),
                hint: None,
            });
            let program = |name| {
                let program = rustc.tools.as_ref().map(|tools| program_in(tools, name));
                program.filter(|path| path.is_file())
            };
            found.extend(program("rust-lld").map(|path| {
                let version = match Lld::of(&path, &self.answers) {
                    Ok(lld) => lld.version,
                    Err(problem) => problem,
                };
                let detail = format!("{version}, links kernels for AMD GPUs without clang");
                tool(ToolGroup::Compilers, "rust-lld", path, detail)
            }));
            found.extend(program("llc").map(|path| {
                let detail = match LlvmTools::of(&path, &self.answers) {
                    Ok(tools) => {
                        let version = tools.version;
                        format!("{version}, links kernels for NVIDIA GPUs without clang")
                    }
                    Err(problem) => problem,
                };
                tool(ToolGroup::Compilers, "llvm-tools", path, detail)
            }));
        }
        for name in ["ptxas", "nvlink"] {
            found.push(match self.search.cuda_program(name) {
                Ok(path) => {
                    let version = self.answer(&path, &["--version"], release);
                    tool(ToolGroup::Compilers, name, path, version)
                }
                Err(_) => missing(ToolGroup::Compilers, name, Need::CudaTools.install(None)),
            });
        }
        found
    }

    fn clang(&self, llvm: &Llvm) -> FoundTool {
        let release = llvm.release();
        let name = release.map_or("clang".to_owned(), |release| format!("clang {release}"));
        let first = |answer: &str| answer.lines().next().unwrap_or_default().trim().to_owned();
        let version = self.answer(&llvm.clang, &["--version"], first);
        let mut has = vec![version];
        let mut lacks = Vec::new();
        match llvm.sibling("ld.lld") {
            Ok(_) => has.push("ld.lld".to_owned()),
            Err(_) => lacks.push(Need::Lld),
        }
        let runtime = llvm
            .libraries(HERE)
            .any(|folder| folder.join("libomptarget.so").is_file());
        match runtime {
            true => {
                let devices = ["amdgpu", "nvptx"].map(|vendor| {
                    let count = llvm.device_runtimes(vendor);
                    (count > 0).then_some(vendor)
                });
                let devices: Vec<&str> = devices.into_iter().flatten().collect();
                let devices = match devices.as_slice() {
                    [] => String::new(),
                    vendors => format!(" for {}", vendors.join(", ")),
                };
                has.push(format!("OpenMP's offload runtime{devices}"));
            }
            false => lacks.push(Need::OffloadRuntime),
        }
        let hints = lacks.iter().map(|need| need.install(release));
        let hints: Vec<String> = hints.collect();
        FoundTool {
            hint: (!hints.is_empty()).then(|| hints.join("; ")),
            ..tool(
                ToolGroup::Compilers,
                name,
                llvm.clang.clone(),
                has.join(", "),
            )
        }
    }

    fn sdk(&self, language: Language, name: &str, need: Need) -> Option<FoundTool> {
        let root = sdk::any_root(language, self.environment, &self.answers, Vec::new());
        let hint = |need: Need| format!("{}\n{WITHOUT_SDK}", need.install(None));
        let Ok(root) = root else {
            return Some(missing(ToolGroup::Sdks, name, hint(need)));
        };
        let version = fitting_clangs::version(language, &root);
        let version = version.map(|(major, minor)| match language {
            // ROCm's own is another one since ROCm 10.
            Language::Hip => format!("HIP {major}.{minor}"),
            _ => format!("{major}.{minor}"),
        });
        let named = || self.environment.variable("HIP_DEVICE_LIB_PATH");
        let libraries = match language {
            Language::Hip => named().map(PathBuf::from).or_else(|| {
                let found = rocm::device_libraries(&root, None);
                found.map(|found| found.folder)
            }),
            _ => Some(root.join("nvvm/libdevice/libdevice.10.bc")).filter(|path| path.is_file()),
        };
        let (libraries, hint) = match (libraries, language) {
            (Some(path), _) => (format!("device libraries in {}", path.display()), None),
            (None, language) => {
                let need = match language {
                    Language::Hip => Need::DeviceLibraries,
                    _ => need,
                };
                ("no device libraries".to_owned(), Some(hint(need)))
            }
        };
        let detail = version.into_iter().chain([libraries]);
        let detail: Vec<String> = detail.collect();
        Some(FoundTool {
            hint,
            ..tool(ToolGroup::Sdks, name, root, detail.join(", "))
        })
    }

    fn runtimes(&self) -> Vec<FoundTool> {
        let variable = self.environment.variable("LD_LIBRARY_PATH");
        let usual = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/opt/rocm/lib"];
        let usual = usual.map(PathBuf::from).into_iter();
        let own =
            ["lib", "lib64"].map(|lib| self.search.cuda.iter().map(move |root| root.join(lib)));
        let named = variable.iter().flat_map(std::env::split_paths);
        let folders: Vec<PathBuf> = named
            .chain(usual)
            .chain([PathBuf::from(format!("/usr/lib/{HERE}-linux-gnu"))])
            .chain(own.into_iter().flatten())
            .collect();
        let libraries = [
            (
                "HIP",
                ["libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7"],
            ),
            (
                "CUDA",
                ["libcudart.so", "libcudart.so.12", "libcudart.so.13"],
            ),
            (
                "CUDA driver",
                ["libcuda.so.1", "libcuda.so", "libcuda.so.1.1"],
            ),
        ];
        let find = |names: &[&str]| {
            let files = names
                .iter()
                .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
            files.into_iter().find(|path| path.is_file())
        };
        libraries
            .into_iter()
            .map(|(name, files)| match find(&files) {
                Some(path) => tool(ToolGroup::Runtimes, name, path, String::new()),
                None => FoundTool {
                    detail: format!("{} not found", files[0]),
                    ..missing(
                        ToolGroup::Runtimes,
                        name,
                        "programs that use GPUs of this vendor need it where they run".to_owned(),
                    )
                },
            })
            .collect()
    }

    fn linkers(&self) -> Vec<FoundTool> {
        let first = |answer: &str| answer.lines().next().unwrap_or_default().trim().to_owned();
        let names = [
            "offload-link",
            "cc",
            "ld",
            "ld.lld",
            "mold",
            "ld.gold",
            "wild",
        ];
        let found = names.iter().filter_map(|name| {
            let path = self.search.program(name)?;
            // Its `--version` is also that of the linker that it runs, which programs started from here must not ask for.
            let question = match *name {
                "offload-link" => "--print-offload-abi",
                _ => "--version",
            };
            let version = self.answer(&path, &[question], first);
            Some(tool(ToolGroup::Linkers, *name, path, version))
        });
        found.collect()
    }

    fn launchers(&self) -> Vec<FoundTool> {
        let names = ["sccache", "ccache", "distcc", "icecc"].iter();
        let found = names.filter_map(|name| {
            let path = self.search.program(name)?;
            Some(tool(ToolGroup::Launchers, *name, path, String::new()))
        });
        found.collect()
    }

    fn gpus(&self) -> Vec<FoundTool> {
        let (processors, asked) = Native::new(self.environment).all();
        let mut found: Vec<FoundTool> = processors
            .into_iter()
            .map(|name| FoundTool {
                group: ToolGroup::Gpus,
                path: None,
                detail: ProcessorProducts::of(&name)
                    .map_or(String::new(), |known| known.architecture().to_owned()),
                name,
                hint: None,
            })
            .collect();
        if found.is_empty() {
            found.push(missing(
                ToolGroup::Gpus,
                "none",
                format!("device code compiles without one ({})", asked.join("; ")),
            ));
        }
        found
    }

    fn answer(&self, program: &Path, args: &[&str], read: impl Fn(&str) -> String) -> String {
        let question = Command::new(program).args(args.iter().copied());
        match self.answers.to(&question) {
            Ok(answer) => read(&answer),
            Err(error) => {
                let error = error.to_string();
                let line = error.lines().next().unwrap_or_default();
                format!("does not answer: {line}")
            }
        }
    }
}

fn tool(group: ToolGroup, name: impl Into<String>, path: PathBuf, detail: String) -> FoundTool {
    FoundTool {
        group,
        name: name.into(),
        path: Some(path),
        detail,
        hint: None,
    }
}

fn missing(group: ToolGroup, name: &str, hint: String) -> FoundTool {
    FoundTool {
        group,
        name: name.to_owned(),
        path: None,
        detail: "not found".to_owned(),
        hint: Some(hint),
    }
}
