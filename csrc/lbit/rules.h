// What each op demands of its inputs, attributes and tensors, and the form of what it gives. One function per
// op in a table; adding an op is one row there, one in plan.cpp if it can be fused, one in lowering.cpp.
#pragma once

#include "lbit/network.h"

namespace latentbit {

// Checks layers in order and fills in what they read and give; PackedFileError names the first problem.
void check_layers(Network& network);
// All ops, in the order of the format's table, and the version of the format that they came with.
std::vector<std::pair<std::string, std::string>> op_versions();
// The lowest version of the format that can hold a network, so that older readers take what they know.
std::string version_of(const Network& network);

}  // namespace latentbit
