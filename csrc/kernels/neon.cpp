// NEON kernels for aarch64: the arithmetic of nibbles.h with tbl, 16 output channels per vector.
#include "kernels/neon.h"

#include <arm_neon.h>

#include "kernels/float_rows.h"
#include "kernels/nibble_gather.h"

namespace latentbit {
namespace {

constexpr NibbleTable kTable = make_nibble_table();

struct Neon {
  static constexpr int kLane = 16;

  static uint8x16_t nibbles(const uint64_t* word) {
    const uint8x8_t x = vld1_u8(reinterpret_cast<const uint8_t*>(word));
    const uint8x8x2_t both = vzip_u8(vand_u8(x, vdup_n_u8(15)), vshr_n_u8(x, 4));
    return vcombine_u8(both.val[0], both.val[1]);
  }
  static void store(uint16_t* out, uint8x16_t low, uint8x16_t high) {
    const uint8x16x2_t offsets = {vshlq_n_u8(low, 4), high};
    vst2q_u8(reinterpret_cast<uint8_t*>(out), offsets);
  }
  static void both(const uint64_t* a, const uint64_t* b, uint16_t* out) {
    store(out, nibbles(a), nibbles(b));
  }
  static void alone(const uint64_t* a, int row, uint16_t* out) {
    store(out, nibbles(a), vdupq_n_u8(static_cast<uint8_t>(row)));
  }
  static void stream(const uint8_t* a, const uint8_t* b, size_t n, bool, uint16_t* out) {
    for (size_t i = 0; i < n; i += 8)
      both(reinterpret_cast<const uint64_t*>(a + i), reinterpret_cast<const uint64_t*>(b + i), out + 2 * i);
  }
  static void absent(uint16_t* out) { store(out, vdupq_n_u8(0), vdupq_n_u8(kAbsentBoth)); }
  static void copy(const uint16_t* from, uint16_t* to) { vst1q_u16_x2(to, vld1q_u16_x2(from)); }
};

using Gather = NibbleGather<Neon>;
constexpr int kLane = Neon::kLane;

#define LATENTBIT_UNROLL _Pragma("GCC unroll 8")

// A chunk of offsets and the weights that go with it.
struct Chunk {
  const uint8_t* weights;
  size_t offset, stride;  // where its first run begins behind that of the pair, and from run to run
  int runs, groups;       // groups per run
  bool first;             // counts are set, not added to
};

// P pairs of pixels, V vectors of channels.
template <int P, int V>
void count_chunk(const void* gathered, int pair, const Chunk& chunk, uint16_t* counts) {
  uint8x16_t total[P][V], high[P][V], sum[P][V];
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) total[p][v] =
      high[p][v] = vdupq_n_u8(0);
  const uint8_t* weights = chunk.weights;
  const uint16_t* indices[P];
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) indices[p] = Gather::pair(gathered, pair + p) + chunk.offset;
  for (int r = 0; r < chunk.runs; ++r) {
    for (int g = 0; g < chunk.groups; ++g, weights += kGroup * V * kLane) {
      LATENTBIT_UNROLL for (int i = 0; i < kGroup; ++i) {
        uint8x16_t table[P];
        LATENTBIT_UNROLL for (int p = 0; p < P; ++p) table[p] =
            vld1q_u8(kTable.bytes + indices[p][g * kGroup + i]);
        LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
          const uint8x16_t w = vld1q_u8(weights + (i * V + v) * kLane);
          LATENTBIT_UNROLL for (int p = 0; p < P; ++p) {
            const uint8x16_t x = vqtbl1q_u8(table[p], w);
            sum[p][v] = i == 0 ? x : vaddq_u8(sum[p][v], x);
          }
        }
      }
      LATENTBIT_UNROLL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
        total[p][v] = vaddq_u8(total[p][v], sum[p][v]);
        high[p][v] =
            vsraq_n_u8(high[p][v], sum[p][v], 4);  // a shift of bytes: no neighbour to take out again
      }
    }
    LATENTBIT_UNROLL for (int p = 0; p < P; ++p) indices[p] += chunk.stride;
  }
  const uint16x8_t low_byte = vdupq_n_u16(0xff);
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
    const uint16x8_t b = vreinterpretq_u16_u8(high[p][v]);
    const uint16x8_t a = vreinterpretq_u16_u8(vsubq_u8(total[p][v], vshlq_n_u8(high[p][v], 4)));
    const uint16x8_t parts[4] = {vandq_u16(a, low_byte), vshrq_n_u16(a, 8), vandq_u16(b, low_byte),
                                 vshrq_n_u16(b, 8)};
    LATENTBIT_UNROLL for (int k = 0; k < 4; ++k) {
      uint16_t* at = counts + (2 * p + k / 2) * kBlock + v * kLane + (k % 2) * 8;
      vst1q_u16(at, chunk.first ? parts[k] : vaddq_u16(vld1q_u16(at), parts[k]));
    }
  }
}

template <int V>
void count_block(const BinaryShape& s, const uint8_t* weights, const void* gathered, int first, int pairs,
                 uint16_t* counts) {
  const Gather::Runs runs(s);
  bool is_first = true;
  Gather::each_chunk(runs, [&](int run, int n_runs, int group, int n_groups) {
    const size_t offset = run * runs.stride + static_cast<size_t>(group) * kGroup;
    const Chunk chunk{weights, offset, runs.stride, n_runs, n_groups, is_first};
    int p = 0;
    for (; p + 2 <= pairs; p += 2) count_chunk<2, V>(gathered, first + p, chunk, counts + 2 * p * kBlock);
    if (p < pairs) count_chunk<1, V>(gathered, first + p, chunk, counts + 2 * p * kBlock);
    weights += static_cast<size_t>(n_runs) * n_groups * kGroup * V * kLane;
    is_first = false;
  });
}

void count(const BinaryShape& s, const uint8_t* packed, const void* gathered, int first, int pixels,
           int block, uint16_t* counts) {
  constexpr decltype(&count_block<1>) kBlocks[] = {nullptr, count_block<1>, count_block<2>, count_block<3>,
                                                   count_block<4>};
  const uint8_t* weights = packed + static_cast<size_t>(block) * table_indices(s) * kBlock;
  kBlocks[Gather::vectors(s, block)](s, weights, gathered, first / 2, (pixels + 1) / 2, counts);
}

float32x4_t activated(const Finish& f, float32x4_t y, int c) {
  const float32x4_t zero = vdupq_n_f32(0);
  switch (f.activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return vbslq_f32(vcltq_f32(y, zero), zero, y);
    case Activation::prelu:
      return vbslq_f32(vcltq_f32(y, zero), vmulq_f32(y, vld1q_f32(f.slope + c)), y);
    case Activation::clamp: {
      const float32x4_t low = vdupq_n_f32(f.low), high = vdupq_n_f32(f.high);
      y = vbslq_f32(vcltq_f32(y, low), low, y);
      return vbslq_f32(vcgtq_f32(y, high), high, y);
    }
  }
  return y;
}

// 4 channels from c on; returns their sign bits. Multiply and add stay apart, as in the portable kernel.
uint64_t finish_lane(const Finish& f, float32x4_t y, const float* residual, float* real, int c) {
  if (f.scale) y = vaddq_f32(vmulq_f32(y, vld1q_f32(f.scale + c)), vld1q_f32(f.bias + c));
  if (residual) y = vaddq_f32(y, vld1q_f32(residual + c % f.residual_channels));
  y = activated(f, y, c);
  if (real) vst1q_f32(real + c, y);
  if (!f.bits) return 0;
  const uint32x4_t weights = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(vcltq_f32(y, vld1q_f32(f.threshold + c)), weights));
}

bool in_lanes(const Finish& f) {
  return f.channels % 8 == 0 && (!f.residual || f.residual_channels % 8 == 0);
}

void finish_counts(const Finish& f, const uint16_t* counts, const int* taps, int in_channels, int first,
                   int pixels, int block) {
  if (f.dot_threshold || !in_lanes(f)) {
    scalar_kernels().narrow.finish(f, counts, taps, in_channels, first, pixels, block);
    return;
  }
  const int first_channel = block * kBlock, words = words_for(f.channels);
  const int channels = f.channels - first_channel < kBlock ? f.channels - first_channel : kBlock;
  for (int p = 0; p < pixels; ++p, counts += kBlock) {
    const size_t pixel = static_cast<size_t>(first + p);
    const int16x8_t n = vdupq_n_s16(static_cast<int16_t>(taps[p] * in_channels));
    const float* residual = f.residual ? f.residual + pixel * f.residual_channels : nullptr;
    float* real = f.real ? f.real + pixel * f.channels : nullptr;
    uint64_t word = 0;
    for (int i = 0; i < channels; i += 8) {
      const int16x8_t dots = vsubq_s16(n, vreinterpretq_s16_u16(vshlq_n_u16(vld1q_u16(counts + i), 1)));
      const float32x4_t low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(dots)));
      const float32x4_t high = vcvtq_f32_s32(vmovl_s16(vget_high_s16(dots)));
      word |= finish_lane(f, low, residual, real, first_channel + i) << i;
      word |= finish_lane(f, high, residual, real, first_channel + i + 4) << (i + 4);
    }
    if (f.bits) f.bits[pixel * words + block] = word ^ f.flip[block];
  }
}

void finish_real(const Finish& f, const float* values, int first, int pixels) {
  if (!in_lanes(f)) {
    scalar_kernels().finish_real(f, values, first, pixels);
    return;
  }
  const int words = words_for(f.channels);
  for (int p = 0; p < pixels; ++p, values += f.channels) {
    const size_t pixel = static_cast<size_t>(first + p);
    const float* residual = f.residual ? f.residual + pixel * f.residual_channels : nullptr;
    float* real = f.real ? f.real + pixel * f.channels : nullptr;
    for (int block = 0; block < f.channels; block += kBlock) {
      uint64_t word = 0;
      for (int i = 0; i < kBlock && block + i < f.channels; i += 4)
        word |= finish_lane(f, vld1q_f32(values + block + i), residual, real, block + i) << i;
      if (f.bits) f.bits[pixel * words + block / kBlock] = word ^ f.flip[block / kBlock];
    }
  }
}

struct NeonFloats {
  using Vector = float32x4_t;
  static constexpr int kFloats = 4, kTilePixels = 5, kWideTilePixels = 0, kWideTilePanels = 0;

  static Vector load(const float* from) { return vld1q_f32(from); }
  static void store(float* to, Vector x) { vst1q_f32(to, x); }
  static Vector broadcast(const float* from) { return vdupq_n_f32(*from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return vfmaq_f32(sum, a, b); }
  static Vector larger(Vector x, Vector best) { return vbslq_f32(vcgtq_f32(x, best), x, best); }
};

using Rows = FloatRows<NeonFloats>;

}  // namespace

const Kernels& neon_kernels() {
  static const Kernels kernels = {"neon",
                                  {Gather::weight_bytes, Gather::pack_weights, Gather::gather_bytes,
                                   Gather::gather, count, finish_counts},
                                  wide_scalar_kernels(),
                                  Rows::conv_row,
                                  finish_real,
                                  scalar_kernels().sign_planar,
                                  scalar_kernels().transpose,
                                  Rows::max_pool_row,
                                  scalar_kernels().normalise,
                                  scalar_kernels().split_pixels,
                                  nullptr,
                                  nullptr,
                                  nullptr};
  return kernels;
}

const Kernels& neon_dot_kernels() {
  static const Kernels kernels = [] {
    Kernels dot = neon_kernels();
    dot.name = "neon_dot";
    dot.conv_row_bytes = conv_row_bytes_neon_dot;
    return dot;
  }();
  return kernels;
}

}  // namespace latentbit
