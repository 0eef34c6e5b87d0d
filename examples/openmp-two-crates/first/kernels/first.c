#include <omp.h>

#pragma omp begin declare target
/* Called by kernels of other crates as well, when offload-link joins them. */
int first_twice(int x) { return 2 * x; }
#pragma omp end declare target

/* 2 * x, computed on a device; -1 on the host. */
int first_run(int x) {
#pragma omp target map(tofrom : x)
  x = omp_is_initial_device() ? -1 : first_twice(x);
  return x;
}
