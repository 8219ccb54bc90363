// A pthread_create for whole programs that starts each new thread on a core of its own.
//
// Some kernels start a thread on the core of its creator and leave it there for milliseconds while
// another core idles, by chance: on a virtual machine with two cores and Linux 6.18 every second
// 7 ms call with two threads took 14 ms. Times must not hang on that, whoever wrote the code. After its
// start a thread may run anywhere, as always.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <memory>
#include <vector>

namespace {

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

struct Cores {
  Cores() {
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) list.push_back(cpu);
    }
  }
  cpu_set_t set;
  std::vector<int> list;
};

const Cores& cores() {
  static const Cores instance;
  return instance;
}

std::atomic<unsigned> alive{0};  // threads started here

// The creator's core comes last: it is busy, at least until it waits.
int core_for_next() {
  const std::vector<int>& list = cores().list;
  const int current = ::sched_getcpu();
  std::size_t position = 0;
  while (position + 1 < list.size() && list[position] != current) ++position;
  return list[(position + 1 + alive.load()) % list.size()];
}

struct Start {
  void* (*run)(void*);
  void* argument;
};

void* start(void* p) {
  const Start s = *std::unique_ptr<Start>(static_cast<Start*>(p));
  struct Leave {
    ~Leave() { --alive; }  // also when the thread is cancelled or calls pthread_exit
  } leave;
  ::sched_setaffinity(0, sizeof(cpu_set_t), &cores().set);
  return s.run(s.argument);
}

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  // Whoever brings attributes of his own keeps them.
  if (attributes != nullptr || cores().list.size() < 2) {
    return create(thread, attributes, run, argument);
  }
  pthread_attr_t placed;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core_for_next(), &one);
  ::pthread_attr_init(&placed);
  ::pthread_attr_setaffinity_np(&placed, sizeof one, &one);
  auto s = std::make_unique<Start>(Start{run, argument});
  ++alive;
  const int status = create(thread, &placed, &start, s.get());
  ::pthread_attr_destroy(&placed);
  if (status == 0) {
    s.release();
    return 0;
  }
  --alive;
  return create(thread, nullptr, run, argument);  // where cores may not be chosen
}
