// Runs a submission's own tests on the challenge's implementations in its language. They must
// accept naive, par and the examples that are only slow, and reject the wrong ones, judging by
// behaviour alone; see cells/test_library.h, and cells/test_setting.h for what depends on the
// language.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "assay/results.h"
#include "cases/world.h"
#include "cells/test_library.h"
#include "cells/test_setting.h"
#include "spec/spec.h"

namespace assay::cells {

// The objects of a subject's twins.
struct SubjectBuild {
  BuildResult failed;  // the failed build, unless its record says ok
  std::array<std::filesystem::path, 2> objects;
  std::array<TestSlot, 2> slots;
  std::vector<std::string> foreign;  // names that it uses and does not define
};

// Tests are compiled separately from the subjects; otherwise the preprocessor could tell them which
// one they test.
SubjectBuild build_subject(const cases::World&, const ChallengeSpec&, const TestSubject&);

// The tests' verdict on every subject in their language, run on up to `jobs` threads. `settings`
// apply except for the library; in CUDA they have a device, whose findings reject like a crash. A
// subject counts as accepted or rejected only if both twins are; if each twin keeps a verdict of
// its own from run to run, the subject is `inconsistent`. If a correct subject is rejected, the
// reference is consulted first, see cells/dispute.h; if that finds it wrong, it is a `house_fault`.
// The placement of subjects follows from `seed` and a secret of this machine.
std::vector<Mutant> run_own_tests(const cases::World&, const ChallengeSpec&,
                                  const processes::WorkerSettings& settings, Language,
                                  const std::string& test_source, std::uint64_t seed,
                                  std::size_t jobs);

}  // namespace assay::cells
