/* A kernel and the host code that launches it. With -DMAIN a program of its own; LAUNCH names the host function. */
#include <cuda_runtime.h>
#include <stdio.h>

__global__ void saxpy(float a, const float *x, float *y, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    y[i] += a * x[i];
}

static const unsigned count = 100000;
static float x[count], y[count];

static cudaError_t run(void) {
  float *device_x, *device_y;
  cudaError_t status;
#define CHECK(call)                                                                                                    \
  if ((status = (call)) != cudaSuccess)                                                                                \
  return status
  CHECK(cudaMalloc(&device_x, sizeof x));
  CHECK(cudaMalloc(&device_y, sizeof y));
  CHECK(cudaMemcpy(device_x, x, sizeof x, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_y, y, sizeof y, cudaMemcpyHostToDevice));
  saxpy<<<(count + 255) / 256, 256>>>(2, device_x, device_y, count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost));
  return cudaSuccess;
}

/* Runs the kernel and compares its results with the CPU's. Returns a status for the process. */
extern "C" int LAUNCH(void) {
  for (unsigned i = 0; i < count; i++) {
    x[i] = i;
    y[i] = 1;
  }
  cudaError_t status = run();
  if (status != cudaSuccess) {
    printf("%s (%d)\n", cudaGetErrorName(status), status);
    return 1;
  }
  for (unsigned i = 0; i < count; i++)
    if (y[i] != 1 + 2.0f * i) {
      printf("wrong result\n");
      return 1;
    }
  return 0;
}

#ifdef MAIN
int main(void) { return LAUNCH(); }
#endif
