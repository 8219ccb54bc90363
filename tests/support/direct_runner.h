// Runs cases of a challenge against a built submission inside this process: no sandbox, no clock.
// For tests of generators, references, checkers and adapters with trusted code only.
#pragma once

#include <cstdint>
#include <string>

#include "assay/results.h"
#include "spec/spec.h"

namespace assay::testing {

class DirectRunner {
 public:
  // library: path of a shared object with the challenge's functions.
  DirectRunner(std::string challenge, std::string library);
  ~DirectRunner();

  // Where an allocation is refused (not: the last), only whether the call returns ASSAY_ENOMEM or
  // passes; the rest is for the real runner.
  CaseResult run(const CaseSpec&, std::uint64_t seed);

 private:
  std::string challenge_;
  void* handle_ = nullptr;
};

// The challenge's spec from the source tree.
ChallengeSpec spec_of(const std::string& challenge);

// Replaces the placeholders of drawn cases by what a run with that seed draws.
void draw_cases(ChallengeSpec&, std::uint64_t run_seed);

// Compiles one C++ file the way assay builds a submission (plain g++, no sandbox) and returns the
// shared object's path; throws Error with the compiler's output.
std::string compile(const std::string& source, const std::string& challenge,
                    const std::string& target = "native");

}  // namespace assay::testing
