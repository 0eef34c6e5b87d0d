//! The static library of a module with host code, and the relocatable link of its objects.

use crate::plan::context::Context;
use crate::steps::archive::Archive;
use crate::steps::host_objects::own::Own;
use crate::steps::task::{SymbolHints, Task};
use offload_build_core::files;
use offload_build_core::process::command::Command;
use std::path::{Path, PathBuf};

/// Words of GNU ld and lld about an object of another processor.
const OTHER_PROCESSOR: &[(&str, &str)] = &[
    ("incompatible with", HOST_COMPILER_HINT),
    ("generic ELF", HOST_COMPILER_HINT),
    ("wrong format", HOST_COMPILER_HINT),
];

const HOST_COMPILER_HINT: &str = "the C++ compiler that nvcc runs must be one for the target of this cross build: name it in \
    CXX_<target>, such as CXX_aarch64_unknown_linux_gnu, or with `-ccbin` in `flags`";

impl Context<'_> {
    /// The module's library.
    pub(crate) fn archive(&self, objects: Vec<PathBuf>, own: Option<Own>) -> Archive {
        let name = format!("{}_offload", self.unique);
        Archive {
            library: self.out.join(self.host.static_library(&name)),
            name,
            objects,
            own,
        }
    }

    /// Plans one relocatable object: first the object that registers the images, then the host objects.
    pub(crate) fn join(&self, module: &str, inputs: Vec<PathBuf>, object: &Path) -> Task {
        // hipcc links HIP's runtime, and nvcc NVIDIA's; there the host's compiler is the system's.
        let (llvm, other) = (&self.compiler.llvm, &self.compiler.host_compiler);
        let mut link = match (llvm, other) {
            (Some(llvm), _) => Command::new(&llvm.clang).arg("--no-default-config"),
            (None, Some(other)) => Command::new(other),
            (None, None) => Command::new("cc"),
        };
        if llvm.is_some() && self.host.is_cross {
            let target = self.host.clang_target();
            link = link.args(target.map(|target| format!("--target={target}")));
            // Without it clang takes the linker for that host when there is one, otherwise this machine's.
            if self.has_lld {
                link = link.arg("-fuse-ld=lld");
            }
        }
        let link = link
            .args(["-r", "-nostdlib", "-o"])
            .arg(files::part(object))
            .args(&inputs);
        Task {
            title: format!("host code and registration of `{module}`"),
            commands: vec![link],
            inputs,
            environment: String::new(),
            hints: SymbolHints {
                others: other.as_ref().map_or(&[], |_| OTHER_PROCESSOR),
                ..SymbolHints::default()
            },
            ..self.task(object)
        }
    }
}
