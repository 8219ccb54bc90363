#include "cli/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "cli/jobs.h"
#include "grade/grade.h"
#include "measure/machine.h"
#include "spec/spec.h"
#include "util/files.h"
#include "version.h"

namespace assay::cli {
namespace fs = std::filesystem;
namespace {

std::string utc(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

BoardEntry graded(const Harness& harness, const ChallengeSpec& spec, CellResult cell) {
  BoardEntry entry;
  entry.score = grade(spec_for(cell.key.device, spec), cell, harness.gpu);
  entry.cell = std::move(cell);
  entry.assay_version = kVersion;
  entry.assay_commit = kCommit;
  entry.machine = harness.machine;
  return entry;
}

std::string one_line(const BoardEntry& entry) {
  const Score& score = entry.score;
  std::string text = fmt::format("{:<44} {:<8}", cell_name(entry.cell.key), code(score.verdict));
  if (score.total) text += fmt::format(" {:5.1f} {}", *score.total, score.letter);
  if (score.verdict == Verdict::harness_error) text += " " + entry.cell.build.log;
  return text;
}

}  // namespace

ResultStore::ResultStore(fs::path folder) : folder_(std::move(folder)) {
  require_writable_directory(folder_ / "runs");
  board_ = load_scoreboard(board_path());
}

void ResultStore::start(RunFile run) {
  run_ = std::move(run);
  save_run(run_path(), run_);
}

void ResultStore::add(const BoardEntry& entry) {
  run_.cells.push_back({entry.cell, entry.score});
  save_run(run_path(), run_);
  if (merge(board_, entry)) save_scoreboard(board_path(), board_);
}

void ResultStore::finish() {
  run_.finished = true;
  save_run(run_path(), run_);
}

fs::path ResultStore::run_path() const { return folder_ / "runs" / (run_.run_id + ".json"); }

RunFile ResultStore::unfinished() const {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder_ / "runs")) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.rbegin(), paths.rend());
  for (const fs::path& path : paths) {
    RunFile run = load_run(path);
    if (!run.finished) return run;
  }
  throw Error(
      fmt::format("nothing to resume: no unfinished run in {}", (folder_ / "runs").string()));
}

RunFile new_run(const Harness& harness, std::uint64_t seed, nlohmann::json options) {
  RunFile run;
  run.run_id = make_run_id(seed);
  run.started_at = utc("%Y-%m-%dT%H:%M:%SZ");
  run.options = std::move(options);
  run.seed = seed;
  run.machine = harness.machine;
  run.assay_version = kVersion;
  run.assay_commit = kCommit;
  return run;
}

std::string make_run_id(std::uint64_t seed) {
  return fmt::format("{}-{:08x}", utc("%Y-%m-%dT%H-%M-%SZ"), seed & 0xffffffffu);
}

const ChallengeSpec& spec_named(const std::vector<ChallengeSpec>& specs, const std::string& name) {
  for (const ChallengeSpec& spec : specs) {
    if (spec.name == name) return spec;
  }
  throw Error(fmt::format("no challenge {}", name));
}

std::string cell_name(const CellKey& key) {
  std::string name = key.model + "/" + key.challenge;
  if (!key.attempt.empty()) name += "/" + key.attempt;
  return key.device == "cpu" ? name : fmt::format("{} ({})", name, key.device);
}

std::vector<BoardEntry> run_cells(const Harness& harness, run::CellRunner& runner,
                                  const std::vector<ChallengeSpec>& specs,
                                  const std::vector<Submission>& submissions, std::size_t jobs,
                                  ResultStore& store, Progress& progress) {
  std::vector<BoardEntry> entries;
  const std::size_t batch = std::max<std::size_t>(jobs, 1);
  for (std::size_t begin = 0; begin < submissions.size(); begin += batch) {
    const std::size_t n = std::min(batch, submissions.size() - begin);
    std::vector<CellResult> cells(n);
    for_each_job(n, jobs, [&](std::size_t i) {
      const Submission& submission = submissions[begin + i];
      const ChallengeSpec& spec = spec_named(specs, submission.challenge);
      progress.status("checking " +
                      cell_name({submission.model, submission.challenge, "", submission.device()}));
      cells[i] = runner.check(spec, submission);
      runner.run_own_tests(spec, submission, cells[i]);
    });
    for (CellResult& cell : cells) {
      const ChallengeSpec& spec = spec_named(specs, cell.key.challenge);
      if (cell.key.device == "cpu") progress.status("timing " + cell_name(cell.key));
      runner.time(spec, cell);
      entries.push_back(graded(harness, spec, std::move(cell)));
      store.add(entries.back());
      progress.finished(one_line(entries.back()));
    }
  }
  return entries;
}

}  // namespace assay::cli
