//! Kernels and their arguments.

/// A kernel of a linked image. Sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Name in the runtime's API.
    pub name: String,
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
    /// Number of threads of a wavefront (warp).
    pub wavefront: Option<u32>,
}

/// An argument of a kernel, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Offset from the start of the argument buffer.
    pub offset: u32,
    /// Size of the argument itself.
    pub size: u32,
    /// `None` if neither the image nor the kernel's name tells.
    pub kind: Option<ArgumentKind>,
}

impl Argument {
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
