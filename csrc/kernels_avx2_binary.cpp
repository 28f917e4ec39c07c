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

size_t weight_bytes(const BinaryShape& s) { return static_cast<size_t>(s.blocks()) * table_indices(s) * kBlock; }

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

size_t gather_bytes(const BinaryShape& s, int pixels) {
  return sizeof(uint16_t) * (static_cast<size_t>(table_indices(s)) * ((pixels + 1) / 2) + kIndexSlack);
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
    for (int i = 0; i < words; ++i) store_indices(out + 16 * i, nibbles_of_word(a + i), nibbles_of_word(b + i));
  } else if (a || b) {
    const __m128i row = _mm_set1_epi8(a ? kAbsentB : kAbsentA);
    for (int i = 0; i < words; ++i) store_indices(out + 16 * i, nibbles_of_word((a ? a : b) + i), row);
  } else {
    const __m256i both = _mm256_set1_epi16(kAbsentBoth << 8);
    for (int i = 0; i < words; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * i), both);
  }
}

void gather(const BinaryShape& s, const uint64_t* image, int first, int pixels, void* gathered, int* taps) {
  const Window& w = s.window;
  const int nibbles = nibbles_per_tap(s), words = s.words(), n = table_indices(s);
  auto* out = static_cast<uint16_t*>(gathered);
  for (int p = 0; p < pixels; p += 2, out += n) {
    const bool has_b = p + 1 < pixels;
    const int ay = (first + p) / w.out_w, ax = (first + p) % w.out_w;
    const int by = (first + p + 1) / w.out_w, bx = (first + p + 1) % w.out_w;
    int taps_a = 0, taps_b = 0;
    uint16_t* at = out;
    for (int ky = 0; ky < w.kernel_h; ++ky)
      for (int kx = 0; kx < w.kernel_w; ++kx, at += nibbles) {
        const int a = w.source(ay, ax, ky, kx), b = has_b ? w.source(by, bx, ky, kx) : -1;
        taps_a += a >= 0;
        taps_b += b >= 0;
        gather_tap(a < 0 ? nullptr : image + static_cast<size_t>(a) * words,
                   b < 0 ? nullptr : image + static_cast<size_t>(b) * words, words, at);
      }
    for (; at < out + n; ++at) *at = kAbsentBoth << 8;
    taps[p] = taps_a;
    if (has_b) taps[p + 1] = taps_b;
  }
}

// Keeps a value in its register at this point: without it GCC reorders the lookups, runs out of registers and spills.
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
void count_band(const uint16_t* indices, int pair_stride, const uint8_t* weights, int n, int pairs, uint16_t* counts) {
  int p = 0;
  for (; p + 2 <= pairs; p += 2)
    count_chunk<2, V, kFirst>(indices + p * pair_stride, pair_stride, weights, n, counts + 2 * p * kBlock);
  if (p < pairs) count_chunk<1, V, kFirst>(indices + p * pair_stride, pair_stride, weights, n, counts + 2 * p * kBlock);
}

template <int V>
void count_block(const BinaryShape& s, const uint8_t* weights, const uint16_t* indices, int pairs, uint16_t* counts) {
  const int n = groups(s), chunks = (n + kChunkGroups - 1) / kChunkGroups, stride = table_indices(s);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int begin = static_cast<int>(static_cast<int64_t>(n) * chunk / chunks);
    const int end = static_cast<int>(static_cast<int64_t>(n) * (chunk + 1) / chunks);
    const uint8_t* w = weights + static_cast<size_t>(begin) * kGroup * V * kLane;
    const auto run = chunk == 0 ? count_band<V, true> : count_band<V, false>;
    run(indices + begin * kGroup, stride, w, end - begin, pairs, counts);
  }
}

void count(const BinaryShape& s, const uint8_t* packed, const void* gathered, int pixels, int block,
           uint16_t* counts) {
  const uint8_t* weights = packed + static_cast<size_t>(block) * table_indices(s) * kBlock;
  const auto run = block_vectors(s, block) == 2 ? count_block<2> : count_block<1>;
  run(s, weights, static_cast<const uint16_t*>(gathered), (pixels + 1) / 2, counts);
}

}  // namespace

BinaryKernels<uint16_t> avx2_binary_kernels() {
  return {weight_bytes, pack_weights, gather_bytes, gather, count, finish_counts_avx2};
}

}  // namespace latentbit
