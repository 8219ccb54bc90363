// Settles the case where a submission's tests reject an implementation that is held to be correct.
// The challenge's own code is not beyond doubt, so the reference is consulted before that costs
// points. The tests run once more, on this implementation alone, behind the challenge's
// witness.cpp, which records the inputs of every call. Each call then becomes a case: the
// implementation runs on these inputs in a worker without the tests, and the challenge's reference
// and check judge it as they judge submissions.
//
// The record is untrusted. A forger can choose inputs and nothing else: an implementation that is
// right on them stays right. A failing one counts as wrong only if another passes on the same
// inputs, so that it cannot be failed by inputs on which only the reference is right.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cells/own_tests.h"

namespace assay::cells {

struct Ruling {
  enum class On { implementation, tests, nobody };
  On against = On::nobody;  // the implementation is wrong; the tests are wrong; undecided
  std::string text;         // for people: what differs and on which inputs, or what was checked
};

// Replays the calls from the latest to the earliest, for about a minute. CUDA calls are not
// recorded, so nobody is found wrong there. `tests` is the tests' object, `build` that of
// `subject`, and `right` holds all implementations that tests must accept. Throws Error for faults
// of the harness.
Ruling settle_dispute(const cases::World&, const ChallengeSpec&, const processes::WorkerSettings&,
                      const std::filesystem::path& tests, const TestSubject& subject,
                      const SubjectBuild& build, const std::vector<TestSubject>& right);

}  // namespace assay::cells
