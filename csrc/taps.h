// Which taps of an output pixel fall inside the image. Nothing here may need the standard library.
#pragma once

#include "bits.h"

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

// The number of taps of each of `pixels` output pixels from `first` on.
static inline void count_taps(const Window& w, int first, int pixels, int* taps) {
  int oy = first / w.out_w, ox = first % w.out_w;
  for (const int* end = taps + pixels; taps < end; ++oy, ox = 0) {
    const TapRange down = taps_down(w, oy);
    for (; ox < w.out_w && taps < end; ++ox) {
      const TapRange across = taps_across(w, ox);
      *taps++ = (down.end - down.begin) * (across.end - across.begin);
    }
  }
}

}  // namespace latentbit
