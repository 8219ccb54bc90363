#include "processes/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>

#include "assay/error.h"
#include "sandbox/memory_group.h"

namespace assay::processes {
namespace {

constexpr int kAlways = 3;

std::uint64_t available_bytes() {
  std::ifstream in("/proc/meminfo");
  std::string name, unit;
  for (std::uint64_t value; in >> name >> value;) {
    if (name == "MemAvailable:") return value * 1024;
    std::getline(in, unit);
  }
  return std::numeric_limits<std::uint64_t>::max();
}

struct Budget {
  std::mutex mutex;
  std::condition_variable returned;
  std::uint64_t held = 0;
};

Budget& budget() {
  static Budget instance;
  return instance;
}

// Shares held by the calling thread. A share must be released by the thread that took it.
thread_local int own_shares = 0;

}  // namespace

std::uint64_t memory_budget() {
  static const std::uint64_t bytes = [] {
    const std::uint64_t granted =
        sandbox::memory_groups().limit_bytes.value_or(std::numeric_limits<std::uint64_t>::max());
    return std::min(available_bytes(), granted) / 10 * 8;
  }();
  return bytes;
}

MemoryShare::MemoryShare(std::uint64_t bytes) : bytes_(bytes) {
  Budget& all = budget();
  const std::uint64_t most = memory_budget();
  std::unique_lock lock(all.mutex);
  const auto fits = [&] { return all.held == 0 || all.held + bytes <= most; };
  if (own_shares == 0) {
    all.returned.wait(lock, fits);
  } else if (own_shares >= kAlways && !fits()) {
    throw Error(fmt::format(
        "too little memory for {} workers side by side: {:.1f} GiB, of which each may take {:.1f}",
        own_shares + 1, static_cast<double>(most) / (1 << 30),
        static_cast<double>(bytes) / (1 << 30)));
  }
  all.held += bytes;
  ++own_shares;
}

MemoryShare::~MemoryShare() {
  Budget& all = budget();
  {
    const std::lock_guard lock(all.mutex);
    all.held -= bytes_;
  }
  --own_shares;
  all.returned.notify_all();
}

}  // namespace assay::processes
