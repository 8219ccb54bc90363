// cp.async.bulk without tensors: copies between global and shared memory that one thread starts and
// hardware carries out (PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk").
//
// Each copy touches shared memory as late as the program's own waits allow, so that what does not
// wait is seen. From global to shared memory it reads when it is issued, and writes once somebody
// polls the mbarrier that counts its bytes. From shared to global memory it reads and writes when a
// wait for its group begins, with .read or without, or when the block ends. For the race check the
// thread that issued the copy makes both accesses, at these times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "sim/memory/checker.h"

namespace assay::sim {

struct BlockRun;

// Addresses and bytes are multiples of kBulkPiece.
struct BulkCopy {
  std::uint32_t warp = 0, lane = 0, pc = 0;  // who issued it, and where
  std::uint64_t from = 0, to = 0;            // in shared memory: offsets
  std::uint64_t bytes = 0;
};

class BulkCopies {
 public:
  void reset();

  // To shared memory; `mbarrier` is the offset of the object that counts the bytes. Reads at once.
  void load(BlockRun&, const BulkCopy&, std::uint64_t mbarrier);
  bool loading() const { return !loads_.empty(); }
  // Whether so much is on its way that land() must not wait for somebody to poll.
  bool full() const { return loading_bytes_ > kMostBytes; }
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
  static constexpr std::size_t kMostStores = 4096;

  // What a copy has read.
  struct Contents {
    std::vector<std::byte> data;
    std::vector<std::uint16_t> undefined;  // which bytes of each piece are; empty: none
  };
  struct Load {
    BulkCopy copy;
    std::uint64_t mbarrier = 0;
    Contents contents;
  };
  struct Store {
    BulkCopy copy;
    std::uint32_t group = 0;
  };

  static Contents read(BlockRun&, const BulkCopy&, bool shared);
  static void write(BlockRun&, const BulkCopy&, const Contents&, bool shared);
  static void complete(BlockRun&, const Store&);

  std::vector<Load> loads_;   // in order of issue
  std::deque<Store> stores_;  // likewise
  std::uint64_t loading_bytes_ = 0;
  std::map<std::uint32_t, std::uint32_t> groups_;  // how many a thread has closed
};

}  // namespace assay::sim
