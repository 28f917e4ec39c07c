#include "cpu/probe.h"

#if defined(__unix__) || defined(__APPLE__)
#include <setjmp.h>
#include <signal.h>
#endif

namespace latentbit {

#if defined(__unix__) || defined(__APPLE__)

namespace {

thread_local sigjmp_buf* trying = nullptr;  // of the thread that tries an instruction
struct sigaction before;

void on_illegal_instruction(int signal, siginfo_t* info, void* context) {
  if (trying) siglongjmp(*trying, 1);
  // Another thread's, at the same moment: whoever handled it before does so now.
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(signal);
  else
    sigaction(SIGILL, &before, nullptr);  // the instruction traps again, and now ends the program
}

}  // namespace

bool runs_without_trap(bool (*probe)()) {
  struct sigaction ours = {};
  ours.sa_sigaction = on_illegal_instruction;
  ours.sa_flags = SA_SIGINFO;
  sigemptyset(&ours.sa_mask);
  if (sigaction(SIGILL, &ours, &before) != 0) return false;
  sigjmp_buf back;
  bool works = false;
  if (sigsetjmp(back, 1) == 0) {
    trying = &back;
    works = probe();
  }
  trying = nullptr;
  sigaction(SIGILL, &before, nullptr);
  return works;
}

#else

bool runs_without_trap(bool (*)()) { return false; }

#endif

}  // namespace latentbit
