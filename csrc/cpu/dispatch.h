// Which kernels run here.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace latentbit {

// Names of the instruction sets this machine can run, best first.
std::vector<std::string> available();

// The kernels of that name; throws std::invalid_argument if this machine can not run them.
const Kernels& kernels_named(const std::string& name);

}  // namespace latentbit
