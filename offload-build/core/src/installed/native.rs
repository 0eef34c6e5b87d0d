//! `native` among the targets: the GPUs of this machine.
//!
//! Only where it stands are programs asked, each once in a build. LLVM's come first: they name processors as compilers
//! take them, with the features that are on. The vendor's own come where the driver is. An answer counts when the
//! program succeeded and the line is a processor: some print nothing, or why they failed, and succeed.

use crate::declare::language::Language;
use crate::declare::module::Target;
use crate::declare::settings::{Setting, Settings};
use crate::environment::Environment;
use crate::error::Error;
use crate::installed::llvm::Llvm;
use crate::installed::rocm;
use crate::process::command::Command;
use crate::process::search::Search;
use std::cell::OnceCell;
use std::path::PathBuf;

/// The name in `targets` for the GPUs of this machine.
pub const NAME: &str = "native";

/// The GPUs of this machine, asked for at most once.
pub struct Native<'a> {
    environment: &'a Environment,
    amd: OnceCell<Gpus>,
    nvidia: OnceCell<Gpus>,
}

/// GPUs of one vendor.
struct Gpus {
    /// The processors, each once.
    processors: Vec<String>,
    /// Programs that were asked, and what they answered.
    asked: Vec<String>,
}

impl<'a> Native<'a> {
    pub fn new(environment: &'a Environment) -> Self {
        Self {
            environment,
            amd: OnceCell::new(),
            nvidia: OnceCell::new(),
        }
    }

    /// Puts the GPUs that a module's language can have in the place of `native`, but for those that stand beside it.
    ///
    /// Keys of `target."native"` hold for each of them, below those that it has of its own. Tables of GPUs that this
    /// machine does not have are for others.
    pub fn put_into(&self, settings: &mut Settings) -> Result<(), Error> {
        let listed = settings.list("targets");
        if !listed.iter().any(|target| target == NAME) {
            return Ok(());
        }
        let found = self.processors(settings)?;
        let same = |one: &str, other: &str| match (Target::parse(one), Target::parse(other)) {
            (Ok(one), Ok(other)) => (one.triple, one.id) == (other.triple, other.id),
            _ => false,
        };
        let is_new = |name: &&String| !listed.iter().any(|other| same(name, other));
        let new: Vec<String> = found.iter().filter(is_new).cloned().collect();
        let mut targets = Vec::new();
        let mut is_there = false;
        for target in listed {
            match target == NAME {
                false => targets.push(target.clone()),
                true if is_there => {}
                true => targets.extend(new.iter().cloned()),
            }
            is_there |= target == NAME;
        }
        let for_all = settings.targets.remove(NAME).unwrap_or_default();
        for name in &new {
            let mut keys = for_all.clone();
            keys.overlay(&settings.targets.remove(name).unwrap_or_default());
            settings.targets.insert(name.clone(), keys);
        }
        settings.replace("targets", Setting::List(targets));
        Ok(())
    }

    /// Returns the processors of all GPUs, and what was asked in vain.
    #[cfg(feature = "tools")]
    pub fn all(&self) -> (Vec<String>, Vec<String>) {
        let vendors = [self.amd(""), self.nvidia("")].into_iter();
        let (processors, asked): (Vec<_>, Vec<_>) =
            vendors.map(|gpus| (gpus.processors, gpus.asked)).unzip();
        (processors.concat(), asked.concat())
    }

    fn processors(&self, settings: &Settings) -> Result<Vec<String>, Error> {
        // Nothing is built there.
        if self.environment.variable("DOCS_RS").is_some() {
            return Ok(Vec::new());
        }
        let language = settings.text("language").and_then(Language::named);
        let takes = |processor: &str| {
            let target = Target::parse(processor);
            target.is_ok_and(|target| language.is_none_or(|language| target.is_target_of(language)))
        };
        let declared = settings.text("compiler").unwrap_or_default();
        let mut all = Vec::new();
        if takes("gfx900") {
            all.push(self.amd.get_or_init(|| self.amd(declared)));
        }
        if takes("sm_80") {
            all.push(self.nvidia.get_or_init(|| self.nvidia(declared)));
        }
        let found: Vec<String> = all
            .iter()
            .flat_map(|found| found.processors.clone())
            .collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let asked: Vec<&str> = all
            .iter()
            .flat_map(|found| &found.asked)
            .map(String::as_str)
            .collect();
        let example = if takes("gfx900") { "gfx90a" } else { "sm_80" };
        Err(Error::new(format_args!(
            "{}: `native`: no GPU found: {} [OFF607]\n\
             hint: name the processors: OFFLOAD_TARGETS={example} replaces `targets`",
            settings.origin("targets"),
            asked.join("; ")
        )))
    }

    fn amd(&self, declared: &str) -> Gpus {
        let search = self.environment.search();
        let roots = rocm::named_roots(self.environment).into_iter();
        let mut roots = roots.chain(rocm::ROCM_FOLDERS.iter().map(PathBuf::from));
        let name = "rocm_agent_enumerator";
        let enumerator = search.program(name);
        let enumerator = enumerator.or_else(|| roots.find_map(|root| rocm::program(&root, name)));
        let commands = [
            (
                "amdgpu-arch",
                beside_clang(&search, declared, "amdgpu-arch").map(Command::new),
            ),
            (name, enumerator.map(Command::new)),
        ];
        // It lists processors of the host's side, too, as number 0.
        ask(commands, |line| {
            (line.starts_with("gfx") && line != "gfx000").then(|| line.to_owned())
        })
    }

    fn nvidia(&self, declared: &str) -> Gpus {
        let search = self.environment.search();
        let query = ["--query-gpu=compute_cap", "--format=csv,noheader"];
        let smi = search.program("nvidia-smi");
        let commands = [
            (
                "nvptx-arch",
                beside_clang(&search, declared, "nvptx-arch").map(Command::new),
            ),
            ("nvidia-smi", smi.map(|smi| Command::new(smi).args(query))),
        ];
        ask(commands, |line| match line.split_once('.') {
            _ if line.starts_with("sm_") => Some(line.to_owned()),
            Some((major, minor)) => Some(format!("sm_{major}{minor}")),
            None => None,
        })
    }
}

/// The first that knows something is the last that is asked.
fn ask(commands: [(&str, Option<Command>); 2], read: impl Fn(&str) -> Option<String>) -> Gpus {
    let mut asked = Vec::new();
    for (name, command) in commands {
        let Some(command) = command else {
            asked.push(format!("`{name}` not found"));
            continue;
        };
        let output = match command.run() {
            Ok(output) => output,
            Err(error) => {
                let status = error.status().map(|status| status.to_string());
                let status = status.unwrap_or_else(|| "not started".to_owned());
                asked.push(format!("`{command}` failed ({status})"));
                continue;
            }
        };
        let mut processors: Vec<String> = Vec::new();
        for processor in output.stdout.lines().filter_map(|line| read(line.trim())) {
            if Target::parse(&processor).is_ok() && !processors.contains(&processor) {
                processors.push(processor);
            }
        }
        if !processors.is_empty() {
            return Gpus { processors, asked };
        }
        asked.push(format!("`{command}` listed no GPU"));
    }
    Gpus {
        processors: Vec::new(),
        asked,
    }
}

/// A program of the LLVM of the declared compiler, else of those in `PATH`.
fn beside_clang(search: &Search, declared: &str, name: &'static str) -> Option<PathBuf> {
    let declared = (!declared.is_empty()).then(|| search.programs(declared).next());
    let declared = declared.flatten().map(|path: PathBuf| rocm::llvm_of(path));
    let llvms = declared.into_iter().chain(search.clangs());
    let beside = |llvm: Llvm| llvm.sibling(name).ok();
    let found = llvms.into_iter().find_map(beside);
    found.or_else(|| search.program(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_lines_that_are_processors_and_each_once() {
        let print = |text: &str| Some(Command::new("/bin/echo").arg(text));
        let read = |line: &str| line.starts_with("gfx").then(|| line.to_owned());
        let banner = print("NVIDIA-SMI has failed.\ngfx\n");
        let found = ask(
            [
                ("a", banner),
                ("b", print("gfx90a:xnack-\nnote\ngfx942\ngfx90a:xnack-")),
            ],
            read,
        );
        assert_eq!(found.processors, ["gfx90a:xnack-", "gfx942"]);
        assert_eq!(found.asked.len(), 1);
        let none = ask([("a", None), ("b", Some(Command::new("/bin/false")))], read);
        assert_eq!(
            none.asked,
            ["`a` not found", "`/bin/false` failed (exit status: 1)"]
        );
    }
}
