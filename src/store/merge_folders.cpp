#include "store/merge_folders.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "records/documents.h"
#include "records/evidence.h"
#include "records/scoreboard.h"
#include "spec/json_schema.h"
#include "store/board_file.h"
#include "store/cell_path.h"
#include "store/evidence_file.h"
#include "store/folder_lock.h"
#include "store/line_file.h"
#include "util/files.h"
#include "util/stop.h"

namespace assay::store {
namespace fs = std::filesystem;
namespace {

class Merger {
 public:
  Merger(const fs::path& folder, const IncomingResults& incoming, Prefer prefer)
      : folder_(folder), incoming_(incoming), prefer_(prefer), ours_(folder) {}

  MergeCount run() {
    for (const auto& [key, row] : incoming_.board().entries) {
      check_stop();  // what was taken is complete; the rest may follow another time
      take_in(row);
    }
    const FolderLock lock(folder_);
    ours_.refresh();
    Scoreboard board = ours_.board();
    for (const BoardRow* row : preferred_) {
      if (is_of_older_revision(*row)) {  // another process was faster
        ++count_.older;
        continue;
      }
      copy_evidence(*row);
      put(board, described(*row));
      ++count_.replaced;
    }
    ours_.write(board);
    return count_;
  }

 private:
  // Locks for one cell at a time, since others may be running. A row that a journal cannot express,
  // because it is older than the one it replaces, waits until the whole board is written.
  void take_in(const BoardRow& row) {
    const FolderLock lock(folder_);
    ours_.refresh();
    const Arrival what = arrival(ours_.board(), row);
    if (what == Arrival::same) {
      ++count_.same;
    } else if (prefer_ == Prefer::ours && what != Arrival::added) {
      ++count_.ours;
    } else if (is_placed(what)) {
      ++(what == Arrival::added ? count_.added : count_.replaced);
      copy_evidence(row);
      ours_.append(described(row));
    } else if (prefer_ == Prefer::theirs && !is_of_older_revision(row)) {
      preferred_.push_back(&row);
    } else {
      ++(what == Arrival::lesser ? count_.lesser : count_.older);
    }
  }

  // Such a row is never preferred: it would be stale while ours is not.
  bool is_of_older_revision(const BoardRow& row) const {
    const auto own = ours_.board().entries.find(row.key);
    return own != ours_.board().entries.end() && row.revision < own->second.revision;
  }

  // The row with what the incoming board says about its model.
  BoardRow described(BoardRow row) const {
    const auto& models = incoming_.board().models;
    if (const auto about = models.find(row.key.model); about != models.end())
      row.about = about->second;
    return row;
  }

  // Removes our evidence if theirs is missing: ours says nothing about their score.
  void copy_evidence(const BoardRow& row) {
    const std::string text = incoming_.evidence(row);
    if (!text.empty()) return write_evidence(folder_, row.evidence.path, text);
    remove_evidence(folder_, row.evidence);
    ++count_.without_evidence;
  }

  const fs::path& folder_;
  const IncomingResults& incoming_;
  Prefer prefer_;
  BoardFile ours_;
  std::vector<const BoardRow*> preferred_;
  MergeCount count_;
};

}  // namespace

IncomingResults::IncomingResults(fs::path folder)
    : folder_(std::move(folder)), board_(read_board(folder_)) {
  const fs::path path = board_path(folder_);
  if (!fs::exists(path)) {
    if (!fs::exists(journal_path(folder_)))
      throw Error(fmt::format("{} holds no results: expected {}", folder_.string(), path.string()));
    return;
  }
  if (!fs::is_regular_file(path)) throw Error(path.string() + " is not a file");
  const nlohmann::json j = parse_json(read_file(path), path.string());
  if (schema_of(j) != 1) return;
  for (const BoardEntry& e : read_scoreboard_1(j, path.string()))
    evidence_of_schema_1_[e.cell.key] = evidence_text({"", e});
}

std::string IncomingResults::evidence(const BoardRow& row) const {
  const auto converted = evidence_of_schema_1_.find(row.key);
  if (converted != evidence_of_schema_1_.end()) return converted->second;
  return find_evidence(folder_, row.evidence).text;
}

MergeCount merge_results(const fs::path& folder, const IncomingResults& incoming, Prefer prefer) {
  return Merger(folder, incoming, prefer).run();
}

}  // namespace assay::store
