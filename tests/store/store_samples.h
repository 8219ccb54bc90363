// Results folders for tests.
#pragma once

#include "../records/board_samples.h"
#include "records/evidence.h"
#include "store/result_store.h"
#include "support/temporary_folder.h"

namespace assay::testing {

inline CellResult cell_at(const std::string& model, const std::string& time) {
  CellResult cell = sample_cell(sample_spec(), model);
  cell.finished_at = time;
  return cell;
}

inline BoardEntry entry_at(const std::string& model, const std::string& time) {
  return entry_of(cell_at(model, time));
}

inline BoardEntry quick_entry_at(const std::string& model, const std::string& time) {
  CellResult cell = quick_cell(sample_spec(), model);
  cell.finished_at = time;
  return entry_of(cell);
}

inline CellKey key_of(const std::string& model) { return entry_at(model, "").cell.key; }

inline store::RunStart run_start(const std::string& id) {
  store::RunStart run;
  run.run_id = id;
  run.started_at = "2026-11-21T04:00:00Z";
  run.options = {{"quick", true}, {"models", {"textbook"}}};
  run.seed = 42;
  run.machine = sample_machine();
  run.assay_version = "0.1.0";
  return run;
}

// When each model on the board was measured.
inline std::map<std::string, std::string> times(const Scoreboard& board) {
  std::map<std::string, std::string> all;
  for (const auto& [key, row] : board.entries) all[key.model] = row.finished_at;
  return all;
}

}  // namespace assay::testing
