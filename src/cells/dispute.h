// A submission's tests rejected an implementation that is taken for right. Nothing of the house is
// beyond doubt, so before that costs points the reference is asked: the tests run once more, on
// this implementation alone, behind the challenge's witness.cpp, which writes down the inputs of
// every call. Each call is then a case of its own: the implementation runs on these inputs in a
// worker without the tests, and the challenge's reference and check judge it as they judge answers.
//
// The record is hostile bytes. A forger chooses inputs and nothing else: an implementation that is
// right on them stays right. One that fails counts as wrong only where another one passes on the
// same inputs, so that none fails by inputs on which the reference is the only one right.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cells/own_tests.h"

namespace assay::cells {

struct Ruling {
  enum class On { implementation, tests, nobody };
  On against = On::nobody;  // the implementation is wrong; the tests are; it could not be judged
  std::string text;         // for people: what differs, on which inputs; or what was looked at
};

// By the calls of the latest to the earliest, for about a minute; of CUDA no calls are recorded, so
// nobody is found wrong. `tests` is their object, `build` that of `subject`, `right` all that tests
// must accept. Throws Error for faults of the harness.
Ruling settle_dispute(const cases::World&, const ChallengeSpec&, const processes::WorkerSettings&,
                      const std::filesystem::path& tests, const TestSubject& subject,
                      const SubjectBuild& build, const std::vector<TestSubject>& right);

}  // namespace assay::cells
