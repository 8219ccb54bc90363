// One simulated GPU: modules, memory and kernel launches. Functional and exact, never timed.
//
// Everything here is synchronous; the runtime above gives streams and events their order. Where it
// says when an operation happens, the operation is checked against the earlier ones of which it
// said so: what races with them is a finding (sim/memory/stream_races.h).
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
#include "sim/line_replays.h"
#include "sim/operation.h"

namespace assay::sim {

// What a program asks for exceeds what a GPU, or this simulator, has room for: code, registers.
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
};

struct LaunchConfig {
  Dim3 grid, block;
  std::uint64_t dynamic_shared_bytes = 0;
  bool cooperative = false;
};

using ModuleId = std::uint32_t;
using KernelId = std::uint32_t;

struct KernelInfo {
  std::string name;                        // mangled
  std::vector<std::uint32_t> param_bytes;  // of each parameter
  std::vector<std::uint32_t> param_offset;
  std::uint32_t params_bytes = 0;  // of the whole block
  std::uint32_t static_shared_bytes = 0, local_bytes = 0 /* a thread */;
  std::uint32_t registers = 0;       // 4-byte slots a thread after allocation: an estimate
  std::uint32_t max_threads = 1024;  // per block
};

struct VariableInfo {
  std::uint64_t address = 0, bytes = 0;
};

enum class LaunchStatus : std::uint8_t {
  ok,
  invalid_configuration,  // a zero or too large dimension, too much shared memory
  too_large_cooperative,
  too_many_registers,  // for a block of so many threads
  illegal_address,     // and the other fatal findings, as CUDA names them
  misaligned_address,
  illegal_instruction,
  assertion,
  timeout,  // the instruction limit, a deadlock
};

struct LaunchResult {
  LaunchStatus status = LaunchStatus::ok;
  Counters counters;
  std::vector<Finding> findings;
  std::vector<Finding> notes;  // worth knowing, and no fault: is_note()
  std::string output;          // of printf, in order of blocks
  // With DeviceOptions::locate_replays: their sum is counters.shared_replays.
  std::vector<LineReplays> replays;
};

struct DeviceOptions {
  std::uint64_t memory_bytes = std::uint64_t{8} << 30;
  std::uint64_t instruction_limit = 20'000'000'000;  // warp instructions of one launch
  unsigned threads = 1;  // host threads; results and counters do not depend on it
  bool check_races = true, check_uninitialised = true;
  bool locate_replays = false;     // say which source lines bank conflicts are due to
  std::uint64_t shuffle_seed = 0;  // not 0: the order of blocks and warps is drawn from it
  std::uint64_t max_output_bytes = 1 << 20;  // of printf per launch
};

// The properties that the runtime reports; those of an H100-class GPU (compute capability 9.0).
inline constexpr std::uint32_t kWarpSize = 32, kMaxThreadsPerBlock = 1024,
                               kMaxSharedPerBlock = 48 << 10, kMaxSharedOptin = 227 << 10,
                               kMaxResidentThreads = 2048, kMaxResidentBlocks = 32;
// Of a multiprocessor: its registers, the parts that have an equal share of them each, and how many
// a warp is given at a time.
inline constexpr std::uint32_t kRegistersPerMultiprocessor = 65536, kSubPartitions = 4,
                               kRegisterUnit = 256;

// How many blocks a multiprocessor holds as far as registers decide, where each thread takes so
// many. 0: a block of so many threads does not fit.
std::uint32_t blocks_by_registers(std::uint32_t registers, std::uint64_t threads);

// Processor time that this process has used, in ns on CLOCK_PROCESS_CPUTIME_ID.
std::uint64_t processor_ns();

class Device {
 public:
  explicit Device(const DeviceOptions& = {});
  ~Device();
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;

  // Parses and places the variables. Throws ptx::ParseError, Unsupported, or TooLarge when
  // constants take more than 64 KiB or the variables do not fit.
  ModuleId load_module(std::string_view ptx);
  // Throws std::out_of_range when the module has no such entry. A kernel is decoded when it is
  // first asked about or launched: info(), resident_blocks() and launch() throw TooLarge; launch()
  // also Unsupported and std::bad_alloc. So a module may hold kernels that are not supported, and a
  // program may ask about them, as long as it does not launch them. What is known of one is then
  // all but its registers.
  KernelId kernel(ModuleId, std::string_view name);
  const KernelInfo& info(KernelId) const;
  // Throws std::out_of_range when the module has no such variable.
  VariableInfo variable(ModuleId, std::string_view name) const;
  // How many blocks of so many threads one multiprocessor holds at a time, as far as threads and
  // shared memory decide: registers are not those of hardware. 0: the block is too large.
  std::uint32_t resident_blocks(KernelId, std::uint64_t threads,
                                std::uint64_t dynamic_shared_bytes) const;

  // Global memory. 0 when there is no room.
  std::uint64_t allocate(std::uint64_t bytes);
  bool free(std::uint64_t address);
  // False: the range does not lie in one live allocation. Without an operation the write is
  // ordered with everything, of those below likewise.
  bool write(std::uint64_t to, std::span<const std::byte> from, const Operation* = nullptr);
  // Undefined values that kernels stored there are findings, if they are more than padding may be:
  // the whole range, or 16 bytes side by side. `strictly`: each that is undefined or was never
  // written.
  bool read(std::span<std::byte> to, std::uint64_t from, bool strictly = false,
            const Operation* = nullptr);
  // Of reads and of operations but launches, since this was last asked.
  std::vector<Finding> take_findings();
  bool copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, const Operation* = nullptr);
  bool fill(std::uint64_t to, std::byte value, std::uint64_t bytes, const Operation* = nullptr);
  // The allocation that begins there comes into being, or ends, with an operation: as a write of
  // all of it.
  void touch(std::uint64_t address, const Operation&);
  std::uint64_t live_bytes() const;
  std::uint64_t high_water() const;
  void reset_high_water();
  std::uint64_t capacity() const;
  // The live allocation around an address: {begin, bytes}, {0, 0} if none.
  VariableInfo allocation(std::uint64_t address) const;

  // DeviceOptions::shuffle_seed of the launches to come.
  void set_shuffle_seed(std::uint64_t);
  // Launches end as at the instruction limit once this process has used so much processor time, in
  // ns on the clock CLOCK_PROCESS_CPUTIME_ID; 0: never.
  void set_processor_deadline(std::uint64_t ns);

  // `params` is the parameter block, laid out as info().param_offset says. A launch that fails
  // reports no counters but `launches`; what its blocks wrote until then stays. The findings'
  // places, threads and texts do not depend on DeviceOptions::threads, but for where the
  // instruction limit struck.
  LaunchResult launch(KernelId, const LaunchConfig&, std::span<const std::byte> params,
                      const Operation* = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::sim
