// What a case did on the simulated GPU, as the metrics of its result: everything that a grade may
// be made of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/results.h"
#include "sim/counters.h"

namespace assay {

struct SimulatedWork {
  sim::Counters counters;  // of the kernels; `launches` among them
  // By the runtime's copies and fills: bytes from host to device, parameters of launches included,
  // back, and moved within the device, where a copy reads and writes; and how many there were, of
  // which one between host and device counts once for every 4 MiB.
  std::uint64_t to_device_bytes = 0, to_host_bytes = 0, within_bytes = 0, transfers = 0;
  // Bytes from device to host in the phases before the one that the rest is about: what the host
  // may know already.
  std::uint64_t to_host_before = 0;
  std::uint64_t device_bytes =
      0;  // most device memory in use besides the case's buffers, in any phase
};

// The metric of each field is "sim_" and its name; of a unit's work "sim_total_" or "sim_critical_"
// and the unit's. Of a timed case the submission's work stands beside that of the challenge's own
// kernels, where it has them, whose metrics have a prefix.
inline constexpr const char *kNaivePrefix = "naive_", *kParPrefix = "par_";
// Metrics of timed cases: the challenge's LeastWork.
inline constexpr const char *kLeastBytes = "least_bytes", *kLeastFlops = "least_flops",
                            *kLeastLaunches = "least_launches";

void add_metrics(std::vector<Metric>& metrics, const SimulatedWork& work,
                 const std::string& prefix = "");

// The reverse; nothing if a field is missing.
std::optional<SimulatedWork> simulated_work(std::span<const Metric> metrics,
                                            const std::string& prefix = "");

void add_metrics(std::vector<Metric>& metrics, const LeastWork&);
std::optional<LeastWork> least_work(std::span<const Metric> metrics);

}  // namespace assay
