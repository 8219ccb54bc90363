// The GPU that a device process serves: a simulated one (simulated_gpu.h), or real hardware behind
// the CUDA driver (hardware_gpu.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/device.h"

namespace assay::device {

// A module that the GPU rejects. what() says where and why.
class InvalidModule : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Work that did not end in time and cannot be stopped: this process is of no further use.
class NeverEnds : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a phase was like on real hardware; of a simulated GPU nothing is measured.
struct PhaseTime {
  double seconds = 0;   // of the GPU, for what the submission asked for
  std::string failure;  // that made the GPU give up, "" if nothing did
};

// Names, arguments and exceptions are those of sim::Device, which says what they mean.
class Gpu {
 public:
  virtual ~Gpu() = default;

  // The binary code that it runs: 90 for sm_90; 0 if it runs PTX only.
  virtual std::uint32_t architecture() const = 0;

  // From begin_phase() to end_phase() work is the submission's. The latter waits for all of it.
  virtual void begin_phase(std::uint64_t shuffle_seed, std::uint64_t processor_deadline_ns) = 0;
  virtual PhaseTime end_phase() = 0;

  // PTX, or code for architecture(). Throws InvalidModule, and otherwise as sim::Device does.
  virtual sim::ModuleId load_module(std::string_view image) = 0;
  virtual sim::KernelId kernel(sim::ModuleId, std::string_view name) = 0;
  virtual sim::KernelInfo info(sim::KernelId) = 0;
  virtual sim::VariableInfo variable(sim::ModuleId, std::string_view name) = 0;

  virtual std::uint64_t allocate(std::uint64_t bytes) = 0;
  virtual bool free(std::uint64_t address) = 0;
  virtual sim::VariableInfo allocation(std::uint64_t address) const = 0;
  virtual std::uint64_t capacity() const = 0;
  virtual std::uint64_t live_bytes() const = 0;
  virtual std::uint64_t high_water() const = 0;  // since begin_phase()

  virtual bool write(std::uint64_t to, std::span<const std::byte> from, const sim::Operation*) = 0;
  virtual bool read(std::span<std::byte> to, std::uint64_t from, bool strictly,
                    const sim::Operation*) = 0;
  virtual bool copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes,
                    const sim::Operation*) = 0;
  virtual bool fill(std::uint64_t to, std::byte value, std::uint64_t bytes,
                    const sim::Operation*) = 0;
  virtual void touch(std::uint64_t address, const sim::Operation&) = 0;
  virtual std::vector<sim::Finding> take_findings() = 0;

  // How many blocks one multiprocessor holds at a time; nothing where only the runtime's arithmetic
  // says so (sim/runtime/occupancy.h).
  virtual std::optional<std::uint32_t> resident_blocks(sim::KernelId, std::uint64_t threads,
                                                       std::uint64_t dynamic_shared_bytes) = 0;
  virtual sim::LaunchResult launch(sim::KernelId, const sim::LaunchConfig&,
                                   std::span<const std::byte> params, const sim::Operation*) = 0;
};

}  // namespace assay::device
