//! Options among `flags` for one side of a compile, and those for the generation of code. A compile to bitcode generates none: the
//! device link does.

use std::ffi::OsString;

/// Options for the code of one target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CodeOptions {
    /// LLVM's own, each behind `-mllvm`.
    pub(crate) llvm: Vec<OsString>,
    /// `ptxas`'s, each behind `-Xcuda-ptxas`, with that word.
    pub(crate) ptxas: Vec<OsString>,
    /// Features as for `--cuda-feature=` (`+ptx84`), each behind `-target-feature`.
    pub(crate) features: Vec<OsString>,
}

impl CodeOptions {
    /// Finds them among the flags of a compile for `processor`.
    pub(crate) fn of(flags: &[String], processor: &str) -> Self {
        let mut found = Self::default();
        // clang gives what is behind `-Xclang` to its compiler, which has `-mllvm` as well.
        let flags = of_side(flags, Some(processor));
        let mut flags = flags.filter(|flag| *flag != "-Xclang");
        while let Some(flag) = flags.next() {
            if let Some(option) = flag.strip_prefix("-mllvm=") {
                found.llvm.push(option.into());
            } else if let Some(feature) = flag.strip_prefix("--cuda-feature=") {
                found.add_feature(feature);
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

    /// Asks for PTX of `version`, 84 for 8.4, unless flags name features.
    pub(crate) fn or_ptx(mut self, version: u32) -> Self {
        if self.features.is_empty() {
            self.add_feature(&format!("+ptx{version}"));
        }
        self
    }

    fn add_feature(&mut self, feature: &str) {
        let words = ["-Xclang", "-target-feature", "-Xclang", feature];
        self.features.extend(words.map(OsString::from));
    }
}

/// Returns the flags of a compile for `processor` that its assembler needs, too, such as `-mwavefrontsize64`.
pub(crate) fn of_assembler<'f>(
    flags: &'f [String],
    processor: &'f str,
) -> impl Iterator<Item = &'f str> {
    let is_machine = |flag: &&str| flag.starts_with("-m") && !flag.starts_with("-mllvm");
    let mut last = "";
    let flags = of_side(flags, Some(processor)).filter(move |flag| {
        // The value of an option is none itself.
        let is_value = ["-mllvm", "-Xclang"].contains(&last);
        last = flag;
        !is_value
    });
    flags.filter(is_machine)
}

/// Returns the flags of a compile for `processor`, or for the host: clang warns of options behind `-Xarch_` that are for another
/// side, because a command of ours compiles for one.
pub(crate) fn of_side<'f>(
    flags: &'f [String],
    processor: Option<&'f str>,
) -> impl Iterator<Item = &'f str> {
    let mut flags = flags.iter().map(String::as_str);
    std::iter::from_fn(move || {
        loop {
            let flag = flags.next()?;
            let is_of_other = match flag.strip_prefix("-Xarch_") {
                None => false,
                Some("host") => processor.is_some(),
                Some("device") => processor.is_none(),
                Some(side) if side.starts_with("sm_") || side.starts_with("gfx") => {
                    processor != Some(side)
                }
                // Hosts have such names, too.
                Some(_) => processor.is_some(),
            };
            if !is_of_other {
                return Some(flag);
            }
            flags.next();
        }
    })
}

/// Returns the flags of a compile to bitcode without options of `ptxas`, which only the device link starts: clang warns of them.
pub(crate) fn without_ptxas<'f>(
    flags: impl Iterator<Item = &'f str>,
) -> impl Iterator<Item = &'f str> {
    let mut is_value = false;
    flags.filter(move |flag| {
        let is_option = *flag == "-Xcuda-ptxas" && !is_value;
        let is_left_out = is_option || is_value;
        is_value = is_option;
        !is_left_out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_options_of_one_target() {
        let flags = "-g -mllvm -a -Xclang -mllvm -Xclang -b=1 -Xcuda-ptxas -v -Xarch_host -mllvm=-c \
                     -Xarch_device -mllvm=-d -Xarch_sm_80 -mllvm=-e -Xarch_sm_90 -mllvm=-f --cuda-feature=+ptx84 -mllvm";
        let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        let found = CodeOptions::of(&flags, "sm_80");
        assert_eq!(found.llvm, ["-a", "-b=1", "-d", "-e"]);
        assert_eq!(found.ptxas, ["-Xcuda-ptxas", "-v"]);
        let feature = ["-Xclang", "-target-feature", "-Xclang", "+ptx84"];
        assert_eq!(found.features, feature);
    }

    #[test]
    fn finds_what_the_assembler_needs() {
        let flags = "-g -mwavefrontsize64 -mllvm -mx -Xclang -my -mllvm=-z -Xarch_host -mh -Xarch_gfx1100 -mcumode";
        let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        let found: Vec<&str> = of_assembler(&flags, "gfx1100").collect();
        assert_eq!(found, ["-mwavefrontsize64", "-mcumode"]);
    }

    #[test]
    fn leaves_out_the_options_of_ptxas() {
        let flags = ["-g", "-Xcuda-ptxas", "-Xcuda-ptxas", "-O2", "-Xcuda-ptxas"];
        let found: Vec<&str> = without_ptxas(flags.into_iter()).collect();
        assert_eq!(found, ["-g", "-O2"]);
    }

    #[test]
    fn finds_the_options_of_one_side() {
        let flags = "-g -Xarch_host -a -Xarch_device -b -Xarch_sm_80 -c -Xarch_gfx90a:xnack+ -d -Xarch_x86_64 -e";
        let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        let of = |side| of_side(&flags, side).collect::<Vec<_>>().join(" ");
        assert_eq!(of(None), "-g -Xarch_host -a -Xarch_x86_64 -e");
        assert_eq!(of(Some("sm_80")), "-g -Xarch_device -b -Xarch_sm_80 -c");
        assert_eq!(of(Some("sm_90")), "-g -Xarch_device -b");
        assert_eq!(
            of(Some("gfx90a:xnack+")),
            "-g -Xarch_device -b -Xarch_gfx90a:xnack+ -d"
        );
    }
}
