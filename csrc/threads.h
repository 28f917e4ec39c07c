// A small pool of threads that share out the items of one loop at a time. Every thread begins with a share of
// its own, the same part of the items in every loop, because what it wrote there in the last loop is in its
// cache; then it helps the others. Waiting threads spin briefly, because the next layer starts within
// microseconds, and then sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace latentbit {

class Threads {
 public:
  explicit Threads(int n);  // the caller counts as one
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

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
  void run(int64_t n, Call call, const void* body);
  void work(int thread);
  void take_items(int thread, uint64_t round);

  std::vector<std::thread> workers_;
  Call call_ = nullptr;
  const void* body_ = nullptr;
  uint64_t round_ = 0;
  // Of the share of one thread: round, number of items and next item in one word. A thread that wakes late
  // can take nothing of a round that is over, so nobody has to wait for it.
  struct alignas(64) Share {
    std::atomic<uint64_t> ticket{0};
    int64_t first = 0;
  };
  std::unique_ptr<Share[]> shares_;
  alignas(64) std::atomic<int64_t> done_{0};
  alignas(64) std::atomic<int> sleeping_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace latentbit
