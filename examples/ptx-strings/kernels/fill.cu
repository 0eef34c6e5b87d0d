#include <offload/gpu.h>

template <typename T> __device__ void fill(T value, T *x, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    x[i] = value;
}

extern "C" __global__ void fill_f32(float value, float *x, unsigned count) { fill(value, x, count); }
extern "C" __global__ void fill_f64(double value, double *x, unsigned count) { fill(value, x, count); }
