#include "store/result_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "assay/error.h"
#include "grade/board_row.h"
#include "spec/json_schema.h"
#include "store/cell_path.h"
#include "store/evidence_file.h"
#include "store/folder_lock.h"
#include "store/migrate.h"
#include "util/files.h"
#include "util/sha256.h"
#include "util/text.h"

namespace assay::store {
namespace fs = std::filesystem;
namespace {

fs::path writable(fs::path folder) {
  require_writable_directory(folder / "runs");
  return folder;
}

// A name that JSON cannot represent would be read back as a different one.
void require_text(const CellKey& key) {
  for (const std::string* name : {&key.model, &key.challenge, &key.attempt}) {
    if (printable(*name, 1, name->size() + 1) == *name) continue;
    throw Error(
        fmt::format("the name '{}' is not plain text: rename its folder", printable(*name, 1, 80)));
  }
}

// The records in the folder, newest first; ids begin with the time.
std::vector<fs::path> records(const fs::path& runs) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(runs)) {
    const fs::path ending = entry.path().extension();
    if (ending == ".jsonl" || ending == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.rbegin(), paths.rend());
  return paths;
}

// Records of schema 1 were single JSON documents.
void refuse_unfinished_of_schema_1(const fs::path& path) {
  const nlohmann::json j = parse_json(read_file(path), path.string());
  const auto finished = j.find("finished");
  if (finished == j.end() || *finished != false) return;
  throw Error(
      fmt::format("{} was begun by an older assay and cannot be continued: delete it, and measure "
                  "with `assay run` what is not on the board",
                  path.string()));
}

}  // namespace

ResultStore::ResultStore(fs::path folder, Writers writers)
    : folder_(writable(std::move(folder))),
      writers_(writers),
      migration_(migrate(folder_)),
      board_(folder_) {}

void ResultStore::start(RunStart run) {
  log_ = RunLog::begin(folder_ / "runs", std::move(run), writers_);
}

namespace {

bool is_of_one_cell(const RunRecord& run) { return run.start.options.contains(kOneCell); }

}  // namespace

ResultStore::LastRun ResultStore::last_run() const {
  for (const fs::path& path : records(folder_ / "runs")) {
    if (path.extension() == ".json") return LastRun::none;
    const RunRecord record = read_run(path);
    if (record.start.run_id.empty()) continue;  // killed before its first line was complete
    if (is_of_one_cell(record)) continue;
    return record.finished ? LastRun::finished : LastRun::unfinished;
  }
  return LastRun::none;
}

const RunRecord& ResultStore::resume(std::chrono::milliseconds patience) {
  for (const fs::path& path : records(folder_ / "runs")) {
    if (path.extension() == ".json") {
      refuse_unfinished_of_schema_1(path);
      continue;
    }
    log_ = RunLog::resume(path, patience, writers_);
    if (log_ && !log_->record().finished && !is_of_one_cell(log_->record())) return log_->record();
  }
  log_.reset();
  throw Error(fmt::format("nothing to resume: no unfinished run in {} that has ended",
                          (folder_ / "runs").string()));
}

bool ResultStore::adopt(const CellKey& key) {
  const std::string& id = run().start.run_id;
  const auto recorded = run().cells.find(key);
  for (const std::string& path : {evidence_path(key), evidence_path(key, id)}) {
    const auto evidence = evidence_of_run(folder_, path, id);
    if (!evidence || !is_of_today(evidence->entry.cell.revision, key.device)) continue;
    if (recorded != run().cells.end() &&
        recorded->second.evidence.sha256 == sha256_hex(evidence_text(*evidence)))
      continue;
    place(*evidence);
    return true;
  }
  return false;
}

Arrival ResultStore::add(const BoardEntry& entry) {
  require_text(entry.cell.key);
  return place({run().start.run_id, entry});
}

Arrival ResultStore::place(const Evidence& evidence) {
  const CellKey& key = evidence.entry.cell.key;
  const std::string text = evidence_text(evidence);
  BoardRow row = board_row(evidence.entry, {evidence_path(key), sha256_hex(text)});
  const FolderLock lock(folder_, kLockPatience, writers_);
  board_.refresh();
  const Arrival what = arrival(board(), row);
  if (what == Arrival::lesser || what == Arrival::older)
    row.evidence.path = evidence_path(key, evidence.run_id);
  write_evidence(folder_, row.evidence.path, text);
  const RunCell cell = run_cell(row, what);
  if (is_placed(what)) board_.append(std::move(row));
  log_->add(cell);
  if (is_placed(what) && board().entries.size() <= kSmallBoard) board_.write();
  return what;
}

void ResultStore::write_board() {
  const FolderLock lock(folder_, kLockPatience, writers_);
  board_.refresh();
  board_.write();
}

void ResultStore::finish() {
  write_board();
  log_->finish();
}

}  // namespace assay::store
