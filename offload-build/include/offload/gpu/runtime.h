/* Functions of the device's runtime: CUDA's driver has them, HIP's are in ROCm's device libraries. */
#pragma once
#pragma clang system_header

extern "C" {
#if defined(__HIP__)
/* `operator new` of clang's own <new> names them in every source: only a call that stays in the code is an error. */
#define OFFLOAD_GPU_NO_HEAP                                                                                            \
  __device__ __attribute__((error("memory cannot be allocated in kernels for AMD GPUs without ROCm")))
OFFLOAD_GPU_NO_HEAP void *malloc(__SIZE_TYPE__ size);
OFFLOAD_GPU_NO_HEAP void free(void *memory);
#undef OFFLOAD_GPU_NO_HEAP
#else
__device__ int printf(const char *format, ...);
__device__ void *malloc(__SIZE_TYPE__ size);
__device__ void free(void *memory);
#endif
}

#if defined(__HIP__)
OFFLOAD_GPU_UNAVAILABLE int printf(const char *format, ...);
#endif
