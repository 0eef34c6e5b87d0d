#include "../kernels/vectors.h"

#include <stdio.h>

/* No device code is here: all of it comes out of the library. */
int main(void) {
  double x[100], y[100];
  for (int i = 0; i < 100; i++) {
    x[i] = i;
    y[i] = 2;
  }
  vectors_double(x, 100);
  double dot = vectors_dot(x, y, 100);
  printf("dot product on a device: %g, right: %s\n", dot, dot == 19800 ? "yes" : "no");
  return dot != 19800;
}
