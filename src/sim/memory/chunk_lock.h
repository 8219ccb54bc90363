// A spin lock in a chunk of the race shadow, held for a few nanoseconds by one of several host
// threads.
#pragma once

#include <atomic>
#include <thread>

#include "sim/memory/race_shadow.h"

namespace assay::sim {

class ChunkLock {
 public:
  // Without `concurrent` there are no other threads, so it does nothing.
  ChunkLock(RaceShadow::Chunk& chunk, bool concurrent) : word_(concurrent ? &chunk.lock : nullptr) {
    if (word_ == nullptr) return;
    const std::atomic_ref<std::uint32_t> lock(*word_);
    unsigned tries = 0;
    while (lock.exchange(1, std::memory_order_acquire) != 0) {
      while (lock.load(std::memory_order_relaxed) != 0) {
        if (++tries % 64 == 0) std::this_thread::yield();
      }
    }
  }
  ~ChunkLock() {
    if (word_ == nullptr) return;
    const std::atomic_ref<std::uint32_t> lock(*word_);
    lock.store(0, std::memory_order_release);
  }
  ChunkLock(const ChunkLock&) = delete;
  ChunkLock& operator=(const ChunkLock&) = delete;

 private:
  std::uint32_t* word_;
};

}  // namespace assay::sim
