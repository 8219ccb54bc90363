// Runs the cases of one challenge against one built submission, without timing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/results.h"
#include "cases/bench.h"

namespace assay::cases {

// After this many cases have hit their time limit, the rest of the cell is not attempted.
inline constexpr int kMostTimeouts = 3;

// Chooses cases: those of a --quick run, a single case by name, or the cases an example is about.
struct CaseFilter {
  bool quick = false;
  std::string only{};                // a case's name; "" means all
  bool exclusive = false;            // of the untimed cases, only those that run alone
  bool timed = false;                // run_correctness: timed cases too, once, without timing
  std::vector<std::string> named{};  // not empty: only these cases
  bool and_correctness = false;      // also every listed (not drawn) correctness case
  bool stop_at_failure = false;      // in the spec's order; skip the cases after the first failure

  bool takes(const CaseSpec&) const;
};

// The seed of a case within a run, derived with a one-way function: what a submission sees of one
// case or repetition reveals nothing about any other. Round r of a timed case uses
// repetition_seed(case_seed, r + 1).
std::uint64_t case_seed(std::uint64_t run_seed, const std::string& challenge,
                        const std::string& case_name);
std::uint64_t repetition_seed(std::uint64_t case_seed, std::uint64_t round);

// Runs the cases in one worker for as long as it lives, in an order shuffled by the seed unless the
// filter says otherwise. A resource case has a worker of its own, because memory retained by
// earlier calls would hide the growth. A deterministic case has two; the second places the buffers
// elsewhere. A case that kills the worker costs only itself. Every case gets a result, in spec
// order. If a submission does not load, every case gets its load_error. Drawn cases are drawn from
// the run's seed; for a failing one, the result reports the simplest draw that fails the same way.
// Throws Error for faults of the harness.
std::vector<CaseResult> run_correctness(const Bench&, const CaseFilter&);

// The same on the simulated device that the settings ask for. The spec's timed cases run like the
// others, but on a fresh device as resource cases do, because their work is counted. A case that
// launches something the simulator lacks gets needs_gpu with the reason; so do all cases if none
// failed and no kernel ran.
std::vector<CaseResult> run_simulated(const Bench&, const CaseFilter&);

// The cases that are not timed, on the real GPU that the settings name.
std::vector<CaseResult> check_on_gpu(const Bench&, const CaseFilter&);

}  // namespace assay::cases
