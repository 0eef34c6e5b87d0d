#include "kernels.h"

template <typename T, int SIZE> __global__ void transform(const T *in, T *out, T factor) {
  T values[SIZE];
#pragma unroll
  for (int i = 0; i < SIZE; i++)
    values[i] = in[(blockIdx.x * SIZE + i) * blockDim.x + threadIdx.x];
#pragma unroll
  for (int step = 1; step < SIZE; step *= 2)
#pragma unroll
    for (int i = 0; i < SIZE; i++) {
      T one = values[i], two = values[i ^ step];
      values[i] = one + factor * two;
      values[i ^ step] = one - factor * two;
    }
#pragma unroll
  for (int i = 0; i < SIZE; i++)
    out[(blockIdx.x * SIZE + i) * blockDim.x + threadIdx.x] = values[i];
}

#define SIZES(T)                                                                \
  template __global__ void transform<T, 16>(const T *, T *, T);                \
  template __global__ void transform<T, 32>(const T *, T *, T);                \
  template __global__ void transform<T, 64>(const T *, T *, T);                \
  template __global__ void transform<T, 128>(const T *, T *, T);
SIZES(float)
SIZES(double)
SIZES(int)

extern "C" void amd_transform(const float *in, float *out) {
  transform<float, 64><<<64, 64>>>(in, out, 2.0f);
}
