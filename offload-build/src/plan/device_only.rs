//! The plan of a module without host code (HIP, CUDA, bitcode, Rust): an image for each target, and the container that the
//! program gives to the runtime's module API.

use crate::plan::artifacts::{self, Unit};
use crate::plan::context::{self, Context};
use crate::plan::stages::{Plan, keyed, step};
use crate::steps::pack::Packing;
use offload_build_core::declare::module::{Module, Target};
use offload_build_core::error::Error;
use std::path::PathBuf;

/// Plans a module, and says for which of its targets there will be an image.
pub(crate) fn plan(module: &Module, context: &Context<'_>) -> Result<(Plan, Vec<Target>), Error> {
    let unit = |source: &PathBuf| Unit {
        stem: context::stem(context.root, source)
            .trim_end_matches('.')
            .to_owned(),
        host: PathBuf::new(),
        images: Vec::new(),
    };
    let mut units: Vec<Unit> = module.sources.iter().map(unit).collect();
    let code = context.device_code(module, &mut units)?;
    let artifacts = artifacts::plan(module, &units, &context.host.triple, context.out)?;
    let version = &context.compiler.version;
    let skipped = code.skipped.clone();
    let place = (context.out, context.images);
    let packing = Packing::new(module, code.parts, skipped, version, place);
    let last = [keyed(packing)].into_iter();
    let last = last.chain(artifacts.into_iter().map(step)).collect();
    let mut stages = code.rust.into_stages();
    stages.extend([code.compiles, code.links, last]);
    let skipped = code.skipped;
    Ok((Plan { stages, skipped }, code.built))
}
