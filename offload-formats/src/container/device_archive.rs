//! Names of members in archives for one target, which are made from an archive of bundles.

use std::path::Path;

use crate::names::{EntryId, EntryKind};

/// Returns the name of the member for an image: that of the entry `entry_id`, as written, of the bundle in `member`.
///
/// The name is that of LLVM 22: `<stem>-<entry ID><stem><extension>`. The stem is that of the member's file name. Colons,
/// other separators and control characters become underscores, so no name leads into a directory.
#[must_use]
pub fn member_name(member: &str, entry_id: &str) -> String {
    let file = member.rsplit_once('/').map_or(member, |(_, file)| file);
    let (stem, extension) = match file.rfind('.').filter(|_| !matches!(file, "." | "..")) {
        Some(dot) => file.split_at(dot),
        None => (file, ""),
    };
    let id = EntryId::parse(entry_id);
    let target_id = id.as_ref().map_or("", EntryId::target_id);
    let extension = if target_id.contains("gfx") {
        ".bc"
    } else if target_id.contains("sm_") {
        ".cubin"
    } else {
        extension
    };
    let harmful = |char: char| matches!(char, ':' | '/' | '\\') || char.is_control();
    format!("{stem}-{entry_id}{stem}{extension}").replace(harmful, "_")
}

/// Returns the parts of a name that [`member_name`] returned: the stem of the bundle's member, and the kind of the entry ID.
/// Returns `None` for other names.
#[must_use]
pub fn bundle_stem(name: &str) -> Option<(&str, EntryKind)> {
    let stem = Path::new(name).file_stem()?.to_str()?;
    // The stem may contain an entry ID, too, so the longest one counts.
    let ends = (0..=stem.len() / 2).rev();
    ends.filter_map(|end| stem.split_at_checked(end))
        .find_map(|(first, rest)| {
            let id = rest.strip_prefix('-')?.strip_suffix(first)?;
            let id = EntryId::parse(id).ok()?;
            id.triple().has_known_arch().then_some((first, id.kind()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/spec/bundler.md` §5.2: observed with `clang-offload-bundler` 22.1.
    #[test]
    fn names_members_as_llvm_does() {
        let cases = [
            (
                "lib1.o",
                "openmp-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-",
                "lib1-openmp-amdgcn-amd-amdhsa--gfx906_sramecc+_xnack-lib1.bc",
            ),
            (
                "lib1.o",
                "host-x86_64-unknown-linux-gnu-",
                "lib1-host-x86_64-unknown-linux-gnu-lib1.o",
            ),
            (
                "mm.tar.obj",
                "openmp-nvptx64-nvidia-cuda-unknown-sm_70",
                "mm.tar-openmp-nvptx64-nvidia-cuda-unknown-sm_70mm.tar.cubin",
            ),
            (
                "mm.tar.obj",
                "openmp-spirv64-amd-amdhsa--amdgcnspirv",
                "mm.tar-openmp-spirv64-amd-amdhsa--amdgcnspirvmm.tar.obj",
            ),
            (
                "mm.tar.obj",
                "openmp-amdgcn-amd-amdhsa--gfx9-generic",
                "mm.tar-openmp-amdgcn-amd-amdhsa--gfx9-genericmm.tar.bc",
            ),
            (
                "cc.bc",
                "openmp-amdgcn-amd-amdhsa--gfx906",
                "cc-openmp-amdgcn-amd-amdhsa--gfx906cc.bc",
            ),
            // Without an extension, and with nothing else.
            (
                "a/b/member",
                "host-x86_64-unknown-linux-gnu-",
                "member-host-x86_64-unknown-linux-gnu-member",
            ),
            (
                ".o",
                "host-x86_64-unknown-linux-gnu-",
                "-host-x86_64-unknown-linux-gnu-.o",
            ),
            // Three fields, as LLVM 16 wrote and 19.1 takes them.
            (
                "ci9.bc",
                "openmp-amdgcn-amd-amdhsa-gfx906",
                "ci9-openmp-amdgcn-amd-amdhsa-gfx906ci9.bc",
            ),
        ];
        for (member, id, expected) in cases {
            assert_eq!(member_name(member, id), expected);
            let stem = expected.split_once(&*format!("-{id}").replace(':', "_"));
            let kind = EntryId::parse(id).unwrap().kind();
            assert_eq!(
                bundle_stem(expected),
                stem.map(|(stem, _)| (stem, kind)),
                "{expected}"
            );
        }
    }

    #[test]
    fn finds_the_stem_only_in_names_with_an_entry_id() {
        let ids = [
            "host-x86_64-unknown-linux-gnu-",
            "host-x86_64-pc-linux-gnu",
            "openmp-x86_64-pc-linux-gnu-",
            "openmp-aarch64-unknown-linux-gnu",
            "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
            "hipv4-amdgcn-amd-amdhsa-unknown-gfx90a",
            "openmp-nvptx64-nvidia-cuda-sm_80",
            "hip-spirv64-amd-amdhsa--amdgcnspirv",
        ];
        // `offload-build` names the member of the source `c/x.c` `c-x.c.o`.
        for stem in [
            "x",
            "c-x.c",
            "cpp-y.cpp",
            "foo-bar-foo",
            "foo-host-foo",
            "host-host",
            "aa-a",
            "\u{e4}-\u{e4}",
        ] {
            let name = format!("{stem}.o");
            assert_eq!(bundle_stem(&name), None, "{name}");
            for id in ids {
                let split = member_name(&name, id);
                let kind = EntryId::parse(id).unwrap().kind();
                assert_eq!(bundle_stem(&split), Some((stem, kind)), "{split}");
                let again = member_name(&split, id);
                let whole = Path::new(&split).file_stem().unwrap().to_str().unwrap();
                assert_eq!(bundle_stem(&again), Some((whole, kind)), "{again}");
            }
        }
        for name in ["", "-", ".o", "..", "a-b-a.o", "a-openmp-b-a.o"] {
            assert_eq!(bundle_stem(name), None, "{name}");
        }
    }

    #[test]
    fn names_no_folder() {
        let id = "host-x86_64-unknown-linux-gnu-";
        assert_eq!(member_name("../../x.o", id), format!("x-{id}x.o"));
        assert_eq!(member_name("..", id), format!("..-{id}.."));
        assert_eq!(
            member_name("a\\..\\b\0.o", id),
            format!("a_.._b_-{id}a_.._b_.o")
        );
        assert_eq!(member_name("a.o", "x/../\n"), "a-x_..__a.o");
        assert_eq!(member_name("", ""), "-");
    }
}
