#include <offload/gpu.h>

extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    y[i] += a * x[i];
}

/* What Rust calls as any C function: 0, or the runtime's error. */
extern "C" int saxpy_launch(float a, const float *x, float *y, unsigned count) {
  saxpy<<<(count + 255) / 256, 256>>>(a, x, y, count);
  return hipGetLastError();
}
