/* Included in front of CUDA code that clang compiles with a toolkit, for the host and for devices: what host code has with
   nvcc and lacks with clang. nvcc includes <time.h>, and clang's own header gives `min` and `max` to device code alone.

   These are templates, so a source's functions and templates of these names are preferred. The first parameter takes no type, so
   `min<int>(a, b)` is never one of them. */
#pragma once
#pragma clang system_header

#include <time.h>

#if __cplusplus >= 201103L
template <bool> struct __offload_if {};
template <> struct __offload_if<true> {
  template <class T> using type = T;
};
/* Not `__is_arithmetic`: libstdc++ has a class of that name, and clang before 19 then takes it for the class. */
template <class T> struct __offload_is_number {
  static constexpr bool value = __is_integral(T) || __is_floating_point(T);
};
/* The type of a sum is that of nvcc's overloads, as `unsigned int min(int, unsigned int)`. */
#define OFFLOAD_HOST_FUNCTION(name, relation)                                                                         \
  template <decltype(nullptr) = nullptr, class A, class B>                                                            \
  __attribute__((host)) constexpr typename __offload_if<                                                              \
      __offload_is_number<A>::value && __offload_is_number<B>::value>::template type<decltype(A() + B())>             \
  name(A a, B b) {                                                                                                    \
    using type = decltype(a + b);                                                                                     \
    return static_cast<type>(a) relation static_cast<type>(b) ? static_cast<type>(a) : static_cast<type>(b);          \
  }
OFFLOAD_HOST_FUNCTION(min, <)
OFFLOAD_HOST_FUNCTION(max, >)
#undef OFFLOAD_HOST_FUNCTION

#include <offload/toolkit/cache_hints.h>
#endif
