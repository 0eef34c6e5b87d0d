//! Requests of the user, checked: settings of the manifest, of variables and of the build script, and modules made of
//! them.

pub(crate) mod aliases;
pub(crate) mod effect;
pub(crate) mod family;
pub(crate) mod language;
pub(crate) mod layers;
pub(crate) mod manifest;
pub(crate) mod module;
pub(crate) mod settings;
pub(crate) mod skipped;
