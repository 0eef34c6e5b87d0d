//! `cargo offload doctor`: the tools of this machine, and whether the package builds here.

use std::io::Write;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use offload_build::tools::{self, FoundTool, ModuleOutlook, ToolGroup};
use offload_formats::escape::terminal;
use serde::Serialize;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::project::packages::{BuildEnvironment, PackageOptions};
use crate::cargo_offload::project::system::System;
use crate::cargo_offload::text::{FAINT, NAME};
use crate::json;

/// Shows compilers, SDKs, runtimes and GPUs of this machine, and whether each target of the package builds here.
///
/// Compiles nothing and needs no GPU. For each missing tool, prints the command that installs it. The exit status does not
/// depend on the result.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload doctor
  cargo offload doctor -p kernels --release
  cargo offload doctor --json")]
pub(crate) struct DoctorLine {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: PackageOptions,
}

#[derive(Serialize)]
struct DoctorDocument {
    schema: u32,
    machine: String,
    host: String,
    tools: Vec<CheckedTool>,
    linker: CheckedLinker,
    packages: Vec<CheckedPackage>,
    /// The reason why no package could be examined.
    problem: Option<String>,
}

#[derive(Serialize)]
struct CheckedTool {
    group: &'static str,
    name: String,
    path: Option<PathBuf>,
    detail: String,
    hint: Option<String>,
}

/// The linker that Cargo uses for programs.
#[derive(Serialize)]
struct CheckedLinker {
    /// `None`: rustc's default.
    linker: Option<PathBuf>,
    origin: Option<String>,
}

#[derive(Serialize)]
struct CheckedPackage {
    name: String,
    version: String,
    modules: Vec<CheckedModule>,
    problem: Option<String>,
}

#[derive(Serialize)]
struct CheckedModule {
    name: String,
    language: String,
    on: bool,
    targets: Vec<CheckedTarget>,
    problem: Option<String>,
}

#[derive(Serialize)]
struct CheckedTarget {
    target: String,
    builds: bool,
    compiler: Option<PathBuf>,
    version: Option<String>,
    /// Kernels that do not build although others do.
    note: Option<String>,
    problem: Option<String>,
}

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

pub(crate) fn run(line: &DoctorLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let environment = line.options.environment()?;
    let system = System::of_machine();
    let found = tools::found_tools(environment.variables()).map_err(CargoOffloadError::new)?;
    let tools = found.into_iter().map(|tool| checked_tool(tool, &system));
    let (packages, problem) = match packages(&line.options, &environment, &system) {
        Ok(packages) => (packages, None),
        Err(problem) => (Vec::new(), Some(problem.to_string())),
    };
    let document = DoctorDocument {
        schema: 1,
        machine: environment.machine.clone(),
        host: environment.host.clone(),
        tools: tools.collect(),
        linker: CheckedLinker {
            linker: environment.cargo.linker(&environment.host),
            origin: environment.cargo.linker_origin(&environment.host),
        },
        packages,
        problem,
    };
    match line.json {
        true => json::write(&document, out),
        false => print(&document, out),
    }
    .map_err(CargoOffloadError::unwritten)
}

fn packages(
    options: &PackageOptions,
    environment: &BuildEnvironment,
    system: &System,
) -> Result<Vec<CheckedPackage>, CargoOffloadError> {
    let checked = options.packages()?.into_iter().map(|package| {
        let outlook = tools::outlook(environment.of_package(&package));
        let (modules, problem) = match outlook {
            Ok(modules) => (modules, None),
            Err(problem) => (Vec::new(), Some(problem.to_string())),
        };
        let text = |text: String| system.shortened(&environment.without_out(&text));
        CheckedPackage {
            name: package.name,
            version: package.version,
            modules: modules
                .into_iter()
                .map(|module| checked_module(module, text))
                .collect(),
            problem: problem.map(text),
        }
    });
    Ok(checked.collect())
}

fn checked_module(module: ModuleOutlook, text: impl Fn(String) -> String) -> CheckedModule {
    let targets = module.targets.into_iter().map(|target| {
        let (compiler, version) = target.compiler.unzip();
        CheckedTarget {
            target: target.target,
            builds: target.problem.is_none(),
            compiler,
            version,
            note: target.note.map(&text),
            problem: target.problem.map(&text),
        }
    });
    CheckedModule {
        name: module.name,
        language: module.language,
        on: module.is_on,
        targets: targets.collect(),
        problem: module.problem.map(&text),
    }
}

fn checked_tool(tool: FoundTool, system: &System) -> CheckedTool {
    let group = match tool.group {
        ToolGroup::Compilers => "compilers",
        ToolGroup::Sdks => "sdks",
        ToolGroup::Runtimes => "runtimes",
        ToolGroup::Linkers => "linkers",
        ToolGroup::Launchers => "launchers",
        ToolGroup::Gpus => "gpus",
    };
    CheckedTool {
        group,
        name: tool.name,
        path: tool.path,
        detail: tool.detail,
        hint: tool.hint.map(|hint| system.shortened(&hint)),
    }
}

/// Titles of groups, in their order.
const TITLES: [(&str, &str); 6] = [
    ("compilers", "Compilers"),
    ("sdks", "SDKs"),
    ("runtimes", "Runtimes"),
    ("linkers", "Linkers"),
    ("launchers", "Compiler caches and distributors"),
    ("gpus", "GPUs"),
];

fn print(document: &DoctorDocument, out: &mut impl Write) -> std::io::Result<()> {
    for (group, title) in TITLES {
        let tools: Vec<&CheckedTool> = document
            .tools
            .iter()
            .filter(|tool| tool.group == group)
            .collect();
        if tools.is_empty() {
            continue;
        }
        writeln!(out, "{NAME}{title}{NAME:#}")?;
        let width = tools.iter().map(|tool| tool.name.chars().count()).max();
        let width = width.unwrap_or_default();
        for tool in tools {
            print_tool(tool, width, out)?;
        }
    }
    let CheckedLinker { linker, origin } = &document.linker;
    writeln!(out, "{NAME}Cargo{NAME:#}")?;
    let host = terminal(&document.host);
    match linker {
        Some(linker) => {
            let linker = linker.display().to_string();
            let origin = origin.as_deref().unwrap_or_default();
            let (linker, origin) = (terminal(&linker), terminal(origin));
            writeln!(out, "  linker for {host}: {linker} ({origin})")?;
        }
        None => writeln!(out, "  linker for {host}: rustc's default")?,
    }
    if let Some(problem) = &document.problem {
        writeln!(out, "{NAME}Package{NAME:#}")?;
        print_problem("  ", problem, out)?;
    }
    for package in &document.packages {
        print_package(package, out)?;
    }
    Ok(())
}

fn print_tool(tool: &CheckedTool, width: usize, out: &mut impl Write) -> std::io::Result<()> {
    let name = terminal(&tool.name).to_string();
    let path = tool.path.as_ref().map(|path| path.display().to_string());
    let path = path.map(|path| terminal(&path).to_string());
    let detail = terminal(&tool.detail).to_string();
    let facts: Vec<&str> = path
        .as_deref()
        .into_iter()
        .chain([detail.as_str()])
        .collect();
    let facts = facts.join("  ");
    let style = match (&tool.path, tool.group) {
        (None, "gpus" | "runtimes") => FAINT,
        (None, _) => BAD,
        (Some(_), _) => GOOD,
    };
    writeln!(out, "  {style}{name:width$}{style:#}  {}", facts.trim_end())?;
    if let Some(hint) = &tool.hint {
        for line in hint.lines() {
            writeln!(out, "  {:width$}  {FAINT}{}{FAINT:#}", "", terminal(line))?;
        }
    }
    Ok(())
}

fn print_package(package: &CheckedPackage, out: &mut impl Write) -> std::io::Result<()> {
    let CheckedPackage { name, version, .. } = package;
    writeln!(
        out,
        "{NAME}Package {} {}{NAME:#}",
        terminal(name),
        terminal(version)
    )?;
    if let Some(problem) = &package.problem {
        print_problem("  ", problem, out)?;
    }
    for module in &package.modules {
        let off = if module.on {
            ""
        } else {
            ": its feature is off"
        };
        let (name, language) = (terminal(&module.name), terminal(&module.language));
        writeln!(out, "  module {name} ({language}){off}")?;
        if let Some(problem) = &module.problem {
            print_problem("    ", problem, out)?;
        }
        let widths = module
            .targets
            .iter()
            .map(|target| target.target.chars().count());
        let width = widths.max().unwrap_or_default();
        for target in &module.targets {
            let name = terminal(&target.target).to_string();
            match &target.problem {
                None => {
                    let compiler = target
                        .compiler
                        .as_ref()
                        .map(|path| path.display().to_string());
                    let compiler = compiler.map_or("prebuilt".to_owned(), |path| {
                        format!("by {}", terminal(&path))
                    });
                    writeln!(out, "    {GOOD}builds{GOOD:#}  {name:width$}  {compiler}")?;
                    if let Some(note) = &target.note {
                        print_problem("            ", note, out)?;
                    }
                }
                Some(problem) => {
                    writeln!(out, "    {BAD}fails{BAD:#}   {name}")?;
                    print_problem("            ", problem, out)?;
                }
            }
        }
    }
    Ok(())
}

fn print_problem(indent: &str, problem: &str, out: &mut impl Write) -> std::io::Result<()> {
    let mut lines = problem.lines();
    lines.try_for_each(|line| writeln!(out, "{indent}{}", terminal(line)))
}
