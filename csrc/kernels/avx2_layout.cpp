// Between planar tensors, as users have them, and channels last, with AVX2.
#include <immintrin.h>

#include "kernels/avx2.h"

namespace latentbit {
namespace {

using HalfWord = uint32_t __attribute__((may_alias));

// 8 x 8 floats: pairs, then quads, then halves.
void transpose_tile(const float* in, int in_stride, float* out, int out_stride) {
  __m256 row[8], pair[8], quad[8];
  for (int i = 0; i < 8; ++i) row[i] = _mm256_loadu_ps(in + static_cast<size_t>(i) * in_stride);
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; ++k) {
      quad[i + 2 * k] = _mm256_shuffle_ps(pair[i + k], pair[i + 2 + k], 0x44);
      quad[i + 2 * k + 1] = _mm256_shuffle_ps(pair[i + k], pair[i + 2 + k], 0xee);
    }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(out + static_cast<size_t>(i) * out_stride,
                     _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x20));
    _mm256_storeu_ps(out + static_cast<size_t>(i + 4) * out_stride,
                     _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x31));
  }
}

// Byte 3 i + channel of 48 to byte i: from each of three vectors those it holds.
struct Thirds {
  alignas(16) int8_t from[3][3][16];  // [channel][vector]
};
constexpr Thirds make_thirds() {
  Thirds t{};
  for (int c = 0; c < 3; ++c)
    for (int v = 0; v < 3; ++v)
      for (int i = 0; i < 16; ++i) {
        const int at = 3 * i + c - 16 * v;
        t.from[c][v][i] = static_cast<int8_t>(at >= 0 && at < 16 ? at : -1);
      }
  return t;
}
constexpr Thirds kThirds = make_thirds();

}  // namespace

void normalise_avx2(const uint8_t* in, size_t n, float mean, float std, float* out) {
  const __m256 full = _mm256_set1_ps(255), m = _mm256_set1_ps(mean), s = _mm256_set1_ps(std);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + i));
    const __m256 x = _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), full);
    _mm256_storeu_ps(out + i, _mm256_div_ps(_mm256_sub_ps(x, m), s));
  }
  scalar_kernels().normalise(in + i, n - i, mean, std, out + i);
}

void split_pixels_avx2(const uint8_t* pixels, int channels, int n, uint8_t* out, size_t plane) {
  int p = 0;
  if (channels == 3)
    for (; p + 16 <= n; p += 16)
      for (int c = 0; c < 3; ++c) {
        __m128i x = _mm_setzero_si128();
        for (int v = 0; v < 3; ++v) {
          const auto* from = reinterpret_cast<const __m128i*>(pixels + 3 * static_cast<size_t>(p) + 16 * v);
          const auto* order = reinterpret_cast<const __m128i*>(kThirds.from[c][v]);
          x = _mm_or_si128(x, _mm_shuffle_epi8(_mm_loadu_si128(from), _mm_load_si128(order)));
        }
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + c * plane + p), x);
      }
  scalar_kernels().split_pixels(pixels + static_cast<size_t>(p) * channels, channels, n - p, out + p, plane);
}

void transpose_avx2(const float* in, int rows, int columns, int in_stride, float* out, int out_stride) {
  const int whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
  for (int i = 0; i < whole_rows; i += 8)
    for (int j = 0; j < whole_columns; j += 8)
      transpose_tile(in + static_cast<size_t>(i) * in_stride + j, in_stride,
                     out + static_cast<size_t>(j) * out_stride + i, out_stride);
  for (int i = 0; i < rows; ++i)
    for (int j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      out[static_cast<size_t>(j) * out_stride + i] = in[static_cast<size_t>(i) * in_stride + j];
}

// 8 pixels at a time: a comparison gives all ones or zeros per pixel, of which bit c % 32 is kept.
void sign_planar_avx2(const Finish& f, const float* planar, int plane, int first, int pixels) {
  const int words = words_for(f.channels);
  int p = first;
  for (; p + 8 <= first + pixels; p += 8)
    for (int half = 0; half < 2 * words; ++half) {
      const int begin = 32 * half, end = f.channels < begin + 32 ? f.channels : begin + 32;
      __m256i bits = _mm256_setzero_si256(), bit = _mm256_set1_epi32(1);
      for (int c = begin; c < end; ++c, bit = _mm256_add_epi32(bit, bit)) {
        const __m256 x = _mm256_loadu_ps(planar + static_cast<size_t>(c) * plane + p);
        const __m256 less = _mm256_cmp_ps(x, _mm256_broadcast_ss(f.threshold + c), _CMP_LT_OQ);
        bits = _mm256_or_si256(bits, _mm256_and_si256(_mm256_castps_si256(less), bit));
      }
      alignas(32) uint32_t lanes[8];
      _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), bits);
      auto* out = reinterpret_cast<HalfWord*>(f.bits + static_cast<size_t>(p) * words) + half;
      const auto flip = static_cast<uint32_t>(f.flip[half / 2] >> (32 * (half % 2)));
      for (int i = 0; i < 8; ++i) out[static_cast<size_t>(i) * 2 * words] = lanes[i] ^ flip;
    }
  if (p < first + pixels) scalar_kernels().sign_planar(f, planar, plane, p, first + pixels - p);
}

}  // namespace latentbit
