//! Stand-ins for the runtimes of HIP, CUDA and SYCL, which print what they are told, and what programs
//! declare of HIP's.

#![allow(dead_code, unreachable_pub)] // each test takes what it needs

/// The image is said by its first bytes, as its address differs.
pub const RUNTIME: &str = r#"
#include <stddef.h>
#include <stdio.h>
#define NAME2(prefix, name) __##prefix##name
#define NAME1(prefix, name) NAME2(prefix, name)
#define NAME(name) NAME1(PREFIX, name)
struct wrapper { unsigned magic, version; const unsigned char *image; void *unused; };
static struct { const void *address; const char *name; } known[99];
static int kernels, count, handles[99];
void **NAME(RegisterFatBinary)(struct wrapper *w) {
  printf("FatBinary %x %u %02x%02x%02x%02x\n", w->magic, w->version, w->image[0], w->image[1], w->image[2], w->image[3]);
  return (void **)&handles[count++];
}
void NAME(RegisterFatBinaryEnd)(void *h) { puts("End"); }
void NAME(UnregisterFatBinary)(void *h) { puts("Unregister"); fflush(stdout); }
int NAME(RegisterFunction)(void *h, const void *a, char *b, char *c, int limit, void *t, void *u, void *v, void *w, int *x) {
  printf("Function %s %s %d\n", b, c, limit);
  known[kernels].address = a; known[kernels++].name = b; return 0;
}
void NAME(RegisterVar)(void *h, void *a, char *b, char *c, int external, size_t size, int constant, int global) {
  printf("Var %s %s extern %d size %zu constant %d global %d\n", b, c, external, size, constant, global);
}
void NAME(RegisterManagedVar)(void *h, void *p, void *a, char *b, size_t size, unsigned align) {
  printf("ManagedVar %s size %zu align %u\n", b, size, align);
}
void NAME(RegisterSurface)(void *h, void *a, char *b, char *c, int type, int external) { puts("Surface"); }
void NAME(RegisterTexture)(void *h, void *a, char *b, char *c, int type, int normalized, int external) { puts("Texture"); }
static int launch(const void *a) {
  const char *name = "what nobody registered";
  for (int i = 0; i < kernels; i++) if (known[i].address == a) name = known[i].name;
  printf("launch %s\n", name); return 0;
}
int NAME(PushCallConfiguration)() { return 0; }
int NAME(PopCallConfiguration)() { return 0; }
int hipLaunchKernel(const void *a) { return launch(a); }
int cudaLaunchKernel(const void *a) { return launch(a); }
"#;

/// For HIP, whose headers are not needed.
pub const HIP: &str = r#"
typedef __SIZE_TYPE__ size_t;
struct dim3 { unsigned x, y, z; constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {} };
extern "C" {
int __hipPushCallConfiguration(dim3, dim3, size_t = 0, void * = 0);
int __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);
int hipLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int puts(const char *);
}
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))
#define MANAGED __attribute__((managed)) int managed = 5;
"#;

/// Says what it is given, and the sum of an image's bytes.
pub const SYCL_RUNTIME: &str = r#"
#include <stdint.h>
#include <stdio.h>
struct entry { uint64_t reserved; uint16_t version, kind; uint32_t flags; void *address; const char *name; uint64_t size, data; void *aux; };
struct image { uint16_t version; uint8_t kind, format; const char *triple, *compile, *link; const unsigned char *start, *end; const struct entry *first, *last; const void *p, *q; };
struct descriptor { uint16_t version, count; const struct image *images; const void *p, *q; };
void __sycl_register_lib(const struct descriptor *d) {
  printf("register %u %u\n", d->version, d->count);
  for (const struct image *m = d->images; m != d->images + d->count; m++) {
    unsigned sum = 0;
    for (const unsigned char *p = m->start; p != m->end; p++) sum = sum * 31 + *p;
    printf("image %u %u %u [%s] [%s] [%s] %zu bytes %08x\n", m->version, m->kind, m->format, m->triple, m->compile, m->link, (size_t)(m->end - m->start), sum);
    for (const struct entry *e = m->first; e != m->last; e++) printf("entry %u %u %s\n", e->version, e->kind, e->name);
  }
}
void __sycl_unregister_lib(const struct descriptor *d) { printf("unregister %u\n", d->count); fflush(stdout); }
"#;
