// The findings of a launch: one per kind and place, however many threads cause it.
#pragma once

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "sim/memory/checker.h"

namespace assay::sim {

// Thread-safe. The result does not depend on the order of add(): counts are summed, and the example
// is that of the lowest block, then thread, then address and so on.
class FindingTable {
 public:
  void add(const RawFinding&);
  std::vector<RawFinding> sorted() const;

 private:
  using Place =
      std::tuple<FindingKind, std::uint32_t, std::uint32_t, bool>;  // kind, pc, other, shared
  mutable std::mutex mutex_;
  std::map<Place, RawFinding> findings_;
};

}  // namespace assay::sim
