#include "cells/baselines.h"

#include <fmt/format.h>

#include "assay/error.h"
#include "cases/correctness.h"
#include "cells/examples.h"
#include "cells/kept_work.h"
#include "util/files.h"

namespace assay::cells {
namespace fs = std::filesystem;

namespace {

bool is_kernel(const std::string& file) { return file == "par.cu"; }

}  // namespace

fs::path Baselines::path(const ChallengeSpec& spec, const std::string& file) {
  return is_kernel(file) ? kernel_path(spec) : baseline_path(spec, file);
}

fs::path Baselines::library(const ChallengeSpec& spec, const std::string& file) const {
  const Language language = file.ends_with(".cu") ? Language::cuda : Language::cpp;
  const fs::path source = path(spec, file);
  const BuildResult result =
      world_.compile({.sources = {{file, read_file(source)}},
                      .headers = is_kernel(file) ? kernel_headers(spec) : baseline_headers(spec),
                      .time_limit_s = build_limit(spec, language),
                      .language = language,
                      .machine_code = language == Language::cuda});
  if (result.record.verdict != Verdict::ok) {
    const char* what =
        result.record.verdict == Verdict::build_error ? "does not compile" : "was not built";
    throw Error(fmt::format("{} {}:\n{}", source.string(), what, result.record.log));
  }
  return result.library;
}

cases::BaselineLibraries Baselines::libraries(const ChallengeSpec& spec, Language language) const {
  const std::string ending = language == Language::cpp ? ".cpp" : ".cu";
  return {.naive = library(spec, "naive" + ending), .par = library(spec, "par" + ending)};
}

SimulatedWork Baselines::simulate(const ChallengeSpec& spec, const std::string& file,
                                  const std::string& case_name) const {
  constexpr std::uint64_t kSeed = 1;  // not the run's: the result is kept for all runs
  const fs::path built = library(spec, file);
  const fs::path kept = work_file(world_.kept, built, spec, case_name);
  if (const auto work = load_work(kept)) return *work;
  cases::TimeAccount account;
  const cases::Bench bench{world_, *world_.challenge(spec.name).challenge,
                           simulator_settings(world_, options_, spec, built), kSeed, account};
  const std::vector<CaseResult> results = cases::run_simulated(bench, {.only = case_name});
  account_.add(account);
  const auto work = results.empty() ? std::nullopt : simulated_work(results.front().metrics);
  if (!work || results.front().verdict != Verdict::ok) {
    throw Error(fmt::format("{} failed the case {}: {}", path(spec, file).string(), case_name,
                            results.empty() ? "it was not run" : results.front().detail));
  }
  save_work(kept, *work);
  return *work;
}

std::optional<SimulatedWork> Baselines::work(const ChallengeSpec& spec, const std::string& file,
                                             const std::string& case_name) {
  if (!fs::exists(path(spec, file))) return std::nullopt;
  const std::string key = fmt::format("{}/{}/{}", spec.name, file, case_name);
  std::shared_future<SimulatedWork> work;
  {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = work_.try_emplace(key);
    if (is_new) {  // runs in the thread that asks first
      at->second = std::async(std::launch::deferred, [=, this] {
                     return simulate(spec, file, case_name);
                   }).share();
    }
    work = at->second;
  }
  try {
    return work.get();
  } catch (...) {  // a retry must start over
    const std::lock_guard lock(mutex_);
    work_.erase(key);
    throw;
  }
}

}  // namespace assay::cells
