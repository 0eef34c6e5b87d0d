#include <stddef.h>

double mean_on_device(const double *x, size_t count) {
  double sum = 0;
#pragma omp target teams distribute parallel for map(to : x[:count]) reduction(+ : sum)
  for (size_t i = 0; i < count; i++)
    sum += x[i];
  return sum / count;
}
