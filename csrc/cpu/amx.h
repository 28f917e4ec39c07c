// AMX, the tiles of bytes of newer Intel servers: whether it may be used, and for which layers it is.
#pragma once

#include "kernels/kernels.h"

namespace latentbit {

// Asks the system for the tile registers, once, and tries an instruction: some virtual machines announce AMX
// and stop a program that uses it. False if either is refused; the CPU must have announced AMX.
bool amx_granted();

// The faster of `amx_kernels` and `avx512_kernels` for a layer, timed on a part of it the first time one of
// its shape is asked for. Both give the same result.
const Kernels& amx_or_avx512(const BinaryShape&);

// In kernels/avx512_amx.cpp, compiled for AMX.
BinaryKernels<uint16_t> amx_binary_kernels();
bool amx_computes();  // a product of tiles is what it should be

}  // namespace latentbit
