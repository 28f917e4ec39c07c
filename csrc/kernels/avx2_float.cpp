// Real convolution and pooling with AVX2 and FMA, and the AVX2 table.
#include <immintrin.h>

#include "kernels/avx2.h"
#include "kernels/float_rows.h"

namespace latentbit {
namespace {

struct Avx2Floats {
  using Vector = __m256;
  static constexpr int kFloats = 8, kTilePixels = 6, kWideTilePixels = 0, kWideTilePanels = 0;

  static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Vector x) { _mm256_storeu_ps(to, x); }
  static Vector broadcast(const float* from) { return _mm256_broadcast_ss(from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm256_fmadd_ps(a, b, sum); }
  static Vector larger(Vector x, Vector best) { return _mm256_max_ps(x, best); }
};

using Rows = FloatRows<Avx2Floats>;

}  // namespace

const Kernels& avx2_kernels() {
  static const Kernels kernels = {"avx2",
                                  avx2_binary_kernels(),
                                  wide_scalar_kernels(),
                                  Rows::conv_row,
                                  finish_real_avx2,
                                  sign_planar_avx2,
                                  transpose_avx2,
                                  Rows::max_pool_row,
                                  normalise_avx2,
                                  split_pixels_avx2,
                                  nullptr,
                                  nullptr,
                                  nullptr};
  return kernels;
}

}  // namespace latentbit
