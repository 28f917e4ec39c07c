// What the vector kernels share besides the arithmetic of nibbles.h: weights as nibbles, taps as table
// offsets.
//
// The offset for a pair of pixels (x, x + stride_w) of one input row serves every tap and every pair of
// outputs that sees it. So a band expands the parts of rows that it reads, once. Taps of one kernel row
// touch: where runs of them come in whole groups, and no pair of outputs ends one row and begins the next,
// counting reads the expanded rows in place. Otherwise the runs of every pair are copied behind each other. A
// kernel whose taps lie far apart would expand much that nobody reads: its taps are gathered one by one.
//
// Isa is a type local to the including file, so that every file gets its own copy, compiled for its own set:
//   kLane                   output channels of one vector
//   both(a, b, out)         16 offsets for one word of two pixels
//   alone(a, row, out)      the same where one pixel is absent: row is kAbsentA or kAbsentB
//   absent(out)             16 offsets where both are
//   stream(a, b, n, slack, out)   2 n offsets for n bytes of neighbouring pixels; writes up to 32 too many.
//   Reads up
//                           to 15 bytes too many only if there is slack; else n is a multiple of 8, and the
//                           bytes behind may be another thread's
//   copy(from, to)          16 offsets
#pragma once

#include "kernels/kernels.h"
#include "kernels/nibbles.h"
#include "kernels/taps.h"

namespace latentbit {

template <typename Isa>
struct NibbleGather {
  static int vectors(const BinaryShape& s, int block) {
    const int left = s.out_channels - block * kBlock;
    return left >= kBlock ? kBlock / Isa::kLane : (left + Isa::kLane - 1) / Isa::kLane;
  }

  static size_t weight_bytes(const BinaryShape& s) {
    return static_cast<size_t>(s.blocks()) * table_indices(s) * kBlock;
  }

  // Per block [index][vector][byte]. Bytes 2i and 2i + 1 hold channels i and kLane / 2 + i: splitting 16-bit
  // lanes into bytes then yields channels in order.
  static void pack_weights(const BinaryShape& s, const uint64_t* bits, uint8_t* packed) {
    const size_t block_bytes = static_cast<size_t>(table_indices(s)) * kBlock;
    for (size_t i = 0; i < block_bytes * s.blocks(); ++i) packed[i] = 0;
    for (int channel = 0; channel < s.out_channels; ++channel) {
      const int block = channel / kBlock, v = channel % kBlock / Isa::kLane, c = channel % Isa::kLane;
      const int byte = c < Isa::kLane / 2 ? 2 * c : 2 * c - Isa::kLane + 1;
      const int apart = vectors(s, block) * Isa::kLane;  // from one index to the next
      pack_channel(s, bits + static_cast<size_t>(channel) * s.window.taps() * s.words(),
                   packed + block_bytes * block + v * Isa::kLane + byte, apart);
    }
  }

  // The nibbles of one output channel, tap by tap, each `apart` bytes behind the one before.
  static void pack_channel(const BinaryShape& s, const uint64_t* bits, uint8_t* out, int apart) {
    for (int tap = 0; tap < s.window.taps(); ++tap, bits += s.words())
      for (int nibble = 0; nibble < nibbles_per_tap(s); ++nibble, out += apart)
        *out = bits[nibble / 16] >> (4 * (nibble % 16)) & 15;
  }

  // How the offsets of a pair lie: runs of whole groups, stride offsets apart.
  struct Runs {
    bool in_place;
    int n, groups;
    size_t stride;

    explicit Runs(const BinaryShape& s) {
      const Window& w = s.window;
      const int run = w.kernel_w * nibbles_per_tap(s);
      in_place = !sparse(w) && w.dilation_w == 1 && w.out_w % 2 == 0 && run % kGroup == 0;
      n = in_place ? w.kernel_h : 1;
      groups = in_place ? run / kGroup : latentbit::groups(s);
      stride = in_place ? static_cast<size_t>(columns(w)) * nibbles_per_tap(s) * w.dilation_h : 0;
    }
  };

  static bool sparse(const Window& w) {
    return (w.dilation_w > 1 && (w.kernel_w - 1) * w.dilation_w > kBandPixels) ||
           (w.dilation_h > 1 && (w.kernel_h - 1) * w.dilation_h > kBandPixels);
  }

  // Of the expanded part of a row; bands of wide maps lie within one output row.
  static int columns(const Window& w) {
    const int out = w.out_w < kBandPixels ? w.out_w : kBandPixels;
    return (out - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1;
  }

  // Gathered form: where the offsets of each pair begin (in 16-bit units), copied runs if any, expanded rows.
  static size_t begins(int pixels) { return round_up((pixels + 1) / 2 * 2, 16); }
  static size_t whole(size_t indices) { return (indices + kIndexSlack + 15) / 16 * 16; }
  static size_t copies(const BinaryShape& s, int pixels) {
    return Runs(s).in_place ? 0 : whole(static_cast<size_t>(table_indices(s)) * ((pixels + 1) / 2));
  }

  static size_t expanded_rows(const Window& w, int pixels) {
    const int out_rows = (pixels - 1) / w.out_w + 2 < w.out_h ? (pixels - 1) / w.out_w + 2 : w.out_h;
    return static_cast<size_t>(out_rows - 1) * w.stride_h + (w.kernel_h - 1) * w.dilation_h + 1;
  }

  static size_t gather_bytes(const BinaryShape& s, int pixels) {
    const size_t front = begins(pixels) + copies(s, pixels);
    if (sparse(s.window)) return sizeof(uint16_t) * front;
    const size_t row = static_cast<size_t>(columns(s.window)) * nibbles_per_tap(s);
    return sizeof(uint16_t) * (front + whole(expanded_rows(s.window, pixels) * row)) + compact_bytes(s);
  }

  // Part of one row without gaps, at the end.
  static size_t compact_bytes(const BinaryShape& s) {
    return sizeof(uint32_t) * (static_cast<size_t>(columns(s.window)) + s.window.stride_w) + 64;
  }

  // The offsets of pair i.
  static LATENTBIT_INLINE const uint16_t* pair(const void* gathered, int i) {
    return static_cast<const uint16_t*>(gathered) + static_cast<const uint32_t*>(gathered)[i];
  }

  // One tap of the pixels at a and b, null if absent. Writes up to 15 offsets too many.
  static void tap(const uint64_t* a, const uint64_t* b, int words, uint16_t* out) {
    for (int i = 0; i < words; ++i, out += 16) {
      if (a && b)
        Isa::both(a + i, b + i, out);
      else if (a || b)
        Isa::alone((a ? a : b) + i, a ? kAbsentB : kAbsentA, out);
      else
        Isa::absent(out);
    }
  }

  // Whether pixels are whole bytes that can lie behind each other without gaps.
  static bool dense(int channels) {
    return channels % kWordBits == 0 || channels == 8 || channels == 16 || channels == 32;
  }

  // Pixels of a row without the gaps that words leave behind few channels.
  static const uint8_t* dense_pixels(const BinaryShape& s, const uint64_t* from, int pixels,
                                     uint64_t* compact) {
    if (s.in_channels % kWordBits == 0) return reinterpret_cast<const uint8_t*>(from);
    auto* bytes = reinterpret_cast<uint8_t*>(compact);
    for (int x = 0; x < pixels; ++x) {
      if (s.in_channels == 8) bytes[x] = static_cast<uint8_t>(from[x]);
      if (s.in_channels == 16) reinterpret_cast<uint16_t*>(compact)[x] = static_cast<uint16_t>(from[x]);
      if (s.in_channels == 32) reinterpret_cast<uint32_t*>(compact)[x] = static_cast<uint32_t>(from[x]);
    }
    return bytes;
  }

  // The columns of one input row from x = left on; null is a row outside the image.
  static void expand_row(const BinaryShape& s, const uint64_t* row, int left, int columns, uint16_t* out,
                         uint64_t* compact) {
    const Window& w = s.window;
    const int nibbles = nibbles_per_tap(s), words = s.words();
    const auto pixel = [&](int x) {
      return row && x >= 0 && x < w.in_w ? row + static_cast<size_t>(x) * words : nullptr;
    };
    // Columns [begin, end) see both pixels.
    const int begin = left >= 0 ? 0 : -left < columns ? -left : columns;
    int end = row ? w.in_w - w.stride_w - left : 0;
    end = end > columns ? columns : end < begin ? begin : end;
    int i = 0;
    for (; i < begin; ++i, out += nibbles) tap(pixel(i + left), pixel(i + left + w.stride_w), words, out);
    if (i < end && dense(s.in_channels)) {
      const uint8_t* bytes = dense_pixels(s, pixel(i + left), end - i + w.stride_w, compact);
      const size_t pixel_bytes = s.in_channels / 8;
      Isa::stream(bytes, bytes + w.stride_w * pixel_bytes, (end - i) * pixel_bytes,
                  s.in_channels % kWordBits != 0, out);
      out += static_cast<size_t>(end - i) * nibbles;
      i = end;
    }
    for (; i < end; ++i, out += nibbles) {
      const uint64_t* a = pixel(i + left);
      for (int k = 0; k < words; ++k)
        Isa::both(a + k, a + k + static_cast<size_t>(w.stride_w) * words, out + 16 * k);
    }
    for (; i < columns; ++i, out += nibbles) tap(pixel(i + left), pixel(i + left + w.stride_w), words, out);
  }

  // A pair tap by tap: one that ends an output row and begins the next, or of a sparse kernel.
  static void gather_apart(const BinaryShape& s, const uint64_t* image, int first, uint16_t* out) {
    const Window& w = s.window;
    const int words = s.words(), nibbles = nibbles_per_tap(s);
    const auto pixel = [&](int i) { return i < 0 ? nullptr : image + static_cast<size_t>(i) * words; };
    for (int ky = 0; ky < w.kernel_h; ++ky)
      for (int kx = 0; kx < w.kernel_w; ++kx, out += nibbles)
        tap(pixel(w.source(first / w.out_w, first % w.out_w, ky, kx)),
            pixel(w.source((first + 1) / w.out_w, (first + 1) % w.out_w, ky, kx)), words, out);
  }

  static void gather(const BinaryShape& s, const uint64_t* image, int first, int pixels, void* gathered,
                     int* taps) {
    const Window& w = s.window;
    const bool in_place = Runs(s).in_place, is_sparse = sparse(w);
    const int nibbles = nibbles_per_tap(s), n = table_indices(s);
    auto* start = static_cast<uint16_t*>(gathered);
    auto* begin = static_cast<uint32_t*>(gathered);
    uint16_t* copy = start + begins(pixels);
    uint16_t* expanded = copy + copies(s, pixels);
    const size_t row = static_cast<size_t>(columns(w)) * nibbles;
    const int top = first / w.out_w * w.stride_h - w.pad_top;
    const int left_output = w.out_w > kBandPixels ? first % w.out_w : 0;
    if (!is_sparse) expand_rows(s, image, first, pixels, left_output, expanded);
    count_taps(w, first, pixels, taps);

    int oy = first / w.out_w, ox = first % w.out_w;
    for (int p = 0; p < pixels; p += 2) {
      const uint16_t* from = expanded + (oy * w.stride_h - w.pad_top - top) * row +
                             static_cast<size_t>(ox - left_output) * w.stride_w * nibbles;
      *begin++ = static_cast<uint32_t>((in_place ? from : copy) - start);
      if (!in_place) {
        if (is_sparse || (ox + 1 == w.out_w && p + 1 < pixels))
          gather_apart(s, image, first + p, copy);
        else
          copy_runs(s, from, row, copy);
        for (int i = w.taps() * nibbles; i < n; ++i) copy[i] = kAbsentBoth << 8;
        copy += n;
      }
      for (ox += 2; ox >= w.out_w; ox -= w.out_w) ++oy;
    }
  }

  // What the outputs of a band read of the input rows, from the column that output left_output begins with.
  static void expand_rows(const BinaryShape& s, const uint64_t* image, int first, int pixels, int left_output,
                          uint16_t* expanded) {
    const Window& w = s.window;
    const int last = first + pixels - 1, outputs = w.out_w > kBandPixels ? pixels : w.out_w;
    const int needed = (outputs - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1;
    const int top = first / w.out_w * w.stride_h - w.pad_top;
    const int bottom = last / w.out_w * w.stride_h - w.pad_top + (w.kernel_h - 1) * w.dilation_h;
    const size_t row = static_cast<size_t>(columns(w)) * nibbles_per_tap(s);
    auto* compact = reinterpret_cast<uint64_t*>(expanded + whole((bottom - top + 1) * row));
    for (int y = top; y <= bottom; ++y)
      expand_row(s, y < 0 || y >= w.in_h ? nullptr : image + static_cast<size_t>(y) * w.in_w * s.words(),
                 left_output * w.stride_w - w.pad_left, needed, expanded + (y - top) * row, compact);
  }

  static void copy_runs(const BinaryShape& s, const uint16_t* from, size_t row, uint16_t* to) {
    const Window& w = s.window;
    const int nibbles = nibbles_per_tap(s), runs = w.dilation_w == 1 ? 1 : w.kernel_w;
    const int run = nibbles * (w.kernel_w / runs);
    for (int ky = 0; ky < w.kernel_h; ++ky)
      for (int r = 0; r < runs; ++r, to += run) {
        const uint16_t* at = from + ky * w.dilation_h * row + static_cast<size_t>(r) * w.dilation_w * nibbles;
        for (int i = 0; i < run; i += 16) Isa::copy(at + i, to + i);
      }
  }

  // Chunks of runs, or of one run, that bytes can hold: visit(first run, runs, first group of a run, groups
  // of a run).
  template <typename Visit>
  static LATENTBIT_INLINE void each_chunk(const Runs& runs, const Visit& visit) {
    if (runs.groups <= kChunkGroups) {
      const int n = kChunkGroups / runs.groups;
      for (int r = 0; r < runs.n; r += n) visit(r, runs.n - r < n ? runs.n - r : n, 0, runs.groups);
      return;
    }
    const int parts = (runs.groups + kChunkGroups - 1) / kChunkGroups;
    for (int r = 0; r < runs.n; ++r)
      for (int part = 0; part < parts; ++part) {
        const int first = static_cast<int>(static_cast<int64_t>(runs.groups) * part / parts);
        visit(r, 1, first, static_cast<int>(static_cast<int64_t>(runs.groups) * (part + 1) / parts) - first);
      }
  }
};

}  // namespace latentbit
