//! What is known of a kernel.

/// A kernel of a linked image, as its runtime starts it. Sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// As the runtime looks it up.
    pub name: String,
    /// What the host gives, in order; not what AMD's runtime adds (`hidden_*`).
    pub arguments: Vec<Argument>,
    /// Of the buffer of arguments, with what the runtime adds.
    pub arguments_size: u32,
    /// Threads of a workgroup (block) at most, where the image says; NVIDIA's says nothing beside a required size.
    pub max_threads: Option<u32>,
    /// The one size of a workgroup (block) that it may be started with, where the source says.
    pub required_threads: Option<[u32; 3]>,
    /// Of a workgroup's memory (LDS, shared memory) that is laid out when it is compiled; of NVIDIA's from `sm_90` on with
    /// the 1024 bytes that are the system's, of PTX without.
    pub shared_size: u32,
    /// Of each thread's own memory (scratch, local memory).
    pub private_size: u32,
    /// Registers of a thread: AMD's vector registers, with those for accumulation where they are one file.
    pub registers: Option<u32>,
    /// AMD's scalar registers of a wavefront.
    pub scalar_registers: Option<u32>,
    /// Threads of a wavefront (warp).
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
    /// An argument of which the image gives only the place.
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
pub enum ArgumentKind {
    /// An address that the device can use.
    Pointer,
    /// Anything else: a number, a structure (which may hold pointers).
    Value,
}
