// A results folder as a run writes it: evidence, board and the run's record.
//
// A finished cell is written in this order, each step on disk before the next: its evidence, which
// names the run; a line of the board's journal; a line of the run's record. A kill leaves a prefix
// of these steps, which adopt() completes without measuring again. Several processes may write to
// one folder: each step that depends on the board takes the folder's lock and works on the latest
// board.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "assay/results.h"
#include "records/evidence.h"
#include "store/board_file.h"
#include "store/folder_lock.h"
#include "store/run_record.h"

namespace assay::store {

// Boards up to this size are written whole after every cell, so that people can watch them grow.
inline constexpr std::size_t kSmallBoard = 64;

// Among a run's options: it was of one cell, which the user chose.
inline constexpr const char* kOneCell = "one_cell";

class ResultStore {
 public:
  // Checks that the folder is writable, and reads the board (see migrate.h). Throws Error
  // otherwise.
  explicit ResultStore(std::filesystem::path folder, Writers = Writers::many);

  // What migrate() did, a sentence or "".
  const std::string& migration() const { return migration_; }

  void start(RunStart);
  // How the newest run in the folder ended. Runs whose options hold kOneCell are passed over, here
  // and in resume(): there is nothing to continue.
  enum class LastRun : std::uint8_t { none, unfinished, finished };
  LastRun last_run() const;
  // Continues the newest unfinished run that no process is running; throws Error if there is none.
  const RunRecord& resume(std::chrono::milliseconds patience = kRunPatience);

  // The functions below REQUIRE that a run was started or resumed.

  // Completes a cell that this run measured before it was killed: its evidence exists, but the
  // record lacks it. False if there is no such evidence, or if a program of another revision
  // measured it.
  bool adopt(const CellKey&);
  Arrival add(const BoardEntry&);
  // The board as it is so far.
  void write_board();
  void finish();

  bool is_running() const { return log_.has_value(); }
  const RunRecord& run() const { return log_->record(); }
  const Scoreboard& board() const { return board_.board(); }
  const std::filesystem::path& run_path() const { return log_->path(); }
  std::filesystem::path board_path() const { return store::board_path(folder_); }

 private:
  Arrival place(const Evidence&);

  std::filesystem::path folder_;
  Writers writers_;
  std::string migration_;
  BoardFile board_;
  std::optional<RunLog> log_;
};

}  // namespace assay::store
