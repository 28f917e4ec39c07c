// A packed file, or a network on its way into one, breaks a rule of docs/format.md.
#pragma once

#include <stdexcept>

namespace latentbit {

class PackedFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace latentbit
