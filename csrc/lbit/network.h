// A packed network: layers in topological order over two kinds of values, real (float32) and bits. Once it is
// made it was checked: what runs it can trust it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lbit/json.h"

namespace latentbit {

using Shape = std::vector<int64_t>;

enum class Dtype { f32, f16, i32, i8, u8, u64, other };
constexpr int kItemBytes[] = {4, 2, 4, 1, 1, 8, 0};
constexpr const char* kDtypeNames[] = {"F32", "F16", "I32", "I8", "U8", "U64", ""};
inline int item_bytes(Dtype dtype) { return kItemBytes[static_cast<int>(dtype)]; }

struct Tensor {  // a view: somebody else owns the numbers, which are little-endian, aligned and without gaps
  Dtype dtype = Dtype::other;
  Shape shape;
  const void* data = nullptr;
  std::string other;  // what it is, if it is none of the above; such a tensor fits no layer

  int64_t count() const {
    int64_t n = 1;
    for (int64_t size : shape) n *= size;
    return n;
  }
  const char* dtype_name() const {
    return dtype == Dtype::other ? other.c_str() : kDtypeNames[static_cast<int>(dtype)];
  }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
};
// By name, in the order of the file.
using Tensors = std::vector<std::pair<std::string, Tensor>>;

struct Form {  // of a value: (C, H, W) or (C), and whether it is bits
  Shape shape;
  bool bits = false;
};
inline bool operator==(const Form& a, const Form& b) { return a.shape == b.shape && a.bits == b.bits; }

constexpr int kNetworkInput = -1;  // as the number of a layer

struct Layer {
  std::string op, name;
  Json inputs;               // a list of names
  std::vector<int> sources;  // the same as numbers of layers
  Json attributes;           // the entry of the file: an object that holds op, name and inputs too
  std::map<std::string, Tensor> tensors;  // by role
  Form form;                              // of what it gives

  bool has(const std::string& role) const { return tensors.count(role) > 0; }
  const Tensor& tensor(const std::string& role) const { return tensors.at(role); }
};

struct Network {
  Shape input;  // channels, height, width
  std::vector<Layer> layers;
  std::optional<std::vector<std::string>> classes;
  std::optional<std::vector<double>> mean, std;
  Json source;  // an object, or null

  std::string description;              // the JSON text that all this comes from
  std::shared_ptr<const void> content;  // holds what the tensors are views of; null if somebody else does

  Form input_form;  // as if it were a layer

  const Form& form(int layer) const { return layer == kNetworkInput ? input_form : layers[layer].form; }
};

// What a file of that name holds. PackedFileError does not name the file.
Network network_in_file(const std::string& path);
// What the content of a file holds. The bytes belong to somebody else, who keeps them as long as the network
// lives. If they are not aligned for 64-bit words, the network takes a copy.
Network network_in_memory(const void* bytes, size_t n);
// The same, always with a copy of its own.
Network network_in_copy(const void* bytes, size_t n);
// A network that is not in a file: its description in JSON and its tensors.
Network network_of(std::string description, const Tensors& tensors);

// To how many pixels training scaled the short side of an image; 0 if the notes do not say.
int resize_of(const Network& network);

}  // namespace latentbit
