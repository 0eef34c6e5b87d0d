#include <offload/gpu.h>

extern "C" __global__ void saxpy_kernel(float a, const float *x, float *y, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    y[i] += a * x[i];
}

/* CUDA's runtime. <cuda_runtime.h> declares these, too; this example compiles without the toolkit. */
extern "C" int cudaMallocManaged(void **memory, decltype(sizeof(0)) size, unsigned flags = 1);
extern "C" int cudaFree(void *memory);
extern "C" int cudaDeviceSynchronize();

/* y = a * x + y on a GPU. Rust calls this as any C function. Returns 0 or the runtime's error. */
extern "C" int saxpy(float a, const float *x, float *y, unsigned count) {
  float *memory = nullptr;
  if (int error = cudaMallocManaged((void **)&memory, 2 * count * sizeof(float)))
    return error;
  for (unsigned i = 0; i < count; i++) {
    memory[i] = x[i];
    memory[count + i] = y[i];
  }
  saxpy_kernel<<<(count + 255) / 256, 256>>>(a, memory, memory + count, count);
  int error = cudaGetLastError();
  if (!error)
    error = cudaDeviceSynchronize();
  for (unsigned i = 0; !error && i < count; i++)
    y[i] = memory[count + i];
  cudaFree(memory);
  return error;
}
