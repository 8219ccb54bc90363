#include "grade/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "util/files.h"

namespace assay {

extern const std::string_view kGpuA100, kGpuH200, kGpuRtx4090;  // gpus/*.json

namespace {

constexpr double kSectorBytes = 32, kSchedulers = 4, kWarp = 32;

const std::map<std::string, Gpu, std::less<>>& data_sheets() {
  static const std::map<std::string, Gpu, std::less<>> sheets{{"a100", parse_gpu(kGpuA100)},
                                                              {"h200", parse_gpu(kGpuH200)},
                                                              {"rtx4090", parse_gpu(kGpuRtx4090)}};
  return sheets;
}

using Part = std::pair<const char*, double>;

std::array<Part, 5> competing(const ModelledTime& t) {
  return {Part{"memory", t.memory}, Part{"issue", t.issue}, Part{"arithmetic", t.arithmetic},
          Part{"tensor cores", t.tensor}, Part{"shared memory", t.shared}};
}

Part largest(const ModelledTime& t) {
  const auto parts = competing(t);
  return *std::max_element(parts.begin(), parts.end(),
                           [](const Part& a, const Part& b) { return a.second < b.second; });
}

}  // namespace

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  for (const auto& [name, sheet] : data_sheets()) names.push_back(name);
  return names;
}

const Gpu& gpu(std::string_view name) {
  const auto found = data_sheets().find(name);
  if (found != data_sheets().end()) return found->second;
  throw Error(fmt::format("no data sheet of a GPU named '{}': there are {}", name,
                          fmt::join(gpu_names(), ", ")));
}

Gpu parse_gpu(std::string_view text) {
  try {
    const auto j = nlohmann::json::parse(text);
    const auto positive = [](const nlohmann::json& parent, const char* key) {
      const double value = parent.at(key).get<double>();
      if (!(value > 0)) throw Error(fmt::format("a GPU's data sheet: {} must be positive", key));
      return value;
    };
    const auto& lanes = j.at("lanes_per_clock");
    return {j.at("name"),
            j.at("source"),
            positive(j, "multiprocessors"),
            positive(j, "clock_hz"),
            positive(j, "memory_bytes_per_s"),
            positive(j, "host_bytes_per_s"),
            positive(j, "fp32_flops"),
            positive(j, "tensor_flops"),
            positive(lanes, "fp32"),
            positive(lanes, "integer"),
            positive(lanes, "fp64"),
            positive(lanes, "special"),
            positive(j, "launch_s")};
  } catch (const nlohmann::json::exception& e) {
    throw Error(fmt::format("a GPU's data sheet: {}", e.what()));
  }
}

double ModelledTime::total() const { return launches + copies + largest(*this).second; }

const char* ModelledTime::bound() const {
  const Part part = largest(*this);
  return launches + copies > part.second ? "launches and copies" : part.first;
}

ModelledTime modelled_time(const SimulatedWork& work, const Gpu& g) {
  const sim::Counters& c = work.counters;
  const auto number = [](std::uint64_t n) { return static_cast<double>(n); };
  ModelledTime t;
  t.launches = g.launch_s * number(c.launches + work.transfers);
  t.copies = number(work.to_device_bytes + work.to_host_bytes) / g.host_bytes_per_s;
  const double moved = kSectorBytes * number(c.global_load_sectors + c.global_store_sectors) +
                       number(c.local_load_bytes + c.local_store_bytes) + number(work.within_bytes);
  t.memory = moved / g.memory_bytes_per_s;
  if (c.launches == 0) return t;
  const double blocks = std::max(1.0, number(c.blocks) / number(c.launches));
  const double clocks =
      g.clock_hz * std::min(blocks, g.multiprocessors);  // per second, of all that are busy
  t.issue = number(c.instructions) / (kSchedulers * clocks);
  const auto pipe = [&](std::uint64_t instructions, double lanes) {
    return kWarp * number(instructions) / (lanes * clocks);
  };
  t.arithmetic = std::max({pipe(c.fp32, g.fp32_lanes), pipe(c.integer, g.integer_lanes),
                           pipe(c.fp64, g.fp64_lanes), pipe(c.special, g.special_lanes)});
  t.tensor = number(c.tensor_flops) / (g.tensor_flops * std::min(1.0, blocks / g.multiprocessors));
  t.shared = number(c.shared_passes) / clocks;
  return t;
}

double floor_time(const LeastWork& least, const Gpu& g) {
  return least.launches * g.launch_s +
         std::max(least.bytes / g.memory_bytes_per_s, least.flops / g.fp32_flops);
}

}  // namespace assay
