
/// One device image of this module.
#[allow(dead_code, unreachable_pub)]
#[derive(Clone, Copy)]
pub struct Image {
    /// The target, as Cargo.toml spells it.
    pub target: &'static str,
    /// `object` (ELF), `bitcode` or `ptx`.
    pub kind: &'static str,
    /// The image as the runtime loads it; PTX ends with a NUL unless it is in an offload binary. Empty if the last link
    /// makes the image or the container is compressed.
    pub bytes: &'static [u8],
    /// The compiler that made it.
    pub compiler: &'static str,
}

impl ::core::fmt::Debug for Image {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.debug_struct("Image")
            .field("target", &self.target)
            .field("kind", &self.kind)
            .field("size", &self.bytes.len())
            .field("compiler", &self.compiler)
            .finish()
    }
}

/// The reason why there is no image.
#[allow(dead_code, unreachable_pub)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotBuilt {
    /// The reason, found when this crate was built.
    pub reason: &'static str,
}

impl ::core::fmt::Display for NotBuilt {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        ::core::write!(f, "device code was not built: {}", self.reason)
    }
}

impl ::core::error::Error for NotBuilt {}

/// A target of Cargo.toml that has no image.
#[allow(dead_code, unreachable_pub)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The target, as Cargo.toml spells it.
    pub target: &'static str,
    /// The reason why it has none.
    pub reason: &'static str,
}

/// A kernel that the program starts. Sizes and offsets are in bytes.
#[allow(dead_code, unreachable_pub)]
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The symbol by which the runtime finds the kernel: `_Z5scaleIfLi256EEvPT_f`.
    pub name: &'static str,
    /// The name as the source spells it, with namespaces and template arguments: `scale<float, 256>`. Equal to `name` for
    /// kernels that are `extern "C"`.
    pub source_name: &'static str,
    /// The arguments that the host passes, in order; empty if the last link makes the images.
    pub arguments: &'static [Argument],
    /// The kernel in each image that has it; empty if the last link makes the images.
    pub images: &'static [KernelImage],
    stub: fn() -> ::core::option::Option<*const ::core::ffi::c_void>,
}

impl Kernel {
    /// Returns the address that stands for the kernel on the host, for `hipLaunchKernel` and `cudaLaunchKernel`; `None` in
    /// modules without host code, whose kernels the program loads.
    #[allow(dead_code, unreachable_pub)]
    #[must_use]
    pub fn stub(&self) -> ::core::option::Option<*const ::core::ffi::c_void> {
        (self.stub)()
    }
}

/// An argument of a kernel.
#[allow(dead_code, unreachable_pub)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Offset from the start of the argument buffer.
    pub offset: u32,
    /// Size of the argument itself.
    pub size: u32,
    /// `None` if neither the image nor the kernel's name tells.
    pub kind: ::core::option::Option<ArgumentKind>,
}

/// Kind of an argument.
#[allow(dead_code, unreachable_pub)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// An address that the device can use.
    Pointer,
    /// Anything else: a number, a structure (which may hold pointers).
    Value,
}

/// A kernel in the image for one target.
#[allow(dead_code, unreachable_pub)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelImage {
    /// The target, as Cargo.toml spells it.
    pub target: &'static str,
    /// Size of the argument buffer, with the arguments that the runtime adds.
    pub arguments_size: u32,
    /// Threads of a workgroup (block) at most, if the image says so.
    pub max_threads: ::core::option::Option<u32>,
    /// The only workgroup (block) size that the kernel may be launched with, if its source says so.
    pub required_threads: ::core::option::Option<[u32; 3]>,
    /// Statically allocated memory of a workgroup (LDS, shared memory). Images for `sm_90` and newer include the 1024 bytes
    /// of the system; PTX does not.
    pub shared_size: u32,
    /// Memory of each thread (scratch, local memory).
    pub private_size: u32,
    /// Registers of a thread.
    pub registers: ::core::option::Option<u32>,
    /// Scalar registers of a wavefront (AMD).
    pub scalar_registers: ::core::option::Option<u32>,
    /// Threads of a wavefront (warp).
    pub wavefront: ::core::option::Option<u32>,
}

/// Returns all images of this module in the container that the manifest's `container` names.
///
/// # Errors
///
/// If this crate was built without device code, or leaves its link to the last link.
#[allow(dead_code, unreachable_pub)]
pub fn image() -> ::core::result::Result<&'static [u8], NotBuilt> {
    linked::image()
}

/// Returns the images of this module, in the order of `targets`.
#[allow(dead_code, unreachable_pub)]
#[must_use]
pub fn images() -> &'static [Image] {
    linked::images()
}

/// Returns the kernel with this symbol (`_Z5scalePff`), or else the only kernel that the source spells so (`scale`,
/// `ns::scale<float, 256>`; blanks do not count). `None` if several overloads have the name, if no kernel has it, or in a
/// build without device code.
#[allow(dead_code, unreachable_pub)]
#[must_use]
pub fn find_kernel(name: &str) -> ::core::option::Option<&'static Kernel> {
    fn letters(name: &str) -> impl Iterator<Item = char> + '_ {
        name.chars().filter(|c| !c.is_whitespace())
    }
    let by_symbol = kernel::ALL.iter().find(|kernel| kernel.name == name);
    by_symbol.or_else(|| {
        let is_spelled_so = |kernel: &&Kernel| letters(kernel.source_name).eq(letters(name));
        let mut kernels = kernel::ALL.iter().filter(is_spelled_so);
        kernels.next().filter(|_| kernels.next().is_none())
    })
}
