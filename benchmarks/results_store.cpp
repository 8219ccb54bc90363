// What a results folder costs as it grows: 1,250 models with an answer to each of 8 challenges.
//
//   - adding a cell, on disk when done, when the board has 100, 1,000 and 10,000
//   - loading the board, and making the rankings from it
//   - peak memory of all that
//
// The evidence of a cell is as large as that of the shipped board is on average, about 93 kB. Exit
// status 1 when a limit is exceeded; with --smoke nothing is judged.
//
// Usage: results_store [--smoke] [FOLDER]. With --smoke 200 cells, in a second or two. FOLDER holds
// what is written meanwhile (default: the folder for temporary files); its disk is what is
// measured. Build: ninja -C build results_store.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <span>
#include <vector>

#include "../tests/grade/samples.h"
#include "cli/context.h"
#include "grade/evidence.h"
#include "grade/grade.h"
#include "measure/statistics.h"
#include "report/rankings.h"
#include "store/result_store.h"
#include "util/files.h"

namespace {

using namespace assay;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double kMostSecondsToAdd = 0.05, kMostSecondsToLoad = 1, kMostSecondsToReport = 3;
constexpr double kMostMemory = 1 << 30;
constexpr int kCases = 80, kTimedCases = 3, kRepetitions = 230, kExamples = 40;
constexpr std::size_t kSampled = 100;  // cells at the end of each size

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Generator {
 public:
  explicit Generator(std::vector<ChallengeSpec> specs) : specs_(std::move(specs)) {}

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

bool within(const char* what, double value, double most) {
  if (value <= most) return true;
  fmt::print("{}: {:.3g}, more than {:.3g}\n", what, value, most);
  return false;
}

void print_curve_point(std::size_t size, std::span<const double> seconds) {
  const std::vector<double> last(seconds.begin(), seconds.end());
  fmt::print("{:>8} {:>10.2f} {:>10.2f} {:>10.2f}\n", size, 1e3 * median(last),
             1e3 * quantile(last, 0.99), 1e3 * *std::ranges::max_element(last));
}

// The 99th percentile at the largest size.
double add_cells(const fs::path& folder, Generator& generator,
                 const std::vector<std::size_t>& sizes) {
  store::ResultStore store(folder);
  store::RunStart run;
  run.run_id = "benchmark";
  store.start(run);
  fmt::print("adding a cell, ms, over the last {}:\n{:>8} {:>10} {:>10} {:>10}\n", kSampled,
             "cells", "median", "99 %", "most");
  std::vector<double> seconds;
  for (const std::size_t size : sizes) {
    while (seconds.size() < size) {
      const BoardEntry entry = generator.entry(seconds.size());
      const auto start = Clock::now();
      store.add(entry);
      seconds.push_back(seconds_since(start));
    }
    print_curve_point(size, std::span(seconds).last(std::min(kSampled, size)));
  }
  const auto start = Clock::now();
  store.finish();
  fmt::print("writing the board whole: {:.2f} s, {:.1f} MB\n", seconds_since(start),
             1e-6 * static_cast<double>(fs::file_size(store.board_path())));
  return quantile({seconds.end() - static_cast<std::ptrdiff_t>(kSampled), seconds.end()}, 0.99);
}

double peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

int measure(const fs::path& folder, const std::vector<std::size_t>& sizes, bool judged) {
  Generator generator(cli::load_specs(cli::find_context("")));
  fmt::print("evidence of a cell: {:.1f} kB\n",
             1e-3 * static_cast<double>(evidence_text({"benchmark", generator.entry(0)}).size()));
  const double add = add_cells(folder, generator, sizes);
  auto start = Clock::now();
  const Scoreboard board = store::read_board(folder);
  const double load = seconds_since(start);
  start = Clock::now();
  const std::size_t rankings = ranking_section(board, generator.specs()).size() +
                               rankings_document(board, generator.specs()).size();
  const double report = seconds_since(start);
  const double memory = peak_memory();
  fmt::print(
      "loading the board: {:.2f} s; rankings of it: {:.2f} s, {:.2f} MB; peak memory {:.0f} MB\n",
      load, report, 1e-6 * static_cast<double>(rankings), 1e-6 * memory);
  if (!judged) return 0;
  const bool good[] = {within("seconds to add a cell, 99 %", add, kMostSecondsToAdd),
                       within("seconds to load", load, kMostSecondsToLoad),
                       within("seconds to load and report", load + report, kMostSecondsToReport),
                       within("bytes of memory", memory, kMostMemory)};
  return std::ranges::all_of(good, std::identity()) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  bool smoke = false;
  fs::path folder = fs::temp_directory_path();
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--smoke") {
      smoke = true;
    } else {
      folder = argv[i];
    }
  }
  const std::vector<std::size_t> sizes =
      smoke ? std::vector<std::size_t>{100, 200} : std::vector<std::size_t>{100, 1000, 10000};
  folder /= fmt::format("assay_results_store.{}", ::getpid());
  try {
    const int status = measure(folder, sizes, !smoke);
    fs::remove_all(folder);
    return status;
  } catch (const std::exception& e) {
    fmt::print(stderr, "results_store: {}\n", e.what());
    fs::remove_all(folder);
    return 2;
  }
}
