#include "scale.h"

#include <stdio.h>

double product(double x, double y) { return x * y; }

int main(void) {
  double x[] = {1, 2, 3};
  int on_device = scale(2, x, 3);
  printf("%s: %g %g %g\n", on_device ? "on a device" : "on the host", x[0], x[1], x[2]);
  return !on_device;
}
