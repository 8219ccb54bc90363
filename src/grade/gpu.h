// GPU data sheets, and a model of the time a kernel's counted work takes on one. The time is
// modelled, never measured: the model ignores caches, latencies and overlap between launches.
//
//   time = launches * launch latency + copies between host and device / host link
//        + max(memory, atomics, path to memory, issue, longest warp, arithmetic, loads, tensor
//        cores, shared memory)
//
// For the whole GPU:
//   memory       32-byte sectors moved to and from global and local memory / memory bandwidth; each
//                sector of an atomic counts twice, as read and written
//   atomics      passes of the busiest slice of the L2 cache / 1 a clock
// Per multiprocessor, for each unit max(critical, total / multiprocessors) / its rate (see
// sim::Counters: critical is the longest block's use of the unit, or an equal share of all use):
//   path         sectors / 128 bytes a clock: the L1 cache
//   issue        machine instructions / 4 a clock; longest warp: its instructions / 1 a clock
//   arithmetic   the slowest of the fp32, integer, fp16, fp64, special-function and conversion
//                pipes: 32 lanes per machine instruction / lanes per clock
//   loads        memory instructions and shuffles / 1 a clock, or distinct addresses of constants /
//                1 a clock
//   tensor       operations of matrix instructions / the dense rate of their type, summed over
//                types; those of single warps at the share of it that mma.sync reaches
//   shared       passes / 1 a clock
//
// The floor of a problem is the time of its fewest launches plus the larger of its least bytes and
// least flops at the data sheet's rates. Flops are taken at the fastest rate available, fp32 or
// matrices of 8 bits and more. So no implementation can beat the floor.
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
  double matrix_flops = 0;      // of the fastest type that both warps and warpgroups multiply
  double launch_s = 0;
  // For each sim::Unit, its rate per second on one multiprocessor.
  std::array<double, sim::kUnits> rate{};

  double rate_of(sim::Unit u) const { return rate[static_cast<std::size_t>(u)]; }
  double fastest_flops() const;  // of the whole GPU, in its fastest precision
};

// The data sheets built into assay, by file name: "a100", "h100", "h200", "rtx4090".
std::vector<std::string> gpu_names();
// Throws Error on an unknown name.
const Gpu& gpu_named(std::string_view name);
inline constexpr const char* kDefaultGpu = "h200";
// The file name of the data sheet for a GPU's device name: that of "H100" for "NVIDIA H100 80GB
// HBM3". Throws Error if there is none.
std::string sheet_of(std::string_view device_name);

// Parses a data sheet's JSON text; throws Error naming what is missing.
Gpu parse_gpu(std::string_view json);

struct ModelledTime {
  double launches = 0, copies = 0;  // all in seconds
  double memory = 0, atomics = 0, path = 0, issue = 0, warp = 0, arithmetic = 0, loads = 0,
         tensor = 0, shared = 0;

  double total() const;
  const char* bound() const;  // the name of the largest: "memory", "issue", ...
};

ModelledTime modelled_time(const SimulatedWork&, const Gpu&);

// Bytes that kernels move between the multiprocessors and memory: whole sectors, those of atomics
// twice.
double bytes_moved(const sim::Counters&);

// Seconds that no implementation can beat by this model.
double floor_time(const LeastWork&, const Gpu&);

}  // namespace assay
