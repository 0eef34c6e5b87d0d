// The registrations for x86_64 hosts of Windows; windows_x86_64.rs is what clang makes of it
// (-x assembler-with-cpp, -DOPENMP, -DHIP or -DCUDA), and tests/link-registration/registration_machine.rs compares
// the two. With -DELF it is assembled for a program of Linux, where a test runs it.
//
// Arguments are in rcx, rdx, r8, r9, then in the stack from 32 on; rsi and rdi belong to the caller.
// The object has more; for the tables of entries see fat_binary_x86_64.s.

#if defined(ELF)
        .section .text.startup,"ax",@progbits
#define FUNCTION(name) .type name,@function; name:
#define PUSHED(r)
#define RESERVED(size)
#define PROLOGUE_END
#define END(name) .size name, .-name
#else
        .section .text.startup,"xr"
#define FUNCTION(name) .def name; .scl 3; .type 32; .endef; .seh_proc name; name:
#define PUSHED(r) .seh_pushreg r
#define RESERVED(size) .seh_stackalloc size
#define PROLOGUE_END .seh_endprologue
#define END(name) .seh_endproc
#endif

#if defined(OPENMP)

        .p2align 4
FUNCTION(.omp_offloading.descriptor_reg)
        subq    $40, %rsp
        RESERVED(40)
        PROLOGUE_END
        leaq    .omp_offloading.descriptor(%rip), %rcx
        callq   __tgt_register_lib
        leaq    .omp_offloading.descriptor_unreg(%rip), %rcx
        callq   atexit
        nop
        addq    $40, %rsp
        retq
        END(.omp_offloading.descriptor_reg)

        .p2align 4
FUNCTION(.omp_offloading.descriptor_unreg)
        subq    $40, %rsp
        RESERVED(40)
        PROLOGUE_END
        leaq    .omp_offloading.descriptor(%rip), %rcx
        callq   __tgt_unregister_lib
        nop
        addq    $40, %rsp
        retq
        END(.omp_offloading.descriptor_unreg)

#else

#if defined(HIP)
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

// The constructor.
        .p2align 4
FUNCTION(REG)
        pushq   %rbx
        PUSHED(%rbx)
        subq    $32, %rsp
        RESERVED(32)
        PROLOGUE_END
        leaq    .fatbin_wrapper(%rip), %rcx
        callq   RUNTIME(RegisterFatBinary)
        movq    %rax, HANDLE(%rip)
        leaq    TABLES(%rip), %rbx
1:      cmpl    $0, 16(%rbx)
        je      2f
        movq    %rbx, %rcx
        callq   GLOBALS
        addq    $24, %rbx
        jmp     1b
2:
#if defined(CUDA)
        movq    HANDLE(%rip), %rcx
        callq   RUNTIME(RegisterFatBinaryEnd)
#endif
        // Not a destructor: it would run after the runtime's own.
        leaq    UNREG(%rip), %rcx
        callq   atexit
        nop
        addq    $32, %rsp
        popq    %rbx
        retq
        END(REG)

        .p2align 4
FUNCTION(UNREG)
        subq    $40, %rsp
        RESERVED(40)
        PROLOGUE_END
        movq    HANDLE(%rip), %rcx
        callq   RUNTIME(UnregisterFatBinary)
        nop
        addq    $40, %rsp
        retq
        END(UNREG)

// Registers the entries of one table, which rcx points at.
        .p2align 4
FUNCTION(GLOBALS)
        pushq   %rbp
        PUSHED(%rbp)
        pushq   %rbx
        PUSHED(%rbx)
        pushq   %rsi
        PUSHED(%rsi)
        subq    $80, %rsp                       // ten arguments
        RESERVED(80)
        PROLOGUE_END
        movq    %rcx, %rbp                      // rbp: the table
        movq    (%rbp), %rbx                    // rbx: the entry
        movq    HANDLE(%rip), %rsi
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
        movq    16(%rbx), %rdx                  // address
        movq    24(%rbx), %r8                   // name
        movq    32(%rbx), %r10                  // size
        movl    40(%rbx), %r11d                 // data
        jmp     .Lread
.Lold:
        movq    (%rbx), %rdx
        movq    8(%rbx), %r8
        movq    16(%rbx), %r10
        movl    24(%rbx), %eax
        movl    28(%rbx), %r11d
.Lread:
        movq    %rdx, %rcx                      // all zero: where the table starts or ends
        orq     %r8, %rcx
        je      .Lnext
        movq    %r8, %r9                        // the name on the device, too
        movl    %eax, %ecx                      // what it is
        testq   %r10, %r10
        je      .Lfunction
        andl    $7, %ecx
        je      .Lvariable
        cmpl    $1, %ecx
        je      .Lmanaged
#if defined(HIP)
        cmpl    $2, %ecx
        je      .Lsurface
        cmpl    $3, %ecx
        je      .Ltexture
#endif
.Lnext:
        movl    16(%rbp), %eax
        addq    %rax, %rbx
        jmp     .Lentry
.Lend:
        addq    $80, %rsp
        popq    %rsi
        popq    %rbx
        popq    %rbp
        retq

// (handle, address, name, name, -1, 0, 0, 0, 0, 0)
.Lfunction:
        movq    %rsi, %rcx
        movl    $-1, 32(%rsp)
        movq    %r10, 40(%rsp)                  // r10 is 0
        movq    %r10, 48(%rsp)
        movq    %r10, 56(%rsp)
        movq    %r10, 64(%rsp)
        movq    %r10, 72(%rsp)
        callq   RUNTIME(RegisterFunction)
        jmp     .Lnext

// (handle, address, name, name, extern, size, constant, 0)
.Lvariable:
        movq    %rsi, %rcx
        movq    %r10, 40(%rsp)
        shrl    $3, %eax
        movl    %eax, %r10d
        andl    $1, %r10d
        movl    %r10d, 32(%rsp)
        shrl    %eax
        andl    $1, %eax
        movl    %eax, 48(%rsp)
        movl    $0, 56(%rsp)
        callq   RUNTIME(RegisterVar)
        jmp     .Lnext

// (handle, address of the pointer, address, name, size, alignment)
.Lmanaged:
        cmpl    $32, 16(%rbp)
        je      .Lnext
        movq    %rsi, %rcx
        movq    %rdx, %r8
        movq    48(%rbx), %rdx
        movq    %r10, 32(%rsp)
        movl    %r11d, 40(%rsp)
        callq   RUNTIME(RegisterManagedVar)
        jmp     .Lnext

#if defined(HIP)
// (handle, address, name, name, type, extern)
.Lsurface:
        movq    %rsi, %rcx
        movl    %r11d, 32(%rsp)
        shrl    $3, %eax
        andl    $1, %eax
        movl    %eax, 40(%rsp)
        callq   RUNTIME(RegisterSurface)
        jmp     .Lnext

// (handle, address, name, name, type, normalized, extern)
.Ltexture:
        movq    %rsi, %rcx
        movl    %r11d, 32(%rsp)
        shrl    $3, %eax
        movl    %eax, %r10d
        andl    $1, %r10d
        movl    %r10d, 48(%rsp)
        shrl    $2, %eax
        andl    $1, %eax
        movl    %eax, 40(%rsp)
        callq   RUNTIME(RegisterTexture)
        jmp     .Lnext
#endif
        END(GLOBALS)
#endif
