//! The clang of a release: what was compiled elsewhere asks for one.

use crate::installed::llvm::{Llvm, RELEASES};
use crate::process::install::Need;
use crate::process::search::NotFound;
use crate::process::search::Search;
use std::path::PathBuf;

impl Search {
    /// The clang of one release: by its versioned name, in the folder where Debian has it, or a plain
    /// `clang` that belongs to it.
    #[must_use]
    pub fn clang_of(&self, release: u32) -> Option<Llvm> {
        let named = self.program(&format!("clang-{release}")).map(Llvm::of);
        let plain = || {
            let mut plain = self.programs("clang").map(Llvm::of);
            plain.find(|llvm| llvm.release() == Some(release))
        };
        named.or_else(|| debian(release)).or_else(plain)
    }

    /// The newest clang that reads bitcode of `release`: one of it or newer. One whose release cannot be told is
    /// taken last. Otherwise those that are too old.
    ///
    /// # Errors
    ///
    /// The installations found that are older.
    pub fn clang_from(&self, release: u32) -> Result<Llvm, Vec<Llvm>> {
        let first = self.clangs_from(release).into_iter().next();
        first.ok_or_else(|| self.all_clangs())
    }

    /// Returns every clang that reads bitcode of `release`, in the order of [`Self::clang_from`].
    #[must_use]
    pub fn clangs_from(&self, release: u32) -> Vec<Llvm> {
        let mut found = self.all_clangs();
        found.retain(|llvm| llvm.release().is_none_or(|found| found >= release));
        found
    }

    /// Debian's too, whatever `PATH` says: the newest first.
    fn all_clangs(&self) -> Vec<Llvm> {
        let mut found = self.clangs();
        found.extend(RELEASES.rev().filter_map(debian));
        found.sort_by_key(|llvm| std::cmp::Reverse(llvm.release()));
        found
    }
}

impl NotFound {
    /// Returns the error if no clang reads the device code that LLVM `made_by` compiled: `older` are of earlier
    /// releases.
    #[must_use]
    pub fn newer_clang(made_by: u32, older: &[Llvm]) -> Self {
        let found = older.iter().map(|llvm| {
            let clang = llvm.clang.display();
            match llvm.release() {
                Some(release) => format!("{clang} is of LLVM {release}"),
                None => format!("{clang} is of an unknown release"),
            }
        });
        let install = Need::Clang.install(Some(made_by));
        Self::new(
            &format!("clang-{made_by}"),
            found.collect(),
            format!(
                "the device code was compiled by LLVM {made_by}, which older releases do not read: {install}, of that \
                 release or a newer one"
            ),
        )
    }
}

/// Returns Debian's clang of a release, whatever `PATH` says.
fn debian(release: u32) -> Option<Llvm> {
    let path = PathBuf::from(format!("/usr/lib/llvm-{release}/bin/clang"));
    path.is_file().then(|| Llvm::of(path))
}
