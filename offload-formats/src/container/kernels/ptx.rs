//! Kernel descriptions in PTX, before the driver compiles it: names, parameters, threads, and static shared memory.
//! The driver chooses registers and local memory.
//!
//! | property | in the text |
//! |---|---|
//! | name, parameters | `.visible .entry scale(.param .u64 x, .param .align 8 .b8 s[24])` |
//! | required size of a block | `.reqntid 32, 4` |
//! | maximum number of threads | `.maxntid 128`: the product |
//! | shared memory | `.shared .align 4 .b8 tile[512];`, in its body, or outside and used there or in callees |
//!
//! Each parameter is at the next multiple of its alignment: that of `.align`, or of its type. Variables in shared
//! memory are consecutive; the driver may add padding.
//!
//! Specification: NVIDIA's "PTX ISA", "Directives". Against `ptxas` 13.5: `tests/formats-container/kernels_cuda.rs`.

use super::{Argument, ArgumentKind, Kernel, KernelError};
use crate::by_name::ByName;
use crate::format::ptx;
use std::collections::{BTreeSet, HashSet};
use std::iter::Peekable;

/// Threads of a warp of every processor.
const WARP: u32 = 32;

/// Types with the size of a value in bytes.
const TYPES: [(&str, u64); 21] = [
    (".b8", 1),
    (".u8", 1),
    (".s8", 1),
    (".b16", 2),
    (".u16", 2),
    (".s16", 2),
    (".f16", 2),
    (".bf16", 2),
    (".b32", 4),
    (".u32", 4),
    (".s32", 4),
    (".f32", 4),
    (".f16x2", 4),
    (".bf16x2", 4),
    (".tf32", 4),
    (".b64", 8),
    (".u64", 8),
    (".s64", 8),
    (".f64", 8),
    (".f32x2", 8),
    (".b128", 16),
];

/// First version of the language in which only a `.visible` or `.weak` entry is visible to the host.
const LINKAGE: (u16, u16) = (3, 1);

/// Functions that the driver defines, and prefixes of their names.
const DRIVERS: [&str; 5] = ["vprintf", "vfprintf", "malloc", "free", "__assertfail"];
const DRIVERS_START: [&str; 2] = ["__cuda_syscall", "cnp"];

/// The kernels and functions of a text, and the names that these use.
#[derive(Debug, Default)]
pub(super) struct PtxText<'t> {
    kernels: ByName<(Kernel, Body<'t>)>,
    functions: ByName<Body<'t>>,
    /// Names of `.extern` functions and variables, which the text may also define.
    external: BTreeSet<&'t str>,
    /// Shared variables outside of functions.
    shared: Vec<Variable>,
    /// Names of variables in the device's memory.
    variables: BTreeSet<&'t str>,
    /// The name of such a variable, and a name in its initial value.
    initial: Vec<(&'t str, &'t str)>,
}

/// A function's body.
#[derive(Debug, Default)]
struct Body<'t> {
    shared: Vec<Variable>,
    /// Names of functions and variables outside of it, among other words while the text is read.
    words: HashSet<&'t str>,
}

/// A parameter, or a variable in shared memory. Alignment and size are in bytes.
#[derive(Clone, Debug, Default)]
struct Variable {
    name: String,
    align: u64,
    size: u64,
    /// True for a parameter with `.ptr`.
    is_pointer: bool,
}

impl<'t> PtxText<'t> {
    /// Parses a text without comments ([`ptx::stripped`]).
    pub(super) fn parse(text: &'t str) -> Result<Self, KernelError> {
        let version = ptx::version(text.as_bytes());
        let is_older = version.is_some_and(|version| version < LINKAGE);
        let mut tokens = Tokens { rest: text }.peekable();
        let mut found = Self::default();
        let mut linkage = "";
        while let Some(token) = tokens.next() {
            match token {
                ".entry" => {
                    let is_global = is_older || matches!(linkage, ".visible" | ".weak");
                    let PtxKernel { mut kernel, body } = PtxKernel::read(&mut tokens)?;
                    kernel.is_local = !is_global;
                    if let Some(body) = body {
                        found.kernels.insert(kernel.name.clone(), (kernel, body));
                    }
                }
                ".func" => found.function(&mut tokens, linkage == ".extern"),
                ".shared" => found.shared.extend(variables(&mut tokens)?),
                ".global" | ".const" if linkage == ".extern" => {
                    found.external.extend(named(&mut tokens));
                }
                ".global" | ".const" => {
                    let name = named(&mut tokens);
                    found.variables.extend(name);
                    found.initial_value(name.unwrap_or_default(), &mut tokens);
                }
                // Debug information.
                "{" => {
                    body(&mut tokens)?;
                }
                _ => {}
            }
            linkage = token;
        }
        found.drop_other_words();
        Ok(found)
    }

    /// Keeps the words of bodies that name something. Most are instructions and registers.
    fn drop_other_words(&mut self) {
        let shared = self.shared.iter().map(|variable| variable.name.as_str());
        let names = shared.chain(self.functions.names());
        let names = names.chain(self.external.iter().copied());
        let names: HashSet<String> = names.map(str::to_owned).collect();
        let kernels = self.kernels.values_mut().map(|(_, body)| body);
        for body in kernels.chain(self.functions.values_mut()) {
            body.words.retain(|word| names.contains(*word));
        }
    }

    /// Lists the kernels, sorted by name.
    pub(super) fn kernels(&self) -> Result<Vec<Kernel>, KernelError> {
        let described = self.kernels.values().map(|(kernel, body)| {
            let shared = self.shared_by(body);
            let shared_size = end_of(shared).and_then(|size| u32::try_from(size).ok());
            let shared_size = shared_size.ok_or_else(|| {
                let name = &kernel.name;
                KernelError::new(format!(
                    "kernel `{name}`: its shared memory does not fit in 32 bits"
                ))
            })?;
            Ok(Kernel {
                shared_size,
                ..kernel.clone()
            })
        });
        described.collect()
    }

    /// Returns true if the text has a kernel or a variable with that name that the driver finds.
    pub(super) fn has(&self, name: &str) -> bool {
        let kernel = self.kernels.get(name);
        kernel.is_some_and(|(kernel, _)| !kernel.is_local) || self.variables.contains(name)
    }

    /// Lists the functions and variables that functions use, but neither the text nor the driver defines.
    pub(super) fn undefined(&self) -> Vec<&str> {
        let bodies = self.kernels.values().map(|(_, body)| body);
        let bodies: Vec<&Body<'_>> = bodies.chain(self.functions.values()).collect();
        let is_missing = |name: &&str| {
            let is_here = self.functions.contains(name)
                || self.variables.contains(name)
                || DRIVERS.contains(name)
                || DRIVERS_START.iter().any(|start| name.starts_with(start));
            !is_here && bodies.iter().any(|body| body.words.contains(name))
        };
        self.external.iter().copied().filter(is_missing).collect()
    }

    /// Lists the variables whose initial values have addresses in shared memory.
    pub(super) fn initialized_with_shared(&self) -> BTreeSet<&str> {
        // clang declares a variable of one kernel in the kernel's body; another one there may hide a variable of the device.
        let bodies = self.kernels.values().map(|(_, body)| body);
        let bodies = bodies.chain(self.functions.values());
        let shared = self
            .shared
            .iter()
            .chain(bodies.flat_map(|body| &body.shared));
        let shared: HashSet<&str> = shared.map(|variable| variable.name.as_str()).collect();
        let is_shared = |name: &str| shared.contains(name) && !self.variables.contains(name);
        let initial = self.initial.iter();
        let wrong = initial.filter(|(_, word)| is_shared(word));
        wrong.map(|(variable, _)| *variable).collect()
    }

    /// Reads the declaration of a variable from its name on.
    fn initial_value(&mut self, variable: &'t str, tokens: &mut Peekable<Tokens<'t>>) {
        let words = tokens.take_while(|token| *token != ";");
        let words = words.filter(|token| token.starts_with(is_of_word));
        let is_name = |word: &&str| !word.starts_with(|char: char| char.is_ascii_digit());
        let names = words.filter(is_name).filter(|word| *word != "generic");
        self.initial.extend(names.map(|word| (variable, word)));
    }

    /// Lists the shared variables of a function and its callees.
    fn shared_by<'b>(&'b self, body: &'b Body<'t>) -> Vec<&'b Variable> {
        let mut bodies = vec![body];
        let mut variables = Vec::new();
        let mut named = BTreeSet::new();
        while let Some(body) = bodies.pop() {
            variables.extend(&body.shared);
            let words: BTreeSet<&str> = body.words.iter().copied().collect();
            for word in words {
                if named.insert(word) {
                    bodies.extend(self.functions.get(word));
                }
            }
        }
        let outside = self.shared.iter();
        variables.extend(outside.filter(|variable| named.contains(variable.name.as_str())));
        variables
    }

    /// Reads a function from its return value or name on.
    fn function(&mut self, tokens: &mut Peekable<Tokens<'t>>, is_external: bool) {
        if tokens.next_if_eq(&"(").is_some() {
            pass(tokens, ")");
        }
        let name = tokens.next().unwrap_or_default();
        if is_external {
            self.external.insert(name);
        }
        while let Some(token) = tokens.next() {
            match token {
                "{" => {
                    // Errors in the body are ignored: only the bodies of kernels must be valid.
                    let body = body(tokens).unwrap_or_default();
                    self.functions.insert(name.to_owned(), body);
                    return;
                }
                ";" => return,
                _ => {}
            }
        }
    }
}

/// A kernel and its body; a declaration has none.
struct PtxKernel<'t> {
    kernel: Kernel,
    body: Option<Body<'t>>,
}

impl<'t> PtxKernel<'t> {
    /// Reads a kernel from its name on.
    fn read(tokens: &mut Peekable<Tokens<'t>>) -> Result<Self, KernelError> {
        let name = tokens.next().unwrap_or_default().to_owned();
        let wrong = |problem: String| KernelError::new(format!("kernel `{name}`: {problem}"));
        let mut kernel = Kernel {
            name: name.clone(),
            wavefront: Some(WARP),
            ..Kernel::default()
        };
        if tokens.next_if_eq(&"(").is_some() {
            for parameter in parameters(tokens).map_err(wrong)? {
                let start = u64::from(kernel.arguments_size).next_multiple_of(parameter.align);
                let place = start
                    .checked_add(parameter.size)
                    .and_then(|end| Some((u32::try_from(start).ok()?, u32::try_from(end).ok()?)));
                let (offset, end) = place.ok_or_else(|| {
                    wrong(format!(
                        "the offset of parameter `{}` does not fit in 32 bits",
                        parameter.name
                    ))
                })?;
                let size = end.saturating_sub(offset);
                let mut argument = Argument::at(offset, size);
                if parameter.is_pointer {
                    argument.kind = Some(ArgumentKind::Pointer);
                }
                kernel.arguments.push(argument);
                kernel.arguments_size = end;
            }
        }
        while let Some(token) = tokens.next() {
            match token {
                "{" => {
                    let body = Some(body(tokens)?);
                    return Ok(Self { kernel, body });
                }
                // The only directive here that ends with a semicolon.
                ".pragma" => pass(tokens, ";"),
                // A declaration.
                ";" => return Ok(Self { kernel, body: None }),
                ".reqntid" => kernel.required_threads = Some(threads(tokens).map_err(wrong)?),
                ".maxntid" => {
                    let [x, y, z] = threads(tokens).map_err(wrong)?;
                    let threads = x.checked_mul(y).and_then(|plane| plane.checked_mul(z));
                    kernel.max_threads = Some(threads.ok_or_else(|| {
                        wrong(format!("{x} by {y} by {z} threads do not fit in 32 bits"))
                    })?);
                }
                _ => {}
            }
        }
        Err(wrong("its body is missing".to_owned()))
    }
}

/// Returns the name declared after `.global`.
fn named<'t>(tokens: &mut Peekable<Tokens<'t>>) -> Option<&'t str> {
    while let Some(token) = tokens.next() {
        match token {
            ".align" => {
                tokens.next();
            }
            ".attribute" => pass(tokens, ")"),
            word if word.starts_with('.') => {}
            word => return Some(word),
        }
    }
    None
}

/// Reads the variables of a declaration after `.shared`, up to its semicolon.
fn variables(tokens: &mut Peekable<Tokens<'_>>) -> Result<Vec<Variable>, KernelError> {
    let mut found: Vec<Variable> = Vec::new();
    let mut kind = VariableType::default();
    loop {
        let mut variable = Variable::default();
        let end = variable.read(&mut kind, tokens).map_err(|problem| {
            KernelError::new(format!("shared variable `{}`: {problem}", variable.name))
        })?;
        found.push(variable);
        if end != "," {
            return Ok(found);
        }
    }
}

fn parameters(tokens: &mut Peekable<Tokens<'_>>) -> Result<Vec<Variable>, String> {
    let mut found: Vec<Variable> = Vec::new();
    if tokens.next_if_eq(&")").is_some() {
        return Ok(found);
    }
    loop {
        let mut variable = Variable::default();
        let end = variable.read(&mut VariableType::default(), tokens);
        let end = end.map_err(|problem| {
            format!("parameter {} `{}`: {problem}", found.len(), variable.name)
        })?;
        found.push(variable);
        match end {
            "," => {}
            ")" => return Ok(found),
            _ => return Err("its parameter list has no end".to_owned()),
        }
    }
}

/// The type of all variables of a declaration.
#[derive(Debug, Default)]
struct VariableType {
    align: Option<u64>,
    element: Option<u64>,
    /// Number of elements of a vector.
    vector: Option<u64>,
}

impl Variable {
    /// Reads a declared variable; returns the sign after it.
    fn read<'t>(
        &mut self,
        kind: &mut VariableType,
        tokens: &mut Peekable<Tokens<'t>>,
    ) -> Result<&'t str, String> {
        let mut elements = 1_u64;
        while let Some(token) = tokens.next() {
            match token {
                "," | ")" | ";" => {
                    let element = kind.element.ok_or("its type is unknown")?;
                    let element = element * kind.vector.unwrap_or(1);
                    let size = element.checked_mul(elements);
                    self.size = size.ok_or("its size does not fit in 64 bits")?;
                    self.align = kind.align.unwrap_or(element);
                    return Ok(token);
                }
                ".ptr" => self.is_pointer = true,
                ".align" => {
                    let align = number(tokens.next())?;
                    if !align.is_power_of_two() {
                        return Err(format!("its alignment {align} is not a power of two"));
                    }
                    // After `.ptr`, it is the alignment of the pointee.
                    if !self.is_pointer {
                        kind.align = Some(align);
                    }
                }
                ".v2" => kind.vector = Some(2),
                ".v4" => kind.vector = Some(4),
                ".v8" => kind.vector = Some(8),
                "[" => match tokens.next() {
                    // Dynamic shared memory.
                    Some("]") => elements = 0,
                    count => {
                        let count = elements.checked_mul(number(count)?);
                        elements = count.ok_or("its size does not fit in 64 bits")?;
                        tokens.next_if_eq(&"]");
                    }
                },
                ".texref" | ".samplerref" | ".surfref" => {
                    return Err(format!(
                        "a `{token}` cannot be passed in the argument buffer"
                    ));
                }
                word if word.starts_with('.') => {
                    let known = TYPES.iter().find(|(name, _)| *name == word);
                    kind.element = known.map(|(_, size)| *size).or(kind.element);
                }
                word => word.clone_into(&mut self.name),
            }
        }
        Err("its declaration has no end".to_owned())
    }
}

/// Returns the end of consecutive variables.
fn end_of<'t>(variables: impl IntoIterator<Item = &'t Variable>) -> Option<u64> {
    variables.into_iter().try_fold(0_u64, |end, variable| {
        end.checked_next_multiple_of(variable.align)?
            .checked_add(variable.size)
    })
}

/// Reads a body after its opening brace, up to the closing one.
fn body<'t>(tokens: &mut Peekable<Tokens<'t>>) -> Result<Body<'t>, KernelError> {
    let mut body = Body::default();
    let mut depth = 1_u64;
    while let Some(token) = tokens.next() {
        match token {
            "{" => depth += 1,
            "}" if depth == 1 => return Ok(body),
            "}" => depth -= 1,
            ".shared" => body.shared.extend(variables(tokens)?),
            word if word.starts_with(is_of_word) => {
                body.words.insert(word);
            }
            _ => {}
        }
    }
    Err(KernelError::new("a function's body has no end"))
}

/// Skips tokens up to and including the next `sign`.
fn pass(tokens: &mut Peekable<Tokens<'_>>, sign: &str) {
    tokens.by_ref().find(|token| *token == sign);
}

/// Reads one to three numbers; missing ones are 1.
fn threads(tokens: &mut Peekable<Tokens<'_>>) -> Result<[u32; 3], String> {
    let mut threads = [1; 3];
    for count in &mut threads {
        let wide = number(tokens.next())?;
        *count =
            u32::try_from(wide).map_err(|_| format!("{wide} threads do not fit in 32 bits"))?;
        if tokens.next_if_eq(&",").is_none() {
            break;
        }
    }
    Ok(threads)
}

/// Reads a number in C's notation.
fn number(token: Option<&str>) -> Result<u64, String> {
    let text = token.unwrap_or_default();
    let digits = text.trim_end_matches('U');
    let parsed = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => u64::from_str_radix(digits.split_at(2).1, 16),
        [b'0', b'b' | b'B', ..] => u64::from_str_radix(digits.split_at(2).1, 2),
        [b'0', _, ..] => u64::from_str_radix(digits, 8),
        _ => digits.parse(),
    };
    parsed.map_err(|_| format!("expected a number, found `{text}`"))
}

/// Iterates over words (with their dots) and signs; skips strings.
struct Tokens<'t> {
    rest: &'t str,
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.')
}

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        loop {
            self.rest = self.rest.trim_start();
            let first = self.rest.chars().next()?;
            if first == '"' {
                let mut is_escaped = true;
                let end = self.rest.find(|c| {
                    let ends = c == '"' && !is_escaped;
                    is_escaped = !is_escaped && c == '\\';
                    ends
                });
                let end = end.map_or(self.rest.len(), |end| end + 1);
                self.rest = self.rest.split_at(end).1;
                continue;
            }
            let size = match is_of_word(first) {
                true => self.rest.find(|c| !is_of_word(c)),
                false => Some(first.len_utf8()),
            };
            let (token, rest) = self.rest.split_at(size.unwrap_or(self.rest.len()));
            self.rest = rest;
            return Some(token);
        }
    }
}
