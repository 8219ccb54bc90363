#include "results/simulated_work.h"

#include <array>

#include "results/lookup.h"

namespace assay {
namespace {

using sim::Counters;

struct CounterField {
  const char* name;
  std::uint64_t Counters::*member;
};

#define FIELD(name) \
  { "sim_" #name, &Counters::name }
constexpr std::array kCounters{CounterField FIELD(global_load_bytes),
                               CounterField FIELD(global_store_bytes),
                               CounterField FIELD(global_load_sectors),
                               CounterField FIELD(global_store_sectors),
                               CounterField FIELD(global_atomics),
                               CounterField FIELD(constant_load_bytes),
                               CounterField FIELD(shared_loads),
                               CounterField FIELD(shared_stores),
                               CounterField FIELD(shared_atomics),
                               CounterField FIELD(shared_passes),
                               CounterField FIELD(shared_replays),
                               CounterField FIELD(shared_bytes),
                               CounterField FIELD(local_load_bytes),
                               CounterField FIELD(local_store_bytes),
                               CounterField FIELD(instructions),
                               CounterField FIELD(integer),
                               CounterField FIELD(fp32),
                               CounterField FIELD(fp16),
                               CounterField FIELD(fp64),
                               CounterField FIELD(conversion),
                               CounterField FIELD(special),
                               CounterField FIELD(memory),
                               CounterField FIELD(control),
                               CounterField FIELD(warp),
                               CounterField FIELD(tensor),
                               CounterField FIELD(other),
                               CounterField FIELD(active_lanes),
                               CounterField FIELD(tensor_flops),
                               CounterField FIELD(fp32_flops),
                               CounterField FIELD(barriers),
                               CounterField FIELD(blocks),
                               CounterField FIELD(warps),
                               CounterField FIELD(launches)};
#undef FIELD
static_assert(kCounters.size() * sizeof(std::uint64_t) == sizeof(Counters),
              "a counter has no metric");

struct WorkField {
  const char* name;
  std::uint64_t SimulatedWork::*member;
};
constexpr std::array kWork{WorkField{"sim_to_device_bytes", &SimulatedWork::to_device_bytes},
                           WorkField{"sim_to_host_bytes", &SimulatedWork::to_host_bytes},
                           WorkField{"sim_within_bytes", &SimulatedWork::within_bytes},
                           WorkField{"sim_transfers", &SimulatedWork::transfers},
                           WorkField{"sim_device_bytes", &SimulatedWork::device_bytes}};

}  // namespace

void add_metrics(std::vector<Metric>& metrics, const SimulatedWork& work,
                 const std::string& prefix) {
  for (const CounterField& f : kCounters) {
    metrics.push_back({prefix + f.name, static_cast<double>(work.counters.*f.member)});
  }
  for (const WorkField& f : kWork)
    metrics.push_back({prefix + f.name, static_cast<double>(work.*f.member)});
}

std::optional<LeastWork> least_work(std::span<const Metric> metrics) {
  const double *bytes = find_metric(metrics, kLeastBytes),
               *flops = find_metric(metrics, kLeastFlops),
               *launches = find_metric(metrics, kLeastLaunches);
  if (!bytes || !flops || !launches) return std::nullopt;
  return LeastWork{*bytes, *flops, *launches};
}

std::optional<SimulatedWork> simulated_work(std::span<const Metric> metrics,
                                            const std::string& prefix) {
  SimulatedWork work;
  const auto read = [&](const char* name, std::uint64_t& to) {
    const double* value = find_metric(metrics, prefix + name);
    if (value == nullptr || !(*value >= 0)) return false;
    to = static_cast<std::uint64_t>(*value);
    return true;
  };
  for (const CounterField& f : kCounters) {
    if (!read(f.name, work.counters.*f.member)) return std::nullopt;
  }
  for (const WorkField& f : kWork) {
    if (!read(f.name, work.*f.member)) return std::nullopt;
  }
  return work;
}

}  // namespace assay
