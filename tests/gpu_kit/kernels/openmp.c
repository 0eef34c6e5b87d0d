/* The main program for examples/openmp-saxpy/kernels/saxpy.c, linked by clang's linker wrapper or by offload-link. */
#include <stddef.h>
#include <stdio.h>

int saxpy(float a, const float *x, float *y, size_t count);

int main(void) {
  enum { count = 100000 };
  static float x[count], y[count];
  for (size_t i = 0; i < count; i++) {
    x[i] = i;
    y[i] = 1;
  }
  if (!saxpy(2, x, y, count)) {
    printf("ran on the host\n");
    return 1;
  }
  for (size_t i = 0; i < count; i++)
    if (y[i] != 1 + 2.0f * i) {
      printf("wrong result\n");
      return 1;
    }
  return 0;
}
