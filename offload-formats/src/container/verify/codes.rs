//! The codes of findings: one table for `verify`, `explain` and `docs/verify.md`.

/// Weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// A fact that may be intended.
    Note,
    /// Something that fails with some runtimes or tools, or is wasted.
    Warning,
    /// Something that a runtime cannot load or does not find.
    Error,
}

impl Severity {
    /// Returns its name, such as `error`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

struct CodeRow {
    code: &'static str,
    severity: Severity,
    title: &'static str,
    meaning: &'static str,
    action: &'static str,
}

/// Defines the codes and their rows from one list.
macro_rules! codes {
    ($($variant:ident $code:literal $severity:ident, $title:literal, $meaning:literal, $action:literal;)+) => {
        /// A kind of finding. Codes are stable: a code never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingCode {
            $(#[doc = $title] $variant,)+
        }

        impl FindingCode {
            /// All codes, in their order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            const fn row(self) -> CodeRow {
                match self {
                    $(Self::$variant => CodeRow {
                        code: $code,
                        severity: Severity::$severity,
                        title: $title,
                        meaning: $meaning,
                        action: $action,
                    },)+
                }
            }
        }
    };
}

codes! {
    Damaged "OFF101" Error,
    "Damaged or unreadable part",
    "A header, table or range of the file is not valid, or exceeds what contains it. The message has the offset. Runtimes \
     and tools reject such a file or read other bytes. All other parts of the file were verified.",
    "Build or copy the file again, and compare its size with the original.";

    Hash "OFF102" Error,
    "Compressed bundle with a wrong hash or size",
    "The header of a compressed bundle has the first 8 bytes of the MD5 digest of the unpacked bundle, and its size. \
     LLVM's tools do not compare them. comgr, the part of ROCm that unpacks bundles, uses the hash as the key of its cache: \
     a wrong hash can select another program's code.",
    "Compress the bundle again: `cargo offload decompress`, then `cargo offload compress`.";

    Truncated "OFF103" Error,
    "Truncated image",
    "The ELF headers of an image name sections outside of the image. A tool has cut the image, or the size in the \
     container is wrong. The runtime fails to load it.",
    "Link the image again and pack it with its full size.";

    NotAnImage "OFF104" Warning,
    "Entry without a device image",
    "An entry for a GPU has no bytes, or bytes that are neither ELF, bitcode, SPIR-V nor a container. Runtimes fail if \
     they select the entry. `clang-offload-bundler -allow-missing-bundles` writes empty entries.",
    "Remove the entry, or bundle an image for its target.";

    Duplicate "OFF111" Warning,
    "Two entries for the same target",
    "Two entries of a bundle have the same entry ID, apart from the kinds `hip` and `hipv4`, which are equal for the \
     runtime. In a plain bundle the runtime uses the first one; in a compressed one either. LLVM's bundler refuses to write \
     such bundles.",
    "Keep one of the two entries.";

    Conflict "OFF112" Error,
    "Target IDs that exclude each other",
    "A bundle has one entry with a setting of a feature, such as gfx90a:xnack+, and one for the same processor without \
     that setting. Both fit a GPU with the setting. In a plain bundle HIP uses the first one in the table; in a \
     compressed one the order is not defined (comgr 2.4 to 3.0). clang refuses such targets.",
    "Build for gfx90a alone, or for both gfx90a:xnack+ and gfx90a:xnack-.";

    WrongTarget "OFF113" Error,
    "Target of the entry differs from the image",
    "The container names another processor, or the opposite setting of a feature, than the ELF header of the image. The \
     runtime believes the container (HIP for kind `hipv4`), and then fails to load the image.",
    "Pack the image under its own target ID; `cargo offload inspect --json` prints it as `own_target_id`.";

    UnalignedBundle "OFF121" Warning,
    "Bundle that is not aligned to 4096",
    "HIP runtimes up to ROCm 6.4 map code objects from the file, at the alignment of pages. `.hip_fatbin` is aligned to \
     4096 by clang's own embedding, but to 16 by clang-linker-wrapper of LLVM 19 to 22.",
    "Link with `offload-link`, or set the section's alignment to 4096.";

    UnalignedImage "OFF122" Warning,
    "Code object that is not at a multiple of 4096",
    "The offset of a code object from the start of its bundle is not a multiple of 4096. HIP runtimes up to ROCm 6.4 load \
     code objects in place; later ones copy them.",
    "Bundle with `-bundle-align=4096`.";

    UnalignedFatbin "OFF123" Error,
    "CUDA fat binary that is not aligned to 8",
    "CUDA's runtime reads the 64-bit fields of a fat binary at its address. NVIDIA's compilers align it to 8.",
    "Align the section or variable to 8.";

    UnknownKind "OFF201" Error,
    "Kind of an entry that HIP does not look for",
    "HIP's runtime looks for entries of the kinds `hip`, `hipv4` and `hcc` and skips all others, such as `openmp`. In \
     compressed bundles comgr also finds `openmp`; no HIP compiler writes it.",
    "Bundle the image with the kind `hipv4`.";

    FieldCount "OFF202" Error,
    "Entry ID without the five fields of HIP",
    "HIP's runtime parses the part after the kind as arch-vendor-os-environment-processor, with an empty environment: \
     `hipv4-amdgcn-amd-amdhsa--gfx90a`. It finds no entry with fewer fields, such as `hip-amdgcn-amd-amdhsa-gfx906`.",
    "Bundle again with two dashes before the processor.";

    UnknownEnvironment "OFF203" Error,
    "Entry ID with `unknown` as environment",
    "HIP finds `hipv4-amdgcn-amd-amdhsa-unknown-gfx90a` only in compressed bundles (comgr 2.4 to 3.0). In a plain bundle \
     the environment must be empty. SPIR-V may have either.",
    "Bundle again with an empty environment: two dashes before the processor.";

    FeatureOrder "OFF204" Warning,
    "Features of a target ID in another order",
    "A target ID lists `sramecc` before `xnack`. comgr accepts any order, but HIP's own matcher, which ROCm 6.4 \
     uses if a bundle has generic targets, does not.",
    "Bundle again with the order that clang writes, such as gfx90a:sramecc+:xnack-.";

    LargeTable "OFF205" Error,
    "Table of entries beyond the first 4096 bytes",
    "HIP's runtime passes the first 4096 bytes of a plain bundle to comgr, which must find the whole table in them: about \
     66 entries. It finds no entry after them. Compressed bundles have no such limit.",
    "Build for fewer targets, or compress the bundle with `cargo offload compress`.";

    TableOrder "OFF206" Warning,
    "Last entry of the table is not the last image of the bundle",
    "HIP of ROCm 6.4 takes the end of the last entry in the table for the end of a plain bundle if the bundle has generic \
     targets. Images after that end are cut off.",
    "Bundle again: bundlers write images in the order of the table.";

    UnreadCompression "OFF207" Error,
    "Compression that the given runtime does not read",
    "Versions and methods of compressed bundles are read by some releases of ROCm only; docs/verify.md has the table. \
     Older runtimes report hipErrorInvalidImage or read past the end of the bundle.",
    "Compress again with the same `--runtime`: `cargo offload compress --runtime rocm-6.2`; releases before ROCm 6.2 need `cargo offload decompress`.";

    OldCompression "OFF208" Error,
    "Compressed bundle of version 1",
    "Version 1 has no total size. HIP's runtime takes the unpacked size in its place and reads past the end of the \
     bundle (ROCm/clr issue 99). LLVM 18 writes version 1.",
    "Compress again with version 2: `cargo offload compress --runtime rocm-6.4`.";

    NoKernels "OFF301" Note,
    "Image without kernels",
    "A linked image for a GPU defines no kernel. It may define variables or device functions only; often a source was \
     compiled without its kernels, for example because a macro was not defined. If other images of the file define \
     kernels for its target, only an image whose own container has kernels for another target is reported: nvcc adds an \
     image without kernels to each program. NVIDIA's relocatable cubins need no kernels, nor does PTX in \
     `__nv_relfatbin`, its section of objects. PTX elsewhere is reported, relocatable or not.",
    "List the kernels of the other targets with `cargo offload inspect --kernels`.";

    Unlinked "OFF302" Error,
    "Device code that is not linked, where a runtime loads images",
    "A bundle in `.hip_fatbin` of a linked file contains a relocatable object or bitcode for an AMD GPU. HIP's runtime \
     loads linked code objects only. The last link was made without a device link (`-fgpu-rdc` without `--hip-link`).",
    "Link with `offload-link`, or with clang and `--offload-link`.";

    Unread "OFF303" Warning,
    "Device code of a linked file that no runtime reads",
    "A linked file has offload binaries for a linker in a section such as `.llvm.offloading`. The link was made without a \
     linker wrapper: kernels in them cannot be started. If the file also has registered images, a partial link (`ld -r`) \
     may have kept the section.",
    "Link with `offload-link`, or remove the section with `objcopy --remove-section`.";

    WrapperTarget "OFF401" Error,
    "Fat binary wrapper that leads to no device code",
    "A record in `.hipFatBinSegment` or `.nvFatBinSegment` points to an address without a bundle, fat binary or code \
     object. HIP reports hipErrorInvalidImage, or the program crashes when it starts.",
    "Link the program again; if a tool changed the file afterwards, use the original.";

    WrapperInvalid "OFF402" Error,
    "Invalid fat binary wrapper",
    "A record in `.hipFatBinSegment` or `.nvFatBinSegment` has another magic or version than runtimes accept: HIPF or HIPK \
     with version 1, or CUDA's 0x466243b1 with version 1 or 2. The runtime registers nothing.",
    "Compile and link the host code again.";

    Unregistered "OFF403" Note,
    "Device code that no wrapper registers",
    "No record in `.hipFatBinSegment` or `.nvFatBinSegment` points to this bundle or fat binary. That is right for \
     programs that load images by the module API. Otherwise its kernels cannot be started.",
    "Check that the program loads the image, for example by hipModuleLoadData or cuModuleLoadData.";

    MissingKernel "OFF404" Error,
    "Host kernel without device code",
    "The host code registers a kernel that no image in the file defines. A launch of it fails \
     (hipErrorNotFound, cudaErrorInvalidDeviceFunction), or OpenMP runs the region on the host. A `#if` may leave a kernel \
     out for the processors of this file, for example after `prune`; then the host code must not launch it. rocPRIM's kernels \
     for other processors are not reported.",
    "Compile host and device code from the same sources with the same macros, or leave the finding out by `--allow OFF404`.";

    NoImages "OFF405" Error,
    "Host kernels, but no device image",
    "The host code of a linked file registers kernels, and the file has no device images at all. The device code was \
     lost on the way: an object was copied without its sections, or the link was made without a linker wrapper.",
    "Link with `offload-link`, which reports each image.";

    Ignored "OFF406" Error,
    "Image that the program's OpenMP runtime does not load",
    "The image is an ELF file as CUDA 13 writes it, and CUDA 12.8 and 12.9 for sm_100 and later. libomptarget before LLVM 21.1.2 \
     does not load it: the program runs the region on the host, or stops.",
    "Build with CUDA 12 for processors before sm_100, or with LLVM 21.1.2 or later and its libomptarget.";

    OtherTargets "OFF407" Warning,
    "OpenMP kernels that images for one target lack",
    "The modules or packages of this program were built for different targets. If only some of them have an image for a device, \
     libomptarget 19 ends the program, or starts a kernel of another module.",
    "Set the same `targets` in all OpenMP modules of the program.";
}

impl FindingCode {
    /// Returns the code, such as `OFF101`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.row().code
    }

    /// Returns the severity, unless the user changes it.
    #[must_use]
    pub const fn severity(self) -> Severity {
        self.row().severity
    }

    /// Returns a title: the finding in a few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().title
    }

    /// Returns what it means, and how tools and runtimes react.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// Returns the next action of the user.
    #[must_use]
    pub const fn action(self) -> &'static str {
        self.row().action
    }

    /// Finds the finding with a code; case does not matter.
    #[must_use]
    pub fn find(code: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|known| known.code().eq_ignore_ascii_case(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_ascending_codes_and_whole_texts() {
        let codes: Vec<&str> = FindingCode::ALL.iter().map(|code| code.code()).collect();
        assert!(codes.is_sorted_by(|one, two| one < two), "{codes:?}");
        for code in FindingCode::ALL {
            let name = code.code();
            let number = name
                .strip_prefix("OFF")
                .and_then(|text| text.parse::<u16>().ok());
            assert!(
                number.is_some_and(|number| (100..500).contains(&number)),
                "{name}"
            );
            assert!(!code.title().ends_with('.'), "{name}");
            for text in [code.meaning(), code.action()] {
                assert!(
                    text.ends_with('.') && !text.contains("  "),
                    "{name}: {text}"
                );
            }
            assert_eq!(FindingCode::find(&name.to_lowercase()), Some(*code));
        }
        assert_eq!(FindingCode::find("OFF100"), None);
    }
}
