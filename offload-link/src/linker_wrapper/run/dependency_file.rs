//! Corrects the host linker's dependency file (`--dependency-file`), from which `make` and `ninja` learn when a program is
//! linked again: it names this tool's temporary files, and not the inputs that the linker did not get.

use std::io;
use std::path::Path;

use crate::files::write_beside;

/// Inputs of the host linker that are not the user's.
pub(crate) struct HostInputs<'a> {
    /// Files of this tool, each with the input that it replaced.
    pub replaced: Vec<(&'a Path, Option<&'a Path>)>,
    /// Inputs that the linker did not get.
    pub taken_out: Vec<&'a Path>,
    /// Set if the linker escapes paths for `make`, as lld does.
    pub escapes: bool,
}

impl HostInputs<'_> {
    /// Corrects the file at `path`. What is not a regular file stays.
    pub(crate) fn correct(&self, path: &Path) -> io::Result<()> {
        if !path.is_file() {
            return Ok(());
        }
        let text = std::fs::read(path)?;
        let corrected = self.corrected(&text);
        match corrected == text {
            true => Ok(()),
            false => write_beside(path, &corrected),
        }
    }

    /// Corrects the rule of the output, and the empty rule of each of its dependencies. GNU ld, gold and lld write a
    /// line for each dependency, mold one line for all.
    fn corrected(&self, text: &[u8]) -> Vec<u8> {
        let mut lines = text.split(|byte| *byte == b'\n');
        let head: Vec<&[u8]> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let rules = lines.filter_map(|line| line.strip_suffix(b":"));
        let (words, separator): (Vec<&[u8]>, &[u8]) = match head.as_slice() {
            [line] => (line.split(|byte| *byte == b' ').collect(), b" "),
            lines => {
                let words = lines.iter().map(|line| line.trim_ascii_start());
                let words = words.map(|line| line.strip_suffix(b" \\").unwrap_or(line));
                let is_narrow = lines.iter().skip(1).all(|line| !line.starts_with(b"  "));
                let separator: &[u8] = if is_narrow { b" \\\n " } else { b" \\\n  " };
                (words.collect(), separator)
            }
        };
        let mut corrected = self.files(words.into_iter()).join(separator);
        corrected.push(b'\n');
        for rule in self.files(rules) {
            corrected.extend([b"\n", rule.as_slice(), b":\n"].concat());
        }
        corrected
    }

    /// Returns `listed`, corrected.
    fn files<'a>(&self, listed: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
        let known = self.replaced.iter();
        let known =
            known.map(|(file, input)| (self.written(file), input.map(|path| self.written(path))));
        let known: Vec<(Vec<u8>, Option<Vec<u8>>)> = known.collect();
        let corrected =
            listed.filter_map(|word| match known.iter().find(|(file, _)| file == word) {
                Some((_, input)) => input.clone(),
                None => Some(word.to_vec()),
            });
        let mut corrected: Vec<Vec<u8>> = corrected.collect();
        for input in &self.taken_out {
            let input = self.written(input);
            if !corrected.contains(&input) {
                corrected.push(input);
            }
        }
        corrected
    }

    /// Returns a path as the linker writes it.
    fn written(&self, path: &Path) -> Vec<u8> {
        let bytes = path.as_os_str().as_encoded_bytes();
        if !self.escapes {
            return bytes.to_vec();
        }
        let mut written = Vec::new();
        for byte in bytes {
            match byte {
                b' ' => {
                    // A backslash before a space would escape it.
                    let slashes = written.iter().rev().take_while(|byte| **byte == b'\\');
                    let slashes = slashes.count();
                    written.extend(vec![b'\\'; slashes + 1]);
                }
                b'#' => written.push(b'\\'),
                b'$' => written.push(b'$'),
                _ => {}
            }
            written.push(*byte);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_form_of_each_linker() {
        let inputs = |escapes| HostInputs {
            replaced: vec![
                (Path::new("/t m/own.o"), None),
                (Path::new("/t m/part.o"), Some(Path::new("a $.bc"))),
            ],
            taken_out: vec![Path::new("b.bc"), Path::new("b.bc")],
            escapes,
        };
        let gnu = "x: \\\n  m.o \\\n  /t m/part.o \\\n  /t m/own.o\n\nm.o:\n\n/t m/part.o:\n\n/t m/own.o:\n";
        let expected = "x: \\\n  m.o \\\n  a $.bc \\\n  b.bc\n\nm.o:\n\na $.bc:\n\nb.bc:\n";
        let corrected = inputs(false).corrected(gnu.as_bytes());
        assert_eq!(String::from_utf8(corrected).unwrap(), expected);

        let lld = "x: \\\n /t\\ m/own.o \\\n /t\\ m/part.o\n\n/t\\ m/own.o:\n\n/t\\ m/part.o:\n";
        let expected = "x: \\\n a\\ $$.bc \\\n b.bc\n\na\\ $$.bc:\n\nb.bc:\n";
        let corrected = inputs(true).corrected(lld.as_bytes());
        assert_eq!(String::from_utf8(corrected).unwrap(), expected);
    }
}
