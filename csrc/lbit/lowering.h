// From the steps of a plan to a program: value numbers, arrays, epilogues.
#pragma once

#include "lbit/network.h"
#include "program.h"

namespace latentbit {

// The program that computes the network. It copies what it needs: the network may go. Throws
// std::invalid_argument for kernels or a number of threads that cannot be had, std::bad_alloc.
std::unique_ptr<Program> lower(const Network& network, const std::string& isa, int threads);

}  // namespace latentbit
