// What a run did: results/runs/<run-id>.jsonl, with a line for its start, one for each finished
// cell and one for its end. The cells' measurements are stored separately, as evidence.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "records/scoreboard.h"
#include "store/folder_lock.h"
#include "util/fd.h"

namespace assay::store {

inline constexpr std::chrono::seconds kRunPatience{5};

struct RunStart {
  std::string run_id;
  std::string started_at;                             // UTC, ISO 8601
  nlohmann::json options = nlohmann::json::object();  // as given on the command line
  std::uint64_t seed = 0;
  Machine machine;
  std::string assay_version, assay_commit;
};

struct RunCell {
  CellKey key;
  std::string spec_hash, source_hash;
  Verdict verdict = Verdict::skipped;
  std::optional<double> total;
  EvidenceRef evidence;
  Arrival arrival = Arrival::added;
  int revision = kMeasurementRevision;  // 0 in records older than revisions
};
RunCell run_cell(const BoardRow&, Arrival);

struct RunRecord {
  RunStart start;
  std::map<CellKey, RunCell> cells;  // as last measured
  bool finished = false;
};

// Throws Error naming the file and line. A record without a complete line has an empty run_id.
RunRecord read_run(const std::filesystem::path&);
// The same from the lines of a file.
RunRecord run_from(const std::vector<std::string>& lines, const std::string& file);

// The record of a run, as the running process writes it. No other process can write it: the file
// stays locked until this is destroyed or the process dies.
class RunLog {
 public:
  // Begins a record in the folder of runs. If another run began in the same second with the same
  // seed, "-2" or so is added to the id.
  static RunLog begin(const std::filesystem::path& runs, RunStart, Writers = Writers::many);
  // Absent if a process is running it, or if a kill came before its first line was complete. Waits
  // a little: a run that was just killed may leave a child that has not called exec yet.
  static std::optional<RunLog> resume(const std::filesystem::path& record,
                                      std::chrono::milliseconds patience = kRunPatience,
                                      Writers = Writers::many);

  const RunRecord& record() const { return record_; }
  const std::filesystem::path& path() const { return path_; }
  void add(const RunCell&);
  void finish();

 private:
  RunLog(std::filesystem::path path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  Fd lock_;
  RunRecord record_;
};

}  // namespace assay::store
