// The C face of the native code: nothing is thrown out of here.
#define LATENTBIT_BUILDS
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "../include/latentbit.h"
#include "cpu/dispatch.h"
#include "lbit/limits.h"
#include "lbit/lowering.h"
#include "lbit/network.h"
#include "lbit/packed_file_error.h"

struct latentbit_engine {
  latentbit::Shape input, output;
  std::vector<std::string> classes;
  std::string source;
  int resize = 0;
  std::unique_ptr<latentbit::Program> program;
  std::string error;
};

namespace {

using namespace latentbit;

constexpr const char* kNoMemory = "not enough memory";

size_t numbers_in(const Shape& shape) {
  size_t n = 1;
  for (int64_t size : shape) n *= static_cast<size_t>(size);
  return n;
}

void say(const char* reason, char* error, size_t error_size) {
  if (!error || error_size == 0) return;
  size_t n = std::min(std::strlen(reason), error_size - 1);
  // Not in the middle of a letter.
  if (reason[n])
    while (n > 0 && (static_cast<unsigned char>(reason[n]) & 0xC0) == 0x80) --n;
  std::memcpy(error, reason, n);
  error[n] = 0;
}

// An engine of what `open` returns; what it throws becomes text.
template <typename Open>
latentbit_engine* engine_of(const Open& open, int threads, const char* kernels, char* error,
                            size_t error_size) noexcept {
  try {
    try {
      const Network network = open();
      auto engine = std::make_unique<latentbit_engine>();
      engine->program = lower(network, kernels ? kernels : available().front(), threads);
      engine->input = network.input;
      engine->output = network.layers.back().form.shape;
      if (network.classes) engine->classes = *network.classes;
      engine->source = network.source.is(Json::Kind::object) ? network.source.json() : "{}";
      engine->resize = resize_of(network);
      say("", error, error_size);
      return engine.release();
    } catch (const std::bad_alloc&) {
      say(kNoMemory, error, error_size);
    } catch (const std::system_error& problem) {  // when there are no more threads to be had
      say((std::to_string(threads) + " threads cannot be had (" + problem.what() + "): choose fewer").c_str(),
          error, error_size);
    } catch (const std::exception& problem) {
      say(problem.what(), error, error_size);
    }
  } catch (...) {  // not even the words could be made
    say(kNoMemory, error, error_size);
  }
  return nullptr;
}

int refuse(latentbit_engine& engine, const char* reason) noexcept {
  try {
    engine.error = reason;
  } catch (...) {
    engine.error.clear();
  }
  return -1;
}

// Runs a batch if its sizes fit; what `run` throws becomes the engine's error.
template <typename Image, typename Run>
int checked_run(latentbit_engine* engine, const Image* images, size_t n, float* out, size_t out_size,
                const Run& run) noexcept {
  try {
    if (!images || !out) return refuse(*engine, "images or out is NULL");
    if (n < 1 || n > kMaxBatch)
      return refuse(*engine,
                    ("a batch of " + std::to_string(n) + ", not 1 to " + std::to_string(kMaxBatch)).c_str());
    const size_t expected = n * numbers_in(engine->output);
    if (out_size != expected)
      return refuse(*engine, ("out has room for " + std::to_string(out_size) + " floats, the batch gives " +
                              std::to_string(expected))
                                 .c_str());
    run(static_cast<int>(n));
    return 0;
  } catch (const std::bad_alloc&) {
    return refuse(*engine, kNoMemory);
  } catch (const std::exception& problem) {
    return refuse(*engine, problem.what());
  } catch (...) {
    return refuse(*engine, "unknown");
  }
}

const Step* step_of(const latentbit_engine* engine, size_t step) {
  const auto& steps = engine->program->steps();
  return step < steps.size() ? steps[step].get() : nullptr;
}

}  // namespace

extern "C" {

const char* latentbit_version(void) { return LATENTBIT_VERSION; }

latentbit_engine* latentbit_load(const char* path, int threads, const char* kernels, char* error,
                                 size_t error_size) {
  const auto open = [&] {
    const std::string name = path ? path : "";
    try {
      return network_in_file(name);
    } catch (const PackedFileError& problem) {
      throw PackedFileError(name + ": " + problem.what());
    }
  };
  return engine_of(open, threads, kernels, error, error_size);
}

latentbit_engine* latentbit_load_memory(const void* content, size_t size, int threads, const char* kernels,
                                        char* error, size_t error_size) {
  return engine_of([&] { return network_in_memory(content, content ? size : 0); }, threads, kernels, error,
                   error_size);
}

void latentbit_free(latentbit_engine* engine) { delete engine; }

void latentbit_input_shape(const latentbit_engine* engine, size_t shape[3]) {
  std::copy(engine->input.begin(), engine->input.end(), shape);
}
int latentbit_output_shape(const latentbit_engine* engine, size_t shape[3]) {
  std::copy(engine->output.begin(), engine->output.end(), shape);
  return static_cast<int>(engine->output.size());
}
size_t latentbit_input_size(const latentbit_engine* engine) { return numbers_in(engine->input); }
size_t latentbit_output_size(const latentbit_engine* engine) { return numbers_in(engine->output); }

const char* latentbit_class_name(const latentbit_engine* engine, size_t output) {
  return output < engine->classes.size() ? engine->classes[output].c_str() : nullptr;
}
const float* latentbit_mean(const latentbit_engine* engine) { return engine->program->pixels().mean.data(); }
const float* latentbit_std(const latentbit_engine* engine) { return engine->program->pixels().std.data(); }
int latentbit_resize(const latentbit_engine* engine) { return engine->resize; }
const char* latentbit_source(const latentbit_engine* engine) { return engine->source.c_str(); }

int latentbit_run(latentbit_engine* engine, const float* images, size_t n, float* out, size_t out_size) {
  return checked_run(engine, images, n, out, out_size,
                     [&](int batch) { engine->program->run(images, batch, out, nullptr); });
}
int latentbit_run_bytes(latentbit_engine* engine, const uint8_t* images, int channels_last, size_t n,
                        float* out, size_t out_size) {
  return checked_run(engine, images, n, out, out_size, [&](int batch) {
    engine->program->run(images, channels_last != 0, batch, out, nullptr);
  });
}

size_t latentbit_step_count(const latentbit_engine* engine) { return engine->program->steps().size(); }
const char* latentbit_step_name(const latentbit_engine* engine, size_t step) {
  const Step* found = step_of(engine, step);
  return found ? found->name.c_str() : nullptr;
}
const char* latentbit_step_op(const latentbit_engine* engine, size_t step) {
  const Step* found = step_of(engine, step);
  return found ? found->op.c_str() : nullptr;
}
const char* latentbit_step_kernels(const latentbit_engine* engine, size_t step) {
  const Step* found = step_of(engine, step);
  return !found ? nullptr : found->isa ? found->isa : engine->program->kernels().name;
}
int latentbit_profile(latentbit_engine* engine, const float* images, size_t n, float* out, size_t out_size,
                      double* microseconds) {
  return checked_run(engine, images, n, out, out_size, [&](int batch) {
    std::vector<double> nanoseconds;
    engine->program->run(images, batch, out, &nanoseconds);
    for (size_t i = 0; microseconds && i < nanoseconds.size(); ++i) microseconds[i] = nanoseconds[i] / 1e3;
  });
}

int latentbit_threads(const latentbit_engine* engine) { return engine->program->threads(); }
const char* latentbit_kernels(const latentbit_engine* engine) { return engine->program->kernels().name; }
const char* latentbit_error(const latentbit_engine* engine) { return engine->error.c_str(); }

}  // extern "C"
