#include "cli/run_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "assay/error.h"
#include "cells/examples.h"
#include "cells/own_tests.h"
#include "cli/output.h"
#include "grade/grade.h"
#include "report/figures.h"
#include "session/order.h"
#include "session/runner_steps.h"
#include "session/session.h"
#include "spec/spec.h"
#include "util/shell.h"
#include "util/stop.h"
#include "util/temporary_folder.h"
#include "version.h"

namespace assay::cli {
namespace fs = std::filesystem;
namespace {

// The descriptions of the models, read once per model from its file when the run begins.
class Entrants {
 public:
  explicit Entrants(const std::vector<Submission>& submissions) {
    for (const Submission& s : submissions) {
      records_[key_of(s)] = s.record;
      if (models_.contains(s.model)) continue;
      fs::path root = s.directory.parent_path().parent_path();
      if (!s.attempt.empty()) root = root.parent_path();
      std::string fault;  // reported when the submissions were found
      models_[s.model] = read_model_info(root, s.model, fault);
    }
  }
  void describe(BoardEntry& entry) const {
    const CellKey& key = entry.cell.key;
    if (const auto model = models_.find(key.model); model != models_.end())
      entry.about = model->second;
    if (const auto record = records_.find(key); record != records_.end())
      entry.attempt = record->second;
  }

 private:
  std::map<std::string, ModelInfo> models_;
  std::map<CellKey, AttemptRecord> records_;
};

BoardEntry graded(const Harness& harness, const std::optional<GpuMachine>& gpu,
                  const ChallengeSpec& spec, CellResult cell) {
  BoardEntry entry;
  entry.score = grade(spec_for(cell.key.device, spec), cell, harness.gpu);
  entry.cell = std::move(cell);
  entry.assay_version = kVersion;
  entry.assay_commit = kCommit;
  entry.machine = harness.machine;
  entry.machine.gpu = gpu;
  return entry;
}

std::string one_line(const BoardEntry& entry) {
  const Score& score = entry.score;
  std::string text =
      fmt::format("{:<44} {:<8}", to_string(entry.cell.key), report::short_verdict(score.verdict));
  if (score.total) text += fmt::format(" {:5.1f} {}", *score.total, score.letter);
  if (score.verdict == Verdict::harness_error) text += " " + entry.cell.build.log;
  return text;
}

// An estimate of the bytes read to compile a challenge's test subjects, which are variants of
// naive.
std::size_t bytes_of_subjects(const ChallengeSpec& spec, Language language) {
  const char* const file = language == Language::cpp ? "naive.cpp" : "naive.cu";
  std::size_t naive = cells::baseline_file(spec, file).contents.size();
  for (const SourceFile& header : cells::baseline_headers(spec)) {
    if (!header.name.starts_with("par/")) naive += header.contents.size();
  }
  return naive * cells::test_subjects(spec, language).size();
}

session::Order planned(const std::vector<ChallengeSpec>& specs,
                       const std::vector<Submission>& submissions, std::size_t jobs, bool own_tests,
                       const Scoreboard& board) {
  // Challenges and languages for which submissions' own tests run.
  std::map<std::pair<std::string, Language>, std::size_t> bytes;
  for (const Submission& s : submissions) {
    const std::pair at{s.challenge, s.language};
    if (own_tests && !s.test_source.empty() && !bytes.contains(at))
      bytes[at] = bytes_of_subjects(spec_named(specs, s.challenge), s.language);
  }
  return session::plan_order(submissions, jobs, [&](const Submission& s) {
    return session::expected_seconds(board, s,
                                     s.test_source.empty() ? 0 : bytes[{s.challenge, s.language}]);
  });
}

// Keeps finished cells that the results folder does not accept, in a temporary results folder from
// which `assay merge` can take them once the cause is fixed.
class Refuge {
 public:
  // Returns where the cell was kept, for the error message.
  std::string keep(const BoardEntry& entry, const store::RunStart& run) {
    try {
      if (!store_) open(run);
      store_->add(entry);
      return fmt::format("the finished cell lies in {0}: `assay merge {1}` takes it in",
                         folder_.string(), quoted(folder_.string()));
    } catch (const std::exception& e) {
      return fmt::format("the finished cell is lost, for nothing can be written to {} either ({})",
                         fs::temp_directory_path().string(), e.what());
    }
  }

 private:
  void open(const store::RunStart& run) {
    folder_ = make_temporary_folder("assay-rescued-");
    store_.emplace(folder_);
    store_->start(run);
  }

  fs::path folder_;
  std::optional<store::ResultStore> store_;
};

}  // namespace

std::vector<BoardEntry> run_cells(const Harness& harness, const std::vector<RunnerAt>& places,
                                  const std::vector<ChallengeSpec>& specs,
                                  const std::vector<Submission>& submissions, std::size_t jobs,
                                  store::ResultStore& store, Progress& progress) {
  std::vector<BoardEntry> entries;
  Refuge refuge;
  const Entrants entrants(submissions);
  const auto sink = [&](CellResult cell, std::size_t place) {
    check_stop();  // a stop request also kills the worker: the result means nothing
    const ChallengeSpec& spec = spec_named(specs, cell.key.challenge);
    entries.push_back(graded(harness, places[place].gpu, spec, std::move(cell)));
    entrants.describe(entries.back());
    try {
      store.add(entries.back());
    } catch (const Error& fault) {
      throw Error(
          fmt::format("{}; {}", fault.what(), refuge.keep(entries.back(), store.run().start)));
    }
    for (const std::string& fault : entries.back().cell.faults) {
      progress.note(fmt::format("{}: tried again after a fault of the harness: {}",
                                to_string(entries.back().cell.key), report::one_line(fault)));
    }
    for (const Mutant& m : entries.back().cell.mutants) {
      if (m.verdict != TestVerdict::house_fault) continue;
      progress.note(fmt::format("{}: FAULT OF THE HOUSE, please report it: {}",
                                to_string(entries.back().cell.key), report::one_line(m.reason)));
    }
    progress.finished(one_line(entries.back()));
  };
  std::vector<cells::CellRunner*> runners;
  for (const RunnerAt& at : places) runners.push_back(at.runner.get());
  session::RunnerSteps steps(runners, specs);
  session::run(planned(specs, submissions, std::max(jobs, runners.size()),
                       runners.front()->tries_own_tests(), store.board()),
               jobs, steps, sink, [&](const std::string& activity) {
                 check_stop();
                 return progress.begin(activity);
               });
  std::ranges::sort(entries, {}, [](const BoardEntry& e) { return e.cell.key; });
  return entries;
}

}  // namespace assay::cli
