// Binary convolution with AVX2: see nibbles.h for the arithmetic.
#include <immintrin.h>

#include "kernels/avx2.h"
#include "kernels/nibble_gather.h"
#include "kernels/nibble_offsets_avx2.h"

namespace latentbit {
namespace {

constexpr NibbleTable kTable = make_nibble_table();
struct Avx2 : Avx2Offsets {
  static constexpr int kLane = 32;
};

using Gather = NibbleGather<Avx2>;
constexpr int kLane = Avx2::kLane;

// Keeps a value in its register at this point: without it GCC reorders the lookups, runs out of registers and
// spills.
#if defined(LATENTBIT_SIMDE)
#define LATENTBIT_PIN(x) (void)(x)
#else
#define LATENTBIT_PIN(x) __asm__("" : "+x"(x))
#endif
#define LATENTBIT_UNROLL _Pragma("GCC unroll 4")

// A chunk of offsets and the weights that go with it.
struct Chunk {
  const uint8_t* weights;
  size_t offset, stride;  // where its first run begins behind that of the pair, and from run to run
  int runs, groups;       // groups per run
};

LATENTBIT_INLINE __m256i load_table(uint16_t offset) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(kTable.bytes + offset)));
}

// Sums of one group of lookups, for P * V vectors: tables(i, p) is the table of nibble i.
template <int P, int V, typename Tables>
LATENTBIT_INLINE void add_group(const Tables& tables, const uint8_t* weights, __m256i (&total)[P][V],
                                __m256i (&high)[P][V]) {
  __m256i sum[P][V];
  LATENTBIT_UNROLL for (int i = 0; i < kGroup; ++i) {
    __m256i table[P];
    LATENTBIT_UNROLL for (int p = 0; p < P; ++p) {
      table[p] = tables(i, p);
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

template <int P, int V>
LATENTBIT_INLINE void clear(__m256i (&total)[P][V], __m256i (&high)[P][V]) {
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
    total[p][v] = high[p][v] = _mm256_setzero_si256();
    LATENTBIT_PIN(total[p][v]);
    LATENTBIT_PIN(high[p][v]);
  }
}

// {a even, a odd, b even, b odd} bytes as 16-bit lanes.
LATENTBIT_INLINE void split(__m256i total, __m256i high, __m256i (&parts)[4]) {
  const __m256i low_byte = _mm256_set1_epi16(0xff);
  parts[3] = _mm256_srli_epi16(high, 8);
  parts[1] = _mm256_and_si256(_mm256_sub_epi16(_mm256_srli_epi16(total, 8), _mm256_slli_epi16(parts[3], 4)),
                              low_byte);
  parts[2] = _mm256_and_si256(_mm256_sub_epi16(high, _mm256_slli_epi16(parts[1], 4)), low_byte);
  parts[0] = _mm256_and_si256(_mm256_sub_epi16(total, _mm256_slli_epi16(parts[2], 4)), low_byte);
}

// P pairs of pixels, V vectors of channels; adds to counts unless kFirst.
template <int P, int V, bool kFirst>
LATENTBIT_INLINE void count_chunk(const void* gathered, int pair, const Chunk& chunk, uint16_t* counts) {
  __m256i total[P][V], high[P][V];
  clear(total, high);
  const uint8_t* weights = chunk.weights;
  const uint16_t* indices = Gather::pair(gathered, pair) + chunk.offset;
  const ptrdiff_t apart = P > 1 ? Gather::pair(gathered, pair + P - 1) - Gather::pair(gathered, pair) : 0;
  const ptrdiff_t next = static_cast<ptrdiff_t>(chunk.stride) - chunk.groups * kGroup;  // may be negative
  int runs = chunk.runs;
  do {
    const uint8_t* end = weights + static_cast<size_t>(chunk.groups) * kGroup * V * kLane;
    do {
      add_group<P, V>([&](int i, int p) { return load_table(p == 0 ? indices[i] : indices[apart + i]); },
                      weights, total, high);
      indices += kGroup;
      weights += kGroup * V * kLane;
    } while (weights != end);
    indices += next;
  } while (--runs);
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
    __m256i parts[4];
    split(total[p][v], high[p][v], parts);
    LATENTBIT_UNROLL for (int k = 0; k < 4; ++k) {
      auto* at = reinterpret_cast<__m256i*>(counts + (2 * p + k / 2) * kBlock + v * kLane + (k % 2) * 16);
      _mm256_store_si256(at, kFirst ? parts[k] : _mm256_add_epi16(_mm256_load_si256(at), parts[k]));
    }
  }
}

// All pairs of the band against one chunk of the weights, which stays in the L1 cache meanwhile.
template <int V, bool kFirst>
void count_band(const void* gathered, int first, int pairs, const Chunk& chunk, uint16_t* counts) {
  int p = 0;
  for (; p + 2 <= pairs; p += 2)
    count_chunk<2, V, kFirst>(gathered, first + p, chunk, counts + 2 * p * kBlock);
  if (p < pairs) count_chunk<1, V, kFirst>(gathered, first + p, chunk, counts + 2 * p * kBlock);
}

template <int V>
void count_block(const BinaryShape& s, const uint8_t* weights, const void* gathered, int first, int pairs,
                 uint16_t* counts) {
  const Gather::Runs runs(s);
  bool is_first = true;
  Gather::each_chunk(runs, [&](int run, int n_runs, int group, int n_groups) {
    const Chunk chunk{weights, run * runs.stride + static_cast<size_t>(group) * kGroup, runs.stride, n_runs,
                      n_groups};
    const auto count = is_first ? count_band<V, true> : count_band<V, false>;
    count(gathered, first, pairs, chunk, counts);
    weights += static_cast<size_t>(n_runs) * n_groups * kGroup * V * kLane;
    is_first = false;
  });
}

void count(const BinaryShape& s, const uint8_t* packed, const void* gathered, int first, int pixels,
           int block, uint16_t* counts) {
  const uint8_t* weights = packed + static_cast<size_t>(block) * table_indices(s) * kBlock;
  const auto run = Gather::vectors(s, block) == 2 ? count_block<2> : count_block<1>;
  run(s, weights, gathered, first / 2, (pixels + 1) / 2, counts);
}

}  // namespace

BinaryKernels<uint16_t> avx2_binary_kernels() {
  return {Gather::weight_bytes, Gather::pack_weights, Gather::gather_bytes, Gather::gather, count,
          finish_counts_avx2};
}

}  // namespace latentbit
