// Tests that a submission ships, run on the challenge's own implementations: they must accept naive and par and
// reject the wrong examples.
#pragma once

#include <string>
#include <vector>

#include "assay/results.h"
#include "run/world.h"
#include "spec/spec.h"

namespace assay::run {

// An implementation that tests are run on.
struct TestSubject {
  std::string name;
  SourceFile source;
  bool correct = false;
};

std::vector<TestSubject> test_subjects(const ChallengeSpec&);

// The object of a subject. All have the same name, and tests are compiled apart from them: else they could ask the
// preprocessor or their own library which one they test.
BuildResult build_subject(const Compile&, const ChallengeSpec&, const TestSubject&);

// What the tests made of every subject, tried on up to `jobs` threads. `settings` but for the library.
std::vector<Mutant> run_own_tests(const World&, const ChallengeSpec&,
                                  const WorkerSettings& settings, const std::string& test_source,
                                  std::size_t jobs);

}  // namespace assay::run
