/* Makes writes at an offset take a second, so that tests can interrupt them: loaded by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

ssize_t pwrite64(int file, const void *from, size_t size, off64_t at) {
  static __typeof__(pwrite64) *real;
  if (!real)
    real = dlsym(RTLD_NEXT, "pwrite64");
  /* A signal ends one of them. */
  for (int i = 0; i < 100; i++)
    usleep(10000);
  return real(file, from, size, at);
}
