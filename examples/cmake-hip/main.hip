#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

__device__ float scaled(float factor, float x);

__global__ void saxpy(float a, const float *x, float *y, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    y[i] += scaled(a, x[i]);
}

static void check(hipError_t status) {
  if (status != hipSuccess) {
    std::printf("HIP: %s\n", hipGetErrorString(status));
    std::exit(1);
  }
}

int main() {
  int devices = 0;
  hipError_t status = hipGetDeviceCount(&devices);
  if (status != hipSuccess || devices == 0) {
    std::printf("no GPU: %s\n", hipGetErrorString(status));
    return 0;
  }
  const unsigned count = 1000;
  float *memory = nullptr;
  check(hipMallocManaged(&memory, 2 * count * sizeof(float)));
  float *x = memory, *y = memory + count;
  for (unsigned i = 0; i < count; i++) {
    x[i] = i;
    y[i] = 1;
  }
  saxpy<<<(count + 255) / 256, 256>>>(2, x, y, count);
  check(hipGetLastError());
  check(hipDeviceSynchronize());
  bool right = true;
  for (unsigned i = 0; i < count; i++)
    right = right && y[i] == 1 + 2.0f * i;
  std::printf("%s\n", right ? "all results right" : "wrong results");
  check(hipFree(memory));
  return !right;
}
