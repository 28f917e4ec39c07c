// In place of the compiler's: the intrinsics of AVX2 and AVX-512 in portable C (SIMDe), so that any machine can
// run these kernels. Slow, but exact.
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>
#include <simde/x86/fma.h>

// What Debian 12's SIMDe lacks, lane by lane.
#define __mmask16 simde__mmask16

namespace {

template <typename To, typename From>
inline To lanes_of(const From& from) {
  To to;
  static_assert(sizeof to == sizeof from, "the same bits");
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

template <typename T, int N>
struct Lanes {
  T lane[N];
};

// Each lane of `from` as another type, wider or narrower.
template <typename Result, typename To, typename T, int N, typename From>
inline Result converted(const From& from) {
  const auto in = lanes_of<Lanes<T, N>>(from);
  Lanes<To, N> out;
  for (int i = 0; i < N; ++i) out.lane[i] = static_cast<To>(in.lane[i]);
  return lanes_of<Result>(out);
}

inline __m512 _mm512_cvtepi32_ps(__m512i x) { return converted<__m512, float, int32_t, 16>(x); }
inline __m512i _mm512_cvtepi16_epi32(__m256i x) { return converted<__m512i, int32_t, int16_t, 16>(x); }
inline __m512i _mm512_cvtepu8_epi32(__m128i x) { return converted<__m512i, int32_t, uint8_t, 16>(x); }
inline __m128i _mm512_cvtepi64_epi16(__m512i x) { return converted<__m128i, uint16_t, uint64_t, 8>(x); }
inline __m128i _mm512_cvtepi64_epi8(__m512i x) {
  const auto in = lanes_of<Lanes<uint64_t, 8>>(x);
  Lanes<uint8_t, 16> out{};
  for (int i = 0; i < 8; ++i) out.lane[i] = static_cast<uint8_t>(in.lane[i]);
  return lanes_of<__m128i>(out);
}
inline __mmask16 _mm512_cmplt_epi32_mask(__m512i a, __m512i b) { return _mm512_cmpgt_epi32_mask(b, a); }
inline void _mm512_mask_storeu_ps(void* to, __mmask16 mask, __m512 x) {
  const auto in = lanes_of<Lanes<float, 16>>(x);
  for (int i = 0; i < 16; ++i)
    if (mask >> i & 1) static_cast<float*>(to)[i] = in.lane[i];
}
inline __m512 _mm512_shuffle_f32x4(__m512 a, __m512 b, int order) {
  const auto x = lanes_of<Lanes<__m128, 4>>(a), y = lanes_of<Lanes<__m128, 4>>(b);
  const Lanes<__m128, 4> out = {x.lane[order & 3], x.lane[order >> 2 & 3], y.lane[order >> 4 & 3],
                                y.lane[order >> 6 & 3]};
  return lanes_of<__m512>(out);
}

inline __m256i _mm512_cvtepi32_epi16(__m512i x) { return converted<__m256i, uint16_t, uint32_t, 16>(x); }
inline void _mm512_mask_storeu_epi8(void* to, uint64_t mask, __m512i x) {
  const auto in = lanes_of<Lanes<uint8_t, 64>>(x);
  for (int i = 0; i < 64; ++i)
    if (mask >> i & 1) static_cast<uint8_t*>(to)[i] = in.lane[i];
}

// AMX by the book: eight tiles of 16 rows of 64 bytes, which every thread has for itself.
struct Tile {
  alignas(64) unsigned char row[16][64];
};
inline Tile& tile_register(int i) {
  thread_local Tile tiles[8];
  return tiles[i];
}
inline void _tile_loadconfig(const void* shapes) {
  const auto* bytes = static_cast<const unsigned char*>(shapes);
  for (int i = 0; i < 8; ++i)  // the model knows no others
    if (bytes[0] != 1 || bytes[16 + 2 * i] != 64 || bytes[17 + 2 * i] != 0 || bytes[48 + i] != 16) __builtin_trap();
}
inline void _tile_release() {
  for (int i = 0; i < 8; ++i) __builtin_memset(&tile_register(i), 0xa5, sizeof(Tile));  // nothing may rely on it
}
inline void _tile_zero(int i) { __builtin_memset(&tile_register(i), 0, sizeof(Tile)); }
inline void _tile_loadd(int i, const void* from, size_t stride) {
  for (int r = 0; r < 16; ++r)
    __builtin_memcpy(tile_register(i).row[r], static_cast<const char*>(from) + r * stride, 64);
}
inline void _tile_stored(int i, void* to, size_t stride) {
  for (int r = 0; r < 16; ++r)
    __builtin_memcpy(static_cast<char*>(to) + r * stride, tile_register(i).row[r], 64);
}
// c[m][n] += sum of a[m][4 k + j] b[k][4 n + j], bytes with their signs.
inline void _tile_dpbssd(int c, int a, int b) {
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 16; ++n) {
      int32_t sum;
      __builtin_memcpy(&sum, tile_register(c).row[m] + 4 * n, 4);
      for (int k = 0; k < 16; ++k)
        for (int j = 0; j < 4; ++j)
          sum += static_cast<signed char>(tile_register(a).row[m][4 * k + j]) *
                 static_cast<signed char>(tile_register(b).row[k][4 * n + j]);
      __builtin_memcpy(tile_register(c).row[m] + 4 * n, &sum, 4);
    }
}

}  // namespace
