#include <offload/gpu.h>
#include "index.h"

/* A function of the device, called by kernels in another file: the device link joins them. */
__device__ unsigned thread_index() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
