// The CUDA and HIP registration for x86_64 ELF hosts; fat_binary_x86_64.rs is what clang makes of
// it (-x assembler-with-cpp, -DHIP or -DCUDA), and tests/link-registration/registration_machine.rs compares the two.
//
// The object has more: .fatbin_image, and the tables of entries, of 24 bytes each,
//      0  first entry      16  bytes from one entry to the next (4); 0 after the last table
//      8  end of entries   20  two offload kinds (2 each): entries of other kinds are left alone
// An entry of 32 bytes has no kind, and no address of a managed variable: see format/offload_entry.rs.

#ifdef HIP
#define RUNTIME(name) __hip##name
#define REG .hip.fatbin_reg
#define UNREG .hip.fatbin_unreg
#define GLOBALS .hip.globals_reg
#define HANDLE .hip.binary_handle
#define TABLES .hip.entry_tables
#else
#define RUNTIME(name) __cuda##name
#define REG .cuda.fatbin_reg
#define UNREG .cuda.fatbin_unreg
#define GLOBALS .cuda.globals_reg
#define HANDLE .cuda.binary_handle
#define TABLES .cuda.entry_tables
#endif

        .section .text.startup,"ax",@progbits

// The constructor.
        .p2align 4
        .type   REG,@function
REG:
        .cfi_startproc
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        leaq    .fatbin_wrapper(%rip), %rdi
        callq   RUNTIME(RegisterFatBinary)@PLT
        movq    %rax, HANDLE(%rip)
        leaq    TABLES(%rip), %rbx
1:      cmpl    $0, 16(%rbx)
        je      2f
        movq    %rbx, %rdi
        callq   GLOBALS
        addq    $24, %rbx
        jmp     1b
2:
#ifdef CUDA
        movq    HANDLE(%rip), %rdi
        callq   RUNTIME(RegisterFatBinaryEnd)@PLT
#endif
        // Not a destructor: it would run after the runtime's own.
        leaq    UNREG(%rip), %rdi
        callq   atexit@PLT
        popq    %rbx
        .cfi_def_cfa_offset 8
        retq
        .cfi_endproc
        .size   REG, .-REG

        .p2align 4
        .type   UNREG,@function
UNREG:
        .cfi_startproc
        pushq   %rax
        .cfi_def_cfa_offset 16
        movq    HANDLE(%rip), %rdi
        callq   RUNTIME(UnregisterFatBinary)@PLT
        popq    %rax
        .cfi_def_cfa_offset 8
        retq
        .cfi_endproc
        .size   UNREG, .-UNREG

// Registers the entries of one table, which rdi points at.
        .p2align 4
        .type   GLOBALS,@function
GLOBALS:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        pushq   %rbx
        .cfi_def_cfa_offset 24
        .cfi_offset %rbx, -24
        subq    $40, %rsp                       // four arguments, and alignment
        .cfi_def_cfa_offset 64
        movq    %rdi, %rbp                      // rbp: the table
        movq    (%rbp), %rbx                    // rbx: the entry
.Lentry:
        movl    16(%rbp), %eax
        addq    %rbx, %rax
        cmpq    %rax, 8(%rbp)                   // what is too small for an entry is padding
        jb      .Lend
        cmpl    $32, 16(%rbp)
        je      .Lold
        movzwl  10(%rbx), %eax                  // kind
        cmpw    20(%rbp), %ax
        je      .Lours
        cmpw    22(%rbp), %ax
        jne     .Lnext
.Lours:
        movl    12(%rbx), %eax                  // flags
        movq    16(%rbx), %rsi                  // address
        movq    24(%rbx), %rdx                  // name
        movq    32(%rbx), %r9                   // size
        movl    40(%rbx), %r8d                  // data
        jmp     .Lread
.Lold:
        movq    (%rbx), %rsi
        movq    8(%rbx), %rdx
        movq    16(%rbx), %r9
        movl    24(%rbx), %eax
        movl    28(%rbx), %r8d
.Lread:
        movq    %rsi, %rcx                      // all zero: where COFF's table starts or ends
        orq     %rdx, %rcx
        je      .Lnext
        movq    HANDLE(%rip), %rdi
        movq    %rdx, %rcx                      // the name on the device, too
        testq   %r9, %r9
        je      .Lfunction
        movl    %eax, %r10d                     // r10: extern
        shrl    $3, %r10d
        andl    $1, %r10d
        movl    %eax, %r11d                     // r11: what it is
        andl    $7, %r11d
        je      .Lvariable
        cmpl    $1, %r11d
        je      .Lmanaged
#ifdef HIP
        cmpl    $2, %r11d
        je      .Lsurface
        cmpl    $3, %r11d
        je      .Ltexture
#endif
.Lnext:
        movl    16(%rbp), %eax
        addq    %rax, %rbx
        jmp     .Lentry
.Lend:
        addq    $40, %rsp
        .cfi_def_cfa_offset 24
        popq    %rbx
        .cfi_def_cfa_offset 16
        popq    %rbp
        .cfi_def_cfa_offset 8
        retq
        .cfi_def_cfa_offset 64

// (handle, address, name, name, -1, 0, 0, 0, 0, 0)
.Lfunction:
        movl    $-1, %r8d
        movq    %r9, (%rsp)                     // r9 is 0
        movq    %r9, 8(%rsp)
        movq    %r9, 16(%rsp)
        movq    %r9, 24(%rsp)
        callq   RUNTIME(RegisterFunction)@PLT
        jmp     .Lnext

// (handle, address, name, name, extern, size, constant, 0)
.Lvariable:
        movl    %r10d, %r8d
        shrl    $4, %eax
        andl    $1, %eax
        movq    %rax, (%rsp)
        movq    $0, 8(%rsp)
        callq   RUNTIME(RegisterVar)@PLT
        jmp     .Lnext

// (handle, address of the pointer, address, name, size, alignment)
.Lmanaged:
        cmpl    $32, 16(%rbp)
        je      .Lnext
        movq    %rsi, %rdx
        movq    48(%rbx), %rsi
        movl    %r8d, %eax
        movq    %r9, %r8
        movl    %eax, %r9d
        callq   RUNTIME(RegisterManagedVar)@PLT
        jmp     .Lnext

#ifdef HIP
// (handle, address, name, name, type, extern)
.Lsurface:
        movl    %r10d, %r9d
        callq   RUNTIME(RegisterSurface)@PLT
        jmp     .Lnext

// (handle, address, name, name, type, normalized, extern)
.Ltexture:
        shrl    $5, %eax
        andl    $1, %eax
        movl    %eax, %r9d
        movq    %r10, (%rsp)
        callq   RUNTIME(RegisterTexture)@PLT
        jmp     .Lnext
#endif
        .cfi_endproc
        .size   GLOBALS, .-GLOBALS

// What the runtime is given: magic, version, the fat binary, nothing.
#ifdef HIP
        .section .hipFatBinSegment,"aw",@progbits
#else
        .section .nvFatBinSegment,"aw",@progbits
#endif
        .p2align 3
        .type   .fatbin_wrapper,@object
.fatbin_wrapper:
#ifdef HIP
        .long   0x48495046
#else
        .long   0x466243b1
#endif
        .long   1
        .quad   .fatbin_image
        .quad   0
        .size   .fatbin_wrapper, 24

        .bss
        .p2align 3
        .type   HANDLE,@object
HANDLE:
        .zero   8
        .size   HANDLE, 8

        .section .init_array.101,"aw",@init_array
        .p2align 3
        .quad   REG

        .section .note.GNU-stack,"",@progbits
