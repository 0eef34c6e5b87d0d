//! Streams: queues of a GPU.

use std::ffi::c_void;
use std::sync::Arc;

use super::driver::{Address, Driver, Handle};
use super::{Device, Error};

/// A GPU that is in use. All that was made on it has a share.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) device: Device,
    handle: Handle,
}

impl Context {
    fn new(device: &Device) -> Result<Self, Error> {
        Ok(Self {
            device: device.clone(),
            handle: device.driver.retain(device.id)?,
        })
    }

    /// Returns the API, for functions that use this GPU on the calling thread.
    pub(super) fn enter(&self) -> Result<&'static Driver, Error> {
        let driver = self.device.driver;
        driver.activate(self.device.id, self.handle)?;
        Ok(driver)
    }

    /// Returns true if both are of one GPU, so that both can use what was made in one of them.
    pub(super) fn is_same_gpu(&self, other: &Self) -> bool {
        let (one, other) = (&self.device, &other.device);
        (one.api(), one.id) == (other.api(), other.id)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained by `new`; what uses it has a share of this context. An error cannot be returned, and nothing is left
        // to do after one.
        let _ = unsafe { self.device.driver.release(self.device.id) };
    }
}

/// A queue of a GPU: its launches and copies run one after another, in the order of the calls.
///
/// A clone is the same stream. The stream exists until the last clone, buffer and module of it is dropped.
#[derive(Clone, Debug)]
pub struct Stream(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    context: Arc<Context>,
    handle: Handle,
}

impl Stream {
    /// Creates a stream of a GPU. For CUDA the first one creates the primary context of the GPU, which takes a moment.
    ///
    /// # Errors
    /// If a function of the API fails.
    pub fn new(device: &Device) -> Result<Self, Error> {
        Self::in_context(Arc::new(Context::new(device)?))
    }

    fn in_context(context: Arc<Context>) -> Result<Self, Error> {
        let driver = context.enter()?;
        let mut handle = Handle::NULL;
        // SAFETY: 0 stands for the usual flags.
        unsafe { driver.stream_create(&mut handle, 0)? };
        Ok(Self(Arc::new(Queue { context, handle })))
    }

    /// Creates another stream of the same GPU, which runs beside this one.
    ///
    /// # Errors
    /// If a function of the API fails.
    pub fn another(&self) -> Result<Self, Error> {
        Self::in_context(self.0.context.clone())
    }

    /// Returns the GPU.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.context.device
    }

    /// Waits until all launches and copies of this stream are done.
    ///
    /// # Errors
    /// If one of them failed: the function that is named need not be the one that failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        let driver = self.enter()?;
        // SAFETY: the stream exists.
        unsafe { driver.stream_synchronize(self.0.handle) }
    }

    /// Copies bytes to the GPU, after all that the stream does before, and waits for the end of the copy.
    ///
    /// # Safety
    /// Both have this size in bytes, and nothing else accesses those of the GPU.
    pub(super) unsafe fn copy_to_device(
        &self,
        to: Address,
        from: *const c_void,
        size: usize,
    ) -> Result<(), Error> {
        let driver = self.enter()?;
        // SAFETY: the caller guarantees it, until this function returns.
        let copied = unsafe { driver.copy_to_device(to, from, size, self.0.handle) };
        copied.and(self.synchronize())
    }

    /// Copies bytes of the GPU to the host, after all that the stream does before, and waits for the end of the copy.
    ///
    /// # Safety
    /// Both have this size in bytes.
    pub(super) unsafe fn copy_to_host(
        &self,
        to: *mut c_void,
        from: Address,
        size: usize,
    ) -> Result<(), Error> {
        let driver = self.enter()?;
        // SAFETY: the caller guarantees it, until this function returns.
        let copied = unsafe { driver.copy_to_host(to, from, size, self.0.handle) };
        copied.and(self.synchronize())
    }

    pub(super) fn enter(&self) -> Result<&'static Driver, Error> {
        self.0.context.enter()
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.0.context
    }

    pub(super) fn handle(&self) -> Handle {
        self.0.handle
    }

    /// Returns true if both are the same queue.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Errors cannot be returned here; `synchronize` and copies return those of kernels.
        if let Ok(driver) = self.context.enter() {
            // SAFETY: nothing else has this stream: its buffers and modules have shares of it.
            unsafe {
                let _ = driver.stream_synchronize(self.handle);
                let _ = driver.stream_destroy(self.handle);
            }
        }
    }
}
