#include "vectors.h"

double vectors_dot(const double *x, const double *y, size_t count) {
  double sum = 0;
#pragma omp target teams distribute parallel for map(to : x[:count], y[:count]) reduction(+ : sum)
  for (size_t i = 0; i < count; i++)
    sum += x[i] * y[i];
  return sum;
}
