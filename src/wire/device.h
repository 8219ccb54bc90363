// The simulated GPU of a graded submission: a separate process between harness and worker.
//
//   harness ──private channel──> device process ──link──> worker (submission, CUDA runtime)
//
// Why a process: the submission's host code shares the worker's address space with everything in
// it. A simulator in the worker would keep device memory, counters and findings where the code that
// they judge can overwrite them. Here they live in sim::Device behind a process boundary. The
// worker holds addresses that it cannot read or write through, and asks for copies and launches.
// Kernels are interpreted access by access, so they reach only the device's memory.
//
// Who trusts whom.
//   - The device trusts nothing that comes over the link: a message is read once, sizes are
//     bounded, sim::Device checks addresses and identifiers, and text is copied before it is
//     parsed. The worst effect of a message is a refusal; if the process dies of one anyway,
//     that is the submission's fault.
//   - The device executes hostile PTX, so it is sandboxed exactly as the worker is, and the harness
//     reads its reports as it reads the worker's: once, bounded. Unlike the worker's they count.
//   - The device listens to the worker only from `start` to `stop`, that is, while a phase of a
//     case runs and the worker's host time is being measured. A call left waiting is served in the
//     next phase and counted there. So whatever the kernels do in a phase is counted in that phase,
//     and a phase's inputs reach device memory when it starts.
//   - `collect` copies outputs from device memory to the device arena, which the worker does not
//     map: after each phase at whose end outputs are due, and after the last. The device's inputs
//     are never in the worker's memory either, so host code can only compute with them by making
//     copies, which are counted.
//
// Private channel: Control, which is page-aligned memory shared by harness and device, and a line
// (processes/channel.h). One order at a time: the harness fills Control, sends a byte and waits for
// one. The device arena holds the contents of buffers.
//
//   place     buffers[]: frees those of the last case, allocates these, fills them from the arena
//             (inputs of later phases are zero until then); answers with addresses
//   start     phase: writes the phase's inputs unless it is the first, and zeros over those that
//             have ended; resets the report, listens to the worker. kLoading while the submission is
//             being loaded
//   stop      stops listening; `report` says what happened since start
//   write     copies a callback's bulk from the arena to device memory
//   collect   copies outputs to the arena; says which input a kernel wrote to
//
// Link: LinkPage and then a window for payloads, both shared by device and worker, and a line. The
// worker writes a call and its payload, sends a byte and waits for one. Before they sleep, both
// look for the other's byte for a moment (device/brief_wait.h). The device does not wait for a
// worker that leaves answers unread. Payloads larger than the window are sent in pieces.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace assay::device {

// --- the private channel
// ---------------------------------------------------------------------------------------------

// File descriptors of the device process. 0 is unreadable, 1 and 2 are a pipe drained by the
// harness.
inline constexpr int kControlFd = 3, kArenaFd = 4, kOrderFd = 5, kLinkFd = 6, kCallFd = 7;

// Processor time that the device may use from start to stop for a phase with this instruction
// limit. The instruction limit should decide, since it is the same on every machine; this bounds
// what instructions do not count. par's kernels stay below half of their instruction limit, and
// need up to 280 ns an instruction on a Xeon of 2.5 GHz (matrix products; 100 ns without them). So
// they use at most 45 s of 205 s there. Beyond it the device refuses further work, as at the
// instruction limit. If it is still busy kGraceSeconds later, or if an order takes longer than
// kOrderSeconds, it exits with the status kOutOfTime. Only its own processor time counts, so other
// programs on the machine cannot make a submission fail.
constexpr double allowance_seconds(std::uint64_t instruction_limit) {
  return 5 + 200e-9 * static_cast<double>(instruction_limit);
}
inline constexpr double kGraceSeconds = 10, kOrderSeconds = 60;
inline constexpr int kOutOfTime = 75;
// The status with which it exits if the GPU or its driver failed through nobody's fault.
inline constexpr int kGpuFailed = 76;
// Bytes around each output in the arena that hold canaries, for GPUs that do not check accesses.
inline constexpr std::size_t kGuardBytes = 64;

inline constexpr std::size_t kMaxBuffers = 64;
inline constexpr std::int32_t kLoading = -1;

enum class Order : std::uint32_t { none, place, start, stop, write, collect };

struct Buffer {
  std::uint64_t offset = 0, bytes = 0;  // in the arena
  std::uint32_t skew = 0;               // bytes from a multiple of 256 to the first byte
  std::int32_t phase = 0;               // inputs: the phase whose start brings the contents
  bool output = false;                  // contents are collected; else they must not change
  std::uint64_t address = 0;            // answer
  std::int32_t until = -1;              // inputs: the last phase with the contents; -1: every one
};

// sim::Counters as plain numbers, in the order of its members: std::bit_cast converts one into the
// other.
struct CounterWords {
  std::uint64_t word[80] = {};
};

// What happened from start to stop. Each text ends with a NUL within its array.
struct Report {
  CounterWords counters;
  // The runtime's copies and fills: bytes from host to device (launch parameters included), from
  // device to host, and moved within the device (a copy reads and writes); and the number of
  // transfers. One between host and device counts once for every kWindowBytes, and the rows of a
  // box count together.
  std::uint64_t to_device_bytes = 0, to_host_bytes = 0, within_bytes = 0, transfers = 0;
  std::uint64_t peak_bytes = 0;  // of global memory, without the placed buffers; and of local
                                 // memory beyond what a thread is given for nothing
  std::uint64_t findings = 0;    // places with a finding
  std::uint32_t over_limit = 0;  // the instruction limit was reached
  double seconds = 0;            // measured on a real GPU: its working time; else 0
  char first_finding[2048] = {};
  char unsupported[2048] = {};  // what the simulator lacks, or ""
  char invalid_ptx[512] = {};   // a module that is not PTX, and why
  char refused[512] = {};       // the first launch that was refused, and why
};

struct Control {
  Order order = Order::none;
  std::int32_t phase = 0;
  std::uint64_t instruction_limit = 0;  // start: warp instructions of the phase
  std::uint64_t shuffle_seed = 0;       // start: sim::DeviceOptions
  std::uint32_t buffers = 0;            // place
  Buffer buffer[kMaxBuffers];
  std::uint64_t address = 0, offset = 0, bytes = 0;  // write

  // Answers.
  std::uint32_t ok = 0;       // 0: no room (place), not device memory (write)
  std::int32_t changed = -1;  // collect: an input that was written to, and where
  std::uint64_t changed_at = 0;
  char undefined[2048] = {};  // collect: an output with values that nothing has written, or ""
  Report report;              // stop

  // Monotonic time of the calls served for the worker, in ns; busy_since is 0 while it is idle. The
  // harness subtracts it from the worker's wall clock, so that the simulator's speed cannot make a
  // submission fail.
  std::atomic<std::uint64_t> busy_ns{0}, busy_since{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// --- the link
// -------------------------------------------------------------------------------------------------

inline constexpr std::size_t kWindowOffset = 4096, kWindowBytes = std::size_t{4} << 20,
                             kLinkBytes = kWindowOffset + kWindowBytes;
// kMaxModuleBytes: of all modules together.
inline constexpr std::size_t kMaxModuleBytes = std::size_t{32} << 20, kMaxNameBytes = 8192;

enum class CallKind : std::uint32_t {
  module_begin,  // bytes: size of the PTX, or of GPU code, that follows
  module_part,   // payload: the next piece
  module_load,   // -> code: ModuleReply::Status, id, payload: message
  kernel,    // id: module; payload: name -> code: KernelReply::Status, id, payload: KernelWire ...
             // or, if unsupported, the reason
  variable,  // id: module; payload: name -> address, bytes
  allocate,  // bytes -> address
  free,      // address -> ok
  write,     // address; payload -> ok
  read,      // address, bytes -> payload, ok
  copy,      // address, from, bytes -> ok
  fill,      // address, bytes, value -> ok
  allocation,  // address -> address, bytes
  memory,      // -> address: capacity, bytes: live
  launch,      // id: kernel, shape; payload: params -> payload: LaunchWire ...
  order,       // payload: OrderWire ...: of the following writes, reads, copies, fills, launches
  touch,       // address
  finding,     // payload: FindingWire ...: what the runtime found wrong with the host code
  peek,        // like read, for memory that nothing races with
  occupancy,   // id: kernel, bytes: threads of a block, address: its dynamic shared memory ->
               // bytes: blocks that one multiprocessor holds; ok: 0 if unknown
  tensor_map,  // payload: sim::TensorMapRequest -> code: TensorMapReply::Status, payload: the map
               // or, if unsupported, the reason
};

// sim::LaunchConfig as plain numbers.
struct LaunchShape {
  std::uint32_t grid[3] = {}, block[3] = {};
  std::uint64_t dynamic_shared_bytes = 0;
  std::uint32_t cooperative = 0;
  std::uint32_t cluster[3] = {1, 1, 1};
};

struct Call {
  CallKind kind{};
  std::uint32_t id = 0, value = 0;
  // Of a copy or fill: the n-th further row of a box whose first row has 0. The device's process
  // believes it only of rows that lie at equal distances, as those of a box do.
  std::uint32_t row = 0;
  std::uint64_t address = 0, from = 0, bytes = 0;
  std::uint64_t payload = 0;  // bytes in the window
  LaunchShape shape;
};

struct Answer {
  std::uint32_t ok = 0, id = 0, code = 0;
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t payload = 0;
};

// Start of the payload that answers `kernel`; name_bytes of the name and `params` pairs {bytes,
// offset} follow.
struct KernelWire {
  std::uint32_t name_bytes = 0, params = 0, params_bytes = 0, static_shared_bytes = 0,
                local_bytes = 0, registers = 0, max_threads = 0;
  std::uint32_t required_cluster[3] = {};
};

// Start of the payload that answers `launch`; three texts follow, cut at the window's end.
struct LaunchWire {
  std::uint32_t status = 0, unsupported = 0;
  std::uint64_t instructions = 0;
  std::uint32_t message_bytes = 0, output_bytes = 0, error_bytes = 0;
};

// sim::Operation; `clocks` words and two texts follow. Forging one only hides the submission's own
// races, which blocking calls could do as well.
struct OrderWire {
  std::uint32_t stream = 0, time = 0, clocks = 0, call_bytes = 0, name_bytes = 0;
};

// sim::Finding; three texts follow.
struct FindingWire {
  std::uint32_t kernel_bytes = 0, where_bytes = 0, text_bytes = 0;
};

struct LinkPage {
  Call call;
  Answer answer;
  // Of Gpu, set before the first call.
  std::uint32_t architecture = 0, multiprocessors = 0, is_hardware = 0;
};
static_assert(sizeof(LinkPage) <= kWindowOffset);
static_assert(std::is_trivially_copyable_v<LinkPage> && std::is_trivially_copyable_v<KernelWire> &&
              std::is_trivially_copyable_v<LaunchWire>);
static_assert(std::is_trivially_copyable_v<Buffer> && std::is_trivially_copyable_v<Report>);
static_assert(std::is_standard_layout_v<Control>);

}  // namespace assay::device
