//! The device link as `clang-linker-wrapper` runs it: one clang, which knows each target's linker.
//!
//! Sources: `docs/spec/linker-wrapper.md` §3.2 (LLVM 19) and §3.3 (20 to main); `clang()` in
//! `clang/tools/clang-linker-wrapper/ClangLinkerWrapper.cpp` of these releases. LLVM 19 optimises bitcode in its
//! own process first; here the linker does, as in later releases, so that lines with bitcode have arguments for it
//! (`docs/spec/linker-wrapper.md` §3.6).

use crate::device_link::job::{DeviceInput, LinkJob};
use crate::device_link::linker::{DeviceLinker, LLD, Way, behind, needed};
use offload_build_core::compile::device::target_option;
use offload_build_core::process::command::Command;
use offload_build_core::process::search::NotFound;
use std::ffi::OsString;
use std::path::Path;

/// The first release whose wrapper leaves everything about bitcode to clang and its linker.
const LEAVES_BITCODE: u32 = 20;
/// The first release whose clang surely tells AMD's linker what bitcode is for.
const TELLS_PROCESSOR: u32 = 19;
/// The first release whose clang links AMD images by LTO unasked.
const LTO_BY_DEFAULT: u32 = 23;

impl DeviceLinker<'_> {
    pub(crate) fn wrapper_line(&self, job: &LinkJob, output: &Path) -> Result<Command, NotFound> {
        let llvm = self.tools.llvm()?;
        if !self.options.dry_run {
            self.check_tools(job)?;
        }
        // An installation of an unknown release is treated like the release that we follow.
        let release = llvm.release().unwrap_or(22);
        let command = Command::new(&llvm.clang)
            .arg("--no-default-config")
            .arg("-o")
            .arg(output);
        Ok(match release {
            ..LEAVES_BITCODE => self.line_of_19(job, release, command),
            _ => self.line_of_22(job, release, command),
        })
    }

    /// Checks that the programs exist that clang will run: a missing one is reported before anything runs.
    fn check_tools(&self, job: &LinkJob) -> Result<(), NotFound> {
        #[cfg(feature = "tools")]
        self.check_spirv_tools(job)?;
        if job.triple.is_nvptx() {
            // Run by clang's helper.
            let tools = self.tools;
            for tool in [&tools.ptxas, &tools.nvlink, &tools.nvlink_wrapper] {
                needed(tool)?;
            }
        }
        if self.way == Way::Own && job.triple.is_amdgpu() {
            self.check_lld()?;
        }
        Ok(())
    }

    fn line_of_19(&self, job: &LinkJob, release: u32, command: Command) -> Command {
        let options = &self.options;
        let processor = match job.processor.as_str() {
            "" if self.way == Way::Llvm => "native",
            other => other,
        };
        let mut command = command.arg(format!("--target={}", job.triple.as_str()));
        if !processor.is_empty() {
            command = command.arg(target_option(&job.triple, processor));
        }
        let (levels, rest): (Vec<OsString>, Vec<OsString>) =
            self.compiler_args.iter().cloned().partition(is_level);
        let (debug, rest): (Vec<OsString>, Vec<OsString>) =
            rest.into_iter().partition(|arg| arg == "-g");
        let level = levels.last().cloned();
        command = command.arg(level.unwrap_or_else(|| format!("-O{}", self.opt_level).into()));
        if job.has_bitcode() && !options.no_lto {
            command = command.args(self.lto(job));
            command = command.args(behind("-Xlinker", &self.plugin_options(job)));
            command = command.args(behind("-Xlinker", &self.told_by_later(job, release)));
        }
        command = command.args(self.beyond_llvm(job, LEAVES_BITCODE - 1));
        if !job.triple.is_nvptx() {
            command = command.arg("-Wl,--no-undefined");
        }
        command = self.inputs(job, command);
        command = self.cpu_part(job, command);
        let for_clang = |option: &&OsString| linkers_own(option).is_none();
        let mllvm: Vec<OsString> = options.mllvm.iter().filter(for_clang).cloned().collect();
        command = command.args(behind("-mllvm", &mllvm)).args(debug);
        if options.save_temps {
            command = command.arg("-save-temps");
        }
        if options.verbose {
            command = command.arg("-v");
        }
        if options.embed_bitcode {
            command = command.arg("-Wl,--lto-emit-llvm");
        }
        if !rest.iter().any(names_cuda) {
            command = command.args(options.cuda.map(cuda_path));
        }
        command = command.args(rest).args(self.linker_args);
        if !options.builtin_bitcode.is_empty() {
            let disable = ["-mllvm", "-openmp-opt-disable"];
            command = command.args(self.builtin_bitcode()).args(disable);
        }
        command
    }

    fn line_of_22(&self, job: &LinkJob, release: u32, command: Command) -> Command {
        let (options, triple) = (&self.options, &job.triple);
        let mut command = command;
        if !options.executable.is_empty() {
            let mut folder = options.executable.to_owned();
            folder.push(format!(".{}.{}.img.", triple.arch(), job.processor));
            command = command.arg("-dumpdir").arg(folder);
        }
        command = command.arg(format!("--target={}", triple.as_str()));
        if !job.processor.is_empty() {
            command = command.arg(target_option(&job.triple, &job.processor));
        }
        if self.way == Way::Own && job.has_bitcode() && !self.compiler_args.iter().any(is_level) {
            command = command.arg(format!("-O{}", self.opt_level));
        }
        // Of objects alone LLVM asks for it, too, without any effect.
        let has_ir = self.way == Way::Llvm || job.has_bitcode();
        if triple.is_amdgpu() && release < LTO_BY_DEFAULT && !options.no_lto && has_ir {
            command = command.arg("-flto");
        } else if triple.is_cpu() && !options.no_lto && job.has_bitcode() {
            command = command.args(self.lto(job));
        }
        command = command.args(self.beyond_llvm(job, release));
        command = command.args(behind("-Xlinker", &self.plugin_options(job)));
        if !triple.is_nvptx() && !job.is_spirv() {
            command = command.arg("-Wl,--no-undefined");
        }
        command = self.inputs(job, command);
        if options.no_lto && job.has_bitcode() && !job.is_spirv() {
            command = command.arg(match release {
                ..LTO_BY_DEFAULT => "-fno-lto",
                _ => "-flto=none",
            });
        }
        command = self.cpu_part(job, command);
        let mllvm = options.mllvm.iter();
        let mllvm = mllvm.filter(|option| linkers_own(option).is_none());
        let mllvm = mllvm.map(|option| joined("-mllvm=", option));
        command = command.args(behind("-Xlinker", &mllvm.collect::<Vec<_>>()));
        let gpu = triple.is_nvptx() || triple.is_amdgpu();
        if options.save_temps && (gpu || triple.is_cpu() && options.host_is_lld) {
            command = command.arg("-Wl,--save-temps");
        }
        if options.embed_bitcode {
            command = command.arg("-Wl,--lto-emit-llvm");
        }
        #[cfg(feature = "tools")]
        {
            command = self.add_sycl(job, command);
        }
        // LLVM 20 to 22 leave this to the driver: others who call the wrapper get PTX of version 4.2
        // (llvm/llvm-project issue 190979).
        if triple.is_nvptx() && !self.compiler_args.iter().any(names_cuda) {
            command = command.args(options.cuda.map(cuda_path));
        }
        command
            .args(behind("-Xlinker", self.linker_args))
            .args(self.compiler_args)
            .args(self.builtin_bitcode())
    }

    /// Adds the inputs, with bitcode as a language if the linker must not see it. clang would compile a file that is named
    /// `.bc` before the linker reads it.
    fn inputs(&self, job: &LinkJob, mut command: Command) -> Command {
        let mut is_ir = false;
        for input in &job.inputs {
            let is_bitcode = matches!(input, DeviceInput::Bitcode(_));
            let ir = self.options.no_lto && !job.is_spirv() && is_bitcode;
            if ir != is_ir {
                command = command.args(["-x", if ir { "ir" } else { "none" }]);
                is_ir = ir;
            }
            let is_linkers = is_bitcode && self.links_bitcode_as_it_is(job);
            command = command.args(is_linkers.then_some("-Xlinker"));
            command = command.arg(input.path());
        }
        match is_ir {
            true => command.args(["-x", "none"]),
            false => command,
        }
    }

    /// Tells whether bitcode is for the linker alone.
    fn links_bitcode_as_it_is(&self, job: &LinkJob) -> bool {
        let options = &self.options;
        options.has_optimized_bitcode && !options.no_lto && job.triple.is_amdgpu()
    }

    /// Returns options for links that fail with LLVM's own lines: for CPUs that this machine has no linker for, and
    /// of bitcode without LTO, for which only clang of the main branch looks for no libraries.
    fn beyond_llvm(&self, job: &LinkJob, release: u32) -> Vec<&'static str> {
        if job.is_spirv() {
            return Vec::new();
        }
        if job.triple.is_cpu() {
            let has_lld = self.lto(job).contains(&LLD) && job.has_bitcode() && !self.options.no_lto;
            let args = self.foreign().into_iter();
            return args.filter(|arg| !has_lld || *arg != LLD).collect();
        }
        let alone = self.options.no_lto && job.has_bitcode() && release < LTO_BY_DEFAULT;
        // To a link of objects alone the option means nothing, and clang 22 says so.
        let compiles = job.has_bitcode() && !self.links_bitcode_as_it_is(job);
        let without = alone || self.options.has_device_libraries && compiles;
        without.then_some("-nogpulib").into_iter().collect()
    }

    fn cpu_part(&self, job: &LinkJob, command: Command) -> Command {
        if !job.triple.is_cpu() || job.is_spirv() {
            return command;
        }
        command
            .args(["-Wl,-Bsymbolic", "-shared"])
            .args(self.host_libraries)
    }

    /// Returns options that make the linker read bitcode. The helper for nvlink always does, and takes the value that
    /// clang 19
    /// gives to `-plugin` for an input.
    fn lto(&self, job: &LinkJob) -> &'static [&'static str] {
        if job.triple.is_nvptx() {
            &[]
        } else if job.triple.is_amdgpu() {
            &["-flto"]
        } else {
            // Of the host's linkers only lld is sure to be of clang's release.
            &["-flto", LLD]
        }
    }

    /// Returns what clang 19 tells AMD's linker about bitcode by itself and clang 16 does not: without it the code is
    /// for no
    /// processor.
    fn told_by_later(&self, job: &LinkJob, release: u32) -> Vec<OsString> {
        if self.way == Way::Llvm || !job.triple.is_amdgpu() || release >= TELLS_PROCESSOR {
            return Vec::new();
        }
        let processor = job
            .processor
            .split(':')
            .next()
            .expect("a split text has a first part");
        let level = match self.opt_level {
            "s" | "z" => "2",
            level => level,
        };
        vec![
            format!("-plugin-opt=mcpu={processor}").into(),
            format!("-plugin-opt=O{level}").into(),
        ]
    }

    fn plugin_options(&self, job: &LinkJob) -> Vec<OsString> {
        // GNU's linkers refuse the option when there is nothing to do.
        if self.way == Way::Own && !job.has_bitcode() {
            return Vec::new();
        }
        let options = self.options.plugin_options.iter();
        options
            .map(|option| linkers_own(option).unwrap_or_else(|| joined("--plugin-opt=", option)))
            .collect()
    }
}

/// Options about passes, which LLVM's tool has for links in its own process: those that lld and
/// clang's helper for NVIDIA have for the same.
fn linkers_own(option: &OsString) -> Option<OsString> {
    let text = option.to_str()?.trim_start_matches('-');
    let (name, value) = text.split_once('=')?;
    match name {
        "passes" => Some(format!("--lto-newpm-passes={value}").into()),
        "load-pass-plugin" => Some(format!("--load-pass-plugin={value}").into()),
        _ => None,
    }
}

fn is_level(arg: &OsString) -> bool {
    arg.to_string_lossy().starts_with("-O")
}

fn names_cuda(arg: &OsString) -> bool {
    arg.to_string_lossy().starts_with("--cuda-path=")
}

fn cuda_path(root: &Path) -> OsString {
    joined("--cuda-path=", &root.into())
}

fn joined(option: &str, value: &OsString) -> OsString {
    let mut joined = OsString::from(option);
    joined.push(value);
    joined
}
