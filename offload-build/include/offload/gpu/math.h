/* Mathematics that clang lowers by itself for both vendors; what needs a vendor's device library is an error that says so.
 * Names and types are those of C: `sqrtf` is for float, `sqrt` for double. */
#pragma once
#pragma clang system_header

#define OFFLOAD_GPU_UNARY(name)                                                                                        \
  OFFLOAD_GPU_INLINE double name(double x) { return __builtin_##name(x); }                                             \
  OFFLOAD_GPU_INLINE float name##f(float x) { return __builtin_##name##f(x); }
#define OFFLOAD_GPU_BINARY(name)                                                                                       \
  OFFLOAD_GPU_INLINE double name(double x, double y) { return __builtin_##name(x, y); }                                \
  OFFLOAD_GPU_INLINE float name##f(float x, float y) { return __builtin_##name##f(x, y); }

OFFLOAD_GPU_UNARY(fabs)
OFFLOAD_GPU_UNARY(floor)
OFFLOAD_GPU_UNARY(ceil)
OFFLOAD_GPU_UNARY(trunc)
OFFLOAD_GPU_UNARY(round)
OFFLOAD_GPU_UNARY(rint)
OFFLOAD_GPU_UNARY(nearbyint)
OFFLOAD_GPU_BINARY(fmin)
OFFLOAD_GPU_BINARY(fmax)
OFFLOAD_GPU_BINARY(copysign)
OFFLOAD_GPU_INLINE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
OFFLOAD_GPU_INLINE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
OFFLOAD_GPU_INLINE float sqrtf(float x) { return __builtin_sqrtf(x); }
OFFLOAD_GPU_INLINE float rsqrtf(float x) { return offload_gpu::reciprocal_root(x); }
#if defined(__HIP__) && __clang_major__ < 18
/* An instruction that LLVM 16 takes for it has a relative error of 2^-23. */
#define OFFLOAD_GPU_TOO_OLD __device__ __attribute__((unavailable("on AMD GPUs it needs clang 18 or later")))
OFFLOAD_GPU_TOO_OLD double sqrt(double);
OFFLOAD_GPU_TOO_OLD double rsqrt(double);
#undef OFFLOAD_GPU_TOO_OLD
#else
OFFLOAD_GPU_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
OFFLOAD_GPU_INLINE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
#endif
#undef OFFLOAD_GPU_UNARY
#undef OFFLOAD_GPU_BINARY

OFFLOAD_GPU_INLINE int abs(int x) { return x < 0 ? -x : x; }
OFFLOAD_GPU_INLINE long labs(long x) { return x < 0 ? -x : x; }
OFFLOAD_GPU_INLINE long long llabs(long long x) { return x < 0 ? -x : x; }

#define OFFLOAD_GPU_MIN_MAX(type)                                                                                      \
  OFFLOAD_GPU_INLINE type min(type x, type y) { return y < x ? y : x; }                                                \
  OFFLOAD_GPU_INLINE type max(type x, type y) { return x < y ? y : x; }
OFFLOAD_GPU_MIN_MAX(int)
OFFLOAD_GPU_MIN_MAX(unsigned)
OFFLOAD_GPU_MIN_MAX(long)
OFFLOAD_GPU_MIN_MAX(unsigned long)
OFFLOAD_GPU_MIN_MAX(long long)
OFFLOAD_GPU_MIN_MAX(unsigned long long)
#undef OFFLOAD_GPU_MIN_MAX
OFFLOAD_GPU_INLINE float min(float x, float y) { return fminf(x, y); }
OFFLOAD_GPU_INLINE float max(float x, float y) { return fmaxf(x, y); }
OFFLOAD_GPU_INLINE double min(double x, double y) { return fmin(x, y); }
OFFLOAD_GPU_INLINE double max(double x, double y) { return fmax(x, y); }

OFFLOAD_GPU_INLINE float __sinf(float x) { return offload_gpu::fast_sin(x); }
OFFLOAD_GPU_INLINE float __cosf(float x) { return offload_gpu::fast_cos(x); }
OFFLOAD_GPU_INLINE float __tanf(float x) { return offload_gpu::fast_divide(__sinf(x), __cosf(x)); }
OFFLOAD_GPU_INLINE void __sincosf(float x, float *sine, float *cosine) {
  *sine = __sinf(x);
  *cosine = __cosf(x);
}
/* log2 of e and of 10, and the logarithms of 2. */
OFFLOAD_GPU_INLINE float __expf(float x) { return offload_gpu::fast_exp2(x * 1.44269504089f); }
OFFLOAD_GPU_INLINE float __exp10f(float x) { return offload_gpu::fast_exp2(x * 3.32192809489f); }
OFFLOAD_GPU_INLINE float __log2f(float x) { return offload_gpu::fast_log2(x); }
OFFLOAD_GPU_INLINE float __logf(float x) { return offload_gpu::fast_log2(x) * 0.69314718056f; }
OFFLOAD_GPU_INLINE float __log10f(float x) { return offload_gpu::fast_log2(x) * 0.30102999566f; }
OFFLOAD_GPU_INLINE float __powf(float x, float y) { return offload_gpu::fast_exp2(y * offload_gpu::fast_log2(x)); }
OFFLOAD_GPU_INLINE float __fdividef(float x, float y) { return offload_gpu::fast_divide(x, y); }
OFFLOAD_GPU_INLINE float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }

OFFLOAD_GPU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
OFFLOAD_GPU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
OFFLOAD_GPU_INLINE int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
OFFLOAD_GPU_INLINE int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
OFFLOAD_GPU_INLINE int __ffs(int x) { return x == 0 ? 0 : __builtin_ctz(unsigned(x)) + 1; }
OFFLOAD_GPU_INLINE int __ffsll(long long x) { return x == 0 ? 0 : __builtin_ctzll((unsigned long long)x) + 1; }
OFFLOAD_GPU_INLINE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
OFFLOAD_GPU_INLINE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
OFFLOAD_GPU_INLINE int __mulhi(int x, int y) { return int((long long)x * y >> 32); }
OFFLOAD_GPU_INLINE unsigned __umulhi(unsigned x, unsigned y) { return unsigned((unsigned long long)x * y >> 32); }
OFFLOAD_GPU_INLINE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
OFFLOAD_GPU_INLINE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
OFFLOAD_GPU_INLINE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
OFFLOAD_GPU_INLINE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
OFFLOAD_GPU_INLINE long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
OFFLOAD_GPU_INLINE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
template <typename Value> OFFLOAD_GPU_INLINE Value __ldg(const Value *address) { return *address; }

/* Functions of the vendors' device libraries. */
#define OFFLOAD_GPU_WITHOUT_1(name)                                                                                    \
  OFFLOAD_GPU_UNAVAILABLE double name(double);                                                                         \
  OFFLOAD_GPU_UNAVAILABLE float name##f(float);
#define OFFLOAD_GPU_WITHOUT_2(name)                                                                                    \
  OFFLOAD_GPU_UNAVAILABLE double name(double, double);                                                                 \
  OFFLOAD_GPU_UNAVAILABLE float name##f(float, float);
OFFLOAD_GPU_WITHOUT_1(sin)
OFFLOAD_GPU_WITHOUT_1(cos)
OFFLOAD_GPU_WITHOUT_1(tan)
OFFLOAD_GPU_WITHOUT_1(asin)
OFFLOAD_GPU_WITHOUT_1(acos)
OFFLOAD_GPU_WITHOUT_1(atan)
OFFLOAD_GPU_WITHOUT_1(sinh)
OFFLOAD_GPU_WITHOUT_1(cosh)
OFFLOAD_GPU_WITHOUT_1(tanh)
OFFLOAD_GPU_WITHOUT_1(asinh)
OFFLOAD_GPU_WITHOUT_1(acosh)
OFFLOAD_GPU_WITHOUT_1(atanh)
OFFLOAD_GPU_WITHOUT_1(exp)
OFFLOAD_GPU_WITHOUT_1(exp2)
OFFLOAD_GPU_WITHOUT_1(exp10)
OFFLOAD_GPU_WITHOUT_1(expm1)
OFFLOAD_GPU_WITHOUT_1(log)
OFFLOAD_GPU_WITHOUT_1(log2)
OFFLOAD_GPU_WITHOUT_1(log10)
OFFLOAD_GPU_WITHOUT_1(log1p)
OFFLOAD_GPU_WITHOUT_1(cbrt)
OFFLOAD_GPU_WITHOUT_1(erf)
OFFLOAD_GPU_WITHOUT_1(erfc)
OFFLOAD_GPU_WITHOUT_1(tgamma)
OFFLOAD_GPU_WITHOUT_1(lgamma)
OFFLOAD_GPU_WITHOUT_2(pow)
OFFLOAD_GPU_WITHOUT_2(atan2)
OFFLOAD_GPU_WITHOUT_2(hypot)
OFFLOAD_GPU_WITHOUT_2(fmod)
OFFLOAD_GPU_WITHOUT_2(remainder)
#undef OFFLOAD_GPU_WITHOUT_1
#undef OFFLOAD_GPU_WITHOUT_2

