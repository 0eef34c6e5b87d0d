/* In front of glibc's own header of this name, where clang compiles OpenMP for NVIDIA GPUs: they have no type of 128 bits. From
   2.41 on, glibc's header takes each clang for one that has such a type, and defines a complex one; clang before 22 refuses that
   (`unsupported machine mode '__TC__'`). It knows one compiler without the type, by these two macros. */
#pragma once
#pragma clang system_header

#if defined __NVPTX__ && !defined __INTEL_LLVM_COMPILER && !defined SYCL_LANGUAGE_VERSION
#define __INTEL_LLVM_COMPILER
#define SYCL_LANGUAGE_VERSION
#include_next <bits/floatn.h>
#undef __INTEL_LLVM_COMPILER
#undef SYCL_LANGUAGE_VERSION
#else
#include_next <bits/floatn.h>
#endif
