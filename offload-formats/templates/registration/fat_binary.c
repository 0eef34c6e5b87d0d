/* Registers a fat binary with the runtime of CUDA or HIP when the program starts. */
#if defined(HIP)
#define RUNTIME(name) __hip##name
#define MAGIC 0x48495046
#if defined(__APPLE__)
#define FAT_BINARY ".section __HIP,__hip_fatbin\n"
#define WRAPPER "__HIP,__fatbin"
#else
#define FAT_BINARY DATA(".hip_fatbin")
#define WRAPPER ".hipFatBinSegment"
#endif
#else
#define RUNTIME(name) __cuda##name
#define MAGIC 0x466243b1
#if defined(__APPLE__)
#define FAT_BINARY ".section __NV_CUDA,__nv_fatbin\n"
#define WRAPPER "__NV_CUDA,__fatbin"
#else
#define FAT_BINARY DATA(".nv_fatbin")
#define WRAPPER ".nvFatBinSegment"
#endif
#endif
@DEFINITIONS@
void **RUNTIME(RegisterFatBinary)(const void *);
void RUNTIME(UnregisterFatBinary)(void **);
int RUNTIME(RegisterFunction)(void **, void *, char *, char *, int, void *, void *, void *, void *, int *);
void RUNTIME(RegisterVar)(void **, void *, char *, char *, int, __SIZE_TYPE__, int, int);
void RUNTIME(RegisterManagedVar)(void **, void *, void *, char *, __SIZE_TYPE__, unsigned);
#if defined(HIP)
void RUNTIME(RegisterSurface)(void **, void *, char *, char *, int, int);
void RUNTIME(RegisterTexture)(void **, void *, char *, char *, int, int, int);
#else
void RUNTIME(RegisterFatBinaryEnd)(void **);
#endif

static const struct {
  __UINT32_TYPE__ magic, version;
  const void *image, *unused;
} wrapper __attribute__((section(WRAPPER), used)) = {MAGIC, 1, image_0, 0};

/* Entries of a kind that is neither of the two are not ours; up to LLVM 19 they have none. */
static const struct table {
  const char *first, *last;
  const void *keep;
  unsigned size;
  __UINT16_TYPE__ kinds[2];
} tables[] = {
@TABLES@  {0, 0, 0, 0, {0, 0}},
};

static void **handle;

static void add(const struct entry *e, const struct table *t) {
  int external = e->flags >> 3 & 1, constant = e->flags >> 4 & 1, normalized = e->flags >> 5 & 1;
  (void)normalized;
  if (!e->address && !e->name) /* where a table of COFF starts or ends */
    return;
  if (!e->size) {
    RUNTIME(RegisterFunction)(handle, e->address, e->name, e->name, -1, 0, 0, 0, 0, 0);
    return;
  }
  switch (e->flags & 7) {
  case 0:
    RUNTIME(RegisterVar)(handle, e->address, e->name, e->name, external, e->size, constant, 0);
    break;
  case 1:
    if (t->kinds[0])
      RUNTIME(RegisterManagedVar)(handle, e->auxiliary, e->address, e->name, e->size, (unsigned)e->data);
    break;
#if defined(HIP)
  case 2:
    RUNTIME(RegisterSurface)(handle, e->address, e->name, e->name, (int)e->data, external);
    break;
  case 3:
    RUNTIME(RegisterTexture)(handle, e->address, e->name, e->name, (int)e->data, normalized, external);
    break;
#endif
  }
}

/* Not a destructor: it would run after the runtime's own. */
static void drop(void) { RUNTIME(UnregisterFatBinary)(handle); }

__attribute__((constructor(101))) static void enroll(void) {
  handle = RUNTIME(RegisterFatBinary)(&wrapper);
  for (const struct table *t = tables; t->size; t++)
    /* On hosts of 32 bits, padding is missing behind the last entry. */
    for (const char *at = t->first; (__SIZE_TYPE__)(t->last - at + 7) >= t->size && at < t->last; at += t->size) {
      if (!t->kinds[0]) {
        const struct entry_19 *old = (const struct entry_19 *)at;
        struct entry e = {0, 0, 0, (__UINT32_TYPE__)old->flags, old->address, old->name, old->size,
                          (__UINT64_TYPE__)old->data, 0};
        add(&e, t);
      } else {
        const struct entry *e = (const struct entry *)at;
        if (e->kind == t->kinds[0] || e->kind == t->kinds[1])
          add(e, t);
      }
    }
#if !defined(HIP)
  RUNTIME(RegisterFatBinaryEnd)(handle);
#endif
  atexit(drop);
}
