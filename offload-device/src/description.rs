//! Kernels as launches see them: name, layout of the arguments, limits.

/// Version of the agreement of launches and kernels, with which each signature starts.
///
/// Raise it if a kernel of an older image would take the same arguments in another way: if [`Argument::split`](crate::Argument::split)
/// returns other scalars, if [`Layout::offset`] places them elsewhere, or if a kernel finds its shared memory elsewhere.
pub(crate) const ABI: usize = 1;

/// A kernel as its module describes it.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Name of the function.
    pub name: &'static str,
    /// Layouts of the scalars that are passed.
    pub arguments: &'static [Layout],
    /// Bytes of shared memory.
    pub shared: usize,
    /// Maximum number of work-items in a workgroup.
    pub threads: Option<u32>,
    /// Dimensions in which the grid may have more than one work-item, 1 to 3.
    pub dimensions: usize,
    /// Text of the signature, which images contain.
    pub signature: &'static [u8],
}

/// Size and alignment of a scalar in the buffer of a kernel's arguments.
///
/// Each scalar has the first offset after the scalar before it that is a multiple of its alignment, on AMD and NVIDIA alike:
///
/// ```
/// use offload_device::Layout;
///
/// const ARGUMENTS: &[Layout] = &[Layout::of::<f32>(), Layout::of::<*const f32>(), Layout::of::<u8>()];
/// const LENGTH: usize = Layout::offset(ARGUMENTS, 2);
/// assert_eq!(LENGTH, 16);
/// assert_eq!(Layout::offsets(ARGUMENTS).collect::<Vec<_>>(), [0, 8, 16]);
/// assert_eq!(Layout::buffer_size(ARGUMENTS), 17);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes, a power of two.
    pub align: usize,
}

impl Layout {
    /// Returns the layout of a type.
    #[must_use]
    pub const fn of<T>() -> Self {
        Self {
            size: size_of::<T>(),
            align: align_of::<T>(),
        }
    }

    /// Returns the offset of an argument in bytes from the start of the buffer; the index can be the number of arguments, for
    /// the end of the last one.
    #[must_use]
    pub const fn offset(arguments: &[Layout], index: usize) -> usize {
        let mut offset = 0;
        let mut before = 0;
        while before < index {
            offset = next_multiple(offset, arguments[before].align) + arguments[before].size;
            before += 1;
        }
        if index < arguments.len() {
            next_multiple(offset, arguments[index].align)
        } else {
            offset
        }
    }

    /// Returns the size of the buffer in bytes.
    #[must_use]
    pub const fn buffer_size(arguments: &[Layout]) -> usize {
        Self::offset(arguments, arguments.len())
    }

    /// Iterates over the offsets of all arguments.
    pub fn offsets(arguments: &[Layout]) -> impl Iterator<Item = usize> + '_ {
        arguments.iter().scan(0, |end, argument| {
            let offset = next_multiple(*end, argument.align);
            *end = offset + argument.size;
            Some(offset)
        })
    }
}

const fn next_multiple(offset: usize, align: usize) -> usize {
    offset.next_multiple_of(align)
}
