// Which measurements can be compared with each other.
#pragma once

#include "assay/device.h"

namespace assay {

// Raise this number by one with every change that may give the same answer another score although
// its spec and its data sheet are unchanged:
// - how a run's seed gives seeds, or a seed gives inputs;
// - what the simulator counts, or how grade/gpu.h turns the counts into seconds;
// - naive, par, references, bounds or the method of timing;
// - grading rules that need something not measured before.
// Measurements carry the number. Board rows whose number is below oldest_comparable(device) or
// above today's are stale, see grade/currency.h; `assay run --stale` measures the older ones again.
// 0 stands for everything measured before the number existed.
inline constexpr int kMeasurementRevision = 19;

// The oldest revision whose rows for a device compare with today's: later changes altered nothing
// that is measured there. Raised with the number above, for each device that the change affects.
//
// 12 raised none: it admits more error in layer norm's dgamma for long rows, which no correct row
// of 11 needs. 13 raised none either: it fails answers that change a cache in a call that they then
// refuse. Nor did 14: it tests ties of ternary scales, half_way in ternary_training. Nor did 16: it
// counts memory that answers could hide, and aligns pointers in every second drawn case. All passing
// answers on the board were run again each time, and pass. 18 counts large arrays of threads on a
// GPU, which no kernel on the board has, and admits a little more error in sums over thousands of
// keys. 19 compares the error of a log-sum-exp with a rounding of its own size; the specs that it
// matters for changed too.
constexpr int oldest_comparable(Device device) {
  constexpr int kCpu = 15;   // par of ternary training and of attention's gradients
  constexpr int kSim = 17;   // the rows of a copied box are one transfer
  constexpr int kCuda = 11;  // bounds of rows that cancel, and par of three challenges
  switch (device) {
    case Device::cpu: return kCpu;
    case Device::sim: return kSim;
    case Device::cuda: return kCuda;
  }
  return kMeasurementRevision;
}

constexpr bool is_of_today(int revision, Device device) {
  return revision >= oldest_comparable(device) && revision <= kMeasurementRevision;
}

// Whether measurements of two revisions compare. Of revisions that this program does not know, only
// equal ones do.
constexpr bool compare_with_each_other(int a, int b, Device device) {
  return a == b || (is_of_today(a, device) && is_of_today(b, device));
}

}  // namespace assay
