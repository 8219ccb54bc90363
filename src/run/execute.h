// One run of one case in one worker.
#pragma once

#include <cstdint>
#include <functional>

#include "assay/results.h"
#include "run/case_input.h"
#include "run/time_account.h"
#include "run/worker.h"

namespace assay::run {

struct ExecuteOptions {
  std::uint64_t case_id = 0;  // unique per run within the worker
  std::uint64_t poison_seed = 0;
  bool make_resident = true;    // untimed; must be off when the input must stay unseen
  bool measure_memory = false;  // adds the metric scratch_bytes
  // With measure_memory: growth of the process beyond ctx->alloc that fails the case. 0: any passes.
  std::uint64_t heap_limit = 0;
  std::function<void()> flush_caches{};  // not empty: called before the timed phase
  bool judge = true;                     // off: only that the call succeeded; for trusted code
};

// Runs every phase and judges the outputs. `result.seconds` is the time of the timed phase. The
// worker is stopped before and after; afterwards it may have ended.
CaseResult execute(Worker&, CaseInput&, const ExecuteOptions&, TimeAccount&);

}  // namespace assay::run
