/* What hip_runtime.h would define. */
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

extern "C" {
int __hipPushCallConfiguration(dim3 grid, dim3 block, unsigned long shared = 0, void *stream = nullptr);
int __hipPopCallConfiguration(dim3 *grid, dim3 *block, unsigned long *shared, void *stream);
int hipLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, unsigned long shared, void *stream);
int hipGetLastError();
}
