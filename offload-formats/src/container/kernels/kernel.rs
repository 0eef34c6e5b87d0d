//! Kernels and their arguments.

/// A kernel of a linked image. Sizes are in bytes. A value is `None` if the image does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kernel {
    /// Name in the runtime's API.
    pub name: String,
    /// True for a `static` kernel of an NVIDIA image, or one in an anonymous namespace: only host code of its source launches
    /// it, and several kernels of an image may have its name.
    pub is_local: bool,
    /// Arguments that the host passes, in order, without those that AMD's runtime adds (`hidden_*`).
    pub arguments: Vec<Argument>,
    /// Size of the argument buffer, with the arguments that the runtime adds.
    pub arguments_size: u32,
    /// Maximum number of threads of a workgroup (block); `None` if the image has none. NVIDIA images with a required size
    /// have no maximum.
    pub max_threads: Option<u32>,
    /// Required size of a workgroup (block); `None` if the source has none.
    pub required_threads: Option<[u32; 3]>,
    /// Size of static workgroup memory (LDS, shared memory). For NVIDIA cubins from `sm_90` on, it includes the system's
    /// 1024 bytes; for PTX, it does not.
    pub shared_size: u32,
    /// Size of each thread's private memory (scratch, local memory).
    pub private_size: u32,
    /// Registers of a thread: AMD's vector registers. If one file contains the accumulation registers, they count, too.
    pub registers: Option<u32>,
    /// Scalar registers of a wavefront (AMD).
    pub scalar_registers: Option<u32>,
    /// Accumulation registers of a thread (AMD).
    pub accumulation_registers: Option<u32>,
    /// Number of vector registers that the compiler spilled to memory (AMD).
    pub spilled_registers: Option<u32>,
    /// Number of scalar registers that the compiler spilled, to vector registers or memory (AMD).
    pub spilled_scalar_registers: Option<u32>,
    /// True if the size of private memory depends on the run, because of recursion or calls of unknown functions; then
    /// `private_size` is a part of it.
    pub has_dynamic_stack: Option<bool>,
    /// Number of hardware barriers (NVIDIA).
    pub barriers: Option<u32>,
    /// Size of the constant memory that belongs to the kernel, with its arguments (NVIDIA).
    pub constant_size: Option<u32>,
    /// Size of the machine code of the kernel's function; `None` for PTX.
    pub code_size: Option<u64>,
    /// Number of threads of a wavefront (warp).
    pub wavefront: Option<u32>,
}

/// An argument of a kernel, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument {
    /// Offset from the start of the argument buffer.
    pub offset: u32,
    /// Size of the argument itself.
    pub size: u32,
    /// `None` if neither the image nor the kernel's name tells.
    pub kind: Option<ArgumentKind>,
}

impl Argument {
    /// Creates an argument.
    #[must_use]
    pub const fn new(offset: u32, size: u32, kind: Option<ArgumentKind>) -> Self {
        Self { offset, size, kind }
    }

    /// Creates an argument without a known type. An argument with another size than a pointer is a value.
    pub(super) fn at(offset: u32, size: u32) -> Self {
        // Both vendors' pointers have 8 bytes.
        let kind = (size != 8).then_some(ArgumentKind::Value);
        Self { offset, size, kind }
    }

    /// Tells whether `other` takes the same bytes of the argument buffer.
    #[must_use]
    pub fn is_at_the_place_of(&self, other: &Self) -> bool {
        (self.offset, self.size) == (other.offset, other.size)
    }
}

/// Kind of an argument, for programs that check what they pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentKind {
    /// An address that the device can use.
    Pointer,
    /// Anything else: a number, a structure (which may hold pointers).
    Value,
}
