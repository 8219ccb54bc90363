// What the CUDA runtime needs from a device. The device may be in this process (LocalDevice) or in
// another one that the program cannot reach. So every argument and result is a plain value or a
// span of bytes that is copied, nothing throws, and the findings and counts stay with the device
// (see run_log.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/device.h"
#include "sim/tensor_map.h"

namespace assay::sim {

struct ModuleReply {
  enum class Status : std::uint8_t {
    ok,
    invalid_ptx,
    unsupported,  // valid, but the simulator lacks something
  };
  Status status = Status::ok;
  std::string message;  // unless ok: what is wrong, and where
  ModuleId module = 0;  // if ok
};

struct KernelReply {
  enum class Status : std::uint8_t {
    ok,
    unknown,      // the module has no such entry
    unsupported,  // it needs something that the simulator lacks
  };
  Status status = Status::ok;
  std::string message;  // if unsupported
  KernelId id = 0;      // set if ok, as is info
  KernelInfo info;
};

struct LaunchReply {
  LaunchStatus status = LaunchStatus::ok;
  bool unsupported = false;  // the kernel needs something that the simulator lacks: see message
  std::string message;       // if unsupported
  std::string output;        // of the kernel's printf
  std::string error_output;  // what CUDA prints on stderr for failed assertions
  std::uint64_t instructions = 0;  // warp instructions executed
};

struct MemoryInfo {
  std::uint64_t capacity = 0, live = 0;  // bytes; live includes module variables
};

class DeviceLink {
 public:
  virtual ~DeviceLink() = default;

  // The architecture of binary code that it runs besides PTX: 90 for sm_90; 0 if none.
  virtual std::uint32_t architecture() const { return 0; }
  virtual std::uint32_t multiprocessors() const { return kMultiprocessors; }
  virtual bool is_hardware() const { return false; }
  // PTX, or such code.
  virtual ModuleReply load_module(std::string_view image) = 0;
  // The PTX of modules that use one another's functions and variables (nvcc -rdc=true), as one.
  virtual ModuleReply load_linked(std::span<const std::string_view>) {
    return {ModuleReply::Status::unsupported, "relocatable device code (nvcc -rdc=true)", 0};
  }
  virtual KernelReply kernel(ModuleId, std::string_view name) = 0;
  // {0, 0} if the module has no such variable.
  virtual VariableInfo variable(ModuleId, std::string_view name) = 0;

  // When the following copies, fills, launches and touches happen, until the next call. Before the
  // first call, operations are not checked against one another. Allocations are not involved.
  virtual void order(const Operation&) = 0;
  // The allocation that begins there is made, or ends, in a stream.
  virtual void touch(std::uint64_t address) = 0;
  // Reports a fault that the runtime found in the host program.
  virtual void report(const Finding&) = 0;

  // Addresses are in kGlobalRange. 0: no room. `bytes` must not be 0.
  virtual std::uint64_t allocate(std::uint64_t bytes) = 0;
  virtual bool free(std::uint64_t address) = 0;
  // False, having changed nothing, if the range is not within one live allocation.
  virtual bool write(std::uint64_t to, std::span<const std::byte> from) = 0;
  virtual bool read(std::span<std::byte> to, std::uint64_t from) = 0;
  // Likewise, but exempt from race checks.
  virtual bool peek(std::span<std::byte> to, std::uint64_t from) = 0;
  virtual bool copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) = 0;
  virtual bool fill(std::uint64_t to, std::byte value, std::uint64_t bytes) = 0;
  // The next of these is the n-th further row of a box whose first row has 0: they are one transfer.
  virtual void set_row(std::uint32_t) {}
  // The live allocation that contains an address, {0, 0} if none.
  virtual VariableInfo allocation(std::uint64_t address) = 0;
  virtual MemoryInfo memory() = 0;

  // How many such blocks one multiprocessor holds at a time, if the device knows better than
  // sim/occupancy.h.
  virtual std::optional<std::uint32_t> resident_blocks(KernelId, std::uint32_t /*threads*/,
                                                       std::uint64_t /*dynamic_shared_bytes*/) {
    return std::nullopt;
  }

  // The tensor map that cuTensorMapEncodeTiled makes for this GPU.
  virtual TensorMapReply tensor_map(const TensorMapRequest&) = 0;

  // `params` is the parameter block, laid out as KernelInfo says.
  virtual LaunchReply launch(KernelId, const LaunchConfig&, std::span<const std::byte> params) = 0;
};

}  // namespace assay::sim
