// cp.async.bulk without tensors: copies between global and shared memory that one thread starts and
// hardware carries out (PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk").
//
// Each copy does its work as late as the program's own waits allow, so that what does not wait is
// seen. From global to shared memory it reads when it is issued, and writes once somebody polls the
// mbarrier that counts its bytes. From shared to global memory it reads when a wait for its group
// begins (also a wait with .read), and writes when a wait without .read begins; what nobody waited
// for is done when the block ends. For the race check the thread that issued the copy makes both
// accesses, at these times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/memory/checker.h"

namespace assay::sim {

struct BlockRun;

// Bulk copies move pieces of so many bytes, at addresses that are multiples of it.
inline constexpr std::uint32_t kBulkPiece = 16;

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
  // Writes what the copies of an mbarrier have read, and returns their bytes.
  std::uint64_t land(BlockRun&, std::uint64_t mbarrier);

  // To global memory, in the current group of the thread that issues it.
  void store(const BulkCopy&);
  // Closes the groups of a warp's lanes.
  void commit(std::uint32_t warp, std::uint32_t lanes);
  // Completes all but the latest `pending` closed groups of each lane. With `only_read` they only
  // read their sources.
  void wait(BlockRun&, std::uint32_t warp, std::uint32_t lanes, std::uint32_t pending,
            bool only_read);
  // Completes all copies to global memory: the block has ended.
  void finish(BlockRun&);

 private:
  struct Pending {
    BulkCopy copy;
    std::uint64_t mbarrier = 0;  // of a load
    std::uint32_t group = 0;     // of a store
    bool has_read = false;
    std::vector<std::byte> data;
    std::vector<std::uint16_t> undefined;  // which bytes of each piece are; empty: none
  };

  static void read(BlockRun&, Pending&, bool shared);
  static void write(BlockRun&, Pending&, bool shared);

  std::vector<Pending> loads_, stores_;           // in order of issue
  std::map<std::uint32_t, std::uint32_t> group_;  // how many groups a thread has closed
};

}  // namespace assay::sim
