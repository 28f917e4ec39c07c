// Table offsets for nibble_gather.h with AVX2, for it and for AVX-512. In an unnamed namespace: every file
// that includes it gets its own copy, compiled for its own set.
#pragma once

#include <immintrin.h>

#include "kernels/nibbles.h"

namespace latentbit {
namespace {

struct Avx2Offsets {
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
  static void stream16(const uint8_t* a, const uint8_t* b, uint16_t* out) {
    const __m256i high_a = _mm256_set1_epi16(0x00f0), low_b = _mm256_set1_epi16(0x0f00);
    const __m256i bytes_a = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a)));
    const __m256i bytes_b = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
    const __m256i x = _mm256_or_si256(bytes_a, _mm256_slli_epi16(bytes_b, 8));
    const __m256i even =
        _mm256_or_si256(_mm256_and_si256(_mm256_slli_epi16(x, 4), high_a), _mm256_and_si256(x, low_b));
    const __m256i odd =
        _mm256_or_si256(_mm256_and_si256(x, high_a), _mm256_and_si256(_mm256_srli_epi16(x, 4), low_b));
    const __m256i first = _mm256_unpacklo_epi16(even, odd), second = _mm256_unpackhi_epi16(even, odd);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permute2x128_si256(first, second, 0x20));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16), _mm256_permute2x128_si256(first, second, 0x31));
  }
  static void stream(const uint8_t* a, const uint8_t* b, size_t n, bool slack, uint16_t* out) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) stream16(a + i, b + i, out + 2 * i);
    if (i == n) return;
    if (slack)
      stream16(a + i, b + i, out + 2 * i);
    else if (n >= 16)  // some of them twice
      stream16(a + n - 16, b + n - 16, out + 2 * (n - 16));
    else
      both(reinterpret_cast<const uint64_t*>(a), reinterpret_cast<const uint64_t*>(b), out);
  }
  static void absent(uint16_t* out) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_set1_epi16(kAbsentBoth << 8));
  }
  static void copy(const uint16_t* from, uint16_t* to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
};

}  // namespace
}  // namespace latentbit
