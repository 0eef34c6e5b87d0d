/* A C program with a target region of its own that links the Rust staticlib: two registrations in one program,
   or, under offload-link, one device link for both. */
#include <omp.h>

int openmp_saxpy_check(void);

int main(void) {
  int on_device = 0;
#pragma omp target map(from : on_device)
  on_device = !omp_is_initial_device();
  return openmp_saxpy_check() + !on_device;
}
