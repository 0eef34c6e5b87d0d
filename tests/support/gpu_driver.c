/* Stands for libamdhip64.so (-DHIP) or libcuda.so.1: the functions that offload_device::gpu calls, with the prototypes of the
 * vendors' headers. Memory is the host's. The kernel `saxpy` computes, wrong if WRONG is set; others do nothing.
 *
 * GPU_RECORD names a file to which each call adds a line. GPU_FAIL names a file with the name of a function and the code
 * that it returns from then on. GPU_COUNT is the number of GPUs, 1 by default. GPU_SIGNATURES has a line `<kernel>=<signature>` for each
 * kernel in Rust that modules have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HIP
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
typedef hipError_t Status;
typedef hipStream_t Stream;
typedef hipModule_t Module;
typedef hipFunction_t Function;
typedef hipDevice_t Device;
typedef hipDeviceptr_t Address;
typedef hipJitOption Option;
#define API(hip, cuda) hip
#define POINTER HIP_LAUNCH_PARAM_BUFFER_POINTER
#define SIZE HIP_LAUNCH_PARAM_BUFFER_SIZE
#define END HIP_LAUNCH_PARAM_END
#else
#include <cuda.h>
typedef CUresult Status;
typedef CUstream Stream;
typedef CUmodule Module;
typedef CUfunction Function;
typedef CUdevice Device;
typedef CUdeviceptr Address;
typedef CUjit_option Option;
#define API(hip, cuda) cuda
#define POINTER CU_LAUNCH_PARAM_BUFFER_POINTER
#define SIZE CU_LAUNCH_PARAM_BUFFER_SIZE
#define END CU_LAUNCH_PARAM_END
#endif

static FILE *record(const char *function) {
  const char *path = getenv("GPU_RECORD");
  FILE *file = fopen(path ? path : "/dev/null", "a");
  fprintf(file, "%s", function);
  return file;
}

/* From ROCm 6 on, a header calls one function by another name. */
static int is_called(const char *function, const char *name) {
  size_t size = strlen(name);
  return !strncmp(function, name, size) && (!function[size] || !strcmp(function + size, "R0600"));
}

static Status end(FILE *file, const char *function) {
  fprintf(file, "\n");
  fclose(file);
  char name[100] = "";
  int code = 0;
  const char *path = getenv("GPU_FAIL");
  FILE *fail = path ? fopen(path, "r") : NULL;
  if (fail) {
    if (fscanf(fail, "%99s %d", name, &code) != 2 || !is_called(function, name))
      code = 0;
    fclose(fail);
  }
  return (Status)code;
}

/* Records a call with its arguments, and returns from the function if it shall fail. */
#define CALL(...)                                                                                                         \
  do {                                                                                                                    \
    FILE *file = record(__func__);                                                                                        \
    fprintf(file, " " __VA_ARGS__);                                                                                       \
    Status status = end(file, __func__);                                                                                  \
    if (status)                                                                                                           \
      return status;                                                                                                      \
  } while (0)

static int next = 1;
#define NEW(out) (*(out) = (void *)(size_t)next++)
#define NUMBER(handle) ((int)(size_t)(handle))

Status API(hipInit, cuInit)(unsigned flags) {
  CALL("%u", flags);
  return 0;
}
Status API(hipGetDeviceCount, cuDeviceGetCount)(int *count) {
  CALL();
  const char *text = getenv("GPU_COUNT");
  *count = text ? atoi(text) : 1;
  return 0;
}
Status API(hipDeviceGet, cuDeviceGet)(Device *device, int index) {
  CALL("%d", index);
  *device = index;
  return 0;
}
Status API(hipDeviceGetName, cuDeviceGetName)(char *name, int size, Device device) {
  CALL("%d", device);
  snprintf(name, size, "stand-in %d", device);
  return 0;
}
Status API(hipStreamCreateWithFlags, cuStreamCreate)(Stream *stream, unsigned flags) {
  CALL("%u", flags);
  NEW(stream);
  return 0;
}
Status API(hipStreamDestroy, cuStreamDestroy_v2)(Stream stream) {
  CALL("%d", NUMBER(stream));
  return 0;
}
Status API(hipStreamSynchronize, cuStreamSynchronize)(Stream stream) {
  CALL("%d", NUMBER(stream));
  return 0;
}
Status API(hipDeviceSynchronize, cuCtxSynchronize)(void) {
  CALL();
  return 0;
}
#ifdef HIP
Status hipMalloc(void **address, size_t size) {
#else
Status cuMemAlloc_v2(Address *address, size_t size) {
#endif
  CALL("%zu", size);
  /* What was there before is not 0. */
  void *memory = aligned_alloc(256, (size + 255) / 256 * 256);
  memset(memory, 0xee, size);
  *address = (Address)memory;
  return 0;
}
Status API(hipFree, cuMemFree_v2)(Address address) {
  CALL();
  free((void *)address);
  return 0;
}
Status API(hipMemsetD8Async, cuMemsetD8Async)(Address to, unsigned char byte, size_t size, Stream stream) {
  CALL("%u %zu %d", byte, size, NUMBER(stream));
  memset((void *)to, byte, size);
  return 0;
}
#if defined HIP && HIP_VERSION_MAJOR < 7
Status hipMemcpyHtoDAsync(Address to, void *from, size_t size, Stream stream) {
#elif defined HIP
Status hipMemcpyHtoDAsync(Address to, const void *from, size_t size, Stream stream) {
#else
Status cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t size, Stream stream) {
#endif
  CALL("%zu %d", size, NUMBER(stream));
  memcpy((void *)to, from, size);
  return 0;
}
Status API(hipMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2)(void *to, Address from, size_t size, Stream stream) {
  CALL("%zu %d", size, NUMBER(stream));
  memcpy(to, (void *)from, size);
  return 0;
}

/* Images of which byte 32 is 'r' are refused, as images for another GPU. */
Status API(hipModuleLoadDataEx, cuModuleLoadDataEx)(Module *module, const void *image, unsigned count, Option *options,
                                                   void **values) {
  const unsigned char *bytes = image;
  FILE *file = record(__func__);
  int is_text = bytes[0] == '.' || bytes[0] == '/';
  if (is_text)
    fprintf(file, " %zu characters", strlen(image));
  else
    fprintf(file, " %02x%02x%02x%02x", bytes[0], bytes[1], bytes[2], bytes[3]);
  Status status = end(file, __func__);
#ifndef HIP
  for (unsigned i = 0; i < count; i++)
    if (status && options[i] == CU_JIT_ERROR_LOG_BUFFER && options[i + 1] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      snprintf(values[i], (size_t)values[i + 1], "ptxas : line 3; error : Parsing error\n");
#else
  (void)options, (void)values, (void)count;
#endif
  if (!status && !is_text && bytes[32] == 'r')
    status = (Status)209;
  if (!status)
    NEW(module);
  return status;
}
Status API(hipModuleUnload, cuModuleUnload)(Module module) {
  CALL("%d", NUMBER(module));
  return 0;
}
static char names[64][64];
Status API(hipModuleGetFunction, cuModuleGetFunction)(Function *function, Module module, const char *name) {
  CALL("%d %s", NUMBER(module), name);
  int number = next++ % 64;
  snprintf(names[number], sizeof *names, "%s", name);
  *function = (void *)(size_t)number;
  return !strncmp(name, "missing", 7) ? 500 : 0;
}

/* Finds a line of GPU_SIGNATURES: the value after the name of a variable `__offload_signature$<kernel>`. */
static const char *signature(const char *name) {
  const char *start = "__offload_signature$", *line = getenv("GPU_SIGNATURES");
  if (strncmp(name, start, strlen(start)))
    return NULL;
  name += strlen(start);
  for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
    if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == '=')
      return line + strlen(name) + 1;
  return NULL;
}

/* Each module has the variable `float filter[3]`, and the signatures of its kernels in Rust. */
Status API(hipModuleGetGlobal, cuModuleGetGlobal_v2)(Address *address, size_t *size, Module module, const char *name) {
  static float filter[3] = {1, 2, 3};
  CALL("%d %s", NUMBER(module), name);
  const char *text = signature(name);
  *address = text ? (Address)text : (Address)filter;
  *size = text ? strcspn(text, "\n") : sizeof filter;
  return text || !strcmp(name, "filter") ? 0 : 500;
}

static void saxpy(float a, const float *x, float *y, size_t count) {
  for (size_t i = 0; i < count; i++)
    y[i] += a * x[i] + (getenv("WRONG") && i == 7);
}

Status API(hipModuleLaunchKernel, cuLaunchKernel)(Function function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b,
                                                 unsigned c, unsigned shared, Stream stream, void **parameters,
                                                 void **extra) {
  const char *name = names[NUMBER(function)];
  const unsigned char *bytes = extra ? extra[1] : NULL;
  size_t size = extra ? *(size_t *)extra[3] : 0;
  if (parameters || (extra && (extra[0] != POINTER || extra[2] != SIZE || extra[4] != END)))
    return 1;
  FILE *file = record(__func__);
  fprintf(file, " %s [%u,%u,%u] [%u,%u,%u] %u %d ", name, x, y, z, a, b, c, shared, NUMBER(stream));
  for (size_t i = 0; i < size; i++)
    fprintf(file, "%02x", bytes[i]);
  Status status = end(file, __func__);
  if (!status && !strcmp(name, "saxpy") && size == 40)
    saxpy(*(float *)bytes, *(float **)(bytes + 8), *(float **)(bytes + 24), *(size_t *)(bytes + 32));
  if (!status && !strcmp(name, "saxpy") && size == 28)
    saxpy(*(float *)bytes, *(float **)(bytes + 8), *(float **)(bytes + 16), *(unsigned *)(bytes + 24));
  return status;
}

static const char *text(int code, int is_name) {
  switch (code) {
  case 2:
    return is_name ? API("hipErrorOutOfMemory", "CUDA_ERROR_OUT_OF_MEMORY") : "out of memory";
  case 100:
    return is_name ? API("hipErrorNoDevice", "CUDA_ERROR_NO_DEVICE") : "no device";
  case 209:
    return is_name ? API("hipErrorNoBinaryForGpu", "CUDA_ERROR_NO_BINARY_FOR_GPU") : "no image for this GPU";
  case 500:
    return is_name ? API("hipErrorNotFound", "CUDA_ERROR_NOT_FOUND") : "named symbol not found";
  }
  return NULL;
}

#ifdef HIP
Status hipSetDevice(int device) {
  CALL("%d", device);
  return 0;
}
Status hipGetDeviceProperties(hipDeviceProp_t *properties, int device) {
  CALL("%d", device);
  memset(properties, 0, sizeof *properties);
  strcpy(properties->name, "gfx in the name");
  strcpy(properties->gcnArchName, "gfx90a:sramecc+:xnack-");
  return 0;
}
const char *hipGetErrorName(Status code) { return text(code, 1) ? text(code, 1) : "hipErrorUnknown"; }
const char *hipGetErrorString(Status code) { return text(code, 0) ? text(code, 0) : "unknown"; }
#else
Status cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, Device device) {
  CALL("%d %d", attribute, device);
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                       : -1;
  return 0;
}
Status cuDevicePrimaryCtxRetain(CUcontext *context, Device device) {
  CALL("%d", device);
  *context = (CUcontext)(size_t)(1000 + device);
  return 0;
}
Status cuDevicePrimaryCtxRelease_v2(Device device) {
  CALL("%d", device);
  return 0;
}
Status cuCtxSetCurrent(CUcontext context) {
  CALL("%d", NUMBER(context));
  return 0;
}
Status cuFuncSetAttribute(Function function, CUfunction_attribute attribute, int value) {
  CALL("%s %s %d", names[NUMBER(function)],
       attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? "shared" : "other", value);
  return 0;
}
Status cuGetErrorName(Status code, const char **name) { return (*name = text(code, 1)) ? 0 : 1; }
Status cuGetErrorString(Status code, const char **name) { return (*name = text(code, 0)) ? 0 : 1; }
#endif
