/* Kernels of HIP and CUDA without a vendor's SDK: indices, barriers, shuffles, votes, atomics, mathematics, launches.
 *
 * For clang 16 and later, C++11 and later, AMD and NVIDIA GPUs; docs/gpu-header.md lists what is here.
 * With a vendor's SDK in the same compile this header is the SDK's own: it includes that, and defines nothing. */
#ifndef OFFLOAD_GPU_H
#define OFFLOAD_GPU_H

#if defined(__clang__) && defined(__cplusplus) && (defined(__HIP__) || defined(__CUDA__))
#if defined(__HIP__) && (defined(__CLANG_HIP_RUNTIME_WRAPPER_H__) || defined(HIP_INCLUDE_HIP_HIP_RUNTIME_H))
#include <hip/hip_runtime.h>
#elif !defined(__HIP__) && (defined(__CLANG_CUDA_RUNTIME_WRAPPER_H__) || defined(__CUDA_RUNTIME_H__))
#include <cuda_runtime.h>
#else

#include <offload/gpu/language.h>
#include <offload/gpu/device.h>
#if defined(__HIP_DEVICE_COMPILE__)
#include <offload/gpu/amd.h>
#elif defined(__CUDA_ARCH__)
#include <offload/gpu/nvidia.h>
#endif
#include <offload/gpu/index.h>
#include <offload/gpu/warp.h>
#include <offload/gpu/atomic.h>
#include <offload/gpu/math.h>
#include <offload/gpu/runtime.h>
#include <offload/gpu/launch.h>

#endif
#elif defined(__CUDACC__)
#include <cuda_runtime.h>
#else
#error "offload/gpu.h is for HIP and CUDA: compile this source as C++ with `-x hip` or `-x cuda`"
#endif

#endif
