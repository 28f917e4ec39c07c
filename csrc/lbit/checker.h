// One layer under examination: the questions that the rules of all ops ask, and how they fail.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "kernels/bits.h"
#include "lbit/limits.h"
#include "lbit/network.h"
#include "lbit/packed_file_error.h"

namespace latentbit {

constexpr double kMaxFloat = std::numeric_limits<float>::max();
constexpr int64_t kAny = -1;  // as a size that a tensor is to have

inline int64_t words_of(int64_t n_bits) { return (n_bits + kWordBits - 1) / kWordBits; }

inline Wide product(const Shape& shape, size_t from = 0) {
  Wide n = 1;
  for (size_t i = from; i < shape.size(); ++i) n *= shape[i];
  return n;
}

inline std::string listed_or_any(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + (shape[i] == kAny ? "any" : std::to_string(shape[i]));
  return text + "]";
}

inline bool all_finite(const Tensor& tensor) {
  const int64_t n = tensor.count();
  if (tensor.dtype == Dtype::f32) {
    const auto* bits = tensor.as<uint32_t>();
    uint32_t most = 0;  // without a branch, for the compiler to vectorise
    for (int64_t i = 0; i < n; ++i) most = std::max(most, bits[i] & 0x7FFFFFFFu);
    return most < 0x7F800000u;
  }
  const auto* bits = tensor.as<uint16_t>();
  uint16_t most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max<uint16_t>(most, bits[i] & 0x7FFF);
  return most < 0x7C00;
}

// Whether every bit past the last value of each row is 0.
inline bool tail_is_clear(const Tensor& words, int64_t n_bits) {
  const int used = static_cast<int>(n_bits % kWordBits);
  if (used == 0) return true;
  const int64_t row = words.shape.back(), n = words.count();
  for (int64_t i = row - 1; i < n; i += row)
    if (words.as<uint64_t>()[i] >> used) return false;
  return true;
}

// One layer under examination. Whatever it holds that no check asked for is refused at the end.
class Checker {
 public:
  Checker(const Layer& its_layer, std::vector<Form> its_inputs)
      : layer(its_layer), inputs(std::move(its_inputs)) {}

  const Layer& layer;
  const std::vector<Form> inputs;
  Cost cost;

  [[noreturn]] void fail(const std::string& reason) const {
    throw PackedFileError("layer " + quoted(layer.name) + " (" + layer.op + "): " + reason);
  }

  void finish() const {
    std::set<std::string> extra;  // in order
    for (const std::string& key : layer.attributes.keys())
      if (!asked_.count(key) && key != "op" && key != "name" && key != "inputs") extra.insert(key);
    for (const auto& [role, tensor] : layer.tensors)
      if (!asked_.count(role)) extra.insert(role);
    if (extra.empty()) return;
    std::string names = first_letters(quoted(std::vector<std::string>(extra.begin(), extra.end())), 80);
    names.erase(0, 1);
    while (!names.empty() && names.back() == ']') names.pop_back();
    fail("has " + names + ", which the op does not know");
  }

  enum class Takes { real, bits, both };
  // The shape of the only input; rank 0 accepts any.
  const Shape& one(Takes takes = Takes::real, size_t rank = 0) const {
    if (inputs.size() != 1) fail("takes 1 input, has " + std::to_string(inputs.size()));
    const Form& input = inputs[0];
    if (takes != Takes::both && input.bits != (takes == Takes::bits))
      fail(std::string("its input must be ") + (takes == Takes::bits ? "bits" : "real") + ", " +
           layer.inputs.items()[0].shown(kWhole) + " is not");
    if (rank && input.shape.size() != rank)
      fail(std::string("its input must be a ") + (rank == 3 ? "map" : "vector") + ", not of shape " +
           listed(input.shape));
    return input.shape;
  }

  // An attribute by name; null if the layer has none.
  const Json* attribute(const std::string& name) {
    asked_.insert(name);
    return layer.attributes.find(name);
  }

  Shape integers(const std::string& name, size_t n, int64_t least) {
    const Json* values = attribute(name);
    if (!values || !values->is(Json::Kind::list) || values->items().size() != n)
      fail(name + " must list " + std::to_string(n) + " integers");
    Shape found;
    for (const Json& value : values->items()) {
      if (!value.is(Json::Kind::integer) || value.as_integer() < least || value.as_integer() > kMaxSize)
        fail(name + " " + values->shown(80) + " is out of range");
      found.push_back(value.as_integer());
    }
    return found;
  }

  int64_t integer(const std::string& name, int64_t least = 1) {
    const Json* value = attribute(name);
    if (!value || !value->is(Json::Kind::integer) || value->as_integer() < least ||
        value->as_integer() > kMaxSize)
      fail(name + " must be an integer of at least " + std::to_string(least));
    return value->as_integer();
  }

  double number(const std::string& name) {
    const Json* value = attribute(name);
    if (!value || !value->is_number() || !(std::abs(value->as_double()) <= kMaxFloat))
      fail(name + " must be a number that float32 holds");
    return value->as_double();
  }

  // The tensor of that role, with one of the dtypes and the shape; kAny accepts any size.
  const Tensor& tensor(const std::string& role, std::initializer_list<Dtype> dtypes, const Shape& shape) {
    asked_.insert(role);
    if (!layer.has(role)) fail("tensor " + quoted(role) + " is missing");
    const Tensor& found = layer.tensor(role);
    if (std::find(dtypes.begin(), dtypes.end(), found.dtype) == dtypes.end()) {
      std::string names;
      for (Dtype dtype : dtypes)
        names += (names.empty() ? "" : " or ") + std::string(kDtypeNames[static_cast<int>(dtype)]);
      fail("tensor " + quoted(role) + " is " + found.dtype_name() + ", expected " + names);
    }
    bool fits = found.shape.size() == shape.size();
    for (size_t i = 0; fits && i < shape.size(); ++i)
      fits = found.shape[i] > 0 && (shape[i] == kAny || shape[i] == found.shape[i]);
    if (!fits)
      fail("tensor " + quoted(role) + " has shape " + listed(found.shape) + ", expected " +
           listed_or_any(shape));
    if ((found.dtype == Dtype::f32 || found.dtype == Dtype::f16) && !all_finite(found))
      fail("tensor " + quoted(role) + " holds NaN or infinity");
    return found;
  }

  void flip(int64_t n) {
    const auto* flips = tensor("flip", {Dtype::u8}, {n}).as<uint8_t>();
    if (*std::max_element(flips, flips + n) > 1) fail("tensor 'flip' holds something other than 0 and 1");
  }

  struct Size {
    int64_t height, width;
  };
  // After sliding a kernel over `shape` with this layer's stride and padding.
  Size window(const Shape& shape, const Shape& kernel, const Shape& dilation = {1, 1}) {
    const Shape stride = integers("stride", 2, 1), padding = integers("padding", 4, 0);
    Shape extent, padded;
    for (int axis : {0, 1}) {
      extent.push_back(dilation[axis] * (kernel[axis] - 1) + 1);
      padded.push_back(shape[axis + 1] + padding[axis] + padding[axis + 2]);
    }
    // More padding than this would make outputs that see no input at all.
    for (int i = 0; i < 4; ++i)
      if (padding[i] > extent[i % 2])
        fail("padding " + listed(padding) + " is larger than the kernel, which extends over " +
             listed(extent));
    if (padded[0] < extent[0] || padded[1] < extent[1])
      fail("the kernel extends over " + listed(extent) + ", its padded input is only " + listed(padded));
    const Wide n_padded = product(padded) * shape[0];
    if (n_padded > kMaxNumbers)
      fail("its padded input is " + decimal(n_padded) + " numbers, more than " + std::to_string(kMaxNumbers));
    cost.padded_bytes = 4 * n_padded;
    return {(padded[0] - extent[0]) / stride[0] + 1, (padded[1] - extent[1]) / stride[1] + 1};
  }

  // Counts what the layer gives.
  void value(const Form& form) {
    const Wide n_numbers = product(form.shape);
    if (n_numbers > kMaxNumbers)
      fail("gives " + decimal(n_numbers) + " numbers, more than " + std::to_string(kMaxNumbers));
    cost.value_bytes = form.bits ? 8 * words_of(form.shape[0]) * product(form.shape, 1) : 4 * n_numbers;
  }

  int64_t groups(int64_t n_in, int64_t n_out) {
    const int64_t groups = integer("groups");
    if (n_in % groups || n_out % groups)
      fail("groups " + std::to_string(groups) + " does not divide " + std::to_string(n_in) + " input and " +
           std::to_string(n_out) + " output channels");
    return groups;
  }

  Wide taps(Wide n) const {
    if (n > kMaxTaps)
      fail("sums " + decimal(n) + " products per output, at most " + std::to_string(kMaxTaps) + " are exact");
    return n;
  }

  const Tensor& real_weight(const Shape& shape) {
    const Tensor& weight = tensor("weight", {Dtype::f32, Dtype::f16, Dtype::i8}, shape);
    if (weight.dtype == Dtype::i8) {
      const auto* scale = tensor("weight_scale", {Dtype::f32}, {weight.shape[0]}).as<float>();
      const int64_t row = weight.count() / weight.shape[0];
      double most = 0;
      for (int64_t o = 0; o < weight.shape[0]; ++o) {
        int largest = 0;
        for (int64_t i = 0; i < row; ++i)
          largest = std::max(largest, std::abs(int{weight.as<int8_t>()[o * row + i]}));
        most = std::max(most, largest * std::abs(static_cast<double>(scale[o])));
      }
      if (most > kMaxFloat) fail("tensor 'weight' times 'weight_scale' is more than float32 holds");
    }
    tensor("bias", {Dtype::f32}, {weight.shape[0]});
    return weight;
  }

  // Scale and bias make real values, threshold and flip make bits; whether it is bits.
  bool binary_output(int64_t n_out, Wide n_taps) {
    if (layer.has("threshold")) {
      const auto* threshold = tensor("threshold", {Dtype::i32}, {n_out}).as<int32_t>();
      const auto [least, most] = std::minmax_element(threshold, threshold + n_out);
      if (*least < -n_taps || *most > n_taps + 1)
        fail("tensor 'threshold' leaves [" + decimal(-n_taps) + ", " + decimal(n_taps + 1) +
             "], what a dot can be");
      flip(n_out);
      return true;
    }
    tensor("scale", {Dtype::f32}, {n_out});
    tensor("bias", {Dtype::f32}, {n_out});
    return false;
  }

 private:
  std::set<std::string> asked_;
};

}  // namespace latentbit
