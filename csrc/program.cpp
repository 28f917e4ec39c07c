#include "program.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>

#include "cpu/dispatch.h"

namespace latentbit {
namespace {

constexpr size_t kLine = 64;
// Images that run together: as many as their values fit in here.
constexpr size_t kSliceBytes = size_t{512} << 10, kMaxSlice = 64;

size_t whole_lines(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

struct Span {
  size_t begin, end;
  int last_use;
};

// First gap between the spans still in use at this step, which are in order, that holds `bytes`.
size_t first_gap(const std::vector<Span>& live, size_t bytes) {
  size_t at = 0;
  for (const Span& span : live) {
    if (span.begin >= at + bytes) break;
    at = std::max(at, span.end);
  }
  return at;
}

}  // namespace

void Buffer::reserve(size_t bytes) {
  if (bytes <= bytes_) return;
  memory_.reset();  // first, so that growing never holds both
  aligned_ = nullptr;
  bytes_ = 0;
  memory_.reset(new char[bytes + 2 * kLine]);
  aligned_ = reinterpret_cast<char*>(whole_lines(reinterpret_cast<uintptr_t>(memory_.get())));
  bytes_ = bytes;
}

// Without freeing: a thread of the parent may have been at it.
void Buffer::give_up() {
  (void)memory_.release();
  aligned_ = nullptr;
  bytes_ = 0;
}

void FinishSpec::pad() {
  const size_t n = round_up(channels, kBlock);
  for (auto* array : {&scale, &bias, &slope, &threshold})
    if (!array->empty()) array->resize(n);
  if (!dot_threshold.empty()) dot_threshold.resize(n);
  if (threshold.empty()) threshold.resize(n);
  flip.resize(n / kBlock);
}

Finish FinishSpec::at(const Run& run, int image) const {
  Finish f;
  f.channels = channels;
  if (!scale.empty()) f.scale = scale.data(), f.bias = bias.data();
  if (residual != kNone) f.residual = run.real(residual, image), f.residual_channels = residual_channels;
  f.activation = activation;
  f.slope = slope.data();
  f.low = low;
  f.high = high;
  if (real != kNone) f.real = run.real(real, image);
  if (bits != kNone) f.bits = run.bits(bits, image);
  f.threshold = threshold.data();
  f.flip = flip.data();
  if (!dot_threshold.empty()) f.dot_threshold = dot_threshold.data();
  return f;
}

void Step::connect(const char* its_op, std::vector<int> its_inputs, const Ends& ends) {
  op = its_op;
  inputs = std::move(its_inputs);
  if (ends.residual != kNone) inputs.push_back(ends.residual);
  for (int id : {ends.real, ends.bits})
    if (id != kNone) outputs.push_back(id);
}

Program::Program(const std::string& isa, int threads, int channels, int height, int width, size_t max_bytes)
    : kernels_(&kernels_named(isa)), threads_(threads), max_bytes_(max_bytes) {
  add_value({false, channels, height, width});
  pixels_ = {std::vector<float>(channels, 0), std::vector<float>(channels, 1)};
  scratch_.resize(threads);
  lanes_.resize(threads);
  scratch_bytes_ = static_cast<size_t>(channels) * width;  // a row of bytes, channel by channel
  need_room(scratch_bytes_ * threads, "scratch", "input");
  for (Buffer& buffer : scratch_) buffer.reserve(scratch_bytes_);
}

int Program::add_value(const Value& value) {
  if (value.channels < 1 || value.height < 1 || value.width < 1)
    throw std::invalid_argument("an empty value");
  if (int64_t{value.height} * value.width > kMaxNumbers / value.channels)
    throw std::invalid_argument("a value of " + std::to_string(value.channels) + " x " +
                                std::to_string(value.height) + " x " + std::to_string(value.width) +
                                ", more than " + std::to_string(kMaxNumbers) + " numbers");
  values_.push_back(value);
  return static_cast<int>(values_.size()) - 1;
}

const Value& Program::value(int id) const {
  if (id < 0 || id >= static_cast<int>(values_.size())) throw std::invalid_argument("no such value");
  return values_[id];
}

void Program::add(std::unique_ptr<Step> step) {
  for (int id : step->inputs) value(id);
  for (int id : step->outputs) value(id);
  const size_t scratch = std::max(scratch_bytes_, step->scratch_bytes());
  const size_t weights = weight_bytes_ + step->weight_bytes();
  need_room(weights + scratch * threads(), "weights and scratch", step->name);
  for (Buffer& buffer : scratch_) buffer.reserve(scratch);
  scratch_bytes_ = scratch;
  weight_bytes_ = weights;
  steps_.push_back(std::move(step));
  const Step& added = *steps_.back();
  if (std::count(added.inputs.begin(), added.inputs.end(), kInput) && !added.takes_bytes())
    all_take_bytes_ = false;
  slice_ = 0;
  for (Lane& lane : lanes_) lane.batch = 0;
}

void Program::need_room(size_t bytes, const char* what, const std::string& name) const {
  if (bytes <= max_bytes_) return;
  throw std::invalid_argument("layer '" + name + "': " + what + " up to here take " + std::to_string(bytes) +
                              " bytes with " + std::to_string(threads()) + " thread(s), more than " +
                              std::to_string(max_bytes_));
}

// Every value gets a place from the step that writes it to the last that reads it; first fit. Returns the
// bytes that all places take.
size_t Program::place(int batch, std::vector<size_t>& offsets) const {
  const int n = static_cast<int>(steps_.size());
  std::vector<int> last_use(values_.size(), -1);
  for (int s = 0; s < n; ++s)
    for (int id : steps_[s]->inputs) last_use[id] = s;
  if (output_ != kNone) last_use[output_] = n;

  offsets.assign(values_.size(), 0);
  std::vector<Span> live;
  size_t end = 0;
  for (int s = 0; s < n; ++s) {
    live.erase(std::remove_if(live.begin(), live.end(), [&](const Span& x) { return x.last_use < s; }),
               live.end());
    const int taken = steps_[s]->in_place;
    for (int id : steps_[s]->outputs) {
      const bool same = taken > kInput && last_use[taken] == s &&
                        values_[taken].bytes() == values_[id].bytes() && !values_[id].bits &&
                        !values_[taken].bits;
      const size_t bytes = whole_lines(values_[id].bytes() * batch);
      offsets[id] = same ? offsets[taken] : first_gap(live, bytes);
      const Span span{offsets[id], offsets[id] + bytes, std::max(last_use[id], s)};
      live.insert(std::upper_bound(live.begin(), live.end(), span,
                                   [](const Span& a, const Span& b) { return a.begin < b.begin; }),
                  span);
      end = std::max(end, offsets[id] + bytes);
    }
  }
  return end;
}

size_t Program::arena_bytes() const {
  size_t bytes = 0;
  for (const Lane& lane : lanes_) bytes += lane.arena.size();
  return bytes;
}

void Program::choose_slice() {
  std::vector<size_t> offsets;
  value_bytes_ = std::max<size_t>(place(1, offsets), 1);
  need_room(weight_bytes_ + scratch_bytes_ * threads() + value_bytes_, "weights, scratch and values",
            steps_.back()->name);
  slice_ = static_cast<int>(std::max<size_t>(1, std::min(kMaxSlice, kSliceBytes / value_bytes_)));
}

void Program::make_room(Lane& lane, int batch, bool bytes) {
  if (bytes && !all_take_bytes_) lane.normalised.reserve(values_[kInput].bytes() * batch);
  if (batch <= lane.batch) return;
  std::vector<size_t> offsets;
  const size_t end = place(batch, offsets);
  lane.batch = 0;  // until it has worked
  lane.arena.reserve(end);
  lane.places.resize(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) lane.places[i] = lane.arena.data() + offsets[i];
  lane.batch = batch;
}

// In a child whose parent forked during a call: what that call was allocating may be half made.
void Program::forget_values() {
  slice_ = 0;
  for (Lane& lane : lanes_) {
    lane.arena.give_up();
    lane.normalised.give_up();
    new (&lane.places) std::vector<char*>;
    lane.batch = 0;
  }
}

void Program::set_pixels(const Pixels& pixels) {
  const size_t n = values_[kInput].channels;
  if (pixels.mean.size() != n || pixels.std.size() != n)
    throw std::invalid_argument("mean and std must be one number per channel");
  for (float std : pixels.std)
    if (!(std > 0)) throw std::invalid_argument("std must be positive");
  pixels_ = pixels;
}

void Program::run(const float* images, int batch, float* out, std::vector<double>* times) {
  run_batch({images, nullptr, false, out, times}, batch);
}

void Program::run(const uint8_t* images, bool channels_last, int batch, float* out,
                  std::vector<double>* times) {
  run_batch({nullptr, images, channels_last, out, times}, batch);
}

void Program::run_batch(const Batch& batch, int n) {
  const Threads::Turn turn(threads_);
  if (turn.broken_off()) forget_values();
  if (steps_.empty() || output_ == kNone) throw std::invalid_argument("a program without steps or output");
  if (!slice_) choose_slice();
  if (batch.times) batch.times->assign(steps_.size(), 0);
  // As many images as give every thread the same share run apart; the rest, and what is timed, together.
  const int workers = threads();
  const size_t values = weight_bytes_ + (scratch_bytes_ + value_bytes_) * workers;
  int apart = workers == 1 || batch.times || values > max_bytes_ ? 0 : n / workers * workers;
  const int slice = std::max(1, std::min(slice_, apart / workers));
  if (apart) {
    for (Lane& lane : lanes_) make_room(lane, slice, batch.bytes);  // before the threads start: it may throw
    threads_.each((apart + slice - 1) / slice, [&](int64_t item, int thread) {
      const int first = static_cast<int>(item) * slice;
      run_slice(batch, first, std::min(slice, apart - first), alone_, &scratch_[thread], lanes_[thread]);
    });
  }
  for (int first = apart; first < n; first += slice_) {
    const int some = std::min(slice_, n - first);
    make_room(lanes_[0], some, batch.bytes);
    run_slice(batch, first, some, threads_, scratch_.data(), lanes_[0]);
  }
}

void Program::run_slice(const Batch& batch, int first, int n, Threads& threads, const Buffer* scratch,
                        Lane& lane) {
  using Clock = std::chrono::steady_clock;
  const size_t in = values_[kInput].bytes() / sizeof(float),
               result = values_[output_].bytes() / sizeof(float);
  Run run{kernels_,
          &threads,
          &values_,
          &lane.places,
          scratch,
          batch.images ? batch.images + in * first : nullptr,
          batch.bytes ? batch.bytes + in * first : nullptr,
          batch.channels_last,
          n};
  auto start = batch.times ? Clock::now() : Clock::time_point();
  if (run.bytes && !all_take_bytes_) normalise(run, lane);
  for (size_t i = 0; i < steps_.size(); ++i) {
    steps_[i]->run(run);
    if (!batch.times) continue;
    const auto end = Clock::now();
    (*batch.times)[i] += std::chrono::duration<double, std::nano>(end - start).count();
    start = end;
  }
  std::memcpy(batch.out + result * first, run.real(output_, 0), values_[output_].bytes() * n);
}

// Bytes as the real images that steps read which do not take them. Its time counts for the first step.
void Program::normalise(Run& run, Lane& lane) const {
  const Value& in = values_[kInput];
  const size_t pixels = in.pixels();
  auto* out = reinterpret_cast<float*>(lane.normalised.data());
  run.each(in.height, [&](int image, int y, int thread) {
    const size_t row = static_cast<size_t>(y) * in.width;
    const uint8_t* from = run.bytes + pixels * in.channels * image;
    auto* planes = reinterpret_cast<uint8_t*>(run.scratch[thread].data());
    if (run.channels_last)
      run.kernels->split_pixels(from + row * in.channels, in.channels, in.width, planes, in.width);
    for (int c = 0; c < in.channels; ++c)
      run.kernels->normalise(
          run.channels_last ? planes + static_cast<size_t>(c) * in.width : from + pixels * c + row, in.width,
          pixels_.mean[c], pixels_.std[c],
          out + (static_cast<size_t>(image) * in.channels + c) * pixels + row);
  });
  run.input = out;
}

}  // namespace latentbit
