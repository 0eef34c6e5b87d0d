//! Entry IDs: who an image of a bundle is for, as `hip-amdgcn-amd-amdhsa--gfx906`.
//!
//! ```text
//! <kind>-<arch>-<vendor>-<os>-<environment>-<target ID>
//! ```
//!
//! The environment is empty for AMD's GPUs, hence the two dashes. Releases differ in what they
//! write: up to LLVM 16 the text as given, with three or four fields in the triple and no dash at
//! the end; 17 to 20 four fields and a dash, the environment perhaps empty; since 21 the triple
//! normalized. [`EntryId::parse`] reads them all, [`EntryId::parse_target`] only what LLVM 22
//! takes as a target, and what is displayed is what LLVM 22 writes.
//!
//! Specification: <https://clang.llvm.org/docs/ClangOffloadBundler.html#bundle-entry-id>. Unlike
//! LLVM 22, which forgets a processor that its table lacks, every processor is kept.

use std::fmt;

use super::{OffloadKind, TargetId, TargetIdError, Triple, TripleError};

/// Who an image of a bundle is for.
///
/// Equality is that of the displayed forms: every spelling of the host entry that a release has
/// written for a triple equals the others.
#[derive(Clone, Debug)]
pub struct EntryId {
    kind: EntryKind,
    triple: Triple,
    target_id: String,
}

/// The first word of an entry ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// The host's own code, or nothing in its place.
    Host,
    /// OpenMP.
    Openmp,
    /// HIP.
    Hip,
    /// HIP, where the runtime believes the ID.
    Hipv4,
    /// CUDA; in files only.
    Cuda,
    /// SYCL; in files only.
    Sycl,
    /// HIP's predecessor; in files only.
    Hcc,
}

/// Kind, name, who manages the image, whether LLVM takes it as a target.
const KINDS: [(EntryKind, &str, OffloadKind, bool); 7] = [
    (EntryKind::Host, "host", OffloadKind::NONE, true),
    (EntryKind::Openmp, "openmp", OffloadKind::OPENMP, true),
    (EntryKind::Hip, "hip", OffloadKind::HIP, true),
    (EntryKind::Hipv4, "hipv4", OffloadKind::HIP, true),
    (EntryKind::Cuda, "cuda", OffloadKind::CUDA, false),
    (EntryKind::Sycl, "sycl", OffloadKind::SYCL, false),
    (EntryKind::Hcc, "hcc", OffloadKind::HIP, false),
];

impl EntryKind {
    /// Its name, such as `hipv4`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().map_or("", |(_, name, _, _)| name)
    }

    /// The kind with that name; letters of the other case are other names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let row = KINDS.iter().find(|(_, known, _, _)| *known == name);
        row.map(|(kind, _, _, _)| *kind)
    }

    /// Who manages the image; [`OffloadKind::NONE`] for the host's.
    #[must_use]
    pub fn offload_kind(self) -> OffloadKind {
        self.row()
            .map_or(OffloadKind::NONE, |(_, _, kind, _)| *kind)
    }

    fn is_target(self) -> bool {
        self.row().is_some_and(|(_, _, _, target)| *target)
    }

    fn row(self) -> Option<&'static (Self, &'static str, OffloadKind, bool)> {
        KINDS.iter().find(|(kind, _, _, _)| *kind == self)
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many fields a triple has in what LLVM 22 takes and writes.
const FIELDS: usize = 4;

impl EntryId {
    /// Reads the entry ID of a file that any release may have written.
    ///
    /// With three dashes behind the kind there are two readings. The last word is the environment
    /// when it is known as one, or empty, or the kind is the host's; otherwise the target ID.
    ///
    /// # Errors
    ///
    /// When the kind is unknown, there is no triple, or a character cannot be in an entry ID.
    pub fn parse(text: &str) -> Result<Self, EntryIdError> {
        let (kind, rest) = split_kind(text)?;
        let offset = text.len() - rest.len();
        // No more dashes count than those before the processor: features may end in one.
        let mut dashes = rest
            .split(':')
            .next()
            .unwrap_or_default()
            .match_indices('-');
        let (third, fourth) = (dashes.nth(2), dashes.next());
        let (triple, target_id) = match (third, fourth) {
            (_, Some((dash, _))) => rest.split_at(dash),
            (Some((dash, word)), None) => {
                let last = rest.get(dash + word.len()..).unwrap_or_default();
                if kind == EntryKind::Host || is_environment(last) {
                    (rest, "")
                } else {
                    rest.split_at(dash)
                }
            }
            // `sycl-spir64`, and the host of ROCm 4 and 5, `x86_64-unknown-linux`.
            (None, _) => (rest, ""),
        };
        let target_id = target_id.strip_prefix('-').unwrap_or_default();
        // LLVM 17 to 20 took all of a target that ended in a dash for the target ID, and a processor
        // that they did not know for the environment, which a dash follows.
        let target_id = if target_id.starts_with(&format!("{kind}-")) {
            ""
        } else if target_id.contains(':') {
            target_id
        } else {
            target_id.strip_suffix('-').unwrap_or(target_id)
        };
        Self::new(kind, triple, offset, target_id, text)
    }

    /// Reads a target as `-targets` of `clang-offload-bundler` 22 takes it: four fields in the
    /// triple, and what follows the fifth dash is the target ID.
    ///
    /// # Errors
    ///
    /// When there are fewer dashes, the kind is not one of `host`, `openmp`, `hip` and `hipv4`, or
    /// a character cannot be in an entry ID.
    pub fn parse_target(text: &str) -> Result<Self, EntryIdError> {
        let (kind, rest) = split_kind(text)?;
        if !kind.is_target() {
            let kind = kind.to_string();
            return Err(EntryIdError::Kind { kind });
        }
        let offset = text.len() - rest.len();
        let mut dashes = rest.match_indices('-').map(|(dash, _)| dash);
        if dashes.nth(FIELDS - 2).is_none() {
            let text = text.to_owned();
            return Err(EntryIdError::Fields { text });
        }
        let (triple, target_id) = match dashes.next() {
            Some(dash) => rest.split_at(dash),
            None => (rest, ""),
        };
        let target_id = target_id.strip_prefix('-').unwrap_or_default();
        Self::new(kind, triple, offset, target_id, text)
    }

    fn new(
        kind: EntryKind,
        triple: &str,
        offset: usize,
        target_id: &str,
        text: &str,
    ) -> Result<Self, EntryIdError> {
        let foreign = |char: char| !char.is_ascii_graphic() || matches!(char, ',' | '/' | '\\');
        if let Some((offset, char)) = text.char_indices().find(|(_, char)| foreign(*char)) {
            return Err(EntryIdError::Character { char, offset });
        }
        let triple = Triple::parse(triple).map_err(|problem| match problem {
            TripleError::Character { char, offset: at } => EntryIdError::Character {
                char,
                offset: offset + at,
            },
            TripleError::Empty => EntryIdError::Shape {
                text: text.to_owned(),
            },
        })?;
        Ok(Self {
            kind,
            triple,
            target_id: target_id.to_owned(),
        })
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// The triple, with the fields it was written with.
    #[must_use]
    pub fn triple(&self) -> &Triple {
        &self.triple
    }

    /// The target ID as written, which need not be valid; empty when there is none.
    #[must_use]
    pub fn target_id(&self) -> &str {
        &self.target_id
    }

    /// With a target ID as its producer should have written it: features sorted.
    ///
    /// # Errors
    ///
    /// When the target ID is not valid.
    pub fn canonical(&self) -> Result<Self, TargetIdError> {
        Ok(Self {
            target_id: TargetId::parse(&self.target_id)?.to_string(),
            ..self.clone()
        })
    }

    /// What the author of [`Self::parse_target`]'s text has probably meant, when LLVM takes it for
    /// something else: a processor where the environment should be, for want of a dash.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let last = self.triple.as_str().split('-').nth(FIELDS - 1)?;
        let wanted = self.kind != EntryKind::Host && !is_environment(last);
        (wanted && self.target_id.is_empty()).then(|| {
            let fields: Vec<&str> = self.triple.as_str().split('-').take(FIELDS - 1).collect();
            let fields = fields.join("-");
            format!("`{last}` is read as the environment; for a processor write `{}-{fields}--{last}`, with two dashes", self.kind)
        })
    }

    /// The triple as LLVM 22 writes it: four fields, the last empty for AMD's GPUs.
    fn fields(&self) -> [&str; FIELDS] {
        fn named(field: &str) -> &str {
            if field.is_empty() { "unknown" } else { field }
        }
        let triple = &self.triple;
        // LLVM looks at the field before it normalizes.
        let os = triple.as_str().split('-').nth(2).unwrap_or_default();
        let environment = if os.starts_with("amdhsa") {
            ""
        } else {
            named(triple.environment())
        };
        let [arch, vendor, os] = [triple.arch(), triple.vendor(), triple.os()].map(named);
        [arch, vendor, os, environment]
    }
}

impl PartialEq for EntryId {
    fn eq(&self, other: &Self) -> bool {
        let parts = |id: &Self| (id.kind, id.fields().map(str::to_owned));
        parts(self) == parts(other) && self.target_id == other.target_id
    }
}

impl Eq for EntryId {}

/// As LLVM 22 writes it.
impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields().join("-");
        write!(f, "{}-{fields}-{}", self.kind, self.target_id)
    }
}

fn split_kind(text: &str) -> Result<(EntryKind, &str), EntryIdError> {
    let shape = || EntryIdError::Shape {
        text: text.to_owned(),
    };
    let (kind, rest) = text.split_once('-').ok_or_else(shape)?;
    let unknown = || EntryIdError::Kind {
        kind: kind.to_owned(),
    };
    Ok((EntryKind::from_name(kind).ok_or_else(unknown)?, rest))
}

/// Whether the word, where the environment or a processor may be, is no processor.
fn is_environment(word: &str) -> bool {
    // A triple of one word has an environment only when that word is known as one.
    let known = |word| Triple::parse(word).is_ok_and(|triple| !triple.environment().is_empty());
    matches!(word, "" | "unknown") || known(word)
}

/// Why a text is not an entry ID.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryIdError {
    /// A kind and a triple are not there.
    Shape {
        /// The text.
        text: String,
    },
    /// The first word is not a kind that is allowed here.
    Kind {
        /// The word.
        kind: String,
    },
    /// The triple has fewer than four fields.
    Fields {
        /// The text.
        text: String,
    },
    /// A character that no entry ID contains.
    Character {
        /// Which.
        char: char,
        /// In bytes from the start of the text.
        offset: usize,
    },
}

impl EntryIdError {
    /// What to write instead, when that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let Self::Fields { text } = self else {
            return None;
        };
        let id = EntryId::parse(text).ok()?;
        // Only the dash of the empty environment is missing, and perhaps the one at the end.
        let triple = id.triple.as_str();
        (triple.matches('-').count() == FIELDS - 2).then(|| {
            format!(
                "the environment is missing; write `{}-{triple}--{}`, with two dashes where it is empty",
                id.kind, id.target_id
            )
        })
    }
}

impl fmt::Display for EntryIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { text } => write!(
                f,
                "{text:?} is not an entry ID; expected `<kind>-<triple>[-<target ID>]`"
            ),
            Self::Kind { kind } => {
                write!(f, "{kind:?} is not the kind of an entry ID; expected")?;
                let names = KINDS.iter().filter(|(_, _, _, target)| *target);
                let mut separator = " ";
                for (_, name, _, _) in names {
                    write!(f, "{separator}`{name}`")?;
                    separator = ", ";
                }
                Ok(())
            }
            Self::Fields { text } => write!(
                f,
                "{text:?} has too few fields; expected \
                 `<kind>-<arch>-<vendor>-<os>-<environment>[-<target ID>]`"
            ),
            Self::Character { char, offset } => {
                write!(f, "{char:?} at offset {offset:#x} cannot be in an entry ID")
            }
        }
    }
}

impl std::error::Error for EntryIdError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> EntryId {
        EntryId::parse(text).unwrap()
    }

    #[test]
    fn reads_the_names_it_prints() {
        for (kind, name, _, _) in KINDS {
            assert_eq!(EntryKind::from_name(name), Some(kind));
            assert_eq!(kind.to_string(), name);
        }
        assert_eq!(EntryKind::from_name("HIP"), None);
        assert_eq!(EntryKind::Hipv4.offload_kind(), OffloadKind::HIP);
        assert_eq!(EntryKind::Host.offload_kind(), OffloadKind::NONE);
    }

    /// Left: given to `-targets` of `clang-offload-bundler` 22.1; right: found in its output.
    const LLVM: [(&str, &str); 33] = [
        (
            "hip-amdgcn-amd-amdhsa--gfx906",
            "hip-amdgcn-amd-amdhsa--gfx906",
        ),
        (
            "hip-amdgcn-amd-amdhsa-unknown-gfx906",
            "hip-amdgcn-amd-amdhsa--gfx906",
        ),
        (
            "hip-amdgcn-amd-amdhsa-llvm-gfx906",
            "hip-amdgcn-amd-amdhsa--gfx906",
        ),
        ("hip-amdgcn-amd-amdhsa-gfx906", "hip-amdgcn-amd-amdhsa--"),
        ("hip-amdgcn-amd-amdhsa-", "hip-amdgcn-amd-amdhsa--"),
        ("hip-amdgcn-amd-amdhsa--", "hip-amdgcn-amd-amdhsa--"),
        (
            "hip-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc+",
            "hip-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc+",
        ),
        (
            "hip-amdgcn-amd-amdhsa--gfx906:bogus+",
            "hip-amdgcn-amd-amdhsa--gfx906:bogus+",
        ),
        (
            "hip-amdgcn-amd-amdhsa--gfx906:",
            "hip-amdgcn-amd-amdhsa--gfx906:",
        ),
        (
            "hip-amdgcn-amd-amdhsa--gfx9-4-generic:xnack+",
            "hip-amdgcn-amd-amdhsa--gfx9-4-generic:xnack+",
        ),
        (
            "hip-spirv64-amd-amdhsa-unknown-amdgcnspirv",
            "hip-spirv64-amd-amdhsa--amdgcnspirv",
        ),
        (
            "hip-amdgcn-mesa-mesa3d--gfx906",
            "hip-amdgcn-mesa-mesa3d-unknown-gfx906",
        ),
        (
            "hip-amdgcn-amd-amdpal--gfx906",
            "hip-amdgcn-amd-amdpal-unknown-gfx906",
        ),
        (
            "hip-amdgcn--amdhsa--gfx906",
            "hip-amdgcn-unknown-amdhsa--gfx906",
        ),
        (
            "hip-amdgcn-amdhsa--gfx906",
            "hip-amdgcn-unknown-amdhsa-gfx906-",
        ),
        (
            "hip-spirv64-unknown-unknown--generic",
            "hip-spirv64-unknown-unknown-unknown-generic",
        ),
        (
            "openmp-nvptx64-nvidia-cuda--sm_70",
            "openmp-nvptx64-nvidia-cuda-unknown-sm_70",
        ),
        (
            "openmp-nvptx64-nvidia-cuda-sm_70",
            "openmp-nvptx64-nvidia-cuda-sm_70-",
        ),
        (
            "host-x86_64-unknown-linux-gnu",
            "host-x86_64-unknown-linux-gnu-",
        ),
        (
            "host-x86_64-unknown-linux-gnu-",
            "host-x86_64-unknown-linux-gnu-",
        ),
        ("host-x86_64--linux-gnu", "host-x86_64-unknown-linux-gnu-"),
        ("host-x86_64-linux-gnu-", "host-x86_64-unknown-linux-gnu-"),
        ("host-x86_64-pc-win32-", "host-x86_64-pc-windows-msvc-"),
        ("host-x86_64-w64-mingw32-", "host-x86_64-w64-windows-gnu-"),
        ("host-x86_64-pc-cygwin-", "host-x86_64-pc-windows-cygnus-"),
        (
            "host-arm-linux-androideabi21-",
            "host-arm-unknown-linux-android21-",
        ),
        (
            "host-arm-suse-linux-gnueabi",
            "host-arm-suse-linux-gnueabihf-",
        ),
        (
            "host-arm64-apple-macosx11.0.0-",
            "host-arm64-apple-macosx11.0.0-unknown-",
        ),
        (
            "host-riscv64-unknown-elf-",
            "host-riscv64-unknown-unknown-elf-",
        ),
        ("host-x86_64-none-elf-", "host-x86_64-unknown-none-elf-"),
        ("host-x86_64---", "host-x86_64-unknown-unknown-unknown-"),
        ("host-x86_64-a-b-c", "host-x86_64-a-b-c-"),
        (
            "host-amd64-unknown-linux-gnu",
            "host-amd64-unknown-linux-gnu-",
        ),
    ];

    #[test]
    fn displays_targets_as_llvm_writes_them() {
        for (target, expected) in LLVM {
            let id = EntryId::parse_target(target).unwrap();
            assert_eq!(id.to_string(), expected, "{target}");
        }
    }

    #[test]
    fn reads_what_it_displays_as_equal() {
        // LLVM itself rewrites what it wrote where the vendor was forgotten.
        let kept = |written: &&str| *written != "hip-amdgcn-unknown-amdhsa-gfx906-";
        for written in LLVM
            .map(|(_, written)| written)
            .iter()
            .filter(|written| kept(written))
        {
            assert_eq!(id(written).to_string(), *written);
            let again = EntryId::parse_target(written).unwrap();
            assert_eq!(again.to_string(), *written);
        }
    }

    #[test]
    fn keeps_processors_that_no_table_knows() {
        for text in [
            "hip-amdgcn-amd-amdhsa--gfx9999",
            "hipv4-amdgcn-amd-amdhsa--gfx940",
        ] {
            assert_eq!(id(text).to_string(), text);
            assert_eq!(EntryId::parse_target(text).unwrap().to_string(), text);
        }
        assert_ne!(
            id("hip-amdgcn-amd-amdhsa--gfx9999"),
            id("hip-amdgcn-amd-amdhsa--gfx9998")
        );
    }

    /// The spellings are those of ROCm 4.3 to 5.3, of LLVM 17 to 19, and of LLVM 20 and newer.
    #[test]
    fn reads_every_spelling_of_the_host_that_was_ever_shipped() {
        let texts = [
            (
                "host-x86_64-unknown-linux",
                "host-x86_64-unknown-linux-unknown-",
            ),
            (
                "host-x86_64-unknown-linux--",
                "host-x86_64-unknown-linux-unknown-",
            ),
            (
                "host-x86_64-unknown-linux-gnu-",
                "host-x86_64-unknown-linux-gnu-",
            ),
            (
                "host-x86_64-unknown-linux-gnu",
                "host-x86_64-unknown-linux-gnu-",
            ),
        ];
        for (text, displayed) in texts {
            let id = id(text);
            assert_eq!((id.kind(), id.target_id()), (EntryKind::Host, ""), "{text}");
            assert_eq!(id.triple().arch(), "x86_64");
            assert_eq!(id.to_string(), displayed);
        }
        assert_eq!(id(texts[0].0), id(texts[1].0));
        assert_eq!(id(texts[2].0), id(texts[3].0));
        assert_ne!(id(texts[0].0), id(texts[2].0));
    }

    #[test]
    fn reads_devices_of_older_releases() {
        let cases = [
            // Three fields, as up to LLVM 16.
            ("hip-amdgcn-amd-amdhsa-gfx906", "gfx906"),
            (
                "hip-amdgcn-amd-amdhsa-gfx90a:sramecc+:xnack-",
                "gfx90a:sramecc+:xnack-",
            ),
            ("hip-amdgcn-amd-amdhsa", ""),
            // A processor that LLVM 19 did not know; a target that ended in a dash.
            ("hip-amdgcn-amd-amdhsa--gfx999-", "gfx999"),
            ("hip-amdgcn-amd-amdhsa--hip-amdgcn-amd-amdhsa-", ""),
            (
                "hip-amdgcn-amd-amdhsa--gfx9-generic:xnack-",
                "gfx9-generic:xnack-",
            ),
        ];
        for (text, target_id) in cases {
            let id = id(text);
            assert_eq!(id.target_id(), target_id, "{text}");
            let displayed = format!("hip-amdgcn-amd-amdhsa--{target_id}");
            assert_eq!(id.to_string(), displayed);
        }
        let cuda = id("cuda-nvptx64-nvidia-cuda-sm_80");
        assert_eq!((cuda.kind(), cuda.target_id()), (EntryKind::Cuda, "sm_80"));
        assert_eq!(id("sycl-spir64").triple().as_str(), "spir64");
    }

    #[test]
    fn sorts_features_when_canonical() {
        let id = id("hip-amdgcn-amd-amdhsa-unknown-gfx906:xnack+:sramecc-");
        let canonical = id.canonical().unwrap().to_string();
        assert_eq!(canonical, "hip-amdgcn-amd-amdhsa--gfx906:sramecc-:xnack+");
        let odd = EntryId::parse("hip-amdgcn-amd-amdhsa--gfx906:xnack").unwrap();
        let message = odd.canonical().unwrap_err().to_string();
        assert_eq!(
            message,
            "feature `xnack` of a target ID ends in neither `+` nor `-`"
        );
    }

    #[test]
    fn rejects_what_is_no_entry_id() {
        let message = |text| EntryId::parse(text).unwrap_err().to_string();
        let shape = "is not an entry ID; expected `<kind>-<triple>[-<target ID>]`";
        for text in ["", "gfx906", "host-"] {
            assert_eq!(message(text), format!("{text:?} {shape}"));
        }
        assert_eq!(
            message("hipv5-amdgcn-amd-amdhsa--gfx906"),
            "\"hipv5\" is not the kind of an entry ID; expected `host`, `openmp`, `hip`, `hipv4`"
        );
        assert_eq!(
            message("hip-amdgcn-amd-amdhsa--gfx906\r"),
            "'\\r' at offset 0x1d cannot be in an entry ID"
        );
        assert_eq!(
            message("hip-amd(gcn-amd-amdhsa--gfx906"),
            "'(' at offset 0x7 cannot be in an entry ID"
        );
    }

    #[test]
    fn rejects_targets_that_llvm_rejects_and_names_the_missing_dash() {
        let error = |text| EntryId::parse_target(text).unwrap_err();
        let cases = [
            ("hip-amdgcn-amd-amdhsa", Some("hip-amdgcn-amd-amdhsa--")),
            ("host-x86_64-pc-linux", Some("host-x86_64-pc-linux--")),
            ("hip-amdgcn", None),
        ];
        for (text, hint) in cases {
            assert_eq!(
                error(text).to_string(),
                format!(
                    "{text:?} has too few fields; expected \
                     `<kind>-<arch>-<vendor>-<os>-<environment>[-<target ID>]`"
                )
            );
            let hint = hint.map(|text| {
                format!(
                    "the environment is missing; write `{text}`, with two dashes where it is empty"
                )
            });
            assert_eq!(error(text).hint(), hint);
        }
        assert_eq!(
            error("cuda-nvptx64-nvidia-cuda--sm_80").to_string(),
            "\"cuda\" is not the kind of an entry ID; expected `host`, `openmp`, `hip`, `hipv4`"
        );
    }

    #[test]
    fn names_the_missing_dash_where_llvm_takes_a_processor_for_the_environment() {
        let hint = |text| EntryId::parse_target(text).unwrap().hint();
        assert_eq!(
            hint("hip-amdgcn-amd-amdhsa-gfx906").unwrap(),
            "`gfx906` is read as the environment; for a processor write \
             `hip-amdgcn-amd-amdhsa--gfx906`, with two dashes"
        );
        for right in [
            "hip-amdgcn-amd-amdhsa--gfx906",
            "hip-amdgcn-amd-amdhsa-",
            "openmp-x86_64-pc-linux-gnu",
            "host-x86_64-a-b-c",
        ] {
            assert_eq!(hint(right), None, "{right}");
        }
    }
}
