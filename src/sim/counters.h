// What a launch did, counted exactly: the same on every run and machine, for any number of host
// threads. Caches are not modelled: a sector counts each time it is requested.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace assay::sim {

// Of the simulated GPU, which is in the H100 class: see device.h. Sources: gpus/h200.json.
inline constexpr std::uint32_t kMultiprocessors = 132, kL2Slices = 80;

// The parts of a multiprocessor that do its work; a block may have to wait for any of them. Their
// counts are in different units: machine instructions of a warp (the fewest that the instruction
// takes, see decode/price.h), passes, sectors, or operations of matrix instructions by the type of
// their multiplicands.
enum class Unit : std::uint8_t {
  issue,  // machine instructions of every kind
  fp32,   // machine instructions, as are all up to load_store
  integer,
  fp16,
  fp64,
  special,  // MUFU; also bit counts and conversions of 64 bits
  conversion,
  load_store,  // accesses of memory and shuffles
  shared,      // passes over shared memory
  constant,    // distinct addresses that a warp requests from the constant cache
  sectors,     // of global and local memory, as requested from the L1 cache
  tensor_f64,  // operations, as are all that follow; of single warps
  tensor_tf32,
  tensor_f16,  // and bf16
  tensor_f8,
  tensor_s8,
  tensor_s4,
  tensor_b1,
  warpgroup_tf32,  // of warpgroups
  warpgroup_f16,
  warpgroup_s8,
};
inline constexpr std::size_t kUnits = 21;
const char* to_string(Unit);

struct UnitWork {
  std::array<std::uint64_t, kUnits> of{};

  std::uint64_t& operator[](Unit u) { return of[static_cast<std::size_t>(u)]; }
  std::uint64_t operator[](Unit u) const { return of[static_cast<std::size_t>(u)]; }
  UnitWork& operator+=(const UnitWork&);
  void raise_to(const UnitWork&);  // each unit to the larger of the two
  bool operator==(const UnitWork&) const = default;
};

struct Counters {
  // Global memory, constants and device globals. Bytes: the sum of what each active lane asks for.
  // Sectors: the distinct aligned 32-byte pieces that one warp instruction touches.
  std::uint64_t global_load_bytes = 0, global_store_bytes = 0;
  std::uint64_t global_load_sectors = 0, global_store_sectors = 0;
  std::uint64_t constant_load_bytes = 0;  // of constants: not in global_*

  // atom and red on global memory, not included in global_*: lanes; sectors; passes over a sector,
  // one for each lane that accesses the most accessed word; and the passes of the busiest L2 slice,
  // summed over the launches. Addresses are spread over kL2Slices slices.
  std::uint64_t global_atomics = 0, atomic_sectors = 0, atomic_passes = 0, atomic_hot_passes = 0;

  // Shared memory: warp instructions, and the passes they need beyond one because several distinct
  // 4-byte words lie in one of the 32 banks. Accesses of 8 (16) bytes go by half (quarter) warps,
  // each of which is a separate pass that is not a replay. For atomics, each further lane that
  // accesses the same word is another pass, and a replay. The shared memory of another block of the
  // cluster takes two passes for each sector, none of them a replay.
  std::uint64_t shared_loads = 0, shared_stores = 0, shared_atomics = 0;
  std::uint64_t shared_passes = 0;   // all passes
  std::uint64_t shared_replays = 0;  // those due to conflicts
  std::uint64_t shared_bytes = 0;    // in both directions

  // Per-thread arrays. The lanes' words are adjacent; sectors count as for global memory.
  std::uint64_t local_load_bytes = 0, local_store_bytes = 0, local_sectors = 0;

  // Warp instructions by class, including those whose guard is false in every lane. They sum to
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

  // What all blocks took of each unit; and the least that one multiprocessor had to do, summed over
  // the launches: for each unit the larger of the maximum that one block took and an equal share of
  // the total, 1 / kMultiprocessors. longest_warp: instructions of the longest warp, likewise
  // summed.
  UnitWork total, critical;
  std::uint64_t longest_warp = 0;

  Counters& operator+=(const Counters&);
  bool operator==(const Counters&) const = default;
  double divergence_efficiency() const {
    return instructions == 0
               ? 1
               : static_cast<double>(active_lanes) / (32.0 * static_cast<double>(instructions));
  }
};

}  // namespace assay::sim
