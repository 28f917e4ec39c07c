// What each op demands of its inputs, attributes and tensors, and the form of what it gives. One function per
// op in a table; adding an op is one row there, one in plan.cpp if it can be fused, one in lowering.cpp.
#pragma once

#include "lbit/network.h"

namespace latentbit {

// Checks layers in order and fills in what they read and give; PackedFileError names the first problem.
void check_layers(Network& network);
// Names of all ops, in the order of the format's table.
std::vector<std::string> op_names();

}  // namespace latentbit
