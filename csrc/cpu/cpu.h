// Which instruction sets this process may use: what the CPU has and the OS saves.
#pragma once

#include <string>
#include <vector>

namespace latentbit {

// Names in the order they were found, e.g. {"avx2", "fma"}; empty where only portable code runs.
std::vector<std::string> cpu_features();

}  // namespace latentbit
