#include <vectors.hpp>

#include <iostream>

int main() {
  double x[] = {1, 2, 3};
  bool on_device = vectors::scale(2, x, 3);
  std::cout << (on_device ? "on a device: " : "on the host: ") << x[0] << " " << x[1] << " " << x[2] << "\n";
  return on_device ? 0 : 1;
}
