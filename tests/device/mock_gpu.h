// A GPU of which a test says what it is asked and what it answers.
#pragma once

#include <gmock/gmock.h>

#include "device/gpu.h"

namespace assay::device {

class MockGpu : public Gpu {
 public:
  using Bytes = std::span<const std::byte>;
  using By = const sim::Operation*;

  MOCK_METHOD(std::uint32_t, architecture, (), (const, override));
  MOCK_METHOD(std::uint32_t, multiprocessors, (), (const, override));
  MOCK_METHOD(bool, is_hardware, (), (const, override));
  MOCK_METHOD(void, begin_phase, (std::uint64_t), (override));
  MOCK_METHOD(PhaseTime, end_phase, (), (override));
  MOCK_METHOD(void, set_processor_deadline, (std::uint64_t), (override));
  MOCK_METHOD(void, set_instruction_limit, (std::uint64_t), (override));
  MOCK_METHOD(sim::ModuleId, load_module, (std::string_view), (override));
  MOCK_METHOD(sim::KernelId, kernel, (sim::ModuleId, std::string_view), (override));
  MOCK_METHOD(sim::KernelInfo, info, (sim::KernelId), (override));
  MOCK_METHOD(sim::VariableInfo, variable, (sim::ModuleId, std::string_view), (override));
  MOCK_METHOD(std::uint64_t, allocate, (std::uint64_t), (override));
  MOCK_METHOD(bool, free, (std::uint64_t), (override));
  MOCK_METHOD(sim::VariableInfo, allocation, (std::uint64_t), (const, override));
  MOCK_METHOD(std::uint64_t, capacity, (), (const, override));
  MOCK_METHOD(std::uint64_t, live_bytes, (), (const, override));
  MOCK_METHOD(std::uint64_t, high_water, (), (const, override));
  MOCK_METHOD(bool, write, (std::uint64_t, Bytes, By), (override));
  MOCK_METHOD(bool, read, (std::span<std::byte>, std::uint64_t, bool, By), (override));
  MOCK_METHOD(bool, copy, (std::uint64_t, std::uint64_t, std::uint64_t, By), (override));
  MOCK_METHOD(bool, fill, (std::uint64_t, std::byte, std::uint64_t, By), (override));
  MOCK_METHOD(void, touch, (std::uint64_t, const sim::Operation&), (override));
  MOCK_METHOD(std::vector<sim::Finding>, take_findings, (), (override));
  MOCK_METHOD(std::optional<std::uint32_t>, resident_blocks,
              (sim::KernelId, std::uint64_t, std::uint64_t), (override));
  MOCK_METHOD(sim::TensorMapReply, tensor_map, (const sim::TensorMapRequest&), (override));
  MOCK_METHOD(sim::LaunchResult, launch, (sim::KernelId, const sim::LaunchConfig&, Bytes, By),
              (override));
};

}  // namespace assay::device
