#include "run/own_tests.h"

#include <fmt/format.h>

#include "run/examples.h"
#include "util/jobs.h"

namespace assay::run {
namespace {

Outcome self_test(const World& world, const WorkerSettings& settings) {
  constexpr double kTimeLimit = 60;
  Arena input("input", 4096 * 4, Arena::Access::worker_reads);
  const auto worker = world.make_worker(settings, input, 4096, nullptr);
  const Outcome loaded = worker->load();
  return loaded.verdict == Verdict::ok ? worker->self_test(kTimeLimit) : loaded;
}

void take_outcome(const Outcome& outcome, Mutant& mutant) {
  mutant.seconds = outcome.seconds;
  // An implementation that crashes under the tests has been rejected by them.
  const bool accepted = outcome.verdict == Verdict::ok && outcome.status == 0;
  mutant.verdict = accepted ? TestVerdict::accepted : TestVerdict::rejected;
  if (outcome.verdict != Verdict::ok) {
    mutant.reason = outcome.detail;
  } else if (!accepted) {
    mutant.reason = fmt::format("returned {}", outcome.status);
  }
}

// `tests` is their object.
Mutant judge_tests(const World& world, const ChallengeSpec& spec, WorkerSettings settings,
                   const TestSubject& subject, const BuildResult& tests) {
  Mutant mutant{.subject = subject.name, .correct = subject.correct};
  const auto failed = [&](TestVerdict verdict, const BuildResult& built) {
    mutant.verdict = verdict;
    mutant.reason = built.record.log;
    return mutant;
  };
  if (tests.record.verdict != Verdict::ok) return failed(TestVerdict::not_built, tests);
  const BuildResult implementation = build_subject(world.compile, spec, subject);
  // It is ours.
  if (implementation.record.verdict != Verdict::ok)
    return failed(TestVerdict::not_run, implementation);
  const BuildResult both = world.compile({.sources = {},
                                          .headers = {},
                                          .time_limit_s = spec.limits.build_time_s,
                                          .objects = {implementation.library, tests.library}});
  if (both.record.verdict != Verdict::ok) return failed(TestVerdict::not_built, both);
  settings.library = both.library;
  take_outcome(self_test(world, settings), mutant);
  return mutant;
}

}  // namespace

std::vector<TestSubject> test_subjects(const ChallengeSpec& spec) {
  std::vector<TestSubject> subjects;
  for (const char* correct : {"naive", "par"}) {
    subjects.push_back({correct, challenge_file(spec, std::string(correct) + ".cpp"), true});
  }
  for (const Example& example : load_examples(spec)) {
    if (example.kind != Example::Kind::wrong || !breaks_what_is_required(spec, example)) continue;
    subjects.push_back({example.name, example.source, false});
  }
  return subjects;
}

BuildResult build_subject(const Compile& compile, const ChallengeSpec& spec,
                          const TestSubject& subject) {
  return compile({.sources = {{"implementation.cpp", subject.source.contents}},
                  .headers = example_headers(spec),
                  .time_limit_s = spec.limits.build_time_s,
                  .object = true});
}

std::vector<Mutant> run_own_tests(const World& world, const ChallengeSpec& spec,
                                  const WorkerSettings& settings, const std::string& test_source,
                                  std::size_t jobs) {
  const BuildResult tests = world.compile({.sources = {{"test.cpp", test_source}},
                                           .headers = {challenge_file(spec, "abi.h")},
                                           .time_limit_s = spec.limits.build_time_s,
                                           .object = true});
  const std::vector<TestSubject> subjects = test_subjects(spec);
  std::vector<Mutant> mutants(subjects.size());
  for_each_job(subjects.size(), jobs, [&](std::size_t i) {
    mutants[i] = judge_tests(world, spec, settings, subjects[i], tests);
  });
  return mutants;
}

}  // namespace assay::run
