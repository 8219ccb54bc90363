// Runs cases one after another against one library, without planning them together, for cases that
// are drawn while the run goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "assay/results.h"
#include "cases/bench.h"
#include "processes/arena.h"

namespace assay::cases {

class CaseRunner {
 public:
  // The bench's references must outlive it. With find_leaks, a case that leaves ctx->alloc blocks
  // unfreed fails.
  CaseRunner(const Bench& bench, bool find_leaks) : bench_(bench), find_leaks_(find_leaks) {}

  struct Ran {
    CaseResult result;
    std::uint64_t allocations = 0;  // requested by the case, as the worker reports
  };

  // Reuses the worker of the previous case if it is still alive.
  Ran run(const CaseSpec&, std::uint64_t seed);

 private:
  void make_room(std::size_t input, std::size_t output, std::size_t device);

  Bench bench_;
  bool find_leaks_;
  std::optional<processes::Arena> input_, device_;
  std::size_t output_bytes_ = 0;
  std::unique_ptr<processes::Worker> worker_;
  std::uint64_t runs_ = 0;
};

}  // namespace assay::cases
