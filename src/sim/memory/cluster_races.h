// Races in the shared memories of a cluster's blocks, between threads of different blocks. The rules
// are in checker.h.
//
// Every thread of the cluster takes part in each of its barriers, so a number orders them: an access
// is ordered before another if its warp's next arrival helped to complete a barrier for which the
// other's warp has waited. Each word remembers the last loads, stores and atomic operations by two
// blocks.
// Accesses by threads of one block are SharedRaces' business.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/memory/access.h"

namespace assay::sim {

class ClusterRaces {
 public:
  // A thread that accessed shared memory.
  struct Access {
    std::uint64_t block = 0;  // linear
    std::uint32_t thread = 0, pc = 0;
    AccessKind kind{};
  };
  enum class Fault : std::uint8_t {
    unordered,  // a race with `other`
    unborn,     // nothing says that the block whose memory it is has begun
    ended,      // that block has ended
  };
  struct Conflict {
    Fault fault{};
    std::uint32_t lane = 0;
    Access other;
  };

  ClusterRaces(std::uint32_t blocks, std::uint32_t warps, std::uint64_t shared_bytes);

  // The next cluster begins, with these blocks (linear) by rank.
  void begin(std::span<const std::uint64_t> blocks);

  // The cluster's barrier. All lanes of the warp have arrived; all warps have, but for those that
  // have exited; lanes of the warp have waited.
  void arrive(std::uint32_t rank, std::uint32_t warp);
  void complete();
  void wait(std::uint32_t rank, std::uint32_t warp);
  // Something else may order the blocks from now on: no race is reported any more.
  void order_otherwise() { ordered_otherwise_ = true; }

  // Records an access by a block to the shared memory of `owner`, itself or another, and returns
  // what is wrong with it, for its lowest such lane. REQUIRES: inside the memory.
  std::optional<Conflict> access(std::uint32_t owner, std::uint32_t rank, const WarpAccess&);
  // All threads of the block have ended: returns an access to its memory by another block that
  // nothing orders before that.
  std::optional<Access> end(std::uint32_t rank);

 private:
  // An access of a word. 0 arrivals: none.
  struct Stamp {
    std::uint32_t arrivals = 0;  // of the warp before it, over all clusters
    std::uint32_t pc = 0;
    std::uint16_t thread = 0;
    std::uint8_t rank = 0;
    std::uint8_t bytes = 0;  // of the word
    AccessKind kind{};
  };
  struct Word {
    Stamp load[2], store[2], atomic[2];  // by two blocks each
  };
  struct Block {
    std::uint64_t index = 0;  // linear
    std::vector<Word> words;
    std::vector<std::uint32_t> arrivals, waits;  // by warp, over all clusters
    Stamp last_from_others;                      // with the most arrivals
    bool ended = false;
  };

  Access access_of(const Stamp& s) const { return {blocks_[s.rank].index, s.thread, s.pc, s.kind}; }
  static void record(Word&, const Stamp&);
  // The access of the word that races with this one, by a warp that has waited so often.
  static const Stamp* race(const Word&, const Stamp&, std::uint32_t waits);

  std::vector<Block> blocks_;
  std::uint32_t completed_ = 1;  // barriers, over all clusters
  std::uint32_t begun_at_ = 1;   // completed_ when the cluster began
  bool ordered_otherwise_ = false;
};

}  // namespace assay::sim
