/* The second source of the program of launches.cu. */
#include "launches.h"

#ifdef RDC
__device__ float factor = 3;
__device__ float times_factor(float x) { return x * factor; }
#endif

namespace {
__device__ int hidden = 1000;

__global__ void same_name(int *y) { y[threadIdx.x] = hidden + threadIdx.x; }
} // namespace

static __global__ void negates(int *y) { y[threadIdx.x] = -y[threadIdx.x]; }

extern "C" int SECOND(void) {
  Memory<int> y(32);
  same_name<<<1, 32>>>(y.device);
  negates<<<1, 32>>>(y.device);
  CHECK(y.read());
  EXPECT(y.host[3] == -1003);
  return 0;
}
