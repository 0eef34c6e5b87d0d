//! The keys of `[package.metadata.offload]`: one table, from which the manifest's reader, the
//! `OFFLOAD_*` variables and the methods of `Build` follow.

use crate::declare::language::{Container, ImageSources, Language};
use crate::error::Error;
use offload_formats_core::by_name::ByName;
use std::collections::BTreeSet;
use std::fmt;

/// A key: what it is called in the manifest, and what it holds.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub form: Form,
    /// May stand in `[package.metadata.offload.target."<target>"]`.
    pub per_target: bool,
}

/// Form of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One string.
    Text,
    /// Strings; in a variable they are divided by `;`, or else by `,`.
    List,
    /// Options of a compiler, which may contain commas; in a variable they are divided by `;`, or else by blanks, as in `CFLAGS`, and by commas
    /// before a `-`.
    Options,
    /// Names with a string, a number or `true`; in a variable `NAME=value;NAME2`, or else with `,`.
    Map,
    /// One of these.
    Choice(&'static [&'static str]),
    /// `true` or `false`; in a variable also `1`, `0`, `on` and `off`.
    Flag,
}

pub const KEYS: &[Key] = &[
    key("language", Form::Choice(&Language::NAMES)),
    key("sources", Form::List),
    key("crate", Form::Text),
    key("features", Form::List),
    key("default-features", Form::Flag),
    key("targets", Form::List),
    key("include", Form::List),
    target_key("archives", Form::List),
    target_key("link", Form::List),
    key("artifact", Form::List),
    key("container", Form::Choice(&Container::NAMES)),
    key("compress", Form::Text),
    key("embed", Form::Choice(&["auto", "link", "include"])),
    target_key("define", Form::Map),
    target_key("flags", Form::Options),
    key("opt-level", Form::Choice(&["0", "1", "2", "3", "s", "z"])),
    key("std", Form::Text),
    key("rdc", Form::Flag),
    key("images", Form::Choice(&ImageSources::NAMES)),
    key("host", Form::Flag),
    key("cudart", Form::Choice(&["shared", "static", "none"])),
    target_key("exclude", Form::List),
    target_key("optional-kernels", Form::List),
    key("compiler", Form::Text),
    key("launcher", Form::Text),
    key(
        "register",
        Form::Choice(&["auto", "complete", "deferred", "none"]),
    ),
    key("missing", Form::Choice(&["error", "skip", "stub"])),
    key("feature", Form::Text),
    key("name", Form::Text),
];

const fn key(name: &'static str, form: Form) -> Key {
    let per_target = false;
    Key {
        name,
        form,
        per_target,
    }
}

const fn target_key(name: &'static str, form: Form) -> Key {
    let per_target = true;
    Key {
        name,
        form,
        per_target,
    }
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    Text(String),
    List(Vec<String>),
    /// Values by name: empty for a name without a value, `None` for one that a layer below may have and this one leaves
    /// out.
    Map(ByName<Option<String>>),
    Flag(bool),
}

/// A value, and where it was written: `Cargo.toml:12:3`, `OFFLOAD_TARGETS`, `Build::targets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub setting: Setting,
    pub origin: String,
    pub reach: Reach,
}

/// Scope of a setting. A setting without effect is an error, except in scopes shared with other modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// One module.
    #[default]
    Module,
    /// All modules of the package.
    Package,
    /// Other packages, too.
    World,
}

/// Values of keys, and those that hold for one target only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Keys, sorted, with their values.
    values: Vec<(&'static str, Entry)>,
    pub targets: ByName<Settings>,
    /// Whatever any layer lists under `targets`, for this profile or another: code may ask for it by `cfg`.
    pub listed: BTreeSet<String>,
    /// Targets that have a table in a profile, of this build or another.
    pub in_profiles: BTreeSet<String>,
    /// The value of `compiler` that one for other packages, too, has replaced: a rustc is not replaced by a clang.
    pub replaced_compiler: Option<Entry>,
    /// Error about the first path from code that is not UTF-8: values are texts.
    pub invalid_path: Option<String>,
}

impl Settings {
    /// Puts a value in the place of what was there; names of a map join those that were there.
    pub fn set(&mut self, name: &'static str, setting: Setting, origin: impl fmt::Display) {
        self.put(name, setting, origin.to_string(), Reach::default());
    }

    /// Replaces a value by what it stands for: its origin and its reach stay.
    pub fn replace(&mut self, name: &'static str, setting: Setting) {
        if let Some(Entry { origin, reach, .. }) = self.find(name).cloned() {
            self.put(name, setting, origin, reach);
        }
    }

    fn put(&mut self, name: &'static str, setting: Setting, origin: String, reach: Reach) {
        debug_assert!(find(name).is_some(), "`{name}` is a row of KEYS");
        if let ("targets", Setting::List(list)) = (name, &setting) {
            self.listed.extend(list.iter().cloned());
        }
        let mut entry = Entry {
            setting,
            origin,
            reach,
        };
        match self.place(name) {
            Ok(place) => {
                let (_, known) = &mut self.values[place];
                if let (Setting::Map(new), Setting::Map(old)) = (&entry.setting, &known.setting) {
                    let mut all = old.clone();
                    for (name, value) in new.iter() {
                        all.insert(name.to_owned(), value.clone());
                    }
                    entry.setting = Setting::Map(all);
                }
                *known = entry;
            }
            Err(place) => self.values.insert(place, (name, entry)),
        }
    }

    /// Returns the place of a key, or where it is to be inserted.
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.values.binary_search_by(|(key, _)| (*key).cmp(name))
    }

    fn find(&self, name: &str) -> Option<&Entry> {
        let (_, entry) = self.values.get(self.place(name).ok()?)?;
        Some(entry)
    }

    /// The same values, written for so much.
    pub fn reaching(mut self, reach: Reach) -> Self {
        for (_, entry) in &mut self.values {
            entry.reach = reach;
        }
        let targets = std::mem::take(&mut self.targets);
        for (target, settings) in targets.iter() {
            let settings = settings.clone().reaching(reach);
            self.targets.insert(target.to_owned(), settings);
        }
        self
    }

    /// Lays `over` on top of these.
    pub fn overlay(&mut self, over: &Settings) {
        for (name, entry) in &over.values {
            if *name == "compiler" && entry.reach == Reach::World {
                self.replaced_compiler = self.find(name).cloned();
            }
            self.put(
                name,
                entry.setting.clone(),
                entry.origin.clone(),
                entry.reach,
            );
        }
        self.listed.extend(over.listed.iter().cloned());
        let in_profiles = over.in_profiles.iter();
        self.in_profiles.extend(in_profiles.cloned());
        for (target, settings) in over.targets.iter() {
            let own = self.targets.or_insert(target, Settings::default());
            own.overlay(settings);
        }
    }

    pub fn entry(&self, name: &'static str) -> Option<&Entry> {
        debug_assert!(find(name).is_some(), "`{name}` is a row of KEYS");
        self.find(name)
    }

    /// Returns the place where the value of `name` was written.
    pub fn origin(&self, name: &'static str) -> &str {
        self.entry(name).map_or("default", |entry| &entry.origin)
    }

    /// Returns the error of a value that was read: where it was written, and what is wrong with it.
    pub fn error_at(&self, name: &'static str, problem: impl fmt::Display) -> Error {
        Error::new(format_args!("{}: {problem}", self.origin(name)))
    }

    pub fn text(&self, name: &'static str) -> Option<&str> {
        match &self.entry(name)?.setting {
            Setting::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn flag(&self, name: &'static str) -> Option<bool> {
        match self.entry(name)?.setting {
            Setting::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    pub fn list(&self, name: &'static str) -> &[String] {
        match self.entry(name).map(|entry| &entry.setting) {
            Some(Setting::List(list)) => list,
            _ => &[],
        }
    }

    /// Tells whether the list `name` has values, for all targets or for one.
    pub fn has_list(&self, name: &'static str) -> bool {
        let mut places = std::iter::once(self).chain(self.targets.values());
        places.any(|settings| !settings.list(name).is_empty())
    }

    pub fn map(&self, name: &'static str) -> ByName<Option<String>> {
        match self.entry(name).map(|entry| &entry.setting) {
            Some(Setting::Map(map)) => map.clone(),
            _ => ByName::default(),
        }
    }
}

/// Returns the options in a word without blanks: each comma before a `-` divides, up to an option whose value may have such
/// commas.
fn options(word: &str) -> Vec<&str> {
    let (mut options, mut rest) = (Vec::new(), word);
    let has_commas = |option: &str| {
        let passes_on = ["-X", "-W", "-D"]
            .iter()
            .any(|start| option.starts_with(start));
        passes_on || option.contains("-options=")
    };
    while let Some((option, after)) = rest
        .split_once(",-")
        .filter(|(option, _)| !has_commas(option))
    {
        options.push(option);
        rest = rest
            .get(rest.len() - after.len() - 1..)
            .expect("it begins at `-`");
    }
    options.push(rest.trim_end_matches(','));
    options
}

impl Form {
    /// Reads the value of an `OFFLOAD_*` variable.
    pub fn parse(self, text: &str) -> Result<Setting, String> {
        let parts = || {
            let divides = |found: char| match self {
                _ if text.contains(';') => found == ';',
                Form::Options => found.is_whitespace(),
                _ => found == ',',
            };
            text.split(divides)
                .map(str::trim)
                .filter(|part| !part.is_empty())
        };
        Ok(match self {
            Form::Options if !text.contains(';') => {
                Setting::List(parts().flat_map(options).map(str::to_owned).collect())
            }
            Form::List | Form::Options => Setting::List(parts().map(str::to_owned).collect()),
            Form::Map => {
                let pair = |part: &str| match part.split_once('=') {
                    Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                    None => (part.to_owned(), Some("1".to_owned())),
                };
                Setting::Map(parts().map(pair).collect())
            }
            Form::Text | Form::Choice(_) => self.check(Setting::Text(text.to_owned()))?,
            Form::Flag => match text {
                "1" | "true" | "on" => Setting::Flag(true),
                "0" | "false" | "off" => Setting::Flag(false),
                _ => {
                    return Err(format!(
                        "`{text}` is not one of `true`, `false`, `1`, `0`, `on`, `off`"
                    ));
                }
            },
        })
    }

    /// Rejects a text that is not one of the choices.
    pub fn check(self, setting: Setting) -> Result<Setting, String> {
        if let (Form::Choice(choices), Setting::Text(text)) = (self, &setting) {
            if !choices.contains(&text.as_str()) {
                let hint = nearest(text, choices.iter().copied());
                return Err(format!("`{text}` is not one of {}{hint}", quoted(choices)));
            }
        }
        Ok(setting)
    }
}

/// The row of a key.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// `; did you mean …?`, when one of `names` is near enough to `found` to be a slip of the hand.
pub fn nearest<'n>(found: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    // Who writes `OpenMP` means `openmp`.
    let lower = found.to_lowercase();
    let best = names
        .into_iter()
        .map(|name| (distance(&lower, &name.to_lowercase()), name))
        .min();
    match best {
        Some((edits, name)) if edits * 3 <= found.chars().count() => {
            format!("; did you mean `{name}`?")
        }
        _ => String::new(),
    }
}

/// Counts the characters to insert, remove or replace (Levenshtein).
#[must_use]
pub fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, a) in from.chars().enumerate() {
        let mut next = vec![index + 1];
        for (column, b) in to.iter().enumerate() {
            let replaced = row[column] + usize::from(a != *b);
            next.push(replaced.min(row[column + 1] + 1).min(next[column] + 1));
        }
        row = next;
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_is_near_and_nothing_else() {
        let names = || KEYS.iter().map(|key| key.name);
        assert_eq!(nearest("target", names()), "; did you mean `targets`?");
        assert_eq!(nearest("opt_level", names()), "; did you mean `opt-level`?");
        assert_eq!(nearest("wavefront-size", names()), "");
    }

    #[test]
    fn reads_variables_by_the_form_of_their_key() {
        let parts = |form: Form, text: &str| match form.parse(text).unwrap() {
            Setting::List(parts) => parts,
            other => panic!("{other:?}"),
        };
        let pair = ["gfx90a:xnack-", "sm_80"];
        assert_eq!(parts(Form::List, "gfx90a:xnack-; sm_80;"), pair);
        assert_eq!(parts(Form::List, "gfx90a:xnack-, sm_80,"), pair);
        assert_eq!(
            parts(Form::List, "my kernels/a,b.hip;"),
            ["my kernels/a,b.hip"]
        );
        assert_eq!(
            parts(Form::Options, " -Xptxas=-v,-O3\t-Wl,x -g "),
            ["-Xptxas=-v,-O3", "-Wl,x", "-g"]
        );
        assert_eq!(
            parts(Form::Options, "-include;my header.h; -DX=1,2"),
            ["-include", "my header.h", "-DX=1,2"]
        );
        let map = Form::Map.parse("TILE=64;FAST").unwrap();
        let pairs = [
            ("FAST".to_owned(), Some("1".to_owned())),
            ("TILE".to_owned(), Some("64".to_owned())),
        ];
        assert_eq!(map, Setting::Map(pairs.into_iter().collect()));
        for (text, options) in [
            ("-nogpulib,-nogpuinc,", &["-nogpulib", "-nogpuinc"][..]),
            (
                "-g,--ptxas-options=-v,-O3 -w",
                &["-g", "--ptxas-options=-v,-O3", "-w"],
            ),
            ("-Xptxas=-v,-O3", &["-Xptxas=-v,-O3"]),
            ("-DPAIR=1,-2", &["-DPAIR=1,-2"]),
            ("-mattr=a,b", &["-mattr=a,b"]),
        ] {
            assert_eq!(parts(Form::Options, text), options);
        }
        let map = Form::Map.parse("SIZES=1,2,3;").unwrap();
        let pair = ("SIZES".to_owned(), Some("1,2,3".to_owned()));
        assert_eq!(map, Setting::Map([pair].into_iter().collect()));
        assert_eq!(Form::Flag.parse("on"), Ok(Setting::Flag(true)));
        assert_eq!(Form::Flag.parse("0"), Ok(Setting::Flag(false)));
        let error = Form::Flag.parse("yes").unwrap_err();
        assert_eq!(
            error,
            "`yes` is not one of `true`, `false`, `1`, `0`, `on`, `off`"
        );
        let error = find("register").unwrap().form.parse("complet").unwrap_err();
        assert_eq!(
            error,
            "`complet` is not one of `auto`, `complete`, `deferred`, `none`; did you mean `complete`?"
        );
    }

    #[test]
    fn lays_layers_over_each_other() {
        let mut below = Settings::default();
        let pair = |name: &str| (name.to_owned(), Some(String::new()));
        let map = |name: &str| Setting::Map([pair(name)].into_iter().collect());
        below.set("define", map("A"), "workspace");
        below.set("targets", Setting::List(vec!["sm_80".into()]), "workspace");
        let mut over = Settings::default();
        over.set("define", map("B"), "package");
        over.set("targets", Setting::List(vec!["gfx90a".into()]), "package");
        below.overlay(&over);
        assert_eq!(below.list("targets"), ["gfx90a"]);
        assert_eq!(below.map("define").names().collect::<Vec<_>>(), ["A", "B"]);
        assert_eq!(below.origin("targets"), "package");
    }
}
