/* Every function of <offload/gpu.h>: a kernel for each group of functions, by whose name the test finds its code. */
#include <offload/gpu.h>

#define KERNEL extern "C" __global__ void

KERNEL thread(unsigned *out) { out[0] = threadIdx.x, out[1] = threadIdx.y, out[2] = threadIdx.z; }
KERNEL block(unsigned *out) { out[0] = blockIdx.x, out[1] = blockIdx.y, out[2] = blockIdx.z; }
KERNEL size_x(unsigned *out) { *out = blockDim.x; }
KERNEL size_y(unsigned *out) { *out = blockDim.y; }
KERNEL size_z(unsigned *out) { *out = blockDim.z; }
KERNEL grid_x(unsigned *out) { *out = gridDim.x; }
KERNEL grid_y(unsigned *out) { *out = gridDim.y; }
KERNEL grid_z(unsigned *out) { *out = gridDim.z; }
KERNEL whole(unsigned *out) {
  dim3 size = blockDim;
  uint3 place = threadIdx;
  *out = place.x + size.x * (place.y + size.y * place.z);
}
KERNEL lane(unsigned *out) { *out = __lane_id(); }
KERNEL width(int *out) { *out = warpSize; }
KERNEL __launch_bounds__(128) bounded(int *out) { *out = 1; }
KERNEL __launch_bounds__(64 * 2, 4) bounded_twice(int *out) { *out = 1; }

KERNEL barrier(int *x) {
  x[0] = 1;
  __syncthreads();
  x[0] += x[1];
}
KERNEL warp_barrier(int *x) {
  x[0] = 1;
  __syncwarp();
  x[0] += x[1];
}
KERNEL fence_block(int *x) { x[0] = 1, __threadfence_block(), x[1] = 2; }
KERNEL fence(int *x) { x[0] = 1, __threadfence(), x[1] = 2; }
KERNEL fence_system(int *x) { x[0] = 1, __threadfence_system(), x[1] = 2; }
KERNEL ticks(long long *out) { *out = clock64(); }

KERNEL shuffle(int *x) { *x = __shfl(x[__lane_id()], 3); }
KERNEL shuffle_up(int *x) { *x = __shfl_up(x[__lane_id()], 1); }
KERNEL shuffle_down(int *x) { *x = __shfl_down(x[__lane_id()], 2, 16); }
KERNEL shuffle_xor(int *x) { *x = __shfl_xor(x[__lane_id()], 4); }
KERNEL shuffle_double(double *x) { *x = __shfl_xor(x[__lane_id()], 1); }
KERNEL shuffle_sync(float *x, unsigned char *bytes, int2 *pairs) {
  unsigned lane = __lane_id();
  x[0] = __shfl_sync(__activemask(), x[lane], 0) + __shfl_up_sync(~0ull, x[lane], 1) +
         __shfl_down_sync(~0ull, x[lane], 1) + __shfl_xor_sync(~0ull, x[lane], 1, 8);
  bytes[0] = __shfl(bytes[lane], 1);
  pairs[0] = __shfl(pairs[lane], 1);
}
KERNEL votes(unsigned long long *out, const int *x) {
  out[0] = __ballot(x[0]), out[1] = __ballot_sync(~0ull, x[1]);
  out[2] = __activemask();
}
KERNEL any(int *x) { x[0] = __any(x[1]), x[2] = __any_sync(~0ull, x[3]); }
KERNEL all(int *x) { x[0] = __all(x[1]), x[2] = __all_sync(~0ull, x[3]); }

template <class T> __device__ T integers(T *x, T y) {
  return atomicAdd(x, y) + atomicSub(x, y) + atomicMin(x, y) + atomicMax(x, y) + atomicExch(x, y) +
         atomicCAS(x, y, 1) + atomicAnd(x, y) + atomicOr(x, y) + atomicXor(x, y);
}
KERNEL atomics_int(int *x, int y) { x[1] = integers(x, y); }
KERNEL atomics_unsigned(unsigned *x, unsigned y) { x[1] = integers(x, y); }
KERNEL atomics_long(long *x, long y) { x[1] = integers(x, y); }
KERNEL atomics_unsigned_long(unsigned long *x, unsigned long y) { x[1] = integers(x, y); }
KERNEL atomics_long_long(long long *x, long long y) { x[1] = integers(x, y); }
KERNEL atomics_unsigned_long_long(unsigned long long *x, unsigned long long y) { x[1] = integers(x, y); }
KERNEL atomics_float(float *x, float y) { x[1] = atomicAdd(x, y) + atomicExch(x, y) + atomicCAS(x, y, 1); }
KERNEL atomics_double(double *x, double y) { x[1] = atomicAdd(x, y) + atomicExch(x, y) + atomicCAS(x, y, 1); }

extern __shared__ float dynamic[];
__constant__ float table[4];
KERNEL memory(float *x) {
  __shared__ float tile[64];
  tile[threadIdx.x] = dynamic[threadIdx.x];
  __syncthreads();
  x[0] = tile[threadIdx.x ^ 1] + table[threadIdx.x & 3];
}
KERNEL vectors(float4 *x, uint2 *y, double2 *z) {
  x[1] = make_float4(x[0].w, x[0].z, x[0].y, x[0].x);
  y[1] = make_uint2(y[0].y, y[0].x);
  z[1] = make_double2(z[0].y, z[0].x);
}

KERNEL floats(float *out, float x, float y) {
  out[0] = fabsf(x) + floorf(x) + ceilf(x) + truncf(x) + roundf(x) + rintf(x) + nearbyintf(x);
  out[1] = fminf(x, y) + fmaxf(x, y) + copysignf(x, y) + fmaf(x, y, x) + min(x, y) + max(x, y);
}
KERNEL doubles(double *out, double x, double y) {
  out[0] = fabs(x) + floor(x) + ceil(x) + trunc(x) + round(x) + rint(x) + nearbyint(x);
  out[1] = fmin(x, y) + fmax(x, y) + copysign(x, y) + fma(x, y, x) + min(x, y) + max(x, y);
}
KERNEL root(float *x) { x[0] = sqrtf(x[1]); }
KERNEL inverse_root(float *x) { x[0] = rsqrtf(x[1]); }
#if !defined(__HIP__) || __clang_major__ >= 18
KERNEL roots(double *x) { x[0] = sqrt(x[1]), x[2] = rsqrt(x[3]); }
#endif
KERNEL fast(float *out, float x, float y) {
  out[0] = __sinf(x) + __cosf(x) + __tanf(x) + __expf(x) + __exp10f(x) + __logf(x) + __log2f(x) + __log10f(x);
  out[1] = __powf(x, y) + __fdividef(x, y) + __saturatef(x);
  __sincosf(y, out + 2, out + 3);
}
KERNEL bits(unsigned long long *out, int x, long long y, float f, double d) {
  out[0] = __popc(x) + __popcll(y) + __clz(x) + __clzll(y) + __ffs(x) + __ffsll(y) + __brev(x) + __brevll(y);
  out[1] = __mulhi(x, x) + __umulhi(x, x) + abs(x) + labs(long(y)) + llabs(y) + min(x, 3) + max(y, 3ll);
  out[2] = __float_as_int(f) + __float_as_uint(f) + __double_as_longlong(d);
  out[3] = __int_as_float(x) + __uint_as_float(x) + __longlong_as_double(y);
  out[4] = __ldg(out + 5);
}
#if !defined(__HIP__)
KERNEL prints(int x) { printf("%d\n", x); }
KERNEL allocates(int **x) {
  free(*x);
  *x = (int *)malloc(4);
}
#endif

extern "C" int launch(float *x) {
  memory<<<dim3(2, 3), 64, 256>>>(x);
  memory<<<2, 64>>>(x);
#if defined(__HIP__)
  return hipGetLastError();
#else
  return cudaGetLastError();
#endif
}
