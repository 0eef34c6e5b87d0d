//! GPUs of this machine.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;

use super::driver::{Driver, printable};
use super::{Api, Error};

/// A GPU of this machine.
#[derive(Clone, Debug)]
pub struct Device {
    pub(super) driver: &'static Driver,
    pub(super) id: c_int,
    index: usize,
    name: String,
    target: String,
}

impl Device {
    /// Returns the GPUs of all APIs, at least one: first those of CUDA, then those of HIP, each in the API's order.
    ///
    /// An API without a GPU, or whose driver fails, adds none; [`Device::of`] returns its error.
    ///
    /// # Errors
    /// [`Error::NoGpu`] if there is no GPU, with the reason for each API.
    pub fn all() -> Result<Vec<Self>, Error> {
        let (mut all, mut reasons) = (Vec::new(), Vec::new());
        for &api in Api::ALL {
            match Self::of(api) {
                Ok(devices) => all.extend(devices),
                Err(reason) => reasons.push(reason),
            }
        }
        if all.is_empty() {
            return Err(Error::NoGpu { reasons });
        }
        Ok(all)
    }

    /// Returns the first GPU of [`Device::all`].
    ///
    /// # Errors
    /// As [`Device::all`].
    pub fn first() -> Result<Self, Error> {
        Ok(Self::all()?.swap_remove(0))
    }

    /// Returns the GPUs of an API, at least one, in the API's order.
    ///
    /// # Errors
    /// If the API's library is missing, a function of it fails, or there is no GPU.
    pub fn of(api: Api) -> Result<Vec<Self>, Error> {
        let driver = Driver::get(api)?;
        let count = count(driver)?;
        if count == 0 {
            return Err(Error::NoSuchGpu {
                api,
                index: 0,
                count,
            });
        }
        (0..count)
            .map(|index| Self::describe(driver, index))
            .collect()
    }

    /// Returns a GPU of an API by its index, which is counted from 0.
    ///
    /// # Errors
    /// As [`Device::of`], and if there is no such GPU.
    pub fn new(api: Api, index: usize) -> Result<Self, Error> {
        let driver = Driver::get(api)?;
        let count = count(driver)?;
        if index >= count {
            return Err(Error::NoSuchGpu { api, index, count });
        }
        Self::describe(driver, index)
    }

    fn describe(driver: &'static Driver, index: usize) -> Result<Self, Error> {
        let mut id = 0;
        let mut name: [c_char; 256] = [0; 256];
        // SAFETY: the index is less than the count, which is an `int`; the name has the size that is passed.
        unsafe {
            driver.device(&mut id, index as c_int)?;
            driver.device_name(name.as_mut_ptr(), name.len() as c_int, id)?;
        }
        let name = name.map(|byte| byte as u8);
        let name = CStr::from_bytes_until_nul(&name).map_or(&name[..], CStr::to_bytes);
        Ok(Self {
            driver,
            id,
            index,
            name: printable(name),
            target: driver.target(id)?,
        })
    }

    /// Returns the API.
    #[must_use]
    pub fn api(&self) -> Api {
        self.driver.api()
    }

    /// Returns the index in its API, counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the marketing name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the target that images are built for: a target ID such as `gfx90a:sramecc+:xnack-`, or `sm_90`.
    ///
    /// `unknown` if HIP's runtime does not tell.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.name, self.target, self.api())
    }
}

fn count(driver: &Driver) -> Result<usize, Error> {
    let mut count = 0;
    // SAFETY: the API is initialized.
    unsafe { driver.device_count(&mut count)? };
    Ok(usize::try_from(count).unwrap_or(0))
}
