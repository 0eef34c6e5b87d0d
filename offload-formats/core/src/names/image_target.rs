//! Rules for linking images of offload binaries together.

#[cfg(feature = "tools")]
mod joins_until_23;

use super::{TargetId, Triple};

/// The target of an image, according to its strings in an offload binary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ImageTarget<'a> {
    /// Value of `triple` as written, perhaps empty.
    pub triple: &'a str,
    /// Value of `arch` as written: a processor, a target ID, or empty.
    pub arch: &'a str,
}

impl ImageTarget<'_> {
    /// Returns true if an image for `self` may be linked for the target `wanted`.
    ///
    /// Not symmetric. For AMD's GPUs the rule is that of target IDs; there a missing processor
    /// means `generic`, and features that a processor lacks are ignored. For others, processors
    /// must be equal as written, or one is `generic`. This is the rule of LLVM's main branch, but a
    /// processor that no table knows serves only itself.
    #[must_use]
    pub fn serves(&self, wanted: &Self) -> bool {
        let triples = [self, wanted].map(|target| Triple::parse(target.triple).ok());
        let is_amdgpu = match &triples {
            [Some(triple), Some(wanted)] if triple.serves(wanted) => triple.is_amdgpu(),
            // Equal, but not valid triples; perhaps empty.
            _ if self.triple == wanted.triple => false,
            _ => return false,
        };
        if is_amdgpu {
            TargetId::of_image(self.arch).serves(&TargetId::of_image(wanted.arch))
        } else {
            self.arch == wanted.arch || self.has_any_processor() || wanted.has_any_processor()
        }
    }

    /// Returns true if `self` and `other` are two spellings of the same target. Their triples must
    /// name the same instruction set, and the processors must be equal; for AMD's GPUs also the
    /// target IDs. A missing processor means `generic`. Symmetric. Specification:
    /// `docs/spec/linker-wrapper.md` §2.2, LLVM's main branch.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        // Most images of a link have one spelling.
        if self == other {
            return true;
        }
        let processor = |target: &Self| match target.arch {
            "" => "generic".to_owned(),
            arch => arch.to_owned(),
        };
        let triples = [self, other].map(|target| Triple::parse(target.triple).ok());
        match &triples {
            [Some(one), Some(two)] if one.serves(two) && two.serves(one) => {
                if one.is_amdgpu() {
                    TargetId::of_image(self.arch) == TargetId::of_image(other.arch)
                } else {
                    processor(self) == processor(other)
                }
            }
            _ => self.triple == other.triple && processor(self) == processor(other),
        }
    }

    fn has_any_processor(&self) -> bool {
        self.arch == "generic"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMD: &str = "amdgcn-amd-amdhsa";
    const NVPTX: &str = "nvptx64-nvidia-cuda";

    /// Triple and arch.
    type Pair = [&'static str; 2];

    /// Two images; what LLVM 19.1.7, 22.1.8 and 23.1.4 answer for both orders; what the rule of the
    /// main branch says of the first for the second, and of the second for the first.
    const CASES: [(Pair, Pair, bool, [bool; 2]); 23] = [
        ([AMD, "gfx90a"], [AMD, "gfx90a"], false, [true, true]),
        ([AMD, "gfx90a"], [AMD, "gfx90a:xnack+"], true, [true, false]),
        (
            [AMD, "gfx90a:xnack+"],
            [AMD, "gfx90a:xnack-"],
            false,
            [false, false],
        ),
        (
            [AMD, "gfx90a:sramecc+"],
            [AMD, "gfx90a:sramecc-"],
            false,
            [false, false],
        ),
        (
            [AMD, "gfx90a:sramecc+"],
            [AMD, "gfx90a:xnack+"],
            true,
            [false, false],
        ),
        (
            [AMD, "gfx90a:sramecc+:xnack+"],
            [AMD, "gfx90a:xnack+:sramecc+"],
            true,
            [true, true],
        ),
        ([AMD, "gfx90a"], [AMD, "gfx906"], false, [false, false]),
        ([AMD, "gfx90a"], [AMD, "generic"], true, [true, true]),
        ([AMD, "gfx9-generic"], [AMD, "gfx900"], false, [true, false]),
        ([AMD, ""], [AMD, "gfx90a"], false, [true, true]),
        (
            [AMD, "gfx90a"],
            ["amdgcn--amdhsa", "gfx90a"],
            false,
            [false, false],
        ),
        // LLVM's main branch says true for both: a name that it does not know has no features.
        ([AMD, "bogus"], [AMD, "bogus:xnack+"], true, [true, false]),
        (
            [AMD, "gfx1100:xnack+"],
            [AMD, "gfx1100"],
            true,
            [true, true],
        ),
        ([NVPTX, "sm_70"], [NVPTX, "sm_80"], false, [false, false]),
        ([NVPTX, "sm_70"], [NVPTX, "generic"], true, [true, true]),
        ([NVPTX, "generic"], [NVPTX, "generic"], false, [true, true]),
        ([NVPTX, "sm_90"], [NVPTX, "sm_90a"], false, [false, false]),
        ([NVPTX, ""], [NVPTX, "sm_70"], false, [false, false]),
        (
            ["x86_64-unknown-linux-gnu", "x"],
            ["x86_64-unknown-linux-gnu", "generic"],
            true,
            [true, true],
        ),
        (
            ["spirv64-intel", ""],
            ["spirv64-intel", "pvc"],
            false,
            [false, false],
        ),
        // Not in LLVM's table: from the text of both rules.
        (["", "x"], ["", "x"], false, [true, true]),
        (["", "x"], [AMD, "x"], false, [false, false]),
        (
            [AMD, "generic:xnack+"],
            [AMD, "gfx90a:xnack-"],
            false,
            [true, false],
        ),
    ];

    #[test]
    fn is_the_same_in_two_spellings_only() {
        // `docs/spec/linker-wrapper.md` §2.2 and §10.1 number 17: these never merge, and these do.
        let apart = [
            "gfx90a",
            "gfx90a:xnack+",
            "gfx90a:xnack-",
            "gfx90a:sramecc+",
            "gfx90a:sramecc-",
            "gfx900",
            "gfx9-generic",
            "gfx906",
            "generic",
        ];
        for one in apart {
            for other in apart {
                let same = target([AMD, one]).is_same(&target([AMD, other]));
                assert_eq!(same, one == other, "{one} {other}");
            }
        }
        for (one, other) in [
            (
                [AMD, "gfx90a:sramecc+:xnack+"],
                [AMD, "gfx90a:xnack+:sramecc+"],
            ),
            ([AMD, "gfx90a"], ["amdgpu-amd-amdhsa", "gfx90a"]),
            (
                ["x86_64-pc-linux-gnu", ""],
                ["x86_64-pc-linux-gnu", "generic"],
            ),
            ([NVPTX, ""], [NVPTX, "generic"]),
        ] {
            assert!(target(one).is_same(&target(other)), "{one:?} {other:?}");
            assert!(target(other).is_same(&target(one)), "{one:?} {other:?}");
        }
        assert!(!target([NVPTX, "sm_70"]).is_same(&target([NVPTX, "generic"])));
        assert!(!target(["x86_64-pc-linux-gnu", ""]).is_same(&target([NVPTX, ""])));
    }

    fn target([triple, arch]: Pair) -> ImageTarget<'static> {
        ImageTarget { triple, arch }
    }

    #[test]
    fn serves_as_the_main_branch_has_it() {
        for (one, other, _, expected) in CASES {
            let (one, other) = (target(one), target(other));
            let found = [one.serves(&other), other.serves(&one)];
            assert_eq!(found, expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn joins_as_llvm_22_does() {
        for (one, other, expected, _) in CASES {
            let (one, other) = (target(one), target(other));
            let found = [one.joins_until_23(&other), other.joins_until_23(&one)];
            assert_eq!(found, [expected; 2], "{one:?} {other:?}");
        }
    }

    #[test]
    fn leaves_out_what_is_no_feature() {
        let serves = |one, other| target([AMD, one]).serves(&target([AMD, other]));
        assert!(serves("gfx90a:wavefront+:xnack:xnack+", "gfx90a:xnack+"));
        assert!(!serves("gfx90a:xnack+", "generic"));
        // `fiji` is another name of it.
        assert!(serves("fiji", "gfx803"));
        assert!(!serves("gfx1234", "gfx1235"));
    }
}
