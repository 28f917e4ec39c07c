// Which taps of an output pixel fall inside the image. Nothing here may need the standard library.
#pragma once

#include "kernels/bits.h"

namespace latentbit {

// Taps [begin, end) of `kernel` for which 0 <= first + k dilation < size; begin = end if there are none.
struct TapRange {
  int begin, end;
};
static inline TapRange taps_inside(int first, int kernel, int dilation, int size) {
  if (first >= 0 && first + (kernel - 1) * dilation < size) return {0, kernel};
  int begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  int end = first >= size ? 0 : (size - first + dilation - 1) / dilation;
  end = end > kernel ? kernel : end;
  return {begin < end ? begin : end, end};
}

static inline TapRange taps_down(const Window& w, int oy) {
  return taps_inside(oy * w.stride_h - w.pad_top, w.kernel_h, w.dilation_h, w.in_h);
}
static inline TapRange taps_across(const Window& w, int ox) {
  return taps_inside(ox * w.stride_w - w.pad_left, w.kernel_w, w.dilation_w, w.in_w);
}

// The outputs [begin, end) of a row all of whose taps lie between the left and right edge of the image.
static inline TapRange inner_outputs(const Window& w) {
  const int last = w.in_w - 1 - (w.kernel_w - 1) * w.dilation_w + w.pad_left;  // where the last may begin
  int end = last < 0 ? 0 : last / w.stride_w + 1;
  end = end < w.out_w ? end : w.out_w;
  const int begin = (w.pad_left + w.stride_w - 1) / w.stride_w;
  return {begin < end ? begin : end, end};
}

// The number of taps of each of `pixels` output pixels from `first` on.
static inline void count_taps(const Window& w, int first, int pixels, int* taps) {
  int oy = first / w.out_w, ox = first % w.out_w;
  const TapRange inner = inner_outputs(w);
  for (const int* end = taps + pixels; taps < end; ++oy, ox = 0) {
    const TapRange down = taps_down(w, oy);
    const int rows = down.end - down.begin;
    for (; ox < w.out_w && taps < end; ++ox) {
      const bool whole = ox >= inner.begin && ox < inner.end;
      const TapRange across = whole ? TapRange{0, w.kernel_w} : taps_across(w, ox);
      *taps++ = rows * (across.end - across.begin);
    }
  }
}

}  // namespace latentbit
