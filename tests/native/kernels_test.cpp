// Every instruction set of this machine against the portable kernels, without Python: `make test-aarch64`
// runs it under qemu. Random shapes; what is integer must agree bit for bit, what is real to rounding.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "cpu/dispatch.h"
#include "cpu/probe.h"
#include "program.h"
#include "steps/steps.h"

using namespace latentbit;

namespace {

std::mt19937 random_bits(1);

int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_bits); }

std::vector<float> reals(size_t n) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& v : values) v = normal(random_bits);
  return values;
}

std::vector<uint64_t> weights(int rows, int n_bits) {
  std::vector<uint64_t> words;
  for (int row = 0; row < rows; ++row)
    for (int left = n_bits; left > 0; left -= kWordBits) {
      const uint64_t word = static_cast<uint64_t>(random_bits()) << 32 | random_bits();
      words.push_back(left < kWordBits ? word & ((uint64_t{1} << left) - 1) : word);
    }
  return words;
}

struct Case {
  int in, out, groups, side_h, side_w, activation, threads;
  bool repeat, threshold;
  Geometry geometry;
  std::vector<uint64_t> bits, bits2;
  std::vector<float> images, scale, bias, slope, limit, stem;
  std::vector<int32_t> dot_limit;
};

Case random_case() {
  const int channels[] = {1, 3, 8, 16, 32, 63, 64, 65, 96, 130, 256};
  Case c;
  c.groups = pick(0, 5) ? 1 : 2;
  c.in = channels[pick(0, 10)] * c.groups;
  c.out = 2 * channels[pick(0, 9)];
  c.side_h = pick(1, 12);
  c.side_w = pick(1, 12);
  c.activation = pick(0, 3);
  c.threads = pick(1, 3);
  c.repeat = pick(0, 1);
  c.threshold = pick(0, 3) == 0;
  do {
    c.geometry.kernel = {pick(1, 4), pick(1, 4)};
    c.geometry.stride = {pick(1, 3), pick(1, 3)};
    c.geometry.dilation = {pick(1, 2), pick(1, 2)};
    c.geometry.padding = {pick(0, 2), pick(0, 2), pick(0, 2), pick(0, 2)};
  } while (c.side_h + c.geometry.padding[0] + c.geometry.padding[2] <=
               c.geometry.dilation[0] * (c.geometry.kernel[0] - 1) ||
           c.side_w + c.geometry.padding[1] + c.geometry.padding[3] <=
               c.geometry.dilation[1] * (c.geometry.kernel[1] - 1));
  const int taps = c.geometry.kernel[0] * c.geometry.kernel[1];
  c.bits = weights(c.out * taps, c.in / c.groups);
  c.bits2 = weights(5, c.out);
  c.images = reals(static_cast<size_t>(2) * c.in * c.side_h * c.side_w);
  c.scale = reals(c.out);
  c.bias = reals(c.out);
  c.slope = reals(c.out);
  c.limit = reals(c.out);
  c.stem = reals(static_cast<size_t>(c.out) * (c.in / c.groups) * taps);
  for (int i = 0; i < c.out; ++i) c.dot_limit.push_back(pick(-20, 20));
  return c;
}

// sign -> binary convolution with everything a finish can do, plus a pooled real convolution as its shortcut;
// bits of the sum -> 1x1 binary convolution. All values of both outputs.
std::vector<float> run(const Case& c, const std::string& isa, bool last_bits) {
  Program program(isa, c.threads, c.in, c.side_h, c.side_w, size_t{1} << 30);
  const int copy = program.add_value({false, c.in, c.side_h, c.side_w});
  program.add(channels_last_step(program, copy));
  FinishSpec sign;
  sign.channels = c.in;
  sign.bits = program.add_value({true, c.in, c.side_h, c.side_w});
  sign.pad();
  program.add(finish_step(program, copy, sign));

  const Window w = c.geometry.over(c.side_h, c.side_w);
  FinishSpec pooled;
  pooled.channels = c.out;
  pooled.real = program.add_value({false, c.out, w.out_h, w.out_w});
  pooled.pad();
  FinishSpec inner;
  inner.channels = c.out;
  inner.activation = static_cast<Activation>(c.activation);
  inner.slope = c.slope;
  inner.pad();
  const Pooled pool{{{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, pooled};
  program.add(
      conv_step(program, kInput, c.stem.data(), c.bias.data(), c.out, c.groups, c.geometry, inner, &pool));

  FinishSpec finish;
  finish.channels = c.out;
  finish.bits = program.add_value({true, c.out, w.out_h, w.out_w});
  if (c.threshold) {
    finish.dot_threshold = c.dot_limit;
  } else {
    finish.scale = c.scale;
    finish.bias = c.bias;
    finish.activation = static_cast<Activation>(c.activation);
    finish.slope = c.slope;
    finish.threshold = c.limit;
    finish.real = program.add_value({false, c.out, w.out_h, w.out_w});
    if (!last_bits) {
      finish.residual = pooled.real;
      finish.residual_channels = c.out;
    }
  }
  finish.pad();
  program.add(binary_step(program, sign.bits, c.bits.data(), c.out, c.groups, c.geometry, finish));

  FinishSpec last;
  last.channels = 5;
  last.real = program.add_value({false, 5, w.out_h, w.out_w});
  last.pad();
  program.add(binary_step(program, finish.bits, c.bits2.data(), 5, 1, Geometry(), last));
  const int output = last_bits || c.threshold ? last.real : finish.real;
  program.set_output(output);
  std::vector<float> out(2 * program.value(output).bytes() / sizeof(float));
  program.run(c.images.data(), 2, out.data(), nullptr);
  return out;
}

int failures(const Case& c, const std::string& isa) {
  // Without the shortcut everything before the last sign is exact, so the bits must be too.
  int wrong = 0;
  const std::vector<float> bits = run(c, isa, true), expected_bits = run(c, "scalar", true);
  for (size_t i = 0; i < bits.size(); ++i) wrong += bits[i] != expected_bits[i];
  const std::vector<float> real = run(c, isa, false), expected = run(c, "scalar", false);
  for (size_t i = 0; i < real.size(); ++i)
    wrong += !(std::fabs(real[i] - expected[i]) <= 1e-3f * (1 + std::fabs(expected[i])));
  return wrong;
}

// A stem on pixels, in integers where the kernels can, and on real images, two outputs at a time where they
// can.
std::vector<float> run_stem(const std::string& isa, int kernel, int stride, int width, bool bytes,
                            bool channels_last) {
  std::mt19937 random(7);
  const int in = 3, out = 40, height = 11, taps = kernel * kernel;
  Program program(isa, 2, in, height, width, size_t{1} << 30);
  const bool one_scale = kernel == 5;  // then the sums run over all channels
  program.set_pixels({{0.5f, 0.4f, 0.3f}, {0.2f, one_scale ? 0.2f : 0.25f, one_scale ? 0.2f : 0.3f}});
  std::vector<int8_t> weights(static_cast<size_t>(out) * in * taps);
  for (int8_t& w : weights) w = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
  std::vector<float> scale(out), bias(out), real(weights.size());
  for (int o = 0; o < out; ++o)
    scale[o] = 0.001f * static_cast<float>(o + 1), bias[o] = static_cast<float>(o);
  for (size_t i = 0; i < real.size(); ++i) real[i] = static_cast<float>(weights[i]) * scale[i / (in * taps)];
  const Geometry geometry{{kernel, kernel}, {stride, stride}, {1, 1}, {1, 3, 2, 1}};
  const Window w = geometry.over(height, width);
  FinishSpec finish;
  finish.channels = out;
  finish.real = program.add_value({false, out, w.out_h, w.out_w});
  finish.pad();
  const ByteWeights stored{weights.data(), scale.data()};
  program.add(
      conv_step(program, kInput, real.data(), bias.data(), out, 1, geometry, finish, nullptr, &stored));
  program.set_output(finish.real);
  const size_t n = static_cast<size_t>(2) * in * height * width;
  std::vector<uint8_t> pixels(n);
  std::vector<float> images(n), result(2 * program.value(finish.real).bytes() / sizeof(float));
  for (size_t i = 0; i < n; ++i)
    pixels[i] = static_cast<uint8_t>(random()), images[i] = pixels[i] / 50.0f - 2;
  if (bytes)
    program.run(pixels.data(), channels_last, 2, result.data(), nullptr);
  else
    program.run(images.data(), 2, result.data(), nullptr);
  return result;
}

int stem_failures(const std::string& isa) {
  int wrong = 0;
  for (int kernel : {3, 7, 5})
    for (int stride : {1, 2})
      for (int width : {9, 36, 71})
        for (int kind = 0; kind < 3; ++kind) {
          const auto found = run_stem(isa, kernel, stride, width, kind > 0, kind == 2);
          const auto expected = run_stem("scalar", kernel, stride, width, kind > 0, kind == 2);
          for (size_t i = 0; i < found.size(); ++i)
            wrong += !(std::fabs(found[i] - expected[i]) <= 1e-4f * (10 + std::fabs(expected[i])));
        }
  return wrong;
}

// Memory that ends where a page begins which nobody may read.
class Fenced {
 public:
  explicit Fenced(size_t bytes) : pages_((bytes + kPage - 1) / kPage + 1) {
    void* at = mmap(nullptr, pages_ * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    start_ = at == MAP_FAILED ? nullptr : static_cast<char*>(at);
    if (start_) mprotect(start_ + (pages_ - 1) * kPage, kPage, PROT_NONE);
    data_ = start_ ? start_ + (pages_ - 1) * kPage - bytes : nullptr;
  }
  ~Fenced() {
    if (start_) munmap(start_, pages_ * kPage);
  }
  void* data() const { return data_; }

 private:
  static constexpr size_t kPage = 65536;  // a multiple of every page size in use
  size_t pages_;
  char *start_, *data_;
};

// What lies behind the bits of an image belongs to other threads: gathering must not read it, nor counting
// what lies behind the gathered pixels and the weights. A read ends the test with a signal.
void read_inside_the_buffers(const Kernels& kernels) {
  for (int channels : {8, 16, 32, 64, 128, 192, 70})
    for (int width : {1, 2, 3, 5, 7, 8, 9, 31})
      for (int stride : {1, 2}) {
        const Geometry geometry{{3, 3}, {stride, stride}, {1, 1}, {1, 1, 1, 1}};
        const BinaryShape shape{geometry.over(4, width), channels, kBlock};
        const std::vector<uint64_t> bits = weights(4 * width, channels);
        const Fenced image(sizeof(uint64_t) * bits.size());
        std::memcpy(image.data(), bits.data(), sizeof(uint64_t) * bits.size());
        const int pixels = shape.window.pixels();
        const auto fenced = [](size_t bytes) {
          return Fenced((bytes + 63) / 64 * 64);
        };  // kernels align to 64
        const Fenced gathered = fenced(kernels.narrow.gather_bytes(shape, pixels));
        const Fenced packed = fenced(kernels.narrow.weight_bytes(shape));
        std::vector<int> taps(pixels);
        const Fenced counts = fenced(sizeof(uint16_t) * kBlock * round_up(pixels, 2));
        kernels.narrow.gather(shape, static_cast<uint64_t*>(image.data()), 0, pixels, gathered.data(),
                              taps.data());
        kernels.narrow.count(shape, static_cast<uint8_t*>(packed.data()), gathered.data(), 0, pixels, 0,
                             static_cast<uint16_t*>(counts.data()));
      }
}

// An instruction that the machine refuses is an answer, not the end; and who handled the signal does so
// again.
int probe_failures() {
#if defined(__x86_64__)
  static int heard = 0;
  signal(SIGILL, [](int) { ++heard; });
  int wrong = runs_without_trap([] {
    __builtin_trap();
    return true;
  });
  wrong += !runs_without_trap([] { return true; });
  wrong += runs_without_trap([] { return false; });
  raise(SIGILL);
  wrong += heard != 1;
  signal(SIGILL, SIG_DFL);
  std::printf("probe: %d wrong\n", wrong);
  return wrong;
#else
  return 0;
#endif
}

}  // namespace

int main() {
  constexpr int kCases = 120;
  int wrong = probe_failures();
  for (const std::string& isa : available()) read_inside_the_buffers(kernels_named(isa));
  for (const std::string& isa : available()) {
    if (isa == "scalar") continue;
    int here = stem_failures(isa);
    for (int i = 0; i < kCases; ++i) {
      const int n = failures(random_case(), isa);
      if (n) std::printf("%s: case %d: %d values differ\n", isa.c_str(), i, n);
      here += n;
    }
    std::printf("%s: %d cases, %d wrong values\n", isa.c_str(), kCases, here);
    wrong += here;
  }
  return wrong ? 1 : 0;
}
