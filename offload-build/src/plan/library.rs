//! The static library of a module with host code, and the relocatable link of its objects.

use crate::plan::context::Context;
use crate::steps::archive::Archive;
use crate::steps::host_objects::own::Own;
use crate::steps::task::Task;
use offload_build_core::files;
use offload_build_core::process::command::Command;
use std::path::{Path, PathBuf};

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
            (None, Some(other)) => Command::new(&other.program),
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
            ..self.task(object)
        }
    }
}
