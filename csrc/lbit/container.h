// The safetensors container, read with suspicion: 8 bytes of header length, JSON header, tensor bytes.
#pragma once

#include "lbit/network.h"

namespace latentbit {

struct Container {
  Json metadata;  // an object of texts
  Tensors tensors;
};

// The metadata and the tensors in the bytes of a file, every byte accounted for.
Container open_container(const char* bytes, size_t n);

}  // namespace latentbit
