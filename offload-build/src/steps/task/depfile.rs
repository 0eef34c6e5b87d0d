//! Dependency files as compilers write them for `make`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Reads a dependency file.
///
/// # Errors
///
/// Fails if it cannot be read, names no file (each compile reads one), or names a file whose name is not UTF-8: Cargo, which must watch
/// it, knows no such names. The path is that of the file that causes the error.
pub(crate) fn read(path: &Path) -> Result<Vec<String>, (PathBuf, io::Error)> {
    let in_list = |error| (path.to_owned(), error);
    let bytes = fs::read(path).map_err(in_list)?;
    let is_utf8 = std::str::from_utf8(&bytes).is_ok();
    let paths = parse(&String::from_utf8_lossy(&bytes));
    if paths.is_empty() {
        let problem = "this dependency file names no files\n\
            hint: the compiler, or a launcher in front of it, wrote none; `launcher = \"none\"` compiles without a launcher";
        return Err(in_list(io::Error::other(problem)));
    }
    let replaced = |path: &&String| path.contains(char::REPLACEMENT_CHARACTER);
    match paths.iter().find(replaced).filter(|_| !is_utf8) {
        None => Ok(paths),
        Some(path) => Err((path.into(), io::Error::other("its path is not UTF-8"))),
    }
}

/// The files that a rule depends on: all after the first colon, each once, in order.
///
/// A backslash joins lines, and escapes a blank or a `#`; `$$` is a dollar. Clang and nvcc write tabs in names as they are.
#[must_use]
pub(crate) fn parse(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let Some((_, prerequisites)) = text.split_once(": ") else {
        return paths;
    };
    let mut path = String::new();
    // As clang ends lines on Windows.
    let prerequisites = prerequisites.replace("\r\n", "\n");
    let mut chars = prerequisites.chars().peekable();
    let mut end = |path: &mut String| {
        let path = std::mem::take(path);
        if !path.is_empty() && !paths.contains(&path) {
            paths.push(path);
        }
    };
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('\\', Some('\n')) => {
                chars.next();
                end(&mut path);
            }
            ('\\', Some(&escaped @ (' ' | '#' | '\t'))) => {
                chars.next();
                path.push(escaped);
            }
            ('$', Some('$')) => {
                chars.next();
                path.push('$');
            }
            // The next line is another rule.
            ('\n', _) => break,
            (' ', _) => end(&mut path),
            (char, _) => path.push(char),
        }
    }
    end(&mut path);
    paths
}

/// Returns the path of a file that a dependency file names, as it is on this machine: clang and nvcc write `/` for each backslash.
/// `known` are paths of other files, which may be below the same folder.
pub(crate) fn with_backslashes<'a>(
    path: String,
    mut known: impl Iterator<Item = &'a Path>,
) -> PathBuf {
    if Path::new(&path).exists() {
        return path.into();
    }
    let found = known.find_map(|known| {
        let known = known.to_str()?;
        let last = known.rfind('\\')?;
        let rest = known.get(last..)?.find('/');
        let folder = known.get(..rest.map_or(known.len(), |at| last + at))?;
        let rest = path.strip_prefix(&folder.replace('\\', "/"))?;
        Some(format!("{folder}{rest}"))
    });
    found.unwrap_or(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_that_make_would_need_escaped() {
        let text = "out: k.c \\\n  dir\\ with\\ space/k.h a\\#b.h c$$d.h k.c \\\n /usr/x.h t\ta/k.h t\\\tb.h\nk.h:\n";
        assert_eq!(
            parse(text),
            [
                "k.c",
                "dir with space/k.h",
                "a#b.h",
                "c$d.h",
                "/usr/x.h",
                "t\ta/k.h",
                "t\tb.h"
            ]
        );
        assert_eq!(
            parse("k.obj: \\\r\n  C:\\p\\k.cu \\\r\n  k.h\r\n\r\nk.h:\r\n"),
            ["C:\\p\\k.cu", "k.h"]
        );
        assert_eq!(parse(""), [""; 0]);
        assert_eq!(parse("out: "), [""; 0]);
    }

    #[test]
    fn finds_backslashes_that_clang_and_nvcc_replace() {
        let found = |path: &str, known: &str| {
            let known = [Path::new("k.c"), Path::new(known)].into_iter();
            with_backslashes(path.to_owned(), known)
        };
        let object = "/offload/a\\b/c/d\\e/out/k.o";
        let expected = Path::new("/offload/a\\b/c/d\\e/include/k.h");
        assert_eq!(found("/offload/a/b/c/d/e/include/k.h", object), expected);
        let other = Path::new("/offload/a/b/include/k.h");
        assert_eq!(found("/offload/a/b/include/k.h", object), other);
        let source = Path::new("/offload/k\\l.c");
        assert_eq!(found("/offload/k/l.c", "/offload/k\\l.c"), source);
    }

    #[cfg(unix)]
    #[test]
    fn names_a_file_whose_name_is_not_utf8() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.d");
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            read(&path).map_err(|(path, error)| format!("{}: {error}", path.display()))
        };
        let expected = "k/gr\u{fffd}\u{fffd}e.h: its path is not UTF-8";
        let found = read(b"out: k.c \\\n k/gr\xfc\xdfe.h\n");
        assert_eq!(found, Err(expected.to_owned()));
        let names = ["k.c", "gr\u{fffd}\u{fc}e.h"];
        let found = read(format!("out: {}\n", names.join(" ")).as_bytes());
        assert_eq!(found, Ok(names.map(str::to_owned).into()));
    }

    #[test]
    fn reads_what_the_compiler_wrote() {
        let folder = std::env::temp_dir().join(format!("offload-depfile-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let name = |name: &str| folder.join(name).display().to_string();
        std::fs::write(name("a b#$.h"), "").unwrap();
        std::fs::write(name("k.c"), "#include \"a b#$.h\"\n").unwrap();
        let command = offload_build_core::process::command::Command::new("cc").args([
            "-MD",
            "-MF",
            &name("k.d"),
            "-c",
        ]);
        command
            .arg(name("k.c"))
            .arg("-o")
            .arg(name("k.o"))
            .run()
            .unwrap();
        let found = parse(&std::fs::read_to_string(name("k.d")).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(found.contains(&name("a b#$.h")), "{found:?}");
    }
}
