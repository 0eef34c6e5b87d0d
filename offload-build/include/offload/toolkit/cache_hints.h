/* Loads and stores with a hint for the cache, which nvcc has and clang lacks: __ldca, __ldlu, __stwb, __stcg, __stcs. Functions
   of these names for one type, as in <cuda_fp16.h>, are preferred to these templates.

   Each type of NVIDIA's overloads is aligned to its size, so the size tells the instruction: "PTX ISA", "Cache Operators". The
   memory is global, as for NVIDIA's. */
#pragma once
#pragma clang system_header

/* The second argument of a store takes no part in the deduction of the type. */
template <class T> struct __offload_same {
  using type = T;
};

/* For values of `size` bytes in one register of the constraint `kind`. */
#define OFFLOAD_LOAD(name, hint, size, integer, kind, width)                                                          \
  template <class T>                                                                                                  \
  __attribute__((device)) inline typename __offload_if<sizeof(T) == size>::template type<T> name(const T *from) {     \
    integer value;                                                                                                    \
    asm volatile("ld.global." hint "." width " %0, [%1];" : "=" kind(value) : "l"(from) : "memory");                  \
    T result;                                                                                                         \
    __builtin_memcpy(&result, &value, size);                                                                          \
    return result;                                                                                                    \
  }
#define OFFLOAD_STORE(name, hint, size, integer, kind, width)                                                         \
  template <class T>                                                                                                  \
  __attribute__((device)) inline typename __offload_if<sizeof(T) == size>::template type<void> name(                  \
      T *to, typename __offload_same<T>::type from) {                                                                 \
    integer value = 0;                                                                                                \
    __builtin_memcpy(&value, &from, size);                                                                            \
    asm volatile("st.global." hint "." width " [%0], %1;" ::"l"(to), kind(value) : "memory");                         \
  }
/* For 16 bytes, in two registers. */
#define OFFLOAD_LOAD_PAIR(name, hint)                                                                                 \
  template <class T>                                                                                                  \
  __attribute__((device)) inline typename __offload_if<sizeof(T) == 16>::template type<T> name(const T *from) {       \
    unsigned long long values[2];                                                                                     \
    asm volatile("ld.global." hint ".v2.b64 {%0, %1}, [%2];"                                                          \
                 : "=l"(values[0]), "=l"(values[1])                                                                   \
                 : "l"(from)                                                                                          \
                 : "memory");                                                                                         \
    T result;                                                                                                         \
    __builtin_memcpy(&result, values, 16);                                                                            \
    return result;                                                                                                    \
  }
#define OFFLOAD_STORE_PAIR(name, hint)                                                                                \
  template <class T>                                                                                                  \
  __attribute__((device)) inline typename __offload_if<sizeof(T) == 16>::template type<void> name(                    \
      T *to, typename __offload_same<T>::type from) {                                                                 \
    unsigned long long values[2];                                                                                     \
    __builtin_memcpy(values, &from, 16);                                                                              \
    asm volatile("st.global." hint ".v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(values[0]), "l"(values[1]) : "memory");   \
  }
#define OFFLOAD_SIZES(one, pair, name, hint)                                                                          \
  one(name, hint, 1, unsigned int, "r", "b8") one(name, hint, 2, unsigned short, "h", "b16")                          \
      one(name, hint, 4, unsigned int, "r", "b32") one(name, hint, 8, unsigned long long, "l", "b64") pair(name, hint)

OFFLOAD_SIZES(OFFLOAD_LOAD, OFFLOAD_LOAD_PAIR, __ldca, "ca")
OFFLOAD_SIZES(OFFLOAD_LOAD, OFFLOAD_LOAD_PAIR, __ldlu, "lu")
OFFLOAD_SIZES(OFFLOAD_STORE, OFFLOAD_STORE_PAIR, __stwb, "wb")
OFFLOAD_SIZES(OFFLOAD_STORE, OFFLOAD_STORE_PAIR, __stcg, "cg")
OFFLOAD_SIZES(OFFLOAD_STORE, OFFLOAD_STORE_PAIR, __stcs, "cs")

#undef OFFLOAD_SIZES
#undef OFFLOAD_STORE_PAIR
#undef OFFLOAD_LOAD_PAIR
#undef OFFLOAD_STORE
#undef OFFLOAD_LOAD
