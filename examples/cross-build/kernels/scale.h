#pragma once

#include <stddef.h>

/* Multiplies each element by `factor`, on a device if there is one. */
void scale(double factor, double *x, size_t count);
