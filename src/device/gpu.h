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
#include "sim/tensor_map.h"

namespace assay::device {

// The GPU rejected a module. what() says where and why.
class InvalidModule : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// After these, the process is of no further use. They are no std::exception, so that no handler of a
// call that merely failed takes them.

// Work did not finish in time and cannot be stopped.
struct NeverEnds {
  std::string why;
};
// The GPU or its driver failed, which is no program's fault: an error of its memory, a lost GPU.
struct GpuFault {
  std::string why;
};

// Measurements of a phase on real hardware; a simulated GPU measures nothing.
struct PhaseTime {
  double seconds = 0;   // GPU time for the submission's work
  std::string failure;  // the error that stopped the GPU, "" if none
};

// Names, arguments and exceptions are those of sim::Device; see there for their meaning.
class Gpu {
 public:
  virtual ~Gpu() = default;

  // The architecture of the binary code it accepts: 90 for sm_90; 0 if only PTX.
  virtual std::uint32_t architecture() const = 0;
  virtual std::uint32_t multiprocessors() const = 0;
  // Hardware does not check accesses, and has no textures here.
  virtual bool is_hardware() const = 0;

  // Work between begin_phase() and end_phase() belongs to the submission. The latter waits for all
  // of it.
  virtual void begin_phase(std::uint64_t shuffle_seed) = 0;
  virtual PhaseTime end_phase() = 0;
  // The processor time of this process by which the phase's work must be done, if this process does
  // it.
  virtual void set_processor_deadline(std::uint64_t ns) = 0;
  // The most warp instructions that a launch may execute from now on, if this process executes
  // them.
  virtual void set_instruction_limit(std::uint64_t) = 0;

  // Takes PTX, or code for architecture(). Throws InvalidModule, and otherwise as sim::Device does.
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

  // How many blocks fit on one multiprocessor at a time; nothing if that is left to the runtime's
  // arithmetic (sim/occupancy.h).
  virtual std::optional<std::uint32_t> resident_blocks(sim::KernelId, std::uint64_t threads,
                                                       std::uint64_t dynamic_shared_bytes) = 0;
  // The tensor map that cuTensorMapEncodeTiled makes for this GPU. Nothing reads its addresses.
  virtual sim::TensorMapReply tensor_map(const sim::TensorMapRequest&) = 0;
  virtual sim::LaunchResult launch(sim::KernelId, const sim::LaunchConfig&,
                                   std::span<const std::byte> params, const sim::Operation*) = 0;
};

}  // namespace assay::device
