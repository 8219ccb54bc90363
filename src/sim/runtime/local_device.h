// A simulated device in this process.
#pragma once

#include <optional>

#include "sim/runtime/device_link.h"
#include "sim/runtime/run_log.h"

namespace assay::sim {

// Writes what kernels counted and what the checks found to the log, launch by launch. Not
// thread-safe: the runtime makes one call at a time.
class LocalDevice final : public DeviceLink {
 public:
  LocalDevice(const DeviceOptions& options, RunLog& log) : device_(options), log_(log) {}

  ModuleReply load_module(std::string_view ptx) override;
  ModuleReply load_linked(std::span<const std::string_view> ptx) override;
  KernelReply kernel(ModuleId, std::string_view name) override;
  VariableInfo variable(ModuleId, std::string_view name) override;
  std::uint64_t allocate(std::uint64_t bytes) override { return device_.allocate(bytes); }
  bool free(std::uint64_t address) override { return device_.free(address); }
  void order(const Operation& operation) override { operation_ = operation; }
  void touch(std::uint64_t address) override;
  void report(const Finding& f) override { log_.finding(f); }
  bool write(std::uint64_t to, std::span<const std::byte> from) override;
  bool read(std::span<std::byte> to, std::uint64_t from) override;
  bool peek(std::span<std::byte> to, std::uint64_t from) override;
  bool copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) override;
  bool fill(std::uint64_t to, std::byte value, std::uint64_t bytes) override;
  VariableInfo allocation(std::uint64_t address) override { return device_.allocation(address); }
  MemoryInfo memory() override { return {device_.capacity(), device_.live_bytes()}; }
  TensorMapReply tensor_map(const TensorMapRequest& request) override { return encode(request); }
  LaunchReply launch(KernelId, const LaunchConfig&, std::span<const std::byte> params) override;

 private:
  const Operation* operation() const { return operation_ ? &*operation_ : nullptr; }
  bool log_findings(bool done);

  Device device_;
  RunLog& log_;
  std::optional<Operation> operation_;
};

}  // namespace assay::sim
