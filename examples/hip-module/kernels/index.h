#pragma once
#include <offload/gpu.h>

__device__ unsigned thread_index();
