//! The one error of the build-script API: opaque, printed as a chain.

use std::error::Error as StdError;
use std::fmt;

/// Why device code could not be built.
///
/// [`Display`](fmt::Display) prints what failed, then each cause, then hints. [`Debug`], which Cargo shows
/// for an error that `main` returns, prints the same, unless Cargo has shown it already, as an error of its own.
pub struct Error {
    what: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    missing: bool,
    reported: bool,
}

impl Error {
    pub(crate) fn new(what: impl fmt::Display) -> Self {
        Self {
            what: what.to_string(),
            source: None,
            missing: false,
            reported: false,
        }
    }

    /// A program that device code needs is not installed: `missing = "stub"` does without.
    pub(crate) fn missing(what: impl fmt::Display) -> Self {
        Self {
            missing: true,
            ..Self::new(what)
        }
    }

    /// This error, after Cargo was told about it.
    pub(crate) fn reported(self) -> Self {
        Self {
            reported: true,
            ..self
        }
    }

    pub(crate) fn is_missing(&self) -> bool {
        self.missing
    }

    /// `what` failed because of `source`.
    pub(crate) fn because(
        what: impl fmt::Display,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self {
            what: what.to_string(),
            source: Some(source.into()),
            missing: false,
            reported: false,
        }
    }
}

/// For `map_err`: a failure to read, write or rename `path`.
pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.display().to_string();
    move |source| Error::because(path, source)
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
        if self.reported {
            return f.write_str("device code was not built; Cargo shows the reason above");
        }
        fmt::Display::fmt(self, f)
    }
}

/// Its causes are in its own text.
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
        let short = "device code was not built; Cargo shows the reason above";
        assert_eq!(format!("{:?}", error.reported()), short);
    }
}
