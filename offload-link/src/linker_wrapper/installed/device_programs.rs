//! Finds the programs of device links.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use offload_build::tools::{DeviceTools, LinkJob, Llvm, NotFound, Search, Way};

use crate::linker_wrapper::installed::programs;
use crate::linker_wrapper::line::arguments::Arguments;
use crate::linker_wrapper::line::options::LinkerOptions;
use crate::linker_wrapper::line::values::builtin_bitcode;

/// Places with programs for the device links of one host link.
#[derive(Debug)]
pub(crate) struct DevicePrograms<'a> {
    options: &'a LinkerOptions,
    way: Way,
    search: Search,
    /// The root of the CUDA tree, if the user names one.
    cuda: Option<PathBuf>,
    /// The clang beside this tool.
    beside: Option<Llvm>,
    /// Release of clang that made the host objects.
    host_release: Option<u32>,
}

impl<'a> DevicePrograms<'a> {
    /// Returns the places for a tool, which was started as `tool`. `release` is the release of clang that made the host
    /// objects.
    pub(crate) fn new(
        arguments: &'a Arguments,
        tool: &OsStr,
        way: Way,
        release: Option<u32>,
    ) -> Self {
        Self {
            options: &arguments.options,
            way,
            search: programs::search(arguments),
            cuda: programs::cuda_roots(arguments).into_iter().next(),
            beside: clang_beside(tool, &arguments.options),
            host_release: release,
        }
    }

    /// Returns the root of the CUDA tree, if the user names one.
    pub(crate) fn cuda(&self) -> Option<&Path> {
        self.cuda.as_deref()
    }

    /// Finds the programs for `job`, whose newest bitcode LLVM `made_by` wrote. `check` fails with the first program that a
    /// link with these programs lacks. Then the newest other installation that lacks none is used; LLVM's tool uses one
    /// clang only.
    ///
    /// # Errors
    ///
    /// Fails if no clang reads the bitcode, or if every installation lacks a program.
    pub(crate) fn find(
        &self,
        job: &LinkJob,
        made_by: Option<u32>,
        check: impl Fn(&DeviceTools) -> Result<(), NotFound>,
    ) -> Result<DeviceTools, NotFound> {
        let llvm = self.clang(made_by)?;
        let mut target = job.target();
        let builtin = builtin_bitcode(&self.options.builtin_bitcode, job.triple.as_str());
        target.merges_bitcode |= self.options.embed_bitcode || !builtin.is_empty();
        let tools = |llvm| DeviceTools::find(llvm, &self.search, &target, None);
        let first = tools(llvm.as_ref());
        let missing = match check(&first) {
            Ok(()) => return Ok(first),
            Err(missing) if self.way == Way::Llvm => return Err(missing),
            Err(missing) => missing,
        };
        let others = self.search.clangs_from(made_by.unwrap_or_default());
        let mut others = others
            .iter()
            .filter(|other| Some(*other) != llvm.as_ref())
            .map(|other| tools(Some(other)));
        let complete = others.find(|tools| check(tools).is_ok());
        complete.ok_or(missing)
    }

    /// Returns a clang of the release `made_by`, which wrote bitcode, or of a newer one. Without bitcode, any release
    /// works, for example the host compiler's.
    fn clang(&self, made_by: Option<u32>) -> Result<Option<Llvm>, NotFound> {
        let reads = |llvm: &Llvm| match (llvm.release(), made_by) {
            (Some(release), Some(made_by)) => release >= made_by,
            _ => true,
        };
        let beside = self.beside.clone().filter(reads);
        let same = || self.search.clang_of(made_by.or(self.host_release)?);
        let plain = || {
            let plain = self.search.program("clang").map(Llvm::of);
            plain.filter(|llvm| self.way == Way::Llvm && reads(llvm))
        };
        // LLVM's tool uses the clang beside it.
        let chosen = match self.way {
            Way::Llvm => beside.or_else(same),
            Way::Own => same().or(beside),
        };
        if let Some(llvm) = chosen.or_else(plain) {
            return Ok(Some(llvm));
        }
        match self.search.clang_from(made_by.unwrap_or_default()) {
            Ok(llvm) => Ok(Some(llvm)),
            Err(older) => too_old(&older, made_by),
        }
    }
}

/// Returns the clang in the folder of this tool's file, or of the path that started it.
fn clang_beside(tool: &OsStr, options: &LinkerOptions) -> Option<Llvm> {
    let file = env::current_exe().ok()?;
    let real = file
        .canonicalize()
        .ok()
        .filter(|_| !options.no_canonical_prefixes);
    let named = Some(PathBuf::from(tool)).filter(|tool| tool.components().count() > 1);
    [real, named].into_iter().flatten().find_map(|tool| {
        let clang = tool.parent()?.join("clang");
        clang.is_file().then(|| Llvm::of(clang))
    })
}

/// Returns no clang if there is no bitcode: objects for a CPU do not need one.
fn too_old(older: &[Llvm], made_by: Option<u32>) -> Result<Option<Llvm>, NotFound> {
    let (Some(made_by), false) = (made_by, older.is_empty()) else {
        return Ok(None);
    };
    Err(NotFound::newer_clang(made_by, older))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_which_release_reads_the_bitcode() {
        let old = Llvm::of("/usr/lib/llvm-19/bin/clang-19".into());
        assert_eq!(
            too_old(&[old], Some(22)).unwrap_err().to_string(),
            "`clang-22` not found (searched: /usr/lib/llvm-19/bin/clang-19 is of LLVM 19) [OFF605]\n\
             hint: the device code was compiled by LLVM 22, which older releases do not read: install clang (Debian, \
             Ubuntu: `apt install clang-22 lld-22 llvm-22`; Fedora: `dnf install clang lld llvm`; Arch: `pacman -S clang \
             lld llvm`; conda-forge: `conda install clangxx lld llvm-tools`), of that release or a newer one"
        );
        assert_eq!(too_old(&[], Some(22)), Ok(None));
    }
}
