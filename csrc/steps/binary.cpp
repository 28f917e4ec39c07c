// Binary convolution: bands of output pixels, gathered once, times blocks of 64 output channels.
#include <algorithm>

#include "steps/checks.h"

namespace latentbit {
namespace {

constexpr int kPartPixels = 64;  // counted together: counts and one chunk of weights then share the L1 cache
constexpr int kRowPartPixels = 56;  // the same within a longer row: a multiple of the tiles, 7 or 8 pixels
constexpr size_t kMostGathered = size_t{16} << 20;  // bytes: bands of large kernels hold fewer pixels

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Copies bits [first, first + n) of every pixel to words of their own: the input of one group.
void extract_group(const uint64_t* image, int pixels, int words, int first, int n, uint64_t* out) {
  const int out_words = words_for(n), shift = first % kWordBits;
  for (int p = 0; p < pixels; ++p, image += words, out += out_words)
    for (int i = 0; i < out_words; ++i) {
      const int at = first / kWordBits + i;
      uint64_t word = image[at] >> shift;
      if (shift && at + 1 < words) word |= image[at + 1] << (kWordBits - shift);
      const int left = n - i * kWordBits;
      out[i] = left < kWordBits ? word & ((uint64_t{1} << left) - 1) : word;
    }
}

template <typename Count>
class BinaryStep final : public Step {
 public:
  BinaryStep(const BinaryKernels<Count>& kernels, const BinaryShape& group, int in_channels,
             const uint64_t* bits, int groups, int threads, FinishSpec finish)
      : kernels_(kernels),
        shape_(group),
        in_words_(words_for(in_channels)),
        groups_(groups),
        finish_(std::move(finish)) {
    const size_t bytes = aligned(kernels_.weight_bytes(shape_));
    group_bytes_ = bytes;
    weights_.reserve(bytes * groups);
    const size_t words = static_cast<size_t>(shape_.out_channels) * shape_.window.taps() * shape_.words();
    for (int g = 0; g < groups; ++g)
      kernels_.pack_weights(shape_, bits + words * g,
                            reinterpret_cast<uint8_t*>(weights_.data()) + bytes * g);
    int most = kBandPixels;
    while (most > 2 && kernels_.gather_bytes(shape_, most) > kMostGathered) most = round_up(most / 2, 2);
    // A stretch of pixels that bands divide: the whole map, or a row of a wide one.
    const Window& w = shape_.window;
    stretch_ = w.out_w > kBandPixels ? w.out_w : w.pixels();
    const int wanted = (stretch_ + most - 1) / most;
    band_ = round_up((stretch_ + wanted - 1) / wanted, 2);
    // Whole rows where they fit, because kernels work in tiles of a row; and an even number of pixels.
    const int row = w.out_w % 2 ? 2 * w.out_w : w.out_w;
    if (row <= most) band_ = std::min(most / row * row, round_up(band_, row));
    // Rather a band for every thread than blocks of one band: each then gathers, and writes, its own part.
    const int share = w.out_h % threads ? 0 : w.pixels() / threads;
    if (share % 2 == 0 && share >= kPartPixels && share < band_) band_ = share;
    part_ = row <= kPartPixels ? kPartPixels / row * row : kRowPartPixels;
    stretch_bands_ = (stretch_ + band_ - 1) / band_;
    bands_ = stretch_bands_ * (w.pixels() / stretch_);
  }

  size_t weight_bytes() const override { return group_bytes_ * groups_; }
  size_t scratch_bytes() const override {
    return gathered_bytes() + counts_bytes() + taps_bytes() + wide_counts_bytes() + extracted_bytes();
  }

  void run(const Run& run) const override {
    // A band whose gathering serves few blocks is dear: split the blocks only if the bands do not keep all
    // threads busy alike.
    const int threads = run.threads->size(), blocks = shape_.blocks();
    const int64_t jobs = int64_t{run.batch} * bands_, wanted = (4 * threads + jobs - 1) / jobs;
    const int splits = groups_ > 1 || jobs % threads == 0 || jobs >= 4 * threads
                           ? 1
                           : static_cast<int>(std::min<int64_t>(blocks, wanted));
    run.each(bands_ * splits, [&](int image, int part, int thread) {
      const int band = part / splits, split = part % splits;
      char* scratch = run.scratch[thread].data();
      if (groups_ > 1) return grouped_band(run, image, band, scratch);
      band_blocks(run, image, band, blocks * split / splits, blocks * (split + 1) / splits, scratch);
    });
  }

 private:
  size_t gathered_bytes() const { return aligned(kernels_.gather_bytes(shape_, band_)); }
  size_t counts_bytes() const { return aligned(sizeof(Count) * kBlock * kPartPixels); }
  size_t taps_bytes() const { return aligned(sizeof(int) * band_); }
  int all_channels() const { return round_up(shape_.out_channels * groups_, kBlock); }
  size_t wide_counts_bytes() const {
    return groups_ > 1 ? aligned(sizeof(Count) * all_channels() * band_) : 0;
  }
  size_t extracted_bytes() const {
    const Window& w = shape_.window;
    return groups_ > 1 ? aligned(sizeof(uint64_t) * shape_.words() * w.in_h * w.in_w) : 0;
  }
  int band_first(int band) const { return band / stretch_bands_ * stretch_ + band % stretch_bands_ * band_; }
  int band_pixels(int band) const { return std::min(band_, stretch_ - band % stretch_bands_ * band_); }
  const uint8_t* weights(int group) const {
    return reinterpret_cast<const uint8_t*>(weights_.data()) + group_bytes_ * group;
  }

  void band_blocks(const Run& run, int image, int band, int begin, int end, char* scratch) const {
    const int first = band_first(band), pixels = band_pixels(band);
    auto* counts = reinterpret_cast<Count*>(scratch + gathered_bytes());
    auto* taps = reinterpret_cast<int*>(scratch + gathered_bytes() + counts_bytes());
    const Finish finish = finish_.at(run, image);
    kernels_.gather(shape_, run.bits(inputs[0], image), first, pixels, scratch, taps);
    for (int part = 0; part < pixels; part += part_) {
      const int n = std::min(part_, pixels - part);
      if (finish.residual) prefetch(finish, first + part, n);
      for (int block = begin; block < end; ++block) {
        kernels_.count(shape_, weights(0), scratch, part, n, block, counts);
        kernels_.finish(finish, counts, taps + part, shape_.in_channels, first + part, n, block);
      }
    }
  }

  // The shortcut of a large map lies in the L3 cache: fetch it while the bits are counted.
  static void prefetch(const Finish& finish, int first, int pixels) {
    const auto* from = reinterpret_cast<const char*>(finish.residual +
                                                     static_cast<size_t>(first) * finish.residual_channels);
    const auto* end = from + sizeof(float) * pixels * finish.residual_channels;
    for (; from < end; from += 64) __builtin_prefetch(from, 1, 2);
  }

  // What a band reads of a group, each pixel at the place it has in the image. Taps that lie far apart are
  // fetched one by one; rows between them may be many.
  void extract_band(const uint64_t* image, int first, int pixels, int channel, uint64_t* out) const {
    const Window& w = shape_.window;
    const int from = w.out_w > kBandPixels ? first % w.out_w : 0;
    const int outputs = w.out_w > kBandPixels ? pixels : w.out_w;
    const bool apart_h = w.dilation_h > w.kernel_h, apart_w = w.dilation_w > w.kernel_w;
    const int runs = apart_w ? w.kernel_w : 1;
    const int length = (outputs - 1) * w.stride_w + 1 + (apart_w ? 0 : (w.kernel_w - 1) * w.dilation_w);
    const auto row = [&](int y) {
      if (y < 0 || y >= w.in_h) return;
      for (int r = 0; r < runs; ++r) {
        const int x = from * w.stride_w - w.pad_left + r * w.dilation_w;
        const int begin = std::max(0, x), end = std::min(w.in_w, x + length);
        const size_t at = static_cast<size_t>(y) * w.in_w + begin;
        extract_group(image + at * in_words_, end - begin, in_words_, channel, shape_.in_channels,
                      out + at * shape_.words());
      }
    };
    const int begin = first / w.out_w, end = (first + pixels - 1) / w.out_w;
    if (apart_h) {
      for (int oy = begin; oy <= end; ++oy)
        for (int ky = 0; ky < w.kernel_h; ++ky) row(oy * w.stride_h - w.pad_top + ky * w.dilation_h);
    } else {
      const int bottom = end * w.stride_h - w.pad_top + (w.kernel_h - 1) * w.dilation_h;
      for (int y = begin * w.stride_h - w.pad_top; y <= bottom; ++y) row(y);
    }
  }

  // The channels of a group need not fill blocks, so all groups are counted before the first block is
  // finished.
  void grouped_band(const Run& run, int image, int band, char* scratch) const {
    const int first = band_first(band), pixels = band_pixels(band), channels = shape_.out_channels;
    auto* counts = reinterpret_cast<Count*>(scratch + gathered_bytes());
    auto* taps = reinterpret_cast<int*>(scratch + gathered_bytes() + counts_bytes());
    auto* wide = reinterpret_cast<Count*>(scratch + gathered_bytes() + counts_bytes() + taps_bytes());
    auto* extracted = reinterpret_cast<uint64_t*>(scratch + gathered_bytes() + counts_bytes() + taps_bytes() +
                                                  wide_counts_bytes());
    for (int g = 0; g < groups_; ++g) {
      extract_band(run.bits(inputs[0], image), first, pixels, g * shape_.in_channels, extracted);
      kernels_.gather(shape_, extracted, first, pixels, scratch, taps);
      for (int block = 0; block < shape_.blocks(); ++block) {
        for (int part = 0; part < pixels; part += part_) {
          const int n = std::min(part_, pixels - part);
          kernels_.count(shape_, weights(g), scratch, part, n, block, counts);
          for (int c = 0; c < std::min(kBlock, channels - block * kBlock); ++c) {
            const int to = g * channels + block * kBlock + c;
            Count* column = wide + (static_cast<size_t>(to / kBlock) * band_ + part) * kBlock + to % kBlock;
            for (int p = 0; p < n; ++p) column[p * kBlock] = counts[p * kBlock + c];
          }
        }
      }
    }
    const Finish finish = finish_.at(run, image);
    for (int block = 0; block < all_channels() / kBlock; ++block)
      kernels_.finish(finish, wide + static_cast<size_t>(block) * band_ * kBlock, taps, shape_.in_channels,
                      first, pixels, block);
  }

  const BinaryKernels<Count>& kernels_;
  BinaryShape shape_;
  int in_words_, groups_, bands_, band_, part_, stretch_, stretch_bands_;
  size_t group_bytes_;
  Buffer weights_;
  FinishSpec finish_;
};

}  // namespace

std::unique_ptr<Step> binary_step(const Program& program, int input, const uint64_t* bits, int out_channels,
                                  int groups, const Geometry& geometry, FinishSpec finish) {
  const Value& in = program.value(input);
  need(in.bits, "a binary convolution reads bits");
  check_convolution(in, out_channels, groups, geometry);
  const Window window = geometry.over(in.height, in.width);
  check_finish(program, finish, out_channels, window.pixels());
  const Ends ends = ends_of(finish);
  const bool in_place = finish.residual_channels == finish.channels;
  const BinaryShape group{window, in.channels / groups, out_channels / groups};
  std::unique_ptr<Step> step;
  const Kernels& kernels = binary_kernels_for(program.kernels(), group);
  const bool narrow = static_cast<int64_t>(window.taps()) * group.in_channels <= kNarrowBits;
  if (narrow)
    step = std::make_unique<BinaryStep<uint16_t>>(kernels.narrow, group, in.channels, bits, groups,
                                                  program.threads(), std::move(finish));
  else
    step = std::make_unique<BinaryStep<uint32_t>>(program.kernels().wide, group, in.channels, bits, groups,
                                                  program.threads(), std::move(finish));
  step->connect("binary_conv", {input}, ends);
  step->isa =
      narrow ? kernels.name : scalar_kernels().name;  // sums beyond 16 bits have portable kernels only
  if (in_place) step->in_place = ends.residual;
  return step;
}

}  // namespace latentbit
