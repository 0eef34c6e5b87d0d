/* Stands for NVIDIA's driver: memory is the host's, and every kernel is saxpy, wrong if WRONG is set. */
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags) { return flags; }
int cuDriverGetVersion(int *version) { return *version = 12040, 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGetName(char *name, int size, int device) { return strncpy(name, "stand-in", size), device; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { return *value = attribute == 75 ? 9 : 0, device; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = malloc(1), device; }
int cuCtxSetCurrent(void *context) { return context ? 0 : 1; }
int cuGetErrorName(int status, const char **name) { return *name = "CUDA_ERROR_INVALID_IMAGE", 0; }
int cuModuleLoadData(void **module, const unsigned *image) { return *module = malloc(1), *image == 0xba55ed50 ? 0 : 200; }
int cuModuleGetFunction(void **kernel, void *module, const char *name) { return *kernel = module, strcmp(name, "saxpy"); }
int cuMemAlloc_v2(void **memory, size_t size) { return *memory = malloc(size), 0; }
int cuMemcpyHtoD_v2(void *to, const void *from, size_t size) { return memcpy(to, from, size), 0; }
int cuMemcpyDtoH_v2(void *to, const void *from, size_t size) { return memcpy(to, from, size), 0; }
int cuCtxSynchronize(void) { return 0; }

int cuLaunchKernel(void *kernel, unsigned blocks, unsigned blocks_y, unsigned blocks_z, unsigned threads,
                   unsigned threads_y, unsigned threads_z, unsigned shared, void *stream, void **arguments, void **extra) {
  float a = *(float *)arguments[0], *x = *(float **)arguments[1], *y = *(float **)arguments[2];
  unsigned count = *(unsigned *)arguments[3];
  for (unsigned i = 0; i < count && i < blocks * threads; i++)
    y[i] += a * x[i] + (getenv("WRONG") && i == 7);
  return kernel && blocks_y * blocks_z * threads_y * threads_z == 1 && !shared && !stream && !extra ? 0 : 1;
}
