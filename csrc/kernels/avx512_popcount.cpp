// Binary convolution with AVX-512 and its popcount of 64-bit lanes (VPOPCNTDQ).
//
// A vector holds 64 weights of 8 output channels, one 64-bit lane each; the 64 activations that go with them
// are one word, the same for all lanes, which the xor loads and spreads at once. So xor, popcount and
// addition do 512 multiply-adds.
//
// Gathered form: the input rows that a band reads, as bytes: ceil(channels / 8) per pixel, zero left and
// right of the image. The taps of one kernel row then are a run of bytes, read 8 at a time from any address;
// what the last word of a run reads too much is masked by the same instruction that xors (vpternlog). A zero
// byte is not an absent tap: it counts the set bits of the weights. Rows outside the image are not visited,
// and for taps left and right of it the set bits of their weights are taken off again.
#include <immintrin.h>

#include "kernels/avx512.h"
#include "kernels/taps.h"

namespace latentbit {
namespace {

constexpr int kLanes = 8;  // channels of one vector
// A pass over the pixels: 4 vectors by 7 pixels, 28 accumulators and 4 registers to work with; or, for maps
// whose width is a multiple of 8 rather than 7, 2 vectors by 8 pixels.
constexpr int kWideVectors = 4, kWideTile = 7, kNarrowVectors = 2, kNarrowTile = 8;
constexpr int kSlack = 64;  // bytes that may be read behind the gathered ones

#define LATENTBIT_UNROLL _Pragma("GCC unroll 8")

// How the bits of a window lie in runs of bytes.
struct Layout {
  int pixel_bytes, runs_across, run_bytes, words;
  uint64_t last_mask;  // of the last word of a run
  bool sparse;         // taps far apart: gathered one by one, pixel by pixel
  int columns;         // of a frame row

  explicit Layout(const BinaryShape& s) {
    const Window& w = s.window;
    pixel_bytes = (s.in_channels + 7) / 8;
    runs_across = w.dilation_w == 1 ? 1 : w.kernel_w;
    run_bytes = pixel_bytes * (w.kernel_w / runs_across);
    words = (run_bytes + 7) / 8;
    last_mask = run_bytes % 8 ? (uint64_t{1} << (8 * (run_bytes % 8))) - 1 : ~uint64_t{0};
    sparse = (w.dilation_w > 1 && (w.kernel_w - 1) * w.dilation_w > kBandPixels) ||
             (w.dilation_h > 1 && (w.kernel_h - 1) * w.dilation_h > kBandPixels);
    const int out = w.out_w < kBandPixels ? w.out_w : kBandPixels;
    columns = (out - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1;
  }

  size_t row_bytes() const { return static_cast<size_t>(columns) * pixel_bytes; }
  size_t run_words(const Window& w) const {  // of one channel
    return static_cast<size_t>(w.kernel_h) * runs_across * words;
  }
  size_t pixel_size(const Window& w) const { return sizeof(uint64_t) * run_words(w); }  // if sparse
};

// In front of the gathered bytes.
struct Band {
  int first, left_output;
  int reserved[14];
};

int most_vectors(const BinaryShape& s) {
  return s.window.out_w % kNarrowTile == 0 && s.window.out_w % kWideTile ? kNarrowVectors : kWideVectors;
}

// Vectors that hold the channels of a pass which has so many left: 1, 2 or 4.
int pass_vectors(const BinaryShape& s, int channels) {
  const int most = most_vectors(s);
  return channels <= kLanes ? 1 : channels <= 2 * kLanes || most == 2 ? 2 : most;
}

size_t block_bytes(const BinaryShape& s) { return sizeof(uint64_t) * kBlock * Layout(s).run_words(s.window); }
size_t tap_count_bytes(const BinaryShape& s) { return sizeof(uint16_t) * kBlock * s.window.taps(); }

size_t weight_bytes(const BinaryShape& s) { return s.blocks() * (block_bytes(s) + tap_count_bytes(s)); }

// Word i of run (ky, r) of a channel whose taps begin at `taps`.
uint64_t weight_word(const BinaryShape& s, const Layout& l, const uint64_t* taps, int ky, int r, int i) {
  // Pixels of whole words: the taps of a run lie one after the other already.
  if (l.pixel_bytes % 8 == 0) return taps[(static_cast<size_t>(ky) * s.window.kernel_w + r) * s.words() + i];
  uint64_t word = 0;
  for (int k = 0; k < 8; ++k) {
    const int byte = 8 * i + k;
    if (byte >= l.run_bytes) break;
    const int tap = ky * s.window.kernel_w + r + byte / l.pixel_bytes;
    const int at = byte % l.pixel_bytes;
    word |= (taps[static_cast<size_t>(tap) * s.words() + at / 8] >> (8 * (at % 8)) & 0xff) << (8 * k);
  }
  return word;
}

// Per block: per pass [run][word][vector][lane], where lane i of vector v of V is channel V i + v, so that
// counts shifted into each other's 64-bit lanes come out in order. After all blocks, per block [tap][channel]
// the number of set bits.
void pack_weights(const BinaryShape& s, const uint64_t* bits, uint8_t* packed) {
  const Layout l(s);
  const Window& w = s.window;
  const size_t channel_words = static_cast<size_t>(w.taps()) * s.words();
  for (int block = 0; block < s.blocks(); ++block) {
    auto* out = reinterpret_cast<uint64_t*>(packed + block * block_bytes(s));
    for (int pass = 0; pass < kBlock && block * kBlock + pass < s.out_channels;
         pass += kLanes * most_vectors(s)) {
      const int first = block * kBlock + pass, vectors = pass_vectors(s, s.out_channels - first);
      for (int ky = 0; ky < w.kernel_h; ++ky)
        for (int r = 0; r < l.runs_across; ++r)
          for (int i = 0; i < l.words; ++i)
            for (int v = 0; v < vectors; ++v)
              for (int lane = 0; lane < kLanes; ++lane) {
                const int channel = first + vectors * lane + v;
                *out++ = channel < s.out_channels
                             ? weight_word(s, l, bits + channel_words * channel, ky, r, i)
                             : 0;
              }
    }
    auto* set_bits =
        reinterpret_cast<uint16_t*>(packed + s.blocks() * block_bytes(s) + block * tap_count_bytes(s));
    for (int t = 0; t < w.taps(); ++t)
      for (int c = 0; c < kBlock; ++c) {
        int n = 0;
        for (int i = 0; i < s.words() && block * kBlock + c < s.out_channels; ++i)
          n += __builtin_popcountll(
              bits[channel_words * (block * kBlock + c) + static_cast<size_t>(t) * s.words() + i]);
        set_bits[static_cast<size_t>(t) * kBlock + c] = static_cast<uint16_t>(n);
      }
  }
}

size_t gather_bytes(const BinaryShape& s, int pixels) {
  const Layout l(s);
  const Window& w = s.window;
  if (l.sparse) return sizeof(Band) + l.pixel_size(w) * pixels + kSlack;
  const int out_rows = (pixels - 1) / w.out_w + 2 < w.out_h ? (pixels - 1) / w.out_w + 2 : w.out_h;
  const size_t rows = static_cast<size_t>(out_rows - 1) * w.stride_h + (w.kernel_h - 1) * w.dilation_h + 1;
  return sizeof(Band) + rows * l.row_bytes() + kSlack;
}

// `pixels` pixels of `words` words each to `bytes` bytes each.
void squeeze(const uint64_t* from, int pixels, int words, int bytes, uint8_t* to) {
  if (bytes == 8 * words) {
    __builtin_memcpy(to, from, static_cast<size_t>(pixels) * bytes);
    return;
  }
  int p = 0;
  if (words == 1 && (bytes == 1 || bytes == 2 || bytes == 4))
    for (; p + kLanes <= pixels; p += kLanes, to += kLanes * bytes) {
      const __m512i x = _mm512_loadu_si512(from + p);
      if (bytes == 1)
        _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm512_cvtepi64_epi8(x));
      else if (bytes == 2)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi64_epi16(x));
      else
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi64_epi32(x));
    }
  for (; p < pixels; ++p, to += bytes)
    __builtin_memcpy(to, from + static_cast<size_t>(p) * words, static_cast<size_t>(bytes));
}

void gather_sparse(const BinaryShape& s, const Layout& l, const uint64_t* image, int first, int pixels,
                   uint8_t* out) {
  const Window& w = s.window;
  for (int p = 0; p < pixels; ++p)
    for (int ky = 0; ky < w.kernel_h; ++ky)
      for (int kx = 0; kx < w.kernel_w; ++kx) {
        uint8_t* to =
            out + l.pixel_size(w) * p + sizeof(uint64_t) * l.words * (ky * l.runs_across) +
            (l.runs_across == 1 ? static_cast<size_t>(kx) * l.pixel_bytes : sizeof(uint64_t) * l.words * kx);
        const int source = w.source((first + p) / w.out_w, (first + p) % w.out_w, ky, kx);
        if (source < 0)
          __builtin_memset(to, 0, static_cast<size_t>(l.pixel_bytes));
        else
          __builtin_memcpy(to, image + static_cast<size_t>(source) * s.words(),
                           static_cast<size_t>(l.pixel_bytes));
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
  if (l.sparse) return gather_sparse(s, l, image, first, pixels, out);

  const int outputs = w.out_w > kBandPixels ? pixels : w.out_w;
  const int columns = (outputs - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1;
  const int left = band->left_output * w.stride_w - w.pad_left;  // x of the first column
  const int begin = left >= 0 ? 0 : -left < columns ? -left : columns;
  int end = w.in_w - left < columns ? w.in_w - left : columns;
  end = end < begin ? begin : end;
  const int top = first / w.out_w * w.stride_h - w.pad_top;
  const int bottom =
      (first + pixels - 1) / w.out_w * w.stride_h - w.pad_top + (w.kernel_h - 1) * w.dilation_h;
  for (int y = top < 0 ? 0 : top; y <= bottom && y < w.in_h; ++y) {
    uint8_t* row = out + (y - top) * l.row_bytes();
    const size_t pixel = static_cast<size_t>(l.pixel_bytes);
    __builtin_memset(row, 0, begin * pixel);
    squeeze(image + (static_cast<size_t>(y) * w.in_w + left + begin) * s.words(), end - begin, s.words(),
            l.pixel_bytes, row + begin * pixel);
    __builtin_memset(row + end * pixel, 0, (columns - end) * pixel);
  }
}

// The taps of one pixel, and how to walk from run to run and from pixel to pixel.
struct Walk {
  const uint8_t* at;
  size_t pixel, down, across;  // bytes to the next pixel, kernel row, run of a kernel row
  int rows, runs, words;
  uint64_t last_mask;
};

LATENTBIT_INLINE __m512i spread(const uint8_t* from) {
  int64_t word;
  __builtin_memcpy(&word, from, sizeof word);
  return _mm512_set1_epi64(word);
}

template <int P, int V, bool kMasked>
LATENTBIT_INLINE void add_word(const uint8_t* at, size_t pixel, const __m512i* weights, __m512i mask,
                               __m512i (&sums)[P][V]) {
  const uint8_t* third[] = {at, at + 3 * pixel, at + 6 * pixel};  // so that few registers reach all pixels
  __m512i w[V];
  LATENTBIT_UNROLL for (int v = 0; v < V; ++v) w[v] = _mm512_load_si512(weights + v);
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) {
    const uint8_t* from = third[p / 3] + (p % 3) * pixel;
    LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
      const __m512i differing = kMasked ? _mm512_ternarylogic_epi64(w[v], mask, spread(from), 0x48)
                                        : _mm512_xor_si512(w[v], spread(from));
      sums[p][v] = _mm512_add_epi64(sums[p][v], _mm512_popcnt_epi64(differing));
    }
  }
}

// Counts of V vectors for P neighbouring pixels, in order of channels.
template <int P, int V, bool kMasked>
void count_tile(const Walk& walk, const __m512i* weights, uint16_t* counts) {
  __m512i sums[P][V];
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) sums[p][v] =
      _mm512_setzero_si512();
  const __m512i mask = _mm512_set1_epi64(static_cast<int64_t>(walk.last_mask));
  const int whole = kMasked ? walk.words - 1 : walk.words;
  const uint8_t* row = walk.at;
  for (int ky = 0; ky < walk.rows; ++ky, row += walk.down) {
    const uint8_t* run = row;
    for (int r = 0; r < walk.runs; ++r, run += walk.across) {
      const uint8_t* at = run;
      for (int i = 0; i < whole; ++i, at += sizeof(uint64_t), weights += V)
        add_word<P, V, false>(at, walk.pixel, weights, mask, sums);
      if (kMasked) {
        add_word<P, V, true>(at, walk.pixel, weights, mask, sums);
        weights += V;
      }
    }
  }
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) {
    uint16_t* to = counts + p * kBlock;
    __m512i x = sums[p][0];
    if constexpr (V >= 2) x = _mm512_or_si512(x, _mm512_slli_epi64(sums[p][1], 16));
    if constexpr (V == 4)
      x = _mm512_ternarylogic_epi64(x, _mm512_slli_epi64(sums[p][2], 32), _mm512_slli_epi64(sums[p][3], 48),
                                    0xfe);
    if constexpr (V == 1) _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi64_epi16(x));
    if constexpr (V == 2) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi64_epi32(x));
    if constexpr (V == 4) _mm512_storeu_si512(to, x);
  }
}

using Tile = void (*)(const Walk&, const __m512i*, uint16_t*);

template <int V, bool kMasked>
Tile tile_of(int pixels) {
  constexpr Tile kTiles[] = {
      count_tile<1, V, kMasked>, count_tile<2, V, kMasked>,
      count_tile<3, V, kMasked>, count_tile<4, V, kMasked>,
      count_tile<5, V, kMasked>, count_tile<6, V, kMasked>,
      count_tile<7, V, kMasked>, V < 4 ? count_tile < V < 4 ? 8 : 7, V, kMasked > : nullptr};
  return kTiles[pixels - 1];
}

template <bool kMasked>
Tile tile_for(int pixels, int vectors) {
  return vectors == 1   ? tile_of<1, kMasked>(pixels)
         : vectors == 2 ? tile_of<2, kMasked>(pixels)
                        : tile_of<4, kMasked>(pixels);
}

// Takes the weights of absent taps left and right of the image off the counts of one pixel.
void take_off(const Window& w, const uint16_t* set_bits, TapRange down, TapRange across, int channels,
              uint16_t* counts) {
  for (int ky = down.begin; ky < down.end; ++ky)
    for (int kx = 0; kx < w.kernel_w; ++kx) {
      if (kx >= across.begin && kx < across.end) continue;
      const uint16_t* off = set_bits + static_cast<size_t>(ky * w.kernel_w + kx) * kBlock;
      for (int c = 0; c < channels; c += 32)
        _mm512_storeu_si512(counts + c,
                            _mm512_sub_epi16(_mm512_loadu_si512(counts + c), _mm512_loadu_si512(off + c)));
    }
}

void count(const BinaryShape& s, const uint8_t* packed, const void* gathered, int first, int pixels,
           int block, uint16_t* counts) {
  const Layout l(s);
  const Window& w = s.window;
  const auto* band = static_cast<const Band*>(gathered);
  const auto* bytes = reinterpret_cast<const uint8_t*>(band + 1);
  const auto* weights = reinterpret_cast<const __m512i*>(packed + block * block_bytes(s));
  const auto* set_bits =
      reinterpret_cast<const uint16_t*>(packed + s.blocks() * block_bytes(s) + block * tap_count_bytes(s));
  const int left = s.out_channels - block * kBlock, channels = left < kBlock ? left : kBlock;
  const int band_row = band->first / w.out_w;
  const bool masked = l.last_mask != ~uint64_t{0};
  const size_t row_words = static_cast<size_t>(l.runs_across) * l.words;
  Walk walk{};
  walk.pixel = l.sparse ? l.pixel_size(w) : static_cast<size_t>(w.stride_w) * l.pixel_bytes;
  walk.down = l.sparse ? sizeof(uint64_t) * row_words : w.dilation_h * l.row_bytes();
  walk.across = l.sparse ? sizeof(uint64_t) * l.words : static_cast<size_t>(w.dilation_w) * l.pixel_bytes;
  walk.runs = l.runs_across;
  walk.words = l.words;
  walk.last_mask = l.last_mask;

  const int tile_pixels = most_vectors(s) == kWideVectors ? kWideTile : kNarrowTile;
  for (int pass = 0; pass < channels; pass += kLanes * most_vectors(s)) {
    const int vectors = pass_vectors(s, left - pass);
    int pixel = band->first + first;
    for (const int end = pixel + pixels; pixel < end;) {
      const int oy = pixel / w.out_w, ox = pixel % w.out_w;
      const int row_left = w.out_w - ox < end - pixel ? w.out_w - ox : end - pixel;
      const TapRange down = taps_down(w, oy);
      walk.rows = down.end - down.begin;
      const uint8_t* row = l.sparse
                               ? bytes + walk.pixel * (pixel - band->first)
                               : bytes + (static_cast<size_t>(oy - band_row) * w.stride_h) * l.row_bytes() +
                                     static_cast<size_t>(ox - band->left_output) * walk.pixel;
      row += walk.down * down.begin;
      const int tiles = (row_left + tile_pixels - 1) / tile_pixels;  // of nearly equal size
      for (int t = 0; t < tiles; ++t) {
        const int begin = row_left * t / tiles, n = row_left * (t + 1) / tiles - begin;
        walk.at = row + walk.pixel * begin;
        const Tile tile = masked ? tile_for<true>(n, vectors) : tile_for<false>(n, vectors);
        tile(walk, weights + row_words * down.begin * vectors,
             counts + static_cast<size_t>(pixel - band->first - first + begin) * kBlock + pass);
      }
      pixel += row_left;
    }
    weights += l.run_words(w) * vectors;
  }
  const TapRange inner = inner_outputs(w);
  int oy = (band->first + first) / w.out_w, ox = (band->first + first) % w.out_w;
  for (int p = 0; p < pixels; ++p) {
    if (ox >= inner.begin && ox < inner.end) {  // to the right edge, or the end
      const int n = inner.end - ox < pixels - p ? inner.end - ox : pixels - p;
      p += n - 1;
      ox += n - 1;
    } else {
      take_off(w, set_bits, taps_down(w, oy), taps_across(w, ox), channels,
               counts + static_cast<size_t>(p) * kBlock);
    }
    if (++ox == w.out_w) ox = 0, ++oy;
  }
}

}  // namespace

BinaryKernels<uint16_t> avx512_popcount_kernels() {
  return {weight_bytes, pack_weights, gather_bytes, gather, count, finish_counts_avx512};
}

}  // namespace latentbit
