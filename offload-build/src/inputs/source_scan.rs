//! Kernels and host functions in sources of HIP and CUDA, found without a compiler.
//!
//! Serves what must work where no compiler is: the constants of a build without device code, and a hint that host code is
//! not compiled. It reads the sources themselves: not what they include, and not what macros expand to. All branches of
//! `#if` count.

/// Functions that a source defines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Names of `__global__` functions, without namespaces, in order.
    pub(crate) kernels: Vec<String>,
    /// Host functions that other languages can call, `extern "C"`, in order.
    pub(crate) host_functions: Vec<FoundFunction>,
    /// The first launch, `<<<…>>>`, in host code.
    pub(crate) launch: Option<FoundFunction>,
}

/// A function, and the line on which its name is, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundFunction {
    pub(crate) function: String,
    pub(crate) line: usize,
}

/// Reads a source.
pub(crate) fn scan(source: &str) -> Scan {
    let mut scan = Scan::default();
    scan.declarations(&mut Tokens::new(source));
    scan
}

/// A header that a source includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Include {
    pub(crate) name: String,
    /// True for `"name"`, which compilers look for beside the source first.
    pub(crate) is_quoted: bool,
}

/// Returns the headers that a source includes, in order; those that macros name are left out.
pub(crate) fn includes(source: &str) -> Vec<Include> {
    let mut tokens = Tokens::new(source);
    while tokens.next().is_some() {}
    let directives = tokens.directives.iter();
    directives.filter_map(|text| include(text)).collect()
}

/// Returns what a directive includes, if it is an `#include`.
fn include(directive: &str) -> Option<Include> {
    let word = directive.strip_prefix('#')?.trim_start();
    let name = word.strip_prefix("include")?.trim_start();
    let is_quoted = name.starts_with('"');
    let end = if is_quoted { '"' } else { '>' };
    let (name, _) = name.strip_prefix(['"', '<'])?.split_once(end)?;
    Some(Include {
        name: name.to_owned(),
        is_quoted,
    })
}

/// A word, or one character of anything else; literals are a quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'s> {
    text: &'s str,
    line: usize,
}

impl Token<'_> {
    fn is_word(&self) -> bool {
        self.text.starts_with(is_word_character)
    }
}

fn is_word_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl Scan {
    /// Reads declarations up to the end of a namespace or of the source.
    fn declarations(&mut self, tokens: &mut Tokens<'_>) {
        let mut is_c = false;
        // Blocks that are open here, with the linkage outside of each: no recursion, however deep they are.
        let mut outside = Vec::new();
        let mut declaration: Vec<Token<'_>> = Vec::new();
        while let Some(token) = tokens.next() {
            match token.text {
                ";" => declaration.clear(),
                "}" => {
                    declaration.clear();
                    is_c = outside.pop().unwrap_or(is_c);
                }
                "{" => {
                    let has = |word: &str| declaration.iter().any(|token| token.text == word);
                    let names_c = declaration
                        .windows(2)
                        .any(|pair| pair[0].text == "extern" && pair[1].text == "\"C\"");
                    if let Some(head) = function_head(&declaration) {
                        self.function(head, names_c || is_c, tokens);
                        declaration.clear();
                    } else if has("namespace") || names_c {
                        outside.push(is_c);
                        is_c = names_c || is_c;
                        declaration.clear();
                    } else {
                        // A class, or the value of a variable.
                        skip_block(tokens, |_| {});
                    }
                }
                _ => declaration.push(token),
            }
        }
    }

    /// Reads the body of a function.
    fn function(&mut self, head: &[Token<'_>], is_c: bool, tokens: &mut Tokens<'_>) {
        let Some(name) = function_name(head) else {
            return skip_block(tokens, |_| {});
        };
        let has = |words: &[&str]| head.iter().any(|token| words.contains(&token.text));
        let found = |line| FoundFunction {
            function: name.text.to_owned(),
            line,
        };
        // `__attribute__((global))`, which the vendors' headers call `__global__`.
        let has_attribute = |word: &str| {
            let mut triples = head.windows(3);
            triples.any(|part| [part[0].text, part[1].text, part[2].text] == ["(", word, ")"])
        };
        if has(&["__global__"]) || has_attribute("global") {
            self.kernels.push(name.text.to_owned());
            return skip_block(tokens, |_| {});
        }
        if has(&["__device__"]) || has_attribute("device") {
            return skip_block(tokens, |_| {});
        }
        if is_c && !has(&["static", "inline"]) {
            self.host_functions.push(found(name.line));
        }
        let launch = &mut self.launch;
        skip_block(tokens, |line| {
            launch.get_or_insert_with(|| found(line));
        });
    }
}

/// A declaration without its `template <…>`, if a block after it is the body of a function.
fn function_head<'t, 's>(declaration: &'t [Token<'s>]) -> Option<&'t [Token<'s>]> {
    let mut head = declaration;
    while head.first().is_some_and(|token| token.text == "template") {
        let mut depth = (0_usize, 0_usize);
        let end = head.iter().position(|token| {
            match (token.text, depth) {
                ("(", _) => depth.1 += 1,
                (")", _) => depth.1 = depth.1.saturating_sub(1),
                ("<", (_, 0)) => depth.0 += 1,
                (">", (_, 0)) => depth.0 = depth.0.saturating_sub(1),
                _ => {}
            }
            token.text == ">" && depth == (0, 0)
        });
        head = head.get(end? + 1..)?;
    }
    let mut depth = 0_usize;
    let is_value = head.iter().any(|token| {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.text == "="
    });
    let has_parameters = depth == 0 && head.iter().any(|token| token.text == "(");
    (has_parameters && !is_value).then_some(head)
}

/// The name in the head of a function: the last word before the first parentheses that are not those of an attribute.
fn function_name<'s>(head: &[Token<'s>]) -> Option<Token<'s>> {
    const ATTRIBUTES: [&str; 7] = [
        "__attribute__",
        "__declspec",
        "__launch_bounds__",
        "__cluster_dims__",
        "__maxnreg__",
        "alignas",
        "decltype",
    ];
    let mut name = None;
    let mut depth = 0_usize;
    for token in head {
        match token.text {
            "(" if depth == 0 => match name {
                Some(Token { text, .. }) if ATTRIBUTES.contains(&text) => depth = 1,
                found => return found,
            },
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ if depth == 0 && token.is_word() => name = Some(*token),
            _ => {}
        }
    }
    None
}

/// Reads to the end of a block whose `{` was read; tells of the lines of launches in it.
fn skip_block(tokens: &mut Tokens<'_>, mut launch: impl FnMut(usize)) {
    let mut depth = 1_usize;
    let mut angles = 0;
    for token in tokens {
        angles = if token.text == "<" { angles + 1 } else { 0 };
        match token.text {
            "<" if angles == 3 => launch(token.line),
            "{" => depth += 1,
            "}" if depth == 1 => return,
            "}" => depth -= 1,
            _ => {}
        }
    }
}

/// The tokens of C++, without comments and directives.
struct Tokens<'s> {
    rest: &'s str,
    line: usize,
    /// The first line of each directive so far.
    directives: Vec<&'s str>,
}

impl<'s> Tokens<'s> {
    fn new(source: &'s str) -> Self {
        Self {
            rest: source,
            line: 1,
            directives: Vec::new(),
        }
    }

    /// Takes that many bytes, up to the boundary of a character.
    fn take(&mut self, size: usize) -> &'s str {
        let (taken, rest) = self.rest.split_at(size);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Takes all up to the first `end` after `start` bytes of ASCII, or all.
    fn take_past(&mut self, start: usize, end: &str) -> &'s str {
        let size = self.rest[start..]
            .find(end)
            .map_or(self.rest.len(), |at| start + at + end.len());
        self.take(size)
    }

    /// Takes a directive: its lines, joined by backslashes.
    fn directive(&mut self) {
        self.directives.extend(self.rest.lines().next());
        loop {
            let line = self.take_past(0, "\n");
            if self.rest.is_empty() || !line.trim_end().ends_with('\\') {
                return;
            }
        }
    }

    /// Takes a literal in quotes.
    fn literal(&mut self, quote: char) -> &'s str {
        let mut is_escaped = true;
        let end = self.rest.find(|c| {
            let ends = (c == quote || c == '\n') && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        self.take(end.map_or(self.rest.len(), |end| end + 1))
    }

    /// Takes `R"x(…)x"`, whose `R` was read.
    fn raw_literal(&mut self) -> &'s str {
        let delimiter = self.rest[1..]
            .split('(')
            .next()
            .expect("a split text has a first part");
        self.take_past(1, &format!("){delimiter}\""))
    }
}

impl<'s> Iterator for Tokens<'s> {
    type Item = Token<'s>;

    fn next(&mut self) -> Option<Token<'s>> {
        loop {
            let first = self.rest.chars().next()?;
            let line = self.line;
            let token = |text| Some(Token { text, line });
            if first.is_whitespace() {
                self.take(first.len_utf8());
            } else if self.rest.starts_with("//") {
                self.take_past(0, "\n");
            } else if self.rest.starts_with("/*") {
                self.take_past(2, "*/");
            } else if first == '#' {
                self.directive();
            } else if is_word_character(first) {
                let end = self.rest.find(|c| !is_word_character(c));
                let word = self.take(end.unwrap_or(self.rest.len()));
                if word.ends_with('R') && self.rest.starts_with('"') {
                    return token(self.raw_literal());
                }
                return token(word);
            } else if first == '"' || first == '\'' {
                return token(self.literal(first));
            } else {
                return token(self.take(first.len_utf8()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: &[FoundFunction]) -> Vec<(&str, usize)> {
        let names = found.iter();
        names.map(|found| (&*found.function, found.line)).collect()
    }

    #[test]
    fn finds_kernels_in_every_form() {
        let source = r#"
            // __global__ void comment() {}
            /* __global__ void comment() {} */
            #define KERNEL(name) __global__ void name() \
                { }
            const char *text = "__global__ void text() {}", *raw = R"x(
                __global__ void raw() {} )" )x", brace = '{', quote = '\'';
            __global__ void declared(int *);
            __global__ void plain(int *x) { if (*x) { *x = 1; } }
            extern "C" __global__ void __launch_bounds__(256, 2) bounded(int) {}
            static __global__ __attribute__((amdgpu_flat_work_group_size(1, 64))) void attributed() {}
            namespace a { namespace b {
            template <typename T, int N = (1 > 2), typename U = S<T>> __global__ void templated(T *x, int count = 4) {}
            } }
            extern "C" { __global__ void inside() {} }
            extern "C" __attribute__((global)) void spelled_out() {}
            extern "C" __attribute__((device)) void on_device() {}
            struct S { int x; __device__ void method() {} };
            __device__ int helper(int x) { return x; }
            int table[] = { 1, 2 };
            auto lambda = [](int x) { return x; };
        "#;
        let scan = scan(source);
        let kernels = [
            "plain",
            "bounded",
            "attributed",
            "templated",
            "inside",
            "spelled_out",
        ];
        let found: Vec<&str> = scan.kernels.iter().map(String::as_str).collect();
        assert_eq!(found, kernels);
        assert_eq!(scan.host_functions, []);
        assert_eq!(scan.launch, None);
    }

    #[test]
    fn finds_host_functions_and_launches() {
        let source = "__global__ void k(int *x) { k<<<1, 1>>>(x); }\n\
            static void quiet(int *x) {}\n\
            extern \"C\" void launch(int *x) {\n  k<<<dim3(1), 64>>>(x);\n}\n\
            extern \"C\" {\nint more(void) { return a << b; }\n__host__ __device__ int both(void) { return 1; }\n}\n\
            void cpp() { k<<<1, 1>>>(0); }\n";
        let scan = scan(source);
        assert_eq!(names(&scan.host_functions), [("launch", 3), ("more", 7)]);
        assert_eq!(
            scan.launch,
            Some(FoundFunction {
                function: "launch".into(),
                line: 4
            })
        );
    }

    #[test]
    fn survives_what_is_no_source() {
        for source in [
            "",
            "{",
            "}}}}",
            "\"",
            "R\"(",
            "/*",
            "#\\",
            "__global__ void k(",
            "'\\",
            "extern \"C\"",
        ] {
            assert_eq!(scan(source), Scan::default(), "{source}");
        }
        let deep = "namespace a {".repeat(200_000);
        assert_eq!(scan(&deep), Scan::default());
    }
}
