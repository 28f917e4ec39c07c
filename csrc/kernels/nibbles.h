// Tables and layout of the vector kernels for binary convolutions (AVX2, NEON).
//
// One table lookup (pshufb, tbl) counts the differing bits of 4 input channels for two output pixels at once.
// The index is a nibble of weights, one output channel per byte. The table is chosen by the nibbles a and b
// that two output pixels see under the same tap:
//   table[a, b][w] = popcount(a xor w) + 16 popcount(b xor w)
// e.g. a = 0101, b = 1111, w = 0100: 1 + 16 * 3 = 49. A nibble differs in at most 4 bits, so 3 lookups may be
// added before a field of 4 bits overflows (3 * 4 = 12 < 16). Let s be such a sum of 3. We keep, in bytes
// modulo 256,
//   T = sum s   and   H = sum (s >> 4), shifted as 16-bit lanes: no mask, although each low byte of a lane
//                      then receives the low nibble of its high neighbour in its upper half.
// Of a 16-bit lane with bytes (even, odd): H_odd is clean; then low_odd = T_odd - 16 H_odd, and with it
// H_even = H_even' - 16 low_odd, low_even = T_even - 16 H_even, all modulo 256 and exact while a sum stays
// below 256, that is for 63 nibbles = 21 groups of 3. So 8 vector instructions do 3 * 32 * 4 * 2 = 768
// multiply-adds.
#pragma once

#include "kernels/bits.h"

namespace latentbit {

// Byte offset of a table: 256 b + 16 a. A pixel without this tap counts nothing, so the rows after 15 hold
// "b absent" (by a), "a absent" (by b) and "both absent".
constexpr int kAbsentB = 16, kAbsentA = 17, kAbsentBoth = 18, kTableRows = 19;
constexpr int kTableBytes = kTableRows * 256;
constexpr int kGroup = 3;         // nibbles added before the fields are split
constexpr int kChunkGroups = 21;  // groups accumulated in bytes

static inline int nibbles_per_tap(const BinaryShape& s) { return (s.in_channels + 3) / 4; }
static inline int groups(const BinaryShape& s) {
  return (s.window.taps() * nibbles_per_tap(s) + kGroup - 1) / kGroup;
}
static inline int table_indices(const BinaryShape& s) { return groups(s) * kGroup; }

// Room behind the last index: gathering writes up to 32 at a time.
constexpr int kIndexSlack = 32;

struct NibbleTable {
  alignas(64) uint8_t bytes[kTableBytes];
};

static constexpr NibbleTable make_nibble_table() {
  constexpr int kBits[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
  NibbleTable table{};
  for (int a = 0; a < 16; ++a)
    for (int w = 0; w < 16; ++w) {
      for (int b = 0; b < 16; ++b) table.bytes[256 * b + 16 * a + w] = kBits[a ^ w] + 16 * kBits[b ^ w];
      table.bytes[256 * kAbsentB + 16 * a + w] = kBits[a ^ w];
      table.bytes[256 * kAbsentA + 16 * a + w] = 16 * kBits[a ^ w];
    }
  return table;
}

}  // namespace latentbit
