// What a case did on the simulated GPU, as metrics of its result: everything that a grade may use.
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
  sim::Counters counters;  // of the kernels, including `launches`
  // The runtime's copies and fills: bytes from host to device (launch parameters included), from
  // device to host, and moved within the device (a copy reads and writes); and the number of
  // transfers. One between host and device counts once for every 4 MiB.
  std::uint64_t to_device_bytes = 0, to_host_bytes = 0, within_bytes = 0, transfers = 0;
  // Bytes from device to host in the phases before the one that the rest describes, that is, what
  // the host may know already.
  std::uint64_t to_host_before = 0;
  std::uint64_t device_bytes =
      0;  // most device memory in use besides the case's buffers, in any phase
};

// The metric of each field is "sim_" and its name; for a unit's work, "sim_total_" or
// "sim_critical_" and the unit's name. In timed cases the challenge's own kernels, if any, have
// metrics next to the submission's, with these prefixes.
inline constexpr const char *kNaivePrefix = "naive_", *kParPrefix = "par_";
// Metrics of timed cases: the challenge's LeastWork.
inline constexpr const char *kLeastBytes = "least_bytes", *kLeastFlops = "least_flops",
                            *kLeastLaunches = "least_launches";

void add_metrics(std::vector<Metric>& metrics, const SimulatedWork& work,
                 const std::string& prefix = "");

// The inverse; absent if a field is missing.
std::optional<SimulatedWork> simulated_work(std::span<const Metric> metrics,
                                            const std::string& prefix = "");

void add_metrics(std::vector<Metric>& metrics, const LeastWork&);
std::optional<LeastWork> least_work(std::span<const Metric> metrics);

}  // namespace assay
