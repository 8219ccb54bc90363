// Merges results of other folders, measured elsewhere or by another run, into one folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>

#include "assay/results.h"

namespace assay::store {

// Which row wins if both have a cell. newest: by the rules of merge(); theirs: the incoming row,
// unless its revision is older; ours: the existing row.
enum class Prefer : std::uint8_t { newest, theirs, ours };

// Another results folder, read and checked completely before anything is written. It is never
// written to.
class IncomingResults {
 public:
  explicit IncomingResults(std::filesystem::path folder);  // throws Error

  const std::filesystem::path& folder() const { return folder_; }
  const Scoreboard& board() const { return board_; }
  // The text of a row's evidence; "" if it is missing or of another measurement.
  std::string evidence(const BoardRow&) const;

 private:
  std::filesystem::path folder_;
  Scoreboard board_;
  std::map<CellKey, std::string> evidence_of_schema_1_;
};

struct MergeCount {
  std::size_t added = 0, replaced = 0, same = 0;
  std::size_t lesser = 0, older = 0;  // ours was kept, see Arrival
  std::size_t ours = 0;               // ours was kept because that is preferred
  std::size_t without_evidence = 0;   // among those that were taken

  std::size_t taken() const { return added + replaced; }
};

// Merges cells with their evidence into a results folder. If killed or stopped halfway, it can
// simply be run again.
MergeCount merge_results(const std::filesystem::path& folder, const IncomingResults&, Prefer);

}  // namespace assay::store
