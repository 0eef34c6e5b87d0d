//! Plans the device links of one host link.

mod content;
mod host_libraries;
mod job;
mod planner;
mod values;

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;

use offload_build::tools::{Llvm, Way};
use offload_formats::names::OffloadKind;

use crate::linker_wrapper::choose::select::Images;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::file::Inputs;
use crate::linker_wrapper::line::arguments::Arguments;
use crate::linker_wrapper::line::host;
use crate::linker_wrapper::line::options::LinkerOptions;
use crate::linker_wrapper::line::programs;
use crate::linker_wrapper::plan::runtime::{RuntimeFolders, runtime_libraries};
use crate::linker_wrapper::tool::LLVM_NAME;
use crate::linker_wrapper::tool::tool_name;
use crate::linker_wrapper::workplace::Workplace;
pub(crate) use job::{DeviceLink, Missing};

use host_libraries::host_libraries;
use planner::Planner;

/// Returns the plan of each group's link, or the reason for its absence. `release` is the release of clang that made
/// the host objects.
pub(crate) fn plan<'a>(
    images: &'a Images,
    inputs: &Inputs,
    arguments: &Arguments,
    release: Option<u32>,
    tool: &OsStr,
    workplace: &Workplace,
) -> Result<Vec<Result<DeviceLink<'a>, Missing<'a>>>, LinkError> {
    let options = &arguments.options;
    let way = match tool_name(tool) == LLVM_NAME {
        true => Way::Llvm,
        false => Way::Own,
    };
    let search = programs::search(arguments);
    let mut libraries = host_libraries(arguments, inputs, way);
    if way == Way::Own {
        // Libraries that the program will be linked with.
        let machine = host::machine(arguments, inputs.host);
        let places = RuntimeFolders::find(arguments, release, machine);
        libraries.extend(runtime_libraries(&[OffloadKind::OPENMP], arguments, &places).0);
    }
    let planner = Planner {
        arguments,
        way,
        cuda: search.cuda.first().map(PathBuf::as_path),
        search: &search,
        beside: clang_beside(tool, options),
        host_release: release,
        libraries,
        executable: arguments.output_path(),
        workplace,
    };
    let mut names = BTreeSet::new();
    let plans = images.groups.iter();
    plans
        .map(|group| planner.plan(images, group, &mut names))
        .collect()
}

/// Returns the clang in the folder of this tool's file, or of the path that started it.
fn clang_beside(tool: &OsStr, options: &LinkerOptions) -> Option<Llvm> {
    let file = env::current_exe().ok()?;
    let real = file
        .canonicalize()
        .ok()
        .filter(|_| !options.no_canonical_prefixes);
    let named = Some(PathBuf::from(tool)).filter(|tool| tool.components().count() > 1);
    [real, named].into_iter().flatten().find_map(|tool| {
        let clang = tool.parent()?.join("clang");
        clang.is_file().then(|| Llvm::of(clang))
    })
}
