#include "run/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "assay/parallel.h"
#include "measure/machine.h"
#include "run/begin_result.h"
#include "run/challenge_registry.h"
#include "run/kept_work.h"
#include "run/own_tests.h"
#include "spec/spec.h"
#include "util/files.h"
#include "util/sha256.h"
#include "util/text.h"

namespace assay::run {
namespace fs = std::filesystem;
namespace {

std::uint32_t challenge_index(const std::string& name) {
  const auto rows = challenge_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return static_cast<std::uint32_t>(i);
  }
  throw Error(fmt::format("challenge {} is not compiled in: configure and build again", name));
}

const Challenge& challenge_of(const ChallengeSpec& spec) {
  return challenge_rows()[challenge_index(spec.name)].get();
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Runs `step`; a fault of the harness is retried once and then recorded in the cell.
template <class Step>
void guard(CellResult& cell, Step step) {
  for (int attempt = 0;; ++attempt) {
    try {
      return step();
    } catch (const Error& e) {
      if (attempt == 0) continue;
      cell.build.verdict = Verdict::harness_error;
      cell.build.log = e.what();
      return;
    }
  }
}

// The verdict that makes timing pointless: it does not load, or it keeps running into time limits.
std::optional<Verdict> why_not_time(const CellResult& cell) {
  int timeouts = 0;
  for (const CaseResult& c : cell.cases) {
    if (c.verdict == Verdict::load_error) return c.verdict;
    const bool timeout = c.verdict == Verdict::time_limit || c.verdict == Verdict::idle_limit;
    if (timeout && ++timeouts >= kPatience) return c.verdict;
  }
  return std::nullopt;
}

// Whether the cell is worth the time; where it is hopeless, the cases are recorded as not attempted.
bool may_time(const Challenge& challenge, std::span<const CaseSpec* const> cases,
              CellResult& cell) {
  if (cell.build.verdict != Verdict::ok || cell.key.device == Device::sim) return false;
  const auto hopeless = why_not_time(cell);
  if (!hopeless) return true;
  for (const CaseSpec* c : cases) {
    cell.cases.push_back(
        begin_result(challenge, *c, *hopeless, "not attempted: see the untimed cases"));
  }
  return false;
}

}  // namespace

CaseFilter cases_for(const Example& example, bool every_case) {
  return {.quick = true,
          .named = example.targets,
          .and_correctness = every_case || example.kind != Example::Kind::wrong};
}

WorkerSettings CellRunner::worker_settings(const ChallengeSpec& spec,
                                           const fs::path& library) const {
  WorkerSettings settings;
  settings.tier = options_.tier;
  settings.library = library;
  settings.challenge = challenge_index(spec.name);
  settings.spec = &spec;
  settings.threads = std::min(spec.limits.threads, available_cores());
  return settings;
}

namespace {

// nvcc takes a minute for templates that it unrolls.
double build_limit(const ChallengeSpec& spec, Language language) {
  constexpr double kCudaBuildTime = 300;
  return language == Language::cuda ? std::max(kCudaBuildTime, spec.limits.build_time_s)
                                    : spec.limits.build_time_s;
}

}  // namespace

BuildResult CellRunner::build(const ChallengeSpec& spec, const Submission& submission) {
  BuildResult result;
  if (!submission.rejected.empty()) {
    result.record.verdict = Verdict::build_error;
    result.record.log = submission.rejected;
  } else {
    result = builder_.build({submission.sources,
                             {challenge_file(spec, "abi.h")},
                             build_limit(spec, submission.language),
                             submission.language});
  }
  result.record.source_hash = source_hash(submission);
  return result;
}

fs::path CellRunner::baseline(const ChallengeSpec& spec, const std::string& file) {
  const Language language = file.ends_with(".cu") ? Language::cuda : Language::cpp;
  const BuildResult result = builder_.build({{challenge_file(spec, file)},
                                             baseline_headers(spec),
                                             build_limit(spec, language),
                                             language});
  if (result.record.verdict != Verdict::ok) {
    throw Error(
        fmt::format("{}/{} does not compile:\n{}", spec.directory, file, result.record.log));
  }
  return result.library;
}

Baselines CellRunner::baselines(const ChallengeSpec& spec) {
  return {baseline(spec, "naive.cpp"), baseline(spec, "par.cpp")};
}

BuildResult CellRunner::build_example(const ChallengeSpec& spec, const Example& example) {
  BuildResult result = builder_.build(
      {.sources = {example.source},
       .headers = example_headers(spec),
       .time_limit_s = spec.limits.build_time_s,
       .for_speed = example.kind != Example::Kind::wrong || needs_timing(spec, example)});
  result.record.source_hash = sha256_hex(example.source.contents);
  return result;
}

CellResult CellRunner::check(const ChallengeSpec& spec, const Submission& submission) {
  CellResult cell;
  guard(cell, [&] {
    const BuildResult built = build(spec, submission);
    cell = submission.language == Language::cuda ? simulate_built(spec, built)
                                                 : check_built(spec, built, options_.filter);
  });
  cell.key = {submission.model, submission.challenge, submission.attempt, submission.device()};
  return cell;
}

CellResult CellRunner::new_cell(const ChallengeSpec& spec, const BuildResult& built) const {
  CellResult cell;
  cell.key.challenge = spec.name;
  cell.spec_hash = spec.hash;
  cell.isolation = sandbox::to_string(options_.tier);
  cell.seed = options_.seed;
  cell.build = built.record;
  return cell;
}

CellResult CellRunner::check_built(const ChallengeSpec& spec, const BuildResult& built,
                                   const CaseFilter& filter) {
  CellResult cell = new_cell(spec, built);
  if (built.record.verdict == Verdict::ok) {
    {
      const std::lock_guard lock(mutex_);
      libraries_[spec.name + built.record.source_hash] = built.library;
    }
    guard(cell, [&] {
      TimeAccount account;
      cell.cases = run_correctness(challenge_of(spec), worker_settings(spec, built.library),
                                   options_.seed, filter, account);
      add(account);
    });
  }
  cell.finished_at = utc_now();
  return cell;
}

WorkerSettings CellRunner::simulator_settings(const ChallengeSpec& spec,
                                              const fs::path& library) const {
  WorkerSettings settings = worker_settings(spec, library);
  settings.device.emplace();
  settings.device->threads = options_.simulator_threads;
  return settings;
}

namespace {

void add_least_work(const ChallengeSpec& spec, CaseResult& result) {
  const Challenge& challenge = challenge_of(spec);
  const CaseSpec& c = *find_case(spec, result.name);
  const auto least = challenge.least_work(c, challenge.plan(c));
  if (!least) return;
  result.metrics.push_back({kLeastBytes, least->bytes});
  result.metrics.push_back({kLeastFlops, least->flops});
  result.metrics.push_back({kLeastLaunches, least->launches});
}

}  // namespace

CellResult CellRunner::simulate_built(const ChallengeSpec& whole, const BuildResult& built) {
  CellResult cell = new_cell(whole, built);
  if (built.record.verdict == Verdict::ok) {
    const ChallengeSpec spec = spec_for(Device::sim, whole);
    guard(cell, [&] {
      TimeAccount account;
      cell.cases = run_simulated(challenge_of(spec), simulator_settings(spec, built.library),
                                 options_.seed, options_.filter, account);
      add(account);
      for (CaseResult& c : cell.cases) {
        if (c.group != CaseGroup::timed || c.verdict != Verdict::ok) continue;
        add_least_work(spec, c);
        if (const auto work = baseline_work(spec, "naive.cu", c.name))
          add_metrics(c.metrics, *work, kNaivePrefix);
        if (const auto work = baseline_work(spec, "par.cu", c.name))
          add_metrics(c.metrics, *work, kParPrefix);
      }
    });
  }
  cell.finished_at = utc_now();
  return cell;
}

SimulatedWork CellRunner::simulate_baseline(const ChallengeSpec& spec, const std::string& file,
                                            const std::string& case_name) {
  constexpr std::uint64_t kSeed = 1;  // not the run's: what is found is kept for all runs
  const fs::path library = baseline(spec, file);
  const fs::path kept = work_file(builder_.cache().folder(), library, spec, case_name);
  if (const auto work = load_work(kept)) return *work;
  TimeAccount account;
  const CaseFilter only{.only = case_name};
  const std::vector<CaseResult> results =
      run_simulated(challenge_of(spec), simulator_settings(spec, library), kSeed, only, account);
  add(account);
  const auto work = results.empty() ? std::nullopt : simulated_work(results.front().metrics);
  if (!work || results.front().verdict != Verdict::ok) {
    throw Error(fmt::format("{}/{} failed the case {}: {}", spec.directory, file, case_name,
                            results.empty() ? "it was not run" : results.front().detail));
  }
  save_work(kept, *work);
  return *work;
}

// What the challenge's own kernels do in a case; nothing where it has none. Once is enough: others
// wait meanwhile.
std::optional<SimulatedWork> CellRunner::baseline_work(const ChallengeSpec& spec,
                                                       const std::string& file,
                                                       const std::string& case_name) {
  if (!fs::exists(fs::path(spec.directory) / file)) return std::nullopt;
  const std::string key = fmt::format("{}/{}/{}", spec.name, file, case_name);
  std::shared_future<SimulatedWork> work;
  {
    const std::lock_guard lock(baselines_mutex_);
    const auto [at, is_new] = baselines_.try_emplace(key);
    if (is_new) {  // runs in the thread that asks for it first
      at->second = std::async(std::launch::deferred, [=, this] {
                     return simulate_baseline(spec, file, case_name);
                   }).share();
    }
    work = at->second;
  }
  try {
    return work.get();
  } catch (...) {  // a retry shall try again
    const std::lock_guard lock(baselines_mutex_);
    baselines_.erase(key);
    throw;
  }
}

fs::path CellRunner::library_of(const ChallengeSpec& spec, const CellResult& cell) const {
  const std::lock_guard lock(mutex_);
  return libraries_.at(spec.name + cell.build.source_hash);
}

void CellRunner::time_together(const ChallengeSpec& spec, std::span<CellResult> cells) {
  time_together(spec, cells, options_.filter);
}

void CellRunner::run_exclusive(const ChallengeSpec& spec, CellResult& cell) {
  run_exclusive(spec, cell, options_.filter);
}

void CellRunner::time_example(const ChallengeSpec& spec, CellResult& cell,
                              const CaseFilter& filter) {
  time_together(spec, std::span(&cell, 1), filter);
  run_exclusive(spec, cell, filter);
}

void CellRunner::time_together(const ChallengeSpec& spec, std::span<CellResult> cells,
                               const CaseFilter& filter) {
  std::vector<const CaseSpec*> wanted;
  for (const CaseSpec& c : spec.cases) {
    const bool timed = c.group == CaseGroup::timed && !c.exclusive;
    if (timed && filter.takes(c)) wanted.push_back(&c);
  }
  std::vector<CellResult*> ready;
  for (CellResult& cell : cells) {
    if (may_time(challenge_of(spec), wanted, cell)) ready.push_back(&cell);
  }
  const auto time = [&](std::span<CellResult* const> group) {
    const Baselines naive_and_par = baselines(spec);
    std::vector<fs::path> libraries;
    for (const CellResult* cell : group) libraries.push_back(library_of(spec, *cell));
    std::vector<std::vector<CaseResult>> timed;
    for (const CaseSpec* c : wanted) {
      TimeAccount account;
      timed.push_back(run_timed(challenge_of(spec), *c, worker_settings(spec, {}), naive_and_par,
                                libraries, options_.seed, filter.quick, account));
      add(account);
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (std::vector<CaseResult>& results : timed)
        group[i]->cases.push_back(std::move(results[i]));
      group[i]->finished_at = utc_now();
    }
  };
  if (ready.size() > 1) {
    try {
      return time(ready);
    } catch (const Error&) {
      // A fault of the harness; each alone, so that it is not all who pay for it.
    }
  }
  for (CellResult* cell : ready) {
    guard(*cell, [&] { time(std::span(&cell, 1)); });
  }
}

// Seconds that par takes for the case that sets the pace.
double CellRunner::time_pace(const ChallengeSpec& spec, const std::string& of) {
  const CaseSpec& sets_pace = *find_case(spec, of);
  TimeAccount account;
  const double seconds =
      time_par(challenge_of(spec), sets_pace, worker_settings(spec, baseline(spec, "par.cpp")),
               options_.seed, account);
  add(account);
  return seconds;
}

// Of several repetitions the fastest, each in a worker of its own; the first that fails ends them.
CaseResult CellRunner::run_alone(const ChallengeSpec& spec, const CaseSpec& c,
                                 const fs::path& library) {
  ChallengeSpec alone = spec;
  alone.cases = {c};
  const WorkerSettings settings = worker_settings(alone, library);
  TimeAccount account;
  std::optional<CaseResult> fastest;
  const ProcessorTicks before = processor_ticks();
  for (int i = 0; i < c.repetitions; ++i) {
    CaseResult result = run_correctness(challenge_of(spec), settings, options_.seed,
                                        {.only = c.name, .exclusive = true}, account)
                            .at(0);
    if (!c.pace.of.empty()) result.metrics.push_back({"budget_s", c.params.at("seconds")});
    const bool failed = result.verdict != Verdict::ok;
    if (failed || !fastest || result.seconds < fastest->seconds) fastest = std::move(result);
    if (failed) break;
  }
  add(account);
  if (c.repetitions > 1 && fastest->verdict == Verdict::ok) {
    fastest->metrics.push_back({"fastest_us", 1e6 * fastest->seconds});
  }
  fastest->metrics.push_back({kStolenShare, stolen_share(before, processor_ticks())});
  return *fastest;
}

void CellRunner::run_exclusive(const ChallengeSpec& spec, CellResult& cell,
                               const CaseFilter& filter) {
  std::vector<const CaseSpec*> wanted;
  for (const CaseSpec& c : spec.cases) {
    if (c.exclusive && filter.takes(c)) wanted.push_back(&c);
  }
  if (wanted.empty() || !may_time(challenge_of(spec), wanted, cell)) return;
  guard(cell, [&] {
    std::map<std::string, double> paces;  // one for all of the cell's cases that share it
    std::vector<CaseResult> results;
    for (const CaseSpec* c : wanted) {
      CaseSpec as_run = *c;
      if (const std::string& of = c->pace.of; !of.empty()) {
        if (!paces.contains(of)) paces[of] = time_pace(spec, of);
        as_run = paced(*c, paces[of]);
      }
      results.push_back(run_alone(spec, as_run, library_of(spec, cell)));
    }
    std::ranges::move(results, std::back_inserter(cell.cases));
  });
  cell.finished_at = utc_now();
}

void CellRunner::run_own_tests(const ChallengeSpec& spec, const Submission& submission,
                               CellResult& cell) {
  if (submission.language == Language::cuda) {
    cell.tests_note = {Note::Kind::tests_not_run,
                       "not run: what tests must accept and reject is written in C++"};
    return;
  }
  if (submission.test_source.empty()) {
    cell.tests_note = {Note::Kind::no_tests, "ships no test.cpp"};
    return;
  }
  if (options_.filter.quick || !options_.filter.only.empty()) {
    cell.tests_note = {Note::Kind::tests_not_run, "not run in a partial run"};
    return;
  }
  guard(cell, [&] {
    cell.mutants =
        run::run_own_tests(builder_, spec, worker_settings(spec, {}), submission.test_source);
  });
}

void CellRunner::add(const TimeAccount& account) {
  const std::lock_guard lock(mutex_);
  account_.add(account);
}

TimeAccount CellRunner::account() const {
  const std::lock_guard lock(mutex_);
  return account_;
}

}  // namespace assay::run
