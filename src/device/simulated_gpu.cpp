#include "device/simulated_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/code_registers.h"
#include "sim/occupancy.h"
#include "sim/ptx/parser.h"

namespace assay::device {

void SimulatedGpu::begin_phase(std::uint64_t shuffle_seed) {
  device_.set_shuffle_seed(shuffle_seed);
  device_.reset_high_water();
}

sim::ModuleId SimulatedGpu::load_module(std::string_view image) {
  if (is_machine_code(image)) {
    of_code_ = registers_of(image);
    throw InvalidModule("machine code: the simulator runs PTX");
  }
  try {
    const sim::ModuleId id = device_.load_module(image);
    of_module_[id] = std::exchange(of_code_, {});
    return id;
  } catch (const sim::ptx::ParseError& e) {
    throw InvalidModule(e.what());
  } catch (const sim::TooLarge& e) {
    throw InvalidModule(e.what());
  }
}

sim::KernelId SimulatedGpu::kernel(sim::ModuleId module, std::string_view name) {
  const sim::KernelId id = device_.kernel(module, name);
  const Registers& known = of_module_[module];
  if (const auto found = known.find(std::string(name)); found != known.end())
    registers_[id] = found->second;
  return id;
}

sim::KernelInfo SimulatedGpu::info(sim::KernelId id) {
  sim::KernelInfo info = device_.info(id);
  if (const auto known = registers_.find(id); known != registers_.end())
    info.registers = known->second;
  return info;
}

std::optional<std::uint32_t> SimulatedGpu::blocks_by_registers(sim::KernelId id,
                                                               std::uint64_t threads) const {
  const auto known = registers_.find(id);
  // A block with no threads or too many is a different error.
  const bool is_block = threads > 0 && threads <= sim::kMaxThreadsPerBlock;
  if (known == registers_.end() || !is_block) return std::nullopt;
  return sim::blocks_by_registers(known->second, threads);
}

std::optional<std::uint32_t> SimulatedGpu::resident_blocks(sim::KernelId id, std::uint64_t threads,
                                                           std::uint64_t dynamic_shared_bytes) {
  const auto most = blocks_by_registers(id, threads);
  if (!most) return std::nullopt;
  return std::min(*most, device_.resident_blocks(id, threads, dynamic_shared_bytes));
}

sim::LaunchResult SimulatedGpu::launch(sim::KernelId id, const sim::LaunchConfig& config,
                                       std::span<const std::byte> params,
                                       const sim::Operation* operation) {
  const std::uint64_t threads = config.block.count();
  sim::LaunchResult refused;
  if (blocks_by_registers(id, threads) == 0u) {
    refused.status = sim::LaunchStatus::too_many_registers;
    return refused;
  }
  if (config.cooperative) {
    const auto resident = resident_blocks(id, threads, config.dynamic_shared_bytes);
    if (resident && config.grid.count() > *resident * std::uint64_t{sim::kMultiprocessors}) {
      refused.status = sim::LaunchStatus::too_large_cooperative;
      return refused;
    }
  }
  return device_.launch(id, config, params, operation);
}

}  // namespace assay::device
