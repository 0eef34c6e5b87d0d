/* Atomic functions: relaxed, among the threads of the device. They return the value before. */
#pragma once
#pragma clang system_header

namespace offload_gpu {

/* Types that an operation takes. */
enum { Integer = 1, Float = 2 };

template <typename Value> struct kind {
  static constexpr int value = 0;
};
#define OFFLOAD_GPU_KIND(type, is)                                                                                     \
  template <> struct kind<type> {                                                                                      \
    static constexpr int value = is;                                                                                   \
  };
OFFLOAD_GPU_KIND(int, Integer)
OFFLOAD_GPU_KIND(unsigned, Integer)
OFFLOAD_GPU_KIND(long, Integer)
OFFLOAD_GPU_KIND(unsigned long, Integer)
OFFLOAD_GPU_KIND(long long, Integer)
OFFLOAD_GPU_KIND(unsigned long long, Integer)
OFFLOAD_GPU_KIND(float, Float)
OFFLOAD_GPU_KIND(double, Float)
#undef OFFLOAD_GPU_KIND

/* The address alone says the type: operands are converted to it. */
template <typename Value> struct itself {
  typedef Value type;
};
template <typename Value> using operand = typename itself<Value>::type;

/* Integers with the size of a value, whose bits are exchanged and compared. */
template <__SIZE_TYPE__ size> struct unsigned_of {
  typedef unsigned type;
};
template <> struct unsigned_of<8> {
  typedef unsigned long long type;
};
template <typename Value> using bits = typename unsigned_of<sizeof(Value)>::type;

} // namespace offload_gpu

/* clang's builtins. On NVIDIA no release of LLVM writes scopes for them: `atom` without one is for the device. */
#if defined(__HIP__)
#define OFFLOAD_GPU_ATOMIC(operation, address, value)                                                                  \
  __hip_atomic_##operation(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#define OFFLOAD_GPU_EXCHANGE(address, value) OFFLOAD_GPU_ATOMIC(exchange, address, value)
#define OFFLOAD_GPU_COMPARE(address, expected, value)                                                                  \
  __hip_atomic_compare_exchange_strong(address, expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,                   \
                                       __HIP_MEMORY_SCOPE_AGENT)
#else
#define OFFLOAD_GPU_ATOMIC(operation, address, value) __atomic_##operation(address, value, __ATOMIC_RELAXED)
#define OFFLOAD_GPU_EXCHANGE(address, value) OFFLOAD_GPU_ATOMIC(exchange_n, address, value)
#define OFFLOAD_GPU_COMPARE(address, expected, value)                                                                  \
  __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#endif

template <typename Value> OFFLOAD_GPU_INLINE Value atomicAdd(Value *address, offload_gpu::operand<Value> value) {
  static_assert(offload_gpu::kind<Value>::value != 0, "atomicAdd takes integers of 4 and 8 bytes, float and double");
  return OFFLOAD_GPU_ATOMIC(fetch_add, address, value);
}

/* clang 16 has no builtin of HIP that subtracts. */
template <typename Value> OFFLOAD_GPU_INLINE Value atomicSub(Value *address, offload_gpu::operand<Value> value) {
  static_assert(offload_gpu::kind<Value>::value == offload_gpu::Integer, "atomicSub takes integers of 4 and 8 bytes");
  typedef offload_gpu::bits<Value> Bits;
  return Value(OFFLOAD_GPU_ATOMIC(fetch_add, (Bits *)address, Bits(0) - Bits(value)));
}

#define OFFLOAD_GPU_INTEGER(name, operation)                                                                           \
  template <typename Value> OFFLOAD_GPU_INLINE Value name(Value *address, offload_gpu::operand<Value> value) {         \
    static_assert(offload_gpu::kind<Value>::value == offload_gpu::Integer, #name " takes integers of 4 and 8 bytes");  \
    return OFFLOAD_GPU_ATOMIC(operation, address, value);                                                              \
  }
OFFLOAD_GPU_INTEGER(atomicMin, fetch_min)
OFFLOAD_GPU_INTEGER(atomicMax, fetch_max)
OFFLOAD_GPU_INTEGER(atomicAnd, fetch_and)
OFFLOAD_GPU_INTEGER(atomicOr, fetch_or)
OFFLOAD_GPU_INTEGER(atomicXor, fetch_xor)
#undef OFFLOAD_GPU_INTEGER

template <typename Value> OFFLOAD_GPU_INLINE Value atomicExch(Value *address, offload_gpu::operand<Value> value) {
  static_assert(offload_gpu::kind<Value>::value != 0, "atomicExch takes integers of 4 and 8 bytes, float and double");
  typedef offload_gpu::bits<Value> Bits;
  Bits found = OFFLOAD_GPU_EXCHANGE((Bits *)address, __builtin_bit_cast(Bits, value));
  return __builtin_bit_cast(Value, found);
}

template <typename Value>
OFFLOAD_GPU_INLINE Value atomicCAS(Value *address, offload_gpu::operand<Value> compare,
                                   offload_gpu::operand<Value> value) {
  static_assert(offload_gpu::kind<Value>::value != 0, "atomicCAS takes integers of 4 and 8 bytes, float and double");
  typedef offload_gpu::bits<Value> Bits;
  Bits found = __builtin_bit_cast(Bits, compare);
  OFFLOAD_GPU_COMPARE((Bits *)address, &found, __builtin_bit_cast(Bits, value));
  return __builtin_bit_cast(Value, found);
}

#undef OFFLOAD_GPU_ATOMIC
#undef OFFLOAD_GPU_EXCHANGE
#undef OFFLOAD_GPU_COMPARE
