// The SYCL registration for x86_64 ELF hosts; sycl_x86_64.rs is what clang makes of it, and
// tests/link-registration/registration_machine.rs compares the two. The object has .sycl_offloading.descriptor, too.

        .section .text.startup,"ax",@progbits

        .p2align 4
        .type   sycl.descriptor_reg,@function
sycl.descriptor_reg:
        .cfi_startproc
        pushq   %rax
        .cfi_def_cfa_offset 16
        leaq    .sycl_offloading.descriptor(%rip), %rdi
        callq   __sycl_register_lib@PLT
        popq    %rax
        .cfi_def_cfa_offset 8
        retq
        .cfi_endproc
        .size   sycl.descriptor_reg, .-sycl.descriptor_reg

        .p2align 4
        .type   sycl.descriptor_unreg,@function
sycl.descriptor_unreg:
        .cfi_startproc
        pushq   %rax
        .cfi_def_cfa_offset 16
        leaq    .sycl_offloading.descriptor(%rip), %rdi
        callq   __sycl_unregister_lib@PLT
        popq    %rax
        .cfi_def_cfa_offset 8
        retq
        .cfi_endproc
        .size   sycl.descriptor_unreg, .-sycl.descriptor_unreg

        .section .init_array.1,"aw",@init_array
        .p2align 3
        .quad   sycl.descriptor_reg

        .section .fini_array.1,"aw",@fini_array
        .p2align 3
        .quad   sycl.descriptor_unreg

        .section .note.GNU-stack,"",@progbits
