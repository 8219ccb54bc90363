// assay selftest: runs every shipped example through the same path as a submission, to show that
// the harness catches what it claims to catch.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "assay/error.h"
#include "assay/parallel.h"
#include "cells/cell.h"
#include "cli/account.h"
#include "cli/harness.h"
#include "cli/mutation_score.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "grade/grade.h"
#include "numerics/jobs.h"
#include "spec/spec.h"
#include "util/clock.h"
#include "util/cpu_set.h"
#include "util/files.h"
#include "util/stop.h"
#include "util/text.h"

namespace assay::cli {
namespace {

// The largest share of points a slow_* example may earn on the timed case it names.
constexpr double kSlowShare = 0.35;

struct SelftestCommand {
  HarnessOptions harness;
  std::vector<std::string> challenges, examples;
  std::size_t jobs = static_cast<std::size_t>(available_cores());
  std::uint64_t seed = 1;
  bool every_case = false;
  MutationOptions mutants;
};

// One example and its judgement.
struct Row {
  const ChallengeSpec* spec = nullptr;
  cells::Example example;
  CellResult cell;
  std::string verdict;              // of the cell's cases, as one word
  std::vector<std::string> failed;  // cases that caught it
  std::string complaint;            // empty if it got the verdict its name states
};

bool failed(const CaseResult& c) {
  return c.verdict != Verdict::ok && c.verdict != Verdict::unsupported;
}

std::string complaint_about(const Row& row) {
  using Kind = cells::Example::Kind;
  if (row.cell.build.verdict != Verdict::ok) return "does not build: " + row.cell.build.log;
  if (row.example.kind == Kind::slow) {
    if (!row.failed.empty())
      return fmt::format("must pass but failed {}", fmt::join(row.failed, ", "));
    const Score score = grade(*row.spec, row.cell);
    for (const ShapeSpeed& speed : score.speeds) {
      const bool named = std::find(row.example.targets.begin(), row.example.targets.end(),
                                   speed.case_name) != row.example.targets.end();
      if (named && !(speed.points <= kSlowShare)) {
        return fmt::format("earned {:.0f} % of the points of {}", 100 * speed.points,
                           speed.case_name);
      }
    }
    return {};
  }
  std::vector<std::string> missed;
  for (const std::string& target : row.example.targets) {
    if (std::find(row.failed.begin(), row.failed.end(), target) == row.failed.end()) {
      missed.push_back(target);
    }
  }
  return missed.empty() ? "" : fmt::format("passed {}", fmt::join(missed, ", "));
}

void judge(Row& row) {
  Verdict worst = Verdict::ok;
  for (const CaseResult& c : row.cell.cases) {
    if (!failed(c)) continue;
    row.failed.push_back(c.name);
    worst = std::min(worst, c.verdict);
  }
  row.verdict = row.cell.build.verdict == Verdict::ok ? code(worst) : code(row.cell.build.verdict);
  row.complaint = complaint_about(row);
}

std::vector<Row> plan_rows(const std::vector<ChallengeSpec>& specs, const SelftestCommand& c,
                           bool with_cuda) {
  std::vector<Row> rows;
  std::vector<std::string> known;
  for (const ChallengeSpec& spec : specs) {
    for (const Language language : {Language::cpp, Language::cuda}) {
      for (cells::Example& example : cells::load_examples(spec, language)) {
        known.push_back(example.name);
        const bool wanted =
            c.examples.empty() || std::ranges::find(c.examples, example.name) != c.examples.end();
        const bool builds = language == Language::cpp || with_cuda;
        if (wanted && builds) rows.push_back({&spec, std::move(example), {}, {}, {}, {}});
      }
    }
  }
  for (const std::string& name : c.examples) {
    if (std::ranges::find(known, name) == known.end())
      throw Error(unknown_name("example", name, known));
  }
  return rows;
}

// Modelled times come with the simulation and need no timing.
bool is_timed(const Row& row) {
  return row.example.language == Language::cpp && cells::needs_timing(*row.spec, row.example);
}

// The timed rows, grouped. Rows of one challenge that name the same cases form a group, so that
// naive and par, which may train a model for each case, run once for all of them.
std::vector<std::vector<Row*>> timed_groups(std::vector<Row>& rows) {
  std::vector<std::vector<Row*>> groups;
  for (Row& row : rows) {
    if (!is_timed(row)) continue;
    const auto same = std::ranges::find_if(groups, [&](const std::vector<Row*>& group) {
      const Row& first = *group.front();
      return first.spec == row.spec && first.example.kind == row.example.kind &&
             first.example.targets == row.example.targets;
    });
    if (same != groups.end())
      same->push_back(&row);
    else
      groups.push_back({&row});
  }
  return groups;
}

void time_group(cells::CellRunner& runner, const std::vector<Row*>& group, bool every_case) {
  std::vector<CellResult> cells;
  for (Row* row : group) cells.push_back(std::move(row->cell));
  const Row& first = *group.front();
  runner.time_examples(*first.spec, cells, cells::cases_for(first.example, every_case));
  for (std::size_t i = 0; i < group.size(); ++i) group[i]->cell = std::move(cells[i]);
}

// Trap cases that caught no example and state no reason for that.
std::vector<std::string> uncovered_traps(const std::vector<ChallengeSpec>& specs,
                                         const std::vector<Row>& rows) {
  std::set<std::string> caught;
  for (const Row& row : rows) {
    for (const std::string& name : row.failed) caught.insert(row.spec->name + "/" + name);
  }
  std::vector<std::string> uncovered;
  for (const ChallengeSpec& spec : specs) {
    for (const CaseSpec& c : spec.cases) {
      const std::string name = spec.name + "/" + c.name;
      if (c.group == CaseGroup::trap && c.uncaught_reason.empty() && !caught.contains(name)) {
        uncovered.push_back(name);
      }
    }
  }
  return uncovered;
}

// Includes ".cu", because a C++ example may have the same name.
std::string shown_name(const cells::Example& example) {
  return example.language == Language::cuda ? example.source.name : example.name;
}

void print_matrix(const std::vector<Row>& rows) {
  TextTable table({"challenge", "example", "verdict", "caught by"});
  for (const Row& row : rows) {
    constexpr std::size_t kShown = 4;
    std::vector<std::string> names(
        row.failed.begin(),
        row.failed.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, row.failed.size())));
    if (row.failed.size() > kShown) names.push_back(fmt::format("+{}", row.failed.size() - kShown));
    table.add({row.spec->name, shown_name(row.example), row.verdict,
               row.complaint.empty() ? fmt::format("{}", fmt::join(names, ", "))
                                     : "UNEXPECTED: " + row.complaint});
  }
  fmt::print("{}", table.str());
}

int run_examples(const Context& context, const SelftestCommand& c) {
  const double start = steady_seconds();
  const std::vector<ChallengeSpec> specs = load_specs(context, c.challenges);
  Harness harness = set_up(context, c.harness);
  cells::CellRunner runner(cases::real_world(*harness.builder), {harness.tier.tier, c.seed, {}});
  std::vector<Row> rows = plan_rows(specs, c, harness.builder->cuda_toolkit().has_value());
  std::atomic<std::size_t> judged{0};
  const auto finish = [&](Row& row, Progress& progress) {
    check_stop();  // a stop request also kills the worker: the result means nothing
    judge(row);
    ++judged;
    progress.finished(row.example.name);
  };
  try {
    Progress progress(rows.size());
    for_each_job(rows.size(), c.jobs, [&](std::size_t i) {
      Row& row = rows[i];
      const auto activity = progress.begin("checking " + row.example.name);
      const BuildResult built = runner.build_example(*row.spec, row.example);
      const cases::CaseFilter cases = cells::cases_for(row.example, c.every_case);
      row.cell = row.example.language == Language::cuda
                     ? runner.simulate_built(*row.spec, built, cases)
                     : runner.check_built(*row.spec, built, cases);
      if (!is_timed(row)) finish(row, progress);
    });
    for (const std::vector<Row*>& group : timed_groups(rows)) {
      std::vector<std::string> names;
      for (const Row* row : group) names.push_back(row->example.name);
      const auto activity = progress.begin(fmt::format("timing {}", fmt::join(names, ", ")));
      time_group(runner, group, c.every_case);
      for (Row* row : group) finish(*row, progress);
    }
  } catch (const Stopped&) {
    tell(fmt::format("stopped by {} after {} of {} examples; what was compiled is kept\n",
                     stop_signal_name(), judged.load(), rows.size()));
    throw;
  }
  tell_account(runner.account(), steady_seconds() - start);
  print_matrix(rows);
  const auto wrong =
      std::count_if(rows.begin(), rows.end(), [](const Row& r) { return !r.complaint.empty(); });
  const auto uncovered =
      c.examples.empty() ? uncovered_traps(specs, rows) : std::vector<std::string>{};
  for (const std::string& name : uncovered) {
    fmt::print("trap {} is caught by no example and gives no uncaught_reason\n", name);
  }
  fmt::print("{} examples, {} unexpected; {} uncovered traps\n", rows.size(), wrong,
             uncovered.size());
  return wrong == 0 && uncovered.empty() ? kDone : kCheckFailed;
}

int execute(const Context& context, const SelftestCommand& c) {
  if (c.mutants.count == 0 && c.mutants.id.empty()) {
    if (c.mutants.json || c.mutants.of != MutationOptions().of)
      throw Error("--json and --of belong to mutants: add --mutants N or --mutant ID");
    return run_examples(context, c);
  }
  return score_mutants(context, c.mutants, c.harness, c.challenges, c.seed, c.jobs);
}

void add_mutation_options(CLI::App& command, SelftestCommand& c) {
  auto* count = command.add_option("--mutants", c.mutants.count,
                                   "instead of the examples so many mutants of each challenge's "
                                   "answer:\n"
                                   "which do the cases kill?");
  count->check(CLI::PositiveNumber);
  auto* id = command.add_option("--mutant", c.mutants.id, "this mutant again, by its id");
  id->excludes(count);
  command
      .add_option("--of", c.mutants.of,
                  "whose answers are mutated: a model that is shipped as right, or par")
      ->capture_default_str();
  command.add_flag("--json", c.mutants.json, "of mutants: what became of each, as JSON");
  auto* record = command.add_flag(
      "--record", c.mutants.record,
      "of mutants: keep the scores beside the board, for `assay report`; after a signal those of\n"
      "the challenges that were done");
  record->needs(count);
  command
      .add_option("--results", c.mutants.results,
                  "folder of the board that they belong to (default: WORK/results)")
      ->needs(record);
  for (const char* other : {"--example", "--every-case"}) {
    for (CLI::Option* option : {count, id}) option->excludes(command.get_option(other));
  }
}

}  // namespace

void add_selftest(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "selftest", "Run every shipped example; each must earn what its name states");
  command->footer(
      R"(
wrong_* and cheat_* must fail the cases on their first line, slow_* must pass all and earn
few points for speed, and every trap must catch at least one example or say why not. A
wrong_* runs only the cases that it names. Those in CUDA (.cu) are simulated, and left out
without nvcc. Nothing is written but the cache.

With --mutants right answers are changed in one place each: an operator, a constant, a
type, a statement less. Each mutant runs until a case fails that makes correctness or
shows a capability, and last the cases of speed and memory, once, for wrong outputs. The
score is killed / (killed + survived); mutants that
challenges/NAME/mutants.json excuses do not count. --seed draws mutants and inputs; with
a larger number the first are the same.

Exit status: 0 as expected, 1 an example or a trap is not or a mutant survived, 2 another
error, 130, 143 or 129 stopped by SIGINT, SIGTERM or SIGHUP.

Examples:
  assay selftest                               after a change to the harness; minutes
  assay selftest -c CHALLENGE                  after a change to one challenge
  assay selftest -c CHALLENGE --every-case     which cases catch what
  assay selftest -c CHALLENGE --mutants 25     are its cases enough to find mistakes
  assay selftest -c CHALLENGE --mutant ID      one of them again, and what caught it
  assay selftest --mutants 100 --record        all, and `assay report` tells the score
)");
  auto c = std::make_shared<SelftestCommand>();
  command->add_option("--challenge,-c", c->challenges, "only this challenge; may be repeated");
  command->add_option("--example,-e", c->examples, "only this example; may be repeated");
  command
      ->add_option("--jobs,-j", c->jobs,
                   "threads for builds and checks; timing is always alone (default: one a core)")
      ->check(CLI::Range(1, CpuSet::kMost));
  command->add_option("--seed", c->seed, "seed of the inputs, and of the mutants")
      ->capture_default_str();
  command->add_flag("--every-case", c->every_case,
                    "wrong_* too run all cases that make correctness: shows which catch what");
  add_mutation_options(*command, *c);
  add_harness_options(*command, c->harness);
  command->callback(
      [&action, c] { action = [c](const Context& context) { return execute(context, *c); }; });
}

}  // namespace assay::cli
