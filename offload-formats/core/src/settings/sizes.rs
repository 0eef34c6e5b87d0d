//! Sizes as users write them, in options and variables.

/// Reads a size from an option, or else from a variable; `names` are theirs, the option's without dashes. An empty
/// variable counts as unset.
///
/// # Errors
///
/// Returns a message if the value is not a size.
pub(super) fn setting(
    names: [&str; 2],
    option: Option<&str>,
    variable: Option<&str>,
) -> Result<Option<u64>, String> {
    let variable = variable.filter(|text| !text.is_empty());
    let (name, text) = match (option, variable) {
        (Some(text), _) => (format!("--{}", names[0]), text),
        (None, Some(text)) => (names[1].to_owned(), text),
        (None, None) => return Ok(None),
    };
    let size = size(text).ok_or_else(|| {
        format!("{name}: `{text}` is not a size; expected bytes, or a number with K, M, G or T")
    })?;
    Ok(Some(size))
}

/// Reads a size; suffixes are powers of 1024.
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
}
