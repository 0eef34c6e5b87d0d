#include <hip/hip_runtime.h>

/* A device function, called by a kernel in another file. */
__device__ float scaled(float factor, float x) { return factor * x; }
