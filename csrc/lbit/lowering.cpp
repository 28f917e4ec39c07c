#include "lbit/lowering.h"

#include <cstring>
#include <stdexcept>

#include "lbit/limits.h"
#include "lbit/plan.h"
#include "steps/steps.h"

namespace latentbit {
namespace {

int size_of(int64_t size) { return static_cast<int>(size); }  // the rules keep sizes within kMaxNumbers

float float_of_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, exponent = half >> 10 & 0x1F;
  uint32_t fraction = half & 0x3FF, bits;
  if (exponent) {  // finite: the rules refuse 31
    bits = sign | (exponent + 112) << 23 | fraction << 13;
  } else {
    const float tiny = static_cast<float>(fraction) * 0x1p-24f;
    std::memcpy(&bits, &tiny, sizeof bits);
    bits |= sign;
  }
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// float32 weights, whatever the file holds.
class RealWeights {
 public:
  explicit RealWeights(const Layer& layer) {
    const Tensor& weight = layer.tensor("weight");
    if (weight.dtype == Dtype::f32) {
      data_ = weight.as<float>();
      return;
    }
    const int64_t n = weight.count(), row = n / weight.shape[0];
    converted_.resize(n);
    if (weight.dtype == Dtype::f16)
      for (int64_t i = 0; i < n; ++i) converted_[i] = float_of_half(weight.as<uint16_t>()[i]);
    else
      for (int64_t i = 0; i < n; ++i)
        converted_[i] =
            static_cast<float>(weight.as<int8_t>()[i]) * layer.tensor("weight_scale").as<float>()[i / row];
    data_ = converted_.data();
  }
  const float* data() const { return data_; }

 private:
  std::vector<float> converted_;
  const float* data_;
};

template <size_t n>
std::array<int, n> sizes(const Layer& layer, const char* attribute) {
  std::array<int, n> found{};
  const Json* values = layer.attributes.find(attribute);
  for (size_t i = 0; values && i < n; ++i) found[i] = size_of(values->items()[i].as_integer());
  return found;
}

Geometry slides(const Layer& layer, std::array<int, 2> kernel, std::array<int, 2> dilation) {
  return {kernel, sizes<2>(layer, "stride"), dilation, sizes<4>(layer, "padding")};
}
Geometry convolution(const Layer& layer, int64_t kernel_h, int64_t kernel_w) {
  return slides(layer, {size_of(kernel_h), size_of(kernel_w)}, sizes<2>(layer, "dilation"));
}
Geometry pooling(const Layer& layer) { return slides(layer, sizes<2>(layer, "kernel"), {1, 1}); }

int groups_of(const Layer& layer) { return size_of(layer.attributes.find("groups")->as_integer()); }

template <typename T>
void copy(const Layer& layer, const char* role, std::vector<T>& to) {
  if (!layer.has(role)) return;
  const Tensor& tensor = layer.tensor(role);
  to.assign(tensor.as<T>(), tensor.as<T>() + tensor.count());
}

// Sets the bits of flipped channels; the finish is padded.
void copy_flip(const Layer& layer, FinishSpec& finish) {
  if (!layer.has("flip")) return;
  const Tensor& flip = layer.tensor("flip");
  for (int64_t c = 0; c < flip.count(); ++c)
    finish.flip[c / kWordBits] |= static_cast<uint64_t>(flip.as<uint8_t>()[c]) << (c % kWordBits);
}

void set_activation(const Layer& layer, FinishSpec& finish) {
  finish.activation = layer.op == "relu"    ? Activation::relu
                      : layer.op == "prelu" ? Activation::prelu
                                            : Activation::clamp;
  copy(layer, "slope", finish.slope);
  if (finish.activation != Activation::clamp) return;
  const bool limited = layer.op == "clamp";  // or hardtanh
  finish.low = limited ? static_cast<float>(layer.attributes.find("low")->as_double()) : -1;
  finish.high = limited ? static_cast<float>(layer.attributes.find("high")->as_double()) : 1;
}

Curve curve_of(const std::string& op) {
  if (op == "sigmoid") return Curve::sigmoid;
  if (op == "silu") return Curve::silu;
  if (op == "hard_sigmoid") return Curve::hard_sigmoid;
  return Curve::hard_swish;
}

class Lowering {
 public:
  Lowering(const Network& network, const std::string& isa, int threads)
      : network_(network),
        program_(std::make_unique<Program>(isa, threads, size_of(network.input[0]), size_of(network.input[1]),
                                           size_of(network.input[2]), kMaxBytes)),
        reals_(network.layers.size() + 1, kNone),
        bits_(network.layers.size() + 1, kNone) {
    Pixels pixels = program_->pixels();
    if (network.mean) pixels.mean.assign(network.mean->begin(), network.mean->end());
    if (network.std) pixels.std.assign(network.std->begin(), network.std->end());
    program_->set_pixels(pixels);
    for (const PlannedStep& step : plan(network)) add(step);
    program_->set_output(planar(static_cast<int>(network.layers.size()) - 1));
  }

  std::unique_ptr<Program> program() { return std::move(program_); }

 private:
  const Layer& layer(int i) const { return network_.layers[i]; }

  // A new value for what a layer gives.
  int fresh(int i, bool bits) {
    const Shape& shape = network_.form(i).shape;
    const bool map = shape.size() == 3;
    const int id = program_->add_value(
        {bits, size_of(shape[0]), map ? size_of(shape[1]) : 1, map ? size_of(shape[2]) : 1});
    (bits ? bits_ : reals_)[i + 1] = id;
    return id;
  }

  // The value of a layer; the input, which is planar, is copied for those who want channels last.
  int read(int i) {
    if (i == kNetworkInput && reals_[0] == kNone) {
      const int copy = fresh(i, false);
      add_named("input", channels_last_step(*program_, copy));
    }
    return (network_.form(i).bits ? bits_ : reals_)[i + 1];
  }

  // The output: a map leaves as (C, H, W), in the order of a flattened one.
  int planar(int i) {
    const Shape& shape = layer(i).form.shape;
    if (shape.size() == 1) return read(i);
    const int flat = program_->add_value({false, size_of(shape[0] * shape[1] * shape[2]), 1, 1});
    add_named(layer(i).name, flatten_step(*program_, read(i), flat));
    return flat;
  }

  void add_named(const std::string& name, std::unique_ptr<Step> step) {
    step->name = name;
    program_->add(std::move(step));
  }

  // What a chain does to the result of a step; `scaled`, if given, is the layer with the first scale and
  // bias.
  FinishSpec finish_of(const Chain& chain, bool real, const Layer* scaled = nullptr) {
    FinishSpec finish;
    finish.channels = size_of(network_.form(chain.value).shape[0]);
    if (chain.affine != kNoLayer) scaled = &layer(chain.affine);
    if (scaled) {
      copy(*scaled, "scale", finish.scale);
      copy(*scaled, "bias", finish.bias);
      if (finish.scale.empty()) finish.scale.assign(finish.bias.size(), 1);
    }
    if (chain.residual != kNoLayer) {
      finish.residual = read(chain.residual);
      finish.residual_channels = size_of(network_.form(chain.residual).shape[0]);
    }
    if (chain.activation != kNoLayer) set_activation(layer(chain.activation), finish);
    if (real) finish.real = fresh(chain.value, false);
    if (chain.sign != kNoLayer) {
      finish.bits = fresh(chain.sign, true);
      copy(layer(chain.sign), "threshold", finish.threshold);
    }
    finish.pad();
    if (chain.sign != kNoLayer) copy_flip(layer(chain.sign), finish);
    return finish;
  }

  void add(const PlannedStep& step) {
    using Add = void (Lowering::*)(const PlannedStep&);
    struct Op {
      const char* name;
      Add add;
    };
    static constexpr Op kOps[] = {
        {"conv", &Lowering::real_conv},
        {"linear", &Lowering::real_conv},
        {"binary_conv", &Lowering::binary},
        {"binary_linear", &Lowering::binary},
        {"max_pool", &Lowering::max_pool},
        {"avg_pool", &Lowering::avg_pool},
        {"global_avg_pool", &Lowering::global_avg_pool},
        {"adaptive_avg_pool", &Lowering::adaptive_avg_pool},
        {"conv_transpose", &Lowering::conv_transpose},
        {"resize", &Lowering::resize},
        {"sigmoid", &Lowering::curve},
        {"silu", &Lowering::curve},
        {"hard_sigmoid", &Lowering::curve},
        {"hard_swish", &Lowering::curve},
        {"multiply", &Lowering::multiply},
        {"reshape", &Lowering::reshape},
        {"permute", &Lowering::permute},
        {"concat", &Lowering::concat},
        {"flatten", &Lowering::flatten},
        {"sign", &Lowering::sign},
    };
    for (const Op& op : kOps)
      if (layer(step.layer).op == op.name) return (this->*op.add)(step);
    elementwise(step);
  }

  void binary(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    const Tensor& bits = its.tensor("bits");
    FinishSpec finish;
    if (its.form.bits) {
      finish.channels = size_of(its.form.shape[0]);
      finish.bits = fresh(step.layer, true);
      copy(its, "threshold", finish.dot_threshold);
      finish.pad();
      copy_flip(its, finish);
    } else {
      finish = finish_of(step.chain, step.chain.keep, &its);
    }
    const bool map = its.op == "binary_conv";
    const Geometry geometry = map ? convolution(its, bits.shape[1], bits.shape[2]) : Geometry{};
    const int input = read(its.sources[0]);
    add_named(its.name, binary_step(*program_, input, bits.as<uint64_t>(), size_of(bits.shape[0]),
                                    map ? groups_of(its) : 1, geometry, std::move(finish)));
  }

  void real_conv(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    const Tensor& weight = its.tensor("weight");
    const bool map = its.op == "conv", on_input = its.sources[0] == kNetworkInput;
    const int input = on_input ? kInput : read(its.sources[0]);
    const Shape& shape = its.form.shape;
    const bool one_pixel = shape.size() == 1 || (shape[1] == 1 && shape[2] == 1);
    const bool is_pooled = step.pool != kNoLayer;
    FinishSpec finish = finish_of(step.chain, !is_pooled && (step.chain.keep || one_pixel));
    Pooled pooled;
    if (is_pooled) pooled = {pooling(layer(step.pool)), finish_of(step.pool_chain, step.pool_chain.keep)};
    const Geometry geometry = map ? convolution(its, weight.shape[2], weight.shape[3]) : Geometry{};
    ByteWeights bytes{};
    const bool in_bytes = weight.dtype == Dtype::i8 && map && on_input;
    if (in_bytes) bytes = {weight.as<int8_t>(), its.tensor("weight_scale").as<float>()};
    const RealWeights weights(its);
    add_named(its.name,
              conv_step(*program_, input, weights.data(), its.tensor("bias").as<float>(),
                        size_of(weight.shape[0]), map ? groups_of(its) : 1, geometry, std::move(finish),
                        is_pooled ? &pooled : nullptr, in_bytes ? &bytes : nullptr));
  }

  void max_pool(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    const int input = read(its.sources[0]);
    if (its.form.bits)
      return add_named(its.name, bits_pool_step(*program_, input, pooling(its), fresh(step.layer, true)));
    FinishSpec finish = finish_of(step.chain, step.chain.keep);
    add_named(its.name, max_pool_step(*program_, input, pooling(its), std::move(finish)));
  }

  void avg_pool(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    average(step, pooling(its), its.attributes.find("count_include_pad")->is_true());
  }

  void global_avg_pool(const PlannedStep& step) {
    const Shape& shape = network_.form(layer(step.layer).sources[0]).shape;
    Geometry geometry;
    geometry.kernel = {size_of(shape[1]), size_of(shape[2])};
    average(step, geometry, false);
  }

  void average(const PlannedStep& step, const Geometry& geometry, bool count_include_pad) {
    const Layer& its = layer(step.layer);
    const int input = read(its.sources[0]);
    FinishSpec finish = finish_of(step.chain, step.chain.keep);
    add_named(its.name, avg_pool_step(*program_, input, geometry, count_include_pad, std::move(finish)));
  }

  void adaptive_avg_pool(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    const int input = read(its.sources[0]);
    FinishSpec finish = finish_of(step.chain, step.chain.keep);
    const auto size = sizes<2>(its, "size");
    add_named(its.name, adaptive_pool_step(*program_, input, size[0], size[1], std::move(finish)));
  }

  // A 1x1 convolution gives what every tap makes of every pixel; then they are summed where they belong.
  void conv_transpose(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    const Shape& weight = its.tensor("weight").shape;
    const int groups = groups_of(its);
    const int64_t per_group = weight[0] / groups, n_in = weight[1], n_taps = weight[2] * weight[3];
    const int n_spread = size_of(weight[0] * n_taps);
    std::vector<float> taps(static_cast<size_t>(n_spread) * n_in), zeros(n_spread);
    const RealWeights weights(its);
    for (int64_t o = 0; o < weight[0]; ++o)
      for (int64_t i = 0; i < n_in; ++i)
        for (int64_t t = 0; t < n_taps; ++t)
          taps[((o / per_group * n_taps + t) * per_group + o % per_group) * n_in + i] =
              weights.data()[(o * n_in + i) * n_taps + t];
    const Shape& in = network_.form(its.sources[0]).shape;
    const int input = its.sources[0] == kNetworkInput ? kInput : read(its.sources[0]);
    FinishSpec spread;
    spread.channels = n_spread;
    spread.real = program_->add_value({false, n_spread, size_of(in[1]), size_of(in[2])});
    spread.pad();
    const int value = spread.real;
    add_named(its.name, conv_step(*program_, input, taps.data(), zeros.data(), n_spread, groups, Geometry{},
                                  std::move(spread), nullptr));
    const auto padding = sizes<2>(its, "padding"), size = sizes<2>(its, "size");
    Geometry geometry;
    geometry.kernel = {size_of(weight[2]), size_of(weight[3])};
    geometry.stride = sizes<2>(its, "stride");
    geometry.dilation = sizes<2>(its, "dilation");
    geometry.padding = {padding[0], padding[1], 0, 0};
    FinishSpec finish = finish_of(step.chain, step.chain.keep, &its);
    add_named(its.name,
              sum_taps_step(*program_, value, groups, geometry, size[0], size[1], std::move(finish)));
  }

  Places places(const Layer& its, const std::string& axis) const {
    Places places;
    copy(its, axis.c_str(), places.from);
    copy(its, (axis + "_share").c_str(), places.share);
    return places;
  }

  void resize(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    const int input = read(its.sources[0]);
    FinishSpec finish = finish_of(step.chain, step.chain.keep);
    add_named(its.name,
              resize_step(*program_, input, places(its, "row"), places(its, "column"), std::move(finish)));
  }

  void curve(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    const int input = read(its.sources[0]);
    FinishSpec finish = finish_of(step.chain, step.chain.keep);
    add_named(its.name, curve_step(*program_, input, curve_of(its.op), std::move(finish)));
  }

  void multiply(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    const int first = read(its.sources[0]), second = read(its.sources[1]);
    FinishSpec finish = finish_of(step.chain, step.chain.keep);
    add_named(its.name, multiply_step(*program_, first, second, std::move(finish)));
  }

  void reshape(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    const int input = read(its.sources[0]);
    add_named(its.name, reshape_step(*program_, input, fresh(step.layer, false)));
  }

  void permute(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    const int input = read(its.sources[0]);
    add_named(its.name, permute_step(*program_, input, sizes<3>(its, "order"), fresh(step.layer, false)));
  }

  void concat(const PlannedStep& step) {
    std::vector<int> inputs;
    for (int source : layer(step.layer).sources) inputs.push_back(read(source));
    const int output = fresh(step.layer, false);
    add_named(layer(step.layer).name, concat_step(*program_, inputs, output));
  }

  void flatten(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    const int input = read(its.sources[0]);
    add_named(its.name, flatten_step(*program_, input, fresh(step.layer, its.form.bits)));
  }

  void sign(const PlannedStep& step) {
    const Layer& its = layer(step.layer);
    if (its.sources[0] != kNetworkInput) return elementwise(step);
    add_named(its.name, sign_input_step(*program_, finish_of(step.chain, step.chain.keep)));
  }

  void elementwise(const PlannedStep& step) {
    const int input = read(layer(step.layer).sources[0]);
    FinishSpec finish = finish_of(step.chain, step.chain.keep);
    add_named(layer(step.layer).name, finish_step(*program_, input, std::move(finish)));
  }

  const Network& network_;
  std::unique_ptr<Program> program_;
  std::vector<int> reals_, bits_;  // value numbers by layer, the input in front
};

}  // namespace

std::unique_ptr<Program> lower(const Network& network, const std::string& isa, int threads) {
  if (threads < 1 || threads > kMaxThreads)
    throw std::invalid_argument("threads must be from 1 to " + std::to_string(kMaxThreads));
  return Lowering(network, isa, threads).program();
}

}  // namespace latentbit
