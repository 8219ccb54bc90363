// What trying a submission's own tests depends on its language for: which implementations they
// meet, how these are built, and what a try has. All else is the same in C++ and in CUDA.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cases/world.h"
#include "cells/run_options.h"
#include "submission/submission.h"

namespace assay::cells {

// An implementation that tests are run on.
struct TestSubject {
  std::string name;
  SourceFile source;
  bool correct = false;
  Language language = Language::cpp;
};

// naive, par where the challenge has one in that language, and its examples that are slow or break
// what is required.
std::vector<TestSubject> test_subjects(const ChallengeSpec&, Language);

// Of the subject: assembly, without what names it but for its symbols.
BuildRequest subject_request(const ChallengeSpec&, const TestSubject&);
// Of the tests: an object.
BuildRequest tests_request(const ChallengeSpec&, Language, const std::string& source);
// In CUDA, of that object: the same, unless it defines one of these names of the runtime.
BuildRequest checked_tests_request(const ChallengeSpec&, const std::filesystem::path& tests,
                                   std::vector<std::string> reserved);
// Of the library of both.
BuildRequest library_request(const ChallengeSpec&, Language, std::string switchboard);

// The names of the CUDA runtime that this assembly asks for. Tests that defined one would see what
// implementations launch, by address and name.
std::vector<std::string> runtime_names(std::string_view assembly);

// A try has so long for what it does on the host, in CUDA so many warp instructions on the device
// and the processor time that goes with them (wire/device.h), about six seconds. So tests that hang
// take less than a minute of two cores for the subjects of a challenge.
inline constexpr double kTryLimit = 60, kCudaTryLimit = 5;  // seconds
inline constexpr std::uint64_t kTryInstructions = 25'000'000;

// The tests of the library that the settings name, run in a worker of its own, in CUDA with a
// device of its own. Not ok where something failed: what the device finds is a failure, whatever
// the tests return.
processes::Outcome try_tests(const cases::World&, const processes::WorkerSettings&);

}  // namespace assay::cells
