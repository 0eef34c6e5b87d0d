//! Dependency files as compilers write them for `make`.

/// The files that a rule depends on: all after the first colon, each once, in order.
///
/// A backslash joins lines, and escapes a blank or a `#`; `$$` is a dollar.
#[must_use]
pub(crate) fn parse(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let Some((_, prerequisites)) = text.split_once(": ") else {
        return paths;
    };
    let mut path = String::new();
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
            (char, _) if char.is_whitespace() => end(&mut path),
            (char, _) => path.push(char),
        }
    }
    end(&mut path);
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_that_make_would_need_escaped() {
        let text = "out: k.c \\\n  dir\\ with\\ space/k.h a\\#b.h c$$d.h k.c \\\n /usr/x.h\nk.h:\n";
        assert_eq!(
            parse(text),
            ["k.c", "dir with space/k.h", "a#b.h", "c$d.h", "/usr/x.h"]
        );
        assert_eq!(parse(""), [""; 0]);
        assert_eq!(parse("out: "), [""; 0]);
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
