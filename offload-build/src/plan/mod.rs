//! Plans: the steps of a build, as values, made of what was declared and what was found.

mod artifacts;
mod code_options;
mod compile_hints;
mod context;
mod device_code;
mod device_link;
mod device_only;
mod hosted;
mod libraries;
mod library;
mod machine_code;
mod nvcc;
mod prebuilt;
mod rust;
mod source_images;
mod stages;

pub(crate) use artifacts::check_names as check_artifact_names;
pub(crate) use context::Context;
pub(crate) use prebuilt::plan as plan_prebuilt;
pub use stages::Plan;
pub(crate) use stages::sorted;

use crate::steps::kernel_headers::{self, KernelHeaders};
use offload_build_core::declare::family::Family;
use offload_build_core::declare::language::ImageSources;
use offload_build_core::declare::module::{Module, Target};
use offload_build_core::error::Error;
use stages::step;

/// Plans a module whose sources are compiled, and returns the targets for which there will be an image.
pub(crate) fn plan_compiled(
    module: &Module,
    context: &Context<'_>,
) -> Result<(Plan, Vec<Target>), Error> {
    let (mut plan, targets) = match (module.has_host_code, context.compiler.family) {
        (true, Family::Nvcc) => nvcc::plan(module, context),
        (true, _) if module.images == ImageSources::OfSource => {
            source_images::plan(module, context)
        }
        (true, _) => hosted::plan(module, context),
        (false, _) => device_only::plan(module, context),
    }?;
    let has_headers = kernel_headers::folder(module.language, context.out).is_some();
    let reads_some = |target| context.device_headers(module, target).is_some();
    if has_headers || targets.iter().any(reads_some) {
        let folder = kernel_headers::root(context.out);
        plan.stages.insert(0, vec![step(KernelHeaders { folder })]);
    }
    Ok((plan, targets))
}
