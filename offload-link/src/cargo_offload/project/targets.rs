//! `cargo offload targets`: processors with their products, and the compilers of this machine for each.

use std::io::Write;

use anstyle::Style;
use offload_build::tools::{self, GpuCompiler};
use offload_formats::names::processor::Device;
use offload_formats::names::{Processor, ProcessorProducts, spelling};
use serde::Serialize;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::project::packages::PackageOptions;
use crate::cargo_offload::text::{Align, FAINT, TARGET, TextTable};
use crate::json;

/// Lists targets with architecture and products, and whether this machine can compile for each.
///
/// Without NAME, lists all processors with known products, and those that a compiler of this machine knows.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The columns: target, architecture, generic target of its family, compilers of this machine, products.

Examples:
  cargo offload targets
  cargo offload targets MI250 'RTX 4090'
  cargo offload targets --json gfx90a")]
pub(crate) struct TargetsLine {
    /// Processor or product: gfx90a, sm_89, MI250, RTX 4090.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct TargetsDocument {
    schema: u32,
    targets: Vec<ListedTarget>,
}

#[derive(Serialize)]
struct ListedTarget {
    target: &'static str,
    vendor: &'static str,
    architecture: Option<&'static str>,
    /// Generic target whose code runs on this processor, too.
    generic: Option<&'static str>,
    products: &'static [&'static str],
    /// Compilers of this machine that make images for it.
    compilers: Vec<String>,
    /// Compilers of this machine that make PTX for it alone.
    ptx_compilers: Vec<String>,
}

pub(crate) fn run(line: &TargetsLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let environment = PackageOptions::default().environment()?;
    let compilers =
        tools::gpu_compilers(environment.variables()).map_err(CargoOffloadError::new)?;
    let all = Processor::all().filter_map(|processor| listed(processor, &compilers));
    let mut targets: Vec<ListedTarget> = all.collect();
    if line.names.is_empty() {
        targets.retain(|target| {
            !(target.compilers.is_empty()
                && target.ptx_compilers.is_empty()
                && target.products.is_empty())
        });
    } else {
        let wanted = wanted(&line.names)?;
        targets.retain(|target| wanted.contains(&target.target));
    }
    if line.json {
        let document = TargetsDocument { schema: 1, targets };
        return json::write(&document, out).map_err(CargoOffloadError::unwritten);
    }
    print(&targets, out).map_err(CargoOffloadError::unwritten)
}

/// Returns the processors that names stand for.
fn wanted(names: &[String]) -> Result<Vec<&'static str>, CargoOffloadError> {
    let mut found = Vec::new();
    for name in names {
        // Features of a target ID do not change the processor.
        let processor = name.split(':').next().unwrap_or(name);
        let processor = processor.replace("compute_", "sm_");
        let meant = || {
            let meant = spelling::meant(name)?.replace("compute_", "sm_");
            Processor::find(meant.split(':').next().unwrap_or_default())
        };
        let processor = Processor::find(&processor).or_else(meant);
        let processor = processor.ok_or_else(|| {
            let near = spelling::nearest_processor(name);
            let near = near.map(|near| format!("; did you mean `{near}`?"));
            CargoOffloadError::new(format_args!(
                "`{name}` is not a known processor or product{}\n\
                 hint: `cargo offload targets` lists them",
                near.unwrap_or_default()
            ))
        })?;
        found.push(processor.name());
    }
    Ok(found)
}

/// Returns the row of a processor; `None` if it is not a GPU of AMD or NVIDIA.
fn listed(processor: &'static Processor, compilers: &[GpuCompiler]) -> Option<ListedTarget> {
    let vendor = match processor.device() {
        Device::Amdgcn => "amd",
        Device::Nvptx => "nvidia",
        _ => return None,
    };
    let name = processor.name();
    let products = ProcessorProducts::of(name);
    let named = |has: &dyn Fn(&GpuCompiler) -> bool| {
        let compilers = compilers.iter().filter(|compiler| has(compiler));
        compilers.map(|compiler| compiler.name.clone()).collect()
    };
    Some(ListedTarget {
        target: name,
        vendor,
        architecture: products.map(ProcessorProducts::architecture),
        generic: processor.family(),
        products: products.map_or(&[], ProcessorProducts::products),
        compilers: named(&|compiler| compiler.processors.contains(name)),
        ptx_compilers: named(&|compiler| compiler.ptx_only.contains(name)),
    })
}

fn print(targets: &[ListedTarget], out: &mut impl Write) -> std::io::Result<()> {
    let plain = Style::new();
    let mut table = TextTable::new([
        (Align::Left, TARGET),
        (Align::Left, plain),
        (Align::Left, plain),
        (Align::Left, plain),
        (Align::Left, FAINT),
    ]);
    for target in targets {
        let ptx = target.ptx_compilers.iter();
        let ptx = ptx.map(|compiler| format!("{compiler} (PTX)"));
        let compilers: Vec<String> = target.compilers.iter().cloned().chain(ptx).collect();
        let compilers = match compilers.as_slice() {
            [] => "no compiler".to_owned(),
            compilers => compilers.join(", "),
        };
        table.push([
            target.target.to_owned(),
            target.architecture.unwrap_or_default().to_owned(),
            target.generic.unwrap_or_default().to_owned(),
            compilers,
            target.products.join(", "),
        ]);
    }
    table.print("", out)
}
