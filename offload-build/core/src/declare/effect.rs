//! Keys that do not apply to a language: an error if one is written for such a module alone.
//!
//! A key for several modules is an error if none of them takes it: a package's keys above its modules, and methods of
//! `Build`. What a workspace or a variable says may be for another package.

use crate::declare::language::Language;
use crate::declare::settings::{Entry, Reach, Settings, nearest};
use crate::error::Error;
use std::collections::BTreeSet;

const NOT_RUST: &[Language] = &[
    Language::OpenMp,
    Language::Hip,
    Language::Cuda,
    Language::Bitcode,
    Language::Prebuilt,
];

const NOT_CUDA: &[Language] = &[
    Language::OpenMp,
    Language::Hip,
    Language::Bitcode,
    Language::Rust,
    Language::Prebuilt,
];

/// Languages other than HIP and CUDA.
const NOT_HIP_OR_CUDA: &[Language] = &[
    Language::OpenMp,
    Language::Bitcode,
    Language::Rust,
    Language::Prebuilt,
];

/// Languages without a preprocessor.
const WITHOUT_TEXT: &[Language] = &[Language::Bitcode, Language::Rust, Language::Prebuilt];

/// Keys, and the languages on whose modules they have no effect.
const WITHOUT: [(&str, &[Language]); 21] = [
    ("sources", &[Language::Rust]),
    ("exclude", &[Language::Rust]),
    ("optional-kernels", &[Language::OpenMp]),
    ("crate", NOT_RUST),
    ("features", NOT_RUST),
    ("default-features", NOT_RUST),
    ("include", WITHOUT_TEXT),
    ("define", WITHOUT_TEXT),
    ("std", WITHOUT_TEXT),
    ("flags", &[Language::Prebuilt]),
    ("opt-level", &[Language::Prebuilt]),
    ("compiler", &[Language::Prebuilt]),
    ("launcher", WITHOUT_TEXT),
    ("rdc", NOT_HIP_OR_CUDA),
    (
        "images",
        &[Language::OpenMp, Language::Rust, Language::Prebuilt],
    ),
    ("host", NOT_HIP_OR_CUDA),
    ("cudart", NOT_CUDA),
    ("missing", &[Language::Prebuilt]),
    ("archives", &[Language::Prebuilt]),
    ("link", &[Language::Prebuilt]),
    ("artifact", &[Language::Prebuilt]),
];

/// Checks the settings of all modules of a package.
pub fn check(modules: &[Settings]) -> Result<(), Error> {
    let language = |module: &Settings| Language::named(module.text("language")?);
    for module in modules {
        for (key, languages) in WITHOUT {
            let has_none =
                |module: &Settings| language(module).is_some_and(|own| languages.contains(&own));
            if !has_none(module) {
                continue;
            }
            let places = std::iter::once(module).chain(module.targets.values());
            for settings in places {
                let reach = settings.entry(key).map(|entry| entry.reach);
                let is_wrong = match reach {
                    Some(Reach::Module) => true,
                    Some(Reach::Package) => modules.iter().all(has_none),
                    Some(Reach::World) | None => false,
                };
                if is_wrong {
                    let language = module.text("language").expect("it has a language");
                    let problem =
                        format!("`{key}` has no effect on modules of `{language}` [OFF502]");
                    return Err(settings.error_at(key, problem));
                }
            }
        }
    }
    Ok(())
}

/// Checks that the feature of a module is one of the package's, unless it was written for other packages, too.
pub fn feature(module: &Settings, declared: &BTreeSet<String>) -> Result<(), Error> {
    let is_own = |entry: &Entry| entry.reach != Reach::World;
    match module.text("feature") {
        Some(feature)
            if !declared.contains(feature) && module.entry("feature").is_some_and(is_own) =>
        {
            let hint = nearest(feature, declared.iter().map(String::as_str));
            let problem = format!("the package has no feature `{feature}`{hint} [OFF505]");
            let error = module.error_at("feature", problem);
            Err(match hint.is_empty() {
                true => error.with_line(format_args!("hint: {}", features_hint(feature))),
                false => error,
            })
        }
        _ => Ok(()),
    }
}

/// Returns what to do about a feature that the package does not have. Names with other characters stand in quotes in TOML, and
/// those with `/` and `:` name no feature of the package.
fn features_hint(feature: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let add = match feature {
        _ if feature.contains(['/', ':']) => String::new(),
        _ if feature.chars().all(is_plain) => format!(", or add `{feature} = []` to it"),
        _ => format!(", or add `\"{feature}\" = []` to it"),
    };
    format!("name a feature of [features]{add}")
}

#[cfg(test)]
mod cases;

#[cfg(test)]
mod tests {
    use super::cases::{LANGUAGES, NO_EFFECT, TABLE};
    use super::*;
    use crate::declare::cargo_tables;
    use crate::declare::manifest::{self, Source};
    use crate::declare::module::Module;
    use crate::declare::settings::KEYS;
    use crate::environment::Environment;
    use std::path::Path;

    fn checked(folder: &Path, text: &str) -> Result<(), String> {
        std::fs::write(folder.join("Cargo.toml"), text).unwrap();
        let source = Source {
            file: "Cargo.toml",
            text,
        };
        let modules = manifest::modules(source, None, "dev").map_err(|error| error.to_string())?;
        check(&modules).map_err(|error| error.to_string())?;
        let features = cargo_tables::features(source).unwrap();
        for module in &modules {
            feature(module, &features).map_err(|error| error.to_string())?;
        }
        let variable = |(name, value): (&str, String)| (name.into(), value.into());
        let variables = [
            ("CARGO_MANIFEST_DIR", folder.display().to_string()),
            ("OUT_DIR", folder.join("target/out").display().to_string()),
            ("CARGO_FEATURE_GPU", "1".to_owned()),
        ];
        let environment = Environment::new(variables.map(variable).into());
        for module in &modules {
            Module::new(module, &environment).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    #[test]
    fn accepts_and_rejects_each_key_for_each_language() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "a.c", "a.hip", "a.cu", "a.bc", "a.co", "b.c", "b.hip", "b.cu", "b.bc", "b.co",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let kernels = folder.path().join("kernels");
        std::fs::create_dir_all(kernels.join("src")).unwrap();
        std::fs::write(kernels.join("Cargo.toml"), "[package]\nname = \"k\"\n").unwrap();
        std::fs::write(kernels.join("src/lib.rs"), "").unwrap();
        let rows = TABLE.map(|(key, ..)| key);
        assert_eq!(
            rows.to_vec(),
            KEYS.iter().map(|key| key.name).collect::<Vec<_>>()
        );
        let sources = ["c", "hip", "cu", "bc", "co"]
            .map(|extension| format!("sources = [\"*.{extension}\"]"));
        let kernels = ["crate = \"kernels\"".to_owned()];
        for (key, value, problems) in TABLE.iter().filter(|(_, value, _)| !value.is_empty()) {
            let sources = sources.iter().chain(&kernels);
            for ((language, source), problem) in LANGUAGES.iter().zip(sources).zip(problems) {
                let source = match (*key, *language) {
                    // Once is enough.
                    ("crate", "rust") => "",
                    _ => source,
                };
                let target = if *language == "cuda" {
                    "sm_80"
                } else {
                    "gfx90a"
                };
                let text = format!(
                    "[features]\ngpu = []\n[package.metadata.offload]\nlanguage = \"{language}\"\n\
                     {source}\ntargets = [\"{target}\"]\n\n  {key} = {value}\n"
                );
                let expected = match *problem {
                    "" => Ok(()),
                    NO_EFFECT => Err(format!(
                        "Cargo.toml:8:3: `{key}` has no effect on modules of `{language}` [OFF502]"
                    )),
                    problem => Err(format!("Cargo.toml:8:3: {problem}")),
                };
                assert_eq!(checked(folder.path(), &text), expected, "{text}");
            }
        }
    }

    #[test]
    fn rejects_sources_of_a_crate_of_kernels() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[package.metadata.offload]\nlanguage = \"rust\"\nsources = [\"k.rs\"]\n";
        let error = "Cargo.toml:3:1: `sources` has no effect on modules of `rust` [OFF502]";
        assert_eq!(checked(folder.path(), text), Err(error.to_owned()));
    }

    #[test]
    fn leaves_to_others_what_has_an_effect_on_them() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.hip", "a.co"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let keys = "[package.metadata.offload]\ntargets = [\"gfx90a\"]\nstd = \"c++20\"\n";
        let module = |name: &str, language: &str, source: &str| {
            format!(
                "[[package.metadata.offload.module]]\nname = \"{name}\"\nlanguage = \"{language}\"\nsources = [\"{source}\"]\n"
            )
        };
        let (hip, images) = (
            module("one", "hip", "a.hip"),
            module("two", "prebuilt", "a.co"),
        );
        assert_eq!(
            checked(folder.path(), &format!("{keys}{hip}{images}")),
            Ok(())
        );
        // None takes it; and who writes it for one module means that module.
        let error = "`std` has no effect on modules of `prebuilt` [OFF502]";
        for (text, line) in [
            (format!("{keys}{images}"), "3:1"),
            (format!("{keys}{hip}{images}std = \"c++17\"\n"), "12:1"),
        ] {
            let expected = Err(format!("Cargo.toml:{line}: {error}"));
            assert_eq!(checked(folder.path(), &text), expected, "{text}");
        }
        let target = "[package.metadata.offload.target.gfx90a]\ndefine = { A = 1 }\n";
        let text = format!(
            "[package.metadata.offload]\nlanguage = \"prebuilt\"\nsources = [\"a.co\"]\ntargets = [\"gfx90a\"]\n{target}"
        );
        assert_eq!(
            checked(folder.path(), &text),
            Err(
                "Cargo.toml:6:1: `define` has no effect on modules of `prebuilt` [OFF502]"
                    .to_owned()
            )
        );
    }

    #[test]
    fn takes_keys_of_a_workspace_for_those_of_other_packages() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.c", "a.bc", "a.hip"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let of = |language: &str, keys: &str| {
            let workspace = format!("[workspace.metadata.offload]\n{keys}");
            let file = match language {
                "openmp" => "a.c",
                "bitcode" => "a.bc",
                _ => "a.hip",
            };
            let package = format!(
                "[package.metadata.offload]\nlanguage = \"{language}\"\nsources = [\"{file}\"]\ntargets = [\"gfx90a\"]\n"
            );
            let source = |file, text| Source { file, text };
            let workspace = source("../Cargo.toml", workspace.as_str());
            let modules = manifest::modules(source("Cargo.toml", &package), Some(workspace), "dev");
            let folder = folder.path().display().to_string();
            let variables = [("CARGO_MANIFEST_DIR", folder.clone()), ("OUT_DIR", folder)];
            let variable = |(name, value): (&str, String)| (name.into(), value.into());
            let environment = Environment::new(variables.map(variable).into());
            let module = Module::new(&modules.unwrap()[0], &environment).unwrap();
            (
                module.has_host_code,
                module.rdc,
                module.images,
                module.register,
                module.container,
                module.compress,
                module.artifacts.len(),
                module.warnings,
            )
        };
        let keys = "rdc = false\nhost = true\nregister = \"deferred\"\n";
        for (language, keys) in [
            (
                "openmp",
                "rdc = false\nimages = \"source\"\nhost = false\nembed = \"include\"\ncontainer = \"bundle\"\ncompress = \"zstd\"\n",
            ),
            ("bitcode", keys),
            (
                "hip",
                "register = \"deferred\"\ncontainer = \"fatbin\"\ncompress = \"lz4\"\n",
            ),
            ("hip", "artifact = [\"hda\"]\n"),
            ("hip", "target.gfx90a.exclude = [\"b.hip\"]\n"),
        ] {
            assert_eq!(of(language, keys), of(language, ""), "{language}");
        }
    }

    #[test]
    fn says_that_a_target_is_spelled_in_two_ways() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.hip"), "").unwrap();
        let text = "[package.metadata.offload]\nlanguage = \"hip\"\nsources = [\"a.hip\"]\n\
            targets = [\"gfx90a:xnack+:sramecc-\"]\n\
            [package.metadata.offload.target.\"gfx90a:sramecc-:xnack+\"]\ndefine = { A = 1 }\n";
        assert_eq!(
            checked(folder.path(), text),
            Err(
                "[package.metadata.offload.target.\"gfx90a:sramecc-:xnack+\"]: this target is `gfx90a:xnack+:sramecc-` in \
                 `targets`: spell both alike"
                    .to_owned()
            )
        );
    }

    #[test]
    fn knows_the_features_of_a_package() {
        let package = "[features]\ngpu = [\"dep:d\", \"dep:e\"]\ndefault = [\"gpu\"]\ne = [\"dep:e\"]\n[dependencies]\na = \"1\"\n\
                       b = { version = \"1\", optional = true }\n\
                       d = { version = \"1\", optional = true }\ne = { version = \"1\", optional = true }\n[target.'cfg(unix)'.build-dependencies]\nc = { version = \"1\", optional = true }\n\
                       [package.metadata.offload]\nfeature = ";
        let rejects = |name: &str| {
            let text = format!("{package}\"{name}\"\n");
            let source = Source {
                file: "Cargo.toml",
                text: &text,
            };
            let modules = manifest::modules(source, None, "dev").unwrap();
            let features = cargo_tables::features(source).unwrap();
            feature(&modules[0], &features)
                .err()
                .map(|error| error.to_string())
        };
        for name in ["gpu", "default", "b", "c", "e"] {
            assert_eq!(rejects(name), None, "{name}");
        }
        // Cargo has no feature `d`: a feature names the dependency.
        let add = "\nhint: name a feature of [features]";
        for (name, near, hint) in [
            ("gpus", "; did you mean `gpu`?", ""),
            ("a", "", ", or add `a = []` to it"),
            ("d", "", ", or add `d = []` to it"),
            ("cuda-12.0", "", ", or add `\"cuda-12.0\" = []` to it"),
            ("d/x", "", ""),
            ("dep:d", "", ""),
        ] {
            let mut expected =
                format!("Cargo.toml:13:1: the package has no feature `{name}`{near} [OFF505]");
            if near.is_empty() {
                expected += &format!("{add}{hint}");
            }
            assert_eq!(rejects(name), Some(expected));
        }
    }
}
