//! Functions that run after `main`, in an array of their own.

use object::elf;

use super::Writer;
use crate::container::relocatable::SectionId;
use crate::registration::error::RegistrationError;
use crate::registration::machine::StartupCode;

impl Writer<'_> {
    /// Makes the second function of `text` a destructor.
    pub(in crate::registration) fn destructor(
        &mut self,
        startup: SectionId,
        text: &StartupCode,
        priority: u16,
    ) -> Result<(), RegistrationError> {
        let name = format!(".fini_array.{priority}");
        let flags = elf::SHF_WRITE | elf::SHF_ALLOC;
        let fini = self.section(&name, elf::SHT_FINI_ARRAY, flags, 8)?;
        self.object.append(fini, &[0; 8], 8);
        let startup = self.object.section_symbol(startup);
        let function = text.functions.get(1).map_or(0, |function| function.offset);
        let absolute = self.code.absolute;
        self.relocate(fini, 0, absolute, startup, function)
    }
}
