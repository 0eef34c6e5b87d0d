#include "vectors.h"

void vectors_axpy(double a, const double *x, double *y, size_t count) {
#pragma omp target teams distribute parallel for map(to : x[:count]) map(tofrom : y[:count])
  for (size_t i = 0; i < count; i++)
    y[i] += a * x[i];
}
