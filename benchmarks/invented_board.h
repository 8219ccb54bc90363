// Cells of models that do not exist, as large as those of the shipped board are on average.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../tests/grade/samples.h"
#include "grade/grade.h"

namespace assay::bench {

inline constexpr int kCases = 80, kTimedCases = 3, kRepetitions = 230, kExamples = 40;

class InventedBoard {
 public:
  explicit InventedBoard(std::vector<ChallengeSpec> specs) : specs_(std::move(specs)) {}

  // Cell number i, model by model.
  BoardEntry entry(std::size_t i) {
    const ChallengeSpec& challenge = specs_[i % specs_.size()];
    BoardEntry e;
    e.cell = cell(fmt::format("model-{:04}", i / specs_.size()), challenge);
    e.score = score();
    e.assay_version = "0.1.0";
    e.assay_commit = "0123456789";
    e.machine = testing::sample_machine();
    return e;
  }

  const std::vector<ChallengeSpec>& specs() const { return specs_; }

 private:
  double noise() { return std::uniform_real_distribution<>(0, 1)(random_); }

  CellResult cell(const std::string& model, const ChallengeSpec& spec) {
    CellResult c = testing::sample_cell(testing::sample_spec(), model);
    c.key.challenge = spec.name;
    c.spec_hash = spec.hash;
    c.build.source_hash = std::string(64, 'a');
    c.build.command = std::string(220, 'g');
    c.cases.assign(kCases, c.cases.front());
    for (int i = 0; i < kCases; ++i) c.cases[static_cast<std::size_t>(i)] = correctness(i);
    for (int i = 0; i < kTimedCases; ++i) c.cases.push_back(timed(i));
    c.mutants.assign(kExamples, c.mutants.front());
    for (Mutant& m : c.mutants) m.reason = std::string(60, 'r');
    return c;
  }

  CaseResult correctness(int i) {
    CaseResult r;
    r.name = fmt::format("case_with_a_name_{}", i);
    r.verdict = Verdict::ok;
    r.seed = random_();
    r.shape = "B=1 H=2 N=192 D=128 causal";
    r.error = noise();
    r.bound = noise();
    r.accuracy = noise();
    r.seconds = noise();
    r.metrics = {{"scratch_bytes", noise()}, {"rows_over_fewest", noise()}};
    return r;
  }

  CaseResult timed(int i) {
    CaseResult r;
    r.name = fmt::format("timed_{}", i);
    r.group = CaseGroup::timed;
    r.verdict = Verdict::ok;
    for (int n = 0; n < kRepetitions; ++n) r.samples.push_back({noise(), noise(), noise()});
    return r;
  }

  // Reasons as long as those on the shipped board.
  Score score() {
    Score s;
    s.verdict = Verdict::ok;
    s.total = 100 * noise();
    s.interval = {*s.total - noise(), *s.total + noise()};
    s.letter = letter(*s.total);
    for (const char* name :
         {"correctness", "accuracy", "performance", "resources", "completeness", "tests"}) {
      const double points = 10 * noise();
      s.dimensions.push_back({name, points, 10, {points, points}, std::string(100, 'w')});
    }
    for (int i = 0; i < kTimedCases; ++i) {
      s.speeds.push_back(
          {fmt::format("timed_{}", i), noise(), {noise(), noise()}, noise(), noise()});
    }
    return s;
  }

  std::vector<ChallengeSpec> specs_;
  std::mt19937_64 random_{42};
};

// The main function of a benchmark that fills a folder. The arguments are --smoke and where to put
// the folder. `measure` gets the folder, which is removed afterwards, and whether to be brief. It
// returns the exit status, which is 2 if it throws.
inline int run_in_folder(int argc, char** argv, std::string_view name,
                         const std::function<int(const std::filesystem::path&, bool)>& measure) {
  bool smoke = false;
  std::filesystem::path folder = std::filesystem::temp_directory_path();
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--smoke") {
      smoke = true;
    } else {
      folder = argv[i];
    }
  }
  folder /= fmt::format("assay_{}.{}", name, ::getpid());
  int status = 2;
  try {
    status = measure(folder, smoke);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
  }
  std::filesystem::remove_all(folder);
  return status;
}

}  // namespace assay::bench
