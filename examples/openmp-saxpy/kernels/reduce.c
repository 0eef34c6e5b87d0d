#include "kernels.h"

#pragma omp begin declare target
/* A global that lives on the device and on the host, and a function that both call. */
double weight = 1.0;
double weighted(double x) { return weight * x; }
#pragma omp end declare target

/* The sum of weight * x[i], reduced on the device. */
double weighted_sum(double new_weight, const double *x, size_t count) {
  double sum = 0;
  weight = new_weight;
#pragma omp target update to(weight)
#pragma omp target teams distribute parallel for map(to : x[:count]) reduction(+ : sum)
  for (size_t i = 0; i < count; i++)
    sum += weighted(x[i]);
  return sum;
}

/* Doubles every element: the struct is mapped, and what its pointer points to. */
void double_all(struct vector *v) {
#pragma omp target teams distribute parallel for map(to : v[:1]) map(tofrom : v->data[ : v->count])
  for (size_t i = 0; i < v->count; i++)
    v->data[i] *= 2;
}
