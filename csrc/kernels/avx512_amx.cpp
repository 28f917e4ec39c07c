// Binary convolution with AMX: tiles of bytes, 16 x 16 x 64 multiply-adds per instruction.
//
// A bit becomes a byte, +1 or -1, and a tap outside the image the byte 0, which adds nothing: a sum of
// products then is the dot product itself. TDPBSSD multiplies a tile of 16 pixels by 64 input channels with
// one of 64 input channels by 16 output channels. Four tiles of pixels share each tile of weights, which is
// expanded from its bits just before: 16 loads of a mask and 16 stores for 4 x 16 cycles of products.
//
// Gathered form: the input rows that a band reads, one byte per channel, zero where the image ends. The taps
// of one kernel row then are a run of bytes. Its length is rounded up to 64; the weights behind its end are
// 0, so that it does not matter what is read there.
#include <immintrin.h>

#include "cpu/amx.h"
#include "kernels/avx512.h"
#include "kernels/taps.h"

namespace latentbit {
namespace {

constexpr int kTile = 16;       // pixels, or output channels, of a tile
constexpr int kDepth = 64;      // input channels, in bytes
constexpr int kPixelTiles = 4;  // that share a tile of weights
constexpr int kChunk = 8;       // tiles of weights expanded together: 8 kB
constexpr int kTilesOfBlock = kBlock / kTile;

// How the bytes of a window lie in runs.
struct Layout {
  int runs_across, run_bytes, steps;  // steps of kDepth bytes in a run
  bool sparse;                        // taps far apart: gathered one by one, pixel by pixel
  bool linear;  // neighbours in memory are neighbours in the output, also from one row to the next
  int columns;  // of a frame row

  explicit Layout(const BinaryShape& s) {
    const Window& w = s.window;
    runs_across = w.dilation_w == 1 ? 1 : w.kernel_w;
    run_bytes = s.in_channels * (w.kernel_w / runs_across);
    steps = (run_bytes + kDepth - 1) / kDepth;
    sparse = (w.dilation_w > 1 && (w.kernel_w - 1) * w.dilation_w > kBandPixels) ||
             (w.dilation_h > 1 && (w.kernel_h - 1) * w.dilation_h > kBandPixels);
    const int out = w.out_w < kBandPixels ? w.out_w : kBandPixels;
    columns = (out - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1;
    linear = !sparse && w.stride_h == 1 && w.stride_w == 1;
  }

  size_t all_steps(const Window& w) const { return static_cast<size_t>(w.kernel_h) * runs_across * steps; }
  size_t pixel_size(const Window& w) const {  // if sparse
    return static_cast<size_t>(w.kernel_h) * runs_across * run_bytes;
  }
};

// In front of the gathered bytes.
struct alignas(64) Band {
  int first, left_output;
  int taps[kBandPixels];
};

size_t tile_bytes(const BinaryShape& s) { return sizeof(uint64_t) * kTile * Layout(s).all_steps(s.window); }

size_t weight_bytes(const BinaryShape& s) {
  return tile_bytes(s) * static_cast<size_t>((s.out_channels + kTile - 1) / kTile);
}

// Per 16 output channels and step 16 words: bit 4 n + j of word i is the weight of channel n, byte 4 i + j.
void pack_weights(const BinaryShape& s, const uint64_t* bits, uint8_t* packed) {
  const Layout l(s);
  const Window& w = s.window;
  const size_t channel_words = static_cast<size_t>(w.taps()) * s.words();
  auto* out = reinterpret_cast<uint64_t*>(packed);
  for (int tile = 0; tile < s.out_channels; tile += kTile)
    for (int ky = 0; ky < w.kernel_h; ++ky)
      for (int r = 0; r < l.runs_across; ++r)
        for (int step = 0; step < l.steps; ++step)
          for (int i = 0; i < kTile; ++i) {
            uint64_t word = 0;
            for (int bit = 0; bit < kWordBits; ++bit) {
              const int channel = tile + bit / 4, byte = step * kDepth + 4 * i + bit % 4;
              if (channel >= s.out_channels || byte >= l.run_bytes) continue;
              const int tap = ky * w.kernel_w + r + byte / s.in_channels, c = byte % s.in_channels;
              const uint64_t* of = bits + channel_words * channel + static_cast<size_t>(tap) * s.words();
              word |= (of[c / kWordBits] >> (c % kWordBits) & 1) << bit;
            }
            *out++ = word;
          }
}

// A tile always reads 16 pixels, and a run whole steps, whether they are needed or not.
size_t slack(const BinaryShape& s, const Layout& l) {
  const size_t pixel =
      l.sparse ? l.pixel_size(s.window) : static_cast<size_t>(s.window.stride_w) * s.in_channels;
  return kTile * pixel + kDepth + static_cast<size_t>(l.steps) * kDepth - l.run_bytes;
}

size_t gather_bytes(const BinaryShape& s, int pixels) {
  const Layout l(s);
  const Window& w = s.window;
  if (l.sparse) return sizeof(Band) + l.pixel_size(w) * pixels + slack(s, l);
  const int out_rows = (pixels - 1) / w.out_w + 2 < w.out_h ? (pixels - 1) / w.out_w + 2 : w.out_h;
  const size_t rows = static_cast<size_t>(out_rows - 1) * w.stride_h + (w.kernel_h - 1) * w.dilation_h + 1;
  return sizeof(Band) + rows * l.columns * s.in_channels + slack(s, l);
}

// Bits to bytes: +1 for 0, -1 for 1.
LATENTBIT_INLINE __m512i signs(uint64_t bits) {
  return _mm512_mask_blend_epi8(bits, _mm512_set1_epi8(1), _mm512_set1_epi8(-1));
}

void expand_pixels(const uint64_t* from, size_t pixels, int channels, uint8_t* to) {
  const int words = words_for(channels), rest = channels % kWordBits;
  const uint64_t last = rest ? (uint64_t{1} << rest) - 1 : ~uint64_t{0};
  for (size_t p = 0; p < pixels; ++p, to += channels, from += words)
    for (int i = 0; i < words; ++i)
      _mm512_mask_storeu_epi8(to + i * kWordBits, i + 1 < words ? ~uint64_t{0} : last, signs(from[i]));
}

void gather_sparse(const BinaryShape& s, const Layout& l, const uint64_t* image, int first, int pixels,
                   uint8_t* out) {
  const Window& w = s.window;
  for (int p = 0; p < pixels; ++p)
    for (int ky = 0; ky < w.kernel_h; ++ky)
      for (int kx = 0; kx < w.kernel_w; ++kx) {  // runs follow each other, whether of one tap or of all
        uint8_t* to = out + l.pixel_size(w) * p + static_cast<size_t>(ky * w.kernel_w + kx) * s.in_channels;
        const int source = w.source((first + p) / w.out_w, (first + p) % w.out_w, ky, kx);
        if (source < 0)
          __builtin_memset(to, 0, static_cast<size_t>(s.in_channels));
        else
          expand_pixels(image + static_cast<size_t>(source) * s.words(), 1, s.in_channels, to);
      }
}

void gather(const BinaryShape& s, const uint64_t* image, int first, int pixels, void* gathered, int* taps) {
  const Layout l(s);
  const Window& w = s.window;
  auto* band = static_cast<Band*>(gathered);
  auto* out = reinterpret_cast<uint8_t*>(band + 1);
  band->first = first;
  band->left_output = w.out_w > kBandPixels ? first % w.out_w : 0;
  count_taps(w, first, pixels, taps);
  __builtin_memcpy(band->taps, taps, sizeof(int) * static_cast<size_t>(pixels));
  if (l.sparse) return gather_sparse(s, l, image, first, pixels, out);

  const int left = band->left_output * w.stride_w - w.pad_left;  // x of the first column
  const int begin = left >= 0 ? 0 : -left < l.columns ? -left : l.columns;
  int end = w.in_w - left < l.columns ? w.in_w - left : l.columns;
  end = end < begin ? begin : end;
  const int top = first / w.out_w * w.stride_h - w.pad_top;
  const int bottom =
      (first + pixels - 1) / w.out_w * w.stride_h - w.pad_top + (w.kernel_h - 1) * w.dilation_h;
  const size_t pixel = static_cast<size_t>(s.in_channels), row_bytes = pixel * l.columns;
  for (int y = top; y <= bottom; ++y, out += row_bytes) {
    if (y < 0 || y >= w.in_h) {
      __builtin_memset(out, 0, row_bytes);
      continue;
    }
    __builtin_memset(out, 0, begin * pixel);
    expand_pixels(image + (static_cast<size_t>(y) * w.in_w + left + begin) * s.words(),
                  static_cast<size_t>(end - begin), s.in_channels, out + begin * pixel);
    __builtin_memset(out + end * pixel, 0, (l.columns - end) * pixel);
  }
}

// The shapes of the eight tile registers: 16 rows of 64 bytes each. A constant, because GCC does not know
// either that all of it is read.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileShapes kShapes;

// How to walk from run to run and from pixel to pixel, in bytes.
struct Walk {
  size_t pixel, down, across;
  int rows, runs, steps;
  uint64_t last[kTile];  // which weights of the last step of a run there are
};

// `n` tiles of weights from their bits. Behind the end of a run they are 0.
LATENTBIT_INLINE void expand_weights(const uint64_t* bits, int n, bool with_last, const uint64_t* last,
                                     int8_t* to) {
  const int whole = with_last ? n - 1 : n;
  for (int i = 0; i < whole * kTile; ++i) _mm512_store_si512(to + i * kDepth, signs(bits[i]));
  for (int i = whole * kTile; i < n * kTile; ++i)
    _mm512_store_si512(to + i * kDepth, _mm512_maskz_mov_epi8(last[i % kTile], signs(bits[i])));
}

// Dot products of T tiles of pixels, from `at` on, with 16 output channels: [pixel][channel].
template <int T>
void multiply(const Walk& walk, const uint8_t* at, const uint64_t* bits, int32_t* dots) {
  alignas(64) int8_t weights[kChunk * kTile * kDepth];
  const size_t tile = walk.pixel * kTile;
  _tile_zero(0);
  if (T > 1) _tile_zero(1);
  if (T > 2) _tile_zero(2);
  if (T > 3) _tile_zero(3);
  for (int ky = 0; ky < walk.rows; ++ky)
    for (int r = 0; r < walk.runs; ++r) {
      const uint8_t* run = at + walk.down * ky + walk.across * r;
      for (int first = 0; first < walk.steps; first += kChunk) {
        const int n = walk.steps - first < kChunk ? walk.steps - first : kChunk;
        expand_weights(bits, n, first + n == walk.steps, walk.last, weights);
        // GCC does not know that its tile loads read memory.
        __asm__ volatile("" : : "r"(weights) : "memory");
        bits += n * kTile;
        for (int i = 0; i < n; ++i, run += kDepth) {
          _tile_loadd(4, weights + i * kTile * kDepth, kDepth);
          _tile_loadd(5, run, walk.pixel);
          _tile_dpbssd(0, 5, 4);
          if (T > 1) {
            _tile_loadd(6, run + tile, walk.pixel);
            _tile_dpbssd(1, 6, 4);
          }
          if (T > 2) {
            _tile_loadd(7, run + 2 * tile, walk.pixel);
            _tile_dpbssd(2, 7, 4);
          }
          if (T > 3) {
            _tile_loadd(5, run + 3 * tile, walk.pixel);
            _tile_dpbssd(3, 5, 4);
          }
        }
      }
    }
  constexpr int kRow = kTile * sizeof(int32_t);
  _tile_stored(0, dots, kRow);
  if (T > 1) _tile_stored(1, dots + kTile * kTile, kRow);
  if (T > 2) _tile_stored(2, dots + 2 * kTile * kTile, kRow);
  if (T > 3) _tile_stored(3, dots + 3 * kTile * kTile, kRow);
}

// Neighbours in memory: `positions` of them from `at` on. The first is output `output` of this call, in
// column `column`; behind the last column of an output row come `gap` positions that are none.
struct Strip {
  const uint8_t* at;
  int positions, output, column, gap;
};

void count_strip(const BinaryShape& s, const Walk& walk, const Strip& strip, const uint8_t* packed,
                 const int* taps, int block, uint16_t* counts) {
  alignas(64) int32_t dots[kPixelTiles * kTile * kTile];
  const int left = s.out_channels - block * kBlock, channels = left < kBlock ? left : kBlock;
  const int row = s.window.out_w;
  int output = strip.output, column = strip.column;
  for (int first = 0; first < strip.positions; first += kPixelTiles * kTile) {
    const int rest = strip.positions - first, n = rest < kPixelTiles * kTile ? rest : kPixelTiles * kTile;
    const uint8_t* at = strip.at + walk.pixel * first;
    const int begin_output = output, begin_column = column;
    for (int channel = 0; channel < channels; channel += kTile) {
      const auto* bits = reinterpret_cast<const uint64_t*>(
          packed + tile_bytes(s) * static_cast<size_t>(block * kTilesOfBlock + channel / kTile));
      const int tiles = (n + kTile - 1) / kTile;
      (tiles == 1   ? multiply<1>
       : tiles == 2 ? multiply<2>
       : tiles == 3 ? multiply<3>
                    : multiply<4>)(walk, at, bits, dots);
      output = begin_output, column = begin_column;
      for (int p = 0; p < n; ++p) {
        if (column < row) {  // differing bits = (present - dot) / 2
          const __m512i present = _mm512_set1_epi32(taps[output] * s.in_channels);
          const __m512i twice = _mm512_sub_epi32(present, _mm512_load_si512(dots + p * kTile));
          _mm256_storeu_si256(
              reinterpret_cast<__m256i*>(counts + static_cast<size_t>(output) * kBlock + channel),
              _mm512_cvtepi32_epi16(_mm512_srli_epi32(twice, 1)));
          ++output;
        }
        if (++column == row + strip.gap) column = 0;
      }
    }
  }
}

void count(const BinaryShape& s, const uint8_t* packed, const void* gathered, int first, int pixels,
           int block, uint16_t* counts) {
  const Layout l(s);
  const Window& w = s.window;
  const auto* band = static_cast<const Band*>(gathered);
  const auto* bytes = reinterpret_cast<const uint8_t*>(band + 1);
  const size_t channels = static_cast<size_t>(s.in_channels), row_bytes = channels * l.columns;
  Walk walk{};
  walk.pixel = l.sparse ? l.pixel_size(w) : w.stride_w * channels;
  walk.down = l.sparse ? channels * w.kernel_w : w.dilation_h * row_bytes;
  walk.across = l.sparse ? channels : w.dilation_w * channels;
  walk.rows = w.kernel_h;
  walk.runs = l.runs_across;
  walk.steps = l.steps;
  for (int i = 0; i < kTile; ++i)
    for (int bit = 0; bit < kWordBits; ++bit)
      if ((l.steps - 1) * kDepth + 4 * i + bit % 4 < l.run_bytes) walk.last[i] |= uint64_t{1} << bit;

  _tile_loadconfig(&kShapes);
  const int pixel = band->first + first, oy = pixel / w.out_w, ox = pixel % w.out_w;
  const int band_row = band->first / w.out_w;
  const int* taps = band->taps + first;
  const auto place = [&](int y, int x) {
    return bytes + (static_cast<size_t>(y - band_row) * w.stride_h) * row_bytes +
           static_cast<size_t>(x - band->left_output) * walk.pixel;
  };
  if (l.sparse) {
    count_strip(s, walk, {bytes + walk.pixel * first, pixels, 0, ox, 0}, packed, taps, block, counts);
  } else if (l.linear) {
    const int last = pixel + pixels - 1, last_y = last / w.out_w, last_x = last % w.out_w;
    const int positions = (last_y - oy) * l.columns + last_x - ox + 1;
    const int gap = l.columns > w.out_w ? l.columns - w.out_w : 0;  // a band of a wide map lies in one row
    count_strip(s, walk, {place(oy, ox), positions, 0, ox, gap}, packed, taps, block, counts);
  } else {
    for (int done = 0, y = oy, x = ox; done < pixels; ++y, x = 0) {
      const int n = w.out_w - x < pixels - done ? w.out_w - x : pixels - done;
      count_strip(s, walk, {place(y, x), n, done, x, 0}, packed, taps, block, counts);
      done += n;
    }
  }
  _tile_release();
}

}  // namespace

BinaryKernels<uint16_t> amx_binary_kernels() {
  return {weight_bytes, pack_weights, gather_bytes, gather, count, finish_counts_avx512};
}

bool amx_computes() {
  alignas(64) int8_t ones[kTile * kDepth];
  alignas(64) int32_t sums[kTile * kTile];
  __builtin_memset(ones, 1, sizeof ones);
  __asm__ volatile("" : : "r"(ones) : "memory");  // GCC does not know that its tile loads read memory
  _tile_loadconfig(&kShapes);
  _tile_zero(0);
  _tile_loadd(1, ones, kDepth);
  _tile_loadd(2, ones, kDepth);
  _tile_dpbssd(0, 1, 2);
  _tile_stored(0, sums, kTile * sizeof(int32_t));
  _tile_release();
  for (const int32_t sum : sums)
    if (sum != kDepth) return false;
  return true;
}

}  // namespace latentbit
