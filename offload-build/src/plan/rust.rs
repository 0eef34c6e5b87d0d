//! The bitcode of a crate of kernels for one target: a sysroot, the crate by Cargo, and functions that Rust does not have.

use crate::plan::context::Context;
use crate::plan::stages::{Stage, step};
use crate::steps::atomic_orders::OrderLoss;
use crate::steps::kernel_functions::{FunctionFiles, KernelFunctions};
use crate::steps::planned::{Execution, PlannedStep};
use crate::steps::step::Step;
use crate::steps::task::{SymbolHints, Task};
use crate::steps::text_file::TextFile;
use offload_build_core::compile::device;
use offload_build_core::compile::lld;
use offload_build_core::compile::llvm_tools;
use offload_build_core::compile::rust::{self, COMPILER_BUILTINS, Sysroot};
use offload_build_core::declare::module::{KernelCrate, Module, Target};
use offload_build_core::files;
use offload_build_core::installed::cargo_files::CargoFiles;
use offload_build_core::installed::compilers::KernelLinker;
use offload_build_core::installed::rustc::Rustc;
use offload_formats::md5::{self, Md5};
use offload_formats::names::Triple;
use std::path::{Path, PathBuf};

/// Hints for what rustc says of a crate of kernels.
const HINTS: &[(&str, &str)] = &[
    (
        "can't find crate for `std`",
        "kernels have no `std`: write `#![no_std]` at the top of the crate, and turn off the feature `std` of the crates that it \
         depends on; the key `features` names those of the crate itself",
    ),
    (
        "can't find crate for `alloc`",
        "kernels have no heap: use arrays, and turn off the feature `alloc` of the crates that the crate depends on",
    ),
    ("found for type `f32` in the current scope", MATHEMATICS),
    ("found for type `f64` in the current scope", MATHEMATICS),
];

const MATHEMATICS: &str = "`core` has no such function of floats: write `libm::sinf(x)` with the crate `libm`, or `offload_device::sqrt` and \
    `mul_add`";

/// Processors with `FeaturePrivEnabledTrap2NopBug` in `llvm/lib/Target/AMDGPU/AMDGPU.td` of LLVM 22.
const FAILS_AT_TRAPS: [&str; 5] = ["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx11-generic"];

/// Stages that make the bitcode of a crate of kernels, in their order. Steps of several targets go into the same ones.
#[derive(Debug, Default)]
pub(crate) struct RustStages {
    /// Sources of the sysroot.
    texts: Stage,
    cores: Stage,
    builtins: Stage,
    crates: Stage,
    functions: Stage,
    /// Triples that have a sysroot.
    triples: Vec<String>,
    /// Files that decide how Cargo builds the crate, the same for all targets.
    read: Option<CargoFiles>,
}

impl RustStages {
    /// Returns the number of targets so far.
    pub(crate) fn len(&self) -> usize {
        self.crates.len()
    }

    /// Leaves out targets after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.crates.truncate(len);
        self.functions.truncate(len);
    }

    /// Returns the stages before the compiles.
    pub(crate) fn into_stages(self) -> Vec<Stage> {
        let stages = [
            self.texts,
            self.cores,
            self.builtins,
            self.crates,
            self.functions,
        ];
        stages
            .into_iter()
            .filter(|stage| !stage.is_empty())
            .collect()
    }
}

impl Context<'_> {
    /// Plans the bitcode of a crate of kernels in the file `output`, and returns the step that makes it, after `stages`.
    pub(crate) fn rust_kernels(
        &self,
        module: &Module,
        (kernels, rustc): (&KernelCrate, &Rustc),
        target: &Target,
        output: &Path,
        stages: &mut RustStages,
    ) -> Task {
        let sysroot = self.sysroot_of(rustc, &target.triple);
        let lists = self.sysroot(&sysroot, stages);
        let bitcode = output.with_extension("rust.bc");
        let read = || CargoFiles::of(kernels, &rustc.outer, self.root);
        let read = stages.read.get_or_insert_with(read).clone();
        let crate_task = self.crate_task(kernels, &sysroot, target, (lists, read), &bitcode);
        stages.crates.push(step(crate_task));
        let [text, functions, limits, attributes] = ["ll", "functions.bc", "limits.bc", "csv"]
            .map(|extension| output.with_extension(extension));
        let with_trap_calls = fails_at_traps(target).then(|| output.with_extension("traps.bc"));
        let joined = with_trap_calls.as_ref().unwrap_or(&bitcode).clone();
        let linker = self.compiler.kernel_linker(target);
        let files = match linker {
            KernelLinker::Clang(_) | KernelLinker::LlvmTools(_) => {
                FunctionFiles::Text(text.clone())
            }
            KernelLinker::Lld(_) => FunctionFiles::Bitcode {
                bytes: rust::AMD_FUNCTIONS,
                functions: functions.clone(),
                limits,
            },
        };
        let commands = match linker {
            KernelLinker::Clang(program) => {
                let paths = (text.as_path(), functions.as_path());
                let join = [joined.as_path(), &functions, &attributes];
                let processor = target.id.to_string();
                vec![
                    device::assemble_ir(program, &target.triple, &processor, paths),
                    rust::join(program, target, join, output),
                ]
            }
            KernelLinker::Lld(lld) => {
                let with = (&files.paths()[..], attributes.as_path());
                vec![lld::join(lld, target, &joined, with, output)]
            }
            KernelLinker::LlvmTools(tools) => {
                let join = [joined.as_path(), &text, &attributes];
                llvm_tools::join(tools, target, join, output).into()
            }
        };
        let read = files.paths().into_iter().map(Path::to_owned);
        let mut inputs: Vec<PathBuf> = read.collect();
        inputs.extend([joined, attributes.clone()]);
        stages.functions.push(step(KernelFunctions {
            bitcode,
            target: target.written.clone(),
            is_amdgpu: target.triple.is_amdgpu(),
            with_trap_calls,
            text: rust::functions(&target.triple),
            files,
            attributes,
        }));
        Task {
            title: format!("{} for {}", self.shown(&kernels.source), target.written),
            commands,
            inputs,
            hints: self.symbol_hints(module, target),
            order_loss: self.order_loss(target),
            ..self.task(output)
        }
    }

    /// Returns the cause for which atomic operations lose their order in the code that LLVM generates for a target.
    fn order_loss(&self, target: &Target) -> Option<OrderLoss> {
        let release = match self.compiler.kernel_linker(target) {
            KernelLinker::Clang(_) => self.compiler.llvm.as_ref().and_then(|llvm| llvm.release()),
            KernelLinker::LlvmTools(tools) => Some(tools.major()),
            KernelLinker::Lld(_) => None,
        };
        OrderLoss::find(&target.id.to_string(), release)
    }

    /// Returns the sysroot for a triple, in a folder that has no other: packages share it, and none changes it for others.
    fn sysroot_of<'a>(&self, rustc: &'a Rustc, triple: &'a Triple) -> Sysroot<'a> {
        let sysroot = Sysroot {
            rustc,
            triple,
            folder: PathBuf::new(),
        };
        let own = self.out.join("offload");
        let name = key(&[
            env!("CARGO_PKG_VERSION"),
            &rustc.identity,
            &sysroot.compile("core").to_string(),
            COMPILER_BUILTINS,
        ]
        .join("\0"));
        Sysroot {
            folder: self.shared.unwrap_or(&own).join(format!("rust-{name}")),
            ..sysroot
        }
    }

    /// Makes a step of what packages share.
    fn shared_step(&self, step_of: impl Step + 'static, output: &Path) -> PlannedStep {
        let mut planned = step(step_of);
        if self.shared.is_some() {
            planned.execution = Execution::Locked(output.to_owned());
        }
        planned
    }

    /// Plans the sysroot, once for all targets of a triple; returns files that change with it.
    fn sysroot(&self, sysroot: &Sysroot<'_>, stages: &mut RustStages) -> Vec<PathBuf> {
        let names = ["core", "compiler_builtins"];
        let [core, builtins] = names.map(|name| sysroot.list(name));
        let triple = sysroot.triple.as_str();
        if stages.triples.iter().any(|known| known == triple) {
            return vec![core, builtins];
        }
        stages.triples.push(triple.to_owned());
        let task = |name: &str, output: &PathBuf, inputs: Vec<PathBuf>| Task {
            title: format!("Rust's `{name}` for {triple}"),
            commands: vec![sysroot.compile(name)],
            inputs,
            environment: sysroot.rustc.identity.clone(),
            ..self.task(output)
        };
        let text = sysroot.source("compiler_builtins");
        let text_step = TextFile {
            path: text.clone(),
            text: COMPILER_BUILTINS,
        };
        stages.texts.push(self.shared_step(text_step, &text));
        let source = sysroot.source("core");
        let core_task = task("core", &core, vec![source]);
        stages.cores.push(self.shared_step(core_task, &core));
        let inputs = vec![text, core.clone()];
        let builtins_task = task("compiler_builtins", &builtins, inputs);
        stages
            .builtins
            .push(self.shared_step(builtins_task, &builtins));
        vec![core, builtins]
    }

    /// Plans Cargo's build of the crate to the file `output`.
    fn crate_task(
        &self,
        kernels: &KernelCrate,
        sysroot: &Sysroot<'_>,
        target: &Target,
        (lists, read): (Vec<PathBuf>, CargoFiles),
        output: &Path,
    ) -> Task {
        let folder = output.with_extension("cargo");
        // Cargo does not write it again if nothing changed: each way to build has a file of its own.
        let way = rust::kernels(sysroot, kernels, target, &folder, Path::new(""));
        let made = folder.join(format!(
            "{}.bc",
            key(&format!("{way}\0{}", sysroot.rustc.identity))
        ));
        let environment = format!(
            "{}\n{}\n{:?}",
            self.variables, sysroot.rustc.identity, read.names
        );
        let part = files::part(output);
        let copy = (made.as_path(), part.as_path());
        let copy = match self.compiler.kernel_linker(target) {
            KernelLinker::Clang(clang) => {
                let processor = target.id.to_string();
                device::assemble_ir(clang, &target.triple, &processor, copy)
            }
            KernelLinker::Lld(lld) => lld::copy(lld, target, copy),
            KernelLinker::LlvmTools(tools) => llvm_tools::copy(tools, copy),
        };
        Task {
            title: format!("crate {} for {}", kernels.package, target.written),
            commands: vec![
                rust::forget(sysroot, kernels, &folder),
                rust::kernels(sysroot, kernels, target, &folder, &made)
                    .with_cargo_colors(self.colors),
                copy,
            ],
            inputs: lists
                .into_iter()
                .chain(read.names)
                .chain(read.locks)
                .collect(),
            depfile: Some(rust::dependencies(kernels, &target.triple, &folder)),
            cargo_folder: Some(folder),
            environment,
            hints: SymbolHints {
                others: HINTS,
                ..SymbolHints::default()
            },
            ..self.task(output)
        }
    }

    /// Returns a path for people: relative to the package.
    fn shown(&self, path: &Path) -> String {
        let shown = path.strip_prefix(self.root).unwrap_or(path);
        shown.display().to_string()
    }
}

/// Returns true if LLVM 22 fails to generate code of functions with several traps.
///
/// These GPUs may ignore the instruction, so that LLVM adds a loop to each trap (`SIMULATED_TRAP`). After the first trap that ends a
/// block without successors, it leaves the other pseudo instructions of the function as they are (`FinalizeISel`).
fn fails_at_traps(target: &Target) -> bool {
    FAILS_AT_TRAPS.contains(&target.id.processor())
}

/// Returns a short name for a text.
fn key(text: &str) -> String {
    md5::hex(&Md5::digest(text)[..4])
}
