#include "scale.h"
#include <stdio.h>

int main(void) {
  double x[] = {1, 2, 3};
  scale(2, x, 3);
  printf("%g %g %g\n", x[0], x[1], x[2]);
  return 0;
}
