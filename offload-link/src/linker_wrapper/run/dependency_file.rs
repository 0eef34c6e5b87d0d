//! Corrects the host linker's dependency file (`--dependency-file`), from which `make` and `ninja` learn when a program is
//! linked again: it names this tool's temporary files, and not the inputs that the linker did not get.

use std::io;
use std::path::Path;

use offload_build::tools::normalized;

use crate::files::write_beside;

/// Inputs of a link that the host linker does not know.
pub(crate) struct HiddenInputs<'a> {
    /// Inputs that the linker did not get as they are.
    pub inputs: Vec<&'a Path>,
    /// Files that it got from this tool.
    pub own: Vec<&'a Path>,
    /// The folder of temporary files.
    pub temporary: Option<&'a Path>,
    /// Set if the linker escapes paths for `make`, as lld does.
    pub escapes: bool,
}

impl HiddenInputs<'_> {
    /// Corrects the file at `path`. What is not a regular file of its own stays: standard output may be redirected to one.
    pub(crate) fn correct(&self, path: &Path) -> io::Result<()> {
        let opened = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];
        if !path.is_file() || opened.iter().any(|place| path.starts_with(place)) {
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
        // lld and mold normalize paths.
        let forms = |path: &Path| [self.written(path), self.written(&normalized(path))];
        let own = self.own.iter().flat_map(|file| forms(file));
        let own: Vec<Vec<u8>> = own.collect();
        let temporary = self.temporary.iter().flat_map(|folder| forms(folder));
        let temporary: Vec<Vec<u8>> = temporary
            .map(|folder| [&folder, &b"/"[..]].concat())
            .collect();
        let is_hidden = |word: &[u8]| {
            own.iter().any(|file| file == word)
                || temporary.iter().any(|folder| word.starts_with(folder))
        };
        let shown = listed.filter(|word| !is_hidden(word)).map(<[u8]>::to_vec);
        let mut corrected: Vec<Vec<u8>> = shown.collect();
        for input in &self.inputs {
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
        let inputs = |escapes| HiddenInputs {
            inputs: vec![Path::new("a $#.bc"), Path::new("b\\ .bc"), Path::new("m.o")],
            own: vec![Path::new("./x.wrapper.o")],
            temporary: Some(Path::new("/u/../t m")),
            escapes,
        };
        let cases = [
            (
                false,
                "x: \\\n  m.o \\\n  ./x.wrapper.o \\\n  /u/../t m/part.o\n\nm.o:\n\n./x.wrapper.o:\n\n/u/../t m/part.o:\n",
                "x: \\\n  m.o \\\n  a $#.bc \\\n  b\\ .bc\n\nm.o:\n\na $#.bc:\n\nb\\ .bc:\n",
            ),
            // lld.
            (
                true,
                "x: \\\n m.o \\\n x.wrapper.o \\\n /t\\ m/part.o\n\nm.o:\n\nx.wrapper.o:\n\n/t\\ m/part.o:\n",
                "x: \\\n m.o \\\n a\\ $$\\#.bc \\\n b\\\\\\ .bc\n\nm.o:\n\na\\ $$\\#.bc:\n\nb\\\\\\ .bc:\n",
            ),
            // mold.
            (
                false,
                "x: m.o x.wrapper.o c.o\n\nm.o:\n\nx.wrapper.o:\n\nc.o:\n",
                "x: m.o c.o a $#.bc b\\ .bc\n\nm.o:\n\nc.o:\n\na $#.bc:\n\nb\\ .bc:\n",
            ),
        ];
        for (escapes, text, expected) in cases {
            let corrected = inputs(escapes).corrected(text.as_bytes());
            assert_eq!(String::from_utf8(corrected).unwrap(), expected);
        }
    }
}
