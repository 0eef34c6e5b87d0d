#include <stddef.h>

void scale_on_device(double *x, size_t count) {
#pragma omp target teams distribute parallel for map(tofrom : x[:count])
  for (size_t i = 0; i < count; i++)
    x[i] *= FACTOR;
}
