//! Linker scripts as inputs: the files and libraries that they name.
//!
//! Specification: GNU ld's manual, "Commands Dealing with Files".

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::platform::os_string;

/// First words of linker scripts. Other texts are not scripts: a compiler driver also has sources as inputs.
const COMMANDS: [&[u8]; 29] = [
    b"INCLUDE",
    b"PROVIDE",
    b"PROVIDE_HIDDEN",
    b"STARTUP",
    b"INPUT",
    b"GROUP",
    b"OUTPUT_FORMAT",
    b"OUTPUT_ARCH",
    b"OUTPUT",
    b"TARGET",
    b"SEARCH_DIR",
    b"ENTRY",
    b"EXTERN",
    b"VERSION",
    b"SECTIONS",
    b"PHDRS",
    b"MEMORY",
    b"ASSERT",
    b"HIDDEN",
    b"FORCE_COMMON_ALLOCATION",
    b"INHIBIT_COMMON_ALLOCATION",
    b"FORCE_GROUP_ALLOCATION",
    b"NOCROSSREFS",
    b"NOCROSSREFS_TO",
    b"LD_FEATURE",
    b"MAP",
    b"REGION_ALIAS",
    b"OVERWRITE_SECTIONS",
    b"OPTION",
];

/// An input that a linker script names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScriptInput {
    /// A path, or a name to search.
    File(PathBuf),
    /// A path below the root of the system.
    BelowRoot(PathBuf),
    /// A name after `-l`.
    Library(OsString),
    /// A script that stands in this place.
    Script(PathBuf),
    /// A folder of libraries.
    Folder(PathBuf),
    /// A word that may be a symbol which the script needs.
    Root(OsString),
    /// Start or end of `AS_NEEDED`.
    AsNeeded(bool),
}

impl ScriptInput {
    fn of(name: &[u8]) -> Self {
        let name_of = |bytes: &[u8]| os_string(bytes.to_vec());
        if let Some(library) = name.strip_prefix(b"-l") {
            return Self::Library(name_of(library));
        }
        let below_root = name.strip_prefix(b"=");
        match below_root.or_else(|| name.strip_prefix(b"$SYSROOT")) {
            Some(rest) => Self::BelowRoot(name_of(rest).into()),
            None => Self::File(name_of(name).into()),
        }
    }
}

/// Extensions of sources, which compiler drivers do not give to a linker.
const SOURCES: [&str; 33] = [
    "ada", "adb", "ads", "bc", "c", "c++", "cc", "cp", "cpp", "cppm", "cu", "cui", "cxx", "d", "f",
    "f03", "f08", "f90", "f95", "for", "ftn", "go", "hip", "hipi", "i", "ii", "ll", "m", "mi",
    "mm", "rs", "s", "sx",
];

/// Tells whether a compiler driver compiles a file with that name.
pub(crate) fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    let extension = extension.map(str::to_ascii_lowercase);
    extension.is_some_and(|extension| SOURCES.contains(&&*extension))
}

/// Lists the inputs that a linker script names, in order, and words outside of sections that may be symbols which it needs; `None` if
/// the text is not a linker script.
pub(crate) fn inputs(text: &[u8]) -> Option<Vec<ScriptInput>> {
    let mut words = Words { rest: text };
    let mut word = words.next()?;
    let starts = text.trim_ascii_start().starts_with(b";");
    if starts || !COMMANDS.contains(&word) && !is_assignment(word, words.rest) {
        return None;
    }
    let mut inputs = Vec::new();
    loop {
        let command = word;
        if command == b"INCLUDE" {
            let path = words.next().map(|path| os_string(path.to_vec()).into());
            inputs.extend(path.map(ScriptInput::Script));
        } else if !COMMANDS.contains(&command) {
            inputs.extend(roots(command));
        }
        let Some(next) = words.next() else {
            return Some(inputs);
        };
        word = next;
        if !matches!(word, b"(" | b"{") {
            continue;
        }
        let (mut depth, mut as_needed) = (1, None);
        for word in words.by_ref() {
            match (word, command) {
                (b"(" | b"{", _) => depth += 1,
                (b")" | b"}", _) => {
                    depth -= 1;
                    if as_needed.take_if(|start| *start == depth).is_some() {
                        inputs.push(ScriptInput::AsNeeded(false));
                    }
                }
                (b"AS_NEEDED", _) => {
                    as_needed = Some(depth);
                    inputs.push(ScriptInput::AsNeeded(true));
                }
                (_, b"INPUT" | b"GROUP" | b"STARTUP") => inputs.push(ScriptInput::of(word)),
                (_, b"SEARCH_DIR") => {
                    inputs.push(ScriptInput::Folder(os_string(word.to_vec()).into()));
                }
                (_, b"SECTIONS" | b"MEMORY" | b"PHDRS" | b"VERSION" | b"OUTPUT_FORMAT") => {}
                _ => inputs.extend(roots(word)),
            }
            if depth == 0 {
                break;
            }
        }
    }
}

/// Returns the names in a word that may be symbols, as in `a+b`.
fn roots(word: &[u8]) -> impl Iterator<Item = ScriptInput> {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$".contains(byte);
    let names = word.split(move |byte| !is_letter(byte));
    let names = names.filter(|name| name.first().is_some_and(|first| !first.is_ascii_digit()));
    names.map(|name| ScriptInput::Root(os_string(name.to_vec())))
}

/// Tells whether `first` and `rest` begin with `symbol = value`, which no source of C does.
fn is_assignment(first: &[u8], rest: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$".contains(byte);
    let name = first.iter().take_while(|byte| is_letter(byte)).count();
    let rest = match first.get(name..) {
        Some([]) => rest.trim_ascii_start(),
        after => after.unwrap_or_default(),
    };
    let is_name = name > 0 && !first[0].is_ascii_digit();
    let operators: [&[u8]; 8] = [b"+", b"-", b"*", b"/", b"&", b"|", b"<<", b">>"];
    let value = operators
        .iter()
        .find_map(|operator| rest.strip_prefix(*operator));
    let rest = value.unwrap_or(rest);
    is_name && rest.starts_with(b"=") && !rest.starts_with(b"==")
}

/// Words, quoted or not, and brackets.
struct Words<'t> {
    rest: &'t [u8],
}

impl<'t> Iterator for Words<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        let is_separator = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';');
        loop {
            let start = self.rest.iter().position(|byte| !is_separator(byte))?;
            self.rest = &self.rest[start..];
            let (comment, end): (_, &[u8]) = match self.rest {
                [b'/', b'*', comment @ ..] => (comment, b"*/"),
                [b'#', comment @ ..] => (comment, b"\n"),
                _ => break,
            };
            let size = comment.windows(end.len()).position(|part| part == end);
            self.rest = size.map_or(&[][..], |size| &comment[size + end.len()..]);
        }
        if let Some(quoted) = self.rest.strip_prefix(b"\"") {
            let size = quoted.iter().position(|byte| *byte == b'"')?;
            self.rest = &quoted[size + 1..];
            return Some(&quoted[..size]);
        }
        let is_bracket = |byte: &u8| b"(){}".contains(byte);
        let ends = |byte: &u8| is_separator(byte) || is_bracket(byte) || b"\"#".contains(byte);
        let size = match self.rest.iter().position(ends) {
            Some(0) => 1,
            size => size.unwrap_or(self.rest.len()),
        };
        let (word, rest) = self.rest.split_at(size);
        self.rest = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_what_may_be_symbols() {
        let text =
            "ENTRY(start) EXTERN(a b) q = c+1; PROVIDE(r = d);\nSECTIONS { .x : { e = .; } }";
        let found = inputs(text.as_bytes()).unwrap();
        for name in ["start", "a", "b", "c", "d"] {
            assert!(
                found.contains(&ScriptInput::Root(name.into())),
                "{name}: {found:?}"
            );
        }
        assert!(!found.contains(&ScriptInput::Root("e".into())), "{found:?}");
        assert!(is_source("a/m.ll".as_ref()) && is_source("B.C".as_ref()));
        assert!(!is_source("libc.so".as_ref()) && !is_source("script.ld".as_ref()));
    }

    #[test]
    fn lists_what_input_and_group_name() {
        let file = |name: &str| ScriptInput::File(name.into());
        let library = |name: &str| ScriptInput::Library(name.into());
        for (text, expected) in [
            (
                "/* GNU ld script\n   INPUT(no.a) */\nOUTPUT_FORMAT(elf64-x86-64)\nGROUP ( /lib/libc.so.6 libc_nonshared.a  AS_NEEDED ( /lib64/ld.so ) )\n",
                vec![
                    file("/lib/libc.so.6"),
                    file("libc_nonshared.a"),
                    ScriptInput::AsNeeded(true),
                    file("/lib64/ld.so"),
                    ScriptInput::AsNeeded(false),
                ],
            ),
            (
                "INPUT(-lk,\"a b.o\")INPUT(c.o d.o);",
                vec![library("k"), file("a b.o"), file("c.o"), file("d.o")],
            ),
            (
                "INPUT ( =/lib/a.o $SYSROOT/b.o )",
                vec![
                    ScriptInput::BelowRoot("/lib/a.o".into()),
                    ScriptInput::BelowRoot("/b.o".into()),
                ],
            ),
            (
                "SECTIONS { .data : { *(.data) INPUT } } GROUP(a.o",
                vec![file("a.o")],
            ),
            ("ENTRY(main) ENTRY", Vec::new()),
            (
                "foo = 1; SEARCH_DIR(/opt/lib)\nINCLUDE more.ld INPUT(a.o)",
                vec![
                    ScriptInput::Folder("/opt/lib".into()),
                    ScriptInput::Script("more.ld".into()),
                    file("a.o"),
                ],
            ),
            ("_end=.;STARTUP(crt.o)", vec![file("crt.o")]),
            (
                "# Made by GROUP(x.a)\n# include more\nINPUT(a.o# note\n) # INPUT(y.a)\nGROUP(c.a)",
                vec![file("a.o"), file("c.a")],
            ),
            (
                "ASSERT(DEFINED(main), \"no main\") INPUT(a.o)",
                vec![file("a.o")],
            ),
            ("FORCE_COMMON_ALLOCATION INPUT(a.o)", vec![file("a.o")]),
            ("HIDDEN(z = 1);\nINPUT(a.o)", vec![file("a.o")]),
            ("x += 1; INPUT(a.o)", vec![file("a.o")]),
            ("NOCROSSREFS(.a .b)\nINPUT(a.o)", vec![file("a.o")]),
        ] {
            let found = inputs(text.as_bytes()).map(|inputs| {
                let inputs = inputs.into_iter();
                let is_root = |input: &ScriptInput| matches!(input, ScriptInput::Root(_));
                inputs.filter(|input| !is_root(input)).collect()
            });
            assert_eq!(found, Some(expected), "{text}");
        }
        for text in [
            "",
            "int INPUT(void);",
            "/* a",
            "\"",
            "\"GROUP",
            "a == b",
            "int a = 1;",
            "=",
            "#include <a.h>\nint a;",
            "# nothing else",
        ] {
            assert_eq!(inputs(text.as_bytes()), None, "{text}");
        }
    }
}
