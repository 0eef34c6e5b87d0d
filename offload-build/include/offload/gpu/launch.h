/* What clang calls for `kernel<<<grid, block, shared, stream>>>(…)`: functions of the vendor's runtime library, which the
 * program is linked with. */
#pragma once
#pragma clang system_header

#if defined(__HIP__)
#define OFFLOAD_GPU_RUNTIME(name) hip##name
typedef struct ihipStream_t *hipStream_t;
#define OFFLOAD_GPU_STREAM hipStream_t
#else
#define OFFLOAD_GPU_RUNTIME(name) cuda##name
typedef struct CUstream_st *cudaStream_t;
#define OFFLOAD_GPU_STREAM cudaStream_t
#endif

extern "C" {
#if defined(__HIP__)
int __hipPushCallConfiguration(dim3 grid, dim3 block, __SIZE_TYPE__ shared = 0, hipStream_t stream = nullptr);
int __hipPopCallConfiguration(dim3 *grid, dim3 *block, __SIZE_TYPE__ *shared, hipStream_t *stream);
int hipLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, __SIZE_TYPE__ shared,
                    hipStream_t stream);
/* The error of the last launch; 0 for none. */
int hipGetLastError();
#else
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, __SIZE_TYPE__ shared = 0, cudaStream_t stream = nullptr);
int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, __SIZE_TYPE__ *shared, cudaStream_t *stream);
int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, __SIZE_TYPE__ shared,
                     cudaStream_t stream);
int cudaGetLastError();
#endif
}
