//! Variables that people set for other build systems, and that mean one of our keys.
//!
//! They are read for modules of their language, lie over the manifest and under `OFFLOAD_*`. Where several are set,
//! the first counts.

use crate::declare::settings::{self, Setting, Settings};
use crate::environment::Environment;
use crate::error::Error;
use std::path::Path;

struct Alias {
    language: &'static str,
    key: &'static str,
    /// The variables, and how a part of the value is called here.
    variables: &'static [(&'static str, Parts)],
}

/// Value of one part of a list, in a module with these `targets`.
type Parts = fn(&str, &[String]) -> Vec<String>;

const ALIASES: [Alias; 4] = [
    Alias {
        language: "hip",
        key: "targets",
        variables: &[
            ("GPU_TARGETS", amd_target),
            ("AMDGPU_TARGETS", amd_target),
            ("CMAKE_HIP_ARCHITECTURES", as_it_is),
            ("HIP_ARCH_LIST", as_it_is),
        ],
    },
    Alias {
        language: "cuda",
        key: "targets",
        variables: &[
            ("CUDA_COMPUTE_CAPS", processor),
            ("CUDA_COMPUTE_CAP", processor),
            ("CUDAARCHS", architecture),
        ],
    },
    Alias {
        language: "hip",
        key: "compiler",
        variables: &[("HIPCXX", as_it_is), ("HIPCC", as_it_is)],
    },
    Alias {
        language: "cuda",
        key: "compiler",
        variables: &[("NVCC", as_it_is), ("CUDACXX", as_it_is)],
    },
];

/// The value with which sppark's build scripts, whose crates may be in the same build, do without a compiler: `NVCC=off`.
const OFF: &str = "off";

/// Caches and farms that may stand in front of a compiler.
const LAUNCHERS: [&str; 4] = ["ccache", "sccache", "distcc", "icecc"];

/// Splits the value of a variable as cc takes it (`ccache nvcc`) into a launcher and the compiler behind it.
fn launched(value: &str) -> Option<(&str, &str)> {
    let (launcher, compiler) = value.split_once(' ')?;
    let name = Path::new(launcher).file_stem()?.to_str()?;
    LAUNCHERS
        .contains(&name)
        .then_some((launcher, compiler.trim()))
}

/// Lays the variables that are set over the settings of the modules of their language: `language`, where the build
/// script says it for all.
pub fn apply(
    environment: &Environment,
    modules: &mut [Settings],
    language: Option<&str>,
) -> Result<(), Error> {
    for alias in &ALIASES {
        let is_meant =
            |module: &&mut Settings| language.or(module.text("language")) == Some(alias.language);
        let meant: Vec<&mut Settings> = modules.iter_mut().filter(is_meant).collect();
        if meant.is_empty() || environment.setting(alias.key).is_some() {
            continue;
        }
        let mut variables = alias.variables.iter();
        let set = variables.find_map(|(name, parts)| {
            let value = environment.variable(name).filter(|value| value != OFF)?;
            Some((name, parts, value))
        });
        let (Some((name, called, value)), Some(key)) = (set, settings::find(alias.key)) else {
            continue;
        };
        for module in meant {
            let launched = launched(&value).filter(|_| alias.key == "compiler");
            let value = match launched {
                Some((launcher, compiler)) => {
                    if environment.setting("launcher").is_none() {
                        module.set("launcher", Setting::Text(launcher.to_owned()), name);
                    }
                    compiler
                }
                None => &value,
            };
            let setting = match key.form {
                settings::Form::List => Setting::List(list(value, called, module.list(key.name))),
                form => form
                    .parse(value)
                    .map_err(|problem| Error::new(format_args!("{name}: {problem}")))?,
            };
            module.set(alias.key, setting, name);
        }
    }
    Ok(())
}

/// Returns the targets that a value stands for, each once.
fn list(value: &str, called: &Parts, declared: &[String]) -> Vec<String> {
    let parts = value.split([';', ',', ' ']).filter(|part| !part.is_empty());
    let mut targets: Vec<String> = Vec::new();
    for target in parts.flat_map(|part| called(part, declared)) {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    targets
}

fn as_it_is(text: &str, _declared: &[String]) -> Vec<String> {
    vec![text.to_owned()]
}

/// `all` stands for the targets of the module, as in ROCm's libraries.
fn amd_target(text: &str, declared: &[String]) -> Vec<String> {
    match text {
        "all" => declared.to_vec(),
        text => as_it_is(text, declared),
    }
}

/// `8.0`, `80` and `90a` are `sm_80` and so on; `compute_80` if the module has no other targets than PTX.
fn processor(text: &str, declared: &[String]) -> Vec<String> {
    let is_ptx = |target: &String| target.starts_with("compute_");
    let start = match !declared.is_empty() && declared.iter().all(is_ptx) {
        true => "compute",
        false => "sm",
    };
    match number(text) {
        Some(number) => vec![format!("{start}_{number}")],
        None => as_it_is(text, declared),
    }
}

/// Reads a value of CMake's `CUDA_ARCHITECTURES`: `80-real` is an image, `80-virtual` PTX, and `80` both.
fn architecture(text: &str, declared: &[String]) -> Vec<String> {
    let (name, is_real, is_virtual) =
        match (text.strip_suffix("-real"), text.strip_suffix("-virtual")) {
            (Some(name), _) => (name, true, false),
            (_, Some(name)) => (name, false, true),
            _ => (text, true, true),
        };
    let Some(number) = number(name) else {
        return as_it_is(text, declared);
    };
    let image = is_real.then(|| format!("sm_{number}"));
    let ptx = is_virtual.then(|| format!("compute_{number}"));
    image.into_iter().chain(ptx).collect()
}

/// The number of a processor, without its point.
fn number(text: &str) -> Option<String> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    is_number.then(|| text.replace('.', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(language: &str, variables: &[(&str, &str)]) -> Settings {
        let pairs = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        let environment = Environment::new(pairs.collect());
        let mut module = Settings::default();
        module.set("language", Setting::Text(language.into()), "Cargo.toml");
        module.set("targets", Setting::List(vec!["sm_70".into()]), "Cargo.toml");
        let mut modules = [module];
        apply(&environment, &mut modules, None).unwrap();
        let kept = modules.clone();
        apply(&environment, &mut modules, Some("openmp")).unwrap();
        assert_eq!(modules, kept);
        let [module] = modules;
        module
    }

    #[test]
    fn makes_ptx_for_modules_of_ptx() {
        let ptx = ["compute_70".to_owned(), "compute_80".to_owned()];
        assert_eq!(processor("9.0", &ptx), ["compute_90"]);
        assert_eq!(processor("90a", &["sm_70".to_owned()]), ["sm_90a"]);
        let both = ["compute_70".to_owned(), "sm_80".to_owned()];
        assert_eq!(processor("90", &both), ["sm_90"]);
        assert_eq!(processor("90", &[]), ["sm_90"]);
        // CMake's value says itself what it means.
        assert_eq!(architecture("90-real", &ptx), ["sm_90"]);
    }

    #[test]
    fn reads_the_first_variable_of_the_modules_language() {
        let amd = [
            ("AMDGPU_TARGETS", "gfx90a:xnack-;gfx942"),
            ("HIP_ARCH_LIST", "gfx906"),
        ];
        let module = applied("hip", &amd);
        assert_eq!(module.list("targets"), ["gfx90a:xnack-", "gfx942"]);
        assert_eq!(module.origin("targets"), "AMDGPU_TARGETS");
        assert_eq!(applied("cuda", &amd).list("targets"), ["sm_70"]);
        let caps = applied("cuda", &[("CUDA_COMPUTE_CAP", "8.0, 90a,sm_75;100")]);
        assert_eq!(caps.list("targets"), ["sm_80", "sm_90a", "sm_75", "sm_100"]);
        // As CMake has it.
        let archs = applied(
            "cuda",
            &[("CUDAARCHS", "75-real;80;90a-virtual;80-virtual")],
        );
        assert_eq!(
            archs.list("targets"),
            ["sm_75", "sm_80", "compute_80", "compute_90a"]
        );
        let every = applied("hip", &[("GPU_TARGETS", "all")]);
        assert_eq!(every.list("targets"), ["sm_70"]);
        let all = applied("cuda", &[("CUDAARCHS", "all-major")]);
        assert_eq!(all.list("targets"), ["all-major"]);
        let compiler = applied("hip", &[("HIPCXX", "/opt/my llvm/bin/clang++")]);
        assert_eq!(compiler.text("compiler"), Some("/opt/my llvm/bin/clang++"));
        let compilers = [("CUDACXX", "clang++"), ("NVCC", "/opt/cuda/bin/nvcc")];
        let compiler = applied("cuda", &compilers);
        assert_eq!(compiler.text("compiler"), Some("/opt/cuda/bin/nvcc"));
        let compilers = [("NVCC", "off"), ("CUDACXX", "clang++")];
        assert_eq!(
            applied("cuda", &compilers).text("compiler"),
            Some("clang++")
        );
        let launched = applied("cuda", &[("NVCC", "/usr/bin/ccache nvcc")]);
        assert_eq!(launched.text("compiler"), Some("nvcc"));
        assert_eq!(launched.text("launcher"), Some("/usr/bin/ccache"));
        assert_eq!(launched.origin("launcher"), "NVCC");
        // Ours is closer to what is meant.
        let ours = [("OFFLOAD_TARGETS", "gfx906"), ("GPU_TARGETS", "gfx942")];
        assert_eq!(applied("hip", &ours).list("targets"), ["sm_70"]);
    }
}
