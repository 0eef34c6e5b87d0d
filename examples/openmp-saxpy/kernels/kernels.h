#ifndef KERNELS_H
#define KERNELS_H

#include <stddef.h>

struct vector {
  double *data;
  size_t count;
};

int saxpy(float a, const float *x, float *y, size_t count);
double weighted_sum(double weight, const double *x, size_t count);
void double_all(struct vector *v);

#endif
