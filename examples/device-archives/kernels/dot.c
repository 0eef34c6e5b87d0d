#include "vectors.h"

#include <omp.h>

double vectors_dot(const double *x, const double *y, size_t count) {
  double sum = 0;
  int on_host = 0;
#pragma omp target teams distribute parallel for map(to : x[:count], y[:count]) reduction(+ : sum)
  for (size_t i = 0; i < count; i++)
    sum += x[i] * y[i];
#pragma omp target map(from : on_host)
  on_host = omp_is_initial_device();
  return on_host ? __builtin_nan("") : sum;
}

void vectors_double(double *x, size_t count) {
#pragma omp target teams distribute parallel for map(tofrom : x[:count])
  for (size_t i = 0; i < count; i++)
    x[i] = vectors_twice(x[i]);
}
