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
  explicit Crew(int workers) : n_(workers + 1), shares_(new Share[n_]) {
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

  // Of the share of one thread: round, number of items and next item in one word. A thread that wakes late
  // can take nothing of a round that is over, so nobody has to wait for it.
  struct alignas(64) Share {
    std::atomic<uint64_t> ticket{0};
    int64_t first = 0;
  };

  const int n_;  // the caller counts as one
  std::unique_ptr<Share[]> shares_;
  std::vector<std::thread> workers_;
  Call call_ = nullptr;
  const void* body_ = nullptr;
  uint64_t round_ = 0;
  alignas(64) std::atomic<int64_t> done_{0};
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
  const int64_t most = int64_t{kMaxItems} * n_;
  for (int64_t first = 0; first < n; first += most) {
    const int64_t count = std::min(n - first, most);
    round_ = (round_ + 1) & ((uint64_t{1} << (64 - 2 * kItemBits)) - 1);
    done_.store(0, std::memory_order_relaxed);
    for (int i = n_ - 1; i >= 0; --i) {
      const int64_t begin = count * i / n_, end = count * (i + 1) / n_;
      shares_[i].first = first + begin;  // nobody reads it before the ticket of this round
      shares_[i].ticket.store(round_ << (2 * kItemBits) | static_cast<uint64_t>(end - begin) << kItemBits);
    }
    if (sleeping_.load() > 0) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
      }  // a worker is either waiting by now or sees its ticket
      wake_.notify_all();
    }
    take_items(0, round_);
    for (int spins = 0; done_.load(std::memory_order_acquire) < count; ++spins)
      spins < 20000 ? pause() : std::this_thread::yield();
  }
}

// Of the own share first, then of the others'.
void Threads::Crew::take_items(int thread, uint64_t round) {
  for (int i = 0; i < n_; ++i) {
    Share& share = shares_[(thread + i) % n_];
    uint64_t ticket = share.ticket.load(std::memory_order_acquire);
    while (round_of(ticket) == round && item_of(ticket) < count_of(ticket)) {
      if (!share.ticket.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
      call_(body_, share.first + item_of(ticket), thread);
      done_.fetch_add(1, std::memory_order_release);
      ticket = share.ticket.load(std::memory_order_acquire);
    }
  }
}

void Threads::Crew::work(int thread) {
  const std::atomic<uint64_t>& mine = shares_[thread].ticket;
  uint64_t seen = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const auto start = std::chrono::steady_clock::now();
    for (int spins = 0; round_of(mine.load(std::memory_order_acquire)) == seen; ++spins) {
      pause();
      if (stop_.load(std::memory_order_relaxed)) return;
      if (spins % 64 || std::chrono::steady_clock::now() - start < kSpin) continue;
      std::unique_lock<std::mutex> lock(mutex_);
      ++sleeping_;
      wake_.wait(lock, [&] { return stop_.load() || round_of(mine.load()) != seen; });
      --sleeping_;
    }
    seen = round_of(mine.load(std::memory_order_acquire));
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
