// Copies between global and shared memory, and between the shared memories of a cluster's blocks,
// that one thread starts and hardware carries out (PTX ISA, "Data Movement and Conversion
// Instructions": cp.async.bulk, cp.reduce.async.bulk, st.async, red.async).
//
// Each copy touches shared memory as late as the program's own waits allow, so that what does not
// wait is seen. One that an mbarrier counts reads when it is issued, and writes once somebody polls
// the mbarrier. One from shared to global memory reads and writes when a wait for its group begins,
// with .read or without, or when the block ends. For the race check the thread that issued the copy
// makes both accesses, at these times; hardware may write at once, so a write to shared memory counts
// there when it is issued, too. A write to the memory of another block is checked when it is
// issued, and what it races with is not looked for: the mbarrier that counts it lies there too, and
// orders the blocks by other means than the cluster's barrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "sim/execution/tensor_tile.h"
#include "sim/memory/checker.h"

namespace assay::sim {

struct BlockRun;

// Combines the words at `to` with those of the copy. `concurrent`: so may other host threads.
using BulkUpdate = void (*)(std::byte* to, const std::byte* words, std::uint64_t bytes,
                            bool concurrent);

struct BulkReduction {
  BulkUpdate update = nullptr;
  std::uint32_t word_bytes = 0;
};

// Addresses and bytes are multiples of kBulkPiece, or of the words that one st.async stores.
struct BulkCopy {
  std::uint32_t warp = 0, lane = 0, pc = 0;  // who issued it, and where
  std::uint64_t from = 0, to = 0;            // in shared memory: offsets
  std::uint64_t bytes = 0;
  BulkReduction reduction{};  // without update: the copy replaces what is there
  // What the copy reads or writes in global memory, instead of `bytes` bytes at from or to. Null:
  // no tensor.
  std::shared_ptr<const TensorTile> tile{};
};

class BulkCopies {
 public:
  void reset();

  // What a copy has read.
  struct Contents {
    std::vector<std::byte> data;
    std::vector<std::uint16_t> undefined;  // which bytes of each piece are; empty: none
  };
  // Reads, at once, what a copy by a thread of the block takes from the block's shared memory or
  // from global memory.
  static Contents read(BlockRun&, const BulkCopy&, bool shared);
  // Ends the launch if a thread of `by` must not write to this place in the shared memory of `to`.
  static void check_target(BlockRun& by, BlockRun& to, const BulkCopy&);
  // Then: the copy to the shared memory of `to`, whose copies these are. `mbarrier` is the offset
  // there of the object that counts its bytes.
  void load(BlockRun& by, BlockRun& to, const BulkCopy&, std::uint64_t mbarrier, Contents);
  // Of the copy that was issued as the last but `later`: these bytes of its first piece, by bits,
  // are undefined.
  void taint(std::size_t later, std::uint16_t bytes);
  bool loading() const { return !loads_.empty(); }
  // Whether so much is on its way that land() must not wait for somebody to poll.
  bool full() const { return loading_bytes_ > kMostBytes || loads_.size() > kMostLoads; }
  // Writes what the copies of an mbarrier have read, and returns their bytes.
  std::uint64_t land(BlockRun&, std::uint64_t mbarrier);

  // To global memory, in the current group of the thread that issues it. Of very many copies that
  // nobody waits for, the first are completed.
  void store(BlockRun&, const BulkCopy&);
  // Closes the groups of a warp's lanes.
  void commit(std::uint32_t warp, std::uint32_t lanes);
  // Completes all but the latest `pending` closed groups of each lane.
  void wait(BlockRun&, std::uint32_t warp, std::uint32_t lanes, std::uint32_t pending);
  // Completes all copies to global memory: the block has ended.
  void finish(BlockRun&);

 private:
  // Of a block: no program needs so many.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 20;
  static constexpr std::size_t kMostLoads = 65536, kMostStores = 4096;

  struct Load {
    BulkCopy copy;
    std::uint64_t mbarrier = 0;
    bool from_another_block = false;
    Contents contents;
  };
  struct Store {
    BulkCopy copy;
    std::uint32_t group = 0;
  };

  // Writes, with the check of it and without.
  static void write_shared(BlockRun&, const BulkCopy&, const Contents&);
  static void put(BlockRun&, const BulkCopy&, const Contents&, bool shared);
  static void complete(BlockRun&, const Store&);
  static Contents read_tile(BlockRun&, const BulkCopy&);
  static void write_tile(BlockRun&, const BulkCopy&, const Contents&);

  std::vector<Load> loads_;   // in order of issue
  std::deque<Store> stores_;  // likewise
  std::uint64_t loading_bytes_ = 0;
  std::map<std::uint32_t, std::uint32_t> groups_;  // how many a thread has closed
};

}  // namespace assay::sim
