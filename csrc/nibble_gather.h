// What the vector kernels share besides the arithmetic of nibbles.h: weights as nibbles, taps as table
// offsets.
//
// The offset for a pair of pixels (x, x + stride_w) of one input row serves every tap and every pair of
// outputs that sees it. So a band first expands the rows it reads, then copies runs of offsets: one run per
// kernel row, since neighbouring taps touch.
//
// Isa is a type local to the including file, so that every file gets its own copy, compiled for its own set:
//   kLane                   output channels of one vector
//   both(a, b, out)         16 offsets for one word of two pixels
//   alone(a, row, out)      the same where one pixel is absent: row is kAbsentA or kAbsentB
//   absent(out)             16 offsets where both are
//   copy(from, to)          16 offsets
#pragma once

#include "kernels.h"
#include "nibbles.h"

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
    const int n = table_indices(s);
    for (int block = 0; block < s.blocks(); ++block) {
      uint8_t* out = packed + static_cast<size_t>(block) * n * kBlock;
      for (int i = 0; i < n; ++i)
        for (int v = 0; v < vectors(s, block); ++v)
          for (int byte = 0; byte < Isa::kLane; ++byte) {
            const int channel = byte / 2 + byte % 2 * (Isa::kLane / 2);
            *out++ = weight_nibble(s, bits, block * kBlock + v * Isa::kLane + channel, i);
          }
    }
  }

  struct Expanded {
    int rows, columns;  // of the padded input under one band
    size_t offsets;     // of the pairs, in front of the expanded rows

    Expanded(const BinaryShape& s, int pixels) {
      const Window& w = s.window;
      const int out_rows = (pixels - 1) / w.out_w + 2 < w.out_h ? (pixels - 1) / w.out_w + 2 : w.out_h;
      rows = (out_rows - 1) * w.stride_h + (w.kernel_h - 1) * w.dilation_h + 1;
      columns = (w.out_w - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1;
      offsets = static_cast<size_t>(table_indices(s)) * ((pixels + 1) / 2) + kIndexSlack;
    }
  };

  static size_t gather_bytes(const BinaryShape& s, int pixels) {
    const Expanded e(s, pixels);
    return sizeof(uint16_t) *
           (e.offsets + static_cast<size_t>(e.rows) * e.columns * nibbles_per_tap(s) + kIndexSlack);
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

  // One input row for x from -pad_left on; null is a row outside the image.
  static void expand_row(const BinaryShape& s, const uint64_t* row, int columns, uint16_t* out) {
    const Window& w = s.window;
    const int nibbles = nibbles_per_tap(s), words = s.words();
    const auto pixel = [&](int x) {
      return row && x >= 0 && x < w.in_w ? row + static_cast<size_t>(x) * words : nullptr;
    };
    // Columns [begin, end) see both pixels.
    const int begin = w.pad_left < columns ? w.pad_left : columns;
    int end = row ? w.pad_left + w.in_w - w.stride_w : 0;
    end = end > columns ? columns : end < begin ? begin : end;
    int i = 0;
    for (; i < begin; ++i, out += nibbles)
      tap(pixel(i - w.pad_left), pixel(i - w.pad_left + w.stride_w), words, out);
    for (; i < end; ++i, out += nibbles) {
      const uint64_t* a = row + static_cast<size_t>(i - w.pad_left) * words;
      for (int k = 0; k < words; ++k) Isa::both(a + k, a + k + w.stride_w * words, out + 16 * k);
    }
    for (; i < columns; ++i, out += nibbles)
      tap(pixel(i - w.pad_left), pixel(i - w.pad_left + w.stride_w), words, out);
  }

  // Number of k < kernel with 0 <= first + k dilation < size.
  static int taps_inside(int first, int kernel, int dilation, int size) {
    if (first >= 0 && first + (kernel - 1) * dilation < size) return kernel;
    int n = 0;
    for (int k = 0; k < kernel; ++k) n += first + k * dilation >= 0 && first + k * dilation < size;
    return n;
  }

  // A pair that ends one output row and begins the next.
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
    const Expanded e(s, pixels);
    const int nibbles = nibbles_per_tap(s), n = table_indices(s), used = w.taps() * nibbles;
    const int runs = w.dilation_w == 1 ? 1 : w.kernel_w, run = used / (w.kernel_h * runs);
    auto* out = static_cast<uint16_t*>(gathered);
    uint16_t* expanded = out + e.offsets;
    const size_t row = static_cast<size_t>(e.columns) * nibbles;
    const int top = first / w.out_w * w.stride_h - w.pad_top;
    const int bottom =
        (first + pixels - 1) / w.out_w * w.stride_h - w.pad_top + (w.kernel_h - 1) * w.dilation_h;
    for (int y = top; y <= bottom; ++y)
      expand_row(s, y < 0 || y >= w.in_h ? nullptr : image + static_cast<size_t>(y) * w.in_w * s.words(),
                 e.columns, expanded + (y - top) * row);

    int oy = first / w.out_w, ox = first % w.out_w;
    for (int p = 0; p < pixels; ++p) {
      const int y = oy * w.stride_h - w.pad_top;
      taps[p] = taps_inside(y, w.kernel_h, w.dilation_h, w.in_h) *
                taps_inside(ox * w.stride_w - w.pad_left, w.kernel_w, w.dilation_w, w.in_w);
      if (p % 2 == 0) {
        if (ox + 1 == w.out_w && p + 1 < pixels) {
          gather_apart(s, image, first + p, out);
        } else {
          const uint16_t* from = expanded + (y - top) * row + static_cast<size_t>(ox) * w.stride_w * nibbles;
          for (int ky = 0; ky < w.kernel_h; ++ky)
            for (int r = 0; r < runs; ++r)
              for (int i = 0; i < run; i += 16)
                Isa::copy(
                    from + ky * w.dilation_h * row + static_cast<size_t>(r) * w.dilation_w * nibbles + i,
                    out + (ky * runs + r) * run + i);
        }
        for (int i = used; i < n; ++i) out[i] = kAbsentBoth << 8;
        out += n;
      }
      if (++ox == w.out_w) ox = 0, ++oy;
    }
  }
};

}  // namespace latentbit
