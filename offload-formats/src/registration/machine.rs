//! The instructions of the constructors, for each instruction set.
//!
//! A constructor registers the images, and calls `atexit` to unregister them, because a destructor
//! would run after the runtime's own. A [`StartupCode`] contains the instructions of all functions
//! of an object, their relocations, and their unwind information.
//!
//! OpenMP's instructions are here. The others were written in assembler, in a file beside each
//! table; `tests/link-registration/registration_machine.rs` compares both.

use object::elf;

use text::{elf_fixup, function};

pub(super) use text::{Operand, StartupCode};

mod fat_binary_aarch64;
mod fat_binary_x86_64;
#[cfg(feature = "tools")]
pub(super) mod sycl_aarch64;
#[cfg(feature = "tools")]
pub(super) mod sycl_x86_64;
mod text;
pub(super) mod windows_x86_64;

/// Differences between instruction sets.
pub(super) struct Code {
    pub(super) openmp: &'static StartupCode,
    pub(super) cuda: &'static StartupCode,
    pub(super) hip: &'static StartupCode,
    /// A function that only returns.
    pub(super) empty_function: &'static [u8],
    /// Relocation for a 64-bit address.
    pub(super) absolute: elf::RelocationType,
    pub(super) unwind_type: elf::SectionType,
    /// Relocation for a function's address in the unwind information.
    pub(super) unwind_relocation: elf::RelocationType,
}

impl Code {
    pub(super) fn of(machine: u16) -> Option<&'static Self> {
        match elf::Machine(machine) {
            elf::EM_X86_64 => Some(&X86_64),
            elf::EM_AARCH64 => Some(&AARCH64),
            _ => None,
        }
    }
}

static X86_64: Code = Code {
    openmp: &OPENMP_X86_64,
    cuda: &fat_binary_x86_64::CUDA,
    hip: &fat_binary_x86_64::HIP,
    empty_function: &[0xc3],
    absolute: elf::R_X86_64_64,
    unwind_type: elf::SHT_X86_64_UNWIND,
    unwind_relocation: elf::R_X86_64_PC32,
};

#[rustfmt::skip]
static OPENMP_X86_64: StartupCode = StartupCode {
    bytes: &[
        0x50,                                     // 00  push rax
        0x48, 0x8d, 0x3d, 0, 0, 0, 0,             // 01  lea rdi, [rip + descriptor]
        0xe8, 0, 0, 0, 0,                         // 08  call __tgt_register_lib
        0x48, 0x8d, 0x3d, 0x0c, 0, 0, 0,          // 0d  lea rdi, [rip + 0xc], which is 0x20
        0xe8, 0, 0, 0, 0,                         // 14  call atexit
        0x58, 0xc3,                               // 19  pop rax; ret
        0x0f, 0x1f, 0x44, 0, 0,                   // 1b  nop
        0x50,                                     // 20  push rax
        0x48, 0x8d, 0x3d, 0, 0, 0, 0,             // 21  lea rdi, [rip + descriptor]
        0xe8, 0, 0, 0, 0,                         // 28  call __tgt_unregister_lib
        0x58, 0xc3,                               // 2d  pop rax; ret
    ],
    functions: &[
        function(".omp_offloading.descriptor_reg", 0x00, 0x1b),
        function(".omp_offloading.descriptor_unreg", 0x20, 0xf),
    ],
    fixups: &[
        elf_fixup(0x04, elf::R_X86_64_PC32, Operand::Descriptor, -4),
        elf_fixup(0x09, elf::R_X86_64_PLT32, Operand::Runtime("__tgt_register_lib"), -4),
        elf_fixup(0x15, elf::R_X86_64_PLT32, Operand::Runtime("atexit"), -4),
        elf_fixup(0x24, elf::R_X86_64_PC32, Operand::Descriptor, -4),
        elf_fixup(0x29, elf::R_X86_64_PLT32, Operand::Runtime("__tgt_unregister_lib"), -4),
    ],
    unwind: &[
        0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0,
        0x01, 0x78, 0x10, 0x01, 0x1b,             // units of 1 and -8, return address in r16
        0x0c, 0x07, 0x08, 0x90, 0x01, 0, 0,       // CFA is rsp + 8, r16 at CFA - 8
        0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0, 0, 0, 0, 0x1b, 0, 0, 0, 0,
        0x41, 0x0e, 0x10,                         // at 0x01: CFA is rsp + 16
        0x59, 0x0e, 0x08, 0,                      // at 0x1a: CFA is rsp + 8
        0x14, 0, 0, 0, 0x34, 0, 0, 0, 0, 0, 0, 0, 0x0f, 0, 0, 0, 0,
        0x41, 0x0e, 0x10,
        0x4d, 0x0e, 0x08, 0,
    ],
    unwind_fixups: &[(0x20, 0), (0x38, 0x20)],
};

static AARCH64: Code = Code {
    openmp: &OPENMP_AARCH64,
    cuda: &fat_binary_aarch64::CUDA,
    hip: &fat_binary_aarch64::HIP,
    empty_function: &[0xc0, 0x03, 0x5f, 0xd6],
    absolute: elf::R_AARCH64_ABS64,
    unwind_type: elf::SHT_PROGBITS,
    unwind_relocation: elf::R_AARCH64_PREL32,
};

#[rustfmt::skip]
static OPENMP_AARCH64: StartupCode = StartupCode {
    bytes: &[
        0xfd, 0x7b, 0xbf, 0xa9,                   // 00  stp x29, x30, [sp, #-16]!
        0xfd, 0x03, 0x00, 0x91,                   // 04  mov x29, sp
        0x00, 0x00, 0x00, 0x90,                   // 08  adrp x0, descriptor
        0x00, 0x00, 0x00, 0x91,                   // 0c  add x0, x0, :lo12:descriptor
        0x00, 0x00, 0x00, 0x94,                   // 10  bl __tgt_register_lib
        0x00, 0x00, 0x00, 0x90,                   // 14  adrp x0, unregister
        0x00, 0x00, 0x00, 0x91,                   // 18  add x0, x0, :lo12:unregister
        0x00, 0x00, 0x00, 0x94,                   // 1c  bl atexit
        0xfd, 0x7b, 0xc1, 0xa8,                   // 20  ldp x29, x30, [sp], #16
        0xc0, 0x03, 0x5f, 0xd6,                   // 24  ret
        0xfd, 0x7b, 0xbf, 0xa9,                   // 28  stp x29, x30, [sp, #-16]!
        0x00, 0x00, 0x00, 0x90,                   // 2c  adrp x0, descriptor
        0x00, 0x00, 0x00, 0x91,                   // 30  add x0, x0, :lo12:descriptor
        0x00, 0x00, 0x00, 0x94,                   // 34  bl __tgt_unregister_lib
        0xfd, 0x7b, 0xc1, 0xa8,                   // 38  ldp x29, x30, [sp], #16
        0xc0, 0x03, 0x5f, 0xd6,                   // 3c  ret
    ],
    functions: &[
        function(".omp_offloading.descriptor_reg", 0x00, 0x28),
        function(".omp_offloading.descriptor_unreg", 0x28, 0x18),
    ],
    fixups: &[
        elf_fixup(0x08, elf::R_AARCH64_ADR_PREL_PG_HI21, Operand::Descriptor, 0),
        elf_fixup(0x0c, elf::R_AARCH64_ADD_ABS_LO12_NC, Operand::Descriptor, 0),
        elf_fixup(0x10, elf::R_AARCH64_CALL26, Operand::Runtime("__tgt_register_lib"), 0),
        elf_fixup(0x14, elf::R_AARCH64_ADR_PREL_PG_HI21, Operand::Startup, 0x28),
        elf_fixup(0x18, elf::R_AARCH64_ADD_ABS_LO12_NC, Operand::Startup, 0x28),
        elf_fixup(0x1c, elf::R_AARCH64_CALL26, Operand::Runtime("atexit"), 0),
        elf_fixup(0x2c, elf::R_AARCH64_ADR_PREL_PG_HI21, Operand::Descriptor, 0),
        elf_fixup(0x30, elf::R_AARCH64_ADD_ABS_LO12_NC, Operand::Descriptor, 0),
        elf_fixup(0x34, elf::R_AARCH64_CALL26, Operand::Runtime("__tgt_unregister_lib"), 0),
    ],
    unwind: &[
        0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0,
        0x04, 0x78, 0x1e, 0x01, 0x1b,             // units of 4 and -8, return address in x30
        0x0c, 0x1f, 0x00, 0, 0, 0, 0,             // CFA is sp
        0x1c, 0, 0, 0, 0x1c, 0, 0, 0, 0, 0, 0, 0, 0x28, 0, 0, 0, 0,
        0x41, 0x0e, 0x10, 0x9d, 0x02, 0x9e, 0x01, // at 0x04: CFA is sp + 16, x29 and x30 saved
        0x48, 0xdd, 0xde, 0x0e, 0x00, 0, 0, 0,    // at 0x24: as at the start
        0x1c, 0, 0, 0, 0x3c, 0, 0, 0, 0, 0, 0, 0, 0x18, 0, 0, 0, 0,
        0x41, 0x0e, 0x10, 0x9d, 0x02, 0x9e, 0x01,
        0x44, 0xdd, 0xde, 0x0e, 0x00, 0, 0, 0,
    ],
    unwind_fixups: &[(0x20, 0), (0x40, 0x28)],
};
