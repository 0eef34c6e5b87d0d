/* Offload entries, as LLVM's compilers write them: up to LLVM 19, and from LLVM 20. */
struct entry_19 {
  void *address;
  char *name;
  __SIZE_TYPE__ size;
  __INT32_TYPE__ flags, data;
};
struct __attribute__((aligned(8))) entry {
  __UINT64_TYPE__ reserved;
  __UINT16_TYPE__ version, kind;
  __UINT32_TYPE__ flags;
  void *address;
  char *name;
  __UINT64_TYPE__ size, data;
  void *auxiliary;
};

/* A name that the assembler sees as it is written here. */
#define LABEL(name) __asm__(name) __attribute__((visibility("hidden")))

/* ENTRIES(i, section, type): the table of a section, first_i to last_i. keep_i is in that section,
   which what is registered refers to: linkers that collect garbage leave the section alone.
   Of a table at a symbol, keep_i is its first byte.
   RANGE(i, section, flags, alignment, size): the first bytes of a section that a relocatable link
   makes of this object and those after it. */
#if defined(_WIN32)
#define ENTRIES(i, name, type)                                                            \
  static const struct type keep_##i __attribute__((section(name "$OA"), used)) = {0};     \
  static const struct type last_##i[1] __attribute__((section(name "$OZ"), used)) = {{0}};
#define FIRST(i) (const char *)(&keep_##i + 1)
#define DATA(section) ".section " section ",\"dr\"\n"
#elif defined(__APPLE__)
#define ENTRIES(i, name, type)                                                            \
  extern const char first_##i[] LABEL("section$start$__LLVM$offload_entries");            \
  extern const char last_##i[] LABEL("section$end$__LLVM$offload_entries");               \
  static const char keep_##i = 0;
#define FIRST(i) first_##i
#else
#define ENTRIES(i, name, type)                                                            \
  __asm__(".section " name ",\"a\"\n.balign 8\noffload_entries_" #i ":\n.text");          \
  extern const char keep_##i LABEL("offload_entries_" #i);                                \
  extern const char first_##i[] LABEL("__start_" name);                                   \
  extern const char last_##i[] LABEL("__stop_" name);
#define RANGE(i, name, flags, alignment, size)                                            \
  __asm__(".section " name ",\"" flags "\"\n.balign " #alignment "\n"                     \
          "offload_entries_" #i ":\n.set offload_entries_end_" #i ", offload_entries_" #i \
          " + " #size "\n.text");                                                         \
  extern const char keep_##i LABEL("offload_entries_" #i);                                \
  extern const char first_##i[] LABEL("offload_entries_" #i);                             \
  extern const char last_##i[] LABEL("offload_entries_end_" #i);
#define FIRST(i) first_##i
#define DATA(section) ".section " section ",\"a\"\n"
#endif
#define LAST(i) (const char *)last_##i

/* IMAGE(i, section, alignment, file): the bytes of a file, image_i to image_end_i. */
#define IMAGE(i, section, alignment, file)                                                \
  __asm__(section ".balign " #alignment "\noffload_image_" #i ":\n.incbin \"" file "\"\n" \
          "offload_image_end_" #i ":\n.balign " #alignment "\n.text");                    \
  extern const char image_##i[] LABEL("offload_image_" #i);                               \
  extern const char image_end_##i[] LABEL("offload_image_end_" #i);

int atexit(void (*)(void));
