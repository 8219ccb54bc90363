#include "device/hardware_gpu.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>

#include "device/code_registers.h"
#include "sim/address_map.h"
#include "sim/ptx/parser.h"
#include "util/clock.h"

namespace assay::device {
namespace {

using namespace gpu;

constexpr std::size_t kStagingBytes = std::size_t{64} << 20, kPiece = std::size_t{4} << 20;
// Most work items to queue in a held stream; the driver's own queue is about twice as long.
constexpr int kMostInStream = 400;
constexpr std::uint64_t kMostNanoseconds = 20'000'000'000;  // longest wait for work
constexpr std::uint32_t kMajor = 9, kMinor = 0;

// Reads `pieces` pieces of 16 bytes at `from` in a grid-stride loop. It writes nothing unless a
// piece is nonzero.
constexpr char kReadAll[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry read_all(.param .u64 from, .param .u64 pieces)
{
  .reg .pred %p<3>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [pieces];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mov.u32 %r5, %nctaid.x;
  mul.lo.u32 %r5, %r5, %r2;
  cvt.u64.u32 %rd3, %r4;
  cvt.u64.u32 %rd4, %r5;
  mov.u32 %r9, 0;
again:
  setp.ge.u64 %p1, %rd3, %rd2;
  @%p1 bra done;
  shl.b64 %rd5, %rd3, 4;
  add.u64 %rd6, %rd1, %rd5;
  ld.global.cg.v4.u32 {%r5, %r6, %r7, %r8}, [%rd6];
  or.b32 %r9, %r9, %r5;
  or.b32 %r9, %r9, %r6;
  or.b32 %r9, %r9, %r7;
  or.b32 %r9, %r9, %r8;
  add.u64 %rd3, %rd3, %rd4;
  bra again;
done:
  setp.ne.u32 %p2, %r9, 0;
  @%p2 st.global.u32 [%rd1], %r9;
  ret;
}
)";
constexpr unsigned kReadBlocks = 528, kReadThreads = 256;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

sim::LaunchStatus status_of(CUresult failure) {
  switch (failure) {
    case kSuccess: return sim::LaunchStatus::ok;
    case kMisalignedAddress: return sim::LaunchStatus::misaligned_address;
    case kIllegalInstruction:
    case kInvalidPc: return sim::LaunchStatus::illegal_instruction;
    case kAssert: return sim::LaunchStatus::assertion;
    case kLaunchTimeout: return sim::LaunchStatus::timeout;
    default: return sim::LaunchStatus::illegal_address;
  }
}

bool says_that_the_image_is_bad(CUresult result) {
  return result == kInvalidImage || result == kNoBinaryForGpu || result == kInvalidPtx ||
         result == kUnsupportedPtxVersion;
}

// What a launch call says of this launch alone: the GPU goes on.
std::optional<sim::LaunchStatus> refusal(CUresult result) {
  switch (result) {
    case kInvalidValue:
    case kInvalidClusterSize: return sim::LaunchStatus::invalid_configuration;
    case kLaunchOutOfResources: return sim::LaunchStatus::too_many_registers;
    case kCooperativeLaunchTooLarge: return sim::LaunchStatus::too_large_cooperative;
    default: return std::nullopt;
  }
}

// No program causes these.
bool is_fault_of_the_gpu(CUresult result) {
  return result == kDeinitialized || result == kDevicesUnavailable || result == kNoDevice ||
         result == kEccUncorrectable || result == kNvlinkUncorrectable || result == kSystemNotReady;
}

// Bytes of global memory that the module's variables take. Throws sim::ptx::ParseError if that
// cannot be told.
std::uint64_t variable_bytes_in(std::string_view image) {
  if (is_machine_code(image)) return variable_bytes_of(image);
  std::uint64_t bytes = 0;
  for (const sim::ptx::Variable& v : sim::ptx::parse(image).variables)
    if (v.space == sim::ptx::Space::global) bytes += std::min(v.bytes, ~bytes);
  return bytes;
}

CUdevice first_device(const Driver& driver) {
  int count = 0;
  driver.require(driver.device_count(&count), "counting GPUs");
  if (count == 0) throw DriverError(kInvalidValue, "the driver knows no GPU");
  CUdevice device = 0;
  driver.require(driver.device_get(&device, 0), "opening the GPU");
  return device;
}

int attribute_of(const Driver& driver, CUdevice device, int which) {
  int value = 0;
  driver.require(driver.device_attribute(&value, which, device), "asking about the GPU");
  return value;
}

// In bytes.
std::uint64_t l2_of(const Driver& driver, CUdevice device) {
  return static_cast<std::uint64_t>(attribute_of(driver, device, kL2CacheBytes));
}

}  // namespace

std::uint64_t l2_cache_bytes(const std::string& driver_library) {
  const Driver driver(driver_library);
  return l2_of(driver, first_device(driver));
}

HardwareGpu::HardwareGpu(const std::string& driver_library, std::uint64_t memory_bytes)
    : driver_(driver_library) {
  open_device();
  open_stream();
  open_memory(memory_bytes);
  open_flush();
}

int HardwareGpu::attribute(int which) const { return attribute_of(driver_, device_, which); }

void HardwareGpu::open_device() {
  device_ = first_device(driver_);
  const int major = attribute(kComputeCapabilityMajor), minor = attribute(kComputeCapabilityMinor);
  if (major != static_cast<int>(kMajor) || minor != static_cast<int>(kMinor)) {
    throw DriverError(
        kInvalidValue,
        fmt::format("the GPU has compute capability {}.{}; only {}.{} (H100, H200) is "
                    "supported, because workers are told the properties of such a one",
                    major, minor, kMajor, kMinor));
  }
  limits_ = {{attribute(kMaxBlockX), attribute(kMaxBlockY), attribute(kMaxBlockZ)},
             {attribute(kMaxGridX), attribute(kMaxGridY), attribute(kMaxGridZ)},
             attribute(kMaxSharedPerBlockOptin),
             attribute(kMultiprocessorCount)};
  // Local memory is never shrunk after it has grown, so the driver need not wait for kernels again.
  driver_.require(driver_.primary_set_flags(device_, kContextLmemResizeToMax),
                  "preparing a context");
  CUcontext context = nullptr;
  driver_.require(driver_.primary_retain(&context, device_), "making a context on the GPU");
  driver_.require(driver_.context_set_current(context), "entering the context");
}

void HardwareGpu::open_stream() {
  driver_.require(driver_.stream_create(&stream_, kNonBlockingStream), "making a stream");
  for (CUevent* event : {&begin_, &end_})
    driver_.require(driver_.event_create(event, 0), "making an event");
  void* memory = nullptr;
  driver_.require(driver_.host_alloc(&memory, kStagingBytes, kHostAllocDeviceMap),
                  "allocating page-locked memory");
  staging_ = static_cast<std::byte*>(memory);
  driver_.require(driver_.host_alloc(&memory, 4096, kHostAllocDeviceMap),
                  "allocating page-locked memory");
  hold_ = new (memory) std::uint32_t(0);
  driver_.require(driver_.host_device_pointer(&hold_address_, memory, 0),
                  "mapping page-locked memory");
}

// Maps the memory for blocks, followed by twice the size of the L2 cache.
void HardwareGpu::open_memory(std::uint64_t memory_bytes) {
  CUmemAllocationProp memory;
  memory.location.id = device_;
  std::size_t unit = 0;
  driver_.require(driver_.granularity(&unit, &memory, 0), "asking for the size of pages");
  flush_bytes_ = round_up(2 * l2_of(driver_, device_), unit);
  // Reserve for memory that first fit wastes.
  constexpr std::uint64_t kSlack = std::uint64_t{64} << 20;
  const std::uint64_t blocks = round_up(memory_bytes + memory_bytes / 8 + kSlack, unit),
                      bytes = blocks + flush_bytes_;
  CUdeviceptr begin = 0;
  driver_.require(driver_.address_reserve(&begin, bytes, unit, sim::kGlobalRange.begin, 0),
                  "reserving addresses");
  if (!sim::kGlobalRange.contains(begin) || !sim::kGlobalRange.contains(begin + bytes - 1)) {
    throw DriverError(kInvalidValue,
                      fmt::format("the driver gives addresses at {:#x}, where workers may have "
                                  "their own; asked for were those from {:#x}",
                                  begin, sim::kGlobalRange.begin));
  }
  CUmemGenericAllocationHandle handle = 0;
  driver_.require(driver_.mem_create(&handle, bytes, &memory, 0), "allocating memory of the GPU");
  driver_.require(driver_.mem_map(begin, bytes, 0, handle, 0), "mapping memory of the GPU");
  CUmemAccessDesc access;
  access.location.id = device_;
  driver_.require(driver_.mem_set_access(begin, bytes, &access, 1), "opening memory of the GPU");
  blocks_ = std::make_unique<BlockMap>(begin, blocks, memory_bytes);
  flushed_ = begin + blocks;
}

GpuFacts HardwareGpu::facts() const {
  GpuFacts facts;
  char name[256] = {}, bus_id[64] = {};
  driver_.require(driver_.device_name(name, sizeof name - 1, device_), "asking for the GPU's name");
  driver_.require(driver_.pci_bus_id(bus_id, sizeof bus_id - 1, device_),
                  "asking for the GPU's place on the bus");
  driver_.require(driver_.driver_version(&facts.cuda), "asking for the driver's version");
  std::size_t memory = 0;
  driver_.require(driver_.device_total_mem(&memory, device_), "asking for the GPU's memory");
  facts.name = name;
  facts.pci_bus_id = bus_id;
  facts.major = attribute(kComputeCapabilityMajor);
  facts.minor = attribute(kComputeCapabilityMinor);
  facts.multiprocessors = static_cast<std::uint32_t>(limits_.multiprocessors);
  facts.memory_bytes = memory;
  facts.ecc = attribute(kEccEnabled) != 0;
  return facts;
}

std::uint32_t HardwareGpu::architecture() const { return 10 * kMajor + kMinor; }

void HardwareGpu::open_flush() {
  CUmodule module = nullptr;
  driver_.require(driver_.module_load(&module, kReadAll, 0, nullptr, nullptr),
                  "compiling a kernel for the GPU");
  driver_.require(driver_.module_function(&read_all_, module, "read_all"), "looking up a kernel");
}

// --- work in the stream

void HardwareGpu::require(CUresult result, const char* what) const {
  if (is_fault_of_the_gpu(result))
    throw GpuFault{fmt::format("the GPU or its driver failed: {}", driver_.text_of(result))};
  driver_.require(result, what);
}

bool HardwareGpu::put(CUresult result) {
  if (result == kSuccess) return true;
  if (is_fault_of_the_gpu(result)) require(result, "");
  failed_ = result;
  return false;
}

bool HardwareGpu::admit(bool may_hold) {
  if (failed_ != kSuccess) return false;
  if ((!may_hold || in_stream_ >= kMostInStream) && !finish()) return false;
  if (in_stream_++ > 0) return true;
  if (may_hold && counting_ &&
      !put(driver_.stream_wait_value(stream_, hold_address_, ++holds_, kWaitValueGeq)))
    return false;
  return put(driver_.event_record(begin_, stream_));
}

void HardwareGpu::wait() {
  const std::uint64_t most = steady_nanoseconds() + kMostNanoseconds;
  CUresult result = kNotReady;
  for (int turn = 0; result == kNotReady; ++turn) {
    result = driver_.event_query(end_);
    if (result != kNotReady) break;
    if (steady_nanoseconds() > most) throw NeverEnds{"kernels did not end"};
    const timespec pause{0, turn < 1000 ? 0 : 50'000};
    if (turn >= 100) ::nanosleep(&pause, nullptr);
  }
  put(result);
}

bool HardwareGpu::finish() {
  if (in_stream_ == 0) return failed_ == kSuccess;
  in_stream_ = 0;
  if (failed_ == kSuccess) put(driver_.event_record(end_, stream_));
  std::atomic_ref(*hold_).store(holds_);
  if (failed_ == kSuccess) wait();
  staged_ = 0;
  float milliseconds = 0;
  if (failed_ == kSuccess && put(driver_.event_elapsed(&milliseconds, begin_, end_)) && counting_)
    seconds_ += 1e-3 * static_cast<double>(milliseconds);
  return failed_ == kSuccess;
}

// Lines that kernels marked as to be kept (evict_last) would outlive the flush, so they are made
// ordinary first. The last data written stays in the cache as dirty lines. Reading over it forces
// the write-back now, not at the expense of the next work.
void HardwareGpu::flush_l2() {
  if (!finish()) return;
  // A part of a GPU may not have it.
  if (const CUresult reset = driver_.reset_persisting_l2(); reset != kNotSupported && !put(reset))
    return;
  std::uint64_t pieces = flush_bytes_ / 16;
  void* params[] = {&flushed_, &pieces};
  if (admit() && put(driver_.fill(flushed_, 0, flush_bytes_, stream_)) && admit())
    put(driver_.launch(read_all_, kReadBlocks, 1, 1, kReadThreads, 1, 1, 0, stream_, params,
                       nullptr));
  finish();
}

void HardwareGpu::begin_phase(std::uint64_t) {
  flush_l2();
  blocks_->reset_high_water();
  seconds_ = 0;
  counting_ = true;
}

PhaseTime HardwareGpu::end_phase() {
  finish();
  counting_ = false;
  PhaseTime time;
  time.seconds = seconds_;
  if (failed_ != kSuccess)
    time.failure = fmt::format("the GPU gave up: {}", driver_.text_of(failed_));
  return time;
}

// --- memory

bool HardwareGpu::is_memory(std::uint64_t address, std::uint64_t bytes) const {
  if (blocks_->contains(address, bytes)) return true;
  const auto next = variables_.upper_bound(address);
  if (next == variables_.begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  return address - begin <= size && bytes <= size - (address - begin);
}

std::uint64_t HardwareGpu::allocate(std::uint64_t bytes) {
  if (bytes > capacity() || live_bytes() > capacity() - bytes) return 0;
  return blocks_->allocate(bytes);
}

sim::VariableInfo HardwareGpu::allocation(std::uint64_t address) const {
  const Block block = blocks_->around(address);
  return {block.address, block.bytes};
}

bool HardwareGpu::write(std::uint64_t to, std::span<const std::byte> from, const sim::Operation*) {
  if (!is_memory(to, from.size())) return false;
  for (std::size_t at = 0; at < from.size(); at += kPiece) {
    const std::size_t bytes = std::min(kPiece, from.size() - at);
    if (staged_ + bytes > kStagingBytes && !finish()) return false;
    if (!admit()) return false;
    std::byte* const staged = staging_ + staged_;
    staged_ += bytes;
    std::memcpy(staged, from.data() + at, bytes);
    if (!put(driver_.copy_to_device(to + at, staged, bytes, stream_))) return false;
  }
  return true;
}

bool HardwareGpu::read(std::span<std::byte> to, std::uint64_t from, bool, const sim::Operation*) {
  if (!is_memory(from, to.size())) return false;
  for (std::size_t at = 0; at < to.size(); at += kPiece) {
    const std::size_t bytes = std::min(kPiece, to.size() - at);
    if (staged_ + bytes > kStagingBytes && !finish()) return false;
    if (!admit()) return false;
    std::byte* const staged = staging_ + staged_;
    staged_ += bytes;
    if (!put(driver_.copy_to_host(staged, from + at, bytes, stream_)) || !finish()) return false;
    std::memcpy(to.data() + at, staged, bytes);
  }
  return true;
}

bool HardwareGpu::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes,
                       const sim::Operation*) {
  return is_memory(to, bytes) && is_memory(from, bytes) && admit() &&
         put(driver_.copy_within(to, from, bytes, stream_));
}

bool HardwareGpu::fill(std::uint64_t to, std::byte value, std::uint64_t bytes,
                       const sim::Operation*) {
  return is_memory(to, bytes) && admit() &&
         put(driver_.fill(to, static_cast<unsigned char>(value), bytes, stream_));
}

// --- code

sim::ModuleId HardwareGpu::load_module(std::string_view image) {
  if (!finish()) throw InvalidModule(driver_.text_of(failed_));
  std::uint64_t bytes = 0;
  std::string unread;
  try {
    bytes = variable_bytes_in(image);
  } catch (const sim::ptx::ParseError& e) {
    unread = e.what();  // the driver says more about PTX that is none
  }
  if (bytes > capacity() || live_bytes() > capacity() - bytes) {
    throw InvalidModule(fmt::format(
        "its variables take {} bytes, and the GPU has {} for it, of which {} are in use", bytes,
        capacity(), live_bytes()));
  }
  const std::string text(image);  // PTX ends with a NUL
  CUmodule module = nullptr;
  const CUresult result = driver_.module_load(&module, text.c_str(), 0, nullptr, nullptr);
  if (says_that_the_image_is_bad(result)) throw InvalidModule(driver_.text_of(result));
  require(result, "loading a module");
  if (!unread.empty()) {
    require(driver_.module_unload(module), "unloading a module");
    throw InvalidModule("the memory of its variables is unknown: " + unread);
  }
  variable_bytes_ += bytes;
  modules_.push_back(module);
  return static_cast<sim::ModuleId>(modules_.size() - 1);
}

sim::KernelId HardwareGpu::kernel(sim::ModuleId module, std::string_view name) {
  if (module >= modules_.size()) throw std::out_of_range("module");
  Kernel kernel;
  kernel.info.name = name;
  const CUresult found =
      driver_.module_function(&kernel.function, modules_[module], kernel.info.name.c_str());
  if (found == kNotFound) throw std::out_of_range("kernel");
  require(found, "looking up a kernel");
  const auto ask = [&](int which) {
    int value = 0;
    require(driver_.function_attribute(&value, which, kernel.function), "asking about a kernel");
    return static_cast<std::uint32_t>(value);
  };
  kernel.info.static_shared_bytes = ask(kFunctionSharedBytes);
  kernel.info.local_bytes = ask(kFunctionLocalBytes);
  kernel.info.registers = ask(kFunctionRegisters);
  kernel.info.max_threads = ask(kFunctionMaxThreads);
  kernel.info.required_cluster = {ask(kFunctionRequiredClusterWidth),
                                  ask(kFunctionRequiredClusterHeight),
                                  ask(kFunctionRequiredClusterDepth)};
  for (std::size_t i = 0, offset = 0, bytes = 0;
       driver_.function_param(kernel.function, i, &offset, &bytes) == kSuccess; ++i) {
    kernel.info.param_offset.push_back(static_cast<std::uint32_t>(offset));
    kernel.info.param_bytes.push_back(static_cast<std::uint32_t>(bytes));
    kernel.info.params_bytes = static_cast<std::uint32_t>(offset + bytes);
  }
  kernels_.push_back(std::move(kernel));
  return static_cast<sim::KernelId>(kernels_.size() - 1);
}

sim::KernelInfo HardwareGpu::info(sim::KernelId id) { return kernels_.at(id).info; }

sim::VariableInfo HardwareGpu::variable(sim::ModuleId module, std::string_view name) {
  if (module >= modules_.size()) throw std::out_of_range("module");
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  const CUresult found =
      driver_.module_global(&address, &bytes, modules_[module], std::string(name).c_str());
  if (found == kNotFound) throw std::out_of_range("variable");
  require(found, "looking up a variable");
  variables_[address] = bytes;
  return {address, bytes};
}

// --- launches

sim::LaunchStatus HardwareGpu::check(Kernel& kernel, const sim::LaunchConfig& config) const {
  using enum sim::LaunchStatus;
  const auto fits = [](const sim::Dim3& n, const int(&most)[3]) {
    return std::min({n.x, n.y, n.z}) > 0 && n.x <= static_cast<std::uint32_t>(most[0]) &&
           n.y <= static_cast<std::uint32_t>(most[1]) && n.z <= static_cast<std::uint32_t>(most[2]);
  };
  const std::uint64_t threads = config.block.count(),
                      shared = kernel.info.static_shared_bytes + config.dynamic_shared_bytes;
  if (!fits(config.block, limits_.block) || !fits(config.grid, limits_.grid) ||
      threads > kernel.info.max_threads ||
      shared > static_cast<std::uint64_t>(limits_.shared_per_block))
    return invalid_configuration;
  if (!allow_shared(kernel, config.dynamic_shared_bytes)) return invalid_configuration;
  if (!sim::is_cluster(kernel.info, config.grid, config.cluster) ||
      !allow_cluster(kernel, config.cluster.count()))
    return invalid_configuration;
  if (!config.cooperative) return ok;
  const std::uint64_t resident =
      std::uint64_t{blocks_per_multiprocessor(kernel, threads, config.dynamic_shared_bytes)} *
      static_cast<std::uint64_t>(limits_.multiprocessors);
  return config.grid.count() <= resident ? ok : too_large_cooperative;
}

bool HardwareGpu::allow_shared(Kernel& kernel, std::uint64_t bytes) const {
  if (bytes <= kernel.dynamic_shared) return true;
  if (bytes > static_cast<std::uint64_t>(limits_.shared_per_block)) return false;
  if (driver_.function_set_attribute(kernel.function, kFunctionMaxDynamicShared,
                                     static_cast<int>(bytes)) != kSuccess)
    return false;
  kernel.dynamic_shared = bytes;
  kernel.has_run = false;  // the driver may have to reconfigure it
  return true;
}

bool HardwareGpu::allow_cluster(Kernel& kernel, std::uint64_t blocks) const {
  if (blocks <= sim::kPortableClusterBlocks || kernel.large_clusters) return true;
  if (driver_.function_set_attribute(kernel.function, kFunctionLargeClusters, 1) != kSuccess)
    return false;
  kernel.large_clusters = true;
  return true;
}

std::uint32_t HardwareGpu::blocks_per_multiprocessor(Kernel& kernel, std::uint64_t threads,
                                                     std::uint64_t dynamic_shared_bytes) const {
  if (threads == 0 || threads > kernel.info.max_threads ||
      !allow_shared(kernel, dynamic_shared_bytes))
    return 0;
  int blocks = 0;
  require(
      driver_.occupancy(&blocks, kernel.function, static_cast<int>(threads), dynamic_shared_bytes),
      "asking for the occupancy of a kernel");
  return static_cast<std::uint32_t>(blocks);
}

std::optional<std::uint32_t> HardwareGpu::resident_blocks(sim::KernelId id, std::uint64_t threads,
                                                          std::uint64_t dynamic_shared_bytes) {
  return blocks_per_multiprocessor(kernels_.at(id), threads, dynamic_shared_bytes);
}

sim::TensorMapReply HardwareGpu::tensor_map(const sim::TensorMapRequest& r) {
  sim::TensorMapReply reply;
  alignas(128) sim::TensorMapBytes map;
  const CUresult result = driver_.tensor_map(
      map.data(), static_cast<int>(r.element), r.rank, std::bit_cast<void*>(r.address),
      r.size.data(), r.stride_bytes.data(), r.box.data(), r.step.data(),
      static_cast<int>(r.interleave), static_cast<int>(r.swizzle), static_cast<int>(r.l2_promotion),
      static_cast<int>(r.fill));
  if (result == kInvalidValue) {
    reply.status = sim::TensorMapReply::Status::invalid;
    return reply;
  }
  require(result, "making a tensor map");
  reply.map = map;
  return reply;
}

sim::LaunchResult HardwareGpu::launch(sim::KernelId id, const sim::LaunchConfig& given,
                                      std::span<const std::byte> params, const sim::Operation*) {
  sim::LaunchResult result;
  Kernel& kernel = kernels_.at(id);
  sim::LaunchConfig config = given;
  config.cluster = sim::cluster_of(kernel.info, given);
  if (failed_ == kSuccess && (result.status = check(kernel, config)) != sim::LaunchStatus::ok)
    return result;
  if (!admit(kernel.has_run)) {
    result.status = status_of(failed_);
    return result;
  }
  result.counters.launches = 1;
  result.local_bytes = kernel.info.local_bytes;
  std::vector<std::byte> block(params.begin(), params.end());
  block.resize(std::max<std::size_t>(block.size(), kernel.info.params_bytes));
  std::vector<void*> pointers;
  for (const std::uint32_t offset : kernel.info.param_offset)
    pointers.push_back(block.data() + offset);
  const CUresult launched = launch(kernel, config, pointers.data());
  if (const auto refused = refusal(launched)) {
    result.status = *refused;
    if (!kernel.has_run && !finish()) result.status = status_of(failed_);  // it is not held
    return result;
  }
  bool done = put(launched);
  // After this, work may be held again.
  if (done && !kernel.has_run) done = finish();
  kernel.has_run = true;
  if (!done) result.status = status_of(failed_);
  return result;
}

CUresult HardwareGpu::launch(const Kernel& kernel, const sim::LaunchConfig& config, void** params) {
  const sim::Dim3 &g = config.grid, &b = config.block, &c = config.cluster;
  const auto shared = static_cast<unsigned>(config.dynamic_shared_bytes);
  if (c.count() > 1) {
    CUlaunchAttribute attributes[2];
    attributes[0].id = kLaunchClusterDimension;
    std::ranges::copy(std::array{c.x, c.y, c.z}, attributes[0].cluster);
    attributes[1].id = kLaunchCooperative;
    attributes[1].cooperative = config.cooperative ? 1 : 0;
    const CUlaunchConfig extended{{g.x, g.y, g.z}, {b.x, b.y, b.z}, shared, stream_, attributes, 2};
    return driver_.launch_extended(&extended, kernel.function, params, nullptr);
  }
  if (config.cooperative) {
    return driver_.launch_cooperative(kernel.function, g.x, g.y, g.z, b.x, b.y, b.z, shared,
                                      stream_, params);
  }
  return driver_.launch(kernel.function, g.x, g.y, g.z, b.x, b.y, b.z, shared, stream_, params,
                        nullptr);
}

}  // namespace assay::device
