// Fuzzes one submission with random draws: each runs once unchanged and, if it succeeds, again for
// each allocation to be refused.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "cases/bench.h"
#include "cases/case_runner.h"
#include "cases/smallest_failure.h"

namespace assay::cases {

class Fuzzer {
 public:
  // The spec must have a random space, and the bench's references must outlive it.
  explicit Fuzzer(const Bench&);

  struct Step {
    int runs = 0, refusals = 0, not_tested = 0;  // the last: runs that ended with ASSAY_ENOTSUP
    std::optional<Failure> failure;              // shrunk
  };

  // Makes a draw and its inputs from the seed. Throws Error, naming the draw, for faults of the
  // harness.
  Step step(std::uint64_t seed);
  // Runs one draw unchanged, refusing the allocation it names, if any. Throws Error if the draw is
  // not a valid case.
  CaseResult replay(const nlohmann::json& draw, std::uint64_t seed);

 private:
  void search(const draw::Drawn&, std::uint64_t seed, Step&);
  void refuse_allocations(const draw::Drawn&, std::uint64_t allocations, std::uint64_t seed, Step&);

  Bench bench_;
  CaseSpec placeholder_;
  CaseRunner runner_;
};

}  // namespace assay::cases
