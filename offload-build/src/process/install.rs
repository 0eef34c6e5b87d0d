//! How to get what is missing, on the usual systems.

/// What a build may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A compiler, with what its device links run.
    Clang,
    /// The same with OpenMP's runtime.
    ClangWithRuntime,
    /// `llvm-link` and others beside a clang.
    Llvm,
    /// `ld.lld` beside a clang.
    Lld,
    /// `libomptarget.so` and the code of it for devices.
    OffloadRuntime,
    /// `ptxas` and `nvlink`.
    CudaTools,
    /// Headers and `libdevice` besides.
    CudaToolkit,
    /// Headers of HIP, and AMD's device libraries.
    Rocm,
    /// `spirv-link`.
    SpirvTools,
}

/// What is installed, by which commands: of Debian and Ubuntu with `<n>` for the release, of Fedora, of Arch, and in an
/// environment of one's own.
struct Row {
    need: Need,
    what: &'static str,
    commands: &'static [(&'static str, &'static str)],
}

const APT: &str = "Debian, Ubuntu";
const DNF: &str = "Fedora";
const PACMAN: &str = "Arch";
const CONDA: &str = "conda-forge";
const PYPI: &str = "PyPI";

const ROWS: [Row; 9] = [
    Row {
        need: Need::Clang,
        what: "clang",
        commands: &[
            (APT, "apt install clang-<n> lld-<n> llvm-<n>"),
            (DNF, "dnf install clang lld llvm"),
            (PACMAN, "pacman -S clang lld llvm"),
            (CONDA, "conda install clangxx lld llvm-tools"),
        ],
    },
    Row {
        need: Need::ClangWithRuntime,
        what: "clang with OpenMP's offload runtime of the same release",
        commands: &[
            (APT, "apt install clang-<n> lld-<n> llvm-<n> libomp-<n>-dev"),
            (DNF, "dnf install clang lld llvm libomp-devel"),
        ],
    },
    Row {
        need: Need::Llvm,
        what: "the LLVM tools of clang's release",
        commands: &[
            (APT, "apt install llvm-<n>"),
            (DNF, "dnf install llvm"),
            (PACMAN, "pacman -S llvm"),
            (CONDA, "conda install llvm-tools"),
        ],
    },
    Row {
        need: Need::Lld,
        what: "lld of clang's release",
        commands: &[
            (APT, "apt install lld-<n>"),
            (DNF, "dnf install lld"),
            (PACMAN, "pacman -S lld"),
            (CONDA, "conda install lld"),
        ],
    },
    Row {
        need: Need::OffloadRuntime,
        what: "the OpenMP runtime of clang's release",
        commands: &[
            (APT, "apt install libomp-<n>-dev"),
            (DNF, "dnf install libomp-devel"),
        ],
    },
    Row {
        need: Need::CudaTools,
        what: "NVIDIA's compilers",
        commands: &[
            (APT, "apt install nvidia-cuda-toolkit"),
            ("Fedora, of NVIDIA's repository", "dnf install cuda-toolkit"),
            (PACMAN, "pacman -S cuda"),
            (CONDA, "conda install cuda-nvcc"),
            (PYPI, "pip install nvidia-cuda-nvcc"),
        ],
    },
    Row {
        need: Need::CudaToolkit,
        what: "NVIDIA's CUDA toolkit",
        commands: &[
            (APT, "apt install nvidia-cuda-toolkit"),
            ("Fedora, of NVIDIA's repository", "dnf install cuda-toolkit"),
            (PACMAN, "pacman -S cuda"),
            (CONDA, "conda install cuda-toolkit"),
        ],
    },
    Row {
        need: Need::Rocm,
        what: "ROCm's HIP headers and device libraries",
        commands: &[
            (APT, "apt install libamdhip64-dev rocm-device-libs"),
            (DNF, "dnf install rocm-hip-devel rocm-device-libs"),
            (PACMAN, "pacman -S hip-runtime-amd rocm-device-libs"),
        ],
    },
    Row {
        need: Need::SpirvTools,
        what: "the tools of SPIR-V",
        commands: &[
            (APT, "apt install spirv-tools"),
            (DNF, "dnf install spirv-tools"),
            (PACMAN, "pacman -S spirv-tools"),
            (CONDA, "conda install spirv-tools"),
        ],
    },
];

/// A release that Debian's and Ubuntu's packages have, where none is asked for.
const USUAL: u32 = 19;

impl Need {
    /// `install clang (Debian, Ubuntu: …; Fedora: …)`, of that release of LLVM where it is known.
    pub(crate) fn install(self, release: Option<u32>) -> String {
        let Some(row) = ROWS.iter().find(|row| row.need == self) else {
            return String::new();
        };
        let release = release.unwrap_or(USUAL).to_string();
        let commands = row.commands.iter().map(|(system, command)| {
            let command = command.replace("<n>", &release);
            format!("{system}: `{command}`")
        });
        let commands: Vec<String> = commands.collect();
        format!("install {} ({})", row.what, commands.join("; "))
    }

    /// What has a program that lies beside clang.
    pub(crate) fn of_sibling(program: &str) -> Self {
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
        for row in ROWS {
            let text = row.need.install(None);
            assert!(text.starts_with(&format!(
                "install {} (Debian, Ubuntu: `apt install ",
                row.what
            )));
            assert!(!text.contains('<'), "{text}");
        }
    }
}
