#include "scale.h"
#include <stdio.h>

int main(int argc, char **argv) {
  double x[] = {1, 2, 3};
  scale(2, x, 3);
  printf("%s: %g %g %g\n", argc > 0 ? argv[0] : "", x[0], x[1], x[2]);
  return 0;
}
