//! The limit on what compressed bundles claim to contain: one option and one variable of every tool.

use offload_formats::container::bundled::DEFAULT_LIMIT;

/// The option, without dashes.
pub(crate) const OPTION: &str = "max-decompressed-size";

/// The variable that holds if the option is not given.
pub(crate) const VARIABLE: &str = "OFFLOAD_MAX_DECOMPRESSED_SIZE";

/// The line of help; each tool adds it to its table.
pub(crate) const HELP: &str =
    "Refuse compressed bundles that claim more; bytes, or with K, M, G, T; default 8G";

/// The limit in bytes, from the value of the option and that of the variable.
///
/// # Errors
///
/// When the one that holds is not a size.
pub(crate) fn limit(option: Option<&str>, variable: Option<&str>) -> Result<u64, String> {
    let variable = variable.filter(|text| !text.is_empty());
    let (name, text) = match (option, variable) {
        (Some(text), _) => (format!("--{OPTION}"), text),
        (None, Some(text)) => (VARIABLE.to_owned(), text),
        (None, None) => return Ok(DEFAULT_LIMIT),
    };
    size(text).ok_or_else(|| {
        format!("{name}: `{text}` is not a size; expected bytes, or a number with K, M, G or T")
    })
}

/// The value of the variable.
pub(crate) fn variable() -> Option<String> {
    let value = std::env::var_os(VARIABLE)?;
    Some(value.to_string_lossy().into_owned())
}

/// Says how to allow more.
pub(crate) fn hint() -> String {
    format!("--{OPTION}=<size> or {VARIABLE} allows more")
}

/// Reads a size; the letters are powers of 1024.
fn size(text: &str) -> Option<u64> {
    let letters = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let last = text.chars().last()?.to_ascii_uppercase();
    let letter = letters.iter().find(|(letter, _)| *letter == last);
    let (digits, shift) = match letter {
        Some((_, shift)) => (text.get(..text.len().checked_sub(1)?)?, *shift),
        None => (text, 0),
    };
    if digits.starts_with('+') {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes() {
        for (text, expected) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("3k", Some(3072)),
            ("8G", Some(8 << 30)),
            ("16777216T", None),
            ("1GB", None),
            ("+1", None),
            ("-1", None),
            ("G", None),
            ("", None),
            ("1\u{130}", None),
        ] {
            assert_eq!(size(text), expected, "{text}");
        }
    }

    #[test]
    fn prefers_the_option() {
        assert_eq!(limit(Some("1"), Some("x")), Ok(1));
        assert_eq!(limit(None, Some("2M")), Ok(2 << 20));
        assert_eq!(limit(None, Some("")), Ok(DEFAULT_LIMIT));
        let expected = "is not a size; expected bytes, or a number with K, M, G or T";
        let problem = limit(None, Some("x")).unwrap_err();
        assert_eq!(problem, format!("{VARIABLE}: `x` {expected}"));
        let problem = limit(Some("y"), None).unwrap_err();
        assert_eq!(problem, format!("--{OPTION}: `y` {expected}"));
    }
}
