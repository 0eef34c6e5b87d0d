//! PTX: the assembly that NVIDIA's driver compiles, as text.
//!
//! These functions do what `fatbinary` does, which recognizes only comments and strings of the
//! language.
//!
//! Specification: NVIDIA's "PTX ISA". The text that `fatbinary` removes was measured with CUDA
//! 13.5, over random text.

/// The directive that starts a text for the driver, after comments.
const VERSION: &[u8] = b".version";

/// Tells whether a text begins as PTX for the driver does: after comments, with `.version`.
#[must_use]
pub fn is_start(head: &[u8]) -> bool {
    stripped(head).trim_ascii_start().starts_with(VERSION)
}

/// Reads the version of the language: major and minor number. Like `fatbinary`, uses the first
/// mention, and one digit of the minor number.
#[must_use]
pub fn version(text: &[u8]) -> Option<(u16, u16)> {
    let start = text
        .windows(VERSION.len())
        .position(|word| word == VERSION)?;
    let rest = text.get(start + VERSION.len()..)?.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (major, minor) = (rest.get(..digits)?, rest.get(digits..)?);
    let &[b'.', minor @ b'0'..=b'9', ..] = minor else {
        return None;
    };
    let major = std::str::from_utf8(major).ok()?.parse().ok()?;
    Some((major, (minor - b'0').into()))
}

/// Reads the processor of the text, such as `sm_90a`. It ends at the first character that no name has: `ptxas` accepts
/// `.target sm_35.address_size 64`, which NVIDIA's `libcupti.so` contains.
#[must_use]
pub fn target(text: &[u8]) -> Option<String> {
    let text = stripped(text);
    let text = String::from_utf8_lossy(&text);
    let (_, rest) = text.split_once(".target")?;
    let divides = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let processor = rest.trim_start().split(divides).next()?;
    Some(processor.to_owned())
}

/// Returns the text as `fatbinary` keeps it: without comments, and without blanks that do not
/// separate words. Strings stay unchanged.
#[must_use]
pub fn stripped(text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut after_blank = false;
    let mut before = None;
    while let [first, after @ ..] = rest {
        let size = match (first, after) {
            (b'/', [b'/', ..]) => skip(rest, |byte| matches!(byte, b'\n' | b'\r')),
            // The star that opens a comment may also close it.
            (b'/', [b'*', ..]) => block(after),
            (b'"', _) if before != Some(b'\\') => {
                let size = string(rest);
                kept.extend_from_slice(rest.split_at(size).0);
                size
            }
            (blank @ (b' ' | b'\t'), _) => {
                if !after_blank {
                    kept.push(*blank);
                }
                1
            }
            _ => {
                kept.push(*first);
                1
            }
        };
        after_blank = size == 1 && matches!(first, b' ' | b'\t'..=b'\r');
        before = size.checked_sub(1).and_then(|last| rest.get(last)).copied();
        rest = rest.split_at(size).1;
    }
    kept
}

/// Returns the number of bytes before the first that `ends` accepts.
fn skip(text: &[u8], ends: impl Fn(&u8) -> bool) -> usize {
    text.iter().position(ends).unwrap_or(text.len())
}

/// Returns the size of a comment, given the text after its slash. Without an end, it takes all
/// text.
fn block(after: &[u8]) -> usize {
    let end = after.windows(2).position(|two| two == b"*/");
    end.map_or(after.len() + 1, |end| end + 3)
}

/// Returns the size of the string at the start of `text`, quotes included.
fn string(text: &[u8]) -> usize {
    let mut bytes = text.iter().enumerate().skip(1);
    while let Some((index, byte)) = bytes.next() {
        match byte {
            b'"' => return index + 1,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ptxas` of CUDA 13.5 accepts the texts for processors that it knows.
    #[test]
    fn reads_the_target_up_to_the_next_word() {
        for (text, expected) in [
            (
                ".version 8.0\n.target sm_90a, texmode_independent\n",
                "sm_90a",
            ),
            (
                ".version 8.0.target sm_35.address_size 64 .entry k(){ret;}",
                "sm_35",
            ),
            (".version 8.0.target sm_20.entry k(){ret;}", "sm_20"),
            (".target/**/sm_100f/**/.address_size 64", "sm_100f"),
        ] {
            assert_eq!(target(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(target(b".version 8.0"), None);
    }

    #[test]
    fn leaves_out_comments_and_no_strings() {
        let cases: [(&[u8], &[u8]); 4] = [
            (b"a // b\nc", b"a \nc"),
            (b"\"a // \\\"b\" /* c */d", b"\"a // \\\"b\" d"),
            // As `fatbinary` of CUDA 13.5 keeps both.
            (b"\\\"// a", b"\\\""),
            (b"a/* b", b"a"),
        ];
        for (text, expected) in cases {
            assert_eq!(stripped(text), expected, "{}", text.escape_ascii());
        }
    }
}
