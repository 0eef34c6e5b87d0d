//! Requests of the user, checked: settings of the manifest, of variables and of the build script, and modules made of
//! them.

pub mod aliases;
pub mod cargo_tables;
pub mod effect;
pub mod family;
pub mod language;
pub mod layers;
pub mod manifest;
pub mod module;
pub mod option_files;
pub mod platform;
pub mod settings;
pub mod skipped;
