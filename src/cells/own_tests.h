// Tests that a submission ships, run on the challenge's own implementations in its language: they
// must accept naive, par and the examples that are only slow, and reject the wrong ones, by what
// these do and nothing else; see cells/test_library.h, and cells/test_setting.h for what depends on
// the language.
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
  BuildResult failed;  // unless its record says ok
  std::array<std::filesystem::path, 2> objects;
  std::array<TestSlot, 2> slots;
  std::vector<std::string> runtime;  // names of the CUDA runtime that it asks for
};

// Tests are compiled apart from them: else they could ask the preprocessor which one they test.
SubjectBuild build_subject(const cases::World&, const ChallengeSpec&, const TestSubject&);

// What the tests made of every subject of their language, tried on up to `jobs` threads. `settings`
// but for the library; in CUDA they have a device, whose findings reject like a crash. Both twins
// of a subject must be accepted, or both rejected, for it to count so; where each twin keeps its
// own verdict from run to run, the subject is `inconsistent`. A right one that they reject is put
// to the reference first, see cells/dispute.h; where that finds it wrong, it is a `house_fault`.
// Which subject lies where follows from `seed` and a secret of this machine.
std::vector<Mutant> run_own_tests(const cases::World&, const ChallengeSpec&,
                                  const processes::WorkerSettings& settings, Language,
                                  const std::string& test_source, std::uint64_t seed,
                                  std::size_t jobs);

}  // namespace assay::cells
