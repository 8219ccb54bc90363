#include "records/simulated_work.h"

#include <array>

#include "records/lookup.h"

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
                               CounterField FIELD(constant_load_bytes),
                               CounterField FIELD(global_atomics),
                               CounterField FIELD(atomic_sectors),
                               CounterField FIELD(atomic_passes),
                               CounterField FIELD(atomic_hot_passes),
                               CounterField FIELD(shared_loads),
                               CounterField FIELD(shared_stores),
                               CounterField FIELD(shared_atomics),
                               CounterField FIELD(shared_passes),
                               CounterField FIELD(shared_replays),
                               CounterField FIELD(shared_bytes),
                               CounterField FIELD(local_load_bytes),
                               CounterField FIELD(local_store_bytes),
                               CounterField FIELD(local_sectors),
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
                               CounterField FIELD(launches),
                               CounterField FIELD(longest_warp)};
#undef FIELD

struct UnitsField {
  const char* name;
  sim::UnitWork Counters::*member;
};
constexpr std::array kUnitWork{UnitsField{"sim_total_", &Counters::total},
                               UnitsField{"sim_critical_", &Counters::critical}};

static_assert((kCounters.size() + kUnitWork.size() * sim::kUnits) * sizeof(std::uint64_t) ==
                  sizeof(Counters),
              "a counter has no metric");

struct WorkField {
  const char* name;
  std::uint64_t SimulatedWork::*member;
};
constexpr std::array kWork{WorkField{"sim_to_device_bytes", &SimulatedWork::to_device_bytes},
                           WorkField{"sim_to_host_bytes", &SimulatedWork::to_host_bytes},
                           WorkField{"sim_within_bytes", &SimulatedWork::within_bytes},
                           WorkField{"sim_transfers", &SimulatedWork::transfers},
                           WorkField{"sim_to_host_before", &SimulatedWork::to_host_before},
                           WorkField{"sim_device_bytes", &SimulatedWork::device_bytes}};

// Calls f(name, value) for every field of Work, a possibly const SimulatedWork.
template <class Work, class F>
void for_each_field(Work& work, F&& f) {
  for (const CounterField& field : kCounters)
    f(std::string(field.name), work.counters.*field.member);
  for (const UnitsField& field : kUnitWork) {
    for (std::size_t u = 0; u < sim::kUnits; ++u) {
      f(std::string(field.name) + sim::to_string(static_cast<sim::Unit>(u)),
        (work.counters.*field.member).of[u]);
    }
  }
  for (const WorkField& field : kWork) f(std::string(field.name), work.*field.member);
}

}  // namespace

void add_metrics(std::vector<Metric>& metrics, const SimulatedWork& work,
                 const std::string& prefix) {
  for_each_field(work, [&](const std::string& name, std::uint64_t value) {
    metrics.push_back({prefix + name, static_cast<double>(value)});
  });
}

void add_metrics(std::vector<Metric>& metrics, const LeastWork& least) {
  metrics.push_back({kLeastBytes, least.bytes});
  metrics.push_back({kLeastFlops, least.flops});
  metrics.push_back({kLeastLaunches, least.launches});
}

std::optional<LeastWork> least_work(std::span<const Metric> metrics) {
  const double *bytes = find_metric(metrics, kLeastBytes),
               *flops = find_metric(metrics, kLeastFlops),
               *launches = find_metric(metrics, kLeastLaunches);
  if (!bytes || !flops || !launches) return std::nullopt;
  return LeastWork{.bytes = *bytes, .flops = *flops, .launches = *launches};
}

std::optional<SimulatedWork> simulated_work(std::span<const Metric> metrics,
                                            const std::string& prefix) {
  SimulatedWork work;
  bool complete = true;
  for_each_field(work, [&](const std::string& name, std::uint64_t& to) {
    const double* value = find_metric(metrics, prefix + name);
    if (value == nullptr || !(*value >= 0)) {
      complete = false;
    } else {
      to = static_cast<std::uint64_t>(*value);
    }
  });
  return complete ? std::optional(work) : std::nullopt;
}

}  // namespace assay
