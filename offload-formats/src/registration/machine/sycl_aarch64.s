// The SYCL registration for aarch64 ELF hosts; sycl_aarch64.rs is what clang makes of it, and
// tests/link-registration/registration_machine.rs compares the two. The object has .sycl_offloading.descriptor, too.

        .section .text.startup,"ax",@progbits

        .p2align 4
        .type   sycl.descriptor_reg,@function
sycl.descriptor_reg:
        .cfi_startproc
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        adrp    x0, .sycl_offloading.descriptor
        add     x0, x0, :lo12:.sycl_offloading.descriptor
        bl      __sycl_register_lib
        ldp     x29, x30, [sp], #16
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   sycl.descriptor_reg, .-sycl.descriptor_reg

        .type   sycl.descriptor_unreg,@function
sycl.descriptor_unreg:
        .cfi_startproc
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        adrp    x0, .sycl_offloading.descriptor
        add     x0, x0, :lo12:.sycl_offloading.descriptor
        bl      __sycl_unregister_lib
        ldp     x29, x30, [sp], #16
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   sycl.descriptor_unreg, .-sycl.descriptor_unreg

        .section .init_array.1,"aw",@init_array
        .p2align 3
        .xword  sycl.descriptor_reg

        .section .fini_array.1,"aw",@fini_array
        .p2align 3
        .xword  sycl.descriptor_unreg

        .section .note.GNU-stack,"",@progbits
