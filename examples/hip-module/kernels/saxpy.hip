#include <offload/gpu.h>
#include "index.h"

extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned count) {
  unsigned i = thread_index();
  if (i < count)
    y[i] += a * x[i];
}
