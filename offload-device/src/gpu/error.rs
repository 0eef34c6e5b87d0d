//! Errors of the loader.

use std::fmt;

/// An interface to GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Api {
    /// AMD's HIP.
    Hip,
    /// NVIDIA's CUDA driver.
    Cuda,
}

impl Api {
    /// All APIs, in the order in which [`Device::all`](super::Device::all) searches.
    pub const ALL: &'static [Self] = &[Self::Cuda, Self::Hip];
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hip => "HIP",
            Self::Cuda => "CUDA",
        })
    }
}

/// Failure of the loader. `Debug` writes what `Display` does, for a `main` that returns it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The library of an API is missing or cannot be loaded.
    #[non_exhaustive]
    Library {
        /// The API.
        api: Api,
        /// Names and paths that were searched, in order.
        searched: Vec<String>,
        /// The loader's text for each library that exists but cannot be loaded.
        failures: Vec<String>,
    },
    /// The library of an API is too old: it has no such function.
    #[non_exhaustive]
    Function {
        /// Name or path of the library.
        library: String,
        /// The function.
        function: &'static str,
    },
    /// A function of an API failed.
    #[non_exhaustive]
    Call {
        /// The function.
        function: &'static str,
        /// Error code that it returned.
        code: i32,
        /// The API's name of the code.
        name: String,
        /// The API's text for the code.
        text: String,
        /// The log of CUDA's compiler for PTX, or the kernel or variable that the function was called for; may be empty.
        details: String,
    },
    /// No API has a GPU.
    #[non_exhaustive]
    NoGpu {
        /// The reason for each API.
        reasons: Vec<Error>,
    },
    /// An API has no GPU of this index.
    #[non_exhaustive]
    NoSuchGpu {
        /// The API.
        api: Api,
        /// The index, counted from 0.
        index: usize,
        /// Number of GPUs.
        count: usize,
    },
    /// No image could be loaded.
    #[non_exhaustive]
    NoImage {
        /// The GPU's target.
        target: String,
        /// The error for each image of the API, in the order in which they were tried.
        failures: Vec<Error>,
    },
    /// The API cannot read an image: it is not what [`Module::load`](super::Module::load) takes.
    #[non_exhaustive]
    Image {
        /// The API.
        api: Api,
        /// Description of the image.
        found: String,
    },
    /// A kernel cannot be launched with this grid or this much shared memory.
    #[non_exhaustive]
    Launch {
        /// The problem, with the kernel's name.
        problem: String,
    },
    /// A kernel in Rust and the image's kernel of the same name have different signatures.
    #[non_exhaustive]
    Signature {
        /// Name of the kernel.
        kernel: String,
        /// Signature of the kernel in the program.
        expected: String,
        /// Signature of the kernel in the image; `None` if the image contains no signature.
        found: Option<String>,
    },
    /// An argument is a buffer of another stream than the module's.
    #[non_exhaustive]
    ArgumentStream {
        /// Name of the kernel.
        kernel: String,
        /// Index of the argument, counted from 0, without the `item` of a kernel in Rust.
        index: usize,
    },
    /// A module or buffer and a stream are of different GPUs.
    OtherGpu,
    /// The lengths of a buffer and a slice differ.
    #[non_exhaustive]
    Length {
        /// Length of the buffer in elements.
        buffer: usize,
        /// Length of the slice in elements.
        slice: usize,
    },
    /// The sizes of a variable of a module and a slice differ.
    #[non_exhaustive]
    VariableSize {
        /// Name of the variable.
        variable: String,
        /// Size of the variable in bytes.
        size: usize,
        /// Size of the slice in bytes.
        slice: usize,
    },
    /// A buffer of this length does not fit in the address space.
    #[non_exhaustive]
    TooLarge {
        /// Length in elements.
        len: usize,
        /// Size of an element in bytes.
        element_size: usize,
    },
}

/// Returns true if a function's code says that there is no GPU: `hipErrorNoDevice`, `CUDA_ERROR_NO_DEVICE`, and
/// `hipErrorInvalidDevice`, which `hipInit` of ROCm 5.2 returns without `/dev/kfd`.
fn is_no_device(function: &str, code: i32) -> bool {
    code == 100 || (function == "hipInit" && code == 101)
}

impl Error {
    /// Returns true if the machine has no GPU of the API, or not its library: nothing failed, and a program can use the CPU.
    ///
    /// False if the library exists and fails in another way.
    #[must_use]
    pub fn is_no_gpu(&self) -> bool {
        match self {
            Self::Library { failures, .. } => failures.is_empty(),
            Self::Call { function, code, .. } => is_no_device(function, *code),
            Self::NoGpu { reasons } => reasons.iter().all(Self::is_no_gpu),
            Self::NoSuchGpu { count, .. } => *count == 0,
            _ => false,
        }
    }

    /// Returns true if a module has no variable of a name: `hipErrorNotFound`, `CUDA_ERROR_NOT_FOUND`, or `hipErrorInvalidSymbol` of
    /// `hipModuleGetGlobal`. In CUDA, the code of the last is another error.
    pub(super) fn is_no_variable(&self) -> bool {
        match self {
            Self::Call { function, code, .. } => {
                *code == 500 || (*function == "hipModuleGetGlobal" && *code == 13)
            }
            _ => false,
        }
    }

    /// Adds details to an error of a function.
    pub(super) fn with_details(mut self, more: &str) -> Self {
        if let Self::Call { details, .. } = &mut self {
            more.clone_into(details);
        }
        self
    }
}

impl std::error::Error for Error {}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library {
                api,
                searched,
                failures,
            } => write_library(f, *api, searched, failures),
            Self::Function { library, function } => {
                write!(
                    f,
                    "`{library}` has no function `{function}`\nhint: install a newer driver"
                )
            }
            Self::Call {
                function,
                code,
                name,
                text,
                details,
            } => write_call(f, (function, *code), name, [text, details]),
            Self::NoGpu { reasons } => {
                write!(f, "no GPU found")?;
                write_lines(f, reasons)
            }
            Self::NoSuchGpu { api, index, count } => {
                write!(
                    f,
                    "{api} has no GPU with index {index}: the number of GPUs is {count}"
                )
            }
            Self::NoImage { target, failures } => write_no_image(f, target, failures),
            Self::Image { api, found } => {
                let expected = expected_images(*api);
                write!(
                    f,
                    "{api} cannot load this image: expected {expected}, found {found}"
                )
            }
            Self::Launch { problem } => f.write_str(problem),
            Self::Signature {
                kernel,
                expected,
                found,
            } => write_signature(f, kernel, expected, found.as_deref()),
            Self::ArgumentStream { kernel, index } => {
                write!(
                    f,
                    "kernel `{kernel}`, argument {index}: the buffer belongs to another stream than the module\n\
                    hint: move the buffer with `Buffer::move_to`, or launch with `Module::on`"
                )
            }
            Self::OtherGpu => {
                f.write_str("expected a stream of the same GPU, found one of another GPU")
            }
            Self::Length { buffer, slice } => {
                write!(
                    f,
                    "expected a slice of the buffer's length {buffer}, found {slice} elements"
                )
            }
            Self::VariableSize {
                variable,
                size,
                slice,
            } => {
                write!(
                    f,
                    "variable `{variable}`: expected a slice of its size of {size} bytes, found {slice} bytes"
                )
            }
            Self::TooLarge { len, element_size } => {
                write!(
                    f,
                    "a buffer of {len} elements of {element_size} bytes does not fit in memory"
                )
            }
        }
    }
}

/// Writes that a function failed, with the name, the text and the details of its code if they are known.
fn write_call(
    f: &mut fmt::Formatter<'_>,
    (function, code): (&str, i32),
    name: &str,
    texts: [&String; 2],
) -> fmt::Result {
    write!(f, "`{function}` failed: {name} ({code})")?;
    // HIP's text may be the name again.
    let texts = texts.into_iter();
    for text in texts.filter(|text| !text.is_empty() && *text != name) {
        write!(f, ": {text}")?;
    }
    if function == "hipInit" && is_no_device(function, code) {
        write!(
            f,
            "\nhint: HIP uses GPUs through `/dev/kfd`, which AMD's driver creates; this user needs access to it"
        )?;
    }
    Ok(())
}

/// Writes that the image's kernel has another signature, or none.
fn write_signature(
    f: &mut fmt::Formatter<'_>,
    kernel: &str,
    expected: &str,
    found: Option<&str>,
) -> fmt::Result {
    write!(
        f,
        "kernel `{kernel}`: expected the signature `{expected}` in the image, found "
    )?;
    match found {
        Some(found) => write!(
            f,
            "`{found}`\nhint: build the image from the crate of this kernel, with the same features, or give the kernel another name"
        ),
        None => write!(
            f,
            "none\nhint: the image's kernel is not a kernel in Rust, or an older offload-device built it: build the image again"
        ),
    }
}

/// Writes that no image could be loaded, and the error for each.
fn write_no_image(f: &mut fmt::Formatter<'_>, target: &str, failures: &[Error]) -> fmt::Result {
    write!(f, "no image for `{target}`")?;
    if failures.is_empty() {
        return write!(f, ": the module has no image for this vendor's GPUs");
    }
    write!(f, " among {}", failures.len())?;
    write_lines(f, failures)
}

/// Writes errors, each after a line break.
fn write_lines(f: &mut fmt::Formatter<'_>, errors: &[Error]) -> fmt::Result {
    errors.iter().try_for_each(|error| write!(f, "\n{error}"))
}

/// Names the images that an API loads.
fn expected_images(api: Api) -> &'static str {
    match api {
        Api::Hip => "a bundle or a code object",
        Api::Cuda => "a fat binary, a cubin or PTX",
    }
}

fn write_library(
    f: &mut fmt::Formatter<'_>,
    api: Api,
    searched: &[String],
    failures: &[String],
) -> fmt::Result {
    let (library, install) = match api {
        Api::Hip => (
            "HIP's runtime",
            "install AMD's driver and ROCm's runtime (Debian: `apt install libamdhip64-5`), or set OFFLOAD_DEVICE_HIP to the library's path",
        ),
        Api::Cuda => (
            "NVIDIA's driver",
            "install NVIDIA's driver, or set OFFLOAD_DEVICE_CUDA to the path of `libcuda.so.1`",
        ),
    };
    if failures.is_empty() {
        write!(
            f,
            "{library} is not installed: searched `{}`",
            searched.join("`, `")
        )?;
    } else {
        write!(f, "{library} cannot be loaded: {}", failures.join("; "))?;
    }
    // In the words of musl.
    let is_static = failures
        .iter()
        .any(|text| text.contains("Dynamic loading not supported"));
    match is_static {
        true => write!(
            f,
            "\nhint: a static program loads no libraries: build for a target such as x86_64-unknown-linux-gnu"
        ),
        false => write!(f, "\nhint: {install}"),
    }
}
