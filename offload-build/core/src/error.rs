//! The one error of the build-script API: opaque, printed as a chain.

use std::error::Error as StdError;
use std::fmt;

/// The reason why device code was not built.
///
/// [`Display`](fmt::Display) prints what failed, then each cause, then hints. Errors that users can cause have a code, such as
/// `[OFF601]`, which `docs/troubleshooting.md` explains. [`Debug`], which Rust prints for an error that `main` returns and Cargo
/// shows, adds the command that explains it.
pub struct Error {
    what: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    missing: bool,
}

impl Error {
    #[doc(hidden)]
    pub fn new(what: impl fmt::Display) -> Self {
        Self {
            what: what.to_string(),
            source: None,
            missing: false,
        }
    }

    /// A program that device code needs is not installed: `missing = "stub"` does without.
    #[doc(hidden)]
    pub fn missing(what: impl fmt::Display) -> Self {
        Self {
            missing: true,
            ..Self::new(what)
        }
    }

    /// This error with a line more.
    #[doc(hidden)]
    pub fn with_line(self, line: impl fmt::Display) -> Self {
        Self {
            what: format!("{self}\n{line}"),
            source: None,
            missing: self.missing,
        }
    }

    #[doc(hidden)]
    pub fn is_missing(&self) -> bool {
        self.missing
    }

    /// `what` failed because of `source`.
    #[doc(hidden)]
    pub fn because(
        what: impl fmt::Display,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self {
            what: what.to_string(),
            source: Some(source.into()),
            missing: false,
        }
    }
}

/// A part of a build, and the section of `docs/troubleshooting.md` for its errors that have none of their own.
#[derive(Clone, Copy, Debug)]
pub enum BuildPart {
    /// Reading and checking what was declared.
    Declaration,
    /// Reading images and libraries that are there already.
    Inputs,
    /// Asking this machine for what a module needs.
    Machine,
    /// Compiles, links and other steps.
    Steps,
}

impl BuildPart {
    /// Returns a function for `map_err`: the error with the code of this part, unless its text has a code.
    pub fn coded(self) -> impl FnOnce(Error) -> Error {
        let code = match self {
            Self::Declaration => "[OFF500]",
            Self::Inputs => "[OFF511]",
            Self::Machine => "[OFF600]",
            Self::Steps => "[OFF700]",
        };
        move |error| Error {
            what: with_code(&error.to_string(), code),
            source: None,
            missing: error.missing,
        }
    }
}

/// Returns an error's text with `code`, such as `[OFF500]`, at the end of its first line, unless it has a code.
#[must_use]
pub fn with_code(text: &str, code: &str) -> String {
    if self::code(text).is_some() {
        return text.to_owned();
    }
    let end = text.find('\n').unwrap_or(text.len());
    let (problem, rest) = text.split_at(end);
    format!("{problem} {code}{rest}")
}

/// Returns the number of the first code in an error's text.
fn code(text: &str) -> Option<&str> {
    // Texts of compilers may have such a bracket, too.
    let codes = text.split("[OFF").skip(1);
    codes
        .filter_map(|rest| rest.get(..4)?.strip_suffix(']'))
        .find(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns a function for `map_err`: a failure to read, write or rename `path`.
pub fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.display().to_string();
    move |source| Error::because(path, with_code(&source.to_string(), "[OFF509]"))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        // An error of ours that wraps another prints the rest of the chain itself.
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
            let mut cause = source.source();
            while let Some(next) = cause {
                let text = next.to_string();
                if !source.to_string().contains(&text) {
                    write!(f, ": {text}")?;
                }
                cause = next.source();
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_string();
        f.write_str(&text)?;
        match code(&text) {
            Some(number) => write!(f, "\nhelp: `cargo offload explain OFF{number}`"),
            None => Ok(()),
        }
    }
}

/// The error's causes are in its own text.
impl StdError for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_the_whole_chain_once() {
        let cause = std::io::Error::new(std::io::ErrorKind::StorageFull, "no space left");
        let inner = Error::because("out/k.o", cause);
        let error = Error::because("module `kernels`", inner);
        assert_eq!(
            error.to_string(),
            "module `kernels`: out/k.o: no space left"
        );
        assert_eq!(format!("{error:?}"), error.to_string());
    }

    #[test]
    fn puts_the_code_of_a_file_error_before_its_hint() {
        let cause = std::io::Error::other("names no files\nhint: compile again");
        let error = io(std::path::Path::new("k.d"))(cause);
        assert_eq!(
            error.to_string(),
            "k.d: names no files [OFF509]\nhint: compile again"
        );
    }

    #[test]
    fn adds_the_command_that_explains_a_code() {
        let error = Error::new("no compiler [OFF601]\nhint: install clang");
        assert_eq!(
            format!("{error:?}"),
            "no compiler [OFF601]\nhint: install clang\nhelp: `cargo offload explain OFF601`"
        );
        assert_eq!(
            error.to_string(),
            "no compiler [OFF601]\nhint: install clang"
        );
        let other = Error::new("k.c:1: [OFFSET] is wrong, [OFF");
        assert_eq!(format!("{other:?}"), other.to_string());
        let both = Error::new("k.c:1: [OFFSET] is wrong [OFF701]");
        assert!(format!("{both:?}").ends_with(" OFF701`"), "{both:?}");
    }
}
