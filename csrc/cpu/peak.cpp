#include "cpu/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "cpu/dispatch.h"
#include "program.h"

namespace latentbit {

double binary_peak(const std::string& isa) {
  using Clock = std::chrono::steady_clock;
  // 4 chunks of 63 nibbles, or 16 words; a row of whole tiles; no padding: hardly anything but the inner
  // loop.
  constexpr int kChannels = 1008, kPixels = 28, kRepeats = 50, kRuns = 300;
  const BinaryShape shape{{1, kPixels, 1, kPixels, 1, 1, 1, 1, 0, 0, 1, 1}, kChannels, kBlock};
  const BinaryKernels<uint16_t>& kernels = kernels_named(isa).narrow;

  std::vector<uint64_t> bits(static_cast<size_t>(kPixels + kBlock) * shape.words());
  uint64_t state = 1;
  for (uint64_t& word : bits) word = state = state * 6364136223846793005u + 1442695040888963407u;
  for (size_t i = shape.words() - 1; i < bits.size(); i += shape.words())
    bits[i] >>= kWordBits - kChannels % kWordBits;
  Buffer weights, gathered, counts;
  weights.reserve(kernels.weight_bytes(shape));
  gathered.reserve(kernels.gather_bytes(shape, kPixels));
  counts.reserve(sizeof(uint16_t) * kPixels * kBlock);
  int taps[kPixels];
  auto* packed = reinterpret_cast<uint8_t*>(weights.data());
  kernels.pack_weights(shape, bits.data() + static_cast<size_t>(kPixels) * shape.words(), packed);
  kernels.gather(shape, bits.data(), 0, kPixels, gathered.data(), taps);

  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = Clock::now();
    for (int i = 0; i < kRepeats; ++i)
      kernels.count(shape, packed, gathered.data(), 0, kPixels, 0,
                    reinterpret_cast<uint16_t*>(counts.data()));
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  return static_cast<double>(kRepeats) * kPixels * kChannels * kBlock / best;
}

}  // namespace latentbit
