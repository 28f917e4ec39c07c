#include "cpu/amx.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <mutex>

#include "cpu/probe.h"
#include "program.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace latentbit {

#if defined(LATENTBIT_SIMDE)  // tiles in portable C: always there, and their speed tells nothing

bool amx_granted() { return amx_computes(); }
const Kernels& amx_or_avx512(const BinaryShape&) { return amx_kernels(); }

#elif defined(__x86_64__)

namespace {

#if defined(__linux__)

bool ask_for_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

#else

bool ask_for_tiles() { return false; }  // how other systems grant them is not known here

#endif

// A few output rows of at most 64 channels: enough to compare, little enough for loading not to take longer.
BinaryShape part_of(BinaryShape s) {
  Window& w = s.window;
  s.out_channels = std::min(s.out_channels, kBlock);
  w.out_w = std::min(w.out_w, kBandPixels);
  w.in_w = std::min(w.in_w, (w.out_w - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1);
  w.out_h = std::min(w.out_h, std::max(1, kBlock / w.out_w));
  w.in_h = std::min(w.in_h, (w.out_h - 1) * w.stride_h + (w.kernel_h - 1) * w.dilation_h + 1);
  return s;
}

double seconds_of(const BinaryKernels<uint16_t>& kernels, const BinaryShape& s) {
  const int pixels = s.window.pixels();
  Buffer image, weights, gathered, counts;
  image.reserve(sizeof(uint64_t) * s.words() * s.window.in_h * s.window.in_w);
  weights.reserve(kernels.weight_bytes(s));
  gathered.reserve(kernels.gather_bytes(s, pixels));
  counts.reserve(sizeof(uint16_t) * kBlock * round_up(pixels, 2));
  std::vector<int> taps(pixels);
  double least = 1e30;
  for (int trial = 0; trial < 5; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    kernels.gather(s, reinterpret_cast<const uint64_t*>(image.data()), 0, pixels, gathered.data(),
                   taps.data());
    kernels.count(s, reinterpret_cast<const uint8_t*>(weights.data()), gathered.data(), 0, pixels, 0,
                  reinterpret_cast<uint16_t*>(counts.data()));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  return least;
}

}  // namespace

bool amx_granted() {
  static const bool granted = ask_for_tiles() && runs_without_trap(amx_computes);
  return granted;
}

const Kernels& amx_or_avx512(const BinaryShape& shape) {
  const BinaryShape s = part_of(shape);
  const Window& w = s.window;
  const std::array<int, 14> key = {s.in_channels, s.out_channels, w.in_h,       w.in_w,      w.out_h,
                                   w.out_w,       w.kernel_h,     w.kernel_w,   w.stride_h,  w.stride_w,
                                   w.pad_top,     w.pad_left,     w.dilation_h, w.dilation_w};
  static std::mutex guard;
  static std::map<std::array<int, 14>, const Kernels*> chosen;
  const std::lock_guard<std::mutex> lock(guard);
  const Kernels*& kernels = chosen[key];
  if (!kernels) {
    const Kernels& other = binary_kernels_for(avx512_kernels(), shape);
    const bool faster = seconds_of(amx_kernels().narrow, s) < seconds_of(other.narrow, s);
    kernels = faster ? &amx_kernels() : &other;
  }
  return *kernels;
}

#endif

}  // namespace latentbit
