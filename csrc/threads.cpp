#include "threads.h"

#include <algorithm>
#include <chrono>

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

Threads::Threads(int n) : shares_(new Share[n]) {
  for (int i = 1; i < n; ++i) workers_.emplace_back([this, i] { work(i); });
}

Threads::~Threads() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void Threads::run(int64_t n, Call call, const void* body) {
  if (n <= 1 || workers_.empty()) {
    for (int64_t i = 0; i < n; ++i) call(body, i, 0);
    return;
  }
  call_ = call;
  body_ = body;
  const int64_t most = int64_t{kMaxItems} * size();
  for (int64_t first = 0; first < n; first += most) {
    const int64_t count = std::min(n - first, most);
    round_ = (round_ + 1) & ((uint64_t{1} << (64 - 2 * kItemBits)) - 1);
    done_.store(0, std::memory_order_relaxed);
    for (int i = size() - 1; i >= 0; --i) {
      const int64_t begin = count * i / size(), end = count * (i + 1) / size();
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
void Threads::take_items(int thread, uint64_t round) {
  for (int i = 0; i < size(); ++i) {
    Share& share = shares_[(thread + i) % size()];
    uint64_t ticket = share.ticket.load(std::memory_order_acquire);
    while (round_of(ticket) == round && item_of(ticket) < count_of(ticket)) {
      if (!share.ticket.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
      call_(body_, share.first + item_of(ticket), thread);
      done_.fetch_add(1, std::memory_order_release);
      ticket = share.ticket.load(std::memory_order_acquire);
    }
  }
}

void Threads::work(int thread) {
  uint64_t seen = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const auto start = std::chrono::steady_clock::now();
    for (int spins = 0; round_of(shares_[thread].ticket.load(std::memory_order_acquire)) == seen; ++spins) {
      pause();
      if (stop_.load(std::memory_order_relaxed)) return;
      if (spins % 64 || std::chrono::steady_clock::now() - start < kSpin) continue;
      std::unique_lock<std::mutex> lock(mutex_);
      ++sleeping_;
      wake_.wait(lock, [&] { return stop_.load() || round_of(shares_[thread].ticket.load()) != seen; });
      --sleeping_;
    }
    seen = round_of(shares_[thread].ticket.load(std::memory_order_acquire));
    take_items(thread, seen);
  }
}

}  // namespace latentbit
