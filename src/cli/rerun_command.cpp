// assay rerun: runs one cell again, or a single case of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <span>

#include "assay/error.h"
#include "assay/parallel.h"
#include "cli/boards.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/real_gpu.h"
#include "cli/run_cells.h"
#include "measure/machine.h"
#include "report/terminal.h"
#include "spec/spec.h"
#include "util/files.h"
#include "util/stop.h"
#include "util/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct RerunCommand {
  HarnessOptions harness;
  std::string model, challenge, attempt, submissions, results, only, corpus, device = "auto";
  GpuChoice gpus;
  std::optional<std::uint64_t> seed;
};

std::vector<std::string> case_names(const ChallengeSpec& spec) {
  std::vector<std::string> names;
  for (const CaseSpec& c : spec.cases) names.push_back(c.name);
  return names;
}

Submission choose(const RerunCommand& c, std::vector<Submission> found) {
  if (found.empty()) {
    throw Error(fmt::format("{} has no submission for {}", c.model, c.challenge));
  }
  if (!c.attempt.empty()) {
    std::erase_if(found, [&](const Submission& s) { return s.attempt != c.attempt; });
    if (found.empty())
      throw Error(fmt::format("{}/{} has no attempt {}", c.model, c.challenge, c.attempt));
  }
  if (found.size() == 1) return found.front();
  std::string ways;
  for (const Submission& s : found) {
    ways +=
        fmt::format("\n  {}--device {}", s.attempt.empty() ? "" : "--attempt " + s.attempt + " ",
                    to_string(s.device()));
  }
  throw Error(
      fmt::format("{} answered {} several times: choose with{}", c.model, c.challenge, ways));
}

std::string milliseconds(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.3f}", *seconds * 1e3) : "-";
}

void print_case(const CaseResult& result, const ChallengeSpec& spec) {
  fmt::print("{} ({}): {}, {}\n", result.name, to_string(result.group), code(result.verdict),
             description(result.verdict));
  if (const std::string& catches = find_case(spec, result.name)->catches; !catches.empty()) {
    fmt::print("  catches   {}\n", catches);
  }
  fmt::print("  shape     {}\n", result.shape);
  if (!result.detail.empty()) fmt::print("  detail    {}\n", result.detail);
  if (result.error)
    fmt::print("  error     {:.4g}, bound {:.4g}\n", *result.error, result.bound.value_or(0));
  for (const Metric& m : result.metrics) fmt::print("  metric    {} = {:.6g}\n", m.name, m.value);
  for (const TimingSample& t : result.samples) {
    fmt::print("  ms        naive {:>10}  par {:>10}  submission {:>10}\n", milliseconds(t.naive),
               milliseconds(t.par), milliseconds(t.submission));
  }
}

const char* where(Device device) {
  switch (device) {
    case Device::cpu: return "CPU";
    case Device::sim: return "simulated GPU";
    case Device::cuda: return "real GPU";
  }
  return "";
}

// Runs one case without touching the board. The exit status is 0 whatever the verdict, as for every
// run.
int replay_case(cases::World world, const cells::RunOptions& options, const RerunCommand& c,
                const ChallengeSpec& spec, const Submission& submission) {
  cells::CellRunner runner(std::move(world), options);
  CellResult cell = runner.check(spec, submission);
  runner.time_together(spec, std::span(&cell, 1));
  runner.run_exclusive(spec, cell);
  check_stop();  // a stop request also kills the worker: the result means nothing
  if (cell.build.verdict != Verdict::ok) {
    fmt::print("{}: {}\n{}\n", code(cell.build.verdict), description(cell.build.verdict),
               cell.build.log);
  }
  if (cell.build.verdict == Verdict::ok && cell.cases.empty()) {
    fmt::print("{} is not run on the {}\n", c.only, where(submission.device()));
  }
  for (const std::string& fault : cell.faults)
    tell(fmt::format("tried again after a fault of the harness: {}\n", fault));
  for (const CaseResult& result : cell.cases) print_case(result, spec);
  return kDone;
}

int execute(const Context& context, const RerunCommand& c) {
  const std::vector<ChallengeSpec> specs =
      load_specs(context, {c.challenge}, external_files(c.corpus));
  const Submission submission =
      choose(c, select_submissions(c.submissions.empty() ? context.submissions()
                                                         : std::filesystem::path(c.submissions),
                                   specs, {c.model}, device_from(c.device)));
  if (!c.only.empty() && find_case(specs.front(), c.only) == nullptr)
    throw Error(unknown_name("case", c.only, case_names(specs.front())));
  Harness harness = set_up(context, c.harness);
  const fs::path results = c.results.empty() ? context.results() : fs::path(c.results);
  // The model of the board's other rows: with another, this one would compare with none.
  if (c.only.empty() && has_board(results)) harness.gpu = data_sheet_of(open_board(results));
  Place place = place_on(submission.device(), harness, c.gpus, "");
  const std::uint64_t seed = c.seed.value_or(random_seed());
  const cells::RunOptions options{.tier = harness.tier.tier,
                                  .seed = seed,
                                  .filter = {.only = c.only},
                                  .simulator_threads = simulator_threads(1),
                                  .gpu = place.gpu};
  if (!c.only.empty())
    return replay_case(std::move(place.world), options, c, specs.front(), submission);

  calibrate(harness.machine);
  store::ResultStore store(results);
  tell(store.migration());
  std::vector<RunnerAt> runners;
  runners.push_back({std::make_unique<cells::CellRunner>(std::move(place.world), options),
                     std::move(place.machine)});
  store.start(
      new_run(harness, seed,
              {{"models", {c.model}}, {"challenges", {c.challenge}}, {store::kOneCell, true}}));
  std::vector<BoardEntry> entries;
  try {
    Progress progress(1);
    entries = run_cells(harness, runners, specs, {submission},
                        static_cast<std::size_t>(available_cores()), store, progress);
  } catch (const Stopped&) {
    store.finish();
    tell(fmt::format("stopped by {}: nothing was stored, and the board is as it was\n",
                     stop_signal_name()));
    throw;
  }
  store.finish();
  fmt::print("{}", summary(entries, specs));
  print_set_aside(store);
  return kDone;
}

}  // namespace

void add_rerun(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("rerun", "Run one cell again and merge it into the board");
  command->footer(
      R"(
Grades the answer and stores it like `assay run`. With --case it runs that case alone,
prints what was measured and stores nothing; with the --seed of a run, which `assay show`
prints, the case has the inputs that it had there.

Exit status: 0 done, whatever the verdict; 2 wrong usage, or the harness failed; 130, 143
or 129 stopped by SIGINT, SIGTERM or SIGHUP.

Examples:
  assay rerun textbook CHALLENGE --device cpu
  assay rerun textbook CHALLENGE --device cpu --case CASE --seed 7
  assay rerun flawed CHALLENGE --device sim --attempt 2
)");
  auto c = std::make_shared<RerunCommand>();
  command->add_option("MODEL", c->model, "folder name in submissions/")->required();
  command->add_option("CHALLENGE", c->challenge, "challenge name")->required();
  command->add_option("--attempt", c->attempt, "numbered attempt, when there are several");
  add_device_option(*command, c->device, true);
  add_gpu_choice(*command, c->gpus);
  command->add_option("--case", c->only, "only this case; the board is left alone");
  command->add_option("--seed", c->seed, "seed of the run to repeat (default: random)");
  command->add_option("--submissions", c->submissions,
                      "folder of models (default: WORK/submissions)");
  command->add_option("--results", c->results, "folder of the board (default: WORK/results)");
  add_external_options(*command, c->corpus);
  add_harness_options(*command, c->harness);
  command->callback(
      [&action, c] { action = [c](const Context& context) { return execute(context, *c); }; });
}

}  // namespace assay::cli
