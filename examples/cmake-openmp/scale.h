#pragma once

/* Multiplies each element by `factor`, on a device. Returns 0 if the host computed. */
int scale(double factor, double *x, int count);

/* A device function of another file: the device link joins them. */
#pragma omp declare target
double product(double x, double y);
#pragma omp end declare target
