#ifndef VECTORS_H
#define VECTORS_H

#include <stddef.h>

/* The dot product of x and y; NaN when it was not computed on a device. */
double vectors_dot(const double *x, const double *y, size_t count);

/* Doubles every element, on the device. */
void vectors_double(double *x, size_t count);

/* For kernels, of this library and of others. */
#pragma omp declare target
double vectors_twice(double value);
#pragma omp end declare target

#endif
