// What a launch did, counted exactly: the same on every run and machine, and whatever the number of
// host threads. Caches are not modelled: a sector counts each time it is requested.
#pragma once

#include <cstdint>

namespace assay::sim {

struct Counters {
  // Global memory, constants and device globals. Bytes: the sum over active lanes of what each asks
  // for. Sectors: the distinct aligned 32-byte pieces that one warp instruction touches.
  std::uint64_t global_load_bytes = 0, global_store_bytes = 0;
  std::uint64_t global_load_sectors = 0, global_store_sectors = 0;
  std::uint64_t global_atomics = 0;       // lanes of atom and red on global memory
  std::uint64_t constant_load_bytes = 0;  // ld.const: not in global_*

  // Shared memory: warp instructions, and the passes they need beyond one because several distinct
  // 4-byte words lie in one of the 32 banks. Accesses of 8 (16) bytes go by half (quarter) warps, of
  // which each is a pass of its own that is not a replay.
  std::uint64_t shared_loads = 0, shared_stores = 0, shared_atomics = 0;
  std::uint64_t shared_passes = 0;   // all passes
  std::uint64_t shared_replays = 0;  // those due to conflicts
  std::uint64_t shared_bytes = 0;    // both ways

  std::uint64_t local_load_bytes = 0, local_store_bytes = 0;  // spills and per-thread arrays

  // Warp instructions by class; one with a false guard in every lane counts too. Their sum is
  // `instructions`.
  std::uint64_t instructions = 0;
  std::uint64_t integer = 0, fp32 = 0, fp16 = 0, fp64 = 0, conversion = 0, special = 0 /* MUFU */,
                memory = 0, control = 0, warp = 0 /* shfl, vote, match, redux */, tensor = 0,
                other = 0;
  std::uint64_t active_lanes = 0;  // sum over warp instructions: / (32 instructions) = efficiency
  std::uint64_t tensor_flops = 0;  // 2 m n k of every mma
  std::uint64_t fp32_flops = 0;    // lanes; an fma counts 2

  std::uint64_t barriers = 0;  // bar.sync and barrier.sync completed, per block
  std::uint64_t blocks = 0, warps = 0, launches = 0;

  Counters& operator+=(const Counters&);
  bool operator==(const Counters&) const = default;
  double divergence_efficiency() const {
    return instructions == 0
               ? 1
               : static_cast<double>(active_lanes) / (32.0 * static_cast<double>(instructions));
  }
};

}  // namespace assay::sim
