#include <omp.h>

/* x + 1, computed on a device; -1 on the host. */
int second_run(int x) {
#pragma omp target map(tofrom : x)
  x = omp_is_initial_device() ? -1 : x + 1;
  return x;
}
