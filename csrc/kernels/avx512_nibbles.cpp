// Binary convolution with AVX-512 where it has no popcount (Skylake-X, Cascade Lake): the arithmetic of
// nibbles.h on 64 output channels per vector.
#include <immintrin.h>

#include "kernels/avx512.h"
#include "kernels/nibble_gather.h"
#include "kernels/nibble_offsets_avx2.h"

namespace latentbit {
namespace {

constexpr NibbleTable kTable = make_nibble_table();

struct Avx512 : Avx2Offsets {
  static constexpr int kLane = 64;
};

using Gather = NibbleGather<Avx512>;
constexpr int kLane = Avx512::kLane, kPairs = 4;

#define LATENTBIT_UNROLL _Pragma("GCC unroll 8")

// A chunk of offsets and the weights that go with it.
struct Chunk {
  const uint8_t* weights;
  size_t offset, stride;  // where its first run begins behind that of the pair, and from run to run
  int runs, groups;       // groups per run
  bool first;             // counts are set, not added to
};

LATENTBIT_INLINE __m512i load_table(uint16_t offset) {
  return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(kTable.bytes + offset)));
}

// P pairs of pixels.
template <int P>
void count_chunk(const void* gathered, int pair, const Chunk& chunk, uint16_t* counts) {
  __m512i total[P], high[P], sum[P];
  const uint16_t* indices[P];
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) {
    total[p] = high[p] = _mm512_setzero_si512();
    indices[p] = Gather::pair(gathered, pair + p) + chunk.offset;
  }
  const uint8_t* weights = chunk.weights;
  for (int r = 0; r < chunk.runs; ++r) {
    for (int g = 0; g < chunk.groups; ++g, weights += kGroup * kLane) {
      LATENTBIT_UNROLL for (int i = 0; i < kGroup; ++i) {
        const __m512i w = _mm512_load_si512(weights + i * kLane);
        LATENTBIT_UNROLL for (int p = 0; p < P; ++p) {
          const __m512i x = _mm512_shuffle_epi8(load_table(indices[p][g * kGroup + i]), w);
          sum[p] = i == 0 ? x : _mm512_add_epi8(sum[p], x);
        }
      }
      LATENTBIT_UNROLL for (int p = 0; p < P; ++p) {
        total[p] = _mm512_add_epi8(total[p], sum[p]);
        high[p] = _mm512_add_epi8(high[p], _mm512_srli_epi16(sum[p], 4));
      }
    }
    LATENTBIT_UNROLL for (int p = 0; p < P; ++p) indices[p] += chunk.stride;
  }
  const __m512i low_byte = _mm512_set1_epi16(0xff);
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) {
    __m512i parts[4];  // {a even, a odd, b even, b odd} bytes as 16-bit lanes
    parts[3] = _mm512_srli_epi16(high[p], 8);
    parts[1] = _mm512_and_si512(
        _mm512_sub_epi16(_mm512_srli_epi16(total[p], 8), _mm512_slli_epi16(parts[3], 4)), low_byte);
    parts[2] = _mm512_and_si512(_mm512_sub_epi16(high[p], _mm512_slli_epi16(parts[1], 4)), low_byte);
    parts[0] = _mm512_and_si512(_mm512_sub_epi16(total[p], _mm512_slli_epi16(parts[2], 4)), low_byte);
    LATENTBIT_UNROLL for (int k = 0; k < 4; ++k) {
      uint16_t* at = counts + (2 * p + k / 2) * kBlock + (k % 2) * 32;
      _mm512_store_si512(at, chunk.first ? parts[k] : _mm512_add_epi16(_mm512_load_si512(at), parts[k]));
    }
  }
}

void count(const BinaryShape& s, const uint8_t* packed, const void* gathered, int first, int pixels,
           int block, uint16_t* counts) {
  const uint8_t* weights = packed + static_cast<size_t>(block) * table_indices(s) * kBlock;
  const Gather::Runs runs(s);
  const int pairs = (pixels + 1) / 2;
  bool is_first = true;
  Gather::each_chunk(runs, [&](int run, int n_runs, int group, int n_groups) {
    const size_t offset = run * runs.stride + static_cast<size_t>(group) * kGroup;
    const Chunk chunk{weights, offset, runs.stride, n_runs, n_groups, is_first};
    int p = 0;
    for (; p + kPairs <= pairs; p += kPairs)
      count_chunk<kPairs>(gathered, first / 2 + p, chunk, counts + 2 * p * kBlock);
    for (; p < pairs; ++p) count_chunk<1>(gathered, first / 2 + p, chunk, counts + 2 * p * kBlock);
    weights += static_cast<size_t>(n_runs) * n_groups * kGroup * kLane;
    is_first = false;
  });
}

}  // namespace

BinaryKernels<uint16_t> avx512_nibble_kernels() {
  return {Gather::weight_bytes, Gather::pack_weights, Gather::gather_bytes, Gather::gather, count,
          finish_counts_avx512};
}

}  // namespace latentbit
