#pragma once

#include <cstddef>

namespace vectors {

/* Multiplies each element by `factor`, on a device. Returns false if the host computed. */
bool scale(double factor, double *x, std::size_t count);

}
