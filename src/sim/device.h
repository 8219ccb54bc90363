// One simulated GPU: modules, memory and kernel launches. Functional and exact, never timed.
//
// Everything here is synchronous; the runtime above gives streams and events their order. If the
// runtime says when an operation happens, the operation is checked against the earlier ones that it
// also placed in time: a race between them is a finding (sim/memory/stream_races.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/counters.h"
#include "sim/finding.h"
#include "sim/line_counts.h"
#include "sim/line_replays.h"
#include "sim/operation.h"

namespace assay::sim {

// A program needs more than a GPU, or this simulator, has room for: code, registers.
class TooLarge : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An instruction, directive or API that the simulator does not implement: the program needs a GPU.
// what() names it and, for instructions, the kernel and the source line.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

// Blocks of a cluster: on every GPU that has clusters, and at most on this one.
inline constexpr std::uint32_t kPortableClusterBlocks = 8, kMaxClusterBlocks = 16;

struct LaunchConfig {
  Dim3 grid, block;
  std::uint64_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  Dim3 cluster = {};  // in blocks; each extent divides the grid's
};

using ModuleId = std::uint32_t;
using KernelId = std::uint32_t;

struct KernelInfo {
  std::string name;                        // mangled
  std::vector<std::uint32_t> param_bytes;  // of each parameter
  std::vector<std::uint32_t> param_offset;
  std::uint32_t params_bytes = 0;  // of the whole parameter block
  std::uint32_t static_shared_bytes = 0, local_bytes = 0 /* a thread */;
  std::uint32_t registers = 0;       // 4-byte slots per thread after allocation: an estimate
  std::uint32_t max_threads = 1024;  // per block
  Dim3 required_cluster{0, 0, 0};    // 0: none
};

// The clusters of a launch: the kernel's own, unless the launch names others.
inline Dim3 cluster_of(const KernelInfo& kernel, const LaunchConfig& config) {
  const Dim3& required = kernel.required_cluster;
  return required.x == 0 || config.cluster.count() > 1 ? config.cluster : required;
}
// Whether the kernel may have these clusters, and the grid can be divided into them.
inline bool is_cluster(const KernelInfo& kernel, const Dim3& grid, const Dim3& cluster) {
  const Dim3& required = kernel.required_cluster;
  return cluster.count() != 0 && cluster.count() <= kMaxClusterBlocks &&
         (required.x == 0 || cluster == required) && grid.x % cluster.x == 0 &&
         grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

struct VariableInfo {
  std::uint64_t address = 0, bytes = 0;
};

enum class LaunchStatus : std::uint8_t {
  ok,
  invalid_configuration,  // a zero or too large dimension, too much shared memory
  too_large_cooperative,
  too_many_registers,  // for a block with this many threads
  illegal_address,     // this and the other fatal findings are named as in CUDA
  misaligned_address,
  illegal_instruction,
  assertion,
  timeout,  // the instruction limit, a deadlock
};

struct LaunchResult {
  LaunchStatus status = LaunchStatus::ok;
  Counters counters;
  std::vector<Finding> findings;
  std::vector<Finding> notes;     // worth knowing but not faults: is_note()
  std::uint32_t local_bytes = 0;  // of local memory, the most that a thread had in use
  std::string output;             // of printf, in block order
  // With DeviceOptions::locate_replays: they sum to counters.shared_replays.
  std::vector<LineReplays> replays;
  // With DeviceOptions::count_lines, in the form of by_place(): they sum to the counters.
  std::vector<LineCounts> lines;
};

struct DeviceOptions {
  std::uint64_t memory_bytes = std::uint64_t{8} << 30;
  std::uint64_t instruction_limit = 20'000'000'000;  // warp instructions of one launch
  unsigned threads = 1;  // host threads; results and counters do not depend on it
  bool check_races = true, check_uninitialised = true;
  bool locate_replays = false;     // report which source lines cause bank conflicts
  bool count_lines = false;        // report what each source line executes; also locates replays
  std::uint64_t shuffle_seed = 0;  // not 0: the order of blocks and warps is drawn from it
  std::uint64_t max_output_bytes = 1 << 20;  // of printf per launch
};

// The properties that the runtime reports: those of an H100-class GPU (compute capability 9.0).
inline constexpr std::uint32_t kWarpSize = 32, kMaxThreadsPerBlock = 1024,
                               kMaxSharedPerBlock = 48 << 10, kMaxSharedOptin = 227 << 10,
                               kMaxResidentThreads = 2048, kMaxResidentBlocks = 32;
// Per multiprocessor: its registers, the sub-partitions that each have an equal share of them, and
// the allocation unit of a warp.
inline constexpr std::uint32_t kRegistersPerMultiprocessor = 65536, kSubPartitions = 4,
                               kRegisterUnit = 256;

// Processor time that this process has used, in ns on CLOCK_PROCESS_CPUTIME_ID.
std::uint64_t processor_ns();

class Device {
 public:
  explicit Device(const DeviceOptions& = {});
  ~Device();
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;

  // Parses a module and places its variables. Throws ptx::ParseError, Unsupported, or TooLarge if
  // constants take more than 64 KiB or the variables do not fit.
  ModuleId load_module(std::string_view ptx);
  // Likewise for modules of relocatable device code, which become one: see ptx/link.h.
  ModuleId load_linked(std::span<const std::string_view> ptx);
  // Throws std::out_of_range if the module has no such entry. A kernel is decoded when it is first
  // queried or launched: info(), resident_blocks() and launch() throw TooLarge; launch() also
  // throws Unsupported and std::bad_alloc. So a module may hold unsupported kernels, and a program
  // may query them as long as it does not launch them. Everything but their registers is then
  // known.
  KernelId kernel(ModuleId, std::string_view name);
  const KernelInfo& info(KernelId) const;
  // Throws std::out_of_range if the module has no such variable.
  VariableInfo variable(ModuleId, std::string_view name) const;
  // How many blocks of that many threads one multiprocessor holds at a time, as far as threads and
  // shared memory decide; registers are left out, because they differ from those of hardware. 0:
  // the block is too large.
  std::uint32_t resident_blocks(KernelId, std::uint64_t threads,
                                std::uint64_t dynamic_shared_bytes) const;

  // Allocates global memory. 0 if there is no room.
  std::uint64_t allocate(std::uint64_t bytes);
  bool free(std::uint64_t address);
  // False if the range is not within one live allocation. Without an operation, this write (or any
  // access below) is taken as ordered with everything.
  bool write(std::uint64_t to, std::span<const std::byte> from, const Operation* = nullptr);
  // Undefined values that kernels stored there are findings if there are more than padding could
  // explain: the whole range, or 16 adjacent bytes. `strictly`: any byte that is undefined or was
  // never written is a finding.
  bool read(std::span<std::byte> to, std::uint64_t from, bool strictly = false,
            const Operation* = nullptr);
  // Findings of reads and of operations other than launches since the last call.
  std::vector<Finding> take_findings();
  bool copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, const Operation* = nullptr);
  bool fill(std::uint64_t to, std::byte value, std::uint64_t bytes, const Operation* = nullptr);
  // The allocation that begins there is made, or ends, with an operation, which counts as a write
  // of all of it.
  void touch(std::uint64_t address, const Operation&);
  std::uint64_t live_bytes() const;
  std::uint64_t high_water() const;
  void reset_high_water();
  std::uint64_t capacity() const;
  // The live allocation that contains an address: {begin, bytes}, or {0, 0} if none.
  VariableInfo allocation(std::uint64_t address) const;

  // Sets DeviceOptions::shuffle_seed for future launches.
  void set_shuffle_seed(std::uint64_t);
  // From now on launches end, as at the instruction limit, once this process has used that much
  // processor time, in ns on the clock CLOCK_PROCESS_CPUTIME_ID; 0: never.
  void set_processor_deadline(std::uint64_t ns);
  // From now on instead of DeviceOptions::instruction_limit.
  void set_instruction_limit(std::uint64_t);

  // `params` is the parameter block, laid out as in info().param_offset. A failed launch reports no
  // counters except `launches`; what its blocks wrote before the failure remains. The findings'
  // places, threads and texts do not depend on DeviceOptions::threads, except for where the
  // instruction limit struck.
  LaunchResult launch(KernelId, const LaunchConfig&, std::span<const std::byte> params,
                      const Operation* = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::sim
