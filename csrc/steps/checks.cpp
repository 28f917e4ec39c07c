#include "steps/checks.h"

namespace latentbit {
namespace {

template <typename T>
void need_size(const std::vector<T>& array, int n, const char* what) {
  need(array.empty() || array.size() >= static_cast<size_t>(n), what);
}

}  // namespace

Window Geometry::over(int in_h, int in_w) const {
  for (int v : {kernel[0], kernel[1], stride[0], stride[1], dilation[0], dilation[1]})
    need(v >= 1, "an empty window");
  for (int v : padding) need(v >= 0, "a negative padding");
  const int64_t padded_h = int64_t{in_h} + padding[0] + padding[2];
  const int64_t padded_w = int64_t{in_w} + padding[1] + padding[3];
  need(int64_t{kernel[0]} * kernel[1] <= kMaxTaps, "a window of too many taps");
  need(padded_h <= kMaxNumbers / padded_w, "a padded input of too many numbers");
  const int64_t room_h = padded_h - int64_t{dilation[0]} * (kernel[0] - 1) - 1;
  const int64_t room_w = padded_w - int64_t{dilation[1]} * (kernel[1] - 1) - 1;
  need(room_h >= 0 && room_w >= 0, "a kernel larger than its padded input");
  const int out_h = static_cast<int>(room_h / stride[0]) + 1,
            out_w = static_cast<int>(room_w / stride[1]) + 1;
  return {in_h,      in_w,      out_h,      out_w,      kernel[0],   kernel[1],
          stride[0], stride[1], padding[0], padding[1], dilation[0], dilation[1]};
}

void check_finish(const Program& program, const FinishSpec& f, int channels, int pixels) {
  need(f.channels == channels, "a finish for another number of channels");
  need(f.real != kNone || f.bits != kNone, "a step without output");
  for (int id : {f.real, f.bits, f.residual})
    if (id != kNone) need(id != kInput && program.value(id).pixels() == pixels, "a finish of another size");
  if (f.real != kNone)
    need(!program.value(f.real).bits && program.value(f.real).channels == channels, "real output");
  if (f.bits != kNone)
    need(program.value(f.bits).bits && program.value(f.bits).channels == channels, "bits output");
  if (f.residual != kNone) {
    const Value& residual = program.value(f.residual);
    need(!residual.bits && residual.channels == f.residual_channels && channels % residual.channels == 0,
         "shortcut");
  }
  need(f.scale.size() == f.bias.size(), "scale without bias");
  need(f.activation != Activation::clamp || f.low <= f.high, "an empty clamp");
  need(f.activation != Activation::prelu || !f.slope.empty(), "prelu without slope");
  need(f.dot_threshold.empty() || (f.bits != kNone && f.real == kNone), "an integer threshold gives bits");
  need_size(f.scale, channels, "scale");
  need_size(f.slope, channels, "slope");
  need_size(f.threshold, channels, "threshold");
  need_size(f.dot_threshold, channels, "integer threshold");
  need(static_cast<int>(f.flip.size()) >= words_for(channels), "flip");
}

void check_convolution(const Value& in, int out_channels, int groups, const Geometry& geometry) {
  need(groups >= 1 && in.channels % groups == 0 && out_channels % groups == 0, "groups do not divide");
  const Window window = geometry.over(in.height, in.width);
  const int64_t padded_h = int64_t{in.height} + geometry.padding[0] + geometry.padding[2];
  const int64_t padded_w = int64_t{in.width} + geometry.padding[1] + geometry.padding[3];
  need(padded_h * padded_w <= kMaxNumbers / in.channels &&
           int64_t{window.pixels()} * out_channels <= kMaxNumbers,
       "a convolution of too many numbers");
  need(int64_t{window.taps()} * (in.channels / groups) <= kMaxTaps, "too many products per output");
}

}  // namespace latentbit
