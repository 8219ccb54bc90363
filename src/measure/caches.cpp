#include "measure/caches.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <mutex>

#include "assay/parallel.h"
#include "util/reserved_memory.h"

namespace assay {
namespace {

constexpr std::int64_t kMega = 1 << 20;

class LargeMemory {
 public:
  LargeMemory()
      : memory_(static_cast<std::size_t>(
            2 * std::clamp(4 * last_level_cache_bytes(), 64 * kMega, 256 * kMega))) {
    // Children never use it. If they had a share in each page, writing to it would fault once more.
    ::madvise(memory_.data(), memory_.bytes(), MADV_DONTFORK);
    // One core alone would take most of the time that a measurement takes.
    parallel_for(static_cast<std::int64_t>(memory_.bytes()), kMega,
                 [&](std::int64_t begin, std::int64_t end) {
                   std::memset(memory_.data() + begin, 1, static_cast<std::size_t>(end - begin));
                 });
  }
  std::span<std::uint64_t> words() {
    return {reinterpret_cast<std::uint64_t*>(memory_.data()),
            memory_.bytes() / sizeof(std::uint64_t)};
  }

 private:
  ReservedMemory memory_;
};

}  // namespace

std::int64_t last_level_cache_bytes() {
  std::ifstream in("/sys/devices/system/cpu/cpu0/cache/index3/size");
  std::int64_t kib = 0;
  if (in >> kib && in.get() == 'K' && kib > 0) return kib * 1024;
  return std::max(0L, ::sysconf(_SC_LEVEL3_CACHE_SIZE));
}

void with_memory_beyond_caches(const std::function<void(std::span<std::uint64_t>)>& body) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static LargeMemory memory;
  body(memory.words());
}

void flush_caches() {
  static const auto bytes = std::clamp(2 * last_level_cache_bytes(), 32 * kMega, 160 * kMega);
  with_memory_beyond_caches([](std::span<std::uint64_t> words) {
    const auto swept = bytes / static_cast<std::int64_t>(sizeof(std::uint64_t));
    parallel_for(swept, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++words[static_cast<std::size_t>(i)];
    });
  });
}

}  // namespace assay
