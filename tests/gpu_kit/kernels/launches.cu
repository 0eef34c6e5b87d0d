/* A program of two sources, this one and second.cu, with what programs of CUDA have: templates, kernels and variables of
   the same names in both sources, constants, dynamic shared memory, virtual functions, graphs. LAUNCH names the function
   that runs all of it. With -DMAIN it is a program of its own, with -DRDC the sources share a function and a variable. */
#include "launches.h"

__constant__ float filter[4];
__device__ int counter;
__device__ int initialized[3] = {1, 2, 3};

#ifdef RDC
extern __device__ float factor;
__device__ float times_factor(float x);
#else
static __device__ float times_factor(float x) { return 3 * x; }
#endif

namespace {
__device__ int hidden = 7;

/* Without a use by the host above the kernel, clang gives the variable two names: docs/troubleshooting.md, OFF701. */
inline const void *address_of_hidden() { return &hidden; }

__global__ void same_name(int *y) {
  atomicAdd(&counter, 1);
  y[threadIdx.x] = hidden + initialized[threadIdx.x % 3];
}
} // namespace

__global__ void saxpy(float a, const float *x, float *y, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    y[i] += a * x[i];
}

__global__ void filtered(const float *x, float *y, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    y[i] = times_factor(x[i]) + filter[i % 4];
}

template <typename T> __global__ void scale(T *y, T a) { y[threadIdx.x] *= a; }

__global__ void sum_of_shared(const int *x, int *sum, int count) {
  extern __shared__ int copies[];
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    copies[i] = x[i];
  __syncthreads();
  int part = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    part += copies[count - 1 - i];
  for (int distance = 16; distance; distance /= 2)
    part += __shfl_down_sync(~0u, part, distance);
  if (threadIdx.x % 32 == 0)
    atomicAdd(sum, part);
}

struct Shape {
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  int side;
  __device__ Square(int side) : side(side) {}
  __device__ int area() const override { return side * side; }
};
struct Line : Shape {
  __device__ int area() const override { return 1; }
};

__global__ void areas(int *y) {
  Square square(threadIdx.x);
  Line line;
  const Shape *shape = &line;
  if (threadIdx.x % 2)
    shape = &square;
  y[threadIdx.x] = shape->area();
}

struct Large {
  int values[500];
};

__global__ void takes_large(Large large, char a, short b, double c, int *y) {
  y[threadIdx.x] = large.values[threadIdx.x] + a + b + (int)c;
}

__global__ void prints(int i) { printf("printed by the GPU: %d %s %.1f\n", i, "text", 2.5); }

#ifdef DYNAMIC
__global__ void child(int *y) { y[threadIdx.x] = 100 + threadIdx.x; }
__global__ void parent(int *y) { child<<<1, 32>>>(y); }
#endif

static int runs_saxpy(void) {
  const unsigned count = 100000;
  Memory<float> x(count), y(count);
  for (unsigned i = 0; i < count; i++)
    x.host[i] = i, y.host[i] = 1;
  CHECK(x.write());
  CHECK(y.write());
  saxpy<<<(count + 255) / 256, 256>>>(2, x.device, y.device, count);
  CHECK(y.read());
  for (unsigned i = 0; i < count; i++)
    EXPECT(y.host[i] == 1 + 2.0f * i);
  return 0;
}

static int copies_variables(void) {
  const unsigned count = 1000;
  Memory<float> x(count), y(count);
  for (unsigned i = 0; i < count; i++)
    x.host[i] = i;
  CHECK(x.write());
  const float values[4] = {0.5f, 1.5f, 2.5f, 3.5f};
  CHECK(cudaMemcpyToSymbol(filter, values, sizeof values));
  filtered<<<4, 256>>>(x.device, y.device, count);
  CHECK(y.read());
  for (unsigned i = 0; i < count; i++)
    EXPECT(y.host[i] == 3.0f * i + values[i % 4]);

  Memory<int> sums(64);
  same_name<<<2, 64>>>(sums.device);
  CHECK(sums.read());
  EXPECT(sums.host[2] == 7 + 3 && sums.host[3] == 7 + 1);
  int counted = 0;
  CHECK(cudaMemcpyFromSymbol(&counted, counter, sizeof counted));
  EXPECT(counted == 128);
  const int new_values[3] = {10, 20, 30}, new_hidden = 9;
  CHECK(cudaMemcpyToSymbol(initialized, new_values, sizeof new_values));
  CHECK(cudaMemcpyToSymbol(hidden, &new_hidden, sizeof new_hidden));
  same_name<<<1, 64>>>(sums.device);
  CHECK(sums.read());
  EXPECT(sums.host[2] == 9 + 30 && sums.host[3] == 9 + 10);
  size_t size = 0;
  CHECK(cudaGetSymbolSize(&size, initialized));
  EXPECT(size == sizeof new_values);
  return 0;
}

static int instantiates_templates(void) {
  Memory<double> doubles(10);
  Memory<int> ints(10);
  for (int i = 0; i < 10; i++)
    doubles.host[i] = ints.host[i] = i;
  CHECK(doubles.write());
  CHECK(ints.write());
  scale<double><<<1, 10>>>(doubles.device, 2.5);
  scale<int><<<1, 10>>>(ints.device, 3);
  CHECK(doubles.read());
  CHECK(ints.read());
  EXPECT(doubles.host[9] == 22.5 && ints.host[9] == 27);
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, (const void *)scale<double>));
  printf("code for %d, from PTX for %d\n", attributes.binaryVersion, attributes.ptxVersion);
  return 0;
}

/* More shared memory than a kernel has by default. */
static int shares_memory(void) {
  const int count = 16384;
  Memory<int> x(count), sum(1);
  for (int i = 0; i < count; i++)
    x.host[i] = i % 5;
  CHECK(x.write());
  CHECK(cudaFuncSetAttribute((const void *)sum_of_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 4 * count));
  sum_of_shared<<<1, 256, 4 * count>>>(x.device, sum.device, count);
  CHECK(sum.read());
  int expected = 0;
  for (int i = 0; i < count; i++)
    expected += i % 5;
  EXPECT(sum.host[0] == expected);
  return 0;
}

static int passes_arguments(void) {
  Memory<int> y(500);
  areas<<<1, 64>>>(y.device);
  CHECK(y.read());
  EXPECT(y.host[5] == 25 && y.host[6] == 1);
  Large large;
  for (int i = 0; i < 500; i++)
    large.values[i] = i;
  takes_large<<<1, 500>>>(large, 1, 2, 3.5, y.device);
  CHECK(y.read());
  EXPECT(y.host[499] == 499 + 1 + 2 + 3);
  prints<<<1, 1>>>(42);
  CHECK(cudaDeviceSynchronize());
#ifdef DYNAMIC
  parent<<<1, 1>>>(y.device);
  CHECK(y.read());
  EXPECT(y.host[31] == 131);
#endif
  return 0;
}

static int replays_a_graph(void) {
  Memory<int> y(64);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  areas<<<1, 64, 0, stream>>>(y.device);
  scale<int><<<1, 64, 0, stream>>>(y.device, 2);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&replay, graph, 0));
  CHECK(cudaGraphLaunch(replay, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(y.read());
  EXPECT(y.host[5] == 50 && y.host[6] == 2);
  return 0;
}

/* Returns 0 if all results are those of the CPU. */
extern "C" int LAUNCH(void) {
  return runs_saxpy() || copies_variables() || instantiates_templates() || shares_memory() || passes_arguments() ||
         replays_a_graph() || SECOND();
}

#ifdef MAIN
int main(void) { return LAUNCH(); }
#endif
