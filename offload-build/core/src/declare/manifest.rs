//! `[package.metadata.offload]` as settings, one set for each module; errors with line and column.
//!
//! Later layers win: `[workspace.metadata.offload]`, its `profile.<name>`, `[package.metadata.offload]`,
//! its `profile.<name>`, `[[package.metadata.offload.module]]`.

use crate::declare::settings::{self, Form, KEYS, Reach, Setting, Settings};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The text of a `Cargo.toml`, and the name that errors give it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

/// A problem of a manifest, and its place.
#[derive(Debug, PartialEq, Eq)]
pub struct ManifestError {
    place: String,
    problem: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for ManifestError {}

/// The settings of each module that `package` declares, those of `workspace` below them.
/// `profile` is `dev` or `release`.
///
/// # Errors
///
/// At the first key or value that is not of the schema.
pub fn modules(
    package: Source<'_>,
    workspace: Option<Source<'_>>,
    profile: &str,
) -> Result<Vec<Settings>, ManifestError> {
    let mut base = Settings::default();
    if let Some(workspace) = workspace {
        let document = workspace.parse()?;
        if let Some(table) = workspace.metadata(&document, "workspace")? {
            let (below, modules) = workspace.layers(table, profile)?;
            if let Some((span, _)) = modules.first() {
                return Err(workspace.error(
                    span,
                    "modules are declared in packages, not in the workspace",
                ));
            }
            base = below.reaching(Reach::World);
        }
    }
    let document = package.parse()?;
    let Some(table) = package.metadata(&document, "package")? else {
        let problem = "missing [package.metadata.offload]\n\
                       hint: add this table with `language`, `sources` and `targets`";
        return Err(package.error(&(0..0), problem));
    };
    let (own, modules) = package.layers(table, profile)?;
    if modules.is_empty() {
        base.overlay(&own);
        return Ok(vec![base]);
    }
    base.overlay(&own.reaching(Reach::Package));
    let layered = modules.into_iter().map(|(_, module)| {
        let mut settings = base.clone();
        settings.overlay(&module);
        settings
    });
    Ok(layered.collect())
}

pub(super) type Table<'t> = DeTable<'t>;
type Value<'t> = Spanned<DeValue<'t>>;
type ModuleTable = (Range<usize>, Settings);

impl<'a> Source<'a> {
    pub(super) fn parse(self) -> Result<Spanned<Table<'a>>, ManifestError> {
        Table::parse(self.text)
            .map_err(|error| self.error(&error.span().unwrap_or(0..0), error.message()))
    }

    /// `[<section>.metadata.offload]`.
    fn metadata<'t>(
        self,
        document: &'t Spanned<Table<'a>>,
        section: &str,
    ) -> Result<Option<&'t Table<'a>>, ManifestError> {
        let mut table = document.get_ref();
        for name in [section, "metadata", "offload"] {
            let Some(value) = table.get(name) else {
                return Ok(None);
            };
            table = self.table(name, value)?;
        }
        Ok(Some(table))
    }

    /// The settings of a table with those of its profile on top, and its modules.
    fn layers(
        self,
        table: &Table<'a>,
        profile: &str,
    ) -> Result<(Settings, Vec<ModuleTable>), ManifestError> {
        let mut modules = Vec::new();
        if let Some(value) = table.get("module") {
            let items = value
                .get_ref()
                .as_array()
                .map_or(&[][..], |array| array.as_ref());
            if items.is_empty() {
                return Err(self.error(
                    &value.span(),
                    "`module` is an array of tables: [[package.metadata.offload.module]]",
                ));
            }
            for item in items {
                let module = self.table("module", item)?;
                if module.get("name").is_none() {
                    return Err(self.error(&item.span(), "a module needs a `name`"));
                }
                modules.push((item.span(), self.settings(module, &["target"])?));
            }
        }
        let mut settings = self.settings(table, &["module", "profile", "target"])?;
        if let Some(value) = table.get("profile") {
            for (name, value) in self.table("profile", value)? {
                if !["dev", "release"].contains(&name.get_ref().as_ref()) {
                    let hint = "use `dev` or `release`; a profile that inherits from one of them uses its settings";
                    let problem = format!(
                        "profile `{}` is not supported\nhint: {hint}",
                        name.get_ref()
                    );
                    return Err(self.error(&name.span(), &problem));
                }
                let over = self.settings(self.table("profile", value)?, &["target"])?;
                if name.get_ref() == profile {
                    settings.overlay(&over);
                }
                settings.listed.extend(over.listed);
                let tables = over.targets.names().map(str::to_owned);
                settings.in_profiles.extend(tables);
            }
        }
        Ok((settings, modules))
    }

    /// The keys of one table; those of `structure` are tables that the caller reads.
    fn settings(self, table: &Table<'a>, structure: &[&str]) -> Result<Settings, ManifestError> {
        let mut settings = Settings::default();
        for (name, value) in table {
            let text: &str = name.get_ref();
            if structure.contains(&text) {
                continue;
            }
            let Some(key) = settings::find(text) else {
                return Err(self.error(&name.span(), &unknown(text, structure)));
            };
            let setting = self.setting(key.name, key.form, value)?;
            settings.set(key.name, setting, self.place(&name.span()));
        }
        if let Some(targets) = table
            .get("target")
            .filter(|_| structure.contains(&"target"))
        {
            let tables = self.table("target", targets).map_err(|mut error| {
                error.problem += "; did you mean `targets`? [OFF501]";
                error
            })?;
            for (target, value) in tables {
                let table = self.table("target", value)?;
                for (name, _) in table {
                    let known = settings::find(name.get_ref());
                    if known.is_some_and(|key| !key.per_target) {
                        let problem = format!("`{}` cannot be set for one target", name.get_ref());
                        return Err(self.error(&name.span(), &problem));
                    }
                }
                let own = self.settings(table, &[])?;
                settings
                    .targets
                    .insert(target.get_ref().clone().into_owned(), own);
            }
        }
        Ok(settings)
    }

    fn setting(self, name: &str, form: Form, value: &Value<'a>) -> Result<Setting, ManifestError> {
        let setting = match (form, value.get_ref()) {
            (Form::Text | Form::Choice(_), DeValue::String(text)) => {
                Setting::Text(text.clone().into_owned())
            }
            (Form::Choice(_), DeValue::Integer(number)) => {
                Setting::Text(number.as_str().to_owned())
            }
            (Form::List | Form::Options, DeValue::Array(items)) => {
                let texts = items
                    .iter()
                    .map(|item| self.text(name, item).map(Cow::into_owned));
                Setting::List(texts.collect::<Result<_, _>>()?)
            }
            (Form::Map, DeValue::Table(table)) => {
                let pairs = table.iter().map(|(name, value)| {
                    let text = match value.get_ref().as_bool() {
                        Some(false) => None,
                        _ => Some(self.definition(name.get_ref(), value)?.into_owned()),
                    };
                    Ok((name.get_ref().clone().into_owned(), text))
                });
                Setting::Map(pairs.collect::<Result<_, _>>()?)
            }
            (Form::Flag, DeValue::Boolean(flag)) => Setting::Flag(*flag),
            (_, found) => {
                let wanted = match form {
                    Form::Text | Form::Choice(_) => "a string",
                    Form::List | Form::Options => "an array of strings",
                    Form::Map => "a table of names and values",
                    Form::Flag => "`true` or `false`",
                };
                let problem = format!("`{name}`: expected {wanted}, found {}", type_of(found));
                return Err(self.error(&value.span(), &problem));
            }
        };
        form.check(setting)
            .map_err(|problem| self.error(&value.span(), &format!("`{name}`: {problem}")))
    }

    fn definition<'v>(
        self,
        name: &str,
        value: &'v Value<'a>,
    ) -> Result<Cow<'v, str>, ManifestError> {
        match value.get_ref() {
            DeValue::Integer(number) => {
                // As C spells it: TOML's octal is `0o17`.
                let prefix = match number.radix() {
                    2 => "0b",
                    8 => "0",
                    16 => "0x",
                    _ => "",
                };
                Ok(format!("{prefix}{}", number.as_str()).into())
            }
            DeValue::Float(number) => Ok(number.as_str().into()),
            DeValue::Boolean(true) => Ok("1".into()),
            _ => self.text(name, value),
        }
    }

    fn text<'v>(self, name: &str, value: &'v Value<'a>) -> Result<Cow<'v, str>, ManifestError> {
        let wrong = || {
            let found = type_of(value.get_ref());
            self.error(
                &value.span(),
                &format!("`{name}`: expected strings, found {found}"),
            )
        };
        value
            .get_ref()
            .as_str()
            .map(Cow::Borrowed)
            .ok_or_else(wrong)
    }

    fn table<'t>(self, name: &str, value: &'t Value<'a>) -> Result<&'t Table<'a>, ManifestError> {
        let wrong = || {
            let found = type_of(value.get_ref());
            self.error(
                &value.span(),
                &format!("`{name}`: expected a table, found {found}"),
            )
        };
        value.get_ref().as_table().ok_or_else(wrong)
    }

    pub(super) fn error(self, span: &Range<usize>, problem: &str) -> ManifestError {
        ManifestError {
            place: self.place(span),
            problem: problem.to_owned(),
        }
    }

    /// `Cargo.toml:12:3`: lines and columns count from 1, columns in characters.
    fn place(self, span: &Range<usize>) -> String {
        let before = self.text.get(..span.start);
        let before = before.expect("the parser's spans are of this text");
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .expect("a split text has a first part")
            .chars()
            .count()
            + 1;
        format!("{}:{line}:{column}", self.file)
    }
}

/// Returns the type of a value, with its article.
fn type_of(value: &DeValue<'_>) -> String {
    let name = value.type_str();
    let article = if name.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {name}")
}

fn unknown(name: &str, structure: &[&str]) -> String {
    // Of a target's table, those that may stand there.
    let own = |key: &&settings::Key| key.per_target || !structure.is_empty();
    let names = KEYS
        .iter()
        .filter(own)
        .map(|key| key.name)
        .chain(structure.iter().copied());
    let listed: Vec<String> = names.clone().map(|name| format!("`{name}`")).collect();
    format!(
        "unknown key `{name}`{} [OFF501]\nhint: the keys are {}",
        settings::nearest(name, names),
        listed.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(text: &str) -> Result<Vec<Settings>, ManifestError> {
        modules(
            Source {
                file: "Cargo.toml",
                text,
            },
            None,
            "dev",
        )
    }

    fn rejects(text: &str, message: &str) {
        let error = package(text).unwrap_err().to_string();
        // Behind it are all keys.
        let (error, _) = error
            .split_once("\nhint: the keys are `")
            .unwrap_or((&error, ""));
        assert_eq!(error, message);
    }

    #[test]
    fn reads_every_form_of_key() {
        let text = "[package.metadata.offload]\nlanguage = \"openmp\"\nsources = [\"a.c\", \"b.c\"]\nopt-level = 2\nrdc = false\n\
                    define = { TILE = 64, NAME = \"x\", ON = true, OFF = false }\n\
                    [package.metadata.offload.target.\"gfx90a\"]\nflags = [\"-g\"]\n";
        let modules = package(text).unwrap();
        let settings = &modules[0];
        assert_eq!(settings.text("language"), Some("openmp"));
        assert_eq!(settings.list("sources"), ["a.c", "b.c"]);
        assert_eq!(settings.text("opt-level"), Some("2"));
        assert_eq!(settings.flag("rdc"), Some(false));
        let pairs = [
            ("NAME", Some("x")),
            ("OFF", None),
            ("ON", Some("1")),
            ("TILE", Some("64")),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
        assert_eq!(settings.map("define"), pairs.into_iter().collect());
        let own = settings.targets.get("gfx90a").unwrap();
        assert_eq!(own.list("flags"), ["-g"]);
        assert_eq!(settings.origin("sources"), "Cargo.toml:3:1");
    }

    #[test]
    fn defines_numbers_as_c_spells_them() {
        let text = "[package.metadata.offload]\ndefine = { A = 0x40, B = 0o17, C = 0b101, D = 1_000, E = -3, F = 1.5 }\n";
        let found = package(text).unwrap()[0].map("define");
        let values: Vec<&str> = found.values().filter_map(Option::as_deref).collect();
        assert_eq!(values, ["0x40", "017", "0b101", "1000", "-3", "1.5"]);
    }

    #[test]
    fn lays_workspace_package_profile_and_module_over_each_other() {
        let workspace = Source {
            file: "../Cargo.toml",
            text: "[workspace.metadata.offload]\nopt-level = 1\nstd = \"c11\"\ninclude = [\"w\"]\n",
        };
        let text = "[package.metadata.offload]\ninclude = [\"p\"]\nfeature = \"f\"\n\
                    [package.metadata.offload.profile.release]\ninclude = [\"r\"]\n\
                    [[package.metadata.offload.module]]\nname = \"one\"\n\
                    [[package.metadata.offload.module]]\nname = \"two\"\nopt-level = 3\n";
        let source = Source {
            file: "Cargo.toml",
            text,
        };
        let found = modules(source, Some(workspace), "release").unwrap();
        let row = |settings: &Settings| {
            let texts = ["name", "opt-level", "std", "feature"]
                .map(|key| settings.text(key).map(str::to_owned));
            (texts, settings.list("include").to_vec())
        };
        let some = |texts: [&str; 4]| texts.map(|text| Some(text.to_owned()));
        assert_eq!(
            found.iter().map(row).collect::<Vec<_>>(),
            [
                (some(["one", "1", "c11", "f"]), vec!["r".to_owned()]),
                (some(["two", "3", "c11", "f"]), vec!["r".to_owned()]),
            ]
        );
        let dev = modules(source, None, "dev").unwrap();
        assert_eq!(dev[0].list("include"), ["p"]);
    }

    #[test]
    fn names_the_place_of_what_is_wrong() {
        let head = "[package.metadata.offload]\n";
        let with = |line: &str| format!("{head}{line}\n");
        rejects(
            &with("target_s = []"),
            "Cargo.toml:2:1: unknown key `target_s`; did you mean `targets`? [OFF501]",
        );
        rejects(
            &with("  wave = 1"),
            "Cargo.toml:2:3: unknown key `wave` [OFF501]",
        );
        rejects(
            &with("rdc = \"off\""),
            "Cargo.toml:2:7: `rdc`: expected `true` or `false`, found a string",
        );
        rejects(
            &with("sources = \"a.c\""),
            "Cargo.toml:2:11: `sources`: expected an array of strings, found a string",
        );
        rejects(
            &with("sources = [1]"),
            "Cargo.toml:2:12: `sources`: expected strings, found an integer",
        );
        rejects(
            &with("language = \"openm\""),
            "Cargo.toml:2:12: `language`: `openm` is not one of `openmp`, `hip`, `cuda`, `bitcode`, `rust`, `prebuilt`; did you mean `openmp`?",
        );
        rejects(
            &with("opt-level = 4"),
            "Cargo.toml:2:13: `opt-level`: `4` is not one of `0`, `1`, `2`, `3`, `s`, `z`",
        );
        rejects(
            &with("module = 3"),
            "Cargo.toml:2:10: `module` is an array of tables: [[package.metadata.offload.module]]",
        );
        rejects(
            &with("module = [{ std = \"c11\" }]"),
            "Cargo.toml:2:11: a module needs a `name`",
        );
        rejects(
            &with("target = [\"gfx90a\"]"),
            "Cargo.toml:2:10: `target`: expected a table, found an array; did you mean `targets`? [OFF501]",
        );
        rejects(
            &with("target = { gfx90a = \"-g\" }"),
            "Cargo.toml:2:21: `target`: expected a table, found a string",
        );
        rejects(
            &with("target = { gfx90a = { sources = [] } }"),
            "Cargo.toml:2:23: `sources` cannot be set for one target",
        );
        rejects(
            "[package]\nname = \"x\"\n",
            "Cargo.toml:1:1: missing [package.metadata.offload]\nhint: add this table with `language`, `sources` and `targets`",
        );
        let broken = package("[package\n").unwrap_err().to_string();
        assert!(broken.starts_with("Cargo.toml:1:9: "), "{broken}");
    }
}
