//! Names that keep a module apart from others: two versions of a crate have the same names.

mod coff;
mod elf;
mod launchers;

use offload_build_core::error::Error;
use offload_build_core::readable::Readable;
use offload_formats::container::kernels::component_at;
use offload_formats::format::pieces::Piece;

/// Names that keep a module's entries apart from those of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// Suffix of names, which no other module in any program has.
    pub(crate) suffix: String,
    /// The symbols that get it.
    pub(crate) symbols: Symbols,
}

/// The symbols of a module that are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbols {
    /// No symbols: OpenMP's kernels have names of their file, and the last link joins what it registers.
    None,
    /// No symbols, and no entries: the last link registers OpenMP's kernels. ELF only.
    Deferred,
    /// Symbols that the offload entries name, and the entries.
    OfEntries,
    /// Functions that launch kernels, and what stands for kernels on the host: the compiler has registered them.
    OfStubs,
    /// Symbols that nvcc's code registers, functions that launch kernels, names that nvcc makes for its objects alone, and its anonymous
    /// namespaces.
    OfNvcc,
}

/// Part of the names of functions that launch a kernel.
const DEVICE_STUB: &str = "__device_stub__";

impl Own {
    /// The name of a symbol that is this module's own.
    pub(crate) fn name(&self, symbol: &str) -> String {
        match self.symbols {
            Symbols::None | Symbols::Deferred => symbol.to_owned(),
            Symbols::OfEntries | Symbols::OfStubs | Symbols::OfNvcc => self.separate_name(symbol),
        }
    }

    /// Returns the name of a symbol that the module has for itself, beside another one with the old name.
    fn separate_name(&self, symbol: &str) -> String {
        format!("{symbol}.{}", self.suffix)
    }

    /// Returns all objects of a module with its own names, in pieces; input 0 of each is the object.
    pub(crate) fn apply(&self, objects: &[Readable]) -> Result<Vec<Vec<Piece>>, Error> {
        match objects {
            // Joined already.
            [object] => {
                let wrong = |error| Error::because(object.path().display(), error);
                let edited = self.apply_to_elf(object);
                object.check()?;
                Ok(vec![edited.map_err(wrong)?])
            }
            _ => self.apply_to_coff(objects),
        }
    }
}

/// Returns the name of the kernel that the function `symbol` launches, as the host's compiler mangles it: `__device_stub__`
/// stands before the function's own name. By the Itanium C++ ABI it counts in the length of the name.
pub(crate) fn stub_of(symbol: &str) -> Option<String> {
    let start = symbol.find(DEVICE_STUB)?;
    let (before, name) = symbol.split_once(DEVICE_STUB)?;
    // Microsoft's names have no lengths; a variable of clang's has the function's name with `.id` at the end.
    if before == "?" || before == "??$" {
        return name.ends_with('Z').then(|| format!("{before}{name}"));
    }
    if before.is_empty() {
        // Not mangled: `extern "C"`.
        return Some(name.to_owned());
    }
    let (before, length) = component_at(symbol, start, DEVICE_STUB.len())?;
    Some(format!("{before}{}{name}", length - DEVICE_STUB.len()))
}

#[cfg(test)]
mod tests {
    use super::stub_of;

    #[test]
    fn finds_the_kernel_of_a_stub() {
        for (symbol, kernel) in [
            ("_Z17__device_stub__kaPf", Some("_Z2kaPf")),
            ("_ZN2ns20__device_stub__scaleEPf", Some("_ZN2ns5scaleEPf")),
            ("_ZN2v120__device_stub__scaleEPf", Some("_ZN2v15scaleEPf")),
            ("_ZN5bn25416__device_stub__kEPi", Some("_ZN5bn2541kEPi")),
            ("_Z19__device_stub__tmplIfEvPT_", Some("_Z4tmplIfEvPT_")),
            ("__device_stub__scale", Some("scale")),
            ("?__device_stub__ka@@YAXPEAH@Z.id", None),
            (
                "?__device_stub__ka@ns@@YAXPEAH@Z",
                Some("?ka@ns@@YAXPEAH@Z"),
            ),
            (
                "??$__device_stub__scale@H@@YAXPEAH@Z",
                Some("??$scale@H@@YAXPEAH@Z"),
            ),
            (
                &format!("_ZN2v116__device_stub__kI{}EEvPT_", "5aaaaa".repeat(40)),
                Some(&*format!("_ZN2v11kI{}EEvPT_", "5aaaaa".repeat(40))),
            ),
            ("_Z3__device_stub__kaPf", None),
            ("x__device_stub__scale", None),
            ("_Z99999999999999999999999__device_stub__kaPf", None),
            ("_Z2kaPf", None),
        ] {
            assert_eq!(stub_of(symbol).as_deref(), kernel, "{symbol}");
        }
    }
}
