#include "store/remove_cells.h"

#include "store/board_file.h"
#include "store/evidence_file.h"
#include "store/folder_lock.h"

namespace assay::store {

std::vector<CellKey> remove_cells(const std::filesystem::path& folder,
                                  const std::function<bool(const CellKey&)>& chosen) {
  const FolderLock lock(folder);
  BoardFile file(folder);
  file.write();  // leaves no journal: one rename removes them all
  Scoreboard left = file.board();
  std::vector<CellKey> removed;
  std::vector<EvidenceRef> evidence;
  for (const auto& [key, row] : file.board().entries) {
    if (!chosen(key)) continue;
    removed.push_back(key);
    evidence.push_back(row.evidence);
    left.entries.erase(key);
  }
  file.write(left);
  for (const EvidenceRef& e : evidence) remove_evidence(folder, e);
  return removed;
}

}  // namespace assay::store
