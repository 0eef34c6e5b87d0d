//! The system's compiler of C, which compiles the host functions of builds without device code.

use offload_build_core::declare::module::Module;
use offload_build_core::environment::Environment;
use offload_build_core::error::Error;
use offload_build_core::installed::host::Host;
use offload_build_core::installed::llvm::machine_of;
use offload_build_core::process::command::Command;
use offload_formats::container::data_object::DataHost;
use std::path::Path;

/// The system's compiler of C for a host.
pub(crate) struct SystemCompiler<'a> {
    /// The program, and arguments separated by spaces, as in `CC`.
    line: String,
    host: &'a Host,
}

impl<'a> SystemCompiler<'a> {
    /// Chooses the compiler: in a cross build as the linker wrapper and the crate `cc` do.
    pub(crate) fn of(environment: &Environment, host: &'a Host) -> Self {
        let for_target = || {
            let declared = environment.setting("cc").map(|(_, value)| value);
            let usual = || {
                let name = host.usual_compiler("gcc");
                environment.search().program(&name).map(|_| name)
            };
            declared
                .or_else(|| host.declared_compiler(environment, "CC"))
                .or_else(usual)
        };
        let line = host.is_cross.then(for_target).flatten();
        Self {
            line: line
                .or_else(|| environment.variable("CC"))
                .unwrap_or_else(|| "cc".to_owned()),
            host,
        }
    }

    /// Compiles a source without options of a module.
    pub(crate) fn plain(&self, source: &Path, object: &Path) -> Command {
        finish(self.start(), source, object)
    }

    /// Compiles a source of `module`; `flags` are its own, with those of files of options.
    pub(crate) fn compile(
        &self,
        module: &Module,
        flags: &[String],
        source: &Path,
        has_openmp: bool,
        object: &Path,
    ) -> Command {
        let define = module.own.define.iter();
        let define = define.map(|(name, value)| format!("-D{name}={value}"));
        let include = module.include.iter();
        let include = include.flat_map(|folder| ["-I".into(), folder.clone().into_os_string()]);
        let std = module.std_of(source).map(|std| format!("-std={std}"));
        let command = self
            .start()
            .arg(format!("-O{}", module.own.opt_level))
            .args(define)
            .args(include)
            .args(known_flags(flags))
            .args(std)
            .args(has_openmp.then_some("-fopenmp"));
        finish(command, source, object)
    }

    fn start(&self) -> Command {
        let mut words = self.line.split_whitespace();
        let command = Command::new(words.next().unwrap_or("cc")).args(words);
        let position_independent = (!self.host.is_windows()).then_some("-fPIC");
        command.args(["-c", "-w"]).args(position_independent)
    }

    /// Runs a command that makes `object`.
    ///
    /// # Errors
    ///
    /// If it fails, or compiles for another machine than the host.
    pub(crate) fn run(&self, command: &Command, object: &Path) -> Result<(), Error> {
        command.run().map_err(|error| {
            Error::new(format_args!(
                "the host code of a build without device code is compiled by the system's compiler:\n{error}"
            ))
        })?;
        let machine = machine_of(object);
        let is_right = match self.host.data_objects() {
            Some(DataHost::Elf(own)) => machine == Some(own.number),
            Some(DataHost::Coff) => machine.is_none(),
            None => true,
        };
        if is_right || !self.host.is_cross {
            return Ok(());
        }
        let triple = &self.host.triple;
        let gcc = match triple.ends_with("msvc") {
            true => String::new(),
            false => format!("`{}` or ", self.host.usual_compiler("gcc")),
        };
        Err(Error::new(format_args!(
            "the host functions are missing in this build without device code: `{}` does not compile for `{triple}`\n\
             hint: name a C compiler for this target in CC_{}, such as {gcc}`clang --target={triple}`",
            self.line,
            triple.replace('-', "_")
        )))
    }

    /// Returns its library of OpenMP, as `-l` wants it.
    pub(crate) fn openmp_library(&self) -> &'static str {
        match self.line.contains("clang") {
            true => "omp",
            false => "gomp",
        }
    }
}

/// Adds the files to a command. `-x` is for sources after it.
fn finish(command: Command, source: &Path, object: &Path) -> Command {
    command.arg(source).arg("-o").arg(object)
}

/// Returns the options among `flags` that C compilers know: those of the preprocessor, and the language of sources.
fn known_flags(flags: &[String]) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut rest = flags.iter().map(String::as_str);
    while let Some(flag) = rest.next() {
        let takes_value = ["-D", "-U", "-I", "-isystem", "-iquote", "-idirafter", "-x"];
        if flag.starts_with("-X") {
            // What follows is for one side.
            rest.next();
        } else if flag == "-include" || takes_value.contains(&flag) {
            kept.push(flag);
            kept.extend(rest.next());
        } else if takes_value.iter().any(|known| flag.starts_with(known)) {
            kept.push(flag);
        }
    }
    kept
}
