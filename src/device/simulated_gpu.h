// The simulator, as the GPU of a device process.
#pragma once

#include <map>

#include "device/gpu.h"

namespace assay::device {

class SimulatedGpu final : public Gpu {
 public:
  explicit SimulatedGpu(const sim::DeviceOptions& options) : device_(options) {}

  // It runs PTX. Machine code sent before the PTX is refused, but tells how many registers the
  // kernels use; if known, that bounds launches and occupancy as on hardware.
  std::uint32_t architecture() const override { return 90; }
  std::uint32_t multiprocessors() const override { return sim::kMultiprocessors; }
  bool is_hardware() const override { return false; }
  void begin_phase(std::uint64_t shuffle_seed) override;
  PhaseTime end_phase() override { return {}; }
  void set_processor_deadline(std::uint64_t ns) override { device_.set_processor_deadline(ns); }
  void set_instruction_limit(std::uint64_t n) override { device_.set_instruction_limit(n); }

  sim::ModuleId load_module(std::string_view image) override;
  sim::KernelId kernel(sim::ModuleId module, std::string_view name) override;
  sim::KernelInfo info(sim::KernelId id) override;
  sim::VariableInfo variable(sim::ModuleId module, std::string_view name) override {
    return device_.variable(module, name);
  }

  std::uint64_t allocate(std::uint64_t bytes) override { return device_.allocate(bytes); }
  bool free(std::uint64_t address) override { return device_.free(address); }
  sim::VariableInfo allocation(std::uint64_t address) const override {
    return device_.allocation(address);
  }
  std::uint64_t capacity() const override { return device_.capacity(); }
  std::uint64_t live_bytes() const override { return device_.live_bytes(); }
  std::uint64_t high_water() const override { return device_.high_water(); }

  bool write(std::uint64_t to, std::span<const std::byte> from,
             const sim::Operation* operation) override {
    return device_.write(to, from, operation);
  }
  bool read(std::span<std::byte> to, std::uint64_t from, bool strictly,
            const sim::Operation* operation) override {
    return device_.read(to, from, strictly, operation);
  }
  bool copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes,
            const sim::Operation* operation) override {
    return device_.copy(to, from, bytes, operation);
  }
  bool fill(std::uint64_t to, std::byte value, std::uint64_t bytes,
            const sim::Operation* operation) override {
    return device_.fill(to, value, bytes, operation);
  }
  void touch(std::uint64_t address, const sim::Operation& operation) override {
    device_.touch(address, operation);
  }
  std::vector<sim::Finding> take_findings() override { return device_.take_findings(); }

  std::optional<std::uint32_t> resident_blocks(sim::KernelId, std::uint64_t threads,
                                               std::uint64_t dynamic_shared_bytes) override;
  sim::TensorMapReply tensor_map(const sim::TensorMapRequest& request) override {
    return sim::encode(request);
  }
  sim::LaunchResult launch(sim::KernelId, const sim::LaunchConfig&,
                           std::span<const std::byte> params, const sim::Operation*) override;

 private:
  using Registers = std::map<std::string, std::uint32_t>;  // per thread, by kernel name

  // Nothing if the registers are not known.
  std::optional<std::uint32_t> blocks_by_registers(sim::KernelId, std::uint64_t threads) const;

  sim::Device device_;
  Registers of_code_;  // of the last code sent, until its PTX arrives
  std::map<sim::ModuleId, Registers> of_module_;
  std::map<sim::KernelId, std::uint32_t> registers_;
};

}  // namespace assay::device
