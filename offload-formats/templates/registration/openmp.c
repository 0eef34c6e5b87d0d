/* Registers images with libomptarget when the program starts. */
#if defined(__APPLE__)
#define IMAGES ".section __DATA,__offload_imgs\n"
#else
#define IMAGES DATA(".offloading.images")
#endif
@DEFINITIONS@
struct image {
  const char *start, *end, *first, *last;
};
struct descriptor {
  __INT32_TYPE__ count;
  const struct image *images;
  const char *first, *last;
};

void __tgt_register_lib(const struct descriptor *);
void __tgt_unregister_lib(const struct descriptor *);

static const void *const keep __attribute__((used)) = &keep_0;
static const struct image images[] = {
@IMAGES@  {0, 0, 0, 0},
};
static const struct descriptor descriptor = {
  sizeof images / sizeof *images - 1, images,
@ENDS@,
};

/* Not a destructor: it would run after the runtime's own. */
static void drop(void) { __tgt_unregister_lib(&descriptor); }

__attribute__((constructor(101))) static void enroll(void) {
  __asm__ volatile("" : : "r"(&keep));
  __tgt_register_lib(&descriptor);
  atexit(drop);
}
