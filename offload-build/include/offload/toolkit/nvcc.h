/* Included in front of CUDA device code that clang compiles with a toolkit: what nvcc has there and clang does not.

   nvcc includes <assert.h>, and its compiler knows `new` and `delete`, which destructors of classes with virtual functions need,
   too. Since CUDA 12.9 and 13, headers of the toolkit call functions that nvcc's code generator knows;
   neither clang 22 nor libdevice defines them. */
#pragma once
#pragma clang system_header

#include <assert.h>
#include <new>
#include <offload/toolkit/nvcc_host.h>

/* A later clang may define them. */
#if __clang_major__ < 24
extern "C" {

__device__ inline unsigned short __nv_bswap16_impl(unsigned short x) { return __builtin_bswap16(x); }
__device__ inline unsigned int __nv_bswap32_impl(unsigned int x) { return __builtin_bswap32(x); }
__device__ inline unsigned long long __nv_bswap64_impl(unsigned long long x) { return __builtin_bswap64(x); }

__device__ inline size_t __nv_cvta_generic_to_param_impl(const void *generic) {
  size_t param;
  asm("cvta.to.param.u64 %0, %1;" : "=l"(param) : "l"(generic));
  return param;
}
__device__ inline void *__nv_cvta_param_to_generic_impl(size_t param) {
  void *generic;
  asm("cvta.param.u64 %0, %1;" : "=l"(generic) : "l"(param));
  return generic;
}

#define OFFLOAD_DOT_PRODUCT(name, instruction, type)                                                                  \
  __device__ inline type name(type a, type b, type sum) {                                                             \
    type result;                                                                                                      \
    asm(instruction " %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));                                    \
    return result;                                                                                                    \
  }
OFFLOAD_DOT_PRODUCT(__nv_idp4a_s_s_impl, "dp4a.s32.s32", int)
OFFLOAD_DOT_PRODUCT(__nv_idp4a_u_u_impl, "dp4a.u32.u32", unsigned int)
OFFLOAD_DOT_PRODUCT(__nv_idp2a_lo_s_s_impl, "dp2a.lo.s32.s32", int)
OFFLOAD_DOT_PRODUCT(__nv_idp2a_lo_u_u_impl, "dp2a.lo.u32.u32", unsigned int)
OFFLOAD_DOT_PRODUCT(__nv_idp2a_hi_s_s_impl, "dp2a.hi.s32.s32", int)
OFFLOAD_DOT_PRODUCT(__nv_idp2a_hi_u_u_impl, "dp2a.hi.u32.u32", unsigned int)
#undef OFFLOAD_DOT_PRODUCT
}
#endif
