//! A value of each key, and what is wrong with it in modules of each language. Tests of descriptions of keys take it, too.

pub(crate) const LANGUAGES: [&str; 6] = ["openmp", "hip", "cuda", "bitcode", "prebuilt", "rust"];

/// A value of each key that is right somewhere, and what is wrong with it in modules of each language, in the order
/// of [`LANGUAGES`]; nothing where it is accepted.
pub(crate) const TABLE: [(&str, &str, [&str; 6]); 29] = [
    ("language", "", [""; 6]),
    ("sources", "", [""; 6]),
    ("crate", "\"kernels\"", OF_RUST),
    ("features", "[\"fast\"]", OF_RUST),
    ("default-features", "false", OF_RUST),
    ("targets", "", [""; 6]),
    ("include", "[\"include\"]", NONE_OF_IR),
    ("archives", "[\"a.bc\"]", NONE_OF_IMAGES),
    ("link", "[\"a\"]", NONE_OF_IMAGES),
    (
        "artifact",
        "[\"hda\", \"device-archive\"]",
        [
            "",
            "`hda` supports only modules of `openmp`, not of `hip`",
            "`hda` supports only modules of `openmp`, not of `cuda`",
            "`hda` supports only modules of `openmp`, not of `bitcode`",
            NO_EFFECT,
            "`hda` supports only modules of `openmp`, not of `rust`",
        ],
    ),
    (
        "container",
        "\"bundle\"",
        [
            "`bundle` is not a container of `openmp` with host code (`offload-binary` is)",
            "",
            "`bundle` is not a container of `cuda` (`fatbin`, `offload-binary`, `raw` are)",
            "",
            "",
            "",
        ],
    ),
    (
        "compress",
        "\"zstd:3\"",
        [
            "`compress` needs the container `bundle` or `fatbin`, found `offload-binary`",
            "",
            "",
            "",
            "",
            "",
        ],
    ),
    (
        "embed",
        "\"include\"",
        [
            "`embed = \"include\"` is for modules without host code",
            "",
            "",
            "",
            "",
            "",
        ],
    ),
    ("define", "{ A = 1 }", NONE_OF_IR),
    ("flags", "[\"-g\"]", NONE_OF_IMAGES),
    ("opt-level", "2", NONE_OF_IMAGES),
    ("std", "\"c++20\"", NONE_OF_IR),
    ("rdc", "true", OF_HIP_AND_CUDA),
    (
        "images",
        "\"source\"",
        [NO_EFFECT, "", "", "", NO_EFFECT, NO_EFFECT],
    ),
    ("host", "true", OF_HIP_AND_CUDA),
    (
        "cudart",
        "\"static\"",
        [
            NO_EFFECT,
            NO_EFFECT,
            "`cudart` needs `host = true`",
            NO_EFFECT,
            NO_EFFECT,
            NO_EFFECT,
        ],
    ),
    ("exclude", "[\"b.*\"]", ["", "", "", "", "", NO_EFFECT]),
    (
        "optional-kernels",
        "[\"wmma_*\"]",
        [NO_EFFECT, "", "", "", "", ""],
    ),
    ("compiler", "\"clang\"", NONE_OF_IMAGES),
    ("launcher", "\"ccache\"", NONE_OF_IR),
    (
        "register",
        "\"complete\"",
        [
            "",
            "`register = \"complete\"` needs `host = true`",
            "`register = \"complete\"` needs `host = true`",
            "modules of `bitcode` have no host code: the program loads their images",
            "modules of `prebuilt` have no host code: the program loads their images",
            "modules of `rust` have no host code: the program loads their images",
        ],
    ),
    ("missing", "\"stub\"", NONE_OF_IMAGES),
    ("feature", "\"gpu\"", [""; 6]),
    ("name", "\"other\"", [""; 6]),
];
pub(crate) const NO_EFFECT: &str = "no effect";
const NONE_OF_IR: [&str; 6] = ["", "", "", NO_EFFECT, NO_EFFECT, NO_EFFECT];
const NONE_OF_IMAGES: [&str; 6] = ["", "", "", "", NO_EFFECT, ""];
const OF_HIP_AND_CUDA: [&str; 6] = [NO_EFFECT, "", "", NO_EFFECT, NO_EFFECT, NO_EFFECT];
const OF_RUST: [&str; 6] = [NO_EFFECT, NO_EFFECT, NO_EFFECT, NO_EFFECT, NO_EFFECT, ""];
