//! Memory of a GPU.

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::driver::Address;
use super::{Error, Stream};
use crate::Element;

/// Elements in the memory of a GPU, which only one [`Stream`] accesses.
pub struct Buffer<T> {
    stream: Stream,
    /// Address of the first element; the alignment of `T` if the buffer has no bytes, as of an empty slice.
    address: Address,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Allocates elements whose bytes are 0.
    ///
    /// # Errors
    /// If a function of the API fails, for example because the GPU's memory is full.
    pub fn zeroed(stream: &Stream, len: usize) -> Result<Self, Error> {
        let buffer = Self::allocate(stream, len)?;
        if buffer.size() > 0 {
            let driver = stream.enter()?;
            // SAFETY: the memory has this size. Uses of the buffer follow in the same stream.
            unsafe { driver.fill(buffer.address, 0, buffer.size(), stream.handle())? };
        }
        Ok(buffer)
    }

    /// Allocates elements and copies a slice to them.
    ///
    /// # Errors
    /// If a function of the API fails, for example because the GPU's memory is full.
    pub fn from_slice(stream: &Stream, elements: &[T]) -> Result<Self, Error> {
        let mut buffer = Self::allocate(stream, elements.len())?;
        buffer.copy_from(elements)?;
        Ok(buffer)
    }

    /// Allocates memory, whose content is what was there before.
    fn allocate(stream: &Stream, len: usize) -> Result<Self, Error> {
        // Drivers align all memory to 256 bytes.
        const {
            assert!(
                align_of::<T>() <= 256,
                "elements in a `Buffer` have an alignment of at most 256 bytes"
            )
        };
        let element_size = size_of::<T>();
        let size = len
            .checked_mul(element_size)
            .filter(|&size| isize::try_from(size).is_ok());
        let size = size.ok_or(Error::TooLarge { len, element_size })?;
        let mut address = align_of::<T>() as Address;
        if size > 0 {
            let driver = stream.enter()?;
            // SAFETY: `drop` frees the memory.
            unsafe { driver.allocate(&mut address, size)? };
        }
        Ok(Self {
            stream: stream.clone(),
            address,
            len,
            elements: PhantomData,
        })
    }

    /// Replaces all elements by those of a slice, after all that the stream does before. Waits for the end of the copy.
    ///
    /// # Errors
    /// [`Error::Length`] if the slice has another length; if a function of the API fails.
    pub fn copy_from(&mut self, elements: &[T]) -> Result<(), Error> {
        self.check_len(elements.len())?;
        if self.size() > 0 {
            let from = elements.as_ptr().cast();
            // SAFETY: both have this size, and only this stream accesses the buffer.
            unsafe {
                self.stream
                    .copy_to_device(self.address, from, self.size())?
            };
        }
        Ok(())
    }

    /// Copies all elements to a slice, after all that the stream does before. Waits for the end of the copy.
    ///
    /// # Errors
    /// [`Error::Length`] if the slice has another length; if a function of the API or an earlier launch fails.
    pub fn copy_to(&self, elements: &mut [T]) -> Result<(), Error> {
        self.check_len(elements.len())?;
        // SAFETY: the elements have room for the bytes; every bit pattern is a value of an `Element`.
        unsafe { self.copy_out(elements.as_mut_ptr()) }
    }

    /// Returns a copy of all elements, after all that the stream does before.
    ///
    /// # Errors
    /// If a function of the API or an earlier launch fails.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let mut elements: Vec<T> = Vec::with_capacity(self.len);
        let room: &mut [MaybeUninit<T>] = elements.spare_capacity_mut();
        // SAFETY: the capacity has room for all elements. After a success all are initialized: the GPU's memory was filled
        // when the buffer was made, and every bit pattern is a value of an `Element`.
        unsafe {
            self.copy_out(room.as_mut_ptr().cast())?;
            elements.set_len(self.len);
        }
        Ok(elements)
    }

    /// # Safety
    /// The memory has room for all elements.
    unsafe fn copy_out(&self, to: *mut T) -> Result<(), Error> {
        if self.size() == 0 {
            return self.stream.synchronize();
        }
        let to = to.cast();
        // SAFETY: the caller guarantees the size.
        unsafe { self.stream.copy_to_host(to, self.address, self.size()) }
    }

    fn check_len(&self, slice: usize) -> Result<(), Error> {
        let buffer = self.len;
        if slice == buffer {
            Ok(())
        } else {
            Err(Error::Length { buffer, slice })
        }
    }
}

impl<T> Buffer<T> {
    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the stream that accesses the buffer.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the address of the first element in the memory of the GPU, for libraries of the vendor. An access by other means
    /// than this stream is a data race unless the caller excludes it.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Gives the buffer to another stream of the same GPU, after waiting for the stream that had it.
    ///
    /// # Errors
    /// [`Error::OtherGpu`] if the stream is of another GPU; if a function of the API or an earlier launch fails. The buffer then
    /// keeps its stream.
    pub fn move_to(&mut self, stream: &Stream) -> Result<(), Error> {
        if !self.stream.context().is_same_gpu(stream.context()) {
            return Err(Error::OtherGpu);
        }
        self.stream.synchronize()?;
        self.stream = stream.clone();
        Ok(())
    }

    fn size(&self) -> usize {
        // Does not overflow: `allocate` checked it.
        self.len * size_of::<T>()
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.size() == 0 {
            return;
        }
        // Errors cannot be returned here; `synchronize` and copies return those of kernels.
        if let Ok(driver) = self.stream.enter() {
            let _ = self.stream.synchronize();
            // SAFETY: allocated by `allocate`; the stream, which alone accesses the memory, is done.
            let _ = unsafe { driver.free(self.address) };
        }
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("address", &format_args!("{:#x}", self.address))
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
