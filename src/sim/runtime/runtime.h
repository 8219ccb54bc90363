// The state of the CUDA runtime of one process: what the program registered, its streams and
// events, and the errors that CUDA remembers. The extern "C" functions of api.h are built on it.
//
// Order. The device executes every operation when it is issued, which is one of the orders that
// CUDA allows. Dependence on the order that CUDA leaves open is detected all the same: the order of
// streams and events is tracked (stream_order.h), the device is told when each operation happens
// once there are two streams, and finds those that race; host memory changes only once the host has
// waited (host_copies.h).
//
// Errors. A failed call is remembered for its host thread until cudaGetLastError. A fault while a
// kernel runs is reported at the next call, as CUDA allows, and is sticky: CUDA's documentation
// requires the process to end after such an error, so every later call returns it, including
// cudaGetLastError and cudaDeviceReset.
//
// Kernel printf. As with CUDA's buffer, output reaches stdout at the next launch, synchronisation,
// blocking copy or reset, and is lost if the program ends before that.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/runtime/abi.h"
#include "sim/runtime/capture.h"
#include "sim/runtime/device_link.h"
#include "sim/runtime/graph.h"
#include "sim/runtime/host_copies.h"
#include "sim/runtime/managed_memory.h"
#include "sim/runtime/memory_pools.h"
#include "sim/runtime/run_log.h"
#include "sim/runtime/stream_order.h"
#include "sim/runtime/textures.h"

namespace assay::sim::cuda {

// A fat binary that the program registered. Its PTX is loaded when any part of it is first used.
struct Module {
  const void* wrapper = nullptr;
  void* handle = nullptr;    // its address is what nvcc's code uses as the handle
  bool relocatable = false;  // nvcc -rdc=true: linked with the others that are
  bool loaded = false;
  cudaError_t error = cudaSuccess;  // of loading
  ModuleId id = 0;
  std::uint32_t architecture = 0;  // of the PTX: 80 for compute_80
};

// The objects behind CUDA's opaque handles.
struct CUstream_st {
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  StreamOrder::Index index = 0;
  std::string name;  // for findings; "": stream and its id
};

struct CUevent_st {
  unsigned flags = 0;
  bool recorded = false;
  std::uint64_t time_ns = 0;
  Clock clock;             // what was recorded
  CapturedEvent captured;  // used instead if it was last recorded in a capture
};

struct CUkern_st {
  Module* module = nullptr;
  std::string name;  // mangled
  bool resolved = false;
  KernelReply device;           // if resolved
  int max_dynamic_shared = -1;  // cudaFuncAttributeMaxDynamicSharedMemorySize, -1: not set
  bool large_clusters = false;  // cudaFuncAttributeNonPortableClusterSizeAllowed
  int shared_carveout = -1;     // a hint, kept for cudaFuncGetAttributes

  std::uint32_t largest_cluster() const {
    return large_clusters ? kMaxClusterBlocks : kPortableClusterBlocks;
  }
  bool allows(const Dim3& grid, const Dim3& cluster) const {
    return is_cluster(device.info, grid, cluster) && cluster.count() <= largest_cluster();
  }
};
using Kernel = CUkern_st;

struct Symbol {
  Module* module = nullptr;
  std::string name;
  std::size_t bytes = 0;
  bool managed = false;
  void** host_pointer = nullptr;  // for a managed one: where the host's code looks for its address
};

class Runtime {
 public:
  // Never destroyed, because the program's static destructors still call it.
  static Runtime& instance();

  // Without a device every call that needs one returns cudaErrorNoDevice. Forgets everything that
  // was allocated and remembered, but not what was registered. The log receives what is not
  // supported.
  void attach(std::unique_ptr<DeviceLink> device, RunLog log = RunLog(-1));
  DeviceLink& device() { return *device_; }

  // Features that the program requested and the simulator lacks, each once, in order.
  const std::vector<std::string>& unsupported_api() const { return unsupported_; }
  cudaError_t unsupported(const std::string& what);  // records; cudaErrorNotSupported

  // Kernel output that did not reach stdout.
  std::size_t pending_output() const { return output_.size() + error_output_.size(); }
  void flush_output();

  // The check at the start of a call: no device, or a sticky error.
  cudaError_t begin() const;
  void poison(cudaError_t error) { sticky_ = error; }
  cudaError_t sticky() const { return sticky_; }
  bool uses_device() const { return device_ != nullptr; }

  // Registration.
  Module* add_module(const void* wrapper, bool relocatable = false);
  void remove_module(Module*);
  void add_kernel(Module*, const void* host_function, const char* name);
  void add_symbol(Module*, const void* host_variable, Symbol);

  // By the address of the host stub, or by the handle. cudaErrorInvalidDeviceFunction if it is
  // neither; otherwise the kernel is resolved, or the error is its module's.
  cudaError_t find_kernel(const void* function, Kernel*& kernel);
  // Registered, possibly not resolved; nullptr if unknown.
  Kernel* known_kernel(const void* function);
  cudaError_t find_symbol(const void* host_variable, const Symbol*& symbol, VariableInfo& where);

  // Memory of cudaMalloc and similar functions.
  cudaError_t allocate(std::size_t bytes, void** pointer);
  cudaError_t free(void* pointer);
  // Memory of cudaMallocManaged, and __managed__ variables of a module: from then on the host may
  // access them.
  cudaError_t allocate_managed(std::size_t bytes, void** pointer, const char* call);
  cudaError_t open_managed_variables(Module&);
  bool is_managed(const void* pointer, std::size_t bytes = 1) const;
  // Page-locked memory that begins there: where the device has its copy, from now on.
  cudaError_t map(std::uintptr_t host, std::size_t bytes, void*& on_device);
  void unmap(const void* host);  // if it is mapped
  MemoryPools& pools() { return pools_; }
  Textures& textures() { return textures_; }
  // How many such blocks one multiprocessor holds at a time.
  std::uint32_t resident_blocks(const Kernel&, std::uint32_t threads,
                                std::uint64_t dynamic_shared_bytes);
  // Whether it is in a variable of a loaded module, outside kGlobalRange.
  bool is_variable(std::uint64_t address) const;
  // The host has waited for the operation issued last.
  void fetch_managed();
  // Copies between any two memories; the pointers determine the direction. begin_copy() issues one,
  // and waits if CUDA's documentation says that the host waits; copy() executes it, once per row.
  struct CopyCall {
    cudaStream_t stream = nullptr;
    const char* name = nullptr;  // of the API function
    bool async = false;          // the function's name says so
    bool of_graph = false;       // the host waits for the launch instead, if at all
  };
  void begin_copy(const CopyCall&, const void* to, const void* from);
  cudaError_t copy(const CopyCall&, void* to, const void* from, std::size_t bytes);
  void set_row(std::uint32_t n);                                               // see DeviceLink
  std::map<std::uintptr_t, std::size_t>& pinned() { return pinned_; }          // cudaHostAlloc
  std::map<std::uintptr_t, std::size_t>& registered() { return registered_; }  // cudaHostRegister
  std::map<std::uintptr_t, unsigned>& host_flags() { return host_flags_; }

  // Streams and events.
  cudaStream_t create_stream(unsigned flags, int priority);
  bool destroy_stream(cudaStream_t);
  bool valid(cudaStream_t) const;
  cudaEvent_t create_event(unsigned flags);
  bool destroy_event(cudaEvent_t);
  bool valid(cudaEvent_t) const;

  // Graphs and capture. An operation is admitted to its stream before it is issued there, or
  // becomes a node if the stream is captured. `waits`: the call waits for it.
  Captures& captures() { return captures_; }
  static StreamKey key_of(cudaStream_t);
  static bool is_blocking(cudaStream_t);  // the legacy stream waits for it
  bool is_captured(cudaStream_t s) { return captures_.any() && captures_.of(key_of(s)) != nullptr; }
  cudaError_t admit(cudaStream_t, bool waits = false);
  // A call that waits for work, or may.
  cudaError_t admit_unsafe();
  // For what the simulator cannot capture: admitted only to streams that are not captured, or
  // refused in a captured stream.
  cudaError_t admit_uncaptured(cudaStream_t, const std::string& call);
  cudaError_t unsupported_in_capture(cudaStream_t, const std::string& call);

  cudaGraph_t add_graph(std::unique_ptr<CUgraph_st>);
  bool destroy_graph(cudaGraph_t);
  bool valid(cudaGraph_t graph) const { return graphs_.contains(graph); }
  bool valid(cudaGraphNode_t) const;
  cudaGraphExec_t add_exec(CUgraphExec_st);
  bool destroy_exec(cudaGraphExec_t);
  // Stays alive while it is held; nullptr: unknown.
  std::shared_ptr<CUgraphExec_st> find_exec(cudaGraphExec_t) const;

  // Order. Issues an operation in the stream; tells the device if there is anything to tell.
  void issue(cudaStream_t, const char* call);
  void record(cudaEvent_t, cudaStream_t);
  void wait(cudaStream_t, cudaEvent_t);
  Clock record(cudaStream_t stream) { return order_.record(index_of(stream)); }
  void wait(cudaStream_t stream, const Clock& clock) { order_.wait(index_of(stream), clock); }
  void host_waits_for(cudaStream_t);
  void host_waits_for(cudaEvent_t);
  void host_waits_for_all();
  // The allocation that begins there is made, or ends, with the last issued operation.
  void touch(const void* pointer);

  // The simulated clock of events, which measures nothing: a microsecond for each launch, copy or
  // fill, a nanosecond for each warp instruction and for each 32 bytes copied or filled.
  std::uint64_t clock_ns() const { return clock_ns_; }
  void advance(std::uint64_t work) { clock_ns_ += 1000 + work; }

  // What a launch does, if CUDA accepts it.
  cudaError_t prepare(Kernel&, const LaunchConfig&, void** args, KernelWork&);
  cudaError_t launch(Kernel&, const LaunchConfig&, void** args, cudaStream_t);
  cudaError_t run(const KernelWork&, cudaStream_t);
  cudaError_t reset();

  std::map<cudaLimit, std::size_t>& limits() { return limits_; }
  unsigned& device_flags() { return device_flags_; }

  std::mutex mutex;  // protects everything; held by Call

 private:
  cudaError_t load(Module&);
  ModuleReply load_image(Module&);
  ModuleReply load_linked(std::span<Module* const>);
  std::vector<Module*> linked_with(Module&);
  cudaError_t check_configuration(const Kernel&, const LaunchConfig&);
  cudaError_t finish_launch(LaunchReply&);
  bool names_host_memory(const std::vector<std::byte>& params) const;
  void free_everything();
  void forget_streams();
  StreamOrder::Index index_of(cudaStream_t);
  bool page_locked(const void*, std::size_t bytes) const;
  void settle();
  void open_managed_stream();
  void clear_managed(std::uint64_t address, std::size_t bytes, const char* call);
  void send_managed();
  void before_waiting();
  void start(cudaStream_t, const char* call);

  std::unique_ptr<DeviceLink> device_;
  RunLog log_{-1};
  cudaError_t sticky_ = cudaSuccess;
  std::vector<std::string> unsupported_;
  std::string output_, error_output_;
  std::uint64_t clock_ns_ = 0;
  template <class T>
  using Owned = std::unordered_map<const void*, std::unique_ptr<T>>;  // by address
  Owned<Module> modules_;
  std::vector<Module*> relocatable_;  // of these, in the order of registration
  std::unordered_map<const void*, std::unique_ptr<Kernel>> kernels_;
  std::unordered_set<const void*> handles_;  // the kernels' own addresses
  std::unordered_map<const void*, Symbol> symbols_;
  std::set<std::uint64_t> allocations_;
  // Module variables outside kGlobalRange, where a real GPU has them: address -> bytes.
  std::map<std::uint64_t, std::uint64_t> variables_;
  std::map<std::uintptr_t, std::size_t> pinned_, registered_;
  std::map<std::uintptr_t, unsigned> host_flags_;
  Owned<CUstream_st> streams_;
  Owned<CUevent_st> events_;
  Captures captures_;
  Owned<CUgraph_st> graphs_;
  std::unordered_map<const void*, std::shared_ptr<CUgraphExec_st>> execs_;
  unsigned long long next_stream_id_ = 3;
  StreamOrder order_;
  std::map<std::thread::id, StreamOrder::Index> own_streams_;  // cudaStreamPerThread
  Operation operation_;                                        // the last issued one
  HostCopies host_copies_;
  ManagedMemory managed_;
  std::map<std::uintptr_t, std::uint64_t> mapped_;  // host memory -> its address on the device
  MemoryPools pools_;
  Textures textures_;
  cudaStream_t managed_stream_ = nullptr;  // stream of the host's writes there
  bool managed_is_stale_ = false;          // something was issued since the last fetch
  std::map<cudaLimit, std::size_t> limits_;
  unsigned device_flags_ = 0;
};

// State that CUDA keeps per host thread.
struct ThreadState {
  cudaError_t last = cudaSuccess;
  struct Configuration {
    dim3 grid, block;
    std::size_t shared_bytes;
    cudaStream_t stream;
  };
  std::vector<Configuration> configurations;  // between <<<...>>> and the stub
  // Stream 0 is the thread's own, in functions for --default-stream per-thread.
  bool per_thread = false;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

  static ThreadState& current();
};

// Remembers a failure for cudaGetLastError, and returns it.
cudaError_t remember(cudaError_t);

// The body of an API function: runs with the runtime locked, unless there is no device or an error
// is sticky.
template <class Body>
cudaError_t call(Body&& body) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  cudaError_t error = runtime.begin();
  if (error == cudaSuccess) error = body(runtime);
  return remember(error);
}

// Likewise for a function that waits for the device: kernel output reaches stdout first, in any
// case.
template <class Body>
cudaError_t call_blocking(Body&& body) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  runtime.flush_output();
  cudaError_t error = runtime.begin();
  if (error == cudaSuccess) error = body(runtime);
  return remember(error);
}

// Whether an address belongs to the device, whatever it points to.
bool is_device(const void* pointer);

}  // namespace assay::sim::cuda

// The variant of a function for programs compiled with --default-stream per-thread; the same
// function if no stream is involved.
#define ASSAY_CUDA_PER_THREAD_ALIAS(name, suffix) \
  extern "C" __attribute__((alias(#name))) decltype(name) name##suffix

namespace assay::sim::cuda {

// In calls made through this, stream 0 is the thread's own.
template <class F, class... A>
cudaError_t in_own_stream(F* function, A... arguments) {
  bool& flag = ThreadState::current().per_thread;
  const bool before = std::exchange(flag, true);
  const cudaError_t error = function(arguments...);
  flag = before;
  return error;
}

template <class F>
struct Arguments;
template <class R, class... A>
struct Arguments<R(A...)> {
  template <std::size_t i>
  using At = std::tuple_element_t<i, std::tuple<A...>>;
};

}  // namespace assay::sim::cuda

#define ASSAY_ARGUMENT(name, i) Arguments<decltype(name)>::At<i> a##i
#define ASSAY_PARAMETERS_2(name) ASSAY_ARGUMENT(name, 0), ASSAY_ARGUMENT(name, 1)
#define ASSAY_PARAMETERS_3(name) ASSAY_PARAMETERS_2(name), ASSAY_ARGUMENT(name, 2)
#define ASSAY_PARAMETERS_4(name) ASSAY_PARAMETERS_3(name), ASSAY_ARGUMENT(name, 3)
#define ASSAY_PARAMETERS_5(name) ASSAY_PARAMETERS_4(name), ASSAY_ARGUMENT(name, 4)
#define ASSAY_PARAMETERS_6(name) ASSAY_PARAMETERS_5(name), ASSAY_ARGUMENT(name, 5)
#define ASSAY_PARAMETERS_7(name) ASSAY_PARAMETERS_6(name), ASSAY_ARGUMENT(name, 6)
#define ASSAY_PARAMETERS_8(name) ASSAY_PARAMETERS_7(name), ASSAY_ARGUMENT(name, 7)
#define ASSAY_PARAMETERS_1(name) ASSAY_ARGUMENT(name, 0)
#define ASSAY_PARAMETERS_9(name) ASSAY_PARAMETERS_8(name), ASSAY_ARGUMENT(name, 8)
#define ASSAY_ARGUMENTS_1 a0
#define ASSAY_ARGUMENTS_2 a0, a1
#define ASSAY_ARGUMENTS_3 a0, a1, a2
#define ASSAY_ARGUMENTS_4 a0, a1, a2, a3
#define ASSAY_ARGUMENTS_5 a0, a1, a2, a3, a4
#define ASSAY_ARGUMENTS_6 a0, a1, a2, a3, a4, a5
#define ASSAY_ARGUMENTS_7 a0, a1, a2, a3, a4, a5, a6
#define ASSAY_ARGUMENTS_8 a0, a1, a2, a3, a4, a5, a6, a7
#define ASSAY_ARGUMENTS_9 a0, a1, a2, a3, a4, a5, a6, a7, a8
// Likewise for a function of `n` parameters that works in a stream.
#define ASSAY_CUDA_PER_THREAD(n, name, suffix)                      \
  extern "C" cudaError_t name##suffix(ASSAY_PARAMETERS_##n(name)) { \
    return in_own_stream(name, ASSAY_ARGUMENTS_##n);                \
  }                                                                 \
  static_assert(true)
