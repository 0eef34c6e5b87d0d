//! Programs as values: commands, searches, compiler launchers, and work under a jobserver.

pub mod command;
pub mod install;
pub mod jobserver;
pub mod launcher;
pub mod lock;
pub mod parent;
pub mod search;
pub mod temporary;
