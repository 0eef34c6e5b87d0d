/* The kernels of compares/kernels/src/speeds.rs in C++, for CUDA and HIP. */
#include <offload/gpu.h>

typedef unsigned long size;

constexpr unsigned TILE = 16;
constexpr unsigned GROUP = 256;

extern "C" __global__ void saxpy(float a, const float *x, float *y, size count) {
  size i = (size)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    y[i] = __builtin_fmaf(a, x[i], y[i]);
}

extern "C" __global__ void __launch_bounds__(GROUP) reduce(const float *x, size count, float *total) {
  __shared__ float sums[GROUP];
  unsigned place = threadIdx.x;
  float sum = 0;
  for (size i = (size)blockIdx.x * blockDim.x + place; i < count; i += (size)gridDim.x * blockDim.x)
    sum += x[i];
  sums[place] = sum;
  for (unsigned half = GROUP / 2; half > 0; half /= 2) {
    __syncthreads();
    if (place < half)
      sums[place] += sums[place + half];
  }
  if (place == 0)
    atomicAdd(total, sums[0]);
}

extern "C" __global__ void __launch_bounds__(GROUP) matmul(unsigned n, const float *a, const float *b, float *c) {
  __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
  unsigned x = threadIdx.x, y = threadIdx.y;
  size column = (size)blockIdx.x * TILE + x, row = (size)blockIdx.y * TILE + y;
  float sum = 0;
  for (size start = 0; start < n; start += TILE) {
    tile_a[y][x] = a[row * n + start + x];
    tile_b[y][x] = b[(start + y) * n + column];
    __syncthreads();
    for (unsigned k = 0; k < TILE; k++)
      sum = __builtin_fmaf(tile_a[y][k], tile_b[k][x], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

extern "C" __global__ void xorshift(unsigned steps, unsigned *y, size count) {
  size i = (size)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count)
    return;
  unsigned state = i + 1;
  for (unsigned step = 0; step < steps; step++) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
  }
  y[i] = state;
}
