//! `${CUDA}`, `${ROCM}`, folders of Cargo and what dependencies tell (`${DEP_SPPARK_ROOT}`) in the values of
//! `sources`, `include`, `flags`, `archives` and `crate`.

use crate::declare::family::Family;
use crate::declare::language::Language;
use crate::declare::settings::{Setting, Settings, nearest};
use crate::environment::Environment;
use crate::error::Error;
use crate::files::real_path;
use crate::installed::answers::Answers;
use crate::installed::rocm;
use crate::installed::sdk;
use std::path::{Path, PathBuf};

/// The names of the variables.
const NAMES: [&str; 4] = ["CUDA", "ROCM", "OUT_DIR", "CARGO_MANIFEST_DIR"];

/// Names of the variables of sources, also those in a crate of kernels: a module without its SDK is still one with sources.
const NAMES_OF_SOURCES: [&str; 2] = ["OUT_DIR", "CARGO_MANIFEST_DIR"];

/// The keys whose values may contain variables, and the names of these.
const KEYS: [(&str, &[&str]); 5] = [
    ("sources", &NAMES_OF_SOURCES),
    ("include", &NAMES),
    ("flags", &NAMES),
    ("archives", &NAMES),
    ("crate", &NAMES_OF_SOURCES),
];

/// Start of the names of variables that Cargo sets for the build script: metadata of dependencies with `links`.
const OF_DEPENDENCIES: &str = "DEP_";

/// Reason why a variable has no value.
enum VariableProblem {
    Wrong(String),
    /// The SDK is not installed.
    Missing(String),
    Failed(Error),
}

/// Replaces the variables in the values of a module.
///
/// Returns the problem if a value names an SDK that is not installed. Such a value is left out: the module may be one that is built
/// without device code then.
///
/// # Errors
///
/// If a variable is unknown.
pub fn expand(settings: &mut Settings, environment: &Environment) -> Result<Option<String>, Error> {
    let compiler = settings.text("compiler").unwrap_or_default().to_owned();
    let value = |name: &str| value(name, &compiler, environment);
    let mut missing = None;
    let mut targets = settings.targets.clone();
    for (name, table) in settings.targets.iter() {
        let mut table = table.clone();
        missing = missing.or(expand_table(&mut table, value)?);
        targets.insert(name.to_owned(), table);
    }
    settings.targets = targets;
    let own = expand_table(settings, value)?;
    Ok(own.or(missing))
}

fn expand_table(
    settings: &mut Settings,
    value: impl Fn(&str) -> Result<String, VariableProblem>,
) -> Result<Option<String>, Error> {
    let mut missing = None;
    for (key, names) in KEYS {
        // Sources are patterns.
        let value = |name: &str| match key {
            "sources" => value(name).map(|folder| glob::Pattern::escape(&folder)),
            _ => value(name),
        };
        let listed = match settings.entry(key).map(|entry| &entry.setting) {
            Some(Setting::List(list)) => list,
            Some(Setting::Text(text)) => std::slice::from_ref(text),
            _ => &[][..],
        };
        if !listed.iter().any(|text| text.contains("${")) {
            continue;
        }
        let mut expanded = Vec::new();
        for text in listed {
            match replace(text, names, value) {
                Ok(text) => expanded.push(text),
                Err(VariableProblem::Wrong(problem)) => return Err(settings.error_at(key, problem)),
                Err(VariableProblem::Missing(problem)) => {
                    missing = Some(settings.error_at(key, problem).to_string());
                }
                Err(VariableProblem::Failed(error)) => return Err(error),
            }
        }
        let setting = match (settings.text(key), expanded.pop()) {
            (Some(_), Some(text)) => Setting::Text(text),
            (_, last) => Setting::List(expanded.into_iter().chain(last).collect()),
        };
        settings.replace(key, setting);
    }
    Ok(missing)
}

/// Replaces the variables in `text`; `$${` stands for `${`.
fn replace(
    text: &str,
    names: &[&str],
    value: impl Fn(&str) -> Result<String, VariableProblem>,
) -> Result<String, VariableProblem> {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            replaced.push_str(before);
            replaced.push_str("${");
            rest = after;
            continue;
        }
        let Some((name, end)) = after.split_once('}') else {
            let problem = format!("`{text}`: missing `}}` after `${{`; `$${{` is a plain `${{`");
            return Err(VariableProblem::Wrong(problem));
        };
        if !names.contains(&name) && !name.starts_with(OF_DEPENDENCIES) {
            let hint = nearest(name, names.iter().copied());
            let names = names.iter().map(|name| format!("`${{{name}}}`"));
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(VariableProblem::Wrong(format!(
                "`{text}`: unknown variable `${{{name}}}` (expected one of {names}){hint}"
            )));
        }
        replaced.push_str(before);
        replaced.push_str(&value(name).map_err(|problem| match problem {
            VariableProblem::Missing(problem) => {
                VariableProblem::Missing(format!("`{text}`: {problem}"))
            }
            VariableProblem::Wrong(problem) => {
                VariableProblem::Wrong(format!("`{text}`: {problem}"))
            }
            problem => problem,
        })?);
        rest = end;
    }
    replaced.push_str(rest);
    Ok(replaced)
}

/// Returns the value of a variable for a module with that `compiler`.
fn value(name: &str, compiler: &str, environment: &Environment) -> Result<String, VariableProblem> {
    let folder = |name| environment.required(name).map_err(VariableProblem::Failed);
    let language = match name {
        "CUDA" => Language::Cuda,
        "ROCM" => Language::Hip,
        name if name.starts_with(OF_DEPENDENCIES) => {
            return environment
                .cargo(name)
                .ok_or_else(|| VariableProblem::Wrong(of_no_dependency(name, environment)));
        }
        name => return folder(name),
    };
    let out = PathBuf::from(folder("OUT_DIR")?);
    let tree = tree(language, compiler, environment);
    let root = sdk::any_root(language, environment, &Answers::below(&out, ""), tree);
    match root {
        Ok(root) => Ok(root.to_string_lossy().into_owned()),
        Err(error) if error.is_missing() => Err(VariableProblem::Missing(error.to_string())),
        Err(error) => Err(VariableProblem::Failed(error)),
    }
}

/// Returns the problem of a variable that no dependency sets.
fn of_no_dependency(name: &str, environment: &Environment) -> String {
    let names = environment.names(OF_DEPENDENCIES);
    let known = names.iter().map(|name| format!("`${{{name}}}`"));
    let known = match names.is_empty() {
        true => "no dependency has metadata".to_owned(),
        false => format!("dependencies set {}", known.collect::<Vec<_>>().join(", ")),
    };
    format!(
        "`{name}` is not set ({known})\n\
         hint: add the package that prints it to [dependencies]: Cargo sets DEP_<LINKS>_<KEY> for packages with the key `links`"
    )
}

/// Returns the places of the SDK that the declared compiler belongs to.
fn tree(language: Language, compiler: &str, environment: &Environment) -> Vec<PathBuf> {
    let family = Family::of(Path::new(compiler));
    let is_of_sdk = match language {
        Language::Cuda => family == Family::Nvcc,
        _ => family == Family::Hipcc || rocm::is_amdclang(compiler),
    };
    let program = environment.search().programs(compiler).next();
    let real = program
        .filter(|_| is_of_sdk)
        .and_then(|path| real_path(&path));
    // `bin` of the tree, or of its LLVM (`lib/llvm/bin`).
    let folders = real
        .iter()
        .flat_map(|path| path.ancestors().skip(2).take(3));
    folders.map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_variables_and_keeps_other_dollars() {
        let value = |name: &str| match name {
            "ROCM" => Err(VariableProblem::Missing("not found".to_owned())),
            "DEP_NONE" => Err(VariableProblem::Wrong("not set".to_owned())),
            name => Ok(format!("/{}", name.to_lowercase())),
        };
        let replaced = |text: &str| match replace(text, &NAMES, value) {
            Ok(text) => text,
            Err(VariableProblem::Wrong(text)) => format!("wrong: {text}"),
            Err(VariableProblem::Missing(text)) => format!("missing: {text}"),
            Err(VariableProblem::Failed(_)) => "failed".to_owned(),
        };
        for (text, expected) in [
            ("-I${CUDA}/a:${OUT_DIR}", "-I/cuda/a:/out_dir"),
            ("$CUDA $$ $", "$CUDA $$ $"),
            ("$${CUDA}${CUDA}", "${CUDA}/cuda"),
            ("-L${ROCM}/lib", "missing: `-L${ROCM}/lib`: not found"),
            ("${DEP_BLST_C_SRC}", "/dep_blst_c_src"),
            ("a/${DEP_NONE}", "wrong: `a/${DEP_NONE}`: not set"),
            (
                "${CUDA",
                "wrong: `${CUDA`: missing `}` after `${`; `$${` is a plain `${`",
            ),
            (
                "${CUDA_}",
                "wrong: `${CUDA_}`: unknown variable `${CUDA_}` (expected one of `${CUDA}`, `${ROCM}`, `${OUT_DIR}`, \
                 `${CARGO_MANIFEST_DIR}`); did you mean `CUDA`?",
            ),
        ] {
            assert_eq!(replaced(text), expected);
        }
    }
}
