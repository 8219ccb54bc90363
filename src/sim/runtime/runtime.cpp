#include "sim/runtime/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "sim/address_map.h"
#include "sim/occupancy.h"
#include "sim/runtime/fat_binary.h"

namespace assay::sim::cuda {
namespace {

constexpr std::uint32_t kArchitecture = 90;  // of the simulated device
constexpr unsigned kNonBlocking = 1;         // for streams

cudaError_t error_of(LaunchStatus status) {
  switch (status) {
    case LaunchStatus::ok: return cudaSuccess;
    case LaunchStatus::invalid_configuration: return cudaErrorInvalidConfiguration;
    case LaunchStatus::too_large_cooperative: return cudaErrorCooperativeLaunchTooLarge;
    case LaunchStatus::too_many_registers: return cudaErrorLaunchOutOfResources;
    case LaunchStatus::illegal_address: return cudaErrorIllegalAddress;
    case LaunchStatus::misaligned_address: return cudaErrorMisalignedAddress;
    case LaunchStatus::illegal_instruction: return cudaErrorIllegalInstruction;
    case LaunchStatus::assertion: return cudaErrorAssert;
    case LaunchStatus::timeout: return cudaErrorLaunchTimeout;
  }
  return cudaErrorUnknown;
}

// Detected before the kernel starts, and so not sticky.
bool is_refusal(LaunchStatus status) {
  return status == LaunchStatus::invalid_configuration ||
         status == LaunchStatus::too_large_cooperative ||
         status == LaunchStatus::too_many_registers;
}

template <class Map, class T>
T* own(Map& map, std::unique_ptr<T> object) {
  T* address = object.get();
  map.emplace(address, std::move(object));
  return address;
}

// Whether an address lies in one of the ranges, which map first address -> bytes and do not
// overlap.
template <class Ranges>
bool any_covers(const Ranges& ranges, std::uint64_t address) {
  const auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return address - begin < bytes;
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

Runtime& Runtime::instance() {
  static Runtime& runtime = *new Runtime;
  return runtime;
}

ThreadState& ThreadState::current() {
  thread_local ThreadState state;
  return state;
}

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) ThreadState::current().last = error;
  return error;
}

bool is_device(const void* pointer) {
  const std::uint64_t address = address_of(pointer);
  return kGlobalRange.contains(address) || Runtime::instance().is_variable(address);
}

void Runtime::attach(std::unique_ptr<DeviceLink> device, RunLog log) {
  const std::lock_guard lock(mutex);
  device_ = std::move(device);
  log_ = log;
  sticky_ = cudaSuccess;
  unsupported_.clear();
  output_.clear();
  error_output_.clear();
  clock_ns_ = 0;
  allocations_.clear();
  variables_.clear();
  forget_streams();
  order_ = {};
  own_streams_.clear();
  host_copies_ = {};
  limits_.clear();
  ThreadState::current() = {};
  for (const auto& [address, module] : modules_)
    module->loaded = false, module->error = cudaSuccess;
  for (const auto& [function, kernel] : kernels_) kernel->resolved = false;
}

cudaError_t Runtime::begin() const { return device_ == nullptr ? cudaErrorNoDevice : sticky_; }

cudaError_t Runtime::unsupported(const std::string& what) {
  if (std::find(unsupported_.begin(), unsupported_.end(), what) == unsupported_.end()) {
    unsupported_.push_back(what);
    log_.unsupported(what);
  }
  return cudaErrorNotSupported;
}

void Runtime::flush_output() {
  std::fwrite(output_.data(), 1, output_.size(), stdout);
  std::fwrite(error_output_.data(), 1, error_output_.size(), stderr);
  if (!output_.empty()) std::fflush(stdout);
  output_.clear();
  error_output_.clear();
}

// --- registration ---

Module* Runtime::add_module(const void* wrapper, bool relocatable) {
  auto module = std::make_unique<Module>();
  module->wrapper = wrapper;
  module->relocatable = relocatable;
  if (relocatable) relocatable_.push_back(module.get());
  return own(modules_, std::move(module));
}

void Runtime::remove_module(Module* module) {
  std::erase_if(kernels_, [&](const auto& entry) {
    if (entry.second->module != module) return false;
    handles_.erase(entry.second.get());
    return true;
  });
  std::erase_if(symbols_, [&](const auto& entry) { return entry.second.module == module; });
  std::erase(relocatable_, module);
  modules_.erase(module);
}

void Runtime::add_kernel(Module* module, const void* host_function, const char* name) {
  // Every file that instantiates a template registers the one stub that the linker kept.
  if (kernels_.contains(host_function)) return;
  auto kernel = std::make_unique<Kernel>();
  kernel->module = module;
  kernel->name = name;
  handles_.insert(kernel.get());
  kernels_[host_function] = std::move(kernel);
}

void Runtime::add_symbol(Module* module, const void* host_variable, Symbol symbol) {
  symbol.module = module;
  symbols_[host_variable] = std::move(symbol);
}

ModuleReply Runtime::load_image(Module& module) {
  const std::span<const std::byte> container = container_of(module.wrapper);
  if (const std::uint32_t architecture = device_->architecture(); architecture != 0) {
    const std::string_view code = find_code(container, architecture);
    if (!code.empty()) {
      module.architecture = kArchitecture;
      ModuleReply reply = device_->load_module(code);
      if (reply.status == ModuleReply::Status::ok) return reply;
    }
  }
  const PtxImage image = find_ptx(container, kArchitecture);
  module.architecture = image.architecture;
  return device_->load_module(image.text);
}

ModuleReply Runtime::load_linked(std::span<Module* const> modules) {
  std::vector<std::string_view> texts;
  for (Module* module : modules) {
    const PtxImage image = find_ptx(container_of(module->wrapper), kArchitecture);
    module->architecture = image.architecture;
    texts.push_back(image.text);
  }
  return device_->load_linked(texts);
}

// Those that are loaded together with this one.
std::vector<Module*> Runtime::linked_with(Module& module) {
  if (!module.relocatable) return {&module};
  std::vector<Module*> found;
  std::ranges::copy_if(relocatable_, std::back_inserter(found),
                       [](const Module* m) { return !m->loaded && m->error == cudaSuccess; });
  return found;
}

cudaError_t Runtime::load(Module& module) {
  if (module.loaded || module.error != cudaSuccess) return module.error;
  const std::vector<Module*> modules = linked_with(module);
  cudaError_t error = cudaSuccess;
  ModuleId id = 0;
  try {
    const ModuleReply reply = module.relocatable ? load_linked(modules) : load_image(module);
    id = reply.module;
    if (reply.status == ModuleReply::Status::invalid_ptx) error = cudaErrorInvalidPtx;
    if (reply.status == ModuleReply::Status::unsupported) error = cudaErrorNotSupported;
    if (error != cudaSuccess) unsupported(reply.message);
  } catch (const FatBinaryError& e) {
    unsupported(e.what());
    error = cudaErrorNoKernelImageForDevice;
  }
  for (Module* m : modules) {
    m->id = id;
    m->loaded = error == cudaSuccess;
    m->error = error;
  }
  return error;
}

Kernel* Runtime::known_kernel(const void* function) {
  if (handles_.contains(function)) return static_cast<Kernel*>(const_cast<void*>(function));
  const auto found = kernels_.find(function);
  return found == kernels_.end() ? nullptr : found->second.get();
}

cudaError_t Runtime::find_kernel(const void* function, Kernel*& kernel) {
  kernel = known_kernel(function);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  if (kernel->resolved) return cudaSuccess;
  if (const cudaError_t error = load(*kernel->module); error != cudaSuccess) return error;
  kernel->device = device_->kernel(kernel->module->id, kernel->name);
  switch (kernel->device.status) {
    case KernelReply::Status::ok: break;
    case KernelReply::Status::unknown: return cudaErrorInvalidDeviceFunction;
    case KernelReply::Status::unsupported: return unsupported(kernel->device.message);
  }
  kernel->resolved = true;
  return cudaSuccess;
}

cudaError_t Runtime::find_symbol(const void* host_variable, const Symbol*& symbol,
                                 VariableInfo& where) {
  const auto found = symbols_.find(host_variable);
  if (found == symbols_.end()) return cudaErrorInvalidSymbol;
  symbol = &found->second;
  if (const cudaError_t error = load(*symbol->module); error != cudaSuccess) return error;
  where = device_->variable(symbol->module->id, symbol->name);
  if (where.bytes == 0) return cudaErrorInvalidSymbol;
  if (!kGlobalRange.contains(where.address)) variables_[where.address] = where.bytes;
  return cudaSuccess;
}

bool Runtime::is_variable(std::uint64_t address) const { return any_covers(variables_, address); }

// --- memory ---

cudaError_t Runtime::allocate(std::size_t bytes, void** pointer) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const std::uint64_t address = device_->allocate(bytes);
  if (address == 0) return cudaErrorMemoryAllocation;
  allocations_.insert(address);
  *pointer = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t Runtime::free(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  if (allocations_.erase(address_of(pointer)) == 0) return cudaErrorInvalidValue;
  managed_.remove(address_of(pointer));
  pools_.gave_back(address_of(pointer));
  return device_->free(address_of(pointer)) ? cudaSuccess : cudaErrorInvalidValue;
}

void Runtime::open_managed_stream() {
  if (managed_stream_ != nullptr) return;
  managed_stream_ = create_stream(kNonBlocking, 0);
  managed_stream_->name = "no stream";
}

// All zeros, like the host's pages, because it is unknown byte by byte which of them the host
// writes.
void Runtime::clear_managed(std::uint64_t address, std::size_t bytes, const char* call) {
  open_managed_stream();
  start(managed_stream_, call);
  device_->fill(address, std::byte{0}, bytes);
  order_.host_waits_for(managed_stream_->index);
}

cudaError_t Runtime::allocate_managed(std::size_t bytes, void** pointer, const char* call) {
  if (const cudaError_t error = allocate(bytes, pointer); error != cudaSuccess) return error;
  const std::uint64_t address = address_of(*pointer);
  if (!managed_.add(address, bytes)) {
    free(*pointer);
    return cudaErrorMemoryAllocation;
  }
  clear_managed(address, bytes, call);
  return cudaSuccess;
}

cudaError_t Runtime::map(std::uintptr_t host, std::size_t bytes, void*& on_device) {
  on_device = reinterpret_cast<void*>(host);
  if (is_device(on_device)) return cudaSuccess;
  if (const auto mapped = mapped_.find(host); mapped != mapped_.end()) {
    on_device = reinterpret_cast<void*>(mapped->second);
    return cudaSuccess;
  }
  auto* const bytes_of_host = static_cast<std::byte*>(on_device);
  if (const cudaError_t error = allocate(bytes, &on_device); error != cudaSuccess) return error;
  mapped_[host] = address_of(on_device);
  managed_.mirror(address_of(on_device), bytes_of_host, bytes);
  clear_managed(address_of(on_device), bytes, "cudaHostGetDevicePointer");
  return cudaSuccess;
}

void Runtime::unmap(const void* host) {
  const auto mapped = mapped_.find(address_of(host));
  if (mapped == mapped_.end()) return;
  free(reinterpret_cast<void*>(mapped->second));
  mapped_.erase(mapped);
}

cudaError_t Runtime::open_managed_variables(Module& module) {
  for (auto& [host, symbol] : symbols_) {
    if (!symbol.managed || symbol.module != &module) continue;
    if (const cudaError_t error = load(module); error != cudaSuccess) return error;
    const VariableInfo where = device_->variable(module.id, symbol.name);
    if (where.bytes == 0) return cudaErrorInvalidSymbol;
    if (!is_managed(reinterpret_cast<void*>(where.address)) &&
        !managed_.add(where.address, where.bytes)) {
      return cudaErrorMemoryAllocation;
    }
    open_managed_stream();
    *symbol.host_pointer = reinterpret_cast<void*>(where.address);
    managed_is_stale_ = true;
  }
  fetch_managed();
  return cudaSuccess;
}

bool Runtime::is_managed(const void* pointer, std::size_t bytes) const {
  return managed_.contains(address_of(pointer), bytes);
}

// The host's own writes come after what it has waited for, and before everything that it issues
// next.
void Runtime::send_managed() {
  if (managed_.empty()) return;
  const bool exactly = managed_is_stale_ || !order_.host_knows_all();
  managed_.send_changes(exactly, [&](std::uint64_t to, std::span<const std::byte> from) {
    start(managed_stream_, "the host");
    device_->write(to, from);
    order_.host_waits_for(managed_stream_->index);
  });
}

// What the host wrote while work was under way comes before the wait, and races with that work where
// both have the same bytes.
void Runtime::before_waiting() {
  if (managed_is_stale_) send_managed();
}

void Runtime::fetch_managed() {
  if (!managed_is_stale_ || managed_.empty()) return;
  managed_.fetch([&](std::span<std::byte> to, std::uint64_t from) { device_->peek(to, from); });
  managed_is_stale_ = false;
}

// CUDA Runtime API, "API synchronization behavior". A copy to the device from pageable memory has
// been read when the call returns, but need not have reached the device; from page-locked memory, a
// function without Async waits. A copy within the device is never waited for.
void Runtime::begin_copy(const CopyCall& call, const void* to, const void* from) {
  if (call.of_graph) return issue(call.stream, call.name);
  if (!is_device(to) && !is_device(from)) return host_waits_for(call.stream);
  const void* host = is_device(to) ? from : to;
  const bool pageable = !page_locked(host, 1), within = is_device(host);
  // Page-locked memory of the host at an address of the device: what follows holds for it as well.
  const bool mapped = within && (page_locked(to, 1) || page_locked(from, 1));
  if (is_device(to) && !within && !call.async && pageable) host_waits_for(call.stream);
  issue(call.stream, call.name);
  if (mapped && !call.async) {
    host_waits_for(call.stream);
    managed_is_stale_ = true;  // by what the call copies now
  }
  if (within) return;
  const bool waits = is_device(to) ? !call.async && !pageable : !call.async || pageable;
  if (waits) host_waits_for(call.stream);
}

cudaError_t Runtime::copy(const CopyCall& call, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  bool done = true;
  if (is_device(to) && is_device(from)) {
    done = device_->copy(address_of(to), address_of(from), bytes);
  } else if (is_device(to)) {
    const std::span<const std::byte> source(static_cast<const std::byte*>(from), bytes);
    std::vector<std::byte> buffer;
    const auto contents = host_copies_.contents(source, operation_.clock, buffer);
    done = device_->write(address_of(to), contents);
    if (done && call.async && page_locked(from, bytes))
      host_copies_.send(source, contents, operation_);
  } else if (is_device(from)) {
    const bool late = call.of_graph || (call.async && page_locked(to, bytes));
    std::vector<std::byte> buffer(late ? bytes : 0);
    const std::span<std::byte> target =
        late ? std::span(buffer) : std::span(static_cast<std::byte*>(to), bytes);
    done = device_->read(target, address_of(from));
    if (done && late)
      std::ranges::copy(target, host_copies_.receive(to, bytes, operation_).begin());
  } else {
    std::memmove(to, from, bytes);
  }
  return done ? cudaSuccess : cudaErrorInvalidValue;
}

void Runtime::set_row(std::uint32_t n) { device_->set_row(n); }

void Runtime::free_everything() {
  for (const std::uint64_t address : allocations_) device_->free(address);
  allocations_.clear();
}

void Runtime::forget_streams() {
  captures_.clear();
  execs_.clear();
  graphs_.clear();
  streams_.clear();
  events_.clear();
  managed_.clear();
  mapped_.clear();
  managed_stream_ = nullptr;
  pools_ = {};
  textures_ = {};
  // Of page-locked memory only that which has the device's addresses is gone.
  const auto is_gone = [](const auto& range) { return kGlobalRange.contains(range.first); };
  std::erase_if(pinned_, is_gone);
  std::erase_if(host_flags_, is_gone);
}

cudaError_t Runtime::reset() {
  flush_output();
  host_waits_for_all();
  free_everything();
  for (const auto& [address, stream] : streams_) order_.close(stream->index);
  forget_streams();
  limits_.clear();
  // Variables get their initial values again: their modules are reloaded on next use.
  for (const auto& [address, module] : modules_) module->loaded = false;
  for (const auto& [function, kernel] : kernels_) kernel->resolved = false;
  ThreadState::current().last = cudaSuccess;
  return cudaSuccess;
}

// --- streams and events ---

cudaStream_t Runtime::create_stream(unsigned flags, int priority) {
  const StreamOrder::Index index = order_.open((flags & kNonBlocking) == 0);
  auto stream =
      std::make_unique<CUstream_st>(CUstream_st{flags, priority, next_stream_id_++, index, {}});
  return own(streams_, std::move(stream));
}

// Its work continues, and nobody has waited for it.
bool Runtime::destroy_stream(cudaStream_t stream) {
  if (!streams_.contains(stream)) return false;
  captures_.forget(stream);
  order_.close(stream->index);
  return streams_.erase(stream) > 0;
}

bool Runtime::valid(cudaStream_t stream) const {
  return address_of(stream) <= 2 || streams_.contains(stream);
}

cudaEvent_t Runtime::create_event(unsigned flags) {
  auto event = std::make_unique<CUevent_st>();
  event->flags = flags;
  return own(events_, std::move(event));
}

bool Runtime::destroy_event(cudaEvent_t event) { return events_.erase(event) > 0; }
bool Runtime::valid(cudaEvent_t event) const { return events_.contains(event); }

// --- graphs and capture ---

StreamKey Runtime::key_of(cudaStream_t stream) {
  const std::uint64_t handle = address_of(stream);
  if (handle > 2) return stream;
  ThreadState& thread = ThreadState::current();
  const bool own = handle == 2 || (handle == 0 && thread.per_thread);
  return own ? &thread : nullptr;
}

bool Runtime::is_blocking(cudaStream_t stream) {
  return address_of(stream) <= 2 || (stream->flags & kNonBlocking) == 0;
}

cudaError_t Runtime::admit(cudaStream_t stream, bool waits) {
  if (!captures_.any()) return cudaSuccess;
  if (key_of(stream) == nullptr) {
    const cudaError_t error = captures_.use_legacy();
    if (error != cudaSuccess) return error;
  }
  return waits ? admit_unsafe() : cudaSuccess;
}

cudaError_t Runtime::admit_unsafe() {
  return captures_.use_unsafe(ThreadState::current().capture_mode);
}

cudaError_t Runtime::admit_uncaptured(cudaStream_t stream, const std::string& call) {
  return is_captured(stream) ? unsupported_in_capture(stream, call) : admit(stream);
}

cudaError_t Runtime::unsupported_in_capture(cudaStream_t stream, const std::string& call) {
  captures_.refuse(key_of(stream));
  return unsupported(call + " in a captured stream");
}

cudaGraph_t Runtime::add_graph(std::unique_ptr<CUgraph_st> graph) {
  return own(graphs_, std::move(graph));
}

bool Runtime::destroy_graph(cudaGraph_t graph) { return graphs_.erase(graph) > 0; }

bool Runtime::valid(cudaGraphNode_t node) const {
  return std::ranges::any_of(graphs_, [&](const auto& g) { return g.second->has(node); });
}

// Each branch except the first, which is the launch's stream, is a stream that nothing else orders.
cudaGraphExec_t Runtime::add_exec(CUgraphExec_st exec) {
  for (std::size_t b = 1; b < exec.branch_count(); ++b) {
    exec.branches.push_back(create_stream(kNonBlocking, 0));
    exec.branches.back()->name = fmt::format("branch {} of a graph", b + 1);
  }
  const auto shared = std::make_shared<CUgraphExec_st>(std::move(exec));
  execs_[shared.get()] = shared;
  return shared.get();
}

bool Runtime::destroy_exec(cudaGraphExec_t exec) {
  if (!execs_.contains(exec)) return false;
  for (const cudaStream_t branch : exec->branches) destroy_stream(branch);
  return execs_.erase(exec) > 0;
}

std::shared_ptr<CUgraphExec_st> Runtime::find_exec(cudaGraphExec_t exec) const {
  const auto found = execs_.find(exec);
  return found == execs_.end() ? nullptr : found->second;
}

// --- order ---

StreamOrder::Index Runtime::index_of(cudaStream_t stream) {
  const std::uint64_t handle = address_of(stream);
  if (handle > 2) return stream->index;
  if (handle == 1 || (handle == 0 && !ThreadState::current().per_thread)) {
    return StreamOrder::kLegacy;
  }
  const auto [at, fresh] = own_streams_.try_emplace(std::this_thread::get_id(), 0);
  if (fresh) at->second = order_.open(true);
  return at->second;
}

void Runtime::issue(cudaStream_t stream, const char* call) {
  send_managed();
  managed_is_stale_ = managed_is_stale_ || !managed_.empty();
  start(stream, call);
}

void Runtime::start(cudaStream_t stream, const char* call) {
  const StreamOrder::Index index = index_of(stream);
  operation_.stream = index;
  operation_.time = order_.issue(index);
  operation_.clock = order_.clock(index);
  operation_.call = call;
  operation_.stream_name = index == StreamOrder::kLegacy ? "the default stream"
                           : address_of(stream) <= 2     ? "the thread's default stream"
                           : !stream->name.empty()       ? stream->name
                                                         : "stream " + std::to_string(stream->id);
  if (order_.concurrent()) device_->order(operation_);
}

void Runtime::touch(const void* pointer) {
  if (pointer != nullptr && order_.concurrent()) device_->touch(address_of(pointer));
}

void Runtime::record(cudaEvent_t event, cudaStream_t stream) {
  event->clock = order_.record(index_of(stream));
}

void Runtime::wait(cudaStream_t stream, cudaEvent_t event) {
  order_.wait(index_of(stream), event->clock);
}

void Runtime::host_waits_for(cudaStream_t stream) {
  before_waiting();
  order_.host_waits_for(index_of(stream));
  settle();
}

void Runtime::host_waits_for(cudaEvent_t event) {
  before_waiting();
  order_.host_waits_for(event->clock);
  settle();
}

void Runtime::host_waits_for_all() {
  before_waiting();
  order_.host_waits_for_all();
  settle();
}

void Runtime::settle() {
  for (const HostCopies::Change& c : host_copies_.settle(order_)) {
    Finding f;
    f.kind = FindingKind::late_change;
    f.kernel = c.call;
    f.where = "the host";
    f.text = fmt::format(
        "the {} bytes of page-locked memory at {:#x}, which the copy in {} reads, were changed "
        "before the host waited for it",
        c.bytes, c.address, c.stream_name);
    device_->report(f);
  }
  fetch_managed();
}

bool Runtime::page_locked(const void* pointer, std::size_t bytes) const {
  const std::uintptr_t begin = address_of(pointer);
  return std::ranges::any_of(std::array{&pinned_, &registered_}, [&](const auto* ranges) {
    const auto after = ranges->upper_bound(begin);
    if (after == ranges->begin()) return false;
    const auto& [at, size] = *std::prev(after);
    return begin - at < size && bytes <= size - (begin - at);
  });
}

// --- launches ---

cudaError_t Runtime::check_configuration(const Kernel& kernel, const LaunchConfig& config) {
  const Dim3 &grid = config.grid, &block = config.block;
  const KernelInfo& info = kernel.device.info;
  const bool empty = grid.count() == 0 || block.count() == 0;
  const bool large = grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 || block.x > 1024 ||
                     block.y > 1024 || block.z > 64 || block.count() > kMaxThreadsPerBlock;
  if (empty || large) return cudaErrorInvalidConfiguration;
  if (block.count() > info.max_threads) return cudaErrorLaunchOutOfResources;
  const std::uint64_t dynamic_limit =
      kernel.max_dynamic_shared >= 0
          ? static_cast<std::uint64_t>(kernel.max_dynamic_shared)
          : kMaxSharedPerBlock - std::min(kMaxSharedPerBlock, info.static_shared_bytes);
  if (config.dynamic_shared_bytes > dynamic_limit) return cudaErrorInvalidValue;
  if (!kernel.allows(grid, cluster_of(info, config))) return cudaErrorInvalidClusterSize;
  if (config.cooperative) {
    const std::uint64_t resident =
        std::uint64_t{device_->multiprocessors()} *
        resident_blocks(kernel, static_cast<std::uint32_t>(block.count()),
                        config.dynamic_shared_bytes);
    if (grid.count() > resident) return cudaErrorCooperativeLaunchTooLarge;
  }
  return cudaSuccess;
}

cudaError_t Runtime::prepare(Kernel& kernel, const LaunchConfig& config, void** args,
                             KernelWork& work) {
  if (const cudaError_t error = check_configuration(kernel, config); error != cudaSuccess) {
    return error;
  }
  const KernelInfo& info = kernel.device.info;
  if (args == nullptr && !info.param_bytes.empty()) return cudaErrorInvalidValue;
  work = {&kernel, config, std::vector<std::byte>(info.params_bytes)};
  work.config.cluster = cluster_of(info, config);
  for (std::size_t i = 0; i < info.param_bytes.size(); ++i) {
    if (args[i] == nullptr) return cudaErrorInvalidValue;
    std::memcpy(work.params.data() + info.param_offset[i], args[i], info.param_bytes[i]);
  }
  return cudaSuccess;
}

cudaError_t Runtime::launch(Kernel& kernel, const LaunchConfig& config, void** args,
                            cudaStream_t stream) {
  flush_output();
  KernelWork work;
  if (const cudaError_t error = prepare(kernel, config, args, work); error != cudaSuccess) {
    return error;
  }
  if (const cudaError_t error = admit(stream); error != cudaSuccess) return error;
  if (is_captured(stream)) return captures_.add(key_of(stream), std::move(work));
  return run(work, stream);
}

cudaError_t Runtime::run(const KernelWork& work, cudaStream_t stream) {
  issue(stream, "a launch");
  LaunchReply reply = device_->launch(work.kernel->device.id, work.config, work.params);
  if (reply.status == LaunchStatus::illegal_address && names_host_memory(work.params)) {
    unsupported(
        "kernel access to memory of the host (cudaMallocHost, cudaHostAlloc, "
        "cudaHostRegister)");
  }
  return finish_launch(reply);
}

std::uint32_t Runtime::resident_blocks(const Kernel& kernel, std::uint32_t threads,
                                       std::uint64_t dynamic_shared_bytes) {
  const auto known = device_->resident_blocks(kernel.device.id, threads, dynamic_shared_bytes);
  return known ? *known
               : blocks_per_multiprocessor(kernel.device.info, threads, dynamic_shared_bytes);
}

// Whether some parameter is an address within host memory that the program pinned.
bool Runtime::names_host_memory(const std::vector<std::byte>& params) const {
  for (std::size_t at = 0; at + 8 <= params.size(); at += 8) {
    std::uintptr_t address;
    std::memcpy(&address, params.data() + at, sizeof address);
    if (kGlobalRange.contains(address)) continue;
    if (any_covers(pinned_, address) || any_covers(registered_, address)) return true;
  }
  return false;
}

cudaError_t Runtime::finish_launch(LaunchReply& reply) {
  advance(reply.instructions);
  output_ += reply.output;
  error_output_ += reply.error_output;
  if (reply.unsupported) return sticky_ = unsupported(reply.message);
  const cudaError_t error = error_of(reply.status);
  if (is_refusal(reply.status)) return error;
  sticky_ = error;
  return cudaSuccess;
}

}  // namespace assay::sim::cuda
