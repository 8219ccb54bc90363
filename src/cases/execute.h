// One run of one case in one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "assay/results.h"
#include "cases/case_input.h"
#include "cases/time_account.h"
#include "cases/world.h"
#include "processes/worker.h"

namespace assay::cases {

struct ExecuteOptions {
  std::uint64_t case_id = 0;  // unique per run within the worker
  std::uint64_t poison_seed = 0;
  bool make_resident = true;    // untimed; must be off when the input must stay unseen
  bool measure_memory = false;  // adds the metric scratch_bytes
  // With measure_memory: growth of the process beyond ctx->alloc that fails the case. 0: any
  // passes.
  std::uint64_t heap_limit = 0;
  std::function<void()> flush_caches{};  // not empty: called before the timed phase
  bool judge = true;                     // off: only that the call succeeded; for trusted code
  bool keep_outputs = false;             // fills Trace::outputs
  // What the case leaves behind of ctx->alloc fails it. The worker says how much that is, so it is
  // for whoever looks for mistakes, not for who looks for lies.
  bool find_leaks = false;
};

// What a run was like beside its result.
struct Trace {
  double before_s = 0;             // the calls of the phases before the timed one, device included
  std::vector<std::byte> outputs;  // those that are compared between runs, as they were judged
  // As the worker reports them: what the case asked of ctx->alloc, and what it did not give back.
  std::uint64_t allocations = 0;
  std::int64_t kept_blocks = 0;
};

// Runs every phase and judges the outputs, each as it stood when the phase ended at whose end it
// was due. `result.seconds` is the time of the timed phase. The worker is stopped before and after;
// afterwards it may have ended.
CaseResult execute(const World&, processes::Worker&, CaseInput&, const ExecuteOptions&,
                   TimeAccount&, Trace* trace = nullptr);

}  // namespace assay::cases
