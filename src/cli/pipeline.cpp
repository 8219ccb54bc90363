#include "cli/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <utility>

#include "cli/jobs.h"
#include "grade/grade.h"
#include "measure/machine.h"
#include "report/figures.h"
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

store::RunStart new_run(const Harness& harness, std::uint64_t seed, nlohmann::json options) {
  store::RunStart run;
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
  return report::with_device(name, key);
}

void print_set_aside(const store::ResultStore& store) {
  for (const auto& [key, cell] : store.run().cells) {
    if (cell.arrival != Arrival::lesser && cell.arrival != Arrival::older) continue;
    fmt::print("{} is not on the board, which keeps {}; it lies in {}\n", cell_name(cell.key),
               cell.arrival == Arrival::lesser ? "a full measurement of the same sources"
                                               : "a measurement with a later date",
               (store.board_path().parent_path() / cell.evidence.path).string());
  }
}

namespace {

// Checks what it is given, stores and shows what is finished.
class Cells {
 public:
  Cells(const Harness& harness, run::CellRunner& runner, const std::vector<ChallengeSpec>& specs,
        store::ResultStore& store, Progress& progress)
      : harness_(harness), runner_(runner), specs_(specs), store_(store), progress_(progress) {}

  CellResult check(const Submission& submission) {
    const ChallengeSpec& spec = spec_named(specs_, submission.challenge);
    progress_.status("checking " + cell_name({submission.model, submission.challenge,
                                              submission.attempt, submission.device()}));
    CellResult cell = runner_.check(spec, submission);
    runner_.run_own_tests(spec, submission, cell);
    return cell;
  }

  // Answers to one challenge. They are finished one by one.
  void time(std::span<CellResult> cells) {
    const CellKey& first = cells.front().key;
    const ChallengeSpec& spec = spec_named(specs_, first.challenge);
    progress_.status("timing " + (cells.size() == 1 ? cell_name(first)
                                                    : fmt::format("{} answers to {}", cells.size(),
                                                                  first.challenge)));
    runner_.time_together(spec, cells);
    for (CellResult& cell : cells) {
      progress_.status("timing " + cell_name(cell.key));
      runner_.run_exclusive(spec, cell);
      finish(std::move(cell));
    }
  }

  void finish(CellResult cell) {
    const ChallengeSpec& spec = spec_named(specs_, cell.key.challenge);
    BoardEntry entry = graded(harness_, spec, std::move(cell));
    const std::lock_guard lock(mutex_);
    store_.add(entry);
    progress_.finished(one_line(entry));
    entries_.push_back(std::move(entry));
  }

  // In the order of the board, C++ and CUDA answers beside each other.
  std::vector<BoardEntry> take() {
    std::ranges::sort(entries_, {}, [](const BoardEntry& e) { return e.cell.key; });
    return std::move(entries_);
  }

 private:
  const Harness& harness_;
  run::CellRunner& runner_;
  const std::vector<ChallengeSpec>& specs_;
  store::ResultStore& store_;
  Progress& progress_;
  std::mutex mutex_;
  std::vector<BoardEntry> entries_;
};

// What the cases of a submission took when it was last on the board; those that never were first.
double known_seconds(const Scoreboard& board, const Submission& s) {
  const auto entry = board.entries.find({s.model, s.challenge, s.attempt, s.device()});
  if (entry == board.entries.end()) return std::numeric_limits<double>::infinity();
  return entry->second.seconds;
}

// Answers to one challenge, which are timed together.
struct Group {
  std::vector<const Submission*> submissions;
  std::vector<CellResult> cells;  // of the submissions, once checked
};

// At most so many: each has a worker with memory of its own.
constexpr std::size_t kTogether = 4;

std::vector<Group> by_challenge(std::vector<const Submission*> all) {
  std::ranges::stable_sort(all, {}, [](const Submission* s) { return s->challenge; });
  std::vector<Group> groups;
  for (const Submission* s : all) {
    if (groups.empty() || groups.back().submissions.size() == kTogether ||
        groups.back().submissions.front()->challenge != s->challenge) {
      groups.emplace_back();
    }
    groups.back().submissions.push_back(s);
  }
  for (Group& group : groups) group.cells.resize(group.submissions.size());
  return groups;
}

}  // namespace

std::vector<BoardEntry> run_cells(const Harness& harness, run::CellRunner& runner,
                                  const std::vector<ChallengeSpec>& specs,
                                  const std::vector<Submission>& submissions, std::size_t jobs,
                                  store::ResultStore& store, Progress& progress) {
  std::vector<const Submission*> simulated, timed;
  for (const Submission& s : submissions) {
    (s.language == Language::cuda ? simulated : timed).push_back(&s);
  }
  // One long cell at the end would keep one core busy and the others idle.
  std::ranges::stable_sort(simulated, std::greater<>(),
                           [&](const Submission* s) { return known_seconds(store.board(), *s); });
  Cells cells(harness, runner, specs, store, progress);
  for_each_job(simulated.size(), jobs,
               [&](std::size_t i) { cells.finish(cells.check(*simulated[i])); });
  // Large enough to keep all cores busy; what is checked and not yet timed is lost to a kill.
  const std::size_t batch = 4 * std::max<std::size_t>(jobs, 1);
  std::vector<Group> groups = by_challenge(std::move(timed));
  for (auto begin = groups.begin(); begin != groups.end();) {
    std::vector<std::pair<const Submission*, CellResult*>> checks;
    auto end = begin;
    for (; end != groups.end() && checks.size() < batch; ++end) {
      for (std::size_t i = 0; i < end->cells.size(); ++i)
        checks.emplace_back(end->submissions[i], &end->cells[i]);
    }
    for_each_job(checks.size(), jobs,
                 [&](std::size_t i) { *checks[i].second = cells.check(*checks[i].first); });
    for (; begin != end; ++begin) cells.time(begin->cells);
  }
  return cells.take();
}

}  // namespace assay::cli
