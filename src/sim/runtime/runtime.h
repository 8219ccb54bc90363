// The state of the CUDA runtime of one process: what the program registered, its streams and
// events, and the errors that CUDA remembers. The extern "C" functions of api.h are written on it.
//
// Order. Every operation is complete when its call returns, which fulfils every promise of streams,
// events and the legacy default stream.
//
// Errors. A failed call is remembered for its host thread until cudaGetLastError. What goes wrong
// while a kernel runs is found at the next call, as CUDA allows, and stays: CUDA's documentation
// has the process end after such an error, so every later call returns it, cudaGetLastError and
// cudaDeviceReset included.
//
// Kernel printf. As CUDA's buffer, it reaches stdout at the next launch, synchronisation, blocking
// copy or reset, and not at all if the program ends before.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/runtime/abi.h"
#include "sim/runtime/device_link.h"
#include "sim/runtime/run_log.h"

namespace assay::sim::cuda {

// A fat binary that the program registered. Its PTX is loaded when something of it is first used.
struct Module {
  const void* wrapper = nullptr;
  void* handle = nullptr;  // its address is what nvcc's code calls the handle
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
};

struct CUevent_st {
  unsigned flags = 0;
  bool recorded = false;
  std::uint64_t time_ns = 0;
};

struct CUkern_st {
  Module* module = nullptr;
  std::string name;  // mangled
  bool resolved = false;
  KernelReply device;           // if resolved
  int max_dynamic_shared = -1;  // cudaFuncAttributeMaxDynamicSharedMemorySize, -1: not set
  int shared_carveout = -1;     // a hint, kept for cudaFuncGetAttributes
};
using Kernel = CUkern_st;

struct Symbol {
  Module* module = nullptr;
  std::string name;
  std::size_t bytes = 0;
  bool managed = false;
};

class Runtime {
 public:
  // Never destroyed: the program's static destructors still call it.
  static Runtime& instance();

  // Without a device every call that needs one returns cudaErrorNoDevice. Forgets all that was
  // allocated and remembered, but not what was registered. The log is that of what is not
  // supported.
  void attach(std::unique_ptr<DeviceLink> device, RunLog log = RunLog(-1));
  DeviceLink& device() { return *device_; }

  // What the program asked for that the simulator does not have, each once, in order.
  const std::vector<std::string>& unsupported_api() const { return unsupported_; }
  cudaError_t unsupported(const std::string& what);  // records; cudaErrorNotSupported

  // Kernel output that did not reach stdout.
  std::size_t pending_output() const { return output_.size() + error_output_.size(); }
  void flush_output();

  // What a call starts with: no device, or an error that stays.
  cudaError_t begin() const;
  void poison(cudaError_t error) { sticky_ = error; }
  cudaError_t sticky() const { return sticky_; }
  bool uses_device() const { return device_ != nullptr; }

  // Registration.
  Module* add_module(const void* wrapper);
  void remove_module(Module*);
  void add_kernel(Module*, const void* host_function, const char* name);
  void add_symbol(Module*, const void* host_variable, Symbol);

  // By the address of the host stub, or by the handle. cudaErrorInvalidDeviceFunction if neither;
  // otherwise the kernel is resolved, or the error is that of its module.
  cudaError_t find_kernel(const void* function, Kernel*& kernel);
  // Registered, not resolved: nullptr if unknown.
  Kernel* known_kernel(const void* function);
  cudaError_t find_symbol(const void* host_variable, const Symbol*& symbol, VariableInfo& where);

  // Memory of cudaMalloc and its like.
  cudaError_t allocate(std::size_t bytes, void** pointer);
  cudaError_t free(void* pointer);
  // Copies between any two memories; direction by the pointers.
  cudaError_t copy(void* to, const void* from, std::size_t bytes);
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

  // The simulated clock of events, which is no measurement of anything: a microsecond for each
  // launch, copy or fill, a nanosecond for each warp instruction and for each 32 bytes copied or
  // filled.
  std::uint64_t clock_ns() const { return clock_ns_; }
  void advance(std::uint64_t work) { clock_ns_ += 1000 + work; }

  cudaError_t launch(Kernel&, const LaunchConfig&, void** args);
  cudaError_t reset();

  std::map<cudaLimit, std::size_t>& limits() { return limits_; }
  std::uint64_t& release_threshold() { return release_threshold_; }
  unsigned& device_flags() { return device_flags_; }

  std::mutex mutex;  // of all of it: held by Call

 private:
  cudaError_t load(Module&);
  cudaError_t check_configuration(const Kernel&, const LaunchConfig&);
  cudaError_t finish_launch(LaunchReply&);
  bool names_host_memory(const std::vector<std::byte>& params) const;
  void free_everything();

  std::unique_ptr<DeviceLink> device_;
  RunLog log_{-1};
  cudaError_t sticky_ = cudaSuccess;
  std::vector<std::string> unsupported_;
  std::string output_, error_output_;
  std::uint64_t clock_ns_ = 0;
  template <class T>
  using Owned = std::unordered_map<const void*, std::unique_ptr<T>>;  // by address
  Owned<Module> modules_;
  std::unordered_map<const void*, std::unique_ptr<Kernel>> kernels_;
  std::unordered_set<const void*> handles_;  // the kernels' own addresses
  std::unordered_map<const void*, Symbol> symbols_;
  std::set<std::uint64_t> allocations_;
  std::map<std::uintptr_t, std::size_t> pinned_, registered_;
  std::map<std::uintptr_t, unsigned> host_flags_;
  Owned<CUstream_st> streams_;
  Owned<CUevent_st> events_;
  unsigned long long next_stream_id_ = 3;
  std::map<cudaLimit, std::size_t> limits_;
  std::uint64_t release_threshold_ = 0;
  unsigned device_flags_ = 0;
};

// What CUDA keeps for each host thread.
struct ThreadState {
  cudaError_t last = cudaSuccess;
  struct Configuration {
    dim3 grid, block;
    std::size_t shared_bytes;
    cudaStream_t stream;
  };
  std::vector<Configuration> configurations;  // between <<<...>>> and the stub

  static ThreadState& current();
};

// Remembers a failure for cudaGetLastError, and returns it.
cudaError_t remember(cudaError_t);

// The body of an API function: runs with the runtime locked, unless there is no device or an error
// stays.
template <class Body>
cudaError_t call(Body&& body) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  cudaError_t error = runtime.begin();
  if (error == cudaSuccess) error = body(runtime);
  return remember(error);
}

// Likewise of a function that waits for the device: kernel output reaches stdout first, whatever
// happened.
template <class Body>
cudaError_t call_blocking(Body&& body) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  runtime.flush_output();
  cudaError_t error = runtime.begin();
  if (error == cudaSuccess) error = body(runtime);
  return remember(error);
}

// Whether an address belongs to the device, wherever it points there.
bool is_device(const void* pointer);

}  // namespace assay::sim::cuda

// The variant of a function for programs compiled with --default-stream per-thread: the same, since
// all streams run in the order of the calls.
#define ASSAY_CUDA_PER_THREAD(name, suffix) \
  extern "C" __attribute__((alias(#name))) decltype(name) name##suffix
