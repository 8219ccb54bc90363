#include "bare_driver.h"

#include <atomic>
#include <cstdint>
#include <new>

#include "gpu/driver.h"

namespace assay {
namespace {

constexpr char kNothing[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
)";

}  // namespace

struct BareDriver::State {
  gpu::Driver driver;
  gpu::CUstream stream = nullptr;
  gpu::CUevent begin = nullptr, end = nullptr;
  gpu::CUfunction nothing = nullptr;
  std::uint32_t* hold = nullptr;  // in host memory
  gpu::CUdeviceptr hold_address = 0;
  std::uint32_t holds = 0;
};

BareDriver::BareDriver(const std::string& library)
    : state_(std::make_unique<State>(State{.driver = gpu::Driver(library)})) {
  State& s = *state_;
  gpu::CUdevice device = 0;
  gpu::CUcontext context = nullptr;
  gpu::CUmodule module = nullptr;
  void* word = nullptr;
  s.driver.require(s.driver.device_get(&device, 0), "opening the GPU");
  s.driver.require(s.driver.primary_retain(&context, device), "making a context");
  s.driver.require(s.driver.context_set_current(context), "entering the context");
  s.driver.require(s.driver.stream_create(&s.stream, gpu::kNonBlockingStream), "making a stream");
  for (gpu::CUevent* event : {&s.begin, &s.end})
    s.driver.require(s.driver.event_create(event, 0), "making an event");
  s.driver.require(s.driver.host_alloc(&word, sizeof *s.hold, gpu::kHostAllocDeviceMap),
                   "allocating page-locked memory");
  s.hold = new (word) std::uint32_t(0);
  s.driver.require(s.driver.host_device_pointer(&s.hold_address, word, 0),
                   "mapping page-locked memory");
  s.driver.require(s.driver.module_load(&module, kNothing, 0, nullptr, nullptr),
                   "compiling a kernel");
  s.driver.require(s.driver.module_function(&s.nothing, module, "nothing"), "looking up a kernel");
  seconds(1, false);  // the driver may load the kernel when it first runs
}

BareDriver::~BareDriver() = default;

double BareDriver::seconds(int launches, bool held) {
  State& s = *state_;
  if (held) {
    s.driver.require(
        s.driver.stream_wait_value(s.stream, s.hold_address, ++s.holds, gpu::kWaitValueGeq),
        "holding the stream");
  }
  s.driver.require(s.driver.event_record(s.begin, s.stream), "recording an event");
  for (int i = 0; i < launches; ++i) {
    s.driver.require(s.driver.launch(s.nothing, 1, 1, 1, 32, 1, 1, 0, s.stream, nullptr, nullptr),
                     "launching a kernel");
  }
  s.driver.require(s.driver.event_record(s.end, s.stream), "recording an event");
  std::atomic_ref(*s.hold).store(s.holds);
  s.driver.require(s.driver.stream_synchronize(s.stream), "waiting for the stream");
  float milliseconds = 0;
  s.driver.require(s.driver.event_elapsed(&milliseconds, s.begin, s.end), "asking for a time");
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace assay
