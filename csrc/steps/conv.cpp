// Real convolution: bands of rows copied into a zero-padded frame, then tiles of pixels by channels. A max
// pooling that follows is taken along, band by band, so that its large input never leaves the cache.
#include <algorithm>
#include <cstring>

#include "steps/byte_conv.h"
#include "steps/checks.h"
#include "steps/pair_conv.h"

namespace latentbit {
namespace {

constexpr int kBandRows = 8;         // convolution rows per frame
constexpr int kLinearChannels = 64;  // one thread's share of a single pixel

size_t aligned(size_t floats) { return (floats + 15) / 16 * 16; }

// Where part `i` of `n` parts of `rows` begins.
int share_of(int rows, int i, int n) { return static_cast<int>(int64_t{rows} * i / n); }

// Pixels of a row from planes; the constant lets the compiler turn three strided loops into shuffles.
void interleave(const float* planes, size_t plane, int channels, int pixels, float* out) {
  if (channels == 3) {
    const float *r = planes, *g = planes + plane, *b = planes + 2 * plane;
    for (int x = 0; x < pixels; ++x) {
      out[3 * x] = r[x];
      out[3 * x + 1] = g[x];
      out[3 * x + 2] = b[x];
    }
    return;
  }
  for (int c = 0; c < channels; ++c)
    for (int x = 0; x < pixels; ++x) out[static_cast<size_t>(x) * channels + c] = planes[c * plane + x];
}

class ConvStep final : public Step {
 public:
  ConvStep(const Program& program, int input, const float* weights, const float* bias, int out_channels,
           int groups, const Geometry& geometry, FinishSpec finish, const Pooled* pooled,
           const ByteWeights* bytes)
      : window_(geometry.over(program.value(input).height, program.value(input).width)),
        groups_(groups),
        in_channels_(program.value(input).channels),
        out_channels_(out_channels),
        finish_(std::move(finish)) {
    const Window& w = window_;
    frame_w_ = (w.out_w - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1;
    shape_ = {in_channels_ / groups,
              out_channels / groups,
              in_channels_,
              frame_w_ * in_channels_,
              w.out_w,
              w.kernel_h,
              w.kernel_w,
              w.stride_h,
              w.stride_w,
              w.dilation_h,
              w.dilation_w};
    if (pooled) {
      pool_ = pooled->geometry.over(w.out_h, w.out_w);
      pool_finish_ = pooled->finish;
      is_pooled_ = true;
    }
    pack(weights, bias);
    if (bytes && input == kInput && groups == 1 && !is_linear() && program.kernels().conv_row_bytes &&
        ByteConv::fits(w, in_channels_, out_channels))
      bytes_ = std::make_unique<ByteConv>(w, in_channels_, out_channels, bytes->weights, bytes->scale, bias,
                                          program.pixels());
    if (input == kInput && groups == 1 && !is_linear() && program.kernels().pairs &&
        PairConv::fits(w, in_channels_))
      pairs_ = std::make_unique<PairConv>(w, in_channels_, out_channels, weights, bias);
  }

  size_t scratch_bytes() const override { return sizeof(float) * (frame_floats() + rows_floats()) + 64; }
  size_t weight_bytes() const override {
    return sizeof(float) * (panels_.size() + bias_.size()) + (bytes_ ? bytes_->weight_bytes() : 0) +
           (pairs_ ? pairs_->weight_bytes() : 0);
  }
  bool takes_bytes() const override { return bytes_ != nullptr; }

  void run(const Run& run) const override {
    if (is_linear()) return run_linear(run);
    // Segments of a pooled convolution overlap: make them only for threads to share.
    const int rows = is_pooled_ ? pool_.out_h : window_.out_h, threads = run.threads->size();
    const int wanted = is_pooled_ ? (threads == 1 ? 1 : 2 * threads) : (rows + kBandRows - 1) / kBandRows;
    const int segments = std::max(1, std::min(rows, std::max(wanted, threads == 1 ? 1 : 2 * threads)));
    run.each(segments, [&](int image, int segment, int thread) {
      auto* scratch = reinterpret_cast<float*>(run.scratch[thread].data());
      const int begin = share_of(rows, segment, segments), end = share_of(rows, segment + 1, segments);
      if (is_pooled_)
        pooled_rows(run, image, begin, end, scratch);
      else
        plain_rows(run, image, begin, end, scratch);
    });
  }

 private:
  bool is_linear() const { return window_.pixels() == 1 && groups_ == 1 && !is_pooled_; }

  // Panels of kConvBlock output channels, zero beyond the last one.
  void pack(const float* weights, const float* bias) {
    const int inner = shape_.in_channels * window_.taps(), per_group = shape_.out_channels;
    panel_ = static_cast<size_t>(inner) * kConvBlock;
    group_panels_ = panel_ * ((per_group + kConvBlock - 1) / kConvBlock);
    panels_.assign(group_panels_ * groups_, 0);
    group_bias_ = round_up(per_group, 4 * kConvBlock);  // what the widest tile reads
    bias_.assign(static_cast<size_t>(group_bias_) * groups_, 0);
    for (int o = 0; o < out_channels_; ++o) {
      const int c = o % per_group;
      bias_[static_cast<size_t>(group_bias_) * (o / per_group) + c] = bias[o];
      float* to =
          panels_.data() + group_panels_ * (o / per_group) + panel_ * (c / kConvBlock) + c % kConvBlock;
      for (int i = 0; i < shape_.in_channels; ++i)
        for (int t = 0; t < window_.taps(); ++t)
          to[(static_cast<size_t>(t) * shape_.in_channels + i) * kConvBlock] =
              weights[static_cast<size_t>(o) * inner + static_cast<size_t>(i) * window_.taps() + t];
    }
  }

  // No more than the padded image has, as long as there are no more rows than the convolution's.
  int frame_rows(int rows) const {
    return (rows - 1) * window_.stride_h + (window_.kernel_h - 1) * window_.dilation_h + 1;
  }
  int buffer_rows() const {
    if (!is_pooled_) return 1;
    const int64_t reach = int64_t{pool_.kernel_h} * pool_.dilation_h + pool_.stride_h;
    return static_cast<int>(std::min<int64_t>(window_.out_h, kBandRows + reach));
  }
  size_t frame_floats() const {
    const int rows = frame_rows(std::min(window_.out_h, std::max(kBandRows, buffer_rows())));
    const size_t bytes = bytes_ ? bytes_->frame_bytes(rows) : 0;
    const size_t pairs = pairs_ ? pairs_->frame_floats(rows) : 0;
    return aligned(std::max({static_cast<size_t>(rows) * shape_.row + 16, bytes / sizeof(float) + 1, pairs}));
  }
  size_t rows_floats() const {
    const size_t pooled = is_pooled_ ? static_cast<size_t>(pool_.out_w) * out_channels_ : 0;
    return aligned(static_cast<size_t>(buffer_rows()) * window_.out_w * out_channels_) + aligned(pooled);
  }

  // Frame rows for convolution rows [begin, begin + rows) of an image.
  void fill_frame(const Run& run, int image, int begin, int rows, float* frame) const {
    const Window& w = window_;
    const bool planar = inputs[0] == kInput;
    const float* source = planar ? run.planar(image) : run.real(inputs[0], image);
    const int c = in_channels_, left = std::min(w.pad_left, frame_w_);
    const int right = std::max(left, std::min(frame_w_, w.in_w + w.pad_left));
    for (int r = 0; r < frame_rows(rows); ++r, frame += shape_.row) {
      const int y = begin * w.stride_h - w.pad_top + r;
      if (y < 0 || y >= w.in_h) {
        std::fill(frame, frame + shape_.row, 0.0f);
        continue;
      }
      std::fill(frame, frame + left * c, 0.0f);
      std::fill(frame + right * c, frame + frame_w_ * c, 0.0f);
      if (!planar) {
        std::memcpy(frame + left * c, source + static_cast<size_t>(y) * w.in_w * c,
                    sizeof(float) * (right - left) * c);
        continue;
      }
      const float* plane = source + static_cast<size_t>(y) * w.in_w;
      interleave(plane, static_cast<size_t>(w.in_h) * w.in_w, c, right - left, frame + left * c);
    }
  }

  // A band of convolution rows of an image, whose input lies in a frame.
  struct Band {
    int image, begin, rows;
    float* frame;
  };

  void fill_band(const Run& run, const Band& band) const {
    const int first = band.begin * window_.stride_h - window_.pad_top, rows = frame_rows(band.rows);
    if (run.bytes && bytes_)
      bytes_->fill(run, band.image, first, rows, reinterpret_cast<uint8_t*>(band.frame));
    else if (pairs_)
      pairs_->fill(run, band.image, first, rows, band.frame);
    else
      fill_frame(run, band.image, band.begin, band.rows, band.frame);
  }

  // `rows` rows from row `first` of the band on.
  void conv_rows(const Run& run, const Band& band, int first, int rows, float* out) const {
    const size_t row = static_cast<size_t>(window_.out_w) * out_channels_;
    if (run.bytes && bytes_) {
      for (int r = 0; r < rows; ++r)
        bytes_->row(run, reinterpret_cast<const uint8_t*>(band.frame), frame_rows(band.rows), first + r,
                    band.begin + first + r, out + r * row);
      return;
    }
    if (pairs_) {
      for (int r = 0; r < rows; ++r) pairs_->row(run, band.frame, first + r, out + r * row);
      return;
    }
    for (int g = 0; g < groups_; ++g)
      for (int r = 0; r < rows; ++r)
        run.kernels->conv_row(shape_, panels_.data() + group_panels_ * g,
                              bias_.data() + static_cast<size_t>(group_bias_) * g,
                              band.frame + g * shape_.in_channels, first + r, window_.out_w,
                              out + r * row + g * shape_.out_channels, out_channels_);
  }

  void plain_rows(const Run& run, int image, int begin, int end, float* scratch) const {
    float* buffer = scratch + frame_floats();
    const Finish finish = finish_.at(run, image);
    for (int y = begin; y < end; y += kBandRows) {
      const Band band{image, y, std::min(kBandRows, end - y), scratch};
      fill_band(run, band);
      for (int r = 0; r < band.rows; ++r) {
        const int first = (y + r) * window_.out_w;
        float* out = finish_.trivial() ? finish.real + static_cast<size_t>(first) * out_channels_ : buffer;
        conv_rows(run, band, r, 1, out);
        if (!finish_.trivial()) run.kernels->finish_real(finish, buffer, first, window_.out_w);
      }
    }
  }

  // Keeps the convolution rows that the next pooling row shares with this one.
  void pooled_rows(const Run& run, int image, int begin, int end, float* scratch) const {
    float* buffer = scratch + frame_floats();
    const size_t row = static_cast<size_t>(window_.out_w) * out_channels_;
    float* pooled = buffer + aligned(buffer_rows() * row);
    Finish inner = finish_.at(run, image);
    const Finish outer = pool_finish_.at(run, image);
    const int reach = (pool_.kernel_h - 1) * pool_.dilation_h;
    int held_begin = 0, held_end = 0;  // convolution rows in the buffer
    const int step = std::max(1, kBandRows / pool_.stride_h);
    for (int y = begin; y < end; y += step) {
      const int last = std::min(end, y + step) - 1;
      const int from = std::max(0, y * pool_.stride_h - pool_.pad_top);
      const int to = std::min(window_.out_h, last * pool_.stride_h - pool_.pad_top + reach + 1);
      const int kept = std::max(0, held_end - std::max(from, held_begin));
      if (kept)
        std::memmove(buffer, buffer + (held_end - kept - held_begin) * row, sizeof(float) * kept * row);
      const int fresh = to - from - kept;
      const Band band{image, from + kept, fresh, scratch};
      fill_band(run, band);
      conv_rows(run, band, 0, fresh, buffer + kept * row);
      inner.real = buffer + kept * row;
      if (!finish_.trivial()) run.kernels->finish_real(inner, inner.real, 0, fresh * window_.out_w);
      held_begin = from;
      held_end = to;
      for (int p = y; p <= last; ++p) {
        const int first = p * pool_.out_w;
        float* out = outer.bits ? pooled : outer.real + static_cast<size_t>(first) * out_channels_;
        run.kernels->max_pool_row(pool_, out_channels_, buffer - from * row, p, out);
        if (outer.bits) run.kernels->finish_real(outer, pooled, first, pool_.out_w);
      }
    }
  }

  void run_linear(const Run& run) const {
    const int shares = (out_channels_ + kLinearChannels - 1) / kLinearChannels;
    run.each(shares, [&](int image, int part, int thread) {
      const int first = part * kLinearChannels;
      auto* scratch = reinterpret_cast<float*>(run.scratch[thread].data());
      ConvShape share = shape_;
      share.out_channels = std::min(kLinearChannels, out_channels_ - first);
      fill_frame(run, image, 0, 1, scratch);
      run.kernels->conv_row(share, panels_.data() + panel_ * (first / kConvBlock), bias_.data() + first,
                            scratch, 0, 1, run.real(linear_out_, image) + first, out_channels_);
    });
    for (int image = 0; image < run.batch; ++image) {
      const Finish finish = finish_.at(run, image);
      run.kernels->finish_real(finish, run.real(linear_out_, image), 0, 1);
    }
  }

  Window window_, pool_{};
  int groups_, in_channels_, out_channels_, frame_w_;
  bool is_pooled_ = false;
  ConvShape shape_;
  size_t panel_ = 0, group_panels_ = 0;
  int group_bias_ = 0;
  std::vector<float> panels_, bias_;
  std::unique_ptr<ByteConv> bytes_;
  std::unique_ptr<PairConv> pairs_;
  FinishSpec finish_, pool_finish_;

 public:
  int linear_out_ = kNone;
};

}  // namespace

std::unique_ptr<Step> conv_step(const Program& program, int input, const float* weights, const float* bias,
                                int out_channels, int groups, const Geometry& geometry, FinishSpec finish,
                                const Pooled* pooled, const ByteWeights* bytes) {
  const Value& in = program.value(input);
  need(!in.bits, "a real convolution reads real values");
  check_convolution(in, out_channels, groups, geometry);
  const Window window = geometry.over(in.height, in.width);
  if (pooled) {
    need(finish.real == kNone && finish.bits == kNone && finish.residual == kNone,
         "a pooled convolution has no output of its own");
    check_finish(program, pooled->finish, out_channels,
                 pooled->geometry.over(window.out_h, window.out_w).pixels());
  } else {
    check_finish(program, finish, out_channels, window.pixels());
    need(window.pixels() > 1 || finish.real != kNone, "a linear layer has a real output");
  }
  const Ends ends = ends_of(pooled ? pooled->finish : finish);
  auto step = std::make_unique<ConvStep>(program, input, weights, bias, out_channels, groups, geometry,
                                         std::move(finish), pooled, bytes);
  step->linear_out_ = ends.real;
  step->connect("conv", {input}, ends);
  return step;
}

}  // namespace latentbit
