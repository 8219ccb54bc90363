// The cost of the harness itself, measured on the shipped naive implementations:
//
//   - starting a worker: spawn to stopped-and-ready, and loading a submission in it; also with a
//     harness that holds a lot of memory
//   - the overhead of a case: wall time minus submission, input drawing, reference, check and
//     poison
//   - the share of the wall time of all checks and timings that is not harness overhead
//   - the harness's own peak memory
//
// Build: ninja -C build harness_overhead. Usage: harness_overhead --help.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <span>
#include <vector>

#include "assay/error.h"
#include "cells/baselines.h"
#include "cells/cell.h"
#include "cells/examples.h"
#include "cli/context.h"
#include "cli/harness.h"
#include "measure/statistics.h"
#include "processes/worker_process.h"
#include "support/paths.h"
#include "util/files.h"

namespace {

using namespace assay;
using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<std::string> challenges;
  bool smoke = false;

  int starts() const { return smoke ? 2 : 100; }
};

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::filesystem::path naive_library(const cli::Harness& harness, const ChallengeSpec& spec) {
  const cases::World world = cases::real_world(*harness.builder);
  const cells::RunOptions options{harness.tier.tier, 1, {}};
  cases::SharedAccount account;
  return cells::Baselines(world, options, account).library(spec, "naive.cpp");
}

struct WorkerStart {
  std::vector<double> starts, loads;  // milliseconds
};

WorkerStart start_workers(const cli::Harness& harness, const ChallengeSpec& spec, int count) {
  processes::Arena input("input", 1 << 20, processes::Arena::Access::worker_reads);
  processes::WorkerSettings settings;
  settings.tier = harness.tier.tier;
  settings.library = naive_library(harness, spec);
  settings.spec = &spec;
  WorkerStart measured;
  for (int i = 0; i < count; ++i) {
    const auto start = Clock::now();
    processes::WorkerProcess worker(settings, input, 1 << 20);
    measured.starts.push_back(milliseconds_since(start));
    const auto loading = Clock::now();
    worker.load();
    measured.loads.push_back(milliseconds_since(loading));
  }
  return measured;
}

void measure_worker_start(const cli::Harness& harness, const ChallengeSpec& spec, int count) {
  constexpr std::size_t kMuch = std::size_t{512} << 20;
  const WorkerStart alone = start_workers(harness, spec, count);
  fmt::print(
      "starting a worker ({}): median {:.2f} ms, 90 % below {:.2f} ms; loading a submission: "
      "median {:.2f} ms\n",
      to_string(harness.tier.tier), median(alone.starts), quantile(alone.starts, 0.9),
      median(alone.loads));
  const std::vector<char> held(kMuch, 1);
  const WorkerStart beside = start_workers(harness, spec, count);
  fmt::print("beside a harness that holds {} MiB: {:.2f} times as long\n", held.size() >> 20,
             median(beside.starts) / median(alone.starts));
}

Submission naive_as_submission(const ChallengeSpec& spec) {
  Submission submission;
  submission.model = "naive";
  submission.challenge = spec.name;
  submission.sources = {{"submission.cpp", read_file(spec.directory + "/baselines/naive.cpp")}};
  for (const SourceFile& header : cells::baseline_headers(spec)) {
    if (header.name.starts_with("naive/")) submission.sources.push_back(header);
  }
  return submission;
}

cases::TimeAccount measure_cell(const cli::Harness& harness, const ChallengeSpec& spec,
                                bool quick) {
  cells::CellRunner runner(cases::real_world(*harness.builder),
                           {harness.tier.tier, 1, {.quick = quick}});
  for (const cells::SharedBuild& build : runner.shared_builds(spec, false)) build.run();
  CellResult cell = runner.check(spec, naive_as_submission(spec));
  const cases::TimeAccount untimed = runner.account();
  runner.time_together(spec, std::span(&cell, 1));
  if (cell.build.verdict != Verdict::ok || untimed.cases == 0) {
    throw Error(fmt::format("{}: naive was not measured: {}", spec.name, cell.build.log));
  }
  const cases::TimeAccount all = runner.account();
  const double overhead = untimed.total - untimed.submission - untimed.reference - untimed.timing;
  fmt::print(
      "{:<22} {:>4} untimed cases: overhead {:.2f} ms per case; useful share with timing "
      "{:.1f} % of {:.1f} s\n",
      spec.name, untimed.cases, 1e3 * overhead / untimed.cases,
      100 * (all.submission + all.reference + all.timing) / all.total, all.total);
  return all;
}

void print_sum(const cases::TimeAccount& sum) {
  fmt::print(
      "all: submissions {:.1f} %, references and checks {:.1f} %, calibrated timing {:.1f} %, "
      "worker starts {:.1f} %, rest {:.1f} % of {:.1f} s\n",
      100 * sum.submission / sum.total, 100 * sum.reference / sum.total,
      100 * sum.timing / sum.total, 100 * sum.workers / sum.total,
      100 * (sum.total - sum.submission - sum.reference - sum.timing - sum.workers) / sum.total,
      sum.total);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print("peak memory of the harness: {:.0f} MiB\n",
             static_cast<double>(usage.ru_maxrss) / 1024);
}

void measure(const Options& options) {
  const cli::Context context = cli::find_context(assay::testing::source_dir());
  const cli::Harness harness = cli::set_up(context, {});
  const std::vector<ChallengeSpec> specs = cli::load_specs(context, options.challenges);
  measure_worker_start(harness, specs.front(), options.starts());
  cases::TimeAccount sum;
  for (const ChallengeSpec& spec : specs) sum.add(measure_cell(harness, spec, options.smoke));
  print_sum(sum);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures what the harness itself costs"};
  app.add_option("challenges", options.challenges, "Only these (default: all)");
  app.add_flag("--smoke", options.smoke, "Only show that it works: few cases and repetitions");
  CLI11_PARSE(app, argc, argv);
  try {
    measure(options);
  } catch (const std::exception& e) {
    fmt::print(stderr, "harness_overhead: {}\n", e.what());
    return 2;
  }
}
