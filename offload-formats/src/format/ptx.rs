//! PTX: the assembly that NVIDIA's driver compiles, as text.
//!
//! What is done here is what `fatbinary` does with it, which knows no more of the language than comments and strings.
//!
//! Specification: NVIDIA's "PTX ISA". What `fatbinary` leaves out was measured with that of CUDA 13.5, over random text.

/// How a text for the driver says what it is, behind comments.
const VERSION: &[u8] = b".version";

/// Major and minor number of the version of the language. The first mention counts, as in `fatbinary`; the minor
/// number has one digit.
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

/// The processor that the text is for: `sm_90a`.
#[must_use]
pub fn target(text: &[u8]) -> Option<String> {
    let text = stripped(text);
    let text = String::from_utf8_lossy(&text);
    let (_, rest) = text.split_once(".target")?;
    let divides = |c: char| c == ',' || c.is_whitespace();
    let processor = rest.trim_start().split(divides).next()?;
    Some(processor.to_owned())
}

/// The text as `fatbinary` keeps it: without comments, and of blanks in a row, or at the start of a line, only what
/// divides. Strings stay as they are.
#[must_use]
pub fn stripped(text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut after_blank = false;
    let mut before = None;
    while let [first, behind @ ..] = rest {
        let size = match (first, behind) {
            (b'/', [b'/', ..]) => skip(rest, |byte| matches!(byte, b'\n' | b'\r')),
            // The star that opens a comment may close it.
            (b'/', [b'*', ..]) => block(behind),
            (b'"', _) if before != Some(b'\\') => {
                let size = string(rest);
                kept.extend_from_slice(rest.get(..size).unwrap_or_default());
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
        rest = rest.get(size..).unwrap_or_default();
    }
    kept
}

/// How many bytes there are before the first that `ends`.
fn skip(text: &[u8], ends: impl Fn(&u8) -> bool) -> usize {
    text.iter().position(ends).unwrap_or(text.len())
}

/// The size of a comment, given what follows its slash; without an end, all there is.
fn block(behind: &[u8]) -> usize {
    let end = behind.windows(2).position(|two| two == b"*/");
    end.map_or(behind.len() + 1, |end| end + 3)
}

/// The size of the string at the start of `text`, with its quotes.
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
