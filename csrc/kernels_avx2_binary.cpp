// Binary convolution with AVX2: see nibbles.h for the arithmetic.
#include <immintrin.h>

#include "kernels_avx2.h"
#include "nibble_gather.h"

namespace latentbit {
namespace {

constexpr NibbleTable kTable = make_nibble_table();
struct Avx2 {
  static constexpr int kLane = 32;

  static __m128i nibbles(const uint64_t* word) {
    const __m128i low4 = _mm_set1_epi8(15), x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(word));
    return _mm_unpacklo_epi8(_mm_and_si128(x, low4), _mm_and_si128(_mm_srli_epi16(x, 4), low4));
  }
  static void store(uint16_t* out, __m128i low, __m128i high) {
    low = _mm_slli_epi16(low, 4);  // of nibbles: nothing crosses a byte
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_unpacklo_epi8(low, high));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 8), _mm_unpackhi_epi8(low, high));
  }
  static void both(const uint64_t* a, const uint64_t* b, uint16_t* out) {
    store(out, nibbles(a), nibbles(b));
  }
  static void alone(const uint64_t* a, int row, uint16_t* out) {
    store(out, nibbles(a), _mm_set1_epi8(static_cast<char>(row)));
  }
  static void absent(uint16_t* out) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_set1_epi16(kAbsentBoth << 8));
  }
  static void copy(const uint16_t* from, uint16_t* to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
};

using Gather = NibbleGather<Avx2>;
constexpr int kLane = Avx2::kLane;

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
  const auto run = Gather::vectors(s, block) == 2 ? count_block<2> : count_block<1>;
  const auto* indices =
      static_cast<const uint16_t*>(gathered) + static_cast<size_t>(first / 2) * table_indices(s);
  run(s, weights, indices, (pixels + 1) / 2, counts);
}

}  // namespace

BinaryKernels<uint16_t> avx2_binary_kernels() {
  return {Gather::weight_bytes, Gather::pack_weights, Gather::gather_bytes, Gather::gather, count,
          finish_counts_avx2};
}

}  // namespace latentbit
