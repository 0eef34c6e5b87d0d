#include <omp.h>

/* Defined by the crate `first`. */
#pragma omp begin declare target
int first_twice(int x);
#pragma omp end declare target

/* 2 * x + 1 with a device function of another crate; -1 on the host. */
int second_joined(int x) {
#pragma omp target map(tofrom : x)
  x = omp_is_initial_device() ? -1 : first_twice(x) + 1;
  return x;
}
