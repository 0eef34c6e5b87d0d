#include <offload/gpu.h> // indices, barriers, atomics, mathematics: no CUDA toolkit needed

extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    y[i] += a * x[i];
}
