// A program-wide pthread_create that lets each new thread start before its creator continues.
//
// Some kernels may start a thread on its creator's core and leave it there for milliseconds while
// another core idles: on a virtual machine with two cores and Linux 6.18, every second 7 ms call
// with two threads took 14 ms. No measured time may depend on that. So the creator sleeps until the
// new thread runs. If they share a core, that leaves it to the new thread, and the creator is woken
// on an idle core, which kernels look for on every wakeup. If the other core was busy at that
// moment, for instance with the program that started the call, the creator naps and is woken again.
// Neither thread pins itself to a core, which a sandboxed program may not do.
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>

#include "util/cpu_set.h"

namespace {

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int core_count() {
  static const int cores = [] {
    const auto set = assay::CpuSet::of_this_thread();
    return set ? set->count() : 1;
  }();
  return cores;
}

std::atomic<int> alive{1};  // threads started here, plus the first

struct Start {
  void* (*run)(void*);
  void* argument;
  std::atomic<int> core{-1};  // the core where it began
};
static_assert(sizeof(std::atomic<int>) == sizeof(int));

void futex(std::atomic<int>& word, int operation, int value) {
  ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

void* start(void* p) {
  auto* const s = static_cast<Start*>(p);
  const auto run = s->run;
  void* const argument = s->argument;
  struct Leave {
    ~Leave() { --alive; }  // also if the thread is cancelled or calls pthread_exit
  } leave;
  s->core.store(std::max(::sched_getcpu(), 0));
  // The creator, and `s` with it, may be gone by now. Then nobody waits at this address, or an
  // unrelated waiter merely rechecks its condition.
  futex(s->core, FUTEX_WAKE, 1);
  return run(argument);
}

void wait_until_apart(Start& s) {
  while (s.core.load() < 0) futex(s.core, FUTEX_WAIT, -1);
  constexpr int kNaps = 2;
  constexpr timespec kNap{0, 10'000};
  for (int i = 0; i < kNaps && alive.load() <= core_count(); ++i) {
    if (::sched_getcpu() != s.core.load()) return;
    ::nanosleep(&kNap, nullptr);
  }
}

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  // A caller that passes attributes has made its own choice.
  if (attributes != nullptr || core_count() < 2) return create(thread, attributes, run, argument);
  Start s{run, argument, {-1}};
  ++alive;
  const int status = create(thread, nullptr, &start, &s);
  if (status != 0) {
    --alive;
    return status;
  }
  const int error = errno;
  wait_until_apart(s);
  errno = error;
  return 0;
}
