// Results of other folders, measured elsewhere or by another run, taken into one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>

#include "assay/results.h"

namespace assay::store {

// Where both have a cell. newest: the rules of merge() decide; theirs: what comes in, but never a
// row of an older revision for one of a newer; ours: what is there.
enum class Prefer : std::uint8_t { newest, theirs, ours };

// Another results folder, read whole and checked before anything is written; it is never written
// to.
class IncomingResults {
 public:
  explicit IncomingResults(std::filesystem::path folder);  // throws Error

  const std::filesystem::path& folder() const { return folder_; }
  const Scoreboard& board() const { return board_; }
  // The text of a row's evidence; "" when it is missing or of another measurement.
  std::string evidence(const BoardRow&) const;

 private:
  std::filesystem::path folder_;
  Scoreboard board_;
  std::map<CellKey, std::string> evidence_of_schema_1_;
};

struct MergeCount {
  std::size_t added = 0, replaced = 0, same = 0;
  std::size_t lesser = 0, older = 0;  // kept ours, see Arrival
  std::size_t ours = 0;               // kept ours because that is preferred
  std::size_t without_evidence = 0;   // of those that were taken

  std::size_t taken() const { return added + replaced; }
};

// Takes cells into a results folder with their evidence. Killed or stopped in between, it may
// simply be done again.
MergeCount merge_results(const std::filesystem::path& folder, const IncomingResults&, Prefer);

}  // namespace assay::store
