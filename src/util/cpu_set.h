// The CPUs that a thread may run on. Unlike cpu_set_t alone it holds as many as Linux can have, so
// that the kernel's answer fits on every machine. Needs no memory, and can be used after fork().
#pragma once

#include <sched.h>

#include <array>
#include <optional>

namespace assay {

class CpuSet {
 public:
  static constexpr int kMost = 8192;  // NR_CPUS of MAXSMP, arch/x86/Kconfig; arm64 has fewer

  // Those of the calling thread; nothing with errno if the kernel does not say.
  static std::optional<CpuSet> of_this_thread() {
    CpuSet set;
    if (::sched_getaffinity(0, sizeof set.parts_, set.parts_.data()) != 0) return std::nullopt;
    return set;
  }

  // Whether the calling thread runs on these CPUs only from now on; otherwise see errno.
  bool bind_this_thread() const {
    return ::sched_setaffinity(0, sizeof parts_, parts_.data()) == 0;
  }

  void add(int cpu) { CPU_SET_S(static_cast<std::size_t>(cpu), sizeof parts_, parts_.data()); }
  bool contains(int cpu) const {
    return CPU_ISSET_S(static_cast<std::size_t>(cpu), sizeof parts_, parts_.data());
  }
  int count() const { return CPU_COUNT_S(sizeof parts_, parts_.data()); }

 private:
  std::array<cpu_set_t, kMost / CPU_SETSIZE> parts_{};
};

}  // namespace assay
