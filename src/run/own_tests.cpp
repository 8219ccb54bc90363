#include "run/own_tests.h"

#include <fmt/format.h>

#include "run/examples.h"

namespace assay::run {
namespace {

Outcome self_test(const WorkerSettings& settings) {
  constexpr double kTimeLimit = 60;
  Arena input("input", 4096 * 4, Arena::Access::worker_reads);
  WorkerProcess worker(settings, input, 4096);
  const Outcome loaded = worker.load();
  return loaded.verdict == Verdict::ok ? worker.self_test(kTimeLimit) : loaded;
}

// The subject and the tests as one library, or why there is none.
BuildResult build_together(Builder& builder, const ChallengeSpec& spec, const TestSubject& subject,
                           const BuildResult& tests) {
  BuildResult built = tests;
  if (built.record.verdict == Verdict::ok) built = build_subject(builder, spec, subject);
  if (built.record.verdict != Verdict::ok) return built;
  return builder.build({.sources = {},
                        .headers = {},
                        .time_limit_s = spec.limits.build_time_s,
                        .objects = {built.library, tests.library}});
}

Mutant judge_tests(Builder& builder, const ChallengeSpec& spec, WorkerSettings settings,
                   const TestSubject& subject, const BuildResult& tests) {
  Mutant mutant{.subject = subject.name, .correct = subject.correct, .reason = {}};
  const BuildResult built = build_together(builder, spec, subject, tests);
  if (built.record.verdict != Verdict::ok) {
    mutant.verdict = TestVerdict::not_built;
    mutant.reason = built.record.log;
    return mutant;
  }
  settings.library = built.library;
  const Outcome outcome = self_test(settings);
  mutant.seconds = outcome.seconds;
  // An implementation that crashes under the tests has been rejected by them.
  const bool accepted = outcome.verdict == Verdict::ok && outcome.status == 0;
  mutant.verdict = accepted ? TestVerdict::accepted : TestVerdict::rejected;
  if (outcome.verdict != Verdict::ok) {
    mutant.reason = outcome.detail;
  } else if (!accepted) {
    mutant.reason = fmt::format("returned {}", outcome.status);
  }
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

BuildResult build_subject(Builder& builder, const ChallengeSpec& spec, const TestSubject& subject) {
  return builder.build({.sources = {{"implementation.cpp", subject.source.contents}},
                        .headers = example_headers(spec),
                        .time_limit_s = spec.limits.build_time_s,
                        .object = true});
}

std::vector<Mutant> run_own_tests(Builder& builder, const ChallengeSpec& spec,
                                  const WorkerSettings& settings, const std::string& test_source) {
  const BuildResult tests = builder.build({.sources = {{"test.cpp", test_source}},
                                           .headers = {challenge_file(spec, "abi.h")},
                                           .time_limit_s = spec.limits.build_time_s,
                                           .object = true});
  std::vector<Mutant> mutants;
  for (const TestSubject& subject : test_subjects(spec)) {
    mutants.push_back(judge_tests(builder, spec, settings, subject, tests));
  }
  return mutants;
}

}  // namespace assay::run
