#include "vectors.hpp"

#include <omp.h>

bool vectors::scale(double factor, double *x, std::size_t count) {
  int on_host = 1;
#pragma omp target map(from : on_host)
  on_host = omp_is_initial_device();
#pragma omp target teams distribute parallel for map(tofrom : x[ : count])
  for (std::size_t i = 0; i < count; i++)
    x[i] *= factor;
  return !on_host;
}
