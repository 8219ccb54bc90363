// A real GPU behind the CUDA driver.
//
// Memory. One address range within sim::kGlobalRange, which workers keep free, is backed by GPU
// memory once; blocks are allocated from it (gpu/block_map.h). So addresses mean the same on both
// sides of the link, and any range the worker names is checked before the driver sees it. Module
// variables lie where the driver puts them.
//
// Order. Copies, fills and launches go into one stream in the order requested. CUDA allows that
// order, whatever streams the submission used.
//
// Time. Work is queued in the stream behind a hold: a wait for a word in host memory, which this
// process writes when the submission waits for a result or the phase ends. The first event is
// recorded after the hold, so the GPU has all the work before it begins, and neither the link nor
// launch overhead in the driver falls between the two events. The hold is omitted if the driver
// itself may have to wait for the stream: on a kernel's first run, when it may load code or enlarge
// local memory.
//
// Not checked. Kernels may read uninitialised memory, race, and access addresses outside a block
// but inside the range: checking that is the simulator's job.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/gpu.h"
#include "gpu/block_map.h"
#include "gpu/driver.h"

namespace assay::device {

// What the driver reports about the GPU.
struct GpuFacts {
  std::string name, pci_bus_id;  // "NVIDIA H200", "0000:3b:00.0"
  int cuda = 0;                  // the driver's version of CUDA, 13000 for 13.0
  int major = 0, minor = 0;      // compute capability
  std::uint32_t multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
  bool ecc = false;
};

// The size of the GPU's L2 cache. Throws gpu::DriverError if there is no GPU.
std::uint64_t l2_cache_bytes(const std::string& driver_library);

class HardwareGpu final : public Gpu {
 public:
  // Throws gpu::DriverError if there is no GPU with the properties that the workers' CUDA runtime
  // reports (compute capability 9.0).
  HardwareGpu(const std::string& driver_library, std::uint64_t memory_bytes);

  GpuFacts facts() const;

  std::uint32_t architecture() const override;
  std::uint32_t multiprocessors() const override {
    return static_cast<std::uint32_t>(limits_.multiprocessors);
  }
  bool is_hardware() const override { return true; }
  void begin_phase(std::uint64_t shuffle_seed) override;
  PhaseTime end_phase() override;
  void set_processor_deadline(std::uint64_t) override {}  // the GPU does the work
  void set_instruction_limit(std::uint64_t) override {}

  sim::ModuleId load_module(std::string_view image) override;
  sim::KernelId kernel(sim::ModuleId, std::string_view name) override;
  sim::KernelInfo info(sim::KernelId) override;
  sim::VariableInfo variable(sim::ModuleId, std::string_view name) override;

  std::uint64_t allocate(std::uint64_t bytes) override;
  bool free(std::uint64_t address) override { return blocks_->free(address); }
  sim::VariableInfo allocation(std::uint64_t address) const override;
  std::uint64_t capacity() const override { return blocks_->capacity(); }
  std::uint64_t live_bytes() const override { return blocks_->live_bytes() + variable_bytes_; }
  std::uint64_t high_water() const override { return blocks_->high_water() + variable_bytes_; }

  bool write(std::uint64_t to, std::span<const std::byte> from, const sim::Operation*) override;
  bool read(std::span<std::byte> to, std::uint64_t from, bool strictly,
            const sim::Operation*) override;
  bool copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes,
            const sim::Operation*) override;
  bool fill(std::uint64_t to, std::byte value, std::uint64_t bytes, const sim::Operation*) override;
  void touch(std::uint64_t, const sim::Operation&) override {}
  std::vector<sim::Finding> take_findings() override { return {}; }

  std::optional<std::uint32_t> resident_blocks(sim::KernelId, std::uint64_t threads,
                                               std::uint64_t dynamic_shared_bytes) override;
  sim::TensorMapReply tensor_map(const sim::TensorMapRequest&) override;
  sim::LaunchResult launch(sim::KernelId, const sim::LaunchConfig&,
                           std::span<const std::byte> params, const sim::Operation*) override;

 private:
  struct Kernel {
    gpu::CUfunction function = nullptr;
    sim::KernelInfo info;
    std::uint64_t dynamic_shared = 0;  // bytes the driver currently allows
    bool large_clusters = false;       // whether the driver allows more than 8 blocks
    bool has_run = false;
  };

  // The GPU's limits, queried once.
  struct Limits {
    int block[3] = {}, grid[3] = {}, shared_per_block = 0, multiprocessors = 0;
  };

  void open_device();
  void open_memory(std::uint64_t memory_bytes);
  void open_stream();
  void open_flush();
  int attribute(int which) const;
  bool is_memory(std::uint64_t address, std::uint64_t bytes) const;
  sim::LaunchStatus check(Kernel&, const sim::LaunchConfig&) const;
  // False if the GPU does not have that much for a block of this kernel.
  bool allow_shared(Kernel&, std::uint64_t dynamic_shared_bytes) const;
  bool allow_cluster(Kernel&, std::uint64_t blocks) const;
  gpu::CUresult launch(const Kernel&, const sim::LaunchConfig&, void** params);
  std::uint32_t blocks_per_multiprocessor(Kernel&, std::uint64_t threads,
                                          std::uint64_t dynamic_shared_bytes) const;
  void flush_l2();

  // Call before putting work into the stream. False if the GPU has failed.
  bool admit(bool may_hold = true);
  // Throws GpuFault if that is the GPU's fault, and gpu::DriverError for any other failure.
  void require(gpu::CUresult, const char* what) const;
  bool put(gpu::CUresult);  // takes the driver's result for queued work
  // Waits for all work in the stream. False if the GPU has failed.
  bool finish();
  void wait();

  gpu::Driver driver_;
  gpu::CUdevice device_ = 0;
  Limits limits_;
  gpu::CUstream stream_ = nullptr;
  gpu::CUevent begin_ = nullptr, end_ = nullptr;
  std::uint32_t* hold_ = nullptr;  // in host memory
  gpu::CUdeviceptr hold_address_ = 0;
  std::uint32_t holds_ = 0;
  std::byte* staging_ = nullptr;  // host memory that the GPU reads and writes
  std::size_t staged_ = 0;        // bytes of it in use
  // Memory that is written and then read to flush the L2 cache, and the kernel that reads it.
  std::uint64_t flushed_ = 0, flush_bytes_ = 0;
  gpu::CUfunction read_all_ = nullptr;

  std::unique_ptr<gpu::BlockMap> blocks_;
  std::vector<gpu::CUmodule> modules_;
  std::vector<Kernel> kernels_;
  std::map<std::uint64_t, std::uint64_t> variables_;  // address -> bytes
  std::uint64_t variable_bytes_ = 0;                  // of all modules
  int in_stream_ = 0;                                 // work items since the first event
  bool counting_ = false;                             // the work is the submission's
  double seconds_ = 0;
  gpu::CUresult failed_ = gpu::kSuccess;  // the error with which the GPU failed, for good
};

}  // namespace assay::device
