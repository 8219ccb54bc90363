// Which measurements compare with each other.
#pragma once

#include "assay/device.h"

namespace assay {

// Raise this number, by one, with every change after which the same answer may get another score
// though its spec and its data sheet stayed as they were:
// - how seeds are made of a run's seed, or inputs of a seed;
// - what the simulator counts, or how grade/gpu.h makes seconds of the counts;
// - naive, par, references, bounds or the way of timing;
// - rules of grading that need something that was not measured before.
// What is measured carries the number. Rows of the board of another one are stale, see
// grade/currency.h, and `assay run --stale` measures them again. 0 stands for all that was measured
// before there was a number.
inline constexpr int kMeasurementRevision = 13;

// From which revision on rows of a device compare with today's: what came later changed nothing
// that is measured there. Raised with the number above, for each device that the change concerns.
//
// 12 raised none: it admits more of layer norm's dgamma where rows are long, which no correct row
// of 11 needs. Nor did 13, which fails answers that change a cache in a call that they then refuse:
// the answers on the board that pass were all tried again, and pass.
constexpr int oldest_comparable(Device device) {
  constexpr int kCpu = 11;   // bounds of rows that cancel, naive's sums for RMSNorm
  constexpr int kSim = 11;   // those, and par of three challenges
  constexpr int kCuda = 11;  // likewise
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

}  // namespace assay
