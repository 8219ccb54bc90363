// Cases of one challenge against one built submission, without a clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/results.h"
#include "cases/bench.h"

namespace assay::cases {

// After so many cases at their time limit the rest of a cell is not attempted.
inline constexpr int kPatience = 3;

// Chooses cases: a --quick run, a single case by name, or what an example is about.
struct CaseFilter {
  bool quick = false;
  std::string only{};      // a case's name; "" means all
  bool exclusive = false;  // of the untimed cases, those that run alone instead of the others
  std::vector<std::string> named{};  // not empty: only these cases
  bool and_correctness = false;      // with them, all of the list that make correctness
  bool stop_at_failure = false;      // the cases after the first that fails are skipped

  bool takes(const CaseSpec&) const;
};

// The seed of a case within a run, derived one way: what a submission sees of one case, or of one
// repetition, says nothing of any other. A timed case's round r uses repetition_seed(case_seed, r +
// 1).
std::uint64_t case_seed(std::uint64_t run_seed, const std::string& challenge,
                        const std::string& case_name);
std::uint64_t repetition_seed(std::uint64_t case_seed, std::uint64_t round);

// Runs the cases in an order shuffled by the seed, in one worker as long as it lives; a resource
// case starts a fresh one, because memory that earlier calls left with the process would be no
// growth. A deterministic case runs in two fresh workers, with its buffers at other places in the
// second. A case that kills the worker costs only itself. Every case gets a result, in spec order.
// A submission that does not load gives every case its load_error. Cases that are drawn are drawn
// from the run's seed; one that fails tells of the simplest draw that fails alike. Throws Error for
// faults of the harness.
std::vector<CaseResult> run_correctness(const Bench&, const CaseFilter&);

// The same on the simulated device that the settings ask for, where the spec's timed cases run like
// others, on a fresh device as resource cases do: what they do is counted. A case that launches
// what the simulator lacks needs a GPU and says why; so do all if no case failed and no kernel ran.
std::vector<CaseResult> run_simulated(const Bench&, const CaseFilter&);

// The cases that are not timed, on the real GPU that the settings name.
std::vector<CaseResult> check_on_gpu(const Bench&, const CaseFilter&);

}  // namespace assay::cases
