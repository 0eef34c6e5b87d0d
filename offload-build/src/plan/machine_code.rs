//! HIP sources that are compiled to machine code each by itself (`rdc = false`), as hipcc does unless it is told otherwise:
//! the device link generates no code, so that an edit costs one compile and a link of objects.
//!
//! A compile writes assembly, of which an object is made in the same task. What LLVM's linker leaves to do, for several
//! objects in one code object, is in `container/code_object.rs`.

use crate::plan::code_options;
use crate::plan::context::Context;
use crate::steps::task::Task;
use crate::steps::task::finish::{Finish, assembly};
use offload_build_core::compile::device;
use offload_build_core::declare::family::Family;
use offload_build_core::declare::language::Language;
use offload_build_core::declare::module::{Module, Target};
use offload_build_core::installed::llvm::Llvm;
use offload_build_core::process::launcher::Start;

/// The first release that was seen to say in assembly which kernels other sources may have as well (19 and 22 do, 16 does
/// not).
const GROUPS: u32 = 19;

impl Context<'_> {
    /// Tells whether the sources of `module` become machine code before they are linked. Libraries and artifacts are
    /// bitcode, and
    /// what calls functions of a library is linked with it as bitcode.
    pub(crate) fn makes_machine_code(&self, module: &Module) -> bool {
        let release = self.compiler.llvm.as_ref().and_then(Llvm::release);
        module.language == Language::Hip
            && !module.rdc
            && self.compiler.family != Family::Nvcc
            && release.is_some_and(|release| release >= GROUPS)
            && !module.has_libraries()
            && module.artifacts.is_empty()
    }

    /// A compile to assembly, then the assembler.
    pub(crate) fn assembled(&self, task: Task, target: &Target) -> Task {
        let Some(llvm) = &self.compiler.llvm else {
            return task;
        };
        let text = assembly(&task.output);
        let processor = target.id.to_string();
        let flags = code_options::of_assembler(&target.own.flags, &processor);
        let assemble = device::assemble(&llvm.clang, &processor, &text, &task.output).args(flags);
        let mut task = task;
        if let (Start::Launched(launched), Some(launcher)) = (&mut task.start, self.launcher) {
            // What is sent is worth it.
            launched.commands.push(match launcher.sends() {
                true => assemble.clone(),
                false => launcher.launch(&assemble),
            });
        }
        task.commands.push(assemble);
        task.finish = Finish::MachineCode;
        task
    }
}
