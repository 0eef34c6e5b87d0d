//! Options among `flags` for the generation of code. A compile to bitcode generates none: the device link does.

use std::ffi::OsString;

/// Options for the code of one target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CodeOptions {
    /// LLVM's own, each behind `-mllvm`.
    pub(crate) llvm: Vec<OsString>,
    /// `ptxas`'s, each behind `-Xcuda-ptxas`, with that word.
    pub(crate) ptxas: Vec<OsString>,
}

impl CodeOptions {
    /// Finds them among the flags of a compile for `processor`.
    pub(crate) fn of(flags: &[String], processor: &str) -> Self {
        let mut found = Self::default();
        // clang gives what is behind `-Xclang` to its compiler, which has `-mllvm` as well.
        let flags = flags.iter().map(String::as_str);
        let mut flags = flags.filter(|flag| *flag != "-Xclang");
        while let Some(flag) = flags.next() {
            let of_one = flag.strip_prefix("-Xarch_");
            if of_one.is_some_and(|side| side != "device" && side != processor) {
                flags.next();
            } else if let Some(option) = flag.strip_prefix("-mllvm=") {
                found.llvm.push(option.into());
            } else if flag == "-mllvm" {
                found.llvm.extend(flags.next().map(OsString::from));
            } else if flag == "-Xcuda-ptxas" {
                let option = flags.next().into_iter();
                let words = option.flat_map(|option| [flag.into(), option.into()]);
                found.ptxas.extend::<Vec<OsString>>(words.collect());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_options_of_one_target() {
        let flags = "-g -mllvm -a -Xclang -mllvm -Xclang -b=1 -Xcuda-ptxas -v -Xarch_host -mllvm=-c \
                     -Xarch_device -mllvm=-d -Xarch_sm_80 -mllvm=-e -Xarch_sm_90 -mllvm=-f -mllvm";
        let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        let found = CodeOptions::of(&flags, "sm_80");
        assert_eq!(found.llvm, ["-a", "-b=1", "-d", "-e"]);
        assert_eq!(found.ptxas, ["-Xcuda-ptxas", "-v"]);
    }
}
