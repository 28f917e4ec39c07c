// How fast the inner loop of the binary kernels can go on this CPU.
#pragma once

#include <string>

namespace latentbit {

// Best of many short runs of `count` on one band whose weights, tables and counts stay in the L1 cache.
double binary_peak(const std::string& isa);

}  // namespace latentbit
