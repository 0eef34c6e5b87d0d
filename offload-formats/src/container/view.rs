//! The bytes of a file, for the parsers of the crate `object`.

use std::ops::Range;

use crate::format::bytes::{ReadAt, Window};

/// A [`Window`] for the parsers of the crate `object`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<R>(Window<R>);

impl<R> View<R> {
    pub(crate) fn new<'d>(data: R, range: Range<u64>) -> Self
    where
        R: ReadAt<'d>,
    {
        Self(Window::new(data, range))
    }
}

impl<'d, R: ReadAt<'d>> object::ReadRef<'d> for View<R> {
    fn len(self) -> Result<u64, ()> {
        self.0.size().ok_or(())
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'d [u8], ()> {
        self.0.read_at(offset, size).ok_or(())
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'d [u8], ()> {
        self.0.read_until(range, delimiter).ok_or(())
    }
}
