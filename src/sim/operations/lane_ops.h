// Writes results to the active lanes only.
#pragma once

#include "sim/execution/warp.h"

namespace assay::sim {

inline void put32(Warp& w, std::uint32_t offset, const std::uint32_t* value) {
  Lanes32& d = w.r32(offset);
  if (w.full()) {
    for (unsigned l = 0; l < kLanes; ++l) d.v[l] = value[l];
  } else {
    for (unsigned l = 0; l < kLanes; ++l) {
      d.v[l] = (value[l] & w.lane_mask.v[l]) | (d.v[l] & ~w.lane_mask.v[l]);
    }
  }
}

// 0 or 0 for a lane, in 64 bits.
inline std::uint64_t wide_mask(const Warp& w, unsigned lane) {
  return static_cast<std::uint64_t>(
      static_cast<std::int64_t>(static_cast<std::int32_t>(w.lane_mask.v[lane])));
}

inline void put64(Warp& w, std::uint32_t offset, const std::uint64_t* value) {
  Lanes64& d = w.r64(offset);
  if (w.full()) {
    for (unsigned l = 0; l < kLanes; ++l) d.v[l] = value[l];
  } else {
    for (unsigned l = 0; l < kLanes; ++l) {
      const std::uint64_t take = wide_mask(w, l);
      d.v[l] = (value[l] & take) | (d.v[l] & ~take);
    }
  }
}

// d = f(lane) in the active lanes. f must not depend on what other lanes write.
template <class F>
inline void each32(Warp& w, std::uint32_t offset, F&& f) {
  Lanes32& d = w.r32(offset);
  if (w.full()) {
    for (unsigned l = 0; l < kLanes; ++l) d.v[l] = f(l);
  } else {
    for (unsigned l = 0; l < kLanes; ++l) {
      const std::uint32_t value = f(l);
      d.v[l] = (value & w.lane_mask.v[l]) | (d.v[l] & ~w.lane_mask.v[l]);
    }
  }
}

template <class F>
inline void each64(Warp& w, std::uint32_t offset, F&& f) {
  Lanes64& d = w.r64(offset);
  if (w.full()) {
    for (unsigned l = 0; l < kLanes; ++l) d.v[l] = f(l);
  } else {
    for (unsigned l = 0; l < kLanes; ++l) {
      const std::uint64_t value = f(l), take = wide_mask(w, l);
      d.v[l] = (value & take) | (d.v[l] & ~take);
    }
  }
}

}  // namespace assay::sim
