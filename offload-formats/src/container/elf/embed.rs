//! An object that carries offload binaries.

use super::write::{MACHINES, Machine, WriteError};
use crate::container::embed::{EmbedError, Flavor, Host, embed_bytes};
use crate::names::Triple;

impl Machine {
    /// That of a host, when objects for it can be written.
    #[must_use]
    pub fn of(triple: &Triple) -> Option<Self> {
        let row = MACHINES.iter().find(|(arch, _)| *arch == triple.arch());
        row.map(|(_, machine)| *machine)
    }
}

/// An object that carries offload binaries for the linker wrapper, and nothing else.
///
/// # Errors
///
/// When objects for that machine cannot be written.
pub fn embed(machine: Machine, offload_binaries: &[u8]) -> Result<Vec<u8>, WriteError> {
    let known = MACHINES
        .iter()
        .find(|(_, known)| known.number == machine.number);
    if known.is_none() {
        return Err(WriteError::Machine {
            number: machine.number,
        });
    }
    let host = Host::of_machine(machine);
    let object = embed_bytes(host, Flavor::Excluded, offload_binaries);
    object.map_err(|EmbedError::TooLarge { size: value }| WriteError::TooLarge { value })
}
