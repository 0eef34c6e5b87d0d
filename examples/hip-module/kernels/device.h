/* What hip_runtime.h would define. */
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))

__device__ unsigned thread_index();
