#include "cells/mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "assay/error.h"
#include "cells/examples.h"
#include "records/lookup.h"
#include "spec/spec.h"
#include "util/files.h"
#include "util/stop.h"

namespace assay::cells {
namespace {

// A mutant may take kTimes times what the answer takes, and at least kLeastSeconds: enough to
// recognise an endless loop.
constexpr double kTimes = 3, kLeastSeconds = 1;

// Cases of speed and memory have sizes that the others lack, and wrong outputs there count as
// failures of correctness do.
bool checks_outputs(const CaseSpec& c) { return !c.exclusive && c.external.empty(); }

bool is_unsupported(const CaseResult& r) { return r.verdict == Verdict::unsupported; }

// True for the parts of par besides par.cpp: its own headers, and those that naive includes as
// well.
bool is_par_header(const SourceFile& file) {
  return file.name.starts_with("par/") || file.name.starts_with("common/");
}

MutatedAnswer par_of(const ChallengeSpec& spec) {
  MutatedAnswer answer{"par", {baseline_file(spec, "par.cpp")}, {}};
  for (SourceFile& header : baseline_headers(spec))
    (is_par_header(header) ? answer.sources : answer.included).push_back(std::move(header));
  return answer;
}

}  // namespace

MutatedAnswer answer_to_mutate(const ChallengeSpec& spec, const std::string& of,
                               const std::filesystem::path& submissions) {
  if (of == "par") return par_of(spec);
  const std::filesystem::path folder = submissions / of / spec.name;
  for (Submission& s : read_submissions(folder, of, spec.name, "")) {
    if (s.language != Language::cpp || s.sources.empty()) continue;
    return {of, std::move(s.sources), {challenge_file(spec, "abi.h")}};
  }
  throw Error(fmt::format("{} holds no {} to mutate: name a model that has one with --of, or par",
                          folder.string(), main_file(Language::cpp)));
}

MutantBench::MutantBench(const cases::World& world, const RunOptions& options,
                         const ChallengeSpec& spec, MutatedAnswer answer)
    : world_(world), options_(options), spec_(spec), answer_(std::move(answer)) {
  std::erase_if(spec_.cases, std::not_fn(&checks_outputs));
  unchanged_ = build(answer_.sources);
  if (unchanged_.record.verdict != Verdict::ok) {
    throw Error(fmt::format("{} does not compile unchanged: {}", answer_.scope(spec_),
                            unchanged_.record.log));
  }
  code_ = read_file(unchanged_.library);
  take_times();
}

BuildResult MutantBench::build(const std::vector<SourceFile>& sources) const {
  BuildRequest request;
  request.headers = answer_.included;
  for (const SourceFile& file : sources)
    (is_par_header(file) ? request.headers : request.sources).push_back(file);
  request.time_limit_s = build_limit(spec_, Language::cpp);
  request.for_speed = false;  // like wrong examples: faster to compile
  return world_.compile(request);
}

// Runs one case at a time, so that each has its own account. Drops cases that the answer does not
// support. Sorts the others by how long they take, since most mutants fail a short one; last come
// those of speed and memory, in which a mutant may be slow.
void MutantBench::take_times() {
  struct Supported {
    bool measures;
    double seconds;
    CaseSpec spec;
    auto order() const { return std::pair(measures, seconds); }
  };
  std::vector<Supported> supported;
  for (CaseSpec& c : spec_.cases) {
    cases::TimeAccount account;
    const std::vector<CaseResult> results = cases::run_correctness(
        {world_, *world_.challenge(spec_.name).challenge,
         worker_settings(world_, options_, spec_, unchanged_.library), options_.seed, account},
        {.only = c.name, .timed = true});
    check_stop();
    const auto failed = std::ranges::find_if(results, &is_failure);
    if (failed != results.end()) {
      throw Error(
          fmt::format("{} fails the case {} unchanged, so its mutants would say nothing: {}",
                      answer_.scope(spec_), c.name, failed->detail));
    }
    if (std::ranges::any_of(results, &is_unsupported)) continue;
    const bool measures = !tells_right_from_wrong(c);
    if (!measures) {
      c.time_limit_s =
          std::min(c.time_limit_s, std::max(kLeastSeconds, kTimes * account.submission));
    }
    supported.push_back({measures, account.submission + account.reference, std::move(c)});
  }
  std::ranges::stable_sort(supported, {}, &Supported::order);
  spec_.cases.clear();
  for (Supported& s : supported) spec_.cases.push_back(std::move(s.spec));
}

mutate::Result MutantBench::run(const mutate::Mutation& mutation,
                                const std::vector<mutate::KnownMutant>& list) const {
  using mutate::Fate;
  mutate::Result result;
  result.mutation = mutation;
  if (const auto* known = mutate::find_known(list, answer_.of, mutation)) result.known = *known;
  std::vector<SourceFile> sources = answer_.sources;
  std::string& text = sources[mutation.file].contents;
  text = mutate::mutated(text, mutation.edit);
  const BuildResult built = build(sources);
  check_stop();
  result.verdict = built.record.verdict;
  if (built.record.verdict != Verdict::ok) {
    result.fate = Fate::does_not_compile;
    result.detail = built.record.log;
    return result;
  }
  if (read_file(built.library) == code_) {
    result.fate = Fate::same_code;
    return result;
  }
  cases::TimeAccount account;
  const std::vector<CaseResult> cases = cases::run_correctness(
      {world_, *world_.challenge(spec_.name).challenge,
       worker_settings(world_, options_, spec_, built.library), options_.seed, account},
      {.timed = true, .stop_at_failure = true});
  check_stop();  // a stop request also kills the worker: the result means nothing
  const auto failed = std::ranges::find_if(
      cases, [](const CaseResult& c) { return is_failure(c) || is_unsupported(c); });
  for (const CaseResult& c : cases) {
    if (c.verdict == Verdict::harness_error)
      throw Error(fmt::format("the mutant {} could not be judged by the case {}: {}", mutation.id,
                              c.name, c.detail));
  }
  result.fate = failed != cases.end() ? Fate::killed : result.known ? Fate::listed : Fate::survived;
  if (failed != cases.end()) {
    result.case_name = failed->name;
    result.by_measuring = !tells_right_from_wrong(*find_case(spec_, failed->name));
    result.verdict = failed->verdict;
    result.detail = failed->detail;
  }
  return result;
}

}  // namespace assay::cells
