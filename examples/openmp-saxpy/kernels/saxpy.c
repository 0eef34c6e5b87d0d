#include "kernels.h"

#include <omp.h>

/* y = a * x + y, on the device. Returns whether it ran there. */
int saxpy(float a, const float *x, float *y, size_t count) {
  int on_device = 0;
#pragma omp target teams distribute parallel for map(to : x[:count]) map(tofrom : y[:count])
  for (size_t i = 0; i < count; i++)
    y[i] += a * x[i];
#pragma omp target map(from : on_device)
  on_device = !omp_is_initial_device();
  return on_device;
}
