//! Options that may differ from target to target.

use crate::declare::option_files::expanded;
use crate::declare::settings::Settings;
use crate::error::Error;
use offload_formats_core::by_name::ByName;
use std::path::Path;

/// Options of the compiles for the host, or for one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub opt_level: String,
    pub define: ByName<String>,
    pub flags: Vec<String>,
    /// Sources that are left out.
    pub exclude: Vec<glob::Pattern>,
}

impl Flags {
    /// Reads those of `settings`; `opt_level` is the default.
    pub fn new(settings: &Settings, opt_level: &str) -> Result<Self, Error> {
        let pattern = |text: &String| {
            glob::Pattern::new(text.trim_start_matches("./"))
                .map_err(|error| settings.error_at("exclude", format_args!("`{text}`: {error}")))
        };
        let mut define = ByName::default();
        for (name, value) in settings.map("define").iter() {
            if !is_macro(name) {
                let problem =
                    format!("`{name}` is not a macro: expected an identifier, or `NAME(x, y)`");
                return Err(settings.error_at("define", problem));
            }
            if let Some(value) = value {
                define.insert(name.to_owned(), value.clone());
            }
        }
        Ok(Self {
            opt_level: settings.text("opt-level").unwrap_or(opt_level).to_owned(),
            define,
            flags: settings.list("flags").to_vec(),
            exclude: settings
                .list("exclude")
                .iter()
                .map(pattern)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns the language that `-x` gives to all sources, also in a file of options of the package in `root`; none if their
    /// names tell it. The last `-x` counts.
    pub fn named_language(&self, root: &Path) -> Option<String> {
        let mut language = None;
        let mut flags = expanded(&self.flags, root).into_iter();
        while let Some(flag) = flags.next() {
            // `-Xclang` and others, whose argument is an option of another program.
            if flag.starts_with("-X") && !flag.contains('=') {
                flags.next();
                continue;
            }
            match flag.strip_prefix("-x") {
                Some("") => language = flags.next(),
                Some(name) => language = Some(name.to_owned()),
                None => {}
            }
        }
        language.filter(|name| name != "none")
    }
}

/// Tells whether compilers accept it after `-D`: a name, with or without parameters.
fn is_macro(name: &str) -> bool {
    let Some((name, rest)) = name.split_once('(') else {
        return is_identifier(name);
    };
    let is_parameter = |name: &str| is_identifier(name) || name == "...";
    let parameters = rest.strip_suffix(')').map(str::trim);
    is_identifier(name)
        && parameters
            .is_some_and(|all| all.is_empty() || all.split(',').map(str::trim).all(is_parameter))
}

/// Tells whether `name` is an identifier of C, and of Rust unless it is a keyword.
pub(super) fn is_identifier(name: &str) -> bool {
    let letter = |char: char| char.is_ascii_alphabetic() || char == '_';
    name.starts_with(letter)
        && name
            .chars()
            .all(|char| letter(char) || char.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_language_of_the_last_option() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::write(root.join("cpp"), "-O2 -x\nc++\n").unwrap();
        for (flags, expected) in [
            (&["-O2", "-X", "-D", "x"][..], None),
            (&["-x", "c++"], Some("c++")),
            (&["-xc++", "-O2"], Some("c++")),
            (&["-x", "c", "-x", "c++"], Some("c++")),
            (&["-xc++", "-x", "c"], Some("c")),
            (&["-x", "c++", "-xnone"], None),
            (&["@cpp"], Some("c++")),
            (&["@cpp", "-x", "c"], Some("c")),
            (&["-xc", "@cpp"], Some("c++")),
            (&["-x"], None),
        ] {
            let own = Flags {
                flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
                ..Flags::default()
            };
            assert_eq!(own.named_language(root).as_deref(), expected, "{flags:?}");
        }
    }
}
