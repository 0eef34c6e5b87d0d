//! Files that flags name: they are inputs of the compiles, and no dependency file lists them.

use crate::declare::module::flags::Flags;
use crate::declare::module::target::Target;
use std::path::{Path, PathBuf};

/// Returns the files that flags name, such as `@options` and the library of `-mlink-builtin-bitcode`: those of the module and of its
/// targets. Paths are relative to `root`.
pub(super) fn named_files(own: &Flags, targets: &[Target], root: &Path) -> Vec<PathBuf> {
    let of_targets = targets.iter().map(|target| &target.own);
    let all = std::iter::once(own).chain(of_targets);
    let names = all.flat_map(|own| &own.flags).map(|flag| {
        let name = flag.strip_prefix('@').unwrap_or(flag);
        name.rsplit_once('=').map_or(name, |(_, value)| value)
    });
    let mut paths: Vec<PathBuf> = names.map(|name| root.join(name)).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.retain(|path| path.is_file());
    paths
}
