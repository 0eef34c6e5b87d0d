//! Commands that install missing programs, on the usual systems.

/// Something that a build may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A compiler, with what its device links run.
    Clang,
    /// The same with OpenMP's runtime.
    ClangWithRuntime,
    /// `llvm-link` and others beside a clang.
    Llvm,
    /// `ld.lld` beside a clang.
    Lld,
    /// An lld, of rustup's or another, without a clang.
    LldAlone,
    /// `llc`, `opt` and `llvm-link`, of rustup's or others, without a clang.
    LlvmToolsAlone,
    /// `libomptarget.so` and the code of it for devices.
    OffloadRuntime,
    /// OpenMP's code for GPUs, of another release than clang's.
    OtherOffloadRuntime,
    /// `ptxas` and `nvlink`.
    CudaTools,
    /// Headers and `libdevice` besides.
    CudaToolkit,
    /// Headers of HIP, and AMD's device libraries.
    Rocm,
    /// AMD's device libraries alone.
    DeviceLibraries,
    /// `spirv-link`.
    #[cfg(feature = "tools")]
    SpirvTools,
    /// `llvm-spirv`.
    #[cfg(feature = "tools")]
    SpirvTranslator,
    /// A rustc for kernels, with the sources of its library.
    Rustc,
}

/// Commands that install something: of Debian and Ubuntu with `<n>` for the release, of Fedora, of Arch, and in an
/// environment of one's own.
struct Package {
    need: Need,
    what: &'static str,
    commands: &'static [(&'static str, &'static str)],
}

const APT: &str = "Debian, Ubuntu";
const APT_NON_FREE: &str = "Debian's non-free, Ubuntu";
const DEBIAN_12: &str = "Debian 12";
const DEBIAN_12_13: &str = "Debian 12, 13";
const UBUNTU_24_26: &str = "Ubuntu 24.04, 26.04";
const DEBIAN_14: &str = "Debian 14, Ubuntu 26.04";
const UBUNTU_26_10: &str = "Ubuntu 26.10";
const DNF: &str = "Fedora";
const PACMAN: &str = "Arch";
const CONDA: &str = "conda-forge";
const PYPI: &str = "PyPI";

const ROWS: &[Package] = &[
    Package {
        need: Need::Clang,
        what: "clang",
        commands: &[
            (APT, "apt install clang-<n> lld-<n> llvm-<n>"),
            (DNF, "dnf install clang lld llvm"),
            (PACMAN, "pacman -S clang lld llvm"),
            (CONDA, "conda install clangxx lld llvm-tools"),
        ],
    },
    Package {
        need: Need::ClangWithRuntime,
        what: "clang with OpenMP's offload runtime of the same release",
        commands: &[
            (APT, "apt install clang-<n> lld-<n> llvm-<n> libomp-<n>-dev"),
            (DNF, "dnf install clang lld llvm libomp-devel"),
        ],
    },
    Package {
        need: Need::Llvm,
        what: "the LLVM tools of clang's release",
        commands: &[
            (APT, "apt install llvm-<n>"),
            (DNF, "dnf install llvm"),
            (PACMAN, "pacman -S llvm"),
            (CONDA, "conda install llvm-tools"),
        ],
    },
    Package {
        need: Need::Lld,
        what: "lld of clang's release",
        commands: &[
            (APT, "apt install lld-<n>"),
            (DNF, "dnf install lld"),
            (PACMAN, "pacman -S lld"),
            (CONDA, "conda install lld"),
        ],
    },
    Package {
        need: Need::LldAlone,
        what: "an lld of that LLVM or newer",
        commands: &[
            (APT, "apt install lld-<n>"),
            (DNF, "dnf install lld"),
            (PACMAN, "pacman -S lld"),
            (CONDA, "conda install lld"),
            ("rustup", "rustup toolchain install stable"),
        ],
    },
    Package {
        need: Need::LlvmToolsAlone,
        what: "the tools of that LLVM or newer",
        commands: &[
            (APT, "apt install llvm-<n>"),
            (DNF, "dnf install llvm"),
            (PACMAN, "pacman -S llvm"),
            (CONDA, "conda install llvm-tools"),
            ("rustup", "rustup component add llvm-tools"),
        ],
    },
    Package {
        need: Need::OffloadRuntime,
        what: "the OpenMP runtime of clang's release",
        commands: &[
            (APT, "apt install libomp-<n>-dev"),
            (DNF, "dnf install libomp-devel"),
        ],
    },
    Package {
        need: Need::OtherOffloadRuntime,
        what: "an older clang with OpenMP's runtime for GPUs, which packages of clang 22 may lack",
        commands: &[
            (APT, "apt install clang-19 lld-19 llvm-19 libomp-19-dev"),
            (
                DEBIAN_14,
                "apt install clang-21 lld-21 llvm-21 libomp-21-dev liboffload-21-dev",
            ),
        ],
    },
    Package {
        need: Need::CudaTools,
        what: "NVIDIA's compilers",
        commands: &[
            (APT_NON_FREE, "apt install nvidia-cuda-toolkit"),
            ("Fedora, of NVIDIA's repository", "dnf install cuda-toolkit"),
            (PACMAN, "pacman -S cuda"),
            (CONDA, "conda install cuda-nvcc"),
            (PYPI, "pip install nvidia-cuda-nvcc"),
            ("PyPI, CUDA 12", "pip install nvidia-cuda-nvcc-cu12"),
        ],
    },
    Package {
        need: Need::CudaToolkit,
        what: "NVIDIA's CUDA toolkit",
        commands: &[
            (APT_NON_FREE, "apt install nvidia-cuda-toolkit"),
            ("Fedora, of NVIDIA's repository", "dnf install cuda-toolkit"),
            (PACMAN, "pacman -S cuda"),
            (CONDA, "conda install cuda-toolkit"),
        ],
    },
    Package {
        need: Need::Rocm,
        what: "ROCm's HIP headers and device libraries",
        commands: &[
            (APT, "apt install libamdhip64-dev rocm-device-libs-17"),
            (DEBIAN_14, "apt install libamdhip64-dev rocm-device-libs-21"),
            (UBUNTU_26_10, "apt install hipcc-rocm"),
            (DEBIAN_12, "apt install libamdhip64-dev rocm-device-libs"),
            (DNF, "dnf install rocm-hip-devel rocm-device-libs"),
            (PACMAN, "pacman -S hip-runtime-amd rocm-device-libs"),
        ],
    },
    Package {
        need: Need::DeviceLibraries,
        what: "ROCm's device libraries",
        commands: &[
            (APT, "apt install rocm-device-libs-17"),
            (DEBIAN_14, "apt install rocm-device-libs-21"),
            (UBUNTU_26_10, "apt install hipcc-rocm"),
            (DEBIAN_12, "apt install rocm-device-libs"),
            (DNF, "dnf install rocm-device-libs"),
            (PACMAN, "pacman -S rocm-device-libs"),
        ],
    },
    #[cfg(feature = "tools")]
    Package {
        need: Need::SpirvTools,
        what: "the tools of SPIR-V",
        commands: &[
            (APT, "apt install spirv-tools"),
            (DNF, "dnf install spirv-tools"),
            (PACMAN, "pacman -S spirv-tools"),
            (CONDA, "conda install spirv-tools"),
        ],
    },
    #[cfg(feature = "tools")]
    Package {
        need: Need::SpirvTranslator,
        what: "Khronos' translator of LLVM IR to SPIR-V, of clang's release",
        commands: &[
            (APT, "apt install llvm-spirv-<n>"),
            (DNF, "dnf install spirv-llvm-translator-tools"),
            (PACMAN, "pacman -S spirv-llvm-translator"),
        ],
    },
    Package {
        need: Need::Rustc,
        what: "Rust 1.96 or newer with the sources of its library",
        commands: &[
            (APT, "apt install rustc rust-src"),
            (DEBIAN_12_13, "apt install rustc-web rust-web-src"),
            (UBUNTU_24_26, "apt install rustc-1.97 rust-1.97-src"),
            (
                "rustup",
                "rustup update stable && rustup component add rust-src",
            ),
            (PACMAN, "pacman -S rust rust-src"),
        ],
    },
];

/// A release that Debian's and Ubuntu's packages have, where none is asked for.
const USUAL: u32 = 19;

/// The first release whose libomptarget Debian and Ubuntu have in a package of its own: `liboffload-21-dev`.
const APART: u32 = 21;

/// The first release whose packages in Debian and Ubuntu lack OpenMP's code for GPUs.
const WITHOUT_GPUS: u32 = 22;

impl Need {
    /// `install clang (Debian, Ubuntu: …; Fedora: …)`, of that release of LLVM where it is known.
    pub fn install(self, release: Option<u32>) -> String {
        let row = ROWS.iter().find(|row| row.need == self);
        let row = row.expect("each need has a row");
        let release = release.unwrap_or(USUAL);
        let commands = row.commands.iter().map(|(system, command)| {
            let runtime = "libomp-<n>-dev";
            let command = match release >= APART {
                true => command.replace(runtime, &format!("{runtime} liboffload-<n>-dev")),
                false => (*command).to_owned(),
            };
            let command = command.replace("<n>", &release.to_string());
            format!("{system}: `{command}`")
        });
        let commands: Vec<String> = commands.collect();
        format!("install {} ({})", row.what, commands.join("; "))
    }

    /// Returns the package that has OpenMP's code for GPUs, for clang of this release.
    pub fn of_device_runtime(release: Option<u32>) -> Self {
        match release {
            Some(release) if release >= WITHOUT_GPUS => Self::OtherOffloadRuntime,
            _ => Self::OffloadRuntime,
        }
    }

    /// Returns the package that has a program beside clang.
    pub fn of_sibling(program: &str) -> Self {
        match program {
            "ld.lld" => Self::Lld,
            _ => Self::Llvm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_commands_for_each_system() {
        assert_eq!(
            Need::Lld.install(Some(22)),
            "install lld of clang's release (Debian, Ubuntu: `apt install lld-22`; Fedora: `dnf install lld`; \
             Arch: `pacman -S lld`; conda-forge: `conda install lld`)"
        );
        let runtime = [20, 21].map(|release| Need::OffloadRuntime.install(Some(release)));
        assert!(
            runtime[0].contains("`apt install libomp-20-dev`"),
            "{runtime:?}"
        );
        let both = "`apt install libomp-21-dev liboffload-21-dev`";
        assert!(runtime[1].contains(both), "{runtime:?}");
        for row in ROWS {
            let text = row.need.install(None);
            assert!(text.starts_with(&format!("install {} (Debian", row.what)));
            assert!(text.contains(", Ubuntu: `apt install "), "{text}");
            assert!(!text.contains('<'), "{text}");
        }
    }
}
