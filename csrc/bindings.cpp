// The Python face of the native code: arrays in, arrays out, sizes checked, exceptions translated.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>

#include "cpu.h"
#include "dispatch.h"
#include "peak.h"
#include "program.h"
#include "steps.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace latentbit;

namespace {

template <typename T>
using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutArray = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <typename T>
std::vector<T> copied(const std::optional<Array<T>>& array, int channels, const char* what) {
  if (!array) return {};
  if (array->ndim() != 1 || array->shape(0) != static_cast<size_t>(channels))
    throw std::invalid_argument(std::string(what) + ": one value per channel is needed");
  return {array->data(), array->data() + channels};
}

Activation activation_named(const std::string& name) {
  if (name == "none") return Activation::none;
  if (name == "relu") return Activation::relu;
  if (name == "prelu") return Activation::prelu;
  if (name == "clamp") return Activation::clamp;
  throw std::invalid_argument("no activation '" + name + "'");
}

FinishSpec make_finish(int channels, int real, int bits, int residual, int residual_channels,
                       std::optional<Array<float>> scale, std::optional<Array<float>> bias,
                       const std::string& activation, std::optional<Array<float>> slope, float low,
                       float high, std::optional<Array<float>> threshold,
                       std::optional<Array<int32_t>> dot_threshold, std::optional<Array<uint8_t>> flip) {
  if (channels < 1) throw std::invalid_argument("a finish needs channels");
  FinishSpec f;
  f.channels = channels;
  f.real = real;
  f.bits = bits;
  f.residual = residual;
  f.residual_channels = residual_channels;
  f.scale = copied(scale, channels, "scale");
  f.bias = copied(bias, channels, "bias");
  f.activation = activation_named(activation);
  f.slope = copied(slope, channels, "slope");
  f.low = low;
  f.high = high;
  f.threshold = copied(threshold, channels, "threshold");
  f.dot_threshold = copied(dot_threshold, channels, "dot_threshold");
  f.pad();
  const std::vector<uint8_t> flipped = copied(flip, channels, "flip");
  for (size_t c = 0; c < flipped.size(); ++c)
    f.flip[c / kWordBits] |= static_cast<uint64_t>(flipped[c] != 0) << (c % kWordBits);
  return f;
}

void need_shape(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

// Whether the sizes of an array from `axis` on are these.
template <typename Any>
bool has_sizes(const Any& array, size_t axis, std::initializer_list<int> sizes) {
  for (int size : sizes)
    if (array.shape(axis++) != static_cast<size_t>(size)) return false;
  return true;
}

void add_named(Program& program, const std::string& name, std::unique_ptr<Step> step) {
  step->name = name;
  program.add(std::move(step));
}

void add_binary(Program& program, const std::string& name, int input, Array<uint64_t> weights, int groups,
                const Geometry& g, const FinishSpec& finish) {
  need_shape(weights.ndim() == 4 && weights.shape(0) <= kMaxNumbers, "binary weights are [O, kh, kw, words]");
  const int out = static_cast<int>(weights.shape(0)), in = program.value(input).channels;
  need_shape(groups >= 1 && in % groups == 0 &&
                 has_sizes(weights, 1, {g.kernel[0], g.kernel[1], words_for(in / groups)}),
             "binary weights do not fit their input");
  add_named(program, name, binary_step(program, input, weights.data(), out, groups, g, finish));
}

void add_conv(Program& program, const std::string& name, int input, Array<float> weights, Array<float> bias,
              int groups, const Geometry& g, const FinishSpec& finish, std::optional<Pooled> pooled,
              std::optional<Array<int8_t>> byte_weights, std::optional<Array<float>> byte_scale) {
  need_shape(weights.ndim() == 4 && weights.shape(0) <= kMaxNumbers, "weights are [O, I, kh, kw]");
  const int out = static_cast<int>(weights.shape(0)), in = program.value(input).channels;
  need_shape(
      groups >= 1 && in % groups == 0 && has_sizes(weights, 1, {in / groups, g.kernel[0], g.kernel[1]}),
      "weights do not fit their input");
  need_shape(bias.ndim() == 1 && has_sizes(bias, 0, {out}), "bias does not fit its weights");
  ByteWeights bytes{};
  if (byte_weights) {
    need_shape(byte_scale && byte_scale->ndim() == 1 && has_sizes(*byte_scale, 0, {out}) &&
                   byte_weights->ndim() == 4 &&
                   has_sizes(*byte_weights, 0, {out, in / groups, g.kernel[0], g.kernel[1]}),
               "weights in bytes do not fit");
    bytes = {byte_weights->data(), byte_scale->data()};
  }
  add_named(program, name,
            conv_step(program, input, weights.data(), bias.data(), out, groups, g, finish,
                      pooled ? &*pooled : nullptr, byte_weights ? &bytes : nullptr));
}

Curve curve_named(const std::string& name) {
  if (name == "sigmoid") return Curve::sigmoid;
  if (name == "silu") return Curve::silu;
  if (name == "hard_sigmoid") return Curve::hard_sigmoid;
  if (name == "hard_swish") return Curve::hard_swish;
  throw std::invalid_argument("no activation '" + name + "'");
}

Places make_places(const Array<int32_t>& from, const Array<float>& share) {
  need_shape(from.ndim() == 1 && share.ndim() == 1, "places are a vector");
  return {{from.data(), from.data() + from.shape(0)}, {share.data(), share.data() + share.shape(0)}};
}

template <typename Images>
void check_run(const Program& program, const Images& images, bool channels_last, const OutArray<float>& out) {
  const Value& in = program.value(kInput);
  const Value& result = program.value(program.output());
  need_shape(images.ndim() == 4 && (channels_last ? has_sizes(images, 1, {in.height, in.width, in.channels})
                                                  : has_sizes(images, 1, {in.channels, in.height, in.width})),
             "images do not fit the network's input");
  need_shape(!result.bits && out.size() == images.shape(0) * result.bytes() / sizeof(float),
             "out does not fit");
  need_shape(images.shape(0) >= 1 && images.shape(0) <= (1 << 16), "the batch is empty or too large");
}

std::vector<double> run(Program& program, Array<float> images, OutArray<float> out, bool timed) {
  check_run(program, images, false, out);
  std::vector<double> times;
  nb::gil_scoped_release release;
  program.run(images.data(), static_cast<int>(images.shape(0)), out.data(), timed ? &times : nullptr);
  return times;
}

std::vector<double> run_bytes(Program& program, Array<uint8_t> images, bool channels_last,
                              OutArray<float> out, bool timed) {
  check_run(program, images, channels_last, out);
  std::vector<double> times;
  nb::gil_scoped_release release;
  program.run(images.data(), channels_last, static_cast<int>(images.shape(0)), out.data(),
              timed ? &times : nullptr);
  return times;
}

std::vector<std::tuple<std::string, std::string, std::string>> steps(const Program& program) {
  std::vector<std::tuple<std::string, std::string, std::string>> names;
  for (const auto& step : program.steps())
    names.emplace_back(step->name, step->op, step->isa ? step->isa : program.kernels().name);
  return names;
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Native code of latentbit.";
  m.def("cpu_features", &cpu_features, "Instruction sets that this CPU has and its OS saves.");
  m.def("available", &available, "Kernels that can run here, best first.");
  m.def("peak", &binary_peak, "isa"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Binary multiply-adds per nanosecond of the inner loop alone, its data in the L1 cache.");

  nb::class_<Geometry>(m, "Geometry")
      .def(
          "__init__",
          [](Geometry* g, std::array<int, 2> kernel, std::array<int, 2> stride, std::array<int, 4> padding,
             std::array<int, 2> dilation) { new (g) Geometry{kernel, stride, dilation, padding}; },
          "kernel"_a, "stride"_a, "padding"_a, "dilation"_a);
  nb::class_<FinishSpec>(m, "Finish")
      .def(
          "__init__",
          [](FinishSpec* f, int channels, int real, int bits, int residual, int residual_channels,
             std::optional<Array<float>> scale, std::optional<Array<float>> bias,
             const std::string& activation, std::optional<Array<float>> slope, float low, float high,
             std::optional<Array<float>> threshold, std::optional<Array<int32_t>> dot_threshold,
             std::optional<Array<uint8_t>> flip) {
            new (f) FinishSpec(make_finish(channels, real, bits, residual, residual_channels, scale, bias,
                                           activation, slope, low, high, threshold, dot_threshold, flip));
          },
          "channels"_a, nb::kw_only(), "real"_a = kNone, "bits"_a = kNone, "residual"_a = kNone,
          "residual_channels"_a = 0, "scale"_a = nb::none(), "bias"_a = nb::none(), "activation"_a = "none",
          "slope"_a = nb::none(), "low"_a = 0, "high"_a = 0, "threshold"_a = nb::none(),
          "dot_threshold"_a = nb::none(), "flip"_a = nb::none());
  nb::class_<Pooled>(m, "Pooled")
      .def(
          "__init__", [](Pooled* p, const Geometry& g, const FinishSpec& f) { new (p) Pooled{g, f}; },
          "geometry"_a, "finish"_a);
  nb::class_<Program>(m, "Program")
      .def(
          "__init__",
          [](Program* p, const std::string& isa, int threads, int channels, int height, int width,
             size_t max_bytes) {
            if (threads < 1 || threads > 1024) throw std::invalid_argument("threads must be from 1 to 1024");
            new (p) Program(isa, threads, channels, height, width, max_bytes);
          },
          "isa"_a, "threads"_a, "channels"_a, "height"_a, "width"_a, "max_bytes"_a)
      .def(
          "value",
          [](Program& p, bool bits, int channels, int height, int width) {
            return p.add_value({bits, channels, height, width});
          },
          "bits"_a, "channels"_a, "height"_a, "width"_a)
      .def("binary", &add_binary, "name"_a, "input"_a, "weights"_a, "groups"_a, "geometry"_a, "finish"_a)
      .def("conv", &add_conv, "name"_a, "input"_a, "weights"_a, "bias"_a, "groups"_a, "geometry"_a,
           "finish"_a, "pooled"_a = nb::none(), "byte_weights"_a = nb::none(), "byte_scale"_a = nb::none())
      .def(
          "max_pool",
          [](Program& p, const std::string& name, int input, const Geometry& g, const FinishSpec& f) {
            add_named(p, name, max_pool_step(p, input, g, f));
          },
          "name"_a, "input"_a, "geometry"_a, "finish"_a)
      .def(
          "avg_pool",
          [](Program& p, const std::string& name, int input, const Geometry& g, bool include,
             const FinishSpec& f) { add_named(p, name, avg_pool_step(p, input, g, include, f)); },
          "name"_a, "input"_a, "geometry"_a, "count_include_pad"_a, "finish"_a)
      .def(
          "bits_pool",
          [](Program& p, const std::string& name, int input, const Geometry& g, int output) {
            add_named(p, name, bits_pool_step(p, input, g, output));
          },
          "name"_a, "input"_a, "geometry"_a, "output"_a)
      .def(
          "finish",
          [](Program& p, const std::string& name, int input, const FinishSpec& f) {
            add_named(p, name, finish_step(p, input, f));
          },
          "name"_a, "input"_a, "finish"_a)
      .def(
          "concat",
          [](Program& p, const std::string& name, const std::vector<int>& inputs, int output) {
            add_named(p, name, concat_step(p, inputs, output));
          },
          "name"_a, "inputs"_a, "output"_a)
      .def(
          "flatten",
          [](Program& p, const std::string& name, int input, int output) {
            add_named(p, name, flatten_step(p, input, output));
          },
          "name"_a, "input"_a, "output"_a)
      .def(
          "activation",
          [](Program& p, const std::string& name, int input, const std::string& curve, const FinishSpec& f) {
            add_named(p, name, curve_step(p, input, curve_named(curve), f));
          },
          "name"_a, "input"_a, "curve"_a, "finish"_a)
      .def(
          "multiply",
          [](Program& p, const std::string& name, int input, int by, const FinishSpec& f) {
            add_named(p, name, multiply_step(p, input, by, f));
          },
          "name"_a, "input"_a, "by"_a, "finish"_a)
      .def(
          "resize",
          [](Program& p, const std::string& name, int input, Array<int32_t> rows, Array<float> row_shares,
             Array<int32_t> columns, Array<float> column_shares, const FinishSpec& f) {
            add_named(
                p, name,
                resize_step(p, input, make_places(rows, row_shares), make_places(columns, column_shares), f));
          },
          "name"_a, "input"_a, "rows"_a, "row_shares"_a, "columns"_a, "column_shares"_a, "finish"_a)
      .def(
          "adaptive_avg_pool",
          [](Program& p, const std::string& name, int input, std::array<int, 2> size, const FinishSpec& f) {
            add_named(p, name, adaptive_pool_step(p, input, size[0], size[1], f));
          },
          "name"_a, "input"_a, "size"_a, "finish"_a)
      .def(
          "sum_taps",
          [](Program& p, const std::string& name, int input, int groups, const Geometry& g,
             std::array<int, 2> size, const FinishSpec& f) {
            add_named(p, name, sum_taps_step(p, input, groups, g, size[0], size[1], f));
          },
          "name"_a, "input"_a, "groups"_a, "geometry"_a, "size"_a, "finish"_a)
      .def(
          "reshape",
          [](Program& p, const std::string& name, int input, int output) {
            add_named(p, name, reshape_step(p, input, output));
          },
          "name"_a, "input"_a, "output"_a)
      .def(
          "permute",
          [](Program& p, const std::string& name, int input, std::array<int, 3> order, int output) {
            add_named(p, name, permute_step(p, input, order, output));
          },
          "name"_a, "input"_a, "order"_a, "output"_a)
      .def(
          "sign_input",
          [](Program& p, const std::string& name, const FinishSpec& f) {
            add_named(p, name, sign_input_step(p, f));
          },
          "name"_a, "finish"_a)
      .def(
          "channels_last",
          [](Program& p, const std::string& name, int output) {
            add_named(p, name, channels_last_step(p, output));
          },
          "name"_a, "output"_a)
      .def(
          "set_output",
          [](Program& p, int value) {
            if (p.value(value).bits || value == kInput)
              throw std::invalid_argument("the output must be real");
            p.set_output(value);
          },
          "value"_a)
      .def(
          "set_pixels",
          [](Program& p, const std::vector<float>& mean, const std::vector<float>& std) {
            p.set_pixels({mean, std});
          },
          "mean"_a, "std"_a)
      .def("run", &run, "images"_a, "out"_a, "timed"_a = false)
      .def("run_bytes", &run_bytes, "images"_a, "channels_last"_a, "out"_a, "timed"_a = false)
      .def_prop_ro("takes_bytes",
                   [](const Program& p) {
                     for (const auto& step : p.steps())
                       if (step->takes_bytes()) return true;
                     return false;
                   })
      .def_prop_ro("steps", &steps)
      .def_prop_ro("isa", [](const Program& p) { return p.kernels().name; })
      .def_prop_ro("threads", &Program::threads)
      .def_prop_ro("arena_bytes", &Program::arena_bytes);
}
