// Data sheets of GPUs, and the time that a kernel's counted work takes on one by a model. The time
// is modelled, never measured: it knows no caches, no latencies and no overlap between launches.
//
//   time = launches * launch latency + copies between host and device / host link
//        + max(memory, atomics, path to memory, issue, longest warp, arithmetic, loads, tensor
//        cores, shared memory)
//
// Of the whole GPU:
//   memory       32-byte sectors moved to and from global memory, and local memory, / memory
//                bandwidth; of atomics each sector is read and written
//   atomics      passes of the busiest slice of the L2 cache / 1 a clock
// Of a multiprocessor, for each unit max(critical, total / multiprocessors) / its rate (see
// sim::Counters: critical is what the longest block took of it, or an equal share of all):
//   path         sectors / 128 bytes a clock: the L1 cache
//   issue        machine instructions / 4 a clock; longest warp: its instructions / 1 a clock
//   arithmetic   the slowest of the fp32, integer, fp16, fp64, special-function and conversion
//                pipes: 32 lanes a machine instruction / lanes per clock
//   loads        memory instructions and shuffles / 1 a clock, or distinct addresses of constants /
//                1 a clock
//   tensor       operations of matrix instructions / the dense rate of their type, all types one
//                after another
//   shared       passes / 1 a clock
//
// The floor of a problem is its fewest launches and the larger of its least bytes and least flops,
// at the data sheet's rates; flops at the fastest that there is, fp32 or matrices of 8 bits and
// more. So no implementation can beat it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "assay/challenge.h"
#include "records/simulated_work.h"

namespace assay {

struct Gpu {
  std::string name, source;  // "H200"; where the figures come from
  std::string sheet;         // SHA-256 of the data sheet's text
  double multiprocessors = 0;
  double clock_hz = 0;  // boost
  double memory_bytes_per_s = 0;
  double host_bytes_per_s = 0;  // each way
  double fp32_flops = 0;        // per second
  double launch_s = 0;
  // Of each sim::Unit, what one multiprocessor does in a second.
  std::array<double, sim::kUnits> rate{};

  double rate_of(sim::Unit u) const { return rate[static_cast<std::size_t>(u)]; }
  double fastest_flops() const;  // of the whole GPU, in the precision in which it is fastest
};

// The data sheets that assay brings, by file name: "a100", "h100", "h200", "rtx4090".
std::vector<std::string> gpu_names();
// Throws Error on an unknown name.
const Gpu& gpu_named(std::string_view name);
inline constexpr const char* kDefaultGpu = "h200";
// The data sheet, by file name, of a GPU that calls itself so: "NVIDIA H100 80GB HBM3" has that of
// "H100". Throws Error where there is none.
std::string sheet_of(std::string_view device_name);

// Of a data sheet's JSON text; throws Error naming what is missing.
Gpu parse_gpu(std::string_view json);

struct ModelledTime {
  double launches = 0, copies = 0;  // seconds, as are all
  double memory = 0, atomics = 0, path = 0, issue = 0, warp = 0, arithmetic = 0, loads = 0,
         tensor = 0, shared = 0;

  double total() const;
  const char* bound() const;  // the name of the largest: "memory", "issue", ...
};

ModelledTime modelled_time(const SimulatedWork&, const Gpu&);

// Seconds that no implementation can beat by this model.
double floor_time(const LeastWork&, const Gpu&);

}  // namespace assay
