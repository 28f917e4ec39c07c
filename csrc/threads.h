// A small pool of threads that share out the items of one loop at a time. Every thread begins with a share of
// its own, the same part of the items in every loop, because what it wrote there in the last loop is in its
// cache; then it helps the others. Waiting threads spin briefly, because the next layer starts within
// microseconds, and then sleep.
//
// A fork copies the memory and only the thread that forked. So in a child every pool is without its crew, and
// hires a new one when it next has work; a turn that another thread had taken is free again.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

namespace latentbit {

class Threads {
 public:
  explicit Threads(int n);  // the caller counts as one
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int size() const { return n_; }

  // The right to use the pool and what its loops write to: one thread at a time has it, the others wait.
  class Turn {
   public:
    explicit Turn(Threads& pool);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Whether this process began in the middle of a turn, which nobody here can finish: what loops write to
    // may be half made. Said once.
    bool broken_off() const { return broken_off_; }

   private:
    Threads& pool_;
    bool broken_off_;
  };

  // body(item, thread) for all items in [0, n), in any order; returns when all are done. The body must not
  // throw.
  template <typename Body>
  void each(int64_t n, const Body& body) {
    const Call call = [](const void* b, int64_t item, int thread) {
      (*static_cast<const Body*>(b))(item, thread);
    };
    run(n, call, &body);
  }

 private:
  using Call = void (*)(const void*, int64_t, int);
  class Crew;
  struct Living;
  void run(int64_t n, Call call, const void* body);
  void after_fork();

  const int n_;
  std::unique_ptr<Crew> crew_;  // none if the caller is alone, or in a child until there is work
  std::mutex turn_;
  bool taken_ = false, broken_off_ = false;
  Threads *before_ = nullptr, *after_ = nullptr;  // among the living
};

}  // namespace latentbit
