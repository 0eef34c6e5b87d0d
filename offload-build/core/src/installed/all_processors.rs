//! `all` and `all-major` among the targets of CUDA: the processors that the compiler supports, as in CMake's `CUDAARCHS`.
//!
//! `all` stands for an image for each processor, `all-major` for the first of each generation and the oldest; both add PTX of the
//! newest of these. Processors with a suffix (`sm_90a`) are left out: their code runs on no other GPU.

use crate::declare::family::Family;
use crate::declare::language::Language;
use crate::declare::settings::{Setting, Settings};
use crate::environment::Environment;
use crate::error::Error;
use crate::installed::answers::Answers;
use crate::installed::compilers::nvcc;
use crate::installed::cuda;
use crate::process::command::Command;
use crate::process::search::Search;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const ALL: &str = "all";
const ALL_MAJOR: &str = "all-major";

/// Puts the targets that `all` and `all-major` stand for in their place.
///
/// # Errors
///
/// If no compiler lists its processors.
pub fn put_into(settings: &mut Settings, environment: &Environment) -> Result<(), Error> {
    let listed = settings.list("targets");
    let stands_for_others = |target: &String| [ALL, ALL_MAJOR].contains(&target.as_str());
    let is_cuda = settings.text("language").and_then(Language::named) == Some(Language::Cuda);
    if !is_cuda || !listed.iter().any(stands_for_others) {
        return Ok(());
    }
    let mut targets: Vec<String> = Vec::new();
    let mut add = |target: String| {
        if !targets.contains(&target) {
            targets.push(target);
        }
    };
    for target in listed {
        if !stands_for_others(target) {
            add(target.clone());
        } else if environment.variable("DOCS_RS").is_none() {
            let supported = supported(settings, environment)?;
            chosen(&supported, target).into_iter().for_each(&mut add);
        }
    }
    settings.replace("targets", Setting::List(targets));
    Ok(())
}

/// Returns the targets that a word stands for.
fn chosen(supported: &[u32], word: &str) -> Vec<String> {
    let oldest = supported.first();
    let is_chosen = |number: &&u32| word == ALL || **number % 10 == 0 || Some(*number) == oldest;
    let numbers: Vec<&u32> = supported.iter().filter(is_chosen).collect();
    let ptx = numbers.last().map(|number| format!("compute_{number}"));
    let images = numbers.iter().map(|number| format!("sm_{number}"));
    images.chain(ptx).collect()
}

/// Returns the numbers of the processors for which the compiler of a module makes images, sorted.
fn supported(settings: &Settings, environment: &Environment) -> Result<Vec<u32>, Error> {
    let search = environment.search();
    let out = PathBuf::from(environment.required("OUT_DIR")?);
    let answers = Answers::below(&out, "");
    let declared = settings.text("compiler").unwrap_or_default();
    let ask = |command: Command| answers.to(&command).map_err(Error::new);
    let mut asked = Vec::new();
    if Family::of(Path::new(declared)) == Family::Nvcc {
        if let Some(nvcc) = nvcc::program(declared, &search) {
            let codes = ask(Command::new(nvcc).arg("--list-gpu-code"))?;
            asked.push(numbers(&cuda::names(&codes)));
        }
    } else if let Some(clang) = clang(declared, &search) {
        let question = Command::new(clang)
            .args(["--no-default-config", "--target=nvptx64-nvidia-cuda"])
            .args(["-nogpulib", "-print-supported-cpus"]);
        asked.push(numbers(&cuda::names(&ask(question)?)));
        // It makes the images of PTX that clang writes.
        if let Ok(ptxas) = search.cuda_program("ptxas") {
            let known = cuda::processors(&ptxas, &answers).map_err(Error::new)?;
            asked.push(numbers(&known));
        }
    }
    let mut common = asked.pop().unwrap_or_default();
    common.retain(|number| asked.iter().all(|other| other.contains(number)));
    let common = Some(common).filter(|common| !common.is_empty());
    common.ok_or_else(|| {
        let problem = "`all`: no compiler lists its processors (searched PATH for clang, or `compiler`)\n\
            hint: name the processors: OFFLOAD_TARGETS=\"sm_80;compute_80\" replaces `targets`";
        settings.error_at("targets", problem)
    })
}

/// Returns the declared clang, else the newest.
fn clang(declared: &str, search: &Search) -> Option<PathBuf> {
    match declared {
        "" => search.clangs().into_iter().next().map(|llvm| llvm.clang),
        declared => search.programs(declared).next(),
    }
}

/// Returns the numbers of the processors without a suffix, sorted.
fn numbers(names: &BTreeSet<String>) -> Vec<u32> {
    let numbers = names
        .iter()
        .filter_map(|name| name.strip_prefix("sm_")?.parse().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chooses_as_cmake_does() {
        // nvcc 13.5, shortened; clang 22 and ptxas also name those with a suffix.
        let names = "sm_75\nsm_80\nsm_86\nsm_90\nsm_90a\nsm_100\nsm_121\nsm_121f\nsm_120\n";
        let nvcc = numbers(&cuda::names(names));
        assert_eq!(
            chosen(&nvcc, ALL_MAJOR),
            ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "compute_120"]
        );
        let all = chosen(&nvcc, ALL);
        assert_eq!(all.len(), 8);
        assert_eq!(all[6..], ["sm_121", "compute_121"]);
        assert_eq!(chosen(&[], ALL), [""; 0]);
    }
}
