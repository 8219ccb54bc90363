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
  bool make_resident = true;    // untimed; must be off if the input must stay unseen
  bool measure_memory = false;  // adds the metric scratch_bytes
  // With measure_memory: the case fails if the process grows by more than this beyond ctx->alloc.
  // 0: no limit.
  std::uint64_t heap_limit = 0;
  std::function<void()> flush_caches{};  // not empty: called before the timed phase
  bool judge = true;                     // off: only requires success; for trusted code
  bool keep_outputs = false;             // fills Trace::outputs
  // Unfreed ctx->alloc blocks fail the case. The count is self-reported by the worker, so this
  // serves to find mistakes, not cheating.
  bool find_leaks = false;
};

// Facts about a run besides its result.
struct Trace {
  double before_s = 0;             // time of calls in phases before the timed one, device included
  std::vector<std::byte> outputs;  // those compared between runs, as judged
  // As the worker reports them: the allocations the case made with ctx->alloc, and the blocks it
  // did not free.
  std::uint64_t allocations = 0;
  std::int64_t kept_blocks = 0;
};

// Runs every phase and judges the outputs, each as it was at the end of the phase in which it was
// due. `result.seconds` is the time of the timed phase. The worker is stopped before and after;
// afterwards it may be dead.
CaseResult execute(const World&, processes::Worker&, CaseInput&, const ExecuteOptions&,
                   TimeAccount&, Trace* trace = nullptr);

}  // namespace assay::cases
