// The pool of threads without Python, for the sanitizers: loops one after the other and with pauses, pools
// side by side, turns taken by several threads, forks in between. Exit status 0 if every sum is right.
#include "threads.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

using latentbit::Threads;

namespace {

// The sum of 0 .. n - 1, item by item; each item must come once.
bool loop_is_right(Threads& pool, int64_t n) {
  std::vector<int> seen(n, 0);
  pool.each(n, [&](int64_t item, int) { seen[item] += 1; });
  for (int count : seen)
    if (count != 1) return false;
  return true;
}

bool many_loops() {
  Threads pool(4);
  for (int i = 0; i < 2000; ++i) {
    if (!loop_is_right(pool, i % 40)) return false;
    if (i % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the crew falls asleep
  }
  return loop_is_right(pool, (1 << 20) + 5);  // more than one round of tickets
}

bool shared_by_turns() {
  Threads pool(3);
  std::vector<int> shared(64, 0);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const Threads::Turn turn(pool);
        pool.each(64, [&](int64_t item, int) { shared[item] += 1; });
      }
    });
  for (auto& caller : callers) caller.join();
  for (int count : shared)
    if (count != 800) return false;
  return true;
}

bool pools_come_and_go() {
  std::vector<std::thread> owners;
  bool right[4] = {};
  for (int owner = 0; owner < 4; ++owner)
    owners.emplace_back([&right, owner] {
      bool all = true;
      for (int i = 0; i < 50; ++i) {
        Threads pool(1 + i % 4);
        all = loop_is_right(pool, 17) && all;
      }
      right[owner] = all;
    });
  for (auto& owner : owners) owner.join();
  return right[0] && right[1] && right[2] && right[3];
}

// A child inherits a pool whose turn another thread may have taken.
bool forks() {
  Threads pool(3);
  std::vector<int> shared(64, 0);
  bool stop = false;
  std::thread caller([&] {
    for (;;) {
      const Threads::Turn turn(pool);
      if (stop) return;
      pool.each(64, [&](int64_t item, int) { shared[item] += 1; });
    }
  });
  bool right = true;
  for (int i = 0; i < 20 && right; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // a hang is a death by SIGALRM
      const Threads::Turn turn(pool);
      _exit(loop_is_right(pool, 33) ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    right = status == 0;
  }
  {
    const Threads::Turn turn(pool);
    stop = true;
  }
  caller.join();
  return right;
}

}  // namespace

int main(int n, char** words) {
  // ThreadSanitizer cannot start threads in a child of a process that had some.
  const bool no_forks = n > 1 && !std::strcmp(words[1], "--no-forks");
  const struct {
    const char* name;
    bool (*test)();
  } tests[] = {{"many loops", many_loops},
               {"shared by turns", shared_by_turns},
               {"pools come and go", pools_come_and_go},
               {"forks", forks}};
  for (const auto& [name, test] : tests) {
    if (no_forks && test == forks) continue;
    if (!test()) {
      std::printf("threads_test: %s FAILED\n", name);
      return 1;
    }
  }
  std::puts("threads_test: all right");
}
