// How long the simulator takes compared with a plain C++ program for the same work: one model's
// answers to the timed cases at the simulator's shapes. submission.cu runs on one thread of the
// simulator with all its checks and counters, submission.cpp on one thread of the CPU with cold
// caches. Both in one run; medians. Build: ninja -C build sim_against_cpp. Usage: sim_against_cpp
// --help.
#include <dlfcn.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "assay/error.h"
#include "cells/cell.h"
#include "cli/context.h"
#include "cli/harness.h"
#include "measure/statistics.h"
#include "support/paths.h"
#include "timed_case.h"
#include "util/files.h"

namespace assay {
namespace {

constexpr int kSkipped = 77;  // tells ctest that the test was skipped

struct Options {
  std::vector<std::string> challenges;
  std::string model = "textbook", cuda;
  int rounds = 3;
  bool smoke = false;
  std::uint64_t seed = 1;
};

// The timed cases of `spec` by name, each with the median of the rounds.
using Seconds = std::map<std::string, double>;

std::vector<const CaseSpec*> timed_cases(const ChallengeSpec& spec, const Options& options) {
  std::vector<const CaseSpec*> timed;
  for (const CaseSpec& c : spec.cases) {
    const bool enough = options.smoke && !timed.empty();
    if (c.group == CaseGroup::timed && !enough) timed.push_back(&c);
  }
  return timed;
}

Seconds cpp_seconds(Builder& builder, const ChallengeSpec& spec, const Submission& submission,
                    const Options& options) {
  const SourceFile abi{"abi.h", read_file(spec.directory + "/abi.h")};
  const BuildResult built =
      builder.build({submission.sources, {abi}, spec.limits.build_time_s, Language::cpp});
  void* library = ::dlopen(built.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Error(fmt::format("{} {}: {}", submission.model, spec.name, built.record.log));
  Seconds medians;
  for (const CaseSpec* c : timed_cases(spec, options)) {
    TimedCase input(spec, *c, options.seed);
    std::vector<double> seconds;
    for (int i = 0; i < options.rounds; ++i) seconds.push_back(input.run(library, 1));
    medians[c->name] = median(seconds);
  }
  return medians;
}

Seconds simulated_seconds(const cli::Harness& harness, const ChallengeSpec& spec,
                          const Submission& submission, const Options& options) {
  Seconds medians;
  for (const CaseSpec* c : timed_cases(spec, options)) {
    std::vector<double> seconds;
    for (int i = 0; i < options.rounds; ++i) {
      cells::CellRunner runner(cases::real_world(*harness.builder),
                               {harness.tier.tier, options.seed, {false, c->name, false, {}}, 1});
      const CellResult cell = runner.check(spec, submission);
      if (cell.cases.size() == 1 && cell.cases[0].verdict == Verdict::unsupported) break;
      if (cell.cases.size() != 1 || cell.cases[0].verdict != Verdict::ok) {
        throw Error(fmt::format("{} {}: {} failed: {}", submission.model, spec.name, c->name,
                                cell.cases.empty() ? cell.build.log : cell.cases[0].detail));
      }
      seconds.push_back(cell.cases[0].seconds);
    }
    if (!seconds.empty()) medians[c->name] = median(seconds);
  }
  return medians;
}

void compare(const cli::Context& context, const cli::Harness& harness, const ChallengeSpec& whole,
             const Options& options) {
  Submission *cpp = nullptr, *cuda = nullptr;
  auto answers = cli::select_submissions(context.submissions(), {whole}, {options.model}, {});
  for (Submission& s : answers) (s.language == Language::cpp ? cpp : cuda) = &s;
  if (cpp == nullptr || cuda == nullptr) return;
  if (!options.cuda.empty()) cuda->sources = {{"submission.cu", read_file(options.cuda)}};
  const ChallengeSpec spec = spec_for(Device::sim, whole);
  const Seconds plain = cpp_seconds(*harness.builder, spec, *cpp, options),
                simulated = simulated_seconds(harness, whole, *cuda, options);
  for (const CaseSpec* c : timed_cases(spec, options)) {
    if (!simulated.contains(c->name)) continue;
    fmt::print("{:<20} {:<24} {:>10.1f} {:>10.1f} {:>8.2f}\n", spec.name, c->name,
               plain.at(c->name) * 1e3, simulated.at(c->name) * 1e3,
               simulated.at(c->name) / plain.at(c->name));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  using namespace assay;
  Options options;
  CLI::App app{"Times the simulator beside plain C++ for the same work"};
  app.add_option("challenges", options.challenges, "Only these (default: all)");
  app.add_option("--model", options.model, "Whose answers, in both languages")
      ->capture_default_str();
  app.add_option("--cuda", options.cuda, "Simulate this file instead of the model's submission.cu")
      ->check(CLI::ExistingFile);
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 100))->capture_default_str();
  app.add_flag("--smoke", options.smoke,
               "Only show that it works: of each challenge one case, once; status 77 without nvcc");
  CLI11_PARSE(app, argc, argv);
  if (options.smoke) options.rounds = 1;
  try {
    const cli::Context context = cli::find_context(assay::testing::source_dir());
    const cli::Harness harness = cli::set_up(context, {});
    if (options.smoke && !harness.builder->cuda_toolkit()) {
      fmt::print("no CUDA Toolkit (nvcc): nothing to compare\n");
      return kSkipped;
    }
    fmt::print("{:<20} {:<24} {:>10} {:>10} {:>8}\n", "challenge", "timed case", "C++ ms", "sim ms",
               "ratio");
    for (const ChallengeSpec& spec : cli::load_specs(context, options.challenges)) {
      compare(context, harness, spec, options);
    }
  } catch (const std::exception& e) {
    fmt::print(stderr, "sim_against_cpp: {}\n", e.what());
    return 2;
  }
}
