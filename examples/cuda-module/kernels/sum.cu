#include <offload/gpu.h>

template <typename T> __global__ void sum(const T *x, T *total, unsigned count) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    atomicAdd(total, x[i]);
}

template __global__ void sum(const float *, float *, unsigned);
template __global__ void sum(const int *, int *, unsigned);
