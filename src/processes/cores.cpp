#include "processes/cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

#include "util/cpu_set.h"

namespace assay::processes {
namespace {

// The first hardware thread of `cpu`'s core, or `cpu` itself if the kernel does not say.
int first_sibling(int cpu) {
  std::ifstream in(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
  int first = cpu;
  in >> first;
  return in ? first : cpu;
}

class Cores {
 public:
  static Cores& all() {
    static Cores instance;
    return instance;
  }

  std::vector<int> take(std::size_t n) {
    const std::lock_guard lock(mutex_);
    std::vector<int> chosen = order_;
    std::ranges::stable_sort(chosen, {}, [this](int cpu) { return users_[cpu]; });
    chosen.resize(std::min(n, chosen.size()));
    for (const int cpu : chosen) ++users_[cpu];
    std::ranges::sort(chosen);
    return chosen;
  }
  void give_back(const std::vector<int>& cores) {
    const std::lock_guard lock(mutex_);
    for (const int cpu : cores) --users_[cpu];
  }

 private:
  Cores() {
    const auto set = CpuSet::of_this_thread();
    if (!set) return;
    std::vector<int> siblings;
    for (int cpu = 0; cpu < CpuSet::kMost; ++cpu) {
      if (set->contains(cpu)) (first_sibling(cpu) == cpu ? order_ : siblings).push_back(cpu);
    }
    order_.insert(order_.end(), siblings.begin(), siblings.end());
  }

  std::mutex mutex_;
  std::vector<int> order_;    // in which cores are taken when all are free
  std::map<int, int> users_;  // how many of this program's threads use each core
};

// The cores that one thread has taken, for the thread's lifetime.
struct Taken {
  std::vector<int> cores;
  std::size_t asked = 0;
  ~Taken() { Cores::all().give_back(cores); }
};

}  // namespace

std::vector<int> worker_cores(int n) {
  thread_local Taken taken;
  const auto wanted = static_cast<std::size_t>(std::max(n, 1));
  if (taken.asked != wanted) {
    Cores::all().give_back(taken.cores);
    taken.cores = Cores::all().take(wanted);
    taken.asked = wanted;
  }
  return taken.cores;
}

std::optional<ProtocolViolation> too_many_cores(double processor_s, double wall_s, int threads) {
  constexpr double kShare = 1.05, kSeconds = 0.005;
  if (processor_s <= kShare * wall_s * threads + kSeconds) return std::nullopt;
  return violation<Violation::many_cores>(processor_s / wall_s, threads);
}

}  // namespace assay::processes
