// The happened-before order between blocks of a launch, from fences and atomic operations.
//
// A block's clock counts its fences. What it did before its last fence can be released by an atomic
// write to an address and acquired by an atomic read there (see checker.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace assay::sim {

// Clocks of blocks, as runs of neighbours with equal clocks: if each of many blocks has released
// once, it is a single run.
class BlockClocks {
 public:
  // 0: nothing of the block is known. Otherwise everything that it did while its clock was lower
  // is.
  std::uint32_t of(std::uint32_t block) const;
  static BlockClocks single(std::uint32_t block, std::uint32_t clock);
  static BlockClocks join(const BlockClocks&, const BlockClocks&);
  std::size_t runs() const { return runs_.size(); }

 private:
  struct Run {
    std::uint32_t begin, end, clock;
  };
  void append(Run);
  std::vector<Run> runs_;  // ascending
};

using SharedClocks = std::shared_ptr<const BlockClocks>;  // null: empty

SharedClocks join(const SharedClocks&, const SharedClocks&);

// What is released at which address. Thread-safe.
class SyncTable {
 public:
  bool empty() const { return empty_.load(std::memory_order_acquire); }
  SharedClocks find(std::uint64_t address) const;
  void release(std::uint64_t address, const SharedClocks&);

 private:
  struct Shard {
    mutable std::mutex mutex;
    struct Released {
      SharedClocks last, all;
    };
    std::unordered_map<std::uint64_t, Released> at;
  };
  std::array<Shard, 64> shards_;
  std::atomic<bool> empty_{true};
};

// The executing block.
class BlockOrder {
 public:
  void begin(std::uint32_t block) {
    block_ = block;
    acquired_.reset();
    released_.reset();
    last_acquired_.reset();
    acquired_reads_.reset();
    last_acquired_reads_.reset();
    stale_ = true;
  }

  bool knows(std::uint32_t block, std::uint32_t clock) const {
    return block == block_ || (acquired_ != nullptr && clock < acquired_->of(block));
  }
  bool has_acquired() const { return acquired_ != nullptr; }
  // Likewise for what the block read.
  bool knows_read(std::uint32_t block, std::uint32_t clock) const {
    return knows(block, clock) ||
           (acquired_reads_ != nullptr && clock < acquired_reads_->of(block));
  }

  // True if it added knowledge.
  bool acquire(const SharedClocks&);
  bool acquire_reads(const SharedClocks&);
  // What was read while the clock was below `clock`, by this block and by the blocks whose reads it
  // knows.
  SharedClocks reads(std::uint32_t clock) const;
  // Allows the release of what happened while the clock was below `clock`.
  void fence(std::uint32_t clock);
  // Null before the first fence.
  const SharedClocks& released() const { return released_; }
  // Whether something was acquired since the last fence.
  bool is_stale() const { return stale_; }

 private:
  std::uint32_t block_ = 0;
  SharedClocks acquired_, released_, last_acquired_, acquired_reads_, last_acquired_reads_;
  bool stale_ = true;
};

}  // namespace assay::sim
