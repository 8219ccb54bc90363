// Data sheets of GPUs, and the time that a kernel's counted work takes on one by a model. The time is
// modelled, never measured: it knows no caches, no latencies and no overlap between launches.
//
//   time = launches * launch latency + copies between host and device / host link
//        + max(memory, issue, arithmetic, tensor cores, shared memory)
//
//   memory      32-byte sectors moved to and from global memory, and local memory, / memory bandwidth
//   issue       warp instructions / (4 schedulers * clock * busy multiprocessors)
//   arithmetic  the slowest of the fp32, integer, fp64 and special-function pipes: 32 lanes a warp instruction /
//               (lanes per clock * clock * busy multiprocessors)
//   tensor      floating-point operations of matrix instructions / the dense bf16 rate, whatever their type
//   shared      passes / (1 per clock * clock * busy multiprocessors)
//
// Busy multiprocessors are the blocks of an average launch, at most all. The floor of a problem is its fewest
// launches and the larger of its least bytes and least flops (fp32) at the data sheet's rates.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assay/challenge.h"
#include "results/simulated_work.h"

namespace assay {

struct Gpu {
  std::string name, source;  // "H200"; where the figures come from
  double multiprocessors = 0;
  double clock_hz = 0;  // boost
  double memory_bytes_per_s = 0;
  double host_bytes_per_s = 0;              // each way
  double fp32_flops = 0, tensor_flops = 0;  // per second; tensor: bf16, dense
  // Of one multiprocessor.
  double fp32_lanes = 0, integer_lanes = 0, fp64_lanes = 0, special_lanes = 0;
  double launch_s = 0;
};

// The data sheets that assay brings, by file name: "a100", "h200", "rtx4090".
std::vector<std::string> gpu_names();
// Throws Error on an unknown name.
const Gpu& gpu(std::string_view name);
inline constexpr const char* kDefaultGpu = "h200";

// Of a data sheet's JSON text; throws Error naming what is missing.
Gpu parse_gpu(std::string_view json);

struct ModelledTime {
  double launches = 0, copies = 0;  // seconds, as are all
  double memory = 0, issue = 0, arithmetic = 0, tensor = 0, shared = 0;

  double total() const;
  const char* bound() const;  // the name of the largest: "memory", "issue", ...
};

ModelledTime modelled_time(const SimulatedWork&, const Gpu&);

// Seconds that no implementation can beat by this model.
double floor_time(const LeastWork&, const Gpu&);

}  // namespace assay
