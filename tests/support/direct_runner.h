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
  // library: path of a shared object that defines the challenge's functions.
  DirectRunner(std::string challenge, std::string library);
  ~DirectRunner();

  // If an allocation is refused (other than the last), checks only that the call returns
  // ASSAY_ENOMEM or passes; the real runner checks the rest.
  CaseResult run(const CaseSpec&, std::uint64_t seed);

 private:
  std::string challenge_;
  void* handle_ = nullptr;
};

// The challenge's spec from the source tree.
ChallengeSpec spec_of(const std::string& challenge);

// Replaces the placeholders of drawn cases with what a run with that seed draws.
void draw_cases(ChallengeSpec&, std::uint64_t run_seed);

// Compiles one C++ file the way assay builds a submission (plain g++, no sandbox) and returns the
// shared object's path; throws Error with the compiler's output.
std::string compile(const std::string& source, const std::string& challenge,
                    const std::string& target = "native");

}  // namespace assay::testing
