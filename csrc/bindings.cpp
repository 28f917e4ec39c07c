// The Python face of the native code: arrays in, arrays out, sizes checked, exceptions translated.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "cpu/cpu.h"
#include "cpu/dispatch.h"
#include "cpu/peak.h"
#include "lbit/limits.h"
#include "lbit/lowering.h"
#include "lbit/network.h"
#include "lbit/packed_file_error.h"
#include "lbit/plan.h"
#include "lbit/rules.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace latentbit;

namespace {

template <typename T>
using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutArray = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A tensor that Python has: its name, dtype, shape, and bytes (none if the format has no such dtype).
using GivenTensor = std::tuple<std::string, std::string, Shape, Bytes>;

Network network_of_arrays(const std::string& description, const std::vector<GivenTensor>& given) {
  Tensors tensors;
  auto kept = std::make_shared<std::vector<Bytes>>();
  for (const auto& [name, dtype, shape, bytes] : given) {
    Tensor tensor;
    tensor.shape = shape;
    tensor.data = bytes.data();
    tensor.other = dtype;
    for (int i = 0; i < static_cast<int>(Dtype::other); ++i)
      if (dtype == kDtypeNames[i]) tensor.dtype = static_cast<Dtype>(i);
    const auto item = static_cast<size_t>(item_bytes(tensor.dtype));
    if (bytes.size() != item * static_cast<size_t>(tensor.count()) ||
        (bytes.size() && reinterpret_cast<uintptr_t>(tensor.data) % item))
      throw std::invalid_argument("tensor " + name + ": its bytes do not fit its shape");
    kept->push_back(bytes);
    tensors.emplace_back(name, std::move(tensor));
  }
  Network network = network_of(description, tensors);
  network.content = std::move(kept);
  return network;
}

// (layer, role, dtype, shape, bytes) of every tensor; the bytes are views that keep the network alive.
nb::list tensors_of(nb::object self) {
  const auto& network = nb::cast<const Network&>(self);
  nb::list found;
  for (size_t i = 0; i < network.layers.size(); ++i)
    for (const auto& [role, tensor] : network.layers[i].tensors) {
      const size_t n = static_cast<size_t>(tensor.count() * item_bytes(tensor.dtype));
      found.append(
          nb::make_tuple(i, role, tensor.dtype_name(), tensor.shape,
                         nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>(tensor.data, {n}, self)));
    }
  return found;
}

std::vector<std::tuple<Shape, bool>> forms_of(const Network& network) {
  std::vector<std::tuple<Shape, bool>> forms;
  for (const Layer& layer : network.layers) forms.emplace_back(layer.form.shape, layer.form.bits);
  return forms;
}

nb::object name_of(const Network& network, int layer) {
  if (layer == kNoLayer) return nb::none();
  return nb::cast(layer == kNetworkInput ? std::string("input") : network.layers[layer].name);
}

nb::dict chain_of(const Network& network, const Chain& chain) {
  nb::dict names;
  names["affine"] = name_of(network, chain.affine);
  names["add"] = name_of(network, chain.add);
  names["residual"] = name_of(network, chain.residual);
  names["activation"] = name_of(network, chain.activation);
  names["sign"] = name_of(network, chain.sign);
  names["value"] = name_of(network, chain.value);
  names["repeat"] = chain.repeat;
  names["keep"] = chain.keep;
  return names;
}

nb::list plan_of(const Network& network) {
  nb::list steps;
  for (const PlannedStep& step : plan(network)) {
    nb::dict found;
    nb::list layers;
    for (int layer : step.layers()) layers.append(name_of(network, layer));
    found["layer"] = name_of(network, step.layer);
    found["layers"] = layers;
    found["chain"] = chain_of(network, step.chain);
    found["pool"] = name_of(network, step.pool);
    found["pool_chain"] = chain_of(network, step.pool_chain);
    steps.append(found);
  }
  return steps;
}

nb::dict limits() {
  nb::dict found;
  found["file_bytes"] = kMaxFileBytes;
  found["header_bytes"] = kMaxHeaderBytes;
  found["layers"] = kMaxLayers;
  found["bytes"] = kMaxBytes;
  found["numbers"] = kMaxNumbers;
  found["products"] = kMaxProducts;
  found["taps"] = kMaxTaps;
  found["size"] = kMaxSize;
  found["threads"] = kMaxThreads;
  found["batch"] = kMaxBatch;
  return found;
}

void need(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

template <typename Images>
bool has_sizes(const Images& images, std::initializer_list<int> sizes) {
  size_t axis = 1;
  for (int size : sizes)
    if (images.shape(axis++) != static_cast<size_t>(size)) return false;
  return true;
}

template <typename Images>
void check_run(const Program& program, const Images& images, bool channels_last, const OutArray<float>& out) {
  const Value& in = program.value(kInput);
  const Value& result = program.value(program.output());
  need(images.ndim() == 4 && (channels_last ? has_sizes(images, {in.height, in.width, in.channels})
                                            : has_sizes(images, {in.channels, in.height, in.width})),
       "images do not fit the network's input");
  need(out.size() == images.shape(0) * result.bytes() / sizeof(float), "out does not fit");
  need(images.shape(0) >= 1 && images.shape(0) <= kMaxBatch, "the batch is empty or too large");
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

bool takes_bytes(const Program& program) {
  for (const auto& step : program.steps())
    if (step->takes_bytes()) return true;
  return false;
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
  nb::exception<PackedFileError>(m, "PackedFileError", PyExc_ValueError);
  m.def("cpu_features", &cpu_features, "Instruction sets that this CPU has and its OS saves.");
  m.def("available", &available, "Kernels that can run here, best first.");
  m.def("peak", &binary_peak, "isa"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Binary multiply-adds per nanosecond of the inner loop alone, its data in the L1 cache.");
  m.def("ops", &op_versions,
        "Ops that a packed network may hold, and the version of the format they came with.");
  m.def("limits", &limits, "How much a packed network may ask for.");
  m.def("is_printable", &is_printable, "text"_a, "Whether a name may hold this text.");

  nb::class_<Network>(m, "Network")
      .def_static(
          "in_file",
          [](nb::bytes path) {
            const std::string name(path.c_str(), path.size());
            nb::gil_scoped_release release;
            return network_in_file(name);
          },
          "path"_a, "The network in a file, fully checked.")
      .def_static(
          "in_bytes", [](nb::bytes content) { return network_in_copy(content.c_str(), content.size()); },
          "content"_a)
      .def_static("of", &network_of_arrays, "description"_a, "tensors"_a,
                  "A network of its description in JSON and its tensors: (name, dtype, shape, bytes).")
      .def_prop_ro("description", [](const Network& n) { return n.description; })
      .def_prop_ro("version", &version_of, "The lowest version of the format that can hold it.")
      .def_prop_ro("forms", &forms_of, "(shape, bits) of what each layer gives.")
      .def_prop_ro("tensors", [](nb::object self) { return tensors_of(self); })
      .def_prop_ro("plan", &plan_of, "Which layers run together.");

  nb::class_<Program>(m, "Program")
      .def(nb::new_([](const Network& network, const std::string& isa, int threads) {
             nb::gil_scoped_release release;
             return lower(network, isa, threads);
           }),
           "network"_a, "isa"_a, "threads"_a)
      .def("run", &run, "images"_a, "out"_a, "timed"_a = false)
      .def("run_bytes", &run_bytes, "images"_a, "channels_last"_a, "out"_a, "timed"_a = false)
      .def_prop_ro("takes_bytes", &takes_bytes)
      .def_prop_ro("steps", &steps)
      .def_prop_ro("isa", [](const Program& p) { return p.kernels().name; })
      .def_prop_ro("threads", &Program::threads)
      .def_prop_ro("weight_bytes", &Program::weight_bytes)
      .def_prop_ro("scratch_bytes", &Program::scratch_bytes)
      .def_prop_ro("arena_bytes", &Program::arena_bytes);
}
