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

// The cases of a spec beside what a cell has for them.
class CaseTable {
 public:
  CaseTable(const ChallengeSpec&, const CellResult&);

  const ChallengeSpec& spec() const { return spec_; }
  const CellResult& cell() const { return cell_; }
  bool quick() const { return quick_; }

  // Whether a case failed by the submission's fault. What it does not support then excuses nothing
  // any more: else a case that would fail could be left out by refusing it.
  bool failed() const { return failed_; }

  // Whether cases that need a GPU are graded, as failures: beside a failure, and beside a case
  // whose kernels ran. Else nothing of the answer could be run.
  bool grades_gpu() const { return failed_ || simulated_; }

  // Null when the case was not run: absent, skipped, or the harness failed on it; and when it needs
  // a GPU and that is not graded.
  const CaseResult* ran(const std::string& name) const;
  bool passed(const std::string& name) const;

  // Empty unless a missing case among `names` leaves the dimension without points; then the reason.
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

// What a case of an answer in CUDA left to the host, where neither a count nor the GPU's clock sees
// it, though naive.cu does it on the device: in words, "" if nothing, or where naive's counts are
// not known.
std::string work_on_host(const CaseResult&);

// The same for a cell that was simulated, from the counted work of its timed cases.
Dimension modelled_performance(const CaseTable&, const Gpu&, std::vector<ShapeSpeed>&,
                               std::vector<Note>& flags);

// One timed case that passed: its speed and its share of the points, or why there is none.
struct Timed {
  ShapeSpeed speed;
  Interval points;
  std::string missing;      // not measured
  std::string worthless{};  // measured, but its speed counts for nothing
};

// The points of all timed cases, those that failed included; `measure` is asked about each that
// passed.
Dimension performance_of(const CaseTable&, const std::function<Timed(const CaseResult&)>& measure,
                         const std::function<std::string()>& explain, std::vector<ShapeSpeed>&,
                         std::vector<Note>& flags);

// What speeds are held against. Par is an anchor and the floor the end: the least time in which it
// can be done at all. Where there is no par, the floor stands for it.
struct SpeedScale {
  double par_over_naive = 0;  // how many times as fast as naive par is
  double floor_over_par = 1;  // 1: no floor is known, or par is at it
};

// The share of the points that par earns where the floor leaves room above it.
inline constexpr double kParShare = 0.85;

// The share of the points of a speed relative to par's: on a logarithmic scale from naive (0) over
// par to the floor (1). Par earns kParShare, or what it would earn on one straight scale from naive
// to the floor if that is more: so points never depend more on a speed above par than below it.
double share_of_speed(double ratio_to_par, const SpeedScale&);

// The share of the points that `value` earns between `full` (1) and `zero` (0): on a logarithmic
// scale when both are positive, else a linear one. NaN earns nothing.
double share_on_scale(double value, double full, double zero);

Dimension scored(std::string name, double max, double share, std::string why);
Dimension not_run(std::string name, double max, std::string why);

// "a, b, c, ...": at most six.
std::string some_of(const std::vector<std::string>& names);

}  // namespace assay::grading
