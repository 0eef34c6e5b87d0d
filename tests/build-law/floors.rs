//! The law of the house: what may use what, in every folder of every crate.
//!
//! - **Rooms**: the folders and files at the top of a crate stand in the order of [`ROOMS`]; each uses only those before it.
//! - **Siblings**: below, in any folder, files and folders use each other without cycles. The file that declares them
//!   counts as one of them: a child that needs something of its parent's file, which in turn uses the child, is a cycle.
//! - **The world**: files, processes and variables are for the rooms that [`WORLD`] lets in.
//! - **Planning**: the rooms of [`PLANNING`] get values. They search nothing, start nothing, and name no type that does.
//!
//! All of it is read from the parsed sources; code under `#[cfg(test)]` is free.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;

pub(crate) const CRATES: [&str; 7] = [
    "offload-formats/core",
    "offload-formats",
    "offload-build/core",
    "offload-build",
    "offload-link",
    "offload-device",
    "offload-device/macros",
];

/// Crate, folder in it, and the rooms there, lowest first; those of one line do not use each other.
const ROOMS: [(&str, &str, &[&[&str]]); 8] = [
    (
        "offload-formats/core",
        "",
        &[
            &["by_name", "escape", "md5", "names", "settings"],
            &["format"],
        ],
    ),
    ("offload-formats", "", &[&["container"], &["registration"]]),
    (
        "offload-build/core",
        "",
        &[
            &["error", "files", "process"],
            &["environment", "readable"],
            &["declare"],
            &["installed"],
            &["compile"],
        ],
    ),
    (
        "offload-build",
        "",
        &[
            &["check", "messages", "out_dir", "unpacking"],
            &["inputs"],
            &["device_link", "generate"],
            &["steps"],
            &["plan"],
            &["run"],
            &["builder", "project"],
        ],
    ),
    (
        "offload-link",
        "",
        &[
            &["platform"],
            &["say", "json", "stamp", "environment"],
            &["signals"],
            &["files"],
            &["decompressed"],
            &["options"],
            &["llvm_tool"],
            &["linker_wrapper", "bundler", "packager", "offload_wrapper"],
            &["cargo_offload"],
            &["bin"],
        ],
    ),
    (
        "offload-link",
        "linker_wrapper",
        &[
            &["error", "tool"],
            &["temporaries", "workplace"],
            &["line"],
            &["report"],
            &["actions", "installed"],
            &["inputs"],
            &["choose"],
            &["plan"],
            &["run"],
        ],
    ),
    (
        "offload-device",
        "",
        &[
            &["description"],
            &["grid"],
            &["executor", "intrinsics"],
            &["device"],
            &["element", "float"],
            &["signature"],
            &["argument", "atomic", "item"],
            &["global"],
            &["expansion"],
            &["cpu", "gpu"],
        ],
    ),
    (
        "offload-device/macros",
        "",
        &[&["syntax_error", "template"], &["parse"], &["expand"]],
    ),
];

/// What is of the machine, and who may use it.
const WORLD: [(&str, &[&str]); 4] = [
    (
        "std::fs",
        &[
            "offload-build/core/files",
            "offload-build/core/readable",
            "offload-build/core/process",
            "offload-build/core/declare",
            "offload-build/core/installed",
            "offload-build/inputs",
            "offload-build/steps",
            "offload-build/run",
            "offload-build/project",
            "offload-link",
        ],
    ),
    (
        "std::process",
        &["offload-build/core/process", "offload-link"],
    ),
    (
        "std::env::var",
        &["offload-build/core/environment", "offload-link"],
    ),
    (
        "std::env::var_os",
        &[
            "offload-build/core/environment",
            "offload-link",
            "offload-device/executor/settings",
            "offload-device/gpu/library",
        ],
    ),
];

/// Methods of paths that ask the file system: they count as `std::fs`.
const PATH_METHODS: [&str; 9] = [
    "canonicalize",
    "exists",
    "is_dir",
    "is_file",
    "is_symlink",
    "read_dir",
    "read_link",
    "symlink_metadata",
    "try_exists",
];

/// A room that only makes values of what others found, and what its crate calls the searches.
struct Planning {
    /// The crate.
    name: &'static str,
    /// The room: a path from the crate's root.
    room: &'static [&'static str],
    /// What it may not name: paths from the crate's root, or from that of another crate.
    finding: &'static [&'static [&'static str]],
    /// Methods that it may not call.
    methods: &'static [&'static str],
    /// The room of which it may name types, and no function.
    found: Option<&'static [&'static str]>,
}

/// The searches, the answers of programs, the variables in `offload-build-core`, as that crate names them and as
/// `offload-build` does.
const BUILD_FINDING: &[&[&str]] = &[
    &["process", "search", "Search"],
    &["installed", "answers"],
    &["installed", "machine"],
    &["environment"],
    &["offload_build_core", "process", "search", "Search"],
    &["offload_build_core", "installed", "answers"],
    &["offload_build_core", "installed", "machine"],
    &["offload_build_core", "environment"],
];

/// Methods of commands, and of an LLVM that looks into its folders.
const BUILD_METHODS: &[&str] = &["run", "run_with", "sibling", "offload_runtime"];

const PLANNING: [Planning; 5] = [
    build_planning("offload-build/core", &["compile"]),
    build_planning("offload-build", &["device_link"]),
    build_planning("offload-build", &["generate"]),
    build_planning("offload-build", &["plan"]),
    Planning {
        name: "offload-link",
        room: &["linker_wrapper", "plan"],
        finding: &[
            &["std", "env"],
            &["std", "fs"],
            &["std", "process"],
            &["offload_build", "tools", "DeviceTools", "find"],
            &["offload_build", "tools", "Llvm"],
            &["offload_build", "tools", "Search"],
            &["files"],
            &["linker_wrapper", "actions"],
            &["linker_wrapper", "installed", "device_programs"],
        ],
        // Of commands, of images and files, and of the programs that were found.
        methods: &["read", "run", "run_with", "sibling"],
        found: Some(&["linker_wrapper", "installed"]),
    },
];

const fn build_planning(name: &'static str, room: &'static [&'static str]) -> Planning {
    Planning {
        name,
        room,
        finding: BUILD_FINDING,
        methods: BUILD_METHODS,
        found: None,
    }
}

/// A path of a module in its crate: `["format", "bundle"]`. The crate's own file is `[]`.
pub(crate) type Module = Vec<String>;

/// What a module's sources say.
#[derive(Default)]
struct Source {
    /// Paths that its code names, from the crate's root, as far as they are written.
    used: BTreeSet<Module>,
    /// Paths into other crates, the standard library among them.
    foreign: BTreeSet<Vec<String>>,
    /// Names after a dot: methods and fields.
    called: BTreeSet<String>,
    /// `pub use`: the name here, and the path that it stands for.
    exported: BTreeMap<String, Module>,
    /// `pub use` of another crate's items: who uses them by the name here uses that crate, not this module.
    passed_on: BTreeSet<String>,
}

/// A crate's modules.
#[derive(Default)]
struct Crate {
    modules: BTreeMap<Module, Source>,
}

impl Crate {
    fn read(src: &Path) -> Self {
        Self::new(sources(src))
    }

    fn new(sources: Vec<(Module, String)>) -> Self {
        let names: BTreeSet<Module> = sources.iter().map(|(module, _)| module.clone()).collect();
        let mut all = Self::default();
        for (module, text) in sources {
            let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{module:?}: {error}"));
            let mut reader = Reader {
                names: &names,
                imported: BTreeMap::new(),
                own: BTreeMap::new(),
                source: Source::default(),
            };
            reader.items(&file.items, &module);
            all.modules.insert(module, reader.source);
        }
        all
    }

    /// The module that defines what `path` names, through re-exports.
    fn owner(&self, path: &[String]) -> Module {
        let path = self.resolved(path);
        path[..self.depth(&path)].to_vec()
    }

    /// The number of parts of `path` that name a module.
    fn depth(&self, path: &[String]) -> usize {
        let mut depths = (0..=path.len()).rev();
        depths
            .find(|&depth| self.modules.contains_key(&path[..depth]))
            .unwrap_or(0)
    }

    /// `path` with each re-export replaced by what it stands for.
    fn resolved(&self, path: &[String]) -> Vec<String> {
        let mut path = path.to_vec();
        for _ in 0..8 {
            let depth = self.depth(&path);
            let exported = path.get(depth).and_then(|name| {
                let source = self.modules.get(&path[..depth])?;
                source.exported.get(name)
            });
            let Some(target) = exported else { break };
            let rest = path[depth + 1..].iter();
            path = target.iter().chain(rest).cloned().collect();
        }
        path
    }

    /// Whether `path` names what its module has from another crate.
    fn is_passed_on(&self, path: &[String]) -> bool {
        let path = self.resolved(path);
        let depth = self.depth(&path);
        let source = self.modules.get(&path[..depth]);
        source.is_some_and(|source| {
            path.get(depth)
                .is_some_and(|name| source.passed_on.contains(name))
        })
    }

    /// For each folder its members' uses of each other: `(folder, user) → used`. `""` is the folder's own file.
    fn uses(&self) -> BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> {
        let mut folders: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (user, source) in &self.modules {
            for path in &source.used {
                let used = self.owner(path);
                if used == *user || self.is_passed_on(path) {
                    continue;
                }
                let common = user.iter().zip(&used).take_while(|(a, b)| a == b).count();
                let member = |module: &Module| module.get(common).cloned().unwrap_or_default();
                let folder = folders.entry(user[..common].to_vec()).or_default();
                folder
                    .entry(member(user))
                    .or_default()
                    .insert(member(&used));
            }
        }
        folders
    }
}

/// Lists the sources under `src` with their modules, except tests.
pub(crate) fn sources(src: &Path) -> Vec<(Module, String)> {
    let mut sources = Vec::new();
    collect(src, &mut Vec::new(), &mut sources);
    sources
}

fn collect(folder: &Path, module: &mut Module, sources: &mut Vec<(Module, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            module.push(name);
            collect(&path, module, sources);
            module.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let mut module = module.clone();
            if !["mod", "lib"].contains(&name.as_str()) {
                module.push(name);
            }
            sources.push((module, fs::read_to_string(&path).unwrap()));
        }
    }
}

struct Reader<'a> {
    names: &'a BTreeSet<Module>,
    /// Names of other crates, and what they stand for.
    imported: BTreeMap<String, Vec<String>>,
    /// Imported names of this crate, and the paths that they stand for.
    own: BTreeMap<String, Module>,
    source: Source,
}

impl Reader<'_> {
    /// `here` is the module of the items, also of one in braces.
    fn items(&mut self, items: &[syn::Item], here: &Module) {
        // Names first: the code below them says no path any more.
        let is_use = |item: &&syn::Item| matches!(item, syn::Item::Use(_));
        let uses = items.iter().filter(is_use);
        for item in uses.chain(items.iter().filter(|item| !is_use(item))) {
            if attributes(item).iter().any(is_test) {
                continue;
            }
            match item {
                syn::Item::Use(item) => {
                    let public = !matches!(item.vis, syn::Visibility::Inherited);
                    self.tree(&item.tree, Vec::new(), here, public);
                }
                syn::Item::Mod(item) => {
                    if let Some((_, items)) = &item.content {
                        let mut inner = here.clone();
                        inner.push(item.ident.to_string());
                        self.items(items, &inner);
                    }
                }
                other => self.tokens(other.to_token_stream(), here),
            }
        }
    }

    fn tree(&mut self, tree: &syn::UseTree, mut path: Vec<String>, here: &Module, public: bool) {
        match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.tree(&part.tree, path, here, public);
            }
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                if name != "self" {
                    path.push(name.clone());
                }
                let name = path.last().cloned().unwrap_or(name);
                self.use_path(path, here, Some(name), public);
            }
            syn::UseTree::Rename(rename) => {
                let name = rename.ident.to_string();
                if name != "self" {
                    path.push(name);
                }
                self.use_path(path, here, Some(rename.rename.to_string()), public);
            }
            syn::UseTree::Glob(_) => self.use_path(path, here, None, public),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(tree, path.clone(), here, public);
                }
            }
        }
    }

    /// Records an import under `name`. What a child has and its parent only passes on is no use of it.
    fn use_path(&mut self, path: Vec<String>, here: &Module, name: Option<String>, public: bool) {
        let own = self.absolute(&path, here);
        let imported = match &own {
            Some(_) => &mut self.own,
            None => &mut self.imported,
        };
        if let Some(name) = &name {
            imported.insert(name.clone(), own.clone().unwrap_or_else(|| path.clone()));
        }
        let Some(path) = own else {
            self.source.foreign.insert(path);
            self.source.passed_on.extend(name.filter(|_| public));
            return;
        };
        let own_child = path.len() > here.len() && path.starts_with(here);
        match name {
            Some(name) if public && own_child => {
                self.source.exported.insert(name, path);
            }
            _ => {
                self.source.used.insert(path);
            }
        }
    }

    /// `crate::a`, `super::a`, `self::a`, and `a::b` of an own child `a`.
    fn absolute(&self, path: &[String], here: &Module) -> Option<Module> {
        let first = path.first()?;
        let (mut base, mut rest) = match first.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (here.clone(), &path[1..]),
            "super" => (here.clone(), path),
            _ => {
                let mut child = here.clone();
                child.push(first.clone());
                return self.names.contains(&child).then(|| {
                    child.extend(path[1..].iter().cloned());
                    child
                });
            }
        };
        while rest.first().is_some_and(|part| part == "super") {
            base.pop();
            rest = &rest[1..];
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// The paths in code, also in the arguments of macros.
    fn tokens(&mut self, tokens: TokenStream, here: &Module) {
        let mut path: Vec<String> = Vec::new();
        let (mut colons, mut after_dot) = (0, false);
        let flush = |reader: &mut Self, path: &mut Vec<String>| {
            // What a file passes on and also uses.
            let exported = path
                .first()
                .and_then(|name| reader.source.exported.get(name));
            if let Some(exported) = exported.cloned() {
                reader.source.used.insert(exported);
            } else if path.len() > 1 {
                let own = reader.own.get(&path[0]).map(|own| {
                    let rest = path[1..].iter().cloned();
                    own.iter().cloned().chain(rest).collect()
                });
                match own.or_else(|| reader.absolute(path, here)) {
                    Some(path) => reader.source.used.insert(path),
                    None => {
                        let from = reader.imported.get(&path[0]).cloned();
                        let from = from.unwrap_or_else(|| vec![path[0].clone()]);
                        let rest = path[1..].iter().cloned();
                        reader
                            .source
                            .foreign
                            .insert(from.into_iter().chain(rest).collect())
                    }
                };
            }
            path.clear();
        };
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        flush(self, &mut path);
                    }
                    path.push(ident.to_string());
                    if after_dot {
                        self.source.called.insert(ident.to_string());
                    }
                    (colons, after_dot) = (0, false);
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Punct(punct) if punct.as_char() == '.' => {
                    flush(self, &mut path);
                    after_dot = true;
                }
                TokenTree::Group(group) => {
                    flush(self, &mut path);
                    (colons, after_dot) = (0, false);
                    let inner = group.stream();
                    if group.delimiter() != Delimiter::None || !inner.is_empty() {
                        self.tokens(inner, here);
                    }
                }
                _ => {
                    flush(self, &mut path);
                    (colons, after_dot) = (0, false);
                }
            }
        }
        flush(self, &mut path);
    }
}

/// One line for each use of files, processes and variables in a room that [`WORLD`] does not let in.
fn of_the_world(name: &str, all: &Crate) -> Vec<String> {
    let mut problems = Vec::new();
    for (module, source) in &all.modules {
        let path = format!("{name}/{}", module.join("/"));
        for (word, allowed) in WORLD {
            if allowed.iter().any(|allowed| path.starts_with(allowed)) {
                continue;
            }
            let parts: Vec<String> = word.split("::").map(str::to_owned).collect();
            if source.foreign.iter().any(|path| path.starts_with(&parts)) {
                problems.push(format!("{path} uses `{word}`"));
            }
            let called = PATH_METHODS
                .iter()
                .filter(|method| source.called.contains(**method));
            if word == "std::fs" {
                problems.extend(called.map(|method| format!("{path} calls `{method}`")));
            }
        }
    }
    problems
}

/// One line for each search in a room that plans.
fn searches(planning: &Planning, all: &Crate) -> Vec<String> {
    let starts = |path: &[String], start: &[&str]| {
        path.len() >= start.len() && path.iter().zip(start).all(|(a, b)| a == b)
    };
    let mut problems = Vec::new();
    for (module, source) in &all.modules {
        if !starts(module, planning.room) {
            continue;
        }
        let path = module.join("/");
        let used = source.used.iter().map(|path| all.resolved(path));
        for used in used.chain(source.foreign.iter().cloned()) {
            let is_type = || {
                let first = used.last().and_then(|name| name.chars().next());
                first.is_some_and(char::is_uppercase)
            };
            let is_found = planning.found.is_some_and(|room| starts(&used, room));
            let mut finding = planning.finding.iter();
            if finding.any(|finding| starts(&used, finding)) || is_found && !is_type() {
                problems.push(format!("{path} names `{}`", used.join("::")));
            }
        }
        let methods = planning.methods.iter().chain(match planning.found {
            Some(_) => &PATH_METHODS[..],
            // There the world is closed to all such rooms.
            None => &[],
        });
        let called = methods.filter(|method| source.called.contains(**method));
        problems.extend(called.map(|method| format!("{path} calls `{method}`")));
    }
    problems
}

pub(crate) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub(crate) fn is_test(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.to_token_stream().to_string().contains("test")
}

/// Groups of members that use each other in a circle.
fn cycles(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reach = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&String> = vec![from];
        while let Some(user) = next.pop() {
            for used in uses.get(user).into_iter().flatten() {
                if seen.insert(used.clone()) {
                    next.push(used);
                }
            }
        }
        seen
    };
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for member in uses.keys() {
        if found.iter().any(|cycle| cycle.contains(member)) {
            continue;
        }
        let reached = reach(member);
        if reached.contains(member) {
            let cycle = reached.iter().filter(|other| reach(other).contains(member));
            found.push(cycle.cloned().collect());
        }
    }
    found
}

pub(crate) fn source_folder(name: &str) -> std::path::PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.join(name).join("src")
}

/// One line for each use of a room that is not below the user's, and for each room without a place.
fn against_order(rooms: &[&[&str]], folder: &[String], all: &Crate) -> Vec<String> {
    let floor = |name: &str| rooms.iter().position(|rooms| rooms.contains(&name));
    let mut problems = Vec::new();
    let uses = all.uses().remove(folder).unwrap_or_default();
    let members = all
        .modules
        .keys()
        .filter_map(|module| module.strip_prefix(folder));
    let tops = members.filter_map(|module| module.first());
    for name in tops.collect::<BTreeSet<_>>() {
        if floor(name).is_none() {
            problems.push(format!("`{name}` has no floor"));
        }
    }
    for (user, used) in &uses {
        for used in used {
            // The crate's own file is above all, and nothing uses it.
            let allowed = user.is_empty() || floor(used) < floor(user) && !used.is_empty();
            if !allowed {
                problems.push(format!("`{user}` uses `{used}`"));
            }
        }
    }
    problems
}

/// One line for each circle.
fn circles(all: &Crate) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (folder, uses) in all.uses() {
        for cycle in cycles(&uses) {
            let lines = uses.iter().filter(|(user, _)| cycle.contains(*user));
            let lines = lines.map(|(user, used)| {
                let used: Vec<&String> = used.intersection(&cycle).collect();
                format!("  {user:?} uses {used:?}")
            });
            let lines: Vec<String> = lines.collect();
            found.push((folder.join("/"), lines.join("\n")));
        }
    }
    found
}

/// Rooms use only lower rooms, siblings use each other without circles, only some rooms see the world, and plans are made
/// without searching. One test, because it takes long to read the crates.
#[test]
fn rooms_keep_their_laws() {
    let crates: BTreeMap<&str, Crate> = CRATES
        .into_iter()
        .map(|name| (name, Crate::read(&source_folder(name))))
        .collect();
    let mut problems = Vec::new();
    for (name, folder, rooms) in ROOMS {
        let all = &crates[name];
        assert!(all.modules.len() > 3, "{name}: {}", all.modules.len());
        let parts = folder.split('/').filter(|part| !part.is_empty());
        let parts: Module = parts.map(str::to_owned).collect();
        let found = against_order(rooms, &parts, all).into_iter();
        problems.extend(found.map(|line| format!("{name}/{folder}: {line}")));
    }
    for (name, all) in &crates {
        let found = circles(all).into_iter();
        problems.extend(found.map(|(folder, lines)| format!("{name}/{folder}:\n{lines}")));
        problems.extend(of_the_world(name, all));
    }
    for planning in &PLANNING {
        let all = &crates[planning.name];
        let room: Module = planning.room.iter().map(|&part| part.to_owned()).collect();
        assert!(all.modules.contains_key(&room), "no room {room:?}");
        problems.extend(searches(planning, all));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A crate of these modules and sources.
fn crate_of(sources: &[(&str, &str)]) -> Crate {
    let sources = sources.iter().map(|(path, text)| {
        let parts = path.split('/').filter(|part| !part.is_empty());
        (parts.map(str::to_owned).collect(), (*text).to_owned())
    });
    Crate::new(sources.collect())
}

#[test]
fn finds_uses_of_higher_rooms() {
    const ROOMS: &[&[&str]] = &[&["low", "other"], &["high"]];
    let problems = |low: &str| {
        let high = "pub fn f() {} pub struct S; pub mod inner { pub fn g() {} }";
        let front = "mod low; mod other; mod high; pub use high::S;";
        let sources = [("", front), ("low", low), ("other", ""), ("high", high)];
        against_order(ROOMS, &[], &crate_of(&sources)).join("; ")
    };
    let found = "`low` uses `high`";
    assert_eq!(problems("use crate::high;"), found);
    assert_eq!(problems("use crate::{low, high::S};"), found);
    assert_eq!(problems("use super::high::{self as x};"), found);
    assert_eq!(problems("fn f() { crate::high::f() }"), found);
    assert_eq!(
        problems("fn f() { println!(\"{}\", crate::high::f()) }"),
        found
    );
    assert_eq!(
        problems("mod m { fn f(x: super::super::high::S) {} }"),
        found
    );
    assert_eq!(problems("use crate::S;"), found, "through a re-export");
    assert_eq!(problems("use crate::other;"), "`low` uses `other`");
    assert_eq!(
        problems("// crate::high::f()\nconst S: &str = \"crate::high\";"),
        ""
    );
    assert_eq!(problems("#[cfg(test)] mod tests { use crate::high; }"), "");
    assert_eq!(problems("use std::high;"), "");
    let unlisted = crate_of(&[("", "mod new;"), ("new", "")]);
    assert_eq!(against_order(ROOMS, &[], &unlisted), ["`new` has no floor"]);
}

#[test]
fn finds_searches_in_plans() {
    let problems = |plan: &str| {
        let search = "pub struct Search; pub struct NotFound; pub fn find() {}";
        let sources = [
            ("", "mod process; mod plan;"),
            ("process", "pub mod search; pub use search::Search;"),
            ("process/search", search),
            ("plan", "mod link;"),
            ("plan/link", plan),
        ];
        searches(
            &build_planning("offload-build", &["plan"]),
            &crate_of(&sources),
        )
        .join("; ")
    };
    let named = "plan/link names `process::search::Search`";
    assert_eq!(problems("use crate::process::search::Search;"), named);
    assert_eq!(problems("use crate::process::Search;"), named, "re-export");
    assert_eq!(
        problems("fn f(s: &crate::process::search::Search) {}"),
        named
    );
    assert_eq!(
        problems("use crate::process::search::{NotFound, find};"),
        ""
    );
    let called = "plan/link calls `run`";
    assert_eq!(problems("fn f() { command.arg(1).run()?; }"), called);
    assert_eq!(problems("fn f() { println!(\"{}\", c.run()) }"), called);
    assert_eq!(problems("fn f() { crate::run(); let run = 0; }"), "");
    assert_eq!(
        problems("#[cfg(test)] mod tests { fn f() { c.run() } }"),
        ""
    );
}

#[test]
fn finds_searches_in_plans_of_links() {
    let planning = PLANNING.iter().find(|one| one.name == "offload-link");
    let planning = planning.unwrap();
    let problems = |plan: &str| {
        let sources = [
            ("", "mod files; mod linker_wrapper;"),
            ("files", "pub struct Reading;"),
            ("linker_wrapper", "mod installed; mod plan;"),
            ("linker_wrapper/installed", "pub mod runtimes;"),
            (
                "linker_wrapper/installed/runtimes",
                "pub struct Found; pub fn find() {}",
            ),
            ("linker_wrapper/plan", "mod link;"),
            ("linker_wrapper/plan/link", plan),
        ];
        searches(planning, &crate_of(&sources)).join("; ")
    };
    let at = |what: &str| format!("linker_wrapper/plan/link {what}");
    let found = "crate::linker_wrapper::installed::runtimes";
    assert_eq!(problems(&format!("use {found}::Found;")), "");
    let named = at("names `linker_wrapper::installed::runtimes::find`");
    assert_eq!(problems(&format!("use {found}::find;")), named);
    let called = format!("fn f() {{ {found}::find() }}");
    assert_eq!(problems(&called), named);
    let made = format!("use {found}::Found; fn f() {{ Found::find() }}");
    let named = at("names `linker_wrapper::installed::runtimes::Found::find`");
    assert_eq!(problems(&made), named);
    let renamed = format!("use {found}::Found as F; fn f() {{ F::find() }}");
    assert_eq!(problems(&renamed), named);
    let named = at("names `files::Reading`");
    assert_eq!(problems("use crate::files::Reading;"), named);
    let named = at("names `std::fs::read`");
    assert_eq!(problems("fn f() { std::fs::read(p) }"), named);
    let tools = "use offload_build::tools::DeviceTools;";
    assert_eq!(problems(&format!("{tools} fn f(t: &DeviceTools) {{}}")), "");
    let find = format!("{tools} fn f() {{ DeviceTools::find(t) }}");
    let named = at("names `offload_build::tools::DeviceTools::find`");
    assert_eq!(problems(&find), named);
    let called = "fn f(p: &Path) { p.join(\"x\").is_file() }";
    assert_eq!(problems(called), at("calls `is_file`"));
}

#[test]
fn finds_questions_to_the_file_system() {
    let problems = |text: &str| {
        let sources = [("", "mod plan;"), ("plan", text)];
        of_the_world("offload-build", &crate_of(&sources)).join("; ")
    };
    assert_eq!(
        problems("fn f(path: &Path) { path.join(\"x\").is_file() }"),
        "offload-build/plan calls `is_file`"
    );
    assert_eq!(
        problems("use std::fs;"),
        "offload-build/plan uses `std::fs`"
    );
    assert_eq!(problems("fn f() { let is_file = 1; is_file }"), "");
}

#[test]
fn finds_circles() {
    let folders = |sources: &[(&str, &str)]| {
        let found = circles(&crate_of(sources)).into_iter();
        found.map(|(folder, _)| folder).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    let around = [
        ("", "mod r;"),
        ("r", "mod a; mod b; mod c;"),
        ("r/a", "use super::b;"),
        ("r/b", "use crate::r::c::X;"),
        ("r/c", "fn f() { super::a::f() }"),
    ];
    assert_eq!(folders(&around), ["r"]);
    assert_eq!(folders(&around[..4]), none);
    let parent = |front: &'static str| [("", "mod r;"), ("r", front), ("r/a", "use super::T;")];
    assert_eq!(
        folders(&parent("mod a; struct T; fn f() { a::f() }")),
        ["r"]
    );
    assert_eq!(folders(&parent("mod a; pub use a::f; pub struct T;")), none);
    let used = parent("mod a; pub use a::f; pub struct T; fn g() { f() }");
    assert_eq!(folders(&used), ["r"], "passed on and used");
    let exported = [
        ("", "mod r;"),
        ("r", "mod a; mod b; pub use b::T;"),
        ("r/a", "use super::T;"),
        ("r/b", "use super::a;"),
    ];
    assert_eq!(folders(&exported), ["r"]);
    let front = "mod r; pub use other::{m, n as T}; fn f() { r::f() }";
    let passed_on = |text: &'static str| [("", front), ("r", text)];
    assert_eq!(folders(&passed_on("use crate::m::U; use crate::T;")), none);
    assert_eq!(folders(&passed_on("use crate::n;")), [""]);
}
