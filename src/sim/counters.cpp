#include "sim/counters.h"

namespace assay::sim {

Counters& Counters::operator+=(const Counters& o) {
  global_load_bytes += o.global_load_bytes;
  global_store_bytes += o.global_store_bytes;
  global_load_sectors += o.global_load_sectors;
  global_store_sectors += o.global_store_sectors;
  global_atomics += o.global_atomics;
  constant_load_bytes += o.constant_load_bytes;
  shared_loads += o.shared_loads;
  shared_stores += o.shared_stores;
  shared_atomics += o.shared_atomics;
  shared_passes += o.shared_passes;
  shared_replays += o.shared_replays;
  shared_bytes += o.shared_bytes;
  local_load_bytes += o.local_load_bytes;
  local_store_bytes += o.local_store_bytes;
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
  return *this;
}

}  // namespace assay::sim
