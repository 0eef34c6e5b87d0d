//! Options that may differ from target to target.

use crate::declare::settings::Settings;
use crate::error::Error;
use offload_formats_core::by_name::ByName;

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
