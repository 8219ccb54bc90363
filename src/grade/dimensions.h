// The dimensions of a score, one function each. Internal to grade().
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"
#include "grade/gpu.h"

namespace assay::grading {

// A spec's cases, with a cell's results for them.
class CaseTable {
 public:
  CaseTable(const ChallengeSpec&, const CellResult&);

  const ChallengeSpec& spec() const { return spec_; }
  const CellResult& cell() const { return cell_; }
  bool quick() const { return quick_; }

  // Whether a case failed through the submission's fault. Unsupported cases are then no longer
  // excused; otherwise a case that would fail could be dodged by refusing it.
  bool failed() const { return failed_; }

  // Whether cases that need a GPU are graded, as failures: true if a case failed or the kernels of
  // one ran. Otherwise nothing of the submission could be run.
  bool grades_gpu() const { return failed_ || simulated_; }

  // Null if the case was not run (absent, skipped, or the harness failed on it), or if it needs a
  // GPU and that is not graded.
  const CaseResult* ran(const std::string& name) const;
  bool passed(const std::string& name) const;

  // Why a missing case among `names` leaves the dimension without points; empty if none does.
  std::string missing(const std::vector<std::string>& names) const;

 private:
  const CaseResult* find(const std::string& name) const;
  bool is_quick() const;
  bool counts_as_run(const CaseResult&) const;

  const ChallengeSpec& spec_;
  const CellResult& cell_;
  std::map<std::string, const CaseResult*> results_;
  bool failed_ = false, simulated_ = false, quick_ = false;
};

Dimension correctness(const CaseTable&);
Dimension accuracy(const CaseTable&);
Dimension resources(const CaseTable&);
Dimension completeness(const CaseTable&);
Dimension tests(const CaseTable&);

// Also fills the speeds and may add flags.
Dimension performance(const CaseTable&, std::vector<ShapeSpeed>&, std::vector<Note>& flags);

// Work that a CUDA submission moved to the host in a case, out of sight of counters and the GPU's
// clock, although naive.cu does it on the device. In words; "" if none, or if naive's counts are
// unknown.
std::string work_on_host(const CaseResult&);

// Performance of a simulated cell, from the counted work of its timed cases.
Dimension modelled_performance(const CaseTable&, const Gpu&, std::vector<ShapeSpeed>&,
                               std::vector<Note>& flags);

// One timed case that passed: its speed and its share of the points, or why there is none.
struct Timed {
  ShapeSpeed speed;
  Interval points;
  std::string missing;      // not measured
  std::string worthless{};  // measured, but its speed counts for nothing
};

// The points over all timed cases, including failed ones; `measure` is called for each that passed.
Dimension performance_of(const CaseTable&, const std::function<Timed(const CaseResult&)>& measure,
                         const std::function<std::string()>& explain, std::vector<ShapeSpeed>&,
                         std::vector<Note>& flags);

// The scale for speeds. Par is an anchor, and the floor, the least possible time, is the end.
// Without a par, the floor stands in for it.
struct SpeedScale {
  double par_over_naive = 0;  // par's speed as a multiple of naive's
  double floor_over_par = 1;  // 1: no known floor, or par is at it
};

// The share of the points that par earns if the floor leaves room above it.
inline constexpr double kParShare = 0.85;

// The share of the points of a speed relative to par's: on a logarithmic scale from naive (0) over
// par to the floor (1). Par earns kParShare, or what it would earn on one straight scale from naive
// to the floor if that is more: so points never rise more steeply above par than below it.
double share_of_speed(double ratio_to_par, const SpeedScale&);

// The share of the points that `value` earns between `full` (1) and `zero` (0): on a logarithmic
// scale when both are positive, else a linear one. NaN earns nothing.
double share_on_scale(double value, double full, double zero);

Dimension scored(std::string name, double max, double share, std::string why);
Dimension not_run(std::string name, double max, std::string why);

// "a, b, c, ...": at most six.
std::string some_of(const std::vector<std::string>& names);

}  // namespace assay::grading
