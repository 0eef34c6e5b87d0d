// The CUDA and HIP registration for aarch64 ELF hosts; fat_binary_aarch64.rs is what clang makes of
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
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset x29, -32
        .cfi_offset x30, -24
        str     x19, [sp, #16]
        .cfi_offset x19, -16
        mov     x29, sp
        adrp    x0, .fatbin_wrapper
        add     x0, x0, :lo12:.fatbin_wrapper
        bl      RUNTIME(RegisterFatBinary)
        adrp    x8, HANDLE
        str     x0, [x8, :lo12:HANDLE]
        adrp    x19, TABLES
        add     x19, x19, :lo12:TABLES
1:      ldr     w8, [x19, #16]
        cbz     w8, 2f
        mov     x0, x19
        bl      GLOBALS
        add     x19, x19, #24
        b       1b
2:
#ifdef CUDA
        adrp    x8, HANDLE
        ldr     x0, [x8, :lo12:HANDLE]
        bl      RUNTIME(RegisterFatBinaryEnd)
#endif
        // Not a destructor: it would run after the runtime's own.
        adrp    x0, UNREG
        add     x0, x0, :lo12:UNREG
        bl      atexit
        ldr     x19, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_restore x19
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   REG, .-REG

        .type   UNREG,@function
UNREG:
        .cfi_startproc
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        adrp    x8, HANDLE
        ldr     x0, [x8, :lo12:HANDLE]
        bl      RUNTIME(UnregisterFatBinary)
        ldp     x29, x30, [sp], #16
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   UNREG, .-UNREG

// Registers the entries of one table, which x0 points at.
        .type   GLOBALS,@function
GLOBALS:
        .cfi_startproc
        sub     sp, sp, #64
        .cfi_def_cfa_offset 64
        stp     x29, x30, [sp, #16]
        .cfi_offset x29, -48
        .cfi_offset x30, -40
        stp     x19, x20, [sp, #32]
        .cfi_offset x19, -32
        .cfi_offset x20, -24
        stp     x21, x22, [sp, #48]
        .cfi_offset x21, -16
        .cfi_offset x22, -8
        add     x29, sp, #16
        ldp     x19, x20, [x0]                  // x19: the entry, x20: the end
        ldr     w21, [x0, #16]                  // x21: size of an entry
        ldr     w22, [x0, #20]                  // x22: the kinds
.Lentry:
        add     x8, x19, x21
        cmp     x8, x20                         // what is too small for an entry is padding
        b.hi    .Lend
        cmp     w21, #32
        b.eq    .Lold
        ldrh    w8, [x19, #10]                  // kind
        cmp     w8, w22, uxth
        b.eq    .Lours
        cmp     w8, w22, lsr #16
        b.ne    .Lnext
.Lours:
        ldr     w8, [x19, #12]                  // flags
        ldp     x1, x2, [x19, #16]              // address, name
        ldr     x5, [x19, #32]                  // size
        ldr     w4, [x19, #40]                  // data
        b       .Lread
.Lold:
        ldp     x1, x2, [x19]
        ldr     x5, [x19, #16]
        ldp     w8, w4, [x19, #24]
.Lread:
        orr     x9, x1, x2                      // all zero: where COFF's table starts or ends
        cbz     x9, .Lnext
        adrp    x9, HANDLE
        ldr     x0, [x9, :lo12:HANDLE]
        mov     x3, x2                          // the name on the device, too
        cbz     x5, .Lfunction
        ubfx    w10, w8, #3, #1                 // w10: extern
        ands    w11, w8, #7                     // w11: what it is
        b.eq    .Lvariable
        cmp     w11, #1
        b.eq    .Lmanaged
#ifdef HIP
        cmp     w11, #2
        b.eq    .Lsurface
        cmp     w11, #3
        b.eq    .Ltexture
#endif
.Lnext:
        add     x19, x19, x21
        b       .Lentry

// (handle, address, name, name, -1, 0, 0, 0, 0, 0)
.Lfunction:
        mov     w4, #-1
        mov     x6, xzr                         // x5 is 0
        mov     x7, xzr
        stp     xzr, xzr, [sp]
        bl      RUNTIME(RegisterFunction)
        b       .Lnext

// (handle, address, name, name, extern, size, constant, 0)
.Lvariable:
        mov     w4, w10
        ubfx    w6, w8, #4, #1
        mov     w7, wzr
        bl      RUNTIME(RegisterVar)
        b       .Lnext

// (handle, address of the pointer, address, name, size, alignment)
.Lmanaged:
        cmp     w21, #32
        b.eq    .Lnext
        mov     x2, x1
        ldr     x1, [x19, #48]
        mov     w9, w4
        mov     x4, x5
        mov     w5, w9
        bl      RUNTIME(RegisterManagedVar)
        b       .Lnext

#ifdef HIP
// (handle, address, name, name, type, extern)
.Lsurface:
        mov     w5, w10
        bl      RUNTIME(RegisterSurface)
        b       .Lnext

// (handle, address, name, name, type, normalized, extern)
.Ltexture:
        ubfx    w5, w8, #5, #1
        mov     w6, w10
        bl      RUNTIME(RegisterTexture)
        b       .Lnext
#endif
.Lend:
        ldp     x21, x22, [sp, #48]
        ldp     x19, x20, [sp, #32]
        ldp     x29, x30, [sp, #16]
        add     sp, sp, #64
        .cfi_restore x19
        .cfi_restore x20
        .cfi_restore x21
        .cfi_restore x22
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        ret
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
        .word   0x48495046
#else
        .word   0x466243b1
#endif
        .word   1
        .xword  .fatbin_image
        .xword  0
        .size   .fatbin_wrapper, 24

        .bss
        .p2align 3
        .type   HANDLE,@object
HANDLE:
        .zero   8
        .size   HANDLE, 8

        .section .init_array.101,"aw",@init_array
        .p2align 3
        .xword  REG

        .section .note.GNU-stack,"",@progbits
