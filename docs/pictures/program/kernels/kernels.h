#include <offload/gpu.h>

#define TILE 16

__global__ void matmul(const float *a, const float *b, float *c, int n) {
  __shared__ float rows[TILE][TILE], columns[TILE][TILE];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  float sum = 0;
  for (int tile = 0; tile < n; tile += TILE) {
    rows[threadIdx.y][threadIdx.x] = a[y * n + tile + threadIdx.x];
    columns[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + x];
    __syncthreads();
    for (int i = 0; i < TILE; i++)
      sum += rows[threadIdx.y][i] * columns[i][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = sum;
}

template <typename T, int N> __global__ void normalize(const T *in, T *out) {
  __shared__ T sums[N];
  T value = in[blockIdx.x * N + threadIdx.x];
  sums[threadIdx.x] = value * value;
  __syncthreads();
  for (int i = N / 2; i > 0; i /= 2) {
    if (threadIdx.x < i)
      sums[threadIdx.x] += sums[threadIdx.x + i];
    __syncthreads();
  }
  out[blockIdx.x * N + threadIdx.x] = value / (sums[0] + T(1e-5));
}
