// Submissions -> graded cells -> files: the part that run and rerun share.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "cli/harness.h"
#include "cli/progress.h"
#include "grade/scoreboard.h"
#include "run/cell.h"

namespace assay::cli {

// The board and the file of the current run; both are rewritten after every finished cell.
class ResultStore {
 public:
  // Proves that the folder can be written and reads the board. Throws Error otherwise.
  explicit ResultStore(std::filesystem::path folder);

  void start(RunFile run);  // begins or continues a run
  void add(const BoardEntry&);
  void finish();

  const RunFile& run() const { return run_; }
  const Scoreboard& board() const { return board_; }
  std::filesystem::path run_path() const;
  std::filesystem::path board_path() const { return folder_ / "scoreboard.json"; }

  // The newest run in the folder that did not finish; throws Error when there is none.
  RunFile unfinished() const;

 private:
  std::filesystem::path folder_;
  Scoreboard board_;
  RunFile run_;
};

RunFile new_run(const Harness&, std::uint64_t seed, nlohmann::json options);

// "2026-11-21T03-51-20Z-5f3a9c1e": sorts by time.
std::string make_run_id(std::uint64_t seed);

// Checks, times, grades and stores every submission. First those on the simulated device, which
// nothing disturbs, `jobs` at a time, those that took longest before first. Then the others in
// batches, challenge by challenge: untimed work on `jobs` threads, then the timed cases of all answers
// to a challenge in common rounds, with the machine to themselves.
std::vector<BoardEntry> run_cells(const Harness&, run::CellRunner&,
                                  const std::vector<ChallengeSpec>&, const std::vector<Submission>&,
                                  std::size_t jobs, ResultStore&, Progress&);

const ChallengeSpec& spec_named(const std::vector<ChallengeSpec>&, const std::string& name);

// "model/challenge", with "/2" for attempt 2 and " (sim)" for another device than the CPU.
std::string cell_name(const CellKey&);

}  // namespace assay::cli
