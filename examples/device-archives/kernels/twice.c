#include "vectors.h"

/* A function of the device, called by kernels in other files: the device link joins them. */
double vectors_twice(double value) { return 2 * value; }
