// Convolution of bytes with the dot products of Armv8.2 (SDOT): 16 products per instruction.
//
// They multiply signed by signed bytes, and pixels have no sign: 128 is taken off each by flipping its
// highest bit, and every sum begins with 128 times the sum of its weights.
#include <arm_neon.h>

#include "kernels/byte_rows.h"
#include "kernels/neon.h"

namespace latentbit {
namespace {

struct Dot {
  using Ints = int32x4_t;
  using Bytes = int8x16_t;
  using Floats = float32x4_t;
  static constexpr int kLanes = 4, kTilePixels = 5, kTilePanels = 1;

  static LATENTBIT_INLINE Ints start(const int32_t* offsets) { return vld1q_s32(offsets); }
  static LATENTBIT_INLINE Bytes weights(const int8_t* from) { return vld1q_s8(from); }
  static LATENTBIT_INLINE Bytes spread(const uint8_t* from) {
    uint32_t four;
    __builtin_memcpy(&four, from, sizeof four);
    return vreinterpretq_s8_u32(veorq_u32(vdupq_n_u32(four), vdupq_n_u32(0x80808080u)));
  }
  static LATENTBIT_INLINE Ints dot(Ints sums, Bytes pixels, Bytes weights) {
    return vdotq_s32(sums, pixels, weights);
  }
  static LATENTBIT_INLINE Floats to_float(Ints x) { return vcvtq_f32_s32(x); }
  static LATENTBIT_INLINE Floats load(const float* from) { return vld1q_f32(from); }
  static LATENTBIT_INLINE void store(float* to, Floats x) { vst1q_f32(to, x); }
  static LATENTBIT_INLINE Floats multiply(Floats a, Floats b) { return vmulq_f32(a, b); }
  static LATENTBIT_INLINE Floats add(Floats a, Floats b) { return vaddq_f32(a, b); }
};

}  // namespace

void conv_row_bytes_neon_dot(const ByteConvShape& s, const int8_t* panels, const float* scales,
                             const float* bias, const uint16_t* classes, const uint8_t* frame, int oy,
                             int pixels, float* out, int out_stride) {
  ByteRows<Dot>::conv_row_bytes(s, panels, scales, bias, classes, frame, oy, pixels, out, out_stride);
}

}  // namespace latentbit
