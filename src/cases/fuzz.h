// Draws without end against one answer: each run once as it is and, where it succeeds, again with
// one allocation after the other refused.
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
  // The spec must have a space, and the bench's references must outlive it.
  explicit Fuzzer(const Bench&);

  struct Step {
    int runs = 0, refusals = 0, not_tested = 0;  // the last: runs that ended with ASSAY_ENOTSUP
    std::optional<Failure> failure;              // shrunk
  };

  // A draw from the seed, its inputs from the same. Faults of the harness are an Error that names
  // the draw.
  Step step(std::uint64_t seed);
  // One draw as it is, with the allocation refused that it names, if any. Throws Error where it is
  // no case.
  CaseResult replay(const nlohmann::json& draw, std::uint64_t seed);

 private:
  void search(const draw::Drawn&, std::uint64_t seed, Step&);
  void refuse_allocations(const draw::Drawn&, std::uint64_t allocations, std::uint64_t seed, Step&);

  Bench bench_;
  CaseSpec placeholder_;
  CaseRunner runner_;
};

}  // namespace assay::cases
