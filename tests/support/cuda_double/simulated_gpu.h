// The double's whole state: one driver, one device, one context.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "gpu/driver.h"
#include "sim/device.h"
#include "support/cuda_double/address_space.h"
#include "support/cuda_double/handles.h"
#include "support/cuda_double/host_memory.h"

namespace assay::gpu {

struct CUctx_st {};
// A word in host memory at which work waits: nothing behind it is done before it is that large.
struct Hold {
  std::uint32_t* word = nullptr;
  std::uint32_t least = 0;

  bool is_over() const { return word == nullptr || std::atomic_ref(*word).load() >= least; }
};
struct CUstream_st {
  Hold hold;
};
struct CUevent_st {
  bool timed = true, recorded = false;
  double seconds = 0;  // simulated time when it was recorded
  Hold hold;           // of its stream then
};
struct CUmod_st {
  sim::ModuleId id = 0;
};
struct CUfunc_st {
  sim::KernelId id = 0;
  std::optional<std::uint64_t> max_dynamic_shared;  // bytes, if set by cuFuncSetAttribute
  bool large_clusters = false;                      // likewise

  // Without that attribute, static and dynamic shared memory together are limited to 48 KiB.
  std::uint64_t dynamic_shared_limit(const sim::KernelInfo&) const;
};

inline constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 30;

struct SimulatedGpu {
  bool initialised = false;
  std::size_t number = 0;      // of the GPU that this process sees
  CUresult broken = kSuccess;  // the fault that broke the context
  double seconds = 0;          // simulated time since the context was made
  CUctx_st context;
  Handles<CUstream_st> streams;
  Handles<CUevent_st> events;
  Handles<CUmod_st> modules;
  Handles<CUfunc_st> functions;
  AddressSpace addresses;
  HostMemory host;

  // Made on first use. Throws std::runtime_error if its addresses are taken.
  sim::Device& device();
  // The default stream is null.
  bool has_stream(CUstream stream) const { return stream == nullptr || streams.has(stream); }

 private:
  std::unique_ptr<sim::Device> device_;
};

}  // namespace assay::gpu
