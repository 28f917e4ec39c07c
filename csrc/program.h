// A network as a list of steps over values in one arena. Steps are added once, in order; run() allocates
// nothing unless the batch grows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "lbit/limits.h"
#include "threads.h"

namespace latentbit {

// A tensor of one image: real values as [pixel][channels] floats, bits as [pixel][words].
struct Value {
  bool bits;
  int channels, height, width;

  int pixels() const { return height * width; }
  size_t row() const { return bits ? sizeof(uint64_t) * words_for(channels) : sizeof(float) * channels; }
  size_t bytes() const { return row() * pixels(); }
};

// What the network does to pixels first: (x / 255 - mean) / std, one of each per channel.
struct Pixels {
  std::vector<float> mean, std;
};

constexpr int kNone = -1,
              kInput = 0;  // value ids; the input is planar (C, H, W) and stays where the caller has it

struct Buffer {  // cache-line aligned, never shrinks
  void reserve(size_t bytes);
  void give_up();
  char* data() const { return aligned_; }
  size_t size() const { return bytes_; }

 private:
  std::unique_ptr<char[]> memory_;
  char* aligned_ = nullptr;
  size_t bytes_ = 0;
};

// What a step needs while it runs.
struct Run {
  const Kernels* kernels;
  Threads* threads;
  const std::vector<Value>* values;
  const std::vector<char*>* places;
  const Buffer* scratch;  // one per thread
  const float* input;     // null if the step that reads it takes bytes
  const uint8_t* bytes;   // null if the images are real
  bool channels_last;     // of the bytes
  int batch;

  const Value& value(int id) const { return (*values)[id]; }
  // body(image, part, thread) for every part of every image of the batch.
  template <typename Body>
  void each(int parts, const Body& body) const {
    threads->each(int64_t{batch} * parts, [&](int64_t item, int thread) {
      body(static_cast<int>(item / parts), static_cast<int>(item % parts), thread);
    });
  }
  const float* planar(int image) const { return input + value(kInput).bytes() / sizeof(float) * image; }
  float* real(int id, int image) const {
    return reinterpret_cast<float*>((*places)[id] + value(id).bytes() * image);
  }
  uint64_t* bits(int id, int image) const {
    return reinterpret_cast<uint64_t*>((*places)[id] + value(id).bytes() * image);
  }
};

// Owner of the arrays behind a Finish; value ids instead of addresses.
struct FinishSpec {
  int channels = 0, residual = kNone, residual_channels = 0, real = kNone, bits = kNone;
  Activation activation = Activation::none;
  float low = 0, high = 0;
  std::vector<float> scale, bias, slope, threshold;
  std::vector<int32_t> dot_threshold;
  std::vector<uint64_t> flip;

  void pad();  // arrays to a multiple of kBlock; call once all are set
  Finish at(const Run& run, int image) const;
  bool trivial() const {
    return scale.empty() && residual == kNone && activation == Activation::none && bits == kNone;
  }
};

// What a finish reads and writes beside the input of its step; kNone where it does not.
struct Ends {
  int residual, real, bits;
};
inline Ends ends_of(const FinishSpec& finish) { return {finish.residual, finish.real, finish.bits}; }

struct Step {
  std::string name, op;
  const char* isa = nullptr;  // kernels it runs with, if they are not the program's
  std::vector<int> inputs, outputs;
  int in_place = kNone;  // input whose place the real output may take over when nobody reads it later

  virtual ~Step() = default;
  void connect(const char* op, std::vector<int> inputs, const Ends& ends);
  virtual size_t scratch_bytes() const { return 0; }  // of one thread
  virtual size_t weight_bytes() const { return 0; }   // as the kernels hold them
  virtual bool takes_bytes() const { return false; }  // as the input of the network
  virtual void run(const Run& run) const = 0;
};

class Program {
 public:
  // max_bytes bounds weights, scratch and the values of one image together.
  Program(const std::string& isa, int threads, int channels, int height, int width, size_t max_bytes);

  int add_value(const Value& value);
  void add(std::unique_ptr<Step> step);
  void set_output(int value) { output_ = value; }

  const Kernels& kernels() const { return *kernels_; }
  const Value& value(int id) const;
  const std::vector<std::unique_ptr<Step>>& steps() const { return steps_; }
  int threads() const { return threads_.size(); }
  size_t arena_bytes() const;  // values of the batches so far
  size_t weight_bytes() const { return weight_bytes_; }
  size_t scratch_bytes() const { return scratch_bytes_ * threads(); }
  int output() const { return output_; }

  // What images of bytes mean; 0 and 1 unless set. Before the steps that read the input are added.
  void set_pixels(const Pixels& pixels);
  const Pixels& pixels() const { return pixels_; }

  // images is [batch][C][H][W], out [batch][values of the output]; times, if given, gets the nanoseconds per
  // step. Large batches run a few images at a time, each thread its own, so that values stay in the cache, no
  // thread waits for another at every step, and memory does not grow with the batch.
  void run(const float* images, int batch, float* out, std::vector<double>* times);
  // The same for bytes, [batch][C][H][W] or [batch][H][W][C].
  void run(const uint8_t* images, bool channels_last, int batch, float* out, std::vector<double>* times);

 private:
  // Where the values of a few images live while they run.
  struct Lane {
    Buffer arena, normalised;
    std::vector<char*> places;
    int batch = 0;  // images it was made for
  };
  struct Batch {
    const float* images;   // or
    const uint8_t* bytes;  // null
    bool channels_last;
    float* out;
    std::vector<double>* times;
  };

  size_t place(int batch, std::vector<size_t>& offsets) const;
  void choose_slice();
  void make_room(Lane& lane, int batch, bool bytes);
  void run_batch(const Batch& batch, int n);
  void run_slice(const Batch& batch, int first, int n, Threads& threads, const Buffer* scratch, Lane& lane);
  void normalise(Run& run, Lane& lane) const;
  void forget_values();
  void need_room(size_t bytes, const char* what, const std::string& name) const;

  const Kernels* kernels_;
  Threads threads_;
  std::vector<Value> values_;
  std::vector<std::unique_ptr<Step>> steps_;
  int output_ = kNone, slice_ = 0;
  Pixels pixels_;
  size_t value_bytes_ = 0, weight_bytes_ = 0, scratch_bytes_ = 0, max_bytes_;
  std::vector<Buffer> scratch_;
  std::vector<Lane> lanes_;  // one per thread; the first serves all threads together too
  Threads alone_{1};
  bool all_take_bytes_ = true;  // the steps that read the input
};

}  // namespace latentbit
