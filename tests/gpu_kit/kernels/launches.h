/* What both sources of the program share: memory on both sides, and checks that print what failed. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#define JOINED(a, b) a##b
#define NAME(a, b) JOINED(a, b)
/* Functions that the program has once, so that several of these programs can be one. */
#define SECOND NAME(LAUNCH, _second)
#define times_factor NAME(LAUNCH, _times_factor)
#define factor NAME(LAUNCH, _factor)
extern "C" int SECOND(void);

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cudaError_t error = (call);                                                                                        \
    if (error != cudaSuccess)                                                                                          \
      return printf("line %d: %s (%d)\n", __LINE__, cudaGetErrorName(error), error), 1;                                \
  } while (0)
#define EXPECT(condition)                                                                                              \
  do {                                                                                                                 \
    if (!(condition))                                                                                                  \
      return printf("line %d: wrong result, expected %s\n", __LINE__, #condition), 1;                                  \
  } while (0)

/* Zeros on the host and on the GPU. */
template <typename T> struct Memory {
  size_t size;
  T *host, *device;
  Memory(size_t count) : size(count * sizeof(T)), host(new T[count]()), device(0) {
    if (cudaMalloc(&device, size) == cudaSuccess)
      cudaMemset(device, 0, size);
  }
  ~Memory() {
    delete[] host;
    cudaFree(device);
  }
  cudaError_t write() { return cudaMemcpy(device, host, size, cudaMemcpyHostToDevice); }
  /* Returns the error of the launch before it, if that failed. */
  cudaError_t read() {
    cudaError_t error = cudaGetLastError();
    return error != cudaSuccess ? error : cudaMemcpy(host, device, size, cudaMemcpyDeviceToHost);
  }
};
