/* Words of HIP and CUDA that are attributes to clang, and the types of sizes and indices. */
#pragma once
#pragma clang system_header

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
/* clang ignores `launch_bounds` for AMD GPUs. There the other bounds are hints that are left out. */
#if defined(__HIP__)
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#else
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#endif

/* Functions below: in the device's pass part of their callers; in the host's pass, which emits none, declared where
 * only the device's pass defines them. */
#define OFFLOAD_GPU_INLINE static __device__ __inline__ __attribute__((always_inline, unused))
#if defined(__HIP_DEVICE_COMPILE__) || defined(__CUDA_ARCH__)
#define OFFLOAD_GPU_PRIMITIVE OFFLOAD_GPU_INLINE
#else
#define OFFLOAD_GPU_PRIMITIVE __device__
#endif

/* Functions that only the vendor's files define: calls are errors. */
#if defined(__HIP__)
#define OFFLOAD_GPU_UNAVAILABLE                                                                                        \
  __device__ __attribute__((unavailable("on AMD GPUs it needs ROCm's device libraries: include <hip/hip_runtime.h>")))
#else
#define OFFLOAD_GPU_UNAVAILABLE                                                                                        \
  __device__ __attribute__((unavailable("on NVIDIA GPUs it needs CUDA's device library: include <cuda_runtime.h>")))
#endif

/* Vectors have the sizes and alignments of the vendors' types: kernels get them from host code. */
#define OFFLOAD_GPU_VECTORS(type, name, align2, align4)                                                                \
  struct __attribute__((aligned(align2))) name##2 {                                                                    \
    type x, y;                                                                                                         \
  };                                                                                                                   \
  struct name##3 {                                                                                                     \
    type x, y, z;                                                                                                      \
  };                                                                                                                   \
  struct __attribute__((aligned(align4))) name##4 {                                                                    \
    type x, y, z, w;                                                                                                   \
  };                                                                                                                   \
  static __host__ __device__ __inline__ name##2 make_##name##2(type x, type y) { return name##2{x, y}; }               \
  static __host__ __device__ __inline__ name##3 make_##name##3(type x, type y, type z) { return name##3{x, y, z}; }    \
  static __host__ __device__ __inline__ name##4 make_##name##4(type x, type y, type z, type w) {                       \
    return name##4{x, y, z, w};                                                                                        \
  }
OFFLOAD_GPU_VECTORS(int, int, 8, 16)
OFFLOAD_GPU_VECTORS(unsigned, uint, 8, 16)
OFFLOAD_GPU_VECTORS(float, float, 8, 16)
OFFLOAD_GPU_VECTORS(double, double, 16, 16)
#undef OFFLOAD_GPU_VECTORS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 size) : x(size.x), y(size.y), z(size.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};
