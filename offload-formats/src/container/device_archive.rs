//! Names of members in archives for one target, which are made from an archive of bundles.

use crate::names::EntryId;

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
