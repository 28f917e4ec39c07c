// Binary convolution with AVX2: see nibbles.h for the arithmetic.
#include <immintrin.h>

#include "kernels_avx2.h"
#include "nibbles.h"

namespace latentbit {
namespace {

constexpr NibbleTable kTable = make_nibble_table();
constexpr int kLane = 32;  // output channels of one vector

// Bytes 2i and 2i + 1 hold channels i and 16 + i: the flush then yields 16 channels in order.
int channel_of_byte(int byte) { return byte / 2 + (byte % 2) * 16; }

int block_vectors(const BinaryShape& s, int block) { return s.out_channels - block * kBlock > kLane ? 2 : 1; }

size_t weight_bytes(const BinaryShape& s) {
  return static_cast<size_t>(s.blocks()) * table_indices(s) * kBlock;
}

void pack_weights(const BinaryShape& s, const uint64_t* bits, uint8_t* packed) {
  const int n = table_indices(s);
  for (int block = 0; block < s.blocks(); ++block) {
    uint8_t* out = packed + static_cast<size_t>(block) * n * kBlock;
    for (int i = 0; i < n; ++i)
      for (int v = 0; v < block_vectors(s, block); ++v)
        for (int byte = 0; byte < kLane; ++byte)
          *out++ = weight_nibble(s, bits, block * kBlock + v * kLane + channel_of_byte(byte), i);
  }
}

// The table offset of a pair (x, x + stride_w) of one input row serves every tap and pair that sees it. So a
// band first expands the rows it reads, then copies runs of offsets: one run per kernel row, since
// neighbouring taps touch.
struct Expanded {
  int rows, columns;  // of the padded input under one band
  size_t offsets;     // 16-bit offsets in front of the expanded rows: those of the pairs

  Expanded(const BinaryShape& s, int pixels) {
    const Window& w = s.window;
    const int out_rows = (pixels - 1) / w.out_w + 2 < w.out_h ? (pixels - 1) / w.out_w + 2 : w.out_h;
    rows = (out_rows - 1) * w.stride_h + (w.kernel_h - 1) * w.dilation_h + 1;
    columns = (w.out_w - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1;
    offsets = static_cast<size_t>(table_indices(s)) * ((pixels + 1) / 2) + kIndexSlack;
  }
};

size_t gather_bytes(const BinaryShape& s, int pixels) {
  const Expanded e(s, pixels);
  return sizeof(uint16_t) *
         (e.offsets + static_cast<size_t>(e.rows) * e.columns * nibbles_per_tap(s) + kIndexSlack);
}

__m128i nibbles_of_word(const uint64_t* word) {
  const __m128i low4 = _mm_set1_epi8(15);
  const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(word));
  return _mm_unpacklo_epi8(_mm_and_si128(x, low4), _mm_and_si128(_mm_srli_epi16(x, 4), low4));
}

void store_indices(uint16_t* out, __m128i low, __m128i high) {
  low = _mm_slli_epi16(low, 4);  // nibbles: nothing crosses a byte
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_unpacklo_epi8(low, high));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 8), _mm_unpackhi_epi8(low, high));
}

// Table offsets of one tap for the pixels at a and b, null if absent. Writes up to 15 more than nibbles.
void gather_tap(const uint64_t* a, const uint64_t* b, int words, uint16_t* out) {
  if (a && b) {
    for (int i = 0; i < words; ++i)
      store_indices(out + 16 * i, nibbles_of_word(a + i), nibbles_of_word(b + i));
  } else if (a || b) {
    const __m128i row = _mm_set1_epi8(a ? kAbsentB : kAbsentA);
    for (int i = 0; i < words; ++i) store_indices(out + 16 * i, nibbles_of_word((a ? a : b) + i), row);
  } else {
    const __m256i both = _mm256_set1_epi16(kAbsentBoth << 8);
    for (int i = 0; i < words; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * i), both);
  }
}

// One input row as offsets of pairs (x, x + stride_w), for x from -pad_left on. A row outside the image is
// absent.
void expand_row(const BinaryShape& s, const uint64_t* row, int columns, uint16_t* out) {
  const Window& w = s.window;
  const int nibbles = nibbles_per_tap(s), words = s.words();
  // Columns [begin, end) see both pixels.
  const int begin = w.pad_left < columns ? w.pad_left : columns;
  int end = row ? w.pad_left + w.in_w - w.stride_w : 0;
  end = end > columns ? columns : end < begin ? begin : end;
  for (int i = 0; i < columns; ++i, out += nibbles) {
    if (i == begin && begin < end) {
      const uint64_t *pixel_a = row + static_cast<size_t>(i - w.pad_left) * words,
                     *pixel_b = pixel_a + w.stride_w * words;
      for (; i < end; ++i, out += nibbles, pixel_a += words, pixel_b += words)
        for (int k = 0; k < words; ++k)
          store_indices(out + 16 * k, nibbles_of_word(pixel_a + k), nibbles_of_word(pixel_b + k));
      if (i == columns) return;
    }
    const int x = i - w.pad_left;
    gather_tap(row && x >= 0 && x < w.in_w ? row + static_cast<size_t>(x) * words : nullptr,
               row && x + w.stride_w >= 0 && x + w.stride_w < w.in_w
                   ? row + static_cast<size_t>(x + w.stride_w) * words
                   : nullptr,
               words, out);
  }
}

// Number of k < kernel with 0 <= first + k dilation < size.
int taps_inside(int first, int kernel, int dilation, int size) {
  if (first >= 0 && first + (kernel - 1) * dilation < size) return kernel;
  int n = 0;
  for (int k = 0; k < kernel; ++k) n += first + k * dilation >= 0 && first + k * dilation < size;
  return n;
}

void copy_run(const uint16_t* from, int n, uint16_t* to) {
  for (int i = 0; i < n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
}

// A pair that ends one output row and begins the next.
void gather_apart(const BinaryShape& s, const uint64_t* image, int first, uint16_t* out) {
  const Window& w = s.window;
  const int words = s.words(), nibbles = nibbles_per_tap(s);
  for (int ky = 0; ky < w.kernel_h; ++ky)
    for (int kx = 0; kx < w.kernel_w; ++kx, out += nibbles) {
      const int a = w.source(first / w.out_w, first % w.out_w, ky, kx);
      const int b = w.source((first + 1) / w.out_w, (first + 1) % w.out_w, ky, kx);
      gather_tap(a < 0 ? nullptr : image + static_cast<size_t>(a) * words,
                 b < 0 ? nullptr : image + static_cast<size_t>(b) * words, words, out);
    }
}

void gather(const BinaryShape& s, const uint64_t* image, int first, int pixels, void* gathered, int* taps) {
  const Window& w = s.window;
  const Expanded e(s, pixels);
  const int nibbles = nibbles_per_tap(s), n = table_indices(s), used = w.taps() * nibbles;
  const int runs = w.dilation_w == 1 ? 1 : w.kernel_w, run = used / (w.kernel_h * runs);
  auto* out = static_cast<uint16_t*>(gathered);
  uint16_t* expanded = out + e.offsets;
  const size_t row = static_cast<size_t>(e.columns) * nibbles;
  const int top = first / w.out_w * w.stride_h - w.pad_top;
  const int bottom =
      (first + pixels - 1) / w.out_w * w.stride_h - w.pad_top + (w.kernel_h - 1) * w.dilation_h;
  for (int y = top; y <= bottom; ++y)
    expand_row(s, y < 0 || y >= w.in_h ? nullptr : image + static_cast<size_t>(y) * w.in_w * s.words(),
               e.columns, expanded + (y - top) * row);

  int oy = first / w.out_w, ox = first % w.out_w;
  for (int p = 0; p < pixels; ++p) {
    const int y = oy * w.stride_h - w.pad_top;
    taps[p] = taps_inside(y, w.kernel_h, w.dilation_h, w.in_h) *
              taps_inside(ox * w.stride_w - w.pad_left, w.kernel_w, w.dilation_w, w.in_w);
    if (p % 2 == 0) {
      if (ox + 1 == w.out_w && p + 1 < pixels) {
        gather_apart(s, image, first + p, out);
      } else {
        const uint16_t* from = expanded + (y - top) * row + static_cast<size_t>(ox) * w.stride_w * nibbles;
        for (int ky = 0; ky < w.kernel_h; ++ky)
          for (int r = 0; r < runs; ++r)
            copy_run(from + ky * w.dilation_h * row + static_cast<size_t>(r) * w.dilation_w * nibbles, run,
                     out + (ky * runs + r) * run);
      }
      for (int i = used; i < n; ++i) out[i] = kAbsentBoth << 8;
      out += n;
    }
    if (++ox == w.out_w) ox = 0, ++oy;
  }
}

// Keeps a value in its register at this point: without it GCC reorders the lookups, runs out of registers and
// spills.
#define LATENTBIT_PIN(x) __asm__("" : "+x"(x))
#define LATENTBIT_UNROLL _Pragma("GCC unroll 4")

// P pairs of pixels, V vectors of channels, n groups of nibbles; adds to counts unless kFirst.
template <int P, int V, bool kFirst>
void count_chunk(const uint16_t* indices, int pair_stride, const uint8_t* weights, int n, uint16_t* counts) {
  __m256i total[P][V], high[P][V], sum[P][V];
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
    total[p][v] = high[p][v] = _mm256_setzero_si256();
    LATENTBIT_PIN(total[p][v]);
    LATENTBIT_PIN(high[p][v]);
  }
  for (int g = 0; g < n; ++g, indices += kGroup, weights += kGroup * V * kLane) {
    LATENTBIT_UNROLL for (int i = 0; i < kGroup; ++i) {
      __m256i table[P];
      LATENTBIT_UNROLL for (int p = 0; p < P; ++p) {
        const uint8_t* entry = kTable.bytes + indices[p * pair_stride + i];
        table[p] = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(entry)));
        LATENTBIT_PIN(table[p]);
      }
      LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
        __m256i w = _mm256_load_si256(reinterpret_cast<const __m256i*>(weights + (i * V + v) * kLane));
        if (P > 1) LATENTBIT_PIN(w);
        LATENTBIT_UNROLL for (int p = 0; p < P; ++p) {
          __m256i x = _mm256_shuffle_epi8(table[p], w);
          LATENTBIT_PIN(x);
          sum[p][v] = i == 0 ? x : _mm256_add_epi8(sum[p][v], x);
          LATENTBIT_PIN(sum[p][v]);
          if (i < kGroup - 1) continue;
          total[p][v] = _mm256_add_epi8(total[p][v], sum[p][v]);
          LATENTBIT_PIN(total[p][v]);
          x = _mm256_srli_epi16(sum[p][v], 4);
          LATENTBIT_PIN(x);
          high[p][v] = _mm256_add_epi8(high[p][v], x);
          LATENTBIT_PIN(high[p][v]);
        }
      }
    }
  }
  const __m256i low_byte = _mm256_set1_epi16(0xff);
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
    const __m256i t = total[p][v], h = high[p][v];
    const __m256i b_odd = _mm256_srli_epi16(h, 8);
    const __m256i a_odd =
        _mm256_and_si256(_mm256_sub_epi16(_mm256_srli_epi16(t, 8), _mm256_slli_epi16(b_odd, 4)), low_byte);
    const __m256i b_even = _mm256_and_si256(_mm256_sub_epi16(h, _mm256_slli_epi16(a_odd, 4)), low_byte);
    const __m256i a_even = _mm256_and_si256(_mm256_sub_epi16(t, _mm256_slli_epi16(b_even, 4)), low_byte);
    const __m256i parts[4] = {a_even, a_odd, b_even, b_odd};
    LATENTBIT_UNROLL for (int k = 0; k < 4; ++k) {
      auto* at = reinterpret_cast<__m256i*>(counts + (2 * p + k / 2) * kBlock + v * kLane + (k % 2) * 16);
      _mm256_store_si256(at, kFirst ? parts[k] : _mm256_add_epi16(_mm256_load_si256(at), parts[k]));
    }
  }
}

// All pairs of the band against one chunk of the weights, which stays in the L1 cache meanwhile.
template <int V, bool kFirst>
void count_band(const uint16_t* indices, int pair_stride, const uint8_t* weights, int n, int pairs,
                uint16_t* counts) {
  int p = 0;
  for (; p + 2 <= pairs; p += 2)
    count_chunk<2, V, kFirst>(indices + p * pair_stride, pair_stride, weights, n, counts + 2 * p * kBlock);
  if (p < pairs)
    count_chunk<1, V, kFirst>(indices + p * pair_stride, pair_stride, weights, n, counts + 2 * p * kBlock);
}

template <int V>
void count_block(const BinaryShape& s, const uint8_t* weights, const uint16_t* indices, int pairs,
                 uint16_t* counts) {
  const int n = groups(s), chunks = (n + kChunkGroups - 1) / kChunkGroups, stride = table_indices(s);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int begin = static_cast<int>(static_cast<int64_t>(n) * chunk / chunks);
    const int end = static_cast<int>(static_cast<int64_t>(n) * (chunk + 1) / chunks);
    const uint8_t* w = weights + static_cast<size_t>(begin) * kGroup * V * kLane;
    const auto run = chunk == 0 ? count_band<V, true> : count_band<V, false>;
    run(indices + begin * kGroup, stride, w, end - begin, pairs, counts);
  }
}

void count(const BinaryShape& s, const uint8_t* packed, const void* gathered, int first, int pixels,
           int block, uint16_t* counts) {
  const uint8_t* weights = packed + static_cast<size_t>(block) * table_indices(s) * kBlock;
  const auto run = block_vectors(s, block) == 2 ? count_block<2> : count_block<1>;
  const auto* indices =
      static_cast<const uint16_t*>(gathered) + static_cast<size_t>(first / 2) * table_indices(s);
  run(s, weights, indices, (pixels + 1) / 2, counts);
}

}  // namespace

BinaryKernels<uint16_t> avx2_binary_kernels() {
  return {weight_bytes, pack_weights, gather_bytes, gather, count, finish_counts_avx2};
}

}  // namespace latentbit
