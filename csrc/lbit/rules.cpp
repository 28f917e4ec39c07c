#include "lbit/rules.h"

#include <algorithm>

#include "lbit/checker.h"

namespace latentbit {
namespace {

using Kind = Json::Kind;
using Takes = Checker::Takes;

Form conv(Checker& check) {
  const Shape& shape = check.one(Takes::real, 3);
  const int64_t n_in = shape[0];
  const Tensor& weight = check.real_weight({kAny, kAny, kAny, kAny});
  const int64_t n_out = weight.shape[0], per_group = weight.shape[1];
  const Shape kernel{weight.shape[2], weight.shape[3]};
  if (per_group * check.groups(n_in, n_out) != n_in)
    check.fail("weight of shape " + listed(weight.shape) + " does not fit " + std::to_string(n_in) +
               " input channels");
  const auto [height, width] = check.window(shape, kernel, check.integers("dilation", 2, 1));
  const Wide n_taps = check.taps(per_group * product(kernel));
  check.cost.products = n_taps * n_out * height * width;
  check.cost.weight_bytes = real_weight_bytes(n_out, n_in / per_group, n_taps);
  return {{n_out, height, width}, false};
}

Form conv_transpose(Checker& check) {
  const Shape& shape = check.one(Takes::real, 3);
  const int64_t n_in = shape[0];
  const Tensor& weight = check.real_weight({kAny, kAny, kAny, kAny});
  const int64_t n_out = weight.shape[0], per_group = weight.shape[1];
  const int64_t groups = check.groups(n_in, n_out);
  if (per_group * groups != n_in)
    check.fail("weight of shape " + listed(weight.shape) + " does not fit " + std::to_string(n_in) +
               " input channels");
  const Shape size = check.integers("size", 2, 1);
  check.integers("stride", 2, 1);
  check.integers("padding", 2, 0);
  check.integers("dilation", 2, 1);
  // Every tap of every pixel is computed first, then summed where it belongs.
  const Wide n_taps = product(weight.shape, 2), n_spread = n_out * n_taps * product(shape, 1);
  if (n_spread > kMaxNumbers)
    check.fail("its taps give " + decimal(n_spread) + " numbers, more than " + std::to_string(kMaxNumbers));
  check.cost.padded_bytes = 4 * n_spread;
  check.cost.products = n_spread * per_group + n_out * product(size) * n_taps;
  check.cost.weight_bytes = real_weight_bytes(n_out * n_taps, groups, check.taps(per_group * n_taps));
  return {{n_out, size[0], size[1]}, false};
}

Form linear(Checker& check) {
  const int64_t n_in = check.one(Takes::real, 1)[0];
  const int64_t n_out = check.real_weight({kAny, n_in}).shape[0];
  check.cost.products = check.taps(n_in) * n_out;
  check.cost.weight_bytes = real_weight_bytes(n_out, 1, n_in);
  return {{n_out}, false};
}

Form sign(Checker& check) {
  const Shape& shape = check.one();
  if (check.layer.has("threshold")) check.tensor("threshold", {Dtype::f32}, {shape[0]});
  if (check.layer.has("flip")) check.flip(shape[0]);
  return {shape, true};
}

Form binary_conv(Checker& check) {
  const Shape& shape = check.one(Takes::bits, 3);
  const int64_t n_in = shape[0], claimed = check.integer("in_channels");
  if (claimed != n_in)
    check.fail("in_channels is " + std::to_string(claimed) + ", its input has " + std::to_string(n_in));
  const Tensor& bits = check.tensor("bits", {Dtype::u64}, {kAny, kAny, kAny, kAny});
  const int64_t n_out = bits.shape[0], words = bits.shape[3];
  const Shape kernel{bits.shape[1], bits.shape[2]};
  const int64_t groups = check.groups(n_in, n_out), per_group = n_in / groups;
  if (words != words_of(per_group) || !tail_is_clear(bits, per_group))
    check.fail("tensor 'bits' must hold " + std::to_string(per_group) + " signs per row in " +
               std::to_string(words_of(per_group)) + " words, tail 0");
  const Wide n_taps = check.taps(per_group * product(kernel));
  const auto [height, width] = check.window(shape, kernel, check.integers("dilation", 2, 1));
  check.cost.products = n_taps * n_out * height * width;
  check.cost.weight_bytes = binary_weight_bytes(n_out, groups, per_group, product(kernel));
  return {{n_out, height, width}, check.binary_output(n_out, n_taps)};
}

Form binary_linear(Checker& check) {
  const int64_t n_in = check.one(Takes::bits, 1)[0], claimed = check.integer("in_features");
  if (claimed != n_in)
    check.fail("in_features is " + std::to_string(claimed) + ", its input has " + std::to_string(n_in));
  const Tensor& bits = check.tensor("bits", {Dtype::u64}, {kAny, words_of(n_in)});
  if (!tail_is_clear(bits, n_in))
    check.fail("tensor 'bits' must hold " + std::to_string(n_in) + " signs per row, tail 0");
  const int64_t n_out = bits.shape[0];
  check.cost.products = check.taps(n_in) * n_out;
  check.cost.weight_bytes = binary_weight_bytes(n_out, 1, n_in, 1);
  return {{n_out}, check.binary_output(n_out, n_in)};
}

Form affine(Checker& check) {
  const Shape& shape = check.one();
  check.tensor("scale", {Dtype::f32}, {shape[0]});
  check.tensor("bias", {Dtype::f32}, {shape[0]});
  return {shape, false};
}

Form prelu(Checker& check) {
  const Shape& shape = check.one();
  check.tensor("slope", {Dtype::f32}, {shape[0]});
  return {shape, false};
}

// An activation without numbers of its own.
Form activation(Checker& check) { return {check.one(), false}; }

Form clamp(Checker& check) {
  const double low = check.number("low"), high = check.number("high");
  if (low > high) check.fail("low is more than high");
  return {check.one(), false};
}

Form max_pool(Checker& check) {
  const Shape& shape = check.one(Takes::both, 3);
  const Shape kernel = check.integers("kernel", 2, 1);
  const auto [height, width] = check.window(shape, kernel);
  const Shape stride = check.integers("stride", 2, 1), padding = check.integers("padding", 4, 0);
  const Shape outputs{height, width};
  for (int axis : {0, 1})
    // Every window must see a value: the first must end, and the last begin, inside the map.
    if (padding[axis] >= kernel[axis] ||
        (outputs[axis] - 1) * stride[axis] - padding[axis] >= shape[axis + 1])
      check.fail("padding " + listed(padding) + " makes windows that see no value");
  check.cost.products = product(kernel) * shape[0] * height * width;
  return {{shape[0], height, width}, check.inputs[0].bits};
}

Form avg_pool(Checker& check) {
  const Json* include = check.attribute("count_include_pad");
  if (!include || !include->is(Kind::boolean)) check.fail("count_include_pad must be true or false");
  check.one();
  return max_pool(check);
}

Form adaptive_avg_pool(Checker& check) {
  const Shape& shape = check.one(Takes::real, 3);
  const Shape size = check.integers("size", 2, 1);
  // Windows of neighbours share at most one row and one column.
  check.cost.products = static_cast<Wide>(shape[1] + size[0]) * (shape[2] + size[1]) * shape[0];
  return {{shape[0], size[0], size[1]}, false};
}

Form resize(Checker& check) {
  const Shape& shape = check.one(Takes::real, 3);
  Shape result{shape[0]};
  for (int axis : {0, 1}) {
    const std::string name = axis == 0 ? "row" : "column";
    const int64_t limit = shape[axis + 1];
    const Tensor& at = check.tensor(name, {Dtype::i32}, {kAny});
    const int64_t n = at.shape[0];
    const auto* share = check.tensor(name + "_share", {Dtype::f32}, {n}).as<float>();
    const auto [first, last] = std::minmax_element(at.as<int32_t>(), at.as<int32_t>() + n);
    const auto [least, most] = std::minmax_element(share, share + n);
    if (*first < 0 || *last >= limit || *least < 0 || *most > 1)
      check.fail("tensor " + quoted(name) + " leaves [0, " + std::to_string(limit - 1) + "], or '" + name +
                 "_share' leaves [0, 1]");
    result.push_back(n);
  }
  return {result, false};
}

Form global_avg_pool(Checker& check) { return {{check.one(Takes::real, 3)[0]}, false}; }

Form flatten(Checker& check) {
  const Shape& shape = check.one(Takes::both, 3);
  return {{static_cast<int64_t>(product(shape))}, check.inputs[0].bits};  // a value: within kMaxNumbers
}

Form reshape(Checker& check) {
  const Shape& before = check.one();
  const Shape after = check.integers("size", 3, 1);
  if (product(after) != product(before)) check.fail("cannot make " + listed(after) + " of " + listed(before));
  return {after, false};
}

Form permute(Checker& check) {
  const Shape& shape = check.one(Takes::real, 3);
  const Shape order = check.integers("order", 3, 0);
  Shape sorted = order, result;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != Shape{0, 1, 2}) check.fail("order " + listed(order) + " is no order of the axes 0, 1 and 2");
  for (int64_t axis : order) result.push_back(shape[axis]);
  return {result, false};
}

// As a list in a message.
std::string shapes_of(const std::vector<Form>& inputs) {
  std::string shapes;
  for (const Form& input : inputs) shapes += (shapes.empty() ? "" : ", ") + listed(input.shape);
  return "[" + shapes + "]";
}

Form multiply(Checker& check) {
  const std::vector<Form>& inputs = check.inputs;
  const bool two = inputs.size() == 2 && !inputs[0].bits && !inputs[1].bits;
  if (!two || (inputs[1].shape != inputs[0].shape && inputs[1].shape != Shape{inputs[0].shape[0], 1, 1}))
    check.fail("takes 2 real inputs of one shape, or (C, H, W) and (C, 1, 1), has " + shapes_of(inputs));
  return inputs[0];
}

Form add(Checker& check) {
  const std::vector<Form>& inputs = check.inputs;
  if (inputs.size() != 2 || !(inputs[0] == inputs[1]) || inputs[0].bits)
    check.fail("takes 2 real inputs of one shape, has " + shapes_of(inputs));
  return inputs[0];
}

Form concat(Checker& check) {
  const std::vector<Form>& inputs = check.inputs;
  const Shape& first = inputs[0].shape;
  int64_t channels = 0;
  for (const Form& input : inputs) {
    if (inputs.size() < 2 || input.bits || input.shape.size() != 3 || first.size() != 3 ||
        input.shape[1] != first[1] || input.shape[2] != first[2])
      check.fail("takes 2 or more real maps of one height and width");
    channels += input.shape[0];
  }
  return {{channels, first[1], first[2]}, false};
}

struct Op {
  const char* name;
  Form (*rule)(Checker&);
  const char* version;  // of the format that it came with
};

constexpr Op kOps[] = {
    {"conv", conv, "1"},
    {"linear", linear, "1"},
    {"sign", sign, "1"},
    {"binary_conv", binary_conv, "1"},
    {"binary_linear", binary_linear, "1"},
    {"affine", affine, "1"},
    {"prelu", prelu, "1"},
    {"relu", activation, "1"},
    {"hardtanh", activation, "1"},
    {"max_pool", max_pool, "1"},
    {"avg_pool", avg_pool, "1"},
    {"global_avg_pool", global_avg_pool, "1"},
    {"flatten", flatten, "1"},
    {"add", add, "1"},
    {"concat", concat, "1"},
    {"clamp", clamp, "2"},
    {"sigmoid", activation, "2"},
    {"silu", activation, "2"},
    {"hard_sigmoid", activation, "2"},
    {"hard_swish", activation, "2"},
    {"multiply", multiply, "2"},
    {"conv_transpose", conv_transpose, "2"},
    {"resize", resize, "2"},
    {"adaptive_avg_pool", adaptive_avg_pool, "2"},
    {"reshape", reshape, "2"},
    {"permute", permute, "2"},
};

const Op* op_named(const std::string& name) {
  for (const Op& op : kOps)
    if (name == op.name) return &op;
  return nullptr;
}

// Names that are taken, and the layers that bear them.
using Named = std::map<std::string, int>;

// Checks one layer and fills it in; returns what it costs.
Checker check_layer(const Network& network, Layer& layer, const Named& named) {
  if (!is_printable(layer.name) || layer.name.empty() || n_letters(layer.name) > kMaxName)
    throw PackedFileError("layer name " + first_letters(quoted(layer.name), 80) + " is not 1 to " +
                          std::to_string(kMaxName) + " printable letters");
  const std::string which = "layer " + quoted(layer.name) + ": ";
  const Op* op = op_named(layer.op);
  if (!op) throw PackedFileError(which + "unknown op " + first_letters(quoted(layer.op), 40));
  if (named.count(layer.name))
    throw PackedFileError(which + "the name is taken by an earlier layer or the input");
  const std::vector<Json>& names = layer.inputs.items();
  if (names.empty() || names.size() > kMaxInputs)
    throw PackedFileError(which + std::to_string(names.size()) + " inputs, not 1 to " +
                          std::to_string(kMaxInputs));
  std::vector<Form> inputs;
  for (const Json& name : names) {
    const auto found = name.is(Kind::text) ? named.find(name.as_text()) : named.end();
    if (found == named.end())
      throw PackedFileError(which + "its input " + name.shown(80) + " is no earlier layer");
    layer.sources.push_back(found->second);
    inputs.push_back(network.form(found->second));
  }
  Checker check(layer, std::move(inputs));
  Form form = op->rule(check);
  check.finish();
  check.value(form);
  layer.form = std::move(form);
  return check;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> op_versions() {
  std::vector<std::pair<std::string, std::string>> found;
  for (const Op& op : kOps) found.emplace_back(op.name, op.version);
  return found;
}

std::string version_of(const Network& network) {
  std::string version = network.layers.back().form.shape.size() == 3 ? "2" : "1";
  for (const Layer& layer : network.layers)
    version = std::max<std::string>(version, op_named(layer.op)->version);
  return version;
}

void check_layers(Network& network) {
  const auto n = static_cast<int>(network.layers.size());
  if (n < 1 || n > kMaxLayers)
    throw PackedFileError(std::to_string(n) + " layers; 1 to " + std::to_string(kMaxLayers) +
                          " are possible");
  const Wide n_input = product(network.input);
  if (n_input > kMaxNumbers)
    throw PackedFileError("input " + listed(network.input) + " is " + decimal(n_input) +
                          " numbers, more than " + std::to_string(kMaxNumbers));
  network.input_form = {network.input, false};
  Named named{{"input", kNetworkInput}};
  Wide bytes = 4 * n_input, products = 0;
  for (int i = 0; i < n; ++i) {
    const Checker check = check_layer(network, network.layers[i], named);
    named[network.layers[i].name] = i;
    bytes += check.cost.bytes();
    products += check.cost.products;
    // A map leaves the engine in another order than it has inside.
    if (i == n - 1 && network.layers[i].form.shape.size() == 3) bytes += check.cost.value_bytes;
    if (bytes > kMaxBytes)
      check.fail("values and weights up to here take " + decimal(bytes) + " bytes, more than " +
                 std::to_string(kMaxBytes));
    if (products > kMaxProducts)
      check.fail("the layers up to here take " + decimal(products) + " products, more than " +
                 std::to_string(kMaxProducts));
  }
}

}  // namespace latentbit
