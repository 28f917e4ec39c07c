// libFuzzer: any bytes are read as a packed network or refused; what is read is planned and run on every
// kernel set, floats and bytes, and must neither crash nor leak. make fuzz-reader builds and runs it.
#include <cstdint>
#include <cstring>
#include <vector>

#include "cpu/dispatch.h"
#include "lbit/lowering.h"
#include "lbit/network.h"
#include "lbit/packed_file_error.h"
#include "lbit/plan.h"

using namespace latentbit;

namespace {

// Numbers in all values of a network that is run, and products: larger ones take long to compute, not to
// check.
constexpr double kMostRun = 1 << 18, kMostProducts = 1 << 24;

double numbers_in(const Shape& shape) {
  double n = 1;
  for (int64_t size : shape) n *= static_cast<double>(size);
  return n;
}

bool is_small(const Network& network) {
  double numbers = numbers_in(network.input), products = 0;
  for (const Layer& layer : network.layers) {
    const double gives = numbers_in(layer.form.shape);
    numbers += gives;
    for (const char* role : {"weight", "bits"})
      if (layer.has(role)) {
        const Tensor& weights = layer.tensor(role);
        const double n = static_cast<double>(weights.count()) * (role[0] == 'b' ? 64 : 1);
        numbers += n;
        products += gives / static_cast<double>(layer.form.shape[0]) * n;
      }
    if (const Json* kernel = layer.attributes.find("kernel"))
      for (const Json& size : kernel->items()) products += gives * static_cast<double>(size.as_integer());
  }
  return numbers < kMostRun && products < kMostProducts;
}

void run(const Network& network, const std::string& isa, int threads) {
  std::unique_ptr<Program> program;
  try {
    program = lower(network, isa, threads);
  } catch (const std::invalid_argument&) {
    return;  // more memory than the limit, with so many threads
  }
  const auto n_in = static_cast<size_t>(numbers_in(network.input));
  const auto n_out = static_cast<size_t>(numbers_in(network.layers.back().form.shape));
  std::vector<float> images(2 * n_in), out(2 * n_out);
  for (size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 17) / 8 - 1;
  const std::vector<uint8_t> pixels(2 * n_in, 77);
  try {
    program->run(images.data(), 2, out.data(), nullptr);
    program->run(pixels.data(), true, 2, out.data(), nullptr);
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Malloc of the exact size: a byte read too much is seen.
  const std::vector<uint8_t> content(data, data + size);
  try {
    const Network network = network_in_memory(content.data(), content.size());
    if (!is_small(network)) {
      (void)plan(network);
      return 0;
    }
    // Two threads now and then: they wait for each other, which takes long on a busy machine.
    const int threads = size % 31 == 0 ? 2 : 1;
    for (const std::string& isa : available()) run(network, isa, threads);
  } catch (const PackedFileError& error) {
    if (!is_printable(error.what())) __builtin_trap();  // it goes to a terminal
  }
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Most random edits would end at the length of the header. So most of ours change the text of the header, or
// the data behind it, and put the length right again.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  uint64_t n_header = 0;
  if (size >= 8) std::memcpy(&n_header, data, 8);
  if (size < 16 || n_header > size - 8 || seed % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::vector<uint8_t> header(data + 8, data + 8 + n_header), rest(data + 8 + n_header, data + size);
  std::vector<uint8_t>& part = seed % 16 < 4 && !rest.empty() ? rest : header;
  while (!header.empty() && header.back() == ' ') header.pop_back();
  const size_t other = header.size() + rest.size() - part.size() + 16;
  if (max_size <= other) return LLVMFuzzerMutate(data, size, max_size);
  const size_t most = max_size - other, before = part.size();
  if (before > most) return LLVMFuzzerMutate(data, size, max_size);
  part.resize(most);
  part.resize(LLVMFuzzerMutate(part.data(), before, most));
  while (header.size() % 8) header.push_back(' ');
  n_header = header.size();
  std::memcpy(data, &n_header, 8);
  if (!header.empty()) std::memcpy(data + 8, header.data(), header.size());
  if (!rest.empty()) std::memcpy(data + 8 + header.size(), rest.data(), rest.size());
  return 8 + header.size() + rest.size();
}
