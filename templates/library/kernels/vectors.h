#pragma once
#include <stddef.h>

/* y += a * x, on a device. Both have `count` elements. */
void vectors_axpy(double a, const double *x, double *y, size_t count);

/* The sum of x[i] * y[i], on a device. */
double vectors_dot(const double *x, const double *y, size_t count);
