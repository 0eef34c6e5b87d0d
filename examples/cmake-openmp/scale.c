#include "scale.h"

#include <omp.h>

int scale(double factor, double *x, int count) {
  int on_host = 1;
#pragma omp target map(from : on_host)
  on_host = omp_is_initial_device();
#pragma omp target teams distribute parallel for map(tofrom : x[:count])
  for (int i = 0; i < count; i++)
    x[i] = product(factor, x[i]);
  return !on_host;
}
