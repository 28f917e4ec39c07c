// Real convolution and pooling with AVX-512, and the AVX-512 tables.
#include <immintrin.h>

#include "cpu/amx.h"
#include "kernels/avx2.h"
#include "kernels/avx512.h"
#include "kernels/float_rows.h"

namespace latentbit {
namespace {

struct Avx512Floats {
  using Vector = __m512;
  static constexpr int kFloats = 16, kTilePixels = 16, kWideTilePixels = 7, kWideTilePanels = 4;

  static LATENTBIT_INLINE Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static LATENTBIT_INLINE void store(float* to, Vector x) { _mm512_storeu_ps(to, x); }
  static LATENTBIT_INLINE Vector broadcast(const float* from) { return _mm512_set1_ps(*from); }
  static LATENTBIT_INLINE Vector multiply_add(Vector a, Vector b, Vector sum) {
    return _mm512_fmadd_ps(a, b, sum);
  }
  static LATENTBIT_INLINE Vector larger(Vector x, Vector best) { return _mm512_max_ps(x, best); }
};

using Rows = FloatRows<Avx512Floats>;

// Words that a run of taps fills to less than half (3 taps of 8 channels) count mostly nothing: lookups of
// nibbles are faster there.
const Kernels& few_bits_to_avx2(const BinaryShape& s) {
  const int taps = s.window.dilation_w == 1 ? s.window.kernel_w : 1,
            bits = (s.in_channels + 7) / 8 * 8 * taps;
  return 2 * bits < words_for(bits) * kWordBits ? avx2_kernels() : avx512_kernels();
}

Kernels table(const char* name, const BinaryKernels<uint16_t>& narrow, bool vnni,
              const Kernels& (*best_for)(const BinaryShape&)) {
  return {name,
          narrow,
          wide_scalar_kernels(),
          Rows::conv_row,
          finish_real_avx512,
          sign_planar_avx512,
          transpose_avx512,
          Rows::max_pool_row,
          normalise_avx512,
          split_pixels_avx2,
          vnni ? conv_row_bytes_avx512 : nullptr,
          &avx512_pair_kernels(),
          best_for};
}

}  // namespace

const Kernels& amx_kernels() {
  static const Kernels kernels = table("amx", amx_binary_kernels(), true, amx_or_avx512);
  return kernels;
}

const Kernels& avx512_kernels() {
  static const Kernels kernels = table("avx512", avx512_popcount_kernels(), true, few_bits_to_avx2);
  return kernels;
}

const Kernels& avx512bw_vnni_kernels() {
  static const Kernels kernels = table("avx512bw_vnni", avx512_nibble_kernels(), true, nullptr);
  return kernels;
}

const Kernels& avx512bw_kernels() {
  static const Kernels kernels = table("avx512bw", avx512_nibble_kernels(), false, nullptr);
  return kernels;
}

}  // namespace latentbit
