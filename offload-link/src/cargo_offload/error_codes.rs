//! Sections of `docs/troubleshooting.md` about errors of builds and links, which print the code of their section.

/// The page; the link in the package's folder makes it part of the package.
const PAGE: &str = include_str!("../../troubleshooting.md");

/// A section with a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ErrorSection {
    /// Code that the error prints, such as `OFF601`.
    pub(super) code: &'static str,
    /// Error in a few words.
    pub(super) title: &'static str,
    /// Markdown after the heading: the error's texts, and what to do.
    pub(super) text: &'static str,
}

/// Returns the sections with a code, in the order of the page.
pub(super) fn sections() -> impl Iterator<Item = ErrorSection> {
    PAGE.split("\n### ").filter_map(|section| {
        let (heading, text) = section.split_once('\n')?;
        let (code, title) = heading.split_once(": ")?;
        // The last section before a heading of a higher level ends there.
        let (text, _) = text.split_once("\n## ").unwrap_or((text, ""));
        code.starts_with("OFF").then_some(ErrorSection {
            code,
            title,
            text: text.trim(),
        })
    })
}

/// Finds the section of a code; case does not matter.
pub(super) fn find(code: &str) -> Option<ErrorSection> {
    sections().find(|section| section.code.eq_ignore_ascii_case(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_ascending_codes_and_whole_sections() {
        let codes: Vec<&str> = sections().map(|section| section.code).collect();
        assert!(codes.len() > 20, "{codes:?}");
        assert!(codes.is_sorted_by(|one, two| one < two), "{codes:?}");
        for section in sections() {
            let number = section.code.strip_prefix("OFF").expect("it starts so");
            let number = number.parse::<u16>().unwrap();
            // Lower codes are those of `verify`.
            assert!((500..900).contains(&number), "{section:?}");
            assert!(!section.text.contains("\n#"), "{section:?}");
            assert!(section.text.ends_with(['.', '|', ')']), "{section:?}");
            assert_eq!(find(&section.code.to_lowercase()), Some(section));
        }
        assert_eq!(find("OFF101"), None);
    }
}
