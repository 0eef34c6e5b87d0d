//! Programs and files of a device link, found before the link is planned. A missing one is a value, too: it is an error only
//! for a link that needs it.

use crate::installed::answers::Answers;
use crate::installed::cuda;
use crate::installed::llvm::Llvm;
use crate::installed::llvm_tools::LlvmTools;
#[cfg(feature = "tools")]
use crate::installed::spirv_tools::SpirvTools;
use crate::process::command::Command;
use crate::process::search::{NotFound, Search};
use offload_formats_core::names::Triple;
use std::path::{Path, PathBuf};

/// A target of device links, as far as it decides what they may need.
#[derive(Clone, Copy, Debug)]
pub struct LinkTarget<'a> {
    /// The device's triple.
    pub triple: &'a Triple,
    /// The processor or target ID; empty if the triple suffices.
    pub processor: &'a str,
    /// True if `llvm-link` may have to merge bitcode.
    pub merges_bitcode: bool,
}

/// The programs and files of the device links for one target.
#[derive(Clone, Debug)]
pub struct DeviceTools {
    /// The LLVM that links; objects for a CPU can do without.
    pub llvm: Option<Llvm>,
    /// LLVM's tools in place of clang, for NVIDIA GPUs.
    pub llvm_tools: Option<LlvmTools>,
    pub llvm_link: Result<PathBuf, NotFound>,
    /// lld where clang looks for it: beside itself, then in `PATH`.
    pub lld: Result<PathBuf, NotFound>,
    /// clang's helper, which runs NVIDIA's tools.
    pub nvlink_wrapper: Result<PathBuf, NotFound>,
    pub ptxas: Result<PathBuf, NotFound>,
    /// The newest PTX that both clang and `ptxas` know, 84 for 8.4, where they were asked.
    pub newest_ptx: Option<u32>,
    pub nvlink: Result<PathBuf, NotFound>,
    #[cfg(feature = "tools")]
    pub spirv: SpirvTools,
    /// OpenMP's device runtime, as bitcode.
    pub device_runtime: Result<PathBuf, NotFound>,
    /// LLVM's C and math libraries for GPUs, as archives of bitcode; empty if they are not installed.
    pub gpu_libraries: Vec<PathBuf>,
    /// Parts of a foreign CPU's toolchain; nothing for other targets.
    pub foreign_cpu: Option<ForeignCpu>,
}

/// Parts of the toolchain of a CPU other than this machine's.
#[derive(Clone, Copy, Debug)]
pub struct ForeignCpu {
    pub has_linker: bool,
    pub has_c_library: bool,
}

impl DeviceTools {
    /// Finds the tools of `target` in `llvm` and with `search`. clang is asked for programs that are not beside it;
    /// `answers` keep what it says.
    #[must_use]
    pub fn find(
        llvm: Option<&Llvm>,
        search: &Search,
        target: &LinkTarget<'_>,
        answers: Option<&Answers>,
    ) -> Self {
        let beside = |name| no_clang(llvm).and_then(|llvm| llvm.sibling(name));
        let program = |name| no_clang(llvm).and_then(|llvm| llvm.program(name, answers));
        let foreign_cpu = foreign_cpu(target.triple, search);
        let needs_lld = target.triple.is_amdgpu() || foreign_cpu.is_some();
        let lld = beside("ld.lld").or_else(|missing| match search.program("ld.lld") {
            Some(found) => Ok(found),
            None if needs_lld => program("ld.lld"),
            None => Err(missing),
        });
        let ptxas = search.cuda_program("ptxas");
        let newest_ptx = || {
            let (release, ptxas) = (llvm?.release()?, ptxas.as_ref().ok()?);
            let answer = answers?.to(&Command::new(ptxas).arg("--version")).ok()?;
            cuda::newest_ptx(release, cuda::release(&answer)?)
        };
        let processor = target.processor.split(':').next();
        let processor = processor.expect("a split text has a first part");
        Self {
            llvm_link: match target.merges_bitcode {
                true => program("llvm-link"),
                false => beside("llvm-link"),
            },
            lld,
            nvlink_wrapper: beside("clang-nvlink-wrapper"),
            newest_ptx: target.triple.is_nvptx().then(newest_ptx).flatten(),
            ptxas,
            nvlink: search.cuda_program("nvlink"),
            #[cfg(feature = "tools")]
            spirv: SpirvTools::find(no_clang(llvm), search),
            device_runtime: no_clang(llvm)
                .and_then(|llvm| llvm.device_runtime(target.triple, processor)),
            gpu_libraries: llvm
                .map_or_else(Vec::new, |llvm| llvm.gpu_libraries(target.triple.as_str())),
            foreign_cpu,
            llvm: llvm.cloned(),
            llvm_tools: None,
        }
    }

    /// Links with LLVM's tools in place of clang.
    #[must_use]
    pub fn without_clang(self, tools: &LlvmTools) -> Self {
        Self {
            llvm_link: Ok(tools.llvm_link.clone()),
            llvm_tools: Some(tools.clone()),
            ..self
        }
    }

    /// Returns the release of clang's LLVM, if it is known.
    #[must_use]
    pub fn release(&self) -> Option<u32> {
        self.llvm.as_ref().and_then(Llvm::release)
    }

    /// Returns the LLVM of clang, which most links need.
    pub fn llvm(&self) -> Result<&Llvm, NotFound> {
        no_clang(self.llvm.as_ref())
    }
}

fn no_clang(llvm: Option<&Llvm>) -> Result<&Llvm, NotFound> {
    llvm.ok_or_else(|| {
        NotFound::new(
            "clang",
            vec!["PATH".to_owned()],
            "install clang of the release that compiled the device code (Debian, Ubuntu: `clang-<release>`; Fedora, Arch, conda-forge: `clang`)",
        )
    })
}

/// Finds what this machine has for CPUs of `triple`; nothing for its own, and for GPUs.
fn foreign_cpu(triple: &Triple, search: &Search) -> Option<ForeignCpu> {
    // As GNU's tools call it.
    let name = match triple.arch() {
        "ppc64le" => "powerpc64le",
        "i386" | "i486" | "i586" | "i686" => "x86_64",
        other => other,
    };
    let here = match std::env::consts::ARCH {
        "x86" => "x86_64",
        "powerpc64" if cfg!(target_endian = "little") => "powerpc64le",
        other => other,
    };
    if !triple.is_cpu() || name == here {
        return None;
    }
    let files = [
        format!("/usr/{name}-linux-gnu/lib/crti.o"),
        format!("/usr/lib/{name}-linux-gnu/crti.o"),
    ];
    Some(ForeignCpu {
        has_linker: search.program(&format!("{name}-linux-gnu-ld")).is_some(),
        has_c_library: files.iter().any(|file| Path::new(file).exists()),
    })
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A clang that says where `llvm-link` and `ld.lld` are, and counts how often it is started.
    struct Front {
        folder: tempfile::TempDir,
        search: Search,
    }

    impl Front {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let bin = folder.path().join("front/bin");
            fs::create_dir_all(&bin).unwrap();
            let clang = bin.join("clang");
            let root = folder.path().display();
            let script = format!("#!/bin/sh\necho x >> {root}/starts\necho {root}/${{1#*=}}\n");
            fs::write(&clang, script).unwrap();
            fs::set_permissions(&clang, fs::Permissions::from_mode(0o755)).unwrap();
            Self {
                folder,
                search: Search::default(),
            }
        }

        fn find(
            &self,
            triple: &str,
            merges_bitcode: bool,
            answers: Option<&Answers>,
        ) -> DeviceTools {
            let llvm = Llvm::of(self.folder.path().join("front/bin/clang"));
            let target = LinkTarget {
                triple: &Triple::parse(triple).unwrap(),
                processor: "",
                merges_bitcode,
            };
            DeviceTools::find(Some(&llvm), &self.search, &target, answers)
        }

        fn starts(&self) -> usize {
            let log = fs::read_to_string(self.folder.path().join("starts"));
            log.unwrap_or_default().lines().count()
        }
    }

    #[test]
    fn asks_clang_for_what_the_links_of_a_target_run() {
        let starts = |triple, merges| {
            let front = Front::new();
            front.find(triple, merges, None);
            front.starts()
        };
        assert_eq!(starts("nvptx64-nvidia-cuda", false), 0);
        assert_eq!(starts("nvptx64-nvidia-cuda", true), 1, "llvm-link");
        assert_eq!(starts("amdgcn-amd-amdhsa", false), 1, "ld.lld");
        assert_eq!(starts("amdgcn-amd-amdhsa", true), 2);
        assert_eq!(starts("riscv64-unknown-linux-gnu", false), 1, "ld.lld");
    }

    #[test]
    fn keeps_the_place_of_a_program_and_asks_again_for_a_missing_one() {
        let front = Front::new();
        let (root, out) = (front.folder.path(), front.folder.path().join("out"));
        let answers = Answers::below(&out, "");
        let llvm_link = || {
            let tools = front.find("nvptx64-nvidia-cuda", true, Some(&answers));
            tools.llvm_link.map_err(|missing| missing.to_string())
        };
        for start in 1..3 {
            let bin = root.join("front/bin");
            let missing = format!("`llvm-link` not found (searched: {})", bin.display());
            assert!(llvm_link().unwrap_err().starts_with(&missing));
            assert_eq!(front.starts(), start);
        }
        fs::write(root.join("llvm-link"), "").unwrap();
        for _ in 0..2 {
            assert_eq!(llvm_link(), Ok(root.join("llvm-link")));
            assert_eq!(front.starts(), 2, "the known answer is a file now");
        }
        fs::remove_file(root.join("llvm-link")).unwrap();
        llvm_link().unwrap_err();
        assert_eq!(front.starts(), 3);
    }
}
