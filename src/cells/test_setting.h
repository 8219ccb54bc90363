// The parts of running a submission's own tests that depend on its language: which implementations
// they run on, how these are built, and the limits of a run. Everything else is the same in C++ and
// CUDA.
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

// naive, par if the challenge has one in that language, and the examples that are slow or break
// something required.
std::vector<TestSubject> test_subjects(const ChallengeSpec&, Language);

// Request for the subject's assembly, in which nothing but its symbols identifies it.
BuildRequest subject_request(const ChallengeSpec&, const TestSubject&);
// Request for the tests' assembly in C++, or their object in CUDA.
BuildRequest tests_request(const ChallengeSpec&, Language, const std::string& source);
// For C++: request for the object of the tests' assembly, whose names are local except for those
// that the tests and the switchboard share.
BuildRequest local_tests_request(const ChallengeSpec&, std::string_view assembly);
// Request that passes the object through unchanged, but fails if it defines one of these names.
BuildRequest checked_tests_request(const ChallengeSpec&, Language,
                                   const std::filesystem::path& tests,
                                   std::vector<std::string> reserved);
// Request for the library of tests and subjects.
BuildRequest library_request(const ChallengeSpec&, Language, std::string switchboard);

// Limits of one run: time on the host and, in CUDA, warp instructions on the device with the
// processor time that goes with them (wire/device.h). So tests that hang take less than a minute of
// two cores for the subjects of a challenge.
inline constexpr double kTryLimit = 60, kCudaTryLimit = 5;  // seconds
inline constexpr std::uint64_t kTryInstructions = 25'000'000;

// Runs the tests in the library that the settings name, in a fresh worker, in CUDA with a fresh
// device. The verdict is not ok if anything failed; a device finding is a failure whatever the
// tests return.
processes::Outcome try_tests(const cases::World&, const processes::WorkerSettings&);

}  // namespace assay::cells
