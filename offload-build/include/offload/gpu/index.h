/* `threadIdx`, `blockIdx`, `blockDim`, `gridDim`, and barriers. */
#pragma once
#pragma clang system_header

/* An object without content: reading a member calls a function. */
#define OFFLOAD_GPU_INDEX(type, name, read)                                                                            \
  struct type {                                                                                                        \
    __declspec(property(get = read_x)) unsigned x;                                                                     \
    __declspec(property(get = read_y)) unsigned y;                                                                     \
    __declspec(property(get = read_z)) unsigned z;                                                                     \
    static __device__ __forceinline__ unsigned read_x() { return offload_gpu::read##_x(); }                            \
    static __device__ __forceinline__ unsigned read_y() { return offload_gpu::read##_y(); }                            \
    static __device__ __forceinline__ unsigned read_z() { return offload_gpu::read##_z(); }                            \
    __device__ __forceinline__ operator uint3() const { return uint3{read_x(), read_y(), read_z()}; }                  \
    __device__ __forceinline__ operator dim3() const { return dim3(read_x(), read_y(), read_z()); }                    \
    type(const type &) = delete;                                                                                       \
    type &operator=(const type &) = delete;                                                                            \
  };                                                                                                                   \
  }                                                                                                                    \
  extern const __device__ offload_gpu::type name;                                                                      \
  namespace offload_gpu {

namespace offload_gpu {
OFFLOAD_GPU_INDEX(thread_index, threadIdx, thread)
OFFLOAD_GPU_INDEX(block_index, blockIdx, block)
OFFLOAD_GPU_INDEX(block_size, blockDim, threads)
OFFLOAD_GPU_INDEX(grid_size, gridDim, blocks)
} // namespace offload_gpu
#undef OFFLOAD_GPU_INDEX

/* On NVIDIA a builtin of clang. */
#if defined(__HIP__)
OFFLOAD_GPU_INLINE void __syncthreads() { offload_gpu::block_barrier(); }
#endif
OFFLOAD_GPU_INLINE void __threadfence_block() { offload_gpu::block_fence(); }
OFFLOAD_GPU_INLINE void __threadfence() { offload_gpu::device_fence(); }
OFFLOAD_GPU_INLINE void __threadfence_system() { offload_gpu::system_fence(); }

OFFLOAD_GPU_INLINE long long clock64() { return offload_gpu::cycles(); }
