// How long the simulator takes beside a plain C++ program for the same work: the answers of one model to the timed
// cases at the shapes of the simulator, submission.cu on one thread of the simulator with all its checks and counters,
// submission.cpp on one thread of the CPU with cold caches. Both in one run; medians.
// Build: ninja -C build sim_against_cpp. Usage: sim_against_cpp --help.
#include <dlfcn.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "cli/context.h"
#include "cli/harness.h"
#include "measure/statistics.h"
#include "run/cell.h"
#include "timed_case.h"
#include "util/files.h"

namespace assay {
namespace {

struct Options {
  std::vector<std::string> challenges;
  std::string model = "textbook";
  int rounds = 3;
  std::uint64_t seed = 1;
};

double cpp_seconds(void* library, const ChallengeSpec& spec, const CaseSpec& timed, const Options& options) {
  TimedCase input(spec, timed, options.seed);
  std::vector<double> seconds;
  for (int i = 0; i < options.rounds; ++i) seconds.push_back(input.run(library, 1));
  return median(seconds);
}

// Of all timed cases, by name.
std::map<std::string, double> simulated_seconds(const cli::Harness& harness, const ChallengeSpec& spec,
                                                const Submission& submission, const Options& options) {
  std::map<std::string, std::vector<double>> rounds;
  run::RunOptions run;
  run.tier = harness.tier.tier;
  run.seed = options.seed;
  for (const CaseSpec& c : spec.cases) {
    if (c.group == CaseGroup::timed) run.filter.targets.push_back(c.name);
  }
  std::erase_if(run.filter.targets, [](const std::string&) { return false; });
  for (int i = 0; i < options.rounds; ++i) {
    for (const std::string& name : run.filter.targets) {
      run::RunOptions one = run;
      one.filter = {};
      one.filter.only = name;
      run::CellRunner runner(*harness.builder, one);
      const CellResult cell = runner.check(spec, submission);
      for (const CaseResult& c : cell.cases) {
        if (c.verdict != Verdict::ok) throw Error(fmt::format("{}: {}", c.name, c.detail));
        rounds[c.name].push_back(c.seconds);
      }
    }
  }
  std::map<std::string, double> medians;
  for (const auto& [name, seconds] : rounds) medians[name] = median(seconds);
  return medians;
}

}  // namespace
}  // namespace assay
