#include "grade/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "assay/error.h"
#include "util/sha256.h"

namespace assay {

extern const std::string_view kGpuA100, kGpuH100, kGpuH200, kGpuRtx4090;  // gpus/*.json

namespace {

using sim::Unit;

constexpr double kSectorBytes = 32, kWarp = 32;
// Per multiprocessor and clock: four schedulers; 128 bytes from the L1 cache, hit or not; one pass
// over shared memory's 32 banks of 4 bytes.
constexpr double kSchedulers = 4, kPathBytes = 128, kPasses = 1;

constexpr std::array kPipes{Unit::fp32,    Unit::integer,    Unit::fp16,      Unit::fp64,
                            Unit::special, Unit::conversion, Unit::load_store};
// Matrix operations of single warps and of warpgroups.
constexpr std::array kTensor{Unit::tensor_f64, Unit::tensor_tf32, Unit::tensor_f16, Unit::tensor_f8,
                             Unit::tensor_s8,  Unit::tensor_s4,   Unit::tensor_b1};
constexpr std::array kWarpgroup{Unit::warpgroup_tf32, Unit::warpgroup_f16, Unit::warpgroup_s8};
// Types that warpgroups have too, on a GPU that has warpgroups.
constexpr std::array kOfBoth{Unit::tensor_tf32, Unit::tensor_f16, Unit::tensor_f8, Unit::tensor_s8};

// "tensor_f16", "warpgroup_f16": "f16"
std::string type_of(Unit u) {
  const std::string_view name = sim::to_string(u);
  return std::string(name.substr(name.find('_') + 1));
}

const std::map<std::string, Gpu, std::less<>>& data_sheets() {
  static const std::map<std::string, Gpu, std::less<>> sheets{{"a100", parse_gpu(kGpuA100)},
                                                              {"h100", parse_gpu(kGpuH100)},
                                                              {"h200", parse_gpu(kGpuH200)},
                                                              {"rtx4090", parse_gpu(kGpuRtx4090)}};
  return sheets;
}

using Part = std::pair<const char*, double>;

std::array<Part, 9> competing(const ModelledTime& t) {
  return {
      Part{"memory", t.memory}, Part{"atomics", t.atomics},     Part{"path to memory", t.path},
      Part{"issue", t.issue},   Part{"longest warp", t.warp},   Part{"arithmetic", t.arithmetic},
      Part{"loads", t.loads},   Part{"tensor cores", t.tensor}, Part{"shared memory", t.shared}};
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

const Gpu& gpu_named(std::string_view name) {
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
    Gpu g{.name = j.at("name"),
          .source = j.at("source"),
          .sheet = sha256_hex(text),
          .multiprocessors = positive(j, "multiprocessors"),
          .clock_hz = positive(j, "clock_hz"),
          .memory_bytes_per_s = positive(j, "memory_bytes_per_s"),
          .host_bytes_per_s = positive(j, "host_bytes_per_s"),
          .fp32_flops = positive(j, "fp32_flops"),
          .launch_s = positive(j, "launch_s")};
    const auto set = [&](Unit u, double rate) { g.rate[static_cast<std::size_t>(u)] = rate; };
    for (const Unit u : kPipes) {
      set(u, g.clock_hz * positive(j.at("lanes_per_clock"), sim::to_string(u)) / kWarp);
    }
    const auto flops = [&](Unit u) { return positive(j.at("tensor_flops"), type_of(u).c_str()); };
    const double share = positive(j, "mma_share");
    if (share > 1) throw Error("a GPU's data sheet: mma_share must not be larger than 1");
    for (const Unit u : kWarpgroup) set(u, flops(u) / g.multiprocessors);
    for (const Unit u : kTensor) set(u, flops(u) / g.multiprocessors);
    for (const Unit u : kOfBoth) {
      g.matrix_flops = std::max(g.matrix_flops, flops(u));
      set(u, share * g.rate_of(u));
    }
    set(Unit::issue, g.clock_hz * kSchedulers);
    set(Unit::shared, g.clock_hz * kPasses);
    set(Unit::constant, g.clock_hz * kPasses);
    set(Unit::sectors, g.clock_hz * kPathBytes / kSectorBytes);
    return g;
  } catch (const nlohmann::json::exception& e) {
    throw Error(fmt::format("a GPU's data sheet: {}", e.what()));
  }
}

double ModelledTime::total() const { return launches + copies + largest(*this).second; }

const char* ModelledTime::bound() const {
  const Part part = largest(*this);
  return launches + copies > part.second ? "launches and copies" : part.first;
}

double Gpu::fastest_flops() const { return std::max(fp32_flops, matrix_flops); }

double bytes_moved(const sim::Counters& c) {
  return kSectorBytes * static_cast<double>(c.global_load_sectors + c.global_store_sectors +
                                            c.local_sectors + 2 * c.atomic_sectors);
}

ModelledTime modelled_time(const SimulatedWork& work, const Gpu& g) {
  const sim::Counters& c = work.counters;
  const auto number = [](std::uint64_t n) { return static_cast<double>(n); };
  ModelledTime t;
  t.launches = g.launch_s * number(c.launches + work.transfers);
  t.copies = number(work.to_device_bytes + work.to_host_bytes) / g.host_bytes_per_s;
  t.memory = (bytes_moved(c) + number(work.within_bytes)) / g.memory_bytes_per_s;
  t.atomics = number(c.atomic_hot_passes) / g.clock_hz;
  const auto unit = [&](Unit u) {
    return std::max(number(c.critical[u]), number(c.total[u]) / g.multiprocessors) / g.rate_of(u);
  };
  t.path = unit(Unit::sectors);
  t.issue = unit(Unit::issue);
  t.warp = number(c.longest_warp) / g.clock_hz;
  t.arithmetic = std::max({unit(Unit::fp32), unit(Unit::integer), unit(Unit::fp16),
                           unit(Unit::fp64), unit(Unit::special), unit(Unit::conversion)});
  t.loads = std::max(unit(Unit::load_store), unit(Unit::constant));
  for (const Unit u : kTensor) t.tensor += unit(u);
  for (const Unit u : kWarpgroup) t.tensor += unit(u);
  t.shared = unit(Unit::shared);
  return t;
}

double floor_time(const LeastWork& least, const Gpu& g) {
  return least.launches * g.launch_s +
         std::max(least.bytes / g.memory_bytes_per_s, least.flops / g.fastest_flops());
}

std::string sheet_of(std::string_view device_name) {
  for (const std::string& known : gpu_names()) {
    if (device_name.find(gpu_named(known).name) != std::string_view::npos) return known;
  }
  throw Error(fmt::format("there is no data sheet for {}: name the nearest one with --gpu ({})",
                          device_name, fmt::join(gpu_names(), ", ")));
}

}  // namespace assay
