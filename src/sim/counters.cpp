#include "sim/counters.h"

#include <algorithm>

namespace assay::sim {

const char* to_string(Unit u) {
  static constexpr std::array<const char*, kUnits> kNames{
      "issue",          "fp32",          "integer",     "fp16",      "fp64",      "special",
      "conversion",     "load_store",    "shared",      "constant",  "sectors",   "tensor_f64",
      "tensor_tf32",    "tensor_f16",    "tensor_f8",   "tensor_s8", "tensor_s4", "tensor_b1",
      "warpgroup_tf32", "warpgroup_f16", "warpgroup_s8"};
  return kNames[static_cast<std::size_t>(u)];
}

UnitWork& UnitWork::operator+=(const UnitWork& o) {
  for (std::size_t u = 0; u < kUnits; ++u) of[u] += o.of[u];
  return *this;
}

void UnitWork::raise_to(const UnitWork& o) {
  for (std::size_t u = 0; u < kUnits; ++u) of[u] = std::max(of[u], o.of[u]);
}

Counters& Counters::operator+=(const Counters& o) {
  global_load_bytes += o.global_load_bytes;
  global_store_bytes += o.global_store_bytes;
  global_load_sectors += o.global_load_sectors;
  global_store_sectors += o.global_store_sectors;
  constant_load_bytes += o.constant_load_bytes;
  global_atomics += o.global_atomics;
  atomic_sectors += o.atomic_sectors;
  atomic_passes += o.atomic_passes;
  atomic_hot_passes += o.atomic_hot_passes;
  shared_loads += o.shared_loads;
  shared_stores += o.shared_stores;
  shared_atomics += o.shared_atomics;
  shared_passes += o.shared_passes;
  shared_replays += o.shared_replays;
  shared_bytes += o.shared_bytes;
  local_load_bytes += o.local_load_bytes;
  local_store_bytes += o.local_store_bytes;
  local_sectors += o.local_sectors;
  instructions += o.instructions;
  integer += o.integer;
  fp32 += o.fp32;
  fp16 += o.fp16;
  fp64 += o.fp64;
  conversion += o.conversion;
  special += o.special;
  memory += o.memory;
  control += o.control;
  warp += o.warp;
  tensor += o.tensor;
  other += o.other;
  active_lanes += o.active_lanes;
  tensor_flops += o.tensor_flops;
  fp32_flops += o.fp32_flops;
  barriers += o.barriers;
  blocks += o.blocks;
  warps += o.warps;
  launches += o.launches;
  total += o.total;
  critical += o.critical;
  longest_warp += o.longest_warp;
  return *this;
}

}  // namespace assay::sim
