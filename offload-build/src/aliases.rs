//! Variables that people set for other build systems, and that mean one of our keys.
//!
//! They are read for modules of their language, lie over the manifest and under `OFFLOAD_*`. Where several are set,
//! the first counts.

use crate::environment::Environment;
use crate::error::Error;
use crate::settings::{self, Settings};

struct Alias {
    language: &'static str,
    key: &'static str,
    variables: &'static [&'static str],
    /// What a part of the value is called here.
    part: fn(&str) -> String,
}

const ALIASES: [Alias; 4] = [
    Alias {
        language: "hip",
        key: "targets",
        variables: &[
            "GPU_TARGETS",
            "AMDGPU_TARGETS",
            "CMAKE_HIP_ARCHITECTURES",
            "HIP_ARCH_LIST",
        ],
        part: str::to_owned,
    },
    Alias {
        language: "cuda",
        key: "targets",
        variables: &["CUDA_COMPUTE_CAPS", "CUDA_COMPUTE_CAP", "CUDAARCHS"],
        part: processor,
    },
    Alias {
        language: "hip",
        key: "compiler",
        variables: &["HIPCXX", "HIPCC"],
        part: str::to_owned,
    },
    Alias {
        language: "cuda",
        key: "compiler",
        variables: &["NVCC", "CUDACXX"],
        part: str::to_owned,
    },
];

/// Lays the variables that are set over the settings of the modules of their language.
pub(crate) fn apply(environment: &Environment, modules: &mut [Settings]) -> Result<(), Error> {
    for alias in &ALIASES {
        let is_meant = |module: &&mut Settings| module.text("language") == Some(alias.language);
        let meant: Vec<&mut Settings> = modules.iter_mut().filter(is_meant).collect();
        if meant.is_empty() || environment.setting(alias.key).is_some() {
            continue;
        }
        let mut variables = alias.variables.iter();
        let set = variables.find_map(|name| Some((name, environment.variable(name)?)));
        let (Some((name, value)), Some(key)) = (set, settings::find(alias.key)) else {
            continue;
        };
        let parts = value.split([';', ',', ' ']).filter(|part| !part.is_empty());
        let value = match key.form {
            settings::Form::List => parts.map(alias.part).collect::<Vec<_>>().join(";"),
            _ => value,
        };
        let setting = key.form.parse(&value);
        let setting = setting.map_err(|problem| Error::new(format_args!("{name}: {problem}")))?;
        for module in meant {
            module.set(alias.key, setting.clone(), name);
        }
    }
    Ok(())
}

/// `8.0`, `80`, `90a` and `90-real` are `sm_80` and so on.
fn processor(text: &str) -> String {
    let number = text.trim_end_matches("-real").replace('.', "");
    match number.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("sm_{number}"),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Setting;

    fn applied(language: &str, variables: &[(&str, &str)]) -> Settings {
        let pairs = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        let environment = Environment::new(pairs.collect());
        let mut module = Settings::default();
        module.set("language", Setting::Text(language.into()), "Cargo.toml");
        module.set("targets", Setting::List(vec!["sm_70".into()]), "Cargo.toml");
        let mut modules = [module];
        apply(&environment, &mut modules).unwrap();
        let [module] = modules;
        module
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
        let caps = applied("cuda", &[("CUDA_COMPUTE_CAP", "8.0, 90a,sm_75;100-real")]);
        assert_eq!(caps.list("targets"), ["sm_80", "sm_90a", "sm_75", "sm_100"]);
        let compiler = applied("hip", &[("HIPCXX", "/opt/my llvm/bin/clang++")]);
        assert_eq!(compiler.text("compiler"), Some("/opt/my llvm/bin/clang++"));
        let compilers = [("CUDACXX", "clang++"), ("NVCC", "/opt/cuda/bin/nvcc")];
        let compiler = applied("cuda", &compilers);
        assert_eq!(compiler.text("compiler"), Some("/opt/cuda/bin/nvcc"));
        // Ours is closer to what is meant.
        let ours = [("OFFLOAD_TARGETS", "gfx906"), ("GPU_TARGETS", "gfx942")];
        assert_eq!(applied("hip", &ours).list("targets"), ["sm_70"]);
    }
}
