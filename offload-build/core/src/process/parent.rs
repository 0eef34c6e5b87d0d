//! The process that started this one: Cargo, for a build script.

/// The process that started this one.
#[derive(Clone, Copy, Debug)]
pub struct Parent {
    /// `None` on systems that do not tell.
    number: Option<u32>,
}

impl Parent {
    /// Returns the current one.
    #[must_use]
    pub fn now() -> Self {
        #[cfg(unix)]
        let number = Some(std::os::unix::process::parent_id());
        #[cfg(not(unix))]
        let number = None;
        Self { number }
    }

    /// Tells whether it has ended: this process has another parent.
    #[must_use]
    pub fn has_ended(self) -> bool {
        Self::now().number != self.number
    }
}
