//! Programs as values: commands, searches, compiler launchers, and work under a jobserver.

pub(crate) mod command;
pub(crate) mod install;
pub mod jobserver;
pub(crate) mod launcher;
pub(crate) mod lock;
pub(crate) mod search;
pub(crate) mod temporary;
