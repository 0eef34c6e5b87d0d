//! Names of device libraries, as links search for them and as tools create them.
//!
//! | name                        | content, by convention             |
//! |-----------------------------|------------------------------------|
//! | `libbc-<name>-<arch>-<id>.a`  | an archive of bitcode for a target |
//! | `libbc-<name>-<arch>.a`       | the same for an architecture       |
//! | `libbc-<name>.a`              | the same for all                   |
//! | `lib<name>-<arch>-<id>.bc` …  | one file of bitcode                |
//! | `lib<name>-<arch>-<id>.a` …   | an archive of code objects         |
//!
//! The architecture is `amdgcn` or `nvptx64`; for a CPU device it is the whole triple. Dashes
//! replace the colons of a target ID. Specification: `docs/spec/linker-wrapper.md` §7.4.

use super::Triple;
use super::target_id::processor;

const GPUS: [&str; 2] = ["amdgcn", "nvptx64"];

/// The parts of a library's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LibraryName<'a> {
    /// `foo` of `libbc-foo-amdgcn-gfx90a.a` and of `libfoo.a`.
    pub name: &'a str,
    /// Architecture, or triple of a CPU; empty if the name has none.
    pub arch: &'a str,
    /// Target ID with dashes instead of colons; empty if the name has none.
    pub processor: &'a str,
}

impl<'a> LibraryName<'a> {
    /// Reads the name of a file without its extension.
    #[must_use]
    pub fn parse(stem: &'a str) -> Self {
        let name = stem
            .strip_prefix("libbc-")
            .or_else(|| stem.strip_prefix("lib"))
            .unwrap_or(stem);
        let gpu = GPUS.iter().find_map(|arch| {
            let at = name.rfind(&format!("-{arch}"))?;
            let (before, rest) = name.split_at(at);
            let (arch, rest) = rest.get(1..)?.split_at(arch.len());
            let processor = match rest.strip_prefix('-') {
                Some(processor) => processor,
                None if rest.is_empty() => rest,
                None => return None,
            };
            Some(Self {
                name: before,
                arch,
                processor,
            })
        });
        gpu.or_else(|| Self::of_cpu(name)).unwrap_or(Self {
            name,
            arch: "",
            processor: "",
        })
    }

    fn of_cpu(name: &'a str) -> Option<Self> {
        let dashes = name.match_indices('-').map(|(dash, _)| dash);
        let mut splits = dashes.map(|dash| name.split_at(dash));
        splits.find_map(|(name, rest)| {
            let arch = rest.strip_prefix('-')?;
            let triple = Triple::parse(arch).ok()?;
            let is_triple = arch.contains('-') && triple.has_known_arch();
            (is_triple && triple.is_cpu()).then_some(Self {
                name,
                arch,
                processor: "",
            })
        })
    }

    /// Returns true if the parts of the name match a target. Missing parts match every target.
    #[must_use]
    pub fn fits(&self, triple: &Triple, target_id: &str) -> bool {
        let base = processor(target_id);
        let processors = ["", base, &*target_id.replace(':', "-")];
        match self.arch {
            "" => true,
            arch => arch == of_triple(triple) && processors.contains(&self.processor),
        }
    }
}

/// Returns the architecture of a triple in library names.
fn of_triple(triple: &Triple) -> &str {
    match triple {
        _ if triple.is_amdgpu() => "amdgcn",
        _ if triple.is_cpu() => triple.as_str().trim_end_matches('-'),
        _ => triple.arch(),
    }
}

/// Returns the file name of a library for one target: `libbc-foo-amdgcn-gfx90a.a`.
#[must_use]
pub fn file_name(library: &str, triple: &Triple, target_id: &str) -> String {
    let target_id = target_id.replace([':', '/', '\\'], "-");
    let arch = of_triple(triple).replace(['/', '\\'], "-");
    match target_id.as_str() {
        "" => format!("libbc-{library}-{arch}.a"),
        _ => format!("libbc-{library}-{arch}-{target_id}.a"),
    }
}

/// Returns the names of the files to search for a `library` and a target, in order: for the target
/// ID, for its processor, for the architecture, for all.
#[must_use]
pub fn candidates(library: &str, triple: &Triple, target_id: &str) -> Vec<String> {
    let arch = of_triple(triple);
    let processor = processor(target_id);
    let of_device = |before: &str, after: &str| {
        let mut names: Vec<String> = [target_id.replace(':', "-").as_str(), processor]
            .iter()
            .filter(|processor| !processor.is_empty())
            .map(|processor| format!("{before}-{arch}-{processor}{after}"))
            .collect();
        names.dedup();
        names.push(format!("{before}-{arch}{after}"));
        names
    };
    let (bitcode, plain) = (format!("libbc-{library}"), format!("lib{library}"));
    let mut names = of_device(&bitcode, ".a");
    // A library for all architectures contains no CPU code.
    let for_all = !triple.is_cpu();
    names.extend(for_all.then(|| format!("{bitcode}.a")));
    names.extend(of_device(&plain, ".bc"));
    names.extend(for_all.then(|| format!("{plain}.bc")));
    names.extend(of_device(&plain, ".a"));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triple(text: &str) -> Triple {
        Triple::parse(text).unwrap()
    }

    #[test]
    fn looks_for_the_names_of_the_specification() {
        let amd = triple("amdgcn-amd-amdhsa");
        assert_eq!(
            candidates("foo", &amd, "gfx906"),
            [
                "libbc-foo-amdgcn-gfx906.a",
                "libbc-foo-amdgcn.a",
                "libbc-foo.a",
                "libfoo-amdgcn-gfx906.bc",
                "libfoo-amdgcn.bc",
                "libfoo.bc",
                "libfoo-amdgcn-gfx906.a",
                "libfoo-amdgcn.a",
            ]
        );
        let with_features = candidates("foo", &amd, "gfx90a:xnack+");
        assert_eq!(
            with_features[..2],
            [
                "libbc-foo-amdgcn-gfx90a-xnack+.a",
                "libbc-foo-amdgcn-gfx90a.a"
            ]
        );
        assert_eq!(
            candidates("foo", &triple("x86_64-pc-linux-gnu"), ""),
            [
                "libbc-foo-x86_64-pc-linux-gnu.a",
                "libfoo-x86_64-pc-linux-gnu.bc",
                "libfoo-x86_64-pc-linux-gnu.a",
            ]
        );
    }

    #[test]
    fn reads_what_names_say() {
        let row = |stem: &'static str| {
            let found = LibraryName::parse(stem);
            (found.name, found.arch, found.processor)
        };
        assert_eq!(row("libfoo"), ("foo", "", ""));
        assert_eq!(row("libbc-foo"), ("foo", "", ""));
        assert_eq!(row("libbc-a-b-amdgcn-gfx90a"), ("a-b", "amdgcn", "gfx90a"));
        assert_eq!(row("libfoo-nvptx64"), ("foo", "nvptx64", ""));
        let cpu = row("libbc-a-b-x86_64-pc-linux-gnu");
        assert_eq!(cpu, ("a-b", "x86_64-pc-linux-gnu", ""));
        // No library is named `lib-…`, and `x86_64` alone is no triple.
        assert_eq!(row("liba-x86_64"), ("a-x86_64", "", ""));
        assert_eq!(row("liba-amdgcnx"), ("a-amdgcnx", "", ""));
        let spirv = "a-spirv64-unknown-unknown";
        assert_eq!(row("liba-spirv64-unknown-unknown"), (spirv, "", ""));
    }

    #[test]
    fn finds_what_it_names() {
        let targets = [
            ("amdgcn-amd-amdhsa", "gfx90a:sramecc+:xnack-"),
            ("nvptx64-nvidia-cuda", "sm_90"),
            ("aarch64-unknown-linux-gnu", ""),
        ];
        for id in ["gfx90a", "gfx90a:sramecc-", "gfx906:sramecc+:xnack-"] {
            let read = LibraryName::parse("libbc-foo-amdgcn-gfx90a-sramecc-");
            let fits = read.fits(&triple(targets[0].0), id);
            assert_eq!(fits, id == "gfx90a:sramecc-", "{id}");
        }
        for (text, id) in targets {
            let triple = triple(text);
            let name = file_name("foo", &triple, id);
            assert_eq!(candidates("foo", &triple, id)[0], name);
            let read = LibraryName::parse(name.strip_suffix(".a").unwrap());
            assert_eq!(read.name, "foo", "{name}");
            for (other, other_id) in targets {
                let fits = read.fits(&self::triple(other), other_id);
                assert_eq!(fits, other == text, "{name} for {other}");
            }
        }
    }
}
