/* Registers images with a SYCL runtime when the program starts. */
#if defined(__APPLE__)
#define IMAGES ".section __DATA,__offload_imgs\n"
#else
#define IMAGES DATA(".offloading.images")
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
#endif
#define KERNEL(name) {0, 1, 8, 0, 0, (char *)name, 0, 0, 0},
@DEFINITIONS@
struct image {
  __UINT16_TYPE__ version;
  __UINT8_TYPE__ offload_kind, kind;
  const char *triple, *compile_options, *link_options, *start, *end;
  const struct entry *first, *last;
  const void *properties, *properties_end;
};
struct descriptor {
  __UINT16_TYPE__ version, count;
  const struct image *images;
  const void *first, *last;
};

void __sycl_register_lib(const struct descriptor *);
void __sycl_unregister_lib(const struct descriptor *);

static const struct image images[] = {
@IMAGES@  {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
};
static const struct descriptor descriptor = {1, sizeof images / sizeof *images - 1, images, 0, 0};

__attribute__((constructor(1))) static void enroll(void) { __sycl_register_lib(&descriptor); }
__attribute__((destructor(1))) static void drop(void) { __sycl_unregister_lib(&descriptor); }
