#include "threads.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <new>
#include <thread>
#include <vector>

namespace latentbit {
namespace {

constexpr int kItemBits = 20, kMaxItems = (1 << kItemBits) - 1;
constexpr auto kSpin = std::chrono::microseconds(100);

uint64_t round_of(uint64_t ticket) { return ticket >> (2 * kItemBits); }
int count_of(uint64_t ticket) { return static_cast<int>(ticket >> kItemBits & kMaxItems); }
int item_of(uint64_t ticket) { return static_cast<int>(ticket & kMaxItems); }

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

class Threads::Crew {
 public:
  explicit Crew(int workers) {
    try {
      for (int i = 1; i <= workers; ++i) workers_.emplace_back([this, i] { work(i); });
    } catch (...) {  // the system gives no more threads: send home those that came
      dismiss();
      throw;
    }
  }
  ~Crew() { dismiss(); }

  void run(int64_t n, Call call, const void* body);

 private:
  void dismiss();
  void work(int thread);
  void take_items(int thread, uint64_t round);

  std::vector<std::thread> workers_;
  Call call_ = nullptr;
  const void* body_ = nullptr;
  int64_t first_ = 0;
  uint64_t round_ = 0;
  // Round, number of items and next item in one word: a thread that wakes late can take nothing of a round
  // that is over, so nobody has to wait for it.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int> done_{0};
  alignas(64) std::atomic<int> sleeping_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

void Threads::Crew::dismiss() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void Threads::Crew::run(int64_t n, Call call, const void* body) {
  call_ = call;
  body_ = body;
  for (first_ = 0; first_ < n; first_ += kMaxItems) {
    const uint64_t count = static_cast<uint64_t>(std::min<int64_t>(n - first_, kMaxItems));
    round_ = (round_ + 1) & ((uint64_t{1} << (64 - 2 * kItemBits)) - 1);
    done_.store(0, std::memory_order_relaxed);
    ticket_.store(round_ << (2 * kItemBits) | count << kItemBits);
    if (sleeping_.load() > 0) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
      }  // a worker is either waiting by now or sees the ticket
      wake_.notify_all();
    }
    take_items(0, round_);
    for (int spins = 0; done_.load(std::memory_order_acquire) < static_cast<int>(count); ++spins)
      spins < 20000 ? pause() : std::this_thread::yield();
  }
}

void Threads::Crew::take_items(int thread, uint64_t round) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (round_of(ticket) == round && item_of(ticket) < count_of(ticket)) {
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
    call_(body_, first_ + item_of(ticket), thread);
    done_.fetch_add(1, std::memory_order_release);
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void Threads::Crew::work(int thread) {
  uint64_t seen = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const auto start = std::chrono::steady_clock::now();
    for (int spins = 0; round_of(ticket_.load(std::memory_order_acquire)) == seen; ++spins) {
      pause();
      if (stop_.load(std::memory_order_relaxed)) return;
      if (spins % 64 || std::chrono::steady_clock::now() - start < kSpin) continue;
      std::unique_lock<std::mutex> lock(mutex_);
      ++sleeping_;
      wake_.wait(lock, [&] { return stop_.load() || round_of(ticket_.load()) != seen; });
      --sleeping_;
    }
    seen = round_of(ticket_.load(std::memory_order_acquire));
    take_items(thread, seen);
  }
}

// All pools of the process, so that a fork finds them. Its lock is held across the fork: the list is whole in
// the child.
struct Threads::Living {
  std::mutex mutex;
  Threads* first = nullptr;

  Living() {
    pthread_atfork([] { living().mutex.lock(); }, [] { living().mutex.unlock(); },
                   [] {
                     new (&living().mutex) std::mutex;
                     for (Threads* pool = living().first; pool; pool = pool->after_) pool->after_fork();
                   });
  }

  static Living& living() {
    static auto* all = new Living;  // never destroyed: a pool may outlive the globals
    return *all;
  }
};

Threads::Threads(int n) : n_(std::max(n, 1)), crew_(n > 1 ? new Crew(n - 1) : nullptr) {
  Living& all = Living::living();
  const std::lock_guard<std::mutex> lock(all.mutex);
  after_ = all.first;
  if (after_) after_->before_ = this;
  all.first = this;
}

Threads::~Threads() {
  Living& all = Living::living();
  const std::lock_guard<std::mutex> lock(all.mutex);
  (before_ ? before_->after_ : all.first) = after_;
  if (after_) after_->before_ = before_;
}

// In the child, where only this thread runs. The crew's memory is given up with its locks: to join or to wake
// threads that are not here would wait for ever.
void Threads::after_fork() {
  (void)crew_.release();
  new (&turn_) std::mutex;
  broken_off_ |= taken_;
  taken_ = false;
}

void Threads::run(int64_t n, Call call, const void* body) {
  if (n <= 1 || n_ == 1) {
    for (int64_t i = 0; i < n; ++i) call(body, i, 0);
    return;
  }
  if (!crew_) crew_.reset(new Crew(n_ - 1));
  crew_->run(n, call, body);
}

Threads::Turn::Turn(Threads& pool) : pool_(pool) {
  pool.turn_.lock();
  broken_off_ = pool.broken_off_;
  pool.broken_off_ = false;
  pool.taken_ = true;
}

Threads::Turn::~Turn() {
  pool_.taken_ = false;
  pool_.turn_.unlock();
}

}  // namespace latentbit
